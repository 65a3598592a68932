//go:build cloud

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

// N13, chunks and single pass: the planner finds the closed month of each type, all are published by jobs of the
// workflow, and ten ticks more plan nothing.
func TestN13AClosedMonthIsPublishedInEachModeOnce(t *testing.T) {
	scene(t)
	s := shelved(t, 5, 2, 1)
	w := s.workspaces[0]
	s.define(t, w, "single", nil)
	s.define(t, w, "chunked", inChunks(100, 2))
	s.define(t, w, "auto-small", func(d *snapshot.Definition) { d.Mode = snapshot.Auto })
	s.define(t, w, "auto-large", func(d *snapshot.Definition) { d.Mode, d.SingleRows, d.ChunkRows = snapshot.Auto, 100, 200 })
	planTick(t)
	modes := map[string]snapshot.Mode{"single": snapshot.Single, "chunked": snapshot.Chunked, "auto-small": snapshot.Single, "auto-large": snapshot.Chunked}
	for typ, mode := range modes {
		id := w + "_" + typ + "_2013-12_v1"
		r := s.settled(t, id, snapshot.Published)
		if r.Mode != mode || r.Attempts != 1 || r.Cursor.Rows < 500 || (r.Cursor.Chunk > 1) != (mode == snapshot.Chunked) {
			t.Errorf("%s: mode %s, %d attempts, %d rows in %d chunks; want mode %s, one attempt and some hundred rows", id, r.Mode, r.Attempts, r.Cursor.Rows, r.Cursor.Chunk, mode)
		}
		var v struct{ Chunks, Checked, Bad, Next int }
		if b := must(t, "POST", "/snapshots/runs/"+id+"/verify", nil); json.Unmarshal(b, &v) != nil || v.Bad != 0 || v.Next != 0 || v.Checked != r.Cursor.Chunk {
			t.Errorf("%s: verified as %s; want %d sound files", id, b, r.Cursor.Chunk)
		}
	}
	var months struct {
		Rows []struct {
			Type   string
			Months []struct {
				Letter  string
				Current int
			}
		}
	}
	b := must(t, "GET", "/snapshots/grid?workspace="+w+"&from=2013-12&to=2013-12", nil)
	if err := json.Unmarshal(b, &months); err != nil || len(months.Rows) != len(modes) {
		t.Fatalf("grid %s, %v; want a row for each type", b, err)
	}
	for _, row := range months.Rows {
		if len(row.Months) != 1 || row.Months[0].Letter != snapshot.LetterPublished || row.Months[0].Current != 1 {
			t.Errorf("the grid shows %+v; want version 1 published", row)
		}
	}
	for range 10 {
		planTick(t)
	}
	for typ := range modes {
		runs, err := s.ledger.Versions(t.Context(), snapshot.Period{Series: snapshot.Series{Workspace: w, Type: typ}, Month: december})
		if err != nil || len(runs) != 1 {
			t.Errorf("%s has %d versions, %v; want one", typ, len(runs), err)
		}
	}
	if c := s.caps(t); len(c.Slots) != 0 {
		t.Errorf("slots %v are held; want none", c.Slots)
	}
}

// S7 of a month: the step's process is killed between two chunks; the workflow tries the step again, which goes on at
// the cursor, and it is still the first attempt.
func TestAStepKilledInGenerateIsResumedAtItsCursor(t *testing.T) {
	scene(t)
	s := shelved(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "killed", inChunks(4, 4))
	id := rerun(t, s.workspaces[0], "killed", december)
	s.until(t, id, "the first chunks", func(r snapshot.Run) bool { return r.Cursor.Chunk >= 20 })
	kill(t, "SnapshotStepFunction")
	at := s.run(t, id).Cursor.Chunk
	r := s.settled(t, id, snapshot.Published)
	if r.Attempts != 1 || r.Job != 1 || r.Failures != 0 || r.Generation != 1 || r.Cursor.Chunk <= at {
		t.Fatalf("attempts %d, job %d, failures %d, generation %d, %d chunks after %d at the death; want the first attempt to have gone on; timeline %q", r.Attempts, r.Job, r.Failures, r.Generation, r.Cursor.Chunk, at, r.Timeline)
	}
	chunks, err := s.ledger.Chunks(t.Context(), id, 1, 0, 10_000)
	if err != nil || len(chunks) != r.Cursor.Chunk {
		t.Fatalf("%d records of chunks, %v; want %d", len(chunks), err, r.Cursor.Chunk)
	}
	rows := int64(0)
	for i, c := range chunks {
		if rows += c.Rows; c.Number != i {
			t.Fatalf("chunk %d is number %d; each is committed once", i, c.Number)
		}
	}
	if rows != r.Cursor.Rows {
		t.Fatalf("%d rows in the chunks, %d by the cursor", rows, r.Cursor.Rows)
	}
}

