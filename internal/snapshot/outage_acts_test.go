package snapshot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// act is what a person asks for at the desk, or a tick does by itself, and what it answers.
type act struct {
	reads bool // and leaves everything as it is
	given func(d *desk)
	do    func(ctx context.Context, d *desk) (answer any, err error)
}

var acts = map[string]act{
	"first definition": {false, func(*desk) {}, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.SaveDefinition(ctx, delays("2040-02"), "ann", 0)
	}},
	"definition": {false, planned, func(ctx context.Context, d *desk) (any, error) {
		def := delays("2040-02")
		def.Name = "Lates"
		return d.editor.SaveDefinition(ctx, def, "ann", 1)
	}},
	"what a definition would change": {true, planned, func(ctx context.Context, d *desk) (any, error) {
		def := delays("2040-02")
		def.Name = "Lates"
		return d.editor.PlanDefinition(ctx, def)
	}},
	"owner": {false, func(*desk) {}, func(ctx context.Context, d *desk) (any, error) {
		return nil, d.editor.SaveOwner(ctx, snapshot.Owner{ID: "ops", Name: "Ops", Cap: 3, Backfill: 1}, "ann")
	}},
	"owner again": {false, func(d *desk) { d.owner("ops", 3, 1) }, func(ctx context.Context, d *desk) (any, error) {
		return nil, d.editor.SaveOwner(ctx, snapshot.Owner{ID: "ops", Name: "Ops", Cap: 4, Backfill: 1}, "ann")
	}},
	"request": {false, published, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.Request(ctx, period("2040-02"), "why", "ann")
	}},
	"request once": {false, published, func(ctx context.Context, d *desk) (any, error) {
		r, created, err := d.editor.RequestOnce(ctx, period("2040-02"), "why", "ann", byKey)
		return fmt.Sprint(r.ID(), created), err
	}},
	"request once again": {true, func(d *desk) {
		published(d)
		_, _, err := d.editor.RequestOnce(ctx, period("2040-02"), "why", "ann", byKey)
		d.must(err)
	}, func(ctx context.Context, d *desk) (any, error) {
		r, created, err := d.editor.RequestOnce(ctx, period("2040-02"), "why", "ann", byKey)
		return fmt.Sprint(r.ID(), created), err
	}},
	"accept": {false, refused, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.Accept(ctx, id("2040-02", 1), []string{"rows"}, "why", "ann")
	}},
	"accept once": {false, refused, func(ctx context.Context, d *desk) (any, error) {
		r, created, err := d.editor.AcceptOnce(ctx, id("2040-02", 1), []string{"rows"}, "why", "ann", byKey)
		return fmt.Sprint(r.ID(), created), err
	}},
	"retry now": {false, failed, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.RetryNow(ctx, id("2040-02", 1), "why", "ann")
	}},
	"cancel what is planned": {false, planned, cancelled},
	"cancel what is queued":  {false, claimed, cancelled},
	"cancel what runs":       {false, begun, cancelled},
	"roll back": {false, func(d *desk) {
		published(d)
		_, err := d.editor.Request(ctx, period("2040-02"), "why", "ann")
		d.must(err)
		d.claim()
		d.publish(id("2040-02", 2))
	}, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.RollBack(ctx, period("2040-02"), 1, "why", "ann")
	}},
	"backfill": {false, unplanned, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.Backfill(ctx, winter, "why", "ann", false)
	}},
	"backfill of which a part is there": {false, func(d *desk) {
		unplanned(d)
		_, err := d.editor.Request(ctx, period("2039-12"), "why", "ann")
		d.must(err)
	}, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.Backfill(ctx, winter, "why", "ann", false)
	}},
	"dry run of a backfill": {true, unplanned, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.Backfill(ctx, winter, "why", "ann", true)
	}},
	"backfill once": {false, unplanned, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.BackfillOnce(ctx, winter, "why", "ann", byKey)
	}},
	"backfill once again": {true, func(d *desk) {
		unplanned(d)
		_, err := d.editor.BackfillOnce(ctx, winter, "why", "ann", byKey)
		d.must(err)
	}, func(ctx context.Context, d *desk) (any, error) {
		return d.editor.BackfillOnce(ctx, winter, "why", "ann", byKey)
	}},

	"tick that makes a line and plans": {false, func(d *desk) { d.define("2039-12", unchanged) }, planTick},
	"tick that plans the next month":   {false, func(d *desk) { planned(d); d.advance(27 * 24 * time.Hour) }, planTick},
	"tick that waits for the source":   {false, func(d *desk) { d.define("2040-02", loading) }, planTick},
	"tick that skips what never came": {false, func(d *desk) {
		d.define("2040-02", loading)
		d.plan()
		d.advance(120 * 24 * time.Hour)
	}, planTick},
	"tick that is told of new data": {false, func(d *desk) {
		d.define("2040-02", loading)
		d.plan()
		d.marks["EWR"] = opening
		d.advance(time.Hour)
	}, planTick},
	"tick after the type was switched off": {false, func(d *desk) { claimed(d); d.define2(func(def *snapshot.Definition) { def.Off = true }) }, planTick},
	"tick after a workspace left": {false, func(d *desk) {
		claimed(d)
		d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-01-01" })
	}, planTick},

	"tick that claims":         {false, func(d *desk) { d.owner(snapshot.DefaultOwner, 3, 1); d.define("2039-12", unchanged); d.plan() }, dispatchTick},
	"tick that claims a retry": {false, func(d *desk) { failed(d); d.advance(time.Hour) }, dispatchTick},
	"tick that offers again":   {false, func(d *desk) { unstarted(d); d.advance(5 * time.Minute) }, dispatchTick},
	"tick that meets a job that is there": {false, func(d *desk) {
		d.define("2040-02", unchanged)
		d.plan()
		d.jobs.after = func(string) error { return errLost }
		d.claim()
		d.jobs.after = nil
		d.advance(5 * time.Minute)
	}, dispatchTick},
	"tick that meets a job that closed": {false, func(d *desk) {
		d.define("2040-02", unchanged)
		d.plan()
		d.jobs.after = func(string) error { return errLost }
		d.claim()
		d.jobs.after = nil
		d.jobs.close(d.run(id("2040-02", 1)).JobName(), "ABORTED")
		d.advance(5 * time.Minute)
	}, dispatchTick},

	"tick for another owner":     {false, func(d *desk) { ownedByOps(d); d.plan() }, dispatchTick},
	"tick while dispatch is off": {true, func(d *desk) { planned(d); d.off = true }, dispatchTick},

	"reconciler's tick while dispatch is off": {true, func(d *desk) { unstarted(d); d.advance(5 * time.Minute); d.off = true }, mendTick},
	"reconciler's tick over another owner's job": {false, func(d *desk) {
		ownedByOps(d)
		d.plan()
		d.claim()
		d.jobs.close(d.run(id("2040-02", 1)).JobName(), "FAILED")
	}, mendTick},
	"reconciler's tick over what runs": {true, begun, mendTick},
	"reconciler's tick over a job that closed": {false, func(d *desk) {
		begun(d)
		d.jobs.close(d.run(id("2040-02", 1)).JobName(), "FAILED")
	}, mendTick},
	"reconciler's tick over a job that is gone": {false, func(d *desk) {
		begun(d)
		d.jobs.forget(d.run(id("2040-02", 1)).JobName())
		d.advance(time.Hour)
	}, mendTick},
	"reconciler's tick that offers again": {false, func(d *desk) { unstarted(d); d.advance(5 * time.Minute) }, mendTick},
	"reconciler's tick over a slot of nobody": {false, func(d *desk) {
		published(d)
		d.set(schema.CapsKey(snapshot.DefaultOwner), "SET #m.#r = :v", map[string]string{"#m": schema.Slots, "#r": id("2040-02", 1)},
			map[string]dynamotypes.AttributeValue{":v": &dynamotypes.AttributeValueMemberBOOL{Value: true}})
	}, mendTick},
	"reconciler's tick over what is late":   {true, func(d *desk) { planned(d); d.advance(30 * 24 * time.Hour) }, mendTick},
	"reconciler's tick over a last failure": {true, refused, mendTick},
	"reconciler's tick that cleans":         {false, func(d *desk) { refused(d); d.advance(60 * 24 * time.Hour) }, mendTick},
}

