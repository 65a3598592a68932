package simulate

import (
	"fmt"
	"testing"
)

// The same seed is the same world: every call, in the same order, at the same time, whatever else the machine does.
func TestSameSeedSameWorld(t *testing.T) {
	for part := range 4 {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(part) * 100; seed < uint64(part+1)*100; seed++ {
				a, err := Storm(t, seed)
				if err != nil {
					t.Fatal(err)
				}
				b, err := Storm(t, seed)
				if err != nil {
					t.Fatal(err)
				}
				for i := range min(len(a.Trace), len(b.Trace)) {
					if a.Trace[i] != b.Trace[i] {
						t.Fatalf("seed %d differs at call %d:\n%s\n%s\n%s", seed, i+1, a.Trace[i], b.Trace[i], a.Trace[max(0, i-4):i])
					}
				}
				if len(a.Trace) != len(b.Trace) {
					t.Fatalf("seed %d: %d calls and %d", seed, len(a.Trace), len(b.Trace))
				}
			}
		})
	}
}
