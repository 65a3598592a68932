package emulator

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
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
	return buildBeside(ctx, r.Instance, "receivers")
}

func (r Receivers) beside() beside {
	i := r.Instance
	return beside{name: "receivers", record: i.ReceiversRecord(), log: i.ReceiversLog(), ports: []int{i.SMTPPort(), i.WebhookPort()}}
}

// Start starts the program unless it runs, and returns once both of its ports answer.
func (r Receivers) Start(ctx context.Context) (already bool, err error) {
	i := r.Instance
	if r.Running() {
		return true, r.beside().waitReady(ctx)
	}
	if err := ensureWebhookSecret(i.WebhookSecret()); err != nil {
		return false, err
	}
	if err := os.MkdirAll(i.ReceiversFolder(), 0o755); err != nil {
		return false, err
	}
	return false, r.beside().start(ctx, i, []string{
		"-smtp", fmt.Sprintf("127.0.0.1:%d", i.SMTPPort()), "-http", fmt.Sprintf("127.0.0.1:%d", i.WebhookPort()),
		"-dir", i.ReceiversFolder(), "-secret-file", i.WebhookSecret(),
	})
}

// Stop ends the program.
func (r Receivers) Stop(ctx context.Context) (process.Outcome, error) {
	return process.Stop(ctx, r.Instance.ReceiversRecord(), 10*time.Second)
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
