// Package machine looks at the machine before something is tried on it, so that a failure is told in the words of the
// person who has to mend it.
package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"almanac/localstack/internal/step"
)

// Tool is a program that must be there.
type Tool struct {
	Name    string
	Version []string // arguments that make it print its version
	Least   string   // least version, as numbers with dots
	Get     string   // how to get it
}

// Tools are what scripts/up needs. The least versions are those that the pinned parts ask for: aws-cdk wants Node 18
// (https://docs.aws.amazon.com/cdk/v2/guide/node-versions.html) and is run here on 20; the emulator wants Python 3.10.
var Tools = []Tool{
	{"go", []string{"version"}, "1.24", "install Go from https://go.dev/dl/ (the version in go.mod is then fetched by itself)"},
	{"node", []string{"--version"}, "20", "install Node 20 or later from https://nodejs.org/"},
	{"npm", []string{"--version"}, "9", "npm comes with Node: install Node 20 or later from https://nodejs.org/"},
	{"python3", []string{"--version"}, "3.10", "install Python 3.10 or later from https://www.python.org/ (on Debian also the package python3-venv)"},
}

// JavaTools are what DynamoDB Local needs besides: LocalStack keeps its tables in it, and the store's tests ask it. It asks
// for Java 17 (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.DownloadingAndRunning.html).
var JavaTools = []Tool{
	{"java", []string{"-version"}, "17", "install Java 17 or later: apt-get install openjdk-17-jre-headless on Debian and Ubuntu, brew install openjdk on macOS"},
	{"mvn", []string{"--version"}, "3.6", "install Maven, which fetches DynamoDB Local: apt-get install maven on Debian and Ubuntu, brew install maven on macOS"},
}

// versionForm finds a version with dots, or else a number in quotes: a first release of Java is "21".
var versionForm = regexp.MustCompile(`\d+(\.\d+)+|"\d+"`)

// Check reports a missing or too old tool. run gives the output of a command; exec.ErrNotFound when there is none.
func (t Tool) Check(ctx context.Context, run func(ctx context.Context, name string, args ...string) (string, error)) error {
	out, err := run(ctx, t.Name, t.Version...)
	if errors.Is(err, exec.ErrNotFound) {
		return step.Fail(err, fmt.Sprintf("the program %q is not on PATH", t.Name), t.Get)
	}
	if err != nil {
		return step.Fail(err, fmt.Sprintf("%s %s did not work: %v: %s", t.Name, strings.Join(t.Version, " "), err, strings.TrimSpace(out)), t.Get)
	}
	have := strings.Trim(versionForm.FindString(out), `"`)
	if have == "" {
		return step.Fail(nil, fmt.Sprintf("%s tells no version: %q", t.Name, strings.TrimSpace(out)), t.Get)
	}
	if !AtLeast(have, t.Least) {
		return step.Fail(nil, fmt.Sprintf("%s is version %s, at least %s is needed", t.Name, have, t.Least), t.Get)
	}
	return nil
}

// RunTool runs a command for Check.
func RunTool(ctx context.Context, name string, args ...string) (string, error) {
	if _, err := exec.LookPath(name); err != nil {
		return "", exec.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second) // go may fetch its toolchain here
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// AtLeast compares versions number by number; a missing number is zero.
func AtLeast(have, least string) bool {
	a, b := strings.Split(have, "."), strings.Split(least, ".")
	for i := range max(len(a), len(b)) {
		if x, y := number(a, i), number(b, i); x != y {
			return x > y
		}
	}
	return true
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i]) // the form was checked by versionForm
	return n
}

// PortFree reports a port of loopback that somebody listens on, and who if the system tells.
func PortFree(port int, use string) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return l.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return step.Fail(err, fmt.Sprintf("port %d for the %s cannot be listened on: %v", port, use, err), "choose other ports: ALMANAC_PORT=5566 scripts/up")
	}
	who := Listener(port)
	if who == "" {
		who = "a process that this user may not see"
	}
	return step.Fail(err, fmt.Sprintf("port %d for the %s is in use by %s", port, use, who),
		"end that process, or choose other ports: ALMANAC_PORT=5566 scripts/up (those that follow it are used too)")
}

// Disk reports too little space. free gives the bytes that are free below a path.
func Disk(path string, least uint64, free func(string) (uint64, error)) error {
	have, err := free(path)
	if err != nil {
		return fmt.Errorf("free space below %s: %w", path, err)
	}
	if have < least {
		return step.Fail(nil, fmt.Sprintf("only %d MB are free below %s, about %d MB are needed", have>>20, path, least>>20),
			"free some space, or move the repository to a larger disk; scripts/down --wipe removes the local cloud's data")
	}
	return nil
}

// Free is the space that an ordinary user may still use, in bytes.
func Free(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
