package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Ticket is for engines whose queries go on without whoever asked (Athena): it names a query, so that who comes later
// finds the one that runs instead of paying for a second one. Engines that answer at once ignore it. A query without a
// ticket ends with its caller.
type Ticket struct {
	Token string // names the query: under one token an engine runs one query, however often it is asked
	ID    string // the engine's id, where an earlier caller recorded it: it is waited for, and nothing is started
	// Record keeps the id of a query that was started, before anybody waits for it. Its error ends Open as it is.
	Record func(ctx context.Context, id string) error
	Until  time.Time // when its caller leaves it running; zero: at the context's deadline
	// From is where to go on in the result, as an earlier caller's Placed rows told it; 0: at its beginning.
	From int64

	// The engine fills in what became of the query.
	Ended bool // with a result or without
	Cost  Cost // what it has cost, once it has ended
	// Over says that it ended without a result for a reason that may pass: waiting for it again is of no use, the next
	// query needs another ticket.
	Over bool
}

// Recorded is what stands on a run about its query.
type Recorded struct {
	ID     string
	Number int  // counts the run's queries
	Ended  bool // without a result, for a reason that may pass
}

// Open reports whether there is a query to wait for.
func (r Recorded) Open() bool { return r.ID != "" && !r.Ended }

// Ticket names a run's query: the one that is recorded, or the next one where there is none, or where that has ended without
// a result. token names the run's n-th query; record writes it down.
func (r Recorded) Ticket(token func(n int) string, record func(ctx context.Context, next Recorded) error) *Ticket {
	if r.Open() {
		return &Ticket{Token: token(r.Number), ID: r.ID}
	}
	next := Recorded{Number: r.Number + 1}
	return &Ticket{Token: token(next.Number), Record: func(ctx context.Context, id string) error {
		next.ID = id
		return record(ctx, next)
	}}
}

// RunToken names the n-th query of a run, by the definition version and the generation that ask it and never by the attempt:
// who comes later finds the query that runs (design.md §4).
func RunToken(run string, version, generation, n int) string {
	return TokenOf(run, strconv.Itoa(version), strconv.Itoa(generation), strconv.Itoa(n))
}

// Stopper is what sources are besides whose engines' queries go on without their caller.
type Stopper interface {
	// Stop ends a query that nobody waits for any more, and tells what it has cost. One that has ended stays as it is.
	Stop(ctx context.Context, name, workspace, id string) (Cost, error)
}

// Apart is a View of an engine whose queries go on without their caller and are paid for one by one. It is held at no
// version: each query sees what it finds. A query may have a ticket, and its rows are Placed.
type Apart interface {
	View
	Apart() // says so
}

// Placed are Rows whose place in the result can be told, so that another caller goes on there.
type Placed interface {
	Rows
	// Place is behind the last row that Next returned, for Ticket.From.
	Place() int64
}

// TokenOf makes a ticket's token out of what names a query.
func TokenOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Cost is what a query has cost.
type Cost struct {
	Scanned int64 // bytes
	Micros  int64 // millionths of a US dollar, at the engine's list price
}

// Add sums two costs.
func (c Cost) Add(o Cost) Cost { return Cost{c.Scanned + o.Scanned, c.Micros + o.Micros} }

// Count counts what queries have cost for the metrics.
func (c Cost) Count(count func(name string, n int, outcome, kind string)) {
	if c.Scanned > 0 {
		count("query_bytes_scanned", int(c.Scanned), "", "")
	}
	if c.Micros > 0 {
		count("query_cost_micros", int(c.Micros), "", "")
	}
}

// ErrRunning is what Open returns when its ticket's time or its context's deadline has come and the query of its ticket runs on: nothing has
// failed, the next caller with the same ticket waits for it.
var ErrRunning = errors.New("the query is still running")
