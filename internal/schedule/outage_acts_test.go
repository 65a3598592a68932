package schedule_test

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

	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/schedule"

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
}

var bg = context.Background()

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

// named is what differs from world to world: tokens, hashes, the receiver's port and what was frozen with it.
var named = regexp.MustCompile(`token-[0-9]+|0x[0-9a-f]+|[0-9a-f]{8,}|127\.0\.0\.1:[0-9]+|[A-Za-z0-9+/=]{60,}|\[[0-9]+( [0-9]+){20,}\]`)

// stands lists what is in the table. Messages are hints, and are offered again.
func (w *world) stands() string {
	var list []string
	w.db.Any("Schedules", func(it map[string]types.AttributeValue) bool {
		b, err := json.Marshal(it)
		w.must(err)
		list = append(list, named.ReplaceAllString(string(b), "*"))
		return false
	})
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// missing lists the lines of one text that are not in another.
func missing(of, in string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(of, "\n"), func(line string) bool { return slices.Contains(strings.Split(in, "\n"), line) }), "\n")
}

// Whatever fails while somebody acts, he is not told that it was done, or what is there, unless it was so.
func TestNoOutageIsTakenForSuccess(t *testing.T) {
	for name, a := range acts {
		t.Run(name, func(t *testing.T) {
			try := func(n int, fails func(first, c outside) bool) (before, stands, said string, err error, met func() bool) {
				w := newWorld(t)
				w.faulty()
				subject := a.given(w)
				before = w.stands()
				w.faults.plan, met = outage("act", n, fails)
				inv := w.invoke("act", dispatchTime)
				got, err := a.do(inv, w, subject)
				w.end(inv)
				w.faults.plan = nil
				w.hooks.server.Close()
				return before, w.stands(), named.ReplaceAllString(fmt.Sprintf("%+v", got), "*"), err, met
			}
			before, want, answer, err, _ := try(1000, outages["everything"])
			if err != nil {
				t.Fatal(err)
			}
			if before == want && !a.reads {
				t.Fatalf("nothing is done; the answer is %s", answer)
			}
			for what, fails := range outages {
				for n := 1; ; n++ {
					_, stands, said, err, met := try(n, fails)
					if !met() {
						break
					}
					if err == nil && stands != want {
						t.Errorf("%s fails from call %d on, and nobody is told that this is missing:\n%s\nbut this is there:\n%s", what, n, missing(want, stands), missing(stands, want))
					}
					if err == nil && said != answer {
						t.Errorf("%s fails from call %d on, and the answer is\n%s\nwant\n%s", what, n, said, answer)
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
