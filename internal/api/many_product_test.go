package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// largest is what a Lambda function is called with and answers at most, in bytes.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const largest = 6 << 20

func addresses(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("somebody.%05d@example.com", i)
	}
	return list
}

// many puts a schedule with so many recipients, of whom change may change some.
func many(c caller, n, status int, into any, change func([]string)) string {
	list := addresses(n)
	if change != nil {
		change(list)
	}
	return c.do("PUT", "/schedules/delays", hourly("D", list...), status, into).Body
}

func (c caller) problem(body string) (p api.Problem) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

func TestTenThousandRecipientsAreSavedShownAndCompared(t *testing.T) {
	p, c := started(t)
	var change api.ChangeView
	many(c, schedule.MaxRecipients, 201, &change, nil)
	if len(change.Diff) != 0 || change.Action != "create" {
		t.Errorf("%+v", change)
	}
	var d api.ScheduleDetail
	a := c.do("GET", "/schedules/delays", "", 200, &d)
	event, err := json.Marshal(a)
	if err != nil || len(d.Definition.Recipients) != schedule.MaxRecipients || len(event) > largest {
		t.Errorf("%d recipients in %d bytes, %v", len(d.Definition.Recipients), len(event), err)
	}
	c.as("viewer", "GET", "/schedules/delays", "", 200, &d)
	if r := d.Definition.Recipients[9_999].Email; r != "s…@example.com" {
		t.Errorf("a viewer is shown %q", r)
	}
	if many(c, schedule.MaxRecipients, 200, &change, nil); change.Action != "unchanged" || change.Version != 1 {
		t.Errorf("%+v", change)
	}
	// One other: one line, and not of ten thousand.
	plan := func(groups string) (v api.PlanView) {
		list := addresses(schedule.MaxRecipients)
		list[5_000] = "new@example.com"
		c.as(groups, "POST", "/schedules/plan", `{"definitions":[`+hourly("D", list...)+`]}`, 200, &v)
		return v
	}
	if diff := plan("admin").Changes[0].Diff; len(diff) != 1 || diff[0] != "recipients: 10000 → 10000 (1 added: new@example.com, 1 removed: somebody.05000@example.com)" {
		t.Errorf("%q", diff)
	}
	if diff := plan("viewer").Changes[0].Diff; len(diff) != 1 || strings.Contains(diff[0], "@") {
		t.Errorf("a viewer is shown %q", diff)
	}
	if many(c, 9_000, 200, &change, nil); len(change.Diff) != 1 || len(change.Diff[0]) > 300 || !strings.HasPrefix(change.Diff[0], "recipients: 10000 → 9000 (0 added, 1000 removed: somebody.09000@example.com, ") {
		t.Errorf("%.400q", change.Diff)
	}
	many(c, 9_000, 200, &change, func(list []string) { list[0], list[1] = list[1], list[0] })
	if len(change.Diff) != 1 || change.Diff[0] != "recipients: 9000 → 9000 (in another order)" {
		t.Errorf("%q", change.Diff)
	}
	// Back to few: the list stands on the row again.
	if many(c, 1, 200, &change, nil); len(change.Diff) != 1 {
		t.Errorf("%q", change.Diff)
	}
	v, err := p.Store.Outline(context.Background(), "delays", change.Version)
	if err != nil || len(v.Recipients) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestWrongListsOfRecipientsAreNamedBriefly(t *testing.T) {
	_, c := started(t)
	for name, x := range map[string]struct {
		n      int
		change func([]string)
		want   []string // of the first problem: field, value, want
	}{
		"one too many":      {schedule.MaxRecipients + 1, nil, []string{"recipients", "10001", "at most 10000"}},
		"one bad address":   {schedule.MaxRecipients, func(l []string) { l[7_777] = "nobody" }, []string{"recipients[7777].email", "nobody", "an address that can be delivered to"}},
		"hostile address":   {schedule.MaxRecipients, func(l []string) { l[9_999] = "a@x.com\r\nBcc: e@x.test" }, []string{"recipients[9999].email", "Bcc", "control character"}},
		"every address bad": {schedule.MaxRecipients, func(l []string) { clear(l) }, []string{"recipients[0]", "", "an email"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := many(c, x.n, 422, nil, x.change)
			p := c.problem(body)
			if e := p.Errors[0]; e.Field != x.want[0] || !strings.Contains(e.Value, x.want[1]) || !strings.Contains(e.Want, x.want[2]) {
				t.Errorf("%+v", e)
			}
			if len(body) > 20_000 || len(p.Errors) > 101 {
				t.Errorf("%d problems in %d bytes", len(p.Errors), len(body))
			}
		})
	}
	// Spellings of one address count as entries, and are one recipient.
	many(c, schedule.MaxRecipients, 201, nil, func(l []string) { l[1], l[9_998] = strings.ToUpper(l[0]), l[0] })
	// More bytes than an answer could hold again.
	long := make([]string, 2_100)
	for i := range long {
		long[i] = fmt.Sprintf(`{"webhook":"https://example.com/%d/%s","secret":"ops"}`, i, strings.Repeat("x", 1_980))
	}
	body := strings.Replace(hourly("D", "a@x.com"), `{"email":"a@x.com"}`, strings.Join(long[:2_000], ","), 1)
	p := c.problem(c.do("PUT", "/schedules/delays", body, 422, nil).Body)
	if e := p.Errors[0]; e.Field != "recipients" || !strings.Contains(e.Value, "bytes as they are stored") || !strings.Contains(e.Want, "at most 4000000 bytes") {
		t.Errorf("%+v", e)
	}
	body = strings.Replace(hourly("D", "a@x.com"), `{"email":"a@x.com"}`, strings.Join(long, ","), 1)
	c.do("PUT", "/schedules/delays", body, 413, nil)
	// The longest list that is taken comes back in an answer that Lambda takes.
	body = strings.Replace(hourly("D", "a@x.com"), `{"email":"a@x.com"}`, strings.Join(long[:1_950], ","), 1)
	c.do("PUT", "/schedules/delays", body, 200, nil)
	if event, err := json.Marshal(c.do("GET", "/schedules/delays", "", 200, nil)); err != nil || len(event) > largest {
		t.Errorf("%d bytes, %v", len(event), err)
	}
}

// A list whose object was changed or is gone: the schedule cannot be shown, the answer says why, and saving it again
// mends it, also where nothing else changes.
func TestADamagedListIsToldAndMended(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, p *apitest.Product, key string){
		"one byte changed": func(t *testing.T, p *apitest.Product, key string) {
			out, err := p.Files.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("files"), Key: &key})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := b.ReadFrom(out.Body); err != nil {
				t.Fatal(err)
			}
			b.Bytes()[100] ^= 1
			if _, err := p.Files.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key, Body: bytes.NewReader(b.Bytes())}); err != nil {
				t.Fatal(err)
			}
		},
		"gone": func(t *testing.T, p *apitest.Product, key string) {
			if _, err := p.Files.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: &key}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := started(t)
			many(c, 600, 201, nil, nil)
			v, err := p.Store.Outline(t.Context(), "delays", 1)
			if err != nil {
				t.Fatal(err)
			}
			damage(t, p, schema.ListKey(v.List.Hash))
			told := c.problem(c.do("GET", "/schedules/delays", "", 500, nil).Body)
			e, _ := failure.Lookup(failure.DefinitionInvalid)
			if !strings.Contains(told.Detail, schema.ListKey(v.List.Hash)) || !strings.Contains(told.Detail, e.Remedy) {
				t.Errorf("%q", told.Detail)
			}
			var change api.ChangeView
			many(c, 600, 200, &change, nil)
			if change.Action != "edit" || change.Version != 2 || len(change.Diff) != 1 || change.Diff[0] != "recipients: the list of version 1 cannot be read → 600" {
				t.Errorf("%+v", change)
			}
			var d api.ScheduleDetail
			if c.do("GET", "/schedules/delays", "", 200, &d); len(d.Definition.Recipients) != 600 {
				t.Errorf("%d recipients", len(d.Definition.Recipients))
			}
			if many(c, 600, 200, &change, nil); change.Action != "unchanged" {
				t.Errorf("%+v", change)
			}
			// What needs no recipients is not hindered.
			damage(t, p, schema.ListKey(v.List.Hash))
			c.do("POST", "/schedules/delays/runs", "", 201, nil, "idempotency-key", "k")
			c.do("POST", "/schedules/delays/pause", `{"reason":"x"}`, 200, nil)
			c.do("POST", "/schedules/delays/resume", `{"reason":"x"}`, 200, nil)
		})
	}
}

