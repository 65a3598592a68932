package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// byHand are the acts of people that move no state, and what they read. It has a table of its own: there is one control.
func byHand(t *testing.T, b *bench) {
	shared := b
	b = newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	t.Run("switch", func(t *testing.T) { switches(t, b) })
	t.Run("revoke one link", func(t *testing.T) { revokeOne(t, b) })
	t.Run("revoke all links", func(t *testing.T) { revokeAll(t, b) })
	t.Run("ask to resend", func(t *testing.T) { askToResend(t, b) })
	t.Run("versions", func(t *testing.T) { versions(t, b) })
	t.Run("accesses", func(t *testing.T) { accesses(t, b) })
	t.Run("redriven", func(t *testing.T) {
		redriven(t, newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance}))
	})
	t.Run("dead letters, page by page", func(t *testing.T) { deadPages(t, b) })
}

// switches turn on the condition that they stand as read: of two who read the same, one is refused, with no audit.
func switches(t *testing.T, b *bench) {
	ctx := t.Context()
	k := schema.ControlKey(b.Stage)
	all := []schedule.Control{{}, {DispatchOff: true}, {SendOff: true}, {DispatchOff: true, SendOff: true}}
	n := 0
	for _, was := range all {
		for _, now := range all {
			n++
			if err := b.turn(ctx, was, actOf("setting up", fmt.Sprintf("act-%d", n), "control")); err != nil {
				t.Fatal(err)
			}
			a := actOf(fmt.Sprintf("control %d", n), "act-1", "control")
			for _, other := range all {
				var c *schedule.Conflict
				if other == was {
					continue
				} else if err := b.Switch(ctx, other, now, a); !errors.As(err, &c) || c.Event != "switch" {
					t.Errorf("%s, read as %s: %v, want a Conflict", was, other, err)
				}
			}
			b.audited(t, a.Subject, 0)
			if got, err := b.Control(ctx); err != nil || got != was {
				t.Errorf("refused, and yet it stands as %s, %v; want %s", got, err, was)
			}
			for range 2 { // sent again, it took effect once
				if err := b.Switch(ctx, was, now, a); err != nil {
					t.Errorf("%s to %s: %v", was, now, err)
				}
			}
			b.audited(t, a.Subject, 1)
			set := row{schema.CreatedBy: a.Who, schema.UpdatedAt: a.At}
			if now.DispatchOff {
				set[schema.DispatchOff] = true
			}
			if now.SendOff {
				set[schema.SendOff] = true
			}
			if d := diff(world{k: b.row(t, k)}, world{}.add(k, set)); d != "" {
				t.Error(d)
			}
		}
	}
}

// revokeOne marks a submission in whatever state, once; nothing else on it changes.
func revokeOne(t *testing.T, b *bench) {
	ctx := t.Context()
	for _, state := range []string{"pending", "submitted", "skipped", "unknown", "not_sent"} {
		p := b.place()
		b.write(t, world{}.add(p.subKey(), subRow(p, state)))
		before := b.read(t, p)
		a := onStop(p)
		for range 2 {
			if err := b.RevokeLink(ctx, newSubmission(p), a); err != nil {
				t.Fatalf("%s: %v", state, err)
			}
		}
		want := before.after([]change{{key: p.subKey(), set: row{schema.RevokedAt: actAt}}, auditRow(a)})
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s: %s", state, d)
		}
		later := actOf(p.run(), "act-2", "revoke links")
		var c *schedule.Conflict
		if err := b.RevokeLink(ctx, newSubmission(p), later); !errors.As(err, &c) || c.Submission == nil || !c.Submission.RevokedAt.Equal(actAt) {
			t.Errorf("%s, another act: %v, want a Conflict with the row as it stands", state, err)
		}
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s, refused: %s", state, d)
		}
	}
	p := b.place()
	b.write(t, world{}.add(p.subKey(), subRow(p, "not_sent").with(row{schema.Token: nil})))
	before := b.read(t, p)
	var c *schedule.Conflict
	if err := b.RevokeLink(ctx, newSubmission(p), onStop(p)); !errors.As(err, &c) || c.Submission == nil {
		t.Errorf("one without a link: %v, want a Conflict", err)
	}
	if d := diff(b.read(t, p), before); d != "" {
		t.Errorf("one without a link: %s", d)
	}
	ghost := b.place()
	if err := b.RevokeLink(ctx, newSubmission(ghost), onStop(ghost)); !schedule.IsConflict(err) {
		t.Errorf("nobody: %v, want a Conflict", err)
	}
	if d := diff(b.read(t, ghost), world{}); d != "" {
		t.Errorf("a link that never was left something: %s", d)
	}
}

