// Package email sends a delivery as one e-mail through Amazon SES, API version 1, SendRawEmail (design.md §5).
//
// SES has no idempotency key for it, so this channel does not honour keys: a request whose answer was lost is never
// tried again by itself (lifecycles B).
package email

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

// MaxMessage is the longest message in bytes, headers and encoded attachment included. SES allows "10 MB per message
// (after base64 encoding)" through this API; the smaller reading of MB is taken.
// Source: https://docs.aws.amazon.com/ses/latest/dg/quotas.html, "Message quotas".
const MaxMessage = 10_000_000

// SES sends one raw message, once. An error that carries no answer of SES leaves unknown whether it was accepted.
type SES interface {
	SendRawEmail(ctx context.Context, in *ses.SendRawEmailInput, opts ...func(*ses.Options)) (*ses.SendRawEmailOutput, error)
}

// NewClient makes the SES client for this channel: the SDK's own retries are off, because a retry after a lost answer
// is a second mail.
func NewClient(cfg aws.Config, opts ...func(*ses.Options)) *ses.Client {
	return ses.NewFromConfig(cfg, append([]func(*ses.Options){noRetries}, opts...)...)
}

func noRetries(o *ses.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RetryMaxAttempts = 1
}

// Config is what the channel needs from the stage.
type Config struct {
	From             string // the verified address that mails come from
	FromName         string // the name shown with it; empty: Almanac
	ConfigurationSet string // SES configuration set; empty: none
}

// Channel implements channel.Channel. It is safe for concurrent use.
type Channel struct {
	ses  SES
	from mail.Address
	set  string
}

var _ channel.Channel = (*Channel)(nil)

// New checks the configuration; the error names the field.
func New(client SES, cfg Config) (*Channel, error) {
	if client == nil {
		return nil, fmt.Errorf("e-mail channel: no SES client; give one made by NewClient")
	}
	if err := channel.ValidateAddress(cfg.From); err != nil {
		return nil, fmt.Errorf("e-mail channel: From: %w", err)
	}
	name := plain(cfg.FromName)
	if name == "" {
		name = "Almanac"
	}
	if set := cfg.ConfigurationSet; strings.Trim(set, setChars) != "" || len(set) > 64 {
		return nil, fmt.Errorf("e-mail channel: ConfigurationSet %q: at most 64 letters, digits, hyphens and underscores are possible", failure.Cut(set, 80))
	}
	return &Channel{ses: client, from: mail.Address{Name: name, Address: strings.TrimSpace(cfg.From)}, set: cfg.ConfigurationSet}, nil
}

const setChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// HonoursKeys is false: SES takes each request for a new message.
func (c *Channel) HonoursKeys() bool { return false }

// Freeze decides between attachment and link by the size of the encoded message, and hashes the message. It reads the
// file when it is attached, and fails with file_inconsistent when that is not the recorded one. It does not judge the
// recipient: Send does, and refuses that one alone.
func (c *Channel) Freeze(ctx context.Context, d channel.Delivery, now time.Time, entropy []byte) (channel.Frozen, error) {
	if len(entropy) != 16 {
		return channel.Frozen{}, fmt.Errorf("e-mail: entropy of %d bytes, 16 are needed", len(entropy))
	}
	if err := checkDelivery(d); err != nil {
		return channel.Frozen{}, err
	}
	f := channel.Frozen{Date: now.UTC().Truncate(time.Second), Boundary: hex.EncodeToString(entropy), Attach: true}
	empty, err := c.render(d, f, nil)
	if err != nil {
		return channel.Frozen{}, err
	}
	f.Attach = int64(len(empty))+encodedLen(d.File.Bytes) <= MaxMessage
	if !f.Attach && d.FileLink == "" {
		return channel.Frozen{}, failure.New(failure.ChannelMisconfig, "the file has %d bytes, too many for an attachment, and there is no download link: configure the base URL of the API", d.File.Bytes)
	}
	content, err := attachment(ctx, d.File, f.Attach)
	if err != nil {
		return channel.Frozen{}, err
	}
	message, err := c.render(d, f, content)
	if err != nil {
		return channel.Frozen{}, err
	}
	f.BodyHash = hash(message)
	return f, nil
}

