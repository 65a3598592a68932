package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

var errLost = errors.New("the reply was lost")

func TestClaimsTheOldestMonthsAndStartsTheirJobs(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 4, 2)
	d.define("2039-10", unchanged)
	d.plan() // four backfills and February
	got := d.claim()
	if got.Claimed != 3 || got.Started != 3 || got.Unstarted+got.Errors > 0 {
		t.Errorf("tally %+v", got)
	}
	d.wantLedger("2039-10 v1 queued", "2039-11 v1 queued", "2039-12 v1 planned", "2040-01 v1 planned", "2040-02 v1 queued")
	r := d.run(id("2039-10", 1))
	if r.Job != 1 || r.Execution != arn(r.JobName()) || !r.ClaimedAt.Equal(d.wall()) {
		t.Errorf("%+v", r)
	}
	if k := d.jobs.kept["EWR_delays_2039-10_v1-j1"]; k == nil || k.input != (snapshot.Job{Run: r.ID(), Job: 1}) {
		t.Errorf("job %+v", k)
	}
	c := d.caps(snapshot.DefaultOwner)
	if len(c.Slots) != 3 || len(c.Backfills) != 2 {
		t.Errorf("caps %+v", c)
	}
	if again := d.claim(); again.Claimed != 0 {
		t.Errorf("claimed again: %+v", again)
	}
	d.publish(id("2039-10", 1))
	d.claim()
	d.wantLedger("2039-10 v1 published", "2039-11 v1 queued", "2039-12 v1 queued", "2040-01 v1 planned", "2040-02 v1 queued")
}

// Retries and planned months wait in one line, the oldest month first.
func TestARetryDoesNotPassAnOlderMonth(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 3, 1)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	d.fail(id("2040-01", 1), failure.QueryTimeout)
	d.define("2039-12", unchanged)
	d.plan()
	d.advance(time.Hour)
	d.claim()
	d.wantLedger("2039-12 v1 queued", "2040-01 v1 failed", "2040-02 v1 queued")
	d.publish(id("2039-12", 1))
	d.claim()
	d.wantLedger("2039-12 v1 published", "2040-01 v1 queued", "2040-02 v1 queued")
}

func TestN2TwoDispatchersAtOnce(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 5, 0)
	for i := range 6 {
		name := fmt.Sprintf("W%d", i)
		d.workspace(name, func(*schedule.Workspace) {})
		def := delays("2040-02")
		def.Workspace = name
		_, err := d.editor.SaveDefinition(ctx, def, "ann", 0)
		d.must(err)
	}
	d.plan()
	for i := range 4 {
		r := d.run(fmt.Sprintf("W%d_delays_2040-02_v1", i))
		_, err := d.store.Claim(ctx, r, snapshot.Owner{ID: snapshot.DefaultOwner, Cap: 5}, d.wall())
		d.must(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got, err := d.dispatch.Tick(ctx); err != nil || got.Errors > 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if c := d.caps(snapshot.DefaultOwner); len(c.Slots) != 5 || d.jobs.starts != 1 {
		t.Errorf("slots %v, %d jobs for the one slot that was free", c.Slots, d.jobs.starts)
	}
	queued := 0
	for i := range 6 {
		r := d.run(fmt.Sprintf("W%d_delays_2040-02_v1", i))
		if r.Failures != 0 || r.Job > 1 {
			t.Errorf("%s has %d failures and job %d", r.ID(), r.Failures, r.Job)
		}
		if r.State == snapshot.Queued {
			queued++
		}
	}
	if queued != 5 {
		t.Errorf("%d runs are queued", queued)
	}
}

// Many dispatchers while runs settle: never above the caps, everything is done in the end, and each job once.
func TestDispatchersNeverExceedTheCaps(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 4, 2)
	d.define("2038-03", unchanged)
	d.plan()
	for round := 0; ; round++ {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := d.dispatch.Tick(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		c := d.caps(snapshot.DefaultOwner)
		if len(c.Slots) > 4 || len(c.Backfills) > 2 || len(d.jobs.running()) != len(c.Slots) {
			t.Fatalf("round %d: %+v, jobs %v", round, c, d.jobs.running())
		}
		if len(c.Slots) == 0 {
			break
		}
		d.publish(c.Slots[0])
	}
	if d.jobs.starts != 24 || slices.ContainsFunc(d.ledger(), func(s string) bool { return !strings.HasSuffix(s, "published") }) {
		t.Errorf("%d jobs, ledger %v", d.jobs.starts, d.ledger())
	}
}

// N3: a settle that is told three times frees one slot once.
func TestN3TerminalEventThreeTimes(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	read := d.run(id("2040-02", 1))
	d.fail(id("2040-02", 1), failure.QueryTimeout)
	for range 2 {
		s := d.timing.Settle(read, failure.New(failure.QueryTimeout, "again"), d.wall().Add(time.Second))
		if err := d.store.Fail(ctx, read, s, d.wall().Add(time.Second)); !snapshot.IsConflict(err) && err != nil {
			t.Error(err)
		}
		d.must(d.store.Free(ctx, snapshot.DefaultOwner, read.ID()))
	}
	if r, c := d.run(id("2040-02", 1)), d.caps(snapshot.DefaultOwner); r.Failures != 1 || !slices.Equal(c.Slots, []string{id("2040-01", 1)}) {
		t.Errorf("%d failures, slots %v", r.Failures, c.Slots)
	}
}

func TestN5RetryTimesStandOnTheRow(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	r := d.fail(id("2040-02", 1), failure.QueryTimeout)
	if !r.NextAt.Equal(d.wall().Add(5 * time.Minute)) {
		t.Fatalf("next attempt at %s", r.NextAt)
	}
	d.advance(5*time.Minute - time.Second)
	if got := d.claim(); got.Claimed != 0 {
		t.Errorf("claimed before its time: %+v", got)
	}
	d.advance(2 * time.Hour) // long past
	if got := d.claim(); got.Claimed != 1 {
		t.Errorf("not claimed although due: %+v", got)
	}
	if r := d.run(id("2040-02", 1)); r.State != snapshot.Queued || r.Job != 2 {
		t.Errorf("%+v", r)
	}
	d.fail(id("2040-02", 1), failure.QueryTimeout)
	d.advance(30 * time.Minute)
	d.claim()
	if r := d.fail(id("2040-02", 1), failure.QueryTimeout); !r.NextAt.Equal(d.wall().Add(2 * time.Hour)) {
		t.Errorf("next attempt at %s", r.NextAt)
	}
	d.advance(2*time.Hour - time.Millisecond)
	if got := d.claim(); got.Claimed != 0 {
		t.Errorf("claimed before its time: %+v", got)
	}
}

func TestN6NothingStartsAFifth(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	for n, wait := range []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 0} {
		if got := d.claim(); got.Claimed != 1 {
			t.Fatalf("attempt %d: %+v", n+1, got)
		}
		r := d.fail(id("2040-02", 1), failure.QueryTimeout)
		if r.Failures != n+1 || wait > 0 && !r.NextAt.Equal(d.wall().Add(wait)) || wait == 0 && !r.Final() {
			t.Fatalf("failure %d: next at %s", n+1, r.NextAt)
		}
		d.advance(wait)
	}
	d.advance(1000 * time.Hour)
	if got := d.claim(); got.Claimed != 0 {
		t.Errorf("a fifth attempt: %+v", got)
	}
	if h := d.head("2040-02"); h.Active != 0 || h.LatestState != snapshot.Failed || d.jobs.starts != 4 {
		t.Errorf("head %+v, %d jobs", h, d.jobs.starts)
	}
}

