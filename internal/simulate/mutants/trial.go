package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"almanac/internal/simulate/mutants/toggle"
)

// Result is what became of a mutant.
type Result struct {
	Killed  bool    `json:"killed"`
	Suite   string  `json:"suite,omitempty"`
	Test    string  `json:"test,omitempty"`
	Reached int     `json:"reached"` // tests in which it would have changed something
	Seconds float64 `json:"seconds"`
}

// quick is the time up to which a test is asked before all others of its suite, in seconds.
const quick = 0.5

// try shows a mutant to the tests that reach it, suite after suite, quick ones first, until one fails. The dear suites are
// spared a mutant that somebody has explained.
func (t tree) try(ctx context.Context, ks []killer, m Mutant, tests []test, explained bool) Result {
	began := time.Now()
	reached := reach(m, tests)
	r := Result{Reached: len(reached)}
	for i, k := range ks {
		if k.dear && explained {
			continue
		}
		spent := 0.0
		for _, batch := range batches(i, reached) {
			if k.most > 0 && spent >= k.most {
				break
			}
			var names []string
			limit := 10.0
			for _, one := range batch {
				names = append(names, one.Name)
				limit += 5 * one.Seconds
			}
			out, used, err := t.run(ctx, k, pattern(names), int(limit), false, env(m))
			spent += used
			if err != nil && ctx.Err() == nil {
				r.Killed, r.Suite, r.Test = true, k.name, blame(out, names, err)
				r.Seconds = time.Since(began).Seconds()
				return r
			}
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r
}

func env(m Mutant) string {
	if m.Kind == Condition {
		return toggle.EnvCondition + "=" + m.Part
	}
	return toggle.EnvActive + "=" + strconv.Itoa(m.Number)
}

// batches are the tests of one suite: the quick ones, together where they are parts of one test, the others after them.
func batches(suite int, tests []test) (list [][]test) {
	fast, slow := map[string][]test{}, []test(nil)
	for _, one := range tests {
		switch {
		case one.Suite != suite:
		case one.Seconds < quick:
			of := path.Dir(one.Name) // "." is no part of another
			fast[of] = append(fast[of], one)
		default:
			slow = append(slow, one)
		}
	}
	for _, of := range sorted(fast) {
		list = append(list, fast[of])
	}
	slices.SortFunc(slow, func(a, b test) int { return cmp.Compare(a.Seconds, b.Seconds) })
	for _, one := range slow {
		list = append(list, []test{one})
	}
	return list
}

// pattern asks for tests: whole ones, or parts of one.
func pattern(names []string) string {
	var of string
	var last []string
	for _, name := range names {
		if whole, part := path.Split(name); whole != "" {
			of, name = "", part
			for _, level := range strings.Split(strings.TrimSuffix(whole, "/"), "/") {
				of += "^" + regexp.QuoteMeta(level) + "$/"
			}
		}
		last = append(last, regexp.QuoteMeta(name))
	}
	return of + "^(" + strings.Join(last, "|") + ")$"
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	running = regexp.MustCompile(`(?m)^\s+(Test\S+) \(`)
)

// blame finds the innermost test that failed, or that ran when the process ended.
func blame(out string, asked []string, err error) string {
	name := ""
	for _, m := range failed.FindAllStringSubmatch(out, -1) {
		if name == "" || strings.HasPrefix(m[1], name+"/") {
			name = m[1]
		}
	}
	how := ""
	switch {
	case strings.Contains(out, "panic: test timed out"):
		how = "stands still"
		for _, m := range running.FindAllStringSubmatch(out, -1) {
			name = m[1]
		}
	case strings.Contains(out, "panic:"), strings.Contains(out, "fatal error:"):
		how = "panics"
	case strings.HasPrefix(err.Error(), "signal:"), name == "":
		how = "ends with " + err.Error()
	}
	if name == "" && len(asked) == 1 {
		name = asked[0]
	}
	return strings.TrimSpace(name + " " + how)
}

// parallel calls f for each of n, at most so many at once.
func parallel(workers, n int, f func(int)) {
	var wg sync.WaitGroup
	turns := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range turns {
				f(i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	wg.Wait()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// short is a short name of a text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:2])
}
