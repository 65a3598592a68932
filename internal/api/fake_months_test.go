package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/snapshottest"
	"almanac/internal/store"
	"almanac/internal/storetest"
)

// monthsOf are the months behind the API, real but for AWS. What is written to their table is noted in the world.
func monthsOf(t *testing.T, w *world) Months {
	t.Helper()
	wall := func() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }
	db := memcloud.NewDynamo(wall)
	if _, err := db.CreateTable(context.Background(), storetest.TableInput("Schedules")); err != nil {
		t.Fatal(err)
	}
	schedules := store.New(db, "Schedules", "test")
	for _, ws := range sorted(w.workspaces) {
		if err := schedules.PutWorkspace(context.Background(), ws, schedule.Audit{ID: ws.ID, Subject: ws.ID, At: wall()}); err != nil {
			t.Fatal(err)
		}
	}
	business := func(context.Context) (time.Time, error) { return w.at, nil }
	m := snapshottest.New(t, db, schedules, snapshot.Clocks{Wall: wall, Business: business})
	db.Hooks.Before = func(_ context.Context, c memcloud.Call) error {
		if c.Operation == "PutItem" || c.Operation == "UpdateItem" || c.Operation == "TransactWriteItems" {
			w.wrote("%s", c.Operation)
		}
		return w.fail
	}
	w.months = m
	return Months{Editor: m.Editor, Reader: m.Ledger, Board: m.Board, Files: m.Files, Planner: m,
		Sign: func(_ context.Context, object, name string, life time.Duration) (string, error) {
			w.wrote("sign")
			return fmt.Sprintf("https://months.example/%s?name=%s&life=%s", object, name, life), w.fail
		}}
}

const ewrMonth = "EWR_delays_2013-0"

// snapshotted is peopled, with months in every state: January has two published versions, February is planned, March waits
// for its second attempt, April is published and May has failed for good, since it drifted from April.
func snapshotted(t *testing.T) (*world, *client) {
	t.Helper()
	w, c := peopled(t)
	m := w.months
	def := snapshottest.Delays("EWR", "2013-01")
	half := 50.0
	def.Checks.DriftRows = snapshot.Drift{ByMonth: &half}
	m.Define(def)
	m.Define(snapshottest.Delays("JFK", "2013-01"))
	m.Plan()
	m.Publish(ewrMonth + "1_v1")
	m.Source.Load("EWR 2013-01", 10, -3, 26, 4)
	if _, err := m.Editor.Request(context.Background(), snapshottest.Period("EWR", "2013-01"), "data were mended", "ann"); err != nil {
		t.Fatal(err)
	}
	m.Publish(ewrMonth + "1_v2")
	m.Source.Lost = 1
	m.Walk(m.Claim(ewrMonth + "3_v1"))
	m.Source.Lost = 0
	m.Publish(ewrMonth + "4_v1")
	m.Source.Load("EWR 2013-05", 1, 2, 3, 4, 5, 6, 7, 8, 9)
	if r := m.Walk(m.Claim(ewrMonth + "5_v1")); r.State != snapshot.Failed || !r.Final() {
		t.Fatalf("%s %v: %s", r.State, r.NextAt, r.ErrorText)
	}
	w.writes = nil
	return w, c
}

func delaysOf(workspace string, edits ...string) string {
	return definitionOf(fmt.Sprintf(`"workspace":%q`, workspace), edits...)
}

// definitionOf is a definition of a scope as JSON; edits replace one text by another.
func definitionOf(scope string, edits ...string) string {
	text := `{` + scope + `,"type":"delays","name":"Delays","source":"flights","start":"2013-01","key":"id",` +
		`"query":"select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end",` +
		`"control":"select count(*) as rows from flights where origin = :workspace and at >= :period_start and at < :period_end"}`
	return strings.NewReplacer(edits...).Replace(text)
}

