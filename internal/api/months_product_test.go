package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/internal/snapshot"
	"almanac/internal/snapshot/snapshottest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const delaysType = `"type":"delays","name":"Delays","source":"flights","start":"2013-01","key":"id","mode":"chunked","chunk_rows":2,` +
	`"query":"select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end",` +
	`"control":"select count(*) as rows, sum(delay) as delay from flights where origin = :workspace and at >= :period_start and at < :period_end"`

const definitionEWR = "/snapshots/definitions/workspace/EWR/delays"

// defined has a definition of delays for EWR, from January 2013 on, and it is 1 July.
func defined(t *testing.T) (*apitest.Product, caller) {
	p, c := started(t)
	c.do("PUT", definitionEWR, `{"workspace":"EWR",`+delaysType+`}`, 201, nil)
	return p, c
}

func TestADefinitionIsSavedFromTheVersionThatWasSeen(t *testing.T) {
	_, c := started(t)
	text := `{"workspace":"EWR",` + delaysType + `}`
	var v api.ChangeView
	c.do("POST", definitionEWR+"/plan", text, 200, &v)
	if v.ID != "EWR/delays" || v.Action != "create" || v.Version != 1 {
		t.Errorf("%+v", v)
	}
	c.do("PUT", definitionEWR, text, 412, nil, "if-match", `"1"`)
	if r := c.do("PUT", definitionEWR, text, 201, &v); r.Headers["Etag"] != `"1"` {
		t.Errorf("etag %q", r.Headers["Etag"])
	}
	c.do("PUT", definitionEWR, text, 200, &v, "if-match", `"1"`)
	if v.Action != "unchanged" {
		t.Errorf("%+v", v)
	}
	second := strings.Replace(text, `"name":"Delays"`, `"name":"Late"`, 1)
	c.do("PUT", definitionEWR, second, 412, nil, "if-match", `"7"`)
	c.do("PUT", definitionEWR, second, 200, &v, "if-match", `"1"`)
	var d api.DefinitionDetail
	c.do("GET", definitionEWR+"/versions/2?against=1", "", 200, &d)
	if d.Version != 2 || d.Against != 1 || len(d.Diff) != 1 || !strings.Contains(d.Diff[0], "Late") || d.By != "ada" {
		t.Errorf("%+v", d)
	}
	c.do("GET", definitionEWR+"/versions/3", "", 404, nil)
	c.do("GET", definitionEWR+"/versions/2?against=3", "", 422, nil)
	var versions struct{ Items []api.VersionView }
	c.do("GET", definitionEWR+"/versions?limit=1", "", 200, &versions)
	if len(versions.Items) != 1 || versions.Items[0].Version != 2 {
		t.Errorf("%+v", versions)
	}
	var audits struct{ Items []api.AuditView }
	c.do("GET", definitionEWR+"/audits", "", 200, &audits)
	if len(audits.Items) != 2 || audits.Items[0].After != "version 2" {
		t.Errorf("%+v", audits)
	}
	var all struct{ Items []api.DefinitionView }
	c.as("viewer@EWR", "GET", "/snapshots/definitions", "", 200, &all)
	if len(all.Items) != 1 || all.Items[0].ID != "EWR/delays" || all.Items[0].Start != "2013-01" {
		t.Errorf("%+v", all)
	}
	c.as("viewer@JFK", "GET", "/snapshots/definitions", "", 200, &all)
	if len(all.Items) != 0 {
		t.Errorf("another workspace's viewer sees %+v", all)
	}
	c.do("GET", "/snapshots/definitions/workspace/EWR/nothing", "", 404, nil)
}

