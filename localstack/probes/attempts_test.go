//go:build cloud

package probes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStepFunctionsRoleIsNotAsked(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f := name(t, "-f")
	makeFunction(t, f, nil)
	machine := makeMachine(t, fmt.Sprintf(`{"StartAt":"T","States":{"T":{"Type":"Task","Resource":"arn:aws:lambda:%s:%s:function:%s","End":true}}}`, region, account, f))
	execution, err := startExecution(t, machine, "one", `{"do":"identity"}`)
	if err != nil {
		t.Fatal(err)
	}
	// https://docs.aws.amazon.com/step-functions/latest/dg/lambda-iam.html: the role needs lambda:InvokeFunction.
	if status, name, _ := waitExecution(t, execution, 40*time.Second); status != "SUCCEEDED" {
		like(t, "a function that the role may not call: %s %s", status, name)
	}
}

// The state is spelled as the attempt job's are: parameters from the input and the context, a jittered retry, a catch.
func TestStepFunctionsTriesADeadFunctionAgain(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f, key := name(t, "-f"), t.Name()+run
	makeFunction(t, f, nil)
	arn := fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", region, account, f)
	machine := makeMachine(t, fmt.Sprintf(`{"StartAt":"T","States":{
		"T":{"Type":"Task","Resource":%q,"TimeoutSeconds":60,"Parameters":{"do":"exit","key.$":"$.key","text.$":"$$.Execution.Id"},"ResultPath":"$.said",
			"Retry":[{"ErrorEquals":["Lambda.Unknown","Sandbox.Timedout","Runtime.ExitError"],"IntervalSeconds":1,"BackoffRate":2,"MaxDelaySeconds":5,"MaxAttempts":1,"JitterStrategy":"FULL"}],
			"Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.error","Next":"C"}],"End":true},
		"C":{"Type":"Pass","End":true}}}`, arn), allow([]string{"lambda:InvokeFunction"}, arn))
	input, err := json.Marshal(map[string]string{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	execution, err := startExecution(t, machine, "one", string(input))
	if err != nil {
		t.Fatal(err)
	}
	status, _, output := waitExecution(t, execution, 90*time.Second)
	if status != "SUCCEEDED" || !strings.Contains(output, "Runtime.ExitError") {
		unlike(t, "%s %s, want a catch that is told Runtime.ExitError", status, output)
	}
	if !delivered(t, key, 2, 5*time.Second) {
		unlike(t, "the function was not called twice")
	}
}

func TestCloudFormationMakesDashboards(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	stack := name(t, "")
	template := `{"Resources":{"Board":{"Type":"AWS::CloudWatch::Dashboard","Properties":{"DashboardName":"` + stack + `","DashboardBody":"{\"widgets\":[]}"}}}}`
	if _, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "CreateStack", map[string]string{"StackName": stack, "TemplateBody": template}); err != nil {
		t.Fatal(err)
	}
	var status string
	happens(30*time.Second, func() (bool, string) {
		answer, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "DescribeStacks", map[string]string{"StackName": stack})
		if err != nil {
			return false, err.Error()
		}
		_, rest, _ := strings.Cut(answer, "<StackStatus>")
		status, _, _ = strings.Cut(rest, "</StackStatus>")
		return strings.HasSuffix(status, "_COMPLETE") || strings.HasSuffix(status, "_FAILED"), status
	})
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetDashboard.html
	body, err := raw().Query(t.Context(), "monitoring", "2010-08-01", "GetDashboard", map[string]string{"DashboardName": stack})
	if t.Logf("%s; the dashboard: %v", status, err); status != "CREATE_COMPLETE" || err != nil || !strings.Contains(body, "widgets") {
		unlike(t, "the stack is %s, the dashboard: %v", status, err)
	}
}
