package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Account is one period with the reason why it stands as it does, in words.
type Account struct {
	Month
	Cell  Standing
	Why   []string // sentences for people: what is published, and what stands in the way of the rest
	Ahead *int     // of a planned version: how many are considered before it; nil: not waiting
}

// queueShown bounds how many planned runs are counted ahead of one.
const queueShown = 2000

// Account reads a period and says why it is as it is. A series that is not there and never was is ErrNotFound.
func (b Board) Account(ctx context.Context, p Period) (Account, error) {
	now, err := b.Clocks.Business(ctx)
	if err != nil {
		return Account{}, err
	}
	v, err := viewOf(ctx, b.Ledger)
	if err != nil {
		return Account{}, err
	}
	list, err := b.Ledger.Line(ctx, p.Series, p.Month, p.Month)
	if err != nil {
		return Account{}, err
	}
	l, err := v.placed(p.Series)
	if err != nil {
		return Account{}, err
	}
	if len(list) == 0 && l.version.Number == 0 {
		return Account{}, fmt.Errorf("%s has no type %s: %w", p.Workspace, p.Type, ErrNotFound)
	}
	a := Account{Month: Month{Head: Head{Period: p}, Pointer: Pointer{Period: p}}}
	if len(list) > 0 {
		a.Month = list[0]
	}
	a.Cell = l.cell(p.Month, a.Month, now)
	if at := a.Pointer; at.Version > 0 {
		a.say("version %d is published and current since %s%s", at.Version, instant(at.MovedAt), of(at.Reason != "", ": rolled back by %s: %s", at.MovedBy, at.Reason))
	}
	switch latest, ok := a.Latest(); {
	case !ok:
		err = b.never(ctx, &a, l, now)
	case latest.Version != a.Pointer.Version && !(latest.State == Published && a.Pointer.Version > 0):
		err = b.stands(ctx, &a, latest)
	}
	if a.Cell.Late {
		a.say("it is late: nothing of it is published")
	}
	return a, err
}

func (a *Account) say(format string, args ...any) {
	a.Why = append(a.Why, fmt.Sprintf(format, args...))
}

func of(when bool, format string, args ...any) string {
	if !when {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// never says why a month has no version.
func (b Board) never(ctx context.Context, a *Account, l line, now time.Time) error {
	month := a.Head.Month
	_, end := month.Bounds(l.zone)
	switch why := l.policy(month); {
	case month.Before(l.version.Start):
		a.say("never planned: the definition starts in %s", l.version.Start)
	case why.Reason != "":
		a.say("never planned: %s", why.Text)
	case now.Before(end):
		a.say("not planned yet: the month ends at %s, and it is %s", instant(end), instant(now))
	case now.Before(l.lookAt(month)):
		a.say("not planned yet: its source is complete at %s at the earliest, and it is %s", instant(l.lookAt(month)), instant(now))
	default:
		row, err := b.Ledger.Series(ctx, l.Series)
		if errors.Is(err, ErrNotFound) {
			a.say("not planned yet: no planner has come since the type was defined")
			return nil
		}
		if err != nil {
			return err
		}
		a.say("not planned yet: the planner has come to %s and goes on at %s", row.Next, instant(row.PlanAt))
	}
	return nil
}

// stands says how the latest version stands that is not the current one.
func (b Board) stands(ctx context.Context, a *Account, r Run) error {
	name := fmt.Sprintf("version %d", r.Version)
	switch r.State {
	case Planned:
		return b.waits(ctx, a, r, name)
	case Queued:
		a.say("%s is queued since %s: its job %d is about to start", name, instant(r.ClaimedAt), r.Job)
	case Running:
		a.say("%s is being generated since %s: attempt %d, %d chunks, %d rows", name, instant(r.StartedAt), r.Attempts, r.Cursor.Chunk, r.Cursor.Rows)
	case Validating:
		a.say("%s is being validated: attempt %d, %d chunks, %d rows", name, r.Attempts, r.Cursor.Chunk, r.Cursor.Rows)
	case Failed:
		if r.Final() {
			a.say("%s failed for good at %s: %s: %s", name, instant(r.SettledAt), r.ErrorCode, r.ErrorText)
		} else {
			a.say("%s failed and is tried again at %s: failure %d of %d, %s: %s", name, instant(r.NextAt), r.Failures, MaxFailures, r.ErrorCode, r.ErrorText)
		}
		a.checks(r)
	case Skipped:
		if r.Reason == ReasonLoading {
			a.say("%s is loading since %s: %s; the planner looks again by itself", name, instant(r.CreatedAt), r.ReasonText)
		} else {
			a.say("%s was skipped at %s: %s", name, instant(r.CreatedAt), r.ReasonText)
		}
	case Cancelled:
		a.say("%s was cancelled at %s by %s: %s%s", name, instant(r.SettledAt), r.CancelledBy, r.Reason, of(r.ReasonText != "", ": %s", r.ReasonText))
	case Published:
		a.say("%s is published", name)
	}
	return nil
}

// checks names the checks of the verdict that stood in the way, where the failure is theirs.
func (a *Account) checks(r Run) {
	if r.Verdict == nil || r.FailedIn != Validating && r.Mode != Single {
		return
	}
	for _, c := range r.Verdict.Checks {
		if !c.ok() {
			a.say("check %s: expected %s, found %s", c.Name, c.Expected, c.Found)
		}
	}
}

// waits says what a planned version waits for.
func (b Board) waits(ctx context.Context, a *Account, r Run, name string) error {
	ahead, err := b.Ledger.Planned(ctx, r.Owner, r.Backfill, queueShown)
	if err != nil {
		return err
	}
	caps, err := b.Ledger.Caps(ctx, r.Owner)
	if err != nil {
		return err
	}
	text := "a slot"
	if n := slices.Index(ahead, r.ID()); n >= 0 {
		a.Ahead = &n
		text = fmt.Sprintf("a slot, with %d before it", n)
	}
	slots := fmt.Sprintf("owner %s has %d of %d slots taken", r.Owner, len(caps.Slots), caps.Cap)
	if r.Backfill {
		slots += fmt.Sprintf(", %d of %d for backfills", len(caps.Backfills), caps.Backfill)
	}
	a.say("%s is planned since %s and waits for %s; %s", name, instant(r.CreatedAt), text, slots)
	return nil
}
