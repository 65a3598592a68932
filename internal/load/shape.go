package load

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// rows is how many lines a histogram has at most.
const rows = 24

// steps are the widths that a line of a histogram may have.
var steps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Column is one kind of event, by when each came after the load began.
type Column struct {
	Name  string
	After []time.Duration
}

// Histogram writes how many events of each kind came in each stretch of time, with a bar for the last kind.
func Histogram(w io.Writer, columns ...Column) {
	var last time.Duration
	for _, c := range columns {
		for _, d := range c.After {
			last = max(last, d)
		}
	}
	step := width(last)
	counts := make([][]int, len(columns))
	most := 1
	for i, c := range columns {
		counts[i] = make([]int, int(last/step)+1)
		for _, d := range c.After {
			counts[i][int(max(d, 0)/step)]++
		}
		most = max(most, slices.Max(counts[i]))
	}
	fmt.Fprintf(w, "  %10s", "after")
	for _, c := range columns {
		fmt.Fprintf(w, " %10s", c.Name)
	}
	fmt.Fprintf(w, "   per %s\n", short(step))
	for row := range counts[0] {
		fmt.Fprintf(w, "  %10s", short(time.Duration(row)*step))
		for i := range columns {
			fmt.Fprintf(w, " %10d", counts[i][row])
		}
		fmt.Fprintf(w, "   %s\n", strings.Repeat("#", (counts[len(columns)-1][row]*40+most-1)/most))
	}
}

// width is the narrowest step that keeps a histogram short.
func width(last time.Duration) time.Duration {
	for _, s := range steps {
		if last < rows*s {
			return s
		}
	}
	return last/rows + 1
}

// short spells a duration without parts that are zero.
func short(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Percentiles writes one line: the times below which half, 95 and 99 of a hundred lie, and the longest.
func Percentiles(w io.Writer, name string, times []time.Duration) {
	fmt.Fprintf(w, "  %-28s p50 %9s  p95 %9s  p99 %9s  max %9s  of %d\n", name, short(Percentile(times, 50)), short(Percentile(times, 95)), short(Percentile(times, 99)), short(Percentile(times, 100)), len(times))
}

// Percentile is the smallest time that p of a hundred do not exceed; 0 where there is none.
func Percentile(times []time.Duration, p float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[max(0, int(math.Ceil(p/100*float64(len(s))))-1)]
}
