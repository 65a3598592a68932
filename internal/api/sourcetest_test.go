package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"
)

func TestSourceTest(t *testing.T) {
	w, c := peopled(t)
	cell := "UA"
	w.tests.report = source.Report{Columns: []source.Column{{Name: "carrier"}, {Name: "flights"}}, Rows: [][]*string{{&cell, nil}}}
	w.tests.report.Add("network", 12*time.Millisecond, "reports.example.com:5432 answers", nil)
	w.tests.report.Add("TLS", time.Millisecond, "", failure.New(failure.SourceUnavailable, "the certificate is for another host"))
	var got SourceTest
	c.as("admin", "POST", "/sources/flights/test", `{"query":"select carrier"}`).want(200).into(&got)
	want := []SourceStep{{"network", true, 12, "reports.example.com:5432 answers", ""}, {"TLS", false, 1, "the certificate is for another host", "source_unavailable"}}
	if got.Source != "flights" || got.OK || !slices.Equal(got.Steps, want) || fmt.Sprint(got.Columns) != "[carrier flights]" || len(got.Rows) != 1 || *got.Rows[0][0] != "UA" || got.Rows[0][1] != nil {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(w.tests.asked, []string{"flights: select carrier"}) || w.tests.left > testTime || w.tests.left <= 0 {
		t.Errorf("asked %q with %s left", w.tests.asked, w.tests.left)
	}
	w.tests.report = source.Report{}
	w.tests.report.Add("file", 0, "version 1", nil)
	c.as("admin@EWR", "POST", "/sources/ewr-only/test", "").want(200).into(&got)
	if !got.OK {
		t.Errorf("%+v", got)
	}
	if len(w.writes) > 0 {
		t.Errorf("a test wrote %v", w.writes)
	}
}

func TestSourceTestIsForWhoMayConfigureTheSource(t *testing.T) {
	w, c := peopled(t)
	for _, x := range []struct {
		who, target string
		status      int
	}{
		{"admin@JFK", "/sources/ewr-only/test", 404}, {"admin", "/sources/nothing/test", 404}, {"admin@EWR", "/sources/flights/test", 403}, {"operator@EWR admin@JFK", "/sources/ewr-only/test", 403},
	} {
		c.as(x.who, "POST", x.target, "").problem(x.status, "")
	}
	if len(w.tests.asked) > 0 {
		t.Errorf("asked %q", w.tests.asked)
	}
	for err, status := range map[error]int{schedule.ErrNotFound: 404, errors.New("cut"): 500} {
		w.tests.err = err
		c.as("admin", "POST", "/sources/flights/test", "").problem(status, "")
	}
}

// Whoever names a database's host is told the secret's password, so it is for administrators of every workspace; and where
// the database is stands for them alone.
func TestDatabasesAreForAdministratorsOfAll(t *testing.T) {
	_, c := peopled(t)
	body := func(host string) string {
		return fmt.Sprintf(`{"engine":"postgres","workspaces":["EWR"],"postgres":{"host":%q,"database":"orders","iam_user":"almanac"}}`, host)
	}
	p := c.as("admin@EWR", "PUT", "/sources/orders", body("db.example.com")).problem(403, "")
	if !strings.Contains(p.Detail, "the group admin") {
		t.Error(p.Detail)
	}
	c.as("admin", "PUT", "/sources/orders", body("db.example.com")).want(200)
	for who, host := range map[string]string{"admin": "db.example.com", "admin@EWR": "db.example.com", "operator@EWR": ""} {
		var list struct{ Items []SourceView }
		c.as(who, "GET", "/sources", "").want(200).into(&list)
		i := slices.IndexFunc(list.Items, func(v SourceView) bool { return v.Name == "orders" })
		if i < 0 || host == "" && list.Items[i].Postgres != nil || host != "" && list.Items[i].Postgres.Host != host {
			t.Errorf("%s sees %+v", who, list.Items)
		}
	}
}
