package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// nominals are the times of day of the due runs, the earliest first.
func (w *world) nominals(id string) string {
	var at []string
	runs := w.runs(id)
	for i := len(runs) - 1; i >= 0; i-- {
		if !runs[i].Manual {
			at = append(at, runs[i].Nominal.Format("15:04"))
		}
	}
	return strings.Join(at, " ")
}

// ranges are the skip records, as kind first–last count.
func (w *world) ranges(id string) string {
	var out []string
	for _, s := range w.skips(id) {
		out = append(out, fmt.Sprintf("%s %s–%s %d", s.Kind, s.First.Format("15:04"), s.Last.Format("15:04"), s.Count))
	}
	return strings.Join(out, ", ")
}

func TestV12CatchUp(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*schedule.Definition)
		ran    string
		ranges string
	}{
		{"latest by default", func(*schedule.Definition) {}, "15:00", "missed 13:00–14:00 2"},
		{"latest", func(d *schedule.Definition) { d.CatchUp = schedule.CatchUpLatest }, "15:00", "missed 13:00–14:00 2"},
		{"all", func(d *schedule.Definition) { d.CatchUp = schedule.CatchUpAll }, "13:00 14:00 15:00", ""},
		{"all within a window", func(d *schedule.Definition) {
			d.CatchUp, d.CatchUpWindow = schedule.CatchUpAll, schedule.Duration(90*time.Minute)
		}, "14:00 15:00", "missed 13:00–13:00 1"},
		{"none", func(d *schedule.Definition) { d.CatchUp = schedule.CatchUpNone }, "", "missed 13:00–15:00 3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Recurrence.Cron = hourly
			row.change(&d)
			w.apply(d)
			w.to(start.Add(3*time.Hour + 11*time.Minute)) // 13:00, 14:00 and 15:00 were missed
			w.tick()
			if got := w.nominals("s"); got != row.ran {
				t.Errorf("ran %q, want %q", got, row.ran)
			}
			if got := w.ranges("s"); got != row.ranges {
				t.Errorf("skipped %q, want %q", got, row.ranges)
			}
			// Whatever was dropped, the next one runs in its time.
			w.to(start.Add(4 * time.Hour))
			w.tick()
			if got := w.nominals("s"); !strings.HasSuffix(got, "16:00") {
				t.Errorf("then ran %q", got)
			}
		})
	}
	t.Run("a tick 61 s late misses nothing", func(t *testing.T) {
		for _, policy := range []schedule.CatchUp{schedule.CatchUpLatest, schedule.CatchUpAll, schedule.CatchUpNone} {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Recurrence.Cron, d.CatchUp = hourly, policy
			w.apply(d)
			w.to(start.Add(time.Hour + 61*time.Second))
			w.tick()
			if w.nominals("s") != "13:00" || w.ranges("s") != "" {
				t.Errorf("%s: %q %q", policy, w.nominals("s"), w.ranges("s"))
			}
		}
	})
}

// An outage that is seen bit by bit is one range: the record is extended, not written anew.
func TestASkipRecordIsExtendedWhileItsRangeGoesOn(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron, d.CatchUp = hourly, schedule.CatchUpNone
	w.apply(d)
	for _, hours := range []int{1, 2, 3, 4} {
		w.to(start.Add(time.Duration(hours)*time.Hour + 30*time.Minute))
		w.tick()
	}
	if got := w.ranges("s"); got != "missed 13:00–16:00 4" {
		t.Errorf("skipped %q", got)
	}
	w.to(start.Add(5 * time.Hour)) // in time: it runs, and the range has ended
	w.tick()
	w.to(start.Add(6*time.Hour + 30*time.Minute))
	w.tick()
	if got := w.ranges("s"); got != "missed 18:00–18:00 1, missed 13:00–16:00 4" || w.nominals("s") != "17:00" {
		t.Errorf("skipped %q, ran %q", got, w.nominals("s"))
	}
}

func TestV13Overlap(t *testing.T) {
	for _, policy := range []schedule.Overlap{"", schedule.OverlapAllow, schedule.OverlapSkip} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Recurrence.Cron, d.Overlap = hourly, policy
			w.apply(d)
			w.to(start.Add(time.Hour))
			w.tick() // 13:00 is admitted, and nobody works on it
			for _, hours := range []int{2, 3} {
				w.to(start.Add(time.Duration(hours) * time.Hour))
				w.tick()
			}
			manual, _, err := w.editor.RunNow(ctx, "s", "ann", "k", "h")
			w.must(err) // a manual run is never held back
			if policy != schedule.OverlapSkip {
				if w.nominals("s") != "13:00 14:00 15:00" || w.ranges("s") != "" {
					t.Fatalf("ran %q, skipped %q", w.nominals("s"), w.ranges("s"))
				}
				w.quiet()
				keys := map[string]bool{}
				for _, r := range w.runs("s") {
					w.wantState(r.ID(), schedule.Succeeded, "")
					keys[r.File.Key] = true
				}
				if ids := w.hooks.keys("b"); len(keys) != 4 || len(ids) != 4 {
					t.Errorf("%d files, %d keys", len(keys), len(ids))
				}
				return
			}
			if w.nominals("s") != "13:00" || w.ranges("s") != "overlap 14:00–15:00 2" {
				t.Fatalf("ran %q, skipped %q", w.nominals("s"), w.ranges("s"))
			}
			w.quiet()
			w.wantState(manual.ID(), schedule.Succeeded, "")
			w.to(start.Add(4 * time.Hour))
			w.tick() // the run has settled
			if w.nominals("s") != "13:00 16:00" {
				t.Errorf("ran %q", w.nominals("s"))
			}
		})
	}
}

