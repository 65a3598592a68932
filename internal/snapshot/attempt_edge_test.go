package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/source"
)

// F1: any outside call refused, or served and its reply lost, while the process lives on: the month is published by this
// attempt or the next, with the source's rows and each chunk recorded once.
func TestF1EachCallRefusedOrItsReplyLost(t *testing.T) {
	body := makeFile(t, tripsTable, rowsFrom(5, 250))
	world := func() *attempts {
		a := newAttempts(t, trips())
		a.putFile("trips.sqlite", body)
		return a
	}
	whole := world()
	whole.publish(newark)
	for n := 1; n <= whole.calls; n++ {
		for _, after := range []bool{false, true} {
			a := world()
			seen := 0
			lose := func(served bool) func(context.Context, memcloud.Call) error {
				return func(ctx context.Context, c memcloud.Call) error {
					if err := a.hook(ctx, c, served); err != nil || ctx.Value(processKey{}) == nil {
						return err
					}
					if !served {
						seen++
					}
					if seen == n && served == after {
						if served {
							seen++ // this one only
						}
						return errors.New("no answer")
					}
					return nil
				}
			}
			hooks := memcloud.Hooks{Before: lose(false), After: lose(true)}
			a.db.Hooks, a.s3.Hooks = hooks, hooks
			r := a.plan(newark)
			name := fmt.Sprintf("call %d (%s), served %v", n, whole.names[n-1], after)
			for a.walk(a.claim(r.ID())); a.run(r.ID()).State == snapshot.Failed; a.walk(a.claim(r.ID())) {
				if now := a.run(r.ID()); now.Final() || now.Failures > 1 {
					t.Fatalf("%s: %s %s", name, now.ErrorCode, now.ErrorText)
				}
			}
			a.published(r.ID())
			if m := a.current(newark); !slices.Equal(a.rows(m), expected(5, 250)) || len(m.Chunks) != 3 {
				t.Fatalf("%s: the rows are not the source's", name)
			}
		}
	}
}

// A call whose time is nearly up hands on what it has; the next goes on at the cursor. One that cannot come any further
// within its time fails, to be tried again.
func TestCallsEndBeforeTheirTime(t *testing.T) {
	d := trips()
	d.ChunkRows = 20 // 13 chunks
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	a.step = 30 * time.Second // a chunk takes two calls of a function's five minutes
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if !after && c.Operation == "TransactWriteItems" && a.steps.Clocks.Wall().Sub(a.called) > functionTime {
			t.Errorf("a chunk is committed %s after the call began", a.steps.Clocks.Wall().Sub(a.called))
		}
		return false
	}
	r := a.plan(newark)
	w := a.walk(a.claim(r.ID()))
	a.published(r.ID())
	if w.Calls < 3+4 || a.run(r.ID()).Attempts != 1 {
		t.Fatalf("%+v", w)
	}

	a = newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r = a.plan(newark)
	j := a.claim(r.ID())
	_, err := a.steps.Start(bg, j, "")
	a.must(err)
	dead, cancel := context.WithDeadline(bg, time.Now().Add(-time.Second))
	defer cancel()
	_, err = a.steps.Generate(dead, j)
	if !errors.As(err, new(snapshot.Disturbed)) && !errors.As(err, new(snapshot.Passing)) {
		t.Fatalf("%T %v", err, err)
	}
	// the source's rows come too late
	late, cancelLate := context.WithCancelCause(bg)
	defer cancelLate(nil)
	a.steps.Sources = slow{a.steps.Sources, func() { cancelLate(nil) }}
	_, err = a.steps.Generate(expired{late}, j)
	f := failuretest.Want(t, err, failure.OutOfTime)
	if _, ok := err.(snapshot.Passing); !ok || !strings.Contains(f.Message, "smaller chunks") {
		t.Fatalf("%T %v", err, err)
	}
}

// expired is a context whose end is its deadline's.
type expired struct{ context.Context }

func (e expired) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// slow calls before each query.
type slow struct {
	snapshot.Sources
	before func()
}

