package athena

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"almanac/internal/source"
)

// API is the part of Athena that the package uses.
type API interface {
	StartQueryExecution(context.Context, *athena.StartQueryExecutionInput, ...func(*athena.Options)) (*athena.StartQueryExecutionOutput, error)
	GetQueryExecution(context.Context, *athena.GetQueryExecutionInput, ...func(*athena.Options)) (*athena.GetQueryExecutionOutput, error)
	GetQueryResults(context.Context, *athena.GetQueryResultsInput, ...func(*athena.Options)) (*athena.GetQueryResultsOutput, error)
	StopQueryExecution(context.Context, *athena.StopQueryExecutionInput, ...func(*athena.Options)) (*athena.StopQueryExecutionOutput, error)
}

// Results opens the object that holds a result, from a byte on. Its errors are S3's.
type Results interface {
	Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error)
}

// Range is S3's header for an object's bytes from one on; nil: the whole object, which may be empty.
func Range(from int64) *string {
	if from == 0 {
		return nil
	}
	return aws.String(fmt.Sprintf("bytes=%d-", from))
}

// Source asks one database of one catalog.
type Source struct {
	API     API
	Results Results

	Workgroup string
	Catalog   string
	Database  string
	Output    string // where results go, such as s3://files/queries/; a workgroup that enforces its own place overrides it
	ScanLimit int64  // bytes that one query may scan; 0: what the workgroup allows
	Inline    bool   // parameters' literals stand in the text: for a local cloud that takes no execution parameters

	Defaults source.Limits // where a query has none; what is zero here comes from Defaults of the package
	Now      func() time.Time
	Pause    func(ctx context.Context, d time.Duration) error // returns the context's error when that ends first
}

// Defaults are the limits where neither query nor source has any: a query may run as long as Athena lets one run that
// nobody asked a higher quota for.
// https://docs.aws.amazon.com/general/latest/gr/athena.html (DML query timeout)
var Defaults = source.Limits{Timeout: 30 * time.Minute}

var _ source.Source = (*Source)(nil)

// Open starts the query, or finds the one of its ticket, and waits until it has ended. Errors: those of package failure
// for "source", query_scans_too_much, query_too_slow, ErrRunning of package source, and what the ticket's Record returned.
func (s *Source) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	limits := q.Limits.Or(s.Defaults).Or(Defaults).Or(source.Defaults)
	if err := limits.Check(); err != nil {
		return nil, err
	}
	text, literals, err := compile(q.SQL, q.Params, s.Inline)
	if err != nil {
		return nil, err
	}
	e := &execution{Source: s, ticket: q.Ticket, limits: limits, began: s.Now()}
	if e.ticket == nil {
		e.ticket = &source.Ticket{Record: func(context.Context, string) error { return nil }}
		e.alone = true
	}
	if e.ticket.ID == "" {
		if err := e.start(ctx, text, literals); err != nil {
			return nil, err
		}
	}
	result, err := e.await(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.read(ctx, result, limits, e.ticket.From)
	if lost(err) {
		e.ticket.Over = true // its result has expired, or was removed
	}
	return rows, err
}

// Stop ends a query that nobody waits for any more, and tells what it has cost until then. One that has ended before
// stays as it is.
func (s *Source) Stop(ctx context.Context, id string) (source.Cost, error) {
	if _, err := s.API.StopQueryExecution(ctx, &athena.StopQueryExecutionInput{QueryExecutionId: &id}); err != nil {
		return source.Cost{}, refused(ctx, err, "stopped")
	}
	out, err := s.API.GetQueryExecution(ctx, &athena.GetQueryExecutionInput{QueryExecutionId: &id})
	if err != nil {
		return source.Cost{}, refused(ctx, err, "asked for")
	}
	return costOf(out.QueryExecution), nil
}

// read opens the result of a query that has succeeded.
func (s *Source) read(ctx context.Context, x *types.QueryExecution, limits source.Limits, from int64) (source.Rows, error) {
	out, err := s.API.GetQueryResults(ctx, &athena.GetQueryResultsInput{QueryExecutionId: x.QueryExecutionId, MaxResults: aws.Int32(1)})
	if err != nil {
		return nil, refused(ctx, err, "read")
	}
	var columns []column
	if out.ResultSet != nil && out.ResultSet.ResultSetMetadata != nil {
		for _, c := range out.ResultSet.ResultSetMetadata.ColumnInfo {
			columns = append(columns, columnOf(c))
		}
	}
	rows, err := s.openRows(ctx, aws.ToString(x.ResultConfiguration.OutputLocation), columns, limits, from)
	if err != nil {
		return nil, err // and no rows: a nil *rows would be some
	}
	return rows, nil
}
