package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

// lakeMonths is a definition whose queries go to Athena.
func lakeMonths() snapshot.Definition {
	d := Delays("EWR", "2040-02")
	d.Source, d.Mode = lakeBucket, snapshot.Auto
	return d
}

// Kinds of query of a month, by their text.
const (
	lakeOfRows    = "rows"
	lakeOfControl = "control"
)

func lakeKind(sql string) string {
	if strings.Contains(sql, "count(*) as rows") {
		return lakeOfControl
	}
	return lakeOfRows
}

// lakeOf has Athena hold what Data holds. A query of a kind takes as long as is told; first are what the first ones of a kind
// come to before that.
func (w *World) lakeOf(takes map[string]time.Duration, first map[string][]memcloud.AthenaAnswer) {
	asked := map[string]int{}
	w.Athena.Engine = func(q memcloud.AthenaQuery) memcloud.AthenaAnswer {
		w.Data.mu.Lock()
		defer w.Data.mu.Unlock()
		kind := lakeKind(q.SQL)
		if n := asked[kind]; n < len(first[kind]) {
			asked[kind]++
			return first[kind][n]
		}
		w.Data.tokens[q.Token] = fmt.Sprintf("v%d", w.Data.moved)
		month := strings.Trim(q.Parameters[0], "'") + " " + strings.TrimPrefix(q.Parameters[1], "TIMESTAMP '")[:len("2040-02")]
		return w.Data.lakeAnswer(kind, month, takes[kind])
	}
}

func (d *Data) lakeAnswer(kind, month string, takes time.Duration) memcloud.AthenaAnswer {
	a := memcloud.AthenaAnswer{Takes: takes, Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 1 << 30}
	number := func(n int64) *string { return aws.String(fmt.Sprint(n)) }
	column := func(name string) types.ColumnInfo {
		return types.ColumnInfo{Name: aws.String(name), Type: aws.String("bigint")}
	}
	sum := int64(0)
	for i, delay := range delaysIn(d.months, month) {
		sum += delay
		a.Rows = append(a.Rows, []*string{number(int64(i + 1)), number(delay)})
	}
	if kind == lakeOfRows {
		a.Columns = []types.ColumnInfo{column("id"), column("delay")}
		return a
	}
	a.Columns, a.Rows = []types.ColumnInfo{column("rows"), column("delay")}, [][]*string{{number(int64(len(a.Rows) + d.Lost)), number(sum)}}
	return a
}

// lakeVersion is the version of the source that a query saw; of any other source the version is its own name.
func (w *World) lakeVersion(version string) string {
	for _, q := range w.Athena.Started() {
		if q.ID == version {
			w.Data.mu.Lock()
			defer w.Data.mu.Unlock()
			return w.Data.tokens[q.Token]
		}
	}
	return version
}

// lakeMonthScenarios make months from Athena, whose queries go on without their caller.
func lakeMonthScenarios() []Scenario {
	broken := []memcloud.AthenaAnswer{lakeBroken()}
	refused := lakeBroken()
	refused.Error = &types.AthenaError{ErrorCategory: aws.Int32(2), ErrorType: aws.Int32(1006)}
	asked := func(it Row) bool { return Text(it, schema.QueryFor) != "" }
	const cancelled = "2040-02 v1 cancelled operator, cancel 2040-02 v1"
	cancelAt := func(kind string, state snapshot.State) Scenario {
		return Scenario{Name: "cancelled while its " + kind + " is asked for", Ended: lastQuery, Want: cancelled + "; its query CANCELLED", Or: slices.Concat(
			[]string{"2040-02 v1 published g1; its query SUCCEEDED", cancelled + "; its query SUCCEEDED", cancelled + "; its query RUNNING", cancelled + "; its query QUEUED"},
			orLater(cancelled+"; its query SUCCEEDED"), orLater(cancelled+"; its query RUNNING"), orLater("2040-02 v1 published g1; its query SUCCEEDED")),
			Drive: func(w *World) {
				w.lakeOf(map[string]time.Duration{kind: 20 * time.Second}, nil)
				w.defined(lakeMonths())
				w.Reach("that its query runs", w.inState(february1, state, func(it Row) bool { return Text(it, schema.QueryFor) == "1 "+kind }))
				w.between("person", cancelling(february1))
			}}
	}
	return []Scenario{
		{Name: "a month's queries outlive their steps", Ended: lastQuery, Want: "2040-02 v1 published g1; its query SUCCEEDED", Drive: func(w *World) {
			w.lakeOf(map[string]time.Duration{lakeOfRows: 5 * time.Minute, lakeOfControl: time.Minute}, nil)
			w.defined(lakeMonths())
		}},
		{Name: "a month's queries are asked again", Ended: lastQuery, Want: "2040-02 v1 published g2 f2; its query SUCCEEDED",
			// A step that died after it had noted the end asks again when it is tried again: that is no failure.
			Or: []string{"2040-02 v1 published g2 f1; its query SUCCEEDED", "2040-02 v1 published g1 f1; its query SUCCEEDED"}, Drive: func(w *World) {
				w.lakeOf(nil, map[string][]memcloud.AthenaAnswer{lakeOfRows: broken, lakeOfControl: broken})
				w.defined(lakeMonths())
			}},
		{Name: "a month's query is refused", Ended: lastQuery, Want: "2040-02 v1 failed query_invalid f1; its query FAILED", Or: []string{"2040-02 v1 failed query_invalid f2; its query FAILED"}, Drive: func(w *World) {
			w.lakeOf(nil, map[string][]memcloud.AthenaAnswer{lakeOfRows: {refused, refused, refused, refused}})
			w.defined(lakeMonths())
		}},
		{Name: "the lake moves between rows and control", Ended: lastQuery, Want: "2040-02 v1 published g2 f1; its query SUCCEEDED", Or: []string{"2040-02 v1 published g1; its query SUCCEEDED", "2040-02 v1 published g1 f1; its query SUCCEEDED"}, Drive: func(w *World) {
			w.lakeOf(nil, nil)
			w.defined(lakeMonths())
			w.Reach("that its rows are asked for", w.inState(february1, snapshot.Running, asked))
			w.Data.Load("EWR 2040-02", 7, 8, 9, 10)
		}},
		cancelAt(lakeOfRows, snapshot.Running),
		cancelAt(lakeOfControl, snapshot.Validating),
	}
}

