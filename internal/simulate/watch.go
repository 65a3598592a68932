package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"almanac/internal/schema"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Row is an item of a table.
type Row = map[string]types.AttributeValue

// Change is one row that was written: as it was and as it is, nil where there is none.
type Change struct {
	Table    string
	Old, New Row
}

// Key names the row.
func (c Change) Key() string {
	it := c.New
	if it == nil {
		it = c.Old
	}
	return c.Table + " " + Text(it, schema.PK) + " / " + Text(it, schema.SK)
}

// Blob is one object that was written or deleted.
type Blob struct {
	Bucket, Key string
	Old, New    []byte
}

// watch collects what changed since the last step, and checks it.
type watch struct {
	changes []Change
	blobs   []Blob
	checks  int
	wrong   string // a promise that was broken outside the scheduler's own goroutine
	promises
	times map[string][]time.Time // of each table's latest writes

	// Unwatched leaves the rows to whoever compares them himself: promises are about single calls, and hold of nothing that
	// is done by many at once.
	Unwatched bool
}

func (v *watch) init() {
	v.promises.init()
	v.times = map[string][]time.Time{}
}

// rowChanged hears of each written row, under the table's lock.
func (w *World) rowChanged(table string, old, new Row) {
	w.changes = append(w.changes, Change{table, old, new})
	w.watch.times[table] = append(w.watch.times[table], w.Now())
	w.dirty = true
	if table == Schedules {
		w.delivery.hear(old, new)
	}
	if table == Snapshots && new != nil {
		w.months.take(new)
	}
	if table == Snapshots && strings.HasPrefix(Text(new, schema.SK), schema.SnapDefPrefix) {
		w.mu.Lock()
		w.saved, w.saves = true, w.saves+1
		w.mu.Unlock()
	}
}

func (w *World) objectChanged(bucket, key string, old, new []byte) {
	w.blobs = append(w.blobs, Blob{bucket, key, old, new})
	if bucket == FileBucket {
		w.delivery.objects[key] = new
	}
	if bucket == FileBucket && new == nil {
		delete(w.delivery.objects, key)
	}
}

// broken notes a broken promise for the scheduler to break the world off; w.mu may be held.
func (w *World) broken(what string) {
	if w.wrong == "" {
		w.wrong = what
	}
}

// checkChanged checks every changed row and object.
func (w *World) checkChanged() {
	changes, blobs := w.changes, w.blobs
	w.changes, w.blobs = nil, nil
	if w.Unwatched {
		return
	}
	for _, c := range changes {
		for _, rule := range rowRules {
			if err := rule.holds(w, c); err != nil {
				w.Failf("%s: %s: %v", rule.name, c.Key(), err)
			}
		}
	}
	for _, rule := range stepRules {
		if err := rule.holds(w, changes); err != nil {
			w.Failf("%s: %v", rule.name, err)
		}
	}
	for _, b := range blobs {
		for _, rule := range blobRules {
			if err := rule.holds(w, b); err != nil {
				w.Failf("%s: %s/%s: %v", rule.name, b.Bucket, b.Key, err)
			}
		}
	}
	if w.wrong != "" {
		w.Failf("%s", w.wrong)
	}
	if w.checks++; w.checks%1000 == 0 {
		w.checkAll(false)
	}
}

// checkWhole checks the world at rest.
func (w *World) checkWhole() { w.checkAll(true) }

func (w *World) checkAll(rest bool) {
	for _, rule := range wholeRules {
		if rule.rest && !rest {
			continue
		}
		if err := rule.holds(w); err != nil {
			w.Failf("%s: %v\n%s", rule.name, err, w.Dump())
		}
	}
}

// answered sees what a consumer answered to its batch, before the poller acts on it.
func (w *World) answered(ctx context.Context, queue string, ms []sqstypes.Message, e lambdaevents.SQSEventResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delivery.hearAnswer(workerOf(ctx), queue, ms, e)
}

// Dump shows the rows of runs, submissions and months.
func (w *World) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s, %d workers\n", w.Now().Format("2006-01-02T15:04:05"), len(w.live))
	for _, table := range []string{Schedules, Snapshots} {
		for _, it := range w.DB.Items(table) {
			if s := Text(it, schema.State); s != "" {
				fmt.Fprintf(&b, "  %s / %s: %s %s %s wake=%s\n", Text(it, schema.PK), Text(it, schema.SK), s, Text(it, schema.ErrorCode), Text(it, schema.ErrorText), Text(it, schema.WakeAt))
			}
		}
	}
	return b.String()
}
