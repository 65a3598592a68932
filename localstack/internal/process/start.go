package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Program is something to start.
type Program struct {
	Name string
	Path string
	Args []string
	Env  []string // the whole environment: nothing is inherited
	Dir  string
	Log  string // standard output and error go there, appended
	Port int    // recorded for messages; zero if it has none
}

// Start starts the program in a session and process group of its own and writes its record to recordPath before it
// returns. If the record cannot be written the program is ended again, so that nothing runs unrecorded.
func Start(p Program, recordPath string) (Record, error) {
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o755); err != nil {
		return Record{}, err
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, err
	}
	defer log.Close()
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Record{}, fmt.Errorf("start %s: %w", p.Name, err)
	}
	// Collects the child while this command lives; afterwards the system does.
	go cmd.Wait() //nolint:errcheck // the log tells how it ended
	started, err := startTime(cmd.Process.Pid)
	if err != nil {
		return Record{}, fmt.Errorf("%s ended at once; see %s", p.Name, p.Log)
	}
	r := Record{Name: p.Name, PID: cmd.Process.Pid, Started: started, Port: p.Port, Log: p.Log}
	if err := r.Save(recordPath); err != nil {
		return Record{}, errors.Join(err, syscall.Kill(-r.PID, syscall.SIGKILL))
	}
	return r, nil
}

// Outcome says how a stop ended.
type Outcome int

const (
	WasNotRunning Outcome = iota // the record was stale or absent; nothing was signalled
	Stopped                      // it ended by itself after being asked, and could save its state
	Killed                       // it did not end in time and was killed: what it had not saved is lost
)

// Stop asks the recorded process to end, waits up to patience, then kills its whole group; it always ends. The record is
// removed only after the process is gone. A record whose process lives no more, or whose id belongs to another process
// now, is removed without a signal.
func Stop(ctx context.Context, recordPath string, patience time.Duration) (Outcome, error) {
	r, err := Load(recordPath)
	if errors.Is(err, ErrNotRunning) {
		return WasNotRunning, nil
	}
	if err != nil {
		return WasNotRunning, err
	}
	if !r.Alive() {
		if err := Sweep(recordPath); err != nil {
			return WasNotRunning, err
		}
		return WasNotRunning, os.Remove(recordPath)
	}
	outcome := Stopped
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return outcome, fmt.Errorf("signal %s (process %d): %w", r.Name, r.PID, err)
	}
	if !waitGone(ctx, r, patience) {
		outcome = Killed
	}
	// The group is what it may have left behind. Its id cannot be given away while a member lives.
	if err := syscall.Kill(-r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM) {
		return outcome, fmt.Errorf("end the group of %s (process %d): %w", r.Name, r.PID, err)
	}
	if !waitGone(context.WithoutCancel(ctx), r, 5*time.Second) {
		return outcome, fmt.Errorf("%s (process %d) does not end even when killed", r.Name, r.PID)
	}
	if err := endSession(r.PID, func(int) bool { return true }); err != nil {
		return outcome, fmt.Errorf("end the session of %s (process %d): %w", r.Name, r.PID, err)
	}
	return outcome, os.Remove(recordPath)
}

// Sweep ends the functions that a recorded emulator left behind when it died by itself: members of its session that have
// functionMark in their environment, so that a session whose id is another's by now is not touched. The record stays.
func Sweep(recordPath string) error {
	r, err := Load(recordPath)
	if errors.Is(err, ErrNotRunning) || (err == nil && r.Alive()) {
		return nil
	}
	if err != nil {
		return err
	}
	return endSession(r.PID, hasFunctionMark)
}

func waitGone(ctx context.Context, r Record, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if !r.Alive() {
			return true
		}
		select {
		case <-ctx.Done():
			return !r.Alive()
		case <-tick.C:
		}
	}
}
