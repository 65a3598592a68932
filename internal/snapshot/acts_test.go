package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// wantConflict fails the test unless err is a conflict that says all of these.
func wantConflict(t *testing.T, err error, parts ...string) *snapshot.Conflict {
	t.Helper()
	var c *snapshot.Conflict
	if !errors.As(err, &c) {
		t.Fatalf("got %v, want a conflict", err)
	}
	for _, p := range parts {
		if !strings.Contains(c.Error(), p) {
			t.Errorf("%q does not say %q", c, p)
		}
	}
	return c
}

func wantProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var ps input.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("got %v, want problems", err)
	}
	for _, p := range parts {
		if !strings.Contains(ps.Error(), p) {
			t.Errorf("%q does not say %q", ps, p)
		}
	}
}

// audits lists who did what with a subject, and why.
func (d *desk) audits(subject string) (list []string) {
	d.t.Helper()
	for _, it := range d.db.Items("Snapshots") {
		pk, _ := it[schema.PK].(*dynamotypes.AttributeValueMemberS)
		if pk == nil || pk.Value != string(schema.AuditKey(subject, time.Time{}, "").PK) {
			continue
		}
		var parts []string
		for _, name := range []string{schema.Who, schema.What, schema.Why} {
			if v, ok := it[name].(*dynamotypes.AttributeValueMemberS); ok {
				parts = append(parts, v.Value)
			}
		}
		list = append(list, strings.Join(parts, ", "))
	}
	return list
}

func (d *desk) wantAudit(subject, want string) {
	d.t.Helper()
	if got := d.audits(subject); !slices.Contains(got, want) {
		d.t.Errorf("audits of %s: %q, want %q", subject, got, want)
	}
}

func TestRequest(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	_, err := d.editor.Request(ctx, period("2040-01"), "again", "ann")
	c := wantConflict(t, err, "request refused", "version EWR_delays_2040-01_v1 is queued")
	if c.Run == nil || c.Run.ID() != id("2040-01", 1) || c.Head == nil || c.Head.Active != 1 {
		t.Errorf("the conflict names %+v, %+v", c.Run, c.Head)
	}
	d.publish(id("2040-01", 1))
	asked := d.asked
	r, err := d.editor.Request(ctx, period("2040-01"), "the source was mended", "ann")
	d.must(err)
	if r.Version != 2 || d.asked == asked {
		t.Errorf("%+v", r)
	}
	if r := d.run(r.ID()); r.State != snapshot.Planned || r.RequestedBy != "ann" || r.RequestWhy != "the source was mended" || !r.Backfill {
		t.Errorf("%+v", r)
	}
	d.wantAudit(r.ID(), "ann, request, the source was mended")
	if p, err := d.store.Pointer(ctx, period("2040-01")); err != nil || p.Version != 1 {
		t.Errorf("a request moved the pointer: %+v, %v", p, err)
	}
}

