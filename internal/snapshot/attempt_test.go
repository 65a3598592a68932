package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
)

// A month in chunks comes out as it stands in the source, under a manifest that says all about it.
func TestMonthInChunksIsPublished(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.publish(newark)
	m := a.current(newark)
	if got, want := a.rows(m), expected(5, 250); !slices.Equal(got, want) {
		t.Fatalf("%d rows, want %d; first %q, want %q", len(got), len(want), got[0], want[0])
	}
	if len(m.Chunks) != 3 || m.Totals.Rows != 250 || m.Totals.Sums["delay"] != "-5" || m.Chunks[1].First != "i:1005" || m.Chunks[1].Last != "i:1995" {
		t.Fatalf("%+v %+v", m.Totals, m.Chunks)
	}
	if m.Period.Start.Format("2006-01-02T15:04Z") != "2013-01-01T05:00Z" || m.Period.Zone != "America/New_York" || m.Source.Version == "" ||
		m.Definition.Version != 1 || m.Key.Type != "integer" || len(m.Columns) != 5 || m.Columns[3].Type != "decimal" || m.Product != "test" {
		t.Fatalf("%+v", m)
	}
	if r.Attempts != 1 || r.Mode != snapshot.Chunked || r.Generation != 1 || a.asked != 1 || a.counts["snapshot_published"] != 1 {
		t.Fatalf("%+v, asked for %d dispatches", r, a.asked)
	}
	v, err := a.reader.Verify(bg, m)
	if err != nil || v.Bad != 0 || v.Chunks != 3 {
		t.Fatalf("%+v %v", v, err)
	}
}

// auto counts once and keeps what it chose: up to SingleRows rows a single pass, one chunk, three transitions in one call.
func TestAutoChoosesByCountedRows(t *testing.T) {
	for rows, want := range map[int]snapshot.Mode{250: snapshot.Single, 251: snapshot.Chunked} {
		d := trips()
		d.Mode, d.SingleRows = snapshot.Auto, 250
		a := newAttempts(t, d)
		a.load(tripsTable, rowsFrom(5, rows))
		r := a.plan(newark)
		w := a.walk(a.claim(r.ID()))
		r = a.published(r.ID())
		m := a.current(newark)
		if r.Mode != want || !slices.Equal(a.rows(m), expected(5, rows)) {
			t.Fatalf("%d rows: mode %s, want %s", rows, r.Mode, want)
		}
		if chunks := map[snapshot.Mode]int{snapshot.Single: 1, snapshot.Chunked: 3}[want]; len(m.Chunks) != chunks || w.Calls != 4 {
			t.Fatalf("%s: %d chunks in %d calls", want, len(m.Chunks), w.Calls)
		}
	}
}

// A month without rows is a version too: its header says so.
func TestMonthWithoutRows(t *testing.T) {
	for _, mode := range []snapshot.Mode{snapshot.Single, snapshot.Chunked} {
		d := trips()
		d.Mode, d.Control = mode, "select count(*) as rows from trips where at >= :period_start and at < :period_end"
		a := newAttempts(t, d)
		a.load(tripsTable)
		a.publish(newark)
		m := a.current(newark)
		if len(m.Chunks) != 1 || m.Totals.Rows != 0 || len(a.rows(m)) != 0 || len(m.Columns) != 5 {
			t.Fatalf("%s: %+v", mode, m)
		}
	}
}

// Rows that fill their chunks exactly leave no empty one behind.
func TestFullLastChunk(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 200))
	a.publish(newark)
	if m := a.current(newark); len(m.Chunks) != 2 || !slices.Equal(a.rows(m), expected(5, 200)) {
		t.Fatalf("%+v", m.Chunks)
	}
}

// Killed at any outside call, before it or after it was served, the job goes on at the cursor: the same attempt, each chunk
// recorded once, the rows of the source, one version. S3, S7.
func TestS7KilledAtEveryCallAndResumed(t *testing.T) {
	for _, mode := range []snapshot.Mode{snapshot.Chunked, snapshot.Single} {
		body := makeFile(t, tripsTable, rowsFrom(5, 250))
		world := func() *attempts {
			d := trips()
			d.Mode = mode
			a := newAttempts(t, d)
			a.putFile("trips.sqlite", body)
			return a
		}
		whole := world()
		whole.publish(newark)
		if whole.calls < 15 {
			t.Fatalf("only %d calls: %v", whole.calls, whole.names)
		}
		for n := 1; n <= whole.calls; n++ {
			for _, after := range []bool{false, true} {
				a := world()
				r := a.plan(newark)
				a.fault = func(i int, _ memcloud.Call, served bool) bool { return i == n && served == after }
				w := a.walk(a.claim(r.ID()))
				name := fmt.Sprintf("%s, call %d (%s), served %v", mode, n, whole.names[n-1], after)
				if w.Failed {
					t.Fatalf("%s: the execution failed\n%s", name, a.log.String())
				}
				r = a.published(r.ID())
				m := a.current(newark)
				if !slices.Equal(a.rows(m), expected(5, 250)) {
					t.Fatalf("%s: the rows are not the source's", name)
				}
				if r.Attempts != 1 || r.Failures != 0 || r.Generation != 1 || len(m.Chunks) != len(whole.current(newark).Chunks) {
					t.Fatalf("%s: attempts %d, failures %d, generation %d, %d chunks", name, r.Attempts, r.Failures, r.Generation, len(m.Chunks))
				}
				if extra := len(a.objects(r)) - len(m.Chunks) - 1; extra < 0 || extra > 1 {
					t.Fatalf("%s: %d objects beside the version's", name, extra)
				}
			}
		}
	}
}

