package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Without any event about a job's status the reconciler settles what a job left, in each admitted state and however the
// job ended.
func TestJobsThatEndedWithoutSettling(t *testing.T) {
	for _, detail := range []string{"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"} {
		for name, reach := range map[string]func(*desk, string){
			"queued":     func(*desk, string) {},
			"running":    func(d *desk, id string) { d.begin(id) },
			"validating": func(d *desk, id string) { d.validating(id) },
		} {
			t.Run(detail+" while "+name, func(t *testing.T) {
				d := newDesk(t)
				d.define("2040-02", unchanged)
				d.plan()
				d.claim()
				run := id("2040-02", 1)
				reach(d, run)
				if f := d.mend(); f.Lost != 0 || f.Drift != 0 || f.Errors != 0 {
					t.Fatalf("a job that runs was settled: %+v", f)
				}
				d.jobs.close("EWR_delays_2040-02_v1-j1", detail)
				asked := d.asked
				if f := d.mend(); f.Lost != 1 || f.Drift != 0 {
					t.Fatalf("findings %+v", f)
				}
				r := d.wantState(run, snapshot.Failed, failure.JobLost)
				if r.Failures != 1 || !r.NextAt.Equal(d.wall().Add(5*time.Minute)) || string(r.FailedIn) != name || !strings.Contains(r.ErrorText, detail) {
					t.Errorf("%+v", r)
				}
				if len(d.caps(snapshot.DefaultOwner).Slots) != 0 || d.asked == asked {
					t.Error("the slot was not freed, or no dispatch was asked for")
				}
				if f := d.mend(); f.Lost != 0 {
					t.Errorf("settled twice: %+v", f)
				}
			})
		}
	}
}

// A job that does not exist counts as gone only after five minutes, whether or not its first step was seen.
func TestAJobThatIsGone(t *testing.T) {
	for name, reach := range map[string]func(*desk, string){"queued": func(*desk, string) {}, "running": func(d *desk, id string) { d.begin(id) }} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.define("2040-02", unchanged)
			d.plan()
			d.claim()
			reach(d, id("2040-02", 1))
			d.jobs.forget("EWR_delays_2040-02_v1-j1")
			d.advance(4*time.Minute + 59*time.Second)
			if f := d.mend(); f.Lost != 0 {
				t.Fatalf("gone after 4:59: %+v", f)
			}
			d.advance(time.Second)
			if f := d.mend(); f.Lost != 1 {
				t.Fatalf("not gone after 5:00: %+v", f)
			}
			r := d.wantState(id("2040-02", 1), snapshot.Failed, failure.JobLost)
			if r.ErrorText != "there is no attempt job EWR_delays_2040-02_v1-j1" {
				t.Errorf("%q", r.ErrorText)
			}
		})
	}
}

// N8, by the reconciler: the dispatcher's ticks are not needed for it.
func TestN8TheReconcilerOffersAgain(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.jobs.before = func(string) error { return errLost }
	d.claim()
	d.jobs.before = nil
	d.advance(4*time.Minute + 59*time.Second)
	if f := d.mend(); f.Reoffered != 0 || f.OldestQueued != 4*time.Minute+59*time.Second {
		t.Errorf("after 4:59: %+v", f)
	}
	d.advance(time.Second)
	if f := d.mend(); f.Reoffered != 1 || d.jobs.starts != 1 {
		t.Errorf("after 5:00: %+v", f)
	}
	if d.counts["snapshots_queued_oldest_seconds"] == 0 {
		t.Error("nothing counts the age of the oldest queued row")
	}
}

func TestAFourthLossIsFinal(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	for range 4 {
		d.claim()
		d.jobs.close(d.run(id("2040-02", 1)).JobName(), "ABORTED")
		d.mend()
		d.advance(2 * time.Hour)
	}
	r := d.wantState(id("2040-02", 1), snapshot.Failed, failure.JobLost)
	if !r.Final() || d.counts["snapshot_failures final"] != 1 || d.counts["snapshot_failures retried"] != 3 {
		t.Errorf("%+v, counts %v", r, d.counts)
	}
	if f := d.mend(); f.FinalFailures != 1 {
		t.Errorf("findings %+v", f)
	}
	if _, err := d.editor.Request(ctx, period("2040-02"), "the cause is gone", "ann"); err != nil {
		t.Fatal(err)
	}
	if f := d.mend(); f.FinalFailures != 0 {
		t.Errorf("a version has followed, and the failure is still counted: %+v", f)
	}
}

// Slots whose run is not admitted are freed, and counted as drift.
func TestSlotsOfRunsThatAreNotAdmitted(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2040-01", 1))
	slot := func(run string) {
		key := schema.CapsKey(snapshot.DefaultOwner)
		for _, m := range []string{schema.Slots, schema.Backfill} {
			d.set(key, "SET #m.#r = :v", map[string]string{"#m": m, "#r": run}, map[string]dynamotypes.AttributeValue{":v": &dynamotypes.AttributeValueMemberBOOL{Value: true}})
		}
	}
	slot(id("2040-01", 1)) // published
	slot(id("2039-01", 7)) // there is no such run
	asked := d.asked
	if f := d.mend(); f.Drift != 2 || f.Errors != 0 || d.asked == asked {
		t.Errorf("findings %+v", f)
	}
	if c := d.caps(snapshot.DefaultOwner); len(c.Slots) != 1 || c.Slots[0] != id("2040-02", 1) || len(c.Backfills) != 0 {
		t.Errorf("caps %+v", c)
	}
	if f := d.mend(); f.Drift != 0 {
		t.Errorf("drift where there is none: %+v", f)
	}
}

