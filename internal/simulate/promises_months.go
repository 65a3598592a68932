package simulate

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"almanac/internal/calendar"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The promises of months. Each has a test that breaks it on purpose.
var (
	monthRowRules = []rowRule{
		{"a month moves only as its table says", moves},
		{"a settled month never changes", settledStays},
		{"the index of work says what is to be done with a month", placed},
		{"a chunk's record is written once", chunkOnce},
	}
	monthStepRules = []stepRule{
		{"the current version moves by one publication or one recorded roll back, and keeps the one before", pointed},
		{"chunks are recorded one after another, and the cursor is their number", recorded},
		{"the slots are the admitted months, and no more than the caps", slotted},
		{"a period's head says what its versions are", headed},
		{"what is published is what the source held", published},
	}
	monthBlobRules = []blobRule{
		{"no object of a month is written twice, or removed while it is needed", objectKept},
	}
	monthWholeRules = []wholeRule{
		{"the rows as a whole are as they were step by step", false, recounted},
		{"every month settles, and nothing of it goes on", true, everyMonthSettled},
		{"what is published stays readable", true, allReadable},
		{"a month's queries are paid for once", true, monthQueriesPaidOnce},
	}
)

// monthPromises is what the rules of months remember: the rows as they were written last.
type monthPromises struct {
	monthView
	started map[string]bool   // executions, by ARN
	needed  map[string]string // objects of published versions, by key: the run
	digests map[string]string // of those objects
	strange map[string]bool   // ids that a scenario has put into slots by hand
	scope   monthScope        `state:"-"` // of the step that is being checked
	scopeOf int               `state:"-"` // that step's number
}

// monthView is the table of months in parts.
type monthView struct {
	runs     map[string]Row            // by id
	heads    map[snapshot.Period]Row   // by period
	versions map[snapshot.Period][]int // of runs
	current  map[snapshot.Period]Row
	caps     map[string]Row // by owner
	chunks   map[string][]Row
}

func newMonthView() monthView {
	return monthView{map[string]Row{}, map[snapshot.Period]Row{}, map[snapshot.Period][]int{}, map[snapshot.Period]Row{}, map[string]Row{}, map[string][]Row{}}
}

func (p *monthPromises) init() {
	p.monthView, p.started, p.needed, p.strange = newMonthView(), map[string]bool{}, map[string]string{}, map[string]bool{}
	p.scopeOf, p.digests = -1, map[string]string{}
}

// aboutRow is what a row of the table of months is about.
type aboutRow struct {
	kind    string // a prefix of sort keys, "CAPS", or schema.VersionMark for a version; empty: of no concern here
	period  snapshot.Period
	version int
	run     string
	owner   string
	chunks  schema.Partition
}

func aboutOf(it Row) (a aboutRow) {
	pk, sk := schema.Partition(Text(it, schema.PK)), Text(it, schema.SK)
	if sk == "CAPS" {
		return aboutRow{kind: sk, owner: strings.TrimPrefix(string(pk), schema.OwnerScope)}
	}
	if strings.HasPrefix(sk, schema.ChunkPrefix) {
		return aboutRow{kind: schema.ChunkPrefix, chunks: pk}
	}
	workspace, typ, series := schema.SeriesOf(pk)
	for _, kind := range []string{schema.PeriodPrefix, schema.CurrentPrefix} {
		rest, is := strings.CutPrefix(sk, kind)
		if !series || !is {
			continue
		}
		month, version, versioned := strings.Cut(rest, schema.VersionMark)
		a = aboutRow{kind: kind, period: snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: typ}, Month: monthOf(month)}}
		if versioned {
			n, err := strconv.Atoi(version)
			if err != nil {
				panic(err) // a key of ours
			}
			a.kind, a.version, a.run, a.owner = schema.VersionMark, n, schema.SnapshotID(workspace, typ, month, n), Text(it, schema.OwnerOf)
		}
	}
	return a
}

// take notes a row as it was written.
func (v *monthView) take(it Row) {
	switch a := aboutOf(it); a.kind {
	case schema.VersionMark:
		if v.runs[a.run] == nil {
			v.versions[a.period] = append(v.versions[a.period], a.version)
		}
		v.runs[a.run] = it
	case schema.PeriodPrefix:
		v.heads[a.period] = it
	case schema.CurrentPrefix:
		v.current[a.period] = it
	case "CAPS":
		v.caps[a.owner] = it
	case schema.ChunkPrefix:
		v.chunks[string(a.chunks)] = append(v.chunks[string(a.chunks)], it)
	}
}

func monthOf(text string) calendar.Month {
	m, err := calendar.ParseMonth(text)
	if err != nil {
		panic(err) // a key of ours
	}
	return m
}

// runOfRow names the run whose row it is.
func runOfRow(it Row) (string, bool) {
	return schema.SnapshotOf(schema.Key{PK: schema.Partition(Text(it, schema.PK)), SK: schema.Sort(Text(it, schema.SK))})
}

