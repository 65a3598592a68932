package emulator

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// beside is one of our own programs that runs beside an emulator.
type beside struct {
	name   string
	record string
	log    string
	ports  []int // all of them answer once it is ready
}

// buildBeside builds the program of a folder in localstack.
func buildBeside(ctx context.Context, i instance.Instance, name string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(i.Bin(), name), "./localstack/"+name)
	cmd.Dir = i.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return step.Fail(err, "go build ./localstack/"+name+": "+string(out), "mend the code, then run scripts/up again")
	}
	return nil
}

// start starts the built program with an environment of its own, and returns once it answers.
func (b beside) start(ctx context.Context, i instance.Instance, args []string) error {
	if err := os.MkdirAll(i.Temp(), 0o755); err != nil {
		return err
	}
	program := process.Program{
		Name: b.name, Path: filepath.Join(i.Bin(), b.name), Args: args, Dir: i.Folder(), Log: b.log, Port: b.ports[0],
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.Temp(), "TMPDIR=" + i.Temp()},
	}
	if _, err := process.Start(program, b.record); err != nil {
		return step.Fail(err, err.Error(), "read its log below").WithLog(process.Tail(b.log, 15))
	}
	return b.waitReady(ctx)
}

func (b beside) running() bool {
	rec, err := process.Load(b.record)
	return err == nil && rec.Alive()
}

func (b beside) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if b.answers(ctx) {
			return nil
		}
		if !b.running() {
			return step.Fail(nil, fmt.Sprintf("the program %q ended", b.name), "read its log below and "+b.log).WithLog(process.Tail(b.log, 15))
		}
		select {
		case <-ctx.Done():
			return step.Fail(ctx.Err(), fmt.Sprintf("the program %q does not answer on each of its ports %v", b.name, b.ports), "run scripts/down, then scripts/up").
				WithLog(process.Tail(b.log, 15))
		case <-tick.C:
		}
	}
}

func (b beside) answers(ctx context.Context) bool {
	for _, port := range b.ports {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		conn.Close()
	}
	return true
}
