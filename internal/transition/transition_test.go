package transition

import (
	"slices"
	"strings"
	"testing"
)

// door is a table small enough to see whole.
func door() Table[string, string] {
	return Table[string, string]{
		Name:   "door",
		States: []string{"open", "shut", "gone"},
		Rows: []Row[string, string]{
			{From: Absent, Event: "hang", To: "open", When: All("no door")},
			{From: "open", Event: "close", To: "shut", When: All("hand", "free way").Or("wind")},
			{From: "open", Event: "paint", To: "open", When: All("brush")},
			{From: "shut", Event: "paint", To: "shut", When: All("brush")},
			{From: "shut", Event: "open", To: "open", When: All("hand")},
			{From: "open", Event: "remove", To: "gone", When: All("tool")},
			{From: "open", Event: "clean", To: "open", When: All("rag")},
		},
	}
}

func TestCheck(t *testing.T) {
	if err := door().Check(); err != nil {
		t.Errorf("a good table: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(*Table[string, string])
		want  []string
	}{
		"two rows for one state and event": {func(d *Table[string, string]) { d.Rows = append(d.Rows, d.Rows[1]) }, []string{"door", "two rows", `"close"`, `"open"`}},
		"from a state that is not listed": {func(d *Table[string, string]) {
			d.Rows = append(d.Rows, Row[string, string]{From: "ajar", Event: "close", To: "shut", When: All("hand")})
		}, []string{`"ajar"`, `"close"`, "not listed"}},
		"to a state that is not listed": {func(d *Table[string, string]) {
			d.Rows = append(d.Rows, Row[string, string]{From: "shut", Event: "burn", To: "ash", When: All("fire")})
		}, []string{`"ash"`, `"burn"`, "not listed"}},
		"to nowhere": {func(d *Table[string, string]) {
			d.Rows = append(d.Rows, Row[string, string]{From: "shut", Event: "forget", To: Absent, When: All("time")})
		}, []string{`"forget"`, "leads nowhere"}},
		"without a guard":               {func(d *Table[string, string]) { d.Rows[2].When = nil }, []string{`"paint"`, `"open"`, "no guard"}},
		"a state that nothing reaches":  {func(d *Table[string, string]) { d.States = append(d.States, "locked") }, []string{"nothing reaches", `"locked"`}},
		"a state that nothing leads to": {func(d *Table[string, string]) { d.Rows = slices.Delete(d.Rows, 5, 6) }, []string{"nothing reaches", `"gone"`}},
	} {
		d := door()
		c.spoil(&d)
		err := d.Check()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %s", name, err, w)
			}
		}
	}
}

func TestNext(t *testing.T) {
	d := door()
	listed := map[string]string{Absent + "/hang": "open", "open/close": "shut", "open/paint": "open", "shut/paint": "shut", "shut/open": "open", "open/remove": "gone", "open/clean": "open"}
	for _, from := range append([]string{Absent, "ajar"}, d.States...) {
		for _, event := range append(d.Events(), "burn", "") {
			row, ok := d.Next(from, event)
			to, want := listed[from+"/"+event]
			if ok != want || row.To != to || ok && (row.From != from || row.Event != event) {
				t.Errorf("%q in %q: %q, %v; want %q, %v", event, from, row.To, ok, to, want)
			}
		}
	}
}

func TestForAndEvents(t *testing.T) {
	d := door()
	if got, want := d.Events(), []string{"hang", "close", "paint", "open", "remove", "clean"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if rows := d.For("paint"); len(rows) != 2 || rows[0].From != "open" || rows[1].From != "shut" {
		t.Errorf("rows of paint: %+v", rows)
	}
	if rows := d.For("burn"); len(rows) != 0 {
		t.Errorf("rows of an event that is not there: %+v", rows)
	}
}

func TestSettled(t *testing.T) {
	d := door()
	for state, want := range map[string]bool{"open": false, "shut": false, "gone": true} {
		if d.Settled(state) != want {
			t.Errorf("%s settled: %v, want %v", state, !want, want)
		}
	}
	// A row that keeps its state does not unsettle it.
	d.Rows = append(d.Rows, Row[string, string]{From: "gone", Event: "mourn", To: "gone", When: All("owner")})
	if !d.Settled("gone") {
		t.Error("a loop unsettled a state")
	}
}

func TestWhen(t *testing.T) {
	w := All("a", "b")
	or := w.Or("c")
	if got, want := or.String(), "a; b — or c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(w) != 1 {
		t.Error("Or changed what it was asked of")
	}
}

func TestMermaid(t *testing.T) {
	want := `stateDiagram-v2
  [*] --> open: hang
  open --> shut: close
  open --> open: paint, clean
  shut --> shut: paint
  shut --> open: open
  open --> gone: remove
  gone --> [*]
`
	if got := door().Mermaid(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
