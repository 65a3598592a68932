package artifact_test

// scripts/bench prints the table; one package's ratios are shown by
//
//	go test ./internal/artifact -run '^$' -bench Ratio -benchtime 1x

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/measure"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
)

// generator makes rows of ten columns as a driver would hand them over: integers, decimals, time stamps, texts of
// which some need quotes, and NULLs. Rows of equal number are equal. It watches the heap.
type generator struct {
	n, next int
	ring    [][]source.Value // prepared rows; numbers and times are set anew
	sample  int              // rows between looks at the heap in use; 0 for none
	peak    uint64           // of those looks
	collect int              // rows between collections of garbage; 0 for none
	live    uint64           // the most that they left
}

const ringSize = 4096

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var benchColumns = []source.Column{{Name: "id", Type: source.Integer}, {Name: "account", Type: source.Integer}, {Name: "amount", Type: source.Decimal, Precision: 12, Scale: 2},
	{Name: "price", Type: source.Decimal, Precision: 12, Scale: 6}, {Name: "created_at", Type: source.Timestamp}, {Name: "updated_at", Type: source.Timestamp},
	{Name: "name", Type: source.Text}, {Name: "status", Type: source.Text}, {Name: "note", Type: source.Text}, {Name: "quantity", Type: source.Integer}}

func newGenerator(n int) *generator { return &generator{n: n, ring: ring()} }

var ring = sync.OnceValue(func() (out [][]source.Value) {
	r := rand.New(rand.NewPCG(3, 9))
	word := func() string {
		b := make([]byte, 3+r.IntN(7))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return string(b)
	}
	states := []string{"pending", "approved", "shipped", "delivered", "returned", "cancelled", "on hold", "closed"}
	for range ringSize {
		name := word() + " " + word()
		switch r.IntN(100) {
		case 0:
			name += ", inc"
		case 1:
			name += ` "x"`
		}
		note, quantity := text(word()+" "+word()+" "+word()), source.Value{Kind: source.KindInt, Int: r.Int64N(512)}
		if r.IntN(10) < 3 {
			note = null
		}
		if r.IntN(10) < 2 {
			quantity = null
		}
		decimal := func(scale int, digits int) source.Value {
			return source.Value{Kind: source.KindDecimal, Text: fmt.Appendf(nil, "%d.%0*d", r.IntN(scale)-scale/16, digits, r.IntN(99))}
		}
		out = append(out, []source.Value{{Kind: source.KindInt}, {Kind: source.KindInt, Int: 1_000_000_000 + r.Int64N(9_000_000_000)}, decimal(1_000_000, 2), decimal(1000, 6),
			{Kind: source.KindTimestamp}, {Kind: source.KindTimestamp, Time: epoch.Add(time.Duration(r.Int64N(1e9)) * time.Millisecond)}, text(name), text(states[r.IntN(8)]), note, quantity})
	}
	return out
})

func (g *generator) Columns() []source.Column { return benchColumns }
func (g *generator) Close() error             { return nil }
func (g *generator) Next(context.Context) ([]source.Value, error) {
	if g.next == g.n {
		return nil, io.EOF
	}
	row := g.ring[g.next%ringSize]
	g.next++
	row[0].Int = int64(g.next)
	row[4].Time = epoch.Add(time.Duration(g.next) * 8111 * time.Millisecond)
	if g.sample > 0 && g.next%g.sample == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		g.peak = max(g.peak, m.HeapInuse)
	}
	if g.collect > 0 && g.next%g.collect == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		g.live = max(g.live, m.HeapAlloc)
	}
	return row, nil
}

