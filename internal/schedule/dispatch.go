package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/schema"
)

// Clocks are the two clocks (lifecycles, "Words"). Business time is what due times and lateness are about; wall time is
// for leases, expiry and tokens. Only the local profile lets them differ.
type Clocks struct {
	Wall     func() time.Time
	Business func(context.Context) (time.Time, error)
}

// Queue offers runs to the consumers. Only dispatch, sweep, exhaust and the API send.
type Queue interface {
	// Send offers runs and returns those that the queue did not take; err is the reason of the last of them. A run
	// that was offered although Send reports otherwise does no harm: a message is only a hint.
	Send(ctx context.Context, runs []string) (failed []string, err error)
	// SendResends has resends carried out, as Send offers runs.
	SendResends(ctx context.Context, ids []string) (failed []string, err error)
	// Backlog is the approximate number of visible messages.
	Backlog(ctx context.Context) (int, error)
}

// DispatchQueue is what dispatch and sweep send to.
type DispatchQueue interface {
	Queue
	// SendNotices has notices sent, as Send offers runs.
	SendNotices(ctx context.Context, ids []string) (failed []string, err error)
}

// DispatchLedger is what dispatch and sweep ask of the store. Due and Open only suggest; the rows decide.
type DispatchLedger interface {
	Control(ctx context.Context) (Control, error)
	Due(ctx context.Context, shard int, until time.Time, from string, limit int) (ids []string, next string, err error)
	Open(ctx context.Context, begun bool, shard int, until time.Time, from string, limit int) (runs []string, next string, err error)
	Schedule(ctx context.Context, id string) (Schedule, error)
	// Outline reads a version without recipients that stand apart: the tick needs its rule.
	Outline(ctx context.Context, id string, version int) (Version, error)
	HeadReader
	Run(ctx context.Context, id string) (Run, error)
	Admit(ctx context.Context, a Admission) error
	PassOver(ctx context.Context, s Schedule, p Passage, ttl time.Time) error
	Reoffer(ctx context.Context, r Run, now, wake time.Time, fromDLQ bool) error
	Outbox(ctx context.Context, shard int, from string, limit int) (notices []Notice, next string, err error)
	PostponeNotice(ctx context.Context, n Notice, next time.Time) error
}

// Counter counts for the metrics: at most an outcome and a kind go with a name.
type Counter func(name string, n int, outcome, kind string)

// Dispatcher admits due occurrences and offers forgotten runs again. Two at once admit once.
type Dispatcher struct {
	Ledger DispatchLedger
	Queue  DispatchQueue
	Clocks Clocks
	Timing Timing
	Token  func() string
	Log    *slog.Logger
	Count  Counter
}

// Tally is what a tick did.
type Tally struct {
	Admitted int  `json:"admitted"`
	Passed   int  `json:"passed_over"`
	Reoffer  int  `json:"reoffered"`
	Notices  int  `json:"notices"` // messages for notices that were not sent before
	Resends  int  `json:"resends"` // messages for resends that were not carried out before
	Unsent   int  `json:"unsent"`  // admitted or moved, but the queue did not take the message: the sweep offers it again
	Errors   int  `json:"errors"`  // schedules or runs that could not be handled; the next tick finds them again
	Partial  bool `json:"partial"` // time was nearly up: the next tick goes on
	Off      bool `json:"off"`     // dispatch is switched off
	Backlog  int  `json:"backlog"` // visible messages when the sweep looked
}

// Tick admits what is due until now and then sweeps. It returns an error only where nothing could be done at all.
func (d *Dispatcher) Tick(ctx context.Context) (Tally, error) {
	t := &tick{Dispatcher: d, versions: map[string]plan{}}
	control, err := d.Ledger.Control(ctx)
	if err != nil {
		return t.Tally, err
	}
	if t.now, err = d.Clocks.Business(ctx); err != nil {
		return t.Tally, err
	}
	start := int(d.Clocks.Wall().Unix() / 60 % schema.Shards) // each tick begins elsewhere, so that no shard starves
	if control.DispatchOff {
		t.Off = true
	} else {
		for i := range schema.Shards {
			t.admitShard(ctx, (start+i)%schema.Shards)
		}
	}
	if !control.SendOff {
		t.sweep(ctx, start)
	}
	d.Count("admitted", t.Admitted, "", "")
	d.Count("reoffered", t.Reoffer, "", "")
	d.Count("notices", t.Notices, "offered", "")
	d.Count("dispatch_errors", t.Errors, "", "")
	d.Log.Info("tick", "business_time", t.now, "tally", t.Tally)
	return t.Tally, nil
}

// plan is a definition with its recurrence, read once a tick.
type plan struct {
	version Version
	rule    *calendar.Recurrence
}

type tick struct {
	*Dispatcher
	Tally
	now      time.Time // business time
	mu       sync.Mutex
	versions map[string]plan
}

// timeLeft reports whether something new may be begun.
func (t *tick) timeLeft(ctx context.Context) bool {
	if ctx.Err() != nil {
		t.Partial = true
		return false
	}
	if end, ok := ctx.Deadline(); ok && end.Sub(t.Clocks.Wall()) < t.Timing.TickReserve.Std() {
		t.Partial = true
		return false
	}
	return true
}

func (t *tick) admitShard(ctx context.Context, shard int) {
	from := ""
	for t.timeLeft(ctx) {
		ids, next, err := t.Ledger.Due(ctx, shard, t.now, from, t.Timing.PageSize)
		if err != nil {
			t.trouble("due index could not be read", err, "shard", shard)
			return
		}
		var runs []string
		t.each(ids, func(id string) {
			admitted := t.admitDue(ctx, id)
			t.mu.Lock()
			runs = append(runs, admitted...)
			t.mu.Unlock()
		})
		t.Admitted += len(runs)
		t.offer(ctx, runs)
		if from = next; from == "" {
			return
		}
	}
}