// Send sends the message once. What SES or the network said is read in verdict.go.
func (c *Channel) Send(ctx context.Context, d channel.Delivery, f channel.Frozen) channel.Verdict {
	if v, ok := sendable(ctx, d.Recipient); !ok {
		return v
	}
	message, v := c.message(ctx, d, f)
	if message == nil {
		return v
	}
	sent := c.submit(ctx, d.Recipient, message)
	if sent.Outcome == channel.Accepted {
		sent.Detail = v.Detail
	}
	return sent
}

// sendable refuses an address that is none, and a request for which no time is left.
func sendable(ctx context.Context, recipient string) (channel.Verdict, bool) {
	if err := channel.ValidateAddress(recipient); err != nil {
		return channel.Verdict{Outcome: channel.Refused, Reason: channel.ReasonInvalid, Detail: "the address is not one that mail can be sent to"}, false
	}
	if ctx.Err() != nil {
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.New(failure.SendFailed, "no time was left to send the mail")}, false
	}
	return channel.Verdict{}, true
}

// submit hands one message to SES, once.
func (c *Channel) submit(ctx context.Context, recipient string, message []byte) channel.Verdict {
	in := &ses.SendRawEmailInput{
		Source:       aws.String(c.from.Address),
		Destinations: []string{strings.TrimSpace(recipient)},
		RawMessage:   &types.RawMessage{Data: message},
	}
	if c.set != "" {
		in.ConfigurationSetName = aws.String(c.set)
	}
	var w watch
	out, err := c.ses.SendRawEmail(ctx, in, noRetries, w.install)
	if err != nil {
		return judge(err, w.nothingLeft(err))
	}
	v := channel.Verdict{Outcome: channel.Accepted}
	if out != nil {
		v.ProviderID = aws.ToString(out.MessageId)
	}
	return v
}

// message renders what Freeze froze. A message that no longer hashes to what was frozen comes from a newer version of
// this program; it is sent all the same, because a mail is tried again only when nothing was accepted before.
func (c *Channel) message(ctx context.Context, d channel.Delivery, f channel.Frozen) ([]byte, channel.Verdict) {
	err := checkDelivery(d)
	var content, message []byte
	if err == nil {
		content, err = attachment(ctx, d.File, f.Attach)
	}
	if err == nil {
		message, err = c.render(d, f, content)
	}
	if err != nil {
		v := channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.From(err)}
		if !v.Failure.Passing() {
			v.Outcome = channel.RunRefused
		}
		return nil, v
	}
	var v channel.Verdict
	if f.BodyHash != "" && hash(message) != f.BodyHash {
		v.Detail = "rendered by another version of the program than the one that planned it"
	}
	return message, v
}

// attachment reads the recorded file, and only that one.
func attachment(ctx context.Context, file channel.File, wanted bool) ([]byte, error) {
	if !wanted {
		return nil, nil
	}
	if file.Open == nil {
		return nil, failure.New(failure.FileUnavailable, "the recorded file cannot be opened here")
	}
	content, err := file.Open(ctx)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) != file.Bytes || !strings.EqualFold(hash(content), file.SHA256) {
		return nil, failure.New(failure.FileInconsistent, "the file read has %d bytes and SHA-256 %s; recorded were %d bytes and %s", len(content), hash(content), file.Bytes, failure.Cut(file.SHA256, 64))
	}
	return content, nil
}

// checkDelivery refuses what configuration or definition made impossible to render.
func checkDelivery(d channel.Delivery) error {
	if _, err := time.LoadLocation(d.Zone); err != nil || d.Zone == "" || d.Zone == "Local" {
		return failure.New(failure.DefinitionInvalid, "zone %q: not an IANA zone; write one such as Europe/Berlin", failure.Cut(d.Zone, 60))
	}
	for _, u := range []struct{ name, value string }{{"download link", d.FileLink}, {"unsubscribe link", d.Unsubscribe}} {
		if u.value == "" {
			continue
		}
		if p, err := url.Parse(u.value); err != nil || (p.Scheme != "https" && p.Scheme != "http") || p.Host == "" ||
			len(u.value) > 900 || strings.ContainsFunc(u.value, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"\\", r) }) {
			return failure.New(failure.ChannelMisconfig, "the %s is no plain http or https URL below 900 bytes: correct the base URL of the API", u.name)
		}
	}
	return nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
