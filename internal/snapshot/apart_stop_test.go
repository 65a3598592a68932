package snapshot_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

type noJobs struct{}

func (noJobs) Stop(context.Context, string, string) error { return nil }

func (l *lake) editor() *snapshot.Editor {
	return &snapshot.Editor{Ledger: l.ledger, Jobs: noJobs{}, Queries: l, Dispatch: asking{l.attempts}, Clocks: l.steps.Clocks, Timing: l.steps.Timing, Token: l.steps.Token, Log: l.steps.Log}
}

// waiting is a run whose rows are asked for, and whose query will take a while.
func waiting(t *testing.T) (*lake, snapshot.Job) {
	l := newLake(t, lakeTrips(), 250)
	l.rowsOf[0].Takes = 20 * time.Minute
	r := l.plan(newark)
	j := l.claim(r.ID())
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate} {
		if got, err := l.call(bg, snapshot.StepInput{Step: step, Job: j}); err != nil || got.Done != (step == snapshot.StepStart) {
			t.Fatalf("%s: %+v %v", step, got, err)
		}
	}
	return l, j
}

// The query of a run that a person cancels is stopped, and what it has cost stands on the run; the step that comes late does nothing.
func TestACancelStopsTheQuery(t *testing.T) {
	l, j := waiting(t)
	id := l.run(j.Run).Query.ID
	r, err := l.editor().Cancel(bg, j.Run, "not needed", "ann")
	if err != nil || r.State != snapshot.Cancelled || l.api.State(id) != types.QueryExecutionStateCancelled {
		t.Fatalf("%s, the query is %s: %v", r.State, l.api.State(id), err)
	}
	if row := l.run(j.Run); row.QueryCost.Scanned == 0 || row.QueryCost.Micros == 0 || !row.Query.Noted || row.QueryCost != r.QueryCost {
		t.Errorf("%+v, the answer says %+v", row.QueryCost, r.QueryCost)
	}
	if got, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err != nil || !got.Done || len(l.api.Started()) != 1 {
		t.Errorf("%+v %v", got, err)
	}
}

// That a query cannot be stopped keeps nobody from cancelling; that its source's definition cannot be read neither.
func TestACancelWhoseQueryCannotBeStopped(t *testing.T) {
	for name, broken := range map[string]func(*lake){
		"the engine is away":       func(l *lake) { l.noStop = errors.New("away") },
		"its definition is away":   func(l *lake) { l.failing("GetItem", "DEF") },
		"its cost cannot be noted": func(l *lake) { l.failing("UpdateItem", "query_noted") },
	} {
		l, j := waiting(t)
		broken(l)
		if r, err := l.editor().Cancel(bg, j.Run, "not needed", "ann"); err != nil || r.State != snapshot.Cancelled || !strings.Contains(l.log.String(), "could not be stopped") {
			t.Errorf("%s: %s %v", name, r.State, err)
		}
		if r := l.run(j.Run); r.Query.Noted || r.QueryCost != (source.Cost{}) {
			t.Errorf("%s: %+v", name, r.QueryCost)
		}
	}
}

// failing lets calls of the store fail that are of an operation and name something.
func (l *lake) failing(operation, naming string) {
	l.db.Hooks.Before = func(_ context.Context, c memcloud.Call) error {
		if c.Operation == operation && strings.Contains(said(c), naming) {
			return errors.New("cut")
		}
		return nil
	}
}

// said is a call's input as JSON.
func said(c memcloud.Call) string {
	b, _ := json.Marshal(c.Input)
	return string(b)
}

// stops notes what is stopped, and what that has cost.
type stops struct {
	asked []string
	cost  source.Cost
}

func (s *stops) Stop(_ context.Context, name, workspace, id string) (source.Cost, error) {
	s.asked = append(s.asked, name+" "+workspace+" "+id)
	return s.cost, nil
}

// The planner that cancels what is no longer generated stops its query too, and counts what it has cost.
func TestThePlannerStopsTheQueryOfWhatItCancels(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.claim()
	r := d.begin("EWR_delays_2040-02_v1")
	d.must(d.store.RecordQuery(ctx, r, snapshot.Query{For: "1 rows", ID: "q-1"}))
	queries := &stops{cost: source.Cost{Scanned: 7, Micros: 48}}
	d.planner.Queries = queries
	d.workspace("EWR", func(w *schedule.Workspace) { w.Removed = "2040-03-05" })
	d.plan()
	r = d.run(r.ID())
	if r.State != snapshot.Cancelled || r.QueryCost != queries.cost || !slices.Equal(queries.asked, []string{"flights EWR q-1"}) || d.counts["query_cost_micros"] != 48 {
		t.Errorf("%s %+v, stopped %q, %v", r.State, r.QueryCost, queries.asked, d.counts)
	}
}

