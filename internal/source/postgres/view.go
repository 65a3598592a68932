package postgres

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// view is one transaction, which sees one state of the database, on a connection of its own. One query at a time runs on
// it, each behind a savepoint, so that one that fails, or changes a setting, leaves nothing behind. A query that begins
// while another runs gets a connection of its own that sees the same state by the transaction's exported snapshot
// (https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION).
type view struct {
	source   *Source
	conn     *pgconn.PgConn
	snapshot string // "" where the server exports none

	mu   sync.Mutex
	busy bool  // a query runs on conn
	lost error // why conn can not be used any more
	shut bool
}

// View holds the database as it is now. The caller's context bounds the beginning alone.
func (s *Source) View(ctx context.Context) (source.View, error) {
	conn, err := s.connect(ctx, newProgress())
	if err != nil {
		return nil, err
	}
	limits := s.Defaults.Or(source.Defaults)
	stop := context.AfterFunc(ctx, func() { _ = conn.Conn().Close() })
	defer stop()
	v := &view{source: s, conn: conn}
	err = execute(context.Background(), conn, started(limits))
	if err == nil {
		v.snapshot, err = export(conn)
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) && !conn.IsClosed() { // not every server can: then queries of this view come one by one
		err = execute(context.Background(), conn, "ROLLBACK; "+started(limits)+"; SELECT 1")
	}
	if err != nil {
		_ = leave(conn)
		if ctx.Err() != nil {
			return nil, source.Ended(ctx, limits.Timeout)
		}
		return nil, broken(err, reading, statement{}, 0)
	}
	return v, nil
}

// export names the transaction's snapshot, and takes it thereby.
func export(conn *pgconn.PgConn) (string, error) {
	got, err := conn.Exec(context.Background(), "SELECT pg_export_snapshot()").ReadAll()
	if err != nil {
		return "", err
	}
	return string(got[0].Rows[0][0]), nil
}

const (
	mark   = "SAVEPOINT almanac"
	unmark = "ROLLBACK TO SAVEPOINT almanac; RELEASE SAVEPOINT almanac"
)

func (v *view) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	limits := q.Limits.Or(v.source.Defaults).Or(source.Defaults)
	if err := limits.Check(); err != nil {
		return nil, err
	}
	st, args, err := prepare(q)
	if err != nil {
		return nil, err
	}
	taken, err := v.take()
	if err != nil {
		return nil, err
	}
	if !taken {
		return v.source.open(ctx, q, v.snapshot)
	}
	timer, cancel := context.WithTimeout(ctx, limits.Timeout)
	r := newRows(ctx, timer, cancel, v.conn, st, limits)
	r.letGo = v.giveBack
	return r.begin(mark+"; "+timed(limits), args)
}

// take takes the view's connection for a query, if no other runs on it.
func (v *view) take() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.lost != nil:
		return false, v.lost
	case !v.busy:
		v.busy = true
		return true, nil
	case v.snapshot == "":
		return false, failure.New(failure.SourceUnavailable, "this server holds its state for one query at a time (it exports no snapshots): read one result before the next is asked for")
	}
	return false, nil
}

func (v *view) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := execute(ctx, v.conn, unmark)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.busy = false
	if err != nil {
		v.lost = broken(err, reading, statement{}, 0)
	}
}

// Version is not known: a transaction of anybody changes PostgreSQL's own number of a snapshot, also one that touched
// none of the rows. What changes between the chunks of a month the control query finds (design.md §4).
func (v *view) Version() string { return "" }

// ByteOrder has text compared byte by byte (https://www.postgresql.org/docs/current/collation.html). Types that are told
// as text, such as uuid, have no collation of their own.
func (v *view) ByteOrder(column string, t source.Type) string {
	if t == source.Text {
		return column + `::text collate "C"`
	}
	return column
}

func (v *view) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut {
		return nil
	}
	v.shut, v.lost = true, failure.New(failure.SourceUnavailable, "the view of the source was closed")
	return leave(v.conn)
}
