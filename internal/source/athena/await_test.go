package athena_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/source"
	"almanac/internal/source/athena"
	"almanac/internal/source/sourcetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/smithy-go"
)

// held is a source whose time passes by its own pauses alone.
type held struct {
	*athena.Source
	api    *memcloud.Athena
	store  *memcloud.S3
	now    time.Time
	pauses []time.Duration
	answer memcloud.AthenaAnswer // to every query
	ids    []string              // that were recorded
}

func one(name string) *string { return &name }

func newHeld(t *testing.T) *held {
	h := &held{now: time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC), answer: memcloud.AthenaAnswer{Type: types.StatementTypeDml, Sub: "SELECT",
		Columns: []types.ColumnInfo{{Name: aws.String("n"), Type: aws.String("bigint")}}, Rows: [][]*string{{one("42")}}, Scanned: 25 << 20}}
	h.Source, h.api, h.store = lake(t, func() time.Time { return h.now }, func(memcloud.AthenaQuery) memcloud.AthenaAnswer { return h.answer })
	h.Pause = func(ctx context.Context, d time.Duration) error {
		h.pauses = append(h.pauses, d)
		h.now = h.now.Add(d)
		return ctx.Err()
	}
	return h
}

// ticket names the query n, whose id was recorded or not.
func (h *held) ticket(n, id string) *source.Ticket {
	return &source.Ticket{Token: source.TokenOf("run", n), ID: id, Record: func(_ context.Context, id string) error {
		h.ids = append(h.ids, id)
		return nil
	}}
}

func (h *held) ask(ctx context.Context, t *source.Ticket) (sourcetest.Table, error) {
	return sourcetest.Read(ctx, h, source.Query{SQL: "SELECT n FROM lake", Ticket: t})
}

// until is a context whose deadline comes on the held clock. What is under way then, done ends.
func (h *held) until(t *testing.T, d time.Duration) context.Context {
	return deadline{Context: t.Context(), at: h.now.Add(d), done: make(chan struct{})}
}

type deadline struct {
	context.Context
	at   time.Time
	done chan struct{}
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }
func (d deadline) Done() <-chan struct{}       { return d.done }

func (d deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestPausesWiden(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = 5 * time.Minute
	out, err := h.ask(t.Context(), h.ticket("1", ""))
	if err != nil || len(out.Rows) != 1 || out.Rows[0][0].Int != 42 {
		t.Fatalf("%+v %v", out, err)
	}
	for i, d := range h.pauses {
		if d > 10*time.Second || i > 0 && d < h.pauses[i-1] {
			t.Fatalf("pause %d is %s after %s", i, d, h.pauses[max(0, i-1)])
		}
	}
	if n := len(h.pauses); n < 30 || n > 60 {
		t.Fatalf("%d looks at a query of five minutes", n)
	}
}

// A query that outlives its caller is waited for by the next one: started once, whatever id was recorded.
func TestAQueryOutlivesItsCaller(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = 20 * time.Minute
	ticket := h.ticket("1", "")
	for n := range 4 {
		_, err := h.ask(h.until(t, 4*time.Minute), ticket)
		if !errors.Is(err, source.ErrRunning) || ticket.Over || ticket.Cost != (source.Cost{}) {
			t.Fatalf("call %d: %v, %+v", n, err, ticket)
		}
		if n == 1 {
			ticket = h.ticket("1", "") // died before its id was recorded
		} else {
			ticket = h.ticket("1", ticket.ID)
		}
	}
	out, err := h.ask(t.Context(), ticket)
	if err != nil || len(out.Rows) != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	if started := h.api.Started(); len(started) != 1 {
		t.Fatalf("%d queries are paid for", len(started))
	}
	for _, id := range h.ids {
		if id != ticket.ID {
			t.Fatalf("recorded %q", h.ids)
		}
	}
	if want := (source.Cost{Scanned: 25 << 20, Micros: 120}); ticket.Cost != want {
		t.Fatalf("it cost %+v, want %+v", ticket.Cost, want)
	}
}

func TestAnIDThatCannotBeRecordedEndsOpenAsItIs(t *testing.T) {
	h, lost := newHeld(t), errors.New("another worker holds the run")
	ticket := h.ticket("1", "")
	ticket.Record = func(context.Context, string) error { return lost }
	if _, err := h.ask(t.Context(), ticket); err != lost {
		t.Fatal(err)
	}
}

func TestWithoutATicketAQueryEndsWithItsCaller(t *testing.T) {
	for name, end := range map[string]func(*held) (context.Context, failure.Code){
		"deadline": func(h *held) (context.Context, failure.Code) { return h.until(t, time.Minute), failure.QueryTimeout },
		"cancelled": func(h *held) (context.Context, failure.Code) {
			ctx, cancel := context.WithCancel(t.Context())
			h.Pause = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
			return ctx, failure.SourceUnavailable
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			h.answer.Takes = time.Hour
			ctx, code := end(h)
			_, err := h.ask(ctx, nil)
			failuretest.Want(t, err, code)
			if s := h.api.State(h.api.Started()[0].ID); s != types.QueryExecutionStateCancelled {
				t.Fatalf("the query is %s", s)
			}
		})
	}
}