func TestRequestRefusals(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", loading)
	d.marks["EWR"] = time.Date(2040, 2, 2, 0, 0, 0, 0, time.UTC)
	d.workspace("JFK", func(w *schedule.Workspace) { w.Start = "2040-02" })
	jfk := delays("2040-01")
	jfk.Workspace = "JFK"
	_, err := d.editor.SaveDefinition(ctx, jfk, "ann", 0)
	d.must(err)
	off := delays("2040-01")
	off.Type, off.Off = "weather", true
	_, err = d.editor.SaveDefinition(ctx, off, "ann", 0)
	d.must(err)
	ask := func(workspace, typ, m string) error {
		p := snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: typ}}
		if m != "" {
			p.Month = month(m)
		}
		_, err := d.editor.Request(ctx, p, "why not", "ann")
		return err
	}
	wantProblem(t, ask("EWR", "delays", "2040-03"), "month is 2040-03, which ends at 2040-04-01T04:00:00Z", "at the latest 2040-02")
	wantProblem(t, ask("EWR", "delays", "2039-12"), "month is 2039-12", "from 2040-01 on")
	wantProblem(t, ask("EWR", "delays", ""), "month is missing")
	wantProblem(t, ask("LGA", "delays", "2040-01"), `workspace is "LGA"`, "a workspace that exists")
	wantProblem(t, ask("EWR", "trips", "2040-01"), `type is "trips"`, "defined for workspace EWR")
	wantConflict(t, ask("EWR", "delays", "2040-02"), "loading: the source is complete up to 2040-02-02T00:00:00Z")
	wantConflict(t, ask("JFK", "delays", "2040-01"), "policy: workspace JFK starts in 2040-02")
	wantConflict(t, ask("EWR", "weather", "2040-01"), "policy: type weather is switched off")
	d.workspace("JFK", func(w *schedule.Workspace) { w.Removed = "2040-03-01" })
	wantConflict(t, ask("JFK", "delays", "2040-02"), "workspace JFK was removed")
	d.define("2040-01", func(def *snapshot.Definition) { def.LoadDelay, def.DueAfter = hours(24*20), hours(24*30) })
	wantConflict(t, ask("EWR", "delays", "2040-02"), "loading: the month is complete at 2040-03-21T05:00:00Z")
	if _, err := d.editor.Request(ctx, period("2040-01"), "", "ann"); err == nil {
		t.Error("a request without a reason")
	} else {
		wantProblem(t, err, "reason is missing")
	}
	d.define("2040-01", loading)
	d.broken = failure.New(failure.SourceUnavailable, "the source is away")
	if err := ask("EWR", "delays", "2040-01"); !failure.Is(err, failure.SourceUnavailable) {
		t.Errorf("got %v", err)
	}
	if got := d.ledger(); len(got) != 0 {
		t.Errorf("refused, and yet planned: %v", got)
	}
}

func TestAMonthHasAtMostSoManyVersions(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", loading)
	d.plan()
	d.set(schema.HeadKey("EWR", "delays", "2040-02"), "SET #l = :n", map[string]string{"#l": schema.Latest},
		map[string]dynamotypes.AttributeValue{":n": &dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(snapshot.MaxVersions)}})
	d.marks["EWR"] = d.wall()
	_, err := d.editor.Request(ctx, period("2040-02"), "again", "ann")
	wantConflict(t, err, "the month has 9999 versions")
	if got := d.plan(); got.Errors != 1 || got.Planned != 0 {
		t.Errorf("tally %+v", got)
	}
}

