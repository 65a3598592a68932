package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"

	"github.com/danielgtaylor/huma/v2"
)

// Problem is an error as RFC 9457 has it, with members of our own: the wrong fields, the row that a conflict met, and
// the request's id in our logs.
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Errors    []FieldProblem `json:"errors,omitempty"`
	Current   *Current       `json:"current,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
	headers   http.Header
}

// FieldProblem is one wrong field: its path in the body, or its name as parameter or header; its value as JSON would
// spell it, empty where there is none; and what would be right.
type FieldProblem struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Want  string `json:"want"`
}

// Current is the row that a conflict met.
type Current struct {
	Schedule string `json:"schedule,omitempty"`
	Version  int    `json:"version,omitempty"`
	Run      string `json:"run,omitempty"`
	// Recipient is the hash of the recipient whose state it is.
	Recipient string `json:"recipient,omitempty"`
	State     string `json:"state"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus, GetHeaders and ContentType are what huma asks of an error.
func (p *Problem) GetStatus() int          { return p.Status }
func (p *Problem) GetHeaders() http.Header { return p.headers }
func (p *Problem) ContentType(string) string {
	return "application/problem+json"
}

func problem(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...), headers: http.Header{}}
}

func (p *Problem) header(name, value string) *Problem { p.headers.Set(name, value); return p }

// maxValue is how much of a wrong value, or of a field's name, is sent back; maxErrors is how many wrong fields are
// listed. A small body can have a hundred thousand, and a Lambda's answer ends at 6 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const (
	maxValue  = 200
	maxErrors = 100
)

func (p *Problem) field(field, value, want string) *Problem {
	p.Errors = append(p.Errors, FieldProblem{failure.Cut(field, maxValue), failure.Cut(strings.ToValidUTF8(value, "�"), maxValue), want})
	return p
}

// wrong is a problem about one text field.
func wrong(field, value, want string) schedule.Problems {
	if value != "" {
		value = strconv.Quote(value)
	}
	return schedule.Problems{{Field: field, Value: value, Want: want}}
}

func init() {
	// Errors that huma itself finds (parameters, body size) take the same shape as ours.
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		p := problem(status, "%s", sentence(msg))
		for _, err := range errs {
			var d huma.ErrorDetailer
			if !errors.As(err, &d) {
				if err != nil {
					p.field("", "", err.Error())
				}
				continue
			}
			e := d.ErrorDetail()
			_, name, _ := strings.Cut(e.Location, ".")
			value := ""
			if e.Value != nil {
				value = fmt.Sprint(e.Value)
			}
			p.field(name, value, strings.TrimPrefix(e.Message, "expected "))
		}
		return p
	}
}

func sentence(msg string) string {
	if msg == "validation failed" {
		return "the request has fields that cannot be used; errors lists them"
	}
	return msg
}

// refuse turns an error of the domain into what the caller sees. What is not the caller's doing is logged here, once.
func (s *server) refuse(ctx context.Context, err error) error {
	var ready *Problem
	var fields schedule.Problems
	var conflict *schedule.Conflict
	var busy *snapshot.Conflict
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &fields):
		p := problem(http.StatusUnprocessableEntity, "the request has fields that cannot be used; errors lists them")
		for i, f := range fields {
			if i == maxErrors {
				return p.field("", fmt.Sprintf("%d more", len(fields)-i), "these corrected first")
			}
			p.field(f.Field, f.Value, f.Want)
		}
		return p
	case errors.As(err, &busy):
		return busyMonth(http.StatusConflict, busy)
	case errors.Is(err, schedule.ErrNotFound), errors.Is(err, snapshot.ErrNotFound):
		return problem(http.StatusNotFound, "there is no such thing, or you may not see it")
	case errors.As(err, &conflict):
		return conflicting(http.StatusConflict, conflict)
	}
	f := failure.From(err)
	p := problem(http.StatusInternalServerError, "something unforeseen went wrong; the log has it under request_id")
	if f.Code == failure.DefinitionInvalid || f.Code == failure.FileInconsistent { // what was saved is damaged: who reads this can mend it
		e, _ := failure.Lookup(f.Code)
		p = problem(http.StatusInternalServerError, "%s: %s; %s", e.Meaning, f.Cut(), e.Remedy)
	}
	if f.Code != failure.InternalError && f.Passing() || errors.Is(err, context.DeadlineExceeded) {
		p = problem(http.StatusServiceUnavailable, "a part that is needed did not answer in time; asking again is safe").header("Retry-After", "2")
	}
	p.RequestID = requestID(ctx)
	s.Log.ErrorContext(ctx, "request failed", "request", p.RequestID, "code", string(f.Code), "error", err.Error())
	return p
}

func conflicting(status int, c *schedule.Conflict) *Problem {
	p := problem(status, "%s: %s", c.Event, c.Why)
	switch {
	case c.Run != nil:
		p.Current = &Current{Schedule: c.Run.Schedule, Run: c.Run.ID(), State: string(c.Run.State), Version: c.Run.Version}
	case c.Submission != nil:
		p.Current = &Current{Run: c.Submission.Run, Recipient: c.Submission.RecipientHash, State: string(c.Submission.State)}
	case c.Schedule != nil:
		p.Current = &Current{Schedule: c.Schedule.ID, State: string(c.Schedule.State), Version: c.Schedule.Version}
	}
	return p
}

// write sends a problem from outside huma: the guard, a panic, an unknown route.
func (p *Problem) write(w http.ResponseWriter) {
	for k, v := range p.headers {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone: nobody is left to tell
}
