//go:build cloud

package probes

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// as gives credentials of a fresh role with the given statements.
func as(t *testing.T, statements ...map[string]any) aws.Credentials {
	t.Helper()
	role := makeRole(t, name(t, ""), map[string]any{"AWS": "arn:aws:iam::" + account + ":root"}, statements...)
	answer, err := raw().Query(t.Context(), "sts", "2011-06-15", "AssumeRole", map[string]string{"RoleArn": role, "RoleSessionName": "probe"})
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Key    string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		Secret string `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
		Token  string `xml:"AssumeRoleResult>Credentials>SessionToken"`
	}
	if err := xml.Unmarshal([]byte(answer), &out); err != nil || out.Key == "" {
		t.Fatalf("answer of AssumeRole: %v: %s", err, answer)
	}
	return aws.Credentials{AccessKeyID: out.Key, SecretAccessKey: out.Secret, SessionToken: out.Token}
}

func configOf(c aws.Credentials) aws.Config {
	cfg := config()
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })
	return cfg
}

func TestIAMUnsignedRequestIsRefused(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	res, err := client.Get(endpoint + "/" + bucket + "/x")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		unlike(t, "an unsigned GET: %s, want 403", res.Status)
	}
}

func TestIAMWrongSignatureIsRefused(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	c := as(t, allow([]string{"dynamodb:ListTables"}, "*"))
	c.SecretAccessKey += "x"
	if _, err := dynamodb.NewFromConfig(configOf(c)).ListTables(t.Context(), &dynamodb.ListTablesInput{}); codeOf(err) == "" || strings.Contains(codeOf(err), "Internal") {
		unlike(t, "a request signed with a wrong key: %v, want a refusal", err)
	}
}

func TestIAMFunctionNeedsItsGrant(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	mine, other := name(t, "-mine"), name(t, "-other")
	makeTable(t, mine, nil)
	makeTable(t, other, nil)
	f := name(t, "-f")
	makeFunction(t, f, nil, allow([]string{"dynamodb:GetItem"}, fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", region, account, mine)))
	for table, want := range map[string]string{mine: "", other: "AccessDenied"} {
		got, _, err := invoke(t, f, map[string]any{"do": "get-item", "table": table, "path": "x"})
		if err != nil {
			t.Fatal(err)
		}
		if (want == "") != (got.Error == "") || !strings.Contains(got.Error, want) {
			unlike(t, "GetItem on %s: %q, want %q", table, got.Error, want)
		}
		if want != "" && (!strings.Contains(got.Error, "dynamodb:GetItem") || !strings.Contains(got.Error, f)) {
			unlike(t, "the refusal %q names not both the action and the role", got.Error)
		}
	}
}

func TestIAMIndexNeedsItsOwnGrant(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: aws.String("due"), AttributeType: ddb.ScalarAttributeTypeS})
		in.GlobalSecondaryIndexes = []ddb.GlobalSecondaryIndex{{
			IndexName: aws.String("due"), Projection: &ddb.Projection{ProjectionType: ddb.ProjectionTypeKeysOnly},
			KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("due"), KeyType: ddb.KeyTypeHash}},
		}}
	})
	c := dynamodb.NewFromConfig(configOf(as(t, allow([]string{"dynamodb:Query"}, fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", region, account, table)))))
	_, err := c.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, IndexName: aws.String("due"), KeyConditionExpression: aws.String("due = :d"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":d": text("1")},
	})
	if !strings.HasPrefix(codeOf(err), "AccessDenied") {
		unlike(t, "a query of the index with a grant for the table alone: %v, want AccessDenied", err)
	}
}

func TestIAMTransactionsAreCheckedByTheirActions(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	arn := fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", region, account, table)
	c := dynamodb.NewFromConfig(configOf(as(t, allow([]string{"dynamodb:UpdateItem"}, arn))))
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html: a transaction needs the
	// permissions of the actions in it.
	_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{{Put: &ddb.Put{TableName: &table, Item: key("x")}}}})
	if !strings.HasPrefix(codeOf(err), "AccessDenied") {
		unlike(t, "a put in a transaction with a grant for updates: %v, want AccessDenied", err)
	}
	_, err = c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{{Update: &ddb.Update{
		TableName: &table, Key: key("x"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}},
	}}}})
	if err != nil {
		unlike(t, "an update in a transaction with a grant for updates: %v", err)
	}
}

func TestIAMLeadingKeysAreNotChecked(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	table := name(t, "")
	makeTable(t, table, nil)
	statement := allow([]string{"dynamodb:GetItem"}, fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", region, account, table))
	statement["Condition"] = map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": []string{"mine#*"}}}
	c := dynamodb.NewFromConfig(configOf(as(t, statement)))
	if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key("mine#1")}); err != nil {
		t.Errorf("an item with an allowed key: %v", err)
	}
	if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key("theirs#1")}); !strings.HasPrefix(codeOf(err), "AccessDenied") {
		t.Logf("an item with another key: %v", err)
	} else {
		like(t, "an item with another key: %v", err)
	}
}

func TestIAMResourceAccount(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	for owner, want := range map[string]string{account: "", "111111111111": "AccessDenied"} {
		t.Run(owner, func(t *testing.T) {
			statement := allow([]string{"s3:PutObject"}, "arn:aws:s3:::"+bucket+"/*")
			statement["Condition"] = map[string]any{"StringEquals": map[string]any{"aws:ResourceAccount": owner}}
			// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-resourceaccount
			if err := putAs(t, bucket, statement); codeOf(err) != want {
				unlike(t, "a put where aws:ResourceAccount must be %s: %v, want %q", owner, err, want)
			}
		})
	}
}

func putAs(t *testing.T, bucket string, statement map[string]any) error {
	t.Helper()
	c := s3.NewFromConfig(configOf(as(t, statement)), func(o *s3.Options) { o.UsePathStyle = true })
	_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("x"), Body: strings.NewReader("x")})
	return err
}

func TestIAMPlainHTTPIsDeniedWherePoliciesWantTLS(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::%s","arn:aws:s3:::%s/*"],"Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`, bucket, bucket)
	if _, err := objects().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	if err := putAs(t, bucket, allow([]string{"s3:PutObject"}, "arn:aws:s3:::"+bucket+"/*")); codeOf(err) != "AccessDenied" {
		like(t, "a put over plain HTTP into a bucket that wants TLS: %v", err)
	}
}