// each calls f for every id, at most Parallel at once.
func (t *tick) each(ids []string, f func(string)) {
	if t.Timing.Parallel <= 1 {
		for _, id := range ids {
			f(id)
		}
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, t.Timing.Parallel)
	for _, id := range ids {
		slots <- struct{}{}
		wg.Go(func() { defer func() { <-slots }(); f(id) })
	}
	wg.Wait()
}

// admitDue admits what one schedule owes until now, and returns the runs that this tick admitted.
func (t *tick) admitDue(ctx context.Context, id string) (runs []string) {
	for ctx.Err() == nil {
		run, more, err := t.admitNext(ctx, id)
		if run != "" {
			runs = append(runs, run)
		}
		if err != nil && !IsConflict(err) {
			t.trouble("schedule could not be admitted", err, "schedule", id)
			return runs
		}
		if err == nil && !more {
			return runs
		}
	}
	return runs
}

// admitNext takes one step for one schedule: it reads the row, decides, and writes on the condition of what it read.
func (t *tick) admitNext(ctx context.Context, id string) (run string, more bool, err error) {
	s, err := t.Ledger.Schedule(ctx, id)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return "", false, nil
		}
		return "", false, err
	}
	if s.State != Active || s.NextDue.IsZero() || s.NextDue.After(t.now) {
		return "", false, nil // the index was behind
	}
	p, err := t.plan(ctx, s)
	if err != nil {
		return "", false, err
	}
	if p.admits(id, s.NextDue).After(t.now) {
		return "", false, nil // due, and held back by its jitter: a later tick finds it again
	}
	ttl := t.Clocks.Wall().Add(t.Timing.RunRetention.Std())
	if o, pass := passOver(p, s, t.now, t.Timing.Missed.Std()); pass {
		if err = t.Ledger.PassOver(ctx, s, o, ttl); err == nil {
			t.mu.Lock()
			t.Passed += o.added
			t.mu.Unlock()
			t.Log.Info("passed over", "schedule", id, "kind", o.Range.Kind, "occurrences", o.added, "last", o.Range.Last)
		}
		return "", true, err
	}
	next := p.rule.Next(s.NextDue)
	r := NewRun(p.version, s.NextDue, t.Clocks.Wall(), t.Timing)
	if r.Groups, err = admitted(ctx, t.Ledger, p.version); err != nil {
		return "", false, err
	}
	err = t.Ledger.Admit(ctx, Admission{Run: r, Token: t.Token(), Schedule: &s, NextDue: next.At, Skips: skips(id, next.Skipped), TTL: ttl})
	var c *Conflict
	if errors.As(err, &c) && c.Run != nil {
		// The occurrence was admitted before, and yet the schedule stands on it: it must not stand still.
		return "", true, t.Ledger.PassOver(ctx, s, passOne(p, s, SkipTwice, "this occurrence was admitted before"), ttl)
	}
	if err != nil {
		return "", true, err
	}
	t.Log.Info("admitted", "run", r.ID(), "occurrence", r.Occurrence, "version", r.Version)
	return r.ID(), true, nil
}

func (t *tick) plan(ctx context.Context, s Schedule) (plan, error) {
	key := schema.DefinitionKey(s.ID, s.Version).String()
	t.mu.Lock()
	p, ok := t.versions[key]
	t.mu.Unlock()
	if ok {
		return p, nil
	}
	v, err := t.Ledger.Outline(ctx, s.ID, s.Version)
	if err != nil {
		return p, err
	}
	rule, err := calendar.Parse(v.Recurrence)
	if err != nil {
		return p, failure.Wrap(failure.DefinitionInvalid, err, "version %d: recurrence: %v", v.Number, err)
	}
	p = plan{v, rule}
	t.mu.Lock()
	t.versions[key] = p
	t.mu.Unlock()
	return p, nil
}

// NewRun is a due occurrence's run as it is admitted.
func NewRun(v Version, nominal, wall time.Time, t Timing) Run {
	r := Run{Schedule: v.ID, Occurrence: OccurrenceKey(nominal), Nominal: nominal, Version: v.Number, Workspace: v.Workspace,
		State: Queued, AttemptsLeft: t.MaxAttempts, WakeAt: wall.Add(t.SweepQueued.Std()), CreatedAt: wall}
	return r
}

// offer sends messages and sends the failed ones again; what is left over the sweep offers later.
func (t *tick) offer(ctx context.Context, runs []string) {
	t.Unsent += Offer(ctx, t.Queue, runs, t.Log)
}

// Offer sends a message for each run, three times over for those that the queue did not take, and returns how many it
// never took.
func Offer(ctx context.Context, q Queue, runs []string, log *slog.Logger) int {
	return offer(ctx, q.Send, runs, log)
}

func offer(ctx context.Context, send func(context.Context, []string) ([]string, error), ids []string, log *slog.Logger) int {
	var err error
	for try := 0; len(ids) > 0 && try < 3; try++ {
		ids, err = send(ctx, ids)
	}
	if len(ids) > 0 {
		log.Warn("messages were not taken; the sweep will send them again", "messages", len(ids), "error", err)
	}
	return len(ids)
}

func (t *tick) trouble(what string, err error, args ...any) {
	t.mu.Lock()
	t.Errors++
	t.mu.Unlock()
	t.Log.Error(what, append(args, "code", failure.From(err).Code, "error", err.Error())...)
}
