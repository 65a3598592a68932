package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"almanac/internal/snapshot/snapshottest"
)

const delaysOfMonths = `kind: snapshot
workspace: EWR
type: delays
name: Delays by month
source: flights
start: 2013-01
key: id
mode: chunked
chunk_rows: 2
query: |
  select id, delay from flights
  where origin = :workspace and at >= :period_start and at < :period_end
control: select count(*) as rows, sum(delay) as delay from flights where origin = :workspace and at >= :period_start and at < :period_end
`

const acme = `kind: owner
id: acme
name: Acme
cap: 4
backfill: 1
---
kind: workspace
id: JFK
name: Kennedy
zone: America/New_York
owner: acme
---
kind: snapshot
owner: acme
type: delays
name: Delays of Acme
source: flights
start: 2013-05
key: id
query: select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end
control: select count(*) as rows from flights where origin = :workspace and at >= :period_start and at < :period_end
`

// planned is a stage whose months of EWR and JFK are planned; it is 1 July 2013.
func planned(t *testing.T) *stage {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+delaysOfMonths+"---\n"+acme)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.product.Months.Plan()
	// Signed addresses lead to a server that stands for the bucket.
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the bucket is shown the token")
		}
		body, size, err := s.product.Months.Files.Objects.Open(r.Context(), strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer body.Close()
		w.Header().Set("Content-Length", fmt.Sprint(size))
		io.Copy(w, body)
	}))
	t.Cleanup(files.Close)
	s.bucket = func(object string) string { return files.URL + "/" + object }
	return s
}

// TestApplyTakesOwnersAndSnapshots: an owner before its workspaces, a definition after all that it names.
func TestApplyTakesOwnersAndSnapshots(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/a.yaml", delaysOfMonths)
	s.write("demo/z.yaml", acme+"---\n"+configuration)
	out, _ := s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "+ owner      acme ", "+ snapshot   EWR/delays         create\n      its version is known once what it names is there", "6 to create",
		"owner acme: created\n", "snapshot EWR/delays: created, version 1\nsnapshot owner/acme/delays: created, version 1\n")
	if strings.Index(out, "owner acme: created") > strings.Index(out, "workspace JFK: created") {
		t.Errorf("the workspace comes before its owner:\n%s", out)
	}
	out, _ = s.run(Done, "apply", "-f", s.path("demo"))
	has(t, out, "0 to create, 0 to edit, 6 unchanged")
	s.write("demo/a.yaml", strings.Replace(delaysOfMonths, "Delays by month", "Late by month", 1))
	s.write("demo/z.yaml", strings.Replace(acme, "cap: 4", "cap: 6", 1))
	out, _ = s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "~ owner ", "cap: 4 → 6", "~ snapshot   EWR/delays         edit       version 2\n      name: ", "snapshot EWR/delays: edited, version 2")

	out, _ = s.run(Done, "get", "snapshots")
	has(t, out, "SNAPSHOT           VERSION  FROM     MODE     SOURCE   STATE  NAME\nowner/acme/delays  1        2013-05  auto     flights         Delays of Acme\nEWR/delays         2        2013-01  chunked  flights         Late by month\n")
	out, _ = s.run(Done, "get", "owners")
	has(t, out, "OWNER    SLOTS TAKEN  BY BACKFILLS  WORKSPACES  NAME\nacme     0 of 6       0 of 1        JFK         Acme\ndefault  0 of 5       0 of 2        EWR ")
	out, _ = s.run(Done, "show", "snapshot/EWR/delays")
	has(t, out, "Snapshot     EWR/delays", "First month  2013-01", "Query\n  select id, delay from flights", "Control\n  select count(*)")
	out, _ = s.run(Done, "show", "snapshot/owner/acme/delays", "--definition")
	has(t, out, `"owner": "acme"`, `"start": "2013-05"`)
	out, _ = s.run(Done, "show", "snapshot/EWR/delays", "-o", "json")
	has(t, out, `"version": 2`, `"hash"`)
	out, _ = s.run(Done, "history", "snapshot/EWR/delays")
	has(t, out, "\n2  ", "\n1  ")
	out, _ = s.run(Done, "history", "snapshot/EWR/delays", "--diff", "1", "2")
	has(t, out, "snapshot/EWR/delays: version 1 → version 2", "Late by month")
	out, _ = s.run(Done, "history", "snapshot/EWR/delays", "--diff", "1", "2", "-o", "json")
	has(t, out, `"against": 1`)
	out, _ = s.run(Done, "audits", "snapshot/EWR/delays")
	has(t, out, "version 1", "version 2")
	out, _ = s.run(Done, "audits", "owner/acme")
	has(t, out, "Acme, cap 6, of them 1 for backfills")
}

