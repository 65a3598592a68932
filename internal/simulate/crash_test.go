package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// at lets the n-th call of a world go wrong in one form.
func at(n int, f Form) func(*Call) Form {
	return func(c *Call) Form {
		if c.N == n {
			return f
		}
		return AsAsked
	}
}

// told is a failure with all that is needed to see it again.
func told(err error, test, line string) string {
	trace := AsFailed(err).Trace
	return fmt.Sprintf("%v\nthe last calls:\n  %s\nreplay: go test ./internal/simulate -run '^%s$' -simulate.replay '%s' -v", err, strings.Join(trace[max(0, len(trace)-60):], "\n  "), test, line)
}

// crashPoints are the calls at which something is to go wrong: all of them, but of a worker's reads of one index's
// partitions, one after the other with nothing else between them, the first and the last. No other of them found
// anything, so that between it and the first nothing was done, and what befalls it befalls the first as well.
func crashPoints(trace []string) (points []int) {
	last := map[string]string{} // what each worker read, if it was a partition of an index
	reading := map[string]int{} // and at which of points, where a read before it stands
	skip := map[int]bool{}
	for i, line := range trace {
		m := made.FindStringSubmatch(line)
		read := ""
		if m[2] == "DynamoDB.Query" {
			read = strings.TrimRight(m[2]+" "+m[3], "0123456789")
		}
		if before, ok := reading[m[1]]; ok && read != "" && read == last[m[1]] {
			skip[before] = true
		} else {
			delete(reading, m[1])
		}
		if read != "" && read == last[m[1]] {
			reading[m[1]] = i + 1
		}
		last[m[1]] = read
	}
	for n := 1; n <= len(trace); n++ {
		if !skip[n] || *full {
			points = append(points, n)
		}
	}
	return points
}

// Whatever goes wrong at whichever call, the world comes to rest with every promise kept.
func TestCrashPoints(t *testing.T) {
	if *replay != "" {
		parts := strings.Split(*replay, "/")
		if len(parts) != 3 {
			t.Fatalf("-simulate.replay is %q; want scenario/call/form", *replay)
		}
		s, err := ScenarioNamed(parts[0])
		n, bad := strconv.Atoi(parts[1])
		form, none := ParseForm(parts[2])
		if err != nil || bad != nil || none != nil {
			t.Fatal(err, bad, none)
		}
		o, err := s.Play(t, func(w *World) { w.Fault = at(n, form) })
		t.Logf("%s\n%v %s", strings.Join(o.Trace, "\n"), err, o.Ended)
		if err != nil {
			t.Fail()
		}
		return
	}
	var mu sync.Mutex
	total, calls, alike, byForm := 0, 0, 0, map[Form]int{}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			plain, err := s.Play(t, nil)
			if err != nil {
				t.Fatal(told(err, "TestCrashPoints", s.Name+"/0/as-asked"))
			}
			ends, worlds := map[string]int{}, 0
			points := crashPoints(plain.Trace)
			for _, n := range points {
				for _, f := range Forms {
					if !f.Strikes(plain.Name(n)) {
						continue
					}
					o, err := s.Play(t, func(w *World) { w.Fault = at(n, f) })
					if err != nil {
						t.Fatal(told(err, "TestCrashPoints", fmt.Sprintf("%s/%d/%s", s.Name, n, f)))
					}
					ends[o.Ended]++
					worlds++
					mu.Lock()
					total++
					byForm[f]++
					mu.Unlock()
				}
			}
			mu.Lock()
			calls += plain.Calls
			alike += plain.Calls - len(points)
			mu.Unlock()
			t.Logf("%d calls, %d worlds came to rest: %v", plain.Calls, worlds, ends)
		})
	}
	t.Cleanup(func() {
		t.Logf("crash points survived: %d, at %d calls; %d more are reads of index partitions that find nothing, between two of their like that were cut", total, calls-alike, alike)
		for _, f := range slices.Sorted(maps.Keys(byForm)) {
			t.Logf("  %-12s %d", f, byForm[f])
		}
	})
}
