package simulate

import (
	"fmt"
	"slices"
	"time"
)

// Pairs are all that are explored.
func Pairs() []Pair {
	list := slices.Concat(deliveryPairs(), monthPairs())
	for i, p := range list {
		list[i].Want = ends[p.Name]
	}
	return list
}

// PairNamed finds one.
func PairNamed(name string) (Pair, error) {
	for _, p := range Pairs() {
		if p.Name == name {
			return p, nil
		}
	}
	return Pair{}, fmt.Errorf("pair %q: there is none", name)
}

// fiveMinutes are clocks that are right, ahead and behind, by as much as the product has to bear.
var fiveMinutes = []time.Duration{0, 5 * time.Minute, -5 * time.Minute}
