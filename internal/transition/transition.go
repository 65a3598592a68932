// Package transition holds a lifecycle as a table of rows: the one place that says which change of state is legal.
// Stores build their conditions from it, tests walk it, diagrams are drawn from it. Pure.
package transition

import (
	"fmt"
	"slices"
	"strings"
)

// Absent is the state of an item that does not exist: the dash in the tables of the specification.
const Absent = ""

// Guard names one thing that must hold for a row, e.g. "own lease". What it means in a condition expression is said
// once, in the store.
type Guard string

// When is what must hold: one of the alternatives, each being true when all of its guards are.
type When [][]Guard

// All is a When of a single alternative.
func All(guards ...Guard) When { return When{guards} }

// Or adds an alternative.
func (w When) Or(guards ...Guard) When { return append(slices.Clone(w), guards) }

func (w When) String() string {
	var ors []string
	for _, all := range w {
		var ands []string
		for _, g := range all {
			ands = append(ands, string(g))
		}
		ors = append(ors, strings.Join(ands, "; "))
	}
	return strings.Join(ors, " — or ")
}

// Row is one legal transition. To equals From where the state stays.
type Row[S, E ~string] struct {
	From  S
	Event E
	To    S
	When  When
	With  string // what is written in the same write or transaction, for readers
}

// Table is one lifecycle. States lists every state in the order of a life; an item that does not exist is Absent.
type Table[S, E ~string] struct {
	Name   string
	States []S
	Rows   []Row[S, E]
}

// Next finds the row that event has in state from.
func (t Table[S, E]) Next(from S, event E) (Row[S, E], bool) {
	for _, r := range t.Rows {
		if r.From == from && r.Event == event {
			return r, true
		}
	}
	return Row[S, E]{}, false
}

// For lists the rows of an event, in table order.
func (t Table[S, E]) For(event E) []Row[S, E] {
	var rows []Row[S, E]
	for _, r := range t.Rows {
		if r.Event == event {
			rows = append(rows, r)
		}
	}
	return rows
}

// Events lists each event once, in table order.
func (t Table[S, E]) Events() []E {
	var events []E
	for _, r := range t.Rows {
		if !slices.Contains(events, r.Event) {
			events = append(events, r.Event)
		}
	}
	return events
}

// Settled reports whether no row leaves the state for another.
func (t Table[S, E]) Settled(s S) bool {
	return !slices.ContainsFunc(t.Rows, func(r Row[S, E]) bool { return r.From == s && r.To != s })
}

// Check reports what is wrong with the table itself: a state that is not listed, a second row for one state and event,
// a state that nothing reaches.
func (t Table[S, E]) Check() error {
	seen := map[string]bool{}
	for _, r := range t.Rows {
		if k := string(r.From) + " " + string(r.Event); seen[k] {
			return fmt.Errorf("%s: two rows for %q in state %q", t.Name, r.Event, r.From)
		} else {
			seen[k] = true
		}
		for _, s := range []S{r.From, r.To} {
			if s != Absent && !slices.Contains(t.States, s) {
				return fmt.Errorf("%s: state %q of event %q is not listed", t.Name, s, r.Event)
			}
		}
		if r.To == Absent {
			return fmt.Errorf("%s: event %q leads nowhere", t.Name, r.Event)
		}
		if len(r.When) == 0 {
			return fmt.Errorf("%s: event %q in state %q has no guard", t.Name, r.Event, r.From)
		}
	}
	for _, s := range t.States {
		if !slices.ContainsFunc(t.Rows, func(r Row[S, E]) bool { return r.To == s }) {
			return fmt.Errorf("%s: nothing reaches state %q", t.Name, s)
		}
	}
	return nil
}

// Mermaid draws the table as a state diagram. Rows that keep their state are drawn as loops, one arrow for all events
// between the same two states.
func (t Table[S, E]) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	node := func(s S) string {
		if s == Absent {
			return "[*]"
		}
		return string(s)
	}
	type arrow struct{ from, to S }
	var order []arrow
	labels := map[arrow][]string{}
	for _, r := range t.Rows {
		a := arrow{r.From, r.To}
		if _, ok := labels[a]; !ok {
			order = append(order, a)
		}
		labels[a] = append(labels[a], string(r.Event))
	}
	for _, a := range order {
		fmt.Fprintf(&b, "  %s --> %s: %s\n", node(a.from), node(a.to), strings.Join(labels[a], ", "))
	}
	for _, s := range t.States {
		if t.Settled(s) {
			fmt.Fprintf(&b, "  %s --> [*]\n", s)
		}
	}
	return b.String()
}
