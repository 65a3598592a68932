package main

import (
	"fmt"
	"strings"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

func TestTablesAreEncryptedRecoverableAndForgetHistory(t *testing.T) {
	t.Run("schedules", func(t *testing.T) {
		testTable(t, "StorageSchedules", map[string][2]string{
			schema.IndexDue:       {"due_shard", "next_due_at"},
			schema.IndexOpen:      {"open_shard", "wake_at"},
			schema.IndexDirectory: {"dir_kind", "dir_name"},
		})
	})
	t.Run("snapshots", func(t *testing.T) {
		testTable(t, "StorageSnapshots", map[string][2]string{
			schema.IndexWork:      {"work", "work_at"},
			schema.IndexPlan:      {"plan_shard", "plan_at"},
			schema.IndexLate:      {"late_shard", "late_at"},
			schema.IndexSettled:   {"settled_shard", "settled_at"},
			schema.IndexDirectory: {"dir_kind", "dir_name"},
		})
	})
}

func testTable(t *testing.T, id string, indexes map[string][2]string) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		want(t, "tables", len(tpl.of(t, "AWS::DynamoDB::GlobalTable")), 2)
		_, table := tpl.one(t, "AWS::DynamoDB::GlobalTable", id)
		want(t, "billing", table.Properties["BillingMode"], "PAY_PER_REQUEST")
		want(t, "TTL", table.Properties["TimeToLiveSpecification"], map[string]any{"AttributeName": "expires_at", "Enabled": true})
		want(t, "encryption", table.Properties["SSESpecification"], map[string]any{"SSEEnabled": true, "SSEType": "KMS"})
		replicas := table.Properties["Replicas"].([]any)
		want(t, "replicas", len(replicas), 1)
		want(t, "point-in-time recovery", get(replicas[0], "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"), true)
		protected, _ := get(replicas[0], "DeletionProtectionEnabled").(bool)
		want(t, "deletion protection", protected, p.Retain)
		want(t, "key", table.Properties["KeySchema"], []map[string]string{
			{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}})

		got := table.Properties["GlobalSecondaryIndexes"].([]any)
		want(t, "indexes", len(got), len(indexes))
		for _, g := range got {
			name, _ := get(g, "IndexName").(string)
			want(t, name+" projection", get(g, "Projection", "ProjectionType"), "KEYS_ONLY")
			want(t, name+" partition", get(g, "KeySchema", 0, "AttributeName"), indexes[name][0])
			want(t, name+" sort", get(g, "KeySchema", 1, "AttributeName"), indexes[name][1])
		}
	})
}

func TestBucketsArePrivateEncryptedAndKeepOnlyWhatTheyMust(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		want(t, "buckets", len(tpl.of(t, "AWS::S3::Bucket")), 3)
		for id, b := range tpl.of(t, "AWS::S3::Bucket") {
			want(t, id+" public access", b.Properties["PublicAccessBlockConfiguration"], map[string]bool{
				"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true})
			want(t, id+" encryption", get(b.Properties, "BucketEncryption", "ServerSideEncryptionConfiguration", 0,
				"ServerSideEncryptionByDefault", "SSEAlgorithm"), "AES256")
			if p.Cloud.TLS && !refusesPlainHTTP(tpl, "AWS::S3::BucketPolicy", id) {
				t.Errorf("%s takes plain HTTP", id)
			}
			days := map[string]any{}
			aborted := false
			for _, rule := range get(b.Properties, "LifecycleConfiguration", "Rules").([]any) {
				want(t, id+" rule", get(rule, "Status"), "Enabled")
				if get(rule, "AbortIncompleteMultipartUpload", "DaysAfterInitiation") == float64(1) && get(rule, "Prefix") == nil {
					aborted = true
				}
				prefix, ok := get(rule, "Prefix").(string)
				if get(rule, "ExpirationInDays") != nil && strings.HasPrefix(schema.ListKey("0"), prefix) {
					t.Errorf("%s: the rule for %q takes lists of recipients, which versions name for as long as they stand", id, prefix)
				}
				if ok {
					days[prefix] = get(rule, "ExpirationInDays")
				}
			}
			if strings.HasPrefix(id, "StorageMonths") {
				want(t, "rules that take files of snapshots, which never change", len(days), 0)
				want(t, "versions of what is never overwritten", b.Properties["VersioningConfiguration"], nil)
			}
			if !aborted {
				t.Errorf("%s keeps unfinished uploads", id)
			}
			if strings.HasPrefix(id, "StorageFiles") {
				want(t, "retention prefixes", len(days), len(schedule.Retentions))
				for _, n := range schedule.Retentions {
					want(t, "retention of "+FilesPrefix(n), days[fmt.Sprintf("files/%dd/", n)], n)
				}
			}
		}
	})
}

func TestWhatHoldsDataStaysOrGoesByTheProfile(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		policy := "Delete"
		if p.Retain {
			policy = "Retain"
		}
		for _, kind := range []string{"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Cognito::UserPool", "AWS::Logs::LogGroup"} {
			if kind == "AWS::Cognito::UserPool" && !p.Cloud.UserPools {
				continue
			}
			for id, r := range tpl.of(t, kind) {
				want(t, id+" deletion policy", r.DeletionPolicy, policy)
			}
		}
		for id, r := range tpl.Resources {
			if strings.HasPrefix(r.Type, "Custom::") {
				t.Errorf("%s is a custom resource %s: a function with rights of its own", id, r.Type)
			}
		}
	})
}

func TestFilesAreWrittenWhereTheirRetentionRuleLooks(t *testing.T) {
	for _, days := range schedule.Retentions {
		key := schedule.FileKey(schedule.Run{Schedule: "hourly", Occurrence: "2013-01-01T12:00:00Z"}, days, "token", ".csv")
		if !strings.HasPrefix(key, FilesPrefix(days)) {
			t.Errorf("a file kept for %d days is written to %s; want it below %s, or no rule ever deletes it", days, key, FilesPrefix(days))
		}
	}
}
