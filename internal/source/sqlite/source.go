package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// File is a source on one database file, which must not change while it is in use: it is opened as immutable, so
// neither locks nor a journal beside it are looked at. Queries may run at the same time.
type File struct {
	Path     string
	Defaults source.Limits // where a query has none; what is zero here comes from source.Defaults
}

var _ source.Source = (*File)(nil)

// Open compiles the query and starts to read ahead. Failures: source_unknown (no file, or not a database),
// source_access_denied, query_invalid, query_not_read_only, parameter_invalid; those of reading come from Next.
func (f *File) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	return open(ctx, f.Path, q, q.Limits.Or(f.Defaults).Or(source.Defaults), func() {}, new(atomic.Int64))
}

// open calls released once the engine has let go of the file, or at once if open fails. late counts engines that do not
// stop.
func open(ctx context.Context, path string, q source.Query, limits source.Limits, released func(), late *atomic.Int64) (source.Rows, error) {
	r, err := start(ctx, path, q, limits, released, late)
	if err != nil {
		released()
		return nil, err
	}
	return r, nil
}

func start(ctx context.Context, path string, q source.Query, limits source.Limits, released func(), late *atomic.Int64) (*rows, error) {
	if err := limits.Check(); err != nil {
		return nil, err
	}
	if err := source.CheckText(q.SQL); err != nil {
		return nil, err
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	c, err := openConn(path)
	if err != nil {
		return nil, (*conn)(nil).fail(err, reading, "")
	}
	r := newRows(ctx, c, limits, released, late)
	if err := r.compile(q); err != nil {
		r.discard()
		return nil, err
	}
	go r.run()
	return r, nil
}

// checkFile tells apart what SQLite reports alike, and an empty file, which SQLite takes for an empty database.
func checkFile(path string) error {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure.Wrap(failure.SourceUnknown, err, "the data file is not there: upload it, or correct the source's name")
	case errors.Is(err, fs.ErrPermission):
		return failure.Wrap(failure.SourceAccessDenied, err, "the data file may not be read by this process")
	case err != nil:
		return failure.Wrap(failure.SourceUnavailable, err, "the data file could not be opened")
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return failure.Wrap(failure.SourceUnavailable, err, "the data file could not be examined")
	case !info.Mode().IsRegular():
		return failure.New(failure.SourceUnknown, "the data file is not a file: name an SQLite database")
	case info.Size() == 0:
		return failure.New(failure.SourceUnknown, "the data file is empty: upload it again")
	}
	return nil
}

// compile prepares exactly one statement, binds its parameters and learns its columns.
func (r *rows) compile(q source.Query) error {
	c := r.conn
	stmt, rest, err := c.prepare(q.SQL)
	if err != nil {
		return r.broken(err, compiling, q.SQL)
	}
	if stmt == 0 {
		return failure.New(failure.QueryInvalid, "the query is empty: write one SELECT")
	}
	r.stmt = stmt
	for rest != "" {
		second, more, err := c.prepare(rest)
		if second != 0 {
			c.finalize(second)
		}
		if second != 0 || err != nil {
			return failure.New(failure.QueryInvalid, "the query has more than one statement (%q follows the first): write one SELECT", failure.Cut(strings.TrimSpace(rest), 40))
		}
		rest = more
	}
	if !c.readOnly(stmt) {
		return failure.New(failure.QueryNotReadOnly, "the query is not read-only: use one SELECT")
	}
	n := int(lib.Xsqlite3_column_count(c.tls, stmt))
	if n == 0 {
		return failure.New(failure.QueryInvalid, "the query returns no columns: use one SELECT")
	}
	if err := bindAll(c, stmt, q.Params); err != nil {
		return err
	}
	for i := range n {
		name, declared := c.column(stmt, i)
		r.columns = append(r.columns, source.Column{Name: strings.ToValidUTF8(name, "\uFFFD"), Type: typeOf(declared)})
	}
	return nil
}

func bindAll(c *conn, stmt uintptr, params map[string]any) error {
	used := map[string]bool{}
	for i, spelled := range c.parameters(stmt) {
		if !strings.HasPrefix(spelled, ":") {
			if spelled == "" {
				spelled = "?"
			}
			return failure.New(failure.ParameterInvalid, "the query uses the parameter %s: name parameters with a colon, as in :workspace", failure.Cut(spelled, 80))
		}
		name := spelled[1:]
		value, ok := params[name]
		if !ok {
			return source.Absent(spelled)
		}
		used[name] = true
		bound, err := bindable(name, value)
		if err != nil {
			return err
		}
		if err := c.bind(stmt, i+1, bound); err != nil {
			return failure.Wrap(failure.ParameterInvalid, err, "the parameter :%s could not be bound: its value is too long", name)
		}
	}
	return source.CheckUsed(params, func(name string) bool { return used[name] })
}

// bindable turns a parameter into what SQLite can hold.
func bindable(name string, value any) (any, error) {
	if err := source.CheckValue(name, value); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case int:
		return int64(v), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	}
	return value, nil
}

// typeOf reads a declared type. SQLite takes any words (https://sqlite.org/datatype3.html#affinity_name_examples), so
// the telling ones are looked for, the particular before the general.
func typeOf(declared string) source.Type {
	d := strings.ToUpper(declared)
	for _, row := range []struct {
		word string
		typ  source.Type
	}{
		{"DATETIME", source.Timestamp}, {"TIMESTAMP", source.Timestamp}, {"DATE", source.Date}, {"BOOL", source.Boolean},
		{"DECIMAL", source.Decimal}, {"NUMERIC", source.Decimal}, {"INT", source.Integer}, {"CHAR", source.Text},
		{"CLOB", source.Text}, {"TEXT", source.Text}, {"BLOB", source.Bytes}, {"REAL", source.Real}, {"FLOA", source.Real},
		{"DOUB", source.Real},
	} {
		if strings.Contains(d, row.word) {
			return row.typ
		}
	}
	return source.Unknown
}
