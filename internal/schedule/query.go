package schedule

import (
	"context"

	"almanac/internal/source"
)

// QueryToken names the n-th query of a run. A schedule's run has one generation.
func QueryToken(r Run, n int) string { return source.RunToken(r.ID(), r.Version, 1, n) }

// A query that runs longer than an invocation is waited for by yields (table A), not by releases: its engine makes the
// progress that a yield wants, and attempts are for failures. Both its time-out and the number of yields bound it.

func (w *work) ticket() *source.Ticket {
	recorded := source.Recorded{ID: w.run.QueryID, Number: w.run.QueryNumber, Ended: w.run.QueryEnded}
	return recorded.Ticket(func(n int) string { return QueryToken(w.run, n) }, func(ctx context.Context, q source.Recorded) error {
		if err := w.Ledger.RecordQuery(ctx, w.run, w.now(), q.ID); err != nil {
			return err
		}
		w.run.QueryID, w.run.QueryNumber, w.run.QueryEnded = q.ID, q.Number, false
		w.log.Info("query started", "query", q.ID, "number", q.Number)
		return nil
	})
}

// learn takes over what became of the run's query. It is recorded by the write that ends the use of it: with the file,
// with the release after a failure that may pass, with the settle.
func (w *work) learn(t *source.Ticket) {
	if !t.Ended {
		return
	}
	w.answered = true
	w.charge(t.Cost)
	if t.Over {
		w.run.QueryEnded = true
	}
}

func (w *work) charge(c source.Cost) {
	w.cost = w.cost.Add(c)
	w.run.QueryCost = w.run.QueryCost.Add(c)
}

// charged counts what queries have cost, once it is recorded.
func (w *work) charged() {
	w.cost.Count(w.Count)
	w.cost = source.Cost{}
}

// stopQuery ends the query of a run that is about to fail, if one may run. That it cannot be ended keeps no run from
// failing: its engine's own time-out and scan limit bound it. schedule-exhaust asks no sources: what it settles has
// waited for hours.
func (w *work) stopQuery(ctx context.Context) {
	stopper, ok := w.Sources.(source.Stopper)
	if !ok || w.answered || w.run.QueryID == "" || w.run.QueryEnded || w.run.File != nil || w.def.Number == 0 {
		return
	}
	cost, err := stopper.Stop(ctx, w.def.Source, w.def.Workspace, w.run.QueryID)
	if err != nil {
		w.log.Warn("the query could not be stopped", "query", w.run.QueryID, "error", err.Error())
		return
	}
	w.answered = true
	w.charge(cost)
	w.log.Info("query stopped", "query", w.run.QueryID)
}
