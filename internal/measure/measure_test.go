package measure_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"almanac/internal/measure"
)

func TestRatiosAndAims(t *testing.T) {
	ours, theirs := measure.Cost{Wall: 200, CPU: 300}, measure.Cost{Wall: 600, CPU: 600}
	for _, c := range []struct {
		bound     measure.Bound
		aim       float64
		wall, cpu float64
		met       bool
	}{
		{measure.AtLeast, 3, 3, 2, true}, {measure.AtLeast, 3.1, 3, 2, false}, {measure.AtLeast, 0, 3, 2, true},
		{measure.AtMost, 0.3, 200. / 600, 0.5, false}, {measure.AtMost, 0.4, 200. / 600, 0.5, true},
	} {
		r := measure.Row{Bound: c.bound, Aim: c.aim, Ours: ours, Theirs: theirs}
		if r.Wall() != c.wall || r.CPU() != c.cpu || r.Met() != c.met {
			t.Errorf("%s %v: %v, %v, met %v", c.bound, c.aim, r.Wall(), r.CPU(), r.Met())
		}
	}
	if got := measure.Medians([]measure.Cost{{Wall: 3, CPU: 1}, {Wall: 1, CPU: 9}, {Wall: 9, CPU: 2}}); got != (measure.Cost{Wall: 3, CPU: 2}) {
		t.Errorf("medians %v", got)
	}
}

func TestRowsOfABenchmarkBecomeATable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows")
	t.Setenv(measure.File, name)
	runs := []string{}
	testing.Benchmark(func(b *testing.B) {
		costs := measure.Compare(b, 3, func() error { runs = append(runs, "theirs"); return nil }, func() error { runs = append(runs, "ours"); return nil })
		for _, c := range costs {
			if c.Wall < 0 || c.CPU < 0 {
				t.Errorf("a cost below nothing: %+v", c)
			}
		}
	})
	if got := strings.Join(runs[:6], " "); got != "theirs ours theirs ours theirs ours" {
		t.Errorf("the order of the runs is %s", got)
	}
	for range 2 {
		result := testing.Benchmark(func(b *testing.B) {
			if b.N == 1 {
				measure.Row{What: "Löffel", Peer: "spoon v1", Bound: measure.AtMost, Aim: 1.1, Theirs: measure.Cost{Wall: 100, CPU: 100}, Ours: measure.Cost{Wall: 150, CPU: 100}, Beside: "1 MiB"}.Report(b)
			}
		})
		if result.N == 1 && result.Extra["ratio"] != 1.5 {
			t.Errorf("metrics %v", result.Extra)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := measure.Read(f)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var out strings.Builder
	if err := measure.Print(&out, rows[:1]); err != nil {
		t.Fatal(err)
	}
	want := `| what   | peer     | aim   | ratio       | by processor time | ms  | peer's ms | beside | benchmark |
| ---    | ---      | ---   | ---         | ---               | --- | ---       | ---    | ---       |
| Löffel | spoon v1 | ≤ 1.1 | 1.50 MISSED | 1.00              | 150 | 100       | 1 MiB  |           |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
