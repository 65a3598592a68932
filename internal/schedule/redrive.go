package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"almanac/internal/failure"
)

// RedriveLedger is what redriving a dead letter asks of the store.
type RedriveLedger interface {
	DeadLetter(ctx context.Context, id string) (DeadLetter, error)
	// Redriven notes on a dead letter that a person had it read again, in one transaction with its audit. One that is gone
	// is a Conflict.
	Redriven(ctx context.Context, id string, a Audit) error
}

// Redrive reads a dead letter again, as one that an earlier version of the product could not read, and does what it asks
// for: an open run that nobody holds is offered again, a resend too. Where nothing is to be done a Conflict says what
// would help; nothing is audited then.
func (e *Editor) Redrive(ctx context.Context, id, reason, by string) (DeadLetter, error) {
	if ps := needReason(reason); ps != nil {
		return DeadLetter{}, ps
	}
	d, err := e.Ledger.DeadLetter(ctx, id)
	if err != nil {
		return d, err
	}
	no := func(r *Run, format string, args ...any) (DeadLetter, error) {
		return d, &Conflict{Event: "redrive", Why: fmt.Sprintf(format, args...), Run: r}
	}
	m, err := DecodeMessage(d.Body)
	switch {
	case err != nil:
		return no(nil, "nobody can read it: %s; find its sender", failure.From(err).Message)
	case m.Notice != "":
		return no(nil, "it names the notice %s: what is left of it the sweep has sent", m.Notice)
	}
	send, what := e.Queue.SendResends, m.Resend
	if m.Run != "" {
		r, err := e.Ledger.Run(ctx, m.Run)
		switch {
		case errors.Is(err, ErrNotFound):
			return no(nil, "it names run %s, which is not there (any more)", m.Run)
		case err != nil:
			return d, err
		case r.Settled():
			return no(&r, "its run is settled as %s; retry as new makes new work", r.State)
		case r.LeaseLive(e.Clocks.Wall()):
			return no(&r, "a worker holds its run until %s; the sweep offers it again after that", r.LeaseEnd.UTC().Format(time.RFC3339))
		}
		send, what = e.Queue.Send, m.Run
	}
	a := e.audit("dead letter "+id, by, "redrive", reason, d.Reason, "offered "+what)
	if err := e.Ledger.Redriven(ctx, id, a); err != nil {
		return d, err
	}
	// A message is only a hint: whoever takes it finds by the row whether it is still wanted.
	if left := offer(ctx, send, []string{what}, e.Log); left > 0 {
		return d, failure.New(failure.StoreUnavailable, "the queue did not take the message; asking again is safe")
	}
	return e.Ledger.DeadLetter(ctx, id)
}