// N6: a source that never adds up: three widening delays, and the fourth failure is the last.
func TestN6FourFailuresWidenAndTheFourthIsFinal(t *testing.T) {
	scene(t)
	s := shelved(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "short", func(d *snapshot.Definition) { d.Control = falseControl })
	id := rerun(t, s.workspaces[0], "short", december)
	r := s.settled(t, id, snapshot.Failed)
	if r.ErrorCode != "validation_mismatch" || r.Failures != snapshot.MaxFailures || r.Attempts != snapshot.MaxFailures || r.Job != snapshot.MaxFailures {
		t.Fatalf("%s after %d failures, %d attempts and %d jobs; want validation_mismatch after four", r.ErrorCode, r.Failures, r.Attempts, r.Job)
	}
	waited := delays(t, r.Timeline)
	if len(waited) != 3 || !slices.IsSorted(waited) || waited[0] <= 0 || waited[0] == waited[2] {
		t.Errorf("the delays were %v; want three that widen; timeline %q", waited, r.Timeline)
	}
	claimTick(t)
	planTick(t)
	reconcileTick(t)
	if again := s.run(t, id); again.Job != r.Job || again.State != snapshot.Failed {
		t.Errorf("job %d, %s after further ticks; want that nothing starts a fifth", again.Job, again.State)
	}
	if c := s.caps(t); len(c.Slots) != 0 {
		t.Errorf("slots %v are held; want none", c.Slots)
	}
}

// delays reads from a timeline how long after each failure the next attempt was to come.
func delays(t *testing.T, timeline []string) (list []time.Duration) {
	t.Helper()
	for _, line := range timeline {
		at, what, _ := strings.Cut(line, " ")
		_, again, found := strings.Cut(what, "; again at ")
		if !found {
			continue
		}
		failed, err := time.Parse(time.RFC3339, at)
		next, err2 := time.Parse(time.RFC3339, again)
		if err != nil || err2 != nil {
			t.Fatalf("the timeline holds %q", line)
		}
		list = append(list, next.Sub(failed))
	}
	return list
}

// N12: more drift than the definition allows is final at once; a person accepts the check by its name, and the next
// version is published with the acceptance in its manifest.
func TestN12AFailedCheckIsAcceptedByItsName(t *testing.T) {
	scene(t)
	s := shelved(t, 3, 1, 1)
	w := s.workspaces[0]
	november := december.Add(-1)
	// December has the flights of one day, each earlier month those of two.
	less := " and (day <= 1 or sched_dep_utc < '2013-12-01T05:00:00Z')"
	limit := 25.0
	s.define(t, w, "drifting", func(d *snapshot.Definition) {
		d.Start, d.Query, d.Control = november, d.Query+less, d.Control+less
		d.Checks.DriftRows.ByMonth = &limit
	})
	s.settled(t, rerun(t, w, "drifting", november), snapshot.Published)
	id := rerun(t, w, "drifting", december)
	r := s.settled(t, id, snapshot.Failed)
	if r.ErrorCode != "validation_refused" || r.Failures != 1 || r.Verdict == nil {
		t.Fatalf("%s after %d failures, verdict %+v; want validation_refused at once", r.ErrorCode, r.Failures, r.Verdict)
	}
	var check snapshot.Check
	for _, c := range r.Verdict.Checks {
		if !c.Passed {
			check = c
		}
	}
	if !strings.HasPrefix(check.Name, snapshot.CheckDrift) || !strings.Contains(check.Expected, "within 25%") || !strings.Contains(check.Found, "%") {
		t.Fatalf("the failed check is %+v; want the drift of the rows", check)
	}
	p := r.Period
	if v := s.current(t, p); v != 0 {
		t.Fatalf("version %d is current; want none", v)
	}
	must(t, "POST", "/snapshots/runs/"+id+"/accept", map[string]any{"checks": []string{check.Name}, "reason": "a short December"}, "Idempotency-Key", fresh())
	s.settled(t, w+"_drifting_2013-12_v2", snapshot.Published)
	var m snapshot.Manifest
	if b := must(t, "GET", fmt.Sprintf("/snapshots/months/%s/drifting/%s/manifest", w, december), nil); json.Unmarshal(b, &m) != nil || m.Version != 2 {
		t.Fatalf("the current manifest is %s; want version 2", b)
	}
	if len(m.Acceptances) != 1 || m.Acceptances[0].Check != check.Name || m.Acceptances[0].Found != check.Found || m.Acceptances[0].Why != "a short December" {
		t.Errorf("the manifest's acceptances are %+v; want that of %s", m.Acceptances, check.Name)
	}
}

