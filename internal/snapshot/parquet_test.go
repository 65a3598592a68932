package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	reference "github.com/parquet-go/parquet-go"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/parquet"
	"almanac/internal/snapshot"
)

// schemaOf is the columns of a file as parquet-go reads them.
func (a *attempts) schemaOf(object string) string {
	a.t.Helper()
	body := a.object(object)
	f, err := reference.OpenFile(bytes.NewReader(body), int64(len(body)))
	a.must(err)
	var columns []string
	for _, field := range f.Schema().Fields() {
		columns = append(columns, field.Name()+" "+strings.Replace(field.Type().String(), "INT(64,true)", "INT64", 1))
	}
	if got := f.Metadata().CreatedBy; got != parquet.CreatedBy {
		a.t.Errorf("%s is created by %q", object, got)
	}
	return strings.Join(columns, ", ")
}

// A definition that says nothing of its files publishes Parquet; the manifest names the schema, and every file has it.
func TestMonthsAreParquet(t *testing.T) {
	d, err := snapshot.ParseDefinition(asJSON(t, written()))
	if err != nil || d.Format != snapshot.Parquet {
		t.Fatalf("%q %v", d.Format, err)
	}
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	a.publish(newark)
	m := a.current(newark)
	body, _, err := m.Encode()
	a.must(err)
	var fields struct{ Columns, Files json.RawMessage }
	a.must(json.Unmarshal(body, &fields))
	if want := `[{"name":"id","type":"integer","parquet":"INT64"},{"name":"carrier","type":"text","parquet":"STRING"},{"name":"delay","type":"integer","parquet":"INT64"},` +
		`{"name":"fare","type":"decimal","parquet":"STRING"},{"name":"km","type":"real","parquet":"DOUBLE"}]`; string(fields.Columns) != want {
		t.Errorf("columns %s, want %s", fields.Columns, want)
	}
	if want := `{"format":"parquet","compression":"zstd","null":""}`; string(fields.Files) != want {
		t.Errorf("files %s, want %s", fields.Files, want)
	}
	for _, c := range m.Chunks {
		if got := a.schemaOf(c.Object); got != "id INT64, carrier STRING, delay INT64, fare STRING, km DOUBLE" || !strings.HasSuffix(c.Object, ".parquet") {
			t.Errorf("%s has %s", c.Object, got)
		}
	}
	if got := a.rows(m); !slices.Equal(got, expected(5, 250)) {
		t.Errorf("%d rows, %q", len(got), got[:3])
	}
}

// What was saved before there was a choice is CSV as it was: its bytes and its manifest name no Parquet.
func TestMonthsOfDefinitionsWithoutAFormatAreCSV(t *testing.T) {
	d := trips()
	d.Format = ""
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 150))
	a.publish(newark)
	m := a.current(newark)
	if m.Files != (snapshot.Files{Format: "csv", Compression: "gzip"}) || m.Columns[0].Parquet != "" || !strings.HasSuffix(m.Chunks[1].Object, ".csv.gz") || m.Files.Extension() != ".csv.gz" {
		t.Fatalf("%+v", m)
	}
	if got := a.rows(m); !slices.Equal(got, expected(5, 150)) {
		t.Errorf("%d rows", len(got))
	}
	body, _, err := m.Encode()
	if err != nil || bytes.Contains(body, []byte("parquet")) {
		t.Errorf("%s %v", body, err)
	}
	if body, err := json.Marshal(d); err != nil || bytes.Contains(body, []byte("format")) {
		t.Errorf("%s %v: its hash would change", body, err)
	}
}

