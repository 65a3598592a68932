package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"
)

// outbox is what a settle has to tell, and what becomes of it.
func outbox(t *testing.T, b *bench) {
	t.Run("V5 one notice per event", func(t *testing.T) { events(t, b) })
	t.Run("D14 another settles first", func(t *testing.T) { tellsOnce(t, b) })
	t.Run("the schedule changes between read and write", func(t *testing.T) { changingNotices(t, b) })
	t.Run("a definition that nobody can read", func(t *testing.T) { unreadable(t, b) })
	t.Run("before a notice is sent", func(t *testing.T) { beforeNotice(t, b) })
	t.Run("lists", func(t *testing.T) { listsOutbox(t, b) })
	t.Run("postpone", func(t *testing.T) { postpone(t, b) })
	t.Run("remove", func(t *testing.T) { removeNotice(t, b) })
}

const hookURL = "https://example.com/hook"

// noticed is a definition that pauses after five failures and tells an address and a receiver.
func noticed(p place, n int, after func(*schedule.Definition)) change {
	v := versionOf(p, n)
	five := 5
	v.PauseAfter = &five
	v.Notify = []schedule.Recipient{{Email: someone}, {Webhook: hookURL, Secret: "ops"}}
	if after != nil {
		after(&v.Definition)
	}
	return versionRow(p, v)
}

// telling is a run in work of a schedule whose definition has somebody told.
func telling(p place, on row) world {
	return running(p, scheduleRow(p, "active").with(on)).after([]change{noticed(p, 2, nil)})
}

// noticeRow is one notice as the outbox holds it.
func noticeRow(p place, kind, rest string, recipient schedule.Recipient, next time.Time) change {
	t := schedule.Targets([]schedule.Recipient{recipient})[0]
	id := p.run() + "#" + kind + "#" + t.Channel() + "#" + t.Hash
	secret := ""
	if t.Secret != "" {
		secret = fmt.Sprintf(`,"secret":%q`, t.Secret)
	}
	body := fmt.Sprintf(`{"id":%q,"kind":%q,"at":"2026-11-30T08:00:00Z","schedule":%q,"name":"Delays","workspace":"EWR","zone":"America/New_York","owner":"ann@example.com",`+
		`"run":%q,"occurrence":"2013-06-03T12:00:00Z","nominal":"2013-06-03T12:00:00Z",%s,"recipient":%q%s}`,
		id, kind, p.schedule, p.run(), rest, t.Address(), secret)
	return change{key: schema.NoticeKey(id), set: row{schema.Body: body, schema.NextAt: next, schema.Tries: 0, schema.ExpiresAt: wall.Add(96 * time.Hour).Unix()}}
}

// noticeRows are the notices of one event, to both.
func noticeRows(p place, kind, rest string) []change {
	return []change{noticeRow(p, kind, rest, schedule.Recipient{Email: someone}, held.Wake), noticeRow(p, kind, rest, schedule.Recipient{Webhook: hookURL, Secret: "ops"}, held.Wake)}
}

// noticedWays are settles that tell somebody: with the run and its schedule, in one transaction, or not at all.
func noticedWays() []way {
	end := func(o schedule.Outcome) func(context.Context, *store.Store, place, seen) error {
		return func(ctx context.Context, s *store.Store, _ place, r seen) error { return s.Settle(ctx, r.run, held, o) }
	}
	fail := schedule.Outcome{Event: schedule.Fail, Code: failure.QueryInvalid, Message: "no such column: dely"}
	failed := settled("worker-1", row{schema.State: "failed", schema.ErrorCode: "query_invalid", schema.ErrorText: fail.Message, schema.Submitted: 0, schema.Skipped: 0})
	way1 := func(name, event string, streak int, o schedule.Outcome, run row, line string, state schedule.RunState, on row, kind, rest string) way {
		return way{from: "running", event: event, name: name, token: true,
			given: func(p place) world { return telling(p, row{schema.Streak: streak}) }, do: end(o),
			want: func(p place) []change {
				return append(noticeRows(p, kind, rest), change{p.runKey(), run, stamp + line}, change{key: p.scheduleKey(), set: lastRun(p, state, on)})
			}}
	}
	return []way{
		way1("the first of a streak is told", "fail", 0, fail, failed, "failed: query_invalid", schedule.Failed, row{schema.Streak: 1, schema.LastRunCode: "query_invalid"},
			"failed", `"code":"query_invalid","message":"no such column: dely","streak":1`),
		way1("V5 the limit is reached", "fail", 4, fail, failed, "failed: query_invalid", schedule.Failed,
			row{schema.Streak: 5, schema.LastRunCode: "query_invalid", schema.State: "paused", schema.PauseReason: "failures", schema.PausedBy: "system", schema.PausedAt: wall,
				schema.NextDueAt: nil, schema.DueShard: nil},
			"paused", `"code":"query_invalid","message":"no such column: dely","streak":5,"pause":"failures"`),
		way1("a recovery is told", "succeed", 3, schedule.Outcome{Event: schedule.Succeed, Submitted: 2},
			settled("worker-1", row{schema.State: "succeeded", schema.Submitted: 2, schema.Skipped: 0}), "succeed",
			schedule.Succeeded, row{schema.Streak: 0, schema.LastSuccess: nominal, schema.LastRunCode: nil}, "recovered", `"streak":3`),
	}
}

