package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // its init patches the library for arm64
	lib "modernc.org/sqlite/lib"
)

// The driver for database/sql is not used: it turns text of columns declared DATE into times and so loses the text,
// it cannot be interrupted while rows are read, and it tells neither the parameters of a statement nor what follows
// it. This file is all that touches SQLite's own functions.

// maxCell bounds one cell, and with it the memory of string functions: https://sqlite.org/limits.html#max_length
const maxCell = 16 << 20

// maxHeap bounds what SQLite holds for all queries of the process together, its page caches included: 256 MB of the
// consumer's 1,024 (https://sqlite.org/c3ref/hard_heap_limit64.html). A query that needs more ends with SQLITE_NOMEM. The
// number of columns is not bounded below SQLite's own 2,000: SQLITE_LIMIT_COLUMN holds for the tables of the file too,
// and would shut a file out for one wide table.
const maxHeap = 256 << 20

// bounded is why maxHeap does not hold, nil if it does. The library is built without the counters that the limit
// needs; they can be switched on before its first use only, so this is done when the program starts.
var bounded = boundHeap()

func boundHeap() error {
	tls := libc.NewTLS()
	defer tls.Close()
	args := libc.Xmalloc(tls, 16)
	defer libc.Xfree(tls, args)
	if rc := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_MEMSTATUS, libc.VaList(args, int32(1))); rc != lib.SQLITE_OK {
		return &codeError{rc: rc, msg: "the limit of its memory could not be set", offset: -1}
	}
	lib.Xsqlite3_hard_heap_limit64(tls, maxHeap)
	if got := lib.Xsqlite3_hard_heap_limit64(tls, -1); got != maxHeap {
		return fmt.Errorf("the limit of SQLite's memory is %d bytes instead of %d", got, int64(maxHeap))
	}
	return nil
}

// transient tells SQLite to copy what is bound: https://sqlite.org/c3ref/c_static.html
const transient = ^uintptr(0)

// conn is one connection. Its methods must not run at the same time, except halt.
type conn struct {
	tls  *libc.TLS
	db   uintptr
	stop uintptr // an int32 in SQLite's memory: not 0 asks the running statement to end
	auth *authorizer
}

// at views an address of the library's heap, which the collector neither moves nor frees.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// cFunc is the address of a declared Go function in the form in which the translated library calls it.
func cFunc[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f T }{f})) }

// codeError is a result code of SQLite (https://sqlite.org/rescode.html) and its text.
type codeError struct {
	rc     int32
	msg    string
	offset int // of the token that caused it, in bytes; -1 if there is none
}

func (e *codeError) Error() string { return fmt.Sprintf("sqlite %d: %s", e.rc, e.msg) }

// openConn opens the file read-only and immutable, and shuts every door that a query could leave through.
func openConn(path string) (*conn, error) {
	if bounded != nil {
		return nil, bounded
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	c := &conn{tls: libc.NewTLS()}
	uri := "file:" + (&url.URL{Path: abs}).EscapedPath() + "?mode=ro&immutable=1"
	name, err := libc.CString(uri)
	if err != nil {
		c.tls.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	slot := libc.Xcalloc(c.tls, 1, 8)
	defer libc.Xfree(c.tls, slot)
	flags := int32(lib.SQLITE_OPEN_READONLY | lib.SQLITE_OPEN_URI | lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_EXRESCODE)
	rc := lib.Xsqlite3_open_v2(c.tls, name, slot, flags, 0)
	c.db = *(*uintptr)(at(slot))
	if rc != lib.SQLITE_OK {
		err := c.failed(rc)
		c.close()
		return nil, err
	}
	if err := c.harden(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// harden follows https://sqlite.org/security.html, and lets a misspelled column in double quotes be an error instead
// of a text.
func (c *conn) harden() error {
	for op, on := range map[int32]int32{
		lib.SQLITE_DBCONFIG_DEFENSIVE: 1, lib.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0, lib.SQLITE_DBCONFIG_DQS_DML: 0,
	} {
		args := libc.Xmalloc(c.tls, 16)
		rc := lib.Xsqlite3_db_config(c.tls, c.db, op, libc.VaList(args, on, uintptr(0)))
		libc.Xfree(c.tls, args)
		if rc != lib.SQLITE_OK {
			return c.failed(rc)
		}
	}
	for _, pragma := range []string{"PRAGMA query_only=1", "PRAGMA cell_size_check=1", "PRAGMA cache_size=-16384"} {
		if err := c.run(pragma); err != nil {
			return err
		}
	}
	lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_ATTACHED, 0)
	lib.Xsqlite3_limit(c.tls, c.db, lib.SQLITE_LIMIT_LENGTH, maxCell)
	c.stop = libc.Xcalloc(c.tls, 1, 8)
	lib.Xsqlite3_progress_handler(c.tls, c.db, 1000, cFunc(progress), c.stop)
	c.auth = newAuthorizer(c.stop)
	if rc := lib.Xsqlite3_set_authorizer(c.tls, c.db, cFunc(authorize), c.stop); rc != lib.SQLITE_OK {
		return c.failed(rc)
	}
	return nil
}

// progress is called by SQLite every 1000 instructions of its machine, and while it compiles. Unlike
// sqlite3_interrupt, a stop that comes before the first step is not lost.
func progress(_ *libc.TLS, stop uintptr) int32 { return atomic.LoadInt32((*int32)(at(stop))) }

// halt asks the running statement to end with SQLITE_INTERRUPT; any goroutine may call it while c is open.
func (c *conn) halt() { atomic.StoreInt32((*int32)(at(c.stop)), 1) }

func (c *conn) close() {
	lib.Xsqlite3_close_v2(c.tls, c.db)
	if c.auth != nil {
		c.auth.forget(c.stop)
	}
	if c.stop != 0 {
		libc.Xfree(c.tls, c.stop)
	}
	c.tls.Close()
}

// failed reads the error of the last call.
func (c *conn) failed(rc int32) *codeError {
	e := &codeError{rc: rc, offset: -1}
	if c.db == 0 {
		e.msg = libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))
		return e
	}
	e.msg = libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db))
	e.offset = int(lib.Xsqlite3_error_offset(c.tls, c.db))
	return e
}

