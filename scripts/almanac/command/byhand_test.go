package command

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/failure"
	"almanac/internal/schedule"
)

func TestWrongActsByHandSayWhatIsRight(t *testing.T) {
	s := ready(t, "admin")
	for _, x := range []struct{ args, want string }{
		{"stop r@1", "--reason is missing"},
		{"stop a/b --reason x", "is no run"},
		{"stop --reason x", "usage: almanac stop"},
		{"revoke r@1", "--reason is missing"},
		{"revoke r@1 --recipient nobody --reason x", "name@example.com"},
		{"revoke r@1 --recipient https:// --reason x", "--recipient:"},
		{"control on", "control [set | audits]"},
		{"control set", "one switch is enough"},
		{"control set --reason x", "one switch is enough"},
		{"control set --dispatch off", "--reason is missing"},
		{"control set --dispatch Off --reason x", `--dispatch is "Off"; want on or off`},
		{"control set --send 0 --reason x", `--send is "0"; want on or off`},
		{"control --send off --reason x", "belong to almanac control set"},
		{"control audits --send off", "belong to almanac control set"},
		{"history", "usage: almanac history"},
		{"history x --diff 1", "history SCHEDULE | group/ID | snapshot/WORKSPACE/TYPE [--diff N M]"},
		{"history x 1 2", "history SCHEDULE | group/ID | snapshot/WORKSPACE/TYPE [--diff N M]"},
		{"history x --diff one 2", `"one" is no version`},
		{"history x --diff 0 2", `"0" is no version`},
		{"audits", "usage: almanac audits"},
		{"audits a/b", "is no run, schedule, group or owner"},
		{"get dead-letters x", "usage: almanac get"},
	} {
		_, err := s.run(Usage, strings.Split(x.args, " ")...)
		has(t, err, x.want)
	}
}

// made is a run of ewr-delays that is queued.
func (s *stage) made() string {
	s.t.Helper()
	out, _ := s.run(Done, "run-now", "ewr-delays")
	return strings.Fields(out)[0]
}

func TestStop(t *testing.T) {
	s := applied(t, "operator")
	id := s.made()
	out, _ := s.run(Done, "stop", id, "--reason", "wrong numbers")
	has(t, out, id+": queued, asked to stop by ada: wrong numbers")
	out, _ = s.run(Done, "stop", id, "--reason", "really")
	has(t, out, "asked to stop by ada: wrong numbers")
	out, _ = s.run(Done, "show", id)
	has(t, out, "Stop", "asked for by ada: wrong numbers")
	s.product.Fail(t, id, failure.StoppedByOperator, "ada: wrong numbers")
	_, err := s.run(Refused, "stop", id, "--reason", "again")
	has(t, err, "409", "now: "+id+" is failed")
	out, _ = s.run(Done, "audits", id)
	has(t, out, "WHO", "ada", "stop", "queued", "asked to stop", "wrong numbers", "run now")
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "viewer", "--password-stdin")
	_, err = s.run(Refused, "stop", id, "--reason", "x")
	has(t, err, "403", "operator")
}

func TestRevokeAndWhoUsedLinks(t *testing.T) {
	s := applied(t, "operator")
	id := s.made()
	subs := s.product.Deliver(t, id)
	open := func(sub schedule.Submission, status int) {
		t.Helper()
		c := *s.program.HTTP
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r, err := c.Get(schedule.LinkBase(s.server.URL).File(sub))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != status {
			t.Fatalf("%s: status %d, want %d", sub.Recipient, r.StatusCode, status)
		}
	}
	for _, sub := range subs {
		open(sub, http.StatusFound)
	}
	out, _ := s.run(Done, "show", id)
	has(t, out, "Links used", "2026-12-01T08:00:00Z  download  ada@example.com", "download  bob@example.com", "until 2026-12-31T08:00:00Z")
	out, _ = s.run(Done, "revoke", id, "--recipient", " ADA@Example.com", "--reason", "left")
	has(t, out, "ADA@Example.com is revoked since 2026-12-01T08:00:00Z")
	for _, sub := range subs {
		if sub.Recipient == "ada@example.com" {
			open(sub, http.StatusGone)
		} else {
			open(sub, http.StatusFound)
		}
	}
	out, _ = s.run(Done, "show", id)
	if n := strings.Count(out, "link revoked 2026-12-01T08:00:00Z"); n != 1 {
		t.Errorf("%d links shown as revoked:\n%s", n, out)
	}
	_, err := s.run(Refused, "revoke", id, "--recipient", "https://hooks.example.com/x", "--reason", "x")
	has(t, err, "422", "recipient", "given no link")
	s.run(Done, "revoke", id, "--recipient", subs[0].RecipientHash, "--reason", "by its hash")
	out, _ = s.run(Done, "revoke", id, "--reason", "wrong month")
	has(t, out, id+": all links are revoked since")
	for _, sub := range subs {
		open(sub, http.StatusGone)
	}
	out, _ = s.run(Done, "show", id)
	has(t, out, "all revoked 2026-12-01T08:00:00Z")

	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "viewer", "--password-stdin")
	out, _ = s.run(Done, "show", id)
	has(t, out, "(shown to operators)", "a…@example.com")
}

