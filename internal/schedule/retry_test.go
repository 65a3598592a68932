package schedule_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

func (w *world) retry(id, key string, q schedule.RetryRequest) schedule.Run {
	w.t.Helper()
	r, _, err := w.editor.Retry(ctx, id, q, "they called", "ann", key, "hash")
	w.must(err)
	return r
}

// mixed is a world whose run ended with one recipient of each kind: a mail unknown, a webhook refused by its
// receiver, a webhook that was taken.
func mixed(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t)
	w.hooks.answer = func(name string, _ int) reply {
		if name == "no" {
			return status(400)
		}
		return ok()
	}
	run := w.admitted(w.definition("s", "lost@x.com", "no", "b"))
	w.faults.plan = dies("deliver", "SES.SendRawEmail", dieAfter)
	w.quiet()
	w.faults.plan = nil
	w.hooks.answer = nil
	w.wantState(run, schedule.Failed, failure.DeliveryUnknown)
	return w, run
}

func told(list []schedule.RetryTarget) (out []string) {
	for _, t := range list {
		name := t.Address()
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			name = name[i+1:]
		}
		out = append(out, name)
	}
	return out
}

func TestRetrySendsTheRecordedFileToThoseWhoGotNothing(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com", "b", "c")
	w.hooks.answer = func(name string, _ int) reply {
		if name == "c" {
			return status(503)
		}
		return ok()
	}
	old := w.admitted(d)
	w.quiet()
	w.wantState(old, schedule.Failed, failure.AttemptsExhausted)
	w.wantSub(old, "c", schedule.NotSent, string(failure.AttemptsExhausted))
	w.hooks.answer = nil
	was := w.run(old)
	p, err := w.editor.PlanRetry(ctx, old, schedule.RetryRequest{})
	w.must(err)
	if got := told(p.Send); !slices.Equal(got, []string{"c"}) || !slices.Equal(told(p.Leave), []string{"a@x.com", "b"}) {
		t.Fatalf("sends to %v, leaves %v", got, told(p.Leave))
	}
	objects := len(w.objects())
	r := w.retry(old, "k", schedule.RetryRequest{})
	w.quiet()
	got := w.wantState(r.ID(), schedule.Succeeded, "")
	if got.RetryOf != old || !slices.Equal(got.Targets, r.Targets) || len(got.Targets) != 1 || !got.Manual || got.Version != was.Version || got.Submitted != 1 {
		t.Errorf("%+v", got)
	}
	if f, g := got.File, was.File; f.Key != g.Key || f.Rows != g.Rows || f.Bytes != g.Bytes || f.SHA256 != g.SHA256 || !got.FileExpires.Equal(was.FileExpires) || len(w.objects()) != objects {
		t.Errorf("file %+v, want the recorded %+v and no new object", f, g)
	}
	if n := len(w.mail.to("a@x.com")); n != 1 || taken(w.hooks.to("b")) != 1 || taken(w.hooks.to("c")) != 1 {
		t.Errorf("%d mails, b took %d, c took %d; want one each", n, taken(w.hooks.to("b")), taken(w.hooks.to("c")))
	}
	if subs := w.subs(r.ID()); len(subs) != 1 {
		t.Errorf("%d submissions of the new run", len(subs))
	}
	if again := w.run(old); again.State != schedule.Failed || !again.SettledAt.Equal(was.SettledAt) {
		t.Errorf("the old run moved: %+v", again)
	}
	if s := w.schedule("s"); s.Streak != 0 {
		t.Errorf("streak %d after a success", s.Streak)
	}
}

func TestRetryLeavesAnUnknownUnlessItIsNamed(t *testing.T) {
	w, old := mixed(t)
	lost := w.sub(old, "lost@x.com").RecipientHash
	for _, x := range []struct {
		name        string
		q           schedule.RetryRequest
		send, leave []string
	}{
		{"missing", schedule.RetryRequest{}, []string{"no"}, []string{"lost@x.com", "b"}},
		{"named", schedule.RetryRequest{To: "missing", IncludeUnknown: []string{lost}}, []string{"lost@x.com", "no"}, []string{"b"}},
		{"everyone", schedule.RetryRequest{To: "everyone"}, []string{"lost@x.com", "no", "b"}, nil},
	} {
		p, err := w.editor.PlanRetry(ctx, old, x.q)
		w.must(err)
		if !slices.Equal(told(p.Send), x.send) || !slices.Equal(told(p.Leave), x.leave) {
			t.Errorf("%s: sends to %v, leaves %v; want %v, %v", x.name, told(p.Send), told(p.Leave), x.send, x.leave)
		}
	}
	r := w.retry(old, "k", schedule.RetryRequest{IncludeUnknown: []string{lost}})
	w.quiet()
	w.wantState(r.ID(), schedule.Succeeded, "")
	if n, m := len(w.mail.to("lost@x.com")), taken(w.hooks.to("no")); n != 2 || m != 1 || taken(w.hooks.to("b")) != 1 {
		t.Errorf("%d mails to the unknown, %d accepted by the refuser; want the named second one, and one", n, m)
	}
	w.wantSub(old, "lost@x.com", schedule.Unknown, "")
}

