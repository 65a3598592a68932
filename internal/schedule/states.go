package schedule

import "almanac/internal/transition"

// RunState is a state of table A of the lifecycles: one run per occurrence.
type RunState string

const (
	// Queued: a due occurrence or a manual run has been admitted to the delivery queue. In: admit. Out: begin.
	// Rescue: the sweep offers its message again.
	Queued RunState = "queued"
	// Running: the consumer prepares the file and works through the recipients. In: begin. Out: succeed, skip empty,
	// fail. Rescue: when the lease has ended the next delivery resumes, or settles it where no attempt remains.
	Running RunState = "running"
	// Succeeded: the file is complete and every recipient's outcome is recorded as submitted or skipped. Settled.
	Succeeded RunState = "succeeded"
	// Skipped: the query returned no rows and the empty-result policy suppressed delivery. Settled.
	Skipped RunState = "skipped"
	// Failed: settled with a code after a refusal or after the attempts ran out; some recipients may already have
	// received a request. Settled; retry as new makes new work.
	Failed RunState = "failed"
)

// RunEvent is an event of table A.
type RunEvent string

const (
	Admit       RunEvent = "admit"
	Reoffer     RunEvent = "re-offer"
	Begin       RunEvent = "begin"
	Resume      RunEvent = "resume"
	Release     RunEvent = "release"
	Yield       RunEvent = "yield"
	RecordFile  RunEvent = "record file"
	RecordQuery RunEvent = "record query"
	Succeed     RunEvent = "succeed"
	SkipEmpty   RunEvent = "skip empty"
	Fail        RunEvent = "fail"
	AskToStop   RunEvent = "ask to stop"
)

// Guards of the three tables. The store holds the condition of each, or who decides it before the write.
const (
	NoRun          transition.Guard = "no run under the key"
	ScheduleAsRead transition.Guard = "due occurrence: the schedule active, version and next due as read"
	WakeAsRead     transition.Guard = "wake_at as read"
	WakePast       transition.Guard = "wake_at past"
	FromDLQ        transition.Guard = "its message came out of the DLQ"
	AttemptsRemain transition.Guard = "attempts remain"
	AttemptsSpent  transition.Guard = "no attempt remains"
	LeaseEnded     transition.Guard = "lease ended"
	OwnLease       transition.Guard = "own lease"
	YieldsRemain   transition.Guard = "yields below 200"
	OutOfTimeG     transition.Guard = "out of time, or send off"
	Progress       transition.Guard = "progress since begin, or send off"
	NoFile         transition.Guard = "no file recorded"
	FileRecorded   transition.Guard = "file recorded"
	// FileAsRead: until the run has settled an earlier holder may record its file; the recipients would then have no outcome,
	// and the holder would ask them.
	FileAsRead     transition.Guard = "the file, or its absence, as read"
	EmptyFile      transition.Guard = "file of 0 rows"
	NoQuery        transition.Guard = "no query recorded"
	QueryEnded     transition.Guard = "the recorded query ended without a result for a passing reason"
	AllOutcomes    transition.Guard = "a consistent read shows only submitted or skipped, all of them"
	SourceIsQuery  transition.Guard = "source is a query"
	PolicySuppress transition.Guard = "policy is suppress"
	PersonReason   transition.Guard = "a person, with reason"

	NoSubmission   transition.Guard = "no submission yet"
	LeaseByClock   transition.Guard = "the worker's lease not over by its own clock"
	TimeReserve    transition.Guard = "time reserve left"
	OwnSubmission  transition.Guard = "owner"
	VerdictKnown   transition.Guard = "a verdict on the recipient"
	NothingTaken   transition.Guard = "a coded 4xx or throttling that is no verdict on the address, a webhook's 429 or 503, or no byte was sent"
	RunLeaseHeld   transition.Guard = "run lease held"
	MarkedNot      transition.Guard = "marked not accepted"
	NotMarked      transition.Guard = "not marked"
	HonoursKeys    transition.Guard = "the channel honours keys"
	EarlierEnded   transition.Guard = "the earlier owner's lease ended"
	ReplyLost      transition.Guard = "reply lost"
	RunAboutToFail transition.Guard = "the run is about to fail"
	RunHasFile     transition.Guard = "a file is recorded on the run"
	EmailChannel   transition.Guard = "e-mail"
	OriginalOwner  transition.Guard = "the original owner"

	NoSchedule  transition.Guard = "id absent"
	AsRead      transition.Guard = "version and next due as read"
	OpenAsRead  transition.Guard = "for overlap open_run as read"
	PauseReason transition.Guard = "reason: by hand, source_access_denied, report_deleted, failures"
)