// N4: job 2 has committed chunks; job 1, frozen, thaws and writes or begins validation. Nothing of the row changes.
func TestN4FrozenJobIsRefused(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	first := a.claim(r.ID())
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: first})
	a.must(err)
	frozen := a.run(r.ID()) // what the frozen job has read
	_, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepSettle, Job: first, Error: snapshot.Caught{Error: "States.Timeout", Cause: "no answer"}})
	a.must(err)
	second := a.claim(r.ID())
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate} {
		_, err = a.call(bg, snapshot.StepInput{Step: step, Job: second})
		a.must(err)
	}
	before := a.run(r.ID())
	if before.Cursor.Chunk != 3 || before.Job != 2 {
		t.Fatalf("%+v", before)
	}
	chunk := snapshot.Chunk{Number: frozen.Cursor.Chunk, Object: "snapshots/x", SHA256: "00", Rows: 1, First: "i:1", Last: "i:1"}
	if err := a.ledger.Commit(bg, frozen, chunk, snapshot.Cursor{Chunk: 1, Key: "i:1", Rows: 1}, a.now); !snapshot.IsConflict(err) {
		t.Fatalf("a frozen commit: %v", err)
	}
	if _, err := a.ledger.BeginValidation(bg, frozen, a.now); !snapshot.IsConflict(err) {
		t.Fatalf("a frozen begin validation: %v", err)
	}
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate, snapshot.StepValidate, snapshot.StepPublish, snapshot.StepSettle} {
		got, err := a.call(bg, snapshot.StepInput{Step: step, Job: first})
		if err != nil || !got.Done {
			t.Fatalf("%s of the first job: %+v %v, want done without effect", step, got, err)
		}
	}
	if after := a.run(r.ID()); fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
		t.Fatalf("the row changed:\n%+v\n%+v", before, after)
	}
	for _, step := range []string{snapshot.StepValidate, snapshot.StepPublish} {
		_, err = a.call(bg, snapshot.StepInput{Step: step, Job: second})
		a.must(err)
	}
	a.published(r.ID())
	// a later step of the job that has published finds it so
	got, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: second})
	if err != nil || !got.Done || got.State != snapshot.Published {
		t.Fatalf("%+v %v", got, err)
	}
}

// N9: 10,000 chunks, each committed once, in a history below 2,500 events. Each call has time for some of them only.
func TestN9TenThousandChunks(t *testing.T) {
	d := trips()
	d.ChunkRows, d.Checks.DriftRows = 1, snapshot.Drift{}
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 10_000))
	a.step = 500 * time.Millisecond
	r := a.plan(newark)
	w := a.walk(a.claim(r.ID()))
	a.published(r.ID())
	m := a.current(newark)
	if len(m.Chunks) != 10_000 || m.Totals.Rows != 10_000 {
		t.Fatalf("%d chunks, %d rows", len(m.Chunks), m.Totals.Rows)
	}
	seen := map[string]bool{}
	for _, c := range m.Chunks {
		if seen[c.Object] || seen[c.First] {
			t.Fatalf("twice: %+v", c)
		}
		seen[c.Object], seen[c.First] = true, true
	}
	if w.Events >= 2500 || w.Calls < 20 {
		t.Fatalf("%d events of %d calls, want below 2,500 of many", w.Events, w.Calls)
	}
	t.Logf("%d calls, %d transitions, %d events", w.Calls, w.Transitions, w.Events)
}

// N12: fewer rows than the control query says are a failure that is tried again from chunk 0; the current version stays.
func TestN12FewerRowsThanTheControlQuery(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	first := a.publish(newark)
	d := trips()
	d.Query += " and id % 100 <> 5" // 10 % of the rows do not come
	a.save(d, 2)
	r := a.plan(newark, func(r *snapshot.Run) { r.Definition = 2 })
	a.walk(a.claim(r.ID()))
	if a.counts["snapshot_failures retried"] != 1 || a.counts["snapshot_failures final"] != 0 {
		t.Errorf("counted %v", a.counts)
	}
	r = a.run(r.ID())
	if r.State != snapshot.Failed || r.ErrorCode != "validation_mismatch" || r.NextAt.IsZero() || r.FailedIn != snapshot.Validating || !strings.Contains(r.ErrorText, "rows: expected 250, found 225") {
		t.Fatalf("%+v", r)
	}
	if p, _ := a.ledger.Pointer(bg, newark); p.Version != first.Version {
		t.Fatalf("the current version is %d", p.Version)
	}
	a.walk(a.claim(r.ID()))
	if again := a.run(r.ID()); again.Generation != 2 || again.Cursor.Chunk != 3 || again.Failures != 2 || again.Attempts != 2 {
		t.Fatalf("%+v", again)
	}
}

