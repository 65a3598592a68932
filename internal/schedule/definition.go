package schedule

import (
	"time"

	"almanac/internal/artifact"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/schema"
	"almanac/internal/source"
)

// Definition is one immutable version of a schedule, as a person writes it. Runs name the version that they were
// admitted under and are delivered by it (case V4).
type Definition struct {
	ID         string          `json:"id"`
	Workspace  string          `json:"workspace"`
	Name       string          `json:"name"`
	Owner      string          `json:"owner"` // whom recipients ask
	Source     string          `json:"source"`
	Query      string          `json:"query"`
	Parameters Parameters      `json:"parameters,omitempty"`
	Recurrence calendar.Spec   `json:"recurrence"`
	File       File            `json:"file"`
	Empty      EmptyPolicy     `json:"empty,omitempty"`
	Recipients []Recipient     `json:"recipients"`
	Mail       Mail            `json:"mail,omitzero"`
	Limits     DefinitionLimit `json:"limits,omitzero"`

	CatchUp       CatchUp  `json:"catch_up,omitempty"`
	CatchUpWindow Duration `json:"catch_up_window,omitzero"` // with catch_up all; default DefaultWindow
	Overlap       Overlap  `json:"overlap,omitempty"`

	// PauseAfter is the failure streak at which a due occurrence's failure pauses the schedule; absent:
	// DefaultPauseAfter, -1: never. A pointer, so that a written 0 is refused instead of being taken for the default.
	PauseAfter *int        `json:"pause_after_failures,omitempty"`
	Notify     []Recipient `json:"notify,omitempty"` // who hears of the first failure of a streak, of a pause and of a recovery
}

// FailureLimit is the failure streak at which a due occurrence's failure pauses the schedule; NeverPause: none does.
func (d Definition) FailureLimit() int {
	if d.PauseAfter == nil {
		return DefaultPauseAfter
	}
	return *d.PauseAfter
}

// File says what the rows become and how long it is kept.
type File struct {
	artifact.Format
	RetentionDays int      `json:"retention_days,omitempty"` // one of Retentions; default 30
	LinkLife      Duration `json:"link_life,omitzero"`       // how long links to the file work; default: as long as the file is kept
}

// Retentions are the retention times of files, in days. Each is a prefix in the bucket with a lifecycle rule of its
// own, so that all files of a run expire together.
var Retentions = []int{1, 7, 30, 90, 365}

// EmptyPolicy says what happens when the query returns no rows.
type EmptyPolicy string

const (
	SuppressEmpty EmptyPolicy = "suppress" // nothing is sent; the run is skipped
	DeliverEmpty  EmptyPolicy = "deliver"  // a file without a row (default): the header only, or nothing where the kind has none
)

// Recipient is one address on one channel, or a group that stands for its members: exactly one of Email, Webhook and Group.
type Recipient struct {
	Email   string `json:"email,omitempty"`
	Webhook string `json:"webhook,omitempty"`
	Secret  string `json:"secret,omitempty"` // webhook: id of the signing secret
	Group   string `json:"group,omitempty"`  // id of a group
}

// Channel names the recipient's channel; ToGroup where a group stands.
func (r Recipient) Channel() string {
	switch {
	case r.Webhook != "":
		return channel.Webhook
	case r.Group != "":
		return ToGroup
	}
	return channel.Email
}

// Address is the recipient as the definition spells it; a group's id.
func (r Recipient) Address() string {
	switch {
	case r.Webhook != "":
		return r.Webhook
	case r.Group != "":
		return r.Group
	}
	return r.Email
}

// Mail is what a schedule may say in its own words.
type Mail struct {
	Subject      string `json:"subject,omitempty"`
	Introduction string `json:"introduction,omitempty"`
}

