package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Listener names the process that listens on a TCP port of this machine, or gives an empty text if the system does not
// tell this user.
func Listener(port int) string {
	if runtime.GOOS != "linux" {
		out, err := exec.Command("lsof", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN", "-Fpc").Output()
		if err != nil {
			return ""
		}
		return fromLsof(string(out))
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if inode := listeningInode(string(text), port); inode != "" {
			return ownerOf(inode)
		}
	}
	return ""
}

// fromLsof reads lsof's field output: p<pid> and c<command>, one a line.
func fromLsof(out string) string {
	var pid, command string
	for line := range strings.Lines(out) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "p"):
			pid = line[1:]
		case strings.HasPrefix(line, "c"):
			command = line[1:]
		}
	}
	if pid == "" {
		return ""
	}
	return fmt.Sprintf("process %s (%s)", pid, command)
}

// listeningInode finds the socket that listens on a port in a table as /proc/net/tcp: column 2 is the local address in
// hexadecimal, column 4 the state (0A: listening), column 10 the socket's inode (proc_net_tcp of the kernel's pages).
func listeningInode(table string, port int) string {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
			return f[9]
		}
	}
	return ""
}

func ownerOf(inode string) string {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			return "process " + pid
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
		if len(text) > 120 {
			text = text[:120] + "..."
		}
		return fmt.Sprintf("process %s (%s)", pid, text)
	}
	return ""
}
