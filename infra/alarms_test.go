package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// watched are the alarms that there are, by the beginning of their id: what breaks the bound, and what silence means.
var watched = map[string]struct{ metric, missing string }{
	"AlarmsLatePublications":          {"Almanac snapshots_late Maximum > 0", "ignore"},
	"AlarmsFinalFailures":             {"Almanac snapshots_failed_for_good Maximum > 0", "ignore"},
	"AlarmsOldestQueued":              {"Almanac snapshots_queued_oldest_seconds Maximum > 900", "ignore"},
	"AlarmsDispatchSilent":            {"AWS/Lambda Invocations Sum < 1", "breaching"},
	"AlarmsDispatchTroubled":          {"Almanac dispatch_errors Sum > 0", "notBreaching"},
	"AlarmsSnapshotPlanSilent":        {"AWS/Lambda Invocations Sum < 1", "breaching"},
	"AlarmsSnapshotPlanTroubled":      {"Almanac plan_errors Sum > 0", "notBreaching"},
	"AlarmsSnapshotDispatchSilent":    {"AWS/Lambda Invocations Sum < 1", "breaching"},
	"AlarmsSnapshotDispatchTroubled":  {"Almanac snapshot_dispatch_errors Sum > 0", "notBreaching"},
	"AlarmsSnapshotReconcileSilent":   {"AWS/Lambda Invocations Sum < 1", "breaching"},
	"AlarmsSnapshotReconcileTroubled": {"Almanac snapshot_reconcile_errors Sum > 0", "notBreaching"},
	"AlarmsErrorsapi":                 {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorsdeliveryevents":      {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorsscheduledeliver":     {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorsscheduledispatch":    {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorsscheduleexhaust":     {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorssnapshotdispatch":    {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorssnapshotplan":        {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsErrorssnapshotreconcile":   {"AWS/Lambda Errors Sum > 0", "notBreaching"},
	"AlarmsMailEventsDeadUntaken":     {"AWS/SQS ApproximateNumberOfMessagesVisible Maximum > 0", "notBreaching"},
	"AlarmsMailEventsDeadUnsettled":   {"AWS/SQS ApproximateNumberOfMessagesNotVisible Maximum > 0", "notBreaching"},
	"AlarmsQueryRunsDeadUntaken":      {"AWS/SQS ApproximateNumberOfMessagesVisible Maximum > 0", "notBreaching"},
	"AlarmsQueryRunsDeadUnsettled":    {"AWS/SQS ApproximateNumberOfMessagesNotVisible Maximum > 0", "notBreaching"},
	"AlarmsNoticesUnsent":             {"Almanac notices Sum > 0", "notBreaching"},
}

// said spells what an alarm watches.
func said(a resource) string {
	compared := "?"
	switch a.Properties["ComparisonOperator"] {
	case "GreaterThanThreshold":
		compared = ">"
	case "LessThanThreshold":
		compared = "<"
	}
	bound := fmt.Sprintf(" %s %v", compared, a.Properties["Threshold"])
	return fmt.Sprintf("%v %v %v", a.Properties["Namespace"], a.Properties["MetricName"], a.Properties["Statistic"]) + bound
}

func TestEachAlarmWatchesOneThingAndTakesSilenceRightly(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "AlarmsTopic")
		want(t, "alarms", len(tpl.of(t, "AWS::CloudWatch::Alarm")), len(watched))
		for prefix, w := range watched {
			_, a := tpl.one(t, "AWS::CloudWatch::Alarm", prefix)
			want(t, prefix, said(a), w.metric)
			want(t, prefix+" without figures", a.Properties["TreatMissingData"], w.missing)
			want(t, prefix+" tells", a.Properties["AlarmActions"], []any{map[string]string{"Ref": topic}})
			if d, _ := a.Properties["AlarmDescription"].(string); len(strings.Fields(d)) < 4 {
				t.Errorf("%s says %q", prefix, d)
			}
		}
	})
}

// TestN10EachNumberOfSnapshotsHasItsOwnAlarm: no alarm mixes two of them, and each looks at its number as the reconciler
// sends it, by stage alone.
func TestN10EachNumberOfSnapshotsHasItsOwnAlarm(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		for prefix, name := range map[string]string{
			"AlarmsLatePublications": "snapshots_late", "AlarmsFinalFailures": "snapshots_failed_for_good", "AlarmsOldestQueued": "snapshots_queued_oldest_seconds",
		} {
			_, a := tpl.one(t, "AWS::CloudWatch::Alarm", prefix)
			want(t, prefix+" metric", a.Properties["MetricName"], name)
			want(t, prefix+" dimensions", a.Properties["Dimensions"], []map[string]string{{"Name": "stage", "Value": p.Stage}})
			want(t, prefix+" expressions", a.Properties["Metrics"], nil)
			want(t, prefix+" periods", a.Properties["EvaluationPeriods"], 1)
		}
	})
}