// snapshotSamples are those of the routes of monthly snapshots; every one succeeds for whom may do it.
var snapshotSamples = map[string]struct{ target, body string }{
	"GET /owners":                                   {"/owners", ""},
	"PUT /owners/{owner}":                           {"/owners/acme", `{"id":"acme","name":"Acme","cap":5,"backfill":2}`},
	"GET /owners/{owner}/audits":                    {"/owners/default/audits", ""},
	"GET /snapshots/definitions":                    {"/snapshots/definitions", ""},
	"GET " + definitionPath:                         {"/snapshots/definitions/workspace/EWR/delays", ""},
	"PUT " + definitionPath:                         {"/snapshots/definitions/workspace/EWR/delays", delaysOf("EWR")},
	"POST " + definitionPath + "/plan":              {"/snapshots/definitions/workspace/EWR/delays/plan", delaysOf("EWR")},
	"GET " + definitionPath + "/versions":           {"/snapshots/definitions/workspace/EWR/delays/versions", ""},
	"GET " + definitionPath + "/versions/{version}": {"/snapshots/definitions/workspace/EWR/delays/versions/1?against=1", ""},
	"GET " + definitionPath + "/audits":             {"/snapshots/definitions/workspace/EWR/delays/audits", ""},
	"GET /snapshots/grid":                           {"/snapshots/grid", ""},
	"POST /snapshots/plan":                          {"/snapshots/plan", ""},
	"POST /snapshots/backfill":                      {"/snapshots/backfill", `{"type":"delays","workspaces":["EWR"],"from":"2013-01","to":"2013-03","reason":"history"}`},
	"GET " + seriesPath:                             {"/snapshots/months/EWR/delays", ""},
	"GET " + monthPath:                              {"/snapshots/months/EWR/delays/2013-01", ""},
	"POST " + monthPath + "/versions":               {"/snapshots/months/EWR/delays/2013-01/versions", `{"reason":"data were mended"}`},
	"GET " + monthPath + "/manifest":                {"/snapshots/months/EWR/delays/2013-01/manifest", ""},
	"GET " + monthPath + "/compare":                 {"/snapshots/months/EWR/delays/2013-01/compare?from=1&to=2", ""},
	"GET " + snapshotPath:                           {"/snapshots/runs/" + ewrMonth + "1_v1", ""},
	"GET " + snapshotPath + "/manifest":             {"/snapshots/runs/" + ewrMonth + "1_v1/manifest", ""},
	"GET " + chunkPath:                              {"/snapshots/runs/" + ewrMonth + "1_v1/chunks/0", ""},
	"POST " + snapshotPath + "/verify":              {"/snapshots/runs/" + ewrMonth + "1_v1/verify", ""},
	"POST " + snapshotPath + "/cancel":              {"/snapshots/runs/" + ewrMonth + "2_v1/cancel", `{"reason":"not wanted"}`},
	"POST " + snapshotPath + "/retry-now":           {"/snapshots/runs/" + ewrMonth + "3_v1/retry-now", `{"reason":"mended"}`},
	"POST " + snapshotPath + "/accept":              {"/snapshots/runs/" + ewrMonth + "5_v1/accept", `{"checks":["drift:rows:previous_month"],"reason":"so it was"}`},
	"POST " + snapshotPath + "/roll-back":           {"/snapshots/runs/" + ewrMonth + "1_v1/roll-back", `{"reason":"wrong numbers"}`},
	"GET " + snapshotPath + "/audits":               {"/snapshots/runs/" + ewrMonth + "1_v1/audits", ""},
}

func init() {
	for route, sample := range snapshotSamples {
		samples[route] = sample
	}
}

// ofMonths reports whether a route is about snapshots; inEWR whether its sample names workspace EWR in its path.
func ofMonths(path string) (is, inEWR bool) {
	is = strings.HasPrefix(path, "/snapshots/") || strings.HasPrefix(path, "/owners")
	return is, strings.Contains(path, "{snapshot}") || strings.Contains(path, "{of}") || strings.HasPrefix(path, seriesPath)
}