func drain(rows source.Rows) error {
	for {
		if _, err := rows.Next(context.Background()); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// written is a way that writes n generated rows as a file.
func written(b *testing.B, n int, f artifact.Format) func() error {
	return func() error {
		_, err := artifact.Write(b.Context(), newGenerator(n), f, io.Discard, 0)
		return err
	}
}

// seen writes n generated rows and tells the size of the file and the peak of the heap.
func seen(b *testing.B, n int, f artifact.Format) (size int64, beside string) {
	g := newGenerator(n)
	g.sample = 10_000
	res, err := artifact.Write(b.Context(), g, f, io.Discard, 0)
	if err != nil {
		b.Fatal(err)
	}
	return res.Bytes, fmt.Sprintf("%.1f MB, peak heap %.1f MiB", float64(res.Bytes)/1e6, float64(g.peak)/(1<<20))
}

// held writes n generated rows and tells the most that lived on the heap, garbage aside, at fifty places of the file. The peak
// in use depends on where a collection falls, and so on how many there are.
func held(b *testing.B, n int, f artifact.Format) string {
	g := newGenerator(n)
	g.collect = n / 50
	if _, err := artifact.Write(b.Context(), g, f, io.Discard, 0); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("%.1f", float64(g.live)/(1<<20))
}

// intoFile has a file written.
func intoFile(b *testing.B, write func(io.Writer) error) func() error {
	return func() error {
		f, err := os.Create(filepath.Join(b.TempDir(), "rows"))
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
}

const rounds = 5

// BenchmarkRatioCSV compares with encoding/csv and with writing as many bytes that are ready.
func BenchmarkRatioCSV(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			for b.Loop() {
				size, beside := seen(b, n, plain)
				costs := measure.Compare(b, rounds, func() error { return viaEncodingCSV(newGenerator(n), io.Discard) }, written(b, n, plain))
				row := measure.Row{What: fmt.Sprintf("CSV, %d rows × 10 columns", n), Peer: "encoding/csv", Bound: measure.AtLeast, Aim: 2.5, Theirs: costs[0], Ours: costs[1], Beside: beside}
				row.Report(b)
				if n == 1_000_000 {
					costs = measure.Compare(b, rounds, intoFile(b, func(w io.Writer) error { return raw(newGenerator(n), w, size) }), intoFile(b, func(w io.Writer) error {
						_, err := artifact.Write(b.Context(), newGenerator(n), plain, w, 0)
						return err
					}))
					row.Peer, row.Bound, row.Aim, row.Theirs, row.Ours, row.Beside = "the same bytes, ready, into a file as well", measure.AtMost, 6, costs[0], costs[1], ""
					row.Report(b)
				}
			}
		})
	}
}

// BenchmarkRatioJSONLines compares with encoding/json.
func BenchmarkRatioJSONLines(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		_, beside := seen(b, n, jsonLines)
		costs := measure.Compare(b, rounds, func() error { return viaEncodingJSON(newGenerator(n), io.Discard) }, written(b, n, jsonLines))
		measure.Row{What: "JSON Lines, 1000000 rows × 10 columns", Peer: "encoding/json", Bound: measure.AtLeast, Aim: 3, Theirs: costs[0], Ours: costs[1], Beside: beside}.Report(b)
	}
}

// BenchmarkRatioPacked compares a packed file with packing alone, at the same level, of the same bytes in blocks as large.
func BenchmarkRatioPacked(b *testing.B) {
	const n = 1_000_000
	for _, c := range []struct {
		name   string
		format artifact.Format
		peer   string
		aim    float64
	}{
		{"CSV", artifact.Format{Kind: "csv", Compression: "gzip"}, "gzip, klauspost/compress v1.20.4", 1.1},
		{"JSON Lines", artifact.Format{Kind: "jsonl", Compression: "gzip"}, "gzip, klauspost/compress v1.20.4", 1.1},
		{"CSV", artifact.Format{Kind: "csv", Compression: "zstd"}, "zstd, klauspost/compress v1.20.4", 0},
	} {
		b.Run(c.format.Kind+" "+c.format.Compression, func(b *testing.B) {
			_, beside := seen(b, n, c.format) // before the ready bytes take their room
			var ready bytes.Buffer
			bare := artifact.Format{Kind: c.format.Kind}
			if _, err := artifact.Write(b.Context(), newGenerator(n), bare, &ready, 0); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				costs := measure.Compare(b, rounds, func() error { return packAlone(c.format.Compression, ready.Bytes()) }, written(b, n, c.format))
				measure.Row{What: fmt.Sprintf("%s by %s, 1000000 rows × 10 columns", c.name, c.format.Compression), Peer: c.peer + " of the same bytes alone", Bound: measure.AtMost, Aim: c.aim, Theirs: costs[0], Ours: costs[1], Beside: beside}.Report(b)
			}
		})
	}
}

