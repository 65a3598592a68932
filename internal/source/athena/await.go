package athena

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// The pauses between two looks at a query. Most end within a second, the longest run for hours.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 10 * time.Second
)

// unanswered is how many looks in a row may fail before the attempt does. The query runs on meanwhile.
const unanswered = 5

// stopTime is for the request that ends a query whose caller has no time left.
const stopTime = 5 * time.Second

// execution is one query, while somebody waits for it.
type execution struct {
	*Source
	ticket *source.Ticket
	alone  bool // nobody comes later: it ends with its caller
	limits source.Limits
	began  time.Time // of the query, as far as is known
}

// start submits the query and records its id.
func (e *execution) start(ctx context.Context, text string, literals []string) error {
	in := &athena.StartQueryExecutionInput{
		QueryString: &text, ExecutionParameters: literals, WorkGroup: &e.Workgroup,
		QueryExecutionContext: &types.QueryExecutionContext{Catalog: &e.Catalog, Database: &e.Database},
		ResultConfiguration:   &types.ResultConfiguration{OutputLocation: &e.Output},
	}
	if e.ticket.Token != "" {
		in.ClientRequestToken = &e.ticket.Token
	}
	out, err := e.API.StartQueryExecution(ctx, in)
	if changed(err) {
		in.ClientRequestToken = aws.String(source.TokenOf(e.ticket.Token, text, strings.Join(literals, "\n")))
		out, err = e.API.StartQueryExecution(ctx, in)
	}
	if err != nil {
		return refused(ctx, err, "started")
	}
	id := aws.ToString(out.QueryExecutionId)
	if err := e.ticket.Record(ctx, id); err != nil {
		return err
	}
	e.ticket.ID = id
	return nil
}

// await looks at the query until it has ended.
func (e *execution) await(ctx context.Context) (*types.QueryExecution, error) {
	pause, silent, doubted := firstPause, 0, false
	for {
		out, err := e.API.GetQueryExecution(ctx, &athena.GetQueryExecutionInput{QueryExecutionId: &e.ticket.ID})
		switch {
		case err == nil:
			silent = 0
			f := e.judge(out.QueryExecution)
			if f == nil && out.QueryExecution.Status.State == types.QueryExecutionStateSucceeded {
				return out.QueryExecution, nil
			}
			// Athena tries some failures again by itself, from FAILED back to QUEUED.
			// https://docs.aws.amazon.com/athena/latest/APIReference/API_QueryExecutionStatus.html
			if f != nil && e.ticket.Over && !doubted && out.QueryExecution.Status.State == types.QueryExecutionStateFailed {
				doubted = true
				e.ticket.Ended, e.ticket.Over, e.ticket.Cost = false, false, source.Cost{}
			} else if f != nil {
				return nil, f
			}
		case gone(err):
			e.ticket.Ended, e.ticket.Over = true, true
			return nil, failure.Wrap(failure.SourceUnavailable, err, "Athena does not know the query %s any more: it is asked again", e.ticket.ID)
		default:
			silent++
			if ctx.Err() != nil {
				return nil, e.leave(ctx, ctx.Err())
			}
			if f := refused(ctx, err, "asked for"); !f.Passing() || silent >= unanswered {
				return nil, f
			}
		}
		if e.Now().Sub(e.began) >= e.limits.Timeout {
			return nil, e.late(ctx)
		}
		pause = min(pause, e.limits.Timeout-e.Now().Sub(e.began))
		if end, ok := e.until(ctx); ok && !e.Now().Add(pause).Before(end) {
			return nil, e.leave(ctx, context.DeadlineExceeded)
		}
		if err := e.Pause(ctx, pause); err != nil {
			return nil, e.leave(ctx, err)
		}
		pause = min(pause*3/2, maxPause)
	}
}

// until is when the caller does not wait any longer, if ever.
func (e *execution) until(ctx context.Context) (time.Time, bool) {
	end, ok := ctx.Deadline()
	if until := e.ticket.Until; !until.IsZero() && (!ok || until.Before(end)) {
		return until, true
	}
	return end, ok
}

// late ends a query that has used up its time. One that was paid for is followed by no other: it would take as long and cost
// as much. One that has only waited for its turn may be asked again.
func (e *execution) late(ctx context.Context) error {
	if err := e.end(ctx); err != nil {
		return err
	}
	if e.ticket.Cost.Micros > 0 {
		return failure.Wrap(failure.QueryTooSlow, context.DeadlineExceeded, "the query did not end within its time of %s and has scanned %d bytes, which are paid for: have it scan less, for instance one partition, or raise limits.timeout", e.limits.Timeout, e.ticket.Cost.Scanned)
	}
	e.ticket.Over = true
	return failure.Wrap(failure.QueryTimeout, context.DeadlineExceeded, "the query did not end within its time of %s: have it scan less, for instance one partition, or raise limits.timeout", e.limits.Timeout)
}

// leave is what becomes of a query whose caller has no time left for another look, or was told to end.
func (e *execution) leave(ctx context.Context, why error) error {
	late := errors.Is(why, context.DeadlineExceeded)
	if !e.alone && late {
		return source.ErrRunning
	}
	if e.alone {
		if err := e.end(ctx); err != nil {
			return err
		}
	}
	if late {
		return failure.Wrap(failure.QueryTimeout, why, "the query did not end before its caller's deadline: have it scan less, for instance one partition")
	}
	return failure.Wrap(failure.SourceUnavailable, why, "the query was cancelled before it ended")
}

// end stops the query, although its caller may have no time left.
func (e *execution) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	cost, err := e.Stop(ctx, e.ticket.ID)
	e.ticket.Cost, e.ticket.Ended = cost, err == nil
	return err
}