// kinds lists what a place's run told, to whom: the kind once per address.
func (b *bench) kinds(t testing.TB, p place) (kinds []string) {
	t.Helper()
	for _, it := range b.outbox(t, p) {
		id := text(it, schema.SK)[len(schema.OutPrefix):]
		kinds = append(kinds, id[len(p.run())+1:])
	}
	return kinds
}

func to(kind string, rs ...schedule.Recipient) (out []string) {
	for _, t := range schedule.Targets(rs) {
		out = append(out, kind+"#"+t.Channel()+"#"+t.Hash)
	}
	slices.Sort(out)
	return out
}

var bothTold = []schedule.Recipient{{Email: someone}, {Webhook: hookURL}}

func events(t *testing.T, b *bench) {
	for _, c := range []struct {
		name    string
		on, run row
		def     func(*schedule.Definition)
		outcome schedule.Outcome
		kind    string // "": nobody is told
		state   schedule.State
		streak  int
	}{
		{"an ordinary success", row{schema.Streak: 0}, nil, nil, succeeded, "", schedule.Active, 0},
		{"a failure in the middle of a streak", row{schema.Streak: 1}, nil, nil, failedOnce, "", schedule.Active, 2},
		{"V5 a manual run reaches the limit", row{schema.Streak: 4}, row{schema.Manual: true}, nil, failedOnce, "", schedule.Active, 5},
		{"V5 a manual run succeeds", row{schema.Streak: 4}, row{schema.Manual: true}, nil, succeeded, "recovered", schedule.Active, 0},
		{"V5 beyond the limit", row{schema.Streak: 5}, nil, nil, failedOnce, "paused", schedule.Paused, 6},
		{"V5 an older run reaches no limit", row{schema.Streak: 4, schema.LastRunNominal: nominal.Add(time.Hour)}, nil, nil, failedOnce, "", schedule.Active, 4},
		{"an older run's success ends no streak", row{schema.Streak: 4, schema.LastRunNominal: nominal.Add(time.Hour)}, nil, nil, succeeded, "", schedule.Active, 4},
		{"never pauses", row{schema.Streak: 999}, nil, func(d *schedule.Definition) { *d.PauseAfter = schedule.NeverPause }, failedOnce, "", schedule.Active, 1000},
		{"the product's own limit", row{schema.Streak: 9}, nil, func(d *schedule.Definition) { d.PauseAfter = nil }, failedOnce, "paused", schedule.Paused, 10},
		{"a first failure that pauses is one event", row{schema.Streak: 0}, nil, func(d *schedule.Definition) { *d.PauseAfter = 1 }, failedOnce, "paused", schedule.Paused, 1},
		{"a code that pauses", row{schema.Streak: 0}, nil, nil, deniedAccess, "paused", schedule.Paused, 1},
		{"an older run's code that pauses", row{schema.Streak: 2, schema.LastRunNominal: nominal.Add(time.Hour)}, nil, nil, deniedAccess, "paused", schedule.Paused, 2},
		{"a quiet code", row{schema.Streak: 0}, nil, nil, schedule.Outcome{Event: schedule.Fail, Code: failure.ScheduleDeleted}, "", schedule.Active, 0},
		{"a skip", row{schema.Streak: 3}, nil, nil, skippedOnce, "", schedule.Active, 3},
		{"V20 of a deleted schedule nobody is told", row{schema.Streak: 0, schema.State: "deleted", schema.NextDueAt: nil, schema.DueShard: nil}, nil, nil, failedOnce, "", schedule.Deleted, 1},
		{"V20 nor of its recovery", row{schema.Streak: 3, schema.State: "deleted", schema.NextDueAt: nil, schema.DueShard: nil}, nil, nil, succeeded, "", schedule.Deleted, 0},
		{"a paused one still tells its first failure", row{schema.Streak: 0, schema.State: "paused", schema.NextDueAt: nil, schema.DueShard: nil}, nil, nil, failedOnce, "failed", schedule.Paused, 1},
		{"a paused one is not paused again", row{schema.Streak: 4, schema.State: "paused", schema.NextDueAt: nil, schema.DueShard: nil}, nil, nil, failedOnce, "", schedule.Paused, 5},
		{"nobody is named", row{schema.Streak: 0}, nil, func(d *schedule.Definition) { d.Notify = nil }, failedOnce, "", schedule.Active, 1},
		{"one address in two spellings is told once", row{schema.Streak: 0}, nil, func(d *schedule.Definition) {
			d.Notify = append(d.Notify, schedule.Recipient{Email: strings.ToUpper(someone[:1]) + someone[1:]}, schedule.Recipient{Email: someone})
		}, failedOnce, "failed", schedule.Active, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := b.place()
			w := telling(p, c.on).after([]change{noticed(p, 2, c.def), {key: p.runKey(), set: c.run}})
			b.write(t, w)
			b.settles(t, p, c.outcome)
			want := []string(nil)
			if c.kind != "" {
				want = to(c.kind, bothTold...)
			}
			if got := b.kinds(t, p); !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
			if s, err := b.Schedule(t.Context(), p.schedule); err != nil || s.State != c.state || s.Streak != c.streak {
				t.Errorf("%s, streak %d, %v; want %s, %d", s.State, s.Streak, err, c.state, c.streak)
			}
		})
	}
}