// A query that was started for a run which was cancelled meanwhile is stopped by who started it.
func TestAQueryIsStartedForNobody(t *testing.T) {
	for _, broken := range []error{nil, errors.New("away")} {
		l := newLake(t, lakeTrips(), 250)
		l.noStop = broken
		l.rowsOf[0].Takes = 20 * time.Minute
		r := l.plan(newark)
		j := l.claim(r.ID())
		_, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
		l.must(err)
		l.api.Hooks.After = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == "StartQueryExecution" {
				_, err := l.editor().Cancel(bg, j.Run, "not needed", "ann")
				l.must(err)
			}
			return nil
		}
		got, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
		if err != nil || !got.Done || got.State != snapshot.Cancelled {
			t.Fatalf("%+v %v", got, err)
		}
		q := l.api.Started()[0]
		if stopped := l.api.State(q.ID) == types.QueryExecutionStateCancelled; stopped != (broken == nil) || l.run(j.Run).Query.ID != "" || !slices.Equal(l.stopped, []string{"lake EWR " + q.ID}) {
			t.Errorf("the query is %s, stopped were %q", l.api.State(q.ID), l.stopped)
		}
		if warned := strings.Contains(l.log.String(), "could not be stopped"); warned != (broken != nil) {
			t.Error(l.log.String())
		}
	}
}

// Two calls that both ask, of which one was refused the record: where the engine gave both the same query it is waited for,
// where it did not the one that nobody recorded is stopped.
func TestTwoCallsAskAtOnce(t *testing.T) {
	for _, purpose := range []string{"1 rows", "1 control"} {
		for _, same := range []bool{true, false} {
			l := newLake(t, lakeTrips(), 250)
			r := l.plan(newark)
			j := l.claim(r.ID())
			n, mine := 0, false
			l.api.Hooks.After = func(_ context.Context, c memcloud.Call) error {
				if c.Operation != "StartQueryExecution" || mine {
					return nil
				}
				if n++; (n == 1) != (purpose == "1 rows") {
					return nil
				}
				id := l.api.Started()[len(l.api.Started())-1].ID
				if !same { // the token was forgotten
					sql := *c.Input.(*athena.StartQueryExecutionInput).QueryString
					mine = true
					out, err := l.api.StartQueryExecution(bg, &athena.StartQueryExecutionInput{QueryString: &sql, ResultConfiguration: c.Input.(*athena.StartQueryExecutionInput).ResultConfiguration})
					l.must(err)
					mine = false
					id = *out.QueryExecutionId
				}
				l.must(l.ledger.RecordQuery(bg, l.run(j.Run), snapshot.Query{For: purpose, ID: id}))
				return nil
			}
			l.walk(j)
			r = l.published(r.ID())
			if got := l.rows(l.current(newark)); !slices.Equal(got, expected(0, 250)) || len(l.stopped) != map[bool]int{true: 0, false: 1}[same] || r.Attempts != 1 {
				t.Errorf("%s, the same %t: %d rows, stopped %q, attempt %d", purpose, same, len(got), l.stopped, r.Attempts)
			}
		}
	}
}