var count = regexp.MustCompile(`Count\("([a-z_]+)", (?:[^"\n]*), ("[a-z]*"|[^",\n]+), ("[a-z]*"|[^",\n]+)\)`)

// counted are the metrics that the product counts: name → dimensions beside the stage, "outcome=?" where it is no literal.
func counted(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := fs.WalkDir(os.DirFS(".."), "internal", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			return err
		}
		for _, m := range count.FindAllStringSubmatch(string(source), -1) {
			var dims []string
			for i, dim := range []string{"outcome", "kind"} {
				switch v := m[i+2]; {
				case v == `""`:
				case strings.HasPrefix(v, `"`):
					dims = append(dims, dim+"="+strings.Trim(v, `"`))
				default:
					dims = append(dims, dim+"=?")
				}
			}
			all[m[1]] = append(all[m[1]], strings.Join(dims, " "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %v alone", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// TestAlarmsWatchWhatIsCounted: CloudWatch finds a metric by all of its dimensions; an alarm on another set sees nothing,
// for ever.
func TestAlarmsWatchWhatIsCounted(t *testing.T) {
	sent := counted(t)
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		own := 0
		for id, a := range tpl.of(t, "AWS::CloudWatch::Alarm") {
			if a.Properties["Namespace"] != "Almanac" {
				continue
			}
			own++
			var dims []string
			for _, d := range a.Properties["Dimensions"].([]any) {
				if get(d, "Name") == "stage" {
					want(t, id+" stage", get(d, "Value"), p.Stage)
					continue
				}
				dims = append(dims, fmt.Sprintf("%v=%v", get(d, "Name"), get(d, "Value")))
			}
			if name := a.Properties["MetricName"].(string); !slices.Contains(sent[name], strings.Join(dims, " ")) {
				t.Errorf("%s watches %s by %q; it is counted by %q", id, name, dims, sent[name])
			}
		}
		want(t, "alarms on what functions count", own, 8)
		for id, f := range tpl.of(t, "AWS::Lambda::Function") {
			want(t, id+" counts under", get(f.Properties, "Environment", "Variables", "METRICS_NAMESPACE"), "Almanac")
		}
	})
}

func TestEveryFunctionsErrorsAreWatchedButThoseThatAreAnswers(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		seen, silent := map[string]bool{}, map[string]bool{}
		for _, a := range tpl.of(t, "AWS::CloudWatch::Alarm") {
			function, _ := get(a.Properties, "Dimensions", 0, "Value", "Ref").(string)
			switch a.Properties["MetricName"] {
			case "Errors":
				seen[function] = true
			case "Invocations":
				silent[function] = true
			}
		}
		for id := range tpl.of(t, "AWS::Lambda::Function") {
			if seen[id] == strings.HasPrefix(id, "SnapshotsStep") {
				t.Errorf("%s: errors watched %t", id, seen[id])
			}
		}
		for id, rule := range tpl.of(t, "AWS::Events::Rule") {
			function, _ := get(rule.Properties, "Targets", 0, "Arn", "Fn::GetAtt", 0).(string)
			if !silent[function] {
				t.Errorf("nobody notices when %s does not call %s", id, function)
			}
		}
	})
}

