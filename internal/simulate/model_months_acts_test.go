package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
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

func (p *monthPair) define(a, b int) string {
	ws := theWorkspaces[b&3/3]
	d := aMonthly{start: []string{"2040-02", "2040-02", "2040-01", "2039-12"}[a&3], mode: []string{"chunked", "single"}[a>>2&1], off: a&0x18 == 0x18, watermark: a>>5&3 == 3, drift: a&0x80 == 0}
	p.apply(ws, d)
	return fmt.Sprintf("define %s: %+v", ws, d)
}

func (p *monthPair) apply(ws string, d aMonthly) {
	_, err := p.w.Kit(nil).MonthEditor().SaveDefinition(background, d.product(ws), "ann", 0)
	p.answered("define "+ws, err, p.model.removed[ws])
	if versions := p.model.defs[ws]; err == nil && (len(versions) == 0 || versions[len(versions)-1] != d) {
		p.model.defs[ws] = append(versions, d)
	}
}

func (p *monthPair) load(a, b int) string {
	x := p.period(a, b)
	delays := [][]int64{{10, -3, 25}, {5}, {1, 2, 3, 4, 5, 6, 7}, {}, {8, 8, 8, 8}}[a>>1%5]
	name := x.Workspace + " " + x.Month.String()
	p.w.Data.Load(name, delays...)
	p.env.months[name] = delays
	p.env.moved++
	return fmt.Sprintf("load %s: %v", name, delays)
}

func (p *monthPair) mood(a, _ int) string {
	p.env.down, p.env.lost = a%5 == 1, 0
	if a%5 == 2 {
		p.env.lost = 1 + a>>4&1
	}
	p.w.Data.Lost = p.env.lost
	return fmt.Sprintf("the source: down %v, %d rows lost", p.env.down, p.env.lost)
}

func (p *monthPair) watermark(a, _ int) string {
	at := []string{"2040-01-15", "2040-02-01", "2040-02-02", "2040-03-02", "2040-05-01"}[a%5]
	t, err := time.Parse(time.DateOnly, at)
	p.w.must(err)
	p.w.Data.Complete, p.env.complete = t, at2ms(t)
	return "the source is complete up to " + at
}

func (p *monthPair) cancel(a, b int) string {
	id := oneOf(idsOf(p.model.runs), a)
	if open := slices.DeleteFunc(idsOf(p.model.runs), func(id string) bool { return finalMonth(p.model.runs[id]) }); len(open) > 0 && b%4 > 0 {
		id = oneOf(open, a)
	}
	if id == "" {
		return "there is no run to cancel"
	}
	_, err := p.w.Kit(nil).MonthEditor().Cancel(background, id, "enough", "ann")
	r := p.model.runs[id]
	p.answered("cancel "+id, err, finalMonth(r))
	if !finalMonth(r) {
		p.model.cancel(id, "operator")
	}
	return "cancel " + id
}

func (p *monthPair) retryNow(a, b int) string {
	list := idsOf(p.model.runs)
	if failed := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return p.model.runs[id].Next == 0 }); len(failed) > 0 && b%4 > 0 {
		list = failed
	}
	id := oneOf(list, a)
	if id == "" {
		return "there is no run to retry"
	}
	_, err := p.w.Kit(nil).MonthEditor().RetryNow(background, id, "mended", "ann")
	r := p.model.runs[id]
	no := r.State != "failed" || r.Next == 0
	p.answered("retry now "+id, err, no)
	if !no {
		r.Next = p.model.now
		p.model.runs[id] = r
	}
	return "retry now " + id
}

// mayRequest is whether a period may be asked for.
func (m *monthModel) mayRequest(x snapshot.Period) bool {
	ws, month := x.Workspace, x.Month.String()
	return len(m.defs[ws]) > 0 && m.heads[ws+" "+month].Active == 0 && month >= m.defined(ws).start && month <= m.lastClosed() && m.ineligible(ws, month) == ""
}

