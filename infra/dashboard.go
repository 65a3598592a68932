package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// namespace is that of the functions' own metrics.
const namespace = "Almanac"

// newDashboard makes the stage's one dashboard: alarms, deliveries, snapshots, functions.
func newDashboard(scope constructs.Construct, d Deployment, all []interfacesawscloudwatch.IAlarmRef, queues map[string]lane) {
	mine := func(name string) awscloudwatch.IMetric { return own(d, name, "Maximum", gaugePeriod) }
	var dead []awscloudwatch.IMetric
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		visible, held := deadLetters(queues[name])
		dead = append(dead, visible, held)
	}
	var errors, durations []awscloudwatch.IMetric
	for _, folder := range slices.Sorted(maps.Keys(d.functions)) {
		f := d.functions[folder]
		errors = append(errors, f.MetricErrors(&awscloudwatch.MetricOptions{Label: jsii.String(folder), Period: duration(gaugePeriod)}))
		durations = append(durations, f.MetricDuration(&awscloudwatch.MetricOptions{Label: jsii.String(folder), Period: duration(gaugePeriod), Statistic: jsii.String("Maximum")}))
	}
	rows := [][]awscloudwatch.IWidget{
		{awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{Title: jsii.String("Alarms"), Width: jsii.Number(24), Alarms: &all})},
		{
			graph("Runs settled", sums(d, "runs_settled", "outcome"), sums(d, "runs_settled", "outcome", "kind")),
			graph("Recipients", sums(d, "submissions", "outcome", "kind")),
			graph("Dead letters", dead...),
		},
		{
			graph("Months late, and failed for good", mine("snapshots_late"), mine("snapshots_failed_for_good")),
			graph("Months: oldest that is late, and that is queued (s)", mine("snapshots_late_oldest_seconds"), mine("snapshots_queued_oldest_seconds")),
			graph("Months planned", sums(d, "snapshots_planned", "outcome")),
		},
		{graph("Errors of functions", errors...), graph("Longest calls (ms)", durations...), graph("Notices", sums(d, "notices", "outcome"), sums(d, "notices", "outcome", "kind"))},
	}
	var widgets []*[]awscloudwatch.IWidget
	for i := range rows {
		widgets = append(widgets, &rows[i])
	}
	awscloudwatch.NewDashboard(scope, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String("almanac-" + d.Profile.Stage), Widgets: &widgets,
	})
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Width: jsii.Number(8), Left: &metrics})
}

// sums are those of a metric that is counted by outcome or kind, each line of it.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html
func sums(d Deployment, name string, dimensions ...string) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{%s,stage,%s} MetricName="%s" stage="%s"', 'Sum', %d)`,
			namespace, strings.Join(dimensions, ","), name, d.Profile.Stage, int(gaugePeriod.Seconds()))),
		Label: jsii.String(""), Period: duration(gaugePeriod),
	})
}
