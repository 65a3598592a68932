package snapshot

import (
	"context"
	"errors"
	"slices"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Generate reads the month's rows after the cursor and commits them in chunks: the object first, under a key of its own,
// then its record and the cursor in one transaction. The source is read once per call, in the order of the key, for as
// many chunks as the call's time allows; done is false while rows are left. In single mode one call reads rows and
// control query in one view of the source, and goes on to publish.
func (s *Steps) Generate(ctx context.Context, j Job) (Result, error) {
	return s.do(ctx, "generate", j, func(w *work, ctx context.Context) (bool, error) {
		if w.run.State == Queued { // its start was never seen to succeed
			if err := w.start(ctx, ""); err != nil {
				return false, err
			}
		}
		if w.run.State != Running {
			return true, nil
		}
		if w.run.Cursor.Chunk > 0 {
			r, err := w.Ledger.Resume(ctx, w.run)
			if err != nil {
				return false, w.changed(ctx, err)
			}
			w.run = r
		}
		done, err := w.generate(ctx)
		if err != nil || !done || w.run.Mode != Single || w.run.State != Running {
			return done, err
		}
		if _, err := w.validate(ctx); err != nil {
			return false, err
		}
		return true, w.publish(ctx)
	})
}

// generate scans the source, again where another invocation of this job moved the cursor meanwhile.
func (w *work) generate(ctx context.Context) (done bool, err error) {
	for w.run.State == Running && !w.run.Cursor.Done {
		if err := w.hold(ctx); err != nil {
			return false, err
		}
		before := w.run.Cursor.Chunk
		err := w.scan(ctx)
		var moved *Conflict
		switch {
		case errors.As(err, &moved):
			if err := w.changed(ctx, err); err != nil {
				return false, err
			}
		case err != nil && w.run.Cursor.Chunk > before && outlasted(ctx, err):
			return false, nil // the call's time, or the query's, was up; chunks were committed, the next call goes on
		case err != nil:
			return false, w.timely(ctx, err)
		case !w.run.Cursor.Done:
			return false, nil
		}
	}
	return true, nil
}

// outlasted reports whether time was all that was lacking.
func outlasted(ctx context.Context, err error) bool {
	return failure.Is(err, failure.QueryTimeout) || ctx.Err() != nil
}

// scan reads the rows after the cursor once and commits chunk after chunk, until there are no more or time is up.
func (w *work) scan(ctx context.Context) error {
	d, r := w.def.Definition, w.run
	sh, err := w.shape(ctx)
	if err != nil {
		return err
	}
	at, err := DecodeKey(r.Cursor.Key)
	if err != nil {
		return err
	}
	limits, err := d.limits(r.Cursor.Rows)
	if err != nil {
		return err
	}
	q := source.Query{SQL: rowsSQL(d.Query, d.Key, at.Kind != NoKey), Params: params(r, d, d.Query), Limits: limits}
	if at.Kind != NoKey {
		q.Params[cursorParam] = at.Param()
	}
	rows, err := w.view.Open(ctx, q)
	if err != nil {
		return err
	}
	defer rows.Close()
	cut := &cutter{rows: rows}
	writer := &chunkWriter{objects: w.Objects, maxBytes: limits.Or(source.Defaults).Bytes}
	for longest := time.Duration(0); ; {
		began := w.Clocks.Wall()
		if err := w.chunk(ctx, writer, cut, sh, at); err != nil {
			return err
		}
		if w.run.Cursor.Done {
			return nil
		}
		if at, err = DecodeKey(w.run.Cursor.Key); err != nil {
			return err
		}
		longest = max(longest, w.Clocks.Wall().Sub(began))
		if !w.timeLeft(ctx) || w.left(ctx) < 2*longest+w.Timing.TickReserve.Std() {
			return nil
		}
	}
}

// chunk writes and commits the next chunk. A generation ends with a chunk that says so; where rows vanished after the
// cursor, with an empty one.
func (w *work) chunk(ctx context.Context, writer *chunkWriter, cut *cutter, sh shape, at Key) error {
	n, size := w.run.Cursor.Chunk, w.def.ChunkRows
	if size == 0 {
		size = DefaultChunkRows
	}
	if w.run.Mode == Single {
		size = -1 // one chunk, so that no part of it is ever from another view of the source
	}
	rows := &window{cutter: cut, tally: newTally(sh, at), left: size}
	c, err := writer.write(ctx, chunkKey(w.run, n, w.Token()), rows)
	if err != nil {
		return err
	}
	more, err := cut.more(ctx)
	if err != nil {
		return err
	}
	c.Number = n
	if n == 0 {
		c.Columns = sh.columns
	}
	to := Cursor{Chunk: n + 1, Key: EncodeKey(rows.tally.lastKey()), Rows: w.run.Cursor.Rows + c.Rows, Done: !more}
	if err := w.Ledger.Commit(ctx, w.run, c, to, w.Clocks.Wall()); err != nil {
		return err
	}
	w.run.Cursor = to
	w.Count("snapshot_rows", int(c.Rows), "", string(w.run.Mode))
	return nil
}

// shape asks for the columns of query and control query, and checks that the month's are those of its first chunk.
func (w *work) shape(ctx context.Context) (shape, error) {
	d := w.def.Definition
	columns, err := columnsOf(ctx, w.view, w.run, d, d.Query)
	if err != nil {
		return shape{}, err
	}
	of, err := columnsOf(ctx, w.view, w.run, d, d.Control)
	if err != nil {
		return shape{}, err
	}
	sums, err := controlled(of)
	if err != nil {
		return shape{}, err
	}
	sh, err := shapeOf(d, columns, sums)
	if err != nil || w.run.Cursor.Chunk == 0 {
		return sh, err
	}
	first, err := w.Ledger.Chunks(ctx, w.run.ID(), w.run.Generation, 0, 1)
	if err != nil {
		return sh, err
	}
	if len(first) == 0 || !slices.Equal(first[0].Columns, sh.columns) {
		return sh, failure.New(failure.SourceChanged, "the query has other columns than when chunk 0 was written: the next attempt reads the changed source from the first chunk on")
	}
	return sh, nil
}
