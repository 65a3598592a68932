package snapshot_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/source"
	"almanac/internal/source/athena"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// lake is the world of attempt jobs whose source is an Athena in memory. Its queries are of two kinds, rows and control; what
// each comes to is told by the test, the last answer for all that follow.
type lake struct {
	*attempts
	api           *memcloud.Athena
	rowsOf, sumOf []memcloud.AthenaAnswer
	read          []int64     // where results were read from
	metered       func(n int) // bytes of results that were read
	stopped       []string
	noStop        error
}

// lakeRows answers with the rows that rowsFrom makes, of Athena's types.
func lakeRows(n int, takes time.Duration) memcloud.AthenaAnswer {
	a := memcloud.AthenaAnswer{Takes: takes, Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 100 << 20}
	for _, c := range []types.ColumnInfo{{Name: aws.String("id"), Type: aws.String("bigint")}, {Name: aws.String("carrier"), Type: aws.String("varchar")}, {Name: aws.String("delay"), Type: aws.String("integer")},
		{Name: aws.String("fare"), Type: aws.String("decimal"), Precision: 12, Scale: 2}, {Name: aws.String("km"), Type: aws.String("double")}} {
		a.Columns = append(a.Columns, c)
	}
	for _, line := range expected(0, n) {
		var row []*string
		for _, cell := range strings.Split(line, "|") {
			if row = append(row, nil); cell != "∅" {
				row[len(row)-1] = &cell
			}
		}
		a.Rows = append(a.Rows, row)
	}
	return a
}

// lakeSums answers as the control query of n of them does.
func lakeSums(n int, takes time.Duration) memcloud.AthenaAnswer {
	delay, km := 0, 0.0
	for i := range n {
		delay, km = delay+i%7-3, km+float64(i)*0.1
	}
	text := func(v any) *string { s := fmt.Sprint(v); return &s }
	return memcloud.AthenaAnswer{Takes: takes, Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 1 << 20,
		Columns: []types.ColumnInfo{{Name: aws.String("rows"), Type: aws.String("bigint")}, {Name: aws.String("delay"), Type: aws.String("bigint")}, {Name: aws.String("km"), Type: aws.String("double")}},
		Rows:    [][]*string{{text(n), text(delay), text(km)}}}
}

// lakeBroken is a query that Athena could not run, or would not.
func lakeBroken(category, kind int32) memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 5 << 20, Reason: "for a reason", Error: &types.AthenaError{ErrorCategory: &category, ErrorType: &kind}}
}

func lakeTrips() snapshot.Definition {
	d := trips()
	d.Source, d.Mode = "lake", snapshot.Auto
	return d
}

func newLake(t testing.TB, d snapshot.Definition, n int) *lake {
	t.Helper()
	l := &lake{attempts: newAttempts(t, d), rowsOf: []memcloud.AthenaAnswer{lakeRows(n, 0)}, sumOf: []memcloud.AthenaAnswer{lakeSums(n, 0)}}
	_, err := l.s3.CreateBucket(bg, &s3.CreateBucketInput{Bucket: aws.String("results")})
	l.must(err)
	l.api = memcloud.NewAthena(l.steps.Clocks.Wall, l.s3)
	l.api.Hooks = l.s3.Hooks
	var asked [2]int
	l.api.Engine = func(q memcloud.AthenaQuery) memcloud.AthenaAnswer {
		kind, answers := 0, l.rowsOf
		if strings.Contains(q.SQL, "count(*) as rows") {
			kind, answers = 1, l.sumOf
		}
		asked[kind]++
		return answers[min(asked[kind], len(answers))-1]
	}
	l.steps.Sources = l
	return l
}

func (l *lake) source() *athena.Source {
	return &athena.Source{API: l.api, Results: l, Workgroup: "primary", Catalog: "AwsDataCatalog", Database: "lake", Output: "s3://results/", Now: l.steps.Clocks.Wall,
		Pause: func(ctx context.Context, d time.Duration) error {
			l.mu.Lock()
			l.now = l.now.Add(d)
			l.mu.Unlock()
			return ctx.Err()
		}}
}

func (l *lake) View(context.Context, string, string) (source.View, error) {
	return l.source().Apart(), nil
}

func (l *lake) Stop(ctx context.Context, name, workspace, id string) (source.Cost, error) {
	if l.stopped = append(l.stopped, name+" "+workspace+" "+id); l.noStop != nil {
		return source.Cost{}, l.noStop
	}
	return l.source().Stop(ctx, id)
}

// Open reads a result, and notes from where.
func (l *lake) Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error) {
	out, err := l.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: athena.Range(from)})
	if err != nil {
		return nil, err
	}
	l.read = append(l.read, from)
	return meter{out.Body, l.metered}, nil
}

// meter tells how much is read.
type meter struct {
	io.ReadCloser
	tell func(n int)
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.tell != nil {
		m.tell(n)
	}
	return n, err
}

// wantPaid demands that these queries of the run were paid for, "1 rows" in the first generation, each under the token of its
// number and generation, and that the run has their cost.
func (l *lake) wantPaid(id string, want ...string) {
	l.t.Helper()
	r := l.run(id)
	var got []string
	var cost source.Cost
	for i, q := range l.api.Started() {
		what, found := "rows", false
		if strings.Contains(q.SQL, "count(*) as rows") {
			what = "control"
		}
		for g := 1; g <= r.Generation; g++ {
			then := r
			if then.Generation = g; q.Token == then.QueryToken(i+1) {
				got, found = append(got, fmt.Sprintf("%d %s", g, what)), true
			}
		}
		if !found {
			l.t.Errorf("query %d, %s, is under no token of its number", i+1, what)
		}
		c, err := l.source().Stop(bg, q.ID)
		l.must(err)
		cost = cost.Add(c)
	}
	if !slices.Equal(got, want) {
		l.t.Fatalf("paid for are %q, want %q\n%s", got, want, l.log.String())
	}
	if r.QueryCost != cost || r.Query.Number != len(want) || r.Query.For != want[len(want)-1] {
		l.t.Errorf("the run says %+v and %+v; its queries have cost %+v", r.Query, r.QueryCost, cost)
	}
}
