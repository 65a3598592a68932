package athena_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/smithy-go"
)

// Each kind of error that Athena's catalog names is a refusal or passes.
func TestKindsOfError(t *testing.T) {
	for _, row := range []struct {
		name      string
		category  int32
		kind      int32
		retryable bool
		code      failure.Code
		over      bool
	}{
		{"exhausted resources", 1, 3, false, failure.SourceUnavailable, true},
		{"internal", 1, 100, false, failure.SourceUnavailable, true},
		{"time-out of the engine", 1, 206, false, failure.QueryTimeout, true},
		{"time-out", 2, 210, false, failure.QueryTimeout, true},
		{"writing the result", 1, 401, false, failure.SourceUnavailable, true},
		{"user error", 2, 1000, false, failure.QueryFailed, false},
		{"user error that may pass", 2, 1000, true, failure.SourceUnavailable, true},
		{"data", 2, 1001, false, failure.QueryFailed, false},
		{"schema", 2, 1004, false, failure.QueryInvalid, false},
		{"syntax", 2, 1006, false, failure.QueryInvalid, false},
		{"internal, called other", 3, 1010, false, failure.SourceUnavailable, true},
		{"argument", 2, 1100, false, failure.QueryInvalid, false},
		{"no such table", 2, 1110, false, failure.QueryInvalid, false},
		{"not supported", 2, 1200, false, failure.QueryInvalid, false},
		{"not found", 2, 1300, false, failure.QueryInvalid, false},
		{"throttled", 2, 1400, false, failure.SourceUnavailable, true},
		{"throttled by S3", 2, 1403, false, failure.SourceUnavailable, true},
		{"permission", 2, 1500, false, failure.SourceAccessDenied, false},
		{"permission of S3", 2, 1501, false, failure.SourceAccessDenied, false},
		{"capacity", 3, 1602, false, failure.SourceUnavailable, true},
		{"unforeseen", 3, 9999, false, failure.SourceUnavailable, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHeld(t)
			h.answer.Reason = "line 1:8: for such a reason"
			h.answer.Error = &types.AthenaError{ErrorCategory: &row.category, ErrorType: &row.kind, Retryable: row.retryable}
			ticket := h.ticket("1", "")
			_, err := h.ask(t.Context(), ticket)
			f := failuretest.Want(t, err, row.code)
			if !strings.Contains(f.Message, "for such a reason") || ticket.Over != row.over || ticket.Cost.Scanned != 25<<20 || ticket.Cost.Micros != 0 {
				t.Fatalf("%q, %+v", f.Message, ticket)
			}
		})
	}
}

func TestStatementsThatAreNoSelect(t *testing.T) {
	for _, row := range []struct {
		kind types.StatementType
		sub  string
		code failure.Code
	}{
		{types.StatementTypeDdl, "CREATE_TABLE", failure.QueryNotReadOnly}, {types.StatementTypeDdl, "", failure.QueryNotReadOnly},
		{types.StatementTypeDml, "INSERT", failure.QueryNotReadOnly}, {types.StatementTypeDml, "CREATE_TABLE_AS_SELECT", failure.QueryNotReadOnly},
		{types.StatementTypeDml, "UNLOAD", failure.QueryNotReadOnly}, {types.StatementTypeUtility, "SHOW_TABLES", failure.QueryInvalid},
	} {
		h := newHeld(t)
		h.answer.Type, h.answer.Sub, h.answer.Takes = row.kind, row.sub, 1e12
		_, err := h.ask(t.Context(), h.ticket("1", ""))
		f := failuretest.Want(t, err, row.code)
		if !strings.Contains(f.Message, string(row.kind)) || h.api.State(h.ids[0]) != types.QueryExecutionStateCancelled {
			t.Errorf("%s %s: %q, %s", row.kind, row.sub, f.Message, h.api.State(h.ids[0]))
		}
	}
}

func TestRefusedStarts(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		code failure.Code
		says string
	}{
		{"too many queries", &types.TooManyRequestsException{Message: aws.String("You have exceeded the limit for the number of queries")}, failure.SourceUnavailable, "exceeded the limit"},
		{"Athena's own fault", &types.InternalServerException{Message: aws.String("oops")}, failure.SourceUnavailable, "did not answer"},
		{"no connection", io.ErrUnexpectedEOF, failure.SourceUnavailable, "did not answer"},
		{"malformed", &types.InvalidRequestException{Message: aws.String("line 1:1: mismatched input 'SELEC'")}, failure.QueryInvalid, "mismatched input"},
		{"no such workgroup", &types.InvalidRequestException{Message: aws.String("WorkGroup is not found.")}, failure.SourceUnknown, "workgroup"},
		{"no place for results", &types.InvalidRequestException{Message: aws.String("No output location provided.")}, failure.SourceUnknown, "place for results"},
		{"no right", &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform: athena:StartQueryExecution"}, failure.SourceAccessDenied, "StartQueryExecution"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHeld(t)
			h.api.Before = func(context.Context, memcloud.Call) error { return row.err }
			ticket := h.ticket("1", "")
			_, err := h.ask(t.Context(), ticket)
			if f := failuretest.Want(t, err, row.code); !strings.Contains(f.Message, row.says) || ticket.Over {
				t.Fatalf("%q does not say %q; %+v", f.Message, row.says, ticket)
			}
		})
	}
	h := newHeld(t)
	h.Workgroup = "elsewhere"
	_, err := h.ask(t.Context(), nil)
	failuretest.Want(t, err, failure.SourceUnknown)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.ask(ctx, nil)
	failuretest.Want(t, err, failure.SourceUnavailable)
}

// The place that a workgroup enforces is where the result is read.
func TestTheWorkgroupsPlaceForResults(t *testing.T) {
	h := newHeld(t)
	h.api.Workgroups["reports"] = memcloud.AthenaWorkgroup{Output: "s3://files/enforced/", Enforce: true}
	h.Workgroup = "reports"
	if out, err := h.ask(t.Context(), nil); err != nil || len(out.Rows) != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	h.api.Workgroups["reports"] = memcloud.AthenaWorkgroup{Output: "s3://gone/", Enforce: true}
	_, err := h.ask(t.Context(), nil)
	failuretest.Want(t, err, failure.QueryInvalid)
}

func TestNegativeLimits(t *testing.T) {
	h := newHeld(t)
	_, err := h.Open(t.Context(), source.Query{SQL: "SELECT 1", Limits: source.Limits{Rows: -1}})
	failuretest.Want(t, err, failure.QueryInvalid)
	if len(h.api.Started()) != 0 {
		t.Fatal("a query was started")
	}
}
