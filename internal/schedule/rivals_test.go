package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// Two workers on one run: the first is held at each of its calls in turn, another works the run to its end, then the
// first goes on (S12). Whether its lease had ended meanwhile, or its clock was behind (S13), nothing happens twice.
func TestS12TwoWorkersOnOneRunHeldAtEachCall(t *testing.T) {
	ran := 0
	for _, kind := range []struct {
		name  string
		later time.Duration // until the other worker comes
	}{{"lease over", deliverTime + time.Minute + time.Second}, {"lease alive", 30 * time.Second}, {"S13 other clock two minutes ahead", deliverTime - 30*time.Second + 2*time.Minute}} {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.step = 5 * time.Second
			run := w.admitted(w.definition("s", recipients3...))
			z, held := w.freezeDeliver(n)
			if !held {
				w.hooks.server.Close()
				break
			}
			w.advance(kind.later)
			w.raw(schedule.EncodeMessage(run))
			w.minute()
			w.drain()
			taken := w.run(run).File
			z.release()
			w.quiet()
			name := fmt.Sprintf("%s, held at %d (%s)", kind.name, n, strings.Join(w.faults.log[len(w.faults.log)-1:], ""))
			if err := w.check(run, recipients3...); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, w.dump())
			}
			r := w.run(run)
			if r.State != schedule.Succeeded && (r.ErrorCode != string(failure.DeliveryUnknown) || r.State != schedule.Failed) {
				t.Fatalf("%s: %s %s\n%s", name, r.State, r.ErrorCode, w.dump())
			}
			if taken != nil && r.File.Key != taken.Key {
				t.Fatalf("%s: the winner's file %s was replaced by %s", name, taken.Key, r.File.Key)
			}
			w.hooks.server.Close()
			ran++
		}
	}
	if ran < 40 {
		t.Fatalf("only %d interleavings ran", ran)
	}
	t.Logf("%d interleavings", ran)
}

func TestZombieWithAFileOfItsOwnLeavesTheWinners(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	ms := w.receive(w.queue.URL)
	inv := w.invoke("deliver", deliverTime)
	puts, seen := 0, false
	w.faults.plan = func(c outside) fault {
		if c.inv == inv && c.name == "S3.PutObject" {
			puts = inv.calls
		}
		return none
	}
	// Held at the call after its upload: the write that records the file.
	z := &frozen{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	plan := w.faults.plan
	w.faults.plan = func(c outside) fault {
		if c.inv == inv && puts > 0 && c.name == "DynamoDB.UpdateItem" && !seen {
			seen = true
			close(z.held)
			<-z.thaw
		}
		return plan(c)
	}
	go func() { defer close(z.finished); w.consume(inv, ms) }()
	<-z.held
	w.sandbox()
	w.advance(7 * time.Minute)
	w.minute()
	w.drain()
	winner := w.run(run).File
	z.release()
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if n := len(w.objects()); n != 2 || winner == nil || r.File.Key != winner.Key {
		t.Errorf("%d objects; recorded %v, winner's %v", n, r.File, winner)
	}
	if err := w.check(run, "b"); err != nil {
		t.Error(err)
	}
}

// Two dispatchers, one held at each of its calls while the other ticks.
func TestD16TwoDispatchersHeldAtEachCall(t *testing.T) {
	ran := 0
	for _, rearmed := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Recurrence.Cron = "*/5 * * * *"
			w.apply(d)
			w.to(start.Add(5 * time.Minute))
			inv := w.invoke("dispatch", dispatchTime)
			z, held := w.freeze(inv, n, func() {
				if _, err := w.dispatcher.Tick(inv); err != nil {
					t.Error(err)
				}
			})
			if !held {
				w.hooks.server.Close()
				break
			}
			w.tick() // claims, and the schedule is active and due again at another time
			if rearmed {
				w.advance(5 * time.Minute)
				w.tick()
			}
			z.release()
			w.end(inv)
			want := 1
			if rearmed {
				want = 2
			}
			if runs := w.runs("s"); len(runs) != want || len(w.skips("s")) != 0 {
				t.Fatalf("held at %d: %d runs, want %d\n%s", n, len(runs), want, w.dump())
			}
			if s := w.schedule("s"); !s.NextDue.Equal(start.Add(time.Duration(want+1) * 5 * time.Minute)) {
				t.Fatalf("held at %d: next due %s", n, s.NextDue)
			}
			w.pass(10 * time.Second)
			for _, r := range w.runs("s") {
				w.wantState(r.ID(), schedule.Succeeded, "")
			}
			if len(w.hooks.posts) != want {
				t.Fatalf("held at %d: %d requests", n, len(w.hooks.posts))
			}
			w.hooks.server.Close()
			ran++
		}
	}
	t.Logf("%d interleavings", ran)
}

