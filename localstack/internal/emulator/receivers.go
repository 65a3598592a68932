package emulator

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// Receivers starts and stops the program that receives mail and webhooks of one instance.
type Receivers struct{ Instance instance.Instance }

// Running reports whether the recorded program lives.
func (r Receivers) Running() bool {
	rec, err := process.Load(r.Instance.ReceiversRecord())
	return err == nil && rec.Alive()
}

// Build builds the program; Go's build cache makes that quick when nothing changed.
func (r Receivers) Build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", r.binary(), "./localstack/receivers")
	cmd.Dir = r.Instance.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return step.Fail(err, "go build ./localstack/receivers: "+string(out), "mend the code, then run scripts/up again")
	}
	return nil
}

func (r Receivers) binary() string { return filepath.Join(r.Instance.Bin(), "receivers") }

// Start starts the program unless it runs, and returns once both of its ports answer.
func (r Receivers) Start(ctx context.Context) (already bool, err error) {
	i := r.Instance
	if r.Running() {
		return true, r.waitReady(ctx)
	}
	if err := ensureWebhookSecret(i.WebhookSecret()); err != nil {
		return false, err
	}
	if err := os.MkdirAll(i.ReceiversFolder(), 0o755); err != nil {
		return false, err
	}
	program := process.Program{
		Name: "receivers", Path: r.binary(), Dir: i.Folder(), Log: i.ReceiversLog(), Port: i.SMTPPort(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.Temp(), "TMPDIR=" + i.Temp()},
		Args: []string{
			"-smtp", fmt.Sprintf("127.0.0.1:%d", i.SMTPPort()), "-http", fmt.Sprintf("127.0.0.1:%d", i.WebhookPort()),
			"-dir", i.ReceiversFolder(), "-secret-file", i.WebhookSecret(),
		},
	}
	if _, err := process.Start(program, i.ReceiversRecord()); err != nil {
		return false, step.Fail(err, err.Error(), "read its log below").WithLog(process.Tail(i.ReceiversLog(), 15))
	}
	return false, r.waitReady(ctx)
}

// Stop ends the program.
func (r Receivers) Stop(ctx context.Context) (process.Outcome, error) {
	return process.Stop(ctx, r.Instance.ReceiversRecord(), 10*time.Second)
}

func (r Receivers) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if r.answers(ctx, r.Instance.SMTPPort()) && r.answers(ctx, r.Instance.WebhookPort()) {
			return nil
		}
		if !r.Running() {
			return step.Fail(nil, "the receivers ended", "read their log below and "+r.Instance.ReceiversLog()).WithLog(process.Tail(r.Instance.ReceiversLog(), 15))
		}
		select {
		case <-ctx.Done():
			return step.Fail(ctx.Err(), "the receivers do not answer on both of their ports", "run scripts/down, then scripts/up").WithLog(process.Tail(r.Instance.ReceiversLog(), 15))
		case <-tick.C:
		}
	}
}

func (r Receivers) answers(ctx context.Context, port int) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// ensureWebhookSecret makes the secret with which webhooks are signed and verified, unless the file is there. The file
// holds the value as Secrets Manager gets it; the key is that of Standard Webhooks: whsec_ and 24 to 64 random bytes in
// base64 (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
func ensureWebhookSecret(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	value, err := json.Marshal(map[string]string{"current": "whsec_" + base64.StdEncoding.EncodeToString(key)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(value, '\n'), 0o600)
}
