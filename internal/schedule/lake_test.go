package schedule_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/athena"

	"github.com/aws/aws-sdk-go-v2/aws"
	athenatypes "github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// lakeResults reads what the Athena in memory has written.
type lakeResults struct{ s3 *memcloud.S3 }

func (r lakeResults) Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error) {
	out, err := r.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: athena.Range(from)})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// newLake is a world with a run that asks Athena; answers are what its queries come to, the last one for all that follow.
func newLake(t testing.TB, answers ...memcloud.AthenaAnswer) (*world, string) {
	w := newWorld(t)
	w.lake(answers...)
	return w, w.admitted(w.lakeDefinition())
}

func (w *world) lake(answers ...memcloud.AthenaAnswer) {
	w.must(w.store.PutSource(ctx, schedule.SourceConfig{Name: "lake", Engine: "athena", Workspaces: []string{"*"}, Athena: &schedule.AthenaSource{Workgroup: "primary", Database: "lake"}}, w.stop("test")))
	n := 0
	w.athena.Engine = func(memcloud.AthenaQuery) memcloud.AthenaAnswer {
		n++
		return answers[min(n, len(answers))-1]
	}
}

func (w *world) lakeDefinition() schedule.Definition {
	d := w.definition("s", "b")
	d.Source, d.Query = "lake", "SELECT id, delay FROM flights ORDER BY id"
	return d
}

// delays is the answer of a query that takes so long.
func delays(takes time.Duration) memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Takes: takes, Type: athenatypes.StatementTypeDml, Sub: "SELECT", Scanned: 100 << 20,
		Columns: []athenatypes.ColumnInfo{{Name: aws.String("id"), Type: aws.String("bigint")}, {Name: aws.String("delay"), Type: aws.String("bigint")}},
		Rows:    [][]*string{{aws.String("1"), aws.String("9007199254740993")}, {aws.String("2"), nil}}}
}

// brokenBy is the answer of a query that Athena could not run.
func brokenBy(category, kind int32) memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Type: athenatypes.StatementTypeDml, Sub: "SELECT", Scanned: 5 << 20, Reason: "for a reason",
		Error: &athenatypes.AthenaError{ErrorCategory: &category, ErrorType: &kind}}
}

// wantQueries demands that so many queries were paid for, each under the token of its number.
func (w *world) wantQueries(run string, n int) {
	w.t.Helper()
	r, started := w.run(run), w.athena.Started()
	if len(started) != n {
		w.t.Fatalf("%d queries are paid for, want %d: %s", len(started), n, w.dump())
	}
	for i, q := range started {
		if q.Token != schedule.QueryToken(r, i+1) {
			w.t.Errorf("query %d is not under the token of its number", i+1)
		}
	}
}

// A query that takes longer than an invocation costs no attempt: the run yields, and the next invocation waits for the
// same query.
func TestAQueryOutlivesItsInvocation(t *testing.T) {
	w, run := newLake(t, delays(17*time.Minute))
	w.deliver()
	r := w.run(run)
	if id := w.athena.Started()[0].ID; r.State != schedule.Running || r.QueryID != id || r.QueryNumber != 1 || r.Yields != 1 || r.AttemptsLeft != 5 || r.LeaseOwner != "" {
		t.Fatal(w.dump())
	}
	w.quiet()
	r = w.wantState(run, schedule.Succeeded, "")
	w.wantQueries(run, 1)
	if want := (source.Cost{Scanned: 100 << 20, Micros: 477}); r.Yields != 3 || r.AttemptsLeft != 4 || r.File.Rows != 2 || r.QueryCost != want || r.QueryNumber != 1 || r.QueryEnded {
		t.Errorf("%+v: %s", r.QueryCost, w.dump())
	}
	if w.counts["query_bytes_scanned"] != 100<<20 || w.counts["query_cost_micros"] != 477 {
		t.Errorf("%v", w.counts)
	}
}

