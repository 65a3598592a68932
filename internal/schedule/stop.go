package schedule

import (
	"context"
	"fmt"
)

// StopLedger is what stopping a run asks of the store.
type StopLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	// AskToStop notes the wish on an open run, in one transaction with its audit; a run that changed since it was read is
	// a Conflict.
	AskToStop(ctx context.Context, r Run, a Audit) error
}

// Stop asks an open run to end. Its holder finds the wish before the next recipient, or whoever takes the run next finds
// it, and fails the run as stopped_by_operator; what has been sent by then stays sent. A second ask changes nothing: the
// first one stands. A settled run is a Conflict that carries it.
func (e *Editor) Stop(ctx context.Context, id, reason, by string) (Run, error) {
	if ps := needReason(reason); ps != nil {
		return Run{}, ps
	}
	a := e.audit(id, by, "stop", reason, "", "asked to stop")
	for try := 0; ; try++ {
		r, err := e.Ledger.Run(ctx, id)
		switch {
		case err != nil:
			return r, err
		case r.Settled():
			return r, &Conflict{Event: "stop", Why: fmt.Sprintf("the run is settled as %s; only a run that is queued or running can be stopped", r.State), Run: &r}
		case r.StopBy != "":
			return r, nil
		}
		a.Before = string(r.State)
		if err = e.Ledger.AskToStop(ctx, r, a); retry(ctx, err, try) {
			continue // it was begun or settled between read and write
		}
		if err != nil {
			return r, err
		}
		return e.Ledger.Run(ctx, id)
	}
}