// revokeAll marks a run in whatever state, once; state, lease and the rest stand.
func revokeAll(t *testing.T, b *bench) {
	ctx := t.Context()
	for _, state := range []string{"queued", "running", "succeeded", "skipped", "failed"} {
		p := b.place()
		b.write(t, world{}.add(p.runKey(), runRow(p, state)))
		r, err := b.Run(ctx, p.run())
		if err != nil || !r.LinksRevoked.IsZero() {
			t.Fatal(r.LinksRevoked, err)
		}
		before := b.read(t, p)
		a := onStop(p)
		for range 2 {
			if err := b.RevokeLinks(ctx, r, a); err != nil {
				t.Fatalf("%s: %v", state, err)
			}
		}
		want := before.after([]change{{p.runKey(), row{schema.LinksRevoked: actAt}, schema.Time(actAt) + " all links revoked"}, auditRow(a)})
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s: %s", state, d)
		}
		if r, err = b.Run(ctx, p.run()); err != nil || !r.LinksRevoked.Equal(actAt) || string(r.State) != state {
			t.Errorf("%s: read as revoked %s, %s, %v", state, r.LinksRevoked, r.State, err)
		}
		var c *schedule.Conflict
		if err := b.RevokeLinks(ctx, r, actOf(p.run(), "act-2", "revoke links")); !errors.As(err, &c) || c.Run == nil || !c.Run.LinksRevoked.Equal(actAt) {
			t.Errorf("%s, another act: %v, want a Conflict with the run", state, err)
		}
		if d := diff(b.read(t, p), want); d != "" {
			t.Errorf("%s, refused: %s", state, d)
		}
	}
	ghost := b.place()
	if err := b.RevokeLinks(ctx, schedule.Run{Schedule: ghost.schedule, Occurrence: ghost.occurrence}, onStop(ghost)); !schedule.IsConflict(err) {
		t.Errorf("no run: %v, want a Conflict", err)
	}
	if d := diff(b.read(t, ghost), world{}); d != "" {
		t.Errorf("a run that never was left something: %s", d)
	}
}

func versions(t *testing.T, b *bench) {
	p, other := b.place(), b.place()
	w := world{}
	var want []string
	for n := 1; n <= 11; n++ { // past nine: the order is by number, not by digit
		body := fmt.Sprintf(`{"id":%q,"workspace":"EWR","name":"version %d"}`, p.schedule, n)
		w.add(schema.DefinitionKey(p.schedule, n), row{schema.Version: n, schema.Hash: fmt.Sprintf("ha5%d", n), schema.CreatedBy: "ann@example.com", schema.CreatedAt: wall.Add(time.Duration(n) * time.Hour), schema.Body: body})
		want = append([]string{fmt.Sprint(n)}, want...)
	}
	w.add(schema.DefinitionKey(other.schedule, 1), row{schema.Version: 1, schema.Body: `{}`}).add(p.scheduleKey(), scheduleRow(p, "active")).add(p.runKey(), runRow(p, "queued"))
	b.write(t, w)
	for _, limit := range []int{1, 4, 100} {
		got := pages(t, limit, func(from string) ([]schedule.Version, string, error) {
			return b.Versions(t.Context(), p.schedule, from, limit)
		}, func(v schedule.Version) string {
			if v.Name != fmt.Sprintf("version %d", v.Number) || v.Hash != fmt.Sprintf("ha5%d", v.Number) || v.CreatedBy != "ann@example.com" || !v.CreatedAt.Equal(wall.Add(time.Duration(v.Number)*time.Hour)) {
				t.Errorf("version %+v", v)
			}
			return fmt.Sprint(v.Number)
		})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: versions %v, want %v", limit, got, want)
		}
	}
	b.write(t, world{}.add(schema.DefinitionKey(other.schedule, 2), row{schema.Version: 2, schema.Body: "["}))
	if _, _, err := b.Versions(t.Context(), other.schedule, "", 10); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a definition that is no JSON was read: %v", err)
	}
}

