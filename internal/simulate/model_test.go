package simulate

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A model says what the specification says, of a state that is small and plain. It is written from the tables of the
// lifecycles and calls none of the product's decisions. A sequence of actions is done to the product and to the model, and
// after each the product's rows, decoded anew as they are written, must be those of the model.
//
// A failure prints the shortest sequence that rapid finds, rapid's own line, and a line that plays just that sequence.

// move is one action of a sequence, as it is drawn: which one, and two figures that it may use.
type move struct{ kind, a, b int }

// length is how many actions a sequence has.
const length = 50

// kind is one kind of action. do does it to product and model; its text tells people what it did.
type kind[M any] struct {
	name   string
	weight int
	do     func(m M, a, b int) string
}

// table spreads the kinds by their weights, evenly, since rapid draws low places more often; place 0 stands for no action,
// to which a sequence shrinks.
func table[M any](kinds []kind[M]) (places []int) {
	places = append(places, -1)
	for turn, any := 0, true; any; turn++ {
		any = false
		for i, k := range kinds {
			if turn < k.weight {
				places, any = append(places, i), true
			}
		}
	}
	return places
}

// sequences draws a sequence: more places than actions, since some hold none.
func sequences(places []int) *rapid.Generator[[]move] {
	return rapid.Custom(func(t *rapid.T) (moves []move) {
		for range length + 6 {
			p := rapid.IntRange(0, len(places)-1).Draw(t, "kind")
			m := move{places[p], rapid.IntRange(0, 255).Draw(t, "a"), rapid.IntRange(0, 255).Draw(t, "b")}
			if m.kind >= 0 && len(moves) < length {
				moves = append(moves, m)
			}
		}
		return moves
	})
}

func spell(moves []move) string {
	var parts []string
	for _, m := range moves {
		parts = append(parts, fmt.Sprintf("%d.%d.%d", m.kind, m.a, m.b))
	}
	return strings.Join(parts, "-")
}

func unspell(t *testing.T, text string, kinds int) (moves []move) {
	for part := range strings.SplitSeq(text, "-") {
		f := strings.Split(part, ".")
		var n [3]int
		for i := range n {
			v, err := strconv.Atoi(append(f, "", "", "")[i])
			if err != nil || len(f) != 3 || i == 0 && (v < 0 || v >= kinds) {
				t.Fatalf("-simulate.replay holds %q; want kind.a.b, the kind below %d", part, kinds)
			}
			n[i] = v
		}
		moves = append(moves, move{n[0], n[1], n[2]})
	}
	return moves
}

// rounds is how many sequences one call of rapid draws: between two the time is looked at. Rapid adds to a round's seed
// with each sequence, some thousands in all, so that rounds are far apart.
const rounds = 100

// checkModel plays sequences until there are enough, or the time for the quick part is up.
// reached must all have been come to at the end of some sequence, where time sufficed for all of them.
func checkModel[M any](t *testing.T, kinds []kind[M], play func(*testing.T, []move, map[string]int) ([]string, error), reached ...string) {
	ends := map[string]int{}
	if *replay != "" {
		told, err := play(t, unspell(t, *replay, len(kinds)), ends)
		t.Logf("%s\n%v", strings.Join(told, "\n"), err)
		if err != nil {
			t.Fail()
		}
		return
	}
	drawn, used := sequences(table(kinds)), make([]int, len(kinds))
	property := func(rt *rapid.T) {
		moves := drawn.Draw(rt, "moves")
		told, err := play(t, moves, ends)
		if err != nil {
			rt.Fatalf("%v\nthe actions:\n  %s\nreplay: go test ./internal/simulate -run '^%s$' -simulate.replay '%s' -v", err, strings.Join(told, "\n  "), t.Name(), spell(moves[:len(told)]))
		}
		for _, m := range moves {
			used[m.kind]++
		}
	}
	if rapidByHand() { // as rapid's own line asks
		rapid.Check(t, property)
		return
	}
	want, until := 5_000, time.Now().Add(quickModel)
	if *full {
		want, until = 50_000, time.Now().Add(24*time.Hour)
	}
	done := 0
	for ; done < want && time.Now().Before(until) && !t.Failed(); done += rounds {
		t.Run(fmt.Sprintf("from %d", done), func(t *testing.T) {
			defer setFlags(t, map[string]string{"rapid.checks": fmt.Sprint(rounds), "rapid.seed": fmt.Sprint(1 + done*10_000), "rapid.nofailfile": "true", "rapid.shrinktime": "10s"})()
			rapid.Check(t, property)
		})
	}
	t.Logf("%d sequences of %d actions, %d wanted", done, length, want)
	for i, k := range kinds {
		t.Logf("  %-40s %d", k.name, used[i])
	}
	t.Logf("how they ended:")
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		t.Logf("  %-40s %d", end, ends[end])
	}
	for _, end := range reached {
		if ends[end] == 0 && !t.Failed() && done >= want { // the seeds are the same each time
			t.Errorf("no sequence ended with %q: the actions do not come there", end)
		}
	}
}

