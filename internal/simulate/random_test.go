package simulate

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	n := uint64(*storms)
	if *full {
		n = 2_000_000
	}
	var next, ran, calls atomic.Uint64
	var stop atomic.Bool
	var once sync.Once
	failure := ""
	workers := runtime.GOMAXPROCS(0)
	t.Run("worlds", func(t *testing.T) {
		for i := range workers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for !stop.Load() {
					seed := next.Add(1) - 1
					if seed >= n {
						return
					}
					o, err := Storm(t, seed)
					if err != nil {
						once.Do(func() { failure = told(err, "TestRandomSchedules", fmt.Sprint(seed)); stop.Store(true) })
						return
					}
					ran.Add(1)
					calls.Add(uint64(o.Calls))
				}
			})
		}
	})
	if failure != "" {
		t.Fatal(failure)
	}
	t.Logf("random schedules: %d worlds, %d calls, every one at rest", ran.Load(), calls.Load())
}