// V14: the dispatcher has read version 3, a user saves version 4, the dispatcher admits. And at every other moment.
func TestV14EditWhileADispatcherIsHeldAtEachCall(t *testing.T) {
	refused := 0
	for n := 1; ; n++ {
		w := newWorld(t)
		d := w.definition("s", "b")
		d.Recurrence.Cron = hourly
		w.apply(d)
		w.to(start.Add(time.Hour)) // due 13:00
		inv := w.invoke("dispatch", dispatchTime)
		z, held := w.freeze(inv, n, func() {
			if _, err := w.dispatcher.Tick(inv); err != nil {
				t.Error(err)
			}
		})
		if !held {
			w.hooks.server.Close()
			break
		}
		d.Recurrence.Cron = "30 20 * * *"
		w.apply(d)
		z.release()
		w.end(inv)
		s := w.schedule("s")
		if want := start.Add(8*time.Hour + 30*time.Minute); !s.NextDue.Equal(want) || s.Version != 2 {
			t.Fatalf("held at %d: next due %s is no time that version 2 has; want %s", n, s.NextDue, want)
		}
		runs := w.runs("s")
		for _, r := range runs {
			if r.Version != 1 || !r.Nominal.Equal(start.Add(time.Hour)) {
				t.Fatalf("held at %d: run %s of version %d", n, r.ID(), r.Version)
			}
		}
		if len(runs) == 0 {
			refused++
		}
		w.hooks.server.Close()
	}
	if refused == 0 {
		t.Error("no admission was refused: the edit never came between read and write")
	}
}

// V15: the editor is held at each of its calls while 13:00 is being admitted.
func TestV15AdmissionWhileAnEditorIsHeldAtEachCall(t *testing.T) {
	for _, cron := range []string{"*/30 * * * *", "0 13,14 * * *", hourly} {
		for n := 1; ; n++ {
			w := newWorld(t)
			d := w.definition("s", "b")
			d.Recurrence.Cron = "0 * * * 1-7"
			w.apply(d)
			w.to(start.Add(59*time.Minute + 59*time.Second))
			inv := w.invoke("api", dispatchTime)
			d.Recurrence.Cron = cron
			z, held := w.freeze(inv, n, func() {
				if _, err := w.editor.Apply(inv, d, "ann", 0); err != nil {
					t.Error(err)
				}
			})
			if !held {
				w.hooks.server.Close()
				break
			}
			w.advance(time.Second)
			w.tick()
			z.release()
			s := w.schedule("s")
			if !s.NextDue.After(s.LastNominal) || s.Version != 2 {
				t.Fatalf("held at %d: next due %s, last %s, version %d", n, s.NextDue, s.LastNominal, s.Version)
			}
			w.to(start.Add(2 * time.Hour)) // it never stands still, and nothing is admitted twice
			w.tick()
			if s := w.schedule("s"); !s.LastNominal.Equal(start.Add(2 * time.Hour)) {
				t.Fatalf("held at %d, %s: the schedule stands at %s", n, cron, s.LastNominal)
			}
			seen := map[string]bool{}
			for _, r := range w.runs("s") {
				if seen[r.Occurrence] {
					t.Fatalf("admitted twice: %s", r.Occurrence)
				}
				seen[r.Occurrence] = true
			}
			if len(seen) < 2 || !seen[schedule.OccurrenceKey(start.Add(time.Hour))] {
				t.Fatalf("held at %d, %s: %v", n, cron, seen)
			}
			w.hooks.server.Close()
		}
	}
}

