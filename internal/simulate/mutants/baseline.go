package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"almanac/internal/simulate/mutants/toggle"
)

// test is one top-level test of a killer's suite, run once with every mutant off.
type test struct {
	Suite   int     `json:"suite"` // index of killers
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"` // of processor time, which does not depend on what else runs
	// Reaches are the toggles and the parts of conditions that would have changed something.
	Reaches []string `json:"reaches"`
}

// baseline runs each test of each suite alone, with every mutant off. A test that fails then would kill whatever it is
// shown, so that the run ends here.
func (t tree) baseline(ctx context.Context, ks []killer, workers int) ([]test, error) {
	var list []test
	for i, k := range ks {
		names, err := t.list(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			list = append(list, test{Suite: i, Name: n})
		}
	}
	var failures []string
	var mu sync.Mutex
	trace := func(list []test, verbose bool) (more []test) {
		parallel(workers, len(list), func(i int) {
			k := ks[list[i].Suite]
			out, err := t.trace(ctx, k, &list[i], verbose)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, fmt.Sprintf("%s of internal/%s fails without any mutant: %v\n%s", list[i].Name, k.pkg, err, out))
				return
			}
			for _, name := range partsIn(out, k.split[list[i].Name]) {
				more = append(more, test{Suite: list[i].Suite, Name: name})
			}
		})
		return more
	}
	whole, split := apart(ks, list)
	trace(whole, false)
	list = append(whole, trace(split, true)...) // once as a whole, for the names of their parts
	trace(list[len(whole):], false)
	if len(failures) > 0 {
		return nil, fmt.Errorf("%d tests fail without any mutant; the first:\n%s", len(failures), failures[0])
	}
	return list, ctx.Err()
}

var begun = regexp.MustCompile(`(?m)^=== RUN   (Test\S+)$`)

// partsIn are the tests in a test, so deep, as a run tells of them.
func partsIn(out string, deep int) (names []string) {
	for _, m := range begun.FindAllStringSubmatch(out, -1) {
		if deep > 0 && strings.Count(m[1], "/") == deep {
			names = append(names, m[1])
		}
	}
	return names
}

// apart tells tests from those that are split.
func apart(ks []killer, list []test) (whole, split []test) {
	for _, one := range list {
		if ks[one.Suite].split[one.Name] > 0 {
			split = append(split, one)
		} else {
			whole = append(whole, one)
		}
	}
	return whole, split
}

func (t tree) list(ctx context.Context, k killer) ([]string, error) {
	cmd := exec.CommandContext(ctx, t.binary(k.pkg), "-test.run", "^$", "-test.list", ".") // a filter, or a suite may ask what it did not do
	cmd.Dir = filepath.Join(t.root, "internal", k.pkg)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the tests of internal/%s cannot be listed: %w", k.pkg, err)
	}
	var names []string
	for _, name := range strings.Fields(string(out)) {
		if k.takes(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// trace runs one test with every mutant off and keeps what it reaches.
func (t tree) trace(ctx context.Context, k killer, one *test, verbose bool) (string, error) {
	f, err := os.CreateTemp(t.work, "trace-*")
	if err != nil {
		return "", err
	}
	f.Close()
	defer os.Remove(f.Name())
	out, seconds, err := t.run(ctx, k, pattern([]string{one.Name}), longest, verbose, toggle.EnvTrace+"="+f.Name())
	one.Seconds = seconds
	if err != nil {
		return out, err
	}
	one.Reaches, err = lines(f.Name())
	return out, err
}

// longest bounds what a test may take: with every mutant off, in seconds of processor time; with one on, as time goes by.
const longest = 300

// run runs some tests of a suite, for at most so many seconds of processor time; an error says that they failed, or took
// more. One thread each: the order of goroutines is then the same from run to run as far as it can be.
func (t tree) run(ctx context.Context, k killer, tests string, seconds int, verbose bool, env ...string) (out string, used float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*longest*time.Second)
	defer cancel()
	// A mutant may loop and keep what it reads: its data segment is bounded (KiB), so that it dies and not the machine.
	args := []string{"-c", `ulimit -d 3000000; ulimit -t "$1"; shift; exec "$@"`, "sh", strconv.Itoa(seconds), t.binary(k.pkg),
		"-test.failfast", "-test.timeout", (longest * time.Second).String(), "-test.run", tests, "-test.v=" + strconv.FormatBool(verbose)}
	cmd := exec.CommandContext(ctx, "sh", append(args, k.args...)...)
	cmd.Dir = filepath.Join(t.root, "internal", k.pkg)
	cmd.Env = append(os.Environ(), append(env, "GOMAXPROCS=1")...)
	text, err := cmd.CombinedOutput()
	if s := cmd.ProcessState; s != nil {
		used = (s.UserTime() + s.SystemTime()).Seconds()
	}
	return string(text), used, err
}

func lines(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		list = append(list, s.Text())
	}
	return list, s.Err()
}

// conditions are the mutants of conditions: the parts of all that the product's store sent while the suites ran.
func conditions(tests []test) []Mutant {
	all := map[string][]string{} // by condition: its parts, in words
	for _, one := range tests {
		for _, r := range one.Reaches {
			if condition, words, ok := strings.Cut(r, "\t-\t"); ok {
				all[condition] = strings.Split(words, "\x1f")
			}
		}
	}
	var list []Mutant
	for _, condition := range sorted(all) {
		f := strings.Split(condition, "\t")
		for i, words := range all[condition] {
			part := condition + "\t" + strconv.Itoa(i)
			id := strings.Join([]string{string(Condition), f[0], f[1], squeezed(words), short(part)}, ":")
			list = append(list, Mutant{ID: id, Kind: Condition, Part: part, Place: f[0], What: words + " of " + f[2]})
		}
	}
	return list
}

// reach says which tests reach a mutant.
func reach(m Mutant, tests []test) (list []test) {
	for _, one := range tests {
		for _, r := range one.Reaches {
			if m.Kind == Condition && r == m.Part || m.Kind != Condition && r == strconv.Itoa(m.Number) {
				list = append(list, one)
				break
			}
		}
	}
	return list
}

// saved is what is kept between runs, for as long as the binaries are the same.
type saved struct {
	Tests   []test            `json:"tests"`
	Results map[string]Result `json:"results"`
}

func (t tree) file(digest string) string { return filepath.Join(t.work, "run-"+digest+".json") }

func (t tree) load(digest string) saved {
	s := saved{Results: map[string]Result{}}
	raw, err := os.ReadFile(t.file(digest))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return saved{Results: map[string]Result{}} // another digest, or broken off while it was written
	}
	return s
}

func (t tree) save(digest string, s saved) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(t.file(digest), raw, 0o644)
}
