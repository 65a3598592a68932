package schema

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Attribute names of keys and indexes.
const (
	PK = "pk"
	SK = "sk"

	// IndexDue finds schedules whose next due time has come. Sparse: only active schedules carry DueShard.
	IndexDue  = "due"
	DueShard  = "due_shard"
	NextDueAt = "next_due_at"

	// IndexOpen finds runs that are not settled, by the wall time at which the sweep should look. Sparse.
	IndexOpen = "open"
	OpenShard = "open_shard"
	WakeAt    = "wake_at"

	// IndexDirectory lists schedules, workspaces, sources and groups by name. Written once, at creation.
	IndexDirectory = "directory"
	DirKind        = "dir_kind"
	DirName        = "dir_name"

	// ExpiresAt is the TTL attribute, in epoch seconds.
	ExpiresAt = "expires_at"
)

// Shards is how many partitions each of the due and open indexes is spread over, so that no index key takes all writes
// (a partition takes 1,000 write units a second: AWS, "Best practices for designing and using partition keys
// effectively in DynamoDB"). It can grow; shrinking it would hide items.
const Shards = 16

// Attribute names of records. Each is spelled here and nowhere else.
const (
	State     = "state"
	CreatedAt = "created_at"
	CreatedBy = "created_by"
	Body      = "body" // a JSON document
	Hash      = "hash" // SHA-256 of Body, hex
	Version   = "version"

	// a list that is too long for its row: the object that holds it
	RecipientsHash  = "recipients_hash" // of a definition
	RecipientsCount = "recipients_count"
	TargetsHash     = "targets_hash" // of a retry
	TargetsCount    = "targets_count"

	Groups     = "groups"     // of a definition: ids; of a run: versions by id
	Workspaces = "workspaces" // of a group's head
	Members    = "members"    // distinct ones of a group's present version

	// schedule, hot
	Workspace      = "workspace"
	Name           = "name"
	LastNominal    = "last_nominal"
	Streak         = "streak"
	LastRun        = "last_run"         // occurrence key
	LastRunNominal = "last_run_nominal" // what decides which run is the later one
	LastRunState   = "last_run_state"
	LastRunCode    = "last_run_code"
	LastSuccess    = "last_success" // nominal time of the latest run that succeeded
	OpenRun        = "open_run"
	SkipFirst      = "skip_first"
	SkipKind       = "skip_kind"
	PauseReason    = "pause_reason"
	PausedBy       = "paused_by"
	PausedAt       = "paused_at"
	Zone           = "zone"

	// run
	Nominal      = "nominal"
	Manual       = "manual"
	DefVersion   = "def_version"
	Attempts     = "attempts"
	AttemptsLeft = "attempts_left" // what remains of the budget: attempts less yields, counted down

	Yields       = "yields"
	Offers       = "offers"
	DeadLetters  = "dead_letters"
	LeaseOwner   = "lease_owner"
	LeaseEnd     = "lease_end"
	File         = "file"
	FileKey      = "key"
	FileName     = "name"
	FileRows     = "rows"
	FileBytes    = "bytes"
	FileSHA      = "sha256"
	FileAsOf     = "as_of"
	FileExpires  = "file_expires_at"
	LinkExpires  = "link_expires_at"
	QueryNumber  = "query_number"
	QueryID      = "query_id"
	QueryEnded   = "query_ended"
	QueryScanned = "query_scanned" // bytes, of all queries of the run
	QueryMicros  = "query_micros"  // what they cost, in millionths of a US dollar
	ErrorCode    = "error_code"
	ErrorText    = "error_text"
	StopBy       = "stop_by"
	StopWhy      = "stop_why"
	SettledAt    = "settled_at"
	SettledBy    = "settled_by"
	Submitted    = "submitted"
	Skipped      = "skipped"
	Timeline     = "timeline"
	RequestedBy  = "requested_by"
	RequestHash  = "request_hash"
	RetryOf      = "retry_of"    // id of the run that this one repeats
	Targets      = "targets"     // whom a retry sends to: channel#hash
	AdmittedBy   = "admitted_by" // token of the dispatcher or request that admitted
	History      = "history"

	LinksRevoked = "links_revoked_at" // a person took back all links of the run

	// submission
	Channel     = "channel"
	Recipient   = "recipient"
	Owner       = "owner"
	OwnerUntil  = "owner_until"
	Resends     = "resends"   // how often a person had it sent again
	ResendWish  = "resend_id" // the wish that it be sent again
	ResendBy    = "resend_by"
	ResendWhy   = "resend_why"
	NotAccepted = "not_accepted"
	BodyHash    = "body_hash"
	Frozen      = "frozen"
	Token       = "token"
	ProviderID  = "provider_id"
	Reason      = "reason"
	Detail      = "detail"
	RevokedAt   = "revoked_at"
	RetryAt     = "retry_at"
	Tries       = "tries"
	UpdatedAt   = "updated_at"

	// submission: what the mail service said later, a map each, with why and detail
	Bounce         = "bounce"
	Complaint      = "complaint"
	Rejection      = "rejection"
	BounceAgain    = "bounce_again" // of a resend, with its number
	ComplaintAgain = "complaint_again"
	RejectionAgain = "rejection_again"
	FeedbackAt     = "at"
	FeedbackType   = "type"
	FeedbackSub    = "subtype"
	FeedbackMail   = "mail"   // the provider's id of the mail
	FeedbackNumber = "number" // which request it was: 2 for the first resend

	// suppression, beside reason and created_at
	Run       = "run"
	LiftedAt  = "lifted_at"
	LiftedBy  = "lifted_by"
	LiftedWhy = "lifted_why"

	// skip record
	First = "first"
	Last  = "last"
	Count = "count"

	// outbox
	NextAt = "next_at" // wall time from which the sweep has a notice sent

	// send rate
	TakenUntil = "taken_until" // wall time in epoch microseconds, up to which all send times are taken

	// control and clock
	DispatchOff = "dispatch_off"
	SendOff     = "send_off"
	ClockBase   = "clock_base" // business time at ClockWall
	ClockWall   = "clock_wall"
	ClockFrozen = "clock_frozen"

	// dead letter, audit, access
	Message = "message"
	Queue   = "queue"
	Who     = "who"
	What    = "what"
	Why     = "why"
	Before  = "before"
	After   = "after"
)