// DefinitionLimit narrows the source's limits.
type DefinitionLimit struct {
	Rows    int64  `json:"rows,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	Timeout string `json:"timeout,omitempty"` // e.g. "90s"
}

// Version is a definition with what the store knows about it.
type Version struct {
	Definition
	Number    int
	Hash      string // SHA-256 of the canonical JSON: equal definitions make no new version
	CreatedBy string
	CreatedAt time.Time
	List      ListRef  // where the recipients stand, if not on the definition's row
	Groups    []string // distinct groups among the recipients, known to an outline too
}

// ListRef names a list that does not fit a row and stands as an object of its own. The zero one names none.
type ListRef struct {
	Hash  string // SHA-256 of the object's bytes
	Count int    // of its entries
}

// Schedule is the hot row: what dispatch and settle change.
type Schedule struct {
	ID             string
	Workspace      string
	Name           string
	State          State
	Version        int
	NextDue        time.Time // zero: never again, or not active
	LastNominal    time.Time // nominal time of the last occurrence admitted or passed over
	Streak         int       // failures in a row
	LastRun        string    // occurrence key of the latest settled run
	LastRunNominal time.Time
	LastRunState   RunState
	LastRunCode    string
	LastSuccess    time.Time // nominal time of the latest success
	OpenRun        string    // occurrence key of the latest admitted run that has not settled
	SkipFirst      time.Time // the range of skipped occurrences that the last step was part of; zero: it was admitted
	SkipKind       SkipKind
	PauseReason    string
	PausedBy       string
	PausedAt       time.Time
	CreatedAt      time.Time
}

// Run is one occurrence on its way.
type Run struct {
	Schedule     string
	Occurrence   string // occurrence key
	Nominal      time.Time
	Manual       bool
	Version      int // of the definition
	Workspace    string
	State        RunState
	Attempts     int
	AttemptsLeft int // what remains of the budget; yields give theirs back
	Yields       int
	Offers       int
	DeadLetters  int
	LeaseOwner   string    // empty: no lease
	LeaseEnd     time.Time // wall time
	WakeAt       time.Time // wall time at which the sweep looks
	File         *RecordedFile
	FileExpires  time.Time // wall time
	LinkExpires  time.Time // wall time; never after FileExpires
	LinksRevoked time.Time // wall time at which a person took all its links back, those of later recipients too; zero: nobody did
	QueryNumber  int
	QueryID      string
	QueryEnded   bool        // it has ended without a result, for a reason that may pass
	QueryCost    source.Cost // of all its queries that have ended
	ErrorCode    string
	ErrorText    string
	StopBy       string
	StopWhy      string
	RequestedBy  string // manual runs
	RequestHash  string
	RetryOf      string         // the run that this one repeats; empty: none
	Targets      []string       // channel#hash of the recipients that a retry sends to; any other run has none
	TargetList   ListRef        // where they stand, if they are too many for the run's row; read by RunTargets
	Groups       map[string]int // versions of the definition's groups at the admission, by id; a retry has those of the run that it repeats
	CreatedAt    time.Time      // wall time
	SettledAt    time.Time      // wall time
	SettledBy    string         // lease token
	Submitted    int
	SkippedN     int
	History      string
	Timeline     []string
}

// ID names the run in messages, logs and routes.
func (r Run) ID() string { return schema.RunID(r.Schedule, r.Occurrence) }

// Settled reports whether the run has ended for good.
func (r Run) Settled() bool { return Runs.Settled(r.State) }

// LeaseLive reports whether another worker holds the run: a lease has ended when its end is past or it was released.
func (r Run) LeaseLive(now time.Time) bool {
	return r.State == Running && r.LeaseOwner != "" && !now.After(r.LeaseEnd)
}

// rest is how long a released run still waits for its next attempt; 0 or less: it does not. One that was offered again since,
// or that a person asked to stop, does not wait.
func (r Run) rest(now time.Time, t Timing) time.Duration {
	if r.State != Running || r.LeaseOwner != "" || r.Offers > 0 || r.StopBy != "" {
		return 0
	}
	return min(r.WakeAt.Add(-t.SweepReleased.Std()).Sub(now), t.BackoffMax.Std()) // release set it to the visibility and this
}

// RecordedFile is the one file of a run. Key holds the run and the writer's lease token, so that no later writer can
// overwrite it.
type RecordedFile struct {
	Key      string    `json:"key"`
	Name     string    `json:"name"`
	Rows     int64     `json:"rows"`
	Bytes    int64     `json:"bytes"`
	SHA256   string    `json:"sha256"`
	DataAsOf time.Time `json:"as_of"`
	Expires  time.Time `json:"-"` // wall time; stands on the run
	LinksEnd time.Time `json:"-"` // wall time, never after Expires; stands on the run
}

// Submission is one delivery request and what became of it.
type Submission struct {
	Run           string
	Channel       string
	RecipientHash string
	Recipient     string // the address, never logged
	State         SubmissionState
	Owner         string // token of the worker that sends

	OwnerUntil  time.Time // wall time at which the owner of a resend has ended; other owners end with the run's lease
	Resends     int       // how often a person had it sent again
	Wish        Wish      // that it be sent again; empty: none
	NotAccepted bool
	RetryAt     time.Time // beside NotAccepted: the receiver asked to be left alone until then
	Tries       int
	Frozen      channel.Frozen
	Token       string // secret of the download and unsubscribe links
	ProviderID  string
	Reason      string
	Detail      string
	RevokedAt   time.Time
	UpdatedAt   time.Time
	Feedback    []channel.Feedback // what the mail service said later, beside the state: the first of each kind, and of the last resend that has one
}

// Skip is one contiguous range of occurrences that did not run.
type Skip struct {
	Schedule    string
	Kind        SkipKind // why, as part of the record's key: two ranges may begin at one instant
	First, Last time.Time
	Count       int
	Reason      string
}

// SkipKind is why occurrences did not run.
type SkipKind string

const (
	SkipGap     SkipKind = "gap"     // a local time that a change of the clocks leaves out, policy skip
	SkipMissed  SkipKind = "missed"  // seen too late, and dropped by the catch-up policy
	SkipOverlap SkipKind = "overlap" // the run before it had not settled
	SkipTwice   SkipKind = "twice"   // the occurrence had been admitted before
)

// Look is what must be known before one recipient is asked, read at one moment.
type Look struct {
	Run          Run
	Control      Control
	Submission   *Submission // nil: none yet
	Suppressed   bool
	Unsubscribed bool
}

// ClockSetting is business time in the local profile: Base is the business time at the wall time Wall, and it flows on
// from there unless Frozen. The zero setting is wall time.
type ClockSetting struct {
	Base, Wall time.Time
	Frozen     bool
}

// At is the business time at a wall time.
func (c ClockSetting) At(wall time.Time) time.Time {
	switch {
	case c.Base.IsZero():
		return wall
	case c.Frozen:
		return c.Base
	}
	return c.Base.Add(wall.Sub(c.Wall))
}

// Audit is one act of a person.
type Audit struct {
	ID      string // of this act: a token
	Subject string // what was acted on, e.g. a run's or schedule's id
	At      time.Time
	Who     string
	What    string
	Why     string
	Before  string
	After   string
}

// DeadLetter is a message that nobody could read.
type DeadLetter struct {
	MessageID string
	Queue     string
	Body      string
	Reason    string
	At        time.Time
	// RedrivenAt is when a person last had it read again; zero: never.
	RedrivenAt time.Time
}

// Control is the red button of a stage.
type Control struct {
	DispatchOff bool
	SendOff     bool
}

// Workspace is a tenant: its zone is the default of its schedules.
type Workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Zone string `json:"zone"`
	// Owner groups workspaces under the caps of monthly snapshots; empty: "default".
	Owner string `json:"owner,omitempty"`
	// Start is the first month of monthly snapshots, such as "2026-02"; empty: as early as their definition says.
	Start string `json:"start,omitempty"`
	// Removed is when the workspace was removed, an instant in RFC 3339 or a date in its zone; empty: it is there.
	Removed string `json:"removed,omitempty"`
}

// words tells a workspace in an audit.
func (w Workspace) words() string {
	text := w.Name + ", " + w.Zone
	for _, part := range [][2]string{{"owner", w.Owner}, {"from", w.Start}, {"removed", w.Removed}} {
		if part[1] != "" {
			text += ", " + part[0] + " " + part[1]
		}
	}
	return text
}

// RemovedAt is the instant of Removed, a date's being its first; zero where there is none.
func (w Workspace) RemovedAt() (time.Time, error) {
	if w.Removed == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, w.Removed); err == nil {
		return at.UTC(), nil
	}
	zone, err := calendar.LoadZone(w.Zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.ParseInLocation(time.DateOnly, w.Removed, zone)
	return at.UTC(), err
}
