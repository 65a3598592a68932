package simulate

import (
	"fmt"
	"slices"
	"strings"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/transition"
)

// shape is one event as a row's change shows it.
type shape[E ~string] struct {
	event E // "": beside the table
	is    func(old, new Row) bool
	may   []string                       // attributes that it may change
	must  func(w *World, c Change) error // what else holds of it
}

func bumped(name string, by int) func(old, new Row) bool {
	return func(old, new Row) bool { return figure(new, name) == figure(old, name)+by }
}

func differs(name string) func(old, new Row) bool {
	return func(old, new Row) bool { return Text(old, name) != Text(new, name) }
}

func appears(name string) func(old, new Row) bool {
	return func(old, new Row) bool { return old[name] == nil && new[name] != nil }
}

// judge finds the event that a change is, and holds it against its shape.
func judge[E ~string](w *World, c Change, events []shape[E], names []string) (E, error) {
	for _, m := range events {
		if !m.is(c.Old, c.New) {
			continue
		}
		for _, name := range names {
			if !slices.Contains(m.may, name) {
				return m.event, fmt.Errorf("%q changes %s", m.event, name)
			}
		}
		if m.must != nil {
			if err := m.must(w, c); err != nil {
				return m.event, fmt.Errorf("%q: %w", m.event, err)
			}
		}
		return m.event, nil
	}
	return "", fmt.Errorf("changes %v, which is no event", names)
}

// allowed holds a move of state against its table.
func allowed[S, E ~string](t transition.Table[S, E], old, new Row, events ...E) error {
	from, to := S(Text(old, schema.State)), S(Text(new, schema.State))
	for _, e := range events {
		if row, ok := t.Next(from, e); ok && row.To == to {
			return nil
		}
	}
	return fmt.Errorf("%q from %q to %q is in no row of the table", events, from, to)
}

var runEvents = []shape[schedule.RunEvent]{
	{schedule.Begin, func(old, new Row) bool { return stateNow(old) == schedule.Queued && stateNow(new) == schedule.Running }, begun, takenLease},
	{schedule.Resume, bumped(schema.Attempts, 1), begun, takenLease},
	{"settle", func(old, new Row) bool { return settled(new) && !settled(old) }, []string{schema.State, schema.LeaseOwner, schema.LeaseEnd, schema.WakeAt, schema.OpenShard, schema.SettledAt,
		schema.SettledBy, schema.Submitted, schema.Skipped, schema.ErrorCode, schema.ErrorText, schema.History, schema.Timeline, schema.QueryScanned, schema.QueryMicros}, byHolder},
	{schedule.Yield, bumped(schema.Yields, 1), []string{schema.LeaseOwner, schema.LeaseEnd, schema.WakeAt, schema.Yields, schema.AttemptsLeft, schema.Timeline}, nil},
	{schedule.Release, func(old, new Row) bool {
		return Text(old, schema.LeaseOwner) != "" && Text(new, schema.LeaseOwner) == ""
	},
		[]string{schema.LeaseOwner, schema.LeaseEnd, schema.WakeAt, schema.ErrorCode, schema.ErrorText, schema.Timeline, schema.QueryEnded, schema.QueryScanned, schema.QueryMicros}, nil},
	{schedule.Reoffer, bumped(schema.Offers, 1), []string{schema.WakeAt, schema.Offers, schema.DeadLetters, schema.Timeline}, unheld},
	{schedule.RecordFile, appears(schema.File), []string{schema.File, schema.FileExpires, schema.LinkExpires, schema.Timeline, schema.QueryScanned, schema.QueryMicros}, nil},
	{schedule.RecordQuery, bumped(schema.QueryNumber, 1), []string{schema.QueryNumber, schema.QueryID, schema.QueryEnded, schema.Timeline}, nil},
	{schedule.AskToStop, appears(schema.StopBy), []string{schema.StopBy, schema.StopWhy, schema.Timeline}, nil},
	{"", appears(schema.LinksRevoked), []string{schema.LinksRevoked, schema.Timeline}, nil},
}

