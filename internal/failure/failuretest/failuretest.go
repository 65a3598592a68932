// Package failuretest lets a package's tests prove that every failure code it owns is provoked by a test.
package failuretest

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"almanac/internal/failure"
)

var (
	mu   sync.Mutex
	seen = map[failure.Code]bool{}
)

// Want fails the test unless err carries the code, and notes the code as provoked.
func Want(t testing.TB, err error, code failure.Code) *failure.Failure {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	f := failure.From(err)
	if f.Code != code {
		t.Fatalf("got %s (%v), want %s", f.Code, err, code)
	}
	Saw(code)
	return f
}

// Saw notes a code as provoked, for tests that find it on a row.
func Saw(code failure.Code) { mu.Lock(); seen[code] = true; mu.Unlock() }

// Main runs a package's tests and fails when a code that the package owns was not provoked. It is silent about codes
// when a -run filter leaves tests out.
func Main(m *testing.M, owner string) { os.Exit(Run(m, owner)) }

// Run is Main for a package that has something to end before its process does; it returns the process's status.
func Run(m *testing.M, owner string) int {
	status := m.Run()
	if f := flag.Lookup("test.run"); status == 0 && f != nil && f.Value.String() == "" {
		for _, e := range failure.Table {
			if e.Owner == owner && !seen[e.Code] {
				fmt.Fprintf(os.Stderr, "FAIL: no test of internal/%s provokes the failure code %s\n", owner, e.Code)
				status = 1
			}
		}
	}
	return status
}
