package artifact_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

var spreadsheet = artifact.Format{Kind: "xlsx", Details: true, Origin: artifact.Origin{Name: "Sheet"}}

func TestXLSXRefusesWhatASheetCannotHold(t *testing.T) {
	wide := func(n int) *table {
		r := &table{columns: make([]source.Column, n), rows: [][]source.Value{make([]source.Value, n)}}
		for i := range n {
			r.columns[i].Name = fmt.Sprint("c", i+1)
			r.rows[0][i] = integer(int64(i + 1))
		}
		return r
	}
	named := func(name string) *table {
		return &table{columns: []source.Column{{Name: "a"}, {Name: name}}, rows: [][]source.Value{{null, null}}}
	}
	second := func(v source.Value) *table {
		return &table{columns: []source.Column{{Name: "a"}, {Name: "note"}}, rows: [][]source.Value{{null, text("x")}, {null, v}}}
	}
	for name, c := range map[string]struct {
		r    *table
		says []string
	}{
		"columns":      {wide(16_385), []string{"16385 columns", "16384"}},
		"a text":       {second(text(strings.Repeat("x", 32_768))), []string{"row 2, column 2", `"note"`, "32768", "32767"}},
		"a wide text":  {second(text(strings.Repeat("🚚", 16_384))), []string{"row 2, column 2", "32768"}}, // each is two of UTF-16
		"not UTF-8":    {second(text(strings.Repeat("x\xff", 16_384))), []string{"row 2, column 2", "32768"}},
		"bytes":        {second(source.Value{Kind: source.KindBytes, Text: make([]byte, 16_383)}), []string{"row 2, column 2", "32768"}},
		"a decimal":    {second(decimal("0." + strings.Repeat("1", 32_766))), []string{"row 2, column 2", "32768"}},
		"a header":     {named(strings.Repeat("h", 32_768)), []string{"the header, column 2", "32768"}},
		"unknown kind": {second(source.Value{Kind: 200}), []string{"column 2", "kind 200"}},
	} {
		_, err := artifact.Write(t.Context(), c.r, spreadsheet, io.Discard, 0)
		f := failuretest.Want(t, err, failure.FileUnsupported)
		for _, s := range c.says {
			if !strings.Contains(f.Message, s) {
				t.Errorf("%s: %q does not say %s", name, f.Message, s)
			}
		}
		if len(f.Message) > failure.MaxMessage || !strings.Contains(f.Message, "in the query") && !strings.Contains(f.Message, "parquet") {
			t.Errorf("%s: %q gives no advice, or is too long", name, f.Message)
		}
	}
	for name, s := range map[string]string{"a text": strings.Repeat("x", 32_767), "a wide text": strings.Repeat("🚚", 16_383) + "x", "of two bytes": strings.Repeat("Ы", 32_767), "all escaped": strings.Repeat("\x01", 32_767)} {
		b := write(t, second(text(s)), spreadsheet)
		if got := texts(t, []byte(b)); got[len(got)-1] != s {
			t.Errorf("%s of 32,767 characters came back with %d bytes, want %d", name, len(got[len(got)-1]), len(s))
		}
	}
	t.Run("16384 columns", func(t *testing.T) {
		b := sheetOf(t, wide(16_384), artifact.Format{})
		header, _ := b.raw("XFD1")
		if value, _ := b.raw("XFD2"); header != "c16384" || value != "16384" {
			t.Errorf("the last column holds %q and %q", header, value)
		}
	})
}

// As many rows as a sheet holds, and one more; and neither takes more memory than few do.
func TestXLSXAMillionRowsInLittleMemory(t *testing.T) {
	rows := func(n int) (*generator, artifact.Result, error) {
		runtime.GC()
		g := newGenerator(n)
		g.sample = 5000
		res, err := artifact.Write(t.Context(), g, spreadsheet, io.Discard, 0)
		return g, res, err
	}
	few, _, err := rows(50_000)
	if err != nil {
		t.Fatal(err)
	}
	many, res, err := rows(1_048_575)
	if err != nil || res.Rows != 1_048_575 {
		t.Fatalf("%+v %v", res, err)
	}
	if many.peak > few.peak+2<<20 || many.peak > 64<<20 {
		t.Errorf("the heap in use was %d bytes with 50,000 rows and %d with a million", few.peak, many.peak)
	}
	narrow := newGenerator(1_048_576)
	narrow.ring = [][]source.Value{{integer(1), integer(2), decimal("1"), decimal("2"), {Kind: source.KindTimestamp, Time: epoch}}}
	for len(narrow.ring) < ringSize {
		narrow.ring = append(narrow.ring, narrow.ring[0])
	}
	_, err = artifact.Write(t.Context(), narrow, spreadsheet, io.Discard, 0)
	if f := failuretest.Want(t, err, failure.FileTooLarge); !strings.Contains(f.Message, "row 1048576") || !strings.Contains(f.Message, "1048576 rows") || !strings.Contains(f.Message, "csv or parquet") {
		t.Errorf("%q names neither the limit nor the row", f.Message)
	}
}

