package schedule_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/channel/webhook"
	"almanac/internal/failure"
	"almanac/internal/load"
	"almanac/internal/schedule"
)

// The receiver "down" does not answer for one hour. A run asks five times within 15 minutes, so those that were due more
// than these before the end of the outage fail.
var (
	outage   = start.Add(62*time.Minute + 30*time.Second)
	recovery = outage.Add(time.Hour)
	asks     = []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute}
)

// byBudget says what an occurrence must come to by the attempts' budget alone: how many attempts, and whether it fails.
func byBudget(nominal time.Time) (attempts int, fails bool) {
	for n, after := range asks {
		if at := nominal.Add(after); at.Before(outage) || !at.Before(recovery) {
			return n + 1, false
		}
	}
	return len(asks), true
}

func TestBackoffsAreThoseOfTheOutage(t *testing.T) {
	at := time.Duration(0)
	for n := range asks {
		if n > 0 {
			at += schedule.Backoff(n, 0, schedule.DefaultTiming())
		}
		if asks[n] != at {
			t.Errorf("attempt %d comes after %s, want %s", n+1, at, asks[n])
		}
	}
}

// outaged is a world with a schedule due every five minutes and one due each minute, both with a mail and the receiver
// that goes down.
func outaged(t *testing.T) *loaded {
	l := newLoaded(t)
	l.hooks.answer = func(name string, _ int) reply {
		if now := l.wall(); name == "down" && !now.Before(outage) && now.Before(recovery) {
			return status(503)
		}
		return ok()
	}
	for id, every := range map[string]int{"each-minute": 1, "each-five": 5} {
		d := l.definition(id, "a@example.com", "down")
		d.Recurrence.Cron, d.Recurrence.End = fmt.Sprintf("*/%d * * * *", every), start.Add(150*time.Minute).Format(time.RFC3339)
		d.Notify = []schedule.Recipient{{Webhook: l.hooks.address("told-" + id), Secret: "ops"}}
		l.apply(d)
	}
	return l
}

// until lets the product work until a time, and then until all is settled.
func (l *loaded) until(at time.Time) {
	l.fleet.over = false
	l.fleet.run(*loadConcurrency, func() bool {
		_, open := l.settled()
		return !l.wall().Before(at) && open == 0 && l.left() == 0
	})
}

// due lists the occurrences each so many minutes, from one time to before another.
func each(step time.Duration, from, to time.Time) (keys []string) {
	for at := from; at.Before(to); at = at.Add(step) {
		keys = append(keys, schedule.OccurrenceKey(at))
	}
	return keys
}

// heard lists what was told of a schedule, in order.
func (l *loaded) heard(id string) (kinds []string) {
	for _, p := range l.hooks.to("told-" + id) {
		var n webhook.NoticePayload
		l.must(json.Unmarshal([]byte(p.body), &n))
		kinds = append(kinds, strings.TrimPrefix(n.Type, "schedule."))
	}
	return kinds
}

// A webhook is down for an hour and comes back: every run is delivered or settled as its budget says, the streak pauses
// who fails too often, each event is told once, and retry as new brings the recorded files to the receiver alone.
func TestLoadAWebhookThatIsDownForAnHour(t *testing.T) {
	t.Parallel()
	l := outaged(t)
	first := start.Add(time.Minute)
	l.to(first)
	l.began = l.wall()
	l.until(recovery.Add(20 * time.Minute))
	paused := l.schedule("each-minute")
	if paused.State != schedule.Paused || paused.PauseReason != schedule.PausedByFailures {
		t.Fatalf("%+v", paused)
	}
	hook := l.hooks.address("down")
	l.promises = []load.Promise{
		{Schedule: "each-minute", Occurrences: each(time.Minute, first, paused.PausedAt), Addresses: []string{"a@example.com", hook}},
		{Schedule: "each-five", Occurrences: each(5*time.Minute, start.Add(5*time.Minute), l.wall().Add(-time.Second)), Addresses: []string{"a@example.com", hook}},
	}
	failed := map[string][]string{}
	runs := l.kept(func(r schedule.Run) error {
		attempts, fails := byBudget(r.Nominal)
		if fails {
			failed[r.Schedule] = append(failed[r.Schedule], r.ID())
			if r.State != schedule.Failed || r.ErrorCode != string(failure.AttemptsExhausted) || r.Attempts != attempts {
				return fmt.Errorf("%s %s after %d attempts; want failed attempts_exhausted after %d", r.State, r.ErrorCode, r.Attempts, attempts)
			}
			return nil
		}
		if r.State != schedule.Succeeded || r.Attempts != attempts {
			return fmt.Errorf("%s %s after %d attempts; want succeeded after %d", r.State, r.ErrorCode, r.Attempts, attempts)
		}
		return nil
	})
	l.shown("a webhook down from 62.5 to 122.5 minutes", runs)
	t.Logf("failed: %d of each-five, %d of each-minute, which was paused at %s", len(failed["each-five"]), len(failed["each-minute"]), paused.PausedAt.Sub(start))
	for id, want := range map[string][]string{"each-five": {"failed", "recovered"}, "each-minute": {"failed", "paused"}} {
		if got := l.heard(id); !slices.Equal(got, want) {
			t.Errorf("%s: told %v, want %v", id, got, want)
		}
	}
	l.retried(failed)
}

// retried repeats what failed, and resumes what was paused.
func (l *loaded) retried(failed map[string][]string) {
	mails, posts := len(l.mail.kept), len(l.hooks.to("down"))
	_, err := l.editor.Resume(ctx, "each-minute", "it is up again", "ann")
	l.must(err)
	var again []string
	for _, ids := range failed {
		for _, id := range ids {
			r, _, err := l.editor.Retry(ctx, id, schedule.RetryRequest{}, "it is up again", "ann", "retry "+id, "h")
			l.must(err)
			again = append(again, r.ID())
			if was := l.run(id); r.RetryOf != id || was.File == nil || r.File == nil || *r.File != *was.File {
				l.t.Errorf("%s does not repeat the file of %s", r.ID(), id)
			}
		}
	}
	occurrences := len(l.runs("each-minute")) + len(l.runs("each-five"))
	l.until(l.wall().Add(2 * time.Minute))
	fresh := len(l.runs("each-minute")) + len(l.runs("each-five")) - occurrences
	for _, id := range again {
		if r := l.run(id); r.State != schedule.Succeeded || r.Submitted != 1 || r.Attempts != 1 {
			l.t.Errorf("%s: %s, %d submitted after %d attempts; want the receiver alone, at once", id, r.State, r.Submitted, r.Attempts)
		}
	}
	if m, p := len(l.mail.kept)-mails, len(l.hooks.to("down"))-posts; m != fresh || p != len(again)+fresh {
		l.t.Errorf("%d mails and %d requests for %d retries and %d runs that came due; who had the file got it again", m, p, len(again), fresh)
	}
	if got := l.heard("each-minute"); !slices.Equal(got, []string{"failed", "paused", "recovered"}) {
		l.t.Errorf("told %v", got)
	}
	keys := map[string]int{}
	for _, p := range l.hooks.to("down") {
		if p.taken {
			keys[p.key]++
		}
	}
	for key, n := range keys {
		if n > 1 {
			l.t.Errorf("%s was accepted %d times", key, n)
		}
	}
	l.t.Logf("retry as new sent %d files to the receiver, and to nobody else", len(again))
}