// prepare compiles the first statement of sql; stmt is 0 if there is only white space and comments. rest is what
// follows the statement.
func (c *conn) prepare(sql string) (stmt uintptr, rest string, err error) {
	text, err := libc.CString(sql)
	if err != nil {
		return 0, "", err
	}
	defer libc.Xfree(c.tls, text)
	slots := libc.Xcalloc(c.tls, 2, 8)
	defer libc.Xfree(c.tls, slots)
	tailSlot := slots + unsafe.Sizeof(slots)
	if rc := lib.Xsqlite3_prepare_v2(c.tls, c.db, text, -1, slots, tailSlot); rc != lib.SQLITE_OK {
		return 0, "", c.failed(rc)
	}
	used := *(*uintptr)(at(tailSlot)) - text
	return *(*uintptr)(at(slots)), sql[used:], nil
}

// run runs one statement of this package's own to its end.
func (c *conn) run(sql string) error {
	stmt, _, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer c.finalize(stmt)
	for {
		switch rc := lib.Xsqlite3_step(c.tls, stmt); rc {
		case lib.SQLITE_ROW:
		case lib.SQLITE_DONE:
			return nil
		default:
			return c.failed(rc)
		}
	}
}

// names runs a statement of this package's own and returns its first column.
func (c *conn) names(sql string) (out []string) {
	stmt, _, err := c.prepare(sql)
	if err != nil {
		return nil
	}
	defer c.finalize(stmt)
	for lib.Xsqlite3_step(c.tls, stmt) == lib.SQLITE_ROW {
		out = append(out, libc.GoString(lib.Xsqlite3_column_text(c.tls, stmt, 0)))
	}
	return out
}

func (c *conn) finalize(stmt uintptr) { lib.Xsqlite3_finalize(c.tls, stmt) }

func (c *conn) readOnly(stmt uintptr) bool { return lib.Xsqlite3_stmt_readonly(c.tls, stmt) != 0 }

// parameters are the names as the statement spells them, with their prefix; "" for a bare question mark.
func (c *conn) parameters(stmt uintptr) []string {
	out := make([]string, lib.Xsqlite3_bind_parameter_count(c.tls, stmt))
	for i := range out {
		out[i] = libc.GoString(lib.Xsqlite3_bind_parameter_name(c.tls, stmt, int32(i+1)))
	}
	return out
}

// bind binds the i-th parameter, counted from 1, to nil, int64, float64 or string.
func (c *conn) bind(stmt uintptr, i int, value any) error {
	rc, n := int32(lib.SQLITE_OK), int32(i)
	switch v := value.(type) {
	case nil:
		rc = lib.Xsqlite3_bind_null(c.tls, stmt, n)
	case int64:
		rc = lib.Xsqlite3_bind_int64(c.tls, stmt, n, v)
	case float64:
		rc = lib.Xsqlite3_bind_double(c.tls, stmt, n, v)
	case string:
		text, err := libc.CString(v)
		if err != nil {
			return err
		}
		rc = lib.Xsqlite3_bind_text(c.tls, stmt, n, text, int32(len(v)), transient)
		libc.Xfree(c.tls, text)
	}
	if rc != lib.SQLITE_OK {
		return c.failed(rc)
	}
	return nil
}

// column is the name and declared type of the i-th column, counted from 0.
func (c *conn) column(stmt uintptr, i int) (name, declared string) {
	return libc.GoString(lib.Xsqlite3_column_name(c.tls, stmt, int32(i))),
		libc.GoString(lib.Xsqlite3_column_decltype(c.tls, stmt, int32(i)))
}

// bytes views a text or blob cell until the next step.
func (c *conn) bytes(stmt uintptr, i int32, text bool) []byte {
	var p uintptr
	if text {
		p = lib.Xsqlite3_column_text(c.tls, stmt, i)
	} else {
		p = lib.Xsqlite3_column_blob(c.tls, stmt, i)
	}
	n := lib.Xsqlite3_column_bytes(c.tls, stmt, i)
	if p == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at(p)), n)
}