// TestOwnersAndTheirDefinitionsBelongToAllTheirWorkspaces: caps are the stage's to set; a definition of an owner needs an
// administrator of each of its workspaces, and so does to come to it.
func TestOwnersAndTheirDefinitionsBelongToAllTheirWorkspaces(t *testing.T) {
	_, c := started(t)
	c.as("admin@EWR", "PUT", "/owners/acme", `{"id":"acme","name":"Acme","cap":5,"backfill":2}`, 403, nil)
	c.do("PUT", "/owners/acme", `{"id":"acme","name":"Acme","cap":5,"backfill":2}`, 200, nil)
	jfk := `{"name":"Kennedy","zone":"America/New_York","owner":"acme"}`
	var refused api.Problem
	c.as("admin@JFK", "PUT", "/workspaces/JFK", jfk, 403, &refused)
	if !strings.Contains(refused.Detail, "from owner default to owner acme") {
		t.Errorf("%q", refused.Detail)
	}
	c.do("PUT", "/workspaces/JFK", jfk, 200, nil)
	c.as("admin@JFK", "PUT", "/workspaces/JFK", strings.Replace(jfk, "Kennedy", "JFK", 1), 200, nil) // it is there already
	c.do("PUT", "/workspaces/LGA", `{"name":"LaGuardia","zone":"America/New_York","owner":"acme"}`, 200, nil)

	const path = "/snapshots/definitions/owner/acme/delays"
	text := `{"owner":"acme",` + delaysType + `}`
	c.as("admin@JFK", "PUT", path, text, 403, &refused)
	if !strings.Contains(refused.Detail, "admin@LGA") {
		t.Errorf("%q", refused.Detail)
	}
	c.as("admin@EWR", "PUT", path, text, 404, nil) // not even seen
	c.as("admin@JFK admin@LGA", "PUT", path, text, 201, nil)
	c.as("viewer@JFK", "GET", path, "", 200, nil)
	c.as("viewer@EWR", "GET", path, "", 404, nil)
	c.do("PUT", path, strings.Replace(text, `"owner":"acme"`, `"workspace":"EWR"`, 1), 422, nil)

	// Of an owner without workspaces only who administers all may define what comes to it.
	c.do("PUT", "/owners/empty", `{"id":"empty","name":"Empty","cap":2,"backfill":0}`, 200, nil)
	empty := strings.Replace(path, "acme", "empty", 1)
	c.as("admin@JFK viewer", "PUT", empty, strings.Replace(text, "acme", "empty", 1), 403, nil)
	c.do("PUT", empty, strings.Replace(text, "acme", "empty", 1), 201, nil)

	var owners struct{ Items []api.OwnerView }
	c.as("viewer@JFK", "GET", "/owners", "", 200, &owners)
	if len(owners.Items) != 1 || owners.Items[0].ID != "acme" || !slices.Equal(owners.Items[0].Workspaces, []string{"JFK"}) || owners.Items[0].Cap != 5 {
		t.Errorf("%+v", owners)
	}
	c.as("viewer@JFK", "GET", "/owners/empty/audits", "", 404, nil)
	var audits struct{ Items []api.AuditView }
	c.as("viewer@JFK", "GET", "/owners/acme/audits", "", 200, &audits)
	if len(audits.Items) != 1 || audits.Items[0].After != "Acme, cap 5, of them 2 for backfills" {
		t.Errorf("%+v", audits)
	}
}

