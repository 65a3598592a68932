package storetest

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// begun is what an attempt goes on from: the rows as they stand, not as they were read before.
func begun(t *testing.T, b *bench) {
	for name, lose := range map[string]func(n int, operation string) error{
		"answered": nil,
		"its reply lost": func(n int, _ string) error {
			if n == 0 {
				return timedOut()
			}
			return nil
		},
	} {
		t.Run("a first attempt, "+name, func(t *testing.T) { beginStands(t, b, lose) })
		t.Run("a resume from a stale read, "+name, func(t *testing.T) { resumeStands(t, b, lose) })
	}
	t.Run("a refused one answers with what was read", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("running", nil)(p))
		read, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Begin(t.Context(), read, next) // the lease is another's
		if !schedule.IsConflict(err) || !reflect.DeepEqual(got, read) {
			t.Errorf("%+v, %v; want the run as read and a Conflict", got, err)
		}
	})
	t.Run("a webhook's body comes back to the last byte", func(t *testing.T) { bodies(t, b) })
	t.Run("at most twelve offers a pause are told", func(t *testing.T) { offers(t, b) })
	t.Run("one who is not to be asked, over a death", func(t *testing.T) { unwantedOverDeath(t, b) })
	t.Run("one who asked for a pause, over a death", func(t *testing.T) { retryOverDeath(t, b) })
}

// begins takes the run as read into work, and demands that the answer is the row as it stands; then that the same
// request sent again gets that answer too.
func (b *bench) begins(t *testing.T, p place, read schedule.Run, l schedule.Lease, lose func(int, string) error) schedule.Run {
	t.Helper()
	b.tap.reset()
	b.tap.after = lose
	got, err := b.Begin(t.Context(), read, l)
	b.tap.reset()
	stands, readErr := b.Run(t.Context(), p.run())
	if err != nil || readErr != nil || !reflect.DeepEqual(got, stands) {
		t.Fatalf("begun as %+v, %v\nwant the row as it stands: %+v, %v", got, err, stands, readErr)
	}
	if got.State != schedule.Running || got.LeaseOwner != l.Token || !got.LeaseEnd.Equal(l.End) {
		t.Errorf("the run is %s, held by %s until %s", got.State, got.LeaseOwner, got.LeaseEnd)
	}
	again, err := b.Begin(t.Context(), read, l)
	if err != nil || !reflect.DeepEqual(again, stands) {
		t.Errorf("sent again: %+v, %v\nwant %+v", again, err, stands)
	}
	return got
}

func beginStands(t *testing.T, b *bench, lose func(int, string) error) {
	p := b.place()
	b.write(t, withSchedule("queued", nil)(p))
	read, err := b.Run(t.Context(), p.run())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.begins(t, p, read, next, lose); got.Attempts != 1 || got.AttemptsLeft != 4 || got.Offers != 0 || got.File != nil {
		t.Errorf("%d attempts, %d left, %d offers, file %v; want 1, 4, 0, none", got.Attempts, got.AttemptsLeft, got.Offers, got.File)
	}
}

// resumeStands reads a run without a file; then its holder records one, is asked to stop and releases.
func resumeStands(t *testing.T, b *bench, lose func(int, string) error) {
	ctx := t.Context()
	p := b.place()
	b.write(t, withSchedule("running", nil)(p))
	read, err := b.Run(ctx, p.run())
	if err != nil || read.File != nil {
		t.Fatal(read.File, err)
	}
	file := schedule.RecordedFile{Key: "30d/run/worker-1/delays.csv", Name: "delays.csv", Rows: 3, Bytes: 120, SHA256: "ab12", DataAsOf: wall}
	recorded := file
	recorded.Expires, recorded.LinksEnd = expires, expires.Add(-time.Hour)
	if err := b.RecordFile(ctx, read, held, recorded); err != nil {
		t.Fatal(err)
	}
	if err := b.Yield(ctx, read, held, 200, "time is nearly up"); err != nil {
		t.Fatal(err)
	}
	if err := b.AskToStop(ctx, read, onStop(p)); err != nil {
		t.Fatal(err)
	}
	got := b.begins(t, p, read, next, lose)
	if got.File == nil || *got.File != file || !got.FileExpires.Equal(expires) || !got.LinkExpires.Equal(expires.Add(-time.Hour)) {
		t.Errorf("file %+v until %s, links until %s; want the one that was recorded meanwhile: %+v until %s, %s", got.File, got.FileExpires, got.LinkExpires,
			file, expires, expires.Add(-time.Hour))
	}
	if got.StopBy != "ann@example.com" || got.StopWhy != "holidays" || got.Yields != 1 || got.Attempts != 2 || got.AttemptsLeft != 4 {
		t.Errorf("stop by %q, %q, %d yields, %d attempts, %d left; want ann's, 1, 2, 4", got.StopBy, got.StopWhy, got.Yields, got.Attempts, got.AttemptsLeft)
	}
}

