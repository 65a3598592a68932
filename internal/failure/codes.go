package failure

// Codes by the package that makes them.
const (
	// anywhere
	InternalError Code = "internal_error"

	// internal/source
	SourceUnknown      Code = "source_unknown"
	SourceAccessDenied Code = "source_access_denied"
	SourceUnavailable  Code = "source_unavailable"
	QueryInvalid       Code = "query_invalid"
	QueryNotReadOnly   Code = "query_not_read_only"
	QueryFailed        Code = "query_failed"
	QueryTimeout       Code = "query_timeout"
	QueryTooManyRows   Code = "query_too_many_rows"
	QueryTooManyBytes  Code = "query_too_many_bytes"
	ParameterInvalid   Code = "parameter_invalid"

	// internal/source/athena
	QueryScansTooMuch Code = "query_scans_too_much"
	QueryTooSlow      Code = "query_too_slow"

	// internal/artifact
	FileTooLarge     Code = "file_too_large"
	FileUnavailable  Code = "file_unavailable"
	FileUnsupported  Code = "file_unsupported"
	FileInconsistent Code = "file_inconsistent"

	// internal/channel
	SenderRefused     Code = "sender_refused"
	SendThrottled     Code = "send_throttled"
	SendFailed        Code = "send_failed"
	ChannelMisconfig  Code = "channel_misconfigured"
	SecretUnavailable Code = "secret_unavailable"

	// internal/schedule
	ScheduleDeleted   Code = "schedule_deleted"
	ReportDeleted     Code = "report_deleted"
	DefinitionInvalid Code = "definition_invalid"
	StoppedByOperator Code = "stopped_by_operator"
	AttemptsExhausted Code = "attempts_exhausted"
	NeverStarted      Code = "never_started"
	DeliveryUnknown   Code = "delivery_unknown"
	OutOfTime         Code = "out_of_time"
	MessageInvalid    Code = "message_invalid"

	// internal/snapshot
	JobLost Code = "job_lost"

	// internal/snapshot: the steps of an attempt job
	KeyInvalid         Code = "key_invalid"
	SourceChanged      Code = "source_changed"
	ValidationMismatch Code = "validation_mismatch"
	ValidationRefused  Code = "validation_refused"
	StepDied           Code = "step_died"

	// internal/store
	StoreThrottled   Code = "store_throttled"
	StoreUnavailable Code = "store_unavailable"
)

// Entry is what the product knows about a code.
type Entry struct {
	Code    Code
	Owner   string // the package that makes it, below internal/
	Class   Class
	Meaning string // for the operator
	Remedy  string // what helps
	Quiet   bool   // no streak and no notice (lifecycles C, "At begin")
	Pauses  bool   // settling with it pauses an active schedule, the code being the reason
}