// A run that has a slot and that the index forgot is looked at all the same.
func TestARunThatTheIndexForgot(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	r := d.run(id("2040-02", 1))
	d.set(schema.SnapshotKey(r.Workspace, r.Type, r.Month.String(), r.Version), "REMOVE #w", map[string]string{"#w": schema.Work}, nil)
	d.jobs.close(r.JobName(), "FAILED")
	if f := d.mend(); f.Lost != 1 {
		t.Errorf("findings %+v", f)
	}
}

func TestN10LatenessAndFinalFailuresAreApart(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", loading) // February loads, and is late from 4 March on
	d.plan()
	f := d.mend()
	if f.Late != 1 || f.OldestLate != 31*time.Hour || f.FinalFailures != 0 {
		t.Fatalf("findings %+v", f)
	}
	d.define("2039-03", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2039-03", 1))
	if f := d.mend(); f.Late < 1 || f.FinalFailures != 0 {
		t.Errorf("an old month's publication silenced a new one's lateness: %+v", f)
	}
	if r := d.run(id("2040-02", 1)); r.State != snapshot.Skipped {
		t.Fatalf("February is %s", r.State)
	}
	if d.counts["snapshots_late"] == 0 || d.counts["snapshots_failed_for_good"] != 0 {
		t.Errorf("counts %v", d.counts)
	}
}

// Who is late, and who is not.
func TestLateness(t *testing.T) {
	late := func(d *desk) snapshot.Findings { d.t.Helper(); d.plan(); return d.mend() }
	t.Run("planned, until it is published", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		if f := late(d); f.Late != 1 || f.OldestLate != 31*time.Hour {
			t.Errorf("%+v", f)
		}
		d.claim()
		d.publish(id("2040-02", 1))
		if f := d.mend(); f.Late != 0 {
			t.Errorf("published: %+v", f)
		}
		if _, err := d.editor.Request(ctx, period("2040-02"), "again", "ann"); err != nil {
			t.Fatal(err)
		}
		if f := d.mend(); f.Late != 0 {
			t.Errorf("a rerun of what is published is late: %+v", f)
		}
	})
	t.Run("not before it is due", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", func(def *snapshot.Definition) { def.DueAfter = hours(24*4 + 8) })
		if f := late(d); f.Late != 0 {
			t.Errorf("%+v", f)
		}
		d.advance(time.Hour)
		if f := d.mend(); f.Late != 1 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("failed for good, and cancelled by a person", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-01", unchanged)
		d.plan()
		d.claim()
		d.fail(id("2040-01", 1), failure.QueryInvalid)
		if _, err := d.editor.Cancel(ctx, id("2040-02", 1), "wrong data", "ann"); err != nil {
			t.Fatal(err)
		}
		if f := late(d); f.Late != 2 || f.FinalFailures != 1 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("failed for good, and then the workspace is removed", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		d.plan()
		d.claim()
		d.fail(id("2040-02", 1), failure.QueryInvalid)
		d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-03-05" })
		if f := late(d); f.Late != 0 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("waived, also afterwards", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", unchanged)
		late(d)
		d.define("2040-02", func(def *snapshot.Definition) {
			def.Waived = []snapshot.Waiver{{Month: month("2040-02"), Reason: "the source was moved"}}
		})
		if f := late(d); f.Late != 0 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("type off, workspace removed, before its start", func(t *testing.T) {
		d := newDesk(t)
		d.workspace("EWR", func(w *schedule.Workspace) { w.Start = "2040-02" })
		d.define("2040-01", loading)
		if f := late(d); f.Late != 1 {
			t.Errorf("a month that loads: %+v", f)
		}
		d.define("2040-01", func(def *snapshot.Definition) { loading(def); def.Off = true })
		if f := late(d); f.Late != 0 {
			t.Errorf("type off: %+v", f)
		}
		d.define("2040-01", loading)
		if f := late(d); f.Late != 1 {
			t.Errorf("on again: %+v", f)
		}
		d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-03-05" })
		if f := late(d); f.Late != 0 {
			t.Errorf("workspace removed: %+v", f)
		}
	})
	t.Run("never planned", func(t *testing.T) {
		d := newDesk(t)
		d.define("2040-02", loading)
		d.broken = failure.New(failure.SourceUnavailable, "the source is away")
		if f := late(d); f.Late != 1 || f.OldestLate != 31*time.Hour {
			t.Errorf("%+v", f)
		}
		waive := func(months ...string) {
			d.broken = nil
			d.define("2040-02", func(def *snapshot.Definition) {
				loading(def)
				for _, m := range months {
					def.Waived = append(def.Waived, snapshot.Waiver{Month: month(m), Reason: "the source was away"})
				}
			})
			d.broken = failure.New(failure.SourceUnavailable, "the source is away")
		}
		waive("2040-02")
		if f := late(d); f.Late != 0 {
			t.Errorf("waived: %+v", f)
		}
		d.advance(35 * 24 * time.Hour) // 9 April: March is late too
		if f := d.mend(); f.Late != 1 {
			t.Errorf("the month after the one that is waived: %+v", f)
		}
	})
}

// What runs left is removed a week after they settled, under their own prefix, and nothing that a manifest names.
func TestLeftovers(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	run := id("2040-02", 1)
	d.begin(run)
	prefix := snapshot.RunPrefix(period("2040-02"), 1)
	twin := snapshot.GenerationPrefix(period("2040-02"), 1, 1) + "chunk-00000000-twin.csv.gz"
	old := snapshot.GenerationPrefix(period("2040-02"), 1, 0) + "chunk-00000000-old.csv.gz"
	tenth := snapshot.RunPrefix(period("2040-02"), 10) + "other"
	for _, key := range []string{twin, old, tenth} {
		d.put(key, "leftover")
	}
	r := d.run(run)
	object := snapshot.GenerationPrefix(r.Period, 1, 1) + "chunk-00000000-mine.csv.gz"
	d.put(object, "rows")
	d.must(d.store.Commit(ctx, r, snapshot.Chunk{Object: object, Rows: 1, Increasing: true}, snapshot.Cursor{Chunk: 1, Rows: 1, Done: true}, d.wall()))
	_, err := d.store.BeginValidation(ctx, d.run(run), d.wall())
	d.must(err)
	r = d.verdict(run)
	d.must(d.store.Publish(ctx, r, snapshot.Pointer{Period: r.Period}, d.wall()))
	d.jobs.close(r.JobName(), "SUCCEEDED")

	second, err := d.editor.Request(ctx, period("2040-02"), "again", "ann")
	d.must(err)
	d.claim()
	d.validating(second.ID())
	if _, err := d.editor.Cancel(ctx, second.ID(), "not needed", "ann"); err != nil {
		t.Fatal(err)
	}
	d.advance(7*24*time.Hour - time.Second)
	if f := d.mend(); f.Cleaned != 0 {
		t.Fatalf("cleaned before a week was over: %+v", f)
	}
	d.advance(time.Second)
	f := d.mend()
	if f.Cleaned != 2 || f.Removed != 3 || f.Errors != 0 {
		t.Errorf("findings %+v", f)
	}
	manifest := snapshot.ManifestKey(r.Period, 1, r.Manifest())
	if got := d.objects(prefix); len(got) != 2 || got[0] != object || got[1] != manifest {
		t.Errorf("left: %v", got)
	}
	if got := d.objects(snapshot.RunPrefix(period("2040-02"), 2)); len(got) != 0 {
		t.Errorf("left of the cancelled run: %v", got)
	}
	if got := d.objects(tenth); len(got) != 1 {
		t.Error("another version's object was removed")
	}
	if f := d.mend(); f.Cleaned != 0 {
		t.Errorf("cleaned twice: %+v", f)
	}
}

// A published run whose manifest cannot be read keeps everything, and is tried again.
func TestLeftoversOfALostManifest(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	d.publish(id("2040-02", 1))
	r := d.run(id("2040-02", 1))
	manifest := snapshot.ManifestKey(r.Period, 1, r.Manifest())
	body := "{}"
	d.put(manifest, body) // somebody changed it
	before := d.objects("snapshots/")
	d.advance(8 * 24 * time.Hour)
	d.counts = map[string]int{}
	if f := d.mend(); f.Cleaned != 0 || f.Errors != 1 || !f.Partial {
		t.Errorf("findings %+v", f)
	}
	if _, sent := d.counts["snapshots_late"]; !sent {
		t.Error("what cannot be removed silences the numbers")
	}
	if after := d.objects("snapshots/"); len(after) != len(before) {
		t.Errorf("%v, then %v", before, after)
	}
}

// A number that may be too low is not sent: it would silence an alarm.
func TestNumbersThatMayBeTooLowAreNotSent(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	d.counts = map[string]int{}
	short, cancel := context.WithDeadline(ctx, d.wall().Add(4*time.Second))
	defer cancel()
	f, err := d.mender.Tick(short)
	d.must(err)
	if _, sent := d.counts["snapshots_late"]; !f.Partial || sent || d.counts["snapshot_reconcile_errors"] != 1 {
		t.Errorf("%+v, counts %v; want no number, and the trouble told", f, d.counts)
	}
	d.jobs.describing = errors.New("throttled")
	if f := d.mend(); f.Errors != 1 || !f.Partial {
		t.Errorf("%+v", f)
	}
	if _, sent := d.counts["snapshots_late"]; sent {
		t.Error("sent although a job could not be looked at")
	}
	d.jobs.describing = nil
	d.mend()
	if _, sent := d.counts["snapshots_late"]; !sent {
		t.Error("not sent")
	}
}