// settledRun is a failed run of so many recipients: some unknown, refused and not asked among many that have it.
func settledRun(t *testing.T, p *apitest.Product, c caller, n int) (id string, wanted map[string]int) {
	t.Helper()
	many(c, n, 201, nil, nil)
	id = p.Admit(t, "delays", p.Wall())
	run, lease := p.Begin(t, id)
	def, err := p.Store.Definition(t.Context(), run.Schedule, run.Version)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	kept := p.Wall().AddDate(0, 0, 30)
	check(p.Store.RecordFile(t.Context(), run, lease, schedule.RecordedFile{Key: "files/30/" + id, Name: "d.csv", Rows: 3, Bytes: 120, SHA256: "5ea1", DataAsOf: p.Wall(), Expires: kept, LinksEnd: kept}))
	wanted = map[string]int{}
	for i, to := range schedule.Targets(def.Recipients) {
		sub := schedule.Submission{Run: id, Channel: to.Channel(), RecipientHash: to.Hash, Recipient: to.Address(), State: schedule.Pending, Owner: lease.Token, Token: p.ID(), UpdatedAt: p.Wall()}
		if i%1000 == 999 {
			sub.State, sub.Reason = "", "sender_refused"
			check(p.Store.Abandon(t.Context(), sub, lease.Token, kept.Unix()))
			wanted["not_sent"]++
			continue
		}
		check(p.Store.Intend(t.Context(), sub, kept.Unix()))
		switch {
		case i%1000 == 500:
			check(p.Store.LoseTrack(t.Context(), sub, lease.Token, false, false))
			wanted["unknown"]++
		case i%1000 == 700:
			sub.Reason = "refused"
			check(p.Store.Refused(t.Context(), sub))
			wanted["skipped"]++
		default:
			check(p.Store.Accepted(t.Context(), sub, "ses"))
			wanted["submitted"]++
		}
	}
	run, err = p.Store.Run(t.Context(), id)
	check(err)
	check(p.Store.Settle(t.Context(), run, lease, schedule.Outcome{Event: schedule.Fail, Code: failure.DeliveryUnknown, Message: "lost", Submitted: wanted["submitted"], Skipped: wanted["skipped"]}))
	return id, wanted
}

