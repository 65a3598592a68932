package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// feedbackNames are the attributes of a submission that hold feedback, in the order in which it is told.
var feedbackNames = []struct {
	kind  channel.FeedbackKind
	name  string
	again string // of a resend
}{
	{channel.Bounced, schema.Bounce, schema.BounceAgain},
	{channel.Complained, schema.Complaint, schema.ComplaintAgain},
	{channel.Rejected, schema.Rejection, schema.RejectionAgain},
}

func feedbackName(kind channel.FeedbackKind, resend bool) string {
	for _, n := range feedbackNames {
		switch {
		case n.kind == kind && resend:
			return n.again
		case n.kind == kind:
			return n.name
		}
	}
	panic("store: no attribute for feedback " + string(kind)) // a kind of package channel that is missing above
}

// RecordFeedback adds what a mail service said to a submission that is there, unless it has some of this kind; the state
// stays. What is said of a resend, known by sub.Resends, stands apart; a later resend's takes its place.
// schedule.ErrNotFound: the submission is not there (any more).
func (s *Store) RecordFeedback(ctx context.Context, sub schedule.Submission, f channel.Feedback) error {
	name := feedbackName(f.Kind, sub.Resends > 0)
	w := write{event: "record " + string(f.Kind), key: subKey(sub), mine: func(it item) bool { return it[name] != nil }}
	said := compact(map[string]any{schema.FeedbackAt: f.At, schema.FeedbackType: f.Type,
		schema.FeedbackSub: f.Subtype, schema.Why: f.Why, schema.Detail: f.Detail, schema.FeedbackMail: f.Mail})
	news := "attribute_not_exists(" + w.expr.name(name) + ")"
	if sub.Resends > 0 {
		number := sub.Resends + 1
		said[schema.FeedbackNumber] = attr(number)
		news = fmt.Sprintf("(%s OR %s.%s < %s)", news, w.expr.name(name), w.expr.name(schema.FeedbackNumber), w.expr.value(number))
	}
	w.condition = "attribute_exists(" + w.expr.name(schema.PK) + ") AND " + news
	w.update = w.expr.update(update{set: map[string]any{name: said}})
	err := s.send(ctx, w)
	var c *schedule.Conflict
	if errors.As(err, &c) { // refused, and no feedback of this kind stands: there is no such row
		return schedule.ErrNotFound
	}
	return err
}

// decodeFeedback reads a submission's feedback.
func decodeFeedback(it item, t *times) (fs []channel.Feedback) {
	for _, n := range feedbackNames {
		for _, name := range []string{n.name, n.again} {
			m, ok := it[name].(*types.AttributeValueMemberM)
			if !ok {
				continue
			}
			fs = append(fs, channel.Feedback{Kind: n.kind, At: t.read(m.Value, schema.FeedbackAt), Type: str(m.Value, schema.FeedbackType), Subtype: str(m.Value, schema.FeedbackSub),
				Why: str(m.Value, schema.Why), Detail: str(m.Value, schema.Detail), Mail: str(m.Value, schema.FeedbackMail)})
		}
	}
	return fs
}

// suppresses reports whether a suppression's row, empty where there is none, holds.
func suppresses(it item) bool { return len(it) > 0 && str(it, schema.LiftedAt) == "" }

// Suppress records that nothing more is sent to an address. One that is suppressed stays as it is; so does one that a
// person lifted after what is told of now happened.
func (s *Store) Suppress(ctx context.Context, sup schedule.Suppression) error {
	k := schema.SuppressionKey(sup.Channel, sup.RecipientHash)
	at := schema.Time(sup.At)
	w := write{event: "suppress", key: k, put: keyItem(k), mine: func(it item) bool { return suppresses(it) || str(it, schema.LiftedAt) >= at }}
	for name, v := range compact(map[string]any{schema.Reason: sup.Reason, schema.Detail: sup.Why, schema.Run: sup.Run, schema.CreatedAt: sup.At,
		schema.DirKind: schema.DirSuppressions, schema.DirName: schema.DirSuppressionName(sup.Channel, sup.RecipientHash)}) {
		w.put[name] = v
	}
	w.condition = "attribute_not_exists(" + w.expr.name(schema.PK) + ") OR " + w.expr.name(schema.LiftedAt) + " < " + w.expr.value(at)
	return s.send(ctx, w)
}

// LiftSuppression lets an address be sent to again, in one transaction with its audit. One that is lifted already, or not
// there, is a *schedule.Conflict.
func (s *Store) LiftSuppression(ctx context.Context, sup schedule.Suppression, a schedule.Audit) error {
	w := write{event: "lift suppression", key: schema.SuppressionKey(sup.Channel, sup.RecipientHash)}
	w.condition = w.expr.equals(schema.CreatedAt, schema.Time(sup.At)) + " AND attribute_not_exists(" + w.expr.name(schema.LiftedAt) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.LiftedAt: schema.Time(a.At), schema.LiftedBy: a.Who, schema.LiftedWhy: a.Why, schema.DirKind: nil, schema.DirName: nil}})
	return s.transact(ctx, w, auditWrite(a))
}

// Suppression reads one consistently, also one that was lifted.
func (s *Store) Suppression(ctx context.Context, channelName, recipientHash string) (schedule.Suppression, error) {
	it, err := s.get(ctx, schema.SuppressionKey(channelName, recipientHash))
	if err != nil {
		return schedule.Suppression{}, err
	}
	return decodeSuppression(it)
}

// Suppressions lists the addresses that nothing is sent to, by channel and hash.
func (s *Store) Suppressions(ctx context.Context, from string, limit int) ([]schedule.Suppression, string, error) {
	keys, next, err := s.directory(ctx, schema.DirSuppressions, "", from, limit)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.batch(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	var list []schedule.Suppression
	for _, k := range keys {
		if !suppresses(rows[k]) {
			continue // the index is behind
		}
		sup, err := decodeSuppression(rows[k])
		if err != nil {
			return nil, "", err
		}
		list = append(list, sup)
	}
	return list, next, nil
}

func decodeSuppression(it item) (schedule.Suppression, error) {
	if len(it) == 0 {
		return schedule.Suppression{}, schedule.ErrNotFound
	}
	var t times
	name, hash, _ := strings.Cut(strings.TrimPrefix(string(keyOf(it).PK), "RCPT#"), "#")
	return schedule.Suppression{Channel: name, RecipientHash: hash, Reason: str(it, schema.Reason), Why: str(it, schema.Detail), Run: str(it, schema.Run), At: t.read(it, schema.CreatedAt),
		Lift: schedule.Lift{By: str(it, schema.LiftedBy), Why: str(it, schema.LiftedWhy), At: t.read(it, schema.LiftedAt)}}, t.err
}
