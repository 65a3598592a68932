package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

// written is a valid definition as a person writes it.
func written() map[string]any {
	return map[string]any{
		"workspace": "EWR", "type": "carrier-performance", "name": "Carrier performance", "source": "flights", "start": "2013-01",
		"query":   "SELECT id, delay FROM flights WHERE origin = :workspace AND at >= :period_start AND at < :period_end",
		"control": "SELECT count(*) AS rows FROM flights WHERE origin = :workspace AND at >= :period_start AND at < :period_end",
		"key":     "id",
		"checks": map[string]any{"not_null": []any{"id"}, "types": map[string]any{"id": "integer"},
			"drift_rows": map[string]any{"previous_month": 25}, "drift_sums": map[string]any{"delay": map[string]any{"previous_version": 0.5}}},
		"waived": []any{map[string]any{"month": "2013-02", "reason": "the source was moved"}},
	}
}

// field sets a dotted field of a document; nil removes it.
func field(name string, v any) func(map[string]any) {
	return func(m map[string]any) {
		parts := strings.Split(name, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		if last := parts[len(parts)-1]; v == nil {
			delete(m, last)
		} else {
			m[last] = v
		}
	}
}

func both(a, b func(map[string]any)) func(map[string]any) {
	return func(m map[string]any) { a(m); b(m) }
}

func asJSON(t *testing.T, doc any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as a person writes
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotDefinitionIsFilledIn(t *testing.T) {
	d, err := snapshot.ParseDefinition(asJSON(t, written()))
	if err != nil {
		t.Fatal(err)
	}
	if d.Mode != snapshot.Auto || d.ChunkRows != 50_000 || d.SingleRows != 100_000 || d.DueAfter.Std() != 72*time.Hour {
		t.Errorf("defaults: %+v", d)
	}
	if d.Start != (calendar.Month{Year: 2013, Month: time.January}) || *d.Checks.DriftRows.ByMonth != 25 || d.Checks.DriftRows.ByVersion != nil {
		t.Errorf("read wrongly: %+v", d)
	}
	again, err := snapshot.ParseDefinition(asJSON(t, d))
	if err != nil || again.Hash() != d.Hash() {
		t.Errorf("what was stored reads as another definition: %v", err)
	}
	again.LoadDelay++
	if again.Hash() == d.Hash() {
		t.Error("another definition has the same hash")
	}
}

func TestSnapshotDefinitionsThatAreRight(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"of an owner":               both(field("workspace", nil), field("owner", "default")),
		"longest type":              field("type", strings.Repeat("a", 20)),
		"chunked, of one row each":  both(field("mode", "chunked"), field("chunk_rows", 1)),
		"chunks as large as may be": field("chunk_rows", 1_000_000),
		"single":                    field("mode", "single"),
		"csv":                       field("format", "csv"),
		"parquet":                   field("format", "parquet"),
		"no checks":                 field("checks", nil),
		"watermark":                 both(field("watermark", "SELECT max(at) FROM flights"), field("load_delay", "26h")),
		"off":                       field("off", true),
		"parameters":                field("parameters", map[string]any{"min_delay": 15}),
	} {
		m := written()
		change(m)
		if _, err := snapshot.ParseDefinition(asJSON(t, m)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSnapshotDefinitionFields(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	columns := func(n int) (out []any) {
		for i := range n {
			out = append(out, fmt.Sprintf("c%d", i))
		}
		return out
	}
	waivers := func(n int) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"month": calendar.Month{Year: 2013, Month: time.January}.Add(i).String(), "reason": "x"})
		}
		return out
	}
	waived := func(month, reason any) []any { return []any{map[string]any{"month": month, "reason": reason}} }
	unbounded := "SELECT 1"
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		want   []string // parts of the message: field, value, what would be right
	}{
		{"workspace absent", field("workspace", nil), []string{"workspace is missing", "owner"}},
		{"workspace wrong type", field("workspace", 7), []string{"workspace is a number", "want text"}},
		{"workspace hostile", field("workspace", "EWR#TYPE#x"), []string{`workspace is "EWR#TYPE#x"`, "such as EWR"}},
		{"workspace too long", field("workspace", long(41)), []string{"workspace is", "such as EWR"}},
		{"workspace beside owner", field("owner", "default"), []string{`owner is "default" beside workspace "EWR"`, "one of the two"}},
		{"owner wrong type", field("owner", true), []string{"owner is a bool", "want text"}},
		{"owner hostile", both(field("workspace", nil), field("owner", "a#b")), []string{`owner is "a#b"`, "default"}},
		{"type absent", field("type", nil), []string{"type is missing", "carrier-performance"}},
		{"type wrong type", field("type", []any{"x"}), []string{"type is an array", "want text"}},
		{"type too long", field("type", long(21)), []string{"type is", "1 to 20 small letters"}},
		{"type with what parts an id", field("type", "a_b"), []string{`type is "a_b"`, "dashes"}},
		{"type hostile", field("type", "x\n"), []string{`type is "x\n"`, "dashes"}},
		{"name absent", field("name", nil), []string{"name is missing", "120 characters"}},
		{"name wrong type", field("name", 1), []string{"name is a number", "want text"}},
		{"name too long", field("name", long(121)), []string{"name is 121 characters"}},
		{"name hostile", field("name", "a\u202eb"), []string{"name is", "direction of writing"}},
		{"source absent", field("source", nil), []string{"source is missing", "flights"}},
		{"source wrong type", field("source", map[string]any{}), []string{"source is an object", "want text"}},
		{"source hostile", field("source", "../flights"), []string{`source is "../flights"`, "name of a source"}},
		{"start absent", field("start", nil), []string{"start is missing", "2013-01"}},
		{"start wrong type", field("start", 2013), []string{"start is a number", "2013-01"}},
		{"start of no month", field("start", "2013-13"), []string{`start is "2013-13"`, "2013-01"}},
		{"start hostile", field("start", "2013-01#V#0001"), []string{`start is "2013-01#V#0001"`, "2013-01"}},
		{"start too early", field("start", "1969-12"), []string{"start is 1969-12", "from 1970-01"}},
		{"query absent", field("query", nil), []string{"query is missing", "only reads"}},
		{"query wrong type", field("query", 1), []string{"query is a number", "want text"}},
		{"query too long", field("query", long(20_001)), []string{"query is 20001 bytes"}},
		{"query hostile", field("query", "SELECT '\x00' :period_start :period_end"), []string{"query is", "without NUL"}},
		{"query of every month", field("query", unbounded), []string{`query is "SELECT 1", which does not name :period_start`, ":period_start, :period_end"}},
		{"query of half a month", field("query", "SELECT :period_start, :period_ending"), []string{"does not name :period_end"}},
		{"query of every workspace", both(both(field("workspace", nil), field("owner", "o")), field("query", "SELECT :period_start, :period_end")), []string{"does not name :workspace"}},
		{"key absent", field("key", nil), []string{"key is missing", "increases strictly"}},
		{"key wrong type", field("key", 1), []string{"key is a number", "want text"}},
		{"key hostile", field("key", `id" OR 1=1 --`), []string{"key is", "letters, digits and _"}},
		{"key too long", field("key", long(64)), []string{"key is", "at most 63"}},
		{"control absent", field("control", nil), []string{"control is missing"}},
		{"control wrong type", field("control", []any{}), []string{"control is an array", "want text"}},
		{"control of every month", field("control", unbounded), []string{"control is", "does not name :period_start"}},
		{"control too long", field("control", long(20_001)), []string{"control is 20001 bytes"}},
		{"checks wrong type", field("checks", "strict"), []string{"checks is a string", "want a mapping"}},
		{"checks too many", field("checks.not_null", columns(201)), []string{"checks is 203 columns", "at most 200"}},
		{"not null wrong type", field("checks.not_null", "id"), []string{"not_null is a string", "want a list"}},
		{"not null hostile", field("checks.not_null", []any{"id;"}), []string{`checks.not_null[0] is "id;"`, "letters, digits"}},
		{"not null twice", field("checks.not_null", []any{"id", "id"}), []string{`checks.not_null[1] is "id" again`, "once"}},
		{"types wrong type", field("checks.types", []any{}), []string{"types is an array", "want a mapping"}},
		{"types unknown", field("checks.types", map[string]any{"id": "int"}), []string{`checks.types.id is "int"`, "one of integer"}},
		{"types of a hostile column", field("checks.types", map[string]any{"a b": "text"}), []string{`checks.types.a b is "a b"`, "letters"}},
		{"types of a key without an order", field("checks.types", map[string]any{"id": "boolean"}), []string{`checks.types.id is "boolean"`, "orders the rows"}},
		{"drift wrong type", field("checks.drift_rows.previous_month", "25%"), []string{"previous_month is a string", "want a number"}},
		{"drift of nothing", field("checks.drift_rows.previous_month", 0), []string{"checks.drift_rows.previous_month is 0", "more than 0"}},
		{"drift below nothing", field("checks.drift_rows.previous_version", -1), []string{"checks.drift_rows.previous_version is -1"}},
		{"drift too large", field("checks.drift_rows.previous_version", 1e7), []string{"checks.drift_rows.previous_version is 1e+07", "at most 1000000"}},
		{"drift not known", field("checks.drift_rows.previous_year", 1), []string{"previous_year is not known"}},
		{"sums of a hostile column", field("checks.drift_sums", map[string]any{"a-b": map[string]any{"previous_month": 1}}), []string{`checks.drift_sums.a-b is "a-b"`}},
		{"sums without a bound", field("checks.drift_sums.delay", map[string]any{}), []string{"checks.drift_sums.delay is missing", "in percent"}},
		{"sums below nothing", field("checks.drift_sums.delay.previous_version", -5), []string{"checks.drift_sums.delay.previous_version is -5"}},
		{"sums of text", field("checks.types.delay", "text"), []string{"checks.drift_sums.delay is the sum of a column that checks.types calls text", "integer, decimal, real"}},
		{"mode unknown", field("mode", "fast"), []string{`mode is "fast"`, `"chunked"`}},
		{"format unknown", field("format", "orc"), []string{`format is "orc"`, `"parquet" or "csv"`}},
		{"format hostile", field("format", "csv\r\nx: y"), []string{"format is", `"parquet" or "csv"`}},
		{"format wrong type", field("format", 1), []string{"format is a number", "want text"}},
		{"mode wrong type", field("mode", 1), []string{"mode is a number", "want text"}},
		{"chunk rows below", field("chunk_rows", -1), []string{"chunk_rows is -1", "1 to 1000000"}},
		{"chunk rows above", field("chunk_rows", 1_000_001), []string{"chunk_rows is 1000001"}},
		{"chunk rows wrong type", field("chunk_rows", "many"), []string{"chunk_rows is a string", "want a number"}},
		{"chunk rows broken", field("chunk_rows", 1.5), []string{"chunk_rows is a number 1.5"}},
		{"single rows below", field("single_rows", -1), []string{"single_rows is -1", "1 to 10000000"}},
		{"single rows above", field("single_rows", 10_000_001), []string{"single_rows is 10000001"}},
		{"single rows wrong type", field("single_rows", true), []string{"single_rows is a bool", "want a number"}},
		{"single rows of no choice", both(field("mode", "chunked"), field("single_rows", 5)), []string{"single_rows is 5", `only mode "auto"`}},
		{"watermark wrong type", field("watermark", 1), []string{"watermark is a number", "want text"}},
		{"watermark blank", field("watermark", " "), []string{`watermark is " "`, "only reads"}},
		{"watermark too long", field("watermark", long(20_001)), []string{"watermark is 20001 bytes"}},
		{"load delay wrong type", field("load_delay", 5), []string{"load_delay is 5", `"30s"`}},
		{"load delay below", field("load_delay", "-1h"), []string{"load_delay is -1h0m0s", "0 to 672h"}},
		{"load delay above", field("load_delay", "673h"), []string{"load_delay is 673h0m0s"}},
		{"off wrong type", field("off", "yes"), []string{"off is a string", "true or false"}},
		{"due after wrong type", field("due_after", "three days"), []string{`due_after is "three days"`, `"30s"`}},
		{"due after below", field("due_after", "-1s"), []string{"due_after is -1s", "more than 0"}},
		{"due after above", field("due_after", "8785h"), []string{"due_after is 8785h0m0s", "at most 8784h"}},
		{"due before it is loaded", field("load_delay", "72h"), []string{"due_after is 72h0m0s beside load_delay 72h0m0s", "more than load_delay"}},
		{"limits wrong type", field("limits", 5), []string{"limits is a number", "want a mapping"}},
		{"limit of rows below", field("limits.rows", -1), []string{"limits.rows is -1", "0 or more"}},
		{"limit of bytes below", field("limits.bytes", -1), []string{"limits.bytes is -1", "0 or more"}},
		{"limit of time below", field("limits.timeout", "-1s"), []string{"limits.timeout is -1s"}},
		{"limit of time above", field("limits.timeout", "4h1m"), []string{"limits.timeout is 4h1m0s", "0 to 4h"}},
		{"waived wrong type", field("waived", "2013-01"), []string{"waived is a string", "want a list"}},
		{"waived without a month", field("waived", []any{map[string]any{"reason": "x"}}), []string{"waived[0].month is missing", "2013-01"}},
		{"waived of no month", field("waived", waived("2013-1", "x")), []string{`waived[0].month is "2013-1"`, "2013-01"}},
		{"waived month wrong type", field("waived", waived(1, "x")), []string{"waived.month is a number", "2013-01"}},
		{"waived before the start", field("waived", waived("2012-12", "x")), []string{"waived[0].month is 2012-12", "from start on, 2013-01"}},
		{"waived twice", field("waived", append(waived("2013-03", "x"), waived("2013-03", "y")...)), []string{"waived[1].month is 2013-03 again"}},
		{"waived without a reason", field("waived", waived("2013-03", "")), []string{"waived[0].reason is missing"}},
		{"waived for a long reason", field("waived", waived("2013-03", long(201))), []string{"waived[0].reason is 201 characters"}},
		{"waived too many", field("waived", waivers(241)), []string{"waived is 241", "at most 240"}},
		{"parameters wrong type", field("parameters", []any{1}), []string{"parameters is an array", "want a mapping"}},
		{"parameter reserved", field("parameters.period_start", 1), []string{"parameters.period_start is", "given by the product"}},
		{"parameter's name hostile", field("parameters", map[string]any{"a; DROP": 1}), []string{`parameters.a; DROP is "a; DROP"`}},
		{"field unknown", field("chunkrows", 5), []string{"chunkrows is not known", "did you mean chunk_rows?"}},
		{"too large as it is stored", both(field("query", "SELECT :period_start, :period_end "+strings.Repeat("<", 19_000)), field("control", "SELECT :period_start, :period_end")), []string{"definition is", "bytes as it is stored"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := written()
			row.change(m)
			_, err := snapshot.ParseDefinition(asJSON(t, m))
			if err == nil {
				t.Fatal("taken")
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
	for name, raw := range map[string]string{"empty": "", "no JSON": "type: x", "two documents": "{} {}", "a field twice": `{"type":"a","type":"b"}`,
		"too large": `{"name":"` + long(90_001) + `"}`} {
		if _, err := snapshot.ParseDefinition([]byte(raw)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// The longest names that a definition, a workspace and a period can have still fit a job's name.
func TestJobNamesFit(t *testing.T) {
	r := snapshot.Run{Period: snapshot.Period{Series: snapshot.Series{Workspace: strings.Repeat("w", 40), Type: strings.Repeat("t", 20)},
		Month: calendar.Month{Year: 2013, Month: time.December}}, Version: snapshot.MaxVersions, Job: 999}
	if n := len(r.JobName()); n > 80 {
		t.Errorf("%s has %d characters", r.JobName(), n)
	}
}

func TestOwnerFields(t *testing.T) {
	valid := func() map[string]any {
		return map[string]any{"id": "default", "name": "Everyone", "cap": 5, "backfill": 2}
	}
	for _, m := range []map[string]any{valid(), {"id": "o", "name": "n", "cap": 200, "backfill": 199}, {"id": "o", "name": "n", "cap": 1, "backfill": 0}} {
		if _, err := snapshot.ParseOwner(asJSON(t, m)); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		want   []string
	}{
		{"id absent", field("id", nil), []string{"id is missing", "default"}},
		{"id wrong type", field("id", 1), []string{"id is a number", "want text"}},
		{"id hostile", field("id", "a#b"), []string{`id is "a#b"`}},
		{"id too long", field("id", strings.Repeat("x", 41)), []string{"id is", "at most 40"}},
		{"name absent", field("name", nil), []string{"name is missing"}},
		{"name wrong type", field("name", 5), []string{"name is a number"}},
		{"name hostile", field("name", "a\nb"), []string{"name is", "line breaks"}},
		{"cap absent", field("cap", nil), []string{"cap is 0", "1 to 200"}},
		{"cap wrong type", field("cap", "5"), []string{"cap is a string", "want a number"}},
		{"cap above", field("cap", 201), []string{"cap is 201", "1 to 200"}},
		{"cap below", field("cap", -1), []string{"cap is -1"}},
		{"backfill wrong type", field("backfill", true), []string{"backfill is a bool"}},
		{"backfill below", field("backfill", -1), []string{"backfill is -1", "0 or more"}},
		{"backfill as large as the cap", field("backfill", 5), []string{"backfill is 5 beside cap 5", "less than cap"}},
		{"field unknown", field("caps", 5), []string{"caps is not known", "did you mean cap?"}},
	} {
		m := valid()
		row.change(m)
		_, err := snapshot.ParseOwner(asJSON(t, m))
		if err == nil {
			t.Errorf("%s: taken", row.name)
			continue
		}
		for _, part := range row.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", row.name, err, part)
			}
		}
	}
}
