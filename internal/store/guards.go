package store

import (
	"fmt"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"
)

// facts are the values that conditions compare with, and what the caller vouches for.
type facts struct {
	owner    string    // the worker's token
	earlier  string    // submissions: the owner as read
	now      time.Time // wall time
	wake     time.Time // wake_at as read
	yields   int       // how many yields a run may have
	file     string    // runs: the key of the file as read; "" where there was none
	schedule *schedule.Schedule
	run      snapshot.Run       // monthly snapshots: the run as read
	before   time.Time          // monthly snapshots: an offer at or before it has waited long enough
	current  int                // monthly snapshots: the current version as read
	query    string             // monthly snapshots: what a query is for
	decided  []transition.Guard // guards that the caller decided before the write
}

// guard is what a guard of the tables means in a condition expression. One that only its caller can decide has no
// expression: a row that needs it is refused unless the caller vouches for it in facts.decided.
type guard struct {
	expr    func(*expression, facts) string
	decider string // who decides, where DynamoDB cannot
}

var guards = map[transition.Guard]guard{
	schedule.NoRun:          absent(),
	schedule.NoSubmission:   absent(),
	schedule.NoSchedule:     absent(),
	schedule.ScheduleAsRead: {decider: "the transaction's write to the schedule carries it; a manual run has none"},
	schedule.WakeAsRead:     {expr: func(e *expression, f facts) string { return e.equals(schema.WakeAt, schema.Time(f.wake)) }},
	schedule.WakePast:       {expr: func(e *expression, f facts) string { return e.name(schema.WakeAt) + " <= " + e.value(f.now) }},
	schedule.FromDLQ:        {decider: "schedule-exhaust, which holds the message"},
	schedule.AttemptsRemain: {expr: func(e *expression, _ facts) string { return e.name(schema.AttemptsLeft) + " > " + e.value(0) }},
	schedule.AttemptsSpent:  {expr: func(e *expression, _ facts) string { return e.name(schema.AttemptsLeft) + " <= " + e.value(0) }},
	schedule.LeaseEnded: {expr: func(e *expression, f facts) string {
		return fmt.Sprintf("(attribute_not_exists(%s) OR %s < %s)", e.name(schema.LeaseEnd), e.name(schema.LeaseEnd), e.value(f.now))
	}},
	schedule.OwnLease:     {expr: func(e *expression, f facts) string { return e.name(schema.LeaseOwner) + " = " + e.value(f.owner) }},
	schedule.YieldsRemain: {expr: func(e *expression, f facts) string { return e.name(schema.Yields) + " < " + e.value(f.yields) }},
	schedule.OutOfTimeG:   {decider: "the consumer, by its deadline and the control item"},
	schedule.Progress:     {decider: "the consumer, which counts what it recorded"},
	schedule.NoFile:       missing(schema.File),
	schedule.FileRecorded: present(schema.File),
	schedule.EmptyFile: {expr: func(e *expression, _ facts) string {
		return e.name(schema.File) + "." + e.name(schema.FileRows) + " = " + e.value(0)
	}},
	schedule.FileAsRead: {expr: func(e *expression, f facts) string {
		if f.file == "" {
			return "attribute_not_exists(" + e.name(schema.File) + ")"
		}
		return e.name(schema.File) + "." + e.name(schema.FileKey) + " = " + e.value(f.file)
	}},
	schedule.NoQuery:        missing(schema.QueryID),
	schedule.QueryEnded:     {expr: func(e *expression, _ facts) string { return e.name(schema.QueryEnded) + " = " + e.value(true) }},
	schedule.AllOutcomes:    {decider: "the consumer, by a consistent query of the run's submissions"},
	schedule.SourceIsQuery:  {decider: "the consumer, by the frozen definition"},
	schedule.PolicySuppress: {decider: "the consumer, by the frozen definition"},
	schedule.PersonReason:   {decider: "the API, which demands a person and a reason"},

	schedule.LeaseByClock:   {decider: "the consumer, by its clock"},
	schedule.TimeReserve:    {decider: "the consumer, by its deadline"},
	schedule.OwnSubmission:  {expr: func(e *expression, f facts) string { return e.name(schema.Owner) + " = " + e.value(f.owner) }},
	schedule.OriginalOwner:  {expr: func(e *expression, f facts) string { return e.name(schema.Owner) + " = " + e.value(f.owner) }},
	schedule.VerdictKnown:   {decider: "the channel"},
	schedule.NothingTaken:   {decider: "the channel"},
	schedule.RunLeaseHeld:   {decider: "the consumer, by its clock"},
	schedule.MarkedNot:      present(schema.NotAccepted),
	schedule.NotMarked:      missing(schema.NotAccepted),
	schedule.HonoursKeys:    {decider: "the channel"},
	schedule.EmailChannel:   {decider: "the channel"},
	schedule.EarlierEnded:   {expr: func(e *expression, f facts) string { return e.name(schema.Owner) + " = " + e.value(f.earlier) }},
	schedule.ReplyLost:      {decider: "the channel"},
	schedule.RunAboutToFail: {decider: "the settle"},
	schedule.RunHasFile:     {decider: "the settle, by the run that it holds: the condition stands on the submission, which has no file"},

	schedule.AsRead: {expr: func(e *expression, f facts) string {
		return e.equals(schema.Version, f.schedule.Version) + " AND " + e.equals(schema.NextDueAt, schema.Time(f.schedule.NextDue))
	}},
	schedule.OpenAsRead:  {expr: func(e *expression, f facts) string { return e.equals(schema.OpenRun, f.schedule.OpenRun) }},
	schedule.PauseReason: {decider: "the settle by the code, or the API by a person"},

	snapshot.NoVersionRow:   absent(),
	snapshot.HeadFree:       {decider: "the transaction's write to the period's head carries it"},
	snapshot.HeadNotActive:  {decider: "the transaction's write to the period's head carries it"},
	snapshot.Eligible:       {decider: "the planner, by the source and the definition"},
	snapshot.OtherReason:    {decider: "the transaction's write to the period's head carries it"},
	snapshot.CapsPermit:     {decider: "the transaction's write to the owner's slots carries it"},
	snapshot.RetryScheduled: present(schema.NextAttempt),
	snapshot.RetryDue:       {expr: func(e *expression, f facts) string { return e.name(schema.NextAttempt) + " <= " + e.value(f.now) }},
	snapshot.SameJob:        {expr: func(e *expression, f facts) string { return e.name(schema.Job) + " = " + e.value(f.run.Job) }},
	snapshot.JobAsRead:      {expr: func(e *expression, f facts) string { return e.name(schema.Job) + " = " + e.value(f.run.Job) }},
	snapshot.NoJobAttached:  missing(schema.Execution),
	snapshot.WaitedFive: {expr: func(e *expression, f facts) string {
		return e.equals(schema.OfferedAt, schema.Time(f.run.OfferedAt)) + " AND " + e.name(schema.OfferedAt) + " <= " + e.value(f.before)
	}},
	snapshot.QueryAsRead: {expr: queryAsRead},
	snapshot.CursorAsRead: {expr: func(e *expression, f facts) string {
		return e.equals(schema.Generation, f.run.Generation) + " AND " + e.equals(schema.Cursor, f.run.Cursor.Chunk) + " AND " + e.equals(schema.CursorKey, f.run.Cursor.Key)
	}},
	snapshot.CursorAtEnd: {expr: func(e *expression, _ facts) string { return e.name(schema.CursorDone) + " = " + e.value(true) }},
	snapshot.NoQueryYet: {expr: func(e *expression, f facts) string {
		return fmt.Sprintf("(attribute_not_exists(%s) OR %s <> %s)", e.name(schema.QueryFor), e.name(schema.QueryFor), e.value(f.query))
	}},
	// snapshot.QueryHasEnded has the words, and the meaning, of schedule.QueryEnded.
	snapshot.VerdictPassed: {expr: func(e *expression, f facts) string {
		return e.equals(schema.Verdict, passed) + " AND " + e.equals(schema.Manifest, f.run.Manifest()) + " AND " + e.equals(schema.ComparedTo, f.current)
	}},
	snapshot.CurrentAsRead:   {decider: "the transaction's write to the current pointer carries it"},
	snapshot.ReasonGiven:     {decider: "the planner by the definition, or the API, which demands a person and a reason"},
	snapshot.FailureCounted:  {expr: func(e *expression, f facts) string { return e.name(schema.Failures) + " = " + e.value(f.run.Failures) }},
	snapshot.AttemptPersonal: {decider: "the planner by the definition, or the API, which demands a person and a reason"},
}