// The first chunk decides what an expression is; a later one that differs is refused with its column, and the definition can
// name the type.
func TestTypesOfAMonthAreThoseOfItsFirstChunk(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		types      map[string]string
		chunk0     string // what the file has; with says: what later chunks are refused as
		says       []string
	}{
		"reals after integers":           {"case when id < 1000 then 1 else 0.5 end", nil, "", []string{"chunk 1", `column 3 ("x")`, "the real 0.5 in row 1", "INT64", `CAST("x" AS BIGINT)`, "checks.types"}},
		"reals, as the definition says":  {"case when id < 1000 then 1 else 0.5 end", map[string]string{"x": "real"}, "DOUBLE", nil},
		"integers after NULL":            {"case when id >= 1000 then 1 end", nil, "", []string{"chunk 1", `"x"`, "the integer 1 in row 1", "STRING"}},
		"integers, as the definition is": {"case when id >= 1000 then 1 end", map[string]string{"x": "integer"}, "INT64", nil},
		"texts after NULL":               {"case when id >= 1000 then 'a' end", nil, "STRING", nil},
		"texts, as the definition says":  {"case when id >= 1000 then 'a' end", map[string]string{"x": "text"}, "STRING", nil},
		"a text where an integer is":     {"case when id >= 1000 then 'a' else 1 end", nil, "", []string{`the text "a" in row 1`, "INT64"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := trips()
			d.Query = strings.Replace(d.Query, "km", "km, "+c.expression+" as x", 1)
			d.Query = strings.Replace(d.Query, "delay, fare, ", "", 1)
			d.Control = "select count(*) as rows from trips where workspace = :workspace and at >= :period_start and at < :period_end"
			d.Query = strings.Replace(d.Query, "id, carrier, km, ", "id, carrier, ", 1)
			d.Checks.Types = c.types
			a := newAttempts(t, d)
			a.load(tripsTable, rowsFrom(5, 250))
			id := a.plan(newark).ID()
			if c.says != nil {
				r := a.failed(id, failure.FileUnsupported)
				a.final(r)
				for _, s := range c.says {
					if !strings.Contains(r.ErrorText, s) {
						t.Errorf("%q does not say %q", r.ErrorText, s)
					}
				}
				return
			}
			a.walk(a.claim(id))
			a.published(id)
			m := a.current(newark)
			if got := m.Columns[2].Parquet; got != c.chunk0 {
				t.Errorf("x is %s, want %s", got, c.chunk0)
			}
			for _, chunk := range m.Chunks {
				if got := a.schemaOf(chunk.Object); got != "id INT64, carrier STRING, x "+c.chunk0 {
					t.Errorf("%s has %s", chunk.Object, got)
				}
			}
			if got := a.rows(m); len(got) != 250 {
				t.Errorf("%d rows", len(got))
			}
		})
	}
}

// A call that goes on where another one ended reads the types from the first chunk's record: this column holds NULL alone
// from there on, which would be text.
func TestTypesOutliveACall(t *testing.T) {
	d := trips()
	d.Query = strings.Replace(d.Query, "km", "case when id < 1000 then km end as km", 1)
	d.Control = strings.Replace(d.Control, ", sum(km) as km", "", 1)
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	killed := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if killed || !after || c.Operation != "TransactWriteItems" {
			return false
		}
		killed = true // chunk 0 is committed, and no other
		return true
	}
	r := a.plan(newark)
	j := a.claim(r.ID())
	a.walk(j)
	a.published(r.ID())
	m := a.current(newark)
	if m.Columns[4].Parquet != "DOUBLE" || !killed || len(m.Chunks) != 3 {
		t.Fatalf("km is %s in %d chunks", m.Columns[4].Parquet, len(m.Chunks))
	}
	for _, c := range m.Chunks {
		if got := a.schemaOf(c.Object); !strings.HasSuffix(got, "km DOUBLE") {
			t.Errorf("%s has %s", c.Object, got)
		}
	}
}