// accesses come as they were recorded, by recipient and time; submissions of the same partition are none.
func accesses(t *testing.T, b *bench) {
	ctx := t.Context()
	p, other := b.place(), b.place()
	b.write(t, world{}.add(p.subKey(), subRow(p, "submitted")))
	var want []string
	for i, x := range []struct{ channel, hash, what string }{
		{"email", "aa", "download"}, {"email", "aa", "unsubscribe"}, {"email", "bb", "download"}, {"webhook", "aa", "download"},
	} {
		sub := schedule.Submission{Run: p.run(), Channel: x.channel, RecipientHash: x.hash}
		when := wall.Add(time.Duration(10-i) * time.Minute) // not in the order of time over all
		if x.what == "unsubscribe" {
			when = wall.Add(time.Hour)
		}
		if err := b.RecordAccess(ctx, sub, when, fmt.Sprintf("id-%d", i), x.what, expires); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s %s %s %s", x.channel, x.hash, schema.Time(when), x.what))
	}
	if err := b.RecordAccess(ctx, schedule.Submission{Run: other.run(), Channel: "email", RecipientHash: "cc"}, wall, "id-9", "download", expires); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 3, 100} {
		got := pages(t, limit, func(from string) ([]schedule.Access, string, error) { return b.Accesses(ctx, p.run(), from, limit) },
			func(a schedule.Access) string {
				if a.Run != p.run() {
					t.Errorf("access %+v of another run", a)
				}
				return fmt.Sprintf("%s %s %s %s", a.Channel, a.RecipientHash, schema.Time(a.At), a.What)
			})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: accesses %v, want %v", limit, got, want)
		}
	}
	for _, broken := range []schema.Sort{"ACCESS#email#aa#yesterday#id", "ACCESS#email#aa"} {
		q := b.place()
		b.write(t, world{}.add(schema.Key{PK: schema.SubmissionPartition(q.run()), SK: broken}, row{schema.What: "download"}))
		if _, _, err := b.Accesses(ctx, q.run(), "", 10); err == nil {
			t.Errorf("%s was read", broken)
		}
	}
}

func deadPages(t *testing.T, b *bench) {
	var want []string
	for i := range 5 {
		d := schedule.DeadLetter{MessageID: fmt.Sprintf("m-%d", i), Queue: "query-runs", Body: "{", Reason: "no JSON", At: wall}
		if err := b.RecordDead(t.Context(), d, expires); err != nil {
			t.Fatal(err)
		}
		want = append(want, d.MessageID)
	}
	for _, limit := range []int{1, 2, 100} {
		got := pages(t, limit, func(from string) ([]schedule.DeadLetter, string, error) {
			return b.DeadLetterPage(t.Context(), from, limit)
		}, func(d schedule.DeadLetter) string {
			if d.Queue != "query-runs" || d.Body != "{" || d.Reason != "no JSON" || !d.At.Equal(wall) {
				t.Errorf("dead letter %+v", d)
			}
			return d.MessageID
		})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: dead letters %v, want %v", limit, got, want)
		}
	}
	b.write(t, world{}.add(schema.DeadLetterKey("m-9"), row{schema.CreatedAt: "yesterday"}))
	if _, _, err := b.DeadLetterPage(t.Context(), "", 100); err == nil {
		t.Error("a dead letter whose time is none was read")
	}
}
