package store

import (
	"context"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"
)

// Claim queues a run under its next job and takes its owner's slot. A *snapshot.Conflict carries the run where that has
// moved on, or the caps where these do not permit it. Two dispatchers that claim in the same millisecond may both take the
// claim for theirs: it is one slot, and what they both start is the one job of its name.
func (s *Snapshots) Claim(ctx context.Context, r snapshot.Run, o snapshot.Owner, now time.Time) (snapshot.Run, error) {
	line := entry(now, "claim, job %d", r.Job+1)
	set := work(schema.WorkOpen(r.Owner), now)
	set[schema.Job], set[schema.ClaimedAt], set[schema.OfferedAt] = r.Job+1, schema.Time(now), schema.Time(now)
	for _, gone := range []string{schema.Execution, schema.Verdict, schema.Manifest, schema.ComparedTo, schema.CheckList, schema.NextAttempt, schema.AdmittedBy} {
		set[gone] = nil
	}
	w, err := runWrite(r, snapshot.Claim, facts{now: now, decided: []transition.Guard{snapshot.CapsPermit}}, update{set: set, append: line},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Queued) && num(it, schema.Job) == r.Job+1 && str(it, schema.ClaimedAt) == schema.Time(now)
		})
	if err != nil {
		return r, err
	}
	if err := s.Store.transact(ctx, w, taking(r, o)); err != nil {
		return r, err
	}
	at := now.UTC().Truncate(time.Millisecond) // as the row holds it
	r.State, r.Job, r.ClaimedAt, r.OfferedAt = snapshot.Queued, r.Job+1, at, at
	r.Execution, r.Verdict, r.NextAt, r.Timeline = "", nil, time.Time{}, append(append([]string(nil), r.Timeline...), line)
	return r, nil
}

// taking takes a slot: the run's id absent, and the caps as lifecycles D says, as they were read: what was changed meanwhile
// refuses, the backfills' cap also a current month, which would not leave the slot that it never heard of. With a backfill
// cap above 0 a current month leaves one slot to backfills while none of them runs.
func taking(r snapshot.Run, o snapshot.Owner) write {
	w := write{event: string(snapshot.Claim), key: schema.CapsKey(r.Owner), refused: "the owner's caps do not permit it"}
	e := &w.expr
	u := update{member: r.ID(), take: []string{schema.Slots}}
	size := func(m string) string { return "size(" + e.name(m) + ")" }
	w.condition = "attribute_not_exists(" + e.within(schema.Slots, r.ID()) + ") AND " + e.equals(schema.Cap, o.Cap) + " AND " + e.equals(schema.BackfillCap, o.Backfill) +
		" AND " + size(schema.Slots) + " < " + e.value(o.Cap)
	switch {
	case r.Backfill:
		u.take = append(u.take, schema.Backfill)
		w.condition += " AND " + size(schema.Backfill) + " < " + e.value(o.Backfill)
	case o.Backfill > 0:
		w.condition += " AND (" + size(schema.Slots) + " < " + e.value(o.Cap-1) + " OR " + size(schema.Backfill) + " > " + e.value(0) + ")"
	}
	w.update = e.update(u)
	return w
}

// freeing gives a slot back. A run that holds none changes nothing.
func freeing(owner, run string) write {
	w := write{event: "free", key: schema.CapsKey(owner)}
	w.condition = "attribute_exists(" + w.expr.name(schema.PK) + ")"
	w.update = w.expr.update(update{member: run, leave: []string{schema.Slots, schema.Backfill}})
	return w
}

// Free removes a run's id from the owner's slots while the run's row, if there is one, is not admitted.
func (s *Snapshots) Free(ctx context.Context, owner, run string) error {
	k, ok := keyOfSnapshot(run)
	if !ok {
		return s.Store.send(ctx, freeing(owner, run)) // no row can be of this name
	}
	w := write{event: "free", key: k, check: true, refused: "the run holds its slot"}
	e := &w.expr
	state := e.name(schema.State)
	w.condition = "attribute_not_exists(" + state + ") OR NOT " + state + " IN (" + e.value(string(snapshot.Queued)) + ", " + e.value(string(snapshot.Running)) + ", " +
		e.value(string(snapshot.Validating)) + ")"
	return s.Store.transact(ctx, w, freeing(owner, run))
}

// Reoffer notes that the same job is offered again.
func (s *Snapshots) Reoffer(ctx context.Context, r snapshot.Run, now, before time.Time) (snapshot.Run, error) {
	return s.moved(ctx, r, snapshot.Reoffer, facts{before: before}, update{set: map[string]any{schema.OfferedAt: schema.Time(now)}},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Queued) && num(it, schema.Job) == r.Job && str(it, schema.OfferedAt) == schema.Time(now)
		})
}

// Attach notes the execution of the run's job.
func (s *Snapshots) Attach(ctx context.Context, r snapshot.Run, execution string) error {
	_, err := s.moved(ctx, r, snapshot.Attach, facts{}, update{set: map[string]any{schema.Execution: execution}},
		func(it item) bool { return num(it, schema.Job) == r.Job && str(it, schema.Execution) == execution })
	return err
}

// Fail settles an attempt: until the next one, or for good. An attempt that never began read nothing: the state in which the
// one before failed still says whether the next may go on at the cursor.
func (s *Snapshots) Fail(ctx context.Context, r snapshot.Run, st snapshot.Settlement, now time.Time) error {
	set := settledSnapshot(r, now)
	set[schema.SettledShard] = schema.FailedShardOf(r.ID())
	line := entry(now, "failed: %s", st.Code)
	if !st.NextAt.IsZero() {
		set = work(schema.WorkRetry(r.Owner, r.Backfill), st.NextAt)
		line = entry(now, "failed: %s; again at %s", st.Code, schema.Time(st.NextAt))
	}
	set[schema.ErrorCode], set[schema.ErrorText] = string(st.Code), failure.Cut(st.Text, failure.MaxMessage)
	set[schema.NextAttempt] = schema.Time(st.NextAt)
	if r.State != snapshot.Queued || r.FailedIn == "" {
		set[schema.FailedIn] = string(r.State)
	}
	w, err := runWrite(r, snapshot.Fail, facts{}, update{set: set, add: map[string]int{schema.Failures: 1}, append: line},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Failed) && num(it, schema.Job) == r.Job && num(it, schema.Failures) == r.Failures+1 &&
				str(it, schema.ErrorCode) == string(st.Code) && str(it, schema.NextAttempt) == schema.Time(st.NextAt) && (!st.NextAt.IsZero() || str(it, schema.SettledAt) == schema.Time(now))
		})
	if err != nil {
		return err
	}
	ws := []write{w, freeing(r.Owner, r.ID())}
	if st.NextAt.IsZero() {
		ws = append(ws, headDone(r, snapshot.Fail, snapshot.Failed, "", false))
	}
	return s.Store.transact(ctx, ws...)
}