func TestWhatIsWrongWithASnapshotIsShownWithFileAndLine(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"type absent", strings.Replace(delaysOfMonths, "type: delays\n", "", 1), "type of the snapshot is null"},
		{"unknown field", strings.Replace(delaysOfMonths, "name:", "nmae:", 1), "nmae"},
		{"month wrong", strings.Replace(delaysOfMonths, "2013-01", "2013-13", 1), "all.yaml:6: start is"},
		{"no scope", strings.Replace(delaysOfMonths, "workspace: EWR\n", "", 1), "workspace"},
		{"mode unknown", strings.Replace(delaysOfMonths, "chunked", "slow", 1), "all.yaml:8: mode is"},
		{"source not there", configuration + "---\n" + strings.Replace(delaysOfMonths, "source: flights", "source: flihgts", 1), "source is"},
		{"workspace not there", strings.Replace(delaysOfMonths, "EWR", "LGA", 1), "all.yaml:2: workspace is"},
		{"owner cap", strings.Replace(acme, "cap: 4", "cap: 0", 1), "all.yaml:4: cap is"},
		{"owner backfill", strings.Replace(acme, "backfill: 1", "backfill: 4", 1), "all.yaml:5: backfill is"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := ready(t, "admin")
			s.run(Done, "get", "owners")
			s.write("demo/all.yaml", x.text)
			out, err := s.run(Usage, "apply", "-f", s.path("demo"), "--yes")
			has(t, err, x.want)
			if strings.Contains(out, "snapshot") && strings.Contains(out, "created, version") {
				t.Errorf("something was applied:\n%s", out)
			}
		})
	}
}

func TestTheGridHasALetterForEachMonth(t *testing.T) {
	s := ready(t, "admin")
	out, _ := s.run(Done, "grid")
	has(t, out, "(no snapshots are defined)")
	s = planned(t)
	m := s.product.Months
	m.Publish("EWR_delays_2013-01_v1")
	m.Source.Lost = 1
	m.Walk(m.Claim("EWR_delays_2013-02_v1"))
	s.run(Done, "rerun", "EWR", "delays", "2013-01", "--reason", "mended", "--key", "k")
	out, _ = s.run(Done, "grid", "--from", "2013-01", "--to", "2013-07")
	if want := `EWR       2013-01  2013-02  2013-03  2013-04  2013-05  2013-06  2013-07
  delays  P1p      f!       p!       p!       p!       p        .

JFK       2013-01  2013-02  2013-03  2013-04  2013-05  2013-06  2013-07
  delays  .        .        .        .        p!       p        .

.  nothing yet
p  planned
P  published, with the current version's number
f  failed, to be tried again
!  late: nothing of it is published yet
`; out != want {
		t.Errorf("\n%s\nwant\n%s", out, want)
	}
	out, _ = s.run(Done, "grid", "--workspace", "JFK", "--type", "delays", "-o", "json")
	has(t, out, `"letter": "p"`, `"workspace": "JFK"`)
	_, err := s.run(Refused, "grid", "--from", "2013-13")
	has(t, err, `from is "2013-13"`)
}

