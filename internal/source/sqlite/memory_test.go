package sqlite

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
)

// peak is the most memory that the process has held so far, in bytes; 0 where the system does not tell.
func peak(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// TestAQueryEndsBeforeTheMemoryDoes: whatever a query builds, the process stays far below the consumer's memory.
func TestAQueryEndsBeforeTheMemoryDoes(t *testing.T) {
	src := openTest(t, []string{"CREATE TABLE t (n)", "INSERT INTO t VALUES (1), (2), (3), (4)"})
	cells := func(n int, cell string) string { return "SELECT " + strings.Repeat(", "+cell, n)[2:] + " FROM t" }
	before := peak(t)
	for query, says := range map[string]string{
		cells(20, "randomblob(60000000)"):                                    "passes 16777216 bytes",
		cells(40, "randomblob(15000000)"):                                    "256 MB of memory",
		cells(200, "hex(randomblob(8000000))"):                               "256 MB of memory",
		cells(10, "zeroblob(15000000)"):                                      "row 1 has more than 33554432 bytes",
		cells(3, "hex(zeroblob(7000000))"):                                   "row 1 has more than 33554432 bytes",
		"SELECT length(group_concat(hex(randomblob(1000000)))) FROM t, t, t": "passes 16777216 bytes",
	} {
		_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: query})
		if f := failuretest.Want(t, err, failure.QueryFailed); !strings.Contains(f.Message, says) {
			t.Errorf("%.60s: %q does not say %q", query, f.Message, says)
		}
	}
	tls := libc.NewTLS()
	defer tls.Close()
	if most := lib.Xsqlite3_memory_highwater(tls, 0); most == 0 || most > maxHeap {
		t.Errorf("SQLite held %d bytes, want some and at most %d", most, maxHeap)
	}
	grown := peak(t) - before
	t.Logf("the process grew by %d MB", grown>>20)
	if grown > 700<<20 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT sum(n), length(randomblob(16000000)) FROM t"})
	if err != nil || fmt.Sprint(out.Rows[0][0].Int, out.Rows[0][1].Int) != "10 16000000" {
		t.Errorf("the next query: %+v %v", out.Rows, err)
	}
}