var (
	byKey  = snapshot.Once{Who: "ann", Key: "key", What: "hash"}
	winter = snapshot.Range{Series: []snapshot.Series{ewr}, From: month("2039-11"), To: month("2040-01")}
)

// ownedByOps gives the workspace to an owner of its own.
func ownedByOps(d *desk) {
	d.owner("ops", 2, 1)
	d.workspace("EWR", func(w *schedule.Workspace) { w.Owner = "ops" })
	d.define("2040-02", unchanged)
}

func unplanned(d *desk) { d.define("2039-11", unchanged) }
func planned(d *desk)   { d.define("2040-02", unchanged); d.plan() }
func claimed(d *desk)   { planned(d); d.claim() }
func begun(d *desk)     { claimed(d); d.begin(id("2040-02", 1)) }
func published(d *desk) { claimed(d); d.publish(id("2040-02", 1)) }
func failed(d *desk)    { begun(d); d.fail(id("2040-02", 1), failure.QueryTimeout) }

// refused leaves a month that a check has failed for good, with a chunk of it.
func refused(d *desk) {
	claimed(d)
	d.validating(id("2040-02", 1))
	d.verdict(id("2040-02", 1), snapshot.Check{Name: "rows", Found: "1", Expected: "2"})
	d.fail(id("2040-02", 1), failure.ValidationRefused)
}

