package step

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func reporter(out *bytes.Buffer) *Reporter {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Reporter{Out: out, Now: func() time.Time { at = at.Add(500 * time.Millisecond); return at }}
}

func TestRunShowsBeginningAndEnd(t *testing.T) {
	var out bytes.Buffer
	err := reporter(&out).RunNote("do a thing", func() (string, error) { return "there already", nil })
	if want := "-> do a thing\n   done: do a thing (0.5 s, there already)\n"; err != nil || out.String() != want {
		t.Errorf("%v, printed %q, want %q", err, out.String(), want)
	}
}

func TestFailureSaysStepCauseAndWhatToDo(t *testing.T) {
	cause := errors.New("the cause")
	var out bytes.Buffer
	for name, given := range map[string]error{
		"a failure":         Fail(cause, "the port is taken", "choose another").WithLog("    last line"),
		"a wrapped failure": fmt.Errorf("outer: %w", Fail(cause, "the port is taken", "choose another").WithLog("    last line")),
	} {
		err := reporter(&out).Run("start it", func() error { return given })
		for _, part := range []string{`"start it"`, "the port is taken", "choose another", "last line"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", name)
		}
	}
	err := reporter(&out).Run("start it", func() error { return cause })
	if !strings.Contains(err.Error(), `"start it"`) || !strings.Contains(err.Error(), "the cause") || !strings.Contains(err.Error(), "what to do") || !errors.Is(err, cause) {
		t.Errorf("a plain error: %q", err)
	}
	if strings.Contains(out.String(), "done") {
		t.Errorf("a failed step printed %q", out.String())
	}
}

func TestInnerStepKeepsItsName(t *testing.T) {
	var out bytes.Buffer
	r := reporter(&out)
	err := r.Run("outer", func() error { return r.Run("inner", func() error { return errors.New("no") }) })
	if !strings.Contains(err.Error(), `"inner"`) {
		t.Errorf("%v, want the inner step named", err)
	}
}

func TestLongStepGivesSignsOfLife(t *testing.T) {
	out := make(lines, 100)
	r := &Reporter{Out: out, Now: time.Now, Every: time.Millisecond}
	err := r.RunWatched("long", func() string { return "at file 7" }, func() (string, error) {
		for line := range out {
			if strings.Contains(line, "...") && strings.Contains(line, "at file 7") {
				return "", nil
			}
		}
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}
