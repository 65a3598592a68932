package snapshottest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"almanac/internal/source"
)

// Source answers the queries of Delays: by workspace and month the delays of flights, whose ids are 1, 2, 3 and so on.
type Source struct {
	Complete time.Time // its watermark
	Broken   error     // of the watermark
	Lost     int       // rows that only the control query knows of

	mu    sync.Mutex
	rows  map[string][]int64
	moved int
}

// Load sets a month's delays, such as "EWR 2013-01". Every other month has three flights.
func (s *Source) Load(month string, delays ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string][]int64{}
	}
	s.moved++
	s.rows[month] = delays
}

// View holds the rows as they are now.
func (s *Source) View(_ context.Context, _, _ string) (source.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &view{s, fmt.Sprintf("v%d", s.moved)}, nil
}

type view struct {
	s       *Source
	version string
}

func (v *view) Version() string { return v.version }
func (v *view) Close() error    { return nil }

func (v *view) ByteOrder(column string, _ source.Type) string { return column }

func (v *view) Open(_ context.Context, q source.Query) (source.Rows, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	start, _ := q.Params["period_start"].(time.Time)
	delays, loaded := v.s.rows[fmt.Sprintf("%v %s", q.Params["workspace"], start.Format("2006-01"))]
	if !loaded {
		delays = []int64{10, -3, 25}
	}
	if strings.Contains(q.SQL, "count(*)") {
		sum := int64(0)
		for _, d := range delays {
			sum += d
		}
		return &rows{columns: []string{"rows", "delay"}, cells: [][2]int64{{int64(len(delays) + v.s.Lost), sum}}}, nil
	}
	r := &rows{columns: []string{"id", "delay"}}
	after, _ := q.Params["almanac_cursor"].(int64)
	for i, d := range delays {
		if id := int64(i + 1); id > after && !strings.HasSuffix(q.SQL, "limit 0") {
			r.cells = append(r.cells, [2]int64{id, d})
		}
	}
	return r, nil
}

type rows struct {
	columns []string
	cells   [][2]int64
	out     [2]source.Value
}

func (r *rows) Columns() []source.Column {
	return []source.Column{{Name: r.columns[0], Type: source.Integer}, {Name: r.columns[1], Type: source.Integer}}
}

func (r *rows) Next(context.Context) ([]source.Value, error) {
	if len(r.cells) == 0 {
		return nil, io.EOF
	}
	for i, n := range r.cells[0] {
		r.out[i] = source.Value{Kind: source.KindInt, Int: n}
	}
	r.cells = r.cells[1:]
	return r.out[:], nil
}

func (r *rows) Close() error { return nil }
