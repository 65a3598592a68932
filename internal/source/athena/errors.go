package athena

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/smithy-go"

	"almanac/internal/failure"
)

// refused turns an error of a request to Athena into a failure; did says what was to be done with the query.
func refused(ctx context.Context, err error, did string) *failure.Failure {
	var invalid *types.InvalidRequestException
	var busy *types.TooManyRequestsException
	var coded smithy.APIError
	switch {
	case errors.As(err, &busy):
		return failure.Wrap(failure.SourceUnavailable, err, "Athena takes no more queries of this account at present: %s", said(busy.Message))
	case errors.As(err, &invalid):
		return invalidRequest(err, aws.ToString(invalid.Message))
	case errors.As(err, &coded) && strings.HasPrefix(coded.ErrorCode(), "AccessDenied"):
		return failure.Wrap(failure.SourceAccessDenied, err, "Athena refused the product's role: %s", failure.Cut(coded.ErrorMessage(), 300))
	case errors.Is(ctx.Err(), context.Canceled):
		return failure.Wrap(failure.SourceUnavailable, ctx.Err(), "the query was cancelled before it ended")
	}
	return failure.Wrap(failure.SourceUnavailable, err, "the query could not be %s: Athena did not answer as it should", did)
}

// invalidRequest tells the query's own faults from those of the source's configuration, which Athena reports by the same
// exception.
func invalidRequest(err error, message string) *failure.Failure {
	low := strings.ToLower(message)
	switch {
	case strings.Contains(low, "workgroup"):
		return failure.Wrap(failure.SourceUnknown, err, "the source's workgroup cannot be used: %s", failure.Cut(message, 300))
	case strings.Contains(low, "output location"), strings.Contains(low, "output bucket"):
		return failure.Wrap(failure.SourceUnknown, err, "the place for results cannot be used: %s", failure.Cut(message, 300))
	}
	return failure.Wrap(failure.QueryInvalid, err, "Athena does not understand the query: %s", failure.Cut(message, 300))
}

// changed reports a token that was used before with other parameters. Athena has no code for it:
// https://github.com/DyfanJones/noctua/issues/104 has the words.
func changed(err error) bool {
	var invalid *types.InvalidRequestException
	return errors.As(err, &invalid) && strings.Contains(strings.ToLower(aws.ToString(invalid.Message)), "idempotent parameters")
}

// gone reports an id that Athena does not know, or no more: it keeps queries for 45 days.
// https://docs.aws.amazon.com/athena/latest/ug/queries-viewing-history.html
func gone(err error) bool {
	var invalid *types.InvalidRequestException
	return errors.As(err, &invalid) && strings.Contains(strings.ToLower(aws.ToString(invalid.Message)), "not found")
}

func said(message *string) string { return failure.Cut(aws.ToString(message), 300) }

// judge says why a query is not to be waited for any more; nil: it runs, or has succeeded.
func (e *execution) judge(x *types.QueryExecution) *failure.Failure {
	if at := x.Status.SubmissionDateTime; at != nil {
		e.began = *at
	}
	ended := x.Status.State != types.QueryExecutionStateQueued && x.Status.State != types.QueryExecutionStateRunning
	if ended {
		e.ticket.Ended, e.ticket.Cost = true, costOf(x)
	}
	if f := readOnly(x); f != nil {
		return e.forbid(f, ended)
	}
	if n := scanned(x); e.ScanLimit > 0 && n > e.ScanLimit {
		return e.forbid(tooMuch("the query has scanned %d bytes, more than the source's scan_limit of %d", n, e.ScanLimit), ended)
	}
	switch x.Status.State {
	case types.QueryExecutionStateFailed:
		f := classify(x.Status)
		e.ticket.Over = f.Passing()
		return f
	case types.QueryExecutionStateCancelled:
		if why := aws.ToString(x.Status.StateChangeReason); strings.Contains(strings.ToLower(why), "scan") {
			return tooMuch("the workgroup's limit ended the query: %s", failure.Cut(why, 300))
		}
		e.ticket.Over = true
		return failure.New(failure.SourceUnavailable, "somebody cancelled the query in Athena: it is asked again")
	}
	return nil
}

// forbid refuses a query and ends it, if it has not ended. That it could not be ended changes nothing about the refusal:
// the workgroup's limit and Athena's own time-out bound it.
func (e *execution) forbid(f *failure.Failure, ended bool) *failure.Failure {
	if !ended {
		if err := e.end(context.Background()); err != nil {
			f.Message += "; it could not be stopped"
		}
	}
	return f
}

func tooMuch(format string, args ...any) *failure.Failure {
	return failure.New(failure.QueryScansTooMuch, format+": narrow it, for instance to one partition or to fewer columns, or raise the limit", args...)
}

// writers are the words of the kinds of statement that change something. AWS names the field SubstatementType and not what
// it may hold.
// https://docs.aws.amazon.com/athena/latest/ug/dml-queries-functions-operators.html
var writers = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "UNLOAD", "OPTIMIZE", "VACUUM", "PREPARE", "EXECUTE"}

// readOnly refuses what Athena calls anything but a SELECT.
func readOnly(x *types.QueryExecution) *failure.Failure {
	kind := strings.ToUpper(aws.ToString(x.SubstatementType))
	writes := slices.ContainsFunc(writers, func(w string) bool { return strings.Contains(kind, w) })
	switch {
	case x.StatementType == types.StatementTypeDdl, writes:
		return failure.New(failure.QueryNotReadOnly, "the query is no SELECT but %s %s; a query may only read", x.StatementType, kind)
	case x.StatementType == types.StatementTypeUtility:
		return failure.New(failure.QueryInvalid, "the query is %s %s, which has no rows: use one SELECT", x.StatementType, kind)
	}
	return nil
}

// classify is the one place where Athena's kinds of error become the product's.
// https://docs.aws.amazon.com/athena/latest/ug/error-reference.html
func classify(s *types.QueryExecutionStatus) *failure.Failure {
	why := failure.Cut(aws.ToString(s.StateChangeReason), 300)
	a := s.AthenaError
	if a == nil { // older queries, and emulators
		return failure.New(failure.QueryFailed, "the query failed in Athena: %s", why)
	}
	category, kind := aws.ToInt32(a.ErrorCategory), aws.ToInt32(a.ErrorType)
	is := func(list ...int32) bool { return slices.Contains(list, kind) }
	switch {
	case is(206, 210):
		return failure.New(failure.QueryTimeout, "Athena ended the query at its own time-out: %s", why)
	case is(1500, 1501):
		return failure.New(failure.SourceAccessDenied, "Athena may not read what the query names: %s", why)
	case is(1006, 1004, 1100, 1101, 1103, 1106, 1107, 1109, 1110, 1200, 1201, 1202, 1300, 1301, 1302, 1303, 1306):
		return failure.New(failure.QueryInvalid, "Athena does not understand the query: %s", why)
	case a.Retryable, category == 1, kind >= 1400 && kind < 1500, is(1010, 1012, 1013, 1602, 9999):
		return failure.New(failure.SourceUnavailable, "Athena could not run the query: %s", why)
	}
	return failure.New(failure.QueryFailed, "the query failed in Athena: %s; correct the query or the data", why)
}
