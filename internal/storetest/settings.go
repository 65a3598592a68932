package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// settings are the rows that no table guards, in a table of their own.
func settings(t *testing.T, b *bench) {
	shared := b
	b = newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	t.Run("control", func(t *testing.T) { control(t, b) })
	t.Run("clock", func(t *testing.T) { clock(t, b) })
	t.Run("workspaces and sources", func(t *testing.T) { documents(t, b) })
	t.Run("definitions", func(t *testing.T) { definitions(t, b) })
	t.Run("suppressed and unsubscribed", func(t *testing.T) { refusals(t, b) })
	t.Run("written once, and for good", func(t *testing.T) { history(t, b) })
	t.Run("faults", func(t *testing.T) { settingFaults(t, b) })
}

func control(t *testing.T, b *bench) {
	ctx := t.Context()
	for i, want := range []schedule.Control{{}, {DispatchOff: true}, {SendOff: true}, {DispatchOff: true, SendOff: true}, {}} {
		if err := b.turn(ctx, want, actOf("control", fmt.Sprintf("act-%d", i), "switch")); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Control(ctx); err != nil || got != want {
			t.Errorf("control %+v, %v; want %+v", got, err, want)
		}
		b.audited(t, "control", i+1)
		set := row{schema.CreatedBy: "ann@example.com", schema.UpdatedAt: actAt}
		if want.DispatchOff {
			set[schema.DispatchOff] = true
		}
		if want.SendOff {
			set[schema.SendOff] = true
		}
		k := schema.ControlKey(b.Stage)
		if d := diff(world{k: b.row(t, k)}, world{}.add(k, set)); d != "" {
			t.Error(d)
		}
	}
	other := *b.Store
	other.Stage = "another"
	if err := b.turn(ctx, schedule.Control{SendOff: true}, actOf("control", "act-9", "switch")); err != nil {
		t.Fatal(err)
	}
	if got, err := other.Control(ctx); err != nil || got != (schedule.Control{}) {
		t.Errorf("a stage without an item: %+v, %v; want both on", got, err)
	}
}

// turn sets the switches from however they stand.
func (b *bench) turn(ctx context.Context, c schedule.Control, a schedule.Audit) error {
	was, err := b.Control(ctx)
	if err != nil {
		return err
	}
	return b.Switch(ctx, was, c, a)
}

