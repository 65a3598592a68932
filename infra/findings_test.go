package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// accepted are the findings of cdk-nag's AwsSolutions pack that we live with, each with its reason. A finding that is not
// here fails the test, and so does a line here that no finding needs any more.
var accepted = []struct {
	rule   string // id of the finding, as a regular expression
	where  string // construct path below the stack, as a regular expression
	stages string // stages on AWS and local clouds; empty: all
	reason string
}{
	{`AwsSolutions-S1`, `/Storage/(Data|Files|Months)/Resource`, "",
		"a few roles have rights on one bucket each; object-level CloudTrail is the account's choice, and a bucket of access logs would outlive the files it tells of"},
	{`AwsSolutions-S10`, `/Storage/(Data|Files|Months)/Resource`, "ministack localstack",
		"the emulator listens on loopback without TLS"},
	{`AwsSolutions-SQS4`, `/(Delivery/QueryRuns|MailEvents/Queue)(Dead)?/Resource`, "ministack localstack",
		"the emulator listens on loopback without TLS"},
	{`AwsSolutions-SNS3`, `/(MailEvents|Alarms)/Topic/Resource`, "ministack localstack",
		"the emulator listens on loopback without TLS"},
	{`AwsSolutions-COG2`, `/Api/Users/Resource`, "ministack dev",
		"a second factor is offered in dev and demanded in production; the local pool has made-up people only"},
	{`AwsSolutions-COG8`, `/Api/Users/Resource`, "",
		"the Plus plan costs per user and month; few invited people sign in, with a second factor in production"},
	{`AwsSolutions-APIG4`, `/Api/Http/(GET--files--{token}|(GET|POST)--unsubscribe--{token})/Resource`, "",
		"the token in the path is the right: whoever gets a link or unsubscribes has no account"},
	{`AwsSolutions-IAM5\[Resource::<StorageFiles[0-9A-F]+\.Arn>/files/\*\]`, `/(Api/FunctionRole|Delivery/DeliverQueryRole)/DefaultPolicy/Resource`, "",
		"the keys of produced files are made at run time, below one prefix of one bucket"},
	{`AwsSolutions-IAM5\[Resource::<StorageFiles[0-9A-F]+\.Arn>/recipients/\*\]`, `/(Api/FunctionRole|Delivery/(DeliverQuery|Exhaust)Role)/DefaultPolicy/Resource`, "",
		"the keys of lists of recipients are the hashes of what they hold, below one prefix of one bucket"},
	{`AwsSolutions-IAM5\[Resource::<StorageData[0-9A-F]+\.Arn>/\*\]`, `/(Api/Function|Delivery/DeliverQuery|Snapshots/(Plan|Step))Role/DefaultPolicy/Resource`, "",
		"people name the databases in the data bucket; the function only reads them"},
	{`AwsSolutions-IAM5\[Resource::arn:<AWS::Partition>:secretsmanager:[^\]]*:secret:almanac/[a-z]+/webhook/\*\]`, `/Delivery/DeliverQueryRole/DefaultPolicy/Resource`, "",
		"webhook secrets are added without a deployment, below one prefix of this stage"},
	{`AwsSolutions-IAM5\[Resource::\*\]`, `/(Api/Function|Delivery/(Dispatch|DeliverQuery|Exhaust)|MailEvents/Feedback|Snapshots/(Plan|Dispatch|Step|Reconcile))Role/DefaultPolicy/Resource`, "dev production",
		"X-Ray's PutTraceSegments and PutTelemetryRecords take no resource; the test of rights asserts that nothing else is in the statement"},
	{`AwsSolutions-IAM5\[Resource::\*\]`, `/Delivery/DeliverQueryRole/DefaultPolicy/Resource`, "ministack",
		"the emulator authorizes ses:SendRawEmail on the resource * alone; real stages name identity and sender"},
	{`AwsSolutions-IAM5\[Resource::\*\]`, `/Snapshots/AttemptsRole/DefaultPolicy/Resource`, "dev production",
		"X-Ray's actions for state machines take no resource; the test of rights asserts that nothing else is in the statement"},
	{`AwsSolutions-IAM5\[Resource::<StorageMonths[0-9A-F]+\.Arn>/snapshots/\*\]`, `/(Api/Function|Snapshots/(Step|Reconcile))Role/DefaultPolicy/Resource`, "",
		"the keys of snapshots' files are made at run time, below one prefix of one bucket"},
	{`AwsSolutions-IAM5\[Resource::arn:<AWS::Partition>:states:[^\]]*:execution:almanac-[a-z]+-attempts:\*\]`, `/(Api/Function|Snapshots/(Plan|Dispatch|Reconcile))Role/DefaultPolicy/Resource`, "",
		"executions are named at run time, all of one state machine"},
	{`AwsSolutions-SF1`, `/Snapshots/Attempts/Resource`, "",
		"an execution keeps its history, each step logs what it did, and the rights for such a log cannot be limited to it"},
	{`AwsSolutions-SF2`, `/Snapshots/Attempts/Resource`, "ministack localstack",
		"the emulators have no X-Ray to send traces to"},
}

// finding is one line of cdk-nag.
type finding struct{ rule, where string }

var findingForm = regexp.MustCompile(`^(AwsSolutions-[A-Z]+[0-9]+(?:\[.*?\])?): `)

func findings(t *testing.T, v variant, change map[string]any) []finding {
	t.Helper()
	d, err := deployment(v, change)
	if err != nil {
		t.Fatal(err)
	}
	stack, err := NewStack(newApp(), d)
	if err != nil {
		t.Fatal(err)
	}
	awscdk.Aspects_Of(stack).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Reports: jsii.Bool(false)}), nil)
	annotations := assertions.Annotations_FromStack(stack)
	any := assertions.Match_StringLikeRegexp(jsii.String(`[\s\S]*`))
	var found []finding
	for _, m := range append(*annotations.FindError(jsii.String("*"), any), *annotations.FindWarning(jsii.String("*"), any)...) {
		said := fmt.Sprint(m.Entry.Data)
		form := findingForm.FindStringSubmatch(said)
		if form == nil {
			t.Errorf("%s: %s", *m.Id, said)
			continue
		}
		found = append(found, finding{form[1], *m.Id})
	}
	return found
}

func TestCdkNagFindsNothingButWhatIsAcceptedWithAReason(t *testing.T) {
	needed := make([]bool, len(accepted))
	for _, v := range variants() {
		stage, name := v.stage, v.stage
		if v.cloud != "" {
			name = v.cloud
		}
		found := findings(t, v, nil)
		if len(found) == 0 {
			t.Errorf("%s: cdk-nag finds nothing at all; does it run?", v)
		}
		for _, f := range found {
			i := slices.IndexFunc(accepted, func(a struct{ rule, where, stages, reason string }) bool {
				return regexp.MustCompile(`^`+a.rule+`$`).MatchString(f.rule) && regexp.MustCompile(`^/Almanac-`+stage+a.where+`$`).MatchString(f.where) &&
					(a.stages == "" || slices.Contains(strings.Fields(a.stages), name))
			})
			if i < 0 {
				t.Errorf("%s: %s at %s; mend it, or accept it with a reason", v, f.rule, f.where)
				continue
			}
			needed[i] = true
		}
	}
	for i, a := range accepted {
		if !needed[i] {
			t.Errorf("%s at %s is accepted, but nothing is found there any more", a.rule, a.where)
		}
		if len(strings.Fields(a.reason)) < 5 {
			t.Errorf("%s at %s is accepted without a reason", a.rule, a.where)
		}
	}
}
