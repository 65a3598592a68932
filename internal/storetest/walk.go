package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/transition"
)

// seen is what a caller read before it asks: the row of the table's kind.
type seen struct {
	run   schedule.Run
	sub   schedule.Submission
	sched schedule.Schedule
	snap  snapshot.Run
}

// way is one way to ask for a row: for each alternative of each row of a table there is at least one.
type way struct {
	from, event string
	alternative int
	name        string
	given       func(p place) world // what stands before, the row of the table's kind included unless from is Absent
	do          func(ctx context.Context, s *store.Store, p place, r seen) error
	want        func(p place) []change

	token bool // the write carries the caller's token, so that a lost reply can be settled by reading
	// chooses: the operation takes its event from the state that the caller read.
	chooses bool
	// done lists states in which the row reads as this caller's own finished write: success, and nothing is written.
	done []string
	// falls lists states in which the operation goes on to another legal row.
	falls []string
	// also falsifies guards that speak of another row than the one that moves.
	also []breakage
}

// breakage makes a guard false by changing a row.
type breakage struct {
	guard transition.Guard
	key   func(place) schema.Key
	set   row
}

// entry is a row of a table without its types.
type entry struct {
	from, event, to string
	when            transition.When
}

// subject is one of the three tables with the records that it speaks of.
type subject struct {
	name   string
	states []string
	rows   []entry
	key    func(place) schema.Key
	given  func(p place, state string) world // a valid row in a state
	blank  func(p place) seen                // what a caller knows of a row that is not there
	look   func(ctx context.Context, s *store.Store, p place) (seen, error)
	ways   []way
}

func subjectOf[S, E ~string](t transition.Table[S, E]) subject {
	s := subject{name: t.Name}
	for _, st := range t.States {
		s.states = append(s.states, string(st))
	}
	for _, r := range t.Rows {
		s.rows = append(s.rows, entry{string(r.From), string(r.Event), string(r.To), r.When})
	}
	return s
}

func (s subject) legal(from, event string) bool {
	return slices.ContainsFunc(s.rows, func(r entry) bool { return r.from == from && r.event == event })
}

func (s subject) guards(w way) []transition.Guard {
	for _, r := range s.rows {
		if r.from == w.from && r.event == w.event && w.alternative < len(r.when) {
			return r.when[w.alternative]
		}
	}
	return nil
}

func walk(t *testing.T, b *bench, s subject) {
	for _, r := range s.rows {
		for i := range r.when {
			if !slices.ContainsFunc(s.ways, func(w way) bool { return w.from == r.from && w.event == r.event && w.alternative == i }) {
				t.Errorf("table %q: no way asks for %q in state %q, alternative %d (%v): add one in internal/storetest", s.name, r.event, r.from, i, r.when[i])
			}
			for _, g := range r.when[i] {
				if _, ok := meanings[g]; !ok {
					t.Errorf("table %q: guard %q has no meaning in internal/storetest", s.name, g)
				}
			}
		}
	}
	if t.Failed() {
		return
	}
	for _, w := range s.ways {
		if s.guards(w) == nil {
			t.Errorf("the way %s asks for no row of table %q", w.title(), s.name)
			continue
		}
		t.Run(w.title(), func(t *testing.T) {
			t.Run("lands", func(t *testing.T) { lands(t, b, s, w) })
			t.Run("no other state", func(t *testing.T) { otherStates(t, b, s, w) })
			t.Run("each guard", func(t *testing.T) { eachGuard(t, b, s, w) })
		})
	}
	t.Run("callers decide", func(t *testing.T) { callersDecide(t, b, s) })
	t.Run("nothing besides", func(t *testing.T) { nothingBesides(t, b, s) })
}

func (w way) title() string {
	from := w.from
	if from == transition.Absent {
		from = "–"
	}
	title := fmt.Sprintf("%s, %s", from, w.event)
	if w.name != "" {
		title += ", " + w.name
	}
	return title
}

// lands does the way as it should go, and compares every row of the place.
func lands(t *testing.T, b *bench, s subject, w way) {
	p, before := b.stage(t, w)
	r := b.seen(t, s, w, p)
	b.tap.reset()
	if err := w.do(t.Context(), b.Store, p, r); err != nil {
		t.Fatal(err)
	}
	if d := diff(b.read(t, p), before.after(w.want(p))); d != "" {
		t.Error(d)
	}
}

// stage writes what stands before a way, at a place of its own.
func (b *bench) stage(t testing.TB, w way) (place, world) {
	t.Helper()
	p := b.place()
	before := world{}
	if w.given != nil {
		before = w.given(p)
	}
	b.write(t, before)
	return p, before
}

// seen is what the caller of a way reads at a place.
func (b *bench) seen(t testing.TB, s subject, w way, p place) seen {
	t.Helper()
	if w.from == transition.Absent {
		return s.blank(p)
	}
	r, err := s.look(context.WithoutCancel(t.Context()), b.Store, p)
	if err != nil {
		t.Fatalf("read before %s: %v", w.title(), err)
	}
	return r
}

