package main

import (
	"slices"
	"strings"
	"testing"
)

func TestReasons(t *testing.T) {
	all, err := reasons(strings.NewReader(`# for readers

The first reason goes over
two lines, long enough to say something.
  swap:a
  swap:b

Another reason, which is long enough too, I hope.
	swap:c
`))
	if err != nil {
		t.Fatal(err)
	}
	if all["swap:a"] != "The first reason goes over two lines, long enough to say something." || all["swap:b"] != all["swap:a"] || !strings.HasPrefix(all["swap:c"], "Another") || len(all) != 3 {
		t.Errorf("reasons %q", all)
	}
	for text, want := range map[string]string{
		"  swap:a\n":       "line 1: swap:a has the reason \"\"",
		"too short\n  b\n": "line 2: b has the reason \"too short\"",
		"no mutant at all is named below this reason\n":                          "line 1: a reason without a mutant",
		"a reason that is long enough for all of them\n  swap:a\n  swap:a\n":     "line 3: swap:a has a reason already",
		"a reason that is long enough for all of them\n  swap:a and more\n":      "line 2: \"swap:a and more\" is no mutant's id",
		"a reason that is long enough for all of them\n  swap:a\nand one more\n": "line 3: a reason without a mutant",
	} {
		if _, err := reasons(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func example() outcome {
	return outcome{
		whole: true,
		mutants: []Mutant{
			{ID: "condition:a", Kind: Condition, Place: "Store.A", What: "x of x"}, {ID: "check:b", Kind: Check, Place: "f.go:1", What: "y"},
			{ID: "error:c", Kind: Error, Place: "f.go:2", What: "z"}, {ID: "swap:d'|e", Kind: Swap, Place: "f.go:3", What: "w"},
		},
		results: map[string]Result{
			"condition:a": {Killed: true, Suite: "store", Test: "TestA", Reached: 2}, "check:b": {Reached: 3}, "error:c": {Killed: true, Suite: "snapshot", Test: "TestC"}, "swap:d'|e": {},
		},
		reasons: map[string]string{"check:b": "nothing can tell"},
	}
}

func TestProblems(t *testing.T) {
	o := example()
	o.reasons["error:c"], o.reasons["error:gone"] = "was true once", "was true once"
	got := o.problems()
	want := []string{
		"error:c has a reason for its survival, and is killed by TestC of snapshot",
		"swap:d'|e survives: no test comes to where it would change something",
		"error:gone has a reason for its survival, and does not exist",
	}
	if len(got) != len(want) {
		t.Fatalf("problems %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %q, want %q", got[i], want[i])
		}
	}
	if line := `scripts/test mutants -only 'swap:d'\''\|e' -v`; !strings.Contains(got[1], line) {
		t.Errorf("%q does not say how to try it again: %s", got[1], line)
	}
	// Of a part of the mutants nothing is known about the others.
	o.whole = false
	if n := len(o.problems()); n != 2 {
		t.Errorf("%d problems of a part, want 2", n)
	}
	delete(o.reasons, "check:b")
	if p := o.problems()[0]; !strings.Contains(p, "no test notices it, though 3 come to it") {
		t.Errorf("problem %q", p)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	o := example()
	o.table(&b)
	o.list(&b)
	for _, want := range []string{
		"| condition | 1 | 1 | 0 | 0 |\n| check | 1 | 0 | 1 | 0 |\n| error | 1 | 1 | 0 | 0 |\n| swap | 1 | 0 | 0 | 1 |\n| all | 4 | 2 | 1 | 1 |\n",
		"| store | 1 |", "| snapshot | 1 |", "| fault simulation | 0 |",
		"| `condition:a` | Store.A | store: TestA | 0.0 |", "| `check:b` | f.go:1 | survives: nothing can tell | 0.0 |", "| `swap:d'\\|e` | f.go:3 | **survives, unexplained** | 0.0 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

func TestChosen(t *testing.T) {
	all := example().mutants
	if n := len(chosen(all, nil)); n != 4 {
		t.Errorf("%d mutants without a pattern, want all 4", n)
	}
	o, err := parseOptions([]string{"-only", "check:.*|swap"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(chosen(all, o.only)); !slices.Equal(got, []string{"check:b"}) {
		t.Errorf("chosen %q, want check:b: a pattern is held against the whole id", got)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, args := range map[string][]string{
		`-only is "("`:                      {"-only", "("},
		`-suites is "("`:                    {"-suites", "("},
		`-workers is 0; want 1 or more`:     {"-workers", "0"},
		`"swap" is not known`:               {"swap"},
		`flag provided but not defined: -x`: {"-x"},
	} {
		if _, err := parseOptions(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

func TestBlame(t *testing.T) {
	for want, c := range map[string]struct {
		out   string
		asked []string
		err   string
	}{
		"TestA/b/c":                      {"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n        --- FAIL: TestA/b/c (0.1s)\n", []string{"TestA"}, "exit status 1"},
		"TestA panics":                   {"--- FAIL: TestA (0.00s)\npanic: nil map\n", []string{"TestA", "TestB"}, "exit status 2"},
		"TestB stands still":             {"panic: test timed out after 5m0s\n\trunning tests:\n\t\tTestB (5m0s)\n", []string{"TestA", "TestB"}, "exit status 2"},
		"TestA ends with signal: killed": {"", []string{"TestA"}, "signal: killed"},
		"ends with exit status 1":        {"FAIL: no test provokes a code\n", []string{"TestA", "TestB"}, "exit status 1"},
	} {
		if got := blame(c.out, c.asked, errorText(c.err)); got != want {
			t.Errorf("blamed %q, want %q", got, want)
		}
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestBatchesAndPatterns(t *testing.T) {
	tests := []test{{0, "TestA", 0.1, nil}, {0, "TestSlow", 9, nil}, {0, "TestLess", 2, nil}, {0, "TestC/x.y", 0.1, nil}, {0, "TestC/z", 0.2, nil}, {0, "TestB", 0.2, nil}, {1, "TestOther", 0.1, nil}}
	var got []string
	for _, b := range batches(0, tests) {
		var names []string
		for _, one := range b {
			names = append(names, one.Name)
		}
		got = append(got, pattern(names))
	}
	want := []string{"^(TestA|TestB)$", `^TestC$/^(x\.y|z)$`, "^(TestLess)$", "^(TestSlow)$"}
	if !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if got := pattern([]string{"TestD/all/a|b", "TestD/all/c"}); got != `^TestD$/^all$/^(a\|b|c)$` {
		t.Errorf("asked %q for parts of parts", got)
	}
	out := "=== RUN   TestC\n=== RUN   TestC/x.y\n=== RUN   TestC/x.y/deeper\n=== PAUSE TestC/x.y\n=== RUN   TestC/z\n"
	if got := partsIn(out, 1); !slices.Equal(got, []string{"TestC/x.y", "TestC/z"}) {
		t.Errorf("parts %q", got)
	}
	if got := partsIn(out, 0); got != nil {
		t.Errorf("parts of a test that is not split: %q", got)
	}
}

func TestConditionsOfTraces(t *testing.T) {
	a := "Store.F\tRUN\tstate = \"queued\" AND owner = ?"
	tests := []test{
		{Name: "TestA", Reaches: []string{"7", a + "\t-\tstate = \"queued\"\x1fowner = ?", a + "\t1"}},
		{Name: "TestB", Reaches: []string{a + "\t-\tstate = \"queued\"\x1fowner = ?"}},
	}
	list := conditions(tests)
	if len(list) != 2 || !strings.HasPrefix(list[0].ID, `condition:Store.F:RUN:state="queued":`) || !strings.HasPrefix(list[1].ID, `condition:Store.F:RUN:owner=?:`) {
		t.Fatalf("conditions %+v", list)
	}
	for i, want := range []int{0, 1} {
		if got := len(reach(list[i], tests)); got != want {
			t.Errorf("%d tests reach %s, want %d", got, list[i].ID, want)
		}
	}
	if got := len(reach(Mutant{Kind: Check, Number: 7}, tests)); got != 1 {
		t.Errorf("%d tests reach toggle 7, want 1", got)
	}
}
