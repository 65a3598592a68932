// Package memcloud holds in-memory stand-ins for DynamoDB, S3, SQS and Athena that
// take and return the request and response types of aws-sdk-go-v2. They are
// for tests and for the fault simulation: the real store, with its real
// expressions, runs on them without a network, under a clock that the test
// holds, and thousands of times per second.
//
// # Why an evaluator of our own
//
// The product's safety rests on condition expressions, so a stand-in is only
// worth having if it evaluates the very strings that are sent, as AWS does.
// The one Go library that offers this in process (minidyn v0.8.2) gets
// conditions and rollback right, but it
//
//   - keeps numbers as float64: a fencing token or a count beyond 2^53 would
//     compare wrongly;
//   - ignores ClientRequestToken: a transaction repeated after a lost reply
//     runs twice, which is one of the faults the simulation looks for;
//   - knows no size limits, accepts empty keys and bare reserved words, so a
//     request that AWS refuses would pass every test;
//   - copies whole tables for a transaction: a simulation of a million steps
//     would not end.
//
// Filling those gaps from the outside means parsing the expressions again
// anyway. Here they are parsed once, checked against AWS's rules and run on
// immutable items; a transaction costs its actions and nothing more.
//
// # What is promised
//
// A request that AWS refuses for its form is refused here with the same error
// type, and with the same words where those are known. Where AWS's behaviour
// is not documented, the stricter reading is taken and the place says so.
// Reads on a table are always consistent; only indexes can be made to lag
// (Dynamo.StaleIndex). Nothing is throttled and no conflict arises by itself:
// those come from the hooks (Hooks), as does every other fault. Items past
// their TTL stay, as they may on AWS for days.
//
// What AWS's documents promise is written down as rules, each with its page, in
// internal/awsrules. This package keeps every one of them (TestRules); the same
// rules are asked of the local clouds, which do not.
//
// Every expression of this package's tests, its refusals, key conditions,
// transactions and the capacity of single writes were compared with AWS's
// DynamoDB Local 2.6.1: they agree in result and error code but for these, where the
// stricter or the documented side is taken:
//
//   - an operand in parentheses, "(a) = :b", and a bare attribute called size
//     are refused here;
//   - UPDATED_OLD and UPDATED_NEW give the nested parts that were named, as
//     the service does, not the whole top-level attribute;
//   - an update that only removes does not make an item that is not there;
//   - an operand of the wrong type in a transaction cancels it with the reason
//     ValidationError, as the API reference says;
//   - a transaction costs twice a single write; DynamoDB Local says four times,
//     and multiplies index entries too.
//
// What is not here: local secondary indexes, PartiQL, streams, legacy
// parameters (Expected, AttributeUpdates, ...), S3 versions and ACLs, FIFO
// queues. A request that uses one of them is refused, never half served.
package memcloud
