package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	given func(w *world) (subject string) // what stands before: a run, a link, a letter's event
	do    func(ctx context.Context, w *world, subject string) error
}

var acts = map[string]act{
	"create": {func(w *world) string { return "" }, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.Apply(ctx, w.definition("new", "b"), "ann", 0))
	}},
	"edit": {oneSchedule, func(ctx context.Context, w *world, _ string) error {
		d := w.definition("s", "b", "c")
		d.Recurrence.Cron = "45 7 * * *"
		return second(w.editor.Apply(ctx, d, "ann", 1))
	}},
	"pause": {oneSchedule, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.Pause(ctx, "s", "why", "ann"))
	}},
	"delete": {oneSchedule, func(ctx context.Context, w *world, _ string) error { return w.editor.Delete(ctx, "s", "why", "ann") }},
	"resume": {func(w *world) string {
		oneSchedule(w)
		w.must(second(w.editor.Pause(bg, "s", "why", "ann")))
		return ""
	}, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.Resume(ctx, "s", "why", "ann"))
	}},
	"run now": {oneSchedule, func(ctx context.Context, w *world, _ string) error {
		_, _, err := w.editor.RunNow(ctx, "s", "ann", "key", "hash")
		return err
	}},
	"workspace": {nothing, func(ctx context.Context, w *world, _ string) error {
		return w.editor.PutWorkspace(ctx, schedule.Workspace{ID: "JFK", Name: "Kennedy", Zone: "UTC"}, "ann")
	}},
	"source": {nothing, func(ctx context.Context, w *world, _ string) error {
		return w.editor.PutSource(ctx, schedule.SourceConfig{Name: "more", Engine: "sqlite", Object: "more.sqlite", Workspaces: []string{"EWR"}}, "ann")
	}},
	"group": {nothing, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.ApplyGroup(ctx, schedule.Group{ID: "g", Name: "G", Workspaces: []string{"EWR"}, Recipients: w.definition("x", "b").Recipients}, "ann", 0))
	}},
	"switch": {nothing, func(ctx context.Context, w *world, _ string) error {
		off := true
		return second(w.editor.Switch(ctx, schedule.Switches{Send: &off}, "why", "ann"))
	}},
	"stop": {oneRun, func(ctx context.Context, w *world, run string) error {
		return second(w.editor.Stop(ctx, run, "why", "ann"))
	}},
	"redrive": {func(w *world) string {
		run := oneRun(w)
		w.dead("m", schedule.EncodeMessage(run))
		return run
	}, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.Redrive(ctx, "m", "why", "ann"))
	}},
	"resend": {oneUnknown, func(ctx context.Context, w *world, run string) error {
		return second(w.editor.Resend(ctx, run, w.sub(run, "b").RecipientHash, "why", "ann"))
	}},
	"resolve": {oneUnknown, func(ctx context.Context, w *world, run string) error {
		return second(w.editor.Resolve(ctx, run, w.sub(run, "b").RecipientHash, "submitted", "why", "ann"))
	}},
	"retry as new": {oneUnknown, func(ctx context.Context, w *world, run string) error {
		_, _, err := w.editor.Retry(ctx, run, schedule.RetryRequest{To: schedule.RetryEveryone}, "why", "ann", "key", "hash")
		return err
	}},
	"revoke links": {delivered, func(ctx context.Context, w *world, run string) error {
		return second(w.editor.RevokeLinks(ctx, run, "all", "why", "ann"))
	}},
	"revoke a link": {delivered, func(ctx context.Context, w *world, run string) error {
		return second(w.editor.RevokeLinks(ctx, run, w.sub(run, "b").RecipientHash, "why", "ann"))
	}},
	"open a link": {delivered, func(ctx context.Context, w *world, run string) error {
		return second(w.links.Open(ctx, w.link(run, "b")))
	}},
	"unsubscribe": {delivered, func(ctx context.Context, w *world, run string) error {
		return second(w.links.Unsubscribe(ctx, w.unsubscribeLink(run, "a@x.com")))
	}},
	"take a bounce": {bouncing, func(ctx context.Context, w *world, event string) error { return w.taker().Handle(ctx, "m", event) }},
	"lift a suppression": {func(w *world) string {
		w.must(w.taker().Handle(bg, "m", bouncing(w)))
		return ""
	}, func(ctx context.Context, w *world, _ string) error {
		return second(w.editor.Lift(ctx, channel.Email, hashed("a@x.com"), "why", "ann"))
	}},
	"tick that admits": {func(w *world) string {
		w.apply(w.definition("s", "b"))
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
	"tick that passes over": {func(w *world) string {
		d := w.definition("s", "b")
		d.CatchUp = schedule.CatchUpNone
		w.apply(d)
		w.to(firstDue.AddDate(0, 0, 3))
		return ""
	}, tick},
	"tick that sweeps": {func(w *world) string {
		run := oneRun(w)
		w.to(w.run(run).WakeAt.Add(time.Second))
		return ""
	}, tick},
	"tick while dispatch and sending are off": {func(w *world) string {
		w.apply(w.definition("s", "b"))
		w.control(schedule.Control{DispatchOff: true, SendOff: true})
		w.to(firstDue.Add(time.Second))
		return ""
	}, tick},
}

var bg = context.Background()

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
func tick(ctx context.Context, w *world, _ string) error {
	tally, err := w.dispatcher.Tick(ctx)
	if err == nil && (tally.Errors > 0 || tally.Unsent > 0) {
		err = fmt.Errorf("%d errors, %d messages unsent", tally.Errors, tally.Unsent)
	}
	return err
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

var named = regexp.MustCompile(`token-[0-9]+|[0-9a-f]{8,}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// rows lists what stands in the table: each row's key, its state and what it holds, without times and tokens.
func (w *world) rows() string {
	var list []string
	w.db.Any("Schedules", func(it map[string]types.AttributeValue) bool {
		var names []string
		for n := range it {
			names = append(names, n)
		}
		slices.Sort(names)
		list = append(list, named.ReplaceAllString(text(it, schema.PK)+" "+text(it, schema.SK), "*")+" "+text(it, schema.State)+" "+strings.Join(names, ","))
		return false
	})
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// Whatever fails while somebody acts, he is not told that it was done unless it was.
func TestNoOutageIsTakenForSuccess(t *testing.T) {
	for name, a := range acts {
		t.Run(name, func(t *testing.T) {
			try := func(n int, fails func(first, c outside) bool) (rows string, err error, met func() bool) {
				w := newWorld(t)
				w.faulty()
				subject := a.given(w)
				w.faults.plan, met = outage("act", n, fails)
				inv := w.invoke("act", dispatchTime)
				err = a.do(inv, w, subject)
				w.end(inv)
				w.faults.plan = nil
				w.hooks.server.Close()
				return w.rows(), err, met
			}
			want, err, _ := try(1000, outages["everything"])
			if err != nil {
				t.Fatal(err)
			}
			for what, fails := range outages {
				for n := 1; ; n++ {
					rows, err, met := try(n, fails)
					if !met() {
						break
					}
					if err == nil && rows != want {
						t.Errorf("%s fails from call %d on, and nobody is told:\n%s\nwant:\n%s", what, n, rows, want)
					}
				}
			}
		})
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
