// Package sqlite reads rows out of one SQLite database file (design.md §4, the embedded default).
//
// # Read-only
//
// The engine enforces it, four times over, and nothing here reads the text of a query: the file is opened with
// SQLITE_OPEN_READONLY, mode=ro and immutable=1; an authorizer that knows only SELECT, READ, harmless functions,
// recursion and schema look-ups refuses everything else while the statement is compiled; no database can be attached
// (SQLITE_LIMIT_ATTACHED is 0); and a statement that SQLite does not call read-only is not run.
//
// # Parameters
//
// A query names its parameters ":name". Each one that it uses must be given, and each one that is given must be used,
// save for the built-in ones (source.Builtins), which are given to every query. A bool is bound as 0 or 1. A time is bound as
// RFC 3339 text in UTC, "2013-06-01T13:00:00Z", with a fraction only if it has one: compare it as unixepoch(column) <
// unixepoch(:scheduled_time), or as datetime(column) < datetime(:scheduled_time), or as text where the column has the
// very same form.
//
// # Cells
//
// A cell has the storage class that SQLite gives it: INTEGER, REAL, TEXT, BLOB or NULL. Text stays as it is stored, also
// in columns declared DATE, DATETIME or TIMESTAMP, which have no class of their own. A column declared DECIMAL or
// NUMERIC whose affinity is TEXT ("DECIMAL TEXT") keeps exact digits, and such digits come out as decimals; a plain
// DECIMAL has been turned into a REAL by SQLite when it was stored.
//
// # Ends
//
// A query that is not through within its time gives query_timeout; so does one whose context's deadline passes. One
// whose context is cancelled, or whose rows are closed, gives source_unavailable, which passes: somebody else ended it,
// so another attempt may succeed. Both interrupt the engine between two instructions of its machine.
//
// # Bounds
//
// One cell or text within a query has at most 16 MB, a row 32 MB, and all queries of the process have 256 MB of memory
// together; a query that needs more gives query_failed. What cannot be bounded is one long call of a function, such as
// instr of one long text in another: SQLite looks for a stop between instructions only. The caller is told
// query_timeout all the same, while the engine goes on; Fetcher.Busy reports it, so that the process can be replaced.
package sqlite
