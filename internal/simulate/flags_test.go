package simulate

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

var (
	full   = flag.Bool("simulate.full", false, "the long sets: everything that the quick ones take a part of")
	replay = flag.String("simulate.replay", "", "one world, as a failure prints it")
)

// TestMain lets memory grow further between collections: worlds are many, small and short-lived.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
