package memcloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

// ServiceAthena is the SDK's service id of Athena.
const ServiceAthena = "Athena"

// Athena is an in-memory Athena with the methods of the SDK's client. It knows no SQL: Engine answers. What a query comes
// to is decided when it is started, and shown when its time is over; then its result lies in S3. It is safe for concurrent
// use.
type Athena struct {
	Hooks

	// Engine says what a query comes to. It is called once for each query, outside the lock.
	Engine func(AthenaQuery) AthenaAnswer
	// Workgroups are those that there are, by name.
	Workgroups map[string]AthenaWorkgroup

	clock   func() time.Time
	results *S3

	mu      sync.Mutex
	queries []*athenaQuery
	byToken map[string]*athenaQuery
}

// AthenaWorkgroup is a workgroup's configuration.
type AthenaWorkgroup struct {
	Output  string // result location; empty: the caller's
	Enforce bool   // the caller's settings are overridden
	Cutoff  int64  // bytes that a query may scan; 0: any number
}

// AthenaQuery is a query as it was started.
type AthenaQuery struct {
	ID, Token, SQL               string
	Parameters                   []string
	Workgroup, Catalog, Database string
	Output                       string
	Started                      time.Time
}

// AthenaAnswer is what a query comes to.
type AthenaAnswer struct {
	Takes   time.Duration // 0: it has ended by the time that somebody looks
	Type    types.StatementType
	Sub     string // SubstatementType
	Columns []types.ColumnInfo
	Rows    [][]*string // nil: NULL
	Scanned int64
	Error   *types.AthenaError // it fails
	Reason  string             // of a failure
}

type athenaQuery struct {
	AthenaQuery
	answer  AthenaAnswer
	state   types.QueryExecutionState
	reason  string
	ended   time.Time
	scanned int64
}

// NewAthena makes one with the workgroup "primary", which has no place for results, and leaves results in s3.
func NewAthena(clock func() time.Time, s3 *S3) *Athena {
	return &Athena{clock: clock, results: s3, byToken: map[string]*athenaQuery{}, Workgroups: map[string]AthenaWorkgroup{"primary": {}}}
}

// Started lists the queries that were started, in order: what is paid for.
func (a *Athena) Started() (out []AthenaQuery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.queries {
		out = append(out, q.AthenaQuery)
	}
	return out
}

// State is that of a query now; empty: there is none of this id.
func (a *Athena) State(id string) types.QueryExecutionState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.find(id); q != nil {
		a.look(q)
		return q.state
	}
	return ""
}

// Forget drops a query, as Athena does after 45 days.
func (a *Athena) Forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = slices.DeleteFunc(a.queries, func(q *athenaQuery) bool { return q.ID == id })
}

// Cancel ends a query as somebody in the console does.
func (a *Athena) Cancel(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel(a.find(id), "Query cancelled by user")
}

func athenaInvalid(code, format string, args ...any) error {
	return &types.InvalidRequestException{Message: aws.String(fmt.Sprintf(format, args...)), AthenaErrorCode: aws.String(code)}
}

// Bounds: https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
func (a *Athena) check(in *athena.StartQueryExecutionInput, g AthenaWorkgroup, known bool) error {
	sql, token := aws.ToString(in.QueryString), in.ClientRequestToken
	switch {
	case len(sql) < 1 || len(sql) > 262_144:
		return athenaInvalid("INVALID_INPUT", "Value at 'queryString' failed to satisfy constraint: Member must have length between 1 and 262144")
	case token != nil && (len(*token) < 32 || len(*token) > 128):
		return athenaInvalid("INVALID_INPUT", "Value at 'clientRequestToken' failed to satisfy constraint: Member must have length between 32 and 128")
	case !known:
		return athenaInvalid("INVALID_INPUT", "WorkGroup is not found.")
	case g.Output == "" && (in.ResultConfiguration == nil || aws.ToString(in.ResultConfiguration.OutputLocation) == ""):
		return athenaInvalid("INVALID_INPUT", "No output location provided. An output location is required either through the Workgroup result configuration setting or as an API input.")
	}
	for _, p := range in.ExecutionParameters {
		if n := utf8.RuneCountInString(p); n < 1 || n > 1024 {
			return athenaInvalid("INVALID_INPUT", "Value at 'executionParameters' failed to satisfy constraint: Member must have length between 1 and 1024")
		}
	}
	return nil
}

