package schedule

import (
	"context"
	"strconv"

	"almanac/internal/source"
)

// QueryStopper is what Sources are besides whose engines' queries go on without their caller.
type QueryStopper interface {
	// Stop ends a query that nobody waits for any more. One that has ended stays as it is.
	Stop(ctx context.Context, name, workspace, id string) (source.Cost, error)
}

// QueryToken names the n-th query of a run, by the definition version that asks it and never by the attempt: who comes
// later finds the query that runs (design.md §4). A schedule's run has one generation.
func QueryToken(r Run, n int) string {
	return source.TokenOf(r.ID(), strconv.Itoa(r.Version), "1", strconv.Itoa(n))
}

// A query that runs longer than an invocation is waited for by yields (table A), not by releases: its engine makes the
// progress that a yield wants, and attempts are for failures. Both its time-out and the number of yields bound it.

// ticket names the run's query: the one that is recorded, or the next one where there is none, or where that has ended
// without a result.
func (w *work) ticket() *source.Ticket {
	if w.run.QueryID != "" && !w.run.QueryEnded {
		return &source.Ticket{Token: QueryToken(w.run, w.run.QueryNumber), ID: w.run.QueryID}
	}
	number := w.run.QueryNumber + 1
	return &source.Ticket{Token: QueryToken(w.run, number), Record: func(ctx context.Context, id string) error {
		if err := w.Ledger.RecordQuery(ctx, w.run, w.now(), id); err != nil {
			return err
		}
		w.run.QueryID, w.run.QueryNumber, w.run.QueryEnded = id, number, false
		w.log.Info("query started", "query", id, "number", number)
		return nil
	}}
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
	if w.cost.Scanned > 0 {
		w.Count("query_bytes_scanned", int(w.cost.Scanned), "", "")
	}
	if w.cost.Micros > 0 {
		w.Count("query_cost_micros", int(w.cost.Micros), "", "")
	}
	w.cost = source.Cost{}
}

// stopQuery ends the query of a run that is about to fail, if one may run. That it cannot be ended keeps no run from
// failing: its engine's own time-out and scan limit bound it. schedule-exhaust asks no sources: what it settles has
// waited for hours.
func (w *work) stopQuery(ctx context.Context) {
	stopper, ok := w.Sources.(QueryStopper)
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