func (s slow) View(ctx context.Context, name, workspace string) (source.View, error) {
	v, err := s.Sources.View(ctx, name, workspace)
	return slowView{v, s.before}, err
}

type slowView struct {
	source.View
	before func()
}

func (v slowView) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	v.before()
	return v.View.Open(ctx, q)
}

// A query whose own time is up after some chunks is no failure: the next call goes on with a query of its own. Before the
// first chunk it is one.
func TestQueryWhoseTimeIsUpAfterSomeChunks(t *testing.T) {
	for after, wantChunks := range map[int]int{150: 1, 50: 0} {
		a := newAttempts(t, trips())
		a.load(tripsTable, rowsFrom(5, 250))
		r := a.plan(newark)
		j := a.claim(r.ID())
		_, err := a.steps.Start(bg, j, "")
		a.must(err)
		whole := a.steps.Sources
		a.steps.Sources = tiring{whole, after}
		got, err := a.steps.Generate(bg, j)
		if wantChunks == 0 {
			failuretest.Want(t, err, failure.QueryTimeout)
			continue
		}
		if err != nil || got.Done || got.Chunks != wantChunks {
			t.Fatalf("%+v %v", got, err)
		}
		a.steps.Sources = whole
		a.walk(j)
		a.published(r.ID())
	}
}

// tiring gives up after some rows of a month.
type tiring struct {
	snapshot.Sources
	after int
}

func (s tiring) View(ctx context.Context, name, workspace string) (source.View, error) {
	v, err := s.Sources.View(ctx, name, workspace)
	return tiringView{v, s.after}, err
}

type tiringView struct {
	source.View
	after int
}

func (v tiringView) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	rows, err := v.View.Open(ctx, q)
	if strings.Contains(q.SQL, "order by") {
		return &tired{rows, v.after}, err
	}
	return rows, err
}

type tired struct {
	source.Rows
	left int
}

func (r *tired) Next(ctx context.Context) ([]source.Value, error) {
	if r.left--; r.left < 0 {
		return nil, failure.New(failure.QueryTimeout, "too slow")
	}
	return r.Rows.Next(ctx)
}

// The month's limit of rows holds for all its calls together.
func TestLimitOfRowsHoldsForTheWholeMonth(t *testing.T) {
	d := trips()
	d.Limits.Rows = 200
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	a.step = 40 * time.Second
	a.final(a.failed(r.ID(), failure.QueryTooManyRows))
	d.Limits.Rows = 250
	a = newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	a.step = 40 * time.Second
	a.publish(newark)
}

// Rows that vanish after the cursor leave a generation that ends: an empty chunk says so, and the control query decides.
func TestRowsThatVanishAfterTheCursor(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	j := a.claim(r.ID())
	killed := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		first := after && c.Operation == "TransactWriteItems" && !killed
		killed = killed || first
		return first
	}
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
	a.must(err)
	if _, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err == nil {
		t.Fatal("the process was to die")
	}
	a.load(tripsTable, rowsFrom(5, 100))
	a.walk(j)
	a.published(r.ID())
	m := a.current(newark)
	if len(m.Chunks) != 2 || m.Chunks[1].Rows != 0 || m.Totals.Rows != 100 || !slices.Equal(a.rows(m), expected(5, 100)) {
		t.Fatalf("%+v", m.Chunks)
	}
}

