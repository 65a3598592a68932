package simulate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/workflowtest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Delays is a definition of type delays for a workspace from a month on, in chunks of two rows.
func Delays(workspace, start string) snapshot.Definition {
	m, err := calendar.ParseMonth(start)
	if err != nil {
		panic(err)
	}
	return snapshot.Definition{Scope: snapshot.Scope{Workspace: workspace}, Type: "delays", Name: "Delays", Source: "flights", Start: m, Key: "id", Mode: snapshot.Chunked, ChunkRows: 2,
		Query:   "select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end",
		Control: "select count(*) as rows, sum(delay) as delay from flights where origin = :workspace and at >= :period_start and at < :period_end"}
}

// single is the same in one pass: it has fewer calls, for scenarios that are about something else.
func single(start string) snapshot.Definition {
	d := Delays("EWR", start)
	d.Mode = snapshot.Single
	return d
}

// Define saves a definition of months.
func (w *World) Define(d snapshot.Definition) {
	_, err := w.Kit(nil).MonthEditor().SaveDefinition(background, d, "ann", 0)
	w.must(err)
}

// Month reads a version of a month, such as "EWR_delays_2040-02_v1".
func (w *World) Month(id string) snapshot.Run {
	r, err := w.Kit(nil).Ledger().Run(background, id)
	w.must(err)
	return r
}

// february names a version of the last month that has closed, february1 the first.
func february(version int) string {
	return schema.SnapshotID("EWR", "delays", "2040-02", version)
}

var (
	february1  = february(1)
	inFebruary = periodNamed("2040-02")
)

func periodNamed(month string) snapshot.Period {
	p, _ := periodOfRun(schema.SnapshotID("EWR", "delays", month, 1))
	return p
}

// defined saves a definition and plans its months, with no fault: a scenario is about what follows.
func (w *World) defined(d snapshot.Definition) {
	w.Define(d)
	w.planNow()
}

func (w *World) planNow() {
	_, err := w.Kit(nil).Planner().Tick(background)
	w.must(err)
	w.quiet()
}

// quiet forgets the dispatch and the plan that were asked for so far.
func (w *World) quiet() {
	w.mu.Lock()
	w.saved, w.asked = false, 0
	w.mu.Unlock()
}

// attempted claims a version and walks its job to the end, with no fault and without an execution.
func (w *World) attempted(id string) {
	t := w.Kit(nil)
	r := w.Month(id)
	caps, err := t.Ledger().Caps(background, r.Owner)
	w.must(err)
	r, err = t.Ledger().Claim(background, r, caps.Owner, w.Now())
	w.must(err)
	_, err = workflowtest.Walk(background, snapshot.Workflow(StepTime), snapshot.Job{Run: id, Job: r.Job}, "arn:none", func(ctx context.Context, in snapshot.StepInput) (snapshot.Result, error) {
		return w.Kit(nil).Stepper().Run(ctx, in)
	})
	w.must(err)
	w.quiet()
}

// rerun asks for another version and walks it to its end.
func (w *World) rerun(id string) {
	p, _ := periodOfRun(id)
	_, err := w.Kit(nil).MonthEditor().Request(background, p, "again", "ann")
	w.must(err)
	w.attempted(id)
}

// Reach lets things happen until is says so, which is looked at after each of them.
func (w *World) Reach(what string, is func() bool) {
	end := w.Now().Add(72 * time.Hour)
	for n := 0; !is(); n++ {
		if n > maxSteps || !w.Step() && !w.Pass(end) {
			w.Failf("%s: never\n%s", what, w.Dump())
		}
	}
}

// inState reports whether a version is, or has got past, a state, and something of it besides.
func (w *World) inState(id string, s snapshot.State, besides func(Row) bool) func() bool {
	return func() bool {
		it := w.months.runs[id]
		return it != nil && (settledRow(it) || stateOf(it) == s && (besides == nil || besides(it)))
	}
}

// between has an act come between two calls of what is under way: its calls go before all others.
func (w *World) between(name string, do func(context.Context, Kit) error) {
	w.Workers = max(w.Workers, 2)
	if w.Choose == nil {
		w.Choose = preferring(name)
	}
	w.Insist(w.Now(), name, do)
}

// preferring chooses what is of a name before all else.
func preferring(name string) func([]Option) int {
	return func(options []Option) int {
		return max(0, slices.IndexFunc(options, func(o Option) bool {
			return strings.Contains(o.Name, name) || o.Call != nil && strings.Contains(o.Call.Worker.Name, name)
		}))
	}
}

