//go:build cloud

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// runsOf are the nominal times of a schedule's due runs, in New York.
func runsOf(t *testing.T, id string) string {
	t.Helper()
	list, _, err := cloud.store.Runs(t.Context(), id, "", 20)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for i := len(list) - 1; i >= 0; i-- {
		at = append(at, list[i].Nominal.In(zone).Format("15:04"))
	}
	return strings.Join(at, " ")
}

func skipsOf(t *testing.T, id string) string {
	t.Helper()
	var page struct {
		Items []struct {
			Count  int    `json:"count"`
			Reason string `json:"reason"`
		} `json:"items"`
	}
	if err := json.Unmarshal(must(t, "GET", "/schedules/"+id+"/skips", nil), &page); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range page.Items {
		out = append(out, fmt.Sprint(s.Count))
	}
	return strings.Join(out, " ")
}

// V12 on the deployed stack: an outage of three hours, seen eleven minutes after the last occurrence.
func TestV12WhatWasMissedIsCaughtUpByPolicy(t *testing.T) {
	scene(t)
	for _, row := range []struct {
		policy     schedule.CatchUp
		ran, skips string
	}{{"", "08:30", "2"}, {schedule.CatchUpAll, "06:30 07:30 08:30", ""}, {schedule.CatchUpNone, "", "3"}} {
		t.Run("policy "+string(row.policy), func(t *testing.T) {
			d := save(t, func(d *schedule.Definition) { d.Recurrence.Cron, d.CatchUp = "30 * * * *", row.policy })
			setClock(t, monday.Add(2*time.Hour+41*time.Minute))
			tick(t)
			if got := runsOf(t, d.ID); got != row.ran {
				t.Errorf("ran %q, want %q", got, row.ran)
			}
			if got := skipsOf(t, d.ID); got != row.skips {
				t.Errorf("skip records of %q occurrences, want %q", got, row.skips)
			}
			for _, at := range strings.Fields(row.ran) {
				hour := monday.Add(30 * time.Minute)
				for hour.Add(-4*time.Hour).Format("15:04") != at {
					hour = hour.Add(time.Hour)
				}
				want(t, settled(t, d.ID+"@"+hour.Format(time.RFC3339)), schedule.Succeeded, "")
			}
		})
	}
}

// switches turns the red button by hand, and back at the end of the test.
func switches(t *testing.T, body map[string]string) {
	t.Helper()
	body["reason"] = "test " + t.Name()
	must(t, "PUT", "/control", body)
	t.Cleanup(func() {
		back, err := json.Marshal(map[string]string{"dispatch": "on", "send": "on", "reason": "the test is over"})
		if err != nil {
			t.Error(err)
			return
		}
		req, err := http.NewRequest("PUT", cloud.outputs["ApiUrl"]+"/control", strings.NewReader(string(back)))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+cloud.tokens["admin"])
		req.Header.Set("Content-Type", "application/json")
		res, err := cloud.http.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("the switches could not be turned back: %s", res.Status)
		}
	})
}

// The red button, V13 and stop on the deployed stack: with sending off a run waits, the next occurrence is passed over,
// a person stops the one, and what is left is delivered once sending is on.
func TestTheRedButtonHoldsEverythingAndARunIsStopped(t *testing.T) {
	scene(t)
	d := save(t, func(d *schedule.Definition) { d.Recurrence.Cron, d.Overlap = "30 * * * *", schedule.OverlapSkip })
	switches(t, map[string]string{"send": "off"})
	run := due(t, d)
	drained(t) // the message was taken, and nothing begun
	if r, err := cloud.store.Run(t.Context(), run); err != nil || r.State != schedule.Queued || r.Attempts != 0 {
		t.Fatalf("run %+v, %v; want queued and not begun", r, err)
	}
	setClock(t, monday.Add(90*time.Minute))
	tick(t) // V13: the run before it is still open
	if got := runsOf(t, d.ID); got != "06:30" || skipsOf(t, d.ID) != "1" {
		t.Fatalf("ran %q, skipped %q", got, skipsOf(t, d.ID))
	}
	must(t, "POST", "/runs/"+run+"/stop", map[string]string{"reason": "wrong numbers"})
	must(t, "PUT", "/control", map[string]string{"send": "on", "reason": "go on"})
	r := settled(t, run)
	want(t, r, schedule.Failed, "stopped_by_operator")
	if len(mails(t, run)) != 0 || !strings.Contains(r.ErrorText, "wrong numbers") {
		t.Fatalf("%d mails, %q", len(mails(t, run)), r.ErrorText)
	}
	setClock(t, monday.Add(150*time.Minute))
	tick(t)
	want(t, settled(t, d.ID+"@2013-05-06T12:30:00Z"), schedule.Succeeded, "")
	audits := string(must(t, "GET", "/runs/"+run+"/audits", nil))
	if !strings.Contains(audits, "wrong numbers") || !strings.Contains(string(must(t, "GET", "/control/audits", nil)), "go on") {
		t.Errorf("audits %s", audits)
	}
}

