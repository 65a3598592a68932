package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// Ticket is for engines whose queries go on without whoever asked (Athena): it names a query, so that who comes later
// finds the one that runs instead of paying for a second one. Engines that answer at once ignore it. A query without a
// ticket ends with its caller.
type Ticket struct {
	Token string // names the query: under one token an engine runs one query, however often it is asked
	ID    string // the engine's id, where an earlier caller recorded it: it is waited for, and nothing is started
	// Record keeps the id of a query that was started, before anybody waits for it. Its error ends Open as it is.
	Record func(ctx context.Context, id string) error

	// The engine fills in what became of the query.
	Ended bool // with a result or without
	Cost  Cost // what it has cost, once it has ended
	// Over says that it ended without a result for a reason that may pass: waiting for it again is of no use, the next
	// query needs another ticket.
	Over bool
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

// ErrRunning is what Open returns when its context's deadline has come and the query of its ticket runs on: nothing has
// failed, the next caller with the same ticket waits for it.
var ErrRunning = errors.New("the query is still running")
