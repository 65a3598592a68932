package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/events"
)

// These tests drive the API over the real editor and store; the ones beside it steer a small stand-in.

type caller struct {
	t     *testing.T
	serve func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
}

func started(t *testing.T) (*apitest.Product, caller) {
	p := apitest.New(t)
	c := caller{t, api.Lambda(p.API.Handler())}
	c.do("PUT", "/workspaces/EWR", `{"name":"Newark","zone":"America/New_York"}`, 200, nil)
	c.do("PUT", "/sources/flights", `{"engine":"sqlite","object":"flights.sqlite","workspaces":["*"]}`, 200, nil)
	return p, c
}

// do calls as an administrator, checks the status and reads the answer.
func (c caller) do(method, target, body string, status int, into any, headers ...string) events.APIGatewayV2HTTPResponse {
	c.t.Helper()
	return c.as("admin", method, target, body, status, into, headers...)
}

// as calls as somebody in the groups.
func (c caller) as(groups, method, target, body string, status int, into any, headers ...string) events.APIGatewayV2HTTPResponse {
	c.t.Helper()
	path, query, _ := strings.Cut(target, "?")
	e := events.APIGatewayV2HTTPRequest{RawPath: path, RawQueryString: query, Body: body, Headers: map[string]string{}}
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = method, "192.0.2.7"
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
		Claims: map[string]string{"sub": "sub-1", "username": "ada", "cognito:groups": "[" + groups + "]"}}}
	for i := 0; i < len(headers); i += 2 {
		e.Headers[headers[i]] = headers[i+1]
	}
	r, err := c.serve(context.Background(), e)
	if err != nil || r.StatusCode != status {
		c.t.Fatalf("%s %s: %v, status %d, want %d: %s", method, target, err, r.StatusCode, status, r.Body)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(r.Body), into); err != nil {
			c.t.Fatalf("%v in %s", err, r.Body)
		}
	}
	return r
}

func hourly(name string, recipients ...string) string {
	if len(recipients) == 0 {
		recipients = []string{"ada@example.com"}
	}
	var rs []string
	for _, r := range recipients {
		rs = append(rs, fmt.Sprintf(`{"email":%q}`, r))
	}
	return fmt.Sprintf(`{"id":"delays","workspace":"EWR","name":%q,"owner":"ops@example.com","source":"flights","query":"select 1","recurrence":{"cron":"0 * * * *","zone":"America/New_York"},"file":{"kind":"csv"},"recipients":[%s]}`,
		name, strings.Join(rs, ","))
}

func daily(name string) string { return strings.Replace(hourly(name), "0 * * * *", "0 18 * * *", 1) }

// TestV2OneSubmissionForThreeSpellings: accepted on input as typed, one submission when delivered.
func TestV2OneSubmissionForThreeSpellings(t *testing.T) {
	_, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("D", "A@x.com", "a@X.com", "a@x.com"), 201, nil)
	var d api.ScheduleDetail
	c.do("GET", "/schedules/delays", "", 200, &d)
	hashes := map[string]bool{}
	for _, r := range d.Definition.Recipients {
		n, err := channel.Normalise(channel.Email, r.Email)
		if err != nil {
			t.Fatal(err)
		}
		hashes[channel.RecipientHash(channel.Email, n)] = true
	}
	if len(d.Definition.Recipients) != 3 || d.Definition.Recipients[0].Email != "A@x.com" || len(hashes) != 1 {
		t.Fatalf("%+v: %d submissions", d.Definition.Recipients, len(hashes))
	}
}

