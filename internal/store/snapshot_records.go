package store

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// passed and failed are how a verdict is spelled.
const (
	passed = "passed"
	failed = "failed"
)

// document spells what no condition looks into; nothing is "".
func document[T any](v T, empty bool) string {
	if empty {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: a record that JSON cannot hold: " + err.Error()) // cannot happen: texts, numbers, maps and lists of them
	}
	return string(b)
}

// documents reads several of these and keeps the first error.
func (t *times) document(it item, name string, into any) {
	text := str(it, name)
	if text == "" {
		return
	}
	if err := json.Unmarshal([]byte(text), into); err != nil && t.err == nil {
		t.err = fmt.Errorf("%s: %w", name, err)
	}
}

// periodOf reads the period out of a key of a series' partition.
func periodOf(k schema.Key, prefix string) snapshot.Period {
	workspace, typ, _ := schema.SeriesOf(k.PK)
	month, _, _ := strings.Cut(strings.TrimPrefix(string(k.SK), prefix), schema.VersionMark)
	return snapshot.Period{Series: snapshot.Series{Workspace: workspace, Type: typ}, Month: monthOf(month)}
}

func decodeSnapshot(it item) (snapshot.Run, error) {
	if len(it) == 0 {
		return snapshot.Run{}, snapshot.ErrNotFound
	}
	var t times
	k := keyOf(it)
	_, version, _ := strings.Cut(string(k.SK), schema.VersionMark)
	n, err := strconv.Atoi(version)
	if err != nil {
		return snapshot.Run{}, fmt.Errorf("%s: want a version in its key", k)
	}
	r := snapshot.Run{
		Period: periodOf(k, schema.PeriodPrefix), Version: n, Owner: str(it, schema.OwnerOf), Backfill: flag(it, schema.Backfill),
		State: snapshot.State(str(it, schema.State)), Scope: scopeOf(str(it, schema.Scope)), Definition: num(it, schema.DefVersion),
		Start: t.read(it, schema.PeriodStart), End: t.read(it, schema.PeriodEnd), Zone: str(it, schema.Zone),
		Job: num(it, schema.Job), Execution: str(it, schema.Execution), OfferedAt: t.read(it, schema.OfferedAt), ClaimedAt: t.read(it, schema.ClaimedAt),
		StartedAt: t.read(it, schema.StartedAt), Attempts: num(it, schema.Attempts), Failures: num(it, schema.Failures), NextAt: t.read(it, schema.NextAttempt),
		ErrorCode: str(it, schema.ErrorCode), ErrorText: str(it, schema.ErrorText), FailedIn: snapshot.State(str(it, schema.FailedIn)),
		Mode: snapshot.Mode(str(it, schema.Mode)), Generation: num(it, schema.Generation), Cursor: decodeCursor(it),
		RequestedBy: str(it, schema.RequestedBy), RequestWhy: str(it, schema.RequestWhy), Reason: str(it, schema.Reason), ReasonText: str(it, schema.ReasonText),
		CancelledBy: str(it, schema.CancelledBy), CreatedAt: t.read(it, schema.CreatedAt), SettledAt: t.read(it, schema.SettledAt), Timeline: list(it, schema.Timeline),
		Query:     snapshot.Query{Number: num(it, schema.QueryNumber), For: str(it, schema.QueryFor), ID: str(it, schema.QueryID), Ended: flag(it, schema.QueryEnded), Noted: flag(it, schema.QueryNoted)},
		QueryCost: queryCost(it),
	}
	if r.Basis, err = decodeBasis(str(it, schema.Basis)); err != nil && t.err == nil {
		t.err = err
	}
	if v := str(it, schema.Verdict); v != "" {
		r.Verdict = &snapshot.Verdict{Passed: v == passed, Manifest: str(it, schema.Manifest), Current: num(it, schema.ComparedTo)}
		t.document(it, schema.CheckList, &r.Verdict.Checks)
	}
	t.document(it, schema.Accepts, &r.Accepted)
	return r, t.err
}

func decodeCursor(it item) snapshot.Cursor {
	return snapshot.Cursor{Chunk: num(it, schema.Cursor), Key: str(it, schema.CursorKey), Rows: int64(num(it, schema.CursorRows)), Done: flag(it, schema.CursorDone), Place: int64(num(it, schema.CursorPlace))}
}

// cursorAttributes are what a cursor sets; an empty key and an open end are absent.
func cursorAttributes(c snapshot.Cursor) map[string]any {
	m := map[string]any{schema.Cursor: c.Chunk, schema.CursorKey: c.Key, schema.CursorRows: c.Rows, schema.CursorDone: nil, schema.CursorPlace: nil}
	if c.Done {
		m[schema.CursorDone] = true
	}
	if c.Place > 0 {
		m[schema.CursorPlace] = c.Place
	}
	return m
}

// encodeBasis spells a basis in one short text: definition, bounds in milliseconds, source. The run's row is written with
// every chunk, and a unit is 1 KB.
func encodeBasis(b snapshot.Basis) string {
	return fmt.Sprintf("%d %d %d %s", b.Definition, b.Start.UnixMilli(), b.End.UnixMilli(), b.Source)
}