func TestARunOfTenThousandShowsCountsAndWhoNeedsHelp(t *testing.T) {
	p, c := started(t)
	id, wanted := settledRun(t, p, c, schedule.MaxRecipients)
	var d api.RunDetail
	a := c.do("GET", "/runs/"+id, "", 200, &d)
	if len(a.Body) > 100_000 || len(d.Recipients) != 100 || d.NotShown != schedule.MaxRecipients-100 || fmt.Sprint(d.Outcomes) != fmt.Sprint(wanted) {
		t.Errorf("%d bytes, %d shown, %d not, %v; want %v", len(a.Body), len(d.Recipients), d.NotShown, d.Outcomes, wanted)
	}
	for i, x := range d.Recipients {
		want := []string{"unknown", "not_sent", "skipped", "submitted"}[min(i/10, 3)]
		if x.Outcome != want {
			t.Fatalf("recipient %d is %s, want %s", i, x.Outcome, want)
		}
	}
	var followed api.RunDetail
	if c.do("GET", "/runs/"+id+"?recipients=false", "", 200, &followed); len(followed.Recipients)+len(followed.Outcomes)+followed.NotShown != 0 || len(followed.Timeline) == 0 {
		t.Errorf("%+v", followed)
	}
	if q := c.problem(c.do("GET", "/runs/"+id+"?recipients=some", "", 422, nil).Body); q.Errors[0].Field != "recipients" || q.Errors[0].Value != "some" {
		t.Errorf("%+v", q.Errors)
	}
	list := func(q string) (all []api.RecipientView) {
		t.Helper()
		for next := ""; ; {
			var page struct {
				Items []api.RecipientView `json:"items"`
				Next  string              `json:"next"`
			}
			c.as("operator", "GET", "/runs/"+id+"/recipients?limit=100&cursor="+url.QueryEscape(next)+q, "", 200, &page)
			all = append(all, page.Items...)
			if next = page.Next; next == "" {
				return all
			}
		}
	}
	var first struct{ Items []api.RecipientView }
	c.as("viewer", "GET", "/runs/"+id+"/recipients", "", 200, &first)
	for _, x := range first.Items {
		if x.Hash != "" || x.Recipient != "s…@example.com" {
			t.Fatalf("a viewer is shown %+v", x)
		}
	}
	if len(first.Items) != 50 {
		t.Errorf("a page of %d", len(first.Items))
	}
	everyone := map[string]bool{}
	for _, x := range list("") {
		everyone[x.Recipient] = true
	}
	if len(everyone) != schedule.MaxRecipients {
		t.Errorf("%d recipients are listed", len(everyone))
	}
	for state, n := range wanted {
		got := list("&state=" + state)
		if len(got) != n || got[0].Outcome != state {
			t.Errorf("%d %s, want %d", len(got), state, n)
		}
	}
	if got := list("&state=pending"); len(got) != 0 {
		t.Errorf("%d pending", len(got))
	}
	for _, state := range []string{"gone", "SUBMITTED", "submitted'", strings.Repeat("x", 500)} {
		q := c.problem(c.do("GET", "/runs/"+id+"/recipients?state="+url.QueryEscape(state), "", 422, nil).Body)
		if e := q.Errors[0]; e.Field != "state" || !strings.Contains(e.Want, "not_sent") {
			t.Errorf("%+v", e)
		}
	}
	// A cursor belongs to its run and state.
	var page struct{ Next string }
	c.do("GET", "/runs/"+id+"/recipients?limit=3&state=submitted", "", 200, &page)
	for _, target := range []string{"?state=unknown&cursor=", "?cursor="} {
		q := c.problem(c.do("GET", "/runs/"+id+"/recipients"+target+url.QueryEscape(page.Next), "", 422, nil).Body)
		if q.Errors[0].Field != "cursor" {
			t.Errorf("%+v", q.Errors)
		}
	}
	c.as("viewer@LGA", "GET", "/runs/"+id+"/recipients", "", 404, nil)

	// The preview of a retry fits an answer, and its run sends to all whom it counts.
	var v api.RetryView
	a = c.do("GET", "/runs/"+id+"/retry?to=everyone", "", 200, &v)
	if v.Sends != schedule.MaxRecipients || v.Leaves != 0 || len(v.Send) != 200 || len(a.Body) > 100_000 {
		t.Errorf("%d sent to, %d left, %d shown in %d bytes", v.Sends, v.Leaves, len(v.Send), len(a.Body))
	}
	c.do("GET", "/runs/"+id+"/retry", "", 200, &v)
	if v.Sends != 20 || v.Leaves != schedule.MaxRecipients-20 || len(v.Leave) != 200 || v.Leave[0].Outcome != "unknown" || v.Leave[9].Outcome != "unknown" || v.Leave[10].Outcome != "submitted" {
		t.Errorf("%d sent to, %d left, %d shown, the first %+v", v.Sends, v.Leaves, len(v.Leave), v.Leave[0])
	}
	for to, n := range map[string]int{"everyone": schedule.MaxRecipients, "missing": 20} {
		var r api.RunView
		c.do("POST", "/runs/"+id+"/retry", fmt.Sprintf(`{"to":%q,"reason":"again"}`, to), 201, &r, "idempotency-key", to)
		run, err := p.Store.Run(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		targets, err := p.Store.RunTargets(t.Context(), run)
		if err != nil || len(targets) != n || (run.TargetList.Count == n) != (n > schedule.InlineRecipients) {
			t.Errorf("%s: %d targets, %+v apart, %v", to, len(targets), run.TargetList, err)
		}
	}
}