// N12: drift of +40 % with a limit of 25 % is final, until a person accepts the check by name for the value found.
func TestN12DriftIsFinalUntilItIsAccepted(t *testing.T) {
	limit := 25.0
	d := trips()
	d.Checks.DriftRows = snapshot.Drift{ByVersion: &limit}
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 100))
	first := a.publish(newark)
	a.load(tripsTable, rowsFrom(5, 140))
	r := a.plan(newark)
	a.walk(a.claim(r.ID()))
	r = a.run(r.ID())
	if r.State != snapshot.Failed || r.ErrorCode != "validation_refused" || !r.NextAt.IsZero() || r.Failures != 1 {
		t.Fatalf("%+v", r)
	}
	if p, _ := a.ledger.Pointer(bg, newark); p.Version != first.Version {
		t.Fatalf("the current version is %d", p.Version)
	}
	var failed snapshot.Check
	for _, c := range r.Verdict.Checks {
		if !c.Passed {
			failed = c
		}
	}
	if failed.Name != "drift:rows:previous_version" || failed.Expected != "within 25% of 100" || failed.Found != "140 (40.00%)" {
		t.Fatalf("%+v", failed)
	}
	other := a.plan(newark, func(r *snapshot.Run) {
		r.Accepted = []snapshot.Acceptance{{Check: failed.Name, Found: "141 (41.00%)", By: "ann", Why: "a new line"}}
	})
	a.walk(a.claim(other.ID()))
	if got := a.run(other.ID()); got.ErrorCode != "validation_refused" {
		t.Fatalf("a check was passed with another value than the accepted one: %+v", got)
	}
	accepted := a.publish(newark, func(r *snapshot.Run) {
		r.Accepted = []snapshot.Acceptance{{Check: failed.Name, Found: failed.Found, By: "ann", Why: "a new line"}}
	})
	m := a.current(newark)
	if m.Version != accepted.Version || len(m.Acceptances) != 1 || m.Acceptances[0].By != "ann" || m.ComparedTo.Current != first.Version {
		t.Fatalf("%+v", m)
	}
}

// N14: a row arrives below the cursor after its chunk. Validation fails, and the retry reads everything again.
func TestN14RowBelowTheCursor(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	changed := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if c.Operation == "TransactWriteItems" && after && !changed { // chunk 0 is committed; the process dies
			changed = true
			return true
		}
		return false
	}
	j := a.claim(r.ID())
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
	a.must(err)
	if _, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err == nil {
		t.Fatal("the process was to die")
	}
	if c := a.run(r.ID()).Cursor; c.Chunk != 1 || c.Key != "i:995" {
		t.Fatalf("%+v", c)
	}
	a.load(tripsTable, rowsFrom(5, 250), "insert into trips values (7, 'EWR', '2013-01-10T00:00:00Z', 'late', 1, '1.00', 1.0)")
	a.walk(j)
	r = a.run(r.ID())
	if r.State != snapshot.Failed || r.ErrorCode != "validation_mismatch" || r.NextAt.IsZero() {
		t.Fatalf("%+v", r)
	}
	a.walk(a.claim(r.ID()))
	r = a.published(r.ID())
	if m := a.current(newark); m.Totals.Rows != 251 || r.Generation != 2 || m.Generation != 2 {
		t.Fatalf("%+v", m.Totals)
	}
}

// N15: two invocations of one job write the same chunk from a source that changed between them: two objects, one record.
func TestN15TwinsWriteTheSameChunk(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	j := a.claim(r.ID())
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
	a.must(err)
	twin := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if c.Operation == "TransactWriteItems" && !after && !twin { // the first one has written chunk 0 and is about to commit
			twin = true
			a.load(tripsTable, rowsFrom(5, 251))
			got, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
			if err != nil || !got.Done || got.Chunks != 3 {
				t.Errorf("the twin: %+v %v", got, err)
			}
		}
		return false
	}
	got, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
	if err != nil || !got.Done || got.Chunks != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	a.fault = nil
	a.walk(j)
	r = a.published(r.ID())
	m := a.current(newark)
	if !slices.Equal(a.rows(m), expected(5, 251)) {
		t.Fatal("the rows are not those of the twin that committed")
	}
	zero := 0
	for _, key := range a.objects(r) {
		if strings.Contains(key, "chunk-00000000-") {
			zero++
		}
	}
	if zero != 2 || len(m.Chunks) != 3 {
		t.Fatalf("%d objects of chunk 0, %d chunks; want two objects and one record each", zero, len(m.Chunks))
	}
}
