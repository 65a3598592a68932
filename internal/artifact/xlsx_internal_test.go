package artifact

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

func TestSheetName(t *testing.T) {
	for in, want := range map[string]string{
		"Delays": "Delays", "a/b\\c?d*e[f]g:h": "a b c d e f g h", "": "Rows", "  ": "Rows", "[]": "Rows", "history": "Rows", "History": "Rows", "Histories": "Histories",
		"'quoted'": "quoted", "it's": "it's", "run details": "Rows", strings.Repeat("x", 40): strings.Repeat("x", 31), strings.Repeat("x", 30) + "'y": strings.Repeat("x", 30),
		strings.Repeat("🚚", 20): strings.Repeat("🚚", 15), strings.Repeat("x", 30) + "🚚": strings.Repeat("x", 30), "a\u202eb\tc\xff": "ab c", "Отчёт": "Отчёт",
	} {
		if got := sheetName(in, true); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := sheetName("Run Details", false); got != "Run Details" {
		t.Errorf("without a second sheet: %q", got)
	}
}

func TestColumnName(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA", 16383: "XFD"} {
		if got := columnName(i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

func TestColumnsWide(t *testing.T) {
	for in, want := range map[string]int{"": 0, "abc": 3, "a\nlonger\nb": 6, "日本": 4, "\xff\xff": 2} {
		if got := columnsWide([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// The limit itself would take minutes to reach; the rule is the same with a smaller one.
func TestXLSXRefusesASheetThatWouldNeedZIP64(t *testing.T) {
	columns, cells := []source.Column{{Name: "a"}}, []source.Value{{Kind: source.KindText, Text: []byte(strings.Repeat("x", 1000))}}
	sheet := func(rows int) error {
		s := startSink(io.Discard, "", 0)
		e := newXLSX(Format{Kind: "xlsx"}, &out{sink: s, b: (<-s.free)[:0], full: firstBlock}).(*xlsx)
		e.maxBytes = 1 << 20
		defer s.finish(false)
		defer e.stop()
		err := e.begin(columns)
		for i := 0; i < rows && err == nil; i++ {
			err = e.row(cells)
		}
		if err != nil {
			return err
		}
		return e.end()
	}
	f := failuretest.Want(t, sheet(1100), failure.FileTooLarge)
	if !strings.Contains(f.Message, "1048576 bytes") || !strings.Contains(f.Message, "row 992") || !strings.Contains(f.Message, "csv or parquet") {
		t.Errorf("%q names neither limit nor row nor what helps", f.Message)
	}
	if err := sheet(900); err != nil {
		t.Error(err)
	}
	if maxSheetBytes >= 1<<32 {
		t.Error("a part of 4 GiB needs ZIP64")
	}
}

// counted is a stream that ends after so many bytes.
type counted struct {
	left int
	end  error
}

func (c *counted) Write(p []byte) (int, error) {
	if len(p) > c.left {
		return 0, c.end
	}
	c.left -= len(p)
	return len(p), nil
}

func TestF3XLSXEveryPartSaysThatItCouldNotBeWritten(t *testing.T) {
	cause := errors.New("no more")
	full := &counted{left: 1 << 20}
	p := newWorkbook(full)
	if _, err := p.open(true); err != nil {
		t.Fatal(err)
	}
	if err := p.finish(Origin{Zone: time.UTC}, true, 1, "A1:B2"); err != nil {
		t.Fatal(err)
	}
	for n := range 1<<20 - full.left { // the stream ends at each byte
		p := newWorkbook(&counted{left: n, end: cause})
		_, err := p.open(true)
		if err == nil {
			err = p.finish(Origin{Zone: time.UTC}, true, 1, "A1:B2")
		}
		if !errors.Is(err, cause) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}
