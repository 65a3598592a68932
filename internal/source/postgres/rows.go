package postgres

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// grace is how long a server is given to stop a query, or to end a session, before the connection is cut.
const grace = 2 * time.Second

// rows reads a result from its connection as it comes: the server is ahead by what the network's buffers hold, and a cell
// is a view of the connection's own buffer.
type rows struct {
	conn    *pgconn.PgConn
	st      statement
	limits  source.Limits
	columns []source.Column
	oids    []uint32
	args    [][]byte
	about   *pgconn.StatementDescription
	letGo   func() // gives the connection back, once

	// why it must stop: the first reason stays
	cause   atomic.Pointer[failure.Failure]
	stopMu  sync.Mutex // a request to cancel must not meet what comes after this query
	idle    bool       // the server is not at work for this query
	unwatch func() bool
	cancel  context.CancelFunc

	mu      sync.Mutex
	result  *pgconn.ResultReader // nil before the first Next
	cells   []source.Value
	count   int64
	bytes   int64
	last    error // sticky
	gone    bool  // the connection was given back
	watched source.Watch
}

// newRows watches ctx and its timer.
func newRows(ctx, timer context.Context, cancel context.CancelFunc, conn *pgconn.PgConn, st statement, limits source.Limits) *rows {
	r := &rows{conn: conn, st: st, limits: limits, cancel: cancel, watched: source.Watching(ctx)}
	r.unwatch = context.AfterFunc(timer, func() {
		r.halt(source.Ended(ctx, limits.Timeout))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.end()
	})
	return r
}

// begin begins the transaction, or the part of one, and has the query understood.
func (r *rows) begin(sql string, args arguments) (source.Rows, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := execute(context.Background(), r.conn, sql)
	p := reading
	if err == nil {
		p = compiling
		r.columns, r.oids, r.about, err = describe(r.conn, r.st, args)
	}
	if err != nil {
		r.last = r.failed(err, p)
		r.end()
		return nil, r.last
	}
	r.args, r.cells = args.values, make([]source.Value, len(r.columns))
	r.works(false)
	return r, nil
}

// works notes whether the server is at work, and reports whether it should not be: a reason to stop came before.
func (r *rows) works(now bool) (stopped bool) {
	r.stopMu.Lock()
	defer r.stopMu.Unlock()
	r.idle = !now
	return r.cause.Load() != nil
}

// failed is the failure of an error: the reason for stopping, if that is what broke it.
func (r *rows) failed(err error, p phase) *failure.Failure {
	if cause := r.cause.Load(); cause != nil {
		return cause
	}
	if f := asFailure(err); f != nil {
		return f
	}
	return broken(err, p, r.st, r.count+1)
}

// halt asks the server to stop the query, for a reason; only the first one counts. A read that is under way then ends
// with the server's answer, or after the grace.
func (r *rows) halt(cause *failure.Failure) {
	if !r.cause.CompareAndSwap(nil, cause) {
		return
	}
	r.stopMu.Lock()
	defer r.stopMu.Unlock()
	if r.idle {
		return
	}
	_ = r.conn.Conn().SetReadDeadline(time.Now().Add(grace))
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = r.conn.CancelRequest(ctx) // a server that is not reached is left by the deadline
}

// end reads what is left of the result, which after a halt is little, and gives the connection back.
func (r *rows) end() {
	if r.gone {
		return
	}
	r.gone = true
	r.unwatch()
	r.cancel()
	if r.result != nil {
		_, _ = r.result.Close()
	}
	r.works(false)
	_ = r.conn.Conn().SetReadDeadline(time.Time{})
	r.letGo()
}

func (r *rows) Columns() []source.Column { return r.columns }

// Next reads a row. Its context, if it is another than Open's, stops the query as well.
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
	if err := r.read(); err != nil {
		r.last = err
		r.end()
		return nil, err
	}
	return r.cells, nil
}

func (r *rows) read() error {
	if r.result == nil {
		if r.works(true) {
			return r.cause.Load()
		}
		r.result = r.conn.ExecStatement(context.Background(), r.about, r.args, nil, nil)
	}
	if !r.result.NextRow() {
		_, err := r.result.Close()
		if err == nil && r.cause.Load() == nil {
			return io.EOF
		}
		return r.failed(err, reading)
	}
	err := r.row(r.result.Values())
	if err != nil { // which the server does not know of
		r.halt(failure.From(err))
	}
	return err
}

// row reads the cells of the server's row.
func (r *rows) row(values [][]byte) error {
	if r.count++; r.count > r.limits.Rows {
		return source.TooManyRows(r.limits.Rows)
	}
	size := int64(0)
	for i, raw := range values {
		v := &r.cells[i]
		if raw == nil {
			v.Kind = source.KindNull
			continue
		}
		if !decode(r.oids[i], raw, v) {
			return failure.New(failure.QueryFailed, "row %d, column %q: PostgreSQL sent %q for type %d: convert the column to text in the query", r.count, failure.Cut(r.columns[i].Name, 80), failure.Cut(string(raw), 60), r.oids[i])
		}
		switch v.Kind {
		case source.KindText, source.KindDecimal, source.KindBytes:
			size += int64(len(v.Text))
		default:
			size += 8
		}
	}
	if r.bytes += size; r.bytes > r.limits.Bytes {
		return source.TooManyBytes(r.limits.Bytes)
	}
	if size > source.MaxRow {
		return source.TooLargeRow(r.count)
	}
	return nil
}

// Close stops the query in the server and gives the connection back.
func (r *rows) Close() error {
	r.halt(source.Closed())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
	r.watched.Stop()
	return nil
}
