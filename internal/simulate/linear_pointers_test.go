package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

// A period's head and current pointer as one register: publications, roll backs, requests, cancellations and reads.

type (
	publishIn  struct{ Version int }
	rollBackIn struct{ Version int }
	requestIn  struct{}
	stopIn     struct{ Version int }
	pointedIn  struct{}
)

// pointState is the register. The head's active version, the current one, and which are published, a bit each.
type pointState struct{ Latest, Active, Current, Published int }

func (s pointState) done(input any) (pointState, bool) {
	switch in := input.(type) {
	case publishIn:
		if s.Active != in.Version {
			return s, false
		}
		s.Active, s.Current, s.Published = 0, in.Version, s.Published|1<<in.Version
	case rollBackIn:
		if s.Active != 0 || s.Current == in.Version || s.Published&(1<<in.Version) == 0 {
			return s, false
		}
		s.Current = in.Version
	case requestIn:
		if s.Active != 0 {
			return s, false
		}
		s.Latest++
		s.Active = s.Latest
	case stopIn:
		if s.Active != in.Version {
			return s, false
		}
		s.Active = 0
	}
	return s, true
}

func (s pointState) step(input, output any) (bool, pointState) {
	if _, is := input.(pointedIn); is {
		return output == s.Current, s
	}
	after, can := s.done(input)
	switch output {
	case "done":
		return can, after
	case "refused":
		return !can, s
	}
	return false, s
}

func pointers() register {
	return register{clients: pointClients, model: machine(pointState{3, 3, 2, 1<<1 | 1<<2}, func(s pointState, in, out any) (bool, pointState) { return s.step(in, out) },
		func(s pointState, in any) (pointState, bool) { return s.done(in) })}
}

// pointClients publish two versions and validate the third, which one of them is to publish.
func pointClients(w *World, r *rand.Rand) [][]operation {
	w.Steps.OnStart = nil // the scenario walks
	w.Define(Delays("EWR", "2040-02"))
	t := w.Kit(nil)
	_, err := t.Planner().Tick(w.calm(TickTime))
	w.must(err)
	p := snapshot.Period{Series: snapshot.Series{Workspace: "EWR", Type: "delays"}, Month: calendar.Month{Year: 2040, Month: 2}}
	job := snapshot.Job{}
	for n := 1; n <= 3; n++ {
		if n > 1 {
			_, err := t.MonthEditor().Request(background, p, "again", "ann")
			w.must(err)
		}
		_, err := t.MonthDispatcher().Tick(w.calm(TickTime))
		w.must(err)
		job = snapshot.Job{Run: fmt.Sprintf("EWR_delays_2040-02_v%d", n), Job: 1}
		for _, step := range []string{"start", "generate", "validate", "publish"}[:4-n/3] {
			_, err := t.Stepper().Run(w.calm(StepTime), snapshot.StepInput{Step: step, Job: job})
			w.must(err)
		}
	}
	publish := func(ctx context.Context, t Kit) (any, any) {
		_, err := t.Stepper().Run(ctx, snapshot.StepInput{Step: "publish", Job: job})
		x, read := t.w.Kit(nil).Ledger().Run(background, job.Run) // a step of a run that has settled does nothing and says done
		t.w.must(read)
		switch {
		case err != nil:
			return publishIn{3}, unsure
		case x.State == snapshot.Published:
			return publishIn{3}, "done"
		}
		return publishIn{3}, "refused"
	}
	clients := [][]operation{{publish}}
	for range 2 + r.IntN(2) {
		var list []operation
		for range 2 + r.IntN(3) {
			list = append(list, pointTurn(p, r))
		}
		clients = append(clients, list)
	}
	return clients
}

func pointTurn(p snapshot.Period, r *rand.Rand) operation {
	version := 1 + r.IntN(3)
	switch r.IntN(7) {
	case 0, 1, 2:
		return func(ctx context.Context, t Kit) (any, any) {
			_, err := t.MonthEditor().RollBack(ctx, p, version, "it was right", "ann")
			return rollBackIn{version}, refusedOr(err)
		}
	case 3:
		return func(ctx context.Context, t Kit) (any, any) {
			_, err := t.MonthEditor().Request(ctx, p, "again", "ann")
			return requestIn{}, refusedOr(err)
		}
	case 4:
		return func(ctx context.Context, t Kit) (any, any) {
			_, err := t.MonthEditor().Cancel(ctx, fmt.Sprintf("EWR_delays_2040-02_v%d", version+1), "enough", "ann "+t.k.token())
			if errors.Is(err, snapshot.ErrNotFound) {
				err = &snapshot.Conflict{}
			}
			return stopIn{version + 1}, refusedOr(err)
		}
	}
	return func(ctx context.Context, t Kit) (any, any) {
		at, err := t.Ledger().Pointer(ctx, p)
		if err != nil {
			return nil, nil
		}
		return pointedIn{}, at.Version
	}
}

func refusedOr(err error) any {
	switch {
	case err == nil:
		return "done"
	case snapshot.IsConflict(err):
		return "refused"
	}
	return unsure
}

// However publications, roll backs, requests and cancellations interleave, the pointer moves by one of them at a time, and
// never back while a version is under way.
func TestPointerMovesAreLinear(t *testing.T) { checkLinear(t, pointers(), 300) }