func unstarted(d *desk) {
	planned(d)
	d.jobs.before = func(string) error { return errLost }
	d.claim()
	d.jobs.before = nil
}

// define2 saves the second version of the definition of define.
func (d *desk) define2(change func(*snapshot.Definition)) {
	def := delays("2040-02")
	change(&def)
	_, err := d.editor.SaveDefinition(ctx, def, "ann", 1)
	d.must(err)
}

func cancelled(ctx context.Context, d *desk) (any, error) {
	return d.editor.Cancel(ctx, id("2040-02", 1), "why", "ann")
}

// Ticks say of trouble with one row that there was some; they go on.
var errTold = errors.New("the tally tells of trouble")

func planTick(ctx context.Context, d *desk) (any, error) {
	t, err := d.planner.Tick(ctx)
	if err == nil && t.Errors > 0 {
		err = errTold
	}
	return t, err
}

func dispatchTick(ctx context.Context, d *desk) (any, error) {
	t, err := d.dispatch.Tick(ctx)
	if err == nil && t.Errors+t.Unstarted > 0 {
		err = errTold
	}
	return t, err
}

func mendTick(ctx context.Context, d *desk) (any, error) {
	f, err := d.mender.Tick(ctx)
	if err == nil && f.Errors > 0 {
		err = errTold
	}
	return f, err
}

// cuts are what fails in an outage, once a call has.
var cuts = map[string]func(first, c wish) bool{
	"everything":     func(first, c wish) bool { return true },
	"this operation": func(first, c wish) bool { return c.name == first.name },
	"this request":   func(first, c wish) bool { return c == first },
	shortly:          func(first, c wish) bool { return c == first },
}

const shortly = "this request until another is made"

// wish is a call of something outside: which, and what is asked for.
type wish struct{ name, input string }

func wished(c memcloud.Call) wish {
	input := c.Input
	if put, ok := input.(*s3.PutObjectInput); ok { // its body is a stream
		input = *put.Key
	}
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return wish{c.Service + " " + c.Operation, string(b)}
}

// cut is an outage of the calls that one act makes, from its call-th on.
type cut struct {
	call  int
	what  string
	calls int
	first wish
	over  bool
}

type cutKey struct{}

func (o *cut) before(ctx context.Context, name string) error { return o.ask(ctx, wish{name: name}) }

func (o *cut) ask(ctx context.Context, c wish) error {
	if ctx.Value(cutKey{}) == nil {
		return nil
	}
	o.calls++
	if o.calls == o.call {
		o.first = c
	}
	if o.first.name != "" && !o.over {
		if cuts[o.what](o.first, c) {
			return errors.New("no answer")
		}
		o.over = o.what == shortly
	}
	return nil
}

