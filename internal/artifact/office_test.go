//go:build office

package artifact_test

// Other programs open the files: openpyxl, and LibreOffice without a screen. scripts/office installs both and runs this.

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// given by scripts/office.
func setting(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is empty; run this by scripts/office", name)
	}
	return v
}

// hostile is a row for each case, with what openpyxl and LibreOffice must make of its second cell.
var hostile = []struct {
	name, openpyxl, shown string
	v                     source.Value
}{
	{"formula", `["s","=1+1"]`, "=1+1", text("=1+1")}, {"plus", `["s","+1"]`, "+1", text("+1")}, {"minus", `["s","-1"]`, "-1", text("-1")}, {"at", `["s","@x"]`, "@x", text("@x")},
	{"call", `["s","=HYPERLINK(\"http://x\",\"y\")"]`, `=HYPERLINK("http://x","y")`, text(`=HYPERLINK("http://x","y")`)},
	{"tab", `["s","\tx"]`, "\tx", text("\tx")}, {"line feed", `["s","a\nb"]`, "a\nb", text("a\nb")}, {"spaces", `["s","  x  "]`, "  x  ", text("  x  ")}, {"markup", `["s","<b>&\"'"]`, `<b>&"'`, text(`<b>&"'`)},
	{"carriage return", `["s","a\rb"]`, "a\rb", text("a\rb")},
	{"zeros", `["s","007"]`, "007", text("007")}, {"not available", `["s","NA"]`, "NA", text("NA")}, {"wide", `["s","é☃🚚日本"]`, "é☃🚚日本", text("é☃🚚日本")},
	{"not UTF-8", `["s","a` + "\uFFFD" + `b"]`, "a\uFFFDb", text("a\xffb")},
	{"escape", `["s","_x005F_x0041_"]`, "_x0041_", text("_x0041_")}, {"NULL", `null`, "", null}, {"empty", `["s",""]`, "", text("")},
	{"beyond 2^53", `["s","9007199254740993"]`, "9007199254740993", integer(9007199254740993)}, {"longer than a double", `["s","0.1000000000000000055"]`, "0.1000000000000000055", decimal("0.1000000000000000055")},
	{"integer", `["n",4474116515]`, "4474116515", integer(4474116515)}, {"decimal", `["n",-5]`, "-5.00", decimal("-5.00")}, {"small", `["n",0.000004]`, "0.000004", decimal("0.000004")},
	{"float", `["n",0.25]`, "0.25", float(0.25)}, {"true", `["b",true]`, "TRUE", source.Value{Kind: source.KindBool, Int: 1}},
	{"bytes", `["s","\\x00ff"]`, `\x00ff`, source.Value{Kind: source.KindBytes, Text: []byte{0, 0xff}}},
	{"date", `["d","2024-02-29T00:00:00"]`, "2024-02-29", source.Value{Kind: source.KindDate, Time: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}},
	{"first date", `["d","1900-03-01T00:00:00"]`, "1900-03-01", source.Value{Kind: source.KindDate, Time: time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)}},
	{"last date", `["d","9999-12-31T00:00:00"]`, "9999-12-31", source.Value{Kind: source.KindDate, Time: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}},
	{"early date", `["s","1850-01-01"]`, "1850-01-01", source.Value{Kind: source.KindDate, Time: time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC)}},
	{"time", `["d","2013-05-06T06:30:00"]`, "2013-05-06 06:30:00", source.Value{Kind: source.KindTimestamp, Time: time.Date(2013, 5, 6, 10, 30, 0, 0, time.UTC)}},
	{"thousandths", `["d","2013-05-06T06:30:00.125000"]`, "2013-05-06 06:30:00.125", source.Value{Kind: source.KindTimestamp, Time: time.Date(2013, 5, 6, 10, 30, 0, 125e6, time.UTC)}},
}