func TestN7TheSameNameTwice(t *testing.T) {
	for name, lose := range map[string]func(*jobs){
		"the request was lost": func(j *jobs) { j.before = func(string) error { return errLost } },
		"the reply was lost":   func(j *jobs) { j.after = func(string) error { return errLost } },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.define("2040-02", unchanged)
			d.plan()
			lose(d.jobs)
			if got := d.claim(); got.Claimed != 1 || got.Unstarted != 1 || got.Errors != 1 {
				t.Fatalf("tally %+v", got)
			}
			d.jobs.before, d.jobs.after = nil, nil
			d.advance(5 * time.Minute)
			if got := d.claim(); got.Reoffered != 1 || got.Started != 1 || got.Claimed != 0 {
				t.Fatalf("tally %+v", got)
			}
			r := d.wantState(id("2040-02", 1), snapshot.Queued, "")
			if r.Job != 1 || r.Execution != arn(r.JobName()) || d.jobs.starts != 1 {
				t.Errorf("%d jobs, %+v", d.jobs.starts, r)
			}
		})
	}
	t.Run("closed with the row still queued", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		d.plan()
		d.jobs.after = func(string) error { return errLost }
		d.claim()
		d.jobs.after = nil
		d.jobs.close("EWR_delays_2040-02_v1-j1", "TIMED_OUT")
		d.advance(5 * time.Minute)
		if got := d.claim(); got.Lost != 1 || got.Claimed != 0 {
			t.Fatalf("tally %+v", got)
		}
		r := d.wantState(id("2040-02", 1), snapshot.Failed, failure.JobLost)
		if !strings.Contains(r.ErrorText, "EWR_delays_2040-02_v1-j1 has closed as TIMED_OUT") || r.NextAt.IsZero() {
			t.Errorf("%q, next at %s", r.ErrorText, r.NextAt)
		}
		if d.counts["snapshot_failures retried"] != 1 {
			t.Errorf("counts %v", d.counts)
		}
		d.advance(5 * time.Minute)
		d.claim()
		if r := d.run(id("2040-02", 1)); r.JobName() != "EWR_delays_2040-02_v1-j2" || !slices.Equal(d.jobs.running(), []string{r.JobName()}) {
			t.Errorf("the next claim has no new name: %s, %v", r.JobName(), d.jobs.running())
		}
	})
	t.Run("exists and cannot be described", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		d.plan()
		d.jobs.kept["EWR_delays_2040-02_v1-j1"] = &job{state: snapshot.JobClosed, detail: "FAILED"}
		d.jobs.describing = errLost
		if got := d.claim(); got.Unstarted != 1 || got.Errors != 1 {
			t.Errorf("tally %+v", got)
		}
		d.wantState(id("2040-02", 1), snapshot.Queued, "")
	})
}

