package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// storm is what a seed decides of a random world: several workers at once, each with several calls at once, which come in
// any order, clocks up to five minutes wrong, messages that come twice and out of order, invocations that come twice or
// not at all, indexes and answers that are behind, processes that freeze for a while, and faults at some calls until calm.
type storm struct {
	r    *rand.Rand
	w    *World
	calm int // the call after which nothing goes wrong any more
	odds int // one call in so many goes wrong
}

// Storm plays the random world of a seed: delivery where it is even, months where it is odd.
func Storm(t *testing.T, seed uint64) (o Outcome, err error) {
	err = Run(t, func(w *World) {
		defer func() { o.Trace, o.Calls = w.Trace, w.calls }()
		r := rand.New(rand.NewPCG(seed, 23))
		s := &storm{r: r, w: w, calm: 60 + r.IntN(500), odds: 6 + r.IntN(60)}
		w.Company()
		w.Workers = 3 + r.IntN(2)
		w.Choose = func(options []Option) int { return r.IntN(len(options)) }
		w.SkewOf = func(string) time.Duration { return time.Duration(r.IntN(601)-300) * time.Second }
		w.Duplicate = func() bool { return r.IntN(8) == 0 }
		w.ThawAfter = func() time.Duration { return time.Duration(r.IntN(45*60)) * time.Second }
		w.Fault = s.fault
		w.Schedule.Parallel, w.Months.Parallel = 1+r.IntN(3), 1+r.IntN(3)
		w.SQS.Shuffle = r.Shuffle
		w.Lag = func(young int) int { return r.IntN(young+1) * r.IntN(2) }
		w.Behind = func() bool { return s.of(3) }
		w.Arrives = func() int { return pick(r, 1, 1, 1, 1, 1, 1, 2, 0) }
		if seed%2 == 0 {
			s.delivery()
		} else {
			s.months()
		}
		w.For(time.Duration(30+r.IntN(60)) * time.Minute)
		if s.of(6) {
			s.off(time.Duration(1+r.IntN(30)) * time.Minute)
		}
		w.For(time.Duration(30+r.IntN(60)) * time.Minute)
		s.calm = 0
		w.Rest()
		o.Ended = "at rest"
	})
	return o, err
}

// off turns sending or dispatch off for a while. Nothing befalls that: a switch that is turned off late stays off.
func (s *storm) off(d time.Duration) {
	turn := s.w.switchDispatch
	if s.of(2) {
		turn = s.w.switchSend
	}
	s.w.delivery.idle = d
	turn(false)
	s.w.For(d)
	turn(true)
}

func (s *storm) fault(c *Call) Form {
	if c.N > s.calm || s.r.IntN(s.odds) != 0 {
		return AsAsked
	}
	if f := Forms[s.r.IntN(len(Forms))]; f.Strikes(c.Name) {
		return f
	}
	return AsAsked
}

func (s *storm) of(n int) bool { return s.r.IntN(n) == 0 }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// soon is a time in the first two hours.
func (s *storm) soon() time.Time { return Start.Add(time.Duration(s.r.IntN(120*60)) * time.Second) }

func (s *storm) delivery() {
	w, r := s.w, s.r
	unwell := r.IntN(3)
	w.Hooks.Answer = func(string, int) (a Reply) {
		if unwell > 0 && s.of(4) && w.calls <= s.calm {
			return pick(r, Reply{Status: 503}, Reply{Status: 429, RetryAfter: "20"}, Reply{Cut: true}, Reply{Status: 500}, Reply{Status: 410})
		}
		return a
	}
	w.Mail.Answer = func(string, int) error {
		if unwell > 1 && s.of(5) && w.calls <= s.calm {
			return pick(r, Coded("Throttling", "Maximum sending rate exceeded."), Coded("InvalidParameterValue", "Invalid address"), Coded("AccountSendingPausedException", "paused"))
		}
		return nil
	}
	names := []string{"a@example.com", "b", "c@example.com", "d"}
	ids := []string{"s", "t"}[:1+r.IntN(2)]
	for _, id := range ids {
		d := Definition(id, names[:1+r.IntN(len(names))]...)
		d.Recurrence.Cron = pick(r, "30 12 * * *", "*/30 12,13 * * *", "20,25 12 * * *")
		if s.of(8) {
			d.Query = pick(r, "select nothing", "select id from flights where 1 = 0")
		}
		w.Apply(d)
		for range r.IntN(4) {
			s.act(d)
		}
	}
}

// act has a person do something to a schedule or to one of its runs, at some time.
func (s *storm) act(d schedule.Definition) {
	at, kind := s.soon(), s.r.IntN(13)
	s.w.Insist(at, fmt.Sprintf("person %d", kind), func(ctx context.Context, t Kit) error {
		return refusedIsFine(s.person(ctx, t, d, kind))
	})
}

