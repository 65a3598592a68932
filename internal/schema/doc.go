// Package schema spells the names of tables, indexes and attributes, and builds every key. Store, infrastructure and
// tests read them from here.
//
// # Records of the table Schedules
//
//	record            key                                        what guards it
//	schedule, hot     SCHED#id / STATE                           table C: state, version, next due as read
//	definition        SCHED#id / DEF#version                     put in the transaction that moves the schedule to it
//	run               SCHED#id / RUN#occurrence                  table A: state, lease owner, wake_at as read
//	skip record       SCHED#id / SKIP#first                      put if absent
//	submission        RUN#run / SUB#channel#recipient            table B: state, owner
//	link access       RUN#run / ACCESS#channel#recipient#at#id   put, written once
//	suppression       RCPT#channel#recipient / SUPPRESSED        put (the latest reason wins)
//	unsubscription    RCPT#channel#recipient / UNSUB#schedule    put if absent
//	workspace         WS#id / META                               put by configuration
//	source            SOURCE#name / META                         put by configuration
//	audit             AUDIT#subject / at#id                      put, written once
//	dead letter       DEAD / DEAD#message                        put if absent
//	control           CONTROL / stage                            put by an operator
//	business clock    CONTROL / stage#CLOCK                      put; read in the local profile only
//
// A download token and an unsubscribe token are no records of their own: they name their submission and carry the
// secret that stands on it, so that a delivery with a link costs no third write.
//
// # Access patterns
//
//	pattern                                   key or index                        consistency
//	schedules due until now, a shard          due: due_shard, next_due_at         eventual; suggests only
//	runs to look at, a shard                  open: open_shard, wake_at           eventual; suggests only
//	schedules of a workspace, or all          directory: dir_kind, dir_name       eventual; rows read consistently after
//	one schedule, definition, run             its key                             consistent
//	runs of a schedule                        SCHED#id, RUN#…                     consistent
//	skip records of a schedule                SCHED#id, SKIP#…                    consistent
//	submissions of a run                      RUN#run, SUB#…                      consistent
//	before one recipient: run, control,       five keys in one BatchGetItem       consistent
//	  submission, suppression, unsubscription
package schema
