package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/source"
	"almanac/internal/transition"
)

func runKey(r schedule.Run) schema.Key { return schema.RunKey(r.Schedule, r.Occurrence) }

// Run reads one run consistently.
func (s *Store) Run(ctx context.Context, id string) (schedule.Run, error) {
	sched, occ, ok := schema.SplitRunID(id)
	if !ok {
		return schedule.Run{}, schedule.ErrNotFound
	}
	it, err := s.get(ctx, schema.RunKey(sched, occ))
	if err != nil {
		return schedule.Run{}, err
	}
	return decodeRun(it)
}

// Admit records a queued run, for a due occurrence in one transaction with the schedule's move to its next due time.
// A *schedule.Conflict means that the run exists already or that the schedule changed; its Run or Schedule says which.
func (s *Store) Admit(ctx context.Context, a schedule.Admission) error {
	r := a.Run
	put := compact(map[string]any{
		schema.Nominal: r.Nominal, schema.Manual: r.Manual,
		schema.DefVersion: r.Version, schema.Workspace: r.Workspace, schema.AttemptsLeft: r.AttemptsLeft, schema.Attempts: 0, schema.Yields: 0, schema.Offers: 0,
		schema.DeadLetters: 0, schema.WakeAt: r.WakeAt, schema.OpenShard: schema.OpenShardOf(r.ID(), false),
		schema.RequestedBy: r.RequestedBy, schema.RequestHash: r.RequestHash, schema.CreatedAt: r.CreatedAt, schema.AdmittedBy: a.Token,
		schema.ExpiresAt: a.TTL.Unix(), schema.Timeline: []string{entry(r.CreatedAt, "admitted")},
	})
	if len(r.Groups) > 0 {
		put[schema.Groups] = attr(r.Groups)
	}
	if err := s.retryAttributes(ctx, put, r); err != nil {
		return err
	}
	w, err := advance(step[schedule.RunState, schedule.RunEvent]{
		table: schedule.Runs, from: transition.Absent, event: schedule.Admit, key: runKey(r), put: put,
		facts: facts{decided: []transition.Guard{schedule.ScheduleAsRead}},
		mine:  func(it item) bool { return str(it, schema.AdmittedBy) == a.Token },
	})
	if err != nil {
		return err
	}
	ws := []write{w}
	if a.Schedule != nil {
		ws = append(ws, s.moveOn(*a.Schedule, a.NextDue, r.Nominal, r.Occurrence))
		for _, skip := range a.Skips {
			ws = append(ws, skipWrite(skip, a.TTL))
		}
	}
	if a.Audit != nil {
		ws = append(ws, auditWrite(*a.Audit))
	}
	return s.transact(ctx, ws...)
}

// retryAttributes are what a retry as new brings: the run it repeats, whom it sends to, and the recorded file. More targets
// than fit its row are kept apart, before the row.
func (s *Store) retryAttributes(ctx context.Context, put item, r schedule.Run) error {
	if r.RetryOf == "" {
		return nil
	}
	put[schema.RetryOf] = attr(r.RetryOf)
	if len(r.Targets) <= schedule.InlineRecipients {
		put[schema.Targets] = attr(r.Targets)
	} else {
		ref, err := s.freeze(ctx, r.Targets, len(r.Targets))
		if err != nil {
			return err
		}
		put[schema.TargetsHash], put[schema.TargetsCount] = attr(ref.Hash), attr(ref.Count)
	}
	if r.File != nil {
		put[schema.File], put[schema.FileExpires], put[schema.LinkExpires] = attr(encodeFile(*r.File)), attr(r.FileExpires), attr(r.LinkExpires)
	}
	return nil
}

// moveOn is the schedule's part of an admission: next due and last_nominal move on, open_run names the run.
func (s *Store) moveOn(sched schedule.Schedule, next, nominal time.Time, open string) write {
	w := write{event: string(schedule.Admit), key: schema.ScheduleKey(sched.ID)}
	f := facts{schedule: &sched}
	w.condition = w.expr.equals(schema.State, string(schedule.Active)) + " AND " + guards[schedule.AsRead].expr(&w.expr, f)
	set := map[string]any{schema.LastNominal: nominal, schema.OpenRun: open, schema.SkipFirst: nil, schema.SkipKind: nil}
	for k, v := range due(sched.ID, next) {
		set[k] = v
	}
	w.update = w.expr.update(update{set: set})
	return w
}

// due spells when a schedule is due next; a zero time takes it out of the due index.
func due(id string, next time.Time) map[string]any {
	if next.IsZero() {
		return map[string]any{schema.NextDueAt: nil, schema.DueShard: nil}
	}
	return map[string]any{schema.NextDueAt: schema.Time(next), schema.DueShard: schema.DueShardOf(id)}
}

