package simulate

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
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
	for _, or := range s.Or { // where one thing goes wrong; of months two attempts may fail
		s.Or = append(s.Or, orLater(or)...)
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

// paired are the scenarios that two faults are tried on: of each half the two with the fewest calls that go the whole way
// to a delivery or a publication. A smaller one, such as a roll back of five calls, is through before two faults can meet.
var paired = []string{"run now", "happy", "single", "a start is lost, the dispatcher offers it again"}

// everyPair lists the pairs: the first fault at each call of the undisturbed world, the second at each later call of the
// world that the first has made.
func everyPair(t *testing.T) (all []pair) {
	var firsts []pair
	for _, name := range paired {
		s, err := ScenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := s.Play(t, nil)
		if err != nil {
			t.Fatal(told(err, "TestCrashPoints", name+"/0/as-asked"))
		}
		for n := 1; n <= plain.Calls; n++ {
			for _, f := range Forms {
				if f.Strikes(plain.Name(n)) {
					firsts = append(firsts, pair{scenario: name, first: n, one: f})
				}
			}
		}
	}
	worlds := make([]Outcome, len(firsts))
	if _, failure := inParallel(t, len(firsts), func(t *testing.T, i int) string {
		o, err := firsts[i].play(t)
		if err != nil {
			return told(err, "TestFaultPairs", firsts[i].String())
		}
		worlds[i] = o
		return ""
	}); failure != "" {
		t.Fatal(failure)
	}
	for i, p := range firsts {
		for p.second = p.first + 1; p.second <= worlds[i].Calls; p.second++ {
			for _, p.other = range Forms {
				if p.other.Strikes(worlds[i].Name(p.second)) {
					all = append(all, p)
				}
			}
		}
	}
	return all
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
	all := everyPair(t)
	chosen := all
	if !*full {
		rand.New(rand.NewPCG(5, 5)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		chosen = all[:min(len(all), *pairsOf)]
	}
	from, to := share(t, len(chosen))
	chosen = chosen[from:to]
	n, failure := inParallel(t, len(chosen), func(t *testing.T, i int) string {
		o, err := chosen[i].play(t)
		if err == nil && o.Calls < chosen[i].second {
			err = &Failed{What: "the second fault did not strike", Trace: o.Trace}
		}
		if err != nil {
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