func TestOffice(t *testing.T) {
	python, folder := setting(t, "ALMANAC_PYTHON"), setting(t, "ALMANAC_OFFICE")
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	origin := artifact.Origin{Zone: newYork, Name: "Delayed [departures]", Schedule: "late", Workspace: "EWR", Source: "flights", Run: "late@2013-05-06T10:30:00Z",
		Nominal: time.Date(2013, 5, 6, 10, 30, 0, 0, time.UTC), DataAsOf: time.Date(2013, 5, 6, 10, 31, 0, 0, time.UTC)}
	r := &table{columns: []source.Column{{Name: "case"}, {Name: "value"}, {Name: "=note"}}}
	for _, h := range hostile {
		r.rows = append(r.rows, []source.Value{text(h.name), h.v, text("end")})
	}
	store := func(name string, r source.Rows) string {
		path := filepath.Join(folder, name+".xlsx")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := artifact.Write(t.Context(), r, artifact.Format{Kind: "xlsx", Details: true, Origin: origin}, f, 0); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases, many := store("cases", r), store("many", newGenerator(20_000))
	t.Run("openpyxl", func(t *testing.T) { byOpenpyxl(t, python, cases, many) })
	t.Run("LibreOffice", func(t *testing.T) { byLibreOffice(t, folder, cases, many) })
}

type sheetRead struct {
	Name, Frozen, Filter string
	Widths               []float64
	Bold                 bool
	Count                int
	Rows                 [][]json.RawMessage
}

func byOpenpyxl(t *testing.T, python, cases, many string) {
	read := func(path string) (sheets []sheetRead) {
		out, err := exec.CommandContext(t.Context(), python, "office/read_xlsx.py", path).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
		}
		if err := json.Unmarshal(out, &sheets); err != nil || len(sheets) != 2 {
			t.Fatalf("%v: %s", err, out)
		}
		return sheets
	}
	s := read(cases)[0]
	if last := len(hostile) + 1; s.Name != "Delayed departures" || s.Frozen != "A2" || s.Filter != fmt.Sprintf("A1:C%d", last) || len(s.Widths) != 3 || !s.Bold || s.Count != last {
		t.Errorf("%+v", s)
	}
	for i, h := range hostile {
		var got, want any
		if json.Unmarshal(s.Rows[i+1][1], &got) != nil || json.Unmarshal([]byte(h.openpyxl), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: openpyxl reads %s, want %s", h.name, s.Rows[i+1][1], h.openpyxl)
		}
		if string(s.Rows[i+1][2]) != `["s", "end"]` {
			t.Errorf("%s: the row ends with %s", h.name, s.Rows[i+1][2])
		}
	}
	details := read(cases)[1]
	if got := fmt.Sprintf("%s", details.Rows); details.Name != "Run details" || !strings.Contains(got, `["d", "2013-05-06T06:30:00"]`) || !strings.Contains(got, `["s", "America/New_York"]`) {
		t.Errorf("details %s", got)
	}
	if s := read(many)[0]; s.Count != 20_001 {
		t.Errorf("%d rows, want 20,001", s.Count)
	}
}

// byLibreOffice has each sheet turned into CSV as it is shown, and the cases into a page to look at.
func byLibreOffice(t *testing.T, folder, cases, many string) {
	convert := func(filter string, files ...string) {
		cmd := exec.CommandContext(t.Context(), "soffice", append([]string{"--headless", "-env:UserInstallation=file://" + t.TempDir(), "--convert-to", filter, "--outdir", folder}, files...)...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Error") {
			t.Fatalf("LibreOffice: %v: %s", err, out)
		}
	}
	// comma, quote, UTF-8, from line 1, cells as shown, all sheets: https://wiki.documentfoundation.org/Documentation/DevGuide/Spreadsheet_Documents#Filter_Options_for_the_CSV_Filter
	convert("csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true,false,false,-1", cases, many)
	read := func(name string) [][]string {
		b, err := os.ReadFile(filepath.Join(folder, name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := read("cases-Delayed departures")
	if len(rows) != len(hostile)+1 {
		t.Fatalf("%d rows: %q", len(rows), rows)
	}
	for i, h := range hostile {
		if got := rows[i+1]; got[0] != h.name || got[1] != h.shown || got[2] != "end" {
			t.Errorf("LibreOffice shows %q, want %q", got, []string{h.name, h.shown, "end"})
		}
	}
	details := map[string]string{}
	for _, r := range read("cases-Run details") {
		details[r[0]] = r[1]
	}
	if details["Due"] != "2013-05-06 06:30:00" || details["Rows"] != fmt.Sprint(len(hostile)) || details["Schedule"] != "Delayed [departures]" {
		t.Errorf("details %q", details)
	}
	if n := len(read("many-Delayed departures")); n != 20_001 {
		t.Errorf("%d rows, want 20,001", n)
	}
	convert("pdf", cases)
	if out, err := exec.CommandContext(t.Context(), "pdftoppm", "-r", "80", "-png", filepath.Join(folder, "cases.pdf"), filepath.Join(folder, "cases")).CombinedOutput(); err != nil {
		t.Fatalf("pdftoppm: %v: %s", err, out)
	}
	if pages, err := filepath.Glob(filepath.Join(folder, "cases-*.png")); err != nil || len(pages) < 2 {
		t.Errorf("pages %q, %v; want one of each sheet", pages, err)
	}
}
