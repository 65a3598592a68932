package snapshot

import "almanac/internal/transition"

// State is a state of table D: one run per workspace, type, period and version.
type State string

const (
	// Planned: the period's version is recorded for its owner's dispatcher to consider. In: plan, request. Out: claim,
	// cancel. Rescue: each tick of the dispatcher.
	Planned State = "planned"
	// Queued: admission reserved a slot and arranges the attempt job. In: claim. Out: start, fail, cancel. Rescue: the
	// dispatcher offers the same job again after five minutes; the reconciler fails a job that is closed or gone.
	Queued State = "queued"
	// Running: generation executes or resumes. In: start. Out: begin validation, fail, cancel. Rescue: the job's own
	// retry resumes at the cursor; the reconciler fails a run whose job has closed.
	Running State = "running"
	// Validating: the final step checks the generated result before publication. In: begin validation. Out: publish,
	// fail, cancel. Rescue: as running.
	Validating State = "validating"
	// Published: validated and published. Settled; later versions may replace it as current without removing it.
	Published State = "published"
	// Failed: the attempt failed. With a next attempt time it waits for that, without one it is final and settled.
	Failed State = "failed"
	// Skipped: planning found the period ineligible and recorded why. Settled; a revisit is a new version.
	Skipped State = "skipped"
	// Cancelled: with its reason. Settled; later cursor updates and publication are refused, committed chunks remain.
	Cancelled State = "cancelled"
)

// Event is an event of table D.
type Event string

const (
	Plan             Event = "plan"
	PlanIneligible   Event = "plan ineligible"
	Request          Event = "request"
	Claim            Event = "claim"
	RetryNow         Event = "retry now"
	Reoffer          Event = "re-offer"
	Attach           Event = "attach"
	Start            Event = "start"
	Resume           Event = "resume"
	CommitChunk      Event = "commit chunk"
	RecordQuery      Event = "record query"
	NoteQuery        Event = "note query"
	BeginValidation  Event = "begin validation"
	ResumeValidation Event = "resume validation"
	RecordVerdict    Event = "record verdict"
	Publish          Event = "publish"
	Fail             Event = "fail"
	Cancel           Event = "cancel"
)

// Guards of table D. The store holds the condition of each, or who decides it before the write.
const (
	NoVersionRow    transition.Guard = "no run under this version"
	HeadFree        transition.Guard = "period head: no version, or the latest is skipped, as read"
	HeadNotActive   transition.Guard = "period head: no active version, latest version as read"
	Eligible        transition.Guard = "the month is eligible"
	OtherReason     transition.Guard = "ineligible, and the latest version is not skipped for the same reason"
	CapsPermit      transition.Guard = "the owner's caps permit it"
	RetryScheduled  transition.Guard = "a retry is scheduled"
	RetryDue        transition.Guard = "the retry is due"
	SameJob         transition.Guard = "same job"
	JobAsRead       transition.Guard = "job as read"
	NoJobAttached   transition.Guard = "no job attached"
	WaitedFive      transition.Guard = "offered five minutes ago, as read"
	QueryAsRead     transition.Guard = "query as read"
	CursorAsRead    transition.Guard = "cursor as read"
	CursorAtEnd     transition.Guard = "cursor = end"
	NoQueryYet      transition.Guard = "none recorded for this generation and purpose"
	QueryHasEnded   transition.Guard = "the recorded query ended without a result for a passing reason"
	VerdictPassed   transition.Guard = "verdict passed, with this manifest hash and this current version"
	CurrentAsRead   transition.Guard = "the current pointer as the verdict compared with"
	ReasonGiven     transition.Guard = "reason and who"
	FailureCounted  transition.Guard = "failures as read"
	AttemptPersonal transition.Guard = "a person, with reason, or the planner"
)