func TestCancelledWithATicketTheQueryRunsOn(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	h.Pause = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	_, err := h.ask(ctx, h.ticket("1", ""))
	failuretest.Want(t, err, failure.SourceUnavailable)
	if s := h.api.State(h.ids[0]); s == types.QueryExecutionStateCancelled {
		t.Fatalf("the query is %s", s)
	}
}

// The time of a query counts from its submission, over all who wait for it.
func TestATimeOutEndsTheQuery(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = time.Hour
	ticket := h.ticket("1", "")
	for n := range 7 {
		_, err := h.ask(h.until(t, 4*time.Minute), ticket)
		if !errors.Is(err, source.ErrRunning) {
			t.Fatalf("call %d: %v", n, err)
		}
		ticket = h.ticket("1", ticket.ID)
	}
	_, err := h.ask(h.until(t, 4*time.Minute), ticket)
	if f := failuretest.Want(t, err, failure.QueryTooSlow); !strings.Contains(f.Message, "30m0s") || f.Passing() || ticket.Over || !ticket.Ended {
		t.Fatalf("%q, %+v", f.Message, ticket)
	}
	if s := h.api.State(ticket.ID); s != types.QueryExecutionStateCancelled || ticket.Cost.Micros == 0 || len(h.api.Started()) != 1 {
		t.Fatalf("the query is %s, %+v", s, ticket)
	}
}

// A query that has waited for its turn all its time has cost nothing, and may be asked again.
func TestATimeOutInTheQueue(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes, h.answer.Scanned = 3*time.Hour, 0
	ticket := h.ticket("1", "")
	_, err := h.ask(t.Context(), ticket)
	if f := failuretest.Want(t, err, failure.QueryTimeout); !f.Passing() || !ticket.Over || ticket.Cost != (source.Cost{}) {
		t.Fatalf("%q, %+v", f.Message, ticket)
	}
}

// What is given to a query may have changed since a worker died before it recorded the id: then another query is paid for,
// since Athena answers the token no more.
func TestATokenThatWasUsedOtherwise(t *testing.T) {
	h := newHeld(t)
	query := func(last any) source.Query {
		return source.Query{SQL: "SELECT n FROM lake WHERE at > :last_success_time", Params: map[string]any{"last_success_time": last}, Ticket: h.ticket("1", "")}
	}
	for _, last := range []any{nil, h.now, h.now, nil} {
		if _, err := sourcetest.Read(t.Context(), h, query(last)); err != nil {
			t.Fatal(err)
		}
	}
	started := h.api.Started()
	if len(started) != 2 || started[0].Parameters[0] != "NULL" || started[1].Parameters[0] != "TIMESTAMP '2040-01-01 12:00:00.000000'" {
		t.Fatalf("%+v", started)
	}
}

