// Package emulator starts the local cloud of an instance, waits until it answers, and stops it. It is the one place
// that knows by what program a cloud is served.
package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"almanac/localstack/internal/dynamodblocal"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// ready is how long a start may take until the cloud answers; 2 s are usual, a slow machine needs more.
const ready = 90 * time.Second

// kind is what differs between the clouds.
type kind struct {
	version  string        // the one that is pinned
	health   string        // path of the address that tells it
	patience time.Duration // how long a stop may take before it is killed
	program  func(instance.Instance) process.Program
}

var kinds = map[instance.Cloud]kind{instance.MiniStack: miniStack, instance.LocalStack: localStack}

// Emulator starts and stops the cloud of one instance.
type Emulator struct {
	Instance instance.Instance
	Client   *http.Client
}

// Running reports whether the recorded emulator lives.
func (e Emulator) Running() bool {
	r, err := process.Load(e.Instance.EmulatorRecord())
	return err == nil && r.Alive()
}

// Start starts the cloud unless it runs, and returns once it answers. Its state of before a clean stop is there again, if
// it is of a cloud that keeps it; lost says that an earlier run's state is gone, so that the cloud now starts empty.
func (e Emulator) Start(ctx context.Context) (already, lost bool, err error) {
	if err := e.Instance.Claim(); err != nil {
		return false, false, err
	}
	if e.Running() {
		if e.Instance.Cloud == instance.LocalStack && !e.tables().Running() {
			return true, false, step.Fail(nil, "LocalStack runs, but the DynamoDB Local that keeps its tables has ended", "run scripts/down, then scripts/up").
				WithLog(process.Tail(e.Instance.DynamoDBLog(), 15))
		}
		return true, false, e.WaitReady(ctx)
	}
	// What an emulator left behind that died.
	if err := process.Sweep(e.Instance.EmulatorRecord()); err != nil {
		return false, false, err
	}
	if lost, err = e.discardUnsaved(ctx); err != nil {
		return false, lost, err
	}
	program, err := e.program()
	if err != nil {
		return false, lost, err
	}
	if e.Instance.Cloud == instance.LocalStack {
		if _, err := e.tables().Start(ctx); err != nil {
			return false, lost, err
		}
	}
	if _, err := process.Start(program, e.Instance.EmulatorRecord()); err != nil {
		return false, lost, step.Fail(err, err.Error(), "run scripts/up again; if it stays so, remove "+e.Instance.Venv()+" so that the emulator is installed anew").
			WithLog(process.Tail(e.Instance.EmulatorLog(), 15))
	}
	if err := os.WriteFile(e.Instance.UncleanMark(), nil, 0o644); err != nil {
		return false, lost, err
	}
	return false, lost, e.WaitReady(ctx)
}

// tables is the DynamoDB Local of LocalStack.
func (e Emulator) tables() dynamodblocal.Server { return dynamodblocal.Beside(e.Instance, e.Client) }

// program is the emulator's command for the instance's cloud.
func (e Emulator) program() (process.Program, error) {
	i := e.Instance
	for _, folder := range []string{i.State(), i.Objects(), i.Temp()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return process.Program{}, err
		}
	}
	p := kinds[i.Cloud].program(i)
	if _, err := os.Stat(p.Path); err != nil {
		return process.Program{}, step.Fail(err, p.Path+" is not there", "run scripts/up, which installs it")
	}
	p.Name, p.Dir, p.Log, p.Port = string(i.Cloud), i.Folder(), i.EmulatorLog(), i.Port
	return p, nil
}

// Died reports whether the state of the last run is lost: the emulator ended without saving it, or is one that saves none.
func (e Emulator) Died() bool {
	_, err := os.Stat(e.Instance.UncleanMark())
	return err == nil && !e.Running()
}

// discardUnsaved makes an instance empty whose emulator ended without saving. What lies on its disk then is the state of
// an earlier stop beside newer objects: a cloud that never was, in which deliveries would be made a second time.
func (e Emulator) discardUnsaved(ctx context.Context) (bool, error) {
	if !e.Died() {
		return false, nil
	}
	if e.Instance.Cloud == instance.LocalStack { // its tables would outlive it
		if _, err := e.tables().Stop(ctx); err != nil {
			return true, err
		}
	}
	return true, e.Wipe()
}

// Wipe removes the state of a cloud that does not run, with everything that was derived from it.
func (e Emulator) Wipe() error {
	i := e.Instance
	for _, path := range []string{i.State(), i.Objects(), i.Temp(), i.Outputs(), i.Users(), i.ReceiversFolder(), i.UncleanMark()} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the cloud. saved is false if it had to be killed or had died before, so that its state is lost.
func (e Emulator) Stop(ctx context.Context) (outcome process.Outcome, err error) {
	outcome, err = process.Stop(ctx, e.Instance.EmulatorRecord(), kinds[e.Instance.Cloud].patience)
	if err == nil && e.Instance.Cloud == instance.LocalStack {
		_, err = e.tables().Stop(ctx)
	}
	if err == nil && outcome == process.Stopped && e.Instance.Cloud.KeepsState() {
		err = os.Remove(e.Instance.UncleanMark())
	}
	return outcome, err
}

// WaitReady returns when the cloud answers. An emulator that died, or that does not answer in time, is a failure which
// shows the end of its log.
func (e Emulator) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		version, err := e.health(ctx)
		if err == nil {
			return e.checkVersion(version)
		}
		if !e.Running() {
			return step.Fail(err, "the emulator ended", "read its log below and "+e.Instance.EmulatorLog()+", then run scripts/up again").
				WithLog(process.Tail(e.Instance.EmulatorLog(), 15))
		}
		select {
		case <-ctx.Done():
			return step.Fail(err, fmt.Sprintf("the emulator at %s did not answer within %s: %v", e.Instance.Endpoint(), ready, err),
				"run scripts/down, then scripts/up again; its log is "+e.Instance.EmulatorLog()).WithLog(process.Tail(e.Instance.EmulatorLog(), 15))
		case <-tick.C:
		}
	}
}

func (e Emulator) health(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.Instance.Endpoint()+kinds[e.Instance.Cloud].health, nil)
	if err != nil {
		return "", err
	}
	res, err := e.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&answer); err != nil {
		return "", fmt.Errorf("health answers %s with no JSON: %w", res.Status, err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("health answers %s", res.Status)
	}
	return answer.Version, nil
}

// checkVersion refuses an answer of something else on our port.
func (e Emulator) checkVersion(version string) error {
	if pinned := kinds[e.Instance.Cloud].version; version != pinned {
		return step.Fail(nil, fmt.Sprintf("the %s that answers is version %q, %s is pinned", e.Instance.Cloud, version, pinned),
			"run scripts/down; if another emulator listens on the port, end it; if "+e.Instance.Venv()+" holds another version, remove it; then run scripts/up")
	}
	return nil
}
