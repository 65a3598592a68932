package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
)

// A suppression holds for every schedule of the stage, whatever workspace it was that had the bounce.
func (s *server) registerSuppressions() {
	op := s.operation
	register(s, op("GET", "/suppressions", "list-suppressions", "Recipients that nothing is sent to, by channel and hash", 422), s.listSuppressions)
	register(s, op("GET", "/suppressions/{channel}/{recipient}", "show-suppression", "Why nothing is sent to a recipient, or who lifted that", 404, 422), s.showSuppression)
	registerBody[reasonBody](s, op("POST", "/suppressions/{channel}/{recipient}/lift", "lift-suppression", "Let a recipient be sent to again; what happened before does not suppress again", 404, 409, 422), true, s.liftSuppression)
	register(s, op("GET", "/suppressions/{channel}/{recipient}/audits", "list-suppression-audits", "Who lifted it, the latest first", 404, 422), s.listSuppressionAudits)
}

// SuppressionView is a recipient that nothing is sent to, or was not until a person lifted it.
type SuppressionView struct {
	Channel string     `json:"channel"`
	Hash    string     `json:"hash" doc:"the recipient's, as GET /runs/{run} shows it"`
	Reason  string     `json:"reason" enum:"bounce,complaint"`
	Why     string     `json:"why,omitempty"`
	Run     string     `json:"run" doc:"whose mail it was"`
	At      *time.Time `json:"at" doc:"when it happened, by the mail service's clock"`
	Lifted  *LiftView  `json:"lifted,omitempty"`
}

// LiftView is a person's word that a recipient may be sent to again.
type LiftView struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	At     *time.Time `json:"at"`
}

func suppressionView(s schedule.Suppression) SuppressionView {
	v := SuppressionView{s.Channel, s.RecipientHash, s.Reason, s.Why, s.Run, instant(s.At), nil}
	if !s.Holds() {
		v.Lifted = &LiftView{s.Lift.By, s.Lift.Why, instant(s.Lift.At)}
	}
	return v
}

func (s *server) listSuppressions(ctx context.Context, in *Listing) (*list[SuppressionView], error) {
	read := func(ctx context.Context, _, from string, limit int) ([]schedule.Suppression, string, error) {
		return s.Reader.Suppressions(ctx, from, limit)
	}
	return pageOf(ctx, *in, "suppressions", "", read, suppressionView)
}

// SuppressedRecipient is the path of one. An address stands in no path: paths are logged on the way.
type SuppressedRecipient struct {
	Channel   string `path:"channel" doc:"email or webhook"`
	Recipient string `path:"recipient" doc:"The recipient's hash: the first 32 hexadecimal digits of the SHA-256 of channel, line feed, and the address in lower case"`
}

// check refuses a path that names no recipient.
func (in SuppressedRecipient) check() error {
	switch {
	case in.Channel != channel.Email && in.Channel != channel.Webhook:
		return wrong("channel", in.Channel, `"email" or "webhook"`)
	case !hashForm.MatchString(in.Recipient):
		return wrong("recipient", in.Recipient, "the hash of a recipient, 32 hexadecimal digits as GET /suppressions shows it")
	}
	return nil
}

// found tells a recipient who never was suppressed from one whose suppression was lifted.
func (in SuppressedRecipient) found(sup schedule.Suppression, err error) (*reply[SuppressionView], error) {
	if errors.Is(err, schedule.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "%s %s is not suppressed, and never was", in.Channel, in.Recipient)
	} else if err != nil {
		return nil, err
	}
	return &reply[SuppressionView]{suppressionView(sup)}, nil
}

func (s *server) showSuppression(ctx context.Context, in *SuppressedRecipient) (*reply[SuppressionView], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return in.found(s.Reader.Suppression(ctx, in.Channel, in.Recipient))
}

func (s *server) liftSuppression(ctx context.Context, in *struct {
	SuppressedRecipient
	Raw
}) (*reply[SuppressionView], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var body reasonBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	return in.found(s.Editor.Lift(ctx, in.Channel, in.Recipient, body.Reason, caller(ctx).Name))
}

func (s *server) listSuppressionAudits(ctx context.Context, in *struct {
	SuppressedRecipient
	Listing
}) (*list[AuditView], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return pageOf(ctx, in.Listing, "suppression audits", schedule.SuppressionSubject(in.Channel, in.Recipient), s.Reader.Audits, auditView)
}
