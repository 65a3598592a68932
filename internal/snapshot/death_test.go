package snapshot_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
)

var errDead = errors.New("the process is dead")

// doom lets the n-th outside call of what follows go wrong: nothing of it, or nothing but its reply, and from then on
// nothing at all where the process dies.
type doom struct {
	n       int
	after   bool // the call takes effect
	dies    bool // and no later call leaves the process
	calls   int
	current bool // the call under way is the doomed one
}

func (m *doom) before() error {
	m.calls++
	if m.dies && m.calls > m.n {
		return errDead
	}
	if m.current = m.calls == m.n; m.current && !m.after {
		return errDead
	}
	return nil
}

func (m *doom) done() error {
	if m.current && m.after {
		m.current = false
		return errDead
	}
	return nil
}

func (d *desk) doomed(m *doom) {
	hooks := memcloud.Hooks{Before: func(context.Context, memcloud.Call) error { return m.before() }, After: func(context.Context, memcloud.Call) error { return m.done() }}
	d.db.Hooks, d.s3.Hooks = hooks, hooks
	d.jobs.before = func(string) error { return m.before() }
	d.jobs.after = func(string) error { return m.done() }
}

func (d *desk) saved() {
	d.db.Hooks, d.s3.Hooks, d.jobs.before, d.jobs.after = memcloud.Hooks{}, memcloud.Hooks{}, nil, nil
}

// sound checks what must hold between rows whatever happened.
func (d *desk) sound() {
	d.t.Helper()
	heads, err := d.store.Months(ctx, ewr)
	d.must(err)
	var admitted []string
	for _, h := range heads {
		runs, err := d.store.Versions(ctx, h.Period)
		d.must(err)
		for _, r := range runs {
			if open := !r.Final(); open != (h.Active == r.Version) {
				d.t.Errorf("%s is %s, the head's active version is %d", r.ID(), r.State, h.Active)
			}
			if r.Admitted() {
				admitted = append(admitted, r.ID())
			}
		}
		if h.Latest != runs[0].Version || h.LatestState != runs[0].State && runs[0].Final() {
			d.t.Errorf("head %+v over %s %s", h, runs[0].ID(), runs[0].State)
		}
	}
	slots := d.caps(snapshot.DefaultOwner).Slots
	slices.Sort(slots)
	slices.Sort(admitted)
	if !slices.Equal(slots, admitted) {
		d.t.Errorf("slots %v, admitted %v", slots, admitted)
	}
}

