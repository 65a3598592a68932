package simulate

import (
	"context"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

type editing func(context.Context, *schedule.Editor) error

// turn switches sending.
func turn(on bool) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, err := e.Switch(ctx, schedule.Switches{Send: &on}, "a drill", "ann")
		return err
	}
}

// hash names a recipient to a person's act.
func hash(address string) string {
	r := recipients1(address)[0]
	return channel.RecipientHash(r.Channel(), r.Address())
}

func resend(address string) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, err := e.Resend(ctx, FirstRun("s"), hash(address), "they have not got it", "ann")
		return err
	}
}

func resolve(address, as string) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, err := e.Resolve(ctx, FirstRun("s"), hash(address), as, "they told", "ann")
		return err
	}
}

func revoke(recipient string) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, err := e.RevokeLinks(ctx, FirstRun("s"), recipient, "it went to the wrong people", "ann")
		return err
	}
}

func stop(ctx context.Context, e *schedule.Editor) error {
	_, err := e.Stop(ctx, FirstRun("s"), "wrong month", "ann")
	return err
}

func runNow(ctx context.Context, e *schedule.Editor) error {
	_, _, err := e.RunNow(ctx, "s", "ann", "key-1", "hash-1")
	return err
}

func retry(q schedule.RetryRequest) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, _, err := e.Retry(ctx, FirstRun("s"), q, "the account is open again", "ann", "key-1", "hash-1")
		return err
	}
}

func apply(d schedule.Definition) editing {
	return func(ctx context.Context, e *schedule.Editor) error {
		_, err := e.Apply(ctx, d, "ann", 0)
		return err
	}
}

// cut has the first mail to each address taken and its answer lost.
func cut(w *World) { w.Mail.Cut = func(_ string, n int) bool { return n == 1 } }

// queued has a person do something between a run's admission and its begin.
func queued(d schedule.Definition, name string, do editing, done func(*World) bool) func(*World) {
	return func(w *World) {
		w.Apply(d)
		w.Off[queueRuns] = true
		first(w)
		w.insistAfter(time.Minute, name, do)
		w.Until(time.Hour, name, func() bool { return done(w) && w.busy() == 0 })
		w.Off[queueRuns] = false
	}
}

// stands waits for a schedule's state, saved for a version of what has one.
func stands(state schedule.State) func(*World) bool {
	return func(w *World) bool { return stateFrom(w.delivery.row(schema.ScheduleKey("s"))) == state }
}

func saved(version int, key schema.Key) func(*World) bool {
	return func(w *World) bool { return figure(w.delivery.row(key), schema.Version) == version }
}

// later has a person do something an hour after a run.
func later(d schedule.Definition, arrange func(*World), acts ...act) func(*World) {
	return func(w *World) {
		one(d, arrange)(w)
		for _, a := range acts {
			a.at = FirstDue.Add(time.Hour)
			w.acts = append(w.acts, a)
		}
	}
}

func byHand(name string, do editing) act {
	return act{name: name, do: func(ctx context.Context, t Kit) error { return acted(do(ctx, t.Editor())) }}
}

