package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// startTime gives the system's start time of a process as a text that no later process with the same id can have. An
// ended process that nobody has collected yet counts as gone.
func startTime(pid int) (string, error) {
	if runtime.GOOS == "linux" {
		return startTimeLinux(pid)
	}
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	text := strings.TrimSpace(string(out))
	if err != nil || text == "" || strings.HasPrefix(text, "Z") {
		return "", ErrNotRunning
	}
	_, started, _ := strings.Cut(text, " ")
	return strings.Join(strings.Fields(started), " "), nil
}

// startTimeLinux reads field 22 of /proc/<pid>/stat (clock ticks since boot, proc(5)) and adds the boot's id, because
// ticks begin again at each boot.
func startTimeLinux(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ErrNotRunning
	}
	// The second field is the program's name in brackets and may hold blanks and brackets itself.
	_, rest, ok := cutLast(string(stat), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return "", ErrNotRunning
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = []byte("unknown-boot")
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}

func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
