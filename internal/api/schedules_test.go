package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

func TestApplyCreatesEditsAndLeavesAlone(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	var change ChangeView
	a := c.as("admin", "PUT", "/schedules/a", definition("a", "EWR")).want(201).into(&change)
	if a.Headers["Etag"] != `"1"` && a.Headers["ETag"] != `"1"` || change.Action != "create" || len(change.NextDue) != 5 {
		t.Fatalf("%v %+v", a.Headers, change)
	}
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR")).want(200).into(&change)
	if change.Action != "unchanged" || change.Version != 1 {
		t.Fatalf("%+v", change)
	}
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "Other")).want(200).into(&change)
	if change.Action != "edit" || change.Version != 2 || len(change.Diff) != 1 {
		t.Fatalf("%+v", change)
	}
	if got := w.writes[0]; got != "apply a v1 by ada" {
		t.Fatalf("who did it: %q", got)
	}
}

// V2 three spellings of one address are accepted on input; the counting of submissions is not the API's.
func TestV2ThreeSpellingsAccepted(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	rs := []any{map[string]any{"email": "A@x.com"}, map[string]any{"email": "a@X.com"}, map[string]any{"email": "a@x.com"}}
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "recipients", rs)).want(201)
	var d ScheduleDetail
	c.as("admin", "GET", "/schedules/a", "").want(200).into(&d)
	var got []string
	for _, r := range d.Definition.Recipients {
		got = append(got, r.Email)
	}
	if strings.Join(got, " ") != "A@x.com a@X.com a@x.com" {
		t.Fatalf("kept as typed? %v", got)
	}
}

// V14 an edit is made from the version that was read: with another one in between it is refused with 412, and the
// answer carries the version to read again.
func TestV14IfMatchRefusesAnEditOfAnotherVersion(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR"), "if-match", `"1"`).problem(412, "")
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR")).want(201)
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "B"), "if-match", `"1"`).want(200)
	for _, stale := range []string{`"1"`, `W/"2"`, `"1", "7"`} {
		p := c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "C"), "if-match", stale).problem(412, "")
		if p.Current == nil || p.Current.Version != 2 {
			t.Fatalf("%s: %+v", stale, p.Current)
		}
	}
	for _, good := range []string{`"2"`, `"1", "3"`, `*`} {
		c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "C"+good), "if-match", good).want(200)
	}
	for _, hostile := range []string{"2", `"2`, "x", `"`, `"2",`} {
		c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "D"), "if-match", hostile).problem(422, "If-Match")
	}
}

// V15 the version moves between the API's read and the write: the write's own condition refuses, and that is a 412 for
// who sent If-Match.
func TestV15EditRacingAnotherIsRefusedByItsCondition(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR")).want(201)
	w.race = func() {
		row := w.schedules["a"]
		row.Version = 2
		w.schedules["a"] = row
		w.definitions["a"] = append(w.definitions["a"], w.definitions["a"][0])
		w.race = nil
	}
	p := c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "name", "B"), "if-match", `"1"`).problem(412, "")
	if p.Current == nil || p.Current.Version != 2 || w.schedules["a"].Name == "B" {
		t.Fatalf("%+v", p)
	}
}

func TestConflictCarriesTheRow(t *testing.T) {
	_, c := peopled(t)
	c.as("admin", "DELETE", "/schedules/ewr-delays", `{"reason":"over"}`).want(204)
	p := c.as("admin", "PUT", "/schedules/ewr-delays", definition("ewr-delays", "EWR", "name", "X")).problem(409, "")
	if p.Current == nil || p.Current.State != "deleted" || p.Current.Schedule != "ewr-delays" {
		t.Fatalf("%+v", p)
	}
	p = c.as("operator", "POST", "/schedules/jfk-delays/resume", `{"reason":"why not"}`).problem(409, "")
	if p.Current.State != "active" {
		t.Fatalf("%+v", p)
	}
}

func TestPauseShowsItsReasonAndResumeClearsIt(t *testing.T) {
	w, c := peopled(t)
	var v ScheduleView
	c.as("operator", "POST", "/schedules/ewr-delays/pause", `{"reason":"public holiday"}`).want(200).into(&v)
	if v.State != "paused" || v.Pause == nil || v.Pause.Reason != "public holiday" || v.Pause.By != "ada" || v.NextDue != nil {
		t.Fatalf("%+v", v)
	}
	var d ScheduleDetail
	c.as("viewer", "GET", "/schedules/ewr-delays", "").want(200).into(&d)
	if d.Pause == nil || len(d.NextDueTimes) != 0 {
		t.Fatalf("%+v", d)
	}
	var after ScheduleView
	c.as("operator", "POST", "/schedules/ewr-delays/resume", `{"reason":"over"}`).want(200).into(&after)
	if after.State != "active" || after.Pause != nil || after.NextDue == nil || !after.NextDue.After(w.at) {
		t.Fatalf("%+v", after)
	}
}

