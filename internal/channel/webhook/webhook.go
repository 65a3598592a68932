// Package webhook sends a delivery as one signed POST by Standard Webhooks (design.md §5;
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
//
// The receiver sees the submission's key as webhook-id on every try, with equal bytes, so this channel honours keys: a
// lost answer may be tried again.
package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	signing "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"almanac/internal/channel"
	"almanac/internal/channel/wire"
	"almanac/internal/failure"
)

const (
	maxAnswer     = 4 << 10     // bytes of the receiver's body that are read; none is kept
	maxReading    = time.Second // that its body is read; a status is the whole answer, and connections are not kept
	maxHeaders    = 32 << 10    // bytes of the receiver's headers
	defaultTry    = 20 * time.Second
	userAgent     = "Almanac-Webhook/1"
	maxRetryAfter = 15 * time.Minute // lifecycles A, "Attempts"
)

// Secrets gives the secrets that sign for an id: one, or two while they are being rotated, the current one first. A
// *failure.Failure says why there is none.
type Secrets interface {
	Get(ctx context.Context, id string) ([]string, error)
}

// Config is what the channel needs from the stage.
type Config struct {
	Private  []netip.Prefix   // networks besides the public ones that may be reached, over http too
	Timeout  time.Duration    // longest single try; zero: 20 s. The caller's deadline holds as well
	Now      func() time.Time // wall time; required
	Resolver *net.Resolver    // nil: the system's
	TLS      *tls.Config      // nil: the system's roots
	// Out carries the requests in place of the network, for a test that has none. nil: the network, whose addresses are
	// checked when they are dialled.
	Out http.RoundTripper
}

// Channel implements channel.Channel. It is safe for concurrent use.
type Channel struct {
	secrets Secrets
	private []netip.Prefix
	timeout time.Duration
	now     func() time.Time
	out     http.RoundTripper
}

var _ channel.Channel = (*Channel)(nil)

// New checks the configuration; the error names the field.
func New(secrets Secrets, cfg Config) (*Channel, error) {
	switch {
	case secrets == nil:
		return nil, fmt.Errorf("webhook channel: no secrets; give a source of signing secrets")
	case cfg.Now == nil:
		return nil, fmt.Errorf("webhook channel: Now: no clock; give one")
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("webhook channel: Timeout %s: must not be negative", cfg.Timeout)
	}
	for _, p := range cfg.Private {
		if !p.IsValid() {
			return nil, fmt.Errorf("webhook channel: Private: a network that is none; write CIDR blocks such as 10.1.0.0/16")
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTry
	}
	if cfg.Out == nil {
		cfg.Out = newTransport(cfg)
	}
	return &Channel{secrets: secrets, private: cfg.Private, timeout: cfg.Timeout, now: cfg.Now, out: cfg.Out}, nil
}

// HonoursKeys is true: the receiver can tell a second try by webhook-id.
func (c *Channel) HonoursKeys() bool { return true }

// Freeze renders the JSON, once. entropy is not needed.
func (c *Channel) Freeze(_ context.Context, d channel.Delivery, now time.Time, _ []byte) (channel.Frozen, error) {
	if d.FileLink == "" {
		return channel.Frozen{}, failure.New(failure.ChannelMisconfig, "there is no download link for the webhook to name: configure the base URL of the API")
	}
	body, err := render(d, now)
	if err != nil {
		return channel.Frozen{}, err
	}
	sum := sha256.Sum256(body)
	return channel.Frozen{Date: now.UTC().Truncate(time.Second), Body: body, BodyHash: hex.EncodeToString(sum[:])}, nil
}

// Send posts Frozen.Body once, signed for this try by every active secret.
func (c *Channel) Send(ctx context.Context, d channel.Delivery, f channel.Frozen) channel.Verdict {
	if err := channel.ValidateURL(d.Recipient, c.private...); err != nil {
		return channel.Verdict{Outcome: channel.Refused, Reason: channel.ReasonInvalid, Detail: "the URL is not one that may be called: it must be https, absolute and without user, password or fragment"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	signatures, now, err := c.sign(ctx, d, f.Body)
	if err != nil {
		v := channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.From(err)}
		if !v.Failure.Passing() {
			v.Outcome = channel.RunRefused
		}
		return v
	}
	var w wire.Watch
	req, err := http.NewRequestWithContext(w.Context(ctx), http.MethodPost, strings.TrimSpace(d.Recipient), bytes.NewReader(f.Body))
	if err != nil {
		return channel.Verdict{Outcome: channel.Refused, Reason: channel.ReasonInvalid, Detail: "no request can be made for the URL"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(signing.HeaderWebhookID, d.Key)
	req.Header.Set(signing.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(signing.HeaderWebhookSignature, signatures)
	res, err := c.out.RoundTrip(req)
	if err != nil {
		return broken(err, w.NothingLeft(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols { // after a 101 the body is the bare connection, which no deadline ends
		defer time.AfterFunc(maxReading, cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // the status is the verdict, whatever becomes of the body
	}
	return answered(res.StatusCode, res.Header.Get("Retry-After"), now)
}

// sign returns the signatures, separated by blanks, and the time that they are for.
func (c *Channel) sign(ctx context.Context, d channel.Delivery, body []byte) (string, time.Time, error) {
	now := c.now()
	if d.SecretID == "" {
		return "", now, failure.New(failure.ChannelMisconfig, "secret: the webhook recipient names none; name the secret that signs for it")
	}
	if err := checkHeader(d.Key); err != nil {
		return "", now, err
	}
	secrets, err := c.secrets.Get(ctx, d.SecretID)
	if err != nil {
		return "", now, err
	}
	if len(secrets) == 0 || len(secrets) > 2 {
		return "", now, failure.New(failure.ChannelMisconfig, "secret: %d are active; one must be, or two while they are being rotated", len(secrets))
	}
	var out []string
	for _, s := range secrets {
		if err := checkSecret(s); err != nil {
			return "", now, err
		}
		signer, err := signing.NewWebhook(s)
		if err != nil {
			return "", now, failure.New(failure.ChannelMisconfig, "secret: it is not base64 after whsec_")
		}
		signature, err := signer.Sign(d.Key, now, body)
		if err != nil {
			return "", now, err
		}
		out = append(out, signature)
	}
	return strings.Join(out, " "), now, nil
}

// checkHeader refuses a key that cannot be a header's value; it is our own, so that is a fault of the program.
func checkHeader(key string) error {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("webhook: the submission's key %q is not fit for a header", failure.Cut(key, 80))
	}
	return nil
}
