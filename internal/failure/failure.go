// Package failure is the one place where refusals and passing failures are told apart.
//
// Every error that can settle or release a run is a *Failure with a Code out of Table. A refusal settles the run as
// failed at once; a passing failure throws the attempt back to the queue while attempts remain (lifecycles A,
// "Attempts"). Packages make failures with New and Wrap, the consumer asks From for the one it got.
package failure

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Code names one kind of failure; it is stored on runs and shown to people, so it never changes its meaning.
type Code string

// Class says what a failure does to a run.
type Class int

const (
	Refusal Class = iota // settles the run as failed at once: trying again cannot help
	Passing              // the attempt is thrown back to the queue; the next one may pass
)

// Failure is an error with a code. Its message is written for the person who reads the run: it names the field or the
// thing, its value and what would be right.
type Failure struct {
	Code       Code
	Message    string        // shown to people, cut at MaxMessage bytes when written
	RetryAfter time.Duration // a receiver's own wish for the next try; zero if it has none
	cause      error
}

// MaxMessage is the longest message, in bytes, that is written to a row: items stay small (design.md §3).
const MaxMessage = 500

// New makes a failure without a cause.
func New(code Code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes a failure that keeps its cause for logs and errors.Is; the cause's text is not part of the message.
func Wrap(code Code, cause error, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), cause: cause}
}

// After returns the failure with the receiver's wish for the next try.
func (f *Failure) After(d time.Duration) *Failure { f.RetryAfter = d; return f }

func (f *Failure) Error() string {
	if f.cause == nil {
		return string(f.Code) + ": " + f.Message
	}
	return string(f.Code) + ": " + f.Message + ": " + f.cause.Error()
}

func (f *Failure) Unwrap() error { return f.cause }

// Passing reports whether a later attempt may pass. A code that Table does not list passes: an unknown failure must
// not settle a run that a retry would have saved.
func (f *Failure) Passing() bool {
	e, ok := Lookup(f.Code)
	return !ok || e.Class == Passing
}

// Cut returns the message at a length fit for a row, on a rune's boundary.
func (f *Failure) Cut() string { return Cut(f.Message, MaxMessage) }

// From finds the failure in err. An error that carries none is internal_error, which passes.
func From(err error) *Failure {
	if err == nil {
		return nil
	}
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return Wrap(InternalError, err, "something unforeseen went wrong: %s", Cut(err.Error(), 300))
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	var f *Failure
	return errors.As(err, &f) && f.Code == code
}

// Cut shortens s to at most n bytes without splitting a rune; what is cut ends in "…".
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