// otherStates asks with a read that is right for the row while the item is in every other state, and in none; and with
// a read of a state that the event is not possible in.
func otherStates(t *testing.T, b *bench, s subject, w way) {
	for _, state := range append([]string{transition.Absent}, s.states...) {
		if state == w.from || slices.Contains(w.falls, state) {
			continue
		}
		t.Run("stale read, item "+orNone(state), func(t *testing.T) {
			p, before := b.stage(t, w)
			r := b.seen(t, s, w, p)
			b.move(t, s, p, before, state)
			b.refused(t, s, w, p, before, r, state, slices.Contains(w.done, state))
		})
		if s.legal(state, w.event) || w.chooses || w.from == transition.Absent {
			continue
		}
		t.Run("right read, item "+orNone(state), func(t *testing.T) {
			p, before := b.stage(t, w)
			b.move(t, s, p, before, state)
			r := s.blank(p)
			if state != transition.Absent {
				r = b.seen(t, s, w, p)
			}
			b.refused(t, s, w, p, before, r, state, slices.Contains(w.done, state))
		})
	}
}

func orNone(state string) string {
	if state == transition.Absent {
		return "not there"
	}
	return state
}

// move puts the subject's row into a state, all else equal, so that nothing but the state can be what refuses.
func (b *bench) move(t testing.TB, s subject, p place, before world, state string) {
	t.Helper()
	k := s.key(p)
	switch {
	case state == transition.Absent:
		delete(before, k)
		b.overwrite(t, k, nil)
		return
	case before[k] == nil:
		before[k] = s.given(p, state)[k]
	default:
		before[k] = before.after([]change{{key: k, set: row{schema.State: state}}})[k]
	}
	b.overwrite(t, k, before[k])
}

// refused asks, and demands a conflict that carries the row as it stands, or success where all is done; either way
// nothing may have been written.
func (b *bench) refused(t *testing.T, s subject, w way, p place, before world, r seen, state string, done bool) {
	t.Helper()
	b.tap.reset()
	err := w.do(t.Context(), b.Store, p, r)
	if d := diff(b.read(t, p), before); d != "" {
		t.Errorf("a refused event changed rows:\n%s", d)
	}
	if done && b.tap.writes.Load() > 0 {
		if err != nil {
			t.Errorf("our own finished write: %v, want success", err)
		}
		return
	}
	c, ok := conflictIn(err)
	if !ok {
		t.Fatalf("got %v, want a Conflict", err)
	}
	if b.tap.writes.Load() > 0 {
		carries(t, b, s, p, c, state)
	}
}

// carries demands that the conflict holds the subject's row as a consistent read gives it.
func carries(t *testing.T, b *bench, s subject, p place, c told, state string) {
	t.Helper()
	if state == transition.Absent {
		if c != (told{}) {
			t.Errorf("the conflict carries a row although there is none: %+v", c)
		}
		return
	}
	now, err := s.look(t.Context(), b.Store, p)
	if err != nil {
		t.Fatal(err)
	}
	var got seen
	switch {
	case c.run != nil:
		got.run = *c.run
	case c.sub != nil:
		got.sub = *c.sub
	case c.sched != nil:
		got.sched = *c.sched
	case c.snap != nil:
		got.snap = *c.snap
	}
	if !reflect.DeepEqual(got, now) {
		t.Errorf("the conflict carries %+v\nwant the row as it stands: %+v", got, now)
	}
}

// told is which row a conflict carries.
type told struct {
	run     *schedule.Run
	sub     *schedule.Submission
	sched   *schedule.Schedule
	snap    *snapshot.Run
	head    *snapshot.Head
	pointer *snapshot.Pointer
	caps    *snapshot.Caps
}

// conflictIn finds the conflict in an error, of either domain.
func conflictIn(err error) (told, bool) {
	var a *schedule.Conflict
	if errors.As(err, &a) {
		return told{run: a.Run, sub: a.Submission, sched: a.Schedule}, true
	}
	var b *snapshot.Conflict
	if errors.As(err, &b) {
		return told{snap: b.Run, head: b.Head, pointer: b.Pointer, caps: b.Caps}, true
	}
	return told{}, false
}

// names reports whether the conflict carries the row that refused, where that is not the one that moves.
func (c told) names(k schema.Key, it Item) bool {
	switch {
	case c.sched != nil:
		return schema.ScheduleKey(c.sched.ID) == k && string(c.sched.State) == text(it, schema.State)
	case c.head != nil:
		return headKey(c.head.Period) == k && c.head.Latest == whole(it, schema.Latest) && c.head.Active == whole(it, schema.Active)
	case c.pointer != nil:
		return pointerKey(c.pointer.Period) == k && c.pointer.Version == whole(it, schema.Version)
	case c.caps != nil:
		return schema.CapsKey(c.caps.ID) == k && len(c.caps.Slots) == len(keysOf(it, schema.Slots))
	}
	return false
}

