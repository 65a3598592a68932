// Package schema spells the names of tables, indexes and attributes, and builds every key. Store, infrastructure and
// tests read them from here.
//
// # Records of the table Schedules
//
//	record            key                                        what guards it
//	schedule, hot     SCHED#id / STATE                           table C: state, version, next due as read
//	definition        SCHED#id / DEF#version                     put in the transaction that moves the schedule to it
//	run               SCHED#id / RUN#occurrence                  table A: state, lease owner, wake_at as read
//	skip record       SCHED#id / SKIP#first#kind                 each attribute set if absent: the first one stands
//	submission        RUN#run / SUB#channel#recipient            table B: state, owner
//	link access       RUN#run / ACCESS#channel#recipient#at#id   put, written once
//	suppression       RCPT#channel#recipient / SUPPRESSED        put if absent, or lifted before that happened; lifting: not lifted yet
//	unsubscription    RCPT#channel#recipient / UNSUB#schedule    put if absent
//	workspace         WS#id / META                               put by configuration, in one transaction with its audit
//	source            SOURCE#name / META                         put by configuration, in one transaction with its audit
//	group             GROUP#id / META                            version as read, or absent; in one transaction with its audit
//	group's version   GROUP#id / DEF#version                     put in the transaction that moves the group to it
//	audit             AUDIT#subject / at#id                      put if absent, in the transaction of the act itself
//	dead letter       DEAD / DEAD#message                        put if absent
//	notice            OUTBOX#shard / OUT#run#kind#chan#recipient put in the settle's transaction; next_at as read
//	resend            OUTBOX#shard / OUT#run#chan#recipient#wish put in the wish's transaction; next_at as read
//	control           CONTROL / stage                            put if both switches stand as read, in one transaction with its audit
//	send rate         RATE#channel / stage                       taken_until within bounds, and another's; to begin anew: as read
//	business clock    CONTROL / stage#CLOCK                      put; read in the local profile only
//
// An audit's subject is what was acted on: a schedule's id, a run's id, "workspace id", "source name", "group id". Its id is the
// act's own token. So neither is there without the other, and an act whose reply was lost is known by its audit when it
// is sent again. Due occurrences are nobody's act and carry none.
//
// A skip record's kind is gap, missed or twice: a range that a change of the clocks left out and one that was missed may
// begin at the same instant.
//
// A notice (an item of the outbox) holds all that it is rendered from. Its worker sends and deletes it at once; what was
// left the sweep has sent, and TTL takes it after four days.
//
// What a mail service says of a mail after it has accepted it stands beside the outcome, on the submission: the first
// bounce, complaint and rejection each, set if absent, and beside them the first of the last resend that has one, which a
// later resend's replaces. A submission that has expired is not brought back. A permanent bounce and a complaint suppress
// the address for every schedule; the record is kept when a person lifts it, so that word of what happened before does not
// suppress again.
//
// A send rate is one number: the wall time, in microseconds, up to which all send times of a channel are taken. Its owner
// is the token of the last move, by which one whose reply was lost is known.
//
// A submission holds what its body is rendered from; a webhook's holds the whole body, deflated (RFC 1951).
//
// A definition whose recipients do not fit its row (more than 500, or too many bytes), and a retry with more than 500
// targets, name an object of the files bucket instead: recipients/<SHA-256 of its bytes>.json, put before the row. The
// row holds its hash and how many entries it has; who reads it checks both. Nothing removes such an object: equal lists
// are one object, and versions are kept.
//
// A group's row holds no members: each saved list is a version of its own, and may stand apart as a definition's recipients
// do. A definition's row names its groups, also where its recipients stand apart; a run's row says which version each had
// when it was admitted, and a retry takes those of the run that it repeats. Nothing removes a version.
//
// A person's wish that an unknown be sent again stands on its submission, put if there is none, in one transaction with
// its audit and with an item of the outbox. Who carries it out takes it off in the write that makes the submission theirs,
// and deletes the item once the submission is settled or unknown again; until then the sweep offers it. A retry as new names the run
// that it repeats, and whom it sends to.
//
// The times at which a run's file and its links end stand on the run and come with the file: before there is a file,
// there are none.
//
// One recipient's link is taken back by a mark on the submission, all links of a run by a mark on the run, each put if
// absent and in one transaction with its audit. A link access names whose link was used, when and for what; neither
// address nor program of who used it is kept.
//
// A download token and an unsubscribe token are no records of their own: they name their submission and carry a secret
// derived from the one that stands on it, so that a delivery with a link costs no third write.
//
// # Access patterns
//
//	pattern                                   key or index                        consistency
//	schedules due until now, a shard          due: due_shard, next_due_at         eventual; suggests only
//	begun runs to look at, a shard            open: open_shard running#…, wake_at eventual; suggests only
//	queued runs to look at, a shard           open: open_shard queued#…, wake_at  eventual; suggests only
//	schedules of a workspace, or all          directory: dir_kind, dir_name       eventual; rows read consistently after
//	workspaces, sources, groups               directory: dir_kind, dir_name       eventual; rows read consistently after
//	suppressed recipients                     directory: dir_kind, dir_name       eventual; rows read consistently after
//	one schedule, definition, run, workspace, its key                             consistent
//	  source, group's version, submission, control, suppression, send rate
//	runs of a schedule                        SCHED#id, RUN#…                     consistent
//	skip records of a schedule                SCHED#id, SKIP#…                    consistent
//	submissions of a run                      RUN#run, SUB#…                      consistent
//	what people did to a subject              AUDIT#subject                       consistent
//	versions of a definition                  SCHED#id, DEF#…                     consistent
//	versions of a group                       GROUP#id, DEF#…                     consistent
//	before an admission that has groups       up to 20 keys in one BatchGetItem   consistent
//	who opened a run's links                  RUN#run, ACCESS#…                   consistent
//	messages that nobody could read           DEAD, DEAD#…                        consistent
//	notices, resends not yet sent, a shard    OUTBOX#shard, OUT#…                 consistent
//	before one notice: notice, control,       three keys in one BatchGetItem      consistent
//	  suppression
//	before one recipient: run, control,       five keys in one BatchGetItem       consistent
//	  submission, suppression, unsubscription
//
// Queued and begun runs stand in partitions of their own, so that a long queue hides no run whose worker died.
//
// # Write units of the indexes
//
// They are paid beside the table's: one for an item that enters or leaves an index, two where its place in it changes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.Writes). A test of internal/store
// measures each line.
//
//	write                                            due   open   directory
//	create a schedule; never due                     1; 0  –      1
//	edit; the next due time stays                    2; 0  –      –
//	pass over                                        2     –      –
//	pause, resume                                    1     –      –
//	delete; nothing due                              1; 0  –      1
//	admit; a manual run                              2; 0  1      –
//	begin, resume, release, yield, re-offer          –     2      –
//	record file, record query, ask to stop           –     0      –
//	settle                                           –     1      –
//	save a workspace, source or group; again         –     –      1; 0
//	suppress, lift                                   –     –      1
//
// # Records of the table Snapshots
//
//	record            key                                        what guards it
//	series            WS#w#TYPE#t / SERIES                       put if absent; the planner's place as read
//	period head       WS#w#TYPE#t / P#month                      latest version and its state as read, active version
//	run               WS#w#TYPE#t / P#month#V#version            table D: state, job (the fencing token), cursor as read
//	current version   WS#w#TYPE#t / CURRENT#month                the version that was current as read
//	roll back         WS#w#TYPE#t / MOVE#month#at#id             put in the transaction of the roll back
//	chunk             SNAP#run#G#generation / CHUNK#number       put if absent, in one transaction with the run's cursor
//	owner             OWNER#o / CAPS                             its slots: the run's id absent, and the caps
//	definition, hot   WS#w or OWNER#o / SNAPDEF#type             the version in force as read
//	definition        WS#w or OWNER#o / SNAPDEF#type#V#version   put if absent, in the transaction that puts it in force
//	audit             AUDIT#subject / at#id                      put if absent, in the transaction of the act itself
//
// Workspaces, sources, switches and the business clock stand in the table Schedules.
//
// A head says which versions a month has had and which one is under way. Every write that makes a run, or ends one for
// good, carries it, so that a month has one active version at most. The run has the month's bounds as they were at planning.
//
// An owner's item has two maps of run ids: slots, of every admitted run, and backfill, of those of them that are backfills.
// A claim puts the id there in the transaction that queues the run; whatever settles the run takes it out, and taking out an
// id that is not there changes nothing. The item comes with the owner's first planned run.
//
// A chunk's object is named by its generation, number and a token of the invocation: two invocations leave two objects, and
// the record says which one counts. The run's row is written with each chunk. It stays within one KB, a write unit, unless
// the text of a failure makes it longer; so bounds of a generation are one short text, and a chunk leaves no line in the
// timeline.
//
// A person's request for a version may have a key of its own. The id of its audit is made of it, so that asking again finds
// what it made.
//
// The current version's row names the one before it. A publication is known by its run, a roll back by a record of its own.
//
// # Access patterns of the table Snapshots
//
//	pattern                                   key or index                        consistency
//	series to plan, a shard                   plan: plan_shard, plan_at           eventual; suggests only
//	planned runs of an owner, oldest month    work: planned#owner#kind, work_at   eventual; suggests only
//	  first
//	retries of an owner that are due          work: retry#owner#kind, work_at     eventual; suggests only
//	admitted runs of an owner                 work: open#owner, work_at           eventual; suggests only
//	late months, a shard                      late: late_shard, late_at           eventual; suggests only
//	runs whose leftovers go, a shard          settled: settled#…, settled_at      eventual; suggests only
//	final failures, a shard                   settled: failed#…, settled_at       eventual; suggests only
//	definitions, series, owners               directory: dir_kind, dir_name       eventual; rows read consistently after
//	one run, head, current version, series,   its key                             consistent
//	  definition, owner
//	months of a series                        WS#w#TYPE#t, P#…                    consistent
//	months from one to another with their     WS#w#TYPE#t, P#from to P#to#V#…;    consistent
//	  versions and current ones               CURRENT#from to CURRENT#to
//	versions of a month                       WS#w#TYPE#t, P#month#V#…            consistent
//	versions of a definition                  WS#w or OWNER#o, SNAPDEF#type#V#…   consistent
//	roll backs of a month                     WS#w#TYPE#t, MOVE#month#…           consistent
//	chunks of a generation from a number on   SNAP#run#G#generation, CHUNK#…      consistent
//
// A month that was never planned has no row: its series' row stands in the index of late months for the first of them. A
// month leaves that index when a version of it is published, or when nobody waits for it: skipped or cancelled for policy or
// a removed workspace, or waived.
//
// # Write units of the indexes of the table Snapshots
//
//	write                                            work   plan   late   settled   directory
//	plan; the owner's first                          1      –      1      –         –; 1
//	plan ineligible: loading; policy after it        –      –      1; 1   –         –
//	request: a late month; a published one           1      –      1; –   –         –
//	claim, retry now, fail with a retry              2      –      –      –         –
//	re-offer, attach, start, resume, commit chunk,   –      –      –      –         –
//	  record query, begin validation, record
//	  verdict, free, roll back
//	publish                                          1      –      1      1         –
//	fail for good, cancel by a person                1      –      –      1         –
//	cancel by the planner, of a late month           1      –      1      1         –
//	cleaned                                          –      –      –      1         –
//	put a series                                     –      1      1      –         1
//	move a series; and its late time                 –      2      –; 2   –         –
//	save an owner or definition; again               –      –      –      –         1; 0
package schema