// Partition and Sort are the two halves of a key. They are types, so that one cannot pass as the other.
type (
	Partition string
	Sort      string
)

// Key is the primary key of one item.
type Key struct {
	PK Partition
	SK Sort
}

func (k Key) String() string { return string(k.PK) + " / " + string(k.SK) }

// timeLayout is how instants are stored: UTC, milliseconds, fixed width, so that text order is time order and
// conditions can compare.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Time spells an instant for a row; the zero time is "".
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// ParseTime reads what Time wrote.
func ParseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(timeLayout, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("stored time %q: want the form %s", s, timeLayout)
	}
	return t, nil
}

func spread(prefix, id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s#%02d", prefix, h.Sum32()%Shards)
}

// DueShardOf and OpenShardOf name the index partition of a schedule and of a run. DueShardAt and OpenShardAt name the
// i-th one, for readers. Queued and running runs stand apart, so that a long queue hides no run whose worker died.
func DueShardOf(schedule string) string         { return spread("due", schedule) }
func OpenShardOf(run string, begun bool) string { return spread(openPrefix(begun), run) }
func DueShardAt(i int) string                   { return fmt.Sprintf("due#%02d", i) }
func OpenShardAt(i int, begun bool) string      { return fmt.Sprintf("%s#%02d", openPrefix(begun), i) }

func openPrefix(begun bool) string {
	if begun {
		return "running"
	}
	return "queued"
}

// Directory kinds.
const (
	DirSchedules  = "schedule"
	DirWorkspaces = "workspace"
	DirSources    = "source"
	DirGroups     = "group"

	DirSuppressions = "suppression"
)

// DirSuppressionName names a suppressed recipient in the directory.
func DirSuppressionName(channel, recipientHash string) string { return channel + "#" + recipientHash }

// DirScheduleName sorts a schedule below its workspace.
func DirScheduleName(workspace, schedule string) string { return workspace + "/" + schedule }

// RunID names a run in messages, logs and routes: schedule and occurrence key.
func RunID(schedule, occurrence string) string { return schedule + "@" + occurrence }

// SplitRunID takes a run id apart; ok is false where it is none.
func SplitRunID(run string) (schedule, occurrence string, ok bool) {
	schedule, occurrence, ok = strings.Cut(run, "@")
	return schedule, occurrence, ok && schedule != "" && occurrence != ""
}

func scheduleKey(id string) Partition { return Partition("SCHED#" + id) }

// The keys of every record; doc.go lists them beside their guards and access patterns.
func ScheduleKey(id string) Key { return Key{scheduleKey(id), "STATE"} }
func DefinitionKey(id string, version int) Key {
	return Key{scheduleKey(id), Sort(fmt.Sprintf("DEF#%06d", version))}
}
func RunKey(schedule, occurrence string) Key {
	return Key{scheduleKey(schedule), Sort(RunPrefix + occurrence)}
}
func SkipKey(schedule string, first time.Time, kind string) Key {
	return Key{scheduleKey(schedule), Sort(SkipPrefix + first.UTC().Format(time.RFC3339) + "#" + kind)}
}
func SubmissionKey(run, channel, recipientHash string) Key {
	return Key{SubmissionPartition(run), Sort(SubPrefix + channel + "#" + recipientHash)}
}
func SubmissionPartition(run string) Partition { return Partition("RUN#" + run) }
func AccessKey(run, channel, recipientHash string, at time.Time, id string) Key {
	return Key{SubmissionPartition(run), Sort(AccessPrefix + channel + "#" + recipientHash + "#" + Time(at) + "#" + id)}
}
func SuppressionKey(channel, recipientHash string) Key {
	return Key{Partition("RCPT#" + channel + "#" + recipientHash), "SUPPRESSED"}
}
func UnsubscriptionKey(channel, recipientHash, schedule string) Key {
	return Key{Partition("RCPT#" + channel + "#" + recipientHash), Sort("UNSUB#" + schedule)}
}
func WorkspaceKey(id string) Key { return Key{Partition("WS#" + id), "META"} }
func SourceKey(name string) Key  { return Key{Partition("SOURCE#" + name), "META"} }
func GroupKey(id string) Key     { return Key{Partition("GROUP#" + id), "META"} }
func GroupVersionKey(id string, version int) Key {
	return Key{GroupKey(id).PK, Sort(fmt.Sprintf("%s%06d", DefPrefix, version))}
}
func AuditKey(subject string, at time.Time, id string) Key {
	return Key{Partition("AUDIT#" + subject), Sort(Time(at) + "#" + id)}
}
func DeadLetterKey(messageID string) Key { return Key{"DEAD", Sort(DeadPrefix + messageID)} }
func ControlKey(stage string) Key        { return Key{"CONTROL", Sort(stage)} }
func ClockKey(stage string) Key          { return Key{"CONTROL", Sort(stage + "#CLOCK")} }

