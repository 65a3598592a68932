package artifact_test

// One command prints the table:
//
//	go test ./internal/artifact -run '^$' -bench Ratio

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"almanac/internal/artifact"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
)

// generator makes rows of ten columns as a driver would hand them over: integers, decimals, time stamps, texts of
// which some need quotes, and NULLs. Rows of equal number are equal. It watches the heap.
type generator struct {
	n, next int
	ring    [][]source.Value // prepared rows; numbers and times are set anew
	peak    uint64
	sample  int // rows between looks at the heap; 0 for none
}

const ringSize = 4096

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var benchColumns = []source.Column{{Name: "id", Type: source.Integer}, {Name: "account", Type: source.Integer}, {Name: "amount", Type: source.Decimal},
	{Name: "price", Type: source.Decimal}, {Name: "created_at", Type: source.Timestamp}, {Name: "updated_at", Type: source.Timestamp},
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
	return row, nil
}

// view is a text without a copy, so that the comparison does not pay for one.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viaEncodingCSV writes the same rows with the standard library, without hash and without neutralising.
func viaEncodingCSV(rows source.Rows, w io.Writer) error {
	out := csv.NewWriter(w)
	record := make([]string, len(rows.Columns()))
	for i, c := range rows.Columns() {
		record[i] = c.Name
	}
	for {
		if err := out.Write(record); err != nil {
			return err
		}
		row, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			out.Flush()
			return out.Error()
		}
		if err != nil {
			return err
		}
		for i, v := range row {
			switch v.Kind {
			case source.KindNull:
				record[i] = ""
			case source.KindInt:
				record[i] = strconv.FormatInt(v.Int, 10)
			case source.KindFloat:
				record[i] = strconv.FormatFloat(v.Float, 'f', -1, 64)
			case source.KindTimestamp:
				record[i] = v.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
			default:
				record[i] = view(v.Text)
			}
		}
	}
}

// raw moves as many bytes in blocks, formatting nothing: the bound of any writer.
func raw(rows source.Rows, w io.Writer, bytes int64) error {
	if err := drain(rows); err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for ; bytes > 0; bytes -= int64(len(block)) {
		if _, err := w.Write(block[:min(bytes, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
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

// cost is the median of the rounds in milliseconds: by the clock, and of processor time on all cores, which a machine
// that is busy with other things disturbs less.
type cost struct{ wall, cpu float64 }

// compare runs the contenders in turn, so that a busy machine slows all of them.
func compare(b *testing.B, rounds int, contenders ...func() error) []cost {
	wall, cpu := make([][]float64, len(contenders)), make([][]float64, len(contenders))
	for range rounds {
		for i, f := range contenders {
			runtime.GC()
			begun, used := time.Now(), processor(b)
			if err := f(); err != nil {
				b.Fatal(err)
			}
			wall[i] = append(wall[i], float64(time.Since(begun).Microseconds())/1000)
			cpu[i] = append(cpu[i], processor(b)-used)
		}
	}
	out := make([]cost, len(contenders))
	for i := range out {
		slices.Sort(wall[i])
		slices.Sort(cpu[i])
		out[i] = cost{wall[i][rounds/2], cpu[i][rounds/2]}
	}
	return out
}

// processor is the time that this process has had so far, in milliseconds.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// BenchmarkRatioCSV compares with encoding/csv on the same rows in the same run.
func BenchmarkRatioCSV(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d rows", n), func(b *testing.B) {
			var bare, standard, own cost
			var peak uint64
			var size int64
			for b.Loop() {
				measured := newGenerator(n)
				measured.sample = 10_000
				res, err := artifact.Write(b.Context(), measured, plain, io.Discard, 0)
				if err != nil {
					b.Fatal(err)
				}
				peak, size = measured.peak, res.Bytes
				costs := compare(b, 5, func() error { return raw(newGenerator(n), io.Discard, size) },
					func() error { return viaEncodingCSV(newGenerator(n), io.Discard) },
					func() error {
						_, err := artifact.Write(b.Context(), newGenerator(n), plain, io.Discard, 0)
						return err
					})
				bare, standard, own = costs[0], costs[1], costs[2]
			}
			b.ReportMetric(standard.wall/own.wall, "x-encoding/csv")
			b.ReportMetric(standard.cpu/own.cpu, "x-by-cpu")
			b.ReportMetric(own.wall, "ms-artifact")
			b.ReportMetric(standard.wall, "ms-encoding/csv")
			b.ReportMetric(bare.wall, "ms-raw")
			b.ReportMetric(float64(peak)/(1<<20), "MiB-peak-heap")
			b.ReportMetric(float64(size)/1e6, "MB-file")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkRatioSQLite compares source to file with a bare drain of the same source: at most 1.1 is the aim.
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
	var drained, written cost
	for b.Loop() {
		costs := compare(b, 5, func() error { rows := open(); defer rows.Close(); return drain(rows) },
			func() error {
				rows := open()
				defer rows.Close()
				_, err := artifact.Write(b.Context(), rows, plain, io.Discard, 0)
				return err
			})
		drained, written = costs[0], costs[1]
	}
	b.ReportMetric(written.wall/drained.wall, "x-drain")
	b.ReportMetric(written.cpu/drained.cpu, "x-by-cpu")
	b.ReportMetric(drained.wall, "ms-drain")
	b.ReportMetric(written.wall, "ms-to-file")
	b.ReportMetric(0, "ns/op")
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
