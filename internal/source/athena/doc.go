// Package athena reads rows out of queries that Amazon Athena runs (design.md §4): the distributed engine for those who
// outgrow one machine. A query goes on whether or not its caller lives, is paid for by the bytes that it scans, and
// leaves its result as an object in S3.
//
// # One query, paid for once
//
// A query is started under its ticket's token, which Athena promises to answer with the same query however often it is
// asked, and its id is recorded before anybody waits for it. Who comes later waits for that query. What Athena does not
// promise is for how long it remembers a token; the recorded id does not depend on that. A token that was used with other
// parameters is an error: that happens where a worker died between start and record, and what the query is given has
// changed since (:last_success_time). Then the query is started under a token that holds the parameters too, and the
// first one is paid for in vain.
// https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
//
// # Waiting
//
// Open waits until the query has ended, with pauses that widen. When its context's deadline comes first, a query with a
// ticket runs on and Open returns source.ErrRunning; one without is stopped. limits.timeout counts from the query's
// submission, over all who wait for it, and ends it. That is a refusal (query_too_slow) once it has scanned something, since
// the next one would be paid for in the same way; one that was still queued may be asked again (query_timeout). Reading the
// result is bounded by the context alone.
//
// # The result: CSV, not UNLOAD
//
// The rows are read from the CSV that every SELECT leaves, not from an UNLOAD to Parquet, because the CSV is one object
// in the order that the query asks for, while UNLOAD writes files in parallel that "are not sorted relative to each other"
// (https://docs.aws.amazon.com/athena/latest/ug/unload.html): a saved query's ORDER BY would be lost. Nothing is lost in
// exchange. Every value is quoted and NULL alone is an empty field without quotes, so NULL and empty text differ (AWS's
// pages do not say so; measured against AWS at https://pyathena.dev/master/null_handling.html), numbers are written with
// all their digits, and the columns' types come from GetQueryResults. That action's own pages hold 1,000 rows each, so
// rows are not read by it.
//
// # Cells
//
//	tinyint … bigint                    integers
//	real, double                        floats, NaN and Infinity among them
//	decimal                             decimals, digit by digit
//	boolean, date                       themselves
//	timestamp                           the time as written, taken for UTC, as Athena does
//	timestamp with time zone            the instant
//	varbinary                           bytes
//	everything else                     text as Athena writes it: time, interval, array, map, row, json, uuid, …
//
// # Parameters
//
// :name becomes ? and the value an execution parameter. Athena takes each as SQL: a text in single quotes with those
// within doubled, a number bare, a time as TIMESTAMP '2013-06-01 13:00:00.000000' in UTC, a boolean as TRUE or FALSE. NULL
// is given as the word NULL: the page does not name it, but says that a value may be an expression (CAST). Parameters
// stand in the WHERE clause only, and have at most 1,024 characters.
// https://docs.aws.amazon.com/athena/latest/ug/querying-with-prepared-statements.html
//
// # Read-only
//
// The function's role enforces it: it may read the catalog and the data, and write nothing but results below their own
// prefix, where they expire. A statement that Athena calls anything but a SELECT is stopped besides, and refused.
//
// # No view
//
// A source.Viewer holds several queries at one version. Over tables of Hive's kind Athena has no such thing: each query
// reads the objects that it finds. So these sources are none. They are a source.Apart, whose queries stand each for itself: a
// month is made of one query's result, which is one object that nobody writes again, and its rows are Placed: another caller
// goes on at the byte where one has left off.
package athena
