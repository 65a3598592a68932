package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// outage lets calls of one try of a step fail: those that its kind says, from its n-th on.
type outage struct {
	try, call int
	what      string
	over      bool
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
		if o.first.name != "" && !o.over {
			if cuts[o.what](o.first, one) {
				return errors.New("no answer")
			}
			o.over = o.what == shortly
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
	given func(a *attempts)
	skip  string                                   // a step whose call is lost
	meet  func(a *attempts, in snapshot.StepInput) // what happens before a step
	again bool                                     // each step is called twice, as after a lost reply; the outage is in the second call
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
	}, ends: snapshot.Failed, code: failure.QueryInvalid},
	{name: "its start is lost", skip: snapshot.StepStart, ends: snapshot.Published},
	{name: "a chunk's object is gone", meet: func(a *attempts, in snapshot.StepInput) {
		if in.Step == snapshot.StepValidate {
			r := a.run(in.Run)
			for _, key := range a.objects(r) {
				if strings.HasPrefix(key, snapshot.GenerationPrefix(r.Period, r.Version, r.Generation)+"chunk-00000001") {
					_, err := a.s3.DeleteObject(bg, &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: &key})
					a.must(err)
				}
			}
		}
	}, ends: snapshot.Failed},
	{name: "the current version moves before it is published", given: func(a *attempts) { a.publish(newark); a.publish(newark) },
		meet: func(a *attempts, in snapshot.StepInput) {
			if in.Step == snapshot.StepPublish && pointerOf(a).Version == 2 {
				a.repoint(a.run(snapshot.Run{Period: newark, Version: 1}.ID()))
			}
		}, ends: snapshot.Published},
}

// asked are sources whose queries may fail as well.
type asked struct {
	snapshot.Sources
	hook func(context.Context, memcloud.Call) error
}

func (s asked) View(ctx context.Context, name, workspace string) (source.View, error) {
	v, err := s.Sources.View(ctx, name, workspace)
	if err != nil {
		return nil, err
	}
	return askedView{v, s.hook}, nil
}

type askedView struct {
	source.View
	hook func(context.Context, memcloud.Call) error
}

func (v askedView) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	if err := v.hook(ctx, memcloud.Call{Service: "source", Operation: "Open", Input: q.SQL}); err != nil {
		return nil, failure.Wrap(failure.SourceUnavailable, err, "%v", err)
	}
	return v.View.Open(ctx, q)
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
				a.steps.Sources = asked{a.steps.Sources, o.hook(a)}
				a.load(tripsTable, rowsFrom(5, 250))
				if m.given != nil {
					o.off = true
					m.given(a)
					o.off, o.tries = false, 0
				}
				return a, a.plan(newark).ID()
			}
			walk := func(o *outage, a *attempts, id string, after func(error)) {
				for again := true; again; again = a.run(id).State == snapshot.Failed && !a.run(id).NextAt.IsZero() { // a source's outage costs an attempt
					j := a.claim(id)
					_, err := workflowtest.Walk(bg, snapshot.Workflow(functionTime), j, fmt.Sprint("arn:execution:", j), func(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
						if in.Step == m.skip {
							return snapshot.Result{Done: true}, nil
						}
						if m.meet != nil {
							m.meet(a, in)
						}
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
			walk(plain, a, id, func(error) {
				if r := a.run(id); r.Attempts <= 1 { // later attempts are alike
					undisturbed = append(undisturbed, standing(r))
				}
			})
			for what := range cuts {
				for try := 1; try <= len(undisturbed); try++ {
					for call := 1; ; call++ {
						o := &outage{try: try, call: call, what: what}
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
