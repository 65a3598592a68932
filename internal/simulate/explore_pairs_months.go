package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"almanac/internal/failure"
	"almanac/internal/snapshot"

	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// attempting has February's job claimed and started, and its execution waiting for a call of a step.
func (w *World) attempting(d snapshot.Definition, step string) *stepRequest {
	w.defined(d)
	w.claimed()
	return w.asks(february1, step)
}

// capOfOne has two months of two types, planned, of an owner that may have one at work.
func (w *World) capOfOne() (types [2]string) {
	w.must(w.Kit(nil).MonthEditor().SaveOwner(background, snapshot.Owner{ID: snapshot.DefaultOwner, Name: "Default", Cap: 1}, "ann"))
	w.Define(single("2040-02"))
	other := single("2040-02")
	other.Type = "others"
	w.defined(other)
	return [2]string{february1, strings.Replace(february1, "delays", "others", 1)}
}

// nextJob ends the execution of February's job at whatever it is, lets the reconciler find that, and its next attempt be
// claimed.
func (w *World) nextJob() {
	w.Steps.Finish(executionOf(february1+"-j1"), sfntypes.ExecutionStatusAborted, "", "by hand")
	w.later(w.Months.JobGrace.Std() + time.Second)
	w.reconciled()
	w.later(w.Months.RetryDelays[0].Std() + time.Second)
	w.claimed()
	if r := w.Month(february1); r.Job != 2 {
		w.Failf("%s is %s under job %d, want the second\n%s", r.ID(), r.State, r.Job, w.Dump())
	}
}

func rolling(version int) func(context.Context, Kit) error {
	return func(ctx context.Context, t Kit) error {
		_, err := t.MonthEditor().RollBack(ctx, inFebruary, version, "the later one is wrong", "ann")
		return err
	}
}

func retrying(ctx context.Context, t Kit) error {
	_, err := t.MonthEditor().RetryNow(ctx, february1, "the source is back", "ann")
	return err
}

func again(ctx context.Context, t Kit) error {
	_, err := t.MonthEditor().Request(ctx, inFebruary, "the query was wrong", "ann")
	return err
}

// monthsEnded tells how each version ended, and which is the current one of February, before which it was another:
// "v1 published, v2 cancelled operator; 1 before 0". Of February's delays only the version is named.
func monthsEnded(w *World) string {
	var words []string
	for id := range w.months.runs {
		r := w.Month(id)
		words = append(words, strings.Join(strings.Fields(fmt.Sprintf("%s %s v%d %s %s %s", strings.TrimPrefix(r.Type, "delays"), strings.TrimPrefix(r.Month.String(), "2040-02"), r.Version, r.State, r.ErrorCode, r.Reason)), " "))
	}
	slices.Sort(words)
	p, err := w.Kit(nil).Ledger().Pointer(background, inFebruary)
	w.must(err)
	return fmt.Sprintf("%s; %d before %d", strings.Join(words, ", "), p.Version, p.Previous)
}

// monthPairs are those about one month, and about one owner's slots.
func monthPairs() []Pair {
	return slices.Concat(claimPairs(), stepPairs(), pointerPairs(), planPairs())
}