var begun = []string{schema.State, schema.LeaseOwner, schema.LeaseEnd, schema.WakeAt, schema.OpenShard, schema.Offers, schema.DeadLetters, schema.Attempts, schema.AttemptsLeft, schema.Timeline}

func takenLease(w *World, c Change) error {
	switch {
	case figure(c.Old, schema.AttemptsLeft) < 1:
		return fmt.Errorf("no attempt remained")
	case Text(c.New, schema.LeaseOwner) == "" || Text(c.New, schema.LeaseOwner) == Text(c.Old, schema.LeaseOwner):
		return fmt.Errorf("no new holder")
	case figure(c.New, schema.Offers) != 0 || figure(c.New, schema.DeadLetters) != 0:
		return fmt.Errorf("offers and dead letters are not counted anew")
	}
	return unheld(w, c)
}

// unheld is that nobody held the run as it was, by a clock that is as far ahead as one may be.
func unheld(w *World, c Change) error {
	if end := wallOf(c.Old, schema.LeaseEnd); end.After(w.Now().Add(w.maxSkew())) {
		return fmt.Errorf("%s holds the run until %s", Text(c.Old, schema.LeaseOwner), end)
	}
	return nil
}

// byHolder is that a run is settled by who holds it, or, when its attempts are spent, by whoever finds it unheld.
func byHolder(w *World, c Change) error {
	by := Text(c.New, schema.SettledBy)
	switch {
	case by == "":
		return fmt.Errorf("by nobody")
	case by == Text(c.Old, schema.LeaseOwner):
		return nil
	case stateNow(c.New) != schedule.Failed || figure(c.Old, schema.AttemptsLeft) > 0:
		return fmt.Errorf("by %s, and %q holds it", by, Text(c.Old, schema.LeaseOwner))
	}
	return unheld(w, c)
}

// runMoves holds a run's change against table A.
func runMoves(w *World, c Change) error {
	if c.Table != Schedules || !isRun(c.row()) {
		return nil
	}
	if c.New == nil {
		return fmt.Errorf("a run is gone")
	}
	if spent := figure(c.New, schema.Attempts) - figure(c.New, schema.Yields); figure(c.New, schema.AttemptsLeft) != w.Schedule.MaxAttempts-spent {
		return fmt.Errorf("%d attempts and %d yields leave %d of %d", figure(c.New, schema.Attempts), figure(c.New, schema.Yields), figure(c.New, schema.AttemptsLeft), w.Schedule.MaxAttempts)
	}
	if figure(c.New, schema.Yields) > w.Schedule.MaxYields {
		return fmt.Errorf("%d yields", figure(c.New, schema.Yields))
	}
	if c.Old == nil {
		return allowed(schedule.Runs, c.Old, c.New, schedule.Admit)
	}
	names := changed(c.Old, c.New)
	if settled(c.Old) && !appears(schema.LinksRevoked)(c.Old, c.New) && len(names) > 0 {
		return fmt.Errorf("it had settled, and changes %v", names)
	}
	event, err := judge(w, c, runEvents, names)
	switch {
	case err != nil || event == "":
		return err
	case event == "settle":
		return allowed(schedule.Runs, c.Old, c.New, schedule.Succeed, schedule.SkipEmpty, schedule.Fail)
	}
	return allowed(schedule.Runs, c.Old, c.New, event)
}

var beside = []string{schema.Bounce, schema.Complaint, schema.Rejection, schema.BounceAgain, schema.ComplaintAgain, schema.RejectionAgain, schema.RevokedAt}

func fromTo(from, to schedule.SubmissionState) func(old, new Row) bool {
	return func(old, new Row) bool {
		return Text(old, schema.State) == string(from) && Text(new, schema.State) == string(to)
	}
}