// TestV14SavedBetweenReadAndAdmit: the dispatcher read version 1 (hourly, due 13:00); a person saves version 2 (daily)
// through the API; the admission that was read before is refused, and the next due time is version 2's.
func TestV14SavedBetweenReadAndAdmit(t *testing.T) {
	p, c := started(t)
	ctx := context.Background()
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	row, err := p.Store.Schedule(ctx, "delays")
	if err != nil {
		t.Fatal(err)
	}
	def, err := p.Store.Definition(ctx, "delays", 1)
	if err != nil {
		t.Fatal(err)
	}
	c.do("PUT", "/schedules/delays", daily("D"), 200, nil, "if-match", `"1"`)
	run := schedule.NewRun(def, row.NextDue, p.Wall(), schedule.DefaultTiming())
	err = p.Store.Admit(ctx, schedule.Admission{Run: run, Token: "tick", Schedule: &row, NextDue: row.NextDue.Add(time.Hour), TTL: p.Wall()})
	if !schedule.IsConflict(err) {
		t.Fatalf("admitted by what was read before the edit: %v", err)
	}
	var d api.ScheduleDetail
	c.do("GET", "/schedules/delays", "", 200, &d)
	if d.NextDue.Format(time.RFC3339) != "2013-07-01T22:00:00Z" || d.NextDueTimes[0].Local != "2013-07-01T18:00:00-04:00" {
		t.Fatalf("next due %v, %+v", d.NextDue, d.NextDueTimes[0])
	}
	var problem api.Problem
	c.do("PUT", "/schedules/delays", hourly("E"), 412, &problem, "if-match", `"1"`)
	if problem.Current == nil || problem.Current.Version != 2 {
		t.Fatalf("%+v", problem)
	}
}

// TestV15EditWhileTheOccurrenceIsAdmitted: the occurrence is admitted between the edit's read and its write; the edit is
// repeated by itself, also under If-Match, since the version is still the one seen, and lands strictly after it.
func TestV15EditWhileTheOccurrenceIsAdmitted(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	p.Pass(59*time.Minute + 59*time.Second)
	edit := strings.Replace(hourly("D"), "0 * * * *", "*/30 * * * *", 1)
	admitted := false
	p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !admitted { // the edit's write is on its way
			admitted = true
			p.Admit(t, "delays", time.Date(2013, 7, 1, 14, 0, 0, 0, time.UTC))
		}
		return nil
	}
	c.do("PUT", "/schedules/delays", edit, 200, nil, "if-match", `"1"`)
	var d api.ScheduleDetail
	c.do("GET", "/schedules/delays", "", 200, &d)
	if !admitted {
		t.Fatal("the edit wrote otherwise than this test expects")
	}
	if got := d.NextDue.Format(time.RFC3339); got != "2013-07-01T13:30:00Z" || d.State != "active" || d.Version != 2 {
		t.Fatalf("next due %s, %s, version %d; want strictly after the admitted 13:00", got, d.State, d.Version)
	}
}

func TestLifeOfASchedule(t *testing.T) {
	p, c := started(t)
	var change api.ChangeView
	c.do("PUT", "/schedules/delays", hourly("D"), 201, &change)
	c.do("PUT", "/schedules/delays", hourly("D"), 200, &change)
	if change.Action != "unchanged" {
		t.Fatalf("%+v", change)
	}
	var v api.ScheduleView
	c.do("POST", "/schedules/delays/pause", `{"reason":"holiday"}`, 200, &v)
	if v.State != "paused" || v.Pause.Reason != "holiday" || v.Pause.By != "ada" {
		t.Fatalf("%+v", v)
	}
	c.do("POST", "/schedules/delays/pause", `{"reason":"again"}`, 409, nil)
	p.Pass(3 * time.Hour)
	var resumed api.ScheduleView
	c.do("POST", "/schedules/delays/resume", `{"reason":"back"}`, 200, &resumed)
	if got := resumed.NextDue.Format(time.RFC3339); got != "2013-07-01T16:00:00Z" {
		t.Fatalf("next due %s: what was missed while paused is not sent", got)
	}
	c.do("DELETE", "/schedules/delays", `{"reason":"over"}`, 204, nil)
	var list struct{ Items []api.ScheduleView }
	c.do("GET", "/schedules", "", 200, &list)
	if len(list.Items) != 0 {
		t.Fatalf("%+v", list)
	}
	c.do("PUT", "/schedules/delays", hourly("E"), 409, nil)
	c.do("POST", "/schedules/plan", `{"definitions":[`+hourly("E")+`]}`, 422, nil)
	c.do("POST", "/schedules/delays/runs", "", 404, nil, "idempotency-key", "k")
}

