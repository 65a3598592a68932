package snapshot

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// marks is a source that answers every query with these rows.
type marks struct {
	columns        []source.Column
	rows           [][]source.Value
	fails          error // instead of the row at failsAt
	failsAt        int
	viewErr, opens error
	asked          source.Query
	workspace      string
	closed         int
	at             int
}

func (m *marks) View(_ context.Context, _, workspace string) (source.View, error) {
	m.workspace = workspace
	return m.view(), m.viewErr
}

type markView struct{ *marks }

func (m *marks) view() source.View { return markView{m} }

func (v markView) Open(_ context.Context, q source.Query) (source.Rows, error) {
	v.asked = q
	return markRows(v), v.opens
}
func (v markView) Version() string { return "" }
func (v markView) ByteOrder(column string, _ source.Type) string {
	return column
}
func (v markView) Close() error { v.closed++; return nil }

type markRows struct{ *marks }

func (r markRows) Columns() []source.Column { return r.columns }
func (r markRows) Close() error             { r.closed++; return nil }
func (r markRows) Next(context.Context) ([]source.Value, error) {
	r.at++
	if r.fails != nil && r.at == r.failsAt {
		return nil, r.fails
	}
	if r.at > len(r.rows) {
		return nil, io.EOF
	}
	return r.rows[r.at-1], nil
}

func read(m *marks) (time.Time, error) {
	v := Version{Definition: Definition{Type: "trips", Source: "flights", Watermark: "select max(at) from loads where site = :workspace and feed = :feed and :period_start is not null;", Params: map[string]any{"feed": "a", "unused": 1}}}
	return ReadWatermark(m)(context.Background(), v, Workspace{ID: "EWR"})
}

func TestAWatermarkIsOneInstant(t *testing.T) {
	want := time.Date(2013, 5, 1, 4, 0, 0, 0, time.UTC)
	one := []source.Column{{Name: "at"}}
	for name, v := range map[string]source.Value{
		"text":             {Kind: source.KindText, Text: []byte("2013-05-01T04:00:00Z")},
		"text of a zone":   {Kind: source.KindText, Text: []byte("2013-05-01T00:00:00-04:00")},
		"a timestamp":      {Kind: source.KindTimestamp, Time: want.In(time.FixedZone("x", 3600))},
		"nothing complete": {},
	} {
		m := &marks{columns: one, rows: [][]source.Value{{v}}}
		got, err := read(m)
		if name == "nothing complete" {
			want = time.Time{}
		} else {
			want = time.Date(2013, 5, 1, 4, 0, 0, 0, time.UTC)
		}
		if err != nil || !got.Equal(want) || got.Location() != time.UTC || m.closed != 2 {
			t.Errorf("%s: %s, %v; closed %d", name, got, err, m.closed)
		}
		if m.workspace != "EWR" || len(m.asked.Params) != 2 || m.asked.Params["workspace"] != "EWR" || m.asked.Params["feed"] != "a" || strings.HasSuffix(m.asked.SQL, ";") {
			t.Errorf("%s: asked %+v for %s; want the parameters that the query names, and no month", name, m.asked, m.workspace)
		}
	}
}

func TestAWatermarkThatIsNoneIsRefused(t *testing.T) {
	one, text := []source.Column{{Name: "at"}}, func(s string) []source.Value { return []source.Value{{Kind: source.KindText, Text: []byte(s)}} }
	for name, row := range map[string]struct {
		m    *marks
		want string
	}{
		"no column":   {&marks{}, "0 columns"},
		"two columns": {&marks{columns: append(one, one...), rows: [][]source.Value{append(text("a"), text("b")...)}}, "2 columns; want one"},
		"no row":      {&marks{columns: one}, "no row"},
		"two rows":    {&marks{columns: one, rows: [][]source.Value{text("2013-05-01T04:00:00Z"), text("2013-05-01T04:00:00Z")}}, "more than one row"},
		"a date":      {&marks{columns: one, rows: [][]source.Value{text("2013-05-01")}}, `the watermark is "2013-05-01"; want an instant such as`},
		"a number":    {&marks{columns: one, rows: [][]source.Value{{{Kind: source.KindInt, Int: 1367380800}}}}, "the watermark is 1367380800"},
		"hostile":     {&marks{columns: one, rows: [][]source.Value{text("2013-05-01T04:00:00Z'; drop table loads --\x00")}}, "want an instant"},
		"no zone":     {&marks{columns: one, rows: [][]source.Value{text("2013-05-01T04:00:00")}}, "want an instant"},
	} {
		if at, err := read(row.m); !failure.Is(err, failure.DefinitionInvalid) || !strings.Contains(err.Error(), row.want) || !at.IsZero() {
			t.Errorf("%s: %s, %v", name, at, err)
		}
	}
	cut := errors.New("cut")
	for name, m := range map[string]*marks{
		"no view":          {viewErr: cut},
		"not opened":       {opens: cut},
		"broken":           {columns: one, fails: cut, failsAt: 1},
		"broken after one": {columns: one, rows: [][]source.Value{text("2013-05-01T04:00:00Z")}, fails: cut, failsAt: 2},
	} {
		if at, err := read(m); !errors.Is(err, cut) || !at.IsZero() {
			t.Errorf("%s: %s, %v", name, at, err)
		}
	}
}