// Drift is measured against the month before and against the version before, in rows and in sums, floats among them.
func TestDriftAgainstTheMonthBefore(t *testing.T) {
	ten := 10.0
	d := trips()
	d.Checks.DriftRows = snapshot.Drift{ByMonth: &ten}
	d.Checks.DriftSums = map[string]snapshot.Drift{"km": {ByMonth: &ten, ByVersion: &ten}, "fare": {ByVersion: &ten}}
	a := newAttempts(t, d)
	february := newark
	february.Month = calendar.Month{Year: 2013, Month: time.February}
	a.load(tripsTable, rowsFrom(5, 100), strings.ReplaceAll(rowsFrom(10005, 105), "2013-01-10", "2013-02-10"))
	a.publish(newark)
	r := a.plan(february)
	a.walk(a.claim(r.ID()))
	r = a.run(r.ID())
	failed := map[string]string{}
	for _, c := range r.Verdict.Checks {
		if strings.HasPrefix(c.Name, "drift:") {
			failed[c.Name] = fmt.Sprintf("%s, %s, %v", c.Expected, c.Found, c.Passed)
		}
	}
	want := map[string]string{"drift:rows:previous_month": "within 10% of 100, 105 (5.00%), true", "drift:sum:km:previous_month": "within 10% of 495, 546 (10.30%), false"}
	if fmt.Sprint(failed) != fmt.Sprint(want) || r.ErrorCode != string(failure.ValidationRefused) {
		t.Fatalf("%v, want %v", failed, want)
	}
	a.load(tripsTable, rowsFrom(5, 100), strings.ReplaceAll(rowsFrom(10005, 104), "2013-01-10", "2013-02-10"))
	a.publish(february)
	if m := a.current(february); m.ComparedTo.PreviousMonth != "EWR_trips_2013-01_v1" || m.ComparedTo.Current != 0 {
		t.Fatalf("%+v", m.ComparedTo)
	}
	a.load(tripsTable, rowsFrom(5, 100), "update trips set fare = '0'")
	again := a.plan(newark)
	a.final(a.failed(again.ID(), failure.ValidationRefused))
	if r := a.run(again.ID()); !strings.Contains(r.ErrorText, "drift:sum:fare:previous_version: expected within 10% of 4999.5, found 0 (-100.00%)") {
		t.Fatalf("%q", r.ErrorText)
	}
}

// A version of the definition that is gone, and manifests that drift needs and that are gone.
func TestWhatARunNeedsAndCannotFind(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	r := a.plan(newark, func(r *snapshot.Run) { r.Definition = 7 })
	r = a.failed(r.ID(), failure.DefinitionInvalid)
	a.final(r)
	if !strings.Contains(r.ErrorText, "version 7") {
		t.Fatalf("%q", r.ErrorText)
	}
	first := a.publish(newark)
	a.overwrite(snapshot.ManifestKey(newark, first.Version, first.Manifest()), []byte("{}"))
	a.final(a.failed(a.plan(newark).ID(), failure.FileInconsistent))
}

// Steps that are called out of turn change nothing.
func TestStepsOutOfTurn(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	j := a.claim(r.ID())
	for _, step := range []func(context.Context, snapshot.Job) (snapshot.Result, error){a.steps.Publish, a.steps.Validate} {
		got, err := step(bg, j)
		if err == nil && !got.Done {
			t.Fatalf("%+v", got)
		}
	}
	if now := a.run(r.ID()); now.State != snapshot.Queued {
		t.Fatalf("%+v", now)
	}
	got, err := a.steps.Generate(bg, j) // start was never seen to succeed
	if err != nil || got.State != snapshot.Running || got.Chunks != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	if _, err := a.steps.Publish(bg, j); err == nil {
		t.Fatal("published without a verdict")
	}
	for range 2 { // the second finds the verdict
		if got, err := a.steps.Validate(bg, j); err != nil || !got.Done {
			t.Fatalf("%+v %v", got, err)
		}
	}
	if _, err := a.steps.Publish(bg, j); err != nil {
		t.Fatal(err)
	}
	a.published(r.ID())
}

// A failed verdict that was recorded before the process died is the step's failure again, not a new judgement.
func TestFailedVerdictIsRemembered(t *testing.T) {
	d := trips()
	d.Control = "select 1 as rows"
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	died := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if now := a.run(r.ID()); after && !died && now.Verdict != nil {
			died = true
			return true
		}
		return false
	}
	a.walk(a.claim(r.ID()))
	r = a.run(r.ID())
	if !died || r.ErrorCode != string(failure.ValidationMismatch) || r.Failures != 1 {
		t.Fatalf("%v %+v", died, r)
	}
	lists := a.s3.Requests()["ListObjectsV2"]
	if lists != 1 {
		t.Fatalf("judged %d times", lists)
	}
}
