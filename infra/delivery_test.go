package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestQueuesKeepMessagesAndDeadLetters(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		receives := map[string]int{"DeliveryQueryRuns": 20, "MailEventsQueue": 5}
		if n := len(tpl.of(t, "AWS::SQS::Queue")); n != 2*len(receives) {
			t.Errorf("%d queues; want %d, half of them for dead letters", n, 2*len(receives))
		}
		for name, most := range receives {
			deadID, dead := tpl.one(t, "AWS::SQS::Queue", name+"Dead")
			var queue resource
			for id, r := range tpl.of(t, "AWS::SQS::Queue") {
				if strings.HasPrefix(id, name) && id != deadID {
					queue = r
				}
			}
			want(t, name+" retention", queue.Properties["MessageRetentionPeriod"], 4*24*3600)
			want(t, name+" retention of dead letters", dead.Properties["MessageRetentionPeriod"], 14*24*3600)
			want(t, name+" maxReceiveCount", get(queue.Properties, "RedrivePolicy", "maxReceiveCount"), most)
			if !mentions(get(queue.Properties, "RedrivePolicy", "deadLetterTargetArn"), deadID) {
				t.Errorf("dead letters of %s go elsewhere", name)
			}
		}
		for id, r := range tpl.of(t, "AWS::SQS::Queue") {
			want(t, id+" encryption", r.Properties["SqsManagedSseEnabled"], true)
			if p.Cloud.TLS && !refusesPlainHTTP(tpl, "AWS::SQS::QueuePolicy", id) {
				t.Errorf("%s takes plain HTTP", id)
			}
		}
	})
}

// refusesPlainHTTP reports whether a resource policy on id denies requests without TLS.
func refusesPlainHTTP(tpl template, kind, id string) bool {
	for _, r := range tpl.Resources {
		if r.Type != kind || !mentions(r.Properties, id) {
			continue
		}
		statements, _ := get(r.Properties, "PolicyDocument", "Statement").([]any)
		for _, s := range statements {
			if get(s, "Effect") == "Deny" && get(s, "Condition", "Bool", "aws:SecureTransport") == "false" {
				return true
			}
		}
	}
	return false
}

// visibilityProblems holds every SQS event source of a template against the rule that a message stays invisible for six
// times its function's time-out.
func visibilityProblems(tpl template) []string {
	var problems []string
	for id, m := range tpl.Resources {
		if m.Type != "AWS::Lambda::EventSourceMapping" {
			continue
		}
		function := tpl.Resources[get(m.Properties, "FunctionName", "Ref").(string)]
		queue := tpl.Resources[get(m.Properties, "EventSourceArn", "Fn::GetAtt", 0).(string)]
		visibility, _ := queue.Properties["VisibilityTimeout"].(float64)
		timeout, _ := function.Properties["Timeout"].(float64)
		if timeout == 0 || visibility < 6*timeout {
			problems = append(problems, fmt.Sprintf("%s: visibility %v s, time-out %v s", id, visibility, timeout))
		}
	}
	return problems
}

func TestI2VisibilityIsSixTimesTheTimeOut(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		tpl.of(t, "AWS::Lambda::EventSourceMapping")
		if problems := visibilityProblems(tpl); len(problems) != 0 {
			t.Error(problems)
		}
	})
}

func TestI2ATimeOutOf900SecondsWithAVisibilityOf30IsRefused(t *testing.T) {
	err := checkVisibility("QueryRuns", 30*time.Second, 900*time.Second)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, w := range []string{"QueryRuns", "30s", "15m0s", "1h30m0s"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if err := checkVisibility("QueryRuns", 90*time.Minute, 15*time.Minute); err != nil {
		t.Errorf("six times the time-out is refused: %v", err)
	}
	if err := checkVisibility("QueryRuns", 13*time.Hour, time.Minute); err == nil || !strings.Contains(err.Error(), "12h") {
		t.Errorf("more than SQS allows: %v", err)
	}
}

func TestI2TheTemplateCheckFindsATimeOutThatGrewAlone(t *testing.T) {
	tpl := templateOf(t, variant{stage: "production"})
	// A copy in which the consumer has 900 s and its queue 30 s, as somebody may write it by hand.
	broken := template{Resources: maps.Clone(tpl.Resources)}
	id, function := tpl.one(t, "AWS::Lambda::Function", "DeliveryDeliverQuery")
	function.Properties = maps.Clone(function.Properties)
	function.Properties["Timeout"] = float64(900)
	broken.Resources[id] = function
	for qid, q := range tpl.of(t, "AWS::SQS::Queue") {
		if strings.HasPrefix(qid, "DeliveryQueryRuns") && !strings.HasPrefix(qid, "DeliveryQueryRunsDead") {
			q.Properties = maps.Clone(q.Properties)
			q.Properties["VisibilityTimeout"] = float64(30)
			broken.Resources[qid] = q
		}
	}
	if problems := visibilityProblems(broken); len(problems) != 1 || !strings.Contains(problems[0], "DeliverQuery") {
		t.Errorf("found %v; want the delivery consumer alone", problems)
	}
}

func TestI1EventSourcesBoundConcurrencyAndReportSingleFailures(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		wanted := map[string]struct{ batch, concurrency int }{
			"DeliveryDeliverQuery": {1, p.DeliverConcurrency},
			"DeliveryExhaust":      {10, p.ExhaustConcurrency},
			"MailEventsFeedback":   {10, p.EventsConcurrency},
		}
		if n := len(tpl.of(t, "AWS::Lambda::EventSourceMapping")); n != len(wanted) {
			t.Fatalf("%d event sources; want %d", n, len(wanted))
		}
		for prefix, w := range wanted {
			id, m := tpl.one(t, "AWS::Lambda::EventSourceMapping", prefix)
			want(t, id+" batch size", m.Properties["BatchSize"], w.batch)
			want(t, id+" maximum concurrency", get(m.Properties, "ScalingConfig", "MaximumConcurrency"), w.concurrency)
			want(t, id+" responses", m.Properties["FunctionResponseTypes"], []string{"ReportBatchItemFailures"})
		}
	})
}

