package toggle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func with(t *testing.T, n int) (name string) {
	t.Helper()
	was, wasNotes := active, notes
	t.Cleanup(func() { active, notes = was, wasNotes })
	name = filepath.Join(t.TempDir(), "trace")
	active, notes = n, open(name)
	return name
}

func TestOneMutantIsOn(t *testing.T) {
	with(t, 7)
	broken := errors.New("broken")
	if !On(7) || On(8) {
		t.Error("want mutant 7 on, and no other")
	}
	if Err(7, broken) != nil || Err(8, broken) != broken || Err(8, nil) != nil {
		t.Error("want the error of mutant 7 swallowed, and no other")
	}
	for _, c := range []struct {
		no, yes     int
		holds, want bool
	}{{7, 8, true, false}, {7, 8, false, false}, {8, 7, true, true}, {8, 7, false, true}, {5, 6, true, true}, {5, 6, false, false}} {
		if got := Check(c.no, c.yes, c.holds); got != c.want {
			t.Errorf("check %d, %d of %v is %v, want %v", c.no, c.yes, c.holds, got, c.want)
		}
	}
}

func TestNoMutantIsOnWithoutANumber(t *testing.T) {
	for _, text := range []string{"", "none", "0"} {
		if n := number(text); n != None {
			t.Errorf("%q is mutant %d, want none", text, n)
		}
	}
	with(t, None)
	if On(1) {
		t.Error("mutant 1 is on, want none")
	}
}

// A note says that the mutant would have changed something, once.
func TestNotes(t *testing.T) {
	name := with(t, None)
	Err(1, nil)
	Err(2, errors.New("broken"))
	Err(2, errors.New("broken"))
	Check(3, 4, true)
	Check(5, 6, false)
	Note("words")
	Note("words")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "2\n3\n6\nwords\n"; string(got) != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}

func TestNotesThatCannotBeKeptAreNoQuietLoss(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic where the trace cannot be opened")
		}
	}()
	open(t.TempDir())
}

func TestWithoutATraceNothingIsNoted(t *testing.T) {
	if Tracing() {
		t.Skip("this run keeps notes itself")
	}
	notes.add(1)
	notes.line("words")
}