// TestALifeOfAMonth: planned, published, rerun, rolled back, its files read, verified and compared.
func TestALifeOfAMonth(t *testing.T) {
	p, c := defined(t)
	const month, run1, run2 = "/snapshots/months/EWR/delays/2013-01", "/snapshots/runs/EWR_delays_2013-01_v1", "/snapshots/runs/EWR_delays_2013-01_v2"
	c.do("POST", "/snapshots/plan", "", 202, nil)
	if p.Months.Asked() != 1 {
		t.Errorf("the planner was asked %d times", p.Months.Asked())
	}
	var m api.MonthView
	c.do("GET", month, "", 200, &m)
	if len(m.Versions) != 0 || len(m.Why) != 2 || !strings.HasPrefix(m.Why[0], "not planned yet: no planner has come") || m.Standing.String() != ".!" {
		t.Errorf("%+v %s", m.Why, m.Standing)
	}
	p.Months.Plan()
	c.do("GET", month+"/manifest", "", 404, nil)
	c.do("GET", month, "", 200, &m)
	if m.Standing.String() != "p!" || !strings.Contains(m.Why[0], "waits for a slot, with 0 before it; owner default has 0 of 5 slots taken, 0 of 2 for backfills") {
		t.Errorf("%q %s", m.Why, m.Standing)
	}
	p.Months.Publish("EWR_delays_2013-01_v1")

	r := c.do("GET", month+"/manifest", "", 200, nil)
	sum := sha256.Sum256([]byte(r.Body))
	if tag := fmt.Sprintf(`"%x"`, sum); r.Headers["Etag"] != tag || r.Headers["Content-Type"] != "application/json" {
		t.Errorf("etag %q, want %s", r.Headers["Etag"], tag)
	}
	if again := c.do("GET", month+"/manifest?version=1", "", 304, nil, "if-none-match", r.Headers["Etag"]); again.Body != "" {
		t.Errorf("%q", again.Body)
	}
	if other := c.do("GET", run1+"/manifest", "", 200, nil, "if-none-match", `"other"`); other.Body != r.Body {
		t.Errorf("%s\n%s", other.Body, r.Body)
	}
	c.do("GET", month+"/manifest?version=2", "", 404, nil)
	link := c.do("GET", run1+"/chunks/1", "", 302, nil).Headers["Location"]
	if !strings.Contains(link, "/snapshots/EWR/delays/2013-01/v0001/g1/") || !strings.Contains(link, "life=1m") || !strings.Contains(link, "name=EWR_delays_2013-01_v1-00001.parquet") {
		t.Errorf("%s", link)
	}
	c.do("GET", run1+"/chunks/2", "", 404, nil)
	c.do("HEAD", run1+"/chunks/1", "", 405, nil) // who only looks signs nothing

	p.Months.Source.Load("EWR 2013-01", 10, 0, 25, 7)
	var s, again api.SnapshotView
	made := c.do("POST", month+"/versions", `{"reason":"mended"}`, 201, &s, "idempotency-key", "k")
	if s.Version != 2 || s.State != "planned" || made.Headers["Location"] != run2 {
		t.Errorf("%+v %v", s, made.Headers)
	}
	if r := c.do("POST", month+"/versions", `{"reason":"mended"}`, 200, &again, "idempotency-key", "k"); again.ID != s.ID || r.Headers["Idempotency-Replayed"] != "true" {
		t.Errorf("%+v", again)
	}
	var refused api.Problem
	c.do("POST", month+"/versions", `{"reason":"other"}`, 422, &refused, "idempotency-key", "k")
	if refused.Errors[0].Field != "Idempotency-Key" {
		t.Errorf("%+v", refused)
	}
	c.do("POST", month+"/versions", `{"reason":"mended"}`, 409, &refused, "idempotency-key", "another")
	if refused.Current == nil || refused.Current.Run != s.ID || refused.Current.State != "planned" || refused.Current.Version != 2 {
		t.Errorf("%+v", refused)
	}
	c.do("POST", run1+"/roll-back", `{"reason":"wrong"}`, 409, &refused) // N16: a version is under way
	p.Months.Publish(s.ID)
	c.do("POST", month+"/versions", `{"reason":"mended"}`, 200, &again, "idempotency-key", "k") // after all

	var diff snapshot.Comparison
	c.do("GET", month+"/compare?from=1&to=2", "", 200, &diff)
	if diff.Added != 1 || diff.Changed != 1 || diff.Unchanged != 2 || !slices.Equal(diff.AddedKeys, []string{"4"}) || diff.To.Totals.Sums["delay"] != "42" {
		t.Errorf("%+v", diff)
	}
	c.do("GET", month+"/compare?from=1&to=3", "", 404, nil)
	var now api.CurrentView
	c.do("POST", run1+"/roll-back", `{"reason":"wrong numbers"}`, 200, &now)
	if now.Version != 1 || now.Previous != 2 || now.Reason != "wrong numbers" {
		t.Errorf("%+v", now)
	}
	c.do("POST", run1+"/roll-back", `{"reason":"wrong numbers"}`, 409, nil)
	m = api.MonthView{}
	c.do("GET", month, "", 200, &m)
	if m.Standing.String() != "P1" || !strings.Contains(m.Why[0], "rolled back by ada: wrong numbers") || len(m.Versions) != 2 || !m.Versions[1].Current || m.Versions[0].Current {
		t.Errorf("%+v", m)
	}
	var audits struct{ Items []api.AuditView }
	c.do("GET", run1+"/audits", "", 200, &audits)
	if len(audits.Items) != 1 || audits.Items[0].What != "roll back" || audits.Items[0].Why != "wrong numbers" {
		t.Errorf("%+v", audits)
	}
	var ledger struct {
		Items []api.SnapshotView
		Next  string
	}
	seen, next := 0, ""
	for range 20 {
		ledger.Next = ""
		c.do("GET", "/snapshots/months/EWR/delays?limit=3&cursor="+url.QueryEscape(next), "", 200, &ledger)
		seen += len(ledger.Items)
		if next = ledger.Next; next == "" {
			break
		}
	}
	if seen != 7 || next != "" { // six months, one of them twice
		t.Errorf("%d versions in the ledger, next %q", seen, next)
	}
}