func TestCloudFormationTakesAnEmptyListForAList(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	// As the CDK's bootstrap template gives its execution role the policies of a parameter, which is empty by default.
	template := `{"Parameters":{"Policies":{"Type":"CommaDelimitedList","Default":""}},
		"Conditions":{"Given":{"Fn::Not":[{"Fn::Equals":["",{"Fn::Join":["",{"Ref":"Policies"}]}]}]}},
		"Resources":{"Role":{"Type":"AWS::IAM::Role","Properties":{"RoleName":"` + name(t, "") + `",
		"AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"cloudformation.amazonaws.com"}}]},
		"ManagedPolicyArns":{"Fn::If":["Given",{"Ref":"Policies"},[{"Fn::Sub":"arn:${AWS::Partition}:iam::aws:policy/AdministratorAccess"}]]}}}}}`
	stack := name(t, "")
	if _, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "CreateStack", map[string]string{
		"StackName": stack, "TemplateBody": template, "Capabilities.member.1": "CAPABILITY_NAMED_IAM",
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() (bool, string) {
		answer, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "DescribeStacks", map[string]string{"StackName": stack})
		return err == nil && strings.Contains(answer, "CREATE_COMPLETE"), fmt.Sprint(answer, err)
	})
	attached, err := raw().Query(t.Context(), "iam", "2010-05-08", "ListAttachedRolePolicies", map[string]string{"RoleName": stack})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(attached, "policy/AdministratorAccess") {
		like(t, "the role has its policy: %s", attached)
	}
}

func TestIAMMailHasNoResource(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	sender := "sender@" + run + ".example.com"
	verify(t, sender)
	c := as(t, allow([]string{"ses:SendRawEmail"}, "arn:aws:ses:"+region+":"+account+":identity/"+sender))
	client := raw()
	client.Credentials = c
	_, err := client.Query(t.Context(), "ses", "2010-12-01", "SendRawEmail", rawMail(sender, sender, "probe"))
	// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonses.html: the identity is a resource
	// of SendRawEmail.
	if !strings.HasPrefix(codeOf(err), "AccessDenied") {
		like(t, "a mail with a grant for its identity: %v", err)
	}
}

func TestCloudFormationRollsBack(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	// The function's code is in no bucket; the queue is made before.
	stack := name(t, "")
	template := `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + stack + `"}},
		"Function":{"Type":"AWS::Lambda::Function","DependsOn":"Queue","Properties":{"Runtime":"provided.al2023","Handler":"bootstrap",
		"Role":"arn:aws:iam::` + account + `:role/missing","Code":{"S3Bucket":"missing-` + run + `","S3Key":"missing.zip"}}}}}`
	if _, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "CreateStack", map[string]string{"StackName": stack, "TemplateBody": template}); err != nil {
		t.Fatal(err)
	}
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html: what was made is removed.
	var status string
	happens(30*time.Second, func() (bool, string) {
		answer, err := raw().Query(t.Context(), "cloudformation", "2010-05-15", "DescribeStacks", map[string]string{"StackName": stack})
		if err != nil {
			return false, err.Error()
		}
		_, rest, _ := strings.Cut(answer, "<StackStatus>")
		status, _, _ = strings.Cut(rest, "</StackStatus>")
		return strings.HasSuffix(status, "_COMPLETE") || strings.HasSuffix(status, "_FAILED"), status
	})
	_, err := queues().GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &stack})
	if t.Logf("%s; the queue: %v", status, err); status != "ROLLBACK_COMPLETE" || err == nil {
		unlike(t, "the stack is %s, the queue that it made: %v", status, err)
	}
}
