package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
)

// outage lets calls of one try of a step fail: those that its kind says, from its n-th on.
type outage struct {
	try, call int
	alike     bool // only calls of the first one's operation
	tries     int
	began     int    // calls before the try
	first     string // the first call that failed
}

func (o *outage) hook(a *attempts) func(context.Context, memcloud.Call) error {
	return func(ctx context.Context, c memcloud.Call) error {
		if err := a.hook(ctx, c, false); err != nil || ctx.Value(processKey{}) == nil || o.tries != o.try {
			return err
		}
		name := c.Service + " " + c.Operation
		if a.calls-o.began == o.call {
			o.first = name
		}
		if o.first != "" && (!o.alike || name == o.first) {
			return errors.New("no answer")
		}
		return nil
	}
}

// standing is what a step leaves on the run.
func standing(r snapshot.Run) string {
	return fmt.Sprint(r.State, r.Generation, r.Cursor, r.Verdict != nil, r.Manifest() != "", r.Failures, r.Execution != "", r.StartedAt.IsZero())
}

// Whatever fails for the rest of a step's try, the step does not say that it did what it has not done, and once the outage
// is over the month is published.
func TestNoOutageIsTakenForSuccess(t *testing.T) {
	for _, mode := range []snapshot.Mode{snapshot.Chunked, snapshot.Single} {
		def := trips()
		def.Mode = mode
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
					o.tries, o.began = o.tries+1, a.calls
					result, err := a.call(ctx, in)
					after(err)
					return result, err
				})
				a.must(err)
			}
			a.published(id)
		}
		var undisturbed []string // by try: how the run stands afterwards
		plain := &outage{}
		a, id := begin(plain)
		walk(plain, a, id, func(error) { undisturbed = append(undisturbed, standing(a.run(id))) })
		for _, alike := range []bool{false, true} {
			for try := 1; try <= len(undisturbed); try++ {
				for call := 1; ; call++ {
					o := &outage{try: try, call: call, alike: alike}
					a, id := begin(o)
					walk(o, a, id, func(err error) {
						if got := standing(a.run(id)); o.tries == try && err == nil && got != undisturbed[try-1] {
							t.Errorf("%s, try %d, call %d (%s, alike %t) fails and the step says nothing:\n%s\nwant %s", mode, try, call, o.first, alike, got, undisturbed[try-1])
						}
					})
					if o.first == "" {
						break
					}
				}
			}
		}
	}
}
