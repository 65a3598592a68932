//go:build cloud

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// makeMachine makes a state machine and gives its ARN.
func makeMachine(t *testing.T, definition string, statements ...map[string]any) string {
	t.Helper()
	return makeNamedMachine(t, name(t, ""), definition, statements...)
}

func makeNamedMachine(t *testing.T, machine, definition string, statements ...map[string]any) string {
	t.Helper()
	var out struct {
		ARN string `json:"stateMachineArn"`
	}
	if err := raw().JSON(t.Context(), "states", "AWSStepFunctions.CreateStateMachine", map[string]any{
		"name": machine, "definition": definition, "roleArn": makeRole(t, machine+"-sfn", nil, statements...),
	}, &out); err != nil {
		t.Fatal(err)
	}
	return out.ARN
}

func startExecution(t *testing.T, machine, name, input string) (arn string, err error) {
	t.Helper()
	var out struct {
		ARN string `json:"executionArn"`
	}
	err = raw().JSON(t.Context(), "states", "AWSStepFunctions.StartExecution", map[string]any{"stateMachineArn": machine, "name": name, "input": input}, &out)
	return out.ARN, err
}

func waitExecution(t *testing.T, arn string, within time.Duration) (status, errorName, output string) {
	t.Helper()
	eventually(t, within, func() (bool, string) {
		var out struct {
			Status string `json:"status"`
			Error  string `json:"error"`
			Output string `json:"output"`
		}
		if err := raw().JSON(t.Context(), "states", "AWSStepFunctions.DescribeExecution", map[string]any{"executionArn": arn}, &out); err != nil {
			t.Fatal(err)
		}
		status, errorName, output = out.Status, out.Error, out.Output
		return status != "RUNNING", status
	})
	return status, errorName, output
}

func TestStepFunctionsHistoryIsNotLimited(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	// Two events a state, two states a round: 6,500 rounds are beyond 25,000 events, where AWS fails the execution:
	// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
	machine := makeMachine(t, `{"QueryLanguage":"JSONPath","StartAt":"Add","States":{
		"Add":{"Type":"Pass","Parameters":{"n.$":"States.MathAdd($.n, 1)"},"Next":"More"},
		"More":{"Type":"Choice","Choices":[{"Variable":"$.n","NumericLessThan":6500,"Next":"Add"}],"Default":"Done"},
		"Done":{"Type":"Succeed"}}}`)
	arn, err := startExecution(t, machine, "long", `{"n":0}`)
	if err != nil {
		t.Fatal(err)
	}
	if status, name, _ := waitExecution(t, arn, 170*time.Second); status != "SUCCEEDED" {
		like(t, "an execution of 26,000 events: %s %s", status, name)
	}
}

func TestStepFunctionsCatchesTypedErrors(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "-f")
	makeFunction(t, f, nil)
	arn := fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, f)
	machine := makeMachine(t, fmt.Sprintf(`{"StartAt":"T","States":{
		"T":{"Type":"Task","Resource":%q,"Catch":[{"ErrorEquals":["errorString"],"ResultPath":"$.caught","Next":"C"}],"End":true},
		"C":{"Type":"Pass","End":true}}}`, arn), allow([]string{"lambda:InvokeFunction"}, arn))
	execution, err := startExecution(t, machine, "one", `{"do":"fail"}`)
	if err != nil {
		t.Fatal(err)
	}
	if status, _, output := waitExecution(t, execution, 40*time.Second); status != "SUCCEEDED" || !strings.Contains(output, "told to fail") {
		unlike(t, "%s %s, want the error caught by its type", status, output)
	}
}

func TestEventBridgeRateRuleFires(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f, key := name(t, "-f"), t.Name()+run
	makeFunction(t, f, nil)
	arn := fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, f)
	rule := name(t, "")
	var made struct {
		ARN string `json:"RuleArn"`
	}
	if err := raw().JSON(t.Context(), "events", "AWSEvents.PutRule", map[string]any{"Name": rule, "ScheduleExpression": "rate(1 minute)"}, &made); err != nil {
		t.Fatal(err)
	}
	if _, err := functions().AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: &f, StatementId: aws.String("rule"), Action: aws.String("lambda:InvokeFunction"), Principal: aws.String("events.amazonaws.com"), SourceArn: &made.ARN,
	}); err != nil {
		t.Fatal(err)
	}
	if err := raw().JSON(t.Context(), "events", "AWSEvents.PutTargets", map[string]any{"Rule": rule, "Targets": []any{
		map[string]any{"Id": "f", "Arn": arn, "Input": `{"do":"identity","key":"` + key + `"}`},
	}}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := t.Context()
		_ = raw().JSON(ctx, "events", "AWSEvents.RemoveTargets", map[string]any{"Rule": rule, "Ids": []string{"f"}}, nil)
		_ = raw().JSON(ctx, "events", "AWSEvents.DeleteRule", map[string]any{"Name": rule}, nil)
	})
	waitDeliveries(t, key, 1, 150*time.Second)
}

func TestEventBridgeNeedsNoPermissionToInvoke(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f, key := name(t, "-f"), t.Name()+run
	makeFunction(t, f, nil)
	rule := name(t, "")
	if err := raw().JSON(t.Context(), "events", "AWSEvents.PutRule", map[string]any{"Name": rule, "EventPattern": `{"source":["` + key + `"]}`}, nil); err != nil {
		t.Fatal(err)
	}
	if err := raw().JSON(t.Context(), "events", "AWSEvents.PutTargets", map[string]any{"Rule": rule, "Targets": []any{
		map[string]any{"Id": "f", "Arn": fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, f), "Input": `{"do":"identity","key":"` + key + `"}`},
	}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := raw().JSON(t.Context(), "events", "AWSEvents.PutEvents", map[string]any{"Entries": []any{map[string]any{"Source": key, "DetailType": "probe", "Detail": "{}"}}}, nil); err != nil {
		t.Fatal(err)
	}
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html: without a resource policy on
	// the function nothing is invoked.
	if !delivered(t, key, 1, 30*time.Second) {
		like(t, "the function was not invoked")
	}
}

func TestSchedulerPlaceholder(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	url, arn := makeQueue(t, name(t, ""), nil)
	role := makeRole(t, name(t, ""), nil, allow([]string{"sqs:SendMessage"}, arn))
	at := time.Now().UTC().Add(3 * time.Second).Format("2006-01-02T15:04:05")
	if err := raw().REST(t.Context(), "scheduler", "POST", "/schedules/"+name(t, ""), map[string]any{
		"ScheduleExpression": "at(" + at + ")", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
		"Target": map[string]any{"Arn": arn, "RoleArn": role, "Input": `{"time":"<aws.scheduler.scheduled-time>"}`},
	}, nil); err != nil {
		t.Fatal(err)
	}
	var body string
	// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
	fired, _ := happens(60*time.Second, func() (bool, string) {
		out, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			return false, ""
		}
		body = aws.ToString(out.Messages[0].Body)
		return true, body
	})
	if t.Logf("fired %t: %s", fired, body); fired && !strings.Contains(body, "<aws.scheduler.scheduled-time>") {
		like(t, "the schedule's input arrived as %s", body)
	}
}
