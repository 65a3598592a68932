package sqlite

import (
	"fmt"
	"strings"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// authorizer remembers what it refused, so that the message can say it: SQLite itself says "not authorized" only.
type authorizer struct {
	denied string // what the statement tried; "" if nothing was refused
}

// authorizers finds the authorizer of a connection by the address that SQLite hands back.
var authorizers = struct {
	sync.RWMutex
	by map[uintptr]*authorizer
}{by: map[uintptr]*authorizer{}}

func newAuthorizer(key uintptr) *authorizer {
	a := &authorizer{}
	authorizers.Lock()
	authorizers.by[key] = a
	authorizers.Unlock()
	return a
}

func (*authorizer) forget(key uintptr) {
	authorizers.Lock()
	delete(authorizers.by, key)
	authorizers.Unlock()
}

// authorize is SQLite's callback (https://sqlite.org/c3ref/set_authorizer.html). A connection that is not known is
// refused everything.
func authorize(_ *libc.TLS, key uintptr, action int32, a1, a2, _, _ uintptr) int32 {
	authorizers.RLock()
	a := authorizers.by[key]
	authorizers.RUnlock()
	if a == nil {
		return lib.SQLITE_DENY
	}
	arg1, arg2 := "", ""
	if a1 != 0 {
		arg1 = libc.GoString(a1)
	}
	if a2 != 0 {
		arg2 = libc.GoString(a2)
	}
	if what := refused(action, arg1, arg2); what != "" {
		if a.denied == "" {
			a.denied = what
		}
		return lib.SQLITE_DENY
	}
	return lib.SQLITE_OK
}

// lookups are the pragmas that only read the schema, and the counter that full-text tables ask for.
var lookups = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true,
	"index_xinfo": true, "foreign_key_list": true, "data_version": true,
}

// insides are the virtual tables that show a file's raw pages, those of deleted rows among them
// (https://sqlite.org/dbpage.html, https://sqlite.org/dbstat.html).
var insides = map[string]bool{"sqlite_dbpage": true, "dbstat": true}

// actions names what a statement tried; %s is the table or thing.
var actions = map[int32]string{
	lib.SQLITE_INSERT: "insert into %s", lib.SQLITE_UPDATE: "update %s", lib.SQLITE_DELETE: "delete from %s",
	lib.SQLITE_ATTACH: "attach another database", lib.SQLITE_DETACH: "detach a database",
	lib.SQLITE_CREATE_TABLE: "create the table %s", lib.SQLITE_CREATE_TEMP_TABLE: "create the temporary table %s",
	lib.SQLITE_CREATE_VIEW: "create the view %s", lib.SQLITE_CREATE_TEMP_VIEW: "create the temporary view %s",
	lib.SQLITE_CREATE_INDEX: "create the index %s", lib.SQLITE_CREATE_TRIGGER: "create the trigger %s",
	lib.SQLITE_CREATE_VTABLE: "create the virtual table %s", lib.SQLITE_DROP_TABLE: "drop the table %s",
	lib.SQLITE_DROP_VIEW: "drop the view %s", lib.SQLITE_DROP_INDEX: "drop the index %s",
	lib.SQLITE_ALTER_TABLE: "alter a table", lib.SQLITE_REINDEX: "rebuild the index %s", lib.SQLITE_ANALYZE: "analyze %s",
	lib.SQLITE_TRANSACTION: "control a transaction (%s)", lib.SQLITE_SAVEPOINT: "control a transaction (%s)",
}

// refused says what is wrong with an action, "" if it only reads.
func refused(action int32, arg1, arg2 string) string {
	switch action {
	case lib.SQLITE_READ:
		if table := strings.ToLower(arg1); insides[table] {
			return "read the file's insides (" + table + ")"
		}
		return ""
	case lib.SQLITE_SELECT, lib.SQLITE_RECURSIVE:
		return ""
	case lib.SQLITE_FUNCTION:
		switch name := strings.ToLower(arg2); name {
		case "load_extension", "fts3_tokenizer", "writefile", "readfile", "edit":
			return "call the function " + name
		}
		return ""
	case lib.SQLITE_PRAGMA:
		if lookups[strings.ToLower(arg1)] {
			return ""
		}
		return "use PRAGMA " + arg1
	}
	if text, ok := actions[action]; ok {
		if strings.Contains(text, "%s") {
			return fmt.Sprintf(text, arg1)
		}
		return text
	}
	return fmt.Sprintf("do something other than read (SQLite's action %d)", action)
}