// BenchmarkRatioTenTimesTheRows compares a file with ten files of a tenth of its rows, which take as long and so meet the
// machine's changes of pace alike, and puts what both hold in memory beside it. The aim leaves a tenth for noise. XLSX has room for no more
// than 1,048,576 rows.
func BenchmarkRatioTenTimesTheRows(b *testing.B) {
	for _, c := range []struct {
		name   string
		n      int
		format artifact.Format
	}{{"CSV", 1_000_000, plain}, {"JSON Lines", 1_000_000, jsonLines}, {"XLSX", 100_000, artifact.Format{Kind: "xlsx"}}, {"Parquet", 1_000_000, artifact.Format{Kind: "parquet"}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				small := written(b, c.n, c.format)
				costs := measure.Compare(b, 5, func() error {
					for range 10 {
						if err := small(); err != nil {
							return err
						}
					}
					return nil
				}, written(b, 10*c.n, c.format))
				measure.Row{What: fmt.Sprintf("%s, %d rows × 10 columns", c.name, 10*c.n), Peer: fmt.Sprintf("ten files of %d rows", c.n), Bound: measure.AtMost, Aim: 1.1,
					Theirs: costs[0], Ours: costs[1], Beside: "lives on the heap: " + held(b, c.n, c.format) + " MiB in one of the ten, " + held(b, 10*c.n, c.format) + " MiB in this"}.Report(b)
			}
		})
	}
}

// BenchmarkRatioSQLite compares source to file with a bare drain of the same source.
func BenchmarkRatioSQLite(b *testing.B) {
	const n = 500_000
	path := filepath.Join(b.TempDir(), "bench.sqlite")
	fillDatabase(b, path, n)
	file := &sqlite.File{Path: path}
	open := func() source.Rows {
		rows, err := file.Open(b.Context(), source.Query{SQL: "SELECT * FROM t"})
		if err != nil {
			b.Fatal(err)
		}
		return rows
	}
	for b.Loop() {
		costs := measure.Compare(b, rounds, func() error { rows := open(); defer rows.Close(); return drain(rows) },
			func() error {
				rows := open()
				defer rows.Close()
				_, err := artifact.Write(b.Context(), rows, plain, io.Discard, 0)
				return err
			})
		measure.Row{What: "SQLite to CSV, 500000 rows × 10 columns", Peer: "draining the same query", Bound: measure.AtMost, Aim: 1.1, Theirs: costs[0], Ours: costs[1]}.Report(b)
	}
}

// fillDatabase stores the generator's rows, times as text.
func fillDatabase(b *testing.B, path string, n int) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	must := func(_ any, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(db.Exec("PRAGMA synchronous = 0"))
	must(db.Exec("CREATE TABLE t (id INTEGER, account INTEGER, amount DECIMAL TEXT, price DECIMAL TEXT, created_at TEXT, updated_at TEXT, name TEXT, status TEXT, note TEXT, quantity INTEGER)"))
	must(db.Exec("BEGIN"))
	insert, err := db.Prepare("INSERT INTO t VALUES (?,?,?,?,?,?,?,?,?,?)")
	must(nil, err)
	g := newGenerator(n)
	for args := make([]any, 10); ; {
		row, err := g.Next(context.Background())
		if err != nil {
			break
		}
		for i, v := range row {
			switch v.Kind {
			case source.KindNull:
				args[i] = nil
			case source.KindInt:
				args[i] = v.Int
			case source.KindTimestamp:
				args[i] = v.Time.Format("2006-01-02T15:04:05.000Z07:00")
			default:
				args[i] = string(v.Text)
			}
		}
		must(insert.Exec(args...))
	}
	must(db.Exec("COMMIT"))
}

// The heap must not grow with the rows; this is no timing, so it holds on any machine.
func TestMemoryIsFlat(t *testing.T) {
	peak := func(n int) uint64 {
		runtime.GC()
		g := newGenerator(n)
		g.sample = 5000
		if _, err := artifact.Write(t.Context(), g, plain, io.Discard, 0); err != nil {
			t.Fatal(err)
		}
		return g.peak
	}
	few, many := peak(50_000), peak(400_000)
	if many > few+2<<20 {
		t.Fatalf("the heap in use was %d bytes with 50,000 rows and %d with 400,000", few, many)
	}
}
