package sqlite

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// The engine reads ahead on a goroutine of its own, in batches: writing the file then overlaps with reading the
// source, and Next can give up at its deadline even while SQLite is within one long step.
const (
	batches    = 3         // one being filled, one waiting, one being consumed
	batchRows  = 256       // at most, fewer for wide rows
	batchCells = 4096      // cells of a batch, so that wide rows do not cost more memory
	batchBytes = 256 << 10 // text of a batch, passed by at most one row
	closeWait  = time.Second
)

// batch is a run of rows. Cells' texts lie in buf; where buf has to grow, earlier ones keep its old array alive.
type batch struct {
	cells []source.Value
	buf   []byte
	n     int   // rows
	err   error // what follows the rows: nil, io.EOF or a failure
}

type rows struct {
	conn     *conn
	stmt     uintptr
	columns  []source.Column
	limits   source.Limits
	released func()
	late     *atomic.Int64 // counts the engines that were told to stop, waited for, and have not

	// the engine's side
	count, bytes int64
	rowFrom      int64 // bytes before the present row
	free, full   chan *batch
	done         chan struct{} // closed when the engine has let go of the file

	// why it must stop: the first reason stays
	cause   atomic.Pointer[failure.Failure]
	quit    chan struct{}
	haltMu  sync.Mutex // guards what follows, and conn's memory against a late halt
	halted  bool
	counted bool // in late
	unwatch []func() bool
	cancel  context.CancelFunc

	// the consumer's side
	mu      sync.Mutex
	current *batch
	next    int
	last    error // sticky
	watched source.Watch
}

func newRows(ctx context.Context, c *conn, limits source.Limits, released func(), late *atomic.Int64) *rows {
	r := &rows{conn: c, limits: limits, released: released, late: late, watched: source.Watching(ctx),
		free: make(chan *batch, batches), full: make(chan *batch, batches),
		done: make(chan struct{}), quit: make(chan struct{})}
	timed, cancel := context.WithTimeout(ctx, limits.Timeout)
	r.cancel = cancel
	r.unwatch = append(r.unwatch, context.AfterFunc(timed, func() { r.halt(source.Ended(ctx, limits.Timeout)) }))
	return r
}

// halt stops the engine for a reason; only the first one counts.
func (r *rows) halt(cause *failure.Failure) {
	if !r.cause.CompareAndSwap(nil, cause) {
		return
	}
	r.haltMu.Lock()
	defer r.haltMu.Unlock()
	if !r.halted {
		r.conn.halt()
	}
	close(r.quit)
}

// discard frees the engine. After it, halt touches no memory of SQLite.
func (r *rows) discard() {
	for _, stop := range r.unwatch {
		stop()
	}
	r.cancel()
	r.haltMu.Lock()
	r.halted = true
	r.haltMu.Unlock()
	if r.stmt != 0 {
		r.conn.finalize(r.stmt)
	}
	r.conn.close()
}

// overdue counts an engine that is still at work as late, once.
func (r *rows) overdue() {
	r.haltMu.Lock()
	defer r.haltMu.Unlock()
	if !r.halted && !r.counted {
		r.counted = true
		r.late.Add(1)
	}
}

// caughtUp takes back what overdue counted: the engine has ended after all. Nothing is counted after discard.
func (r *rows) caughtUp() {
	if r.counted {
		r.late.Add(-1)
	}
}

// broken is the failure of an engine's error: the reason for stopping, if that is what broke it.
func (r *rows) broken(err error, p phase, sql string) *failure.Failure {
	if cause := r.cause.Load(); cause != nil {
		return cause
	}
	return r.conn.fail(err, p, sql)
}

// run is the engine's goroutine.
func (r *rows) run() {
	defer close(r.done)
	defer r.caughtUp()
	defer r.released()
	defer r.discard()
	width := len(r.columns)
	depth := max(1, min(batchRows, batchCells/width))
	for range batches {
		r.free <- &batch{}
	}
	for {
		var b *batch
		select {
		case b = <-r.free:
		case <-r.quit:
			return
		}
		if b.cells == nil {
			b.cells = make([]source.Value, depth*width)
		}
		b.n, b.buf = 0, b.buf[:0]
		b.err = r.fill(b, depth)
		end := b.err
		r.full <- b // has room for every batch
		if end != nil {
			return
		}
	}
}