func TestDeadLettersOfEveryQueueAreWatched(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		watched := map[string]int{}
		for _, a := range tpl.of(t, "AWS::CloudWatch::Alarm") {
			if a.Properties["Namespace"] == "AWS/SQS" {
				queue, _ := get(a.Properties, "Dimensions", 0, "Value", "Fn::GetAtt", 0).(string)
				watched[queue]++
				want(t, "periods on end", a.Properties["EvaluationPeriods"], 3)
			}
		}
		for id := range tpl.of(t, "AWS::SQS::Queue") {
			dead := 0
			if strings.Contains(id, "Dead") {
				dead = 2
			}
			want(t, id+" alarms", watched[id], dead)
		}
	})
}

func TestOnlyAlarmsOfThisAccountPublishToTheirTopic(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		_, policy := tpl.one(t, "AWS::SNS::TopicPolicy", "AlarmsTopicPolicy")
		allows := 0
		for _, s := range get(policy.Properties, "PolicyDocument", "Statement").([]any) {
			if get(s, "Effect") == "Deny" {
				continue
			}
			allows++
			want(t, "who publishes", get(s, "Principal"), map[string]string{"Service": "cloudwatch.amazonaws.com"})
			want(t, "action", get(s, "Action"), "sns:Publish")
			if get(s, "Condition", "StringEquals", "aws:SourceAccount") == nil {
				t.Errorf("the condition is %s; want this account", text(get(s, "Condition")))
			}
		}
		want(t, "statements that allow", allows, 1)
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "AlarmsTopic")
		if p.Cloud.TLS && !refusesPlainHTTP(tpl, "AWS::SNS::TopicPolicy", topic) {
			t.Error("the topic takes plain HTTP")
		}
	})
}

func TestAlarmsAreMailedToWhomTheSettingsName(t *testing.T) {
	mailed := func(change map[string]any) (addresses []any) {
		d, err := deployment(variant{stage: "dev"}, change)
		if err != nil {
			t.Fatal(err)
		}
		tpl, err := synthesize(d)
		if err != nil {
			t.Fatal(err)
		}
		topic, _ := tpl.one(t, "AWS::SNS::Topic", "AlarmsTopic")
		for _, s := range tpl.of(t, "AWS::SNS::Subscription") {
			if mentions(s.Properties["TopicArn"], topic) {
				want(t, "protocol", s.Properties["Protocol"], "email")
				addresses = append(addresses, s.Properties["Endpoint"])
			}
		}
		return addresses
	}
	want(t, "by default", mailed(nil), nil)
	want(t, "when named", mailed(map[string]any{"alarmMail": "oncall@example.com"}), []string{"oncall@example.com"})
}

func TestTheDashboardShowsAlarmsAndWhatIsCounted(t *testing.T) {
	sent := counted(t)
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		want(t, "dashboards", len(tpl.of(t, "AWS::CloudWatch::Dashboard")), 1)
		_, d := tpl.one(t, "AWS::CloudWatch::Dashboard", "AlarmsDashboard")
		body := text(d.Properties["DashboardBody"])
		for id := range tpl.of(t, "AWS::CloudWatch::Alarm") {
			if !strings.Contains(body, id) {
				t.Errorf("%s is not shown", id)
			}
		}
		for _, name := range []string{"runs_settled", "submissions", "snapshots_late", "snapshots_failed_for_good", "snapshots_late_oldest_seconds",
			"snapshots_queued_oldest_seconds", "snapshots_planned", "notices"} {
			if !strings.Contains(body, name) || sent[name] == nil {
				t.Errorf("%s: shown %t, counted %q", name, strings.Contains(body, name), sent[name])
			}
		}
	})
}