// Runs is table A. A due occurrence's admission is guarded on two items in one transaction.
var Runs = transition.Table[RunState, RunEvent]{
	Name:   "schedule run",
	States: []RunState{Queued, Running, Succeeded, Skipped, Failed},
	Rows: []transition.Row[RunState, RunEvent]{
		{From: transition.Absent, Event: Admit, To: Queued, When: transition.All(NoRun, ScheduleAsRead),
			With: "run naming the definition version; due occurrence: next due and last_nominal move on, open_run names the run"},
		{From: Queued, Event: Reoffer, To: Queued, When: transition.All(WakeAsRead, WakePast).Or(WakeAsRead, FromDLQ),
			With: "wake_at moves: 5 min × 2^offers, at most 1 h; then the message is sent"},
		{From: Queued, Event: Begin, To: Running, When: transition.All(AttemptsRemain),
			With: "attempt +1; lease (owner token, end = deadline + margin); offers and DLQ count 0"},
		{From: Running, Event: Resume, To: Running, When: transition.All(LeaseEnded, AttemptsRemain),
			With: "attempt +1; new lease; file and submissions stay; offers and DLQ count 0"},
		{From: Running, Event: Release, To: Running, When: transition.All(OwnLease),
			With: "lease cleared, last error kept, wake_at; that its query has ended without a result"},
		{From: Running, Event: Yield, To: Running, When: transition.All(OwnLease, YieldsRemain, OutOfTimeG, Progress),
			With: "lease cleared, yields +1; visibility 0"},
		{From: Running, Event: RecordFile, To: Running, When: transition.All(OwnLease, NoFile),
			With: "key, format, rows, bytes, SHA-256"},
		{From: Running, Event: RecordQuery, To: Running, When: transition.All(OwnLease, NoQuery).Or(OwnLease, QueryEnded),
			With: "query number +1, the engine's query id"},
		{From: Running, Event: Reoffer, To: Running, When: transition.All(LeaseEnded, WakeAsRead, WakePast).Or(LeaseEnded, WakeAsRead, FromDLQ),
			With: "as above"},
		{From: Running, Event: Succeed, To: Succeeded, When: transition.All(OwnLease, FileRecorded, AllOutcomes),
			With: "counts; schedule: streak 0, last run"},
		{From: Running, Event: SkipEmpty, To: Skipped, When: transition.All(OwnLease, SourceIsQuery, PolicySuppress, NoFile).Or(OwnLease, SourceIsQuery, PolicySuppress, EmptyFile),
			With: "history skipped_empty; schedule: last run"},
		{From: Running, Event: Fail, To: Failed, When: transition.All(OwnLease, FileAsRead).Or(LeaseEnded, AttemptsSpent, FileAsRead),
			With: "code and message; schedule: streak +1, last run; pause where the code calls for one"},
		{From: Queued, Event: AskToStop, To: Queued, When: transition.All(PersonReason), With: "by whom, why; audited"},
		{From: Running, Event: AskToStop, To: Running, When: transition.All(PersonReason), With: "by whom, why; audited"},
	},
}

// SubmissionState is a state of table B: one submission per run, channel and recipient.
type SubmissionState string

const (
	// Pending: the intent is recorded; a request may be on its way. Rescue: the next holder of the run takes over where
	// that cannot send twice, or loses track.
	Pending SubmissionState = "pending"
	// Submitted: the receiver accepted. Settled; bounces and complaints are added beside it.
	Submitted SubmissionState = "submitted"
	// NotDelivered: skipped with its reason: removed, unsubscribed, suppressed, invalid, refused. Settled.
	NotDelivered SubmissionState = "skipped"
	// Unknown: a request left and nobody knows whether it was accepted. Rescue: the original owner's late answer, or a
	// person who resends or resolves. Never resent unasked.
	Unknown SubmissionState = "unknown"
	// NotSent: the run failed before this recipient was asked, or what was asked was certainly not accepted. Settled.
	NotSent SubmissionState = "not_sent"
)

// SubmissionEvent is an event of table B.
type SubmissionEvent string

const (
	Intend           SubmissionEvent = "intend"
	Accept           SubmissionEvent = "accept"
	Refuse           SubmissionEvent = "refuse"
	NoteNotAccepted  SubmissionEvent = "note not accepted"
	TakeOver         SubmissionEvent = "take over"
	LoseTrack        SubmissionEvent = "lose track"
	AcceptLate       SubmissionEvent = "accept late"
	Resend           SubmissionEvent = "resend"
	ResolveSubmitted SubmissionEvent = "resolve as submitted"
	ResolveSkipped   SubmissionEvent = "resolve as skipped"
	Abandon          SubmissionEvent = "abandon"
)

