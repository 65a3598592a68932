package api

import (
	"context"
	"slices"

	"almanac/internal/schedule"
)

// The world's acts by hand and what they read.

func (w *world) Stop(_ context.Context, id, reason, by string) (schedule.Run, error) {
	run, ok := w.runs[id]
	if !ok {
		return run, schedule.ErrNotFound
	}
	if run.Settled() && !w.stoppable {
		return run, &schedule.Conflict{Event: "stop", Why: "the run is settled", Run: &run}
	}
	run.StopBy, run.StopWhy = by, reason
	w.runs[id] = run
	w.wrote("stop %s: %s by %s", id, reason, by)
	return run, nil
}

func (w *world) RevokeLinks(_ context.Context, id, recipient, reason, by string) (schedule.Revocation, error) {
	if _, ok := w.runs[id]; !ok {
		return schedule.Revocation{}, schedule.ErrNotFound
	}
	w.wrote("revoke %s of %s: %s by %s", recipient, id, reason, by)
	done := schedule.Revocation{Run: id, At: w.at}
	if recipient != schedule.AllLinks {
		done.Submission = &schedule.Submission{Run: id, Channel: "email", RecipientHash: recipient}
	}
	return done, nil
}

func (w *world) Switch(_ context.Context, s schedule.Switches, reason, by string) (schedule.Control, error) {
	was := w.control
	w.control = s.Over(was)
	w.wrote("%s: %s by %s", w.control, reason, by)
	w.audits[schedule.ControlSubject] = append([]schedule.Audit{{At: w.at, Who: by, What: "control", Why: reason, Before: was.String(), After: w.control.String()}},
		w.audits[schedule.ControlSubject]...)
	return w.control, nil
}

func (w *world) Control(context.Context) (schedule.Control, error) { return w.control, w.fail }

func (w *world) Versions(_ context.Context, id, cursor string, limit int) ([]schedule.Version, string, error) {
	rows := slices.Clone(w.definitions[id])
	slices.Reverse(rows)
	return slice(rows, cursor, limit)
}

func (w *world) Accesses(_ context.Context, run, cursor string, limit int) ([]schedule.Access, string, error) {
	return slice(w.accesses[run], cursor, limit)
}

func (w *world) Audits(_ context.Context, subject, cursor string, limit int) ([]schedule.Audit, string, error) {
	return slice(w.audits[subject], cursor, limit)
}

func (w *world) DeadLetterPage(_ context.Context, cursor string, limit int) ([]schedule.DeadLetter, string, error) {
	return slice(w.dead, cursor, limit)
}

// suppressedHash is a recipient's who is suppressed.
const suppressedHash = "5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c"

func (w *world) Suppression(_ context.Context, channel, hash string) (schedule.Suppression, error) {
	if hash != suppressedHash || channel != "email" {
		return schedule.Suppression{}, schedule.ErrNotFound
	}
	return schedule.Suppression{Channel: channel, RecipientHash: hash, Reason: "bounce", Run: "ewr-delays@2013-07-01T13:00:00Z", At: w.at}, w.fail
}

func (w *world) Suppressions(ctx context.Context, cursor string, limit int) ([]schedule.Suppression, string, error) {
	s, err := w.Suppression(ctx, "email", suppressedHash)
	if err != nil {
		return nil, "", err
	}
	return slice([]schedule.Suppression{s}, cursor, limit)
}

func (w *world) Lift(ctx context.Context, channel, hash, reason, by string) (schedule.Suppression, error) {
	s, err := w.Suppression(ctx, channel, hash)
	if err != nil {
		return s, err
	}
	s.Lift = schedule.Lift{By: by, Why: reason, At: w.at}
	w.wrote("lift %s %s: %s by %s", channel, hash, reason, by)
	return s, nil
}
