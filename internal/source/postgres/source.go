package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Source is one database. Each query has a connection of its own, which ends with it: between two invocations a function
// is frozen, and a connection that it kept would be a guess. Queries may run at the same time.
type Source struct {
	Config   Config
	SignIn   SignIn
	Defaults source.Limits // where a query has none; what is zero here comes from source.Defaults
}

var (
	_ source.Source = (*Source)(nil)
	_ source.Viewer = (*Source)(nil)
)

// Open connects and has the query understood; it runs from the first Next on. Failures: query_invalid,
// query_not_read_only, parameter_invalid, and those of the connection: source_access_denied, source_unknown,
// source_unavailable.
func (s *Source) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	return s.open(ctx, q, "")
}

// open reads the database as it is now, or as an exported snapshot has it.
func (s *Source) open(ctx context.Context, q source.Query, snapshot string) (source.Rows, error) {
	limits := q.Limits.Or(s.Defaults).Or(source.Defaults)
	if err := limits.Check(); err != nil {
		return nil, err
	}
	st, args, err := prepare(q)
	if err != nil {
		return nil, err
	}
	timer, cancel := context.WithTimeout(ctx, limits.Timeout)
	conn, err := s.connect(timer, newProgress())
	if err != nil {
		defer cancel()
		if timer.Err() != nil {
			return nil, source.Ended(ctx, limits.Timeout)
		}
		return nil, err
	}
	begin := started(limits)
	if snapshot != "" {
		begin += "; SET TRANSACTION SNAPSHOT '" + snapshot + "'"
	}
	r := newRows(ctx, timer, cancel, conn, st, limits)
	r.letGo = func() { _ = leave(conn) }
	return r.begin(begin, args)
}

// leave ends a session.
func leave(conn *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := conn.Close(ctx)
	select { // where it broke, pgconn stops the query on a connection of its own
	case <-conn.CleanupDone():
	case <-ctx.Done():
	}
	return err
}

// execute runs statements of this package's own, without parameters and without rows.
func execute(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}

// describe has the server understand a query and refuses what returns no rows: statements that do something.
func describe(conn *pgconn.PgConn, st statement, args arguments) ([]source.Column, []uint32, *pgconn.StatementDescription, error) {
	d, err := conn.Prepare(context.Background(), "", st.sql, args.oids)
	if err != nil {
		return nil, nil, nil, err
	}
	switch {
	case d.Fields == nil:
		return nil, nil, nil, failure.New(failure.QueryNotReadOnly, "the query is a statement that returns no rows: use one SELECT")
	case len(d.Fields) == 0:
		return nil, nil, nil, failure.New(failure.QueryInvalid, "the query returns no columns: use one SELECT")
	}
	oids := make([]uint32, len(d.Fields))
	for i, f := range d.Fields {
		oids[i] = f.DataTypeOID
	}
	return columnsOf(d.Fields), oids, d, nil
}

func asFailure(err error) *failure.Failure {
	var f *failure.Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}
