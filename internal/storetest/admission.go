package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// admission lets rivals meet: exactly one wins, and the others learn which row stands.
func admission(t *testing.T, b *bench) {
	t.Run("two dispatchers admit once", func(t *testing.T) {
		p := b.place()
		b.write(t, world{}.add(p.scheduleKey(), scheduleRow(p, "active")))
		lost := race(t, 8, func(ctx context.Context, i int) error {
			a := dueAdmission(p)
			a.Token = fmt.Sprintf("dispatcher-%d", i)
			return b.rival().Admit(ctx, a)
		})
		for _, c := range lost {
			if c.Run == nil && c.Schedule == nil {
				t.Errorf("a loser does not learn which row stands: %+v", c)
			}
		}
		one(t, b, p)
	})
	t.Run("two requests with one key make one run", func(t *testing.T) {
		p := b.place()
		lost := race(t, 8, func(ctx context.Context, i int) error {
			a := admission0(p)
			a.Token = fmt.Sprintf("request-%d", i)
			act := actOf(p.run(), fmt.Sprintf("act-%d", i), "run now")
			a.Audit = &act
			return b.rival().Admit(ctx, a)
		})
		b.audited(t, p.run(), 1)
		for _, c := range lost {
			if c.Run == nil || c.Run.ID() != p.run() {
				t.Errorf("a loser does not learn which run stands: %+v", c)
			}
		}
		one(t, b, p)
	})
	t.Run("two people create one schedule", func(t *testing.T) {
		p := b.place()
		race(t, 8, func(ctx context.Context, i int) error {
			return b.rival().CreateSchedule(ctx, versionOf(p, 1), schedule.Schedule{ID: p.schedule, Workspace: "EWR", NextDue: nextDue}, nil, expires,
				actOf(p.schedule, fmt.Sprintf("act-%d", i), "create"))
		})
		b.audited(t, p.schedule, 1)
	})
	t.Run("two people edit one schedule", func(t *testing.T) {
		p := b.place()
		b.write(t, inState("active", nil)(p))
		read, err := b.Schedule(t.Context(), p.schedule)
		if err != nil {
			t.Fatal(err)
		}
		race(t, 8, func(ctx context.Context, i int) error {
			return b.rival().EditSchedule(ctx, versionOf(p, 3), read, nextDue, nil, expires, actOf(p.schedule, fmt.Sprintf("act-%d", i), "edit"))
		})
		b.audited(t, p.schedule, 1)
	})
	t.Run("two workers begin one run", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("queued", nil)(p))
		read, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		race(t, 8, func(ctx context.Context, i int) error {
			l := next
			l.Token = fmt.Sprintf("worker-%d", 10+i)
			_, err := b.rival().Begin(ctx, read, l)
			return err
		})
		if r, err := b.Run(t.Context(), p.run()); err != nil || r.Attempts != 1 || r.AttemptsLeft != 4 {
			t.Errorf("%d attempts, %d left, %v; want 1 and 4", r.Attempts, r.AttemptsLeft, err)
		}
	})
	t.Run("two workers intend one delivery", func(t *testing.T) {
		p := b.place()
		race(t, 8, func(ctx context.Context, i int) error {
			sub := newSubmission(p)
			sub.Owner = fmt.Sprintf("worker-%d", 10+i)
			return b.rival().Intend(ctx, sub, expires.Unix())
		})
	})
}

// rival is a store of its own over the same table, without the tap's counters.
func (b *bench) rival() *bench {
	s := *b.Store
	s.DB = b.tap.DynamoDB
	s.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return &bench{Store: &s, tap: b.tap}
}

// race starts n rivals at once, and demands that one of them wins and that the others get conflicts.
func race(t *testing.T, n int, do func(ctx context.Context, i int) error) []*schedule.Conflict {
	t.Helper()
	var lost []*schedule.Conflict
	for _, c := range contest(t, n, do) {
		lost = append(lost, &schedule.Conflict{Run: c.run, Submission: c.sub, Schedule: c.sched})
	}
	return lost
}

// contest is race for either domain: what the losers are told.
func contest(t *testing.T, n int, do func(ctx context.Context, i int) error) []told {
	t.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = do(t.Context(), i)
		})
	}
	close(start)
	all.Wait()
	won := 0
	var lost []told
	for i, err := range errs {
		c, refused := conflictIn(err)
		switch {
		case err == nil:
			won++
		case refused:
			lost = append(lost, c)
		default:
			t.Errorf("rival %d: %v, want success or a Conflict", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d rivals won, want 1", won, n)
	}
	return lost
}

// one demands that the schedule has exactly one run.
func one(t *testing.T, b *bench, p place) {
	t.Helper()
	rs, _, err := b.Runs(t.Context(), p.schedule, "", 10)
	if err != nil || len(rs) != 1 {
		t.Errorf("%d runs, %v; want 1", len(rs), err)
	}
}
