package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// Slots: an owner's caps and the runs that hold slots, as one register.

type (
	// claimIn takes a slot for a run as it was read, under caps as they were read; failIn frees it by a failure, whose retry is
	// due at once; capsIn changes the caps.
	claimIn struct {
		Run, Job      int
		State         snapshot.State
		Cap, Backfill int
	}
	failIn struct {
		Run, Job, Failures int
		State              snapshot.State
	}
	cancelIn struct {
		Run   int
		State snapshot.State
	}
	capsIn struct{ Cap, Backfill int }
	readIn struct{ Run int }
)

const slotRuns = 4 // the last two are backfills

type slotRun struct {
	State         snapshot.State
	Job, Failures int
}

// slotState is the register.
type slotState struct {
	Cap, Backfill int
	Runs          [slotRuns]slotRun
}

func (s slotState) held() (all, back int) {
	for i, r := range s.Runs {
		if r.State == snapshot.Queued {
			if all++; i >= slotRuns/2 {
				back++
			}
		}
	}
	return all, back
}

// permits is lifecycle D's "Caps".
func (s slotState) permits(run int) bool {
	all, back := s.held()
	switch {
	case all >= s.Cap:
		return false
	case run >= slotRuns/2:
		return back < s.Backfill
	}
	return s.Backfill == 0 || all < s.Cap-1 || back > 0
}

// grants is whether the caps are as a claim read them, and permit it.
func (s slotState) grants(in claimIn) bool {
	return s.Cap == in.Cap && s.Backfill == in.Backfill && s.permits(in.Run)
}

// done is the state after an operation that was done; false: it cannot have been.
func (s slotState) done(input any) (slotState, bool) {
	switch in := input.(type) {
	case claimIn:
		r := &s.Runs[in.Run]
		if r.State != in.State || r.Job != in.Job || !s.grants(in) || r.State == snapshot.Queued {
			return s, false
		}
		r.State, r.Job = snapshot.Queued, r.Job+1
	case failIn:
		r := &s.Runs[in.Run]
		if r.State != in.State || r.Job != in.Job || r.Failures != in.Failures || r.State != snapshot.Queued {
			return s, false
		}
		r.State, r.Failures = snapshot.Failed, r.Failures+1
	case cancelIn:
		r := &s.Runs[in.Run]
		if r.State != in.State || r.State == snapshot.Cancelled {
			return s, false
		}
		r.State = snapshot.Cancelled
	case capsIn:
		s.Cap, s.Backfill = in.Cap, in.Backfill
	}
	return s, true
}

func (s slotState) step(input, output any) (bool, slotState) {
	if in, is := input.(readIn); is {
		return output == s.Runs[in.Run], s
	}
	after, can := s.done(input)
	switch output {
	case "done":
		return can, after
	case "moved": // the run is not as read
		in, is := input.(claimIn)
		r := slotRun{}
		if is {
			r = s.Runs[in.Run]
		}
		return !can && (!is || r.State != in.State || r.Job != in.Job), s
	case "caps": // they are not as read, or permit none more
		return !s.grants(input.(claimIn)), s
	}
	return false, s
}

func slots() register {
	start := slotState{Cap: 2, Backfill: 1}
	for i := range start.Runs {
		start.Runs[i].State = snapshot.Planned
	}
	return register{clients: slotClients, model: machine(start, func(s slotState, in, out any) (bool, slotState) { return s.step(in, out) },
		func(s slotState, in any) (slotState, bool) { return s.done(in) })}
}

// slotClients plan the runs and make three or four clients, each with some claims and failures of runs that it reads first.
func slotClients(w *World, r *rand.Rand) (clients [][]operation) {
	t := w.Kit(nil)
	w.must(t.MonthEditor().SaveOwner(background, snapshot.Owner{ID: "default", Name: "default", Cap: 2, Backfill: 1}, "ann"))
	var ids []string
	for i := range slotRuns {
		month := calendar.Month{Year: 2040, Month: time.Month(1 + i)}
		run := snapshot.Run{Period: snapshot.Period{Series: snapshot.Series{Workspace: "EWR", Type: "delays"}, Month: month}, Version: 1, Owner: "default", State: snapshot.Planned,
			Scope: snapshot.Scope{Workspace: "EWR"}, Definition: 1, Backfill: i >= slotRuns/2, Zone: "UTC", CreatedAt: w.Now()}
		run.Start, run.End = month.Bounds(time.UTC)
		w.must(t.Ledger().Plan(background, snapshot.Planning{Event: snapshot.Plan, Run: run, Head: snapshot.Head{Period: run.Period}, Token: fmt.Sprint("plan ", i)}))
		ids = append(ids, run.ID())
	}
	at := 0 // each claim has a time of its own: a lost reply is told by it
	for range 3 + r.IntN(2) {
		var list []operation
		for range 2 + r.IntN(2) {
			at++
			list = append(list, slotTurn(ids, r, w.Now().Add(time.Duration(at)*time.Millisecond))...)
		}
		clients = append(clients, list)
	}
	return clients
}

// slotTurn is a read of a run, and what its reader then does with it.
func slotTurn(ids []string, r *rand.Rand, now time.Time) []operation {
	n, what := r.IntN(slotRuns), r.IntN(8)
	if what == 7 {
		in := capsIn{1 + r.IntN(3), 0}
		in.Backfill = r.IntN(in.Cap)
		return []operation{func(ctx context.Context, t Kit) (any, any) {
			o := snapshot.Owner{ID: "default", Name: "default", Cap: in.Cap, Backfill: in.Backfill}
			return in, answerOf(t.Ledger().SaveOwner(ctx, o, snapshot.Audit{ID: t.k.token(), Subject: "owner default", At: now, Who: "ann", What: "save"}))
		}}
	}
	var run snapshot.Run
	var caps snapshot.Caps
	read := func(ctx context.Context, t Kit) (in, out any) {
		c, err := t.Ledger().Caps(ctx, "default")
		if err != nil {
			return nil, nil
		}
		x, err := t.Ledger().Run(ctx, ids[n])
		if err != nil {
			return nil, nil
		}
		run, caps = x, c
		return readIn{n}, slotRun{x.State, x.Job, x.Failures}
	}
	act := func(ctx context.Context, t Kit) (in, out any) {
		switch ledger := t.Ledger(); {
		case what < 4 && (run.State == snapshot.Planned || run.State == snapshot.Failed):
			_, err := ledger.Claim(ctx, run, caps.Owner, now)
			return claimIn{n, run.Job, run.State, caps.Cap, caps.Owner.Backfill}, answerOf(err)
		case what < 6 && run.State == snapshot.Queued:
			return failIn{n, run.Job, run.Failures, run.State}, answerOf(ledger.Fail(ctx, run, snapshot.Settlement{Code: failure.JobLost, Text: "lost", NextAt: now.Add(-time.Minute)}, now))
		case what == 6 && run.State != "" && run.State != snapshot.Cancelled:
			return cancelIn{n, run.State}, answerOf(ledger.Cancel(ctx, run, snapshot.Cancellation{Reason: snapshot.ReasonOperator, By: t.k.token(), At: now}))
		}
		return nil, nil
	}
	return []operation{read, act}
}

// answerOf reads what a write came to.
func answerOf(err error) any {
	var c *snapshot.Conflict
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &c) && c.Caps != nil:
		return "caps"
	case errors.As(err, &c):
		return "moved"
	}
	return unsure
}

// However dispatchers, failures and changes of the caps interleave, slots are taken and freed one after the other, within
// the caps.
func TestClaimsAreLinear(t *testing.T) { checkLinear(t, slots(), 400) }
