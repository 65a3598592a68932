package simulate

import (
	"fmt"
	"math/big"
	"testing"
	"time"
)

func TestInterleavings(t *testing.T) {
	for _, p := range Pairs() {
		t.Run(p.Name, func(t *testing.T) {
			skews := p.Skews
			if skews == nil {
				skews = []time.Duration{0}
			}
			for _, skew := range skews {
				start := time.Now()
				f, err := p.Explore(t, skew, Search{Merge: true, Commute: true, Alone: true})
				if err != nil {
					t.Fatal(toldOrder(err))
				}
				t.Logf("%-24s %8s %3d × %3d calls, %s orders: %6d states, %5d worlds, %6d moves, %4d ends %v, %s", p.Name, skew, f.Calls[0], f.Calls[1], orders(f.Calls), len(f.States), f.Orders, f.Moves, len(f.Ends), f.Outcomes(), time.Since(start).Round(time.Millisecond))
			}
		})
	}
}

// orders is how many there are of the calls of two workers.
func orders(calls [2]int) string {
	n := new(big.Int).Binomial(int64(calls[0]+calls[1]), int64(calls[0]))
	return fmt.Sprintf("%.1e", new(big.Float).SetInt(n))
}

func toldOrder(err error) string { return told(err, "TestInterleavings", "x") }