func claimPairs() []Pair {
	failed := func(w *World) {
		w.defined(single("2040-02"))
		w.refuse("Source.View", failure.SourceUnavailable, 1)
		w.attempted(february1)
	}
	return []Pair{
		{Name: "claim × claim, cap 1", Ended: monthsEnded, Skews: fiveMinutes, New: func(w *World) (a, b func() *Worker) {
			w.capOfOne()
			return w.rule(ruleMonths), w.rule(ruleMonths)
		}},
		{Name: "claim × cancel", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.defined(single("2040-02"))
			return w.rule(ruleMonths), w.person("cancel", cancelling(february1))
		}},
		{Name: "claim of a retry × claim", Ended: monthsEnded, Skews: fiveMinutes, New: func(w *World) (a, b func() *Worker) {
			failed(w)
			w.later(w.Months.RetryDelays[0].Std())
			return w.rule(ruleMonths), w.rule(ruleMonths)
		}},
		{Name: "claim × retry now", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			failed(w)
			return w.rule(ruleMonths), w.person("retry now", retrying)
		}},
		{Name: "claim of a retry × cancel", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			failed(w)
			w.later(w.Months.RetryDelays[0].Std())
			return w.rule(ruleMonths), w.person("cancel", cancelling(february1))
		}},
		{Name: "claim × fewer slots", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.capOfOne()
			w.must(w.Kit(nil).MonthEditor().SaveOwner(background, snapshot.Owner{ID: snapshot.DefaultOwner, Name: "Default", Cap: 2}, "ann"))
			w.quiet()
			return w.rule(ruleMonths), w.person("fewer slots", func(ctx context.Context, t Kit) error {
				return t.MonthEditor().SaveOwner(ctx, snapshot.Owner{ID: snapshot.DefaultOwner, Name: "Default", Cap: 1}, "ann")
			})
		}},
		{Name: "publish × claim, cap 1", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			ids := w.capOfOne()
			w.claimed()
			at := ids[0]
			if w.Month(at).State == snapshot.Planned {
				at = ids[1]
			}
			return w.answers(w.asks(at, snapshot.StepGenerate)), w.rule(ruleMonths)
		}},
		{Name: "settle × claim, cap 1", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			ids := w.capOfOne()
			w.refuse("Source.View", failure.SourceUnavailable, 1)
			w.claimed()
			at := ids[0]
			if w.Month(at).State == snapshot.Planned {
				at = ids[1]
			}
			return w.answers(w.asks(at, snapshot.StepSettle)), w.rule(ruleMonths)
		}},
		{Name: "offer again × start", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			r := w.attempting(single("2040-02"), snapshot.StepStart)
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleMonths), w.answers(r)
		}},
		{Name: "offer again × reconcile", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.defined(single("2040-02"))
			w.claimedOnly()
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleMonths), w.rule(ruleReconcile)
		}},
		{Name: "offer again × offer again, job closed", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.defined(single("2040-02"))
			w.closed(w.claimedOnly())
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleMonths), w.rule(ruleMonths)
		}},
	}
}

func stepPairs() []Pair {
	twins := func(step string, d snapshot.Definition) Pair {
		return Pair{Name: step + " × " + step, Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			r := w.attempting(d, step)
			return w.answers(r), w.twin(r.in)
		}}
	}
	cancelled := func(step string, d snapshot.Definition) Pair {
		return Pair{Name: step + " × cancel", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			return w.answers(w.attempting(d, step)), w.person("cancel", cancelling(february1))
		}}
	}
	chunked, whole := Delays("EWR", "2040-02"), single("2040-02")
	single := twins(snapshot.StepGenerate, whole)
	single.Name = "single × single"
	cancelledSingle := cancelled(snapshot.StepGenerate, whole)
	cancelledSingle.Name = "single × cancel"
	settle := func(name string, other func(*World, *stepRequest) func() *Worker) Pair {
		return Pair{Name: "settle of a month × " + name, Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.refuse("Source.View", failure.SourceUnavailable, 1)
			r := w.attempting(whole, snapshot.StepSettle)
			return w.answers(r), other(w, r)
		}}
	}
	// old is a step of the first job that was frozen, and next a step of the second.
	other := func(name, old string, held string, next string) Pair {
		return Pair{Name: name, Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			k := w.answers(w.attempting(chunked, old))()
			w.drive(k, named(held, 1))
			a = w.pausing(k)
			w.nextJob()
			return a, w.answers(w.asks(february1, next))
		}}
	}
	return []Pair{
		twins(snapshot.StepStart, chunked), twins(snapshot.StepGenerate, chunked), twins(snapshot.StepValidate, chunked), twins(snapshot.StepPublish, chunked), single,
		cancelled(snapshot.StepStart, chunked), cancelled(snapshot.StepGenerate, chunked), cancelled(snapshot.StepValidate, chunked), cancelled(snapshot.StepPublish, chunked), cancelledSingle,
		settle("settle", func(w *World, r *stepRequest) func() *Worker { return w.twin(r.in) }),
		settle("cancel", func(w *World, _ *stepRequest) func() *Worker { return w.person("cancel", cancelling(february1)) }),
		settle("reconcile, job over", func(w *World, _ *stepRequest) func() *Worker {
			w.Steps.Finish(executionOf(february1+"-j1"), sfntypes.ExecutionStatusAborted, "", "by hand")
			return w.rule(ruleReconcile)
		}),
		other("start × start of another job", snapshot.StepStart, "DynamoDB.UpdateItem", snapshot.StepStart),
		other("generate × generate of another job", snapshot.StepGenerate, "DynamoDB.TransactWriteItems", snapshot.StepGenerate),
		other("publish × generate of another job", snapshot.StepPublish, "DynamoDB.TransactWriteItems", snapshot.StepGenerate),
		{Name: "reconcile × publish", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			r := w.attempting(chunked, snapshot.StepPublish)
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleReconcile), w.answers(r)
		}},
		{Name: "reconcile, job over × publish", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			r := w.attempting(chunked, snapshot.StepPublish)
			w.Steps.Finish(executionOf(february1+"-j1"), sfntypes.ExecutionStatusAborted, "", "by hand")
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleReconcile), w.answers(r)
		}},
		{Name: "reconcile × reconcile, job over", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			w.attempting(chunked, snapshot.StepGenerate)
			w.Steps.Finish(executionOf(february1+"-j1"), sfntypes.ExecutionStatusAborted, "", "by hand")
			w.later(w.Months.JobGrace.Std() + time.Second)
			return w.rule(ruleReconcile), w.rule(ruleReconcile)
		}},
	}
}