// Submissions is table B.
var Submissions = transition.Table[SubmissionState, SubmissionEvent]{
	Name:   "submission",
	States: []SubmissionState{Pending, Submitted, NotDelivered, Unknown, NotSent},
	Rows: []transition.Row[SubmissionState, SubmissionEvent]{
		{From: transition.Absent, Event: Intend, To: Pending, When: transition.All(NoSubmission, LeaseByClock, TimeReserve),
			With: "owner token, body hash, and what the body is rendered from; a recipient that is not to be asked: the mark not accepted"},
		{From: Pending, Event: Accept, To: Submitted, When: transition.All(OwnSubmission), With: "provider's id"},
		{From: Pending, Event: Refuse, To: NotDelivered, When: transition.All(OwnSubmission, VerdictKnown), With: "reason"},
		{From: Pending, Event: NoteNotAccepted, To: Pending, When: transition.All(OwnSubmission, NothingTaken),
			With: "marked not accepted, until when the receiver asked to be left alone; no send while the mark stands"},
		{From: Pending, Event: TakeOver, To: Pending, When: transition.All(RunLeaseHeld, MarkedNot).Or(RunLeaseHeld, HonoursKeys, EarlierEnded),
			With: "new owner token, mark cleared, before the send; where a refusal follows, the mark stays"},
		{From: Pending, Event: LoseTrack, To: Unknown, When: transition.All(NotMarked, EmailChannel, OwnSubmission, ReplyLost).
			Or(NotMarked, EmailChannel, EarlierEnded).
			Or(NotMarked, HonoursKeys, RunAboutToFail, OwnSubmission, ReplyLost).
			Or(NotMarked, HonoursKeys, RunAboutToFail, EarlierEnded), With: "–"},
		{From: Unknown, Event: AcceptLate, To: Submitted, When: transition.All(OriginalOwner), With: "provider's id"},
		{From: Unknown, Event: Resend, To: Pending, When: transition.All(PersonReason),
			With: "a new key; owner = the operation that sends it, with a lease of its own; audited"},
		{From: Unknown, Event: ResolveSubmitted, To: Submitted, When: transition.All(PersonReason), With: "audited"},
		{From: Unknown, Event: ResolveSkipped, To: NotDelivered, When: transition.All(PersonReason), With: "audited"},
		{From: transition.Absent, Event: Abandon, To: NotSent, When: transition.All(NoSubmission, RunAboutToFail, RunHasFile), With: "the run's code"},
		{From: Pending, Event: Abandon, To: NotSent, When: transition.All(MarkedNot, RunAboutToFail), With: "the run's code"},
	},
}

// State is a state of table C: a schedule.
type State string

const (
	// Active: its due occurrences are admitted. In: create, resume. Out: pause, delete.
	Active State = "active"
	// Paused: nothing is admitted; runs admitted before go on. In: pause, by a person or by a failure's code. Out: a
	// person's resume.
	Paused State = "paused"
	// Deleted: the item stays until its runs expire, so that none of them meets a ghost. Settled.
	Deleted State = "deleted"
)

// Event is an event of table C.
type Event string

const (
	Create   Event = "create"
	Edit     Event = "edit"
	PassOver Event = "pass over"
	Pause    Event = "pause"
	ResumeIt Event = "resume"
	Delete   Event = "delete"
)

// Schedules is table C.
var Schedules = transition.Table[State, Event]{
	Name:   "schedule",
	States: []State{Active, Paused, Deleted},
	Rows: []transition.Row[State, Event]{
		{From: transition.Absent, Event: Create, To: Active, When: transition.All(NoSchedule), With: "version 1, first next due"},
		{From: Active, Event: Edit, To: Active, When: transition.All(AsRead),
			With: "version +1; recurrence and zone unchanged: next due stays; changed: the first time after both last_nominal and now"},
		{From: Paused, Event: Edit, To: Paused, When: transition.All(AsRead), With: "as above"},
		{From: Active, Event: PassOver, To: Active, When: transition.All(AsRead, OpenAsRead),
			With: "skip record put or extended; next due and last_nominal move on; no run"},
		{From: Active, Event: Pause, To: Paused, When: transition.All(AsRead, PauseReason), With: "reason"},
		{From: Paused, Event: ResumeIt, To: Active, When: transition.All(AsRead), With: "next due in the future: nothing missed while paused is sent"},
		{From: Active, Event: Delete, To: Deleted, When: transition.All(AsRead), With: "the item stays until its runs expire"},
		{From: Paused, Event: Delete, To: Deleted, When: transition.All(AsRead), With: "as above"},
	},
}
