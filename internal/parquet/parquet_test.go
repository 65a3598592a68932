package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// all are columns of every type.
func all() []Column {
	return []Column{{Name: "i", Type: Int64}, {Name: "f", Type: Double}, {Name: "n", Type: Decimal, Precision: 18, Scale: 2}, {Name: "w", Type: Decimal, Precision: 38, Scale: 3},
		{Name: "s", Type: String}, {Name: "u", Type: String}, {Name: "b", Type: Bytes}, {Name: "t", Type: Bool}, {Name: "d", Type: Date}, {Name: "a", Type: Timestamp}, {Name: "v", Type: Civil}}
}

// fill writes n rows; cell i of row r is NULL where null says so. The rows of equal r are equal.
func fill(t testing.TB, w *Writer, n int, null func(r, i int) bool) (want []string) {
	t.Helper()
	for r := range n {
		var line strings.Builder
		random := rand.New(rand.NewPCG(uint64(r), 7))
		for i, c := range w.Columns() {
			chunk := w.Chunk(i)
			if null(r, i) {
				chunk.Null()
				line.WriteString("∅|")
				continue
			}
			switch {
			case c.Name == "s":
				s := fmt.Sprint("word ", r%300)
				chunk.Text([]byte(s))
				line.WriteString(s)
			case c.texts():
				s := fmt.Sprintf("%d %x", r, random.Uint64())
				chunk.Text([]byte(s))
				line.WriteString(s)
			case c.Wide():
				high, low := random.Uint64(), random.Uint64()
				chunk.Fixed(high, low)
				fmt.Fprint(&line, high, low)
			case c.Type == Double:
				f := random.NormFloat64()
				chunk.Float(f)
				fmt.Fprint(&line, f)
			default:
				v := int64(random.Uint64())
				switch c.Type {
				case Bool:
					v &= 1
				case Date:
					v = int64(random.IntN(3_652_059)) - 719_528
				}
				chunk.Int(v)
				fmt.Fprint(&line, v)
			}
			line.WriteByte('|')
		}
		want = append(want, line.String())
		w.EndRow()
		if w.Full() {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return want
}

// lines reads a file in the form that fill returns.
func lines(file []byte) (out []string, err error) {
	r, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			if int64(len(out)) != r.Rows() {
				return out, fmt.Errorf("%d rows, the file says %d", len(out), r.Rows())
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var line strings.Builder
		for i, c := range r.Columns() {
			switch cell := row[i]; {
			case cell.Null:
				line.WriteString("∅")
			case c.texts():
				line.Write(cell.Text)
			case c.Wide():
				fmt.Fprint(&line, cell.High, cell.Low)
			case c.Type == Double:
				fmt.Fprint(&line, cell.Float)
			default:
				fmt.Fprint(&line, cell.Int)
			}
			line.WriteByte('|')
		}
		out = append(out, line.String())
	}
}

func TestReadBack(t *testing.T) {
	for name, null := range map[string]func(r, i int) bool{
		"no NULL": func(int, int) bool { return false }, "NULL alone": func(int, int) bool { return true },
		"NULL at first": func(r, _ int) bool { return r < 13 }, "NULL at last": func(r, _ int) bool { return r > 12 }, "NULL here and there": func(r, i int) bool { return (r*7+i)%5 == 0 },
		"a column of NULL": func(_, i int) bool { return i%2 == 0 },
	} {
		for _, n := range []int{0, 1, 2, 7, 8, 9, 127, 128, 129, 1000} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				var file bytes.Buffer
				w := NewWriter(&file, all())
				want := fill(t, w, n, null)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				got, err := lines(file.Bytes())
				if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Fatalf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
	t.Run("several row groups and pages", func(t *testing.T) {
		var file bytes.Buffer
		w := NewWriter(&file, all())
		want := fill(t, w, GroupRows+3, func(r, i int) bool { return i > 0 && (r+i)%3 == 0 })
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := lines(file.Bytes())
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("row %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

// Texts stand in a dictionary where that pays, also where it has just one text, and one after another otherwise; one that has
// paid in the first row group is given up in a later one in which it does not.
func TestDictionaryWhereItPays(t *testing.T) {
	for name, c := range map[string]struct {
		rows int
		text func(i int) string
		want []format.Encoding
	}{
		"one text":          {fewest, func(int) string { return "x" }, []format.Encoding{format.RLEDictionary}},
		"too few of it":     {fewest - 1, func(int) string { return "x" }, []format.Encoding{format.Plain}},
		"half as many":      {fewest, func(i int) string { return fmt.Sprint(i / 2) }, []format.Encoding{format.RLEDictionary}},
		"all distinct":      {fewest, func(i int) string { return fmt.Sprint(i) }, []format.Encoding{format.Plain}},
		"distinct at first": {4 * trial, func(i int) string { return fmt.Sprint(min(i, trial)) }, []format.Encoding{format.Plain}},
		"long ones":         {fewest, func(i int) string { return strings.Repeat("x", 10_000) + fmt.Sprint(i/16) }, []format.Encoding{format.Plain}},
		"distinct later": {3 * GroupRows / 2, func(i int) string {
			if i < GroupRows {
				return "x"
			}
			return strings.Repeat("y", 20) + fmt.Sprint(i)
		}, []format.Encoding{format.Plain, format.RLEDictionary}},
	} {
		var file bytes.Buffer
		w := NewWriter(&file, []Column{{Name: "s", Type: String}})
		var want []string
		for i := range c.rows {
			w.Chunk(0).Text([]byte(c.text(i)))
			w.EndRow()
			want = append(want, c.text(i)+"|")
			if w.Full() {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		groups := w.file.File().Metadata().RowGroups
		var got []format.Encoding
		for _, stats := range groups[len(groups)-1].Columns[0].MetaData.EncodingStats {
			if stats.PageType == format.DataPage {
				got = append(got, stats.Encoding)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: encodings %v, want %v", name, got, c.want)
		}
		if got, err := lines(file.Bytes()); err != nil || strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("%s: %v, %d rows", name, err, len(got))
		}
	}
}

// breaks fails at its n-th call.
type breaks struct{ n, calls int }

var errDisk = errors.New("disk full")

func (b *breaks) Write(p []byte) (int, error) {
	if b.calls++; b.calls == b.n {
		return 0, errDisk
	}
	return len(p), nil
}

func TestF3WriterThatFailsAtAnyCall(t *testing.T) {
	write := func(b *breaks) (*Writer, error) {
		w := NewWriter(b, all())
		for _, rows := range []int{300, 2*batch + 1, 1} {
			fill(t, w, rows, func(r, i int) bool { return r%9 == i })
			if err := w.Flush(); err != nil {
				return w, err
			}
		}
		return w, w.Close()
	}
	count := &breaks{}
	if _, err := write(count); err != nil || count.calls < 30 {
		t.Fatalf("%d calls, %v", count.calls, err)
	}
	for n := 1; n <= count.calls; n++ {
		b := &breaks{n: n}
		w, err := write(b)
		if !errors.Is(err, errDisk) {
			t.Errorf("call %d failed, and the writer returned %v", n, err)
		}
		if again := w.Close(); !errors.Is(again, errDisk) || b.calls != n || !w.Full() {
			t.Errorf("call %d failed, and Close returned %v after %d calls", n, again, b.calls)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		columns []Column
		cells   func(w *Writer)
		want    string
	}{
		"an undecided column":    {[]Column{{Name: "x"}}, func(w *Writer) { w.Chunk(0).Null() }, `"x" has no type`},
		"digits that cannot be":  {[]Column{{Name: "x", Type: Decimal, Precision: 39}}, func(w *Writer) { w.Chunk(0).Null() }, `"x" has no type`},
		"a row without its cell": {[]Column{{Name: "x", Type: Int64}}, func(*Writer) {}, "0 cells"},
	} {
		w := NewWriter(io.Discard, c.columns)
		c.cells(w)
		w.EndRow()
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	w := NewWriter(io.Discard, []Column{{Name: "x", Type: Int64}}) // in a later row group, where cells do not wait for its end
	fill(t, w, 1, func(int, int) bool { return false })
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for range batch {
		w.EndRow()
	}
	if err := w.Flush(); !w.Full() || err == nil || !strings.Contains(err.Error(), "0 cells") {
		t.Errorf("%v, want 0 cells", err)
	}
	w = NewWriter(io.Discard, []Column{{Name: "x", Type: Int64}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("closed twice: %v", err)
	}
	w = NewWriter(io.Discard, []Column{{Name: "x", Type: Int64}})
	w.placed = MaxChunks
	w.Chunk(0).Int(1)
	w.EndRow()
	if err := w.Close(); !errors.Is(err, ErrTooManyChunks) {
		t.Errorf("%v, want %v", err, ErrTooManyChunks)
	}
}

func TestTypesAreSpelledAndRead(t *testing.T) {
	for _, c := range all() {
		got, err := ParseType(c.Spelled())
		got.Name = c.Name
		if err != nil || got != c {
			t.Errorf("%s: %+v, %v", c.Spelled(), got, err)
		}
	}
	for _, s := range []string{"", "UNDECIDED", "int64", "DECIMAL", "DECIMAL(", "DECIMAL(0,0)", "DECIMAL(39,1)", "DECIMAL(5,6)", "DECIMAL(5,-1)", "DECIMAL(05,1)", "DECIMAL(5,1", "DECIMAL(5)", "DECIMAL(x,y)"} {
		if c, err := ParseType(s); err == nil || !strings.Contains(err.Error(), "want INT64") {
			t.Errorf("%q: %+v, %v", s, c, err)
		}
	}
}

func TestExact(t *testing.T) {
	for v, want := range map[int64]bool{0: true, 1: true, -1: true, 1 << 53: true, 1<<53 + 1: false, -(1 << 53) - 1: false, 1<<53 + 2: true, math.MaxInt64: false, math.MinInt64: true, 1 << 62: true} {
		if Exact(v) != want {
			t.Errorf("%d: %v, want %v", v, !want, want)
		}
	}
}

// Row groups of wide rows whose large columns take turns do not each keep their largest.
func TestMemoryOfColumnsThatAreLargeByTurns(t *testing.T) {
	columns := make([]Column, 40)
	for i := range columns {
		columns[i] = Column{Name: fmt.Sprint(i), Type: Bytes}
	}
	w := NewWriter(io.Discard, columns)
	big := make([]byte, 1<<20)
	for r := range 16 * len(columns) {
		for i := range columns {
			if i == r/16 {
				w.Chunk(i).Text(append(big, byte(r)))
			} else {
				w.Chunk(i).Null()
			}
		}
		w.EndRow()
		if w.Full() {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	held := 0
	for i := range w.chunks {
		held += w.chunks[i].held()
	}
	if held > 4*GroupBytes {
		t.Errorf("%d MiB are held", held>>20)
	}
}

// FuzzOpen: whatever bytes a file has, reading it ends with rows or an error.
func FuzzOpen(f *testing.F) {
	for _, n := range []int{0, 1, 20} {
		var file bytes.Buffer
		w := NewWriter(&file, all())
		fill(f, w, n, func(r, i int) bool { return (r+i)%4 == 0 })
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := lines(file)
		if err == nil && len(got) > 0 && !bytes.HasSuffix(file, []byte(magic)) {
			t.Errorf("%d rows of what is no file", len(got))
		}
	})
}

// A file with any one byte changed is read to its end or refused.
func TestEveryByteChanged(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, all())
	fill(t, w, 40, func(r, i int) bool { return (r+i)%4 == 0 })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range file.Len() {
		for _, flip := range []byte{1, 0x80, 0xff} {
			other := bytes.Clone(file.Bytes())
			other[i] ^= flip
			if _, err := lines(other); err != nil {
				refused++
			}
		}
	}
	if refused < file.Len()/2 {
		t.Errorf("%d of %d changed files were refused", refused, 3*file.Len())
	}
}