// TestAMonthSaysWhyItIsEmpty, from the plan to the second version.
func TestAMonthSaysWhyItIsEmpty(t *testing.T) {
	s := planned(t)
	m := s.product.Months
	out, _ := s.run(Done, "snapshot", "show", "EWR", "delays", "2013-07")
	if want := "EWR delays 2013-07  .\n  not planned yet: the month ends at 2013-08-01T04:00:00Z, and it is 2013-07-01T12:00:00Z\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02")
	has(t, out, "EWR delays 2013-02  p!\n", "waits for a slot, with 1 before it; owner default has 0 of 5 slots taken", "it is late", "EWR_delays_2013-02_v1\n  State       planned, a backfill", "Timeline\n  ")
	m.Source.Lost = 1
	m.Walk(m.Claim("EWR_delays_2013-02_v1"))
	m.Source.Lost = 0
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02")
	has(t, out, "failed and is tried again at 2026-12-01T08:05:00Z: failure 1 of 4, validation_mismatch", "check rows: expected 4, found 3", "Checks\n  CHECK      VERDICT  EXPECTED  ", "rows       failed   4 ", "Remedy")
	out, _ = s.run(Done, "retry-now", "EWR", "delays", "2013-02", "--reason", "mended")
	has(t, out, "EWR_delays_2013-02_v1: due since 2026-12-01T08:00:00Z")
	out, _ = s.run(Done, "cancel", "EWR", "delays", "2013-02", "--reason", "not wanted")
	has(t, out, "EWR_delays_2013-02_v1: cancelled")
	_, err := s.run(Refused, "cancel", "EWR", "delays", "2013-02", "--reason", "not wanted")
	has(t, err, "now: EWR_delays_2013-02_v1 is cancelled, version 1")
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02", "1")
	has(t, out, "was cancelled at 2026-12-01T08:00:00Z by ada: operator: not wanted", "Cancelled by  ada: not wanted")
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02", "-o", "json")
	has(t, out, `"standing"`, `"why"`)
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02", "1", "-o", "json")
	has(t, out, `"timeline"`, `"checks"`)
	out, _ = s.run(Done, "snapshot", "list", "EWR", "delays")
	has(t, out, "MONTH    VERSION  STATE      CURRENT  ATTEMPTS  SETTLED               REASON\n2013-06  1        planned", "2013-02  1        cancelled")
	out, _ = s.run(Done, "snapshot", "audits", "EWR", "delays", "2013-02", "1")
	has(t, out, "cancel", "retry now", "not wanted")
	_, err = s.run(Refused, "snapshot", "show", "EWR", "delays", "2013-02", "7")
	has(t, err, "EWR delays 2013-02 has no version 7")
	_, err = s.run(Refused, "cancel", "EWR", "delays", "2013-07", "--reason", "x")
	has(t, err, "EWR delays 2013-07 has no version")
	out, _ = s.run(Done, "plan-now")
	has(t, out, "the planner was asked")
}

func TestVersionsAreMadeOncePerKey(t *testing.T) {
	s := planned(t)
	m := s.product.Months
	m.Publish("EWR_delays_2013-01_v1")
	out, _ := s.run(Done, "rerun", "EWR", "delays", "2013-01", "--reason", "mended", "--key", "k")
	has(t, out, "EWR_delays_2013-01_v2  planned  (key k)")
	out, _ = s.run(Done, "rerun", "EWR", "delays", "2013-01", "--reason", "mended", "--key", "k")
	has(t, out, "EWR_delays_2013-01_v2  planned, made before by the same key  (key k)")
	_, err := s.run(Refused, "rerun", "EWR", "delays", "2013-01", "--reason", "mended")
	has(t, err, "now: EWR_delays_2013-01_v2 is planned, version 2")
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	_, err = s.run(Broken, "rerun", "EWR", "delays", "2013-01", "--reason", "mended")
	has(t, err, "repeat with --key 000102")
	_, err = s.run(Broken, "backfill", "delays", "--workspace", "EWR", "--from", "2013-01", "--to", "2013-02", "--reason", "x")
	has(t, err, "repeat with --key 000102")
}

func TestABackfillIsTriedFirst(t *testing.T) {
	s := planned(t)
	m := s.product.Months
	m.Publish("EWR_delays_2013-01_v1")
	if _, err := m.Editor.Cancel(context.Background(), "EWR_delays_2013-02_v1", "not now", "ann"); err != nil {
		t.Fatal(err)
	}
	args := []string{"backfill", "delays", "--workspace", "EWR,JFK", "--from", "2012-12", "--to", "2013-02", "--reason", "history"}
	out, _ := s.run(Done, append(args, "--dry-run")...)
	has(t, out, "WORKSPACE  TYPE    MONTH    RUN                    WHY NOT\n", "EWR        delays  2013-02  EWR_delays_2013-02_v2", "1 would be planned, 5 refused; nothing was done.")
	out, _ = s.run(Done, append(args, "--key", "k")...)
	has(t, out, "1 planned, 5 refused.  (key k)")
	out, _ = s.run(Done, append(args, "--key", "k", "-o", "json")...)
	has(t, out, `"planned": 1`)
	_, err := s.run(Refused, "backfill", "delays", "--workspace", "EWR,nowhere here", "--from", "2012-12", "--to", "2012-12", "--reason", "x")
	has(t, err, "a workspace that you may see")
	// A long range takes several requests.
	asked := 0
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" {
			asked++
		}
		return false
	}
	out, _ = s.run(Done, "backfill", "delays", "--workspace", "EWR", "--from", "1980-01", "--to", "2012-12", "--reason", "x", "--dry-run")
	has(t, out, "0 would be planned, 396 refused")
	if asked != 2 {
		t.Errorf("%d requests for 396 months", asked)
	}
}