// TestAChangedByteIsFound: in a file by verifying, in a manifest by whoever reads it.
func TestAChangedByteIsFound(t *testing.T) {
	p, c := defined(t)
	p.Months.Plan()
	r := p.Months.Publish("EWR_delays_2013-01_v1")
	const run = "/snapshots/runs/EWR_delays_2013-01_v1"
	var v api.VerifyView
	c.do("POST", run+"/verify", "", 200, &v)
	if v.Chunks != 2 || v.Checked != 2 || v.Bad != 0 || v.Next != 0 || v.Bytes == 0 {
		t.Errorf("%+v", v)
	}
	c.do("POST", run+"/verify", `{"from":1}`, 200, &v)
	if v.From != 1 || v.Checked != 1 {
		t.Errorf("%+v", v)
	}
	m, err := p.Months.Files.Current(context.Background(), r.Period)
	if err != nil {
		t.Fatal(err)
	}
	change := func(object string) {
		t.Helper()
		body, _, err := p.Months.Files.Objects.Open(context.Background(), object)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.ReadFrom(body)
		body.Close()
		b.Bytes()[b.Len()/2] ^= 1
		if _, err := p.Months.S3.PutObject(context.Background(), &s3.PutObjectInput{Bucket: aws.String("months"), Key: &object, Body: bytes.NewReader(b.Bytes())}); err != nil {
			t.Fatal(err)
		}
	}
	change(m.Chunks[1].Object)
	c.do("POST", run+"/verify", "", 200, &v)
	if v.Bad != 1 || len(v.Wrong) != 1 || v.Wrong[0].Object != m.Chunks[1].Object || !strings.Contains(v.Wrong[0].Why, "recorded are") {
		t.Errorf("%+v", v)
	}
	change(snapshot.ManifestKey(r.Period, 1, r.Manifest()))
	for _, target := range []string{"/snapshots/months/EWR/delays/2013-01/manifest", run + "/manifest", run + "/chunks/0"} {
		var problem api.Problem
		c.do("GET", target, "", 500, &problem)
		if !strings.Contains(problem.Detail, "is not the one that was recorded") {
			t.Errorf("%s: %+v", target, problem)
		}
	}
}

// TestWhyAMonthIsEmpty walks a month through the ways in which nothing is published, and reads the reason.
func TestWhyAMonthIsEmpty(t *testing.T) {
	p, c := defined(t)
	why := func(month, letter string, parts ...string) {
		t.Helper()
		var m api.MonthView
		c.do("GET", "/snapshots/months/EWR/delays/"+month, "", 200, &m)
		text := strings.Join(m.Why, "\n")
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q lacks %q", month, text, part)
			}
		}
		if m.Standing.String() != letter {
			t.Errorf("%s stands as %s, want %s: %q", month, m.Standing, letter, text)
		}
	}
	why("2012-12", ".", "never planned: the definition starts in 2013-01")
	why("2013-07", ".", "not planned yet: the month ends at 2013-08-01T04:00:00Z, and it is 2013-07-01T12:00:00Z")
	p.Months.Plan()
	const feb, id = "2013-02", "EWR_delays_2013-02_v1"
	why(feb, "p!", "waits for a slot, with 1 before it", "it is late: nothing of it is published")
	r := p.Months.Claim(id)
	why(feb, "q!", "version 1 is queued since 2026-12-01T08:00:00Z: its job 1 is about to start")
	p.Months.Source.Lost = 2
	r = p.Months.Walk(r)
	why(feb, "f!", "failed and is tried again at 2026-12-01T08:05:00Z: failure 1 of 4, validation_mismatch", "check rows: expected 5, found 3")
	var s api.SnapshotView
	c.do("POST", "/snapshots/runs/"+id+"/retry-now", `{"reason":"now"}`, 200, &s)
	if s.NextAt == nil || !s.NextAt.Equal(p.Wall()) {
		t.Errorf("%+v", s)
	}
	c.do("POST", "/snapshots/runs/"+id+"/cancel", `{"reason":"not wanted"}`, 200, &s)
	why(feb, "c!", "version 1 was cancelled at 2026-12-01T08:00:00Z by ada: operator: not wanted")
	var refused api.Problem
	c.do("POST", "/snapshots/runs/"+id+"/cancel", `{"reason":"not wanted"}`, 409, &refused)
	if refused.Current == nil || refused.Current.State != "cancelled" {
		t.Errorf("%+v", refused)
	}
	c.do("POST", "/snapshots/runs/"+id+"/retry-now", `{"reason":"now"}`, 409, nil)
	if got := p.Months.Stopped(); len(got) != 1 || got[0] != r.JobName() {
		t.Errorf("stopped %v", got)
	}
	var d api.SnapshotDetail
	c.do("GET", "/snapshots/runs/"+id, "", 200, &d)
	if d.CancelledBy != "ada" || d.ReasonText != "not wanted" || len(d.Checks) == 0 || d.Checks[0].Found != "3" || len(d.Timeline) < 5 || d.Error.Remedy == "" {
		t.Errorf("%+v", d)
	}
}

