package snapshot

import (
	"encoding/json"
	"errors"
	"strings"

	"almanac/internal/failure"
)

// A step returns one of these three types and nothing else. The Go runtime of Lambda reports the bare name of an error's
// type as errorType, which Step Functions matches as the error's name; a wrapped error would come as "wrapError" and match
// nothing. Source: https://docs.aws.amazon.com/lambda/latest/dg/golang-exceptions.html
type (
	// Passing is a failure after which a later attempt may pass: Catch, settle, next attempt after a delay.
	Passing struct{ *failure.Failure }
	// Refused is a failure that trying again cannot help: Catch, settle for good.
	Refused struct{ *failure.Failure }
	// Disturbed is a ledger that could not be asked, or whose reply was lost: the workflow tries the same step again,
	// since nothing could be settled either, and catches it as Passing in the end.
	Disturbed struct{ *failure.Failure }
)

// Unwrap lets the failure be found in the error: the one that is embedded hides itself behind its own cause.
func (e Passing) Unwrap() error   { return e.Failure }
func (e Refused) Unwrap() error   { return e.Failure }
func (e Disturbed) Unwrap() error { return e.Failure }

// Names of the types as Step Functions sees them.
const (
	NamePassing   = "Passing"
	NameRefused   = "Refused"
	NameDisturbed = "Disturbed"
)

// typed is a step's error in one of the three types; nil stays nil.
func typed(err error) error {
	if err == nil {
		return nil
	}
	f := failure.From(err)
	switch {
	case f.Code == failure.StoreThrottled || f.Code == failure.StoreUnavailable:
		return Disturbed{f}
	case f.Passing():
		return Passing{f}
	}
	return Refused{f}
}

// Caught is what a Catch hands on: the error's name and, as its cause, the JSON that Lambda made of the error.
// Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html ("error output").
type Caught struct {
	Error string `json:"Error"`
	Cause string `json:"Cause"`
}

// Failure reads the failure back. A step's own error spells its code first; what is none of them is a step whose process
// died, or that did not answer.
func (c Caught) Failure() *failure.Failure {
	var said struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}
	err := json.Unmarshal([]byte(c.Cause), &said)
	if err == nil && (c.Error == NamePassing || c.Error == NameRefused || c.Error == NameDisturbed) {
		code, message, ok := strings.Cut(said.Message, ": ")
		if _, known := failure.Lookup(failure.Code(code)); ok && known {
			return failure.New(failure.Code(code), "%s", message)
		}
	}
	why := said.Message
	if err != nil || why == "" {
		why = c.Cause
	}
	return failure.New(failure.StepDied, "the step ended as %s: %s", failure.Cut(c.Error, 80), failure.Cut(why, 300))
}

// errStale tells that the step has nothing to do any more: another job holds the run, or it has settled.
var errStale = errors.New("the run is another job's, or has settled")