// tellsOnce: of two that settle one run, the one whose settle lost tells nobody, and says so.
func tellsOnce(t *testing.T, b *bench) {
	p := b.place()
	over := row{schema.AttemptsLeft: 0, schema.LeaseEnd: wall.Add(-time.Millisecond)}
	b.write(t, telling(p, row{schema.Streak: 0}).after([]change{{key: p.runKey(), set: over}}))
	read, err := b.Run(t.Context(), p.run())
	if err != nil {
		t.Fatal(err)
	}
	var first []schedule.Notice
	once := false
	b.tap.reset()
	b.tap.before = func(_ int, operation string) (err error) {
		if isWrite(operation) && !once {
			once = true
			first, err = b.rival().Conclude(t.Context(), read, next, failedOnce)
		}
		return err
	}
	second, err := b.Conclude(t.Context(), read, held, deniedAccess)
	b.tap.reset()
	if !schedule.IsConflict(err) || len(second) != 0 || len(first) != 2 {
		t.Errorf("the second settle: %v and %d notices, the first %d; want a Conflict, 0 and 2", err, len(second), len(first))
	}
	if got, want := b.kinds(t, p), to("failed", bothTold...); !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	for _, n := range first {
		if look, err := b.BeforeNotice(t.Context(), n.ID); err != nil || !reflect.DeepEqual(look.Notice, n) {
			t.Errorf("%v: returned was %+v\nstored is %+v", err, n, look.Notice)
		}
	}
}

// changingNotices lets the schedule change after the settle has read it and before it writes: what is told is right for
// the schedule as it stands then.
func changingNotices(t *testing.T, b *bench) {
	other := schedule.Recipient{Email: "else@example.com"}
	for _, c := range []struct {
		name string
		to   row
		also func(p place) change
		kind string
		who  []schedule.Recipient
	}{
		{"another address is to be told", row{schema.Version: 3}, func(p place) change {
			return noticed(p, 3, func(d *schedule.Definition) { d.Notify = []schedule.Recipient{other} })
		}, "failed", []schedule.Recipient{other}},
		{"nobody is any more", row{schema.Version: 3}, func(p place) change { return noticed(p, 3, func(d *schedule.Definition) { d.Notify = nil }) }, "", nil},
		{"the limit is lower", row{schema.Version: 3}, func(p place) change { return noticed(p, 3, func(d *schedule.Definition) { *d.PauseAfter = 1 }) }, "paused", bothTold},
		{"an earlier run failed and told", row{schema.Streak: 1}, nil, "", nil},
		{"it was deleted", row{schema.State: "deleted", schema.NextDueAt: nil, schema.DueShard: nil}, nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := b.place()
			before := telling(p, row{schema.Streak: 0})
			b.write(t, before)
			changed, once := before.after([]change{{key: p.scheduleKey(), set: c.to}}), false
			b.tap.reset()
			b.tap.before = func(_ int, operation string) error {
				if isWrite(operation) && !once {
					once = true
					b.overwrite(t, p.scheduleKey(), changed[p.scheduleKey()])
					if c.also != nil {
						b.write(t, world{}.after([]change{c.also(p)}))
					}
				}
				return nil
			}
			b.settles(t, p, failedOnce)
			b.tap.reset()
			want := []string(nil)
			if c.kind != "" {
				want = to(c.kind, c.who...)
			}
			if got := b.kinds(t, p); !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
		})
	}
}