func TestALinkIsTakenBack(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("revoked-%d", time.Now().UnixNano())
	d := save(t, func(d *schedule.Definition) { d.Recipients = []schedule.Recipient{hook(path)} })
	run := due(t, d)
	want(t, settled(t, run), schedule.Succeeded, "")
	var body struct {
		Data struct {
			File struct{ Link string } `json:"file"`
		} `json:"data"`
	}
	if err := readJSON(hooks(t, path)[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	download(t, body.Data.File.Link)
	if status, _ := call(t, "viewer", "POST", "/runs/"+run+"/links/revoke", map[string]string{"recipient": "all", "reason": "wrong people"}); status != 403 {
		t.Fatalf("a viewer may take links back: %d", status)
	}
	if status, b := call(t, "operator", "POST", "/runs/"+run+"/links/revoke", map[string]string{"recipient": "all", "reason": "wrong people"}); status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	if status, _, page := open(t, body.Data.File.Link); status != http.StatusGone || !strings.Contains(string(page), "ops@example.com") {
		t.Fatalf("%d %.200s; want 410 and whom to ask", status, page)
	}
	if accesses := string(must(t, "GET", "/runs/"+run+"/accesses", nil)); strings.Count(accesses, `"download"`) != 1 {
		t.Errorf("accesses %s; want one", accesses)
	}
}

// An interval and the last workday of a month, on the deployed stack.
func TestIntervalsAndWorkdaysFallDue(t *testing.T) {
	scene(t)
	every := save(t, func(d *schedule.Definition) {
		d.Recurrence.Cron, d.Recurrence.Every, d.Recurrence.Start = "", "90m", "2013-05-06T10:15:00Z"
	})
	workday := definition(t, func(d *schedule.Definition) {
		d.ID += "-w"
		last := -1
		d.Recurrence.Cron, d.Recurrence.Workday, d.Recurrence.At = "", &last, "06:30"
		d.Recurrence.Holidays = []string{"2013-05-31"}
	})
	must(t, "PUT", "/schedules/"+workday.ID, workday)
	s, err := cloud.store.Schedule(t.Context(), workday.ID)
	if want := time.Date(2013, 5, 30, 10, 30, 0, 0, time.UTC); err != nil || !s.NextDue.Equal(want) {
		t.Fatalf("next due %s, %v; want %s: the last workday that is no holiday", s.NextDue, err, want)
	}
	must(t, "DELETE", "/schedules/"+workday.ID, map[string]string{"reason": "the test is over"})
	setClock(t, monday.Add(15*time.Minute))
	tick(t)
	want(t, settled(t, every.ID+"@2013-05-06T10:15:00Z"), schedule.Succeeded, "")
	setClock(t, monday.Add(105*time.Minute))
	tick(t)
	want(t, settled(t, every.ID+"@2013-05-06T11:45:00Z"), schedule.Succeeded, "")
}

// V5 and the notices on the deployed stack: a first failure, a pause at the limit, and a recovery are told once each, to a
// mailbox and to a webhook.
func TestV5FailuresPauseAScheduleAndAreTold(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("notices-%d", time.Now().UnixNano())
	limit := 2
	d := save(t, func(d *schedule.Definition) {
		d.Query, d.PauseAfter = "select carier from flights", &limit
		d.Notify = []schedule.Recipient{hook(path)}
	})
	want(t, settled(t, due(t, d)), schedule.Failed, "query_invalid")
	told := func(n int) []string {
		t.Helper()
		var kinds []string
		eventually(t, fmt.Sprintf("%d notices", n), func() (bool, string) {
			kinds = nil
			for _, r := range hooks(t, path) {
				var body struct{ Type string }
				if err := readJSON(r.Body, &body); err != nil {
					return false, err.Error()
				}
				kinds = append(kinds, body.Type)
			}
			return len(kinds) >= n, strings.Join(kinds, " ")
		})
		return kinds
	}
	if got := told(1); strings.Join(got, " ") != "schedule.failed" {
		t.Fatalf("told %v", got)
	}
	setClock(t, monday.Add(24*time.Hour+30*time.Minute))
	tick(t)
	want(t, settled(t, d.ID+"@2013-05-07T10:30:00Z"), schedule.Failed, "query_invalid")
	if got := told(2); strings.Join(got, " ") != "schedule.failed schedule.paused" {
		t.Fatalf("told %v", got)
	}
	if s, err := cloud.store.Schedule(t.Context(), d.ID); err != nil || s.State != schedule.Paused || s.PauseReason != "failures" || s.Streak != 2 {
		t.Fatalf("schedule %+v, %v; want paused for failures", s, err)
	}
	d.Query = "select flight_id from flights limit 3"
	must(t, "PUT", "/schedules/"+d.ID, d)
	must(t, "POST", "/schedules/"+d.ID+"/resume", map[string]string{"reason": "mended"})
	setClock(t, monday.Add(48*time.Hour+30*time.Minute))
	tick(t)
	want(t, settled(t, d.ID+"@2013-05-08T10:30:00Z"), schedule.Succeeded, "")
	if got := told(3); strings.Join(got, " ") != "schedule.failed schedule.paused schedule.recovered" {
		t.Fatalf("told %v", got)
	}
	for range 2 {
		tick(t) // nothing is left over to be told again
	}
	if got := told(3); len(got) != 3 {
		t.Fatalf("told %v", got)
	}
}

// What a person does about recipients that got nothing, on the deployed stack: a run that failed on the way is retried as a
// new run with the recorded file, to those who got nothing and to nobody else.
func TestARetryAsNewSendsTheRecordedFileToThoseWhoGotNothing(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("refuses-%d", time.Now().UnixNano())
	tell(t, path, map[string]any{"status": 410}, map[string]any{"status": 200})
	d := save(t, func(d *schedule.Definition) { d.Recipients = append(d.Recipients, hook(path)) })
	run := due(t, d)
	first := settled(t, run)
	want(t, first, schedule.Succeeded, "")
	mailed(t, run, 1)
	status, b := call(t, "operator", "POST", "/runs/"+run+"/retry", map[string]any{"reason": "the receiver is mended"}, "Idempotency-Key", "retry-"+d.ID)
	if status != 201 {
		t.Fatalf("%d %s", status, b)
	}
	var again struct{ ID string }
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	r := settled(t, again.ID)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 1 || r.File == nil || r.File.Key != first.File.Key || len(mails(t, again.ID)) != 0 || len(hooks(t, path)) != 2 {
		t.Fatalf("submitted %d, file %+v, %d mails, %d requests; want the recorded file at the one who refused", r.Submitted, r.File, len(mails(t, again.ID)), len(hooks(t, path)))
	}
}

// An unknown, on the deployed stack: every try of a webhook is cut after it was read, the run fails as delivery_unknown or
// spends its attempts, and a person resends under a new key, which the receiver takes.
func TestAnUnknownIsResentByAPersonUnderANewKey(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("cut-%d", time.Now().UnixNano())
	cut := map[string]any{"cut": true}
	tell(t, path, cut, cut, cut, cut, cut, map[string]any{"status": 200})
	d := save(t, func(d *schedule.Definition) { d.Recipients = []schedule.Recipient{hook(path)} })
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Failed, "attempts_exhausted")
	s := outcomes(t, run)[cloud.receiver+"/"+path]
	if s.State != schedule.Unknown || len(hooks(t, path)) != 5 {
		t.Fatalf("outcome %s after %d requests, want unknown after 5", s.State, len(hooks(t, path)))
	}
	if status, b := call(t, "operator", "POST", "/runs/"+run+"/recipients/"+s.RecipientHash+"/resend", map[string]string{"reason": "they got nothing"}); status != 202 {
		t.Fatalf("%d %s", status, b)
	}
	eventually(t, "the resend", func() (bool, string) {
		s := outcomes(t, run)[cloud.receiver+"/"+path]
		return s.State == schedule.Submitted, string(s.State)
	})
	got := hooks(t, path)
	if len(got) != 6 || got[5].ID == got[0].ID || got[0].ID != got[4].ID {
		t.Fatalf("requests %+v; want five of one key and one of a new", got)
	}
	if r, err := cloud.store.Run(t.Context(), run); err != nil || r.State != schedule.Failed {
		t.Fatalf("run %+v, %v; a settled run stays as it settled", r, err)
	}
}