func TestN8AQueuedRunWithoutAJob(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.jobs.before = func(string) error { return errLost }
	d.claim()
	d.jobs.before = nil
	d.advance(4*time.Minute + 59*time.Second)
	if got := d.claim(); got.Reoffered != 0 || d.jobs.starts != 0 {
		t.Errorf("offered again after 4:59: %+v", got)
	}
	d.advance(time.Second)
	if got := d.claim(); got.Reoffered != 1 {
		t.Errorf("not offered again after 5:00: %+v", got)
	}
	if r := d.run(id("2040-02", 1)); r.Job != 1 || !slices.Equal(d.jobs.running(), []string{r.JobName()}) {
		t.Errorf("%s, jobs %v", r.JobName(), d.jobs.running())
	}
}

func TestN11TwoHundredBackfillsWait(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 5, 2)
	d.define("2023-07", unchanged)
	d.advance(time.Date(2040, 3, 1, 4, 0, 0, 0, time.UTC).Sub(opening)) // February goes on
	d.plan()
	if n := len(d.ledger()); n != 199 {
		t.Fatalf("%d months", n)
	}
	current, err := d.editor.Request(ctx, period("2040-01"), "more", "ann")
	if err == nil {
		t.Fatalf("an active month was planned again: %+v", current)
	}
	d.claim() // January and two backfills
	d.publish(id("2040-01", 1))
	d.advance(3 * time.Hour)
	d.plan()
	d.claim()
	if r := d.run(id("2040-02", 1)); r.State != snapshot.Queued || r.Backfill {
		t.Errorf("the current month waits: %+v", r)
	}
	before := d.caps(snapshot.DefaultOwner).Backfills
	if len(before) != 2 {
		t.Fatalf("backfills %v", before)
	}
	d.publish(before[0])
	d.claim()
	if after := d.caps(snapshot.DefaultOwner).Backfills; len(after) != 2 || after[0] == before[0] {
		t.Errorf("backfills do not go on: %v, then %v", before, after)
	}
}

// With a backfill cap a slot is left to backfills, and backfills never take the last slots of current months.
func TestASlotIsLeftToBackfills(t *testing.T) {
	d := newDesk(t)
	d.owner(snapshot.DefaultOwner, 3, 1)
	for i := range 4 {
		name := fmt.Sprintf("W%d", i)
		d.workspace(name, func(*schedule.Workspace) {})
		def := delays("2040-02")
		def.Workspace = name
		_, err := d.editor.SaveDefinition(ctx, def, "ann", 0)
		d.must(err)
	}
	d.plan()
	if got := d.claim(); got.Claimed != 2 {
		t.Errorf("current months took the slot of backfills: %+v", got)
	}
	d.define("2040-01", unchanged)
	d.plan()
	if got := d.claim(); got.Claimed != 1 || d.run(id("2040-01", 1)).State != snapshot.Queued {
		t.Errorf("the backfill did not get its slot: %+v", got)
	}
}

func TestDispatchSwitchedOff(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.off = true
	if got := d.claim(); !got.Off || got.Claimed != 0 {
		t.Errorf("tally %+v", got)
	}
	d.off = false
	d.jobs.before = func(string) error { return errLost }
	d.claim()
	d.jobs.before, d.off = nil, true
	d.advance(time.Hour)
	d.claim()
	d.mend()
	if d.jobs.starts != 0 {
		t.Error("a job was offered while dispatch was off")
	}
	d.wantState(id("2040-02", 1), snapshot.Queued, "")
	d.off = false
	d.claim()
	if d.jobs.starts != 1 {
		t.Error("no job was offered once dispatch was on")
	}
}

func TestDispatchStopsInTime(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	short, cancel := context.WithDeadline(ctx, d.wall().Add(4*time.Second))
	defer cancel()
	got, err := d.dispatch.Tick(short)
	if err != nil || !got.Partial || got.Claimed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// S1: two offers of one job, by dispatcher and reconciler at once, make one job; a settled run is never settled again.
func TestS1OneJobForTwoOffers(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.jobs.after = func(string) error { return errLost }
	d.claim()
	d.jobs.after = nil
	d.advance(5 * time.Minute)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := d.dispatch.Tick(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if _, err := d.mender.Tick(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if d.jobs.starts != 1 {
		t.Errorf("%d jobs", d.jobs.starts)
	}
	d.publish(id("2040-02", 1))
	d.advance(time.Hour)
	d.claim()
	d.mend()
	if r := d.wantState(id("2040-02", 1), snapshot.Published, ""); r.Failures != 0 {
		t.Errorf("%+v", r)
	}
}
