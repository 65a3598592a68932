package simulate

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// Pair is two workers that meet on the same things. New brings a world to where both may start, in order and without a
// choice, and gives what starts each: both start at one moment.
type Pair struct {
	Name string
	New  func(*World) (a, b func() *Worker)
	// Skews are clocks of the first worker, less true time; nil: it is right. Each makes a search of its own.
	Skews []time.Duration
	// After, if set, is done when both are over, before the world comes to rest.
	After func(*World)
	// Ended, if set, says in a word how the world came to rest, and Want lists what it may say.
	Ended func(*World) string
	Want  []string
}

// Search is how the orders of a pair's calls are gone through.
type Search struct {
	// Merge goes on from each state once, however many orders lead to it.
	Merge bool
	// Commute leaves out one of the two orders of neighbouring calls that do not touch each other. Every state that an
	// order leads to is still seen.
	Commute bool
	// Alone lets a call that reads what the other worker never writes, in any order, go before all others: who comes first
	// makes no difference to anything outside, nor to either worker. What a worker writes is learnt on the way; the search
	// begins anew when something was wrongly believed never to be written. Every end is still seen, and everything that
	// ever stands outside.
	Alone bool
	// Window, if not 0, tries all orders of so many calls of each worker only, after the first From calls of each; what
	// comes before and after it goes in one order.
	From   [2]int
	Window int
	// Most, if not 0, is after how many orders the search gives up.
	Most int
}

// Found is what a search went through.
type Found struct {
	Calls  [2]int // of each worker in one order, at most
	Orders int    // worlds that were begun
	Moves  int    // calls that were let go in them, those that only led back to a choice included
	States map[uint64]bool
	Stands map[uint64]bool   // what ever stood outside
	Ends   map[uint64]string // states in which both workers are over, and how the world came to rest from there
	Cut    bool              // it gave up
}

// Outcomes counts the ends by how the world came to rest.
func (f Found) Outcomes() map[string]int {
	out := map[string]int{}
	for _, e := range f.Ends {
		out[e]++
	}
	return out
}

// choice is one thing that can happen next: the n-th waiting call of a side is let go, or time passes (side 2) until a worker
// that waits goes on by itself.
type choice struct {
	side, n int
	touches touched
	name    string // of the call
}

const timePasses = 2

func (x choice) code() byte { return byte(x.side)<<6 | byte(x.n) }

// branch is a choice that is still to be made: the moves that lead to it, the first of them that is new, and those moves
// that need not be made after it, because they were before it.
type branch struct {
	path  []byte
	at    uint64 // the state before the last move of path; 0: the beginning
	sleep map[byte]choice
}

type search struct {
	Search
	pair  Pair
	skew  time.Duration
	found Found
	todo  []branch
	seen  map[uint64]map[byte]choice // the moves that need not be made from a state
	rest  map[uint64]string          // how the world came to rest, by its state without the workers

	writes, alone [2]map[place]bool // by side: what it was seen to write, and what it read alone
	waits         bool              // a worker was seen to wait for time to pass
	again         bool              // something was read alone that is written
}

// Explore goes through the orders of a pair's calls, and checks every promise after each call and at each end.
func (p Pair) Explore(t *testing.T, skew time.Duration, how Search) (Found, error) {
	s := &search{Search: how, pair: p, skew: skew, rest: map[uint64]string{}}
	for i := range s.writes {
		s.writes[i], s.alone[i] = map[place]bool{}, map[place]bool{}
	}
	if how.Alone {
		if err := s.rehearse(t); err != nil {
			return s.found, err
		}
	}
	for s.begin(); len(s.todo) > 0; {
		if s.Most > 0 && s.found.Orders == s.Most {
			s.found.Cut = true
			break
		}
		next := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		if err := s.order(t, next); err != nil {
			return s.found, err
		}
		if s.again {
			s.begin()
		}
	}
	return s.found, nil
}

// rehearse plays some orders to learn what the workers write, so that the search seldom begins anew: one worker after the
// other, and in turns of several lengths.
func (s *search) rehearse(t *testing.T) error {
	for _, length := range []int{1000, 1, 2, 5, 11} {
		for first := range 2 {
			var path []byte
			err := Run(t, func(w *World) {
				m := s.pair.meet(w, s.skew)
				defer func() { path = m.path }()
				for n := 0; ; n++ {
					moves := m.choices()
					s.learn(moves)
					if len(moves) == 0 {
						return
					}
					side := (n/length + first) % 2
					i := max(0, slices.IndexFunc(moves, func(x choice) bool { return x.side == side }))
					m.make(moves[i].code())
				}
			})
			if err != nil {
				return s.pair.told(err, s.skew, path)
			}
		}
	}
	return nil
}

// begin forgets all but what the workers were seen to write, and how worlds came to rest.
func (s *search) begin() {
	orders, moves := s.found.Orders, s.found.Moves
	s.found = Found{Orders: orders, Moves: moves, States: map[uint64]bool{}, Stands: map[uint64]bool{}, Ends: map[uint64]string{}}
	s.todo, s.seen, s.again = []branch{{}}, map[uint64]map[byte]choice{}, false
	for i := range s.alone {
		s.alone[i] = map[place]bool{}
	}
}

