package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// actAt is when people act: no instant of the runs beside them.
var actAt = wall.Add(3 * time.Second)

// actOf is what ann did to a subject, under the act's own id.
func actOf(subject, id, what string) schedule.Audit {
	return schedule.Audit{ID: id, Subject: subject, At: actAt, Who: "ann@example.com", What: what, Why: "holidays", Before: "before " + what, After: "after " + what}
}

func onSchedule(p place, what string) schedule.Audit { return actOf(p.schedule, "act-1", what) }
func onRunNow(p place) schedule.Audit                { return actOf(p.run(), "act-1", "run now") }
func onStop(p place) schedule.Audit                  { return actOf(p.run(), "act-1", "stop") }

func auditsOf(subject string) schema.Partition {
	return schema.AuditKey(subject, time.Time{}, "").PK
}

// auditRow is the whole record of an act.
func auditRow(a schedule.Audit) change {
	return change{key: schema.AuditKey(a.Subject, a.At, a.ID), set: row{schema.Who: a.Who, schema.What: a.What, schema.Why: a.Why, schema.Before: a.Before, schema.After: a.After}}
}

// audited demands that a subject has so many audits, and hands them over, the latest first.
func (b *bench) audited(t testing.TB, subject string, want int) []schedule.Audit {
	t.Helper()
	all, next, err := b.Audits(t.Context(), subject, "", 100)
	if err != nil || next != "" || len(all) != want {
		t.Errorf("%s has the audits %+v, next %q, %v; want %d", subject, all, next, err, want)
	}
	return all
}

// audits are written with the act or not at all. The walks compare the audits of each act that lands, is refused, fails
// or is sent again, since a place's audits belong to it; here is what lies between two acts.
func audits(t *testing.T, b *bench) {
	t.Run("another's act in between", func(t *testing.T) { actsMeet(t, b) })
	t.Run("a refused condition beside an audit that stands", func(t *testing.T) { auditDecides(t, b) })
	t.Run("listed, the latest first", func(t *testing.T) { listAudits(t, b) })
	t.Run("subjects stand apart", func(t *testing.T) {
		p := b.place()
		b.write(t, withSchedule("running", nil)(p))
		r, err := b.Run(t.Context(), p.run())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AskToStop(t.Context(), r, onStop(p)); err != nil {
			t.Fatal(err)
		}
		b.audited(t, p.schedule, 0)
		if got := b.audited(t, p.run(), 1); len(got) == 1 && got[0] != onStop(p) {
			t.Errorf("audit %+v, want %+v", got[0], onStop(p))
		}
	})
}

// actsMeet lets the reply of a pause be lost, and another person resume before it is sent again: it took effect once,
// and sending it again neither pauses anew nor leaves a second audit.
func actsMeet(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	b.write(t, inState("active", nil)(p))
	read, err := b.Schedule(ctx, p.schedule)
	if err != nil {
		t.Fatal(err)
	}
	pause := actOf(p.schedule, "act-1", "pause")
	if err := b.PauseSchedule(ctx, read, pause); err != nil {
		t.Fatal(err)
	}
	paused, err := b.Schedule(ctx, p.schedule)
	if err != nil {
		t.Fatal(err)
	}
	resume := actOf(p.schedule, "act-2", "resume")
	resume.At, resume.Who = actAt.Add(time.Second), "bob@example.com"
	if err := b.ResumeSchedule(ctx, paused, nextDue.Add(time.Hour), nil, expires, resume); err != nil {
		t.Fatal(err)
	}
	if err := b.PauseSchedule(ctx, read, pause); err != nil {
		t.Errorf("the pause sent again: %v, want success: it took effect", err)
	}
	if s, err := b.Schedule(ctx, p.schedule); err != nil || s.State != schedule.Active || s.PauseReason != "" {
		t.Errorf("the schedule is %s, %q, %v; want active: the resume came last", s.State, s.PauseReason, err)
	}
	if got := b.audited(t, p.schedule, 2); !slices.Equal(got, []schedule.Audit{resume, pause}) {
		t.Errorf("audits %+v, want the resume, then the pause", got)
	}
	// The same person, the same read, but another act: refused, and no audit of it.
	var c *schedule.Conflict
	if err := b.PauseSchedule(ctx, read, actOf(p.schedule, "act-3", "pause")); !errors.As(err, &c) || c.Schedule == nil || c.Schedule.State != schedule.Active {
		t.Errorf("an act by a stale read: %v, want a Conflict with the schedule as it stands", err)
	}
	b.audited(t, p.schedule, 2)
}

// auditDecides admits a manual run twice under one idempotency key: another request's audit is no proof of this one's.
func auditDecides(t *testing.T, b *bench) {
	p := b.place()
	ask := func(token, id string) error {
		a, act := admission0(p), actOf(p.run(), id, "run now")
		a.Token, a.Audit = token, &act
		return b.Admit(t.Context(), a)
	}
	if err := ask("request-1", "act-1"); err != nil {
		t.Fatal(err)
	}
	if err := ask("request-1", "act-1"); err != nil {
		t.Errorf("sent again: %v, want success", err)
	}
	var c *schedule.Conflict
	if err := ask("request-2", "act-2"); !errors.As(err, &c) || c.Run == nil || c.Run.ID() != p.run() {
		t.Errorf("another request of the same key: %v, want a Conflict with the run", err)
	}
	if got := b.audited(t, p.run(), 1); len(got) == 1 && got[0].ID != "act-1" {
		t.Errorf("the audit is %s's, want the first request's", got[0].ID)
	}
	one(t, b, p)
}

// listAudits reads page by page; an act without a reason or a state before has none.
func listAudits(t *testing.T, b *bench) {
	p, other := b.place(), b.place()
	w := world{}
	var want []string
	for i := range 7 {
		a := actOf(p.schedule, fmt.Sprintf("%c-act", "gfedcba"[i]), "edit") // ids do not decide the order
		a.At = actAt.Add(time.Duration(i) * time.Minute)
		c := auditRow(a)
		w.add(c.key, c.set)
		want = append([]string{schema.Time(a.At) + " " + a.ID}, want...)
	}
	foreign := auditRow(onSchedule(other, "edit"))
	bare := actOf(other.run(), "act-9", "run now")
	bare.Why, bare.Before, bare.After = "", "", ""
	w.add(foreign.key, foreign.set).add(schema.AuditKey(other.run(), actAt, "act-9"), row{schema.Who: bare.Who, schema.What: bare.What})
	b.write(t, w)
	for _, limit := range []int{1, 3, 7, 100} {
		got := pages(t, limit, func(from string) ([]schedule.Audit, string, error) {
			return b.Audits(t.Context(), p.schedule, from, limit)
		},
			func(a schedule.Audit) string {
				if full := actOf(p.schedule, a.ID, "edit"); a.Who != full.Who || a.Why != full.Why || a.Before != full.Before || a.After != full.After || a.Subject != p.schedule {
					t.Errorf("audit %+v", a)
				}
				return schema.Time(a.At) + " " + a.ID
			})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: audits %v, want %v", limit, got, want)
		}
	}
	if got := b.audited(t, other.run(), 1); len(got) == 1 && got[0] != bare {
		t.Errorf("audit %+v, want %+v", got[0], bare)
	}
	broken := b.place()
	b.write(t, world{}.add(schema.Key{PK: auditsOf(broken.schedule), SK: "yesterday#act-1"}, row{schema.Who: "ann@example.com"}))
	if _, _, err := b.Audits(context.WithoutCancel(t.Context()), broken.schedule, "", 10); err == nil {
		t.Error("an audit whose time is none was read")
	}
}
