package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"almanac/internal/schema"
)

// Rights are written out action by action, since the grant methods of the CDK give more than the functions use (a scan,
// a delete, a stream). A transaction needs the rights of its single actions and none of its own (AWS: "Using IAM with
// transactions").

func allow(resources []string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings(actions...), Resources: jsii.Strings(resources...),
	})
}

// onTable allows actions on items of a table.
func onTable(t awsdynamodb.TableV2, actions ...string) awsiam.PolicyStatement {
	return allow([]string{*t.TableArn()}, actions...)
}

// toRemoveNotices allows to delete items of the outbox's partitions and no others.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
func toRemoveNotices(t awsdynamodb.TableV2) awsiam.PolicyStatement {
	s := onTable(t, "dynamodb:DeleteItem")
	s.AddCondition(jsii.String("ForAllValues:StringLike"), map[string]any{"dynamodb:LeadingKeys": []string{schema.OutboxPrefix + "*"}})
	return s
}

// onIndexes allows to query the named indexes.
func onIndexes(t awsdynamodb.TableV2, indexes ...string) awsiam.PolicyStatement {
	var arns []string
	for _, name := range indexes {
		arns = append(arns, *t.TableArn()+"/index/"+name)
	}
	return allow(arns, "dynamodb:Query")
}

// onQueue allows actions on one queue.
func onQueue(q awssqs.IQueue, actions ...string) awsiam.PolicyStatement {
	return allow([]string{*q.QueueArn()}, actions...)
}

// toSend allows to send runs to a queue, singly and in batches.
func toSend(d Deployment, q awssqs.IQueue) awsiam.PolicyStatement {
	s := onQueue(q, "sqs:SendMessage")
	if !d.Profile.Cloud.SendCoversBatch {
		s.AddActions(jsii.String("sqs:SendMessageBatch"))
	}
	return s
}

// toConsume is what an SQS event source does with the function's role.
func toConsume(q awssqs.IQueue) awsiam.PolicyStatement {
	return onQueue(q, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
}

// onObjects allows actions on the objects of a bucket below a prefix, never on the bucket itself.
func onObjects(b awss3.Bucket, prefix string, actions ...string) awsiam.PolicyStatement {
	return allow([]string{*b.BucketArn() + "/" + prefix + "*"}, actions...)
}

// toTellMissing lets S3 answer 404 for an object that is not there. Without the right to list, it answers 403, as if the
// function might not read it.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
func toTellMissing(buckets ...awss3.Bucket) awsiam.PolicyStatement {
	var arns []string
	for _, b := range buckets {
		arns = append(arns, *b.BucketArn())
	}
	return allow(arns, "s3:ListBucket")
}

// toAsk allows to ask a function to run, which an asynchronous invocation does too.
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
func toAsk(f awslambda.IFunction) awsiam.PolicyStatement {
	return allow([]string{*f.FunctionArn()}, "lambda:InvokeFunction")
}

// toSendMail allows to send as the configured sender and nobody else, with this configuration set, if there is one. SES
// authorizes a configuration set as a resource of its own: https://github.com/aws/aws-cdk/issues/34402.
func toSendMail(stack awscdk.Stack, d Deployment, set string) []awsiam.PolicyStatement {
	const action = "ses:SendRawEmail"
	if !d.Profile.Cloud.ScopedMail {
		return []awsiam.PolicyStatement{allow([]string{"*"}, action)}
	}
	s := allow([]string{*stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("ses"), Resource: jsii.String("identity"), ResourceName: jsii.String(d.Settings.MailIdentity),
	})}, action)
	// https://docs.aws.amazon.com/ses/latest/dg/control-user-access.html
	s.AddCondition(jsii.String("StringEquals"), map[string]any{"ses:FromAddress": d.Settings.MailFrom})
	if set == "" {
		return []awsiam.PolicyStatement{s}
	}
	return []awsiam.PolicyStatement{s, allow([]string{setARN(stack, set)}, action)}
}

// toReadSecrets allows to read the webhook secrets of this stage.
func toReadSecrets(stack awscdk.Stack, d Deployment) awsiam.PolicyStatement {
	return allow([]string{*stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("secretsmanager"), Resource: jsii.String("secret"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
		ResourceName: jsii.String(d.secretPrefix() + "*"),
	})}, "secretsmanager:GetSecretValue")
}