func (s *storm) person(ctx context.Context, t Kit, d schedule.Definition, kind int) error {
	e := t.Editor()
	runs, _, err := t.Store().Runs(ctx, d.ID, "", 1)
	if err != nil {
		return err
	}
	var run schedule.Run
	if len(runs) > 0 {
		run = runs[0]
	} else if kind >= 5 {
		return nil
	}
	switch kind {
	case 0:
		_, err = e.Pause(ctx, d.ID, "a reason", "ann")
	case 1:
		_, err = e.Resume(ctx, d.ID, "a reason", "ann")
	case 2:
		d.Recipients = d.Recipients[:1]
		_, err = e.Apply(ctx, d, "ann", 0)
	case 3:
		_, _, err = e.RunNow(ctx, d.ID, "ann", "key", "hash")
	case 4:
		err = e.Delete(ctx, d.ID, "a reason", "ann")
	case 5:
		_, err = e.Stop(ctx, run.ID(), "a reason", "ann")
	case 6, 7:
		_, _, err = e.Retry(ctx, run.ID(), schedule.RetryRequest{}, "a reason", "ann", "again", "hash")
	case 8:
		_, err = e.Resend(ctx, run.ID(), hash("a@example.com"), "a reason", "ann")
	case 9:
		_, err = e.Resolve(ctx, run.ID(), hash("a@example.com"), "submitted", "a reason", "ann")
	case 10:
		_, _, err = e.Retry(ctx, run.ID(), schedule.RetryRequest{IncludeUnknown: []string{hash("a@example.com")}}, "a reason", "ann", "with it", "hash")
	case 11:
		_, err = e.RevokeLinks(ctx, run.ID(), schedule.AllLinks, "a reason", "ann")
	case 12:
		_, err = e.RevokeLinks(ctx, run.ID(), hash("a@example.com"), "a reason", "ann")
	}
	return err
}

// refusedIsFine lets a person be content with a refusal: only what was disturbed is asked again.
func refusedIsFine(err error) error {
	var wrong input.Problems
	if schedule.IsConflict(err) || snapshot.IsConflict(err) || errors.Is(err, schedule.ErrNotFound) || errors.Is(err, snapshot.ErrNotFound) || errors.As(err, &wrong) {
		return nil
	}
	return err
}

func (s *storm) months() {
	w, r := s.w, s.r
	first := pick(r, "2040-02", "2040-01", "2039-12")
	if s.of(2) {
		owner := snapshot.Owner{ID: snapshot.DefaultOwner, Name: "Default", Cap: 2 + r.IntN(3)}
		owner.Backfill = 1 + r.IntN(owner.Cap-1) // with none no earlier month is ever claimed
		w.must(w.Kit(nil).MonthEditor().SaveOwner(background, owner, "ann"))
	}
	for _, m := range []string{"2039-12", "2040-01", "2040-02"} {
		delays := make([]int64, r.IntN(6))
		for i := range delays {
			delays[i] = int64(r.IntN(100) - 50)
		}
		w.Data.Load("EWR "+m, delays...)
	}
	if s.of(4) {
		w.Data.Lost = 1
		w.Insist(s.soon(), "the data are mended", func(context.Context, Kit) error { w.Data.mend(); return nil })
	}
	d := Delays("EWR", first)
	if s.of(2) {
		d.Mode = snapshot.Single
	}
	w.Define(d)
	for range r.IntN(5) {
		at, kind, month := s.soon(), r.IntN(8), pick(r, "2039-12", "2040-01", "2040-02")
		w.Insist(at, fmt.Sprintf("person %d", kind), func(ctx context.Context, t Kit) error {
			return refusedIsFine(s.monthly(ctx, t, d, month, kind))
		})
	}
}

func (s *storm) monthly(ctx context.Context, t Kit, d snapshot.Definition, month string, kind int) error {
	m, err := calendar.ParseMonth(month)
	if err != nil {
		return err
	}
	p := snapshot.Period{Series: snapshot.Series{Workspace: "EWR", Type: "delays"}, Month: m}
	head, err := t.Ledger().Head(ctx, p)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("EWR_delays_%s_v%d", month, max(1, head.Latest))
	e := t.MonthEditor()
	switch kind {
	case 0:
		_, err = e.Cancel(ctx, id, "a reason", "ann")
	case 1:
		_, err = e.RetryNow(ctx, id, "a reason", "ann")
	case 2, 3:
		_, err = e.Request(ctx, p, "again", "ann")
	case 4:
		_, err = e.RollBack(ctx, p, 1, "a reason", "ann")
	case 5:
		d.ChunkRows = 3
		_, err = e.SaveDefinition(ctx, d, "ann", 0)
	case 6:
		_, err = e.Backfill(ctx, snapshot.Range{Series: []snapshot.Series{p.Series}, From: m, To: monthOf("2040-02")}, "a reason", "ann", false)
	case 7:
		d.Off = true
		if _, err = e.SaveDefinition(ctx, d, "ann", 0); err == nil {
			d.Off = false
			_, err = e.SaveDefinition(ctx, d, "ann", 0)
		}
	}
	return err
}