func TestBackfill(t *testing.T) {
	d := newDesk(t)
	d.workspace("JFK", func(w *schedule.Workspace) { w.Start = "2040-02" })
	d.define("2039-12", unchanged)
	jfk := delays("2039-12")
	jfk.Workspace = "JFK"
	_, err := d.editor.SaveDefinition(ctx, jfk, "ann", 0)
	d.must(err)
	d.plan()
	d.claim()
	d.publish(id("2039-12", 1))
	d.fail(id("2040-01", 1), failure.QueryInvalid)
	g := snapshot.Range{Series: []snapshot.Series{ewr, {Workspace: "JFK", Type: "delays"}}, From: month("2039-12"), To: month("2040-03")}
	want := []string{
		"EWR 2039-12 : version 1 is published; ask for a rerun of 2039-12 to replace it",
		"JFK 2039-12 : policy: workspace JFK starts in 2040-02",
		"EWR 2040-01 EWR_delays_2040-01_v2: ",
		"JFK 2040-01 : policy: workspace JFK starts in 2040-02",
		"EWR 2040-02 : version EWR_delays_2040-02_v1 is queued; wait until it has settled, or cancel it",
		"JFK 2040-02 : version JFK_delays_2040-02_v1 is queued; wait until it has settled, or cancel it",
		"EWR 2040-03 : month is 2040-03, which ends at 2040-04-01T04:00:00Z; want a month that has closed, at the latest 2040-02",
		"JFK 2040-03 : month is 2040-03, which ends at 2040-04-01T04:00:00Z; want a month that has closed, at the latest 2040-02",
	}
	lines := func(list []snapshot.Proposal) (out []string) {
		for _, p := range list {
			out = append(out, fmt.Sprintf("%s %s %s: %s", p.Workspace, p.Month, p.Run, p.Why))
		}
		return out
	}
	before := d.ledger()
	for _, dry := range []bool{true, false} {
		list, err := d.editor.Backfill(ctx, g, "the year is wanted", "ann", dry)
		d.must(err)
		if got := lines(list); !slices.Equal(got, want) {
			t.Errorf("dry run %v:\n  %s\nwant\n  %s", dry, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		if dry && !slices.Equal(d.ledger(), before) {
			t.Fatal("a dry run planned something")
		}
	}
	if r := d.run(id("2040-01", 2)); r.State != snapshot.Planned || !r.Backfill || r.RequestedBy != "ann" {
		t.Errorf("%+v", r)
	}
	list, err := d.editor.Backfill(ctx, g, "the year is wanted", "ann", false) // again: nothing is planned twice
	d.must(err)
	if slices.ContainsFunc(list, func(p snapshot.Proposal) bool { return p.Run != "" }) {
		t.Errorf("planned again: %v", lines(list))
	}
}

func TestBackfillRanges(t *testing.T) {
	d := newDesk(t)
	d.define("2039-12", unchanged)
	one := []snapshot.Series{ewr}
	for want, g := range map[string]snapshot.Range{
		"series is missing":                  {From: month("2040-01"), To: month("2040-01")},
		`series[1] is "EWR/delays" again`:    {Series: []snapshot.Series{ewr, ewr}, From: month("2040-01"), To: month("2040-01")},
		"from is missing":                    {Series: one, To: month("2040-01")},
		"to is missing":                      {Series: one, From: month("2040-01")},
		"to is 2039-12; want not before":     {Series: one, From: month("2040-01"), To: month("2039-12")},
		"to is 2240-01: 2401 periods in all": {Series: one, From: month("2040-01"), To: month("2240-01")},
	} {
		_, err := d.editor.Backfill(ctx, g, "why", "ann", true)
		wantProblem(t, err, want)
	}
	_, err := d.editor.Backfill(ctx, snapshot.Range{Series: one, From: month("2040-01"), To: month("2040-01")}, "", "ann", true)
	wantProblem(t, err, "reason is missing")
	list, err := d.editor.Backfill(ctx, snapshot.Range{Series: one, From: month("2039-11"), To: month("2039-12")}, "why", "ann", true)
	if err != nil || len(list) != 2 || !strings.Contains(list[0].Why, "from 2039-12 on") || list[1].Run == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A backfill that meets an error which is no refusal says how far it came.
func TestABackfillThatBreaks(t *testing.T) {
	d := newDesk(t)
	d.define("2039-12", loading)
	d.broken = failure.New(failure.SourceUnavailable, "the source is away")
	list, err := d.editor.Backfill(ctx, snapshot.Range{Series: []snapshot.Series{ewr}, From: month("2039-11"), To: month("2040-01")}, "why", "ann", false)
	if !failure.Is(err, failure.SourceUnavailable) || !strings.Contains(err.Error(), "EWR delays 2039-12") || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestRetryNow(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	run := id("2040-02", 1)
	_, err := d.editor.RetryNow(ctx, run, "now", "ann")
	wantConflict(t, err, "the run is planned")
	d.claim()
	d.fail(run, failure.QueryTimeout)
	_, err = d.editor.RetryNow(ctx, run, "", "ann")
	wantProblem(t, err, "reason is missing")
	asked := d.asked
	r, err := d.editor.RetryNow(ctx, run, "the source is back", "ann")
	d.must(err)
	if !r.NextAt.Equal(d.wall()) || d.asked == asked {
		t.Errorf("%+v", r)
	}
	d.wantAudit(run, "ann, retry now, the source is back")
	if got := d.claim(); got.Claimed != 1 {
		t.Errorf("tally %+v", got)
	}
	d.fail(run, failure.QueryInvalid)
	_, err = d.editor.RetryNow(ctx, run, "again", "ann")
	wantConflict(t, err, "the run is failed for good")
	if _, err := d.editor.RetryNow(ctx, id("2040-02", 9), "x", "ann"); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A cancellation in each active state frees the slot, clears the head and stops the job.
func TestCancelInEachState(t *testing.T) {
	for name, reach := range map[string]func(*desk, string){
		"planned":    func(*desk, string) {},
		"queued":     func(d *desk, _ string) { d.claim() },
		"running":    func(d *desk, id string) { d.claim(); d.begin(id) },
		"validating": func(d *desk, id string) { d.claim(); d.validating(id) },
		"failed":     func(d *desk, id string) { d.claim(); d.fail(id, failure.QueryTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.define("2040-02", unchanged)
			d.plan()
			run := id("2040-02", 1)
			reach(d, run)
			if s := d.run(run).State; string(s) != name {
				t.Fatalf("the run is %s", s)
			}
			asked := d.asked
			r, err := d.editor.Cancel(ctx, run, "wrong data", "ann")
			d.must(err)
			if r.State != snapshot.Cancelled || r.Reason != snapshot.ReasonOperator || r.ReasonText != "wrong data" || r.CancelledBy != "ann" || !r.NextAt.IsZero() {
				t.Errorf("%+v", r)
			}
			if h := d.head("2040-02"); h.Active != 0 || len(d.caps(snapshot.DefaultOwner).Slots) != 0 || len(d.jobs.running()) != 0 || d.asked == asked {
				t.Errorf("head %+v, slots %v, jobs %v", h, d.caps(snapshot.DefaultOwner).Slots, d.jobs.running())
			}
			d.wantAudit(run, "ann, cancel, wrong data")
			_, err = d.editor.Cancel(ctx, run, "again", "ann")
			wantConflict(t, err, "the run is cancelled")
		})
	}
}

func TestCancelRefusals(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	_, err := d.editor.Cancel(ctx, id("2040-02", 1), "", "ann")
	wantProblem(t, err, "reason is missing")
	_, err = d.editor.Cancel(ctx, id("2040-02", 2), "x", "ann")
	if !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	d.claim()
	d.jobs.stopping = errors.New("throttled") // the job's next write is refused anyway
	if r, err := d.editor.Cancel(ctx, id("2040-02", 1), "x", "ann"); err != nil || r.State != snapshot.Cancelled {
		t.Errorf("%+v, %v", r, err)
	}
	if !strings.Contains(d.log.String(), "could not be stopped") {
		t.Error("nothing says that the job runs on")
	}
}

func TestN1CancelAndPublish(t *testing.T) {
	t.Run("cancel first", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		d.plan()
		d.claim()
		run := id("2040-02", 1)
		d.validating(run)
		read := d.verdict(run)
		_, err := d.editor.Cancel(ctx, run, "x", "ann")
		d.must(err)
		wantConflict(t, d.store.Publish(ctx, read, snapshot.Pointer{Period: read.Period}, d.wall()), "refused")
		if p, err := d.store.Pointer(ctx, read.Period); err != nil || p.Version != 0 {
			t.Errorf("pointer %+v, %v", p, err)
		}
	})
	t.Run("publish first", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		d.plan()
		d.claim()
		d.publish(id("2040-02", 1))
		_, err := d.editor.Cancel(ctx, id("2040-02", 1), "x", "ann")
		wantConflict(t, err, "the run is published")
		if p, err := d.store.Pointer(ctx, period("2040-02")); err != nil || p.Version != 1 {
			t.Errorf("pointer %+v, %v", p, err)
		}
	})
}

// N17: between the cancellation's read and its write a dispatcher claims the run.
func TestN17CancelMeetsAClaim(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	once := true
	d.editor.Ledger = &meddled{d.store, func() {
		if once {
			once = false
			d.claim()
		}
	}}
	r, err := d.editor.Cancel(ctx, id("2040-02", 1), "x", "ann")
	d.must(err)
	if r.State != snapshot.Cancelled || r.Job != 1 || len(d.caps(snapshot.DefaultOwner).Slots) != 0 || len(d.jobs.running()) != 0 {
		t.Errorf("%+v, slots %v, jobs %v", r, d.caps(snapshot.DefaultOwner).Slots, d.jobs.running())
	}
}

func TestN16RollBack(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	for n := 1; n <= 3; n++ {
		if n > 1 {
			_, err := d.editor.Request(ctx, period("2040-02"), "again", "ann")
			d.must(err)
		}
		d.claim()
		d.publish(id("2040-02", n))
	}
	_, err := d.editor.Request(ctx, period("2040-02"), "again", "ann")
	d.must(err)
	d.claim()
	d.validating(id("2040-02", 4))
	d.verdict(id("2040-02", 4)) // against version 3
	_, err = d.editor.RollBack(ctx, period("2040-02"), 2, "version 3 is wrong", "ann")
	c := wantConflict(t, err, "roll back refused", "EWR_delays_2040-02_v4 is validating")
	if c.Run == nil || c.Run.Version != 4 {
		t.Errorf("%+v", c.Run)
	}
	_, err = d.editor.Cancel(ctx, id("2040-02", 4), "x", "ann")
	d.must(err)
	p, err := d.editor.RollBack(ctx, period("2040-02"), 2, "version 3 is wrong", "ann")
	if err != nil || p.Version != 2 || p.Previous != 3 || p.MovedBy != "ann" || p.Reason != "version 3 is wrong" || p.Manifest != d.run(id("2040-02", 2)).Manifest() {
		t.Errorf("%+v, %v", p, err)
	}
	d.wantAudit(id("2040-02", 2), "ann, roll back, version 3 is wrong")
	for want, version := range map[string]int{"version 2 is the current one already": 2, "version 4 is cancelled; only a published version": 4} {
		_, err := d.editor.RollBack(ctx, period("2040-02"), version, "x", "ann")
		wantConflict(t, err, want)
	}
	for _, version := range []int{0, -1, 10_000} {
		_, err := d.editor.RollBack(ctx, period("2040-02"), version, "x", "ann")
		wantProblem(t, err, fmt.Sprintf("version is %d", version))
	}
	if _, err := d.editor.RollBack(ctx, period("2040-02"), 9, "x", "ann"); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	_, err = d.editor.RollBack(ctx, period("2040-01"), 1, "x", "ann")
	wantConflict(t, err, "nothing of 2040-01 is published")
	_, err = d.editor.RollBack(ctx, period("2040-02"), 3, "", "ann")
	wantProblem(t, err, "reason is missing")
}

// N16, as a race: a version becomes active between the roll back's read and its write.
func TestN16RollBackMeetsARequest(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2040-02", 1))
	_, err := d.editor.Request(ctx, period("2040-02"), "again", "ann")
	d.must(err)
	d.claim()
	d.publish(id("2040-02", 2))
	other := *d.editor
	once := true
	d.editor.Ledger = &meddled{d.store, func() {
		if once {
			once = false
			_, err := other.Request(ctx, period("2040-02"), "again", "ben")
			d.must(err)
		}
	}}
	_, err = d.editor.RollBack(ctx, period("2040-02"), 1, "x", "ann")
	wantConflict(t, err, "EWR_delays_2040-02_v3 is planned")
}

// meddled is the store with something that happens after each pointer or run is read.
type meddled struct {
	snapshot.PeopleLedger
	meddle func()
}

func (m *meddled) Run(c context.Context, id string) (snapshot.Run, error) {
	r, err := m.PeopleLedger.Run(c, id)
	m.meddle()
	return r, err
}