func decodeBasis(text string) (snapshot.Basis, error) {
	if text == "" {
		return snapshot.Basis{}, nil
	}
	parts := strings.SplitN(text, " ", 4)
	var n [3]int64
	for i := range n {
		var err error
		if len(parts) < 4 {
			err = strconv.ErrSyntax
		} else {
			n[i], err = strconv.ParseInt(parts[i], 10, 64)
		}
		if err != nil {
			return snapshot.Basis{}, fmt.Errorf("basis %q: want three numbers and a source", text)
		}
	}
	return snapshot.Basis{Definition: int(n[0]), Start: time.UnixMilli(n[1]).UTC(), End: time.UnixMilli(n[2]).UTC(), Source: parts[3]}, nil
}

func decodeHead(it item) (snapshot.Head, error) {
	var t times
	h := snapshot.Head{Period: periodOf(keyOf(it), schema.PeriodPrefix), Owner: str(it, schema.OwnerOf), Latest: num(it, schema.Latest),
		LatestState: snapshot.State(str(it, schema.LatestState)), LatestWhy: str(it, schema.LatestWhy), Active: num(it, schema.Active), LateAt: t.read(it, schema.LateAt)}
	return h, t.err
}

func decodePointer(it item) (snapshot.Pointer, error) {
	var t times
	p := snapshot.Pointer{Period: periodOf(keyOf(it), schema.CurrentPrefix), Version: num(it, schema.Version), Previous: num(it, schema.Previous),
		Manifest: str(it, schema.Manifest), MovedAt: t.read(it, schema.MovedAt), MovedBy: str(it, schema.MovedBy), Reason: str(it, schema.Reason)}
	return p, t.err
}

// Caps of an owner that nobody configured.
const (
	defaultCap      = 5
	defaultBackfill = 2
)

func defaultOwner(id string) snapshot.Owner {
	return snapshot.Owner{ID: id, Name: id, Cap: defaultCap, Backfill: defaultBackfill}
}

func decodeCaps(it item) snapshot.Caps {
	return snapshot.Caps{Owner: snapshot.Owner{ID: strings.TrimPrefix(string(keyOf(it).PK), "OWNER#"), Name: str(it, schema.Name),
		Cap: num(it, schema.Cap), Backfill: num(it, schema.BackfillCap)}, Slots: members(it, schema.Slots), Backfills: members(it, schema.Backfill)}
}

func members(it item, name string) []string {
	m, ok := it[name].(*types.AttributeValueMemberM)
	if !ok || len(m.Value) == 0 {
		return nil
	}
	ids := make([]string, 0, len(m.Value))
	for id := range m.Value {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

func decodeSeries(it item) (snapshot.SeriesRow, error) {
	if len(it) == 0 {
		return snapshot.SeriesRow{}, snapshot.ErrNotFound
	}
	var t times
	workspace, typ, _ := schema.SeriesOf(keyOf(it).PK)
	s := snapshot.SeriesRow{Series: snapshot.Series{Workspace: workspace, Type: typ}, Owner: str(it, schema.OwnerOf), Scope: scopeOf(str(it, schema.Scope)),
		Next: monthOf(str(it, schema.NextMonth)), PlanAt: t.read(it, schema.PlanAt), Off: str(it, schema.Off)}
	for _, m := range strings.Fields(str(it, schema.Revisit)) {
		s.Revisiting = append(s.Revisiting, monthOf(m))
	}
	return s, t.err
}

// chunkAttributes are a chunk's record.
func chunkAttributes(c snapshot.Chunk, at time.Time) map[string]any {
	return map[string]any{schema.Object: c.Object, schema.SHA: c.SHA256, schema.Size: c.Bytes, schema.Rows: c.Rows, schema.FirstKey: c.First, schema.LastKey: c.Last,
		schema.Sums: document(c.Sums, len(c.Sums) == 0), schema.Nulls: document(c.Nulls, len(c.Nulls) == 0),
		schema.WrongTypes: document(c.Wrong, len(c.Wrong) == 0), schema.Columns: document(c.Columns, len(c.Columns) == 0), schema.SourceVersion: c.Source, schema.Increasing: c.Increasing, schema.CreatedAt: at}
}

func decodeChunk(it item) (snapshot.Chunk, error) {
	var t times
	k := keyOf(it)
	n, err := strconv.Atoi(strings.TrimPrefix(string(k.SK), schema.ChunkPrefix))
	if err != nil {
		return snapshot.Chunk{}, fmt.Errorf("%s: want a number in its key", k)
	}
	c := snapshot.Chunk{Number: n, Object: str(it, schema.Object), SHA256: str(it, schema.SHA), Bytes: int64(num(it, schema.Size)), Rows: int64(num(it, schema.Rows)),
		First: str(it, schema.FirstKey), Last: str(it, schema.LastKey), Source: str(it, schema.SourceVersion), Increasing: flag(it, schema.Increasing)}
	t.document(it, schema.Sums, &c.Sums)
	t.document(it, schema.Nulls, &c.Nulls)
	t.document(it, schema.WrongTypes, &c.Wrong)
	t.document(it, schema.Columns, &c.Columns)
	return c, t.err
}

func decodeSnapshotVersion(it item) (snapshot.Version, error) {
	if len(it) == 0 {
		return snapshot.Version{}, snapshot.ErrNotFound
	}
	var t times
	v := snapshot.Version{Number: num(it, schema.Version), Hash: str(it, schema.Hash), CreatedBy: str(it, schema.CreatedBy), CreatedAt: t.read(it, schema.CreatedAt)}
	if err := json.Unmarshal([]byte(str(it, schema.Body)), &v.Definition); err != nil {
		return v, fmt.Errorf("%s: %w", keyOf(it), err)
	}
	return v, t.err
}