// order plays a world to a choice, and on from there, by the first of each choice's moves, until it is over or comes to
// where another world has been. What else could have been chosen on the way is put on the list.
func (s *search) order(t *testing.T, b branch) error {
	s.found.Orders++
	path := &b.path
	err := Run(t, func(w *World) {
		m := s.pair.meet(w, s.skew)
		defer func() { *path = m.path; s.found.Moves += len(m.path) }()
		for i, code := range b.path {
			if i == len(b.path)-1 && b.at != 0 && m.now() != b.at {
				w.Failf("the same moves led to another state: something depends on more than the order of calls")
			}
			m.make(code)
		}
		for sleep := b.sleep; ; {
			code, ok := s.choose(m, sleep)
			if !ok {
				return
			}
			sleep = code.sleep
			m.make(code.move)
		}
	})
	if err != nil {
		return s.pair.told(err, s.skew, *path)
	}
	return nil
}

// chosen is a move, and those that need not be made after it.
type chosen struct {
	move  byte
	sleep map[byte]choice
}

// choose picks the next move; none: the world is over, or there is nothing new.
func (s *search) choose(m *meeting, sleep map[byte]choice) (c chosen, ok bool) {
	moves := m.choices()
	at := m.now()
	s.found.States[at], s.found.Stands[m.stands()] = true, true
	s.found.Calls = [2]int{max(s.found.Calls[0], m.moved[0]), max(s.found.Calls[1], m.moved[1])}
	if len(moves) == 0 {
		s.end(m, at)
		return c, false
	}
	s.learn(moves)
	if s.again {
		return c, false
	}
	if s.Alone {
		moves = s.lonely(moves)
	}
	if s.Window > 0 {
		var free bool
		if moves, free = s.framed(m, moves); !free {
			return chosen{moves[0].code(), nil}, true
		}
	}
	open := slices.DeleteFunc(slices.Clone(moves), func(x choice) bool { _, asleep := sleep[x.code()]; return asleep })
	if s.Merge {
		open, sleep = s.merged(at, moves, open, sleep)
	}
	sleep = maps.Clone(sleep)
	var first *chosen
	for _, x := range open {
		after := map[byte]choice{}
		for code, y := range sleep {
			if apart(x, y) {
				after[code] = y
			}
		}
		if first == nil {
			first = &chosen{x.code(), after}
		} else {
			s.todo = append(s.todo, branch{append(slices.Clone(m.path), x.code()), at, after})
		}
		if s.Commute {
			if sleep == nil {
				sleep = map[byte]choice{}
			}
			sleep[x.code()] = x
		}
	}
	if first == nil {
		return c, false
	}
	return *first, true
}

// merged leaves of the moves from a state those that were not made from it before, and notes that they will be. What may
// sleep here may only sleep on where it slept each time that the state was met.
func (s *search) merged(at uint64, moves, open []choice, sleep map[byte]choice) ([]choice, map[byte]choice) {
	before, met := s.seen[at]
	if !met {
		s.seen[at] = maps.Clone(sleep)
		return open, sleep
	}
	open = open[:0]
	both := map[byte]choice{}
	for _, x := range moves {
		_, slept := before[x.code()]
		_, sleeps := sleep[x.code()]
		switch {
		case slept && sleeps:
			both[x.code()] = x
		case slept:
			open = append(open, x)
		}
	}
	s.seen[at] = both
	return open, maps.Clone(both)
}

// learn notes what waiting calls write. Where the other worker has read it alone, the search is to begin anew.
func (s *search) learn(moves []choice) {
	for _, x := range moves {
		if x.side == timePasses {
			s.again = s.again || !s.waits && len(s.alone[0])+len(s.alone[1]) > 0
			s.waits = true
			continue
		}
		for _, p := range x.touches.writes {
			if s.writes[x.side][p] {
				continue
			}
			s.writes[x.side][p] = true
			for q := range s.alone[1-x.side] {
				s.again = s.again || p.meets(q)
			}
		}
	}
}

// lonely leaves one move where that is the only call of its worker and reads what the other never writes.
func (s *search) lonely(moves []choice) []choice {
	var waiting [2]int
	for _, x := range moves {
		if x.side != timePasses {
			waiting[x.side]++
		}
	}
	for i, x := range moves {
		if s.waits || waiting[x.side] > 1 || len(x.touches.writes) > 0 || x.touches.all || s.written(1-x.side, x.touches.reads) {
			continue
		}
		for _, p := range x.touches.reads {
			s.alone[x.side][p] = true
		}
		return moves[i : i+1]
	}
	return moves
}

func (s *search) written(side int, reads []place) bool {
	for _, q := range reads {
		for p := range s.writes[side] {
			if p.meets(q) {
				return true
			}
		}
	}
	return false
}

// framed leaves the moves that may be chosen among within a window; free is false before and after it, where there is
// only one.
func (s *search) framed(m *meeting, moves []choice) (out []choice, free bool) {
	for side := range m.sides {
		if m.moved[side] < s.From[side] {
			for _, x := range moves {
				if x.side == side {
					return []choice{x}, false
				}
			}
		}
	}
	for _, x := range moves {
		if x.side == timePasses || m.moved[x.side] < s.From[x.side]+s.Window {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return moves[:1], false
	}
	return out, true
}

// end lets a world come to rest, once for each state of it that both workers left.
func (s *search) end(m *meeting, at uint64) {
	outside := m.around()
	ended, been := s.rest[outside]
	if !been {
		clear(m.Off)
		m.dirty = true
		if s.pair.After != nil {
			s.pair.After(m.World)
		}
		m.Rest()
		if s.pair.Ended != nil {
			ended = s.pair.Ended(m.World)
			if s.pair.Want != nil && !slices.Contains(s.pair.Want, ended) {
				m.Failf("it ended as %q, want one of %q\n%s", ended, s.pair.Want, m.Dump())
			}
		}
		s.rest[outside] = ended
	}
	s.found.Ends[at] = ended
}
