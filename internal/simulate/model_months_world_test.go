package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"
	"almanac/internal/source"

	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// monthPair is the product and the model of months, side by side.
type monthPair struct {
	w     *World
	env   *supplies
	rows  monthRows
	model *monthModel
	wrong error
	until ms
}

// jobExecution is one that Step Functions has started. It walks the product's one definition of the workflow, a step when an
// action says so, and waits for it as long as that takes.
type jobExecution struct {
	w      *World
	id     string
	job    int
	arn    string
	caught string // the code of the step that failed last
	answer chan stepAnswer
	cancel context.CancelFunc

	mu sync.Mutex
	in *snapshot.StepInput // the step that is asked for
}

func (x *jobExecution) closed() bool { return !x.w.Steps.Runs(x.arn) }

// asked is the step that it waits for; nil: it is over.
func (x *jobExecution) asked() *snapshot.StepInput {
	synctest.Wait()
	if x.closed() {
		x.cancel()
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.in
}

func (p *monthPair) started(arn, input string) {
	var j snapshot.Job
	p.w.must(json.Unmarshal([]byte(input), &j))
	ctx, cancel := context.WithCancel(background)
	x := &jobExecution{w: p.w, id: j.Run, job: j.Job, arn: arn, answer: make(chan stepAnswer), cancel: cancel}
	p.env.jobs[fmt.Sprintf("%s-j%d", j.Run, j.Job)] = x
	go func() {
		walked, err := workflowtest.Walk(ctx, snapshot.Workflow(StepTime), j, arn, func(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
			x.mu.Lock()
			x.in = &in
			x.mu.Unlock()
			select {
			case a := <-x.answer:
				return a.result, a.err
			case <-ctx.Done():
				return snapshot.Result{}, ctx.Err()
			}
		})
		status := sfntypes.ExecutionStatusSucceeded
		if walked.Failed {
			status = sfntypes.ExecutionStatusFailed
		}
		if err == nil {
			x.w.Steps.Finish(arn, status, "", walked.State)
		}
	}()
}

// unreachable is the source as the surroundings have it.
type unreachable struct {
	*Data
	env *supplies
}

func (s unreachable) View(ctx context.Context, name, workspace string) (source.View, error) {
	if s.env.down {
		return nil, failure.New(failure.SourceUnavailable, "as the surroundings say")
	}
	return s.Data.View(ctx, name, workspace)
}

var theWorkspaces = []string{"EWR", "JFK"}

func newMonthPair(w *World) *monthPair {
	env := &supplies{months: map[string][]int64{}, jobs: map[string]*jobExecution{}}
	p := &monthPair{w: w, env: env, rows: newMonthRows(), model: newMonthModel(env)}
	w.Unwatched, w.S3.Changed = true, nil
	w.DB.Changed = func(table string, old, new Row) {
		if table == Snapshots {
			p.rows.changed(old, new)
		}
	}
	w.Steps.OnStart = p.started
	w.Company()
	for _, ws := range theWorkspaces {
		p.workspace(ws, false)
	}
	p.model.now = at2ms(w.Now())
	p.until = p.model.now + 90*day
	return p
}

func (p *monthPair) end() {
	for _, x := range p.env.jobs {
		x.cancel()
	}
	synctest.Wait()
}

func (p *monthPair) workspace(id string, removed bool) {
	ws := schedule.Workspace{ID: id, Name: id, Zone: "UTC"}
	if removed {
		ws.Removed = "2040-01-01"
	}
	p.w.must(p.w.Kit(nil).Store().PutWorkspace(background, ws, p.w.Kit(nil).audit("workspace")))
	p.model.removed[id] = removed
}

func (p *monthPair) compare() error {
	synctest.Wait()
	if p.wrong != nil {
		return p.wrong
	}
	for _, x := range p.env.stopped {
		if !x.closed() {
			return fmt.Errorf("the job of %s was cancelled and goes on", x.id)
		}
	}
	p.env.stopped = nil
	if d := p.rows.unlike(p.model.monthRows); d != "" {
		return fmt.Errorf("%s", d)
	}
	return nil
}

func (p *monthPair) collapse(open []*monthModel) {
	p.env.stopped = nil // who died may not have come to it: the job's next write is refused
	why := ""
	for _, m := range open {
		d := p.rows.unlike(m.monthRows)
		if d == "" {
			p.model = m
			return
		}
		why += "\n  " + d
	}
	p.wrong = fmt.Errorf("a process died, and the product is in none of %d states that may be:%s", len(open), why)
}

func (p *monthPair) branches(do func(*monthModel)) (open []*monthModel) {
	m := p.model
	open = append(open, m.clone())
	m.step = func() { open = append(open, m.clone()) }
	do(m)
	m.step = func() {}
	return append(open, m)
}

// upTo picks the furthest of the states that the product is in, in the rows that any of them touches; the first where none is.
func (r monthRows) upTo(open []*monthModel) *monthModel {
	return furthest(open, func(m *monthModel) bool {
		return alike(r.series, open, m, func(m *monthModel) map[string]aSeries { return m.series }) &&
			alike(r.heads, open, m, func(m *monthModel) map[string]aHead { return m.heads }) &&
			alike(r.runs, open, m, func(m *monthModel) map[string]aMonth { return m.runs })
	})
}

func (d aMonthly) product(ws string) snapshot.Definition {
	out := Delays(ws, d.start)
	out.Mode, out.Off = snapshot.Mode(d.mode), d.off
	if d.mode == "single" {
		out.ChunkRows = 0
	}
	if d.watermark {
		out.Watermark = "select max(at) from flights"
	}
	if d.drift {
		most := 40.0
		out.Checks.DriftRows.ByVersion = &most
	}
	return out
}

// period names a period by two figures.
func (p *monthPair) period(a, b int) snapshot.Period {
	months := []string{"2040-02", "2040-02", "2040-01", "2040-02", "2040-03", "2040-02", "2039-12"}
	m, err := calendar.ParseMonth(months[b%len(months)])
	p.w.must(err)
	return snapshot.Period{Series: snapshot.Series{Workspace: theWorkspaces[a%4/3], Type: "delays"}, Month: m}
}

func (p *monthPair) answered(what string, err error, refused bool) {
	if (err != nil) != refused && p.wrong == nil {
		p.wrong = fmt.Errorf("%s: the product answers %v, the model says refused: %v", what, err, refused)
	}
}

// codeOf is the code of a step's error; empty: none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return string(failure.From(err).Code)
}

// checksOf names the failed checks of a model's verdict.
func checksOf(failed string) (names []string) {
	for _, f := range strings.Fields(failed) {
		name, _, _ := strings.Cut(f, "=")
		names = append(names, name)
	}
	return names
}
