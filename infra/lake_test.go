package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lakeTemplate is a stage's template with Athena.
func lakeTemplate(t *testing.T, change map[string]any) template {
	t.Helper()
	settings := map[string]any{"athenaDatabases": "flights, weather"}
	maps.Copy(settings, change)
	return templateWith(t, settings)
}

// lakeRights are a function's rights that it has for Athena's sake: actions by resource, those of S3 that it has anyway
// left out.
func lakeRights(t *testing.T, tpl template, function string, before []right) map[string]string {
	t.Helper()
	var had []string
	for _, r := range before {
		had = append(had, r.action+text(r.resource))
	}
	got := map[string][]string{}
	for _, r := range rightsOf(t, tpl, function) {
		if slices.Contains(had, r.action+text(r.resource)) {
			continue
		}
		where := place(tpl, r.resource)
		got[where] = append(got[where], r.action)
	}
	out := map[string]string{}
	for where, actions := range got {
		slices.Sort(actions)
		out[where] = strings.Join(slices.Compact(actions), " ")
	}
	return out
}

func TestAthenaMayBeAskedInTheStagesWorkgroupAlone(t *testing.T) {
	const (
		athena = "athena:GetQueryExecution athena:GetQueryResults athena:StartQueryExecution athena:StopQueryExecution"
		glue   = "glue:BatchGetPartition glue:GetDatabase glue:GetPartition glue:GetPartitions glue:GetTable glue:GetTables"
		writes = "s3:AbortMultipartUpload s3:GetObject s3:ListMultipartUploadParts s3:PutObject"
	)
	prefix := func(service string) string { return ":" + service + ":eu-central-1:111122223333:" }
	shared := map[string]string{
		prefix("athena") + "workgroup/almanac-production": athena, prefix("glue") + "catalog": glue,
		prefix("glue") + "database/flights": glue, prefix("glue") + "table/flights/*": glue, prefix("glue") + "database/weather": glue, prefix("glue") + "table/weather/*": glue,
		prefix("glue") + "database/default": "glue:GetDatabase", "StorageFiles": "s3:GetBucketLocation s3:ListBucketMultipartUploads", "StorageFiles/queries/*": writes,
	}
	without := templateOf(t, variant{"production", ""})
	for _, function := range []string{"DeliveryDeliverQuery", "ApiFunction", "SnapshotsPlan", "SnapshotsStep"} {
		shared := maps.Clone(shared)
		if strings.HasPrefix(function, "Snapshots") { // the others list the bucket anyway
			shared["StorageFiles"] = "s3:GetBucketLocation s3:ListBucket s3:ListBucketMultipartUploads"
		}
		own := maps.Clone(shared)
		own["StorageData"] = "s3:GetBucketLocation"
		want(t, function+" with the stage's own data", lakeRights(t, lakeTemplate(t, nil), function, rightsOf(t, without, function)), own)
		others := maps.Clone(shared)
		others[":s3:::lake"], others[":s3:::weather-data"] = "s3:GetBucketLocation s3:ListBucket", "s3:GetBucketLocation s3:ListBucket"
		others[":s3:::lake/*"], others[":s3:::weather-data/daily/*"] = "s3:GetObject", "s3:GetObject"
		want(t, function+" with buckets", lakeRights(t, lakeTemplate(t, map[string]any{"athenaBuckets": "lake,weather-data/daily/"}), function, rightsOf(t, without, function)), others)
	}
}

func TestTheWorkgroupBoundsItsQueries(t *testing.T) {
	for given, limit := range map[string]int64{"": usualScan, "50000000000": 50_000_000_000} {
		change := map[string]any{}
		if given != "" {
			change["athenaScanLimit"] = given
		}
		tpl := lakeTemplate(t, change)
		_, g := tpl.one(t, "AWS::Athena::WorkGroup", "LakeWorkgroup")
		c := get(g.Properties, "WorkGroupConfiguration")
		want(t, "name", g.Properties["Name"], "almanac-production")
		want(t, "enforced", get(c, "EnforceWorkGroupConfiguration"), true)
		want(t, "limit", get(c, "BytesScannedCutoffPerQuery"), limit)
		want(t, "encryption", get(c, "ResultConfiguration", "EncryptionConfiguration", "EncryptionOption"), "SSE_S3")
		want(t, "its queries stay", g.Properties["RecursiveDeleteOption"], false)
		place := get(c, "ResultConfiguration", "OutputLocation")
		_, f := tpl.one(t, "AWS::Lambda::Function", "DeliveryDeliverQuery")
		want(t, "the function reads where the workgroup writes", get(f.Properties, "Environment", "Variables", "ATHENA_OUTPUT"), place)
		for _, function := range []string{"SnapshotsPlan", "SnapshotsStep", "ApiFunction"} {
			_, f := tpl.one(t, "AWS::Lambda::Function", function)
			want(t, function+" reads there too", get(f.Properties, "Environment", "Variables", "ATHENA_OUTPUT"), place)
		}
		kept := false
		_, files := tpl.one(t, "AWS::S3::Bucket", "StorageFiles")
		for _, rule := range get(files.Properties, "LifecycleConfiguration", "Rules").([]any) {
			kept = kept || get(rule, "Prefix") == "queries/" && get(rule, "ExpirationInDays") == float64(queriesDays)
		}
		if !kept || !strings.Contains(text(place), "/queries/") {
			t.Errorf("results at %s do not expire", text(place))
		}
	}
	eachVariant(t, func(t *testing.T, _ Profile, tpl template) {
		for id, r := range tpl.Resources {
			if r.Type == "AWS::Athena::WorkGroup" {
				t.Errorf("%s is made without the setting", id)
			}
		}
	})
}