func TestLoadingMonthsAndThoseThatAreNotWanted(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/workspaces/EWR", `{"name":"Newark","zone":"America/New_York","start":"2013-04"}`, 200, nil)
	c.do("PUT", definitionEWR, `{"workspace":"EWR","load_delay":"1h","watermark":"select max(at) from flights",`+delaysType+`}`, 201, nil)
	p.Months.Source.Complete = time.Date(2013, 6, 1, 6, 0, 0, 0, time.UTC)
	p.Months.Plan()
	for month, want := range map[string]string{
		"2013-03": "version 1 was skipped at 2026-12-01T08:00:00Z: workspace EWR starts in 2013-04",
		"2013-06": "version 1 is loading since 2026-12-01T08:00:00Z: the source is complete up to 2013-06-01T06:00:00Z; want later than 2013-07-01T05:00:00Z; the planner looks again by itself",
	} {
		var m api.MonthView
		c.do("GET", "/snapshots/months/EWR/delays/"+month, "", 200, &m)
		if m.Why[0] != want {
			t.Errorf("%s: %q, want %q", month, m.Why, want)
		}
	}
	var g api.GridView
	c.do("GET", "/snapshots/grid?from=2013-01&to=2013-07", "", 200, &g)
	if got := letters(g.Rows[0]); got != "- - - p! p! l ." {
		t.Errorf("%s", got)
	}
	c.do("PUT", definitionEWR, `{"workspace":"EWR","off":true,`+delaysType+`}`, 200, nil)
	p.Months.Plan()
	g = api.GridView{}
	c.do("GET", "/snapshots/grid?from=2013-04&to=2013-07", "", 200, &g)
	if got := letters(g.Rows[0]); got != "c c - -" || g.Rows[0].Off != "policy" {
		t.Errorf("%s, off %q", got, g.Rows[0].Off)
	}
}

func letters(r api.GridRow) string {
	var list []string
	for _, m := range r.Months {
		list = append(list, m.String())
	}
	return strings.Join(list, " ")
}

// TestAGridShowsWhatTheCallerSees: its workspaces, the twelve months up to the last closed one, and the way each stands.
func TestAGridShowsWhatTheCallerSees(t *testing.T) {
	p, c := defined(t)
	c.do("PUT", "/workspaces/JFK", `{"name":"Kennedy","zone":"America/New_York"}`, 200, nil)
	p.Months.Define(snapshottest.Delays("JFK", "2013-05"))
	p.Months.Plan()
	p.Months.Publish("EWR_delays_2013-01_v1")
	c.do("POST", "/snapshots/months/EWR/delays/2013-01/versions", `{"reason":"again"}`, 201, nil, "idempotency-key", "k")
	p.Months.Claim("EWR_delays_2013-02_v1")
	var g api.GridView
	c.do("GET", "/snapshots/grid", "", 200, &g)
	if len(g.Rows) != 2 || g.From != "2012-07" || g.To != "2013-06" || letters(g.Rows[0]) != ". . . . . . P1p q! p! p! p! p" || letters(g.Rows[1]) != ". . . . . . . . . . p! p" || len(g.Legend) != 11 {
		t.Errorf("%+v", g)
	}
	g = api.GridView{}
	c.as("viewer@JFK", "GET", "/snapshots/grid?from=2013-05&to=2013-05", "", 200, &g)
	if len(g.Rows) != 1 || g.Rows[0].Workspace != "JFK" || len(g.Rows[0].Months) != 1 {
		t.Errorf("%+v", g)
	}
	for query, rows := range map[string]int{"workspace=EWR": 1, "workspace=LGA": 0, "type=delays": 2, "type=none": 0} {
		c.do("GET", "/snapshots/grid?"+query, "", 200, &g)
		if len(g.Rows) != rows {
			t.Errorf("%s: %d rows, want %d", query, len(g.Rows), rows)
		}
	}
}

