package apitest

import (
	"context"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/schedule"
)

// Begin takes a queued run into work.
func (p *Product) Begin(t testing.TB, id string) (schedule.Run, schedule.Lease) {
	t.Helper()
	ctx := context.Background()
	run, err := p.Store.Run(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	lease := schedule.Lease{Token: p.ID(), Now: p.Wall(), End: p.Wall().Add(time.Minute), Wake: p.Wall().Add(2 * time.Minute)}
	if run, err = p.Store.Begin(ctx, run, lease); err != nil {
		t.Fatal(err)
	}
	return run, lease
}

// Deliver takes a queued run through the store's own writes: begun, a file of three rows, every recipient submitted,
// succeeded. It returns the submissions, whose tokens are the links'.
func (p *Product) Deliver(t testing.TB, id string) []schedule.Submission {
	t.Helper()
	ctx := context.Background()
	run, lease := p.Begin(t, id)
	def, err := p.Store.Definition(ctx, run.Schedule, run.Version)
	if err != nil {
		t.Fatal(err)
	}
	kept := p.Wall().AddDate(0, 0, def.File.RetentionDays)
	file := schedule.RecordedFile{Key: "files/30/" + id, Name: "delays.csv", Rows: 3, Bytes: 120, SHA256: "5ea1", DataAsOf: p.Wall(), Expires: kept, LinksEnd: kept}
	if err := p.Store.RecordFile(ctx, run, lease, file); err != nil {
		t.Fatal(err)
	}
	run.File = &file
	for _, r := range def.Recipients {
		normal, err := channel.Normalise(r.Channel(), r.Address())
		if err != nil {
			t.Fatal(err)
		}
		sub := schedule.Submission{Run: id, Channel: r.Channel(), RecipientHash: channel.RecipientHash(r.Channel(), normal), Recipient: r.Address(),
			Owner: lease.Token, Token: p.ID(), UpdatedAt: p.Wall()}
		if err := p.Store.Intend(ctx, sub, p.Wall().Add(time.Hour).Unix()); err != nil {
			t.Fatal(err)
		}
		if err := p.Store.Accepted(ctx, sub, "provider-"+p.ID()); err != nil {
			t.Fatal(err)
		}
	}
	subs, err := p.Store.Submissions(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	run, err = p.Store.Run(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Settle(ctx, run, lease, schedule.Outcome{Event: schedule.Succeed, Submitted: len(subs)}); err != nil {
		t.Fatal(err)
	}
	return subs
}

// Fail takes a queued run to failed.
func (p *Product) Fail(t testing.TB, id string, code failure.Code, message string) {
	t.Helper()
	run, lease := p.Begin(t, id)
	if err := p.Store.Settle(context.Background(), run, lease, schedule.Outcome{Event: schedule.Fail, Code: code, Message: message}); err != nil {
		t.Fatal(err)
	}
}

// Admit admits a schedule's next due occurrence, as a tick would, and returns the run's id.
func (p *Product) Admit(t testing.TB, id string, next time.Time) string {
	t.Helper()
	ctx := context.Background()
	row, err := p.Store.Schedule(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	def, err := p.Store.Definition(ctx, id, row.Version)
	if err != nil {
		t.Fatal(err)
	}
	run := schedule.NewRun(def, row.NextDue, p.Wall(), schedule.DefaultTiming())
	if err := p.Store.Admit(ctx, schedule.Admission{Run: run, Token: p.ID(), Schedule: &row, NextDue: next, TTL: p.Wall().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return run.ID()
}