// peopleScenarios are those in which a person acts.
func peopleScenarios() []Scenario {
	return []Scenario{
		{Name: "resend", Half: "delivery", Ended: ended, Want: "failed delivery_unknown a:submitted+1 b:submitted",
			Or:    []string{"failed delivery_unknown a:unknown+1 b:submitted"},
			Drive: later(Once("s", "a@example.com", "b"), cut, byHand("resend", resend("a@example.com")))},
		{Name: "resolve", Half: "delivery", Ended: ended, Want: "failed delivery_unknown a:submitted c:skipped=resolved",
			Drive: later(Once("s", "a@example.com", "c@example.com"), cut, byHand("resolve", resolve("a@example.com", "submitted")), byHand("resolve", resolve("c@example.com", "skipped")))},
		{Name: "retry as new", Half: "delivery", Ended: ended, Want: "failed sender_refused a:submitted b:not_sent c:not_sent; succeeded b:submitted c:submitted",
			Or: []string{
				"failed sender_refused a:submitted b:not_sent c:not_sent; failed delivery_unknown b:submitted c:unknown",
				"failed sender_refused a:submitted b:not_sent c:not_sent; failed delivery_unknown b:submitted c:submitted",
				"failed sender_refused a:not_sent b:not_sent c:not_sent; succeeded a:submitted b:submitted c:submitted",
				"failed sender_refused a:submitted b:submitted c:not_sent; succeeded c:submitted",
				"failed sender_refused a:unknown b:not_sent c:not_sent; succeeded b:submitted c:submitted", // the unknown is left as it is
				// The answer to the mail that was refused is lost: nobody knows, and nobody is left to send to.
				"failed delivery_unknown a:submitted b:submitted c:unknown", "failed delivery_unknown a:submitted b:submitted c:submitted",
			},
			Drive: later(Once("s", "a@example.com", "c@example.com", "b"), func(w *World) {
				w.Mail.Answer = func(to string, n int) error {
					if to == "c@example.com" && w.Now().Before(FirstDue.Add(30*time.Minute)) {
						return paused(to, n)
					}
					return nil
				}
			}, byHand("retry as new", retry(schedule.RetryRequest{})))},
		{Name: "paused while queued", Half: "delivery", Ended: ended, Want: "succeeded b:submitted",
			Drive: queued(Definition("s", "b"), "pause", func(ctx context.Context, e *schedule.Editor) error {
				_, err := e.Pause(ctx, "s", "holidays", "ann")
				return err
			}, stands(schedule.Paused))},
		{Name: "edited while queued", Half: "delivery", Ended: ended, Want: "succeeded a:skipped=removed b:submitted",
			Drive: queued(Once("s", "a@example.com", "b"), "edit", apply(Once("s", "b", "c")), saved(2, schema.ScheduleKey("s")))},
		{Name: "group changed while queued", Half: "delivery", Ended: ended, Want: "succeeded a:skipped=removed b:submitted c:submitted",
			Drive: func(w *World) {
				d := grouped(w, "a@example.com", "c")
				queued(d, "save the group", func(ctx context.Context, e *schedule.Editor) error {
					_, err := e.ApplyGroup(ctx, managers("c", "d"), "ann", 1)
					return err
				}, saved(2, schema.GroupKey("managers")))(w)
			}},
		{Name: "retry with an unknown", Half: "delivery", Ended: ended, Want: "failed delivery_unknown a:unknown b:submitted; succeeded a:submitted",
			Or: []string{
				"failed delivery_unknown a:submitted b:submitted", // the answer came late: the person named no unknown, and is told
				"failed delivery_unknown a:unknown b:submitted; failed delivery_unknown a:unknown", "failed delivery_unknown a:unknown b:submitted; failed delivery_unknown a:submitted",
				"failed delivery_unknown a:submitted b:submitted; failed delivery_unknown a:unknown", // came later still
			},
			Drive: later(Once("s", "a@example.com", "b"), cut, byHand("retry as new", retry(schedule.RetryRequest{IncludeUnknown: []string{hash("a@example.com")}})))},
		{Name: "deleted while queued", Half: "delivery", Ended: ended, Want: "failed schedule_deleted",
			Drive: queued(telling(Once("s", "b")), "delete", func(ctx context.Context, e *schedule.Editor) error {
				err := e.Delete(ctx, "s", "done with it", "ann")
				if err == schedule.ErrNotFound {
					return nil // the answer to an earlier try was lost
				}
				return err
			}, stands(schedule.Deleted))},
		{Name: "stopped while running", Half: "delivery", Ended: endedShort, Want: "failed stopped_by_operator", Or: []string{"succeeded"},
			Drive: func(w *World) {
				w.atOnce(2)
				w.Hooks.Slow = 9 * time.Second
				w.insistAfter(12*time.Second, "stop", stop)
				w.Apply(Once("s", "b", "c", "d", "a@example.com"))
				first(w)
			}},
		{Name: "links taken back", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: later(Once("s", "a@example.com", "b"), nil, byHand("take back one", revoke(hash("a@example.com"))), byHand("take back all", revoke(schedule.AllLinks)))},
		{Name: "run now", Half: "delivery", Ended: ended, Want: "succeeded a:submitted b:submitted", Or: mailLost(" b:submitted"),
			Drive: func(w *World) {
				d := Definition("s", "a@example.com", "b")
				d.Recurrence.Cron = "0 0 1 1 *"
				w.Apply(d)
				w.insistAfter(-29*time.Minute, "run now", runNow)
			}},
	}
}
