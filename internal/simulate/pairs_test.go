package simulate

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var pairsOf = flag.Int("simulate.pairs", 5_000, "fault pairs of the quick set; the long set has all")

// pair is two calls of one world that go wrong.
type pair struct {
	scenario string
	first    int
	one      Form
	second   int
	other    Form
}

func (p pair) String() string {
	return fmt.Sprintf("%s/%d/%s/%d/%s", p.scenario, p.first, p.one, p.second, p.other)
}

func parsePair(text string) (p pair, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 5 {
		return p, fmt.Errorf("-simulate.replay is %q; want scenario/call/form/call/form", text)
	}
	p.scenario = parts[0]
	for i, to := range []*int{&p.first, &p.second} {
		if *to, err = strconv.Atoi(parts[1+2*i]); err != nil {
			return p, err
		}
	}
	if p.one, err = ParseForm(parts[2]); err != nil {
		return p, err
	}
	p.other, err = ParseForm(parts[4])
	return p, err
}

func (p pair) play(t *testing.T) (Outcome, error) {
	s, err := ScenarioNamed(p.scenario)
	if err != nil {
		t.Fatal(err)
	}
	return s.Play(t, func(w *World) {
		w.Fault = func(c *Call) Form {
			switch c.N {
			case p.first:
				return p.one
			case p.second:
				return p.other
			}
			return AsAsked
		}
	})
}

// smallest are the two scenarios of each half with the fewest calls, and how many those are.
func smallest(t *testing.T) map[string]int {
	out := map[string]int{}
	for _, half := range []string{"delivery", "months"} {
		type sized struct {
			name  string
			calls int
		}
		var all []sized
		for _, s := range Scenarios() {
			if s.Half != half {
				continue
			}
			o, err := s.Play(t, nil)
			if err != nil {
				t.Fatal(told(err, "TestCrashPoints", s.Name+"/0/as-asked"))
			}
			all = append(all, sized{s.Name, o.Calls})
		}
		slices.SortFunc(all, func(a, b sized) int { return cmp.Compare(a.calls, b.calls) })
		for _, s := range all[:2] {
			out[s.name] = s.calls
		}
	}
	return out
}

// Two calls of one world go wrong. The second is counted in the world that the first has changed, so that it may strike
// what only a recovery does.
func TestFaultPairs(t *testing.T) {
	if *replay != "" {
		p, err := parsePair(*replay)
		if err != nil {
			t.Fatal(err)
		}
		o, err := p.play(t)
		t.Logf("%s\n%v %s", strings.Join(o.Trace, "\n"), err, o.Ended)
		if err != nil {
			t.Fail()
		}
		return
	}
	var all []pair
	for name, calls := range smallest(t) {
		for first := 1; first <= calls; first++ {
			for second := first + 1; second <= calls+calls/2; second++ {
				for _, one := range Forms {
					for _, other := range Forms {
						all = append(all, pair{name, first, one, second, other})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Compare(a.String(), b.String()) })
	chosen := all
	if !*full {
		rand.New(rand.NewPCG(5, 5)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		chosen = all[:min(len(all), *pairsOf)]
	}
	n, failure := inParallel(t, len(chosen), func(t *testing.T, i int) string {
		if _, err := chosen[i].play(t); err != nil {
			return told(err, "TestFaultPairs", chosen[i].String())
		}
		return ""
	})
	if failure != "" {
		t.Fatal(failure)
	}
	t.Logf("fault pairs: %d of %d survived", n, len(all))
}

// inParallel plays worlds 0 to n-1, as many at once as there are processors, until one fails; it returns how many were
// played and the failure.
func inParallel(t *testing.T, n int, play func(t *testing.T, i int) string) (played int, failure string) {
	var next, done atomic.Int64
	var once sync.Once
	var stop atomic.Bool
	t.Run("worlds", func(t *testing.T) {
		for k := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel()
				for !stop.Load() {
					i := int(next.Add(1) - 1)
					if i >= n {
						return
					}
					if f := play(t, i); f != "" {
						once.Do(func() { failure = f; stop.Store(true) })
						return
					}
					done.Add(1)
				}
			})
		}
	})
	return int(done.Load()), failure
}