// entry is one line of a run's timeline.
func entry(at time.Time, format string, args ...any) string {
	return schema.Time(at) + " " + failure.Cut(fmt.Sprintf(format, args...), 120)
}

// lease is short for the domain's.
type lease = schedule.Lease

// Begin starts the first attempt, Resume a later one; which of the two, the run as read decides.
func (s *Store) Begin(ctx context.Context, r schedule.Run, l lease) (schedule.Run, error) {
	event := schedule.Begin
	if r.State == schedule.Running {
		event = schedule.Resume
	}
	w, err := advance(step[schedule.RunState, schedule.RunEvent]{
		table: schedule.Runs, from: r.State, event: event, key: runKey(r), facts: facts{now: l.Now},
		with: update{
			set: map[string]any{schema.LeaseOwner: l.Token, schema.LeaseEnd: schema.Time(l.End), schema.WakeAt: schema.Time(l.Wake),
				schema.OpenShard: schema.OpenShardOf(r.ID(), true), schema.Offers: 0, schema.DeadLetters: 0},
			add:    map[string]int{schema.Attempts: 1, schema.AttemptsLeft: -1},
			append: entry(l.Now, "%s, attempt %d", event, r.Attempts+1),
		},
		mine: func(it item) bool { return str(it, schema.LeaseOwner) == l.Token },
	})
	if err != nil {
		return r, asConflict(err, r)
	}
	// The attempt goes on from the row as it stands now, not from what was read before: another worker may have recorded a
	// file between the two.
	row := item{}
	w.row = &row
	if err := s.send(ctx, w); err != nil {
		return r, err
	}
	return decodeRun(row)
}

// asConflict turns a transition that the table does not have into the conflict that a caller reads again for.
func asConflict(err error, r schedule.Run) error {
	var illegal errIllegal
	if errors.As(err, &illegal) {
		return &schedule.Conflict{Event: illegal.event, Why: illegal.Error(), Run: &r}
	}
	return err
}

// own does a transition of the lease's holder that is no settle.
func (s *Store) own(ctx context.Context, r schedule.Run, event schedule.RunEvent, f facts, u update, mine func(item) bool) error {
	w, err := advance(step[schedule.RunState, schedule.RunEvent]{table: schedule.Runs, from: r.State, event: event, key: runKey(r), facts: f, with: u, mine: mine})
	if err != nil {
		return asConflict(err, r)
	}
	return s.send(ctx, w)
}

// Release gives the lease back after a passing failure, which is kept as the run's last error. A query that has ended
// without a result (r.QueryEnded) makes room for the next one.
func (s *Store) Release(ctx context.Context, r schedule.Run, l lease, f *failure.Failure, visible time.Duration) error {
	set := map[string]any{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: schema.Time(l.Wake),
		schema.ErrorCode: string(f.Code), schema.ErrorText: f.Cut()}
	if r.QueryEnded {
		set[schema.QueryEnded] = true
		costs(set, r.QueryCost)
	}
	return s.own(ctx, r, schedule.Release, facts{owner: l.Token, now: l.Now}, update{
		set: set, append: entry(l.Now, "released: %s; again in %s", f.Code, visible),
	}, released(l))
}

// costs notes what a run's queries have cost. Whoever holds the lease, or the job, knows it whole.
func costs(set map[string]any, c source.Cost) {
	if c != (source.Cost{}) {
		set[schema.QueryScanned], set[schema.QueryMicros] = c.Scanned, c.Micros
	}
}

func queryCost(it item) source.Cost {
	return source.Cost{Scanned: int64(num(it, schema.QueryScanned)), Micros: int64(num(it, schema.QueryMicros))}
}

// released recognises a lease that its holder gave back: nobody holds the run, and it wakes when we said.
func released(l lease) func(item) bool {
	return func(it item) bool {
		return str(it, schema.State) == string(schedule.Running) && str(it, schema.LeaseOwner) == "" && str(it, schema.WakeAt) == schema.Time(l.Wake)
	}
}

// Yield gives the lease back because the invocation ran out of time after progress, or because sending is off: it
// costs no attempt.
func (s *Store) Yield(ctx context.Context, r schedule.Run, l lease, maxYields int, why string) error {
	return s.own(ctx, r, schedule.Yield,
		facts{owner: l.Token, yields: maxYields, decided: []transition.Guard{schedule.OutOfTimeG, schedule.Progress}},
		update{
			set:    map[string]any{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: schema.Time(l.Wake)},
			add:    map[string]int{schema.Yields: 1, schema.AttemptsLeft: 1},
			append: entry(l.Now, "yielded: %s", why),
		}, released(l))
}

