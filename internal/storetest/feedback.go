package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// bounced is a word of the mail service with every field.
var bounced = channel.Feedback{Kind: channel.Bounced, At: wall.Add(time.Minute), Type: channel.Permanent, Subtype: "General", Why: "mailbox does not exist",
	Detail: "5.1.1 smtp; 550 no such user", Mail: "0100-mail"}

// suppressionOf is what a bounce makes of an address.
func suppressionOf(hash string) schedule.Suppression {
	return schedule.Suppression{Channel: "email", RecipientHash: hash, Reason: "bounce", Why: "mailbox does not exist", Run: "s@2013-06-03T12:00:00Z", At: wall}
}

// suppressionRow is the row of one that holds.
func suppressionRow(s schedule.Suppression) row {
	return row{schema.Reason: s.Reason, schema.Detail: s.Why, schema.Run: s.Run, schema.CreatedAt: s.At,
		schema.DirKind: "suppression", schema.DirName: s.Channel + "#" + s.RecipientHash}
}

// feedback has a table of its own: the list of suppressions is compared whole.
func feedback(t *testing.T, shared *bench) {
	b := newBench(t, Harness{DB: shared.tap.DynamoDB.(Client), Advance: shared.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	t.Run("beside the outcome", func(t *testing.T) { besideTheOutcome(t, b) })
	for _, word := range []channel.Feedback{bounced, {Kind: channel.Complained, At: wall.Add(time.Hour)}, {Kind: channel.Rejected, At: wall, Why: "bad content"}} {
		t.Run("of resends, "+string(word.Kind), func(t *testing.T) { ofResends(t, b, word) })
	}
	t.Run("an expired submission is not brought back", func(t *testing.T) { notBroughtBack(t, b) })
	t.Run("suppress", func(t *testing.T) { suppressed(t, b) })
	t.Run("lift", func(t *testing.T) { lifted(t, b) })
	t.Run("list", func(t *testing.T) { suppressions(t, b) })
}

// besideTheOutcome: in whatever state, the first word of each kind is added, and nothing else changes.
func besideTheOutcome(t *testing.T, b *bench) {
	ctx := t.Context()
	complained := channel.Feedback{Kind: channel.Complained, At: wall.Add(time.Hour), Mail: "0100-mail"}
	rejected := channel.Feedback{Kind: channel.Rejected, At: wall, Why: "bad content", Detail: "Bad content", Mail: "0100-mail"}
	for _, state := range []string{"pending", "submitted", "skipped", "unknown", "not_sent"} {
		p := b.place()
		b.write(t, world{}.add(p.subKey(), subRow(p, state)))
		want := b.read(t, p)
		for _, f := range []channel.Feedback{rejected, complained, bounced} {
			later := f
			later.At, later.Type, later.Why = later.At.Add(time.Hour), channel.Transient, "another"
			for _, f := range []channel.Feedback{f, f, later} { // delivered twice, and one more of its kind
				if err := b.RecordFeedback(ctx, newSubmission(p), f); err != nil {
					t.Fatalf("%s, %s: %v", state, f.Kind, err)
				}
			}
		}
		want = want.after([]change{{key: p.subKey(), set: row{
			"bounce":    row{"at": bounced.At, "type": "permanent", "subtype": "General", "why": "mailbox does not exist", "detail": "5.1.1 smtp; 550 no such user", "mail": "0100-mail"},
			"complaint": row{"at": complained.At, "mail": "0100-mail"},
			"rejection": row{"at": rejected.At, "why": "bad content", "detail": "Bad content", "mail": "0100-mail"}}}})
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s: %s", state, d)
		}
		sub, err := b.Submission(ctx, p.run(), "email", someoneHash)
		if err != nil || string(sub.State) != state || !reflect.DeepEqual(sub.Feedback, []channel.Feedback{bounced, complained, rejected}) {
			t.Errorf("%s: read as %s with %+v, %v", state, sub.State, sub.Feedback, err)
		}
	}
}

// ofResends: what is said of a resend stands beside what was said of the first request, and a later resend's in its
// place, in whatever order the service says it, and however often.
func ofResends(t *testing.T, b *bench, word channel.Feedback) {
	said := func(request int) channel.Feedback {
		f := word
		f.At, f.Mail = f.At.Add(-time.Duration(request)*time.Second), fmt.Sprint("mail-", request) // clocks have no say
		return f
	}
	for _, x := range []struct {
		requests []int
		want     []int
	}{
		{[]int{2}, []int{2}},
		{[]int{1, 2, 2, 1}, []int{1, 2}},
		{[]int{2, 1}, []int{1, 2}},
		{[]int{1, 2, 3}, []int{1, 3}},
		{[]int{3, 2, 1, 3}, []int{1, 3}},
		{[]int{11, 9}, []int{11}}, // numbers, not texts
	} {
		p := b.place()
		b.write(t, world{}.add(p.subKey(), subRow(p, "submitted")))
		for _, n := range x.requests {
			sub := newSubmission(p)
			sub.Resends = n - 1
			if err := b.RecordFeedback(t.Context(), sub, said(n)); err != nil {
				t.Fatal(err)
			}
		}
		var want []channel.Feedback
		for _, n := range x.want {
			want = append(want, said(n))
		}
		list, err := b.Submissions(t.Context(), p.run())
		if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Feedback, want) {
			t.Errorf("said of %v: %+v, %v; want of %v", x.requests, list, err, x.want)
		}
	}
}

