package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
)

var monthKinds = []kind[*monthPair]{
	{"a step of a job", 12, (*monthPair).stepOn},
	{"dispatch", 6, (*monthPair).dispatch},
	{"plan", 5, (*monthPair).planNow},
	{"a job runs to its end", 6, (*monthPair).runOut},
	{"time passes", 5, (*monthPair).passTime},
	{"a step dies at some call", 5, (*monthPair).stepDying},
	{"a step dies at each of its tries", 1, (*monthPair).stepDoomed},
	{"an execution is aborted", 3, (*monthPair).abort},
	{"the next attempt is made", 7, (*monthPair).nextAttempt},
	{"a rerun, to its end", 5, (*monthPair).rerun},
	{"reconcile", 2, (*monthPair).reconcile},
	{"define", 3, (*monthPair).define},
	{"load data", 4, (*monthPair).load},
	{"the source changes its mood", 3, (*monthPair).mood},
	{"the watermark moves", 2, (*monthPair).watermark},
	{"dispatch, and die at some call", 3, (*monthPair).dispatchDying},
	{"plan, and die at some call", 1, (*monthPair).planDying},
	{"cancel", 2, (*monthPair).cancel},
	{"retry now", 3, (*monthPair).retryNow},
	{"request", 3, (*monthPair).request},
	{"accept", 4, (*monthPair).accept},
	{"roll back", 4, (*monthPair).rollBack},
	{"change the caps", 3, (*monthPair).changeCaps},
	{"a workspace is removed, or comes back", 1, (*monthPair).remove},
	{"switch dispatch", 1, (*monthPair).turn},
}

// The product does what lifecycle D says, whatever is done to it in whatever order.
func TestModelOfMonths(t *testing.T) {
	checkModel(t, monthKinds, playMonths, "published", "planned", "queued", "running", "validating", "failed job_lost again", "failed source_unavailable again", "failed source_unavailable final",
		"failed validation_mismatch again", "failed validation_mismatch final", "failed validation_refused final", "failed step_died again",
		"skipped loading", "skipped policy", "cancelled operator", "cancelled policy", "cancelled workspace_removed", "rolled back", "generation 2", "accepted and published")
}

func playMonths(t *testing.T, moves []move, ends map[string]int) (told []string, err error) {
	failed := Run(t, func(w *World) {
		p := newMonthPair(w)
		defer func() { p.model.count(ends) }()
		defer p.end()
		p.caps(3, 1)
		p.apply("EWR", aMonthly{start: "2040-02", mode: "chunked", drift: true})
		p.planNow(0, 0)
		for _, m := range moves {
			p.model.now = at2ms(w.Now())
			told = append(told, monthKinds[m.kind].do(p, m.a, m.b))
			if err = p.compare(); err != nil {
				return
			}
		}
	})
	if failed != nil {
		return told, failed
	}
	return told, err
}

// count counts how a sequence ended.
func (m *monthModel) count(ends map[string]int) {
	for id, r := range m.runs {
		end := r.State + " " + r.Reason
		if r.State == "failed" {
			if end = "failed " + r.Code + " again"; r.Next == 0 {
				end = "failed " + r.Code + " final"
			}
		}
		ends[strings.TrimSpace(end)]++
		if r.Generation > 1 {
			ends[fmt.Sprintf("generation %d", r.Generation)]++
		}
		if r.State == "published" && m.read[id].accepted != "" {
			ends["accepted and published"]++
		}
	}
	for _, n := range m.moves {
		ends["rolled back"] += n
	}
}

// waiting are the executions that ask for a step.
func (p *monthPair) waiting() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.env.jobs)) {
		if p.env.jobs[name].asked() != nil {
			names = append(names, name)
		}
	}
	return names
}

func (p *monthPair) stepper(t Kit) *snapshot.Steps {
	s := t.Stepper()
	s.Sources = unreachable{p.w.Data, p.env}
	return s
}