// N10 and the lateness number: a month is late until something of it is published; a backfill that is published
// meanwhile changes nothing about it.
func TestN10AMonthIsLateUntilItIsPublished(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, 3, 1, 1)
	w := s.workspaces[0]
	planTick(t) // what earlier tests left is no longer waited for
	before := reconcileTick(t)
	s.define(t, w, "late", func(d *snapshot.Definition) { d.Start = december.Add(-1) })
	planTick(t)
	current, backfill := w+"_late_2013-12_v1", w+"_late_2013-11_v1"
	late := reconcileTick(t)
	if late.Late != before.Late+2 || late.OldestLate <= 0 {
		t.Fatalf("%d late months, the oldest for %s, %d before; want two more", late.Late, late.OldestLate, before.Late)
	}
	act(t, current, "cancel") // by a person: the month is still waited for
	release()
	s.settled(t, backfill, snapshot.Published)
	if got := reconcileTick(t); got.Late != before.Late+1 {
		t.Errorf("%d late months after the backfill, %d before; want one more", got.Late, before.Late)
	}
	s.settled(t, rerun(t, w, "late", december), snapshot.Published)
	if got := reconcileTick(t); got.Late != before.Late {
		t.Errorf("%d late months after all is published, %d before; want as many", got.Late, before.Late)
	}
}

// The rule of the dispatcher fires: no test ticks, and nobody asks for this dispatch, since planners do not.
func TestTheRuleClaimsMonthsByItself(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "alone", nil)
	planTick(t)
	id := s.workspaces[0] + "_alone_2013-12_v1"
	if r := s.run(t, id); r.State != snapshot.Planned {
		t.Fatalf("%s is %s, want planned", id, r.State)
	}
	release()
	eventually(t, "the publication of "+id, func() (bool, string) {
		r := s.run(t, id)
		return r.State == snapshot.Published, string(r.State)
	})
}

// A workspace that starts in November: its earlier months are skipped for that reason, and no backfill makes them.
func TestMonthsBeforeAWorkspacesStartAreSkippedAsPolicy(t *testing.T) {
	scene(t)
	s := shelved(t, 3, 2, 1)
	w := s.workspaces[0]
	must(t, "PUT", "/workspaces/"+w, map[string]any{"id": w, "name": "Starts late", "zone": "America/New_York", "owner": s.owner, "start": "2013-11"})
	s.define(t, w, "started", func(d *snapshot.Definition) { d.Start = december.Add(-2) })
	planTick(t)
	r := s.run(t, w+"_started_2013-10_v1")
	if r.State != snapshot.Skipped || r.Reason != snapshot.ReasonPolicy || !strings.Contains(r.ReasonText, "2013-11") {
		t.Fatalf("October is %s: %s, %s; want it skipped as policy", r.State, r.Reason, r.ReasonText)
	}
	for _, m := range []calendar.Month{december.Add(-1), december} {
		s.settled(t, fmt.Sprintf("%s_started_%s_v1", w, m), snapshot.Published)
	}
	status, b := call(t, "admin", "POST", fmt.Sprintf("/snapshots/months/%s/started/2013-10/versions", w), reasoned, "Idempotency-Key", fresh())
	if status != 409 || !strings.Contains(string(b), "starts in 2013-11") {
		t.Errorf("a rerun of October: %d %s; want 409 that says why", status, b)
	}
}
