package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"
	"almanac/internal/storetest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// metered is a store in memory whose write units are read step by step.
type metered struct {
	*store.Store
	db   *memcloud.Dynamo
	rows []meteredStep
}

type meteredStep struct {
	name         string
	calls        int
	floor        float64
	table, index float64
	read         float64
}

func newMetered(t *testing.T) *metered {
	t.Helper()
	db := memcloud.NewDynamo(time.Now)
	if _, err := db.CreateTable(t.Context(), storetest.TableInput("Schedules")); err != nil {
		t.Fatal(err)
	}
	return &metered{Store: store.New(db, "Schedules", "test"), db: db}
}

// step does something and notes what it cost beside what it may cost at least.
func (m *metered) step(t *testing.T, name string, floor float64, do func(context.Context) error) {
	t.Helper()
	before := m.db.Units()
	if err := do(t.Context()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	u := m.db.Units().Since(before).Total()
	m.rows = append(m.rows, meteredStep{name, u.Calls, floor, u.TableWrite, u.IndexWrite, u.TableRead + u.IndexRead})
}

// happyPath is a due occurrence with R recipients as the consumer works through it, with values as long as real ones.
func happyPath(t *testing.T, m *metered, recipients int) {
	const id = "ewr-delayed-departures-weekdays"
	nominal := time.Date(2013, 6, 3, 12, 0, 0, 0, time.UTC)
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	ttl := now.Add(90 * 24 * time.Hour)
	version := schedule.Version{Number: 1, Hash: strings.Repeat("d", 64), CreatedBy: "ann@example.com", CreatedAt: now, Definition: schedule.Definition{
		ID: id, Workspace: "EWR", Name: "Delayed departures, weekdays", Owner: "ann@example.com", Source: "flights", Query: "select * from flights where dep_delay > 15",
		Recurrence: calendar.Spec{Cron: "0 8 * * 1-5", Zone: "America/New_York"}}}
	hot := schedule.Schedule{ID: id, Workspace: "EWR", Name: version.Name, NextDue: nominal}
	if err := m.CreateSchedule(t.Context(), version, hot, nil, ttl, schedule.Audit{ID: strings.Repeat("a", 32), Subject: id, At: now, Who: "ann@example.com", What: "create"}); err != nil {
		t.Fatal(err)
	}
	hot, err := m.Schedule(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	run := schedule.Run{Schedule: id, Occurrence: nominal.Format(time.RFC3339), Nominal: nominal, Version: 1, Workspace: "EWR", AttemptsLeft: 5,
		WakeAt: now.Add(5 * time.Minute), CreatedAt: now}
	token := func(n int) string { return fmt.Sprintf("%032d", n) }
	m.step(t, "admit", 4, func(ctx context.Context) error {
		return m.Admit(ctx, schedule.Admission{Run: run, Token: token(1), Schedule: &hot, NextDue: nominal.Add(24 * time.Hour), TTL: ttl})
	})
	if run, err = m.Run(t.Context(), run.ID()); err != nil {
		t.Fatal(err)
	}
	l := schedule.Lease{Token: token(2), Now: now, End: now.Add(6 * time.Minute), Wake: now.Add(7 * time.Minute)}
	m.step(t, "begin", 1, func(ctx context.Context) error { run, err = m.Begin(ctx, run, l); return err })
	m.step(t, "record file", 1, func(ctx context.Context) error {
		return m.RecordFile(ctx, run, l, schedule.RecordedFile{Key: "30d/" + id + "/" + run.Occurrence + "/" + token(2) + ".csv", Name: "delayed-departures-2013-06-03.csv",
			Rows: 31234, Bytes: 4_567_890, SHA256: strings.Repeat("ab", 32), DataAsOf: now,
			Expires: now.Add(30 * 24 * time.Hour), LinksEnd: now.Add(7 * 24 * time.Hour)})
	})
	for i := range recipients {
		sub := schedule.Submission{Run: run.ID(), Channel: channel.Email, RecipientHash: fmt.Sprintf("%064x", i), Recipient: fmt.Sprintf("somebody.%04d@example.com", i),
			Owner: token(2), Token: token(3), UpdatedAt: now, Frozen: channel.Frozen{Date: now, Boundary: token(4), Attach: true, BodyHash: strings.Repeat("cd", 32)}}
		m.step(t, fmt.Sprintf("recipient %d, intend", i+1), 1, func(ctx context.Context) error { return m.Intend(ctx, sub, ttl.Unix()) })
		m.step(t, fmt.Sprintf("recipient %d, accept", i+1), 1, func(ctx context.Context) error {
			return m.Accepted(ctx, sub, "0100019fa5d1c0de-12345678-9abc-def0-1234-56789abcdef0-000000")
		})
	}
	m.step(t, "settle", 4, func(ctx context.Context) error {
		return m.Settle(ctx, run, l, schedule.Outcome{Event: schedule.Succeed, Submitted: recipients})
	})
}

// A run costs what it must and nothing more: admission 4, begin 1, file 1, settle 4, and 2 for each recipient, as long as
// its rows stay within one KB. Index writes are apart.
func TestWriteUnitsOfARunAreAtTheFloor(t *testing.T) {
	for _, recipients := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d recipients", recipients), func(t *testing.T) {
			m := newMetered(t)
			happyPath(t, m, recipients)
			var table, floor, index float64
			t.Logf("%-22s %6s %6s %7s %7s %6s", "step", "calls", "floor", "table", "index", "read")
			for _, r := range m.rows {
				t.Logf("%-22s %6d %6.0f %7.1f %7.1f %6.1f", r.name, r.calls, r.floor, r.table, r.index, r.read)
				if r.table != r.floor {
					t.Errorf("%s costs %.0f write units, want %.0f", r.name, r.table, r.floor)
				}
				table, floor, index = table+r.table, floor+r.floor, index+r.index
			}
			t.Logf("%-22s %6s %6.0f %7.1f %7.1f", "total", "", floor, table, index)
			// Beside it: turns at the account's send rate, taken for all mails of TurnSpan at once: anew, then from there on.
			start := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
			for _, by := range []string{"t", "u"} {
				taken := m.db.Units()
				if _, err := m.TakeSendTimes(t.Context(), channel.Email, strings.Repeat(by, 22), func() schedule.Wanted {
					return schedule.Wanted{Span: schedule.TurnSpan, Idle: start, Anew: start, Last: start.Add(time.Minute), Limit: start.Add(schedule.MaxAhead)}
				}); err != nil {
					t.Fatal(err)
				}
				turns := m.db.Units().Since(taken).Total()
				t.Logf("%-22s %6d %6.0f %7.1f %7.1f %6.1f", fmt.Sprintf("and %s of mails", schedule.TurnSpan), turns.Calls, 1.0, turns.TableWrite, turns.IndexWrite, turns.TableRead)
				if turns.Calls != 2 || turns.TableWrite != 1 || turns.IndexWrite != 0 {
					t.Errorf("turns for %s of mails cost %d calls, %.0f write units and %.0f in indexes, want 2, 1 and 0", schedule.TurnSpan, turns.Calls, turns.TableWrite, turns.IndexWrite)
				}
			}
			if want := float64(10 + 2*recipients); floor != want || table != want {
				t.Errorf("the run costs %.0f write units beside a floor of %.0f, want %.0f", table, floor, want)
			}
			// Due index: one move (2) at the admission. Open index: in (1), moved by begin (2), out (1).
			if index != 6 {
				t.Errorf("indexes cost %.0f write units, want 6", index)
			}
			for _, it := range m.db.Items("Schedules") {
				size := sizeOf(it)
				t.Logf("%4d bytes: %s / %s", size, textOf(it, schema.PK), textOf(it, schema.SK))
				if hot := textOf(it, schema.Body) == ""; hot && size > 1024 {
					t.Errorf("the row has %d bytes, so that each write to it costs more than one unit", size)
				}
			}
		})
	}
}