func TestAQueryThatAthenaForgot(t *testing.T) {
	h := newHeld(t)
	ticket := h.ticket("1", "")
	if _, err := h.ask(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	h.api.Forget(ticket.ID)
	_, err := h.ask(t.Context(), ticket)
	if f := failuretest.Want(t, err, failure.SourceUnavailable); !ticket.Over || !f.Passing() {
		t.Fatalf("%+v %v", ticket, f)
	}
}

// Athena tries some failures again by itself: FAILED is believed at the second look.
func TestAFailureIsBelievedAtTheSecondLook(t *testing.T) {
	h := newHeld(t)
	h.answer = memcloud.AthenaAnswer{Type: types.StatementTypeDml, Reason: "Query engine had an internal error", Error: &types.AthenaError{ErrorCategory: aws.Int32(1), ErrorType: aws.Int32(200)}}
	ticket := h.ticket("1", "")
	_, err := h.ask(t.Context(), ticket)
	failuretest.Want(t, err, failure.SourceUnavailable)
	if !ticket.Over || len(h.pauses) != 1 || ticket.Cost.Micros != 0 {
		t.Fatalf("%+v after %d pauses", ticket, len(h.pauses))
	}
}

func TestSomebodyCancelsTheQuery(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = time.Hour
	pause := h.Pause
	h.Pause = func(ctx context.Context, d time.Duration) error { h.api.Cancel(h.ids[0]); return pause(ctx, d) }
	ticket := h.ticket("1", "")
	_, err := h.ask(t.Context(), ticket)
	if f := failuretest.Want(t, err, failure.SourceUnavailable); !ticket.Over || !strings.Contains(f.Message, "cancelled") {
		t.Fatalf("%+v %v", ticket, f)
	}
}

func TestScanLimits(t *testing.T) {
	t.Run("of the source, while the query runs", func(t *testing.T) {
		h := newHeld(t)
		h.answer.Takes, h.answer.Scanned, h.ScanLimit = 10*time.Minute, 100<<30, 10<<30
		ticket := h.ticket("1", "")
		_, err := h.ask(t.Context(), ticket)
		f := failuretest.Want(t, err, failure.QueryScansTooMuch)
		if f.Passing() || !strings.Contains(f.Message, "10737418240") || h.api.State(h.ids[0]) != types.QueryExecutionStateCancelled || ticket.Cost.Scanned == 0 || ticket.Cost.Scanned > 12<<30 {
			t.Fatalf("%v %+v, %s", f, ticket, h.api.State(h.ids[0]))
		}
	})
	t.Run("of the source, of a query that ended before a look", func(t *testing.T) {
		h := newHeld(t)
		h.ScanLimit = 25<<20 - 1
		_, err := h.ask(t.Context(), h.ticket("1", ""))
		failuretest.Want(t, err, failure.QueryScansTooMuch)
		h.ScanLimit++
		if _, err := h.ask(t.Context(), h.ticket("2", "")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("of the workgroup", func(t *testing.T) {
		h := newHeld(t)
		h.api.Workgroups["primary"] = memcloud.AthenaWorkgroup{Cutoff: 20 << 20}
		ticket := h.ticket("1", "")
		_, err := h.ask(t.Context(), ticket)
		f := failuretest.Want(t, err, failure.QueryScansTooMuch)
		if ticket.Over || !strings.Contains(f.Message, "Bytes scanned limit was exceeded") || ticket.Cost.Micros != 120 {
			t.Fatalf("%v %+v", f, ticket)
		}
	})
}

// Looks that fail are repeated, while the query runs on; what refuses ends at once.
func TestLooksThatFail(t *testing.T) {
	for _, row := range []struct {
		name  string
		fails int
		err   error
		code  failure.Code // "": it succeeds
	}{
		{"four throttles", 4, &types.TooManyRequestsException{Message: aws.String("Rate exceeded")}, ""},
		{"five throttles", 5, &types.TooManyRequestsException{Message: aws.String("Rate exceeded")}, failure.SourceUnavailable},
		{"five faults of Athena", 5, &types.InternalServerException{}, failure.SourceUnavailable},
		{"five lost connections", 5, io.ErrUnexpectedEOF, failure.SourceUnavailable},
		{"one refusal", 1, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform: athena:GetQueryExecution"}, failure.SourceAccessDenied},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, n := newHeld(t), 0
			h.api.Before = func(_ context.Context, c memcloud.Call) error {
				if c.Operation != "GetQueryExecution" || n == row.fails {
					return nil
				}
				n++
				return row.err
			}
			_, err := h.ask(t.Context(), h.ticket("1", ""))
			if row.code == "" && err == nil {
				return
			}
			failuretest.Want(t, err, row.code)
		})
	}
}

func TestStop(t *testing.T) {
	h := newHeld(t)
	h.answer.Takes = time.Hour
	ticket := h.ticket("1", "")
	_, err := h.ask(h.until(t, 30*time.Minute-time.Second), ticket)
	if !errors.Is(err, source.ErrRunning) {
		t.Fatal(err)
	}
	for range 2 {
		cost, err := h.Stop(t.Context(), ticket.ID)
		if err != nil || cost.Micros == 0 || h.api.State(ticket.ID) != types.QueryExecutionStateCancelled {
			t.Fatalf("%+v %v", cost, err)
		}
	}
	_, err = h.Stop(t.Context(), "00000000-0000-4000-8000-000000000099")
	failuretest.Want(t, err, failure.QueryInvalid)
	for _, operation := range []string{"StopQueryExecution", "GetQueryExecution"} {
		h.api.Before = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == operation {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		_, err := h.Stop(t.Context(), ticket.ID)
		failuretest.Want(t, err, failure.SourceUnavailable)
	}
	h.api.Before = nil
	_, err = h.ask(t.Context(), ticket)
	failuretest.Want(t, err, failure.SourceUnavailable)
	if !ticket.Over {
		t.Fatal("a query that was stopped is waited for again")
	}
}

// That a query could not be stopped is said where nothing else would tell.
func TestAQueryThatCannotBeStopped(t *testing.T) {
	deaf := func(h *held) {
		h.api.Before = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == "StopQueryExecution" {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		h.answer.Takes = time.Hour
	}
	h := newHeld(t)
	deaf(h)
	h.answer.Scanned, h.ScanLimit = 1<<40, 1
	_, err := h.ask(t.Context(), nil)
	if f := failuretest.Want(t, err, failure.QueryScansTooMuch); !strings.Contains(f.Message, "could not be stopped") {
		t.Fatal(f.Message)
	}
	h = newHeld(t)
	deaf(h)
	ticket := h.ticket("1", "")
	_, err = h.ask(t.Context(), ticket)
	failuretest.Want(t, err, failure.SourceUnavailable)
	if ticket.Over {
		t.Fatal("the query runs, and counts as ended")
	}
	h = newHeld(t)
	deaf(h)
	_, err = h.ask(h.until(t, time.Minute), nil)
	failuretest.Want(t, err, failure.SourceUnavailable)
}
