package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Months of an engine whose queries go on without their caller and are paid for by what they scan (source.Apart: Athena).
//
// A generation asks ONE query for its rows: the definition's, in the order of the key. Its id stands on the run before anybody
// waits for it, its result stays for days, and each call of the step reads on where the last chunk ended: at the byte of the
// result that stands in the cursor. The control query is another query of its own, asked once the rows are whole, as of any
// source. So a month is paid for twice, whatever number of chunks, calls and deaths it takes: both queries scan its partition
// once.
//
// Why not a query for each chunk's range of keys, as of the other engines: a range of keys prunes no partition, so that each
// query scans the whole month again. A month of 5,000,000 rows has 100 chunks, and would be paid for 100 times. Why not one
// UNLOAD whose files become chunks: its files "are not sorted relative to each other"
// (https://docs.aws.amazon.com/athena/latest/ug/unload.html), so that there is no cursor, no order between chunks, and no size
// of theirs that we choose; they would have to be read and written again for sums, NULLs and keys to be counted, and a query
// that UNLOADs needs the right to write. The result that every SELECT leaves is one object in the order asked for.
//
// Why a byte and not a key to go on at: to skip the rows before the cursor each call would read the result's head again, and
// reading rows alone takes a quarter to a half of the time of making chunks of them (measured: 400,000 rows of five columns in
// 0.44 to 0.89 s of 1.66 s), so that a month of n calls would spend n/8 of its time and more on it. From the byte on each byte
// is read once, so that ten times the rows are ten times the work, at the memory of one row, one file's buffers and the
// reader's 256 KiB. What is read is one object under one query's id, which nobody writes again; keys must increase over the
// cut all the same.
//
// What such an engine does not give is one view for several queries. So there is no single pass, and "auto" means chunks. It
// follows also that a query without rows cannot be asked for its columns for nothing: which columns the control query sums is
// not known while rows are read, so that all numbers are summed.

// Purposes of a generation's queries.
const (
	forRows    = "rows"
	forControl = "control"
)

// MaxSummed bounds the columns of numbers of such a month: each chunk's record holds a sum of each, and must stay small.
const MaxSummed = 300

// QueryToken names the n-th query of a run in its present generation.
func (r Run) QueryToken(n int) string { return source.RunToken(r.ID(), r.Definition, r.Generation, n) }

func (r Run) purpose(what string) string { return fmt.Sprintf("%d %s", r.Generation, what) }

// recorded is the run's query of a purpose of its present generation.
func (r Run) recorded(what string) source.Recorded {
	out := source.Recorded{Number: r.Query.Number}
	if r.Query.For == r.purpose(what) {
		out.ID, out.Ended = r.Query.ID, r.Query.Ended
	}
	return out
}

// torn reports that chunks were cut from a result that is gone.
func (r Run) torn() bool {
	return r.Cursor.Chunk > 0 && r.Query.For == r.purpose(forRows) && r.Query.Ended
}

// openQuery opens the run's query of a purpose: the recorded one, or the next where there is none. It is left running when the
// call's time is nearly up.
func (w *work) openQuery(ctx context.Context, what string, q source.Query, from int64) (source.Rows, error) {
	t := w.run.recorded(what).Ticket(w.run.QueryToken, func(ctx context.Context, next source.Recorded) error {
		return w.recordQuery(ctx, Query{Number: next.Number, For: w.run.purpose(what), ID: next.ID})
	})
	t.From = from
	if end, ok := ctx.Deadline(); ok {
		t.Until = end.Add(-w.Timing.TickReserve.Std())
	}
	q.Ticket = t
	rows, err := w.view.Open(ctx, q)
	if noted := w.learn(ctx, t); noted != nil {
		if err == nil {
			rows.Close()
		}
		return nil, noted
	}
	return rows, err
}

func (w *work) recordQuery(ctx context.Context, q Query) error {
	err := w.Ledger.RecordQuery(ctx, w.run, q)
	if err == nil {
		w.run.Query = q
		w.log.Info("query started", "query", q.ID, "number", q.Number, "for", q.For)
		return nil
	}
	var refused *Conflict
	if errors.As(err, &refused) && refused.Run != nil && unwanted(*refused.Run, q) {
		if _, err := w.stop(ctx, q.ID); err != nil {
			w.log.Warn("a query that nobody waits for could not be stopped", "query", q.ID, "error", err.Error())
		}
	}
	return err
}

// unwanted reports that a query was started for nobody: its run has settled, or has another one for the same. A run that is to
// be tried again finds it by its token.
func unwanted(r Run, q Query) bool {
	return r.Final() || r.Query.For == q.For && r.Query.Number >= q.Number && r.Query.ID != q.ID
}

// learn notes what became of the run's query.
func (w *work) learn(ctx context.Context, t *source.Ticket) error {
	known := w.run.Query
	if !t.Ended || known.ID != t.ID || known.Noted && (known.Ended || !t.Over) {
		return nil
	}
	r, err := w.Ledger.NoteQuery(ctx, w.run, t.Over, t.Cost)
	if err != nil {
		return err // where another call of this job has noted it, the caller begins again from what stands there now
	}
	w.run.Query, w.run.QueryCost = r.Query, r.QueryCost // the cursor stays the one that was read on from
	if !known.Noted {
		t.Cost.Count(w.Count)
	}
	return nil
}