// Who settles an attempt stops the query that no later one waits for, and no other.
func TestASettledAttemptAndItsQuery(t *testing.T) {
	passing := snapshot.Caught{Error: snapshot.NamePassing, Cause: `{"errorMessage":"source_unavailable: away"}`}
	for name, row := range map[string]struct {
		caught     snapshot.Caught
		validating bool
		stopped    bool
	}{
		"to be tried again":                {passing, false, false},
		"for good":                         {snapshot.Caught{Error: snapshot.NameRefused, Cause: `{"errorMessage":"key_invalid: NULL"}`}, false, true},
		"in validating, to be tried again": {passing, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, j := waiting(t)
			if row.validating {
				l.now = l.now.Add(time.Hour)
				l.sumOf[0].Takes = time.Hour
				for _, step := range []string{snapshot.StepGenerate, snapshot.StepValidate} {
					_, err := l.call(bg, snapshot.StepInput{Step: step, Job: j})
					l.must(err)
				}
			}
			before := l.run(j.Run)
			_, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepSettle, Job: j, Error: row.caught})
			l.must(err)
			r := l.run(j.Run)
			state := l.api.State(before.Query.ID)
			if r.State != snapshot.Failed || (state == types.QueryExecutionStateCancelled) != row.stopped || r.Query.Noted != row.stopped || (r.QueryCost.Micros > before.QueryCost.Micros) != row.stopped {
				t.Errorf("%s, the query is %s, %+v", r.State, state, r.Query)
			}
		})
	}
	t.Run("of sources that stop nothing", func(t *testing.T) {
		l, j := waiting(t)
		l.steps.Sources = viewing{l}
		_, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepSettle, Job: j, Error: snapshot.Caught{Error: snapshot.NameRefused, Cause: `{"errorMessage":"key_invalid: NULL"}`}})
		if r := l.run(j.Run); err != nil || !r.Final() || len(l.stopped) != 0 {
			t.Errorf("%s %v", r.State, err)
		}
	})
	t.Run("that is recorded for nobody, of sources that stop nothing", func(t *testing.T) {
		l := newLake(t, lakeTrips(), 250)
		l.steps.Sources = viewing{l}
		j := l.claim(l.plan(newark).ID())
		l.api.Hooks.After = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == "StartQueryExecution" {
				_, err := l.editor().Cancel(bg, j.Run, "not needed", "ann")
				l.must(err)
			}
			return nil
		}
		l.walk(j)
		if !strings.Contains(l.log.String(), "has no queries that can be stopped") {
			t.Error(l.log.String())
		}
	})
}

// viewing has nothing but views.
type viewing struct{ l *lake }

func (v viewing) View(ctx context.Context, name, workspace string) (source.View, error) {
	return v.l.View(ctx, name, workspace)
}

// What became of a query that cannot be noted is no result yet: the step is tried again, and pays for nothing.
func TestWhatBecameOfAQueryIsNotedFirst(t *testing.T) {
	for name, answer := range map[string]memcloud.AthenaAnswer{"with a result": lakeRows(250, 0), "without one": lakeBroken(1, 100)} {
		l := newLake(t, lakeTrips(), 250)
		l.rowsOf = []memcloud.AthenaAnswer{answer}
		j := l.claim(l.plan(newark).ID())
		_, err := l.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
		l.must(err)
		l.failing("UpdateItem", `"query_noted"`)
		noted := l.db.Hooks.Before
		l.db.Hooks.Before = func(ctx context.Context, c memcloud.Call) error {
			if strings.Contains(said(c), `"query_for"`) && strings.Contains(said(c), "SET") && strings.Contains(said(c), "query_number") {
				return nil
			}
			return noted(ctx, c)
		}
		_, err = l.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
		var disturbed snapshot.Disturbed
		if r := l.run(j.Run); !errors.As(err, &disturbed) || r.Cursor.Chunk != 0 || r.Query.ID == "" || r.Query.Noted {
			t.Errorf("%s: %v, %+v", name, err, r.Query)
		}
	}
}

// A month that is judged anew before it is published looks at its control query again, and pays for none.
func TestAMonthThatIsJudgedAnewPaysForNothing(t *testing.T) {
	l := newLake(t, lakeTrips(), 250)
	one := l.publish(newark)
	l.publish(newark)
	paid := len(l.api.Started())
	j := l.claim(l.plan(newark).ID())
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate, snapshot.StepValidate} {
		_, err := l.call(bg, snapshot.StepInput{Step: step, Job: j})
		l.must(err)
	}
	l.repoint(one)
	// the call's time is up when it looks at the query
	over := false
	l.api.Hooks.Before = func(_ context.Context, c memcloud.Call) error { over = true; return io.ErrUnexpectedEOF }
	_, err := l.call(expiring{bg, &over}, snapshot.StepInput{Step: snapshot.StepPublish, Job: j})
	if f := failure.From(err); f == nil || f.Code != failure.OutOfTime {
		t.Fatal(err)
	}
	l.api.Hooks.Before = nil
	_, err = l.call(bg, snapshot.StepInput{Step: snapshot.StepPublish, Job: j})
	l.must(err)
	l.published(j.Run)
	if n := len(l.api.Started()); n != paid+2 {
		t.Errorf("%d queries for one month", n-paid)
	}
}

// expiring is a context whose time is over once somebody says so.
type expiring struct {
	context.Context
	over *bool
}

func (e expiring) Err() error {
	if *e.over {
		return context.DeadlineExceeded
	}
	return nil
}
