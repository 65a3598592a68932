package snapshot

import (
	"context"
	"errors"
	"io"
	"slices"

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
		case errors.Is(err, source.ErrRunning):
			return false, nil // its engine makes progress: the next call waits for the same query
		case err != nil && w.run.Cursor.Chunk > before && outlasted(ctx, err):
			return false, nil // the call's time, or the query's, was up; chunks were committed, the next call goes on
		case err != nil:
			return false, w.timely(ctx, err)
		case !w.run.Cursor.Done:
			return false, nil
		default:
			w.read = true
		}
	}
	return true, nil
}

// outlasted reports whether time was all that was lacking.
func outlasted(ctx context.Context, err error) bool {
	return failure.Is(err, failure.QueryTimeout) || ctx.Err() != nil
}

// feed is the rows that a scan reads.
type feed struct {
	rows     source.Rows
	shape    shape
	after    Key    // they come after it
	maxBytes int64  // of their cells
	version  string // of the source
}

// scan reads the rows after the cursor once and commits chunk after chunk, until there are no more or time is up.
func (w *work) scan(ctx context.Context) error {
	open := w.openRange
	if w.apart {
		open = w.openResult
	}
	in, err := open(ctx)
	if err != nil {
		return err
	}
	defer in.rows.Close()
	p := w.startPress(ctx)
	err = w.cut(ctx, p, in)
	if stopped := p.finish(); stopped != nil {
		err = stopped
	}
	w.run.Cursor = p.run.Cursor
	return err
}

// openRange asks for the rows after the cursor.
func (w *work) openRange(ctx context.Context) (*feed, error) {
	d, r := w.def.Definition, w.run
	sh, err := w.shape(ctx)
	if err != nil {
		return nil, err
	}
	at, limits, err := w.place()
	if err != nil {
		return nil, err
	}
	q := source.Query{SQL: rowsSQL(w.view, d.Query, d.Key, sh.keyType, at.Kind != NoKey), Params: params(r, d, d.Query), Limits: limits}
	if at.Kind != NoKey {
		q.Params[cursorParam] = at.Param()
	}
	rows, err := w.view.Open(ctx, q)
	if err != nil {
		return nil, err
	}
	return &feed{rows, sh, at, limits.Or(source.Defaults).Bytes, w.view.Version()}, nil
}

// place is the cursor's key, and the limits of the rows after it.
func (w *work) place() (Key, source.Limits, error) {
	at, err := DecodeKey(w.run.Cursor.Key)
	if err != nil {
		return at, source.Limits{}, err
	}
	limits, err := w.def.limits(w.run.Cursor.Rows)
	return at, limits, err
}

// cut writes the rows as chunks for the press, until there are no more or time is nearly up: chunks that are under way are
// to be stored and committed within it.
func (w *work) cut(ctx context.Context, p *press, in *feed) error {
	cut, cursor, at := &cutter{rows: in.rows}, w.run.Cursor, in.after
	for begun := 0; ; begun++ {
		if !p.turn() {
			return nil // the press tells why
		}
		if cursor.Chunk >= MaxChunks {
			return failure.New(failure.DefinitionInvalid, "the month has %d chunks, as many as it may have, and is not at its end: raise chunk_rows, which is %d", cursor.Chunk, w.def.ChunkRows)
		}
		if begun > 0 && (!w.timeLeft(ctx) || w.left(ctx) < p.needs(begun)+w.Timing.TickReserve.Std()) {
			return nil
		}
		c := p.begin(chunkKey(w.run, w.def.Format, cursor.Chunk, w.Token()))
		rows := &window{cutter: cut, tally: newTally(in.shape, at), left: w.chunkRows()}
		chunk, place, more, err := w.write(ctx, c, rows, in, cursor.Chunk)
		if chunk.Number == 0 {
			chunk.Columns, chunk.Source = in.shape.columns, in.version
		}
		at = rows.tally.lastKey()
		cursor = Cursor{Chunk: cursor.Chunk + 1, Key: EncodeKey(at), Rows: cursor.Rows + chunk.Rows, Done: !more, Place: place}
		c.close(chunk, cursor, err)
		if err != nil || !more {
			return err
		}
	}
}

// write writes a chunk's rows as a file, and looks whether more follow. A generation ends with a chunk that says so; where
// rows vanished after the cursor, with an empty one.
func (w *work) write(ctx context.Context, to io.Writer, rows *window, in *feed, number int) (c Chunk, place int64, more bool, err error) {
	if err := w.def.Format.write(ctx, to, rows, &in.shape, number, in.maxBytes); err != nil {
		return c, 0, false, err
	}
	c.Number = number
	rows.tally.record(&c)
	if at, ok := in.rows.(source.Placed); ok {
		place = at.Place() // before the row that is read ahead
	}
	more, err = rows.more(ctx)
	return c, place, more, err
}

// chunkRows is how many rows a chunk takes; a single pass is one chunk, so that no part of it is ever from another view of
// the source.
func (w *work) chunkRows() int64 {
	switch {
	case w.run.Mode == Single:
		return -1
	case w.def.ChunkRows == 0:
		return DefaultChunkRows
	}
	return w.def.ChunkRows
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
	return w.sameShape(ctx, columns, sums)
}

// sameShape is the shape of the month's rows, which must be that of its first chunk.
func (w *work) sameShape(ctx context.Context, columns []source.Column, sums []string) (shape, error) {
	sh, err := shapeOf(w.def.Definition, columns, sums)
	if err != nil || w.run.Cursor.Chunk == 0 {
		return sh, err
	}
	first, err := w.Ledger.Chunks(ctx, w.run.ID(), w.run.Generation, 0, 1)
	if err != nil {
		return sh, err
	}
	if len(first) == 0 || !slices.EqualFunc(first[0].Columns, sh.columns, func(a, b Column) bool { return a.Name == b.Name && a.Type == b.Type }) {
		return sh, failure.New(failure.SourceChanged, "the query has other columns than when chunk 0 was written: the next attempt reads the changed source from the first chunk on")
	}
	return sh, sh.as(first[0].Columns)
}
