package schedule

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schema"
)

// What a mail service says of a mail after it has accepted it is added beside the outcome; the submission's state and the
// run stay as they are (lifecycles B).

// FeedbackLedger is what taking feedback asks of the store.
type FeedbackLedger interface {
	Run(ctx context.Context, id string) (Run, error)
	// RecordFeedback adds feedback to a submission, unless one of its kind is there: the first one stands. A resend's,
	// known by s.Resends, stands apart from that of the first request, and a later resend's in its place. A submission that
	// is not there (any more) is ErrNotFound, and is not made.
	RecordFeedback(ctx context.Context, s Submission, f channel.Feedback) error
	// Suppress records that nothing more is sent to an address. One that is suppressed stays as it is, and so does one
	// that a person lifted after s.At.
	Suppress(ctx context.Context, s Suppression) error
}

// Suppression is an address to which no schedule of the stage sends, by hash.
type Suppression struct {
	Channel       string
	RecipientHash string
	Reason        string // "bounce" or "complaint"
	Why           string // for people
	Run           string // whose mail it was
	At            time.Time
	Lift          Lift // a person's; zero: it holds
}

// Lift is a person's word that an address may be sent to again.
type Lift struct {
	By, Why string
	At      time.Time
}

// Holds reports whether nothing is sent to the address.
func (s Suppression) Holds() bool { return s.Lift.At.IsZero() }

// FeedbackTaker records feedback. What it cannot relate to a mail of this stage it drops: nobody would be helped by
// having it again.
type FeedbackTaker struct {
	Ledger  FeedbackLedger
	Parse   func(body string) (channel.MailEvent, error)
	Account string // whose mails are ours
	Wall    func() time.Time
	Log     *slog.Logger
	Count   Counter
}

// Handle takes one event. An error means that it could not be read, or its effect not be recorded: it must come again.
// Nothing that an event holds is logged but words that were looked at.
func (t *FeedbackTaker) Handle(ctx context.Context, messageID, body string) error {
	log := t.Log.With("message", messageID)
	e, err := t.Parse(body)
	if err != nil {
		t.Count("mail_events", 1, "unreadable", "")
		return err
	}
	if e.Kind == "" {
		log.Info("an event that nobody asked for is dropped")
		t.Count("mail_events", 1, "ignored", "")
		return nil
	}
	if now := t.Wall(); e.At.After(now) {
		e.At = now // another clock than ours
	}
	about, why := t.about(e)
	if why == "" {
		err = t.record(ctx, about, e.Feedback)
	}
	if errors.Is(err, ErrNotFound) {
		why, err = "its run has expired, or never was", nil
	}
	switch {
	case err != nil:
		return err
	case why != "":
		log.Warn("an event about a mail of nobody is dropped", "event", e.Kind, "why", why)
		t.Count("mail_events", 1, "nobody", string(e.Kind))
		return nil
	}
	outcome := string(e.Kind)
	if e.Kind == channel.Bounced {
		outcome += "_" + e.Type
	}
	log.Info("mail event recorded", "run", about.run, "recipient", about.hash, "about", about.kind, "event", e.Kind, "type", e.Type, "subtype", e.Subtype, "suppresses", e.Suppresses())
	t.Count("mail_events", 1, outcome, about.kind)
	return nil
}

// mailOf is whose mail an event is about.
type mailOf struct {
	kind, run, hash string
	request         int // of a delivery: 1, and from 2 on a resend
}

const (
	ofDelivery = "delivery"
	ofNotice   = "notice"
)

// about finds whose mail it is by the key or id in its header, and holds that against whom the mail went to: a key that
// somebody else wrote into a mail of theirs names a recipient whom that mail did not go to, or tells nothing new.
func (t *FeedbackTaker) about(e channel.MailEvent) (m mailOf, why string) {
	var name string
	var ok bool
	switch {
	case e.Account != t.Account:
		return m, "another account sent it"
	case (e.Key == "") == (e.Notice == ""):
		return m, "its headers name no delivery and no notice, or both"
	case e.Key != "":
		m.kind = ofDelivery
		m.run, name, m.hash, m.request, ok = schema.SplitDeliveryKey(e.Key)
	default:
		m.kind = ofNotice
		m.run, name, m.hash, ok = schema.SplitNoticeID(e.Notice)
	}
	if schedule, occurrence, _ := schema.SplitRunID(m.run); !ok || name != channel.Email || !hashForm.MatchString(m.hash) || !idForm.MatchString(schedule) || !occurrenceForm.MatchString(occurrence) {
		return m, "what its header names is no mail of ours"
	}
	for _, r := range e.Recipients {
		if normal, err := channel.Normalise(channel.Email, r); err == nil && channel.RecipientHash(channel.Email, normal) == m.hash {
			return m, ""
		}
	}
	return m, "it went to somebody else than its header names"
}

// occurrenceForm is how OccurrenceKey and ManualKey spell.
var occurrenceForm = regexp.MustCompile(`^(\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ|manual-[0-9a-f]{32})$`)

// record writes what an event says. Each write can be repeated, so that an event that comes again completes what one
// before left undone.
func (t *FeedbackTaker) record(ctx context.Context, m mailOf, f channel.Feedback) error {
	var err error
	if m.kind == ofDelivery {
		err = t.Ledger.RecordFeedback(ctx, Submission{Run: m.run, Channel: channel.Email, RecipientHash: m.hash, Resends: m.request - 1}, f)
	} else {
		_, err = t.Ledger.Run(ctx, m.run) // a notice is gone once it is sent
	}
	if err != nil || !f.Suppresses() {
		return err
	}
	return t.Ledger.Suppress(ctx, Suppression{Channel: channel.Email, RecipientHash: m.hash, Reason: string(f.Kind), Why: reasonOf(f), Run: m.run, At: f.At})
}

// reasonOf says why an address is suppressed, shorter than its feedback.
func reasonOf(f channel.Feedback) string {
	if f.Why != "" {
		return f.Why
	}
	return strings.Trim(f.Type+" "+f.Subtype, " ")
}
