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
	total, byForm := 0, map[Form]int{}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			plain, err := s.Play(t, nil)
			if err != nil {
				t.Fatal(told(err, "TestCrashPoints", s.Name+"/0/as-asked"))
			}
			ends := map[string]int{}
			for n := 1; n <= plain.Calls; n++ {
				for _, f := range Forms {
					o, err := s.Play(t, func(w *World) { w.Fault = at(n, f) })
					if err != nil {
						t.Fatal(told(err, "TestCrashPoints", fmt.Sprintf("%s/%d/%s", s.Name, n, f)))
					}
					ends[o.Ended]++
					mu.Lock()
					total++
					byForm[f]++
					mu.Unlock()
				}
			}
			t.Logf("%d calls, %d worlds came to rest: %v", plain.Calls, plain.Calls*len(Forms), ends)
		})
	}
	t.Cleanup(func() {
		t.Logf("crash points survived: %d", total)
		for _, f := range slices.Sorted(maps.Keys(byForm)) {
			t.Logf("  %-12s %d", f, byForm[f])
		}
	})
}
