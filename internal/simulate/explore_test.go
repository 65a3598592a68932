package simulate

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// quickly leaves out whatever TestSearchesAgree shows to be left out rightly.
var quickly = Search{Merge: true, Commute: true, Alone: true}

// Two workers at once, in every order of their calls, from their start to their end: each promise holds after each call,
// and the world comes to rest in one of the ways that are right.
func TestInterleavings(t *testing.T) {
	if *replay != "" {
		replayOrder(t)
		return
	}
	before := processTime()
	var mu sync.Mutex
	var states, worlds, moves, ends, searches int
	t.Run("pairs", func(t *testing.T) {
		for _, p := range Pairs() {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				reached := map[string]bool{}
				for _, skew := range p.clocks() {
					f, err := p.Explore(t, skew, quickly)
					if err != nil {
						t.Fatal(toldOrder(err))
					}
					t.Log(p.figures(skew, f))
					for end := range f.Outcomes() {
						reached[end] = true
					}
					mu.Lock()
					searches, states, worlds, moves, ends = searches+1, states+len(f.States), worlds+f.Orders, moves+f.Moves, ends+len(f.Ends)
					mu.Unlock()
					if *full {
						p.fully(t, skew, f)
					}
				}
				if want := slices.Sorted(slices.Values(p.Want)); !slices.Equal(slices.Sorted(maps.Keys(reached)), want) {
					t.Errorf("it came to rest as %q, want each of %q in some order", slices.Sorted(maps.Keys(reached)), want)
				}
			})
		}
	})
	t.Logf("interleavings: %d pairs in %d searches, %d states in %d worlds with %d calls, %d ends; %s of processor time", len(Pairs()), searches, states, worlds, moves, ends, (processTime() - before).Round(time.Second))
}

// clocks are those of the first worker.
func (p Pair) clocks() []time.Duration {
	if p.Skews == nil {
		return []time.Duration{0}
	}
	return p.Skews
}

func (p Pair) figures(skew time.Duration, f Found) string {
	return fmt.Sprintf("%-42s clock %+4.0f min: %2d × %2d calls, %s orders: %5d states in %4d worlds with %5d calls, %3d ends", p.Name, skew.Minutes(), f.Calls[0], f.Calls[1], orders(f.Calls), len(f.States), f.Orders, f.Moves, len(f.Ends))
}

// orders is how many there are of the calls of two workers.
func orders(calls [2]int) string {
	n := new(big.Int).Binomial(int64(calls[0]+calls[1]), int64(calls[0]))
	return fmt.Sprintf("%.1e", new(big.Float).SetInt(n))
}

// fully searches again with nothing left out but equal states; and with no states merged, in windows around the writes of
// both workers: ten calls of each in all orders of those that touch each other, five of each in all orders. Each end must
// be one that the quick search found.
func (p Pair) fully(t *testing.T, skew time.Duration, quick Found) {
	whole, err := p.Explore(t, skew, Search{Merge: true})
	if err != nil {
		t.Fatal(toldOrder(err))
	}
	same(t, "merged only: ends", whole.Ends, quick.Ends)
	same(t, "merged only: what stands outside", whole.Stands, quick.Stands)
	var n [2]int
	windows, cut := p.windows(t, skew), 0
	for _, from := range windows {
		for i, how := range []Search{{Commute: true, From: from, Window: 10, Most: 20_000}, {From: from, Window: 5}} {
			f, err := p.Explore(t, skew, how)
			if err != nil {
				t.Fatal(toldOrder(err))
			}
			if n[i] += f.Orders; f.Cut {
				cut++
			}
			for at := range f.Ends {
				if _, known := quick.Ends[at]; !known {
					t.Errorf("the window from %v ends where no merged search ends: %s", from, f.Ends[at])
				}
			}
		}
	}
	t.Logf("%-42s clock %+4.0f min: %d states with nothing but equal ones left out; %d windows: %d orders of ten calls a side, %d of five, %d cut short at 20,000", p.Name, skew.Minutes(), len(whole.States), len(windows), n[0], n[1], cut)
}

// windows are where windows begin: five calls before each write of one worker and each of the other, as they come when one
// goes after the other, but no two so near that one is as good as the other.
func (p Pair) windows(t *testing.T, skew time.Duration) (list [][2]int) {
	starts := [2][]int{{0}, {0}}
	for first := range 2 {
		err := Run(t, func(w *World) {
			m := p.meet(w, skew)
			for moves := m.choices(); len(moves) > 0; moves = m.choices() {
				i := max(0, slices.IndexFunc(moves, func(x choice) bool { return x.side == first }))
				if x := moves[i]; x.side != timePasses && len(x.touches.writes) > 0 {
					begins := max(0, m.moved[x.side]-5)
					if !slices.ContainsFunc(starts[x.side], func(at int) bool { return max(at-begins, begins-at) < 3 }) {
						starts[x.side] = append(starts[x.side], begins)
					}
				}
				m.make(moves[i].code())
			}
		})
		if err != nil {
			t.Fatal(toldOrder(err))
		}
	}
	for _, a := range starts[0] {
		for _, b := range starts[1] {
			list = append(list, [2]int{a, b})
		}
	}
	return list
}

func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// toldOrder is a failure with the order that shows it again.
func toldOrder(err error) string {
	order, _, _ := strings.Cut(err.Error(), ": ")
	return told(err, "TestInterleavings", order)
}

func replayOrder(t *testing.T) {
	p, skew, path, err := parseReplay(*replay)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := p.Play(t, skew, path)
	t.Logf("%s\n%v", strings.Join(trace, "\n"), err)
	if err != nil {
		t.Fail()
	}
}

func TestOrdersAreReadAsTheyAreWritten(t *testing.T) {
	p, err := PairNamed("deliver × stop")
	if err != nil {
		t.Fatal(err)
	}
	path := []byte{0, 0, 0, 64, 0, 65, 65, 128, 64 + 12}
	text := p.Replay(-5*time.Minute, path)
	if want := "deliver × stop/-5m0s/3ABA2B.1.TB.12."; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if q, skew, got, err := parseReplay(text); err != nil || q.Name != p.Name || skew != -5*time.Minute || !slices.Equal(got, path) {
		t.Errorf("%s %s %v %v", q.Name, skew, got, err)
	}
	for _, bad := range []string{"", "deliver × stop", "deliver × stop/now/A", "deliver × stop/0s/3C", "deliver × stop/0s/3", "deliver × nobody/0s/A"} {
		if _, _, _, err := parseReplay(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
