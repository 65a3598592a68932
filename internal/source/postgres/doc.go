// Package postgres reads rows out of a PostgreSQL database (design.md §4), by pgx's connection and the extended protocol.
//
// # Connections
//
// Each query, and each view, signs in anew and signs off at its end. TLS is 1.2 or later and verified in full, name and
// authority, unless the source says otherwise. The authorities are those that the source lists (ca), else the system's.
// Those of RDS are in no system's list and are not built in either: AWS publishes them by region, replaces them from time
// to time, and has others in other partitions, so a list in the program would age with it; the bundle of one region has a
// few kilobytes and goes into the source (https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.SSL.html).
// RDS Proxy and Redshift have certificates of public authorities, for which the system's list does.
//
// Who signs in is told by a SignIn: package signin reads a secret, or signs a token. A login that is refused is asked for
// anew, once: its secret may have been rotated.
//
// # Read-only
//
// A query runs in a transaction that is READ ONLY and REPEATABLE READ, of which it cannot get out: it is sent by the
// extended protocol, which takes one statement, and what is not a query with rows is refused before it runs. What it may
// read is what its login may read. A transaction that is read-only still lets functions do what no transaction holds: end
// other sessions, write files on the server, call other servers. So the login must be one without such rights: a role of
// its own with CONNECT, USAGE and SELECT alone, no superuser, no member of other roles, none of pg_signal_backend,
// pg_write_server_files, pg_execute_server_program, dblink or foreign servers.
//
// # Parameters
//
// A query names its parameters ":name"; one name is one parameter wherever it stands. Each is bound with the type that
// PostgreSQL gives a constant: 30 is an integer, 5000000000 a bigint, 0.5 numeric, a text whatever its place asks for, a
// time a timestamptz. Where the type cannot be told, cast(:name as date) tells it. A slice of an array up to a column is
// written with a space: a[1: n].
//
// # Cells
//
// Rows come in text form, and texts and decimals go on as the very bytes that the server sent.
//
//	smallint, integer, bigint, oid    integer
//	real, double precision            real, with NaN and the infinities
//	numeric                           decimal, every digit; NaN and the infinities are texts
//	boolean, bytea                    boolean, bytes
//	date                              date
//	timestamp                         timestamp without zone
//	timestamptz                       timestamp with zone, in UTC
//	all others                        text: time, interval (ISO 8601), uuid, json, arrays, enums, ranges, network addresses …
//
// Dates and times that are infinite, BC, or of the year 10000 and later are texts, as PostgreSQL writes them.
//
// # Ends
//
// A query that is not through within its time gives query_timeout; one that is cancelled, or whose rows are closed,
// source_unavailable. Each sends the server a request to cancel, and the server's own statement_timeout stands behind it.
//
// # Bounds
//
// A row has at most 32 MB, as sent and as cells (bytea is sent in hexadecimals). Nothing else is held in memory.
//
// # Views and months
//
// A view is one transaction. A month that is read by several invocations is read from several states of the database: the
// view's version is not known, a chunk begins after the key of the last, and the control query, read at the end, finds
// what has changed in between (design.md §4). A month in a single pass reads rows and control query from one state.
//
// # Behind proxies
//
// Settings of the session are sent when it begins. PgBouncer must let them pass (ignore_startup_parameters would drop
// them) and pool by session or transaction; RDS Proxy pins the session.
//
// # Redshift
//
// Redshift speaks this protocol, and was not tried. By its documents it differs so: it has no repeatable read (a
// transaction is serializable, the words are accepted and change nothing,
// https://docs.aws.amazon.com/redshift/latest/dg/r_BEGIN.html), no savepoints and no exported snapshots, so that views, and
// with them months, are refused; a part of the types above
// (https://docs.aws.amazon.com/redshift/latest/dg/c_unsupported-postgresql-datatypes.html: no bytea, uuid, interval columns,
// json, arrays, infinity); numeric has at most 38 digits; and it ignores or refuses some of the session's settings
// (https://docs.aws.amazon.com/redshift/latest/dg/c_redshift-and-postgres-sql.html).
package postgres
