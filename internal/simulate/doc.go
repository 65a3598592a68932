// Package simulate runs the real handlers of both lifecycles, over the real store, against an AWS in memory whose every
// answer a schedule controls, and checks after each step what must hold whatever goes wrong.
//
// A World lives in a bubble of testing/synctest: its time is held, and the scheduler knows when every goroutine waits. A
// Worker is one invocation of a function, or one act of a person, with a clock and tokens of its own. Each call that a
// worker makes to the outside parks; the scheduler lets one go at a time, with a Form: as it should be, or one of the
// ways in which AWS may fail it. Which call goes next is a choice, made in order, by a seed, or by exhaustive search; the
// same choices make the same world, so that a failure is replayed by one line.
//
// How to add to it:
//
//   - An outside call: none of DynamoDB, S3, SQS, Step Functions and Athena needs anything, the clouds' hooks park it. A client of
//     another kind goes through World.outside, as the mailbox does.
//   - A transition or a handler: wire it in functions.go, let events.go start it, and add a scenario that goes through it
//     to the tables in scenarios_*.go. Faults at each of its calls, pairs, random schedules and mutants then follow by
//     themselves.
//   - Two handlers that can meet: a Pair in explore_pairs_*.go, which brings them to where they start together, with the ways
//     in which the world may come to rest in explore_ends.go. Every order of their calls follows by itself.
//   - A promise: a function in promises_*.go, which sees each changed row, step or object, or the whole world; with a world in
//     promises_*_test.go that breaks it.
package simulate
