package main

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// alarms are what nobody may miss, each to one topic. What one schedule's owner is told by a notice is no alarm.
type alarms struct {
	scope constructs.Construct
	d     Deployment
	topic awssns.Topic
	all   []interfacesawscloudwatch.IAlarmRef
}

// How an alarm takes a time without figures.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
const (
	// A number that is not sent is not known: the alarm stays as it is, on or off, and another one tells that the sender
	// is silent.
	unknownMissing = awscloudwatch.TreatMissingData_IGNORE
	// What counts failures sends nothing while there are none.
	goodMissing = awscloudwatch.TreatMissingData_NOT_BREACHING
	// What must come and does not come is the very thing that is watched.
	badMissing = awscloudwatch.TreatMissingData_BREACHING
)

// alarm is one of them: on when the metric is above a bound, or below it, in so many periods on end.
type alarm struct {
	id, description string
	metric          awscloudwatch.IMetric
	bound           float64
	below           bool
	periods         float64
	missing         awscloudwatch.TreatMissingData
}

const (
	gaugePeriod = 5 * time.Minute
	// A queued month has begun after a minute or so; after five its job is offered again.
	longQueued = 15 * time.Minute
)

func newAlarms(stack awscdk.Stack, d Deployment, queues map[string]lane) {
	scope := constructs.NewConstruct(stack, jsii.String("Alarms"))
	a := &alarms{scope: scope, d: d, topic: newAlarmTopic(stack, scope, d)}
	a.snapshots()
	a.ticks()
	a.functions()
	a.deadLetters(queues)
	a.add(alarm{"NoticesUnsent", "Notices to owners have been left unsent for half an hour", own(d, "notices", "Sum", gaugePeriod, "outcome", "offered"), 0, false, 6, goodMissing})
	newDashboard(scope, d, a.all, queues)
	output(stack, "AlarmTopicArn", *a.topic.TopicArn())
}

func newAlarmTopic(stack awscdk.Stack, scope constructs.Construct, d Deployment) awssns.Topic {
	topic := awssns.NewTopic(scope, jsii.String("Topic"), &awssns.TopicProps{
		DisplayName: jsii.String("Almanac " + d.Profile.Stage), EnforceSSL: jsii.Bool(d.Profile.Cloud.TLS),
	})
	// A policy of its own, as EnforceSSL makes one, takes the place of the one by which the account's alarms may publish.
	// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": *stack.Account()}},
	}))
	if d.Settings.AlarmMail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(d.Settings.AlarmMail), nil))
	}
	return topic
}

func (a *alarms) add(x alarm) {
	operator := awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD
	if x.below {
		operator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	made := awscloudwatch.NewAlarm(a.scope, jsii.String(x.id), &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String("Almanac " + a.d.Profile.Stage + ": " + x.description), Metric: x.metric, Threshold: jsii.Number(x.bound),
		ComparisonOperator: operator, EvaluationPeriods: jsii.Number(x.periods), TreatMissingData: x.missing,
	})
	made.AddAlarmAction(awscloudwatchactions.NewSnsAction(a.topic))
	a.all = append(a.all, made)
}

// snapshots are the three numbers of the reconciler, each with an alarm of its own: publishing an old month never silences
// the lateness of a new one (case N10). The reconciler sends no number that may be too low.
func (a *alarms) snapshots() {
	gauge := func(name string) awscloudwatch.IMetric { return own(a.d, name, "Maximum", gaugePeriod) }
	a.add(alarm{"LatePublications", "Months are not published although they are due; almanac grid shows which", gauge("snapshots_late"), 0, false, 1, unknownMissing})
	a.add(alarm{"FinalFailures", "Months failed for good; almanac grid shows which", gauge("snapshots_failed_for_good"), 0, false, 1, unknownMissing})
	a.add(alarm{"OldestQueued", "A month that was admitted has not begun for " + longQueued.String(), gauge("snapshots_queued_oldest_seconds"), longQueued.Seconds(), false, 1, unknownMissing})
}

// ticks are watched for silence, and for what they could not handle. One error heals at the next tick; errors in three
// periods on end do not.
func (a *alarms) ticks() {
	for _, t := range []struct {
		id, folder, errors string
		silence            time.Duration // ticks come several times in it
	}{
		{"Dispatch", "schedule-dispatch", "dispatch_errors", 5 * time.Minute},
		{"SnapshotPlan", "snapshot-plan", "plan_errors", 3 * planRate},
		{"SnapshotDispatch", "snapshot-dispatch", "snapshot_dispatch_errors", 5 * time.Minute},
		{"SnapshotReconcile", "snapshot-reconcile", "snapshot_reconcile_errors", 3 * reconcileRate},
	} {
		calls := a.d.functions[t.folder].MetricInvocations(&awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: duration(t.silence)})
		a.add(alarm{t.id + "Silent", t.folder + " has not been called for " + t.silence.String(), calls, 1, true, 1, badMissing})
		a.add(alarm{t.id + "Troubled", t.folder + " keeps failing on some of its work; its log says on which", own(a.d, t.errors, "Sum", max(gaugePeriod, t.silence/3)), 0, false, 3, goodMissing})
	}
}

// returnsErrors is the function whose errors are answers to the workflow. What they lead to is counted in the ledger: a
// month that waits for its next attempt, a final failure.
const returnsErrors = "snapshot-step"

func (a *alarms) functions() {
	for _, folder := range slices.Sorted(maps.Keys(a.d.functions)) {
		if folder == returnsErrors {
			continue
		}
		errors := a.d.functions[folder].MetricErrors(&awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: duration(gaugePeriod)})
		a.add(alarm{"Errors-" + folder, folder + " ended with errors", errors, 0, false, 1, goodMissing})
	}
}

// deadLetters are those that stay. One that nobody takes is visible all the time; one that its consumer cannot handle is
// held most of the time, and seen again when its visibility is over. Two alarms instead of one on their sum, which is no
// metric and which a local cloud does not take.
func (a *alarms) deadLetters(queues map[string]lane) {
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		visible, held := deadLetters(queues[name])
		a.add(alarm{name + "DeadUntaken", "Messages have been in the dead-letter queue for fifteen minutes and nobody takes them", visible, 0, false, 3, goodMissing})
		a.add(alarm{name + "DeadUnsettled", "Messages come out of the dead-letter queue again and again; its consumer's log says why", held, 0, false, 3, goodMissing})
	}
}

// deadLetters counts a lane's dead letters that can be seen, and those that a consumer holds.
func deadLetters(l lane) (visible, held awscloudwatch.IMetric) {
	options := &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: duration(gaugePeriod)}
	return l.dead.MetricApproximateNumberOfMessagesVisible(options), l.dead.MetricApproximateNumberOfMessagesNotVisible(options)
}

// own is a metric that a function counts (boot.NewMetrics): by stage, and by what it was counted with besides, since
// CloudWatch finds a metric by all of its dimensions.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#Dimension
func own(d Deployment, name, statistic string, period time.Duration, dimensions ...string) awscloudwatch.IMetric {
	all := map[string]*string{"stage": jsii.String(d.Profile.Stage)}
	for i := 0; i+1 < len(dimensions); i += 2 {
		all[dimensions[i]] = jsii.String(dimensions[i+1])
	}
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(namespace), MetricName: jsii.String(name), DimensionsMap: &all, Statistic: jsii.String(statistic), Period: duration(period),
	})
}