// An edit whose caller named the version that it had seen survives a move of the due time, and no other edit.
func TestEditWithTheVersionSeen(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	w.apply(d)
	d.Name = "Other"
	if _, err := w.editor.Apply(ctx, d, "ann", 7); !schedule.IsConflict(err) || !strings.Contains(err.Error(), "version 7") {
		t.Errorf("%v", err)
	}
	w.to(firstDue)
	inv := w.invoke("api", dispatchTime)
	ticked := false
	w.faults.plan = func(c outside) fault {
		if c.inv == inv && c.name == "DynamoDB.TransactWriteItems" && !ticked {
			ticked = true
			w.tick()
		}
		return none
	}
	if c, err := w.editor.Apply(inv, d, "ann", 1); err != nil || c.Version != 2 {
		t.Fatal(c, err)
	}
	if _, err := w.editor.Apply(ctx, w.definition("s", "c"), "ann", 1); !schedule.IsConflict(err) {
		t.Errorf("%v", err)
	}
}

// Two people create and edit at once: one version each, none lost.
func TestTwoEditorsHeldAtEachCall(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		d := w.definition("s", "b")
		d.Name = "First"
		inv := w.invoke("api", dispatchTime)
		z, held := w.freeze(inv, n, func() {
			if _, err := w.editor.Apply(inv, d, "ann", 0); err != nil {
				t.Error(err)
			}
		})
		if !held {
			w.hooks.server.Close()
			break
		}
		e := d
		e.Name = "Second"
		w.apply(e)
		z.release()
		s := w.schedule("s")
		def, err := w.store.Definition(ctx, "s", s.Version)
		w.must(err)
		if s.Version != 2 || def.Name != s.Name || s.NextDue.IsZero() {
			t.Fatalf("held at %d: version %d named %q and %q", n, s.Version, s.Name, def.Name)
		}
		w.hooks.server.Close()
	}
}

// A settle and a person's command meet at each call: the settle never fails for the schedule's sake, and the command stands.
func TestSettleAndCommandsMeetAtEachCall(t *testing.T) {
	d := func(w *world) schedule.Definition { return w.definition("s", "b") }
	for name, command := range map[string]func(w *world) error{
		"pause":  func(w *world) error { _, err := w.editor.Pause(ctx, "s", "a reason", "ann"); return err },
		"delete": func(w *world) error { return w.editor.Delete(ctx, "s", "a reason", "ann") },
		"edit": func(w *world) error {
			e := d(w)
			e.Recurrence.Cron = hourly
			_, err := w.editor.Apply(ctx, e, "ann", 0)
			return err
		},
		"run now": func(w *world) error { _, _, err := w.editor.RunNow(ctx, "s", "ann", "k", "h"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				w := newWorld(t)
				run := w.admitted(d(w))
				z, held := w.freezeDeliver(n)
				if !held {
					w.hooks.server.Close()
					break
				}
				w.must(command(w))
				z.release()
				for range 70 { // an hour, should the command have come before the begin
					if w.drain(); w.run(run).Settled() {
						break
					}
					w.advance(time.Minute)
					w.tick()
				}
				r := w.run(run)
				deleted := name == "delete" && r.ErrorCode == string(failure.ScheduleDeleted)
				if r.State != schedule.Succeeded && !deleted {
					t.Fatalf("held at %d: %s", n, w.dump())
				}
				want := map[string]schedule.State{"pause": schedule.Paused, "delete": schedule.Deleted}[name]
				if s := w.schedule("s"); want != "" && (s.State != want || !s.NextDue.IsZero()) || s.LastRun == "" && !deleted {
					t.Fatalf("held at %d: %+v", n, s)
				}
				w.hooks.server.Close()
			}
		})
	}
}

// An admission whose reply is lost in every way still stands once, and the schedule moves on.
func TestAdmittedBeforeAndYetDue(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.quiet()
	// A restore from backup put the schedule's row back to where it was.
	w.set(schema.ScheduleKey("s"), schema.NextDueAt, txt(schema.Time(firstDue)))
	if tally := w.tick(); tally.Admitted != 0 || tally.Errors != 0 {
		t.Fatalf("%+v", tally)
	}
	if s := w.schedule("s"); !s.NextDue.Equal(firstDue.AddDate(0, 0, 1)) {
		t.Errorf("the schedule stands still at %s", s.NextDue)
	}
	w.wantState(run, schedule.Succeeded, "")
}
