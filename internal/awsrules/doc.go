// Package awsrules is one suite of rules of AWS, each with the page that states it: of DynamoDB, SQS, S3 and Step
// Functions, those that the product relies on or could trip over. What the product is tested on is held to it: the
// in-memory services of internal/memcloud in the unit tests, the local clouds and AWS's own DynamoDB Local by
// localstack/probes.
//
// internal/memcloud keeps every rule. Where another cloud does not, localstack/DIVERGENCES.md has a row that names the
// rule, and the check there demands that the cloud still breaks it: nothing is skipped, and a cloud that has learnt a
// rule shows it.
//
// A rule is asked by behaviour alone, and as a client of AWS would see it. What AWS leaves open is left open here: an
// index may lag, a poll may come back empty, a message may come in any order. Where AWS may refuse a request in either of
// two ways, either will do.
//
// To add one, put it into the list of its service; its id is `service/group/what`, and its check notes by unlike what is
// otherwise than AWS says. A rule is as small as a difference between clouds: two that can be broken apart are two rules.
//
// What Lambda does with a queue's messages is asked by the probes alone, since it takes a function: partial failures, a
// failed invocation, empty and null answers (TestSQSPartialBatchFailures and those beside it). So is what shows only with
// time or load: throttles, lagging indexes, expiry, transactions that meet.
package awsrules