// tickUntil fires a rule in its rhythm, whether its function finds something or not.
func (w *World) tickUntil(rule string, is func() bool) {
	for n := 0; !is(); n++ {
		if n == 20 {
			w.Failf("%s has fired %d times\n%s", rule, n, w.Dump())
		}
		w.fire(rule)
		w.For(every[rule])
	}
}

// refuse has the source fail the calls of a name whose numbers are given, counted from 1.
func (w *World) refuse(name string, code failure.Code, numbers ...int) {
	n, before := 0, w.Data.Refuse
	w.Data.Refuse = func(called string) error {
		if before != nil {
			if err := before(called); err != nil {
				return err
			}
		}
		if called != name {
			return nil
		}
		if n++; slices.Contains(numbers, n) {
			return failure.New(code, "%s %d is refused", name, n)
		}
		return nil
	}
}

// held holds rules back until what is given says that they may go on.
func (w *World) held(until func(), rules ...string) {
	for _, r := range rules {
		w.Off[r] = true
	}
	until()
	for _, r := range rules {
		delete(w.Off, r)
	}
}

// settledMonths tells how every version has settled, "2040-02 v1 published g2 f1" in its second generation after one
// failure, and what people did to them.
func settledMonths(w *World) string {
	var words []string
	for _, id := range slices.Sorted(maps.Keys(w.months.runs)) {
		r := w.Month(id)
		word := fmt.Sprintf("%s v%d %s", r.Month, r.Version, r.State)
		switch r.State {
		case snapshot.Failed:
			word += " " + r.ErrorCode
		case snapshot.Cancelled, snapshot.Skipped:
			word += " " + r.Reason
		case snapshot.Published:
			word += fmt.Sprintf(" g%d", r.Generation)
		}
		if r.Failures > 0 {
			word += fmt.Sprintf(" f%d", r.Failures)
		}
		words = append(words, word)
	}
	for _, it := range w.DB.Items(Snapshots) {
		if subject, ok := strings.CutPrefix(Text(it, schema.PK), "AUDIT#EWR_delays_"); ok {
			words = append(words, Text(it, schema.What)+" "+strings.Replace(subject, "_", " ", 1))
		}
	}
	return strings.Join(words, ", ")
}

// pointing adds the current version of February and the one before it.
func pointing(w *World) string {
	p, err := w.Kit(nil).Ledger().Pointer(background, inFebruary)
	w.must(err)
	return fmt.Sprintf("%s; %d before %d", settledMonths(w), p.Version, p.Previous)
}

// attempt is one version that was published, in a word of settledMonths.
var attempt = regexp.MustCompile(`published g(\d)(?: f(\d))?|cancelled (?:operator|policy)(?: f(\d))?`)

// orLater are the words of an end with one more failed attempt of one version, after which the next one went on in its
// generation or in a new one: a source whose answer is lost, or a process whose time is up, fails it. To them come others.
func orLater(want string, others ...string) []string {
	for _, at := range attempt.FindAllStringSubmatchIndex(want, -1) {
		number := func(group int) (n int) {
			if at[2*group] >= 0 {
				n = int(want[at[2*group]] - '0')
			}
			return n
		}
		if at[2] >= 0 {
			for more := range 2 {
				others = append(others, fmt.Sprintf("%spublished g%d f%d%s", want[:at[0]], number(1)+more, number(2)+1, want[at[1]:]))
			}
		} else {
			word, _, _ := strings.Cut(want[at[0]:at[1]], " f")
			others = append(others, fmt.Sprintf("%s%s f%d%s", want[:at[0]], word, number(3)+1, want[at[1]:]))
		}
	}
	return others
}

// put changes attributes of a row by hand; nil removes one.
func (w *World) put(key schema.Key, attributes map[string]types.AttributeValue) {
	for _, it := range w.DB.Items(Snapshots) {
		if Text(it, schema.PK) != string(key.PK) || Text(it, schema.SK) != string(key.SK) {
			continue
		}
		for name, v := range attributes {
			if it[name] = v; v == nil {
				delete(it, name)
			}
		}
		_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Snapshots), Item: it})
		w.must(err)
		return
	}
	w.Failf("there is no row %v", key)
}

func monthScenarios() []Scenario {
	list := slices.Concat(attemptScenarios(), actScenarios(), lossScenarios(), lakeMonthScenarios())
	for i := range list {
		s := &list[i]
		s.Half = "months"
		if s.Ended == nil {
			s.Ended = settledMonths
		}
		s.Or = orLater(s.Want, s.Or...)
	}
	return list
}

