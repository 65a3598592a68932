package memcloud

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"
)

const testMachine = "arn:aws:states:us-east-1:000000000000:stateMachine:m"

func TestStatesRefuseWhatStepFunctionsRefuses(t *testing.T) {
	c := newClock()
	s := NewStates(c.read, testMachine)
	for _, row := range []struct{ machine, name, input, code string }{
		{testMachine + "2", "a", `{}`, "StateMachineDoesNotExist"},
		{testMachine, "", `{}`, "InvalidName"},
		{testMachine, strings.Repeat("a", 81), `{}`, "InvalidName"},
		{testMachine, "a b", `{}`, "InvalidName"},
		{testMachine, "a:b", `{}`, "InvalidName"},
		{testMachine, "a*", `{}`, "InvalidName"},
		{testMachine, "a\x00", `{}`, "InvalidName"},
		{testMachine, "a", `{`, "InvalidExecutionInput"},
		{testMachine, "a", ``, "InvalidExecutionInput"},
		{testMachine, "a", `"` + strings.Repeat("a", maxInput) + `"`, "InvalidExecutionInput"},
	} {
		_, err := s.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &row.machine, Name: &row.name, Input: &row.input})
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != row.code {
			t.Errorf("%.20q with %.20q: %v; want %s", row.name, row.input, err, row.code)
		}
	}
	var invalid *types.InvalidArn
	if _, err := s.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: aws.String(testMachine)}); !errors.As(err, &invalid) {
		t.Errorf("a machine's ARN is described: %v", err)
	}
	if _, err := s.StopExecution(ctx, &sfn.StopExecutionInput{}); !errors.As(err, &invalid) {
		t.Errorf("no ARN is stopped: %v", err)
	}
}

func TestAnExecutionClosesOnce(t *testing.T) {
	c := newClock()
	s := NewStates(c.read, testMachine)
	out, err := s.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(testMachine), Name: aws.String("a"), Input: aws.String(`{"n":1}`)})
	must(t, err)
	if !s.Finish(*out.ExecutionArn, types.ExecutionStatusFailed, "E", "why") || s.Finish(*out.ExecutionArn, types.ExecutionStatusSucceeded, "", "") || s.Finish("other", types.ExecutionStatusFailed, "", "") {
		t.Error("it closes once, and another not at all")
	}
	_, err = s.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: out.ExecutionArn, Error: aws.String("Stopped")})
	must(t, err)
	got, err := s.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: out.ExecutionArn})
	must(t, err)
	if got.Status != types.ExecutionStatusFailed || aws.ToString(got.Error) != "E" || aws.ToString(got.Cause) != "why" || aws.ToString(got.Input) != `{"n":1}` || !got.StopDate.Equal(c.read()) {
		t.Errorf("%+v", got)
	}
}