// fill reads rows until the batch is full or the rows end.
func (r *rows) fill(b *batch, depth int) error {
	c, width := r.conn, len(r.columns)
	for b.n < depth && len(b.buf) < batchBytes {
		switch rc := lib.Xsqlite3_step(c.tls, r.stmt); rc {
		case lib.SQLITE_ROW:
		case lib.SQLITE_DONE:
			return io.EOF
		default:
			return r.broken(c.failed(rc), reading, "")
		}
		if r.count++; r.count > r.limits.Rows {
			return source.TooManyRows(r.limits.Rows)
		}
		if err := r.row(b, b.cells[b.n*width:(b.n+1)*width]); err != nil {
			return err
		}
		b.n++
	}
	return nil
}

// row copies the cells of the engine's row.
func (r *rows) row(b *batch, cells []source.Value) error {
	c := r.conn
	r.rowFrom = r.bytes
	for i := range cells {
		v, col := &cells[i], int32(i)
		switch lib.Xsqlite3_column_type(c.tls, r.stmt, col) {
		case lib.SQLITE_NULL:
			v.Kind = source.KindNull
		case lib.SQLITE_INTEGER:
			v.Kind, v.Int = source.KindInt, lib.Xsqlite3_column_int64(c.tls, r.stmt, col)
			r.bytes += 8
		case lib.SQLITE_FLOAT:
			v.Kind, v.Float = source.KindFloat, lib.Xsqlite3_column_double(c.tls, r.stmt, col)
			r.bytes += 8
		case lib.SQLITE_TEXT:
			v.Kind = source.KindText
			v.Text = r.copy(b, c.bytes(r.stmt, col, true))
			if r.columns[i].Type == source.Decimal && isDecimal(v.Text) {
				v.Kind = source.KindDecimal
			}
		default:
			v.Kind = source.KindBytes
			v.Text = r.copy(b, c.bytes(r.stmt, col, false))
		}
		if r.bytes > r.limits.Bytes {
			return source.TooManyBytes(r.limits.Bytes)
		}
		if r.bytes-r.rowFrom > source.MaxRow {
			return source.TooLargeRow(r.count)
		}
	}
	return nil
}

// copy takes a text into the batch; one that passes a limit is counted, not copied.
func (r *rows) copy(b *batch, text []byte) []byte {
	if r.bytes += int64(len(text)); r.bytes > r.limits.Bytes || r.bytes-r.rowFrom > source.MaxRow {
		return nil
	}
	from := len(b.buf)
	b.buf = append(b.buf, text...)
	return b.buf[from:len(b.buf):len(b.buf)]
}

// isDecimal accepts an optional sign, digits, and digits after a point.
func isDecimal(s []byte) bool {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	digits, point := 0, false
	for i, ch := range s {
		switch {
		case ch >= '0' && ch <= '9':
			digits++
		case ch == '.' && !point && i > 0 && i < len(s)-1:
			point = true
		default:
			return false
		}
	}
	return digits > 0
}

func (r *rows) Columns() []source.Column { return r.columns }

// Next is cheap while a batch lasts. Its context, if it is another than Open's, stops the engine as well.
func (r *rows) Next(ctx context.Context) ([]source.Value, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cause := r.cause.Load(); cause != nil && r.last == nil {
		r.last = cause
	}
	if r.last != nil {
		return nil, r.last
	}
	if !r.watched.On(ctx) {
		r.watched.Move(ctx, func() { r.halt(source.Ended(ctx, r.limits.Timeout)) })
	}
	width := len(r.columns)
	for {
		if b := r.current; b != nil {
			if r.next < b.n {
				row := b.cells[r.next*width : (r.next+1)*width : (r.next+1)*width]
				r.next++
				return row, nil
			}
			if b.err != nil {
				r.last = b.err
				return nil, r.last
			}
			r.current = nil
			r.free <- b // has room for every batch
		}
		select {
		case r.current = <-r.full:
			r.next = 0
		case <-r.quit:
			r.last = r.cause.Load()
			return nil, r.last
		}
	}
}

// Close stops the engine. It waits a moment for it, no longer: a step that cannot be interrupted frees its memory
// when it ends.
func (r *rows) Close() error {
	r.halt(source.Closed())
	wait := time.NewTimer(closeWait)
	defer wait.Stop()
	select {
	case <-r.done:
	case <-wait.C:
		r.overdue()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched.Stop()
	return nil
}