func TestTheTickComesEveryMinuteAndAStallReplaysNothing(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		id, rule := tpl.one(t, "AWS::Events::Rule", "DeliveryTick")
		want(t, "schedule", rule.Properties["ScheduleExpression"], "rate(1 minute)")
		want(t, "state", rule.Properties["State"], "ENABLED")
		want(t, "retries", get(rule.Properties, "Targets", 0, "RetryPolicy", "MaximumRetryAttempts"), 0)
		want(t, "event age", get(rule.Properties, "Targets", 0, "RetryPolicy", "MaximumEventAgeInSeconds"), 60)
		function, f := tpl.one(t, "AWS::Lambda::Function", "DeliveryDispatch")
		if !mentions(rule.Properties["Targets"], function) {
			t.Errorf("%s does not call dispatch", id)
		}
		if timeout, _ := f.Properties["Timeout"].(float64); timeout == 0 || timeout >= 60 {
			t.Errorf("dispatch runs up to %v s; want less than the minute between ticks", timeout)
		}
	})
}

func TestFunctionsAreBuiltLoggedAndNeverRetriedByLambda(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		functions := tpl.of(t, "AWS::Lambda::Function")
		if len(functions) != len(functionFolders) {
			t.Errorf("%d functions; want one for each of %v", len(functions), functionFolders)
		}
		roles, groups := map[string]string{}, map[string]string{}
		for id, f := range functions {
			architecture := "arm64"
			if p.Architecture != "arm64" {
				architecture = "x86_64"
			}
			want(t, id+" architecture", f.Properties["Architectures"], []string{architecture})
			want(t, id+" runtime", f.Properties["Runtime"], "provided.al2023")
			want(t, id+" log format", get(f.Properties, "LoggingConfig", "LogFormat"), "JSON")
			want(t, id+" stage", get(f.Properties, "Environment", "Variables", "STAGE"), p.Stage)
			var tracing any
			if p.Tracing {
				tracing = "Active"
			}
			want(t, id+" tracing", get(f.Properties, "TracingConfig", "Mode"), tracing)

			role, _ := get(f.Properties, "Role", "Fn::GetAtt", 0).(string)
			if other, taken := roles[role]; taken || role == "" {
				t.Errorf("%s and %s have the same role %q", id, other, role)
			}
			roles[role] = id
			group, _ := get(f.Properties, "LoggingConfig", "LogGroup", "Ref").(string)
			if other, taken := groups[group]; taken || group == "" {
				t.Errorf("%s and %s log to the same group %q", id, other, group)
			}
			groups[group] = id
			want(t, id+" log retention", tpl.Resources[group].Properties["RetentionInDays"], p.LogDays)

			asynchronous := 0
			for _, c := range tpl.of(t, "AWS::Lambda::EventInvokeConfig") {
				if mentions(c.Properties["FunctionName"], id) {
					asynchronous++
					want(t, id+" asynchronous retries", c.Properties["MaximumRetryAttempts"], 0)
					want(t, id+" asynchronous event age", c.Properties["MaximumEventAgeInSeconds"], 60)
				}
			}
			want(t, id+" asynchronous configurations", asynchronous, 1)
		}
		for id, g := range tpl.of(t, "AWS::Logs::LogGroup") {
			if g.Properties["RetentionInDays"] == nil {
				t.Errorf("%s keeps its lines for ever", id)
			}
		}
	})
}

func TestRealStagesRunOnARM64(t *testing.T) {
	for _, v := range variants() {
		if p, err := ProfileOf(v.stage, v.cloud); err != nil || !p.Cloud.Local() && p.Architecture != "arm64" {
			t.Errorf("%s: %s, %v", v, p.Architecture, err)
		}
	}
}
