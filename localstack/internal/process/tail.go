package process

import (
	"io"
	"os"
	"strings"
)

// Tail gives the last n lines of a log, each indented, or a line that says why there is none.
func Tail(path string, n int) string {
	const most = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return "    (no log: " + err.Error() + ")"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		f.Seek(-most, io.SeekEnd) //nolint:errcheck // then the whole is read
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "    (log not readable: " + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