func notBroughtBack(t *testing.T, b *bench) {
	p := b.place()
	for _, kind := range []channel.FeedbackKind{channel.Bounced, channel.Complained, channel.Rejected} {
		f := bounced
		f.Kind = kind
		for resends := range 2 {
			sub := newSubmission(p)
			sub.Resends = resends
			if err := b.RecordFeedback(t.Context(), sub, f); !errors.Is(err, schedule.ErrNotFound) {
				t.Errorf("%s, %d resends: %v, want not found", kind, resends, err)
			}
		}
	}
	if it := b.row(t, p.subKey()); len(it) != 0 {
		t.Errorf("a submission came to be: %s", show(it))
	}
}

// suppressed: the first reason stands, for one address.
func suppressed(t *testing.T, b *bench) {
	ctx := t.Context()
	s := suppressionOf(fmt.Sprintf("%032x", 1))
	k := schema.SuppressionKey(s.Channel, s.RecipientHash)
	if _, err := b.Suppression(ctx, s.Channel, s.RecipientHash); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("before: %v, want not found", err)
	}
	later := s
	later.Reason, later.At = "complaint", wall.Add(time.Hour)
	for _, s := range []schedule.Suppression{s, s, later} {
		if err := b.Suppress(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if d := diff(world{k: b.row(t, k)}, world{}.add(k, suppressionRow(s))); d != "" {
		t.Error(d)
	}
	if got, err := b.Suppression(ctx, s.Channel, s.RecipientHash); err != nil || got != s || !got.Holds() {
		t.Errorf("%+v, %v; want %+v", got, err, s)
	}
	p := b.place()
	b.write(t, world{}.add(p.runKey(), runRow(p, "running")))
	look := func() bool {
		l, err := b.BeforeRecipient(ctx, schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}, s.Channel, s.RecipientHash)
		if err != nil {
			t.Fatal(err)
		}
		return l.Suppressed
	}
	if !look() {
		t.Error("it does not hold")
	}
	if err := b.LiftSuppression(ctx, s, actOf("one", "act-1", "lift")); err != nil {
		t.Fatal(err)
	}
	if look() {
		t.Error("lifted, it holds")
	}
}

