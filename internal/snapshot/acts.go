package snapshot

import (
	"context"
	"fmt"

	"almanac/internal/input"
)

// RetryNow makes a scheduled retry due at once.
func (e *Editor) RetryNow(ctx context.Context, id, why, by string) (Run, error) {
	if err := needReason(why); err != nil {
		return Run{}, err
	}
	for try := 0; ; try++ {
		r, err := e.Ledger.Run(ctx, id)
		if err != nil {
			return r, err
		}
		if r.State != Failed || r.NextAt.IsZero() {
			return r, &Conflict{Event: string(RetryNow), Why: "the run is " + describe(r) + "; only a failed run that waits for its next attempt can be retried now", Run: &r}
		}
		now := e.Clocks.Wall()
		err = e.Ledger.RetryNow(ctx, r, now, e.audit(id, by, "retry now", why, "next attempt "+instant(r.NextAt), "next attempt "+instant(now)))
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue
		}
		if err != nil {
			return r, err
		}
		ask(ctx, e.Dispatch, e.Log)
		return e.Ledger.Run(ctx, id)
	}
}

// Cancel cancels a run that has not settled, frees its slot and stops its job. What it has written stays until the
// reconciler removes it; nothing of it will be published.
func (e *Editor) Cancel(ctx context.Context, id, why, by string) (Run, error) {
	if err := needReason(why); err != nil {
		return Run{}, err
	}
	a := e.audit(id, by, "cancel", why, "", string(Cancelled))
	r, err := cancel(ctx, e.Ledger, id, Cancellation{Reason: ReasonOperator, Text: why, By: by, At: a.At, Audit: &a})
	if err != nil {
		return r, err
	}
	stopJob(ctx, e.Jobs, r, "cancelled by "+by, e.Log)
	r, _ = stopQuery(ctx, e.Ledger, e.Queries, r, e.Log)
	ask(ctx, e.Dispatch, e.Log)
	return r, nil
}

// RollBack makes an earlier published version of a period the current one again. It is refused while a version is under
// way (case N16): that one was, or will be, compared with the version that is current now.
func (e *Editor) RollBack(ctx context.Context, p Period, version int, why, by string) (Pointer, error) {
	if err := needReason(why); err != nil {
		return Pointer{}, err
	}
	for try := 0; ; try++ {
		read, to, err := e.rollable(ctx, p, version)
		if err != nil {
			return read, err
		}
		a := e.audit(to.ID(), by, "roll back", why, fmt.Sprintf("version %d", read.Version), fmt.Sprintf("version %d", version))
		err = e.Ledger.RollBack(ctx, read, to, a)
		if IsConflict(err) && ctx.Err() == nil && try < rereads {
			continue
		}
		if err != nil {
			return read, err
		}
		return e.Ledger.Pointer(ctx, p)
	}
}

// rollable reads the pointer and the version that it is to point at, and refuses what cannot be rolled back.
func (e *Editor) rollable(ctx context.Context, p Period, version int) (read Pointer, to Run, err error) {
	refused := func(why string, args ...any) error {
		return &Conflict{Event: "roll back", Why: fmt.Sprintf(why, args...), Pointer: &read}
	}
	head, err := e.Ledger.Head(ctx, p)
	if err != nil {
		return read, to, err
	}
	if read, err = e.Ledger.Pointer(ctx, p); err != nil {
		return read, to, err
	}
	switch {
	case version < 1 || version > MaxVersions:
		return read, to, input.Problems{input.Wrong("version", fmt.Sprint(version), "the number of a published version")}
	case head.Active != 0:
		return read, to, active(ctx, e.Ledger, "roll back", head)
	case read.Version == 0:
		return read, to, refused("nothing of %s is published", p.Month)
	case read.Version == version:
		return read, to, refused("version %d is the current one already", version)
	}
	to, err = e.Ledger.Run(ctx, Run{Period: p, Version: version}.ID())
	if err == nil && to.State != Published {
		err = refused("version %d is %s; only a published version can become the current one", version, settledAs(to))
	}
	return read, to, err
}
