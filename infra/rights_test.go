package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// right is one action on one resource of a role.
type right struct {
	action    string
	resource  any
	condition any
}

// rightsOf lists what the role of a function may do.
func rightsOf(t *testing.T, tpl template, prefix string) []right {
	t.Helper()
	_, f := tpl.one(t, "AWS::Lambda::Function", prefix)
	role, _ := get(f.Properties, "Role", "Fn::GetAtt", 0).(string)
	want(t, prefix+" managed policies", tpl.Resources[role].Properties["ManagedPolicyArns"], nil)
	want(t, prefix+" inline policies", tpl.Resources[role].Properties["Policies"], nil)
	var rights []right
	for _, p := range tpl.of(t, "AWS::IAM::Policy") {
		if !mentions(p.Properties["Roles"], role) {
			continue
		}
		want(t, prefix+" policy's roles", p.Properties["Roles"], []any{map[string]string{"Ref": role}})
		for _, s := range get(p.Properties, "PolicyDocument", "Statement").([]any) {
			want(t, prefix+" effect", get(s, "Effect"), "Allow")
			for _, a := range some(get(s, "Action")) {
				for _, r := range some(get(s, "Resource")) {
					rights = append(rights, right{a.(string), r, get(s, "Condition")})
				}
			}
		}
	}
	return rights
}