var submissionEvents = []shape[schedule.SubmissionEvent]{
	{schedule.Accept, fromTo(schedule.Pending, schedule.Submitted), []string{schema.State, schema.ProviderID, schema.UpdatedAt, schema.Reason, schema.Detail}, unmarked},
	{schedule.Refuse, fromTo(schedule.Pending, schedule.NotDelivered), []string{schema.State, schema.Reason, schema.Detail, schema.UpdatedAt, schema.NotAccepted, schema.RetryAt}, ofRecipient},
	{schedule.LoseTrack, fromTo(schedule.Pending, schedule.Unknown), []string{schema.State, schema.Detail, schema.UpdatedAt}, unmarked},
	{schedule.Abandon, fromTo(schedule.Pending, schedule.NotSent), []string{schema.State, schema.Reason, schema.RetryAt, schema.UpdatedAt}, marked},
	{schedule.TakeOver, func(old, new Row) bool {
		return fromTo(schedule.Pending, schedule.Pending)(old, new) && (differs(schema.Owner)(old, new) || yes(old, schema.NotAccepted) && !yes(new, schema.NotAccepted))
	}, []string{schema.Owner, schema.UpdatedAt, schema.NotAccepted, schema.RetryAt, schema.Tries, schema.Frozen, schema.BodyHash, schema.Body}, mayTakeOver},
	{schedule.NoteNotAccepted, fromTo(schedule.Pending, schedule.Pending), []string{schema.NotAccepted, schema.RetryAt, schema.Detail, schema.UpdatedAt}, nil},
	{schedule.AcceptLate, fromTo(schedule.Unknown, schedule.Submitted), []string{schema.State, schema.ProviderID, schema.UpdatedAt, schema.Reason, schema.Detail}, nil}, // or resolved
	{schedule.ResolveSkipped, fromTo(schedule.Unknown, schedule.NotDelivered), []string{schema.State, schema.UpdatedAt, schema.Reason, schema.Detail}, nil},
	{schedule.Resend, fromTo(schedule.Unknown, schedule.Pending), []string{schema.State, schema.Owner, schema.OwnerUntil, schema.Resends, schema.UpdatedAt, schema.ResendWish, schema.ResendBy,
		schema.ResendWhy, schema.Detail, schema.Reason, schema.RetryAt, schema.Body, schema.Tries, schema.BodyHash, schema.Frozen}, wished},
	{"", func(old, new Row) bool {
		return fromTo(schedule.Unknown, schedule.Unknown)(old, new) && appears(schema.ResendWish)(old, new)
	},
		[]string{schema.ResendWish, schema.ResendBy, schema.ResendWhy}, nil},
}

func unmarked(_ *World, c Change) error {
	if yes(c.Old, schema.NotAccepted) {
		return fmt.Errorf("it is marked as not accepted")
	}
	return nil
}

func marked(_ *World, c Change) error {
	if !yes(c.Old, schema.NotAccepted) {
		return fmt.Errorf("it is not marked as not accepted")
	}
	return nil
}

func ofRecipient(_ *World, c Change) error {
	if !slices.Contains([]string{channel.ReasonRemoved, channel.ReasonUnsubscribed, channel.ReasonSuppressed, channel.ReasonInvalid, channel.ReasonRefused}, Text(c.New, schema.Reason)) {
		return fmt.Errorf("%q is no verdict on a recipient", Text(c.New, schema.Reason))
	}
	return nil
}

func mayTakeOver(_ *World, c Change) error {
	if !yes(c.Old, schema.NotAccepted) && !strings.HasPrefix(Text(c.Old, schema.SK), schema.SubPrefix+channel.Webhook+"#") {
		return fmt.Errorf("it may have been accepted, and its channel honours no keys")
	}
	if Text(c.Old, schema.BodyHash) != "" && (differs(schema.BodyHash)(c.Old, c.New) || len(slices.DeleteFunc(changed(c.Old, c.New), func(n string) bool { return n != schema.Body && n != schema.Frozen })) > 0) {
		return fmt.Errorf("its body was rendered before, and is another now")
	}
	return nil
}

func wished(_ *World, c Change) error {
	switch {
	case Text(c.Old, schema.ResendWish) == "" || Text(c.New, schema.ResendWish) != "":
		return fmt.Errorf("without a person's wish, or the wish stays")
	case figure(c.New, schema.Resends) != figure(c.Old, schema.Resends)+1:
		return fmt.Errorf("under the key of the request before")
	}
	return nil
}

