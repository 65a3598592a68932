package schedule

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"almanac/internal/channel"
)

// LinkBase spells our own download and unsubscribe routes. A token names its submission and carries a secret that is
// derived from the one on the submission and from what the link is for: it needs no record of its own, and who is
// forwarded a file's link cannot unsubscribe anybody.
type LinkBase string

// purpose is what a link is for.
type purpose string

const (
	toDownload    purpose = "file"
	toUnsubscribe purpose = "unsubscribe"
)

// File is the address of the run's file for one recipient.
func (b LinkBase) File(s Submission) string { return string(b) + "/files/" + linkToken(s, toDownload) }

// Unsubscribe is the address at which one recipient says no. Only e-mail has one.
func (b LinkBase) Unsubscribe(s Submission) string {
	if s.Channel != channel.Email {
		return ""
	}
	return string(b) + "/unsubscribe/" + linkToken(s, toUnsubscribe)
}

func linkToken(s Submission, p purpose) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join([]string{s.Run, s.Channel, s.RecipientHash, linkSecret(s, p)}, "\n")))
}

// linkSecret is 128 bits of an HMAC over the purpose under the submission's secret.
func linkSecret(s Submission, p purpose) string {
	mac := hmac.New(sha256.New, []byte(s.Token))
	mac.Write([]byte(p))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// LinkGone is a link that does not lead anywhere (any more), with what its holder should be told.
type LinkGone struct {
	Why          string // "unknown", "expired" or "revoked"
	ScheduleName string // empty where the token is unknown: it says nothing about anything
	Owner        string // whom to ask
	At           time.Time
}

func (g *LinkGone) Error() string { return "the link is " + g.Why }

// LinkLedger is what links ask of the store.
type LinkLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	Submission(ctx context.Context, run, channel, recipientHash string) (Submission, error)
	Outline(ctx context.Context, id string, version int) (Version, error)
	Unsubscribed(ctx context.Context, channel, recipientHash, schedule string) (bool, error)
	Unsubscribe(ctx context.Context, channel, recipientHash, schedule string, at time.Time) error
	RecordAccess(ctx context.Context, s Submission, at time.Time, id, what string, expires time.Time) error
}

// Links serves the two public routes.
type Links struct {
	Ledger LinkLedger
	// Sign makes an address at which the object can be fetched for a short while.
	Sign   func(ctx context.Context, f RecordedFile, life time.Duration) (string, error)
	Wall   func() time.Time
	Token  func() string
	Timing Timing
}

// Unsubscription is what the holder of an unsubscribe link is shown.
type Unsubscription struct {
	ScheduleName string
	Owner        string
	Done         bool
}

// Open returns an address of the file behind a link, signed at the click for a minute: a presigned link of the link's
// own life would die with its signer's session (case F6).
func (l *Links) Open(ctx context.Context, token string) (string, error) {
	sub, run, def, err := l.find(ctx, token, toDownload)
	if err != nil {
		return "", err
	}
	now := l.Wall()
	gone := &LinkGone{ScheduleName: def.Name, Owner: def.Owner}
	switch {
	case run.File == nil:
		gone.Why = "unknown"
		return "", gone
	case !sub.RevokedAt.IsZero():
		gone.Why, gone.At = "revoked", sub.RevokedAt
		return "", gone
	case !run.LinksRevoked.IsZero():
		gone.Why, gone.At = "revoked", run.LinksRevoked
		return "", gone
	case !now.Before(run.LinkExpires):
		gone.Why, gone.At = "expired", run.LinkExpires
		return "", gone
	}
	if err := l.Ledger.RecordAccess(ctx, sub, now, l.Token(), "download", now.Add(l.Timing.RunRetention.Std())); err != nil {
		return "", err // what is not logged is not handed out
	}
	return l.Sign(ctx, *run.File, l.Timing.DownloadLife.Std())
}

// Unsubscription shows where an unsubscribe link leads; it changes nothing.
func (l *Links) Unsubscription(ctx context.Context, token string) (Unsubscription, error) {
	sub, run, def, err := l.find(ctx, token, toUnsubscribe)
	if err != nil {
		return Unsubscription{}, err
	}
	no, err := l.Ledger.Unsubscribed(ctx, sub.Channel, sub.RecipientHash, run.Schedule)
	return Unsubscription{def.Name, def.Owner, no}, err
}

// Unsubscribe records the recipient's no to this schedule. Asking again changes nothing.
func (l *Links) Unsubscribe(ctx context.Context, token string) (Unsubscription, error) {
	sub, run, def, err := l.find(ctx, token, toUnsubscribe)
	if err != nil {
		return Unsubscription{}, err
	}
	now := l.Wall()
	if err := l.Ledger.Unsubscribe(ctx, sub.Channel, sub.RecipientHash, run.Schedule, now); err != nil {
		return Unsubscription{}, err
	}
	if err := l.Ledger.RecordAccess(ctx, sub, now, l.Token(), "unsubscribe", now.Add(l.Timing.RunRetention.Std())); err != nil {
		return Unsubscription{}, err
	}
	return Unsubscription{def.Name, def.Owner, true}, nil
}

// find reads the submission that a token names and compares its secret. Every token that does not fit is "unknown".
func (l *Links) find(ctx context.Context, token string, p purpose) (Submission, Run, Version, error) {
	unknown := func() (Submission, Run, Version, error) {
		return Submission{}, Run{}, Version{}, &LinkGone{Why: "unknown"}
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) > 1024 {
		return unknown()
	}
	parts := strings.Split(string(raw), "\n")
	if len(parts) != 4 || p == toUnsubscribe && parts[1] != channel.Email {
		return unknown()
	}
	sub, err := l.Ledger.Submission(ctx, parts[0], parts[1], parts[2])
	if errors.Is(err, ErrNotFound) {
		return unknown()
	}
	if err != nil {
		return sub, Run{}, Version{}, err
	}
	if sub.Token == "" || subtle.ConstantTimeCompare([]byte(linkSecret(sub, p)), []byte(parts[3])) != 1 {
		return unknown()
	}
	run, err := l.Ledger.Run(ctx, sub.Run)
	if errors.Is(err, ErrNotFound) {
		return unknown()
	}
	if err != nil {
		return sub, run, Version{}, err
	}
	def, err := l.Ledger.Outline(ctx, run.Schedule, run.Version)
	if err != nil {
		return sub, run, def, fmt.Errorf("link of run %s: %w", sub.Run, err)
	}
	return sub, run, def, nil
}