// rapidByHand reports flags of rapid on the command line; it is asked before any is set here.
var rapidByHand = sync.OnceValue(func() (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || strings.HasPrefix(f.Name, "rapid.") })
	return is
})

// quickModel is the time that one model has in the quick part.
const quickModel = 38 * time.Second

// setFlags sets flags, and gives back what sets them as they were.
func setFlags(t *testing.T, values map[string]string) (back func()) {
	was := map[string]string{}
	for name, v := range values {
		was[name] = flag.Lookup(name).Value.String()
		if err := flag.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for name, v := range was {
			if err := flag.Set(name, v); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ms is an instant as rows hold it, in milliseconds; 0: none.
type ms = int64

func at2ms(t time.Time) ms {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func ms2at(t ms) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(t).UTC()
}

func minutes(n int) ms { return ms(n) * 60_000 }

// rowTime is a row's instant.
func rowTime(it Row, name string) ms { return at2ms(instant(Text(it, name))) }

// unlike tells the first row in which the product and the model differ; empty: none.
func unlike[V comparable](what string, product, model map[string]V) string {
	if maps.Equal(product, model) {
		return ""
	}
	keys := maps.Clone(product)
	maps.Copy(keys, model)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		p, there := product[k]
		m, wanted := model[k]
		switch {
		case !there:
			return fmt.Sprintf("%s %s: the product has none, the model has\n    %+v", what, k, m)
		case !wanted:
			return fmt.Sprintf("%s %s: the model has none, the product has\n    %+v", what, k, p)
		case p != m:
			return fmt.Sprintf("%s %s: the product has\n    %+v\n  the model has\n    %+v", what, k, p, m)
		}
	}
	return ""
}

// furthest is the last of the states that are as asked; the first where none is.
func furthest[M any](open []*M, is func(*M) bool) *M {
	for i := len(open) - 1; i > 0; i-- {
		if is(open[i]) {
			return open[i]
		}
	}
	return open[0]
}

// alike reports whether the product is as one of several states is, in the rows that any of them has otherwise than the
// first has.
func alike[M any, V comparable](product map[string]V, open []*M, state *M, rows func(*M) map[string]V) bool {
	before, now := rows(open[0]), rows(state)
	for _, m := range open {
		for k, v := range rows(m) {
			if was, there := before[k]; there && was == v {
				continue
			}
			p, has := product[k]
			s, should := now[k]
			if has != should || p != s {
				return false
			}
		}
	}
	return true
}

// calm is the context of an invocation whose calls meet nothing: they pass at once, and its deadline is far enough.
type calm struct {
	context.Context
	end time.Time
}

func (c calm) Deadline() (time.Time, bool) { return c.end, true }

func (w *World) calm(life time.Duration) context.Context { return calm{background, w.Now().Add(life)} }

// dying runs f as an invocation that dies at its n-th call, before or after that took effect, and tells whether it did: it
// may have fewer calls.
func (w *World) dying(name string, life time.Duration, n int, form Form, f func(context.Context, Kit)) (died bool) {
	w.Fault = func(c *Call) Form {
		if c.Of == n {
			return form
		}
		return AsAsked
	}
	defer func() { w.Fault = nil }()
	k := w.Spawn(name, life, func(ctx context.Context) any { f(ctx, w.Kit(workerOf(ctx))); return nil })
	for range maxSteps {
		synctest.Wait()
		calls := w.waiting()
		if len(calls) == 0 {
			break
		}
		w.letGo(calls[0])
	}
	if w.busy() > 0 {
		w.Failf("%s waits for something that is no call", name)
	}
	return k.Died()
}

func deathForm(b int) Form {
	if b%2 == 0 {
		return DieBefore
	}
	return DieAfter
}
