package schedule

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"almanac/internal/channel"
	"almanac/internal/input"
)

// LinkKeeper is what taking links back asks of the store. Each act and its audit are one transaction; a row that is
// revoked already is a Conflict that carries it.
type LinkKeeper interface {
	Run(ctx context.Context, id string) (Run, error)
	Submission(ctx context.Context, run, channel, recipientHash string) (Submission, error)
	RevokeLink(ctx context.Context, s Submission, a Audit) error
	RevokeLinks(ctx context.Context, r Run, a Audit) error
}

// AllLinks stands for every recipient of a run: those who have a link, and those who would get one later.
const AllLinks = "all"

// Revocation is one recipient's link, or all links of a run, that lead nowhere any more.
type Revocation struct {
	Run        string
	Submission *Submission // nil: all links of the run
	At         time.Time   // of the act that took them back
}

// RevokeLinks takes back the download link of one recipient, named by hash, or all links of a run. Whoever holds one is
// told whom to ask. The file stays as long as it is kept, a copy that was attached to a mail is out of reach, and
// unsubscribing still works. Asking again changes nothing: the first act stands.
func (e *Editor) RevokeLinks(ctx context.Context, id, recipient, reason, by string) (Revocation, error) {
	if ps := needReason(reason); ps != nil {
		return Revocation{}, ps
	}
	if recipient != AllLinks && !hashForm.MatchString(recipient) {
		return Revocation{}, Problems{input.Wrong("recipient", fmt.Sprintf("%.60q", recipient), wantRecipient)}
	}
	a := e.audit(id, by, "revoke links", reason, "", "")
	for try := 0; ; try++ {
		r, err := e.Ledger.Run(ctx, id)
		if err != nil {
			return Revocation{}, err
		}
		a.Before = linksOf(r)
		var done Revocation
		if recipient == AllLinks {
			done, err = e.revokeAll(ctx, r, a)
		} else {
			done, err = e.revokeOne(ctx, r, recipient, a)
		}
		if retry(ctx, err, try) {
			continue // somebody else took it back, or the run's row went, between read and write
		}
		return done, err
	}
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

const wantRecipient = `the hash of a recipient that the run has asked, as GET /runs/{run} shows it, or "all"`

// linksOf says until when links work, for an audit.
func linksOf(r Run) string {
	if r.LinkExpires.IsZero() {
		return "no file yet"
	}
	return "valid until " + r.LinkExpires.UTC().Format(time.RFC3339)
}

func (e *Editor) revokeAll(ctx context.Context, r Run, a Audit) (Revocation, error) {
	if !r.LinksRevoked.IsZero() {
		return Revocation{Run: r.ID(), At: r.LinksRevoked}, nil
	}
	a.After = "all revoked"
	return Revocation{Run: r.ID(), At: a.At}, e.Ledger.RevokeLinks(ctx, r, a)
}

func (e *Editor) revokeOne(ctx context.Context, r Run, hash string, a Audit) (Revocation, error) {
	sub, err := e.linked(ctx, r, hash)
	if err != nil {
		return Revocation{}, err
	}
	done := Revocation{r.ID(), &sub, a.At}
	if !sub.RevokedAt.IsZero() {
		done.At = sub.RevokedAt
		return done, nil
	}
	a.After = "revoked for " + sub.Channel + " " + hash
	return done, e.Ledger.RevokeLink(ctx, sub, a)
}

// linked reads the submission of a recipient, whose hash does not tell the channel.
func (e *Editor) linked(ctx context.Context, r Run, hash string) (Submission, error) {
	for _, name := range []string{channel.Email, channel.Webhook} {
		sub, err := e.Ledger.Submission(ctx, r.ID(), name, hash)
		if errors.Is(err, ErrNotFound) || err == nil && sub.Token == "" {
			continue // none, or one that was given no link
		}
		return sub, err
	}
	return Submission{}, Problems{input.Wrong("recipient", fmt.Sprintf("%q", hash), wantRecipient+"; this one was given no link")}
}
