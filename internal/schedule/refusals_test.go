package schedule_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

// wantConflict demands a refusal with some words.
func wantConflict(t *testing.T, err error, words string) {
	t.Helper()
	var c *schedule.Conflict
	if !errors.As(err, &c) || !strings.Contains(c.Why, words) || c.Run == nil {
		t.Errorf("got %v, want a Conflict with the run that says %q", err, words)
	}
}

func TestASettledRunIsNeitherStoppedNorRedriven(t *testing.T) {
	w, run := linked(t, nil)
	before := w.run(run)
	_, err := w.editor.Stop(ctx, run, "enough", "ann")
	wantConflict(t, err, "settled as succeeded")
	w.dead("m", schedule.EncodeMessage(run))
	messages := w.messages(w.queue.URL)
	_, err = w.editor.Redrive(ctx, "m", "mended", "ann")
	wantConflict(t, err, "settled as succeeded; retry as new")
	if r := w.run(run); r.StopBy != "" || len(r.Timeline) != len(before.Timeline) || w.messages(w.queue.URL) != messages {
		t.Errorf("the settled run changed, or was offered: %+v", r)
	}
}

// unaudited is a ledger that cannot record that a dead letter was redriven.
type unaudited struct{ schedule.EditLedger }

func (unaudited) Redriven(context.Context, string, schedule.Audit) error {
	return failure.New(failure.StoreUnavailable, "no answer")
}

func TestARedriveThatCannotBeAuditedOffersNothing(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.dead("m", schedule.EncodeMessage(run))
	before := w.messages(w.queue.URL)
	w.editor.Ledger = unaudited{w.editor.Ledger}
	if _, err := w.editor.Redrive(ctx, "m", "mended", "ann"); !failure.Is(err, failure.StoreUnavailable) {
		t.Errorf("got %v, want what the ledger said", err)
	}
	if n := w.messages(w.queue.URL); n != before {
		t.Errorf("%d messages were sent, want none", n-before)
	}
}

// An unknown of a run that is still open is its worker's: it may yet come to give the others up, or to settle.
func TestAnUnknownIsNotSentAgainWhileItsRunIsOpen(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.during = func(string, int) {
		w.hooks.during = nil
		sub := w.sub(run, "b")
		w.must(w.store.LoseTrack(ctx, sub, sub.Owner, true, true))
		_, err := w.editor.Resend(ctx, run, sub.RecipientHash, "try", "ann")
		wantConflict(t, err, "its worker has the say")
	}
	w.quiet()
	if s := w.sub(run, "b"); s.Wish.ID != "" || s.Resends != 0 {
		t.Errorf("a wish stands: %+v", s)
	}
}

// A submission that was never sent has no secret, so that its link could be made by anyone. It leads nowhere.
func TestALinkWithoutASecretLeadsNowhere(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "a@x.com"))
	w.hooks.during = func(string, int) { w.must(w.store.AskToStop(ctx, w.run(run), w.stop("stop"))) }
	w.quiet()
	w.wantSub(run, "a@x.com", schedule.NotSent, string(failure.StoppedByOperator))
	sub := w.sub(run, "a@x.com")
	if sub.Token != "" || w.run(run).File == nil {
		t.Fatalf("want a file, and a submission without a secret: %+v", sub)
	}
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte("file"))
	forged := strings.Join([]string{run, sub.Channel, sub.RecipientHash, base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])}, "\n")
	wantGone(t, second(w.links.Open(ctx, base64.RawURLEncoding.EncodeToString([]byte(forged)))), "unknown")
	_, err := w.editor.RevokeLinks(ctx, run, sub.RecipientHash, "wrong file", "ann")
	var ps schedule.Problems
	if !errors.As(err, &ps) || !strings.Contains(err.Error(), "this one was given no link") {
		t.Errorf("taking back a link that was never given: %v", err)
	}
}

// What cannot be done says what is wrong, and changes nothing.
func TestActsThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		do    func(w *world, run string) error
		words string
	}{
		"a dead letter that nobody can read": {func(w *world, _ string) error {
			w.dead("m", "{")
			return second(w.editor.Redrive(ctx, "m", "why", "ann"))
		}, "nobody can read it"},
		"a dead letter of a run that is gone": {func(w *world, _ string) error {
			w.dead("m", schedule.EncodeMessage("gone@2040-01-01T00:00:00Z"))
			return second(w.editor.Redrive(ctx, "m", "why", "ann"))
		}, "which is not there (any more)"},
		"the links of a name instead of a hash": {func(w *world, run string) error {
			return second(w.editor.RevokeLinks(ctx, run, "a@x.com", "why", "ann"))
		}, `recipient is "a@x.com"; want the hash of a recipient`},
		"a source without an engine": {func(w *world, _ string) error {
			return w.editor.PutSource(ctx, schedule.SourceConfig{Name: "new", Workspaces: []string{"*"}}, "ann")
		}, "engine is"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.admitted(w.definition("s", "b"))
			messages := w.messages(w.queue.URL)
			err := row.do(w, run)
			if err == nil || !strings.Contains(err.Error(), row.words) {
				t.Errorf("got %v, want %q in it", err, row.words)
			}
			if n := w.messages(w.queue.URL); n != messages {
				t.Errorf("%d messages were sent", n-messages)
			}
			audits, _, err := w.store.Audits(ctx, "dead letter m", "", 10)
			if err != nil || len(audits) > 0 {
				t.Errorf("audits %+v, %v", audits, err)
			}
		})
	}
}
