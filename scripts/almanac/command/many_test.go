package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"almanac/internal/api"
	"almanac/internal/schedule"
)

// manyDelays is the schedule of the tests with so many recipients.
func manyDelays(n int) string {
	head, _, _ := strings.Cut(delays, "  - email: ada@example.com\n")
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		fmt.Fprintf(&b, "  - email: somebody.%05d@example.com\n", i)
	}
	return b.String()
}

// Ten thousand recipients from a file to a run, and nowhere thousands of lines that nobody asked for.
func TestTenThousandRecipientsFromAFile(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+manyDelays(schedule.MaxRecipients+1))
	_, err := s.run(Usage, "apply", "-f", s.path("demo"), "--yes")
	has(t, err, "all.yaml:", "recipients", "10001", "at most 10000")

	s.write("demo/all.yaml", configuration+"---\n"+strings.Replace(manyDelays(schedule.MaxRecipients), "somebody.07777@example.com", "nobody", 1))
	_, err = s.run(Usage, "apply", "-f", s.path("demo"), "--yes")
	has(t, err, fmt.Sprintf("all.yaml:%d: recipients[7777].email", lineOf(t, s, "nobody")), "nobody")

	s.write("demo/all.yaml", configuration+"---\n"+manyDelays(schedule.MaxRecipients))
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.write("demo/all.yaml", configuration+"---\n"+manyDelays(schedule.MaxRecipients-1))
	out, _ := s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "recipients: 10000 → 9999 (0 added, 1 removed: somebody.09999@example.com)")
	short(t, out)
	out, _ = s.run(Done, "show", "ewr-delays")
	has(t, out, "somebody.00019@example.com", "and 9979 more; almanac show ewr-delays --definition prints all")
	short(t, out)
	out, _ = s.run(Done, "show", "ewr-delays", "--definition")
	if n := strings.Count(out, "@example.com"); n != 10_000 { // and the owner's
		t.Errorf("%d addresses are printed", n)
	}
}

// lineOf is the line of the file where a text stands first.
func lineOf(t *testing.T, s *stage, text string) int {
	t.Helper()
	all := configuration + "---\n" + strings.Replace(manyDelays(schedule.MaxRecipients), "somebody.07777@example.com", text, 1)
	before, _, found := strings.Cut(all, text)
	if !found {
		t.Fatalf("no %q in %s", text, s.dir)
	}
	return strings.Count(before, "\n") + 1
}

func short(t *testing.T, out string) {
	t.Helper()
	if n := strings.Count(out, "\n"); n > 200 {
		t.Errorf("%d lines are printed", n)
	}
}

func TestARunOfManyIsShownInShortAndListedInFull(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+manyDelays(700))
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	id := s.product.Admit(t, "ewr-delays", s.product.Wall())
	s.product.Lose(t, id)
	out, _ := s.run(Done, "show", id)
	has(t, out, "699 submitted, 1 unknown; unknown, not_sent and refused first", "and 600 more; almanac get recipients "+id+" [--state S] lists all")
	first := out[strings.Index(out, "CHANNEL"):]
	if at := strings.Index(first, "unknown"); at < 0 || at > strings.Index(first, "submitted") {
		t.Errorf("the unknown is not the first:\n%.600s", first)
	}
	short(t, out)
	out, _ = s.run(Done, "get", "recipients", id)
	has(t, out, "somebody.00000@example.com", "somebody.00699@example.com")
	if n := strings.Count(out, "@example.com"); n != 700 {
		t.Errorf("%d recipients are listed", n)
	}
	out, _ = s.run(Done, "get", "recipients", id, "--state", "unknown", "-o", "json")
	var list []api.RecipientView
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Outcome != "unknown" {
		t.Errorf("%+v, %v", list, err)
	}
	out, _ = s.run(Done, "get", "recipients", id, "--state", "pending")
	has(t, out, "(none)")
	_, err := s.run(Refused, "get", "recipients", id, "--state", "lost")
	has(t, err, "state", "lost", "not_sent")
	for _, args := range [][]string{{"get", "recipients"}, {"get", "recipients", "no/run"}, {"get", "runs", "ewr-delays", "--state", "unknown"}} {
		s.run(Usage, args...)
	}
	s.run(Refused, "get", "recipients", "ewr-delays@2013-07-01T00:00:00Z")

	// A retry shows the first of those whom it counts.
	out, _ = s.run(Done, "retry", id, "--to", "everyone", "--reason", "again", "--yes")
	has(t, out, "Sends to", "and 500 more")
	short(t, strings.Replace(out, "\n", "", 200))
	var r api.RunDetail
	run, _, _ := strings.Cut(out[strings.Index(out, "ewr-delays@manual"):], " ")
	out, _ = s.run(Done, "show", run, "-o", "json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.RetryOf != id {
		t.Errorf("%+v, %v", r.RetryOf, err)
	}
}

// Documents go to the plan in as many requests as their size wants.
func TestLargeDefinitionsArePlannedApart(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/a.yaml", configuration)
	var long strings.Builder
	for i := range 1_000 {
		fmt.Fprintf(&long, "  - {webhook: \"https://example.com/%d/%s\", secret: ops}\n", i, strings.Repeat("x", 1_900))
	}
	head, _, _ := strings.Cut(delays, "  - email: ada@example.com\n")
	for i := range 3 {
		s.write(fmt.Sprintf("demo/s%d.yaml", i), strings.Replace(head, "id: ewr-delays", fmt.Sprintf("id: ewr-delays-%d", i), 1)+long.String())
	}
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	out, _ := s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	if n := strings.Count(out, "unchanged"); n < 3 {
		t.Errorf("%s", out)
	}
}