// unreadable definitions keep no run from settling: nobody is told, and the product's own limit holds.
func unreadable(t *testing.T, b *bench) {
	for name, spoil := range map[string]func(p place) change{
		"it is no JSON": func(p place) change {
			return change{key: schema.DefinitionKey(p.schedule, 2), set: row{schema.Body: "[", schema.Version: 2}}
		},
		"it is gone": func(p place) change {
			return change{key: schema.DefinitionKey(p.schedule, 1), set: row{schema.Version: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.place()
			b.write(t, running(p, scheduleRow(p, "active").with(row{schema.Streak: 9})).after([]change{spoil(p)}))
			b.settles(t, p, failedOnce)
			if got := b.kinds(t, p); len(got) > 0 {
				t.Errorf("told %v", got)
			}
			if s, err := b.Schedule(t.Context(), p.schedule); err != nil || s.State != schedule.Paused || s.PauseReason != schedule.PausedByFailures || s.Streak != 10 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// told settles a run as its first failure, and returns the notices as the settle returned them.
func (b *bench) told(t *testing.T, p place) []schedule.Notice {
	t.Helper()
	b.write(t, telling(p, row{schema.Streak: 0}))
	r, err := b.Run(t.Context(), p.run())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := b.Conclude(t.Context(), r, held, failedOnce)
	if err != nil || len(ns) != 2 {
		t.Fatal(len(ns), err)
	}
	return ns
}

func beforeNotice(t *testing.T, b *bench) {
	ctx := t.Context()
	ns := b.told(t, b.place())
	n := ns[0]
	for _, id := range []string{"", "x", n.RunID, n.ID + "x", n.ID + "#", "a@b#failed#email#ff"} {
		if _, err := b.BeforeNotice(ctx, id); !errors.Is(err, schedule.ErrNotFound) {
			t.Errorf("notice %q: %v, want not found", id, err)
		}
	}
	if look, err := b.BeforeNotice(ctx, n.ID); err != nil || look.Suppressed || look.Control.SendOff || look.Notice.Recipient != someone || look.Notice.Channel != "email" {
		t.Errorf("%+v, %v", look, err)
	}
	// A table of its own: a suppression and the control hold for every place.
	own := newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	n = own.told(t, own.place())[0]
	if err := own.Suppress(ctx, suppressionOf(schedule.Targets([]schedule.Recipient{{Email: someone}})[0].Hash)); err != nil {
		t.Fatal(err)
	}
	own.write(t, world{}.add(schema.ControlKey(own.Stage), row{schema.SendOff: true}))
	if look, err := own.BeforeNotice(ctx, n.ID); err != nil || !look.Suppressed || !look.Control.SendOff {
		t.Errorf("%+v, %v; want suppressed, and sending off", look, err)
	}
	if n := own.tap.eventual.Load(); n > 0 {
		t.Errorf("%d reads may have been behind", n)
	}
}

// listsOutbox pages through every partition; what nobody can read hides nothing else.
func listsOutbox(t *testing.T, b *bench) {
	own := newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	var want []string
	partitions := map[schema.Partition]bool{}
	for range 12 {
		for _, n := range own.told(t, own.place()) {
			want = append(want, n.ID)
			partitions[schema.NoticeKey(n.ID).PK] = true
		}
	}
	slices.Sort(want)
	for i := range schema.OutboxShards {
		own.write(t, world{}.
			add(schema.Key{PK: schema.OutboxAt(i), SK: "OUT#no notice"}, row{schema.Body: "{}"}).
			add(schema.Key{PK: schema.OutboxAt(i), SK: "OUT#a@b#failed#email#ff"}, row{schema.Body: "[", schema.NextAt: wall, schema.Tries: 0}).
			add(schema.Key{PK: schema.OutboxAt(i), SK: "ZZZ"}, row{schema.Body: "{}"}))
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for i := range schema.OutboxShards {
			for from, n := "", 0; ; n++ {
				ns, next, err := own.Outbox(t.Context(), i, from, limit)
				if err != nil || n > 100 {
					t.Fatal(n, err)
				}
				for _, x := range ns {
					got = append(got, x.ID)
				}
				if from = next; from == "" {
					break
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v\nwant %v", limit, got, want)
		}
	}
	if len(partitions) < 2 {
		t.Errorf("12 runs stand in %d partitions", len(partitions))
	}
	if _, _, err := own.Outbox(t.Context(), 0, "nobody's cursor", 1); err == nil {
		t.Error("a cursor that is none was taken")
	}
	if n := own.tap.eventual.Load(); n > 0 {
		t.Errorf("%d reads may have been behind", n)
	}
}

func postpone(t *testing.T, b *bench) {
	ctx := t.Context()
	ns := b.told(t, b.place())
	n, later := ns[0], wall.Add(time.Hour)
	if err := b.PostponeNotice(ctx, n, later); err != nil {
		t.Fatal(err)
	}
	look, err := b.BeforeNotice(ctx, n.ID)
	moved := n
	moved.NextAt, moved.Tries = later, 1
	if err != nil || !reflect.DeepEqual(look.Notice, moved) {
		t.Errorf("%v, %+v\nwant %+v", err, look.Notice, moved)
	}
	if err := b.PostponeNotice(ctx, n, later.Add(time.Hour)); !schedule.IsConflict(err) {
		t.Errorf("as it was read before another moved it: %v, want a Conflict", err)
	}
	if err := b.RemoveNotice(ctx, n.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.PostponeNotice(ctx, moved, later.Add(time.Hour)); !schedule.IsConflict(err) {
		t.Errorf("one that was sent meanwhile: %v, want a Conflict", err)
	}
	if it := b.row(t, schema.NoticeKey(n.ID)); len(it) > 0 {
		t.Errorf("a ghost: %s", show(it))
	}
	lost := race(t, 4, func(ctx context.Context, i int) error {
		return b.rival().PostponeNotice(ctx, ns[1], later.Add(time.Duration(i)*time.Minute))
	})
	if len(lost) != 3 {
		t.Errorf("%d of four were refused, want 3", len(lost))
	}
}

// removeNotice can be sent twice, and meets each fault on either side of its effect.
func removeNotice(t *testing.T, b *bench) {
	ctx := t.Context()
	ns := b.told(t, b.place())
	for range 2 {
		if err := b.RemoveNotice(ctx, ns[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.BeforeNotice(ctx, ns[0].ID); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("%v, want not found", err)
	}
	if _, err := b.BeforeNotice(ctx, ns[1].ID); err != nil {
		t.Errorf("the other address's: %v", err)
	}
	for _, f := range faultKinds {
		for _, after := range []bool{false, true} {
			if f.retry && after {
				continue
			}
			t.Run(fmt.Sprintf("%s, after %v", f.name, after), func(t *testing.T) {
				n := b.told(t, b.place())[0]
				b.tap.reset()
				once := func(call int, operation string) error {
					if call == 0 {
						return f.err(operation)
					}
					return nil
				}
				if after {
					b.tap.after = once
				} else {
					b.tap.before = once
				}
				err := b.RemoveNotice(ctx, n.ID)
				b.tap.reset()
				if !f.retry {
					failuretest.Want(t, err, f.code)
				} else if err != nil {
					t.Errorf("%v, want a second try", err)
				}
				_, err = b.BeforeNotice(ctx, n.ID)
				if gone := errors.Is(err, schedule.ErrNotFound); gone != (f.retry || after) {
					t.Errorf("gone %v, %v", gone, err)
				}
			})
		}
	}
	n := b.told(t, b.place())[0]
	b.tap.reset()
	b.tap.before = func(_ int, operation string) error { return throttled() }
	err := b.RemoveNotice(ctx, n.ID)
	writes := b.tap.writes.Load()
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreThrottled)
	if writes != 7 {
		t.Errorf("%d tries, want 7", writes)
	}
}