// RecordFile makes a file the run's own. The first one wins.
func (s *Store) RecordFile(ctx context.Context, r schedule.Run, l lease, file schedule.RecordedFile) error {
	set := map[string]any{schema.File: encodeFile(file), schema.FileExpires: schema.Time(file.Expires), schema.LinkExpires: schema.Time(file.LinksEnd)}
	costs(set, r.QueryCost)
	return s.own(ctx, r, schedule.RecordFile, facts{owner: l.Token},
		update{set: set, append: entry(l.Now, "file recorded: %d rows, %d bytes", file.Rows, file.Bytes)},
		func(it item) bool { f, err := decodeFile(it); return err == nil && f != nil && f.Key == file.Key })
}

// RecordQuery notes the engine's query id, so that the next attempt finds the running query instead of paying twice.
func (s *Store) RecordQuery(ctx context.Context, r schedule.Run, l lease, queryID string) error {
	return s.own(ctx, r, schedule.RecordQuery, facts{owner: l.Token},
		update{set: map[string]any{schema.QueryID: queryID, schema.QueryEnded: nil}, add: map[string]int{schema.QueryNumber: 1},
			append: entry(l.Now, "query recorded")},
		func(it item) bool { return str(it, schema.QueryID) == queryID })
}

// loggedOffers is how many offers between two attempts a timeline shows.
const loggedOffers = 12

// Reoffer moves wake_at before the message is sent again. fromDLQ counts the visit.
func (s *Store) Reoffer(ctx context.Context, r schedule.Run, now, wake time.Time, fromDLQ bool) error {
	f := facts{now: now, wake: r.WakeAt}
	u := update{set: map[string]any{schema.WakeAt: schema.Time(wake)}, add: map[string]int{schema.Offers: 1}}
	if r.Offers < loggedOffers { // a run that nobody takes must not grow without end; the counter goes on
		u.append = entry(now, "offered again")
	}
	if fromDLQ {
		f.decided = []transition.Guard{schedule.FromDLQ}
		u.add[schema.DeadLetters] = 1
		u.append = entry(now, "came out of the dead-letter queue, offered again")
	}
	return s.own(ctx, r, schedule.Reoffer, f, u, nil)
}

// AskToStop notes that a person wants the run to end; its holder, or the next one, settles it.
func (s *Store) AskToStop(ctx context.Context, r schedule.Run, a schedule.Audit) error {
	w, err := advance(step[schedule.RunState, schedule.RunEvent]{table: schedule.Runs, from: r.State, event: schedule.AskToStop, key: runKey(r),
		facts: facts{decided: []transition.Guard{schedule.PersonReason}},
		with:  update{set: map[string]any{schema.StopBy: a.Who, schema.StopWhy: failure.Cut(a.Why, 200)}, append: entry(a.At, "asked to stop")}})
	if err != nil {
		return asConflict(err, r)
	}
	return s.transact(ctx, w, auditWrite(a))
}

// Settle ends a run as Conclude does, and leaves what it has to tell to the sweep.
func (s *Store) Settle(ctx context.Context, r schedule.Run, l lease, o schedule.Outcome) error {
	_, err := s.Conclude(ctx, r, l, o)
	return err
}

// Conclude ends a run, in one transaction with what that means for its schedule and the notices of it. It never fails
// because of the schedule: a schedule that changed meanwhile is read again, one that is gone is left alone. It returns
// the notices that it put.
func (s *Store) Conclude(ctx context.Context, r schedule.Run, l lease, o schedule.Outcome) ([]schedule.Notice, error) {
	w, err := settleWrite(r, l, o)
	if err != nil {
		return nil, asConflict(err, r)
	}
	for {
		also, notices, err := s.consequences(ctx, r, l, o)
		if err != nil {
			return nil, err
		}
		err = s.transact(ctx, append([]write{w}, also...)...)
		var c *schedule.Conflict
		switch {
		case err == nil:
			return notices, nil
		case errors.As(err, &c) && c.Event != string(o.Event) && ctx.Err() == nil:
			continue // the schedule changed, or went, between read and write
		}
		return nil, err
	}
}

