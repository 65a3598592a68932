package main

import "regexp"

// killer is a suite that may notice a mutant.
type killer struct {
	name  string
	pkg   string // below internal/
	tests *regexp.Regexp
	skip  *regexp.Regexp // tests that measure, or that do at length what a quicker one or the simulation does
	// split are tests whose parts are tests by themselves, so that a mutant need not sit through all of them: how deep the
	// parts lie in them.
	split map[string]int
	args  []string // for the binary
	most  float64  // seconds of processor time that a mutant may cost here, the quickest tests first; 0 for all
	dear  bool     // not asked of a mutant that has a reason for its survival, unless -explained says so
}

// killers are the suites in the order in which they are asked, the cheapest first. Each binary is built once; of a suite only those tests are
// run in which the mutant would have changed something. A suite that is added here needs nothing else.
var killers = []killer{
	{name: "store conformance", pkg: "store", tests: regexp.MustCompile(`^TestConformance`)},
	{name: "store", pkg: "store", tests: every, skip: regexp.MustCompile(`^TestConformance`)},
	{name: "schedule", pkg: "schedule", tests: every,
		skip: regexp.MustCompile(`^(TestTenThousand|TestCallsOfARunBySize|TestLoad|TestMemory|TestMembersOfManyGroups|TestAGroupOfTwoThousand|TestManyRecipientsAndDeaths|TestStorm|TestD10|TestDeathAtEveryCall)`)},
	{name: "snapshot", pkg: "snapshot", tests: every, skip: regexp.MustCompile(`^TestN9TenThousandChunks`)},
	{name: "api", pkg: "api", tests: every},
	// The simulation's quick sets are thinned further: what a mutant breaks shows in few worlds or in none. Its histories and
	// models go on for as long as they are given; its tests of itself know nothing of the product.
	{name: "fault simulation", pkg: "simulate", tests: regexp.MustCompile(`^Test(CrashPoints|Interleavings|FaultPairs|RandomSchedules|Regressions|LostRequests)$`),
		split: map[string]int{"TestCrashPoints": 1, "TestInterleavings": 2}, args: []string{"-simulate.storms=300", "-simulate.pairs=300"}, most: 60, dear: true},
}

var every = regexp.MustCompile(`^Test`)

func (k killer) takes(test string) bool {
	return k.tests.MatchString(test) && (k.skip == nil || !k.skip.MatchString(test))
}

// woven are the packages whose sources hold mutants of Go code. Conditions are weakened where they are evaluated.
var woven = []string{"store", "schedule", "snapshot"}