// eachGuard falsifies each guard of the way's alternative that DynamoDB decides, after the caller's read.
func eachGuard(t *testing.T, b *bench, s subject, w way) {
	for _, g := range s.guards(w) {
		m := meanings[g]
		if w.from == transition.Absent {
			break // absence is asked by every state walk; the rest, the caller decides
		}
		for i, set := range m.fails {
			t.Run(fmt.Sprintf("%s, %d", g, i), func(t *testing.T) {
				b.falsified(t, s, w, s.key, set, m.reread)
			})
		}
	}
	for i, br := range w.also {
		t.Run(fmt.Sprintf("%s, %d", br.guard, i), func(t *testing.T) { b.falsified(t, s, w, br.key, br.set, false) })
	}
}

func (b *bench) falsified(t *testing.T, s subject, w way, key func(place) schema.Key, set row, reread bool) {
	p, before := b.stage(t, w)
	r := b.seen(t, s, w, p)
	k := key(p)
	before[k] = before.after([]change{{key: k, set: set}})[k]
	b.overwrite(t, k, before[k])
	if reread {
		r = b.seen(t, s, w, p)
	}
	b.tap.reset()
	err := w.do(t.Context(), b.Store, p, r)
	if d := diff(b.read(t, p), before); d != "" {
		t.Errorf("a refused event changed rows:\n%s", d)
	}
	c, ok := conflictIn(err)
	if !ok {
		t.Fatalf("got %v, want a Conflict", err)
	}
	if b.tap.writes.Load() == 0 {
		t.Fatal("nothing was sent: the guard was not asked")
	}
	if k == s.key(p) {
		carries(t, b, s, p, c, text(before[k], schema.State))
	} else if !c.names(k, before[k]) {
		t.Errorf("the conflict carries %+v, want the row that refused", c)
	}
}

// callersDecide asks for every alternative of every row past the store's operations: it lands with all that its caller
// must decide, and is refused before anything is sent when one of these was not decided.
func callersDecide(t *testing.T, b *bench, s subject) {
	for _, r := range s.rows {
		for i, all := range r.when {
			title := fmt.Sprintf("%s, %s, %d", orNone(r.from), r.event, i)
			ask := func(t *testing.T, without transition.Guard) error {
				p := b.place()
				before := world{}
				if r.from != transition.Absent {
					before = s.given(p, r.from)
				}
				step := Step{Table: s.name, From: r.from, Event: r.event, Key: s.key(p), Facts: Facts{Earlier: "nobody", Now: wall, Yields: 200}}
				for _, g := range all {
					m := meanings[g]
					if m.facts != nil {
						m.facts(&step.Facts)
					}
					if r.from != transition.Absent {
						before = before.after([]change{{key: s.key(p), set: m.holds}})
					}
					if byItsCaller(r.from, g) && g != without {
						step.Facts.Decided = append(step.Facts.Decided, g)
					}
				}
				b.write(t, before)
				b.tap.reset()
				err := b.advance(t.Context(), b.Store, step)
				got := b.row(t, s.key(p))
				if without == "" {
					if text(got, schema.State) != r.to {
						t.Errorf("%v; the row is %s, want state %s", err, show(got), r.to)
					}
				} else if !reflect.DeepEqual(got, before[s.key(p)]) {
					t.Errorf("without %q the row became %s, want %s", without, show(got), show(before[s.key(p)]))
				}
				return err
			}
			t.Run(title, func(t *testing.T) {
				if err := ask(t, ""); err != nil {
					t.Error(err)
				}
			})
			for _, g := range all {
				if !byItsCaller(r.from, g) {
					continue
				}
				t.Run(title+", without "+string(g), func(t *testing.T) {
					err := ask(t, g)
					if err == nil {
						t.Fatal("accepted although its caller did not decide")
					}
					if n := b.tap.writes.Load(); n > 0 && len(r.when) == 1 {
						t.Errorf("%d writes were sent", n)
					}
				})
			}
		}
	}
}

// nothingBesides asks, with a right read, for every event in every state that has no row for it: nothing is sent.
func nothingBesides(t *testing.T, b *bench, s subject) {
	var decided []transition.Guard
	for g := range meanings {
		if byItsCaller(transition.Absent, g) {
			decided = append(decided, g)
		}
	}
	var events []string
	for _, r := range s.rows {
		if !slices.Contains(events, r.event) {
			events = append(events, r.event)
		}
	}
	for _, state := range append([]string{transition.Absent}, s.states...) {
		for _, event := range events {
			if s.legal(state, event) {
				continue
			}
			t.Run(orNone(state)+", "+event, func(t *testing.T) {
				p := b.place()
				before := world{}
				if state != transition.Absent {
					before = s.given(p, state)
				}
				b.write(t, before)
				b.tap.reset()
				err := b.advance(t.Context(), b.Store, Step{Table: s.name, From: state, Event: event, Key: s.key(p),
					Facts: Facts{Owner: "worker-1", Earlier: "worker-1", Now: wall, Yields: 200, Decided: decided}})
				if err == nil || b.tap.calls.Load() > 0 {
					t.Errorf("got %v after %d calls, want a refusal before any", err, b.tap.calls.Load())
				}
				if d := diff(b.read(t, p), before); d != "" {
					t.Error(d)
				}
			})
		}
	}
}
