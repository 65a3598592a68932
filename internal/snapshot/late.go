package snapshot

import (
	"context"
	"errors"
	"time"

	"almanac/internal/calendar"
)

// waits remembers, for one tick, what is read to tell whether anybody waits for a series' months.
type waits map[Series]wait

type wait struct {
	row     SeriesRow
	version Version // zero: there is none in force
}

// lateShard counts the periods that are late. The index suggests them; their heads, their series and the definition in
// force decide, so that a waiver, a switch or a removal is heard at once.
func (t *reconcileTick) lateShard(ctx context.Context, shard int) {
	for from := ""; t.timeLeft(ctx); {
		list, next, err := t.Ledger.Late(ctx, shard, t.now, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("late periods could not be read", err, "shard", shard)
			return
		}
		for _, l := range list {
			late, err := t.late(ctx, l)
			if err != nil {
				t.trouble("a late period could not be read", err, "workspace", l.Workspace, "type", l.Type, "month", l.Month.String())
				continue
			}
			if late {
				t.Late++
				t.OldestLate = max(t.OldestLate, since(t.now, l.Since))
			}
		}
		if from = next; from == "" {
			return
		}
	}
}

// late reports whether somebody waits for a period: nothing of it is published, and it is neither waived nor skipped or
// cancelled because its type is off or its workspace removed. A month that still loads is late: people wait for it.
func (t *reconcileTick) late(ctx context.Context, l Lateness) (bool, error) {
	w, err := t.wait(ctx, l.Series)
	if err != nil || w.row.Off != "" || w.version.Number == 0 {
		return false, err
	}
	if l.Month == (calendar.Month{}) {
		return t.neverPlanned(ctx, w)
	}
	if l.Month.Before(w.version.Start) || waived(w.version.Waived, l.Month) != "" {
		return false, nil
	}
	head, err := t.Ledger.Head(ctx, Period{l.Series, l.Month})
	return err == nil && !head.LateAt.IsZero() && !head.LateAt.After(t.now), err
}

// neverPlanned reports whether the first month of a series that no planner has come to, and that nobody waived, is late. A
// series whose months are looked through again stands at one that has a head of its own.
func (t *reconcileTick) neverPlanned(ctx context.Context, w wait) (bool, error) {
	head, err := t.Ledger.Head(ctx, Period{w.row.Series, w.row.Next})
	if err != nil || head.Latest > 0 {
		return false, err
	}
	month := w.row.Next
	for waived(w.version.Waived, month) != "" {
		month = month.Add(1)
	}
	if month == w.row.Next {
		return true, nil
	}
	// The index does not know of the waiver yet. In every zone this month has ended twelve hours after it has in UTC.
	_, end := month.Bounds(time.UTC)
	return t.now.After(end.Add(w.version.DueAfter.Std() + 12*time.Hour)), nil
}

func (t *reconcileTick) wait(ctx context.Context, s Series) (wait, error) {
	if w, ok := t.waiting[s]; ok {
		return w, nil
	}
	var w wait
	var err error
	if w.row, err = t.Ledger.Series(ctx, s); err != nil && !errors.Is(err, ErrNotFound) {
		return w, err
	}
	if err == nil {
		if w.version, err = t.Ledger.Present(ctx, w.row.Scope, s.Type); err != nil && !errors.Is(err, ErrNotFound) {
			return w, err
		}
	}
	if t.waiting == nil {
		t.waiting = waits{}
	}
	t.waiting[s] = w
	return w, nil
}