// submissionMoves holds a submission's change against table B.
func submissionMoves(w *World, c Change) error {
	if c.Table != Schedules || !isSubmission(c.row()) {
		return nil
	}
	if c.New == nil {
		return fmt.Errorf("a submission is gone")
	}
	if c.Old == nil {
		if Text(c.New, schema.State) == string(schedule.Pending) && (figure(c.New, schema.Tries) == 0) != yes(c.New, schema.NotAccepted) {
			return fmt.Errorf("an intent of %d tries, marked: %v", figure(c.New, schema.Tries), yes(c.New, schema.NotAccepted))
		}
		return allowed(schedule.Submissions, c.Old, c.New, schedule.Intend, schedule.Abandon)
	}
	names := changed(c.Old, c.New)
	if len(names) == 0 || !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(beside, n) }) {
		return nil
	}
	if schedule.Submissions.Settled(schedule.SubmissionState(Text(c.Old, schema.State))) {
		return fmt.Errorf("it had its outcome, and changes %v", names)
	}
	event, err := judge(w, c, submissionEvents, names)
	switch {
	case err != nil || event == "":
		return err
	case event == schedule.AcceptLate:
		return allowed(schedule.Submissions, c.Old, c.New, event, schedule.ResolveSubmitted)
	}
	return allowed(schedule.Submissions, c.Old, c.New, event)
}

var (
	dueNames   = []string{schema.NextDueAt, schema.DueShard}
	effectful  = []string{schema.LastRun, schema.LastRunNominal, schema.LastRunState, schema.LastRunCode, schema.LastSuccess, schema.Streak, schema.OpenRun}
	pausedBy   = []string{schema.State, schema.PauseReason, schema.PausedBy, schema.PausedAt}
	stateFrom  = func(it Row) schedule.State { return schedule.State(Text(it, schema.State)) }
	changeFrom = func(from, to schedule.State) func(old, new Row) bool {
		return func(old, new Row) bool { return stateFrom(old) == from && stateFrom(new) == to }
	}
)

var scheduleEvents = []shape[schedule.Event]{
	{schedule.Pause, changeFrom(schedule.Active, schedule.Paused), slices.Concat(dueNames, effectful, pausedBy), nil},
	{schedule.ResumeIt, changeFrom(schedule.Paused, schedule.Active), slices.Concat(dueNames, pausedBy), nil},
	{schedule.Delete, func(old, new Row) bool {
		return stateFrom(old) != schedule.Deleted && stateFrom(new) == schedule.Deleted
	}, slices.Concat(dueNames, []string{schema.State, schema.ExpiresAt, schema.DirKind, schema.DirName}), nil},
	{schedule.Edit, bumped(schema.Version, 1), slices.Concat(dueNames, []string{schema.Version, schema.Name}), nil},
	{schedule.PassOver, differs(schema.LastNominal), slices.Concat(dueNames, []string{schema.LastNominal, schema.OpenRun, schema.SkipFirst, schema.SkipKind}), movesOn}, // or an admission
	{"", differs(schema.LastRunNominal), effectful, nil},
	{"", differs(schema.OpenRun), effectful, nil},
	{"", differs(schema.LastSuccess), effectful, nil},
}

// movesOn is that a schedule goes from the occurrence that it stood on to later ones.
func movesOn(_ *World, c Change) error {
	switch last, next := wallOf(c.New, schema.LastNominal), wallOf(c.New, schema.NextDueAt); {
	case last.Before(wallOf(c.Old, schema.NextDueAt)):
		return fmt.Errorf("it stood on %s, and %s is done", Text(c.Old, schema.NextDueAt), Text(c.New, schema.LastNominal))
	case !next.IsZero() && !next.After(last):
		return fmt.Errorf("it is done until %s, and stands on %s", Text(c.New, schema.LastNominal), Text(c.New, schema.NextDueAt))
	case Text(c.New, schema.OpenRun) != Text(c.Old, schema.OpenRun) && !last.Equal(wallOf(c.Old, schema.NextDueAt)):
		return fmt.Errorf("%s was admitted, and %s was due", Text(c.New, schema.OpenRun), Text(c.Old, schema.NextDueAt))
	}
	return nil
}