// TestABackfillSaysFirstWhatItWouldDo: N13. Asked again under its key it finds what it made.
func TestABackfillSaysFirstWhatItWouldDo(t *testing.T) {
	p, c := defined(t)
	p.Months.Plan()
	p.Months.Publish("EWR_delays_2013-01_v1")
	p.Months.Editor.Cancel(context.Background(), "EWR_delays_2013-02_v1", "not now", "ann")
	body := `{"type":"delays","workspaces":["EWR"],"from":"2012-12","to":"2013-03","reason":"history"%s}`
	var v api.BackfillView
	c.do("POST", "/snapshots/backfill", fmt.Sprintf(body, `,"dry_run":true`), 200, &v)
	said := func() (lines []string) {
		for _, m := range v.Months {
			lines = append(lines, strings.TrimSpace(m.Month+" "+m.Run+" "+m.Refused))
		}
		return lines
	}
	got := said()
	if v.Planned != 1 || v.Refused != 3 || !v.DryRun || got[2] != "2013-02 EWR_delays_2013-02_v2" || !strings.Contains(got[3], "EWR_delays_2013-03_v1 is planned") {
		t.Errorf("%q", got)
	}
	c.do("POST", "/snapshots/backfill", fmt.Sprintf(body, ""), 400, nil) // no key
	if _, err := p.Months.Ledger.Run(context.Background(), "EWR_delays_2013-02_v2"); err == nil {
		t.Fatal("a dry run planned something")
	}
	c.do("POST", "/snapshots/backfill", fmt.Sprintf(body, ""), 200, &v, "idempotency-key", "b")
	first := said()
	c.do("POST", "/snapshots/backfill", fmt.Sprintf(body, ""), 200, &v, "idempotency-key", "b")
	if again := said(); v.Planned != 1 || !slices.Equal(first, again) || !slices.Equal(first[2:3], got[2:3]) {
		t.Errorf("%q\n%q\n%q", got, first, again)
	}
	c.do("POST", "/snapshots/backfill", strings.Replace(fmt.Sprintf(body, ""), "history", "other", 1), 200, &v, "idempotency-key", "b")
	if v.Planned != 0 || v.Months[2].Refused != snapshot.KeyReused {
		t.Errorf("%+v", v)
	}
}

// TestAFailedCheckIsAccepted: by its name and the value found, once per key.
func TestAFailedCheckIsAccepted(t *testing.T) {
	p, c := started(t)
	c.do("PUT", definitionEWR, `{"workspace":"EWR","checks":{"drift_rows":{"previous_month":50}},`+delaysType+`}`, 201, nil)
	p.Months.Plan()
	p.Months.Publish("EWR_delays_2013-01_v1")
	p.Months.Source.Load("EWR 2013-02", 1, 2, 3, 4, 5, 6, 7)
	const run = "/snapshots/runs/EWR_delays_2013-02_v1"
	c.do("POST", run+"/accept", `{"checks":["rows"],"reason":"so it is"}`, 409, nil, "idempotency-key", "k") // it has not failed
	if r := p.Months.Walk(p.Months.Claim("EWR_delays_2013-02_v1")); !r.Final() {
		t.Fatalf("%+v", r)
	}
	c.do("POST", run+"/accept", `{"checks":["nothing"],"reason":"so it is"}`, 422, nil, "idempotency-key", "k")
	c.do("POST", run+"/accept", `{"checks":["drift:rows:previous_month"],"reason":"so it is"}`, 400, nil)
	var s api.SnapshotView
	c.do("POST", run+"/accept", `{"checks":["drift:rows:previous_month"],"reason":"so it is"}`, 201, &s, "idempotency-key", "k")
	c.do("POST", run+"/accept", `{"checks":["drift:rows:previous_month"],"reason":"so it is"}`, 200, &s, "idempotency-key", "k")
	p.Months.Publish(s.ID)
	var d api.SnapshotDetail
	c.do("GET", "/snapshots/runs/"+s.ID, "", 200, &d)
	if len(d.Accepted) != 1 || d.Accepted[0].By != "ada" || !d.Current && d.State != "published" {
		t.Errorf("%+v", d)
	}
}