// once does the step that an execution asks for.
func (p *monthPair) once(x *jobExecution, in snapshot.StepInput) {
	result, err := p.stepper(p.w.Kit(nil)).Run(p.w.calm(StepTime), in)
	stale := p.model.stale(x.id, x.job)
	code := p.model.run(x.id, x.job, in.Step, x.caught)
	if codeOf(err) != code {
		p.wrong = fmt.Errorf("%s of %s: the product answers %v, the model says %q; stale: %v", in.Step, x.id, err, code, stale)
	} else if err == nil && !result.Done {
		p.wrong = fmt.Errorf("%s of %s is not done, although time was left", in.Step, x.id)
	}
	x.caught = code
	x.answer <- stepAnswer{result, err}
}

func (p *monthPair) stepOn(a, b int) string {
	name := oneOf(p.waiting(), a)
	if name == "" {
		return "no job waits for a step: " + p.dispatch(a, b)
	}
	x := p.env.jobs[name]
	in := *x.asked()
	p.once(x, in)
	return "step " + in.Step + " of " + name
}

func (p *monthPair) runOut(a, _ int) string {
	name := oneOf(p.waiting(), a)
	if name == "" {
		return "no job can run"
	}
	x, steps := p.env.jobs[name], ""
	for in := x.asked(); in != nil && p.wrong == nil; in = x.asked() {
		p.once(x, *in)
		steps += " " + in.Step
	}
	return name + " runs to its end:" + steps
}

// nextAttempt lets time pass until a retry is due, if there is one, claims what may be claimed, and runs a job.
func (p *monthPair) nextAttempt(a, b int) string {
	first := ms(0)
	for _, r := range p.model.runs {
		if r.Next > p.model.now && (first == 0 || r.Next < first) {
			first = r.Next
		}
	}
	if first > 0 && first < p.until {
		time.Sleep(time.Duration(first-p.model.now) * time.Millisecond)
		p.model.now = first
	}
	return "at " + ms2at(p.model.now).Format(time.TimeOnly) + ": " + p.dispatch(a, b) + ", " + p.runOut(a, b)
}

// rerun asks for a version, or has the checks accepted that the latest failed, and brings it to its end.
func (p *monthPair) rerun(a, b int) string {
	told := ""
	if b&1 == 0 {
		told = p.accept(a, b|2)
	} else {
		told = p.request(a, b)
	}
	return told + ", " + p.dispatch(a, b) + ", " + p.runOut(a, b)
}

func (p *monthPair) stepDying(a, b int) string {
	name := oneOf(p.waiting(), a)
	if name == "" {
		return "no job waits for a step"
	}
	x := p.env.jobs[name]
	in := *x.asked()
	var result snapshot.Result
	var err error
	died := p.w.dying("step", StepTime, 1+b>>1%24, deathForm(b), func(ctx context.Context, t Kit) {
		r, e := p.stepper(t).Run(ctx, in)
		if !workerOf(ctx).isDead() {
			result, err = r, e
		}
	})
	code := ""
	open := p.branches(func(m *monthModel) { code = m.run(x.id, x.job, in.Step, x.caught) })
	if died {
		code, err = "step_died", workflowtest.Died{Name: "Runtime.ExitError"}
	} else {
		open = open[len(open)-1:]
	}
	p.collapse(open)
	if !died && codeOf(err) != code {
		p.wrong = fmt.Errorf("%s of %s: the product answers %v, the model says %q", in.Step, x.id, err, code)
	}
	if in.Step != snapshot.StepSettle || !died { // a settle that dies is done again for what it was handed
		x.caught = code
	}
	x.answer <- stepAnswer{result, err}
	return fmt.Sprintf("step %s of %s, died at call %d: %v", in.Step, name, 1+b>>1%24, died)
}