func queryAsRead(e *expression, f facts) string {
	noted := any("")
	if f.run.Query.Noted {
		noted = true
	}
	return e.equals(schema.QueryID, f.run.Query.ID) + " AND " + e.equals(schema.QueryNoted, noted)
}

func absent() guard {
	return guard{expr: func(e *expression, _ facts) string { return "attribute_not_exists(" + e.name(schema.PK) + ")" }}
}

func missing(attribute string) guard {
	return guard{expr: func(e *expression, _ facts) string { return "attribute_not_exists(" + e.name(attribute) + ")" }}
}

func present(attribute string) guard {
	return guard{expr: func(e *expression, _ facts) string { return "attribute_exists(" + e.name(attribute) + ")" }}
}

// condition spells a row of a table: the state as read, and one of its alternatives. An alternative with a guard that
// the caller did not vouch for is left out before a word of it is spelled, since DynamoDB refuses a request with a name
// or value that no expression uses; ok is false where none is left.
func condition[S, E ~string](e *expression, row transition.Row[S, E], f facts) (expr string, ok bool) {
	var left [][]transition.Guard
	free := false // an alternative that needs no condition at all: then the state alone decides
	for _, all := range row.When {
		if spelled, ok := toSpell(all, f); ok {
			left = append(left, spelled)
			free = free || len(spelled) == 0
		}
	}
	if len(left) == 0 {
		return "", false
	}
	if !free {
		var ors []string
		for _, all := range left {
			var ands []string
			for _, g := range all {
				ands = append(ands, guards[g].expr(e, f))
			}
			ors = append(ors, strings.Join(ands, " AND "))
		}
		if expr = ors[0]; len(ors) > 1 {
			expr = "((" + strings.Join(ors, ") OR (") + "))"
		}
	}
	if row.From == transition.Absent {
		return expr, true
	}
	state := e.name(schema.State) + " = " + e.value(string(row.From))
	if expr == "" {
		return state, true
	}
	return state + " AND " + expr, true
}

// toSpell lists the guards of an alternative that DynamoDB decides; ok is false where the caller did not vouch for one
// of the others.
func toSpell(all []transition.Guard, f facts) (spelled []transition.Guard, ok bool) {
	for _, g := range all {
		switch {
		case guards[g].expr != nil:
			spelled = append(spelled, g)
		case !vouched(f.decided, g):
			return nil, false
		}
	}
	return spelled, true
}

func vouched(decided []transition.Guard, g transition.Guard) bool {
	for _, d := range decided {
		if d == g {
			return true
		}
	}
	return false
}
