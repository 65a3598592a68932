package api

import (
	"context"

	"almanac/internal/schedule"
)

// someHash is a recipient's in the requests of the tests.
const someHash = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

func init() {
	of := "/runs/ewr-delays@2013-07-01T13:00:00Z/recipients/" + someHash
	samples["POST /runs/{run}/recipients/{recipient}/resolve"] = asked{of + "/resolve", `{"as":"skipped","reason":"they called"}`}
	samples["POST /runs/{run}/recipients/{recipient}/resend"] = asked{of + "/resend", `{"reason":"they called"}`}
	samples["POST /dead-letters/{message}/redrive"] = asked{"/dead-letters/m-1/redrive", `{"reason":"mended"}`}
	samples["GET /runs/{run}/retry"] = asked{"/runs/ewr-delays@2013-07-01T13:00:00Z/retry?to=everyone", ""}
	samples["POST /runs/{run}/retry"] = asked{"/runs/ewr-delays@2013-07-01T13:00:00Z/retry", `{"reason":"they called"}`}
}

type asked = struct{ target, body string }

func (w *world) Resolve(_ context.Context, id, recipient, as, reason, by string) (schedule.Submission, error) {
	if _, ok := w.runs[id]; !ok {
		return schedule.Submission{}, schedule.ErrNotFound
	}
	w.wrote("resolve %s of %s as %s: %s by %s", recipient, id, as, reason, by)
	return schedule.Submission{Run: id, Channel: "email", RecipientHash: recipient, State: schedule.SubmissionState(as)}, nil
}

func (w *world) PlanRetry(_ context.Context, id string, q schedule.RetryRequest) (schedule.RetryPlan, error) {
	run, ok := w.runs[id]
	if !ok {
		return schedule.RetryPlan{}, schedule.ErrNotFound
	}
	return schedule.RetryPlan{Of: run, To: q.To}, w.fail
}

func (w *world) Retry(_ context.Context, id string, q schedule.RetryRequest, reason, by, key, _ string) (schedule.Run, bool, error) {
	run, ok := w.runs[id]
	if !ok {
		return run, false, schedule.ErrNotFound
	}
	w.wrote("retry %s to %s and %v: %s by %s", id, q.To, q.IncludeUnknown, reason, by)
	run.Occurrence, run.RetryOf, run.State = schedule.ManualKey(by, key), id, schedule.Queued
	return run, true, nil
}

func (w *world) Resend(_ context.Context, id, recipient, reason, by string) (schedule.Submission, error) {
	if _, ok := w.runs[id]; !ok {
		return schedule.Submission{}, schedule.ErrNotFound
	}
	w.wrote("resend %s of %s: %s by %s", recipient, id, reason, by)
	return schedule.Submission{Run: id, Channel: "email", RecipientHash: recipient, State: schedule.Unknown, Wish: schedule.Wish{ID: "w", By: by, Why: reason}}, nil
}

func (w *world) Redrive(_ context.Context, message, reason, by string) (schedule.DeadLetter, error) {
	w.wrote("redrive %s: %s by %s", message, reason, by)
	return schedule.DeadLetter{MessageID: message, RedrivenAt: w.at}, nil
}