func periodOfRun(id string) (snapshot.Period, int) {
	workspace, typ, month, version, _ := schema.SplitSnapshotID(id)
	return snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: typ}, Month: monthOf(month)}, version
}

// figure is a number attribute; 0 where there is none.
func figure(it Row, name string) int {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, err := strconv.Atoi(v.Value)
		if err != nil {
			panic(fmt.Sprintf("attribute %s: %v", name, err))
		}
		return n
	}
	return 0
}

func truth(it Row, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

// ids are the keys of a map attribute.
func ids(it Row, name string) (out []string) {
	if m, ok := it[name].(*types.AttributeValueMemberM); ok {
		out = slices.Sorted(maps.Keys(m.Value))
	}
	return out
}

func stateOf(it Row) snapshot.State { return snapshot.State(Text(it, schema.State)) }

// settledRow reports a month's row that has settled for good.
func settledRow(it Row) bool {
	switch stateOf(it) {
	case snapshot.Published, snapshot.Skipped, snapshot.Cancelled:
		return true
	case snapshot.Failed:
		return Text(it, schema.NextAttempt) == ""
	}
	return false
}

func admittedRow(it Row) bool {
	return slices.Contains([]snapshot.State{snapshot.Queued, snapshot.Running, snapshot.Validating}, stateOf(it))
}

// settledStays: nothing of a settled month's row changes, but for the mark in the index that says its leftovers are there, and
// what a query that was stopped has cost, which is told once.
func settledStays(_ *World, c Change) error {
	if _, ok := runOfRow(c.Old); !ok || !settledRow(c.Old) {
		return nil
	}
	if c.New == nil {
		return errors.New("it was deleted")
	}
	stopped := Text(c.Old, schema.QueryID) != "" && !truth(c.Old, schema.QueryNoted) && truth(c.New, schema.QueryNoted) && truth(c.New, schema.QueryEnded)
	for _, name := range changed(c.Old, c.New) {
		if stopped && slices.Contains(notedOf, name) {
			continue
		}
		if name != schema.SettledShard || c.New[name] != nil {
			return fmt.Errorf("%s of a %s month changed from %v to %v", name, stateOf(c.Old), plainly(c.Old[name]), plainly(c.New[name]))
		}
	}
	return nil
}

// changed names the attributes in which two rows differ.
func changed(a, b Row) (names []string) {
	for name := range a {
		if !reflect.DeepEqual(a[name], b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if a[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func plainly(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return v
}

// placed: a planned month waits for its dispatcher, an admitted one is open, a failed one waits for its time, and nothing is
// to be done with one that has settled.
func placed(_ *World, c Change) error {
	if _, ok := runOfRow(c.New); !ok {
		return nil
	}
	it, want, at := c.New, "", ""
	owner, backfill := Text(it, schema.OwnerOf), truth(it, schema.Backfill)
	switch {
	case settledRow(it):
	case stateOf(it) == snapshot.Planned:
		want, at = schema.WorkPlanned(owner, backfill), Text(it, schema.WorkAt)
	case stateOf(it) == snapshot.Failed:
		want, at = schema.WorkRetry(owner, backfill), Text(it, schema.NextAttempt)
	default:
		want, at = schema.WorkOpen(owner), Text(it, schema.ClaimedAt)
	}
	if work, when := Text(it, schema.Work), Text(it, schema.WorkAt); work != want || when != at {
		return fmt.Errorf("a %s month stands at %q %q, want %q %q", stateOf(it), work, when, want, at)
	}
	listed := Text(it, schema.SettledShard) != ""
	if stateOf(it) == snapshot.Skipped || !settledRow(it) {
		if listed {
			return fmt.Errorf("a %s month stands among those that left something", stateOf(it))
		}
	} else if !listed && !settledRow(c.Old) {
		return fmt.Errorf("a %s month does not stand among those that left something", stateOf(it))
	}
	return nil
}

func chunkOnce(_ *World, c Change) error {
	it := c.New
	if it == nil {
		it = c.Old
	}
	if !strings.HasPrefix(Text(it, schema.SK), schema.ChunkPrefix) || c.Old == nil {
		return nil
	}
	return errors.New("it was there, and has changed")
}

// begunExecution hears of each execution as it starts, w.mu being held.
func (w *World) begunExecution(arn string, j snapshot.Job) {
	switch row := w.months.runs[j.Run]; {
	case w.months.started[arn]:
		w.broken("one execution per job: " + arn + " was started twice")
	case !strings.HasSuffix(arn, fmt.Sprintf(":%s-j%d", j.Run, j.Job)):
		w.broken(fmt.Sprintf("one execution per job: %s was given %+v", arn, j))
	case row == nil || figure(row, schema.Job) < j.Job:
		w.broken(fmt.Sprintf("one execution per job: %s was started before the month was claimed for it", arn))
	}
	w.months.started[arn] = true
}