func TestShowExplainsTheGapBeforeTheNextDueTime(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	w.at = time.Date(2026, 1, 31, 14, 30, 0, 0, time.UTC)
	c.as("admin", "PUT", "/schedules/a", definition("a", "EWR", "recurrence", map[string]any{"cron": "0 9 31 * *", "zone": "America/New_York"})).want(201)
	row := w.schedules["a"]
	row.LastNominal = time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	w.schedules["a"] = row
	var d ScheduleDetail
	c.as("viewer", "GET", "/schedules/a", "").want(200).into(&d)
	first := d.NextDueTimes[0]
	if len(d.NextDueTimes) != 5 || first.Local != "2026-03-31T09:00:00-04:00" || !strings.Contains(first.Note, "2026-02") {
		t.Fatalf("%+v", d.NextDueTimes)
	}
	// An edit has moved the next due time on: what is shown begins there.
	row.NextDue = time.Date(2026, 5, 31, 13, 0, 0, 0, time.UTC)
	w.schedules["a"] = row
	c.as("viewer", "GET", "/schedules/a", "").want(200).into(&d)
	if !d.NextDueTimes[0].At.Equal(row.NextDue) {
		t.Fatalf("%+v", d.NextDueTimes)
	}
}

func TestShowTakesTheZoneOfTheWorkspace(t *testing.T) {
	_, c := peopled(t)
	var d ScheduleDetail
	c.as("viewer", "GET", "/schedules/ewr-delays", "").want(200).into(&d)
	if got := d.NextDueTimes[0].Local; got != "2013-07-01T09:00:00-04:00" {
		t.Fatalf("%s", got)
	}
	if d.Version != 1 || d.DefinedBy != "ada" || d.Definition.Query == "" || d.Streak != 0 {
		t.Fatalf("%+v", d)
	}
}

func TestViewersSeeNoAddressInADefinition(t *testing.T) {
	_, c := peopled(t)
	rs := []any{map[string]any{"email": "ada@example.com"}, map[string]any{"webhook": "https://hooks.example.com/t/s3cret", "secret": "main"}}
	c.as("admin", "PUT", "/schedules/b", definition("b", "EWR", "recipients", rs)).want(201)
	viewer, operator := c.as("viewer", "GET", "/schedules/b", "").want(200).Body, c.as("operator", "GET", "/schedules/b", "").want(200).Body
	if strings.Contains(viewer, "ada@") || strings.Contains(viewer, "s3cret") || !strings.Contains(viewer, "a…@example.com") || !strings.Contains(viewer, "https://hooks.example.com/…") {
		t.Fatalf("viewer: %s", viewer)
	}
	if !strings.Contains(operator, "ada@example.com") || !strings.Contains(operator, "s3cret") {
		t.Fatalf("operator: %s", operator)
	}
}

func TestSchedulesPageThroughSeveralWorkspaces(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	var want []string
	for _, ws := range []string{"EWR", "JFK"} {
		for i := range 3 {
			id := strings.ToLower(ws) + fmt.Sprint(i)
			w.schedules[id] = schedule.Schedule{ID: id, Workspace: ws, State: schedule.Active, Version: 1}
			want = append(want, id)
		}
	}
	w.schedules["lga0"] = schedule.Schedule{ID: "lga0", Workspace: "LGA", State: schedule.Active}
	for _, who := range []string{"viewer@EWR viewer@JFK", "viewer"} {
		for limit := 1; limit <= 8; limit++ {
			var got []string
			cursor := ""
			for range 20 {
				var p struct {
					Items []ScheduleView
					Next  string
				}
				c.as(who, "GET", fmt.Sprintf("/schedules?limit=%d&cursor=%s", limit, cursor), "").want(200).into(&p)
				for _, i := range p.Items {
					got = append(got, i.ID)
				}
				if cursor = p.Next; cursor == "" {
					break
				}
				if len(p.Items) != limit {
					t.Fatalf("%s: a page of %d, want %d, with more to come", who, len(p.Items), limit)
				}
			}
			expect := strings.Join(want, " ")
			if who == "viewer" {
				expect += " lga0"
			}
			if s := strings.Join(got, " "); s != expect {
				t.Fatalf("%s, limit %d: %s, want %s", who, limit, s, expect)
			}
		}
	}
}

func TestPlanAnswersAllChangesOrAllProblems(t *testing.T) {
	w, c := peopled(t)
	var out struct{ Changes []ChangeView }
	c.as("viewer", "POST", "/schedules/plan", `{"definitions":[`+definition("ewr-delays", "EWR")+`,`+definition("new", "JFK")+`]}`).want(200).into(&out)
	if len(out.Changes) != 2 || out.Changes[0].Action != "unchanged" || out.Changes[1].Action != "create" || len(w.writes) > 0 {
		t.Fatalf("%+v %v", out, w.writes)
	}
	body := `{"definitions":[` + definition("", "EWR") + `,` + definition("new", "JFK") + `,` + definition("new", "JFK", "workspace", "NOWHERE") + `,` + definition("new", "JFK") + `]}`
	a := c.as("viewer", "POST", "/schedules/plan", body)
	a.problem(422, "definitions[0].id")
	a.problem(422, "definitions[2].workspace")
	a.problem(422, "definitions[3].id")
}