// threeVersions publishes three versions of February.
func (w *World) threeVersions() {
	w.defined(single("2040-02"))
	w.attempted(february1)
	w.rerun(february(2))
	w.rerun(february(3))
}

func pointerPairs() []Pair {
	rolled := func(first, second int) func(*World) (a, b func() *Worker) {
		return func(w *World) (a, b func() *Worker) {
			w.threeVersions()
			return w.person("roll back", rolling(first)), w.person("roll back", rolling(second))
		}
	}
	three := monthsEnded
	under := func(w *World) *stepRequest { // the third version is about to be published
		w.defined(Delays("EWR", "2040-02"))
		w.attempted(february1)
		w.rerun(february(2))
		w.must(again(background, w.Kit(nil)))
		w.quiet()
		w.claimed()
		return w.asks(february(3), snapshot.StepPublish)
	}
	return []Pair{
		{Name: "roll back × roll back", Ended: three, New: rolled(1, 2)},
		{Name: "roll back × roll back to the same", Ended: three, New: rolled(1, 1)},
		{Name: "publish × roll back", Ended: three, New: func(w *World) (a, b func() *Worker) {
			return w.answers(under(w)), w.person("roll back", rolling(1))
		}},
		{Name: "roll back × rerun", Ended: three, New: func(w *World) (a, b func() *Worker) {
			w.defined(single("2040-02"))
			w.attempted(february1)
			w.rerun(february(2))
			return w.person("roll back", rolling(1)), w.person("rerun", again)
		}},
		{Name: "publish × rerun", Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			return w.answers(w.attempting(Delays("EWR", "2040-02"), snapshot.StepPublish)), w.person("rerun", again)
		}},
	}
}

func planPairs() []Pair {
	published := func(w *World) {
		w.defined(single("2040-02"))
		w.attempted(february1)
	}
	pair := func(name string, start func(*World), first, second func(*World) func() *Worker) Pair {
		return Pair{Name: name, Ended: monthsEnded, New: func(w *World) (a, b func() *Worker) {
			start(w)
			return first(w), second(w)
		}}
	}
	person := func(name string, do func(context.Context, Kit) error) func(*World) func() *Worker {
		return func(w *World) func() *Worker { return w.person(name, do) }
	}
	plan := func(w *World) func() *Worker { return w.rule(rulePlan) }
	off := single("2040-02")
	off.Off = true
	saves := func(d snapshot.Definition) func(context.Context, Kit) error {
		return func(ctx context.Context, t Kit) error {
			_, err := t.MonthEditor().SaveDefinition(ctx, d, "ann", 0)
			return err
		}
	}
	longer := single("2040-01")
	one := single("2040-02")
	return []Pair{
		pair("plan × plan", func(w *World) { w.Define(one) }, plan, plan),
		pair("rerun × rerun", published, person("rerun", again), person("rerun", again)),
		pair("rerun × rerun of one key", published, person("rerun", requesting), person("rerun", requesting)),
		pair("plan × rerun", func(w *World) { published(w); w.Define(longer) }, plan, person("rerun", again)),
		pair("plan × switch off", func(w *World) { w.Define(longer) }, plan, person("switch off", saves(off))),
		pair("switched off × claim", func(w *World) { w.defined(single("2040-02")); w.Define(off); w.quiet() }, plan, func(w *World) func() *Worker { return w.rule(ruleMonths) }),
		pair("switched off × publish", func(w *World) {
			w.attempting(Delays("EWR", "2040-02"), snapshot.StepPublish)
			late := Delays("EWR", "2040-02")
			late.Off = true
			w.Define(late)
			w.quiet()
		}, plan, func(w *World) func() *Worker { return w.answers(w.asks(february1, snapshot.StepPublish)) }),
		pair("save × save of months", func(w *World) { w.defined(single("2040-02")) }, person("save", saves(longer)), person("save", saves(off))),
		pair("cancel × cancel", func(w *World) { w.attempting(single("2040-02"), snapshot.StepStart) }, person("cancel", cancelling(february1)), person("cancel", cancelling(february1))),
	}
}
