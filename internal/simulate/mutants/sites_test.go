package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// plantText finds the mutants of one text, all of its functions being on the write path, and weaves it.
func plantText(t *testing.T, text string) ([]Mutant, string) {
	t.Helper()
	s, err := parseText("store", "internal/store/x.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var f found
	f.look(s, func(string) bool { return true })
	woven := string(s.woven())
	if _, err := parser.ParseFile(token.NewFileSet(), "x.go", woven, 0); err != nil {
		t.Fatalf("what was woven is no Go: %v\n%s", err, woven)
	}
	return f.mutants, woven
}

func ids(list []Mutant) (names []string) {
	for _, m := range list {
		names = append(names, m.ID)
	}
	return names
}

func TestChecksAreFound(t *testing.T) {
	const text = `package store

func (s *Store) f(r Run) bool {
	if r.Job != s.job.Job || !r.Admitted() && r.State == "x" {
		return r.LeaseEnd.After(now)
	}
	switch {
	case r.Owner == r.Version:
	}
	mine := func(it item) bool { return str(it, schema.LeaseOwner) == token }
	return r.Version == 1 && mine(nil)
}
`
	list, woven := plantText(t, text)
	var checks []string
	for _, id := range ids(list) {
		if c, ok := strings.CutPrefix(id, "check:store:Store.f:"); ok {
			checks = append(checks, c)
		}
	}
	want := []string{
		"r.Job!=s.job.Job:never", "r.Job!=s.job.Job:always", "r.Admitted():never", "r.Admitted():always",
		"r.LeaseEnd.After(now):never", "r.LeaseEnd.After(now):always", "r.Owner==r.Version:never", "r.Owner==r.Version:always",
		"str(it,schema.LeaseOwner)==token:never", "str(it,schema.LeaseOwner)==token:always",
	}
	if !slices.Equal(checks, want) {
		t.Errorf("checks\n%q, want\n%q", checks, want)
	}
	for _, part := range []string{
		`if mutant.Check(1, 2, r.Job != s.job.Job) || !mutant.Check(3, 4, r.Admitted()) && r.State == "x" {`,
		`case mutant.Check(7, 8, r.Owner == r.Version):`,
		`package store; import mutant "almanac/internal/simulate/mutants/toggle"`,
	} {
		if !strings.Contains(woven, part) {
			t.Errorf("woven text lacks %s:\n%s", part, woven)
		}
	}
	if strings.Count(woven, "\n") != strings.Count(text, "\n")+2 {
		t.Error("lines have moved, want what was woven on the lines it stands on")
	}
}

func TestErrorReturnsAreFound(t *testing.T) {
	list, woven := plantText(t, `package store

func (s *Store) g(ctx C) (n int, err error) {
	if err := s.first(ctx); err != nil {
		return 0, err
	}
	_, err = s.second(ctx)
	if err != nil {
		return 0, err
	}
	for range 3 {
		if n, err = s.third(); err != nil && n > 0 {
			continue
		}
	}
	if n > 3 {
		return 0, errIllegal{"x"}
	}
	if n > 2 {
		return s.both(ctx)
	}
	do(func() error { return s.inner() })
	return n, nil
}

func (s *Store) none() { return }
`)
	want := []string{
		"error:store:Store.g:s.first", "error:store:Store.g:s.second", "error:store:Store.g:s.third", "error:store:Store.g:returnerrIllegal",
		"error:store:Store.g:returns.both", "error:store:Store.g:returns.inner",
	}
	if got := ids(list); !slices.Equal(got, want) {
		t.Errorf("errors\n%q, want\n%q", got, want)
	}
	for _, part := range []string{
		"if err := s.first(ctx); (err != nil) && !mutant.On(1) {",
		"if n, err = s.third(); (err != nil && n > 0) && !mutant.On(3) {",
		`return 0, mutant.Err(4, errIllegal{"x"})`,
		"{ mutant0, mutant1 := s.both(ctx); return mutant0, mutant.Err(5, mutant1) }",
		"return mutant.Err(6, s.inner())",
	} {
		if !strings.Contains(woven, part) {
			t.Errorf("woven text lacks %s:\n%s", part, woven)
		}
	}
}

// Two of one name in a function are told apart, and another function's do not count.
func TestIDs(t *testing.T) {
	list, _ := plantText(t, `package store

func a() error {
	if err := f(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return nil
}

func b() error {
	return f()
}
`)
	if got, want := ids(list), []string{"error:store:a:f", "error:store:a:f:2", "error:store:b:returnf"}; !slices.Equal(got, want) {
		t.Errorf("ids %q, want %q", got, want)
	}
}

func TestWritePath(t *testing.T) {
	var all []*source
	for name, text := range map[string]string{
		"store": `package store

func (s *Store) Save(ctx C) error { return s.send(ctx) }
func (s *Store) send(ctx C) error { _, err := s.DB.PutItem(ctx, nil); return err }
func (s *Store) Run(ctx C) error { return s.get(ctx) }
func (s *Store) get(ctx C) error { _, err := s.DB.GetItem(ctx, nil); return err }
func runWrite() (write, error) { return write{}, nil }
`,
		"schedule": `package schedule

import "strings"

func (w *work) do() error { return w.begin() }
func (w *work) begin() error { return w.Ledger.Save(nil) }
func (w *work) look() error { return w.Ledger.Run(nil) }
func (w *work) offered() { hand(w.Queue.SendResends) }
func (w *work) text() string { return strings.Save("") }
`,
	} {
		s, err := parseText(name, "internal/"+name+"/x.go", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	on := writePath(all)
	for name, want := range map[string]bool{
		"store.Store.Save": true, "store.Store.send": true, "store.Store.Run": false, "store.Store.get": false, "store.runWrite": true,
		"schedule.work.do": true, "schedule.work.begin": true, "schedule.work.look": false, "schedule.work.offered": true, "schedule.work.text": false,
	} {
		if on[name] != want {
			t.Errorf("%s on the write path: %v, want %v", name, on[name], want)
		}
	}
}

func TestSwapsFindTheirPlace(t *testing.T) {
	const text = `package schedule

func (w *work) f() {
	one()
	if x {
		two(1)
		two(2)
	}
}
`
	s, err := parseText("schedule", "internal/schedule/x.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var f found
	good := swap{id: "a", places: []place{{"schedule.work.f", "two(1)", "before()"}}}
	if err := f.swap([]*source{s}, []swap{good}, map[string]string{"internal/schedule/x.go": "func before() {}"}); err != nil {
		t.Fatal(err)
	}
	woven := string(s.woven())
	if !strings.Contains(woven, "if mutant.On(1) {\nbefore()\n}\ntwo(1)") || !strings.Contains(woven, "func before() {}") || f.mutants[0].Place != "internal/schedule/x.go:6" {
		t.Errorf("woven %s at %s", woven, f.mutants[0].Place)
	}
	for begins, want := range map[string]string{"two(": "two statements of schedule.work.f begin with", "three(": "no statement of schedule.work.f begins with"} {
		err := f.swap([]*source{s}, []swap{{id: "b", places: []place{{"schedule.work.f", begins, "x()"}}}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "swap b") {
			t.Errorf("place %q: %v, want %s", begins, err, want)
		}
	}
}

// Every swap of the list has its place in the product as it is, every kind of mutant is found, and no two share an id.
func TestTheProductHasItsMutants(t *testing.T) {
	all, mutants, err := plant("../../..")
	if err != nil {
		t.Fatal(err)
	}
	count, seen := map[Kind]int{}, map[string]bool{}
	for _, m := range mutants {
		count[m.Kind]++
		if seen[m.ID] || strings.ContainsAny(m.ID, " \t\n") || m.Place == "" || m.What == "" {
			t.Errorf("mutant %+v: want an id of its own, in one word, a place and words", m)
		}
		seen[m.ID] = true
	}
	if count[Swap] != len(swaps) || count[Check] < 100 || count[Error] < 400 {
		t.Errorf("mutants by kind: %v; want all %d swaps and about as many others as there were", count, len(swaps))
	}
	for _, s := range all {
		if _, err := parser.ParseFile(token.NewFileSet(), s.path, s.woven(), 0); err != nil {
			t.Errorf("woven %s is no Go: %v", s.path, err)
		}
	}
	for _, want := range []string{"error:store:Store.send:returndecide", "check:snapshot:work.load:r.Job!=j.Job:never", "check:schedule:work.do:w.run.LeaseLive(now):never"} {
		if !seen[want] {
			t.Errorf("there is no mutant %s", want)
		}
	}
}
