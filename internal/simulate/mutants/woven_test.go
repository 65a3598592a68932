package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The real sources, woven and built: with every mutant off the conformance suite passes and notes what it reaches; a mutant
// of each kind is killed by it; and one that no test reaches survives.
func TestWovenConformance(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	tr := tree{root: root, work: t.TempDir()}
	if err := os.Mkdir(filepath.Join(tr.work, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	all, mutants, err := plant(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.weave(all); err != nil {
		t.Fatal(err)
	}
	digest, ks, err := tr.build(t.Context(), asked(regexp.MustCompile("^store conformance$")))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := tr.baseline(t.Context(), ks, 1)
	if err != nil {
		t.Fatal(err)
	}
	mutants = append(conditions(tests), mutants...)
	if n := len(chosen(mutants, regexp.MustCompile("^condition:.*"))); n < 250 {
		t.Errorf("%d parts of conditions were sent, want about as many as there were", n)
	}
	for pattern, killed := range map[string]bool{
		`condition:Store\.Release:RUN:lease_owner=\?:.*`:         true,
		`check:store:decide:w\.mine\(old\):always`:               true,
		`error:store:Store\.send:returndecide`:                   true,
		`swap:claim/slot-before-row`:                             true,
		`check:schedule:work\.do:w\.run\.LeaseLive\(now\):never`: false, // none of this suite's tests comes to it
	} {
		list := chosen(mutants, regexp.MustCompile("^"+pattern+"$"))
		if len(list) != 1 {
			t.Errorf("%d mutants are %s, want one", len(list), pattern)
			continue
		}
		r := tr.try(t.Context(), ks, list[0], tests, true) // the suite is not a dear one
		if r.Killed != killed || killed && !strings.HasPrefix(r.Test, "TestConformanceInMemory/") {
			t.Errorf("%s: %+v, want killed %v by a part of the conformance suite", list[0].ID, r, killed)
		}
	}
	dear := slices.Clone(ks)
	dear[0].dear = true
	swap := chosen(mutants, regexp.MustCompile("^swap:claim/slot-before-row$"))[0]
	for _, explained := range []bool{true, false} {
		if r := tr.try(t.Context(), dear, swap, tests, explained); r.Killed == explained {
			t.Errorf("explained %v: %+v; want a dear suite asked of what nobody explains alone", explained, r)
		}
	}
	results := saved{Tests: tests, Results: map[string]Result{"swap:a": {Killed: true, Suite: "store"}}}
	if err := tr.save(digest, results); err != nil {
		t.Fatal(err)
	}
	if got := tr.load(digest); len(got.Tests) != len(tests) || !got.Results["swap:a"].Killed {
		t.Errorf("read back %d tests and %v, want what was kept", len(got.Tests), got.Results)
	}
	if got := tr.load("another"); len(got.Tests) != 0 || len(got.Results) != 0 {
		t.Errorf("other binaries have %d tests and %d results, want none", len(got.Tests), len(got.Results))
	}
}