func TestControlWarnsWhereListsAreRead(t *testing.T) {
	s := applied(t, "admin")
	out, _ := s.run(Done, "control")
	has(t, out, "Dispatch  on", "Send      on", "Changed   -")
	_, quiet := s.run(Done, "get", "schedules")
	if quiet != "" {
		t.Errorf("a warning without cause: %s", quiet)
	}
	out, _ = s.run(Done, "control", "set", "--send", "off", "--reason", "wrong numbers")
	has(t, out, "Dispatch  on", "Send      off", "2026-12-01T08:00:00Z, by ada: wrong numbers")
	out, warning := s.run(Done, "get", "schedules", "-o", "json")
	has(t, warning, "warning: send is off: no recipient is asked (2026-12-01T08:00:00Z, by ada: wrong numbers)")
	var list []api.ScheduleView
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || strings.Contains(warning, "dispatch") {
		t.Fatalf("%v %s%s", err, out, warning)
	}
	s.run(Done, "control", "set", "--dispatch", "off", "--reason", "all of it")
	_, warning = s.run(Done, "get", "runs", "ewr-delays")
	has(t, warning, "dispatch is off: no due occurrence is admitted", "send is off")
	s.product.Pass(time.Second)
	s.run(Done, "control", "set", "--dispatch", "on", "--send", "on", "--reason", "over")
	if _, warning = s.run(Done, "get", "workspaces"); warning != "" {
		t.Error(warning)
	}
	out, _ = s.run(Done, "control", "audits")
	has(t, out, "dispatch on, send on", "dispatch off, send off", "over", "all of it", "wrong numbers")
	out, _ = s.run(Done, "control", "-o", "json")
	var v api.ControlView
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Send != "on" || v.Changed == nil {
		t.Fatalf("%v %s", err, out)
	}

	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "operator", "--password-stdin")
	_, err := s.run(Refused, "control", "set", "--send", "off", "--reason", "x")
	has(t, err, "403", "admin")
	s.run(Done, "control")

	// What the warning needs may be out of reach: the list is printed all the same.
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/control" {
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}
		return false
	}
	out, warning = s.run(Done, "get", "schedules")
	has(t, out, "ewr-delays")
	has(t, warning, "warning: whether dispatch and send are on is not known")
}

func TestHistory(t *testing.T) {
	s := applied(t, "admin")
	id := s.made()
	s.write("demo/all.yaml", configuration+"---\n"+strings.Replace(strings.Replace(delays, "name: Delayed departures", "name: Late", 1), "0 9 * * MON-FRI", "0 8 * * MON-FRI", 1))
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	out, _ := s.run(Done, "history", "ewr-delays")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "2  ") || !strings.HasPrefix(lines[2], "1  ") || !strings.Contains(lines[1], "ada") {
		t.Fatalf("%s", out)
	}
	out, _ = s.run(Done, "history", "ewr-delays", "--diff", "1", "2")
	has(t, out, "version 1 → version 2", `name: "Delayed departures" → "Late"`, `recurrence.cron: "0 9 * * MON-FRI" → "0 8 * * MON-FRI"`)
	out, _ = s.run(Done, "history", "--diff", "ewr-delays", "2", "2")
	has(t, out, "(no difference)")
	_, err := s.run(Refused, "history", "ewr-delays", "--diff", "1", "3")
	has(t, err, "404", "versions 1 to 2")
	_, err = s.run(Refused, "history", "ewr-delays", "--diff", "7", "1")
	has(t, err, "422", "against", "1 to 2")
	out, _ = s.run(Done, "show", id)
	has(t, out, "ewr-delays, version 1, workspace EWR")
	var used, now schedule.Definition
	out, _ = s.run(Done, "show", id, "--definition")
	if err := json.Unmarshal([]byte(out), &used); err != nil || used.Name != "Delayed departures" || used.Recurrence.Cron != "0 9 * * MON-FRI" {
		t.Fatalf("%v %s", err, out)
	}
	out, _ = s.run(Done, "show", "ewr-delays", "--definition")
	if err := json.Unmarshal([]byte(out), &now); err != nil || now.Name != "Late" {
		t.Fatalf("%v %s", err, out)
	}
	out, _ = s.run(Done, "audits", "ewr-delays")
	has(t, out, "create", "version 1", "edit", "version 2")
}

func TestDeadLetters(t *testing.T) {
	s := applied(t, "admin")
	out, _ := s.run(Done, "get", "dead-letters")
	has(t, out, "(none)")
	letter := schedule.DeadLetter{MessageID: "m-1", Queue: "query-runs", Body: "{\"run\":\x1b[2J" + strings.Repeat("x", 200), Reason: "it is no JSON", At: s.product.Wall()}
	if err := s.product.Store.RecordDead(context.Background(), letter, s.product.Wall().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	out, _ = s.run(Done, "get", "dead-letters")
	has(t, out, "m-1", "query-runs", "it is no JSON", "2026-12-01T08:00:00Z")
	if strings.Contains(out, "\x1b") || strings.Contains(out, strings.Repeat("x", 100)) {
		t.Errorf("%q", out)
	}
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "operator", "--password-stdin")
	_, err := s.run(Refused, "get", "dead-letters")
	has(t, err, "403", "admin")
}