func clock(t *testing.T, b *bench) {
	ctx := t.Context()
	if got, err := b.Clock(ctx); err != nil || got != (schedule.ClockSetting{}) || !got.At(wall).Equal(wall) {
		t.Errorf("no setting: %+v, %v; want wall time", got, err)
	}
	for _, want := range []schedule.ClockSetting{{Base: nominal, Wall: wall}, {Base: nominal, Wall: wall, Frozen: true}, {}} {
		if err := b.SetClock(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := b.Clock(ctx)
		if err != nil || !got.Base.Equal(want.Base) || !got.Wall.Equal(want.Wall) || got.Frozen != want.Frozen {
			t.Errorf("clock %+v, %v; want %+v", got, err, want)
		}
		later := wall.Add(time.Hour)
		if !got.At(later).Equal(want.At(later)) {
			t.Errorf("at %s it is %s, want %s", later, got.At(later), want.At(later))
		}
	}
	b.write(t, world{}.add(schema.ClockKey(b.Stage), row{schema.ClockBase: "yesterday"}))
	if _, err := b.Clock(ctx); err == nil {
		t.Error("a clock that is no time was read")
	}
}

func documents(t *testing.T, b *bench) {
	ctx := t.Context()
	for i, w := range []schedule.Workspace{{ID: "JFK", Name: "old"}, {ID: "EWR", Name: "Newark", Zone: "America/New_York"}, {ID: "JFK", Name: "Kennedy", Zone: "America/New_York"}} {
		if err := b.PutWorkspace(ctx, w, actOf("workspace "+w.ID, fmt.Sprintf("act-%d", i), "save")); err != nil {
			t.Fatal(err)
		}
	}
	b.audited(t, "workspace JFK", 2)
	b.audited(t, "workspace EWR", 1)
	all, err := b.Workspaces(ctx)
	if want := []schedule.Workspace{{ID: "EWR", Name: "Newark", Zone: "America/New_York"}, {ID: "JFK", Name: "Kennedy", Zone: "America/New_York"}}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("workspaces %+v, %v; want %+v", all, err, want)
	}
	if w, err := b.Workspace(ctx, "JFK"); err != nil || w != all[1] {
		t.Errorf("workspace %+v, %v", w, err)
	}
	source := schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "flights.db", Workspaces: []string{"*"}}
	if err := b.PutSource(ctx, source, actOf("source flights", "act-1", "save")); err != nil {
		t.Fatal(err)
	}
	if got := b.audited(t, "source flights", 1); len(got) == 1 && got[0] != actOf("source flights", "act-1", "save") {
		t.Errorf("audit %+v", got[0])
	}
	k := schema.SourceKey("flights")
	if d := diff(world{k: b.row(t, k)}, world{}.add(k, row{schema.Body: `{"name":"flights","engine":"sqlite","object":"flights.db","workspaces":["*"]}`,
		schema.DirKind: "source", schema.DirName: "flights", schema.CreatedBy: "ann@example.com", schema.UpdatedAt: actAt})); d != "" {
		t.Error(d)
	}
	if got, err := b.Source(ctx, "flights"); err != nil || !reflect.DeepEqual(got, source) {
		t.Errorf("source %+v, %v", got, err)
	}
	if got, err := b.Sources(ctx); err != nil || !reflect.DeepEqual(got, []schedule.SourceConfig{source}) {
		t.Errorf("sources %+v, %v", got, err)
	}
	b.write(t, world{}.add(schema.SourceKey("broken"), row{schema.Body: "{", schema.DirKind: schema.DirSources, schema.DirName: "broken"}))
	if _, err := b.Source(ctx, "broken"); err == nil {
		t.Error("a document that is no JSON was read")
	}
	if _, err := b.Sources(ctx); err == nil {
		t.Error("a list with a document that is no JSON was read")
	}
}

func definitions(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	if err := b.CreateSchedule(ctx, versionOf(p, 1), schedule.Schedule{ID: p.schedule, Workspace: "EWR", NextDue: nextDue}, nil, expires, onSchedule(p, "create")); err != nil {
		t.Fatal(err)
	}
	got, err := b.Definition(ctx, p.schedule, 1)
	want := versionOf(p, 1)
	if err != nil || !got.CreatedAt.Equal(want.CreatedAt) {
		t.Fatalf("%+v, %v", got, err)
	}
	got.CreatedAt = want.CreatedAt
	if !reflect.DeepEqual(got, want) {
		t.Errorf("definition %+v\nwant %+v", got, want)
	}
	b.write(t, world{}.add(schema.DefinitionKey(p.schedule, 2), row{schema.Body: "[", schema.Version: 2}))
	if _, err := b.Definition(ctx, p.schedule, 2); err == nil {
		t.Error("a definition that is no JSON was read")
	}
}