// StartQueryExecution runs one query under one token; other parameters under the same token are refused.
func (a *Athena) StartQueryExecution(ctx context.Context, in *athena.StartQueryExecutionInput, _ ...func(*athena.Options)) (*athena.StartQueryExecutionOutput, error) {
	return invoke(ctx, &a.Hooks, ServiceAthena, "StartQueryExecution", in, func(in *athena.StartQueryExecutionInput) (*athena.StartQueryExecutionOutput, error) {
		name := aws.ToString(in.WorkGroup)
		if name == "" {
			name = "primary"
		}
		g, known := a.Workgroups[name]
		if err := a.check(in, g, known); err != nil {
			return nil, err
		}
		q := AthenaQuery{Token: aws.ToString(in.ClientRequestToken), SQL: *in.QueryString, Parameters: slices.Clone(in.ExecutionParameters), Workgroup: name, Output: g.Output}
		if c := in.QueryExecutionContext; c != nil {
			q.Catalog, q.Database = aws.ToString(c.Catalog), aws.ToString(c.Database)
		}
		if c := in.ResultConfiguration; c != nil && aws.ToString(c.OutputLocation) != "" && !(g.Enforce && g.Output != "") {
			q.Output = *c.OutputLocation
		}
		if earlier, err := a.earlier(q); earlier != nil || err != nil {
			return earlier, err
		}
		fresh := &athenaQuery{AthenaQuery: q, answer: a.Engine(q), state: types.QueryExecutionStateQueued}
		a.mu.Lock()
		defer a.mu.Unlock()
		if twin := a.byToken[q.Token]; q.Token != "" && twin != nil { // started while the engine was asked
			return &athena.StartQueryExecutionOutput{QueryExecutionId: &twin.ID}, nil
		}
		fresh.ID, fresh.Started = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(a.queries)+1), a.clock()
		a.queries = append(a.queries, fresh)
		if q.Token != "" {
			a.byToken[q.Token] = fresh
		}
		return &athena.StartQueryExecutionOutput{QueryExecutionId: &fresh.ID}, nil
	})
}

// earlier is the answer for a token that was used before: the same query, or a refusal where anything else has changed.
func (a *Athena) earlier(q AthenaQuery) (*athena.StartQueryExecutionOutput, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.byToken[q.Token]
	switch {
	case q.Token == "" || old == nil:
		return nil, nil
	case old.SQL != q.SQL || !slices.Equal(old.Parameters, q.Parameters) || old.Output != q.Output || old.Workgroup != q.Workgroup || old.Database != q.Database || old.Catalog != q.Catalog:
		return nil, athenaInvalid("INVALID_INPUT", "Idempotent parameters do not match")
	}
	return &athena.StartQueryExecutionOutput{QueryExecutionId: &old.ID}, nil
}

func (a *Athena) find(id string) *athenaQuery {
	for _, q := range a.queries {
		if q.ID == id {
			return q
		}
	}
	return nil
}

func (a *Athena) known(id *string) (*athenaQuery, error) {
	q := a.find(aws.ToString(id))
	if q == nil {
		return nil, athenaInvalid("INVALID_INPUT", "QueryExecution %s was not found", aws.ToString(id))
	}
	return q, nil
}

// look moves a query on to where the clock has brought it; a.mu is held.
func (a *Athena) look(q *athenaQuery) {
	if !q.ended.IsZero() {
		return
	}
	passed, cutoff := a.clock().Sub(q.Started), a.Workgroups[q.Workgroup].Cutoff
	if q.scanned = q.answer.Scanned; passed < q.answer.Takes {
		q.scanned = int64(float64(q.scanned) * float64(passed) / float64(q.answer.Takes))
	}
	switch {
	case cutoff > 0 && q.scanned > cutoff:
		a.cancel(q, "Bytes scanned limit was exceeded")
	case passed < q.answer.Takes/4:
	case passed < q.answer.Takes:
		q.state = types.QueryExecutionStateRunning
	case q.answer.Error != nil:
		q.state, q.ended, q.reason = types.QueryExecutionStateFailed, a.clock(), q.answer.Reason
	default:
		q.state, q.ended = types.QueryExecutionStateSucceeded, a.clock()
		a.write(q)
	}
}

// cancel ends a query that has not ended; a.mu is held.
func (a *Athena) cancel(q *athenaQuery, why string) {
	if q != nil && q.ended.IsZero() {
		q.state, q.ended, q.reason = types.QueryExecutionStateCancelled, a.clock(), why
	}
}

func (q *athenaQuery) location() string { return q.Output + q.ID + ".csv" }

