package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"almanac/internal/failure"
)

const (
	secretPrefix  = "whsec_"
	minSecret     = 24 // bytes of the key, Standard Webhooks, "Signature scheme"
	maxSecret     = 64
	cacheFor      = 5 * time.Minute
	maxSecretText = 64 << 10 // Secrets Manager's own limit, in bytes
)

// SecretsManager reads one secret's current value.
type SecretsManager interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, opts ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Manager is Secrets over AWS Secrets Manager. A secret's value is {"current":"whsec_…","previous":"whsec_…"}; previous
// is there while receivers change over. What was read is kept for five minutes, so a rotation is seen after that at the
// latest; keep `previous` for longer. Failures are not kept. It is safe for concurrent use.
type Manager struct {
	client SecretsManager
	now    func() time.Time
	mu     sync.Mutex
	kept   map[string]kept
}

type kept struct {
	secrets []string
	until   time.Time
}

// NewManager needs a client and the wall clock.
func NewManager(client SecretsManager, now func() time.Time) (*Manager, error) {
	if client == nil || now == nil {
		return nil, fmt.Errorf("webhook secrets: a Secrets Manager client and a clock are needed")
	}
	return &Manager{client: client, now: now, kept: map[string]kept{}}, nil
}

// Get fails with secret_unavailable when the secret cannot be read, and with channel_misconfigured when it is not what
// a webhook's secret must be. No error holds any part of the secret.
func (m *Manager) Get(ctx context.Context, id string) ([]string, error) {
	now := m.now()
	m.mu.Lock()
	k, found := m.kept[id]
	m.mu.Unlock()
	if found && now.Before(k.until) {
		return k.secrets, nil
	}
	out, err := m.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)})
	if err != nil {
		return nil, failure.Wrap(failure.SecretUnavailable, err, "the signing secret %q could not be read", failure.Cut(id, 120))
	}
	secrets, why := parse(out)
	if why != "" {
		return nil, failure.New(failure.ChannelMisconfig, `the signing secret %q: %s; its value must be {"current":"whsec_…"}, with "previous" while it is being rotated`, failure.Cut(id, 120), why)
	}
	m.mu.Lock()
	m.kept[id] = kept{secrets: secrets, until: now.Add(cacheFor)}
	m.mu.Unlock()
	return secrets, nil
}

func parse(out *secretsmanager.GetSecretValueOutput) (secrets []string, why string) {
	if out == nil || out.SecretString == nil {
		return nil, "it has no text"
	}
	if len(*out.SecretString) > maxSecretText {
		return nil, "it is too long"
	}
	var v struct {
		Current  *string `json:"current"`
		Previous *string `json:"previous"`
	}
	d := json.NewDecoder(strings.NewReader(*out.SecretString))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, "it is not that JSON object"
	}
	if v.Current == nil {
		return nil, "`current` is missing"
	}
	if err := checkSecret(*v.Current); err != nil {
		return nil, "`current` is none: " + err.Message
	}
	secrets = []string{*v.Current}
	if v.Previous == nil || *v.Previous == "" {
		return secrets, ""
	}
	if err := checkSecret(*v.Previous); err != nil {
		return nil, "`previous` is none: " + err.Message
	}
	if *v.Previous == *v.Current {
		return nil, "`previous` equals `current`"
	}
	return append(secrets, *v.Previous), ""
}

// checkSecret: whsec_ and 24 to 64 bytes in base64.
func checkSecret(s string) *failure.Failure {
	encoded, found := strings.CutPrefix(s, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return failure.New(failure.ChannelMisconfig, "a signing secret is whsec_ followed by %d to %d bytes in base64", minSecret, maxSecret)
	}
	return nil
}
