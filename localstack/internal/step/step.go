// Package step shows the progress of scripts/up and scripts/down, and makes failures say which step failed, why, and
// what to do.
package step

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Failure is an error that a person can act on. Every failure of the local cloud's program ends as one.
type Failure struct {
	Step string // what was being done, as its progress line names it
	Why  string // the cause, with the values that matter
	Do   string // what to do now
	Log  string // last lines of a log that shows more; may be empty
	err  error
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("step %q failed: %s", f.Step, f.Why)
	if f.Do != "" {
		text += "\n  what to do: " + f.Do
	}
	if f.Log != "" {
		text += "\n  last lines of its log:\n" + f.Log
	}
	return text
}

func (f *Failure) Unwrap() error { return f.err }

// Fail makes a failure whose step is filled in by the Reporter that runs the step.
func Fail(cause error, why, do string) *Failure { return &Failure{Why: why, Do: do, err: cause} }

// WithLog returns the failure with the last lines of a log.
func (f *Failure) WithLog(tail string) *Failure { f.Log = tail; return f }

// Reporter prints one line when a step begins and one when it ends; a step that takes long shows a sign of life. It is
// safe for use by several goroutines.
type Reporter struct {
	Out   io.Writer
	Now   func() time.Time
	Every time.Duration // how often a sign of life is printed; zero: never

	mu sync.Mutex
}

// Run does one step. A failure of fn comes back as *Failure that names the step.
func (r *Reporter) Run(name string, fn func() error) error {
	_, err := r.run(name, nothing, func() (string, error) { return "", fn() })
	return err
}

// RunNote is Run for a step that has something to say when it is done, such as "nothing to do".
func (r *Reporter) RunNote(name string, fn func() (note string, err error)) error {
	_, err := r.run(name, nothing, fn)
	return err
}

// RunWatched is RunNote for a step that can tell what it is at; its signs of life show that.
func (r *Reporter) RunWatched(name string, at func() string, fn func() (note string, err error)) error {
	_, err := r.run(name, at, fn)
	return err
}

func (r *Reporter) run(name string, at func() string, fn func() (string, error)) (string, error) {
	began := r.Now()
	r.Line("-> %s", name)
	stop := r.signOfLife(name, began, at)
	note, err := fn()
	stop()
	if err != nil {
		return "", named(name, err)
	}
	if note != "" {
		note = ", " + note
	}
	r.Line("   done: %s (%.1f s%s)", name, r.Now().Sub(began).Seconds(), note)
	return note, nil
}

// Line prints one line.
func (r *Reporter) Line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Out, format+"\n", args...)
}

func nothing() string { return "" }

func (r *Reporter) signOfLife(name string, began time.Time, at func() string) (stop func()) {
	if r.Every <= 0 {
		return func() {}
	}
	done := make(chan struct{})
	ticker := time.NewTicker(r.Every)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.Line("   ... %s, %.0f s so far %s", name, r.Now().Sub(began).Seconds(), at())
			}
		}
	}()
	return func() { close(done) }
}

func named(name string, err error) error {
	var failure *Failure
	if !errors.As(err, &failure) {
		return &Failure{Step: name, Why: err.Error(), Do: "read the lines above; run the same command again once it is mended", err: err}
	}
	if failure.Step == "" {
		failure.Step = name
	}
	return failure
}