// write leaves the result: every value in quotes, NULL alone without. Kept to the bytes at
// https://pyathena.dev/master/null_handling.html, since AWS's pages do not describe them.
func (a *Athena) write(q *athenaQuery) {
	var b strings.Builder
	line := func(n int, cell func(int) *string) {
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			if v := cell(i); v != nil {
				b.WriteString(`"` + strings.ReplaceAll(*v, `"`, `""`) + `"`)
			}
		}
		b.WriteByte('\n')
	}
	line(len(q.answer.Columns), func(i int) *string { return q.answer.Columns[i].Name })
	for _, row := range q.answer.Rows {
		line(len(row), func(i int) *string { return row[i] })
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(q.location(), "s3://"), "/")
	if err := a.results.put(bucket, key, []byte(b.String())); err != nil {
		q.state, q.reason = types.QueryExecutionStateFailed, err.Error()
		q.answer.Error = &types.AthenaError{ErrorCategory: aws.Int32(2), ErrorType: aws.Int32(1306)}
	}
}

// GetQueryExecution shows a query as it stands.
func (a *Athena) GetQueryExecution(ctx context.Context, in *athena.GetQueryExecutionInput, _ ...func(*athena.Options)) (*athena.GetQueryExecutionOutput, error) {
	return invoke(ctx, &a.Hooks, ServiceAthena, "GetQueryExecution", in, func(in *athena.GetQueryExecutionInput) (*athena.GetQueryExecutionOutput, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		q, err := a.known(in.QueryExecutionId)
		if err != nil {
			return nil, err
		}
		a.look(q)
		status := &types.QueryExecutionStatus{State: q.state, SubmissionDateTime: aws.Time(q.Started)}
		if !q.ended.IsZero() {
			status.CompletionDateTime = aws.Time(q.ended)
			status.StateChangeReason = aws.String(q.reason)
		}
		if q.state == types.QueryExecutionStateFailed {
			status.AthenaError = q.answer.Error
		}
		return &athena.GetQueryExecutionOutput{QueryExecution: &types.QueryExecution{
			QueryExecutionId: &q.ID, Query: &q.SQL, ExecutionParameters: q.Parameters, StatementType: q.answer.Type, SubstatementType: aws.String(q.answer.Sub), Status: status,
			WorkGroup: &q.Workgroup, QueryExecutionContext: &types.QueryExecutionContext{Catalog: &q.Catalog, Database: &q.Database},
			ResultConfiguration: &types.ResultConfiguration{OutputLocation: aws.String(q.location())},
			Statistics:          &types.QueryExecutionStatistics{DataScannedInBytes: aws.Int64(q.scanned)},
		}}, nil
	})
}

// GetQueryResults gives the columns and the first rows, the header among them; further pages are not served.
func (a *Athena) GetQueryResults(ctx context.Context, in *athena.GetQueryResultsInput, _ ...func(*athena.Options)) (*athena.GetQueryResultsOutput, error) {
	return invoke(ctx, &a.Hooks, ServiceAthena, "GetQueryResults", in, func(in *athena.GetQueryResultsInput) (*athena.GetQueryResultsOutput, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		q, err := a.known(in.QueryExecutionId)
		switch {
		case err != nil:
			return nil, err
		case in.NextToken != nil || aws.ToInt32(in.MaxResults) != 1:
			return nil, athenaInvalid("INVALID_INPUT", "memcloud serves the first row alone: MaxResults 1, no NextToken")
		}
		if a.look(q); q.state != types.QueryExecutionStateSucceeded {
			return nil, athenaInvalid("INVALID_QUERY_EXECUTION_STATE", "Query has not yet finished. Current state: %s", q.state)
		}
		header := types.Row{}
		for _, c := range q.answer.Columns {
			header.Data = append(header.Data, types.Datum{VarCharValue: c.Name})
		}
		return &athena.GetQueryResultsOutput{ResultSet: &types.ResultSet{Rows: []types.Row{header}, ResultSetMetadata: &types.ResultSetMetadata{ColumnInfo: q.answer.Columns}}}, nil
	})
}

// StopQueryExecution ends a query; one that has ended stays as it is.
func (a *Athena) StopQueryExecution(ctx context.Context, in *athena.StopQueryExecutionInput, _ ...func(*athena.Options)) (*athena.StopQueryExecutionOutput, error) {
	return invoke(ctx, &a.Hooks, ServiceAthena, "StopQueryExecution", in, func(in *athena.StopQueryExecutionInput) (*athena.StopQueryExecutionOutput, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		q, err := a.known(in.QueryExecutionId)
		if err != nil {
			return nil, err
		}
		a.look(q)
		a.cancel(q, "Query cancelled by user")
		return &athena.StopQueryExecutionOutput{}, nil
	})
}