// refusals are looked at, all at one moment, before a recipient is asked.
func refusals(t *testing.T, b *bench) {
	ctx := t.Context()
	p, other := b.place(), b.place()
	b.write(t, world{}.add(p.runKey(), runRow(p, "running")).add(other.runKey(), runRow(other, "running")))
	look := func(q place, hash string) schedule.Look {
		t.Helper()
		l, err := b.BeforeRecipient(ctx, schedule.Run{Schedule: q.schedule, Occurrence: q.occurrence}, "email", hash)
		if err != nil || l.Run.ID() != q.run() {
			t.Fatalf("%+v, %v", l, err)
		}
		return l
	}
	if l := look(p, someoneHash); l.Suppressed || l.Unsubscribed || l.Submission != nil {
		t.Errorf("before anything: %+v", l)
	}
	for range 2 {
		if err := b.Unsubscribe(ctx, "email", someoneHash, p.schedule, wall); err != nil {
			t.Fatal(err)
		}
	}
	if l := look(p, someoneHash); !l.Unsubscribed || l.Suppressed {
		t.Errorf("after an unsubscription: %+v", l)
	}
	if l := look(other, someoneHash); l.Unsubscribed {
		t.Error("an unsubscription from one schedule holds for another")
	}
	for q, want := range map[place]bool{p: true, other: false} {
		if got, err := b.Unsubscribed(ctx, "email", someoneHash, q.schedule); err != nil || got != want {
			t.Errorf("unsubscribed %v, %v; want %v", got, err, want)
		}
	}
	if err := b.Unsubscribe(ctx, "email", someoneHash, p.schedule, wall.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if it := b.row(t, schema.UnsubscriptionKey("email", someoneHash, p.schedule)); text(it, schema.CreatedAt) != schema.Time(wall) {
		t.Errorf("a second unsubscription moved the first: %s", show(it))
	}
	if err := b.Suppress(ctx, suppressionOf(someoneHash)); err != nil {
		t.Fatal(err)
	}
	if !look(other, someoneHash).Suppressed || look(other, "aa").Suppressed {
		t.Error("a suppression holds for one address, in every schedule")
	}
	b.write(t, world{}.add(p.subKey(), subRow(p, "pending")))
	if err := b.turn(ctx, schedule.Control{SendOff: true}, actOf("control", "act-10", "switch")); err != nil {
		t.Fatal(err)
	}
	if l := look(p, someoneHash); l.Submission == nil || l.Submission.State != schedule.Pending || l.Submission.Owner != "worker-1" || !l.Control.SendOff {
		t.Errorf("with a submission: %+v", l)
	}
	b.write(t, world{}.add(p.subKey(), subRow(p, "pending").with(row{schema.Frozen: []byte("{")})))
	if _, err := b.BeforeRecipient(ctx, schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}, "email", someoneHash); err == nil {
		t.Error("a frozen body that is no JSON was read")
	}
}

