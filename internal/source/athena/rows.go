package athena

import (
	"context"
	"errors"
	"io"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// rows reads a result as it comes from S3.
type rows struct {
	columns []column
	limits  source.Limits
	body    io.ReadCloser
	in      *reader
	from    int64 // where the body begins in the result
	row     []source.Value

	count, bytes int64
	last         error           // sticky
	opened       context.Context // of Open: its end ends the body
	watched      source.Watch
	cancel       context.CancelFunc
}

// openRows opens the object and reads its header, or goes on behind the rows that were read before.
func (s *Source) openRows(ctx context.Context, location string, columns []column, limits source.Limits, from int64) (*rows, error) {
	if len(columns) == 0 {
		return nil, failure.New(failure.QueryInvalid, "the query returns no columns: use one SELECT")
	}
	bucket, key, ok := strings.Cut(strings.TrimPrefix(location, "s3://"), "/")
	if !ok || key == "" {
		return nil, failure.New(failure.SourceUnknown, "the query's result is at %q; want a place such as s3://bucket/queries/: set the workgroup's output location", failure.Cut(location, 200))
	}
	reading, cancel := context.WithCancel(ctx)
	body, err := s.Results.Open(reading, bucket, key, from)
	if err != nil {
		cancel()
		return nil, unread(ctx, err)
	}
	r := &rows{columns: columns, limits: limits, body: body, in: newReader(body), from: from, row: make([]source.Value, len(columns)), opened: ctx, watched: source.Watching(ctx), cancel: cancel}
	if from > 0 {
		return r, nil
	}
	if err := r.in.row(); err != nil {
		r.Close()
		if err = r.broken(ctx, err); err == io.EOF {
			err = failure.New(failure.SourceUnavailable, "the query's result is an empty object; want at least its header")
		}
		return nil, err
	}
	if n := len(r.in.fields); n != len(columns) {
		r.Close()
		return nil, failure.New(failure.SourceUnavailable, "the result's header has %d columns, Athena tells %d", n, len(columns))
	}
	return r, nil
}

// lost reports a result that is not there.
func lost(err error) bool {
	var answered *awshttp.ResponseError
	return errors.As(err, &answered) && answered.HTTPStatusCode() == 404 && failure.Is(err, failure.SourceUnavailable)
}

// Place is behind the last row that was read, in bytes of the result.
func (r *rows) Place() int64 { return r.from + r.in.place() }

// unread turns an error of S3 into a failure.
func unread(ctx context.Context, err error) *failure.Failure {
	var answered *awshttp.ResponseError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure.Wrap(failure.QueryTimeout, ctx.Err(), "the query's result was not read before its caller's deadline: return fewer rows or columns")
	case ctx.Err() != nil:
		return failure.Wrap(failure.SourceUnavailable, ctx.Err(), "the query was cancelled before its result was read")
	case errors.As(err, &answered) && answered.HTTPStatusCode() == 403:
		return failure.Wrap(failure.SourceAccessDenied, err, "S3 refused the product's role the query's result: let it read where the workgroup writes results")
	}
	return failure.Wrap(failure.SourceUnavailable, err, "the query's result could not be read")
}

func (r *rows) Columns() []source.Column {
	out := make([]source.Column, len(r.columns))
	for i, c := range r.columns {
		out[i] = c.Column
	}
	return out
}

// Next reads one row. Its context, if it is another than Open's, ends the body as well.
func (r *rows) Next(ctx context.Context) ([]source.Value, error) {
	if r.last != nil {
		return nil, r.last
	}
	if !r.watched.On(ctx) {
		r.watched.Move(ctx, r.cancel)
	}
	if err := ctx.Err(); err != nil {
		r.last = unread(ctx, err)
		return nil, r.last
	}
	if err := r.next(ctx); err != nil {
		r.last = err
		return nil, err
	}
	return r.row, nil
}

func (r *rows) next(ctx context.Context) error {
	if err := r.in.row(); err != nil {
		return r.broken(ctx, err)
	}
	if n := len(r.in.fields); n != len(r.columns) {
		return failure.New(failure.SourceUnavailable, "row %d of the result has %d fields, want %d", r.count+1, n, len(r.columns))
	}
	if r.count++; r.count > r.limits.Rows {
		return source.TooManyRows(r.limits.Rows)
	}
	for i, f := range r.in.fields {
		v := &r.row[i]
		if f.null {
			*v = source.Value{}
			continue
		}
		if err := r.columns[i].read(v, r.in.buf[f.from:f.to:f.to]); err != nil {
			return failure.Wrap(failure.SourceUnavailable, err, "row %d of the result, column %q: %q cannot be read", r.count, r.columns[i].Name, failure.Cut(string(r.in.buf[f.from:f.to]), 60))
		}
		r.bytes += size(v)
	}
	if r.bytes > r.limits.Bytes {
		return source.TooManyBytes(r.limits.Bytes)
	}
	return nil
}

// size is what a cell counts towards limits.bytes.
func size(v *source.Value) int64 {
	switch v.Kind {
	case source.KindText, source.KindBytes, source.KindDecimal:
		return int64(len(v.Text))
	}
	return 8
}

// broken says why the result cannot be read on; io.EOF stays.
func (r *rows) broken(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return source.TooLargeRow(r.count + 1)
	case err == io.EOF && r.opened.Err() == nil && ctx.Err() == nil:
		return io.EOF
	case ctx.Err() == nil:
		ctx = r.opened
	}
	return unread(ctx, err)
}

// Close may be called at any time and more than once.
func (r *rows) Close() error {
	r.watched.Stop()
	r.cancel()
	r.body.Close() // what was read is checked row by row; nothing is lost with the rest
	if r.last == nil {
		r.last = source.Closed()
	}
	return nil
}