// Runs is table D. Plan, plan ineligible and request are guarded on the period's head in the same transaction, claim on
// the owner's slots, publish on the current pointer.
var Runs = transition.Table[State, Event]{
	Name:   "monthly snapshot run",
	States: []State{Planned, Queued, Running, Validating, Published, Failed, Skipped, Cancelled},
	Rows: []transition.Row[State, Event]{
		{From: transition.Absent, Event: Plan, To: Planned, When: transition.All(NoVersionRow, HeadFree, Eligible),
			With: "version = last + 1, active on the head; bounds frozen"},
		{From: transition.Absent, Event: PlanIneligible, To: Skipped, When: transition.All(NoVersionRow, HeadFree, OtherReason),
			With: "reason: loading or policy"},
		{From: transition.Absent, Event: Request, To: Planned, When: transition.All(NoVersionRow, HeadNotActive, AttemptPersonal),
			With: "as plan, with who asked"},
		{From: Planned, Event: Claim, To: Queued, When: transition.All(CapsPermit, JobAsRead),
			With: "job +1, claimed at, execution and verdict cleared; slot taken; then the dispatcher starts the attempt job"},
		{From: Failed, Event: Claim, To: Queued, When: transition.All(RetryScheduled, RetryDue, CapsPermit, JobAsRead),
			With: "the same"},
		{From: Failed, Event: RetryNow, To: Failed, When: transition.All(RetryScheduled, AttemptPersonal), With: "next attempt time = now; audited"},
		{From: Queued, Event: Reoffer, To: Queued, When: transition.All(SameJob, NoJobAttached, WaitedFive), With: "offered at; the same execution name again"},
		{From: Queued, Event: Attach, To: Queued, When: transition.All(SameJob), With: "execution"},
		{From: Running, Event: Attach, To: Running, When: transition.All(SameJob), With: "execution"},
		{From: Queued, Event: Start, To: Running, When: transition.All(SameJob),
			With: "attempt +1; started at; execution; mode chosen once and kept; generation and cursor kept, or generation +1 and cursor 0"},
		{From: Running, Event: Resume, To: Running, When: transition.All(SameJob), With: "cursor and attempt count kept"},
		{From: Running, Event: CommitChunk, To: Running, When: transition.All(SameJob, CursorAsRead), With: "chunk record and cursor in one transaction"},
		{From: Running, Event: RecordQuery, To: Running, When: transition.All(SameJob, NoQueryYet).Or(SameJob, QueryHasEnded), With: "query number +1, the engine's query id"},
		{From: Validating, Event: RecordQuery, To: Validating, When: transition.All(SameJob, NoQueryYet).Or(SameJob, QueryHasEnded), With: "as above"},
		{From: Running, Event: NoteQuery, To: Running, When: transition.All(SameJob, QueryAsRead), With: "what became of the recorded query: whether it ended without a result, what it has cost"},
		{From: Validating, Event: NoteQuery, To: Validating, When: transition.All(SameJob, QueryAsRead), With: "as above"},
		{From: Running, Event: BeginValidation, To: Validating, When: transition.All(SameJob, CursorAtEnd), With: "–"},
		{From: Validating, Event: ResumeValidation, To: Validating, When: transition.All(SameJob), With: "attempt count kept"},
		{From: Validating, Event: RecordVerdict, To: Validating, When: transition.All(SameJob), With: "manifest hash, checks, current version compared with"},
		{From: Validating, Event: Publish, To: Published, When: transition.All(SameJob, VerdictPassed, CurrentAsRead),
			With: "current pointer (previous kept), head's active version cleared, slot freed"},
		{From: Queued, Event: Fail, To: Failed, When: transition.All(SameJob, FailureCounted),
			With: "failures +1; slot freed; retryable and below the fourth: next attempt time; otherwise final, head cleared"},
		{From: Running, Event: Fail, To: Failed, When: transition.All(SameJob, FailureCounted), With: "as above"},
		{From: Validating, Event: Fail, To: Failed, When: transition.All(SameJob, FailureCounted), With: "as above; the next attempt starts a new generation at chunk 0"},
		{From: Planned, Event: Cancel, To: Cancelled, When: transition.All(ReasonGiven), With: "reason and who; slot freed if there; head cleared"},
		{From: Queued, Event: Cancel, To: Cancelled, When: transition.All(ReasonGiven), With: "as above"},
		{From: Running, Event: Cancel, To: Cancelled, When: transition.All(ReasonGiven), With: "as above"},
		{From: Validating, Event: Cancel, To: Cancelled, When: transition.All(ReasonGiven), With: "as above"},
		{From: Failed, Event: Cancel, To: Cancelled, When: transition.All(RetryScheduled, ReasonGiven), With: "retry time cleared; head cleared"},
	},
}
