package simulate

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

var (
	full   = flag.Bool("simulate.full", false, "the long sets: everything that the quick ones take a part of")
	replay = flag.String("simulate.replay", "", "one world, as a failure prints it")
	part   = flag.String("simulate.part", "1/1", "of the random schedules and the fault pairs the k-th of n equal parts, `k/n`, so that a long set can be played in several runs")
)

// share is what -simulate.part leaves of 0 to n-1: from, and up to but without to.
func share(t *testing.T, n int) (from, to int) {
	var k, of int
	if _, err := fmt.Sscanf(*part, "%d/%d", &k, &of); err != nil || k < 1 || k > of {
		t.Fatalf("-simulate.part is %q; want k/n with k from 1 to n, such as 3/20", *part)
	}
	return n * (k - 1) / of, n * k / of
}

// TestMain lets memory grow further between collections: worlds are many, small and short-lived.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
