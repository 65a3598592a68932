package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
)

// outage lets calls of one try of a step fail: those that its kind says, from its n-th on.
type outage struct {
	try, call int
	fails     func(first, c wish) bool
	off       bool
	tries     int
	began     int  // calls before the try
	first     wish // the first call that failed
}

func (o *outage) hook(a *attempts) func(context.Context, memcloud.Call) error {
	return func(ctx context.Context, c memcloud.Call) error {
		if err := a.hook(ctx, c, false); err != nil || ctx.Value(processKey{}) == nil || o.tries != o.try || o.off {
			return err
		}
		one := wished(c)
		if a.calls-o.began == o.call {
			o.first = one
		}
		if o.first.name != "" && o.fails(o.first, one) {
			return errors.New("no answer")
		}
		return nil
	}
}

// standing is what a step leaves on the run.
func standing(r snapshot.Run) string {
	return fmt.Sprint(r.State, r.Generation, r.Cursor, r.Verdict != nil, r.Manifest() != "", r.Failures, r.Execution != "", r.StartedAt.IsZero())
}

// walks are months whose steps meet outages: how they end without any.
var walks = []struct {
	name  string
	def   func(*snapshot.Definition)
	again bool // each step is called twice, as after a lost reply; the outage is in the second call
	ends  snapshot.State
	code  failure.Code // of a refusal; a passing failure may be another one in the end
}{
	{name: "in chunks", ends: snapshot.Published},
	{name: "in chunks, each step again", again: true, ends: snapshot.Published},
	{name: "at once", def: func(d *snapshot.Definition) { d.Mode = snapshot.Single }, ends: snapshot.Published},
	{name: "at once, each step again", def: func(d *snapshot.Definition) { d.Mode = snapshot.Single }, again: true, ends: snapshot.Published},
	{name: "as many rows decide", def: func(d *snapshot.Definition) { d.Mode = snapshot.Auto }, ends: snapshot.Published},
	{name: "a check fails", def: func(d *snapshot.Definition) { d.Checks.NotNull = []string{"carrier"} }, ends: snapshot.Failed, code: failure.ValidationRefused},
	{name: "a check fails, each step again", def: func(d *snapshot.Definition) { d.Checks.NotNull = []string{"carrier"} }, again: true, ends: snapshot.Failed, code: failure.ValidationRefused},
	{name: "the control query disagrees", def: func(d *snapshot.Definition) { d.Control = "select 7 as rows" }, ends: snapshot.Failed},
	{name: "the query is wrong", def: func(d *snapshot.Definition) {
		d.Query = "select wrong from trips where :workspace > :period_start or :period_end > 0"
	}, ends: snapshot.Failed},
}

// Whatever fails for the rest of a step's try, the step does not say that it did what it has not done, and once the outage
// is over the month ends as it would have.
func TestNoOutageIsTakenForSuccess(t *testing.T) {
	for _, m := range walks {
		t.Run(m.name, func(t *testing.T) {
			def := trips()
			if m.def != nil {
				m.def(&def)
			}
			begin := func(o *outage) (*attempts, string) {
				a := newAttempts(t, def)
				a.db.Hooks.Before, a.s3.Hooks.Before = o.hook(a), o.hook(a)
				a.load(tripsTable, rowsFrom(5, 250))
				return a, a.plan(newark).ID()
			}
			walk := func(o *outage, a *attempts, id string, after func(error)) {
				for again := true; again; again = a.run(id).State == snapshot.Failed && !a.run(id).NextAt.IsZero() { // a source's outage costs an attempt
					j := a.claim(id)
					_, err := workflowtest.Walk(bg, snapshot.Workflow(functionTime), j, fmt.Sprint("arn:execution:", j), func(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
						if m.again {
							o.off = true
							if result, err := a.call(ctx, in); err != nil {
								return result, err
							}
							o.off = false
						}
						o.tries, o.began = o.tries+1, a.calls
						result, err := a.call(ctx, in)
						after(err)
						return result, err
					})
					a.must(err)
				}
				if m.ends == snapshot.Published {
					a.published(id)
				} else if r := a.run(id); r.State != m.ends || m.code != "" && r.ErrorCode != string(m.code) {
					t.Errorf("the month ends %s: %s %s", r.State, r.ErrorCode, r.ErrorText)
				}
			}
			var undisturbed []string // by try: how the run stands afterwards
			plain := &outage{}
			a, id := begin(plain)
			walk(plain, a, id, func(error) { undisturbed = append(undisturbed, standing(a.run(id))) })
			for what, fails := range cuts {
				for try := 1; try <= len(undisturbed); try++ {
					for call := 1; ; call++ {
						o := &outage{try: try, call: call, fails: fails}
						a, id := begin(o)
						walk(o, a, id, func(err error) {
							if got := standing(a.run(id)); o.tries == try && err == nil && got != undisturbed[try-1] {
								t.Errorf("try %d: %s fails from call %d on (%s), and the step says nothing:\n%s\nwant %s", try, what, call, o.first.name, got, undisturbed[try-1])
							}
						})
						if o.first.name == "" {
							break
						}
					}
				}
			}
		})
	}
}
