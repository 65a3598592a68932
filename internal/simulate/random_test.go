package simulate

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

var storms = flag.Int("simulate.storms", 8_000, "random schedules of the quick set; the long set has 2,000,000")

// Three or four workers at once, in any order, with duplicates, wrong clocks, frozen processes and faults: every promise
// holds, and when the faults stop every world comes to rest.
func TestRandomSchedules(t *testing.T) {
	if *replay != "" {
		seed, err := strconv.ParseUint(*replay, 10, 64)
		if err != nil {
			t.Fatalf("-simulate.replay is %q; want a seed", *replay)
		}
		o, err := Storm(t, seed)
		t.Logf("%s\n%v %s", strings.Join(o.Trace, "\n"), err, o.Ended)
		if err != nil {
			t.Fail()
		}
		return
	}
	n := *storms
	if *full {
		n = 2_000_000
	}
	var calls atomic.Int64
	from, to := share(t, n)
	ran, failure := inParallel(t, to-from, func(t *testing.T, i int) string {
		o, err := Storm(t, uint64(from+i))
		if err != nil {
			return told(err, "TestRandomSchedules", fmt.Sprint(from+i))
		}
		calls.Add(int64(o.Calls))
		return ""
	})
	if failure != "" {
		t.Fatal(failure)
	}
	t.Logf("random schedules: %d worlds, %d calls, every one at rest", ran, calls.Load())
}
