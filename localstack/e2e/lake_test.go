//go:build cloud

package e2e

import (
	"encoding/json"
	"testing"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// hours are a table with a row for each hour around December 2013, in DuckDB's SQL, which stands behind MiniStack's Athena.
// The local cloud's tables cannot be in S3.
const hours = "(select i as id, 'UA' as carrier, i % 7 as delay, cast(i * 1.25 as double) as fare, timestamp '2013-12-01 05:00:00' + to_hours(i) as hour from range(-100, 1000) as t(i)) as hours"

// The cloud's Athena is asked by the functions, in the stage's workgroup: a file is delivered, and a month is made of one
// query's result in chunks, checked by another query, and published; both queries and their cost stand on the run.
func TestADeliveryAndAMonthAreMadeFromAthena(t *testing.T) {
	scene(t)
	name := "lake-" + fresh()
	must(t, "PUT", "/sources/"+name, schedule.SourceConfig{Name: name, Engine: "athena", Workspaces: []string{"*"},
		Athena: &schedule.AthenaSource{Workgroup: cloud.outputs["AthenaWorkgroup"], Database: "default"}})
	d := save(t, func(d *schedule.Definition) {
		d.Source = name
		d.Query = "select id, carrier, fare, hour from " + hours + " where id between 1 and 50 and hour > :scheduled_time order by id"
	})
	delivered := settled(t, due(t, d))
	want(t, delivered, schedule.Succeeded, "")
	if delivered.File == nil || delivered.File.Rows != 50 || delivered.QueryID == "" || delivered.QueryNumber != 1 || delivered.QueryCost.Micros == 0 {
		t.Fatalf("file %+v of query %q, which has cost %+v; want 50 rows and their cost", delivered.File, delivered.QueryID, delivered.QueryCost)
	}
	if m := mailed(t, delivered.ID(), 1)[0]; len(m.Attachments) != 1 || m.Attachments[0].SHA256 != delivered.File.SHA256 {
		t.Fatalf("mail %+v; want the recorded file attached", m)
	}

	s := shelved(t, 2, 1, 1)
	month := "from " + hours + " where hour >= :period_start and hour < :period_end"
	s.define(t, s.workspaces[0], "lake", func(d *snapshot.Definition) {
		d.Source, d.Mode, d.ChunkRows, d.Key, d.Params = name, snapshot.Auto, 100, "id", nil
		d.Query = "select id, carrier, delay, fare, hour " + month
		d.Control = "select count(*) as rows, cast(sum(delay) as bigint) as delay, sum(fare) as fare " + month
	})
	planTick(t)
	r := s.settled(t, s.workspaces[0]+"_lake_2013-12_v1", snapshot.Published)
	if r.Mode != snapshot.Chunked || r.Attempts != 1 || r.Generation != 1 || r.Cursor.Rows != 744 || r.Cursor.Chunk != 8 || r.Cursor.Place == 0 || r.Query.Number != 2 || r.Query.For != "1 control" || r.QueryCost.Micros == 0 {
		t.Errorf("%+v", r)
	}
	var shown api.SnapshotDetail
	if b := must(t, "GET", "/snapshots/runs/"+r.ID(), nil); json.Unmarshal(b, &shown) != nil || shown.Query == nil || shown.Query.ID != r.Query.ID || shown.Query.Scanned != r.QueryCost.Scanned || shown.Query.CostUSD == 0 {
		t.Errorf("the API shows %s", b)
	}
	var v struct{ Chunks, Checked, Bad, Next int }
	if b := must(t, "POST", "/snapshots/runs/"+r.ID()+"/verify", nil); json.Unmarshal(b, &v) != nil || v.Bad != 0 || v.Checked != 8 {
		t.Errorf("verified as %s; want 8 sound files", b)
	}
}