// TestWhatIsTooLargeForAnAnswer: a large manifest is a redirection, files are verified part after part, and what takes too
// long is refused with what helps.
func TestWhatIsTooLargeForAnAnswer(t *testing.T) {
	p, c := defined(t)
	const month, run = "/snapshots/months/EWR/delays/2013-01", "/snapshots/runs/EWR_delays_2013-01_v1"
	p.Months.Plan()
	p.Months.Publish("EWR_delays_2013-01_v1")
	c.do("POST", month+"/versions", `{"reason":"again"}`, 201, nil, "idempotency-key", "k")
	p.Months.Publish("EWR_delays_2013-01_v2")
	with := func(b api.AnswerBounds) caller {
		p.API.Months.Bounds = b
		return caller{t, api.Lambda(p.API.Handler())}
	}
	full := c.do("GET", month+"/manifest", "", 200, nil)
	r := with(api.AnswerBounds{Manifest: 10}).do("GET", month+"/manifest", "", 303, nil)
	if r.Headers["Etag"] != full.Headers["Etag"] || !strings.Contains(r.Headers["Location"], "/manifest-"+strings.Trim(r.Headers["Etag"], `"`)+".json?name=EWR_delays_2013-01_v2.json") {
		t.Errorf("%v", r.Headers)
	}
	var v api.VerifyView
	part := with(api.AnswerBounds{Verified: 1})
	part.do("POST", run+"/verify", "", 200, &v)
	if v.Checked != 1 || v.Next != 1 {
		t.Errorf("%+v", v)
	}
	v = api.VerifyView{}
	part.do("POST", run+"/verify", `{"from":1}`, 200, &v)
	if v.Checked != 1 || v.Next != 0 {
		t.Errorf("%+v", v)
	}
	for target, x := range map[string]struct {
		bounds      api.AnswerBounds
		method      string
		field, help string
	}{
		run + "/verify":                {api.AnswerBounds{Chunk: 1}, "POST", "from", "almanac verify --here"},
		month + "/compare?from=1&to=2": {api.AnswerBounds{Rows: 5}, "GET", api.TooLarge, "almanac compare --here"},
		month + "/compare?to=2&from=1": {api.AnswerBounds{Compared: 10}, "GET", api.TooLarge, "almanac compare --here"},
	} {
		var problem api.Problem
		with(x.bounds).do(x.method, target, "", 422, &problem)
		if problem.Errors[0].Field != x.field || !strings.Contains(problem.Errors[0].Want, x.help) {
			t.Errorf("%s: %+v", target, problem)
		}
	}
}

// TestVersionsOfAnotherKeyAreNotCompared: the second version's definition orders its rows by another column.
func TestVersionsOfAnotherKeyAreNotCompared(t *testing.T) {
	p, c := defined(t)
	p.Months.Source.Load("EWR 2013-01", 1, 2, 3)
	p.Months.Plan()
	p.Months.Publish("EWR_delays_2013-01_v1")
	c.do("PUT", definitionEWR, `{"workspace":"EWR",`+strings.Replace(delaysType, `"key":"id"`, `"key":"delay"`, 1)+`}`, 200, nil)
	c.do("POST", "/snapshots/months/EWR/delays/2013-01/versions", `{"reason":"again"}`, 201, nil, "idempotency-key", "k")
	p.Months.Publish("EWR_delays_2013-01_v2")
	var problem api.Problem
	c.do("GET", "/snapshots/months/EWR/delays/2013-01/compare?from=1&to=2", "", 422, &problem)
	if problem.Errors[0].Field != "to" || !strings.Contains(problem.Errors[0].Want, "only versions of one key can be compared") {
		t.Errorf("%+v", problem)
	}
}