// Whatever call goes wrong, and however, the ticks and tries that follow bring about the same end.
func TestWhateverCallGoesWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		ready func(*desk)
		act   func(*desk) error // with the fault
		after func(*desk)       // without it
		want  []string
	}{
		{"plan", func(d *desk) {
			d.define("2039-12", loading)
			d.marks["EWR"] = time.Date(2040, 2, 2, 0, 0, 0, 0, time.UTC)
		},
			func(d *desk) error { _, err := d.planner.Tick(ctx); return err },
			func(d *desk) { d.plan() },
			[]string{"2039-12 v1 planned", "2040-01 v1 planned", "2040-02 v1 skipped loading"}},
		{"plan what has loaded", func(d *desk) {
			d.define("2040-02", loading)
			d.plan()
			d.marks["EWR"] = d.wall()
		}, func(d *desk) error { _, err := d.planner.Tick(ctx); return err }, func(d *desk) { d.plan() },
			[]string{"2040-02 v1 skipped loading", "2040-02 v2 planned"}},
		{"switch off", func(d *desk) {
			d.define("2040-01", unchanged)
			d.plan()
			d.claim()
			d.define("2040-01", func(def *snapshot.Definition) { def.Off = true })
		}, func(d *desk) error { _, err := d.planner.Tick(ctx); return err }, func(d *desk) { d.plan() },
			[]string{"2040-01 v1 cancelled policy", "2040-02 v1 cancelled policy"}},
		{"dispatch", func(d *desk) { d.define("2040-01", unchanged); d.plan() },
			func(d *desk) error { _, err := d.dispatch.Tick(ctx); return err },
			func(d *desk) { d.claim(); d.advance(5 * time.Minute); d.claim(); d.claim() },
			[]string{"2040-01 v1 queued", "2040-02 v1 queued"}},
		{"offer again", func(d *desk) {
			d.define("2040-02", unchanged)
			d.plan()
			d.jobs.before = func(string) error { return errLost }
			d.claim()
			d.advance(5 * time.Minute)
		}, func(d *desk) error { _, err := d.dispatch.Tick(ctx); return err },
			func(d *desk) { d.advance(5 * time.Minute); d.claim(); d.claim() },
			[]string{"2040-02 v1 queued"}},
		{"reconcile a closed job", func(d *desk) {
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			d.begin(id("2040-02", 1))
			d.jobs.close("EWR_delays_2040-02_v1-j1", "ABORTED")
		}, func(d *desk) error { _, err := d.mender.Tick(ctx); return err },
			func(d *desk) { d.mend() },
			[]string{"2040-02 v1 failed"}},
		{"clean", func(d *desk) {
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			d.publish(id("2040-02", 1))
			d.put(snapshot.RunPrefix(period("2040-02"), 1)+"leftover", "x")
			d.advance(8 * 24 * time.Hour)
		}, func(d *desk) error { _, err := d.mender.Tick(ctx); return err },
			func(d *desk) {
				d.mend()
				if n := len(d.objects("snapshots/")); n != 2 {
					d.t.Errorf("%d objects are left, want a chunk and a manifest", n)
				}
			},
			[]string{"2040-02 v1 published"}},
		{"request", func(d *desk) {
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			d.publish(id("2040-02", 1))
		}, func(d *desk) error { _, err := d.editor.Request(ctx, period("2040-02"), "again", "ann"); return err },
			func(d *desk) {
				again(d, func() error { _, err := d.editor.Request(ctx, period("2040-02"), "again", "ann"); return err })
			},
			[]string{"2040-02 v1 published", "2040-02 v2 planned"}},
		{"cancel", func(d *desk) { d.define("2040-02", unchanged); d.plan(); d.claim() },
			func(d *desk) error { _, err := d.editor.Cancel(ctx, id("2040-02", 1), "x", "ann"); return err },
			func(d *desk) {
				again(d, func() error { _, err := d.editor.Cancel(ctx, id("2040-02", 1), "x", "ann"); return err })
			},
			[]string{"2040-02 v1 cancelled operator"}},
		{"retry now", func(d *desk) {
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			d.fail(id("2040-02", 1), failure.QueryTimeout)
		}, func(d *desk) error { _, err := d.editor.RetryNow(ctx, id("2040-02", 1), "x", "ann"); return err },
			func(d *desk) {
				again(d, func() error { _, err := d.editor.RetryNow(ctx, id("2040-02", 1), "x", "ann"); return err })
				d.claim()
			},
			[]string{"2040-02 v1 queued"}},
		{"save", func(*desk) {},
			func(d *desk) error { _, err := d.editor.SaveDefinition(ctx, delays("2040-02"), "ann", 0); return err },
			func(d *desk) {
				again(d, func() error { _, err := d.editor.SaveDefinition(ctx, delays("2040-02"), "ann", 0); return err })
				if v, err := d.store.Present(ctx, snapshot.Scope{Workspace: "EWR"}, "delays"); err != nil || v.Number != 1 {
					d.t.Errorf("version %d, %v", v.Number, err)
				}
				d.plan()
			},
			[]string{"2040-02 v1 planned"}},
	} {
		for kind, m := range map[string]doom{"request lost": {}, "reply lost": {after: true}, "dies before": {dies: true}, "dies after": {after: true, dies: true}} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				met := false
				for n := 1; ; n++ {
					d, m := newDesk(t), m
					c.ready(d)
					d.saved()
					m.n = n
					d.doomed(&m)
					err := c.act(d)
					d.saved()
					if m.calls < n {
						if err != nil || n < 4 {
							t.Errorf("%v without a fault, after %d calls", err, m.calls)
						}
						break
					}
					met = true
					c.after(d)
					if got := d.ledger(); !slices.Equal(got, c.want) {
						t.Fatalf("call %d went wrong: ledger %q, want %q", n, got, c.want)
					}
					d.sound()
				}
				if !met {
					t.Error("no call went wrong")
				}
			})
		}
	}
}

// again repeats a person's act whose answer was lost: it succeeds, or is refused because it was done.
func again(d *desk, act func() error) {
	d.t.Helper()
	if err := act(); err != nil && !snapshot.IsConflict(err) {
		d.t.Errorf("asked again: %v", err)
	}
}