func some(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// place names a resource in short: its logical id without the hash, and what follows.
func place(tpl template, v any) string {
	s := text(v)
	for id := range tpl.Resources {
		if strings.Contains(s, `"`+id+`"`) {
			rest := ""
			if tail, ok := get(v, "Fn::Join", 1).([]any); ok {
				rest, _ = tail[len(tail)-1].(string)
			}
			return strings.TrimRight(id, "0123456789ABCDEF") + rest
		}
	}
	if parts, ok := get(v, "Fn::Join", 1).([]any); ok {
		return fmt.Sprint(parts[len(parts)-1])
	}
	return strings.Trim(s, `"`)
}

const consuming = "sqs: ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"

// allowed is every right of every function, nothing besides: place → actions.
func allowed(p Profile) map[string]map[string]string {
	const table, queue, dead = "StorageSchedules", "DeliveryQueryRuns", "DeliveryQueryRunsDead"
	send := "sqs: SendMessage"
	if !p.Cloud.SendCoversBatch {
		send += " SendMessageBatch"
	}
	all := map[string]map[string]string{
		"DeliveryDispatch": {
			table:                "dynamodb: BatchGetItem GetItem PutItem Query UpdateItem",
			table + "/index/due": "dynamodb: Query", table + "/index/open": "dynamodb: Query",
			queue: send + " GetQueueAttributes",
		},
		"DeliveryDeliverQuery": {
			table:         "dynamodb: BatchGetItem DeleteItem GetItem PutItem Query UpdateItem",
			queue:         consuming,
			"StorageData": "s3: ListBucket", "StorageData/*": "s3: GetObject",
			"StorageFiles": "s3: ListBucket", "StorageFiles/files/*": "s3: AbortMultipartUpload GetObject PutObject",
			"StorageFiles/recipients/*": "s3: GetObject",
			"mail":                      "ses: SendRawEmail", "secrets": "secretsmanager: GetSecretValue",
		},
		"DeliveryExhaust": {
			table: "dynamodb: GetItem PutItem Query UpdateItem",
			queue: send, dead: consuming,
			"StorageFiles": "s3: ListBucket", "StorageFiles/recipients/*": "s3: GetObject",
		},
		"MailEventsFeedback": {
			table:             "dynamodb: GetItem PutItem UpdateItem",
			"MailEventsQueue": consuming,
		},
		"ApiFunction": {
			table:                      "dynamodb: BatchGetItem GetItem PutItem Query UpdateItem",
			table + "/index/directory": "dynamodb: Query",
			queue:                      send, "StorageFiles/files/*": "s3: GetObject",
			"StorageFiles": "s3: ListBucket", "StorageFiles/recipients/*": "s3: GetObject PutObject",
			"StorageSnapshots":                 "dynamodb: BatchGetItem ConditionCheckItem GetItem PutItem Query UpdateItem",
			"StorageSnapshots/index/directory": "dynamodb: Query", "StorageSnapshots/index/work": "dynamodb: Query",
			"StorageMonths": "s3: ListBucket", "StorageMonths/snapshots/*": "s3: GetObject",
			"StorageData": "s3: ListBucket", "StorageData/*": "s3: GetObject",
			"attempts' executions": "states: StopExecution",
			"SnapshotsPlan":        "lambda: InvokeFunction", "SnapshotsDispatch": "lambda: InvokeFunction",
		},
	}
	const months, files = "StorageSnapshots", "StorageMonths"
	machine, jobs := "attempts", "attempts' executions"
	ask := map[string]string{"SnapshotsDispatch": "lambda: InvokeFunction"}
	for name, rights := range map[string]map[string]string{
		"SnapshotsPlan": {
			table: "dynamodb: BatchGetItem GetItem", table + "/index/directory": "dynamodb: Query",
			months: "dynamodb: BatchGetItem GetItem PutItem Query UpdateItem", months + "/index/plan": "dynamodb: Query", months + "/index/directory": "dynamodb: Query",
			"StorageData": "s3: ListBucket", "StorageData/*": "s3: GetObject", jobs: "states: StopExecution",
		},
		"SnapshotsDispatch": {
			table: "dynamodb: GetItem", months: "dynamodb: BatchGetItem GetItem UpdateItem",
			months + "/index/work": "dynamodb: Query", months + "/index/directory": "dynamodb: Query",
			machine: "states: StartExecution", jobs: "states: DescribeExecution",
		},
		"SnapshotsStep": {
			table: "dynamodb: GetItem", months: "dynamodb: GetItem PutItem Query UpdateItem",
			"StorageData": "s3: ListBucket", "StorageData/*": "s3: GetObject",
			files: "s3: ListBucket", files + "/snapshots/*": "s3: AbortMultipartUpload GetObject PutObject",
		},
		"SnapshotsReconcile": {
			table: "dynamodb: GetItem", months: "dynamodb: BatchGetItem ConditionCheckItem GetItem UpdateItem",
			months + "/index/work": "dynamodb: Query", months + "/index/late": "dynamodb: Query",
			months + "/index/settled": "dynamodb: Query", months + "/index/directory": "dynamodb: Query",
			files: "s3: ListBucket", files + "/snapshots/*": "s3: DeleteObject GetObject",
			machine: "states: StartExecution", jobs: "states: DescribeExecution",
		},
	} {
		all[name] = rights
		if name != "SnapshotsDispatch" {
			maps.Copy(rights, ask)
		}
	}
	if p.Cloud.ScopedMail && p.Cloud.ConfigurationSets {
		all["DeliveryDeliverQuery"]["mail's configuration set"] = "ses: SendRawEmail"
	}
	for _, f := range all {
		f["its log group"] = "logs: CreateLogStream PutLogEvents"
		if p.Tracing {
			f["*"] = "xray: PutTelemetryRecords PutTraceSegments"
		}
	}
	return all
}

func TestEachRoleMayDoWhatItsFunctionDoesAndNothingElse(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		want(t, "functions with rights", len(allowed(p)), len(functionFolders))
		for prefix, wanted := range allowed(p) {
			got := map[string][]string{}
			for _, r := range rightsOf(t, tpl, prefix) {
				service, action, _ := strings.Cut(r.action, ":")
				where := place(tpl, r.resource)
				switch service {
				case "logs":
					where = "its log group"
				case "ses":
					where = "mail"
					if strings.Contains(text(r.resource), ":configuration-set/") {
						where = "mail's configuration set"
					}
				case "secretsmanager":
					where = "secrets"
				case "states":
					where = attempts(t, p, r.resource)
				}
				if len(got[where]) == 0 {
					got[where] = []string{service + ":"}
				}
				got[where] = append(got[where], action)
			}
			for where, actions := range got {
				slices.Sort(actions[1:])
				if s := strings.Join(actions, " "); s != wantedOrder(wanted[where]) {
					t.Errorf("%s may %q on %s; want %q", prefix, s, where, wantedOrder(wanted[where]))
				}
			}
			for where := range wanted {
				if got[where] == nil {
					t.Errorf("%s may do nothing on %s; it has %v", prefix, where, slices.Sorted(maps.Keys(got)))
				}
			}
		}
	})
}

// attempts names the state machine of attempt jobs or its executions, and nothing besides.
func attempts(t *testing.T, p Profile, resource any) string {
	t.Helper()
	s := text(resource)
	switch machine := "almanac-" + p.Stage + "-attempts"; {
	case strings.Contains(s, ":stateMachine:"+machine+`"`):
		return "attempts"
	case strings.Contains(s, ":execution:"+machine+`:*"`):
		return "attempts' executions"
	}
	t.Errorf("a right on %s; want the state machine %s or its executions", s, "almanac-"+p.Stage+"-attempts")
	return s
}

func wantedOrder(s string) string {
	parts := strings.Fields(s)
	if len(parts) > 1 {
		slices.Sort(parts[1:])
	}
	return strings.Join(parts, " ")
}

