package sourcetest

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// same compares two cells to the bit: the parts that their kind uses.
func same(a, b source.Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case source.KindInt, source.KindBool:
		return a.Int == b.Int
	case source.KindFloat:
		return math.Float64bits(a.Float) == math.Float64bits(b.Float) || math.IsNaN(a.Float) && math.IsNaN(b.Float)
	case source.KindDate, source.KindTimestamp:
		return a.Time.Equal(b.Time) && a.Time.Location() == time.UTC
	}
	return bytes.Equal(a.Text, b.Text)
}

// cells checks that each of the engine's types comes out exactly, all in one row and in every row: an iterator reuses its
// buffers.
func (s suite) cells(t *testing.T) {
	src := s.open(t, numbers)
	var sql strings.Builder
	for i, c := range s.d.Cells {
		fmt.Fprintf(&sql, ", %s AS c%d", c.SQL, i)
	}
	out := s.must(t, src, source.Query{SQL: "SELECT n" + sql.String() + " FROM numbers WHERE n <= 3"})
	if len(out.Rows) != 3 || len(s.d.Cells) == 0 {
		t.Fatalf("%d rows of %d expressions", len(out.Rows), len(s.d.Cells))
	}
	for i, c := range s.d.Cells {
		t.Run("V10 "+c.SQL, func(t *testing.T) {
			for n, row := range out.Rows {
				if got := row[i+1]; !same(got, c.Want) {
					t.Fatalf("row %d: kind %d, %d, %v, %q, %s; want %+v", n, got.Kind, got.Int, got.Float, got.Text, got.Time, c.Want)
				}
			}
			if want := c.Column; want.Name != "" {
				got := out.Columns[i+1]
				got.Name = want.Name
				if got != want {
					t.Fatalf("the column is %+v, want %+v", got, want)
				}
			}
		})
	}
}

// timeZones checks that a time is bound as the instant that it is, whatever zone it is given in, also in the hour that
// New York had twice.
func (s suite) timeZones(t *testing.T) {
	src := s.open(t, numbers)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{
		time.Date(2013, 6, 1, 9, 0, 0, 0, newYork), time.Date(2013, 6, 1, 13, 0, 0, 0, time.UTC), time.Date(2013, 11, 3, 5, 30, 0, 0, time.UTC).In(newYork),
		time.Date(2013, 11, 3, 6, 30, 0, 0, time.UTC).In(newYork), time.Date(1969, 12, 31, 23, 59, 59, 0, time.FixedZone("", 5*3600+45*60)), time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC),
	} {
		out := s.must(t, src, source.Query{SQL: s.d.Epoch, Params: map[string]any{"scheduled_time": at}})
		if len(out.Rows) != 1 || out.Rows[0][0].Kind != source.KindInt || out.Rows[0][0].Int != at.Unix() {
			t.Errorf("%s came back as %+v, want %d", at, out.Rows, at.Unix())
		}
	}
}

// sizes checks cells and rows at the edge of what is held in memory.
func (s suite) sizes(t *testing.T) {
	src := s.open(t, numbers)
	t.Run("a cell of 15 MB", func(t *testing.T) {
		expr, big, params := s.d.long(15 << 20 / len(sixteen))
		out := s.must(t, src, source.Query{SQL: "SELECT " + expr + " AS big", Params: params})
		if len(out.Rows) != 1 || string(out.Rows[0][0].Text) != big {
			t.Fatal("the cell came back changed")
		}
	})
	t.Run("a row beyond what is held in memory", func(t *testing.T) {
		f := s.refused(t, src, source.Query{SQL: s.d.HugeRow}, failure.QueryFailed)
		if want := fmt.Sprintf("row 1 has more than %d bytes", source.MaxRow); !strings.Contains(f.Message, want) {
			t.Fatalf("%q does not say %q", f.Message, want)
		}
	})
	columns := func(n int) source.Query {
		return source.Query{SQL: "SELECT " + strings.Repeat("n, ", n-1) + "n AS last FROM numbers WHERE n = 7"}
	}
	t.Run("as many columns as there may be", func(t *testing.T) {
		out := s.must(t, src, columns(s.d.MaxColumns))
		if len(out.Columns) != s.d.MaxColumns || len(out.Rows) != 1 || len(out.Rows[0]) != s.d.MaxColumns || out.Rows[0][s.d.MaxColumns-1].Int != 7 || out.Columns[s.d.MaxColumns-1].Name != "last" {
			t.Fatalf("%d columns, %d rows", len(out.Columns), len(out.Rows))
		}
	})
	t.Run("one column more", func(t *testing.T) {
		s.refused(t, src, columns(s.d.MaxColumns+1), failure.QueryInvalid)
	})
}
