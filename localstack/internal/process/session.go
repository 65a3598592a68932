package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// endSession kills every process of the session that the given one led. Functions of an emulator are in process groups of
// their own, so that each can be ended alone, but stay in its session. The leader itself must be gone: an id that belongs
// to a living process now is another's, and its session too. Where the system does not tell sessions (any but Linux)
// nothing is done; a function then ends by itself at its next call of the emulator. only chooses among the members.
func endSession(leader int, only func(pid int) bool) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	if _, err := startTime(leader); err == nil {
		return nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	var failed error
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		pid, session, ok := sessionOf(string(text))
		if !ok || session != leader || !only(pid) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			failed = errors.Join(failed, fmt.Errorf("process %d: %w", pid, err))
		}
	}
	return failed
}

// sessionOf reads process and session of a line as /proc/<pid>/stat: fields 1 and 6 (proc(5)).
func sessionOf(stat string) (pid, session int, ok bool) {
	before, rest, ok := cutLast(stat, ") ")
	first, _, _ := strings.Cut(before, " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 4 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	session, err = strconv.Atoi(fields[3])
	return pid, session, err == nil
}

// functionMark is in the environment of each function, and of nothing else:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
const functionMark = "AWS_LAMBDA_RUNTIME_API="

func hasFunctionMark(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && (strings.HasPrefix(string(environ), functionMark) || strings.Contains(string(environ), "\x00"+functionMark))
}
