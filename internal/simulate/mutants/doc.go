// Command mutants shows that the tests have teeth: it switches off, one at a time, what the product's safety rests on, and
// lists what no test notices.
//
//	scripts/test mutants                      all of them
//	scripts/test mutants -list                which there are, and where
//	scripts/test mutants -only 'swap:.*' -v   some of them, by their ids
//	scripts/test mutants -resume              go on where the run before broke off
//	scripts/test mutants -explained           the fault simulation is asked of the explained survivors, too: over an hour more
//
// # What is switched off
//
//	condition   each part of each condition that internal/store sends to DynamoDB: a conjunct holds always, an alternative
//	            never. The parts are those of the conditions that were really sent while the suites ran, so that a new one
//	            cannot be forgotten. internal/memcloud evaluates them, in a build of its own (weaken_mutants.go)
//	check       each comparison in Go of an owner, a token, a lease, a job or a count of attempts, each call that recognises
//	            a write as one's own: once never so, once always so
//	error       each error return of internal/store, internal/schedule and internal/snapshot from which a write can be
//	            reached: an if on an error is passed by, any other returned error becomes success
//	swap        record and send in another order, a transaction piece by piece; written by hand (swaplist.go)
//
// # How
//
// The sources are copied with a switch at each place; the tests' binaries are built once, with an overlay, and run with one
// switch on. So what is shipped holds no switch. First each test runs alone with all switches off, and notes which of them
// would have changed something; a mutant is shown to those tests only, suite after suite, the cheap ones first, and is done
// with at the first that fails. A test has some times its own processor time; one that needs more, or stands still, has
// noticed.
//
// # Survivors
//
// A mutant that survives needs a test, or a reason in survivors.txt. A survivor without a reason fails the command, and so
// does a reason for a mutant that is killed or does not exist. The simulation, which costs a minute of processor time for each
// survivor, is asked of those without a reason alone. Ids are made of what a mutant is, not of lines.
//
// # Whoever adds
//
//   - an outside call, a condition, a check or an error return: nothing, it is found. A new handle on the outside, by another
//     name than those of outside in writepath.go, is added there; a new name of an owner or a count to guarded in sites.go;
//   - a record that must be there before something is sent, started, stored or shown: its swap in swaplist.go;
//   - a suite: its row in killers.go;
//   - a package with conditional writes: its name to woven in killers.go.
package main