// consequences are the writes that a settle has besides the run's own, decided on the schedule as it stands.
func (s *Store) consequences(ctx context.Context, r schedule.Run, l lease, o schedule.Outcome) (ws []write, ns []schedule.Notice, err error) {
	it, err := s.get(ctx, schema.ScheduleKey(r.Schedule))
	if err != nil || len(it) == 0 {
		return nil, nil, err
	}
	sched, err := decodeSchedule(it)
	if err != nil {
		return nil, nil, err
	}
	var def schedule.Definition
	effect := schedule.EffectOf(sched, def, r, o)
	asked := effect.NeedsDefinition()
	if asked {
		if def, err = s.defined(ctx, sched); err != nil {
			return nil, nil, err
		}
		effect = schedule.EffectOf(sched, def, r, o)
	}
	if effect.Empty() {
		return nil, nil, nil
	}
	w, err := effectWrite(sched, effect, l.Now)
	if err != nil {
		return nil, nil, err
	}
	if asked && effect.Pause == "" { // the version whose definition decided is still the schedule's; a pause demands it anyway
		w.condition += " AND " + w.expr.equals(schema.Version, sched.Version)
	}
	ws = append(ws, w)
	ns = schedule.NoticesOf(sched, def, r, o, effect, l.Now, l.Wake)
	for _, n := range ns {
		nw, err := noticeWrite(n)
		if err != nil {
			return nil, nil, err
		}
		ws = append(ws, nw)
	}
	return ws, ns, nil
}

// defined is the definition that a schedule has now, as far as its row tells: who is told stands there. One that is gone,
// or that nobody can read, must not keep a run from settling: then nobody is told, and the product's own limit holds.
func (s *Store) defined(ctx context.Context, sched schedule.Schedule) (schedule.Definition, error) {
	v, err := s.Outline(ctx, sched.ID, sched.Version)
	var down *failure.Failure
	if errors.As(err, &down) {
		return schedule.Definition{}, err
	}
	if err != nil {
		return schedule.Definition{}, nil
	}
	return v.Definition, nil
}

func settleWrite(r schedule.Run, l lease, o schedule.Outcome) (write, error) {
	set := map[string]any{schema.LeaseOwner: nil, schema.LeaseEnd: nil, schema.WakeAt: nil, schema.OpenShard: nil,
		schema.SettledAt: schema.Time(l.Now), schema.SettledBy: l.Token, schema.Submitted: o.Submitted, schema.Skipped: o.Skipped}
	costs(set, r.QueryCost)
	f := facts{owner: l.Token, now: l.Now}
	if r.File != nil {
		f.file = r.File.Key
	}
	line := entry(l.Now, "%s", o.Event)
	switch o.Event {
	case schedule.Succeed:
		f.decided = []transition.Guard{schedule.AllOutcomes}
		set[schema.ErrorCode], set[schema.ErrorText] = nil, nil
	case schedule.SkipEmpty:
		f.decided = []transition.Guard{schedule.SourceIsQuery, schedule.PolicySuppress}
		set[schema.History] = "skipped_empty"
		set[schema.ErrorCode], set[schema.ErrorText] = nil, nil
	case schedule.Fail:
		set[schema.ErrorCode], set[schema.ErrorText] = string(o.Code), failure.Cut(o.Message, failure.MaxMessage)
		line = entry(l.Now, "failed: %s", o.Code)
	}
	return advance(step[schedule.RunState, schedule.RunEvent]{
		table: schedule.Runs, from: r.State, event: o.Event, key: runKey(r), facts: f, with: update{set: set, append: line},
		mine: func(it item) bool { return str(it, schema.SettledBy) == l.Token },
	})
}

// effectWrite is the schedule's part of a settle, conditioned on what was read.
func effectWrite(sched schedule.Schedule, e schedule.Effect, now time.Time) (write, error) {
	set := map[string]any{}
	if e.LastRun != nil {
		set[schema.LastRun], set[schema.LastRunNominal] = e.LastRun.Occurrence, schema.Time(e.LastRun.Nominal)
		set[schema.LastRunState], set[schema.LastRunCode] = string(e.LastRun.State), e.LastRun.Code
	}
	if e.Streak != nil {
		set[schema.Streak] = *e.Streak
	}
	if !e.Success.IsZero() {
		set[schema.LastSuccess] = schema.Time(e.Success)
	}
	if e.CloseOpen {
		set[schema.OpenRun] = nil
	}
	var w write
	if e.Pause != "" {
		var err error
		if w, err = pauseWrite(sched, e.Pause, schedule.System, now, set); err != nil {
			return w, err
		}
	} else {
		w = write{event: "record last run", key: schema.ScheduleKey(sched.ID)}
		w.condition = w.expr.equals(schema.State, string(sched.State))
		w.update = w.expr.update(update{set: set})
	}
	w.condition += " AND " + w.expr.equals(schema.Streak, sched.Streak) + " AND " + w.expr.equals(schema.OpenRun, sched.OpenRun) +
		" AND " + w.expr.equals(schema.LastRunNominal, schema.Time(sched.LastRunNominal)) + " AND " + w.expr.equals(schema.LastSuccess, schema.Time(sched.LastSuccess))
	return w, nil
}