// openResult opens the generation's result at the cursor.
func (w *work) openResult(ctx context.Context) (*feed, error) {
	if w.run.Cursor.Chunk > 0 && !w.run.recorded(forRows).Open() {
		return nil, failure.New(failure.SourceChanged, "the result that %d chunks were cut from is gone: the next attempt asks the source again, from the first chunk on", w.run.Cursor.Chunk)
	}
	at, limits, err := w.place()
	if err != nil {
		return nil, err
	}
	d, r := w.def.Definition, w.run
	rows, err := w.openQuery(ctx, forRows, source.Query{SQL: rowsSQL(w.view, d.Query, d.Key, source.Unknown, false), Params: params(r, d, d.Query), Limits: limits}, r.Cursor.Place)
	if err != nil {
		return nil, err
	}
	sh, err := w.shapeOfResult(ctx, rows.Columns())
	if err != nil {
		rows.Close()
		return nil, err
	}
	return &feed{rows, sh, at, limits.Or(source.Defaults).Bytes, w.run.Query.ID}, nil
}

func (w *work) shapeOfResult(ctx context.Context, columns []source.Column) (shape, error) {
	var numbers []string
	for _, c := range columns {
		switch c.Type {
		case source.Integer, source.Real, source.Decimal, source.Boolean:
			numbers = append(numbers, c.Name)
		}
	}
	if len(numbers) > MaxSummed {
		return shape{}, failure.New(failure.DefinitionInvalid, "the query has %d columns of numbers; want at most %d, each of which is summed: cast those that nobody sums to text", len(numbers), MaxSummed)
	}
	return w.sameShape(ctx, columns, numbers)
}

// control asks the control query.
func (w *work) control(ctx context.Context) (Control, error) {
	open := w.view.Open
	if w.apart {
		open = func(ctx context.Context, q source.Query) (source.Rows, error) {
			return w.openQuery(ctx, forControl, q, 0)
		}
	}
	for {
		c, err := control(ctx, open, w.run, w.def.Definition)
		switch {
		case err == nil || errors.Is(err, source.ErrRunning):
			return c, err
		case !IsConflict(err):
			return c, w.timely(ctx, err)
		}
		if err := w.changed(ctx, err); err != nil { // otherwise another call of this job has recorded the query
			return c, err
		}
	}
}

// summed refuses a control query that names what was not summed: of other engines that is known before rows are read.
func (w *work) summed(f *fold, c Control) error {
	if !w.apart {
		return nil
	}
	for _, name := range c.Columns {
		if _, ok := f.sums[name]; !ok {
			return failure.New(failure.DefinitionInvalid, "the control query names the column %q, which is no column of numbers of the query", failure.Cut(name, 80))
		}
	}
	return nil
}

// validated is the version of the source that the control query read: of an engine that has none, the query's id.
func (w *work) validated() string {
	if w.apart {
		return w.run.Query.ID
	}
	return w.view.Version()
}

// stop ends a query of the run's source.
func (w *work) stop(ctx context.Context, id string) (source.Cost, error) {
	queries, ok := w.Sources.(source.Stopper)
	if !ok {
		return source.Cost{}, failure.New(failure.InternalError, "source %q has no queries that can be stopped", w.def.Source)
	}
	return queries.Stop(ctx, w.def.Source, w.run.Workspace, id)
}

// stopQuery ends the query of a run that is about to fail, and that no later attempt waits for.
func (w *work) stopQuery(ctx context.Context) {
	queries, ok := w.Sources.(source.Stopper)
	if !ok {
		return
	}
	r, cost := stopQuery(ctx, w.Ledger, queries, w.run, w.log)
	w.run = r
	cost.Count(w.Count)
}

// stopQuery ends the query that may run for a run which nobody waits for any more, and notes its cost. That it cannot be ended
// keeps no run from settling: its engine's own time-out and scan limit bound it. What the dispatcher and the reconciler
// settle, whose jobs were lost, is left to those too.
func stopQuery(ctx context.Context, ledger QueryLedger, queries source.Stopper, r Run, log *slog.Logger) (Run, source.Cost) {
	if queries == nil || r.Query.ID == "" || r.Query.Ended || r.Query.Noted {
		return r, source.Cost{}
	}
	noted, cost, err := endQuery(ctx, ledger, queries, r)
	if err != nil {
		log.Warn("the query could not be stopped", "run", r.ID(), "query", r.Query.ID, "error", err.Error())
		return r, source.Cost{}
	}
	log.Info("query stopped", "run", r.ID(), "query", r.Query.ID)
	return noted, cost
}

func endQuery(ctx context.Context, ledger QueryLedger, queries source.Stopper, r Run) (Run, source.Cost, error) {
	v, err := ledger.Definition(ctx, r.Scope, r.Type, r.Definition)
	if err != nil {
		return r, source.Cost{}, err
	}
	cost, err := queries.Stop(ctx, v.Source, r.Workspace, r.Query.ID)
	if err != nil {
		return r, cost, err
	}
	noted := r
	if r.Admitted() {
		noted, err = ledger.NoteQuery(ctx, r, true, cost)
	} else {
		noted, err = ledger.NoteStopped(ctx, r, cost)
	}
	return noted, cost, err
}
