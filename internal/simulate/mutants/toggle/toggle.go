// Package toggle is the run-time switch of the mutants. Only woven copies of the product's sources import it (see the
// command above), so that what is shipped holds no switch.
//
// At most one mutant is on in a process; its number comes from the environment. Where a trace is asked for, each mutant is
// noted the first time that it would have changed something: a test whose trace lacks a mutant cannot notice it.
package toggle

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// The environment of a woven test binary.
const (
	// EnvActive is the number of the mutant that is on.
	EnvActive = "ALMANAC_MUTANT"
	// EnvCondition is the part of a condition that is switched off, as Condition's notes spell it.
	EnvCondition = "ALMANAC_MUTANT_CONDITION"
	// EnvTrace is the file that notes are added to, a line each.
	EnvTrace = "ALMANAC_MUTANT_TRACE"
)

// None is the number of no mutant.
const None = 0

var (
	active = number(os.Getenv(EnvActive))
	part   = os.Getenv(EnvCondition)
	notes  = open(os.Getenv(EnvTrace))
)

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return None
	}
	return n
}

// On reports that a mutant is on, where being on makes a difference: it is asked for what it would change.
func On(n int) bool {
	notes.add(n)
	return n == active
}

// Err is an error that is returned; nil where the mutant is on.
func Err(n int, err error) error {
	if err != nil && On(n) {
		return nil
	}
	return err
}

// Check is a comparison: false where the mutant no is on, true where yes is.
func Check(no, yes int, holds bool) bool {
	if holds {
		return !On(no)
	}
	return On(yes)
}

// Part is the part of a condition that is switched off; empty: none.
func Part() string { return part }

// Tracing reports that notes are kept.
func Tracing() bool { return notes != nil }

// Note notes a line, once.
func Note(line string) { notes.line(line) }

// trace is the file of notes; nil keeps none.
type trace struct {
	seen  [1 << 14]atomic.Bool
	mu    sync.Mutex
	lines map[string]bool
	file  *os.File
}

func open(name string) *trace {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic("toggle: " + err.Error()) // a run without its notes would call each mutant out of reach
	}
	return &trace{lines: map[string]bool{}, file: f}
}

func (t *trace) add(n int) {
	if t == nil || t.seen[n].Load() || t.seen[n].Swap(true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(strconv.Itoa(n))
}

func (t *trace) line(s string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lines[s] {
		t.lines[s] = true
		t.write(s)
	}
}

// write adds a line at once: nothing runs at the end of a test binary.
func (t *trace) write(line string) {
	if _, err := t.file.WriteString(line + "\n"); err != nil {
		panic("toggle: " + err.Error())
	}
}