// TestNoRoleHasEverythingAsItsResource: X-Ray's write actions take no resource (AWS: "Actions, resources, and condition
// keys for AWS X-Ray"); the emulator authorizes mail on "*" alone.
func TestNoRoleHasEverythingAsItsResource(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		for id, r := range tpl.of(t, "AWS::IAM::Policy") {
			for _, s := range get(r.Properties, "PolicyDocument", "Statement").([]any) {
				for _, a := range some(get(s, "Action")) {
					action := a.(string)
					if strings.Contains(action, "*") {
						t.Errorf("%s allows %s", id, action)
					}
					everything := slices.Contains(some(get(s, "Resource")), any("*"))
					traces := strings.HasPrefix(action, "xray:Put") || strings.HasPrefix(action, "xray:GetSampling") && strings.HasPrefix(id, "SnapshotsAttempts")
					if everything && !traces && (p.Cloud.ScopedMail || action != "ses:SendRawEmail") {
						t.Errorf("%s allows %s on everything", id, action)
					}
				}
			}
		}
	})
}

func TestMailIsSentAsTheConfiguredSenderOnly(t *testing.T) {
	tpl := templateOf(t, variant{stage: "production"})
	found := false
	for _, r := range rightsOf(t, tpl, "DeliveryDeliverQuery") {
		if set := text(r.resource); strings.HasPrefix(r.action, "ses:") && strings.Contains(set, ":configuration-set/") {
			if id, _ := tpl.one(t, "AWS::SES::ConfigurationSet", "MailEventsSet"); !mentions(r.resource, id) {
				t.Errorf("deliver may send with the configuration set %s", set)
			}
		} else if strings.HasPrefix(r.action, "ses:") {
			found = true
			want(t, "identity", place(tpl, r.resource), ":ses:eu-central-1:111122223333:identity/example.com")
			want(t, "condition", r.condition, map[string]any{"StringEquals": map[string]string{"ses:FromAddress": "reports@mail.example.com"}})
		}
		if strings.HasPrefix(r.action, "secretsmanager:") {
			want(t, "secrets", place(tpl, r.resource), ":secretsmanager:eu-central-1:111122223333:secret:almanac/production/webhook/*")
		}
	}
	if !found {
		t.Error("deliver may not send mail")
	}
}

func TestOnlyLambdaAssumesTheRolesAndStepFunctionsThatOfAttempts(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		for id, r := range tpl.of(t, "AWS::IAM::Role") {
			service := "lambda.amazonaws.com"
			if strings.HasPrefix(id, "SnapshotsAttemptsRole") {
				service = "states.amazonaws.com"
			}
			for _, s := range get(r.Properties, "AssumeRolePolicyDocument", "Statement").([]any) {
				want(t, id+" trusts", get(s, "Principal"), map[string]string{"Service": service})
			}
		}
	})
}

func TestTheWorkflowMayOnlyCallItsSteps(t *testing.T) {
	eachVariant(t, func(t *testing.T, p Profile, tpl template) {
		role, r := tpl.one(t, "AWS::IAM::Role", "SnapshotsAttemptsRole")
		want(t, "managed policies", r.Properties["ManagedPolicyArns"], nil)
		want(t, "inline policies", r.Properties["Policies"], nil)
		step, _ := tpl.one(t, "AWS::Lambda::Function", "SnapshotsStep")
		calls, traces := 0, 0
		for _, policy := range tpl.of(t, "AWS::IAM::Policy") {
			if !mentions(policy.Properties["Roles"], role) {
				continue
			}
			for _, s := range get(policy.Properties, "PolicyDocument", "Statement").([]any) {
				if get(s, "Action") == "lambda:InvokeFunction" {
					calls++
					want(t, "called", get(s, "Resource"), map[string]any{"Fn::GetAtt": []string{step, "Arn"}})
					continue
				}
				traces++
				want(t, "other rights", get(s, "Action"), []string{"xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:PutTelemetryRecords", "xray:PutTraceSegments"})
			}
		}
		if calls != 1 || (traces == 1) != p.Tracing {
			t.Errorf("%d statements for calls, %d for traces", calls, traces)
		}
	})
}

// TestOnlyNoticesMayBeDeleted: everything else on the table is history, and goes by its TTL.
func TestOnlyNoticesMayBeDeleted(t *testing.T) {
	eachVariant(t, func(t *testing.T, _ Profile, tpl template) {
		found := 0
		for id, r := range tpl.of(t, "AWS::IAM::Policy") {
			for _, s := range get(r.Properties, "PolicyDocument", "Statement").([]any) {
				for _, a := range some(get(s, "Action")) {
					if a != "dynamodb:DeleteItem" {
						continue
					}
					found++
					if keys := fmt.Sprint(get(s, "Condition", "ForAllValues:StringLike", "dynamodb:LeadingKeys")); !strings.Contains(keys, "OUTBOX#*") {
						t.Errorf("%s may delete items of %s", id, keys)
					}
				}
			}
		}
		if found != 1 {
			t.Errorf("%d roles may delete items, want the consumer's alone", found)
		}
	})
}