// strike lets everything that the desk asks for outside pass by the outage first.
func (o *cut) strike(d *desk) {
	hook := func(ctx context.Context, c memcloud.Call) error { return o.ask(ctx, wished(c)) }
	d.db.Hooks.Before, d.s3.Hooks.Before = hook, hook
	j := cutJobs{d.jobs, o}
	d.planner.Jobs, d.dispatch.Jobs, d.mender.Jobs, d.editor.Jobs = j, j, j, j
	business := func(ctx context.Context) (time.Time, error) {
		if err := o.before(ctx, "business clock"); err != nil {
			return time.Time{}, err
		}
		return d.business(ctx)
	}
	d.planner.Clocks.Business, d.mender.Clocks.Business, d.editor.Clocks.Business = business, business, business
	watermark := func(ctx context.Context, v snapshot.Version, w snapshot.Workspace) (time.Time, error) {
		if err := o.before(ctx, "watermark"); err != nil {
			return time.Time{}, err
		}
		return d.watermark(ctx, v, w)
	}
	d.planner.Watermark, d.editor.Watermark = watermark, watermark
	off := func(ctx context.Context) (bool, error) {
		err := o.before(ctx, "switch")
		return d.off && err == nil, err
	}
	d.dispatch.Off, d.mender.Off = off, off
	d.editor.Serves = func(ctx context.Context, _ snapshot.Definition, _ string) (bool, error) {
		return true, o.before(ctx, "sources")
	}
}

// cutJobs are jobs that cannot be asked during an outage. They can be stopped: a job that is not ends at its next step all
// the same, so that nobody need be told.
type cutJobs struct {
	*jobs
	o *cut
}

func (j cutJobs) Start(ctx context.Context, name string, input snapshot.Job) (string, error) {
	if err := j.o.before(ctx, "start"); err != nil {
		return "", err
	}
	return j.jobs.Start(ctx, name, input)
}

func (j cutJobs) Describe(ctx context.Context, name string) (snapshot.JobStatus, error) {
	if err := j.o.before(ctx, "describe"); err != nil {
		return snapshot.JobStatus{}, err
	}
	return j.jobs.Describe(ctx, name)
}

// passing is what differs from desk to desk: the tokens of what is tried again.
var passing = regexp.MustCompile(`token-[0-9]+|0x[0-9a-f]+`)

// stands is what is in the tables, in the bucket and among the jobs.
func (d *desk) stands() string {
	var list []string
	for _, table := range []string{"Schedules", "Snapshots"} {
		d.db.Any(table, func(it map[string]dynamotypes.AttributeValue) bool {
			b, err := json.Marshal(it)
			d.must(err)
			list = append(list, passing.ReplaceAllString(string(b), "*"))
			return false
		})
	}
	for _, key := range d.objects("") {
		list = append(list, passing.ReplaceAllString(key, "*"))
	}
	for name, k := range d.jobs.kept {
		list = append(list, fmt.Sprint("job ", name, " ", k.state, " ", k.stopped))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// missing lists the lines of one text that are not in another.
func missing(of, in string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(of, "\n"), func(line string) bool { return slices.Contains(strings.Split(in, "\n"), line) }), "\n")
}

// misleads reports an error that tells of something else than an outage.
func misleads(err error) bool {
	return errors.Is(err, snapshot.ErrNotFound) || snapshot.IsConflict(err) || errors.As(err, new(input.Problems))
}

// Whatever fails while somebody acts or a tick goes its round: nobody is told that it was done, or what it found, unless
// it was so.
func TestNoOutageOfAnActIsTakenForSuccess(t *testing.T) {
	for name, a := range acts {
		t.Run(name, func(t *testing.T) {
			try := func(o *cut) (before, stands, answer string, err error) {
				d := newDesk(t)
				a.given(d)
				before = d.stands()
				o.strike(d)
				got, err := a.do(context.WithValue(ctx, cutKey{}, true), d)
				return before, d.stands(), passing.ReplaceAllString(fmt.Sprintf("%+v", got), "*"), err
			}
			before, stands, answer, err := try(&cut{})
			if err != nil {
				t.Fatal(err)
			}
			if before == stands && !a.reads {
				t.Fatalf("nothing is done; the answer is %s", answer)
			}
			for what := range cuts {
				for call := 1; ; call++ {
					o := &cut{call: call, what: what}
					_, got, said, err := try(o)
					if o.first.name == "" {
						break
					}
					if err == nil && got != stands {
						t.Errorf("%s fails from call %d on (%s), and nobody is told that this is missing:\n%s\nbut this is there:\n%s", what, call, o.first.name, missing(stands, got), missing(got, stands))
					}
					if misleads(err) {
						t.Errorf("%s fails from call %d on (%s), and what is told is: %v", what, call, o.first.name, err)
					}
					if err == nil && said != answer {
						t.Errorf("%s fails from call %d on (%s), and the answer is\n%s\nwant\n%s", what, call, o.first.name, said, answer)
					}
				}
			}
		})
	}
}