// A file beyond what is held in memory lies in a temporary one while it is read, and not afterwards.
func TestLargeFilesAreReadFromATemporaryOne(t *testing.T) {
	d := trips()
	d.Mode = snapshot.Single
	d.Query = "select id, noise from n where :workspace > '' and :period_start < :period_end"
	d.Control = "select count(*) as rows from n"
	a := newAttempts(t, d)
	a.load("create table n (id integer, noise blob)", "insert into n with recursive c(i) as (select 1 union all select i + 1 from c where i < 36) select i, randomblob(1000000) from c")
	a.publish(newark)
	m := a.current(newark)
	if m.Totals.Bytes < 33<<20 {
		t.Fatalf("%d bytes", m.Totals.Bytes)
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	rows := a.reader.Rows(m)
	n := 0
	for ; ; n++ {
		row, err := rows.Next(bg)
		if errors.Is(err, io.EOF) {
			break
		}
		a.must(err)
		if string(row[0].Text) != fmt.Sprint(n+1) || len(row[1].Text) != 2+2*1000000 {
			t.Fatalf("row %d: %s, %d bytes", n, row[0].Text, len(row[1].Text))
		}
		if left, _ := os.ReadDir(folder); len(left) != 1 {
			t.Fatalf("%d temporary files", len(left))
		}
	}
	left, err := os.ReadDir(folder)
	if n != 36 || err != nil || len(left) != 0 {
		t.Errorf("%d rows; %v is left, %v", n, left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(folder, "none"))
	_, err = a.reader.Rows(m).Next(bg)
	if f := failuretest.Want(t, err, failure.FileUnavailable); !strings.Contains(f.Message, "temporary file") {
		t.Errorf("%q", f.Message)
	}
	t.Setenv("TMPDIR", folder)
	body := a.object(m.Chunks[0].Object)
	body[len(body)/2] ^= 1
	a.overwrite(m.Chunks[0].Object, body)
	_, err = a.reader.Rows(m).Next(bg)
	failuretest.Want(t, err, failure.FileInconsistent)
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// A manifest that speaks of other files than those that lie there is found out, and one of a kind that is not known.
func TestFilesThatAreNotTheManifests(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	a.publish(newark)
	for want, change := range map[string]func(*snapshot.Manifest){
		`"carrier" STRING, the manifest's "carrier" INT64`: func(m *snapshot.Manifest) { m.Columns[1].Parquet = "INT64" },
		`"id" INT64, the manifest's "key" INT64`:           func(m *snapshot.Manifest) { m.Columns[0].Name = "key" },
		"it has 5 columns, the manifest 4":                 func(m *snapshot.Manifest) { m.Columns = m.Columns[:4] },
		`its files are "orc"`:                              func(m *snapshot.Manifest) { m.Files.Format = "orc" },
		"it has 20 rows, recorded are 21":                  func(m *snapshot.Manifest) { m.Chunks[0].Rows++ },
		"cannot be read as the rows":                       func(m *snapshot.Manifest) { m.Files.Format = "csv" },
	} {
		m := a.current(newark)
		change(&m)
		rows := a.reader.Rows(m)
		var err error
		for err == nil {
			_, err = rows.Next(bg)
		}
		if f := failuretest.Want(t, err, failure.FileInconsistent); !strings.Contains(f.Message, want) {
			t.Errorf("%q does not say %q", f.Message, want)
		}
	}
}

func TestAthenaTableIsTheManifests(t *testing.T) {
	m := snapshot.Manifest{Run: "EWR_x_2013-01_v2", Workspace: "EWR", Type: "hourly-x", Month: jan, Version: 2, Files: snapshot.Files{Format: "parquet"},
		Chunks: []snapshot.ManifestChunk{{Object: "snapshots/EWR/hourly-x/2013-01/v0002/g1/chunk-0.parquet"}, {Object: "snapshots/EWR/hourly-x/2013-01/v0002/g1/chunk-1.parquet"}}}
	for i, typ := range []string{"INT64", "DOUBLE", "DECIMAL(20,3)", "STRING", "BYTE_ARRAY", "BOOLEAN", "DATE", "TIMESTAMP(MICROS,UTC)"} {
		m.Columns = append(m.Columns, snapshot.Column{Name: fmt.Sprintf("C`%d", i), Parquet: typ})
	}
	got, err := m.Athena("months")
	if err != nil {
		t.Fatal(err)
	}
	want := "create external table if not exists hourly_x (\n  `c``0` bigint,\n  `c``1` double,\n  `c``2` decimal(20,3),\n  `c``3` string,\n  `c``4` binary,\n  `c``5` boolean,\n  `c``6` date,\n  `c``7` timestamp)\n" +
		"partitioned by (workspace string, month string, version int)\nstored as parquet\nlocation 's3://months/athena-has-partitions-only/';\n\n" +
		"alter table hourly_x add if not exists partition (workspace = 'EWR', month = '2013-01', version = 2)\nlocation 's3://months/snapshots/EWR/hourly-x/2013-01/v0002/g1/';\n\n" +
		"select * from hourly_x\nwhere workspace = 'EWR' and month = '2013-01' and version = 2\n" +
		"  and \"$path\" in ('s3://months/snapshots/EWR/hourly-x/2013-01/v0002/g1/chunk-0.parquet', 's3://months/snapshots/EWR/hourly-x/2013-01/v0002/g1/chunk-1.parquet');\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	m.Columns[0].Parquet = "INT96"
	if _, err := m.Athena("months"); err == nil || !strings.Contains(err.Error(), "INT96") {
		t.Errorf("%v", err)
	}
	m.Files.Format = "csv"
	if _, err := m.Athena("months"); err == nil || !strings.Contains(err.Error(), "EWR_x_2013-01_v2 is csv") {
		t.Errorf("%v", err)
	}
}

// README's statement is the one that the demo's definition comes to.
func TestAthenaTableOfTheReadme(t *testing.T) {
	m := snapshot.Manifest{Workspace: "EWR", Type: "hourly-weather", Month: calendar.Month{Year: 2013, Month: 3}, Version: 1, Files: snapshot.Files{Format: "parquet"},
		Chunks: []snapshot.ManifestChunk{{Object: "snapshots/EWR/hourly-weather/2013-03/v0001/g1/chunk-00000000-….parquet"}}}
	for _, c := range []string{"time_hour STRING", "temp DOUBLE", "humid DOUBLE", "wind_dir INT64", "wind_speed DOUBLE", "precip DOUBLE", "pressure DOUBLE", "visib DOUBLE"} {
		name, typ, _ := strings.Cut(c, " ")
		m.Columns = append(m.Columns, snapshot.Column{Name: name, Parquet: typ})
	}
	want, err := m.Athena("SNAPSHOTS_BUCKET")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !strings.Contains(string(readme), "```sql\n"+want+"```\n") {
		t.Errorf("%v; README.md does not have\n%s", err, want)
	}
}
