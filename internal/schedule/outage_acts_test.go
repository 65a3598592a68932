package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// act is something that a person, a tick or an event asks for.
type act struct {
	reads bool                            // and leaves everything as it is
	given func(w *world) (subject string) // what stands before: a run, a link, a letter's event
	do    func(ctx context.Context, w *world, subject string) (answer any, err error)
}

var acts = map[string]act{
	"create": {false, func(w *world) string { return "" }, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.Apply(ctx, w.definition("new", "b"), "ann", 0))
	}},
	"edit": {false, oneSchedule, func(ctx context.Context, w *world, _ string) (any, error) {
		d := w.definition("s", "b", "c")
		d.Recurrence.Cron = "45 7 * * *"
		return answer(w.editor.Apply(ctx, d, "ann", 1))
	}},
	"pause": {false, oneSchedule, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.Pause(ctx, "s", "why", "ann"))
	}},
	"delete": {false, oneSchedule, func(ctx context.Context, w *world, _ string) (any, error) {
		return nil, w.editor.Delete(ctx, "s", "why", "ann")
	}},
	"resume": {false, func(w *world) string {
		oneSchedule(w)
		w.must(second(w.editor.Pause(bg, "s", "why", "ann")))
		return ""
	}, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.Resume(ctx, "s", "why", "ann"))
	}},
	"run now": {false, oneSchedule, func(ctx context.Context, w *world, _ string) (any, error) {
		run, created, err := w.editor.RunNow(ctx, "s", "ann", "key", "hash")
		return fmt.Sprint(run, created), err
	}},
	"workspace": {false, nothing, func(ctx context.Context, w *world, _ string) (any, error) {
		return nil, w.editor.PutWorkspace(ctx, schedule.Workspace{ID: "JFK", Name: "Kennedy", Zone: "UTC"}, "ann")
	}},
	"source": {false, nothing, func(ctx context.Context, w *world, _ string) (any, error) {
		return nil, w.editor.PutSource(ctx, schedule.SourceConfig{Name: "more", Engine: "sqlite", Object: "more.sqlite", Workspaces: []string{"EWR"}}, "ann")
	}},
	"group": {false, nothing, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.ApplyGroup(ctx, schedule.Group{ID: "g", Name: "G", Workspaces: []string{"EWR"}, Recipients: w.definition("x", "b").Recipients}, "ann", 0))
	}},
	"switch": {false, nothing, func(ctx context.Context, w *world, _ string) (any, error) {
		on := false
		return answer(w.editor.Switch(ctx, schedule.Switches{Send: &on}, "why", "ann"))
	}},
	"stop": {false, oneRun, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.editor.Stop(ctx, run, "why", "ann"))
	}},
	"redrive": {false, func(w *world) string {
		run := oneRun(w)
		w.dead("m", schedule.EncodeMessage(run))
		return run
	}, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.Redrive(ctx, "m", "why", "ann"))
	}},
	"resend": {false, oneUnknown, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.editor.Resend(ctx, run, w.sub(run, "b").RecipientHash, "why", "ann"))
	}},
	"resolve": {false, oneUnknown, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.editor.Resolve(ctx, run, w.sub(run, "b").RecipientHash, "submitted", "why", "ann"))
	}},
	"retry as new": {false, oneUnknown, func(ctx context.Context, w *world, run string) (any, error) {
		made, created, err := w.editor.Retry(ctx, run, schedule.RetryRequest{To: schedule.RetryEveryone}, "why", "ann", "key", "hash")
		return fmt.Sprint(made, created), err
	}},
	"revoke links": {false, delivered, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.editor.RevokeLinks(ctx, run, "all", "why", "ann"))
	}},
	"revoke a link": {false, delivered, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.editor.RevokeLinks(ctx, run, w.sub(run, "b").RecipientHash, "why", "ann"))
	}},
	"open a link": {false, delivered, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.links.Open(ctx, w.link(run, "b")))
	}},
	"unsubscribe": {false, delivered, func(ctx context.Context, w *world, run string) (any, error) {
		return answer(w.links.Unsubscribe(ctx, w.unsubscribeLink(run, "a@x.com")))
	}},
	"take a bounce": {false, bouncing, func(ctx context.Context, w *world, event string) (any, error) {
		return nil, w.taker().Handle(ctx, "m", event)
	}},
	"lift a suppression": {false, func(w *world) string {
		w.must(w.taker().Handle(bg, "m", bouncing(w)))
		return ""
	}, func(ctx context.Context, w *world, _ string) (any, error) {
		return answer(w.editor.Lift(ctx, channel.Email, hashed("a@x.com"), "why", "ann"))
	}},
	"tick that admits": {false, func(w *world) string {
		w.apply(w.definition("s", "b"))
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
	"tick that passes over": {false, func(w *world) string {
		d := w.definition("s", "b")
		d.CatchUp = schedule.CatchUpNone
		w.apply(d)
		w.to(firstDue.AddDate(0, 0, 3))
		return ""
	}, tick},
	"tick that sweeps": {false, func(w *world) string {
		run := oneRun(w)
		w.to(w.run(run).WakeAt.Add(time.Second))
		return ""
	}, tick},
	"tick while dispatch and sending are off": {true, func(w *world) string {
		w.apply(w.definition("s", "b"))
		w.control(schedule.Control{DispatchOff: true, SendOff: true})
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
	"switch back on": {false, func(w *world) string {
		w.control(schedule.Control{SendOff: true})
		return ""
	}, func(ctx context.Context, w *world, _ string) (any, error) {
		on := true
		return answer(w.editor.Switch(ctx, schedule.Switches{Send: &on}, "why", "ann"))
	}},
	"run now again": {true, func(w *world) string {
		oneSchedule(w)
		_, _, err := w.editor.RunNow(bg, "s", "ann", "key", "hash")
		w.must(err)
		return ""
	}, func(ctx context.Context, w *world, _ string) (any, error) {
		run, created, err := w.editor.RunNow(ctx, "s", "ann", "key", "hash")
		return fmt.Sprint(run, created), err
	}},
	"run now for a group": {false, groupSchedule, func(ctx context.Context, w *world, _ string) (any, error) {
		run, created, err := w.editor.RunNow(ctx, "s", "ann", "key", "hash")
		return fmt.Sprint(run, created), err
	}},
	"retry as new again": {true, func(w *world) string {
		run := oneUnknown(w)
		_, _, err := w.editor.Retry(bg, run, schedule.RetryRequest{To: schedule.RetryEveryone}, "why", "ann", "key", "hash")
		w.must(err)
		return run
	}, func(ctx context.Context, w *world, run string) (any, error) {
		made, created, err := w.editor.Retry(ctx, run, schedule.RetryRequest{To: schedule.RetryEveryone}, "why", "ann", "key", "hash")
		return fmt.Sprint(made, created), err
	}},
	"dead letter of a run": {false, oneRun, deadLetter},
	"dead letter of a run without attempts": {false, func(w *world) string {
		run := twoHooks(w)
		w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
		w.deliver()
		w.faults.plan = nil
		w.to(w.run(run).LeaseEnd.Add(time.Second))
		w.set(firstRun, schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "0"})
		return run
	}, deadLetter},
	"last dead letter of a run that never started": {false, func(w *world) string {
		run := oneRun(w)
		w.set(firstRun, schema.DeadLetters, &types.AttributeValueMemberN{Value: fmt.Sprint(w.deliverer.Timing.NeverStarted - 1)})
		return run
	}, deadLetter},
	"last dead letter of a run that somebody stopped": {false, func(w *world) string {
		run := oneRun(w)
		w.must(second(w.editor.Stop(bg, run, "why", "ann")))
		w.set(firstRun, schema.DeadLetters, &types.AttributeValueMemberN{Value: fmt.Sprint(w.deliverer.Timing.NeverStarted - 1)})
		return run
	}, deadLetter},
	"dead letter that nobody can read": {false, nothing, func(ctx context.Context, w *world, _ string) (any, error) {
		return nil, w.letters.Handle(ctx, "m", "{")
	}},
	"dead letter of a resend that nobody came back from": {false, func(w *world) string {
		run := oneUnknown(w)
		sub, err := w.editor.Resend(bg, run, w.sub(run, "b").RecipientHash, "why", "ann")
		w.must(err)
		w.faults.plan = dies("deliver", "Webhook.Send", dieAfter)
		w.deliver()
		w.faults.plan = nil
		w.to(w.sub(run, "b").OwnerUntil.Add(time.Second))
		return schema.ResendID(run, sub.Channel, sub.RecipientHash, sub.Wish.ID)
	}, func(ctx context.Context, w *world, id string) (any, error) {
		return nil, w.letters.Handle(ctx, "m", schedule.EncodeResend(id))
	}},
	"tick that admits for a group": {false, func(w *world) string {
		groupSchedule(w)
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
	"tick that offers a resend": {false, func(w *world) string {
		run := oneUnknown(w)
		w.must(second(w.editor.Resend(bg, run, w.sub(run, "b").RecipientHash, "why", "ann")))
		w.advance(time.Hour)
		return ""
	}, tick},
	"tick that admits while sending is off": {false, func(w *world) string {
		w.apply(w.definition("s", "b"))
		w.control(schedule.Control{SendOff: true})
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
	"tick that sweeps while dispatch is off": {false, func(w *world) string {
		run := oneRun(w)
		w.control(schedule.Control{DispatchOff: true})
		w.to(w.run(run).WakeAt.Add(time.Second))
		return ""
	}, tick},
}

var (
	bg       = context.Background()
	firstRun = schema.RunKey("s", schedule.OccurrenceKey(firstDue))
)

// deadLetter is a message of a run in the dead-letter queue.
func deadLetter(ctx context.Context, w *world, run string) (any, error) {
	return nil, w.letters.Handle(ctx, "m", schedule.EncodeMessage(run))
}

// groupSchedule is a schedule whose recipients are a group.
func groupSchedule(w *world) string {
	w.must(second(w.editor.ApplyGroup(bg, schedule.Group{ID: "g", Name: "G", Workspaces: []string{"EWR"}, Recipients: w.definition("x", "b").Recipients}, "ann", 0)))
	d := w.definition("s")
	d.Recipients = []schedule.Recipient{{Group: "g"}}
	w.apply(d)
	return ""
}

func answer[T any](v T, err error) (any, error) { return v, err }

func nothing(*world) string { return "" }

func oneSchedule(w *world) string {
	w.apply(w.definition("s", "b"))
	return ""
}

func oneRun(w *world) string { return w.admitted(w.definition("s", "b")) }

func delivered(w *world) string {
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.quiet()
	return run
}

func oneUnknown(w *world) string {
	run := oneRun(w)
	w.hooks.answer = answers("b", reply{cut: true})
	w.quiet()
	w.hooks.answer = nil
	return run
}

func bouncing(w *world) string {
	delivered(w)
	return w.bounced(w.mail.to("a@x.com")[0], "ses-1", nil)
}

func (w *world) taker() *schedule.FeedbackTaker {
	return &schedule.FeedbackTaker{Ledger: w.store, Parse: email.ParseEvent, Account: ourAccount, Wall: w.wall, Log: boot.NewLogger(w.log), Count: func(string, int, string, string) {}}
}

// tick is a dispatcher's; trouble with one row is no error but counted.
func tick(ctx context.Context, w *world, _ string) (any, error) {
	tally, err := w.dispatcher.Tick(ctx)
	if err == nil && (tally.Errors > 0 || tally.Unsent > 0) {
		err = fmt.Errorf("%d errors, %d messages unsent", tally.Errors, tally.Unsent)
	}
	return tally, err
}

// faulty makes the business clock and the signing of links calls that may fail.
func (w *world) faulty() {
	business := func(ctx context.Context) (time.Time, error) {
		if err := w.before(ctx, "Clock.Business"); err != nil {
			return time.Time{}, err
		}
		return w.business(ctx)
	}
	w.editor.Clocks.Business, w.dispatcher.Clocks.Business, w.deliverer.Clocks.Business = business, business, business
	sign := w.links.Sign
	w.links.Sign = func(ctx context.Context, f schedule.RecordedFile, life time.Duration) (string, error) {
		if err := w.before(ctx, "S3.Sign"); err != nil {
			return "", err
		}
		return sign(ctx, f, life)
	}
}

// Every act of a person needs a reason.
func TestNoActWithoutAReason(t *testing.T) {
	off := true
	for name, do := range map[string]func(w *world) error{
		"pause":        func(w *world) error { return second(w.editor.Pause(bg, "s", "", "ann")) },
		"resume":       func(w *world) error { return second(w.editor.Resume(bg, "s", " ", "ann")) },
		"delete":       func(w *world) error { return w.editor.Delete(bg, "s", "", "ann") },
		"switch":       func(w *world) error { return second(w.editor.Switch(bg, schedule.Switches{Send: &off}, "", "ann")) },
		"stop":         func(w *world) error { return second(w.editor.Stop(bg, "s@x", "", "ann")) },
		"redrive":      func(w *world) error { return second(w.editor.Redrive(bg, "m", "", "ann")) },
		"resend":       func(w *world) error { return second(w.editor.Resend(bg, "s@x", "b", "", "ann")) },
		"resolve":      func(w *world) error { return second(w.editor.Resolve(bg, "s@x", "b", "submitted", "", "ann")) },
		"revoke links": func(w *world) error { return second(w.editor.RevokeLinks(bg, "s@x", "", "", "ann")) },
		"lift":         func(w *world) error { return second(w.editor.Lift(bg, channel.Email, hashed("a@x.com"), "", "ann")) },
		"retry": func(w *world) error {
			_, _, err := w.editor.Retry(bg, "s@x", schedule.RetryRequest{}, "", "ann", "k", "h")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do(newWorld(t))
			var ps schedule.Problems
			if !errors.As(err, &ps) || !slices.ContainsFunc(ps, func(p schedule.Problem) bool { return p.Field == "reason" }) {
				t.Errorf("got %v, want a problem with the reason", err)
			}
		})
	}
}