// lastQuery adds what became of February's latest query.
func lastQuery(w *World) string {
	state := "none"
	if all := w.Athena.Started(); len(all) > 0 {
		state = string(w.Athena.State(all[len(all)-1].ID))
	}
	return settledMonths(w) + "; its query " + state
}

// monthQueriesPaidOnce holds the queries that were started against the months: each is under the token of one of a run's
// numbers, one a generation and kind has come to a result or runs, and a published month says what it has paid for its last
// generation at least, and for no more than all: of a query whose id never came back nobody knows.
func monthQueriesPaidOnce(w *World) error {
	type purpose struct {
		run, kind  string
		generation int
	}
	type query struct {
		purpose
		number int
	}
	tokens := map[string]query{}
	for _, id := range slices.Sorted(maps.Keys(w.months.runs)) {
		r := w.Month(id)
		for g := 1; g <= r.Generation; g++ {
			at := r
			at.Generation = g
			for n := 1; n <= r.Query.Number+1; n++ {
				tokens[at.QueryToken(n)] = query{purpose{run: id, generation: g}, n}
			}
		}
	}
	paid, all, last := map[purpose]string{}, map[string]int64{}, map[string]int64{}
	for _, q := range w.Athena.Started() {
		if strings.Contains(q.SQL, ofSchedules) {
			continue
		}
		of, known := tokens[q.Token]
		if !known {
			return fmt.Errorf("query %s was paid for, and no month knows of it", q.ID)
		}
		delete(tokens, q.Token)
		r := w.Month(of.run)
		if of.number == r.Query.Number && q.ID != r.Query.ID {
			return fmt.Errorf("%s says query %s, it was %s", of.run, r.Query.ID, q.ID)
		}
		all[of.run] += w.scanned(q.ID)
		switch w.Athena.State(q.ID) {
		case types.QueryExecutionStateFailed, types.QueryExecutionStateCancelled:
			continue
		}
		of.kind = lakeKind(q.SQL)
		if before := paid[of.purpose]; before != "" {
			return fmt.Errorf("generation %d of %s paid for query %s, its %s, although %s has their result", of.generation, of.run, q.ID, of.kind, before)
		}
		paid[of.purpose] = q.ID
		if of.generation == r.Generation {
			last[of.run] += w.scanned(q.ID)
		}
	}
	for id, most := range all {
		if r := w.Month(id); r.State == snapshot.Published && (r.QueryCost.Scanned < last[id] || r.QueryCost.Scanned > most) {
			return fmt.Errorf("%s says that %d bytes were scanned, its queries have scanned %d, those of its last generation %d", id, r.QueryCost.Scanned, most, last[id])
		}
	}
	return nil
}

// scanned is what a query has scanned, as Athena tells it.
func (w *World) scanned(id string) int64 {
	cost, err := lakes{w.Data, w.Kit(nil)}.athena().Stop(context.Background(), id)
	w.must(err)
	return cost.Scanned
}