// Table lists every code once. Tests walk it: each package must provoke the codes that it owns.
var Table = []Entry{
	{Code: InternalError, Owner: "failure", Class: Passing, Meaning: "an error that no package foresaw", Remedy: "read the run's log by its run id"},

	{Code: SourceUnknown, Owner: "source", Class: Refusal, Meaning: "the definition names a source that is not configured, or its data file is not there", Remedy: "correct `source`, or upload the data file"},
	{Code: SourceAccessDenied, Owner: "source", Class: Refusal, Pauses: true, Meaning: "the source refused the product's role", Remedy: "give the role access, then resume the schedule"},
	{Code: SourceUnavailable, Owner: "source", Class: Passing, Meaning: "the source could not be reached", Remedy: "none: tried again by itself"},
	{Code: QueryInvalid, Owner: "source", Class: Refusal, Meaning: "the source does not understand the query", Remedy: "correct the query"},
	{Code: QueryNotReadOnly, Owner: "source", Class: Refusal, Meaning: "the query tried to change something or to reach another database", Remedy: "use a query that only reads"},
	{Code: QueryFailed, Owner: "source", Class: Refusal, Meaning: "the query broke while its rows were read", Remedy: "correct the query or the data"},
	{Code: QueryTimeout, Owner: "source", Class: Passing, Meaning: "the query did not end within its time", Remedy: "make the query cheaper or raise its time"},
	{Code: QueryTooManyRows, Owner: "source", Class: Refusal, Meaning: "the query returned more rows than its limit", Remedy: "narrow the query or raise `limits.rows`"},
	{Code: QueryTooManyBytes, Owner: "source", Class: Refusal, Meaning: "the query returned more bytes than its limit", Remedy: "narrow the query or raise `limits.bytes`"},
	{Code: ParameterInvalid, Owner: "source", Class: Refusal, Meaning: "the query and the definition disagree about parameters", Remedy: "declare each parameter that the query uses"},
	{Code: QueryScansTooMuch, Owner: "source/athena", Class: Refusal, Meaning: "the query scanned more bytes than its source or workgroup allows", Remedy: "narrow the query to fewer partitions or columns, or raise the source's `scan_limit` or the workgroup's limit"},
	{Code: QueryTooSlow, Owner: "source/athena", Class: Refusal, Meaning: "the query was paid for and did not end within its time; another one would be paid for as well", Remedy: "narrow the query to fewer partitions or columns, or raise `limits.timeout`"},

	{Code: FileTooLarge, Owner: "artifact", Class: Refusal, Meaning: "the file grew beyond its limit", Remedy: "narrow the query or raise `limits.bytes`"},
	{Code: FileUnavailable, Owner: "artifact", Class: Passing, Meaning: "the file could not be written or read", Remedy: "none: tried again by itself"},
	{Code: FileUnsupported, Owner: "artifact", Class: Refusal, Meaning: "a value that the format cannot hold", Remedy: "convert the column in the query"},
	{Code: FileInconsistent, Owner: "artifact", Class: Refusal, Meaning: "the stored file is not the one that was recorded", Remedy: "find out who changed the bucket; then retry as new"},

	{Code: SenderRefused, Owner: "channel", Class: Refusal, Meaning: "the mail account may not send: sandbox, identity not verified, or sending paused", Remedy: "mend the SES account, then retry as new"},
	{Code: SendThrottled, Owner: "channel", Class: Passing, Meaning: "the receiver or the mail account asked for a slower pace", Remedy: "none: tried again by itself"},
	{Code: SendFailed, Owner: "channel", Class: Passing, Meaning: "the receiver could not be reached or answered with an error of its own", Remedy: "none: tried again by itself"},
	{Code: ChannelMisconfig, Owner: "channel", Class: Refusal, Meaning: "the channel lacks configuration that it needs", Remedy: "complete the configuration named in the message"},
	{Code: SecretUnavailable, Owner: "channel", Class: Passing, Meaning: "the signing secret could not be read", Remedy: "check the secret and the function's right to read it"},

	{Code: ScheduleDeleted, Owner: "schedule", Class: Refusal, Quiet: true, Meaning: "the schedule was deleted before the run began", Remedy: "none"},
	{Code: ReportDeleted, Owner: "schedule", Class: Refusal, Pauses: true, Meaning: "the schedule's report was deleted", Remedy: "restore the report, then resume the schedule"},
	{Code: DefinitionInvalid, Owner: "schedule", Class: Refusal, Meaning: "the definition version that the run names cannot be used", Remedy: "save the schedule, or the group that the message names, again; then run it"},
	{Code: StoppedByOperator, Owner: "schedule", Class: Refusal, Meaning: "a person asked the run to stop", Remedy: "none"},
	{Code: AttemptsExhausted, Owner: "schedule", Class: Refusal, Meaning: "every attempt ended in a passing failure or died", Remedy: "read the last error; when its cause is gone, retry as new"},
	{Code: NeverStarted, Owner: "schedule", Class: Refusal, Meaning: "the run's message reached the dead-letter queue three times without an attempt between", Remedy: "look at the function's errors and throttles; then retry as new"},
	{Code: DeliveryUnknown, Owner: "schedule", Class: Refusal, Meaning: "a request was sent and its answer was lost: it may or may not have been accepted", Remedy: "ask the recipient; then resend or resolve"},
	{Code: OutOfTime, Owner: "schedule", Class: Passing, Meaning: "the invocation had no time left and made no progress", Remedy: "none: tried again by itself"},
	{Code: MessageInvalid, Owner: "schedule", Class: Refusal, Meaning: "a queue message that names no run", Remedy: "find its sender; only dispatch, sweep, exhaust and the API send"},

	{Code: JobLost, Owner: "snapshot", Class: Passing, Meaning: "the attempt job closed, or is gone, and has not settled the run", Remedy: "none: tried again by itself; look at the execution named on the run if it comes again"},

	{Code: KeyInvalid, Owner: "snapshot", Class: Refusal, Meaning: "a row's key is NULL, of a wrong type, or does not increase", Remedy: "name a key column that increases strictly from row to row, or mend the data; then ask for a new version"},
	{Code: SourceChanged, Owner: "snapshot", Class: Passing, Meaning: "the source changed between the calls that read a month: its columns, or anything of it where a single pass is to be of one view", Remedy: "none: the next attempt reads everything again"},
	{Code: ValidationMismatch, Owner: "snapshot", Class: Passing, Meaning: "the rows that were read, or the stored files, are not what the control query or the records say", Remedy: "none at first: tried again from the first chunk; if it stays, compare query and control query"},
	{Code: ValidationRefused, Owner: "snapshot", Class: Refusal, Meaning: "a check of the result failed that reading again does not mend: drift, NULLs or types", Remedy: "mend the data and ask for a new version, or accept the check by name"},
	{Code: StepDied, Owner: "snapshot", Class: Passing, Meaning: "a step's process died or did not answer at any of its tries", Remedy: "look at the function's memory and logs; it is tried again by itself"},

	{Code: StoreThrottled, Owner: "store", Class: Passing, Meaning: "DynamoDB asked for a slower pace", Remedy: "none: tried again by itself"},
	{Code: StoreUnavailable, Owner: "store", Class: Passing, Meaning: "DynamoDB could not be reached, or the reply was lost", Remedy: "none: tried again by itself"},
}

// Lookup finds a code's entry.
func Lookup(code Code) (Entry, bool) {
	for _, e := range Table {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}
