// Package measure compares two ways of doing the same work, for benchmarks whose names begin with BenchmarkRatio, and makes
// the table that scripts/bench prints. A benchmark asks Compare for the medians of runs in turn, in one process, and says in
// a Row what they are of:
//
//	costs := measure.Compare(b, 5, peer, own)
//	measure.Row{What: "JSON Lines", Peer: "encoding/json", Bound: measure.AtLeast, Aim: 3, Theirs: costs[0], Ours: costs[1]}.Report(b)
//
// scripts/bench finds the benchmark by its name; there is no list to add it to.
package measure

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cost is what a piece of work took, in milliseconds: by the clock, and of processor time on all cores, which a machine that
// is busy with other things disturbs less.
type Cost struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}

// Compare runs the ways in turn, rounds times, so that a busy machine slows all of them, and returns the medians of each.
func Compare(b *testing.B, rounds int, ways ...func() error) []Cost {
	b.Helper()
	all := make([][]Cost, len(ways))
	for range rounds {
		for i, way := range ways {
			runtime.GC() // none pays for another one's garbage
			all[i] = append(all[i], One(b, way))
		}
	}
	out := make([]Cost, len(ways))
	for i := range out {
		out[i] = Medians(all[i])
	}
	return out
}

// One is the cost of one run.
func One(b *testing.B, way func() error) Cost {
	b.Helper()
	began, used := time.Now(), processor(b)
	if err := way(); err != nil {
		b.Fatal(err)
	}
	return Cost{float64(time.Since(began).Microseconds()) / 1000, processor(b) - used}
}

// Medians are the median by the clock and that of processor time; of an even number, the upper of the two.
func Medians(of []Cost) Cost {
	var wall, cpu []float64
	for _, c := range of {
		wall, cpu = append(wall, c.Wall), append(cpu, c.CPU)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	return Cost{wall[len(wall)/2], cpu[len(cpu)/2]}
}

// processor is the time that this process has had so far, in milliseconds.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// Bound says which side of its aim a ratio should be on.
type Bound string

const (
	AtLeast Bound = "≥" // the ratio is how many times as fast as the peer the product is
	AtMost  Bound = "≤" // the ratio is how many times as long as the peer the product takes
)

// Row is one row of the table: the product and a peer on the same work.
type Row struct {
	What    string  `json:"what"` // with its size, such as "CSV, 1,000,000 rows"
	Peer    string  `json:"peer"` // with its version, unless it is of Go or of this repository
	Bound   Bound   `json:"bound"`
	Aim     float64 `json:"aim,omitempty"` // 0: there is none
	Theirs  Cost    `json:"theirs"`        // what the peer took
	Ours    Cost    `json:"ours"`
	Beside  string  `json:"beside,omitempty"`  // what else was seen, such as "peak heap 8.1 MiB"
	Command string  `json:"command,omitempty"` // filled in by Report: the benchmark
}

// ratio is of the clock or of processor time, as of picks.
func (r Row) ratio(of func(Cost) float64) float64 {
	if r.Bound == AtLeast {
		return of(r.Theirs) / of(r.Ours)
	}
	return of(r.Ours) / of(r.Theirs)
}

// Wall is the ratio by the clock.
func (r Row) Wall() float64 { return r.ratio(func(c Cost) float64 { return c.Wall }) }

// CPU is the ratio of processor time. Where one of the two uses more cores than the other, it tells something else.
func (r Row) CPU() float64 { return r.ratio(func(c Cost) float64 { return c.CPU }) }

// Met reports whether the ratio by the clock is on the right side of its aim.
func (r Row) Met() bool {
	return r.Aim == 0 || r.Bound == AtLeast && r.Wall() >= r.Aim || r.Bound == AtMost && r.Wall() <= r.Aim
}

// File is the environment variable that names the file to which Report adds rows, a line of JSON each.
const File = "ALMANAC_BENCH"

// Report shows the ratios as the benchmark's metrics, and adds the row to the table's file where there is one.
func (r Row) Report(b *testing.B) {
	b.Helper()
	b.ReportMetric(r.Wall(), "ratio")
	b.ReportMetric(r.CPU(), "ratio-by-cpu")
	b.ReportMetric(r.Ours.Wall, "ms")
	b.ReportMetric(r.Theirs.Wall, "ms-peer")
	b.ReportMetric(0, "ns/op")
	r.Command, _, _ = strings.Cut(b.Name(), "/")
	name := os.Getenv(File)
	if name == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		b.Fatal(err)
	}
}
