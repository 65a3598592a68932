package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// Switch turns the stage's switches on the condition that they stand as read, in one transaction with its audit. Another's
// turn meanwhile is a *schedule.Conflict.
func (s *Store) Switch(ctx context.Context, was, now schedule.Control, a schedule.Audit) error {
	k := schema.ControlKey(s.Stage)
	w := write{event: "switch", key: k, put: keyItem(k)}
	for name, v := range compact(map[string]any{schema.DispatchOff: now.DispatchOff, schema.SendOff: now.SendOff, schema.CreatedBy: a.Who, schema.UpdatedAt: a.At}) {
		w.put[name] = v
	}
	w.condition = w.expr.off(schema.DispatchOff, was.DispatchOff) + " AND " + w.expr.off(schema.SendOff, was.SendOff)
	return s.transact(ctx, w, auditWrite(a))
}

// off compares a switch with how it was read: one that is on has no attribute.
func (e *expression) off(attribute string, off bool) string {
	if off {
		return e.name(attribute) + " = " + e.value(true)
	}
	return "attribute_not_exists(" + e.name(attribute) + ")"
}

// RevokeLink takes back the download link of one recipient, in whatever state its request is, in one transaction with its
// audit. One that has no link, or whose link was taken back already, is a *schedule.Conflict with the row.
func (s *Store) RevokeLink(ctx context.Context, sub schedule.Submission, a schedule.Audit) error {
	w := write{event: "revoke link", key: subKey(sub)}
	w.condition = "attribute_exists(" + w.expr.name(schema.Token) + ") AND attribute_not_exists(" + w.expr.name(schema.RevokedAt) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.RevokedAt: schema.Time(a.At)}})
	return s.transact(ctx, w, auditWrite(a))
}

// RevokeLinks takes back all links of a run by one mark on it, so that ten thousand recipients cost one write and those
// who are asked later get no working link either. A run that bears the mark is a *schedule.Conflict with the row.
func (s *Store) RevokeLinks(ctx context.Context, r schedule.Run, a schedule.Audit) error {
	w := write{event: "revoke links", key: runKey(r)}
	w.condition = "attribute_exists(" + w.expr.name(schema.PK) + ") AND attribute_not_exists(" + w.expr.name(schema.LinksRevoked) + ")"
	w.update = w.expr.update(update{set: map[string]any{schema.LinksRevoked: schema.Time(a.At)}, append: entry(a.At, "all links revoked")})
	return s.transact(ctx, w, auditWrite(a))
}

// Versions lists the versions of a schedule's definition, the latest first. Where a deleted schedule of the same id left
// some behind, those above the schedule's own version are not this one's.
func (s *Store) Versions(ctx context.Context, id, from string, limit int) ([]schedule.Version, string, error) {
	return decoded(ctx, s, below(schema.ScheduleKey(id).PK, schema.DefPrefix, true), from, limit, func(it item) (schedule.Version, error) {
		v, err := decodeVersion(it)
		if err != nil {
			err = fmt.Errorf("definition of %s: %w", id, err)
		}
		return v, err
	})
}

// Accesses lists who used the links of a run, by recipient, and by time below.
func (s *Store) Accesses(ctx context.Context, run, from string, limit int) ([]schedule.Access, string, error) {
	return decoded(ctx, s, below(schema.SubmissionPartition(run), schema.AccessPrefix, false), from, limit, func(it item) (schedule.Access, error) {
		a, err := decodeAccess(it)
		if err != nil {
			err = fmt.Errorf("link access of run %s: %w", run, err)
		}
		return a, err
	})
}

// DeadLetterPage is DeadLetters page by page, by message id.
func (s *Store) DeadLetterPage(ctx context.Context, from string, limit int) ([]schedule.DeadLetter, string, error) {
	return decoded(ctx, s, below(schema.DeadLetterKey("").PK, schema.DeadPrefix, false), from, limit, decodeDead)
}

func decodeVersion(it item) (schedule.Version, error) {
	var t times
	v := schedule.Version{Number: num(it, schema.Version), Hash: str(it, schema.Hash), CreatedBy: str(it, schema.CreatedBy), CreatedAt: t.read(it, schema.CreatedAt),
		List: schedule.ListRef{Hash: str(it, schema.RecipientsHash), Count: num(it, schema.RecipientsCount)}, Groups: list(it, schema.Groups)}
	if err := json.Unmarshal([]byte(str(it, schema.Body)), &v.Definition); err != nil {
		return v, fmt.Errorf("version %d: %w", v.Number, err)
	}
	return v, t.err
}

// decodeAccess reads an access out of its key, which holds all but what was done.
func decodeAccess(it item) (schedule.Access, error) {
	k := keyOf(it)
	a := schedule.Access{Run: strings.TrimPrefix(string(k.PK), "RUN#"), What: str(it, schema.What)}
	parts := strings.SplitN(strings.TrimPrefix(string(k.SK), schema.AccessPrefix), "#", 4)
	if len(parts) != 4 {
		return a, fmt.Errorf("%s: want channel, recipient, time and id in its key", k)
	}
	a.Channel, a.RecipientHash = parts[0], parts[1]
	at, err := schema.ParseTime(parts[2])
	if err != nil {
		return a, fmt.Errorf("%s: %w", k, err)
	}
	a.At = at
	return a, nil
}

func decodeDead(it item) (schedule.DeadLetter, error) {
	var t times
	d := schedule.DeadLetter{MessageID: strings.TrimPrefix(string(keyOf(it).SK), schema.DeadPrefix), Body: str(it, schema.Message), Queue: str(it, schema.Queue),
		Reason: str(it, schema.Reason), At: t.read(it, schema.CreatedAt), RedrivenAt: t.read(it, schema.UpdatedAt)}
	return d, t.err
}