// stepDoomed: the workflow tries a step seven times in all, and settles what never came back.
func (p *monthPair) stepDoomed(a, _ int) string {
	name := oneOf(p.waiting(), a)
	if name == "" {
		return "no job waits for a step"
	}
	x := p.env.jobs[name]
	in := *x.asked()
	for range 7 {
		p.w.dying("step", StepTime, 1, DieBefore, func(ctx context.Context, t Kit) { _, _ = p.stepper(t).Run(ctx, in) })
		if in.Step != snapshot.StepSettle {
			x.caught = "step_died"
		}
		x.answer <- stepAnswer{err: workflowtest.Died{Name: "Runtime.ExitError"}}
		if next := x.asked(); next == nil || next.Step != in.Step {
			break
		}
	}
	return "step " + in.Step + " of " + name + " dies at each of its tries"
}

func (p *monthPair) abort(a, _ int) string {
	name := oneOf(p.waiting(), a)
	if name == "" {
		return "no execution can be aborted"
	}
	p.w.Steps.Finish(p.env.jobs[name].arn, "ABORTED", "", "")
	return name + " is aborted"
}

func (p *monthPair) passTime(a, _ int) string {
	spans := []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Minute, 24 * time.Hour, 4 * time.Minute, 27 * 24 * time.Hour}
	d := spans[a%len(spans)]
	if p.model.now+d.Milliseconds() > p.until {
		return "no time is left to pass"
	}
	time.Sleep(d)
	return d.String() + " pass"
}

func (p *monthPair) planNow(int, int) string {
	tally, err := p.w.Kit(nil).Planner().Tick(p.w.calm(TickTime))
	p.w.must(err)
	if tally.Errors > 0 {
		p.wrong = fmt.Errorf("the planner counts errors: %+v", tally)
	}
	for _, ws := range theWorkspaces {
		p.model.planTick(ws)
	}
	return "plan"
}

func (p *monthPair) planDying(a, b int) string {
	n, form := 1+a%80, deathForm(b)
	died := p.w.dying("plan", TickTime, n, form, func(ctx context.Context, t Kit) { _, _ = t.Planner().Tick(ctx) })
	slots := p.model.caps[theOwner]
	for _, ws := range theWorkspaces {
		open := p.branches(func(m *monthModel) { m.planTick(ws) })
		p.model = p.rows.upTo(open)
	}
	if p.env.stopped = nil; died && slots == p.model.caps[theOwner] {
		return fmt.Sprintf("plan, %s at call %d, with no slot freed", form, n)
	}
	return fmt.Sprintf("plan, %s at call %d: %v", form, n, died)
}

func (p *monthPair) dispatch(int, int) string {
	tally, err := p.w.Kit(nil).MonthDispatcher().Tick(p.w.calm(TickTime))
	p.w.must(err)
	if tally.Errors > 0 {
		p.wrong = fmt.Errorf("the dispatcher counts errors: %+v", tally)
	}
	p.model.dispatch(p.did, true)
	return "dispatch"
}

func (p *monthPair) did(id string) aMonth { return p.rows.runs[id] }

func (p *monthPair) dispatchDying(a, b int) string {
	n, form := 1+a%32, deathForm(b)
	died := p.w.dying("dispatch", TickTime, n, form, func(ctx context.Context, t Kit) { _, _ = t.MonthDispatcher().Tick(ctx) })
	p.model.dispatch(p.did, !died)
	return fmt.Sprintf("dispatch, %s at call %d: %v", form, n, died)
}

func (p *monthPair) reconcile(int, int) string {
	found, err := p.w.Kit(nil).Reconciler().Tick(p.w.calm(TickTime))
	p.w.must(err)
	if found.Errors > 0 || found.Drift > 0 {
		p.wrong = fmt.Errorf("the reconciler counts errors or drift: %+v", found)
	}
	for _, id := range idsOf(p.model.runs) {
		p.model.reconcile(id)
	}
	return "reconcile"
}