// SendRateKey is the row by which all workers of a stage share a channel's send rate.
func SendRateKey(channel, stage string) Key { return Key{Partition("RATE#" + channel), Sort(stage)} }

// OutboxShards is how many partitions the outbox is spread over. It is nearly always empty, and each tick reads them all.
// It can grow; shrinking it would hide items.
const OutboxShards = 4

// OutboxAt is the i-th partition of the outbox, for readers.
func OutboxAt(i int) Partition { return Partition(fmt.Sprintf("%s%02d", OutboxPrefix, i)) }

// OutboxPrefix begins the partitions of notices: the only rows that a function may delete.
const OutboxPrefix = "OUTBOX#"

// NoticeID names a notice by its run, kind and recipient: what is known at each try, and nothing that differs per try.
func NoticeID(run, kind, channel, recipientHash string) string {
	return strings.Join([]string{run, kind, channel, recipientHash}, "#")
}

// SplitNoticeID takes a notice's id apart; ok is false where it is none.
func SplitNoticeID(id string) (run, channel, recipientHash string, ok bool) {
	parts := strings.Split(id, "#")
	if len(parts) != 4 || parts[1] == "" || parts[2] == "" || parts[3] == "" {
		return "", "", "", false
	}
	_, _, ok = SplitRunID(parts[0])
	return parts[0], parts[2], parts[3], ok
}

// SplitDeliveryKey takes apart the key under which a request went to its receiver: run/channel#recipient, and /n for the
// n-th request from the second on; ok is false where it is none.
func SplitDeliveryKey(key string) (run, channel, recipientHash string, n int, ok bool) {
	run, rest, _ := strings.Cut(key, "/")
	target, number, again := strings.Cut(rest, "/")
	channel, recipientHash, _ = strings.Cut(target, "#")
	n = 1
	if again {
		var err error
		if n, err = strconv.Atoi(number); err != nil || n < 2 || strconv.Itoa(n) != number {
			return "", "", "", 0, false
		}
	}
	if _, _, ok = SplitRunID(run); !ok || channel == "" || recipientHash == "" || strings.Contains(recipientHash, "#") {
		return "", "", "", 0, false
	}
	return run, channel, recipientHash, n, true
}

// ResendID names a person's wish that a recipient's request be sent again.
func ResendID(run, channel, recipientHash, wish string) string {
	return strings.Join([]string{run, channel, recipientHash, wish}, "#")
}

// SplitResendID takes a resend's id apart; ok is false where it is none.
func SplitResendID(id string) (run, channel, recipientHash, wish string, ok bool) {
	parts := strings.Split(id, "#")
	if len(parts) != 4 || parts[1] == "" || parts[2] == "" || parts[3] == "" {
		return "", "", "", "", false
	}
	_, _, ok = SplitRunID(parts[0])
	return parts[0], parts[1], parts[2], parts[3], ok
}

// NoticeKey finds a notice by its id alone.
func NoticeKey(id string) Key {
	run, _, _ := strings.Cut(id, "#")
	h := fnv.New32a()
	h.Write([]byte(run))
	return Key{OutboxAt(int(h.Sum32() % OutboxShards)), Sort(OutPrefix + id)}
}

// ListPrefix begins the keys of long lists of recipients in the files bucket. No lifecycle rule may take them: a version
// that names one is used for as long as its runs are kept, and by whoever reads the history.
const ListPrefix = "recipients/"

// ListKey is where the list with this SHA-256 (lower-case hexadecimal) lies. Its bytes give it its name, so that writing
// it again changes nothing.
func ListKey(hash string) string { return ListPrefix + hash + ".json" }

// Sort key prefixes, for range reads.
const (
	OutPrefix    = "OUT#"
	RunPrefix    = "RUN#"
	SkipPrefix   = "SKIP#"
	SubPrefix    = "SUB#"
	AccessPrefix = "ACCESS#"
	DeadPrefix   = "DEAD#"
	DefPrefix    = "DEF#"
)
