package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

// state is what the tests look at of a state in the Amazon States Language.
type state struct {
	Type           string
	Resource       string
	Parameters     map[string]any
	TimeoutSeconds float64
	Retry          []struct {
		ErrorEquals []string
		MaxAttempts int
	}
	Catch []struct {
		ErrorEquals []string
		Next        string
	}
}

// definitionOf is the workflow as the template has it.
func definitionOf(t *testing.T, tpl template) (machine resource, states map[string]state) {
	t.Helper()
	_, machine = tpl.one(t, "AWS::StepFunctions::StateMachine", "SnapshotsAttempts")
	source, ok := machine.Properties["DefinitionString"].(string)
	if !ok {
		t.Fatalf("the definition is %s; want text with substitutions", text(machine.Properties["DefinitionString"]))
	}
	var d struct{ States map[string]state }
	if err := json.Unmarshal([]byte(source), &d); err != nil {
		t.Fatal(err)
	}
	return machine, d.States
}

func TestTheAttemptJobIsTheOneWorkflow(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		machine, states := definitionOf(t, tpl)
		want(t, "type", machine.Properties["StateMachineType"], "STANDARD")
		want(t, "name", machine.Properties["StateMachineName"], "almanac-"+p.Stage+"-attempts")
		definition, err := snapshot.States(snapshot.Workflow(p.SnapshotStep.Timeout), "${StepFunction}")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "definition", machine.Properties["DefinitionString"], definition)
		step, f := tpl.one(t, "AWS::Lambda::Function", "SnapshotsStep")
		want(t, "substitutions", machine.Properties["DefinitionSubstitutions"], map[string]any{"StepFunction": map[string]any{"Fn::GetAtt": []string{step, "Arn"}}})
		role, _ := tpl.one(t, "AWS::IAM::Role", "SnapshotsAttemptsRole")
		if !mentions(machine.Properties["RoleArn"], role) {
			t.Errorf("its role is %s", text(machine.Properties["RoleArn"]))
		}
		traced, _ := get(machine.Properties, "TracingConfiguration", "Enabled").(bool)
		want(t, "tracing", traced, p.Tracing)
		want(t, "logs, which want rights on all of the account's", machine.Properties["LoggingConfiguration"], nil)

		timeout, _ := f.Properties["Timeout"].(float64)
		want(t, "the step's time-out", timeout, p.SnapshotStep.Timeout.Seconds())
		tasks := 0
		for name, s := range states {
			if s.Type != "Task" {
				continue
			}
			tasks++
			want(t, name+" calls", s.Resource, "${StepFunction}")
			if s.TimeoutSeconds <= timeout {
				t.Errorf("%s waits %v s for a function that may run %v s", name, s.TimeoutSeconds, timeout)
			}
			retried := text(s.Retry)
			for _, e := range []string{"Lambda.Unknown", "Sandbox.Timedout", "Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException",
				"Lambda.SdkClientException", "Lambda.ClientExecutionTimeoutException", snapshot.NameDisturbed} {
				if !strings.Contains(retried, `"`+e+`"`) {
					t.Errorf("%s is not tried again after %s", name, e)
				}
			}
			if name != snapshot.StateSettle && (len(s.Catch) != 1 || text(s.Catch[0].ErrorEquals) != `["States.ALL"]` || s.Catch[0].Next != snapshot.StateSettle) {
				t.Errorf("%s catches %s; want everything settled", name, text(s.Catch))
			}
			for field := range s.Parameters {
				switch field {
				case "step", "run.$", "job.$":
				case "execution.$":
					want(t, "who is told the execution", name, snapshot.StateStart)
				case "error.$":
					want(t, "who is told the error", name, snapshot.StateSettle)
				default:
					t.Errorf("%s is given %s; want ids alone", name, field)
				}
			}
		}
		want(t, "tasks", tasks, 5)
	})
}