// Whatever befalls whichever call, one query is paid for, and the run succeeds with its file.
func TestOneQueryIsPaidForWhateverBefallsACall(t *testing.T) {
	for f, name := range kinds {
		if f == sentTwice {
			continue // the SDK sends the same token: memcloud's own tests
		}
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				w, run := newLake(t, delays(6*time.Minute))
				at := w.faults.n
				met := false
				w.faults.plan = func(c outside) fault {
					if c.n != at+n {
						return none
					}
					met = true
					return f
				}
				w.quiet()
				w.hooks.server.Close()
				w.wantState(run, schedule.Succeeded, "")
				w.wantQueries(run, 1)
				if t.Failed() {
					t.Fatalf("call %d", n)
				}
				if !met {
					return
				}
			}
		})
	}
}

// A query that ends without a result for a reason that may pass is followed by the next one, under its own token.
func TestAQueryThatEndsWithoutAResult(t *testing.T) {
	w, run := newLake(t, brokenBy(1, 100), delays(time.Minute))
	w.deliver()
	if r := w.wantState(run, schedule.Running, failure.SourceUnavailable); !r.QueryEnded || r.QueryNumber != 1 || r.QueryCost != (source.Cost{Scanned: 5 << 20}) || r.AttemptsLeft != 4 {
		t.Fatal(w.dump())
	}
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	w.wantQueries(run, 2)
	if r.QueryNumber != 2 || r.QueryEnded || r.QueryCost != (source.Cost{Scanned: 105 << 20, Micros: 477}) || r.AttemptsLeft != 3 {
		t.Error(w.dump())
	}
}

func TestAQueryThatIsRefused(t *testing.T) {
	w, run := newLake(t, brokenBy(2, 1006))
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.QueryInvalid)
	w.wantQueries(run, 1)
	if r.QueryCost != (source.Cost{Scanned: 5 << 20}) || slices.Contains(w.faults.log, "Athena.StopQueryExecution") {
		t.Error(w.dump())
	}
}

func TestAQueryWithoutRows(t *testing.T) {
	none := delays(time.Minute)
	none.Rows = nil
	w := newWorld(t)
	w.lake(none)
	d := w.lakeDefinition()
	d.Empty = schedule.SuppressEmpty
	run := w.admitted(d)
	w.quiet()
	if r := w.wantState(run, schedule.Skipped, ""); r.QueryCost.Micros != 477 {
		t.Error(w.dump())
	}
}

// A run that is called off ends its query, and says what that has cost; that it cannot be ended keeps no run from failing.
func TestARunThatIsCalledOffStopsItsQuery(t *testing.T) {
	for name, row := range map[string]struct {
		off  func(*world, string)
		code failure.Code
	}{
		"stopped by a person": {func(w *world, run string) { _, err := w.editor.Stop(ctx, run, "too dear", "ann"); w.must(err) }, failure.StoppedByOperator},
		"schedule deleted":    {func(w *world, _ string) { w.must(w.editor.Delete(ctx, "s", "gone", "ann")) }, failure.ScheduleDeleted},
	} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deaf %v", name, deaf), func(t *testing.T) {
				w, run := newLake(t, delays(25*time.Minute))
				w.deliver()
				row.off(w, run)
				if deaf {
					w.faults.plan = func(c outside) fault {
						if c.name == "Athena.StopQueryExecution" {
							return lostBefore
						}
						return none
					}
				}
				w.quiet()
				r, state := w.wantState(run, schedule.Failed, row.code), w.athena.State(w.run(run).QueryID)
				if stopped := state == athenatypes.QueryExecutionStateCancelled; stopped == deaf || (r.QueryCost.Micros > 0) == deaf {
					t.Errorf("the query is %s, %+v", state, r.QueryCost)
				}
				w.wantQueries(run, 1)
			})
		}
	}
}

// A time-out is the query's, over all who waited for it. It was paid for, and no other query is.
func TestAQueryThatIsTooSlow(t *testing.T) {
	w := newWorld(t)
	w.lake(delays(time.Hour))
	d := w.lakeDefinition()
	d.Limits.Timeout = "8m"
	run := w.admitted(d)
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.QueryTooSlow)
	w.wantQueries(run, 1)
	if r.QueryNumber != 1 || r.QueryCost.Micros == 0 {
		t.Error(w.dump())
	}
}
