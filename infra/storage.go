package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// storage holds what must outlive every deployment: the truth in DynamoDB, the bytes in S3.
type storage struct {
	schedules awsdynamodb.TableV2
	snapshots awsdynamodb.TableV2
	data      awss3.Bucket // what sources read
	files     awss3.Bucket // what runs produce
	months    awss3.Bucket // the files of snapshots, which never change
	lake      *lake        // what Athena may be asked; nil: nothing
}

func newStorage(stack awscdk.Stack, d Deployment) storage {
	scope := constructs.NewConstruct(stack, jsii.String("Storage"))
	s := storage{
		schedules: newTable(scope, "Schedules", d, [][3]string{
			{schema.IndexDue, schema.DueShard, schema.NextDueAt},
			{schema.IndexOpen, schema.OpenShard, schema.WakeAt},
			{schema.IndexDirectory, schema.DirKind, schema.DirName},
		}),
		snapshots: newTable(scope, "Snapshots", d, schema.SnapshotsIndexes),
	}
	// A source's database is fetched once per version; an overwritten one stays readable for a while, for those who
	// overwrote it by mistake.
	s.data = newBucket(scope, "Data", d, true, &awss3.LifecycleRule{
		Id: jsii.String("old-versions"), NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(30)),
	})
	// Keys of produced files are never written twice, so versions would only double the cost.
	s.files = newBucket(scope, "Files", d, false, fileRetentions()...)
	// Nor are those of snapshots. They have no end: what a run left over, the reconciler removes.
	s.months = newBucket(scope, "Months", d, false)
	output(stack, "SchedulesTable", *s.schedules.TableName())
	output(stack, "DataBucket", *s.data.BucketName())
	output(stack, "FilesBucket", *s.files.BucketName())
	output(stack, "SnapshotsTable", *s.snapshots.TableName())
	output(stack, "SnapshotsBucket", *s.months.BucketName())
	return s
}

// newTable makes a table with these indexes: name, partition, sort key.
func newTable(scope constructs.Construct, id string, d Deployment, indexes [][3]string) awsdynamodb.TableV2 {
	text := func(name string) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
	}
	// Indexes only suggest (design.md §3): keys are all they need.
	var made []*awsdynamodb.GlobalSecondaryIndexPropsV2
	for _, index := range indexes {
		made = append(made, &awsdynamodb.GlobalSecondaryIndexPropsV2{
			IndexName: jsii.String(index[0]), PartitionKey: text(index[1]), SortKey: text(index[2]),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		})
	}
	return awsdynamodb.NewTableV2(scope, jsii.String(id), &awsdynamodb.TablePropsV2{
		PartitionKey: text(schema.PK), SortKey: text(schema.SK),
		GlobalSecondaryIndexes: &made,
		Billing:                awsdynamodb.Billing_OnDemand(nil),
		TimeToLiveAttribute:    jsii.String(schema.ExpiresAt),
		// The account's KMS key for DynamoDB: every access shows in CloudTrail, and no role needs a right on the key.
		Encryption: awsdynamodb.TableEncryptionV2_AwsManagedKey(),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		DeletionProtection: jsii.Bool(d.Profile.Retain),
		RemovalPolicy:      d.removal(),
	})
}

// newBucket makes a private, encrypted bucket. A bucket that is deleted with its stack must be emptied first: a function
// that empties it would be one more with rights to delete.
func newBucket(scope constructs.Construct, id string, d Deployment, versioned bool, rules ...*awss3.LifecycleRule) awss3.Bucket {
	rules = append(rules, &awss3.LifecycleRule{
		// Uploads are aborted on error; this is for the process that died before it could.
		Id:                                  jsii.String("unfinished-uploads"),
		AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1)),
	})
	return awss3.NewBucket(scope, jsii.String(id), &awss3.BucketProps{
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		EnforceSSL:        jsii.Bool(d.Profile.Cloud.TLS),
		Versioned:         jsii.Bool(versioned),
		LifecycleRules:    &rules,
		RemovalPolicy:     d.removal(),
	})
}

// FilesPrefix is the place of files that are kept for so many days.
func FilesPrefix(days int) string { return fmt.Sprintf("files/%dd/", days) }

// fileRetentions has a rule per retention time that a schedule can choose.
func fileRetentions() []*awss3.LifecycleRule {
	var rules []*awss3.LifecycleRule
	for _, days := range schedule.Retentions {
		rules = append(rules, &awss3.LifecycleRule{
			Id: jsii.String(fmt.Sprintf("files-%dd", days)), Prefix: jsii.String(FilesPrefix(days)),
			Expiration: awscdk.Duration_Days(jsii.Number(float64(days))),
		})
	}
	return rules
}
