package load

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// told is a table that says what a test wrote into it.
type told struct {
	runs map[string][]schedule.Run
	subs map[string][]schedule.Submission
	err  error
}

func (t told) Runs(_ context.Context, id, from string, _ int) ([]schedule.Run, string, error) {
	rs := t.runs[id]
	i := len(from) // a page holds one run; the cursor is as long as what was read
	if i >= len(rs) {
		return nil, "", t.err
	}
	if i+1 == len(rs) {
		return rs[i:], "", t.err
	}
	return rs[i : i+1], strings.Repeat("x", i+1), t.err
}

func (t told) Submissions(_ context.Context, run string) ([]schedule.Submission, error) {
	return t.subs[run], t.err
}

const a, b = "a@example.com", "https://example.com/b"

// kept is a world in which two occurrences went to two addresses.
func kept() (told, []Promise, Outside) {
	t := told{runs: map[string][]schedule.Run{}, subs: map[string][]schedule.Submission{}}
	out := Outside{Accepted: map[string]int{}}
	for _, o := range []string{"1", "2"} {
		id := schema.RunID("s", o)
		r := schedule.Run{Schedule: "s", Occurrence: o, State: schedule.Succeeded, Attempts: 1, Submitted: 2, File: &schedule.RecordedFile{Key: "files/" + o}}
		t.runs["s"] = append(t.runs["s"], r)
		out.Files = append(out.Files, r.File.Key)
		for _, to := range []string{a, b} {
			t.subs[id] = append(t.subs[id], schedule.Submission{Run: id, Recipient: to, State: schedule.Submitted})
			out.Accepted[At(id, to)] = 1
		}
	}
	return t, []Promise{{"s", []string{"1", "2"}, []string{a, b}}}, out
}

// Each way to break a promise is told, and names the run.
func TestKept(t *testing.T) {
	for _, x := range []struct {
		name  string
		spoil func(t *told, p []Promise, out *Outside)
		want  string // "": nothing is broken
	}{
		{"all kept", func(*told, []Promise, *Outside) {}, ""},
		{"lost", func(_ *told, p []Promise, _ *Outside) { p[0].Occurrences = append(p[0].Occurrences, "3") }, "s@3: lost"},
		{"double", func(t *told, _ []Promise, _ *Outside) { t.runs["s"] = append(t.runs["s"], t.runs["s"][0]) }, "s@1: nobody owes this run, or it is there twice"},
		{"not owed", func(_ *told, p []Promise, _ *Outside) { p[0].Occurrences = p[0].Occurrences[:1] }, "s@2: nobody owes"},
		{"failed", func(t *told, _ []Promise, _ *Outside) { t.runs["s"][0].State = schedule.Failed }, "s@1: failed after 1 attempts"},
		{"a second attempt", func(t *told, _ []Promise, _ *Outside) { t.runs["s"][0].Attempts = 2 }, "s@1: succeeded after 2 attempts"},
		{"not settled", func(t *told, _ []Promise, _ *Outside) { t.runs["s"][0].State = schedule.Running }, "s@1: not settled"},
		{"no file", func(t *told, _ []Promise, _ *Outside) { t.runs["s"][0].File = nil }, "s@1: no file is recorded"},
		{"file is gone", func(_ *told, _ []Promise, out *Outside) { out.Files = out.Files[1:] }, "s@1: 0 files at files/1"},
		{"a second file", func(_ *told, _ []Promise, out *Outside) { out.Files = append(out.Files, "files/1b") }, "file files/1b is no run's"},
		{"sent twice", func(_ *told, _ []Promise, out *Outside) { out.Accepted[At("s@1", a)] = 2 }, `s@1: a@example.com is "submitted", and 2 requests`},
		{"never sent", func(_ *told, _ []Promise, out *Outside) { delete(out.Accepted, At("s@1", a)) }, `s@1: a@example.com is "submitted", and 0 requests`},
		{"sent to a stranger", func(_ *told, _ []Promise, out *Outside) { out.Accepted[At("s@1", "c@x.com")] = 1 }, "s@1 c@x.com: 1 requests were accepted that no run"},
		{"sent although unknown", func(t *told, _ []Promise, _ *Outside) { t.subs["s@1"][0].State = schedule.Unknown }, `s@1: a@example.com is "unknown", and 1`},
		{"forgotten", func(t *told, _ []Promise, _ *Outside) { t.subs["s@1"] = t.subs["s@1"][1:] }, "s@1: 1 submissions for 2 addresses"},
		{"asked twice", func(t *told, _ []Promise, _ *Outside) { t.subs["s@1"] = append(t.subs["s@1"], t.subs["s@1"][0]) }, "s@1: two submissions for a@example.com"},
		{"skipped", func(t *told, _ []Promise, out *Outside) {
			t.subs["s@1"][0].State = schedule.NotDelivered
			t.runs["s"][0].Submitted = 1
			delete(out.Accepted, At("s@1", a))
		}, `s@1: succeeded, and a@example.com is "skipped"`},
		{"counted wrongly", func(t *told, _ []Promise, _ *Outside) { t.runs["s"][0].Submitted = 1 }, "2 were submitted, the run says 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			l, p, out := kept()
			x.spoil(&l, p, &out)
			_, broken, err := Kept(t.Context(), l, p, out, nil)
			if err != nil {
				t.Fatal(err)
			}
			if told := slices.ContainsFunc(broken, func(s string) bool { return strings.Contains(s, x.want) }); told != (x.want != "") || x.want == "" && len(broken) > 0 {
				t.Errorf("told %q, want %q", broken, x.want)
			}
		})
	}
}

func TestKeptCannotRead(t *testing.T) {
	l, p, out := kept()
	l.err = errors.New("no table")
	if _, _, err := Kept(t.Context(), l, p, out, nil); err == nil {
		t.Error("a table that cannot be read keeps every promise")
	}
}

func TestPercentile(t *testing.T) {
	times := []time.Duration{4, 1, 3, 2}
	for p, want := range map[float64]time.Duration{1: 1, 25: 1, 50: 2, 51: 3, 99: 4, 100: 4} {
		if got := Percentile(times, p); got != want {
			t.Errorf("p%v is %d, want %d", p, got, want)
		}
	}
	if Percentile(nil, 50) != 0 {
		t.Error("of nothing there is no percentile")
	}
}

func TestHistogram(t *testing.T) {
	var out strings.Builder
	Histogram(&out, Column{"admitted", []time.Duration{0, time.Second, 1500 * time.Millisecond}}, Column{"settled", []time.Duration{40 * time.Second, 47 * time.Second, 49 * time.Second, 3 * time.Second}})
	want := "" +
		"       after   admitted    settled   per 5s\n" +
		"          0s          3          1   #############\n" // of 3
	if !strings.HasPrefix(out.String(), want[:len(want)-14]) || strings.Count(out.String(), "\n") != 11 || !strings.Contains(out.String(), "         45s          0          2   ") {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	Percentiles(&out, "lateness", []time.Duration{time.Minute, 2 * time.Second})
	if got := out.String(); !strings.Contains(got, "p50        2s") || !strings.Contains(got, "max        1m") || !strings.HasSuffix(got, "of 2\n") {
		t.Errorf("got %q", got)
	}
}