// scheduleMoves holds a schedule's change against table C.
func scheduleMoves(w *World, c Change) error {
	if c.Table != Schedules || !isSchedule(c.row()) {
		return nil
	}
	if c.New == nil {
		return fmt.Errorf("a schedule is gone")
	}
	if c.Old == nil {
		return allowed(schedule.Schedules, c.Old, c.New, schedule.Create)
	}
	names := changed(c.Old, c.New)
	if len(names) == 0 {
		return nil
	}
	event, err := judge(w, c, scheduleEvents, names)
	if err != nil || event == "" {
		return err
	}
	return allowed(schedule.Schedules, c.Old, c.New, event)
}

// indexesRight holds the attributes by which a row stands in an index against what the row is.
func indexesRight(_ *World, c Change) error {
	if c.Table != Schedules || c.New == nil {
		return nil
	}
	there := func(name string) bool { return c.New[name] != nil }
	switch {
	case isRun(c.New):
		open := !settled(c.New)
		for _, name := range []string{schema.OpenShard, schema.WakeAt} {
			if there(name) != open {
				return fmt.Errorf("it is %s, and %s is there: %v", stateNow(c.New), name, there(name))
			}
		}
		if open && Text(c.New, schema.OpenShard) != schema.OpenShardOf(runID(c.New), stateNow(c.New) == schedule.Running) {
			return fmt.Errorf("it stands in %s", Text(c.New, schema.OpenShard))
		}
		if lease := there(schema.LeaseOwner); lease != there(schema.LeaseEnd) || lease && stateNow(c.New) != schedule.Running {
			return fmt.Errorf("it is %s, and its lease is %q until %q", stateNow(c.New), Text(c.New, schema.LeaseOwner), Text(c.New, schema.LeaseEnd))
		}
	case isSchedule(c.New):
		if there(schema.NextDueAt) != there(schema.DueShard) || there(schema.DueShard) && stateFrom(c.New) != schedule.Active {
			return fmt.Errorf("it is %s, and due at %q in %q", stateFrom(c.New), Text(c.New, schema.NextDueAt), Text(c.New, schema.DueShard))
		}
		if there(schema.DirKind) == (stateFrom(c.New) == schedule.Deleted) {
			return fmt.Errorf("it is %s, and in the directory: %v", stateFrom(c.New), there(schema.DirKind))
		}
	}
	return nil
}

// recordedOnce holds of versions, audits, skip records and dead letters.
func recordedOnce(_ *World, c Change) error {
	if c.Table != Schedules || c.Old == nil {
		return nil
	}
	pk, sk := Text(c.Old, schema.PK), Text(c.Old, schema.SK)
	names := changed(c.Old, c.New)
	var may []string
	switch {
	case strings.HasPrefix(sk, schema.DefPrefix), strings.HasPrefix(pk, "AUDIT#"), strings.HasPrefix(sk, schema.AccessPrefix):
	case strings.HasPrefix(sk, schema.SkipPrefix):
		may = []string{schema.Last, schema.Count, schema.ExpiresAt}
		if c.New != nil && (wallOf(c.New, schema.Last).Before(wallOf(c.Old, schema.Last)) || figure(c.New, schema.Count) < figure(c.Old, schema.Count)) {
			return fmt.Errorf("it is shorter than before")
		}
	case strings.HasPrefix(sk, schema.DeadPrefix):
		may = []string{schema.UpdatedAt}
	default:
		return nil
	}
	if c.New == nil {
		return fmt.Errorf("it is gone")
	}
	for _, n := range names {
		if !slices.Contains(may, n) {
			return fmt.Errorf("its %s is another", n)
		}
	}
	return nil
}