// keys are the distinct idempotency keys that a receiver saw.
func (r *receivers) keys(name string) map[string]bool {
	ids := map[string]bool{}
	for _, p := range r.to(name) {
		ids[p.key] = true
	}
	return ids
}

// The next occurrence is passed over on the condition that the run is still open as read: where it settles between read
// and write, the occurrence runs.
func TestV13ASettleBetweenReadAndPassOverLetsTheNextRun(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron, d.Overlap = hourly, schedule.OverlapSkip
	w.apply(d)
	w.to(start.Add(time.Hour))
	w.tick()
	w.to(start.Add(2 * time.Hour))
	settled := false
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "dispatch" && c.name == "DynamoDB.TransactWriteItems" && !settled {
			settled = true
			w.faults.plan = nil
			w.drain()
		}
		return none
	}
	w.tick()
	if w.nominals("s") != "13:00 14:00" || w.ranges("s") != "" {
		t.Errorf("ran %q, skipped %q", w.nominals("s"), w.ranges("s"))
	}
	w.quiet()
	for _, r := range w.runs("s") {
		w.wantState(r.ID(), schedule.Succeeded, "")
	}
}

// Jitter spreads admissions; names, periods and lateness stay with the nominal time.
func TestJitterDelaysTheAdmissionOnly(t *testing.T) {
	w := newWorld(t)
	delays := map[time.Duration]bool{}
	for i := range 8 {
		d := w.definition(fmt.Sprintf("s%d", i), "b")
		d.Recurrence.Cron, d.Recurrence.Jitter = hourly, "30m"
		w.apply(d)
	}
	admitted := map[string]time.Duration{}
	for minute := range 32 {
		w.to(start.Add(time.Hour + time.Duration(minute)*time.Minute))
		w.tick()
		for i := range 8 {
			id := fmt.Sprintf("s%d", i)
			if _, known := admitted[id]; !known && len(w.runs(id)) == 1 {
				admitted[id] = time.Duration(minute) * time.Minute
				delays[admitted[id]] = true
				if r := w.runs(id)[0]; !r.Nominal.Equal(start.Add(time.Hour)) || len(w.skips(id)) != 0 {
					t.Errorf("%s: nominal %s, skipped %s", id, r.Nominal, w.ranges(id))
				}
			}
		}
	}
	if len(admitted) != 8 || len(delays) < 3 {
		t.Errorf("admitted %v", admitted)
	}
}

// A recurrence that is over is refused where a person would wait for it in vain; a schedule whose last occurrence has run
// stays as it is, and its other fields can be edited.
func TestARecurrenceThatIsOverIsRefused(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron, d.Recurrence.End = hourly, start.Add(90*time.Minute).Format(time.RFC3339)
	w.apply(d)
	late := w.definition("late", "b")
	late.Recurrence.Cron, late.Recurrence.End = hourly, start.Format(time.RFC3339)
	if _, err := w.editor.Apply(ctx, late, "ann", 0); err == nil || !strings.Contains(err.Error(), "recurrence") || !strings.Contains(err.Error(), "later end") {
		t.Errorf("create: %v", err)
	}
	w.to(start.Add(time.Hour))
	w.tick()
	if s := w.schedule("s"); !s.NextDue.IsZero() || s.State != schedule.Active || w.nominals("s") != "13:00" {
		t.Errorf("%+v ran %q", s, w.nominals("s"))
	}
	w.quiet()
	d.Name = "Another name"
	w.apply(d)
	d.Recurrence.End = start.Add(80 * time.Minute).Format(time.RFC3339)
	if _, err := w.editor.Apply(ctx, d, "ann", 0); err == nil || !strings.Contains(err.Error(), "no occurrence after") {
		t.Errorf("edit: %v", err)
	}
	_, err := w.editor.Pause(ctx, "s", "because", "ann")
	w.must(err)
	if _, err := w.editor.Resume(ctx, "s", "because", "ann"); err == nil || !strings.Contains(err.Error(), "then resume it") {
		t.Errorf("resume: %v", err)
	}
}