// history is kept as it was written.
func history(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	sub := newSubmission(p)
	if err := b.RecordAccess(ctx, sub, wall, "a1", "download", expires); err != nil {
		t.Fatal(err)
	}
	if it := b.row(t, schema.AccessKey(p.run(), sub.Channel, sub.RecipientHash, wall, "a1")); text(it, schema.What) != "download" || !reflect.DeepEqual(it[schema.ExpiresAt], av(expires.Unix())) {
		t.Errorf("access %s", show(it))
	}
	dead := schedule.DeadLetter{MessageID: "m-2", Queue: "query-runs", Body: "{", Reason: "no JSON", At: wall}
	for _, d := range []schedule.DeadLetter{dead, {MessageID: "m-2", Queue: "other", Body: "changed", Reason: "changed", At: expires}, {MessageID: "m-1", Queue: "query-runs", At: wall}} {
		if err := b.RecordDead(ctx, d, expires); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.DeadLetters(ctx)
	if err != nil || len(all) != 2 || all[0].MessageID != "m-1" || all[1] != dead {
		t.Errorf("dead letters %+v, %v; want m-1 and %+v", all, err, dead)
	}
	b.write(t, world{}.add(schema.DeadLetterKey("m-3"), row{schema.CreatedAt: "yesterday"}))
	if _, err := b.DeadLetters(ctx); err == nil {
		t.Error("a dead letter whose time is none was read")
	}
}

// settingFaults loses the reply of each write that no table guards, and throttles it.
func settingFaults(t *testing.T, b *bench) {
	if err := b.turn(t.Context(), schedule.Control{}, actOf("control", "act-11", "switch")); err != nil {
		t.Fatal(err)
	}
	p := b.place()
	// linked is a run and a submission of one act's own, written when it is first asked for.
	made := map[string]seen{}
	linked := func(a schedule.Audit) seen {
		key := a.Subject + a.ID
		if _, ok := made[key]; !ok {
			p := b.place()
			b.write(t, world{}.add(p.runKey(), runRow(p, "running")).add(p.subKey(), subRow(p, "submitted")))
			made[key] = seen{run: schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}, sub: newSubmission(p)}
		}
		return made[key]
	}
	type doing = func(context.Context, schedule.Audit) error
	// How a lost reply is settled: by the audit, by the row that stands already, or by writing it once more. Each act has a
	// row of its own, so that what an act before left is never taken for this one's.
	const (
		audited = iota
		once
		twice
	)
	for _, w := range []struct {
		name    string
		settled int
		do      doing
	}{
		{"workspace", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.PutWorkspace(ctx, schedule.Workspace{ID: "LGA"}, a)
		}},
		{"source", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.PutSource(ctx, schedule.SourceConfig{Name: "s"}, a)
		}},
		{"group", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.PutGroup(ctx, groupOf("faulty-"+a.ID, 1, schedule.Recipient{Email: someone}), a)
		}},
		{"switch", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.Switch(ctx, schedule.Control{}, schedule.Control{}, a)
		}},
		{"revoke one link", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.RevokeLink(ctx, linked(a).sub, a)
		}},
		{"revoke all links", audited, func(ctx context.Context, a schedule.Audit) error {
			return b.RevokeLinks(ctx, linked(a).run, a)
		}},
		{"clock", twice, func(ctx context.Context, _ schedule.Audit) error { return b.SetClock(ctx, schedule.ClockSetting{}) }},
		{"suppress", once, func(ctx context.Context, a schedule.Audit) error { return b.Suppress(ctx, suppressionOf(a.ID)) }},
		{"record feedback", once, func(ctx context.Context, a schedule.Audit) error {
			return b.RecordFeedback(ctx, linked(a).sub, bounced)
		}},
		{"lift a suppression", audited, func(ctx context.Context, a schedule.Audit) error {
			s, key := suppressionOf("lift-"+a.ID), "lift"+a.ID
			if _, ok := made[key]; !ok {
				b.write(t, world{}.add(schema.SuppressionKey(s.Channel, s.RecipientHash), suppressionRow(s)))
				made[key] = seen{}
			}
			return b.LiftSuppression(ctx, s, a)
		}},
		{"access", twice, func(ctx context.Context, _ schedule.Audit) error {
			return b.RecordAccess(ctx, newSubmission(p), wall, "x", "y", expires)
		}},
		{"unsubscribe", once, func(ctx context.Context, a schedule.Audit) error {
			return b.Unsubscribe(ctx, "email", a.ID, p.schedule, wall)
		}},
		{"dead letter", once, func(ctx context.Context, a schedule.Audit) error {
			return b.RecordDead(ctx, schedule.DeadLetter{MessageID: a.ID, At: wall}, expires)
		}},
	} {
		t.Run(w.name, func(t *testing.T) {
			acts := 0
			// play does the write with a fault at its first call, then without one: what it came to, and one audit at most.
			play := func(before, after error) (first, again error) {
				t.Helper()
				acts++
				a := actOf(w.name+" with faults", fmt.Sprintf("act-%d", acts), "save")
				on := func(e error) func(int, string) error {
					return func(n int, _ string) error {
						if n == 0 {
							return e
						}
						return nil
					}
				}
				b.tap.reset()
				b.tap.before, b.tap.after = on(before), on(after)
				first = w.do(t.Context(), a)
				b.tap.reset()
				again = w.do(t.Context(), a)
				if w.settled == audited {
					b.audited(t, a.Subject, acts)
				}
				return first, again
			}
			operation := "PutItem"
			if w.settled == audited {
				operation = "TransactWriteItems"
			}
			for _, f := range faultKinds {
				err, again := play(f.err(operation), nil)
				switch {
				case again != nil:
					t.Errorf("%s, sent again: %v", f.name, again)
				case f.retry && err != nil:
					t.Errorf("%s: %v, want a second try that lands", f.name, err)
				case !f.retry:
					failuretest.Want(t, err, failure.StoreUnavailable)
				}
			}
			err, again := play(nil, timedOut())
			if again != nil {
				t.Errorf("reply lost, sent again: %v", again)
			}
			if w.settled == twice {
				failuretest.Want(t, err, failure.StoreUnavailable)
			} else if err != nil {
				t.Errorf("reply lost: %v, want success: what stands is what was wanted", err)
			}
		})
	}
}