func TestXLSXEqualRowsMakeEqualBytes(t *testing.T) {
	f := spreadsheet
	f.Origin.DataAsOf = epoch
	var files [2]bytes.Buffer
	for i := range files {
		if _, err := artifact.Write(t.Context(), newGenerator(20_000), f, &files[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Fatal("two files of equal rows differ")
	}
	f.Details, f.Origin.DataAsOf = false, epoch.Add(time.Hour)
	later := sheetOf(t, row(text("x")), f)
	f.Origin.DataAsOf = epoch
	if later.file != sheetOf(t, row(text("x")), f).file {
		t.Fatal("without the sheet of details the file tells when it was made")
	}
}

// watched tells whether it is written to after it was closed.
type watched struct {
	faulty
	closed bool
	late   bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.late = w.late || w.closed
	return w.faulty.Write(p)
}

// The bytes that Write hands on come from the part before the sheet, the sheet, the parts after it and the directory at the
// zip's end; whichever of these meets the error, the file fails, and nobody writes any more.
func TestF3XLSXWriterThatFailsAtAnyCall(t *testing.T) {
	const rows = 60_000
	count := &watched{}
	if _, err := artifact.Write(t.Context(), newGenerator(rows), spreadsheet, count, 0); err != nil || count.calls < 4 {
		t.Fatalf("%d calls, %v; want several blocks", count.calls, err)
	}
	for n := 1; n <= count.calls; n++ {
		cause := errors.New("disk full")
		w := &watched{faulty: faulty{n: n, err: cause}}
		_, err := artifact.Write(t.Context(), newGenerator(rows), spreadsheet, w, 0)
		w.closed = true
		if failuretest.Want(t, err, failure.FileUnavailable); !errors.Is(err, cause) {
			t.Errorf("call %d: %v does not carry its cause", n, err)
		}
		_, err = artifact.Write(t.Context(), newGenerator(rows), spreadsheet, &faulty{n: n, short: true}, 0)
		failuretest.Want(t, err, failure.FileUnavailable)
		if w.late {
			t.Errorf("call %d: written to after the end", n)
		}
	}
	for _, n := range []int{0, 1, 1000, 30_000} { // of the rows' own errors, wherever they come
		r := many(n)
		r.err = failure.New(failure.QueryFailed, "broke")
		w := &watched{}
		_, err := artifact.Write(t.Context(), r, spreadsheet, w, 0)
		w.closed = true
		if failuretest.Want(t, err, failure.QueryFailed); w.late {
			t.Errorf("after %d rows: written to after the end", n)
		}
	}
	_, err := artifact.Write(t.Context(), newGenerator(rows), spreadsheet, io.Discard, 1<<20)
	failuretest.Want(t, err, failure.FileTooLarge)
}

func TestXLSXFormatFields(t *testing.T) {
	for field, f := range map[string]artifact.Format{"delimiter": {Kind: "xlsx", Delimiter: ";"}, "bom": {Kind: "xlsx", BOM: true}, "null": {Kind: "xlsx", Null: "NULL"}, "exact": {Kind: "xlsx", Exact: true}, "details": {Kind: "csv", Details: true}} {
		errs := f.Validate()
		if len(errs) != 1 || errs[0].Field != field || errs[0].Value == "" || !strings.Contains(errs[0].Want, "the kind is") {
			t.Errorf("%+v, want one error of %s", errs, field)
		}
		_, err := artifact.Write(t.Context(), row(text("x")), f, io.Discard, 0)
		failuretest.Want(t, err, failure.FileUnsupported)
	}
	if errs := spreadsheet.Validate(); errs != nil {
		t.Errorf("%+v", errs)
	}
	if errs := (artifact.Format{Kind: "xlsx", Delimiter: "?", BOM: true, Null: "+"}).Validate(); len(errs) != 3 {
		t.Errorf("%+v, want each field once", errs)
	}
}
