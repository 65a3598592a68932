package simulate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/athena"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// lakeBucket is where Athena leaves results.
const lakeBucket = "lake"

// lakes are the sources of Data and beside them "lake", which is Athena's.
type lakes struct {
	*Data
	t Kit
}

// Open asks the named source.
func (l lakes) Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error) {
	if name != lakeBucket {
		return l.Data.Open(ctx, name, workspace, q)
	}
	return l.athena().Open(ctx, q)
}

// View holds the named source; Athena is held at nothing.
func (l lakes) View(ctx context.Context, name, workspace string) (source.View, error) {
	if name != lakeBucket {
		return l.Data.View(ctx, name, workspace)
	}
	return l.athena().Apart(), nil
}

func (t Kit) sources() lakes { return lakes{t.w.Data, t} }

// Stop ends a query of Athena's.
func (l lakes) Stop(ctx context.Context, _, _, id string) (source.Cost, error) {
	return l.athena().Stop(ctx, id)
}

func (l lakes) athena() *athena.Source {
	return &athena.Source{API: l.t.w.Athena, Results: lakeResults{l.t.w.S3}, Workgroup: "primary", Catalog: schedule.GlueCatalog, Database: "lake", Output: "s3://" + lakeBucket + "/",
		Now: l.t.k.Now, Pause: l.t.k.pause}
}

type lakeResults struct{ s3 *memcloud.S3 }

func (r lakeResults) Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error) {
	out, err := r.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: athena.Range(from)})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// How the texts of queries go on, as Athena is given them: a schedule's, and a month's.
const (
	ofSchedules = "from flights order by id"
	ofMonths    = "from flights where origin = ?"
)

// asksLake has a definition's query go to Athena. The n-th query comes to the n-th answer, later ones to the last.
func asksLake(d schedule.Definition) schedule.Definition {
	d.Source, d.Query = lakeBucket, "select id, delay "+ofSchedules
	return d
}

func (w *World) lake(answers ...memcloud.AthenaAnswer) {
	t := w.Kit(nil)
	w.must(t.Store().PutSource(background, schedule.SourceConfig{Name: lakeBucket, Engine: schedule.EngineAthena, Workspaces: []string{"*"},
		Athena: &schedule.AthenaSource{Workgroup: "primary", Database: "lake"}}, t.audit("source")))
	n := 0
	w.Athena.Engine = func(memcloud.AthenaQuery) memcloud.AthenaAnswer {
		w.mu.Lock()
		defer w.mu.Unlock()
		n++
		return answers[min(n, len(answers))-1]
	}
}

// lakeRows is the answer of a query that takes so long.
func lakeRows(takes time.Duration) memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Takes: takes, Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 1 << 30,
		Columns: []types.ColumnInfo{{Name: aws.String("id"), Type: aws.String("bigint")}, {Name: aws.String("delay"), Type: aws.String("bigint")}},
		Rows:    [][]*string{{aws.String("1"), aws.String("5")}, {aws.String("2"), nil}}}
}

// lakeBroken is the answer of a query that Athena could not run.
func lakeBroken() memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Type: types.StatementTypeDml, Sub: "SELECT", Reason: "Query engine had an internal error",
		Error: &types.AthenaError{ErrorCategory: aws.Int32(1), ErrorType: aws.Int32(200)}}
}

// lakeScenarios ask Athena, whose queries go on without their caller.
func lakeScenarios() []Scenario {
	return []Scenario{
		{Name: "a query outlives its invocation", Half: "delivery", Ended: ended, Want: "succeeded b:submitted",
			Drive: one(asksLake(Once("s", "b")), func(w *World) { w.lake(lakeRows(6 * time.Minute)) })},
		{Name: "a query is asked again", Half: "delivery", Ended: ended, Want: "succeeded b:submitted",
			Drive: one(asksLake(Once("s", "b")), func(w *World) { w.lake(lakeBroken(), lakeRows(time.Second)) })},
		{Name: "stopped while its query runs", Half: "delivery", Ended: endedShort, Want: "failed stopped_by_operator", Or: []string{"succeeded"},
			Drive: one(asksLake(Once("s", "b")), func(w *World) {
				w.atOnce(2)
				w.lake(lakeRows(9 * time.Minute))
				w.insistAfter(3*time.Minute, "stop", stop)
			})},
	}
}

// queriesPaidOnce holds the queries that were started against the runs of the schedule s, which asks Athena beside the months: each is under the token of one of a run's numbers,
// and the next number's only where the one before ended without a result.
func queriesPaidOnce(w *World) error {
	started := map[string]memcloud.AthenaQuery{}
	for _, q := range w.Athena.Started() {
		if strings.Contains(q.SQL, ofMonths) {
			continue // of which another promise speaks
		}
		if _, twice := started[q.Token]; twice {
			return fmt.Errorf("two queries under one token")
		}
		started[q.Token] = q
	}
	known := 0
	runs, _, err := w.Kit(nil).Store().Runs(background, "s", "", 100)
	w.must(err)
	for _, r := range runs {
		for n := 1; n <= r.QueryNumber+1; n++ {
			q, there := started[schedule.QueryToken(r, n)]
			if !there {
				continue
			}
			known++
			if n == r.QueryNumber && q.ID != r.QueryID {
				return fmt.Errorf("run %s says query %s, it was %s", r.ID(), r.QueryID, q.ID)
			}
			if before, there := started[schedule.QueryToken(r, n-1)]; n > 1 && (!there || w.Athena.State(before.ID) == types.QueryExecutionStateSucceeded) {
				return fmt.Errorf("run %s paid for query %d although the one before has its result", r.ID(), n)
			}
		}
	}
	if n := len(started); n != known {
		return fmt.Errorf("%d queries were paid for, the runs know of %d", n, known)
	}
	return nil
}