func TestRunNowThroughToTheLink(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("Delays", "ada@example.com", "bob@example.com"), 201, nil)
	var run api.RunView
	c.do("POST", "/schedules/delays/runs", "", 201, &run, "idempotency-key", "k-1")
	var again api.RunView
	c.do("POST", "/schedules/delays/runs", "", 200, &again, "idempotency-key", "k-1")
	if offered := p.Offered(); again.ID != run.ID || len(offered) != 1 || offered[0] != run.ID {
		t.Fatalf("%s, %s, offered %v", run.ID, again.ID, offered)
	}
	c.do("POST", "/schedules/delays/runs", `{"version":1}`, 422, nil, "idempotency-key", "k-1")

	subs := p.Deliver(t, run.ID)
	var d api.RunDetail
	c.do("GET", "/runs/"+run.ID, "", 200, &d)
	if d.State != "succeeded" || len(d.Recipients) != 2 || d.Recipients[0].Outcome != "submitted" || d.File.Rows != 3 || len(d.Timeline) == 0 {
		t.Fatalf("%+v", d)
	}
	link := strings.TrimPrefix(schedule.LinkBase("").File(subs[0]), "")
	first := c.do("GET", link, "", 302, nil).Headers["Location"]
	second := c.do("GET", link, "", 302, nil).Headers["Location"]
	if first == second || !strings.Contains(first, "life=1m") {
		t.Fatalf("F6: %s, %s: not signed at each click for a minute", first, second)
	}
	// Day 6: the link still works; it promises no more than the file's own time.
	p.Pass(6 * 24 * time.Hour)
	c.do("GET", link, "", 302, nil)
	p.Pass(25 * 24 * time.Hour)
	if page := c.do("GET", link, "", 410, nil).Body; !strings.Contains(page, "ops@example.com") {
		t.Fatalf("%s", page)
	}
	c.do("GET", link+"x", "", 404, nil)

	no := schedule.LinkBase("").Unsubscribe(subs[1])
	c.do("GET", no, "", 200, nil)
	hash := subs[1].RecipientHash
	if done, err := p.Store.Unsubscribed(context.Background(), channel.Email, hash, "delays"); err != nil || done {
		t.Fatalf("a GET unsubscribed: %v %v", done, err)
	}
	c.do("POST", no, "List-Unsubscribe=One-Click", 200, nil)
	if done, err := p.Store.Unsubscribed(context.Background(), channel.Email, hash, "delays"); err != nil || !done {
		t.Fatalf("one click did not unsubscribe: %v %v", done, err)
	}
}

func TestFailedRunIsExplained(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	id := p.Admit(t, "delays", time.Date(2013, 7, 1, 14, 0, 0, 0, time.UTC))
	p.Fail(t, id, failure.QueryInvalid, "no such table: flihgts")
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	e, _ := failure.Lookup(failure.QueryInvalid)
	if d.State != "failed" || d.Error.Message != "no such table: flihgts" || d.Error.Remedy != e.Remedy || d.Error.Meaning != e.Meaning {
		t.Fatalf("%+v", d.Error)
	}
	var s api.ScheduleDetail
	c.do("GET", "/schedules/delays", "", 200, &s)
	if s.Streak != 1 || s.LastRun == nil || s.LastRun.Run != id || s.LastRun.Code != "query_invalid" || s.NextDueTimes[0].Local != "2013-07-01T10:00:00-04:00" {
		t.Fatalf("%+v %+v", s.ScheduleView, s.NextDueTimes)
	}
}

