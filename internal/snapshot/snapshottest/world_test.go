package snapshottest

import (
	"context"
	"testing"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/storetest"
)

// TestAMonthIsPublished: what other tests stand on works from the plan to the manifest.
func TestAMonthIsPublished(t *testing.T) {
	ctx := context.Background()
	wall := func() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }
	db := memcloud.NewDynamo(wall)
	if _, err := db.CreateTable(ctx, storetest.TableInput("Schedules")); err != nil {
		t.Fatal(err)
	}
	schedules := store.New(db, "Schedules", "test")
	if err := schedules.PutWorkspace(ctx, schedule.Workspace{ID: "EWR", Name: "Newark", Zone: "America/New_York"}, schedule.Audit{ID: "a", Subject: "s", At: wall()}); err != nil {
		t.Fatal(err)
	}
	w := New(t, db, schedules, snapshot.Clocks{Wall: wall, Business: func(context.Context) (time.Time, error) { return time.Date(2013, 3, 2, 12, 0, 0, 0, time.UTC), nil }})
	w.Define(Delays("EWR", "2013-01"))
	w.Plan()
	w.Source.Load("EWR 2013-01", 1, 2, 3, 4, 5)
	r := w.Publish("EWR_delays_2013-01_v1")
	m, err := w.Files.Current(ctx, r.Period)
	if err != nil || m.Totals.Rows != 5 || m.Totals.Chunks != 3 || m.Totals.Sums["delay"] != "15" || w.Asked() == 0 {
		t.Fatalf("%+v, %v", m.Totals, err)
	}
	w.Source.Lost = 1
	if r := w.Walk(w.Claim("EWR_delays_2013-02_v1")); r.State != snapshot.Failed || r.NextAt.IsZero() {
		t.Fatalf("%s %s", r.State, r.ErrorCode)
	}
}
