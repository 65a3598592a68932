// Package process starts programs that outlive the command that started them, and stops exactly those again: by the id
// and the start time that it wrote, so that a process id which the system has given to somebody else is never touched.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Record is what is written about a started program. Its process leads a process group of its own, so that children
// which it leaves behind can be ended with it.
type Record struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // the system's own start time of that process, as text; compared, never parsed
	Port    int    `json:"port"`
	Log     string `json:"log"`
}

// ErrNotRunning says that no living process is the one that the record tells of.
var ErrNotRunning = errors.New("not running")

// Save writes the record so that a reader sees the old one or the new one, never half of one.
func (r Record) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Load reads a record. No file is ErrNotRunning; a file that is no record is an error which names it.
func Load(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, ErrNotRunning
	}
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("%s is not a process record (%v); delete it after looking whether the program still runs", path, err)
	}
	// A signal to process 0 or 1, or to a negative number, would reach others than the one that was started.
	if r.PID <= 1 || r.Started == "" {
		return Record{}, fmt.Errorf("%s names process %d started %q, which is no process that was started here; delete the file", path, r.PID, r.Started)
	}
	return r, nil
}

// Alive reports whether the process of the record still lives: same id and same start time, and no zombie.
func (r Record) Alive() bool {
	started, err := startTime(r.PID)
	return err == nil && started == r.Started
}