func TestListsGoOnWhereTheyEnded(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	want := map[string]bool{}
	for i := range 5 {
		want[p.Admit(t, "delays", time.Date(2013, 7, 1, 14+i, 0, 0, 0, time.UTC))] = true
	}
	got, next := map[string]bool{}, ""
	for range 10 {
		var page struct {
			Items []api.RunView
			Next  string
		}
		c.do("GET", "/schedules/delays/runs?limit=2&cursor="+url.QueryEscape(next), "", 200, &page)
		for _, r := range page.Items {
			got[r.ID] = true
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if len(got) != 5 || next != "" {
		t.Fatalf("%v", got)
	}
	for _, forged := range []string{`{"pk":"SCHED#other","sk":"RUN#x"}`, `{"pk":"x","sk":"y","z":"w"}`, `{"pk":1}`, `x`} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"l":"runs","o":"delays","p":%q}`, forged)))
		var problem api.Problem
		c.do("GET", "/schedules/delays/runs?cursor="+cursor, "", 422, &problem)
		if problem.Errors[0].Field != "cursor" {
			t.Errorf("%s: %+v", forged, problem)
		}
	}
	for id := range want {
		if !got[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// TestAPlanShowsViewersNoAddress: a plan compares with what stands, whose addresses only operators are shown.
func TestAPlanShowsViewersNoAddress(t *testing.T) {
	_, c := started(t)
	text := func(recipients string) string {
		return `{"id":"a","workspace":"EWR","name":"A","owner":"ops","source":"flights","query":"SELECT 1","recurrence":{"cron":"0 9 * * *"},"recipients":` + recipients + `}`
	}
	c.do("PUT", "/schedules/a", text(`[{"email":"ada@secret.example"},{"webhook":"https://hooks.secret.example/T0/TOKEN","secret":"ops"}]`), 201, nil)
	plan := `{"definitions":[` + text(`[{"email":"eve@example.com"}]`) + `]}`
	for groups, shown := range map[string]bool{"viewer": false, "viewer@EWR": false, "operator@EWR": true} {
		var out api.PlanView
		r := c.as(groups, "POST", "/schedules/plan", plan, 200, &out)
		if got := strings.Contains(r.Body, "ada@secret.example") && strings.Contains(r.Body, "TOKEN"); got != shown {
			t.Errorf("%s: addresses shown %v: %s", groups, got, r.Body)
		}
		if d := out.Changes[0].Diff; len(d) != 3 || !strings.HasPrefix(d[0], "recipients[0].email: ") {
			t.Errorf("%s: %q, want a line for each field that differs", groups, d)
		}
	}
}

// TestARepeatedRunNowFindsItsRunAfterAnEdit: the answer was lost, somebody edits, the caller asks again.
func TestARepeatedRunNowFindsItsRunAfterAnEdit(t *testing.T) {
	_, c := started(t)
	text := func(name string) string {
		return `{"id":"a","workspace":"EWR","name":"` + name + `","owner":"ops","source":"flights","query":"SELECT 1","recurrence":{"cron":"0 9 * * *"},"recipients":[{"email":"ada@example.com"}]}`
	}
	c.do("PUT", "/schedules/a", text("A"), 201, nil)
	var run, again api.RunView
	c.do("POST", "/schedules/a/runs", `{"version":1}`, 201, &run, "idempotency-key", "k")
	c.do("PUT", "/schedules/a", text("B"), 200, nil)
	c.do("POST", "/schedules/a/runs", `{"version":1}`, 200, &again, "idempotency-key", "k")
	if again.ID != run.ID || again.Version != 1 {
		t.Errorf("%+v, want %+v again", again, run)
	}
	c.do("POST", "/schedules/a/runs", `{"version":1}`, 412, nil, "idempotency-key", "another")
	c.do("POST", "/schedules/a/runs", `{"version":2}`, 422, nil, "idempotency-key", "k")
}
