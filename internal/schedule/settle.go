package schedule

import (
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

// Outcome is how a run settles.
type Outcome struct {
	Event     RunEvent // Succeed, SkipEmpty or Fail
	Code      failure.Code
	Message   string
	Submitted int
	Skipped   int
}

// Effect is what a settle changes on the schedule. Nil pointers leave a field as it is.
type Effect struct {
	LastRun   *LastRun
	Streak    *int
	Success   time.Time // non-zero: the new LastSuccess
	CloseOpen bool
	Pause     string             // non-empty: pause with this reason
	Notice    channel.NoticeKind // non-empty: those whom the definition names are told
}

// LastRun is the outcome of the latest settled run.
type LastRun struct {
	Occurrence string
	Nominal    time.Time
	State      RunState
	Code       string
}

// Empty reports that the schedule stays as it is.
func (e Effect) Empty() bool {
	return e.LastRun == nil && e.Streak == nil && e.Success.IsZero() && !e.CloseOpen && e.Pause == ""
}

// PausedByFailures is the reason of a pause that a streak of failures brought about.
const PausedByFailures = "failures"

// EffectOf decides what a settle means for the schedule as read and the definition that it has now (lifecycles A, "Streak
// and order", and C): +1 on failed, 0 on succeeded, unchanged on skipped; only a run later than the last one recorded
// changes streak and last run; open_run is cleared only where it names this run; a pause lands only on an active schedule.
//
// A person's resume leaves the streak as it is: until a run succeeds, the next failure of a due occurrence pauses again.
func EffectOf(s Schedule, d Definition, r Run, o Outcome) Effect {
	var e Effect
	if s.OpenRun == r.Occurrence {
		e.CloseOpen = true
	}
	entry, known := failure.Lookup(o.Code)
	if s.LastRunNominal.IsZero() || r.Nominal.After(s.LastRunNominal) {
		row, _ := Runs.Next(Running, o.Event)
		e.LastRun = &LastRun{r.Occurrence, r.Nominal, row.To, string(o.Code)}
		switch {
		case o.Event == Succeed:
			e.Streak = new(int)
		case o.Event == Fail && !entry.Quiet:
			n := s.Streak + 1
			e.Streak = &n
		}
	}
	if o.Event == Succeed && r.Nominal.After(s.LastSuccess) {
		e.Success = r.Nominal
	}
	if s.State == Active && o.Event == Fail {
		switch {
		case known && entry.Pauses:
			e.Pause = string(o.Code)
		case e.Streak != nil && !r.Manual && d.FailureLimit() != NeverPause && *e.Streak >= d.FailureLimit():
			e.Pause = PausedByFailures
		}
	}
	e.Notice = e.notice(s, o)
	return e
}

// notice is what people are told of an effect: a pause, else the first failure of a streak or its end. Of a deleted
// schedule they are told nothing.
func (e Effect) notice(s Schedule, o Outcome) channel.NoticeKind {
	switch {
	case s.State == Deleted:
	case e.Pause != "":
		return channel.NoticePaused
	case e.Streak == nil:
	case o.Event == Fail && s.Streak == 0:
		return channel.NoticeFailed
	case o.Event == Succeed && s.Streak > 0:
		return channel.NoticeRecovered
	}
	return ""
}

// NeedsDefinition reports whether an effect may differ by what the schedule's definition says. An ordinary success's
// does not, and costs no read of it.
func (e Effect) NeedsDefinition() bool {
	return e.Notice != "" || e.Streak != nil && *e.Streak > 0
}

// Lease is a worker's hold on a run: a fencing token and a bound in wall time, never extended.
type Lease struct {
	Token string
	Now   time.Time // wall time of the write
	End   time.Time // the invocation's deadline plus a margin
	Wake  time.Time // when the sweep should look
}

// Admission is a run to be admitted. For a due occurrence Schedule is the row as read, and NextDue where it moves on to.
type Admission struct {
	Run      Run
	Token    string // of the one who admits
	Schedule *Schedule
	NextDue  time.Time // zero: never again
	Skips    []Skip
	Audit    *Audit // a manual run: who asked
	TTL      time.Time
}
