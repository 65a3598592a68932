package api

import (
	"slices"
	"strings"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/source"
)

// What Athena may read is the functions' right, and each query is paid for: such a source is for administrators of every
// workspace.
func TestLakesAreForAdministratorsOfAll(t *testing.T) {
	_, c := peopled(t)
	const body = `{"engine":"athena","workspaces":["EWR"],"athena":{"workgroup":"almanac-production","database":"lake"}}`
	c.as("admin@EWR", "PUT", "/sources/lake", body).problem(403, "")
	c.as("admin", "PUT", "/sources/lake", body).want(200)
	for who, sees := range map[string]bool{"admin": true, "admin@EWR": true, "operator@EWR": false} {
		var list struct{ Items []SourceView }
		c.as(who, "GET", "/sources", "").want(200).into(&list)
		i := slices.IndexFunc(list.Items, func(v SourceView) bool { return v.Name == "lake" })
		if i < 0 || sees != (list.Items[i].Athena != nil) || sees && list.Items[i].Athena.Database != "lake" {
			t.Errorf("%s sees %+v", who, list.Items)
		}
	}
}

func TestARunShowsItsQueryAndWhatItCosts(t *testing.T) {
	w, c := peopled(t)
	queued(w)
	if body := c.as("viewer@EWR", "GET", "/runs/"+openRun, "").want(200).Body; strings.Contains(body, "bytes_scanned") {
		t.Fatalf("a run without a query: %s", body)
	}
	run := w.runs[openRun]
	run.QueryID, run.QueryNumber, run.QueryCost = "q-1", 2, source.Cost{Scanned: 1 << 40, Micros: 5_000_048}
	w.runs[openRun] = run
	var d RunDetail
	c.as("viewer@EWR", "GET", "/runs/"+openRun, "").want(200).into(&d)
	if want := (QueryView{ID: "q-1", Number: 2, Scanned: 1 << 40, CostUSD: 5.000048}); d.Query == nil || *d.Query != want {
		t.Fatalf("%+v", d.Query)
	}
	if d.State != string(schedule.Queued) {
		t.Fatal(d.State)
	}
}