// The same by size, the steps of all recipients in one line: no recipient costs more because there are many.
func TestWriteUnitsOfARunBySize(t *testing.T) {
	t.Logf("%10s %7s %7s %7s %7s", "recipients", "calls", "floor", "table", "index")
	for _, recipients := range []int{1, 10, 1_000, schedule.MaxRecipients} {
		m := newMetered(t)
		happyPath(t, m, recipients)
		var sum meteredStep
		for _, r := range m.rows {
			sum.calls, sum.floor, sum.table, sum.index = sum.calls+r.calls, sum.floor+r.floor, sum.table+r.table, sum.index+r.index
		}
		t.Logf("%10d %7d %7.0f %7.0f %7.0f", recipients, sum.calls, sum.floor, sum.table, sum.index)
		if want := float64(10 + 2*recipients); sum.floor != want || sum.table != want || sum.index != 6 {
			t.Errorf("%d recipients cost %.0f write units beside a floor of %.0f, and %.0f in indexes; want %.0f and 6", recipients, sum.table, sum.floor, sum.index, want)
		}
	}
}

// What a write costs in the indexes, as internal/schema says: one unit for an item that enters or leaves one, two where
// its place in it changes.
func TestIndexUnitsAreAsDocumented(t *testing.T) {
	m := newMetered(t)
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	ttl, due := now.Add(90*24*time.Hour), now.Add(time.Hour)
	act := func(id, what string) schedule.Audit {
		return schedule.Audit{ID: what, Subject: id, At: now, Who: "ann@example.com", What: what, Why: "because"}
	}
	read := func(id string) schedule.Schedule {
		t.Helper()
		s, err := m.Schedule(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	run := func() schedule.Run {
		t.Helper()
		r, err := m.Run(t.Context(), schema.RunID("s", "2026-11-30T09:00:00Z"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	lease := func(token string, at time.Time) schedule.Lease {
		return schedule.Lease{Token: token, Now: at, End: at.Add(time.Minute), Wake: at.Add(2 * time.Minute)}
	}
	version := schedule.Version{Number: 1, Definition: schedule.Definition{ID: "s", Workspace: "EWR", Name: "n"}}
	later := now.Add(time.Hour)
	suppression := schedule.Suppression{Channel: "email", RecipientHash: "0a", Reason: "bounce", At: now}
	for _, c := range []struct {
		name  string
		index float64
		do    func(context.Context) error
	}{
		{"create", 2, func(ctx context.Context) error {
			return m.CreateSchedule(ctx, version, schedule.Schedule{ID: "s", Workspace: "EWR", Name: "n", NextDue: due}, nil, ttl, act("s", "create"))
		}},
		{"create, never due", 1, func(ctx context.Context) error {
			v := version
			v.ID = "never"
			return m.CreateSchedule(ctx, v, schedule.Schedule{ID: "never", Workspace: "EWR", Name: "n"}, nil, ttl, act("never", "create"))
		}},
		{"admit", 3, func(ctx context.Context) error {
			s := read("s")
			return m.Admit(ctx, schedule.Admission{Run: schedule.Run{Schedule: "s", Occurrence: "2026-11-30T09:00:00Z", Nominal: due, Version: 1, AttemptsLeft: 5, WakeAt: now, CreatedAt: now},
				Token: "d", Schedule: &s, NextDue: due.Add(time.Hour), TTL: ttl})
		}},
		{"admit a manual run", 1, func(ctx context.Context) error {
			a := act("s@manual-1", "run now")
			return m.Admit(ctx, schedule.Admission{Run: schedule.Run{Schedule: "s", Occurrence: "manual-1", Nominal: due, Manual: true, Version: 1, AttemptsLeft: 5, WakeAt: now, CreatedAt: now},
				Token: "e", TTL: ttl, Audit: &a})
		}},
		{"re-offer", 2, func(ctx context.Context) error { return m.Reoffer(ctx, run(), now, now.Add(time.Minute), false) }},
		{"begin", 2, func(ctx context.Context) error { _, err := m.Begin(ctx, run(), lease("w1", now)); return err }},
		{"record file", 0, func(ctx context.Context) error {
			return m.RecordFile(ctx, run(), lease("w1", now), schedule.RecordedFile{Key: "k", Expires: ttl, LinksEnd: ttl})
		}},
		{"ask to stop", 0, func(ctx context.Context) error { return m.AskToStop(ctx, run(), act(run().ID(), "stop")) }},
		{"yield", 2, func(ctx context.Context) error {
			l := lease("w1", now)
			l.Wake = now.Add(5 * time.Minute)
			return m.Yield(ctx, run(), l, 200, "x")
		}},
		{"resume", 2, func(ctx context.Context) error { _, err := m.Begin(ctx, run(), lease("w3", now)); return err }},
		{"record query", 0, func(ctx context.Context) error { return m.RecordQuery(ctx, run(), lease("w3", now), "q") }},
		{"release", 2, func(ctx context.Context) error {
			l := lease("w3", now)
			l.Wake = now.Add(7 * time.Minute)
			return m.Release(ctx, run(), l, failure.New(failure.SourceUnavailable, "no answer"), time.Minute)
		}},
		{"resume after it", 2, func(ctx context.Context) error { _, err := m.Begin(ctx, run(), lease("w2", later)); return err }},
		{"settle", 1, func(ctx context.Context) error {
			return m.Settle(ctx, run(), lease("w2", later), schedule.Outcome{Event: schedule.Succeed})
		}},
		{"edit, due as before", 0, func(ctx context.Context) error {
			v, s := version, read("s")
			v.Number = 2
			return m.EditSchedule(ctx, v, s, s.NextDue, nil, ttl, act("s", "edit"))
		}},
		{"edit, due at another time", 2, func(ctx context.Context) error {
			v, s := version, read("s")
			v.Number = 3
			return m.EditSchedule(ctx, v, s, s.NextDue.Add(time.Hour), nil, ttl, act("s", "edit again"))
		}},
		{"pass over", 2, func(ctx context.Context) error {
			s := read("s")
			return m.PassOver(ctx, s, schedule.Passage{Range: schedule.Skip{Schedule: "s", Kind: schedule.SkipMissed, First: s.NextDue, Last: s.NextDue, Count: 1}, Next: s.NextDue.Add(time.Hour)}, ttl)
		}},
		{"pause", 1, func(ctx context.Context) error { return m.PauseSchedule(ctx, read("s"), act("s", "pause")) }},
		{"resume the schedule", 1, func(ctx context.Context) error {
			return m.ResumeSchedule(ctx, read("s"), due, nil, ttl, act("s", "resume"))
		}},
		{"delete", 2, func(ctx context.Context) error { return m.DeleteSchedule(ctx, read("s"), ttl, act("s", "delete")) }},
		{"delete, never due", 1, func(ctx context.Context) error {
			return m.DeleteSchedule(ctx, read("never"), ttl, act("never", "delete"))
		}},
		{"save a workspace", 1, func(ctx context.Context) error {
			return m.PutWorkspace(ctx, schedule.Workspace{ID: "EWR"}, act("workspace EWR", "save"))
		}},
		{"save a source", 1, func(ctx context.Context) error {
			return m.PutSource(ctx, schedule.SourceConfig{Name: "flights"}, act("source flights", "save"))
		}},
		{"save a group", 1, func(ctx context.Context) error {
			return m.PutGroup(ctx, schedule.GroupVersion{Number: 1, Group: schedule.Group{ID: "g", Name: "g"}}, act("group g", "save"))
		}},
		{"save the group again", 0, func(ctx context.Context) error {
			return m.PutGroup(ctx, schedule.GroupVersion{Number: 2, Group: schedule.Group{ID: "g", Name: "h"}}, act("group g", "save again"))
		}},
		{"suppress", 1, func(ctx context.Context) error { return m.Suppress(ctx, suppression) }},
		{"lift", 1, func(ctx context.Context) error {
			return m.LiftSuppression(ctx, suppression, act("suppression", "lift"))
		}},
		{"save the workspace again", 0, func(ctx context.Context) error {
			return m.PutWorkspace(ctx, schedule.Workspace{ID: "EWR", Name: "Newark"}, act("workspace EWR", "save again"))
		}},
	} {
		m.step(t, c.name, 0, c.do)
		got := m.rows[len(m.rows)-1]
		t.Logf("%-26s table %4.1f  indexes %4.1f", c.name, got.table, got.index)
		if got.index != c.index {
			t.Errorf("%s costs %.0f units in the indexes, want %.0f", c.name, got.index, c.index)
		}
	}
}

func textOf(it map[string]types.AttributeValue, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// sizeOf counts as AWS does: names and text in UTF-8 bytes, a number about half its digits and one, a list or map three
// and one for each element. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func sizeOf(it map[string]types.AttributeValue) int {
	n := 0
	for k, v := range it {
		n += len(k) + valueSize(v)
	}
	return n
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(v.Value)+1)/2 + 1
	case *types.AttributeValueMemberL:
		n := 3
		for _, e := range v.Value {
			n += 1 + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	}
	return 1
}