func TestPublishedVersionsAreReadVerifiedAndCompared(t *testing.T) {
	s := planned(t)
	m := s.product.Months
	m.Publish("EWR_delays_2013-01_v1")
	m.Source.Load("EWR 2013-01", 10, 0, 25, 7)
	s.run(Done, "rerun", "EWR", "delays", "2013-01", "--reason", "mended", "--key", "k")
	m.Publish("EWR_delays_2013-01_v2")
	out, _ := s.run(Done, "manifest", "EWR", "delays", "2013-01")
	has(t, out, `"format":"almanac.snapshot.manifest/1"`, `"version":2`)
	out, _ = s.run(Done, "manifest", "EWR", "delays", "2013-01", "1")
	has(t, out, `"version":1`)
	want := "EWR_delays_2013-01_v1 → EWR_delays_2013-01_v2\n  Rows          3 → 4\n  Sum of delay  32 → 42\n  Added         1: 4\n  Removed       0\n  Changed       1\n  Unchanged     2\n  2: delay: \"-3\" → \"0\"\n"
	for _, flags := range [][]string{nil, {"--here"}} {
		out, _ = s.run(Done, append([]string{"compare", "EWR", "delays", "2013-01", "1", "2"}, flags...)...)
		if out != want {
			t.Errorf("%v\n%s\nwant\n%s", flags, out, want)
		}
		out, _ = s.run(Done, append([]string{"verify", "EWR", "delays", "2013-01"}, flags...)...)
		has(t, out, "EWR_delays_2013-01_v2: 2 files, ", " bytes, 0 not as recorded")
	}
	out, _ = s.run(Done, "compare", "EWR", "delays", "2013-01", "1", "2", "-o", "json")
	has(t, out, `"added": 1`)
	out, _ = s.run(Done, "verify", "EWR", "delays", "2013-01", "1", "-o", "json")
	has(t, out, `"bad": 0`)
	// What is too large for the API is compared here.
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/compare") {
			return false
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"title":"x","status":422,"detail":"x","errors":[{"field":"versions","value":"9 rows","want":"less"}]}`)
		return true
	}
	out, err := s.run(Done, "compare", "EWR", "delays", "2013-01", "1", "2")
	if has(t, err, "they are compared here"); out != want {
		t.Errorf("%s", out)
	}
	s.before = nil
	// A file with other bytes, and a manifest that is not what its name says.
	current, failed := m.Files.Current(context.Background(), snapshottest.Period("EWR", "2013-01"))
	if failed != nil {
		t.Fatal(failed)
	}
	bucket := s.bucket
	s.bucket = func(object string) string {
		if object == current.Chunks[0].Object {
			object = current.Chunks[1].Object
		}
		return bucket(object)
	}
	out, _ = s.run(Refused, "verify", "EWR", "delays", "2013-01", "--here")
	has(t, out, "1 not as recorded", current.Chunks[0].Object+": it has ")
	s.bucket = func(string) string { return bucket("nothing") }
	_, err = s.run(Broken, "verify", "EWR", "delays", "2013-01", "--here")
	has(t, err, "could not be read")
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/manifest") {
			w.Header().Set("ETag", `"00"`)
			fmt.Fprint(w, `{}`)
			return true
		}
		return false
	}
	_, err = s.run(Broken, "manifest", "EWR", "delays", "2013-01")
	has(t, err, "is not the one that was recorded")
	s.before = nil
	out, _ = s.run(Done, "roll-back", "EWR", "delays", "2013-01", "1", "--reason", "wrong numbers")
	has(t, out, "EWR delays 2013-01: version 1 is current, in place of version 2")
}

func TestAcceptingAFailedCheck(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+delaysOfMonths+"checks: {drift_rows: {previous_month: 50}}\n")
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	m := s.product.Months
	m.Plan()
	m.Publish("EWR_delays_2013-01_v1")
	m.Source.Load("EWR 2013-02", 1, 2, 3, 4, 5, 6, 7)
	m.Walk(m.Claim("EWR_delays_2013-02_v1"))
	out, _ := s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02")
	has(t, out, "failed for good", "check drift:rows:previous_month: expected within 50% of 3, found 7 (133.33%)")
	_, err := s.run(Refused, "accept", "EWR", "delays", "2013-02", "--check", "nothing", "--reason", "x")
	has(t, err, `checks[0] is "nothing"`)
	out, _ = s.run(Done, "accept", "EWR", "delays", "2013-02", "--check", "drift:rows:previous_month", "--reason", "so it was", "--key", "k")
	has(t, out, "EWR_delays_2013-02_v2  planned  (key k)")
	out, _ = s.run(Done, "snapshot", "show", "EWR", "delays", "2013-02")
	has(t, out, "Asked for by  ada: so it was", "Accepted      drift:rows:previous_month as 7 (133.33%), by ada: so it was")
}

func TestWrongCommandsOnMonthsSayWhatIsRight(t *testing.T) {
	s := ready(t, "admin")
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"snapshot", "look", "EWR", "delays"}, "usage: almanac snapshot show"},
		{[]string{"snapshot", "show", "EWR", "delays"}, "usage: almanac snapshot show"},
		{[]string{"snapshot", "show", "EWR", "delays", "january"}, `MONTH is "january"; want a month such as 2013-01`},
		{[]string{"snapshot", "show", "E/R", "delays", "2013-01"}, "is no workspace"},
		{[]string{"snapshot", "show", "EWR", "a b", "2013-01"}, "is no type of snapshots"},
		{[]string{"snapshot", "show", "EWR", "delays", "2013-01", "v1"}, `VERSION is "v1"`},
		{[]string{"snapshot", "list", "EWR", "a b"}, "is no workspace or type"},
		{[]string{"snapshot", "audits", "EWR", "delays", "2013-01", "0"}, `VERSION is "0"`},
		{[]string{"rerun", "EWR", "delays", "2013-01"}, "--reason is missing"},
		{[]string{"rerun", "EWR", "delays", "2013", "--reason", "x"}, "MONTH is"},
		{[]string{"cancel", "EWR", "delays", "2013-01"}, "--reason is missing"},
		{[]string{"retry-now", "EWR", "delays", "--reason", "x"}, "usage: almanac retry-now"},
		{[]string{"roll-back", "EWR", "delays", "2013-01", "0", "--reason", "x"}, `VERSION is "0"`},
		{[]string{"roll-back", "EWR", "delays", "2013-01", "1"}, "--reason is missing"},
		{[]string{"accept", "EWR", "delays", "2013-01", "--reason", "x"}, "--check is missing"},
		{[]string{"accept", "EWR", "delays", "2013-01", "--check", "rows"}, "--reason is missing"},
		{[]string{"backfill", "delays", "--reason", "x"}, "usage: almanac backfill TYPE"},
		{[]string{"backfill", "delays", "--workspace", "EWR", "--from", "2013", "--to", "2013-02", "--reason", "x"}, "--from is"},
		{[]string{"backfill", "delays", "--workspace", "EWR", "--from", "2013-03", "--to", "2013-02", "--reason", "x"}, "--to is"},
		{[]string{"backfill", "a b", "--workspace", "EWR", "--from", "2013-03", "--to", "2013-04", "--reason", "x"}, "is no type of snapshots"},
		{[]string{"backfill", "delays", "--workspace", "EWR", "--from", "2013-01", "--to", "2013-02"}, "--reason is missing"},
		{[]string{"compare", "EWR", "delays", "2013-01", "1", "two"}, `VERSION is "two"`},
		{[]string{"compare", "EWR", "delays", "x", "1", "2"}, "MONTH is"},
		{[]string{"manifest", "EWR", "delays", "x"}, "MONTH is"},
		{[]string{"verify", "EWR", "delays", "2013-01", "x"}, "VERSION is"},
		{[]string{"show", "snapshot/EWR"}, "names no definition of snapshots"},
		{[]string{"history", "snapshot/a/b/c"}, "names no definition of snapshots"},
		{[]string{"audits", "snapshot/EWR/a b"}, "is no definition of snapshots"},
	} {
		_, err := s.run(Usage, x.args...)
		has(t, err, x.want)
	}
	for _, args := range [][]string{{"snapshot", "show", "EWR", "delays", "2013-01"}, {"manifest", "EWR", "delays", "2013-01"}, {"show", "snapshot/EWR/none"}, {"history", "snapshot/EWR/none"}} {
		_, err := s.run(Refused, args...)
		has(t, err, "(404 Not Found)")
	}
}