// A retry of a retry is about the recipients of that retry alone; the rules of every send apply to it.
func TestRetryOfARetryAndRemovedRecipients(t *testing.T) {
	w, old := mixed(t)
	w.apply(w.definition("s", "lost@x.com", "b")) // no is taken off the schedule
	r := w.retry(old, "k", schedule.RetryRequest{})
	w.quiet()
	w.wantState(r.ID(), schedule.Succeeded, "")
	w.wantSub(r.ID(), "no", schedule.NotDelivered, "removed")
	p, err := w.editor.PlanRetry(ctx, r.ID(), schedule.RetryRequest{})
	w.must(err)
	if len(p.Send) != 0 || !slices.Equal(told(p.Leave), []string{"no"}) {
		t.Errorf("sends to %v, leaves %v", told(p.Send), told(p.Leave))
	}
	var c *schedule.Conflict
	if _, _, err := w.editor.Retry(ctx, r.ID(), schedule.RetryRequest{}, "x", "ann", "k2", "hash"); !errors.As(err, &c) || !strings.Contains(c.Why, "nobody is left") {
		t.Errorf("nobody left: %v", err)
	}
}

func TestRetryWithoutARecordedFileMakesOne(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com")
	old := w.admitted(d)
	_, err := w.editor.Stop(ctx, old, "not yet", "ann")
	w.must(err)
	w.quiet()
	if r := w.wantState(old, schedule.Failed, failure.StoppedByOperator); r.File != nil {
		t.Fatal("a file is recorded")
	}
	r := w.retry(old, "k", schedule.RetryRequest{})
	w.quiet()
	if got := w.wantState(r.ID(), schedule.Succeeded, ""); got.File == nil || got.RetryOf != old {
		t.Errorf("%+v", got)
	}
}

func TestRetryOncePerKey(t *testing.T) {
	w, old := mixed(t)
	r := w.retry(old, "k", schedule.RetryRequest{})
	w.quiet()
	w.advance(40 * 24 * time.Hour) // the file has expired since: the answer stays as it was
	again, fresh, err := w.editor.Retry(ctx, old, schedule.RetryRequest{}, "they called", "ann", "k", "hash")
	if err != nil || fresh || again.ID() != r.ID() {
		t.Errorf("%s, %v, %v", again.ID(), fresh, err)
	}
	var c *schedule.Conflict
	if _, _, err := w.editor.Retry(ctx, old, schedule.RetryRequest{}, "they called", "ann", "k", "other"); !errors.As(err, &c) || !strings.HasPrefix(c.Why, "key reused") {
		t.Errorf("another request under the key: %v", err)
	}
}

func TestRetryRefusals(t *testing.T) {
	conflict := func(t *testing.T, w *world, id string, q schedule.RetryRequest, why string) {
		t.Helper()
		var c *schedule.Conflict
		if _, err := w.editor.PlanRetry(ctx, id, q); !errors.As(err, &c) || !strings.Contains(c.Why, why) {
			t.Errorf("preview: %v, want %q", err, why)
		}
		if _, _, err := w.editor.Retry(ctx, id, q, "x", "ann", "k-"+why, "hash"); !errors.As(err, &c) || !strings.Contains(c.Why, why) {
			t.Errorf("retry: %v, want %q", err, why)
		}
	}
	t.Run("open", func(t *testing.T) {
		w := newWorld(t)
		conflict(t, w, w.admitted(w.definition("s", "b")), schedule.RetryRequest{}, "the run is queued")
	})
	t.Run("expired", func(t *testing.T) {
		w, old := mixed(t)
		w.advance(31 * 24 * time.Hour)
		conflict(t, w, old, schedule.RetryRequest{To: "everyone"}, "its file expired")
	})
	t.Run("links taken back", func(t *testing.T) {
		w, old := mixed(t)
		_, err := w.editor.RevokeLinks(ctx, old, schedule.AllLinks, "wrong month", "ann")
		w.must(err)
		conflict(t, w, old, schedule.RetryRequest{}, "taken back")
	})
	t.Run("deleted", func(t *testing.T) {
		w, old := mixed(t)
		w.must(w.editor.Delete(ctx, "s", "over", "ann"))
		conflict(t, w, old, schedule.RetryRequest{}, "deleted")
	})
	t.Run("resolved since", func(t *testing.T) {
		w, old := mixed(t)
		hash := w.sub(old, "lost@x.com").RecipientHash
		_, err := w.editor.Resolve(ctx, old, hash, "submitted", "has it", "ann")
		w.must(err)
		conflict(t, w, old, schedule.RetryRequest{IncludeUnknown: []string{hash}}, "not unknown (any more): submitted")
	})
	t.Run("wrong fields", func(t *testing.T) {
		w, old := mixed(t)
		for _, x := range []struct {
			q     schedule.RetryRequest
			field string
		}{
			{schedule.RetryRequest{To: "Everyone"}, "to"},
			{schedule.RetryRequest{To: "everyone", IncludeUnknown: []string{w.sub(old, "lost@x.com").RecipientHash}}, "include_unknown"},
			{schedule.RetryRequest{IncludeUnknown: []string{"lost@x.com"}}, "include_unknown[0]"},
			{schedule.RetryRequest{IncludeUnknown: []string{strings.Repeat("0", 32)}}, "include_unknown[0]"},
			{schedule.RetryRequest{IncludeUnknown: make([]string, schedule.MaxNamed+1)}, "include_unknown"},
		} {
			var ps schedule.Problems
			if _, err := w.editor.PlanRetry(ctx, old, x.q); !errors.As(err, &ps) || ps[0].Field != x.field || ps[0].Want == "" {
				t.Errorf("%+v: %v, want field %s", x.q, err, x.field)
			}
		}
	})
}