func TestSettingsOfAthena(t *testing.T) {
	on := func(change map[string]any) map[string]any {
		all := map[string]any{"athenaDatabases": "flights"}
		maps.Copy(all, change)
		return all
	}
	for name, c := range map[string]struct {
		stage string
		given map[string]any
		want  []string
	}{
		"databases of wrong type":  {"production", map[string]any{"athenaDatabases": 7.0}, []string{"athenaDatabases is 7 (float64)", "want text"}},
		"all databases":            {"production", on(map[string]any{"athenaDatabases": "flights,*"}), []string{`athenaDatabases is "*"`, "no patterns"}},
		"a hostile database":       {"production", on(map[string]any{"athenaDatabases": "a/b"}), []string{`athenaDatabases is "a/b"`}},
		"all buckets":              {"production", on(map[string]any{"athenaBuckets": "*"}), []string{`athenaBuckets is "*"`, "no patterns"}},
		"a pattern in a prefix":    {"production", on(map[string]any{"athenaBuckets": "lake/a*"}), []string{`athenaBuckets is "lake/a*"`}},
		"a bucket's address":       {"production", on(map[string]any{"athenaBuckets": "s3://lake"}), []string{`athenaBuckets is "s3://lake"`, "lake-data/flights/"}},
		"no number":                {"production", on(map[string]any{"athenaScanLimit": "1 TB"}), []string{`athenaScanLimit is "1 TB"`, "10000000"}},
		"below Athena's least":     {"production", on(map[string]any{"athenaScanLimit": "9999999"}), []string{`athenaScanLimit is "9999999"`}},
		"limit of wrong type":      {"production", on(map[string]any{"athenaScanLimit": 1e12}), []string{"athenaScanLimit", "want text"}},
		"buckets without":          {"production", map[string]any{"athenaBuckets": "lake"}, []string{`athenaDatabases is ""`, "beside athenaBuckets"}},
		"a limit without":          {"dev", map[string]any{"athenaScanLimit": "10000000"}, []string{`athenaDatabases is ""`}},
		"a network without Athena": {"production", on(placed(viaEndpoints)), []string{`network is "endpoints"`, "beside athenaDatabases"}},
		"where there is none":      {"localstack", on(nil), []string{`athenaDatabases is "flights"`, "cloud localstack has no Athena"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := variant{stage: c.stage}
			if c.stage == "localstack" {
				v = variant{"local", "localstack"}
			}
			_, err := deployment(v, c.given)
			says(t, err, c.want...)
		})
	}
}

// What cdk-nag finds besides are rights on all tables of the named databases, and on all objects below the named places.
func TestCdkNagFindsOnlyPatternsBelowWhatTheSettingsName(t *testing.T) {
	below := regexp.MustCompile(`^AwsSolutions-IAM5\[Resource::(.*:glue:.*:table/(flights|weather)/\*|.*:s3:::lake/\*|<StorageFiles[0-9A-F]+\.Arn>/queries/\*)\]$`)
	settings := map[string]any{"athenaDatabases": "flights,weather", "athenaBuckets": "lake"}
	found := 0
	for _, f := range findings(t, variant{"production", ""}, settings) {
		known := slices.ContainsFunc(accepted, func(a struct{ rule, where, stages, reason string }) bool {
			return regexp.MustCompile(`^`+a.rule+`$`).MatchString(f.rule) && regexp.MustCompile(`^/Almanac-production`+a.where+`$`).MatchString(f.where)
		})
		switch {
		case below.MatchString(f.rule):
			found++
		case !known:
			t.Errorf("%s at %s", f.rule, f.where)
		}
	}
	if found != 16 { // two databases, a bucket and the results, of four functions
		t.Errorf("%d findings of such patterns, want 16", found)
	}
}
