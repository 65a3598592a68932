package simulate

import (
	"maps"
	"slices"
	"strings"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What of the rows of months the model speaks about.
type (
	aMonth struct {
		State, Code, Reason                 string
		Backfill                            bool
		Definition, Job, Attempts, Failures int
		Attached                            bool
		Offered, Claimed, Next              ms
		FailedIn, Mode                      string
		Generation, Chunks, Rows            int
		Done                                bool
		Verdict                             string
		Compared                            int
		By                                  string
	}
	aHead struct {
		Latest     int
		State, Why string
		Active     int
		Late       ms
	}
	aPointer struct {
		Version, Previous int
		By                string
	}
	aCaps struct {
		Cap, Backfill    int
		Slots, Backfills string // ids, sorted, with a blank between
	}
	aSeries struct {
		Next    string
		Plan    ms
		Off     string
		Revisit string
		Late    ms
	}
)

// monthRows is the state of months.
type monthRows struct {
	series   map[string]aSeries  // by workspace
	heads    map[string]aHead    // by workspace, a blank, month
	runs     map[string]aMonth   // by id
	pointers map[string]aPointer // as heads
	caps     map[string]aCaps
	moves    map[string]int // roll backs, as heads
	chunks   map[string]int // of each run's generations
}

func newMonthRows() monthRows {
	return monthRows{map[string]aSeries{}, map[string]aHead{}, map[string]aMonth{}, map[string]aPointer{}, map[string]aCaps{}, map[string]int{}, map[string]int{}}
}

func (r monthRows) clone() monthRows {
	return monthRows{maps.Clone(r.series), maps.Clone(r.heads), maps.Clone(r.runs), maps.Clone(r.pointers), maps.Clone(r.caps), maps.Clone(r.moves), maps.Clone(r.chunks)}
}

func (r monthRows) unlike(model monthRows) string {
	for _, d := range []string{unlike("series", r.series, model.series), unlike("head", r.heads, model.heads), unlike("run", r.runs, model.runs),
		unlike("pointer", r.pointers, model.pointers), unlike("owner", r.caps, model.caps), unlike("moves of", r.moves, model.moves), unlike("chunks of", r.chunks, model.chunks)} {
		if d != "" {
			return d
		}
	}
	return ""
}

// changed decodes a row that was written.
func (r monthRows) changed(old, new Row) {
	key := new
	if key == nil {
		key = old
	}
	pk, sk := schema.Partition(Text(key, schema.PK)), Text(key, schema.SK)
	ws, _, isSeries := schema.SeriesOf(pk)
	kind, rest, _ := strings.Cut(sk, "#")
	month, version, isRun := strings.Cut(rest, schema.VersionMark)
	switch {
	case isSeries && sk == "SERIES":
		keep(r.series, ws, aSeries{Text(new, schema.NextMonth), rowTime(new, schema.PlanAt), Text(new, schema.Off), Text(new, schema.Revisit), rowTime(new, schema.LateAt)}, new != nil)
	case isSeries && kind == "P" && isRun:
		id := schema.SnapshotID(ws, "delays", month, atoi(version))
		keep(r.runs, id, readMonth(new), new != nil)
	case isSeries && kind == "P":
		keep(r.heads, ws+" "+rest, aHead{rowNumber(new, schema.Latest), Text(new, schema.LatestState), Text(new, schema.LatestWhy), rowNumber(new, schema.Active), rowTime(new, schema.LateAt)}, new != nil)
	case isSeries && kind == "CURRENT":
		keep(r.pointers, ws+" "+rest, aPointer{rowNumber(new, schema.Version), rowNumber(new, schema.Previous), Text(new, schema.MovedBy)}, new != nil)
	case isSeries && kind == "MOVE":
		month, _, _ = strings.Cut(rest, "#")
		r.moves[ws+" "+month]++
	case sk == "CAPS":
		keep(r.caps, strings.TrimPrefix(string(pk), "OWNER#"), aCaps{rowNumber(new, schema.Cap), rowNumber(new, schema.BackfillCap), membersOf(new, schema.Slots), membersOf(new, schema.Backfill)}, new != nil)
	case strings.HasPrefix(string(pk), "SNAP#") && kind == "CHUNK":
		if generation := strings.TrimPrefix(string(pk), "SNAP#"); new != nil {
			r.chunks[generation]++
		}
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

func membersOf(it Row, name string) string {
	m, ok := it[name].(*types.AttributeValueMemberM)
	if !ok {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(m.Value)), " ")
}

// readMonth leaves out what stands on a row and means nothing in its state.
func readMonth(it Row) aMonth {
	r := aMonth{State: Text(it, schema.State), Code: Text(it, schema.ErrorCode), Reason: Text(it, schema.Reason), Backfill: rowFlag(it, schema.Backfill),
		Definition: rowNumber(it, schema.DefVersion), Job: rowNumber(it, schema.Job), Attempts: rowNumber(it, schema.Attempts), Failures: rowNumber(it, schema.Failures),
		Attached: Text(it, schema.Execution) != "", Claimed: rowTime(it, schema.ClaimedAt), Next: rowTime(it, schema.NextAttempt), FailedIn: Text(it, schema.FailedIn),
		Mode: Text(it, schema.Mode), Generation: rowNumber(it, schema.Generation), Chunks: rowNumber(it, schema.Cursor), Rows: rowNumber(it, schema.CursorRows),
		Done: rowFlag(it, schema.CursorDone), Verdict: Text(it, schema.Verdict), Compared: rowNumber(it, schema.ComparedTo), By: Text(it, schema.RequestedBy)}
	if r.State == "queued" {
		r.Offered = rowTime(it, schema.OfferedAt)
	}
	return r
}