// lifted: what happened before a person's act does not suppress again, what happens later does.
func lifted(t *testing.T, b *bench) {
	ctx := t.Context()
	s := suppressionOf(fmt.Sprintf("%032x", 2))
	k := schema.SuppressionKey(s.Channel, s.RecipientHash)
	a := actOf(schedule.SuppressionSubject(s.Channel, s.RecipientHash), "act-1", "lift")
	if err := b.LiftSuppression(ctx, s, a); !schedule.IsConflict(err) {
		t.Errorf("one that never was: %v, want a Conflict", err)
	}
	b.audited(t, a.Subject, 0)
	if len(b.row(t, k)) != 0 {
		t.Error("it came to be")
	}
	if err := b.Suppress(ctx, s); err != nil {
		t.Fatal(err)
	}
	other := s
	other.At = wall.Add(-time.Second)
	if err := b.LiftSuppression(ctx, other, a); !schedule.IsConflict(err) {
		t.Errorf("not as read: %v, want a Conflict", err)
	}
	b.audited(t, a.Subject, 0)
	for range 2 { // sent again, it took effect once
		if err := b.LiftSuppression(ctx, s, a); err != nil {
			t.Fatal(err)
		}
	}
	b.audited(t, a.Subject, 1)
	want := world{}.add(k, suppressionRow(s).with(row{schema.DirKind: nil, schema.DirName: nil, schema.LiftedAt: a.At, schema.LiftedBy: a.Who, schema.LiftedWhy: a.Why}))
	if d := diff(world{k: b.row(t, k)}, want); d != "" {
		t.Error(d)
	}
	if err := b.LiftSuppression(ctx, s, actOf(a.Subject, "act-2", "lift")); !schedule.IsConflict(err) {
		t.Errorf("another act: %v, want a Conflict", err)
	}
	before := s
	before.At = a.At // at that very moment
	for _, s := range []schedule.Suppression{s, before} {
		if err := b.Suppress(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if d := diff(world{k: b.row(t, k)}, want); d != "" {
		t.Errorf("word of what happened before: %s", d)
	}
	s.At = a.At.Add(time.Millisecond)
	if err := b.Suppress(ctx, s); err != nil {
		t.Fatal(err)
	}
	if d := diff(world{k: b.row(t, k)}, world{}.add(k, suppressionRow(s))); d != "" {
		t.Errorf("what happened later: %s", d)
	}
	// The reply of a Suppress is lost where nothing was written: a lifted row is not taken for success.
	if err := b.LiftSuppression(ctx, s, actOf(a.Subject, "act-3", "lift")); err != nil {
		t.Fatal(err)
	}
	s.At = a.At.Add(time.Hour)
	b.tap.reset()
	b.tap.before = func(n int, _ string) error {
		if n == 0 {
			return timedOut()
		}
		return nil
	}
	err := b.Suppress(ctx, s)
	b.tap.reset()
	if err == nil {
		t.Error("a request that never came there succeeded")
	}
}

// suppressions are listed while they hold, by channel and hash.
func suppressions(t *testing.T, shared *bench) {
	b := newBench(t, Harness{DB: shared.tap.DynamoDB.(Client), Advance: shared.advance})
	ctx := t.Context()
	var want []string
	for i := range 5 {
		s := suppressionOf(fmt.Sprintf("%032x", i))
		if err := b.Suppress(ctx, s); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if err := b.LiftSuppression(ctx, s, actOf("two", "act-1", "lift")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = append(want, s.RecipientHash)
	}
	for _, limit := range []int{1, 2, 100} {
		got := pages(t, limit, func(from string) ([]schedule.Suppression, string, error) { return b.Suppressions(ctx, from, limit) },
			func(s schedule.Suppression) string { return s.RecipientHash })
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	if _, _, err := b.Suppressions(ctx, `{"pk":"x"}`, 1); err == nil {
		t.Error("a cursor of nobody was taken")
	}
	b.write(t, world{}.add(schema.SuppressionKey("email", "broken"), row{schema.DirKind: "suppression", schema.DirName: "email#broken", schema.CreatedAt: "yesterday"}))
	if _, _, err := b.Suppressions(ctx, "", 100); err == nil {
		t.Error("a suppression whose time is none was read")
	}
}