// bodies are sent again as they were frozen, however they are stored: a receiver compares the signature with every byte.
func bodies(t *testing.T, b *bench) {
	ctx := t.Context()
	noise := make([]byte, 20_000)
	rand.NewChaCha8([32]byte{7}).Read(noise)
	for name, body := range map[string][]byte{
		"a document": []byte(`{"run":"s@2013","file":{"name":"delays.csv","rows":3}}`), "one byte": {0}, "zeros": make([]byte, 20_000), "noise": noise,
	} {
		p := b.place()
		sub := newSubmission(p)
		sub.Owner, sub.Frozen = "worker-1", channel.Frozen{Date: wall, Body: body, BodyHash: "b0d2"}
		if err := b.Intend(ctx, sub, expires.Unix()); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Submission(ctx, p.run(), channel.Email, someoneHash); err != nil || !bytes.Equal(got.Frozen.Body, body) {
			t.Errorf("%s: %d bytes came back, %v; want the %d that were frozen", name, len(got.Frozen.Body), err, len(body))
		}
	}
	p := b.place()
	broken := deflated(make([]byte, 100), flate.BestCompression)
	b.write(t, given("pending", row{schema.Body: broken[:len(broken)-1]})(p))
	if _, err := b.Submission(ctx, p.run(), channel.Email, someoneHash); err == nil {
		t.Error("half a body was read as a whole one")
	}
}

// offers re-offers a run that nobody takes: the counter goes on, the timeline does not. The next pause begins anew.
func offers(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	b.write(t, withSchedule("queued", row{schema.Offers: 0, schema.DeadLetters: 0})(p))
	offered := func(r schedule.Run) int {
		n := 0
		for _, line := range r.Timeline {
			if line == stamp+"offered again" {
				n++
			}
		}
		return n
	}
	pause := func(rounds int) schedule.Run {
		t.Helper()
		r, err := b.Run(ctx, p.run())
		for range rounds {
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Reoffer(ctx, r, wall, wall.Add(-time.Duration(r.Offers+2)*time.Second), false); err != nil {
				t.Fatal(err)
			}
			r, err = b.Run(ctx, p.run())
		}
		return r
	}
	r := pause(20)
	if r.Offers != 20 || offered(r) != 12 {
		t.Errorf("%d offers, %d lines, want 20 and 12", r.Offers, offered(r))
	}
	over := next
	over.End, over.Wake = wall.Add(-time.Millisecond), wall.Add(-time.Second)
	if r, err := b.Begin(ctx, r, over); err != nil || r.Offers != 0 {
		t.Fatalf("%d offers, %v; want 0 after a begin", r.Offers, err)
	}
	if r := pause(3); r.Offers != 3 || offered(r) != 15 {
		t.Errorf("%d offers, %d lines, want 3 and 15", r.Offers, offered(r))
	}
}

// unwantedOverDeath: the worker died between the intent and the refusal. The next one takes over and the mark stays, so
// that a third, after another death, does not take it for a request that may have left either.
func unwantedOverDeath(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	sub := newSubmission(p)
	sub.Owner, sub.Token, sub.NotAccepted = "worker-1", "link-1", true
	if err := b.Intend(ctx, sub, expires.Unix()); err != nil {
		t.Fatal(err)
	}
	for i, worker := range []string{"worker-2", "worker-3"} {
		read, err := b.Submission(ctx, p.run(), channel.Email, someoneHash)
		if err != nil || !read.NotAccepted || read.Tries != 0 || read.Frozen.BodyHash != "" || read.Token != "link-1" {
			t.Fatalf("death %d: %+v, %v; want it marked, never sent, with nothing frozen", i, read, err)
		}
		if err := b.LoseTrack(ctx, read, worker, false, true); !schedule.IsConflict(err) {
			t.Errorf("death %d: track was lost of a request that never left: %v, want a Conflict", i, err)
		}
		read.UpdatedAt = wall
		if err := b.TakeOver(ctx, read, schedule.Take{Owner: worker, KeepMark: true}); err != nil {
			t.Fatal(err)
		}
	}
	last := sub
	last.Owner, last.Reason, last.Detail = "worker-3", "unsubscribed", "said no"
	stale := last
	stale.Owner = "worker-2"
	if err := b.Refused(ctx, stale); !schedule.IsConflict(err) {
		t.Errorf("an earlier worker's refusal: %v, want a Conflict", err)
	}
	if err := b.Refused(ctx, last); err != nil {
		t.Fatal(err)
	}
	want := world{}.add(p.subKey(), row{schema.State: "skipped", schema.Recipient: someone, schema.Owner: "worker-3", schema.Token: "link-1", schema.Tries: 0,
		schema.Reason: "unsubscribed", schema.Detail: "said no", schema.UpdatedAt: wall, schema.ExpiresAt: expires.Unix()})
	if d := diff(b.read(t, p), want); d != "" {
		t.Error(d)
	}
}

// retryOverDeath: what a receiver asked for outlives the worker that heard it, and no longer than the next request.
func retryOverDeath(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	b.write(t, given("pending", nil)(p))
	read := func() schedule.Submission {
		t.Helper()
		s, err := b.Submission(ctx, p.run(), channel.Email, someoneHash)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sub := read()
	sub.RetryAt, sub.Detail = wall.Add(90*time.Second), "429"
	if err := b.NotAccepted(ctx, sub); err != nil {
		t.Fatal(err)
	}
	if got := read(); !got.NotAccepted || !got.RetryAt.Equal(wall.Add(90*time.Second)) {
		t.Errorf("marked %v until %s, want until %s", got.NotAccepted, got.RetryAt, wall.Add(90*time.Second))
	}
	if err := b.TakeOver(ctx, read(), schedule.Take{Owner: "worker-2"}); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.NotAccepted || !got.RetryAt.IsZero() || got.Tries != 2 || got.Owner != "worker-2" {
		t.Errorf("taken over: %+v; want no mark, no time, the second try", got)
	}
	sub = read()
	if err := b.NotAccepted(ctx, sub); err != nil {
		t.Fatal(err)
	}
	if got := read(); !got.NotAccepted || !got.RetryAt.IsZero() {
		t.Errorf("marked %v until %s; want marked, with no time", got.NotAccepted, got.RetryAt)
	}
}
