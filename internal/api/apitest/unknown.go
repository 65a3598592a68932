package apitest

import (
	"context"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

// Lose takes a queued run to failed as delivery_unknown: a file of three rows is recorded, of the first recipient nobody
// knows, the others are submitted. It returns the submissions, the unknown first.
func (p *Product) Lose(t testing.TB, id string) []schedule.Submission {
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
	var subs []schedule.Submission
	for i, target := range schedule.Targets(def.Recipients) {
		sub := schedule.Submission{Run: id, Channel: target.Channel(), RecipientHash: target.Hash, Recipient: target.Address(), State: schedule.Pending,
			Owner: lease.Token, Token: p.ID(), Detail: "no answer", UpdatedAt: p.Wall()}
		if err := p.Store.Intend(ctx, sub, p.Wall().Add(time.Hour).Unix()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			err = p.Store.LoseTrack(ctx, sub, lease.Token, false, false)
		} else {
			err = p.Store.Accepted(ctx, sub, "provider-"+p.ID())
		}
		if err == nil {
			sub, err = p.Store.Submission(ctx, id, sub.Channel, sub.RecipientHash)
		}
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, sub)
	}
	err = p.Store.Settle(ctx, run, lease, schedule.Outcome{Event: schedule.Fail, Code: failure.DeliveryUnknown, Message: "its answer was lost", Submitted: len(subs) - 1})
	if err != nil {
		t.Fatal(err)
	}
	return subs
}
