package sqlite

import (
	"errors"
	"strings"

	lib "modernc.org/sqlite/lib"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// phase tells an error of the query's text from one of its data.
type phase int

const (
	compiling phase = iota
	reading
)

// fail turns a result code of SQLite into a failure. sql is the text that it speaks of, "" where there is none.
func (c *conn) fail(err error, p phase, sql string) *failure.Failure {
	var e *codeError
	if !errors.As(err, &e) {
		return failure.Wrap(failure.SourceUnavailable, err, "the database could not be used")
	}
	if c != nil && c.auth != nil && c.auth.denied != "" {
		return failure.Wrap(failure.QueryNotReadOnly, e, "the query tries to %s; a query may only read: use one SELECT on this database", c.auth.denied)
	}
	f := classify(e, p)
	if f.Code == failure.QueryInvalid {
		f.Message += source.Where(sql, e.offset) + c.advice(e.msg)
	}
	return f
}

// classify is the one place where SQLite's codes (https://sqlite.org/rescode.html) become the product's.
func classify(e *codeError, p phase) *failure.Failure {
	if e.rc == lib.SQLITE_IOERR_NOMEM {
		e = &codeError{rc: lib.SQLITE_NOMEM, msg: e.msg, offset: e.offset}
	}
	switch e.rc & 0xff {
	case lib.SQLITE_NOTADB:
		return failure.Wrap(failure.SourceUnknown, e, "the data file is not an SQLite database: upload one whose first bytes are \"SQLite format 3\"")
	case lib.SQLITE_CANTOPEN:
		return failure.Wrap(failure.SourceUnavailable, e, "SQLite could not open a file: %s", e.msg)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return failure.Wrap(failure.SourceUnavailable, e, "the database is locked by another process: %s", e.msg)
	case lib.SQLITE_NOMEM:
		return failure.Wrap(failure.QueryFailed, e, "the query needs more than the %d MB of memory that queries have (%s): return fewer or smaller cells in a row, and build no long texts", maxHeap>>20, e.msg)
	case lib.SQLITE_IOERR:
		return failure.Wrap(failure.SourceUnavailable, e, "SQLite ran into a limit of its machine: %s", e.msg)
	case lib.SQLITE_READONLY, lib.SQLITE_AUTH, lib.SQLITE_PERM:
		return failure.Wrap(failure.QueryNotReadOnly, e, "the query tries to write (%s); a query may only read", e.msg)
	case lib.SQLITE_CORRUPT:
		return failure.Wrap(failure.QueryFailed, e, "the data file is damaged (%s): upload it again, and check it with PRAGMA integrity_check", e.msg)
	case lib.SQLITE_TOOBIG:
		if p == reading {
			return failure.Wrap(failure.QueryFailed, e, "a cell or a text within the query passes %d bytes (%s)", maxCell, e.msg)
		}
	case lib.SQLITE_FULL:
		return failure.Wrap(failure.QueryFailed, e, "the query needs more temporary space than there is (%s): sort or group fewer rows", e.msg)
	}
	if p == compiling {
		return failure.Wrap(failure.QueryInvalid, e, "SQLite does not understand the query: %s", e.msg)
	}
	return failure.Wrap(failure.QueryFailed, e, "the query broke while its rows were read: %s; correct the expression or the data", e.msg)
}

// advice says what would be right, where that can be known.
func (c *conn) advice(msg string) string {
	switch {
	case strings.HasPrefix(msg, "no such table"):
		const most = 12
		tables := c.names("SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name LIMIT 13")
		switch {
		case len(tables) == 0:
			return "; the file has no tables at all"
		case len(tables) > most:
			return "; among the file's tables are: " + strings.Join(tables[:most], ", ")
		}
		return "; the file's tables are: " + strings.Join(tables, ", ")
	case strings.HasPrefix(msg, "no such column"):
		return "; check the spelling, and write text in 'single quotes'"
	case strings.HasPrefix(msg, "no such function"):
		return "; https://sqlite.org/lang_corefunc.html lists the functions"
	}
	return ""
}