func (p *monthPair) request(a, b int) string {
	x := p.period(a, b)
	_, err := p.w.Kit(nil).MonthEditor().Request(background, x, "again", "ann")
	may := p.model.mayRequest(x)
	p.answered("request "+x.Workspace+" "+x.Month.String(), err, !may)
	if may {
		p.model.newVersion(x.Workspace, x.Month.String(), "", "ann")
	}
	return "request " + x.Workspace + " " + x.Month.String()
}

func (p *monthPair) accept(a, b int) string {
	m := p.model
	list := idsOf(m.runs)
	if failed := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return m.runs[id].Verdict != "failed" || !finalMonth(m.runs[id]) }); len(failed) > 0 && b%4 > 0 {
		list = failed
	}
	id := oneOf(list, a)
	if id == "" {
		return "there is no run whose checks can be accepted"
	}
	r, z := m.runs[id], m.read[id]
	var checks []string
	if r.Verdict == "failed" {
		checks = checksOf(z.failed)
	}
	_, err := p.w.Kit(nil).MonthEditor().Accept(background, id, checks, "it is so", "ann")
	period, version := headOfRun(id)
	x := p.periodNamed(period)
	may := r.State == "failed" && finalMonth(r) && len(checks) > 0 && m.heads[period].Latest == version && m.mayRequest(x)
	p.answered("accept "+id, err, !may)
	if may {
		m.newVersion(x.Workspace, x.Month.String(), "", "ann")
		accepted := slices.DeleteFunc(strings.Fields(z.accepted), func(f string) bool {
			name, _, _ := strings.Cut(f, "=")
			return slices.Contains(checks, name)
		})
		m.read[snapshotName(x.Workspace, x.Month.String(), version+1)] = aReading{accepted: strings.Join(accepted, " ") + z.failed}
	}
	return fmt.Sprintf("accept %v of %s", checks, id)
}

func (p *monthPair) periodNamed(period string) snapshot.Period {
	x := snapshot.Period{Series: snapshot.Series{Workspace: period[:3], Type: "delays"}}
	p.w.must(x.Month.UnmarshalText([]byte(period[4:])))
	return x
}

func (p *monthPair) rollBack(a, b int) string {
	m := p.model
	period := oneOf(idsOf(m.heads), a)
	if list := idsOf(m.pointers); len(list) > 0 && b%4 > 0 {
		period = oneOf(list, a)
	}
	if period == "" {
		return "there is no period to roll back"
	}
	version := 1 + b>>2%3
	_, err := p.w.Kit(nil).MonthEditor().RollBack(background, p.periodNamed(period), version, "it was right", "ann")
	now := m.pointers[period]
	no := m.heads[period].Active > 0 || now.Version == 0 || now.Version == version || m.runs[snapshotName(period[:3], period[4:], version)].State != "published"
	p.answered(fmt.Sprintf("roll back %s to %d", period, version), err, no)
	if !no {
		m.pointers[period] = aPointer{version, now.Version, "ann"}
		m.moves[period]++
	}
	return fmt.Sprintf("roll back %s to %d", period, version)
}

func (p *monthPair) changeCaps(a, _ int) string {
	most := 1 + a%4
	back := a >> 2 % most
	p.caps(most, back)
	return fmt.Sprintf("caps: %d, of them %d for backfills", most, back)
}

func (p *monthPair) caps(most, back int) {
	p.w.must(p.w.Kit(nil).MonthEditor().SaveOwner(background, snapshot.Owner{ID: theOwner, Name: theOwner, Cap: most, Backfill: back}, "ann"))
	c := p.model.caps[theOwner]
	c.Cap, c.Backfill = most, back
	p.model.caps[theOwner] = c
}

func (p *monthPair) remove(a, b int) string {
	ws := theWorkspaces[a&1]
	p.workspace(ws, b%3 == 0)
	return fmt.Sprintf("workspace %s: removed %v", ws, p.model.removed[ws])
}

func (p *monthPair) turn(a, _ int) string {
	on := a%3 > 0
	_, err := p.w.Kit(nil).Editor().Switch(background, schedule.Switches{Dispatch: &on}, "a test", "ann")
	p.w.must(err)
	p.model.off = !on
	return fmt.Sprintf("dispatch on: %v", on)
}
