package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsathena"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Lake is what sources of Athena may ask: settings athenaDatabases, athenaBuckets and athenaScanLimit.
type Lake struct {
	Databases []string // of the account's Glue catalog; none: no source may be Athena's
	Buckets   []string // where their data are, each perhaps with a prefix; none: the stage's own data bucket
	ScanLimit int64    // bytes that one query may scan
}

// Results lie below their prefix for so long: a run reads its query's within hours.
const (
	queriesPrefix = "queries/"
	queriesDays   = 7
)

// usualScan costs five US dollars at the list price.
const usualScan = 1_000_000_000_000

var (
	lakeDatabaseForm = regexp.MustCompile(`^[a-z0-9_]{1,255}$`)
	lakeBucketForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.'()=/-]*)?$`)
)

func (in *inputs) lake(p Profile, s *Settings) {
	l := Lake{ScanLimit: usualScan}
	for _, name := range in.list("athenaDatabases") {
		if !lakeDatabaseForm.MatchString(name) {
			in.bad("athenaDatabases", name, "databases of the Glue catalog in lower case, separated by commas; no patterns")
		}
		l.Databases = append(l.Databases, name)
	}
	for _, place := range in.list("athenaBuckets") {
		if !lakeBucketForm.MatchString(place) {
			in.bad("athenaBuckets", place, "buckets, each perhaps with a prefix, such as lake-data/flights/, separated by commas; no patterns")
		}
		l.Buckets = append(l.Buckets, place)
	}
	if given := in.text("athenaScanLimit"); given != "" {
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil || n < 10_000_000 {
			in.bad("athenaScanLimit", given, "bytes that one query may scan, at least 10000000")
		}
		l.ScanLimit = n
	}
	switch {
	case len(l.Databases) > 0 && !p.Cloud.Athena:
		in.bad("athenaDatabases", strings.Join(l.Databases, ","), fmt.Sprintf("nothing: cloud %s has no Athena", p.Cloud.Name))
	case len(l.Databases) > 0 && s.Network.Way == viaEndpoints:
		in.bad("network", viaEndpoints, `"nat" beside athenaDatabases: the stack makes no endpoint of Athena's`)
	case len(l.Databases) == 0 && (len(l.Buckets) > 0 || l.ScanLimit != usualScan):
		in.bad("athenaDatabases", "", "databases, beside athenaBuckets and athenaScanLimit")
	}
	s.Lake = l
}

// lake is the stage's workgroup and where its results go; nil: none.
type lake struct {
	workgroup string // ARN
	output    string
}

// newLake makes the workgroup. It overrides where results go, and ends each query that scans beyond the limit.
func newLake(stack awscdk.Stack, d Deployment, files awss3.Bucket) *lake {
	if len(d.Settings.Lake.Databases) == 0 {
		return nil
	}
	scope := constructs.NewConstruct(stack, jsii.String("Lake"))
	name, place := "almanac-"+d.Profile.Stage, "s3://"+*files.BucketName()+"/"+queriesPrefix
	awsathena.NewCfnWorkGroup(scope, jsii.String("Workgroup"), &awsathena.CfnWorkGroupProps{
		Name: jsii.String(name), Description: jsii.String("Queries of Almanac's sources"), RecursiveDeleteOption: jsii.Bool(!d.Profile.Retain),
		WorkGroupConfiguration: &awsathena.CfnWorkGroup_WorkGroupConfigurationProperty{
			EnforceWorkGroupConfiguration: jsii.Bool(true), PublishCloudWatchMetricsEnabled: jsii.Bool(true),
			BytesScannedCutoffPerQuery: jsii.Number(float64(d.Settings.Lake.ScanLimit)),
			ResultConfiguration: &awsathena.CfnWorkGroup_ResultConfigurationProperty{OutputLocation: jsii.String(place),
				EncryptionConfiguration: &awsathena.CfnWorkGroup_EncryptionConfigurationProperty{EncryptionOption: jsii.String("SSE_S3")}},
		},
	})
	files.AddLifecycleRule(&awss3.LifecycleRule{Id: jsii.String("query-results"), Prefix: jsii.String(queriesPrefix), Expiration: awscdk.Duration_Days(jsii.Number(queriesDays))})
	output(stack, "AthenaWorkgroup", name)
	return &lake{arn(stack, "athena", "workgroup/"+name), place}
}

func arn(stack awscdk.Stack, service, resource string) string {
	return *stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String(service), Resource: jsii.String(resource), ArnFormat: awscdk.ArnFormat_NO_RESOURCE_NAME})
}

// toQuery allows to ask Athena in the workgroup, and Athena, which acts with the caller's rights, to read the catalog and
// the data and to write results. Nothing else may be written: that is what keeps queries from changing anything.
// https://docs.aws.amazon.com/athena/latest/ug/example-policies-workgroup.html
// https://docs.aws.amazon.com/athena/latest/ug/fine-grained-access-to-glue-resources.html
// https://docs.aws.amazon.com/athena/latest/ug/s3-permissions.html
func (l *lake) toQuery(stack awscdk.Stack, d Deployment, s storage) []awsiam.PolicyStatement {
	if l == nil {
		return nil
	}
	catalog := []string{arn(stack, "glue", "catalog")}
	for _, name := range d.Settings.Lake.Databases {
		catalog = append(catalog, arn(stack, "glue", "database/"+name), arn(stack, "glue", "table/"+name+"/*"))
	}
	buckets, objects := []string{*s.data.BucketArn()}, []string{*s.data.BucketArn() + "/*"}
	if len(d.Settings.Lake.Buckets) > 0 {
		buckets, objects = nil, nil
	}
	for _, place := range d.Settings.Lake.Buckets {
		bucket, prefix, _ := strings.Cut(place, "/")
		buckets = append(buckets, "arn:"+*stack.Partition()+":s3:::"+bucket)
		objects = append(objects, "arn:"+*stack.Partition()+":s3:::"+bucket+"/"+prefix+"*")
	}
	queries := l.workgroup
	if !d.Profile.Cloud.ScopedQueries {
		queries = "*"
	}
	return []awsiam.PolicyStatement{
		allow([]string{l.workgroup}, "athena:StartQueryExecution"),
		allow([]string{queries}, "athena:GetQueryExecution", "athena:GetQueryResults", "athena:StopQueryExecution"),
		allow(catalog, "glue:GetDatabase", "glue:GetTable", "glue:GetTables", "glue:GetPartition", "glue:GetPartitions", "glue:BatchGetPartition"),
		allow([]string{arn(stack, "glue", "database/default")}, "glue:GetDatabase"), // Athena asks for it whatever the query names
		allow(buckets, "s3:GetBucketLocation", "s3:ListBucket"),
		allow(objects, "s3:GetObject"),
		allow([]string{*s.files.BucketArn()}, "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"),
		toTellMissing(s.files), // a result that has expired from one that may not be read
		onObjects(s.files, queriesPrefix, "s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"),
	}
}

// place is where results go; "" where there is no lake.
func (l *lake) place() string {
	if l == nil {
		return ""
	}
	return l.output
}
