package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// FirstDue is when a daily schedule is due first.
var FirstDue = Start.Add(30 * time.Minute)

// Definition is a valid one, due daily at 12:30 UTC; recipients are spelled "x@…" for e-mail, anything else is a
// receiver's name.
func Definition(id string, recipients ...string) schedule.Definition {
	d := schedule.Definition{ID: id, Workspace: "EWR", Name: "Delays " + id, Owner: "ops@example.com", Source: "flights",
		Query: "select id, delay from flights", Recurrence: calendar.Spec{Cron: "30 12 * * *", Zone: "UTC"}}
	d.File.Kind, d.File.RetentionDays = "csv", 30
	d.Recipients = recipients1(recipients...)
	return d
}

func recipients1(names ...string) (out []schedule.Recipient) {
	for _, r := range names {
		if strings.Contains(r, "@") {
			out = append(out, schedule.Recipient{Email: r})
			continue
		}
		out = append(out, schedule.Recipient{Webhook: Address(r), Secret: "ops"})
	}
	return out
}

// Once is a definition that is due at FirstDue and not again within a year.
func Once(id string, recipients ...string) schedule.Definition {
	d := Definition(id, recipients...)
	d.Recurrence.Cron = "30 12 5 3 *"
	return d
}

// Apply saves a definition.
func (w *World) Apply(d schedule.Definition) {
	_, err := w.Kit(nil).Editor().Apply(background, d, "ann", 0)
	w.must(err)
}

// FirstRun is the id of the run of a schedule's first due occurrence.
func FirstRun(id string) string { return schema.RunID(id, schedule.OccurrenceKey(FirstDue)) }

// RunOf reads the run of a schedule's first due occurrence.
func (w *World) RunOf(id string) schedule.Run {
	r, err := w.Kit(nil).Store().Run(background, FirstRun(id))
	w.must(err)
	return r
}

// atOnce lets at least so many invocations be under way at once, in turn where nobody else chooses.
func (w *World) atOnce(n int) {
	w.Workers = max(w.Workers, n)
	if w.Choose == nil {
		last := 0
		w.Choose = func(options []Option) int {
			for i, o := range options {
				if o.Call != nil && o.Call.Worker.Number > last {
					last = o.Call.Worker.Number
					return i
				}
			}
			last = 0
			if options[0].Call != nil {
				last = options[0].Call.Worker.Number
			}
			return 0
		}
	}
}

// befalls lets calls go wrong as a scenario has it, where nothing else befalls them.
func (w *World) befalls(f func(*Call) Form) {
	own := w.Fault
	w.Fault = func(c *Call) Form {
		if own != nil {
			if form := own(c); form != AsAsked {
				return form
			}
		}
		return f(c)
	}
}

// first lets a schedule's first occurrence fall due, with a minute to be delivered in.
func first(w *World) { w.For(31 * time.Minute) }

// one is a scenario of one schedule whose first occurrence falls due.
func one(d schedule.Definition, arrange func(*World)) func(*World) {
	return func(w *World) {
		if arrange != nil {
			arrange(w)
		}
		w.Apply(d)
		first(w)
	}
}

// acted takes a person's conflict for an answer: what was asked for is done, or does not apply any more.
func acted(err error) error {
	if schedule.IsConflict(err) {
		return nil
	}
	return err
}

// insist has a person do something at a time after FirstDue.
func (w *World) insistAfter(d time.Duration, name string, do func(context.Context, *schedule.Editor) error) {
	w.Insist(FirstDue.Add(d), name, func(ctx context.Context, t Kit) error { return acted(do(ctx, t.Editor())) })
}

// names are short: what stands before the @, or after the last slash.
func nameOf(address string) string {
	if who, _, mail := strings.Cut(address, "@"); mail {
		return who
	}
	return address[strings.LastIndexByte(address, '/')+1:]
}

// word says how one run ended: its state and code, then each recipient's state, its reason, and how often a person had it
// sent again.
func (w *World) word(r schedule.Run) string {
	subs, err := w.Kit(nil).Store().Submissions(background, r.ID())
	w.must(err)
	slices.SortFunc(subs, func(a, b schedule.Submission) int { return cmp.Compare(nameOf(a.Recipient), nameOf(b.Recipient)) })
	out := []string{string(r.State)}
	if r.ErrorCode != "" {
		out = append(out, r.ErrorCode)
	}
	for _, s := range subs {
		one := nameOf(s.Recipient) + ":" + string(s.State)
		if s.State == schedule.NotDelivered {
			one += "=" + s.Reason
		}
		if s.Resends > 0 {
			one += fmt.Sprintf("+%d", s.Resends)
		}
		out = append(out, one)
	}
	return strings.Join(out, " ")
}

// ended says how every run of the schedule s ended, the due ones first, in their order.
func ended(w *World) string {
	var words []string
	runs, _, err := w.Kit(nil).Store().Runs(background, "s", "", 100)
	w.must(err)
	slices.SortFunc(runs, func(a, b schedule.Run) int {
		if a.Manual != b.Manual {
			return map[bool]int{true: 1, false: -1}[a.Manual]
		}
		return a.Nominal.Compare(b.Nominal)
	})
	for _, r := range runs {
		words = append(words, w.word(r))
	}
	return strings.Join(words, "; ")
}

// endedShort is the first run's state and code. Where a person's act and a run meet, who got the delivery is a matter of
// the moment; that the rows say it is a promise.
func endedShort(w *World) string {
	r := w.RunOf("s")
	return string(r.State) + " " + r.ErrorCode
}

// mailLost is how a run ends whose worker died between its intent to mail and the answer: what nobody can know, it says.
// The answer may come after all, when the run has failed.
func mailLost(rest string) []string {
	return []string{"failed delivery_unknown a:unknown" + rest, "failed delivery_unknown a:submitted" + rest}
}

func deliveryScenarios() []Scenario {
	return slices.Concat(plainScenarios(), passingScenarios(), peopleScenarios(), tickScenarios(), deadScenarios(), lakeScenarios())
}
