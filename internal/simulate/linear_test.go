package simulate

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Histories of concurrent operations on one thing: who takes a slot, where a pointer points, who holds a run. Several
// clients work at once; which of their requests to DynamoDB goes next, and which reply is lost, a seed decides. However
// they interleave, the answers must be those of some order of whole operations, each between its first request and its
// answer (https://github.com/anishathalye/porcupine).

var visual = flag.String("simulate.visual", "", "a file to draw the history into that does not hold")

// unsure is the answer of an operation of which its client does not know whether it was done.
const unsure = "unsure"

// register is a thing with its operations, and what each may answer.
type register struct {
	// clients makes what the clients do in a world, each a list that one client does in its order.
	clients func(w *World, r *rand.Rand) [][]operation
	model   porcupine.Model
}

// operation is one of a client: it asks the product, and tells what it asked and was answered; nil: nothing was to be asked.
type operation func(context.Context, Kit) (input, output any)

// history plays the clients of a seed and returns what they did.
func (x register) history(t *testing.T, seed uint64) (h []porcupine.Operation, err error) {
	err = Run(t, func(w *World) {
		r := rand.New(rand.NewPCG(seed, 7))
		w.Company()
		for _, rule := range append(slices.Clone(rules), queueRuns, queueDead) {
			w.Off[rule] = true
		}
		clients := x.clients(w, r)
		w.Workers, w.Choose = len(clients), func(o []Option) int { return r.IntN(len(o)) }
		deaf := make([]atomic.Bool, len(clients)) // whose reply was lost in the operation that it does
		w.mu.Lock()
		first := w.started + 1
		w.mu.Unlock()
		w.Fault = func(c *Call) Form {
			if r.IntN(20) > 0 {
				return AsAsked
			}
			form := pick(r, SentAgain, LostReply, Refused)
			if form != Refused && c.Writes() {
				deaf[c.Worker.Number-first].Store(true)
			}
			return form
		}
		records := make([][]porcupine.Operation, len(clients))
		for i, list := range clients {
			w.Spawn(fmt.Sprintf("client-%d", i), time.Hour, func(ctx context.Context) any {
				for _, o := range list {
					deaf[i].Store(false)
					p := porcupine.Operation{ClientId: i, Call: w.moment()}
					if p.Input, p.Output = o(ctx, w.Kit(workerOf(ctx))); p.Output == nil {
						continue
					}
					p.Return = w.moment()
					switch said, is := p.Output.(string); {
					case p.Output == unsure:
						p.Return = 1 << 40 // it may take effect at any time: a request may be on its way
					case is && said != "done" && deaf[i].Load():
						p.Output = unsure // it may have been done, and what it met then is what another did after that
					}
					records[i] = append(records[i], p)
				}
				return nil
			})
		}
		w.Until(time.Hour, "every client is done", func() bool { return w.busy() == 0 })
		h = slices.Concat(records...)
	})
	return h, err
}

// moment is how many calls have been let go.
func (w *World) moment() int64 { w.mu.Lock(); defer w.mu.Unlock(); return int64(w.calls) }

// checkLinear plays a history for each seed and checks it.
func checkLinear(t *testing.T, x register, most int) {
	from, n := uint64(1), most
	if *full {
		n = 10 * most
	}
	if *replay != "" {
		seed, err := strconv.ParseUint(*replay, 10, 64)
		if err != nil {
			t.Fatalf("-simulate.replay is %q; want a seed", *replay)
		}
		from, n = seed, 1
	}
	operations, answers := 0, map[string]int{}
	for seed := from; seed < from+uint64(n); seed++ {
		h, err := x.history(t, seed)
		line := fmt.Sprintf("replay: go test ./internal/simulate -run '^%s$' -simulate.replay %d -v", t.Name(), seed)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		operations += len(h)
		for _, o := range h {
			answers[fmt.Sprint(o.Output)]++
		}
		if *replay != "" {
			t.Log(listed(h))
		}
		if !porcupine.CheckOperations(x.model, h) {
			draw(t, x.model, h)
			t.Fatalf("seed %d: no order of whole operations gives these answers:\n%s%s", seed, listed(h), line)
		}
	}
	t.Logf("%d histories of %d operations; answers: %v", n, operations, answers)
}

func listed(h []porcupine.Operation) string {
	h = slices.Clone(h)
	slices.SortStableFunc(h, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range h {
		fmt.Fprintf(&b, "  client %d, %d to %d: %+v -> %v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

// draw draws a history where somebody asked for it.
func draw(t *testing.T, m porcupine.Model, h []porcupine.Operation) {
	if *visual == "" {
		return
	}
	_, info := porcupine.CheckOperationsVerbose(m, h, time.Minute)
	f, err := os.Create(*visual)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := porcupine.Visualize(m, info, f); err != nil {
		t.Fatal(err)
	}
	t.Logf("the history is drawn in %s", *visual)
}

// machine makes a model of what an operation does to a state: after is the state then, may whether the answer can be.
// Of an operation whose client is unsure both are possible, that it was done and that it was not.
func machine[S comparable](init S, step func(S, any, any) (may bool, after S), done func(S, any) (S, bool)) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{init} },
		Step: func(state, input, output any) []any {
			s := state.(S)
			if output == unsure {
				states := []any{s}
				if after, can := done(s, input); can {
					states = append(states, after)
				}
				return states
			}
			if may, after := step(s, input, output); may {
				return []any{after}
			}
			return nil
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}
