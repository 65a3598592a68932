package simulate

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

// A run and who holds it as one fencing register: begin or resume, release and settle, by workers that dawdle.

type (
	// beginIn takes the lease under a token, from a row as it was read; Now and End are milliseconds.
	beginIn struct {
		Token    int
		State    schedule.RunState
		Now, End ms
	}
	releaseIn struct{ Token int }
	settleIn  struct {
		Token int
		Now   ms
	}
	heldIn struct{}
)

// heldRun is what a read shows.
type heldRun struct {
	State schedule.RunState
	Owner int
}

type leaseState struct {
	heldRun
	End  ms
	Left int
}

func (s leaseState) done(input any) (leaseState, bool) {
	switch in := input.(type) {
	case beginIn:
		free := s.State == schedule.Queued || s.State == schedule.Running && (s.Owner == 0 || s.End < in.Now)
		if s.State != in.State || !free || s.Left == 0 {
			return s, false
		}
		s.State, s.Owner, s.End, s.Left = schedule.Running, in.Token, in.End, s.Left-1
	case releaseIn:
		if s.State != schedule.Running || s.Owner != in.Token {
			return s, false
		}
		s.Owner, s.End = 0, 0
	case settleIn:
		nobodys := s.Left == 0 && (s.Owner == 0 || s.End < in.Now) // whoever finds it so may settle it
		if s.State != schedule.Running || s.Owner != in.Token && !nobodys {
			return s, false
		}
		s.State, s.Owner = schedule.Failed, 0
	}
	return s, true
}

func (s leaseState) step(input, output any) (bool, leaseState) {
	if _, is := input.(heldIn); is {
		return output == s.heldRun, s
	}
	after, can := s.done(input)
	switch output {
	case "done":
		return can, after
	case "moved":
		return !can, s
	}
	return false, s
}

func leases() register {
	start := leaseState{heldRun: heldRun{State: schedule.Queued}, Left: 5}
	return register{clients: leaseClients, model: machine(start, func(s leaseState, in, out any) (bool, leaseState) { return s.step(in, out) },
		func(s leaseState, in any) (leaseState, bool) { return s.done(in) })}
}

// leaseClients admit a run, and make three or four workers that take it and give it back, each some times.
func leaseClients(w *World, r *rand.Rand) (clients [][]operation) {
	w.Apply(Definition("s", "a@example.com"))
	made, _, err := w.Kit(nil).Editor().RunNow(background, "s", "ann", "key", "hash")
	w.must(err)
	tokens := map[string]int{"": 0}
	for range 3 + r.IntN(2) {
		var list []operation
		for range 2 + r.IntN(2) {
			list = append(list, leaseTurn(made.ID(), r, tokens)...)
		}
		clients = append(clients, list)
	}
	return clients
}

// leaseTurn is a read, a take, a read by which its worker is late, and one or two writes under its token, however late.
func leaseTurn(id string, r *rand.Rand, tokens map[string]int) []operation {
	number := len(tokens)
	token := "token-" + itoa(number)
	tokens[token] = number
	var pauses [5]time.Duration // others come between, and leases end
	for i := range pauses {
		pauses[i] = time.Duration(r.IntN(4)) * time.Minute
	}
	paused := 0
	dawdle := func() { time.Sleep(pauses[paused]); paused++ }
	life := time.Duration(r.IntN(3)) * time.Minute
	var run schedule.Run
	begun := false
	read := func(ctx context.Context, t Kit) (any, any) {
		dawdle()
		x, err := t.Store().Run(ctx, id)
		if err != nil {
			return nil, nil
		}
		run = x
		return heldIn{}, heldRun{x.State, tokens[x.LeaseOwner]}
	}
	var lease schedule.Lease
	begin := func(ctx context.Context, t Kit) (any, any) {
		if run.State != schedule.Queued && run.State != schedule.Running {
			return nil, nil
		}
		now := t.k.Now()
		lease = schedule.Lease{Token: token, Now: now, End: now.Add(life), Wake: now.Add(time.Hour + time.Duration(number)*time.Second)} // no two wake alike: a lost reply is told by it
		in := beginIn{number, run.State, at2ms(now), at2ms(lease.End)}
		x, err := t.Store().Begin(ctx, run, lease)
		if err == nil {
			run, begun = x, true
		}
		return in, movedOr(err)
	}
	release := func(ctx context.Context, t Kit) (any, any) {
		if !begun {
			return nil, nil
		}
		dawdle()
		lease.Now = t.k.Now()
		return releaseIn{number}, movedOr(t.Store().Release(ctx, run, lease, failure.New(failure.SendFailed, "later"), time.Minute))
	}
	settle := func(ctx context.Context, t Kit) (any, any) {
		if !begun {
			return nil, nil
		}
		dawdle()
		lease.Now = t.k.Now()
		return settleIn{number, at2ms(lease.Now)}, movedOr(t.Store().Settle(ctx, run, lease, schedule.Outcome{Event: schedule.Fail, Code: failure.SendFailed, Message: "later"}))
	}
	list := []operation{read, begin, read}
	switch r.IntN(5) {
	case 0:
		return append(list, settle)
	case 1:
		return append(list, release, settle) // the second is refused
	}
	return append(list, release)
}

func movedOr(err error) any {
	switch {
	case err == nil:
		return "done"
	case schedule.IsConflict(err):
		return "moved"
	}
	return unsure
}

// However workers that dawdle interleave, one holds the run at a time, and what comes under an earlier token is refused.
func TestBeginsAreLinear(t *testing.T) { checkLinear(t, leases(), 300) }