func attemptScenarios() []Scenario {
	return []Scenario{
		{Name: "chunked", Ended: pointing, Want: "2040-02 v1 published g1; 1 before 0", Drive: func(w *World) { w.Define(Delays("EWR", "2040-02")) }},
		{Name: "single", Ended: pointing, Want: "2040-02 v1 published g1; 1 before 0", Drive: func(w *World) {
			d := single("2040-02")
			d.Mode = snapshot.Auto
			w.defined(d)
		}},
		{Name: "fails four times", Want: "2040-02 v1 failed source_unavailable f4", Or: []string{"2040-02 v1 failed out_of_time f4"}, Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceUnavailable, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		}},
		// A try whose process died has used up a refusal too.
		{Name: "succeeds at the third attempt", Want: "2040-02 v1 published g1 f2", Or: []string{"2040-02 v1 published g1 f1"}, Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceUnavailable, 1, 2)
		}},
		{Name: "goes on at the cursor", Want: "2040-02 v1 published g1 f1", Drive: func(w *World) {
			w.defined(Delays("EWR", "2040-02"))
			w.refuse("Source.Next", failure.SourceUnavailable, 4) // the first chunk is committed
		}},
		// An attempt that failed before the source moved had no generation to lose.
		{Name: "the source moves between attempts", Want: "2040-02 v1 published g2 f1", Or: []string{"2040-02 v1 published g1 f2"}, Drive: func(w *World) {
			w.defined(Delays("EWR", "2040-02"))
			w.refuse("Source.Next", failure.SourceUnavailable, 4)
			w.Reach("the first failure", w.inState(february1, snapshot.Failed, nil))
			w.Data.Load("EWR 2040-02", 7, 8, 9, 10)
		}},
		{Name: "the source does not understand", Want: "2040-02 v1 failed query_invalid f1", Or: []string{"2040-02 v1 failed query_invalid f2"}, Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.Open", failure.QueryInvalid, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		}},
		{Name: "a check refuses", Want: "2040-02 v1 failed validation_refused f1", Or: []string{"2040-02 v1 failed validation_refused f2"},
			Drive: func(w *World) { w.defined(refusing()) }},
		// The data are mended after the first failure, whatever it was.
		{Name: "a mismatch is mended", Want: "2040-02 v1 published g2 f1", Or: []string{"2040-02 v1 published g1 f1"}, Drive: func(w *World) {
			w.Data.Lost = 1
			w.defined(Delays("EWR", "2040-02"))
			w.Reach("the mismatch", w.inState(february1, snapshot.Failed, nil))
			w.Data.Lost = 0
		}},
		{Name: "loading, then planned", Want: "2040-02 v1 skipped loading, 2040-02 v2 published g1", Drive: func(w *World) {
			d := single("2040-02")
			d.Watermark = "select max(at) from flights"
			w.Data.Complete = time.Date(2040, 3, 1, 0, 0, 0, 0, time.UTC)
			w.Define(d)
			w.Reach("that it loads", func() bool { return w.months.runs[february1] != nil })
			w.For(10 * time.Minute)
			w.Data.Complete = Start
		}},
		{Name: "backfills at the cap", Want: "2039-12 v1 published g1, 2040-01 v1 published g1, 2040-02 v1 published g1", Drive: func(w *World) {
			w.must(w.Kit(nil).MonthEditor().SaveOwner(background, snapshot.Owner{ID: snapshot.DefaultOwner, Name: "Default", Cap: 2, Backfill: 1}, "ann"))
			w.defined(single("2039-12"))
		}},
		{Name: "two dispatchers", Want: "2040-01 v1 published g1, 2040-02 v1 published g1", Drive: func(w *World) {
			w.defined(single("2040-01"))
			w.Workers = max(w.Workers, 2)
			if w.Choose == nil {
				w.Choose = inTurns()
			}
			w.fire(ruleMonths)
			w.fire(ruleMonths)
		}},
	}
}

// refusing is a definition whose check no row of the source passes.
func refusing() snapshot.Definition {
	d := single("2040-02")
	d.Checks.Types = map[string]string{"delay": "text"}
	return d
}

// inTurns lets one call of each worker go after the other.
func inTurns() func([]Option) int {
	n := 0
	return func(options []Option) int { n++; return n % len(options) }
}