func TestTicksOfSnapshotsReplayNothing(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		for id, w := range map[string]struct {
			function, rate string
			every          time.Duration
		}{
			"SnapshotsPlanTick":      {"SnapshotsPlan", "rate(15 minutes)", 15 * time.Minute},
			"SnapshotsDispatchTick":  {"SnapshotsDispatch", "rate(1 minute)", time.Minute},
			"SnapshotsReconcileTick": {"SnapshotsReconcile", "rate(5 minutes)", 5 * time.Minute},
		} {
			_, rule := tpl.one(t, "AWS::Events::Rule", id)
			want(t, id+" schedule", rule.Properties["ScheduleExpression"], w.rate)
			want(t, id+" state", rule.Properties["State"], "ENABLED")
			want(t, id+" retries", get(rule.Properties, "Targets", 0, "RetryPolicy", "MaximumRetryAttempts"), 0)
			want(t, id+" event age", get(rule.Properties, "Targets", 0, "RetryPolicy", "MaximumEventAgeInSeconds"), 60)
			function, f := tpl.one(t, "AWS::Lambda::Function", w.function)
			if !mentions(rule.Properties["Targets"], function) {
				t.Errorf("%s does not call %s", id, function)
			}
			if timeout, _ := f.Properties["Timeout"].(float64); timeout == 0 || timeout >= w.every.Seconds() {
				t.Errorf("%s runs up to %v s; want less than the %s between ticks", function, timeout, w.every)
			}
		}
		want(t, "rules", len(tpl.of(t, "AWS::Events::Rule")), 4)
	})
}

func TestFunctionsOfSnapshotsKnowWhatTheyWorkWith(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		dispatch, _ := tpl.one(t, "AWS::Lambda::Function", "SnapshotsDispatch")
		table, _ := tpl.one(t, "AWS::DynamoDB::GlobalTable", "StorageSnapshots")
		for prefix, knows := range map[string]string{
			"SnapshotsPlan":      "DATA_BUCKET ATTEMPT_MACHINE SNAPSHOT_DISPATCH",
			"SnapshotsDispatch":  "ATTEMPT_MACHINE",
			"SnapshotsStep":      "DATA_BUCKET SNAPSHOTS_BUCKET SNAPSHOT_DISPATCH",
			"SnapshotsReconcile": "SNAPSHOTS_BUCKET ATTEMPT_MACHINE SNAPSHOT_DISPATCH",
		} {
			_, f := tpl.one(t, "AWS::Lambda::Function", prefix)
			env := get(f.Properties, "Environment", "Variables").(map[string]any)
			for _, name := range append(strings.Fields(knows), "SCHEDULES_TABLE", "SNAPSHOTS_TABLE") {
				if env[name] == nil {
					t.Errorf("%s is not given %s", prefix, name)
				}
			}
			want(t, prefix+" table", env["SNAPSHOTS_TABLE"], map[string]string{"Ref": table})
			given, _ := env["SNAPSHOT_TIMING"].(string)
			if timing, err := snapshot.ParseTiming(given); err != nil || text(timing) != text(p.SnapshotTiming) {
				t.Errorf("%s waits as %s, %v; want the profile's", prefix, given, err)
			}
			if strings.Contains(knows, "ATTEMPT_MACHINE") && !strings.Contains(text(env["ATTEMPT_MACHINE"]), ":stateMachine:almanac-"+p.Stage+"-attempts") {
				t.Errorf("%s starts %s", prefix, text(env["ATTEMPT_MACHINE"]))
			}
			if strings.Contains(knows, "SNAPSHOT_DISPATCH") {
				want(t, prefix+" asks", env["SNAPSHOT_DISPATCH"], map[string]string{"Ref": dispatch})
			}
		}
		if !strings.Contains(text(tpl.Outputs["AttemptMachineArn"].Value), ":stateMachine:almanac-"+p.Stage+"-attempts") {
			t.Errorf("the output names %s", text(tpl.Outputs["AttemptMachineArn"].Value))
		}
	})
}

func TestFilesOfSnapshotsAreWrittenWhereTheRightsAre(t *testing.T) {
	p := snapshot.Period{Series: snapshot.Series{Workspace: "ewr", Type: "weather"}, Month: calendar.Month{Year: 2013, Month: time.April}}
	if prefix := snapshot.RunPrefix(p, 3); !strings.HasPrefix(prefix, snapshotPrefix) {
		t.Errorf("a run's files lie below %s; want below %s", prefix, snapshotPrefix)
	}
}
