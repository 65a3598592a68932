package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

const openRun = "ewr-delays@2013-07-01T12:30:00Z"

// queued adds an open run.
func queued(w *world) {
	w.runs[openRun] = schedule.Run{Schedule: "ewr-delays", Occurrence: "2013-07-01T12:30:00Z", Workspace: "EWR", Version: 1, State: schedule.Queued, Nominal: w.at}
}

// TestBadInputOfActsByHand: for each field of the acts by hand: absent, null, wrong type, out of range, hostile text, an
// unknown neighbour. Nothing is written.
func TestBadInputOfActsByHand(t *testing.T) {
	stop, revoke := "/runs/"+openRun+"/stop", "/runs/"+openRun+"/links/revoke"
	hash := strings.Repeat("0a", 16)
	long := strings.Repeat("x", 201)
	for _, x := range []struct{ name, method, target, body, field string }{
		{"stop without reason", "POST", stop, `{}`, "reason"},
		{"stop, reason null", "POST", stop, `{"reason":null}`, "reason"},
		{"stop, reason blank", "POST", stop, `{"reason":" "}`, "reason"},
		{"stop, reason wrong type", "POST", stop, `{"reason":["x"]}`, "reason"},
		{"stop, reason too long", "POST", stop, `{"reason":"` + long + `"}`, "reason"},
		{"stop, hostile reason", "POST", stop, `{"reason":"x\r\ny"}`, "reason"},
		{"stop with an unknown field", "POST", stop, `{"reason":"x","force":true}`, "force"},

		{"revoke without recipient", "POST", revoke, `{"reason":"x"}`, "recipient"},
		{"revoke, recipient null", "POST", revoke, `{"recipient":null,"reason":"x"}`, "recipient"},
		{"revoke, recipient wrong type", "POST", revoke, `{"recipient":7,"reason":"x"}`, "recipient"},
		{"revoke, recipients as a list", "POST", revoke, `{"recipient":["` + hash + `"],"reason":"x"}`, "recipient"},
		{"revoke, an address", "POST", revoke, `{"recipient":"ada@example.com","reason":"x"}`, "recipient"},
		{"revoke, hash too short", "POST", revoke, `{"recipient":"` + hash[1:] + `","reason":"x"}`, "recipient"},
		{"revoke, hash too long", "POST", revoke, `{"recipient":"` + hash + `0","reason":"x"}`, "recipient"},
		{"revoke, hash in capitals", "POST", revoke, `{"recipient":"` + strings.ToUpper(hash) + `","reason":"x"}`, "recipient"},
		{"revoke, All", "POST", revoke, `{"recipient":"All","reason":"x"}`, "recipient"},
		{"revoke, hostile recipient", "POST", revoke, `{"recipient":"` + hash[:30] + `#x","reason":"x"}`, "recipient"},
		{"revoke, a line behind the hash", "POST", revoke, `{"recipient":"` + hash + `\n","reason":"x"}`, "recipient"},
		{"revoke without reason", "POST", revoke, `{"recipient":"all"}`, "reason"},
		{"revoke, misspelt", "POST", revoke, `{"recipeint":"all","reason":"x"}`, "recipeint"},

		{"control without a switch", "PUT", "/control", `{"reason":"x"}`, "dispatch"},
		{"control without reason", "PUT", "/control", `{"send":"off"}`, "reason"},
		{"control, reason blank", "PUT", "/control", `{"send":"off","reason":""}`, "reason"},
		{"control, dispatch null", "PUT", "/control", `{"dispatch":null,"reason":"x"}`, "dispatch"},
		{"control, dispatch a truth", "PUT", "/control", `{"dispatch":false,"reason":"x"}`, "dispatch"},
		{"control, dispatch empty", "PUT", "/control", `{"dispatch":"","reason":"x"}`, "dispatch"},
		{"control, dispatch Off", "PUT", "/control", `{"dispatch":"Off","reason":"x"}`, "dispatch"},
		{"control, send hostile", "PUT", "/control", `{"dispatch":"off","send":"off\u0000","reason":"x"}`, "send"},
		{"control, misspelt", "PUT", "/control", `{"dipsatch":"off","reason":"x"}`, "dipsatch"},

		{"version wrong type", "GET", "/schedules/ewr-delays/versions/one", "", "version"},
		{"version zero", "GET", "/schedules/ewr-delays/versions/0", "", "version"},
		{"version huge", "GET", "/schedules/ewr-delays/versions/99999999999999999999", "", "version"},
		{"against wrong type", "GET", "/schedules/ewr-delays/versions/1?against=x", "", "against"},
		{"against zero", "GET", "/schedules/ewr-delays/versions/1?against=0", "", "against"},
		{"against negative", "GET", "/schedules/ewr-delays/versions/1?against=-1", "", "against"},
		{"against none", "GET", "/schedules/ewr-delays/versions/1?against=2", "", "against"},
		{"versions, cursor garbage", "GET", "/schedules/ewr-delays/versions?cursor=x", "", "cursor"},
		{"audits, limit too large", "GET", "/schedules/ewr-delays/audits?limit=101", "", "limit"},
		{"run audits, cursor garbage", "GET", "/runs/" + openRun + "/audits?cursor=x", "", "cursor"},
		{"accesses, limit zero", "GET", "/runs/" + openRun + "/accesses?limit=0", "", "limit"},
		{"dead letters, parameter unknown", "GET", "/dead-letters?queue=x", "", "queue"},
		{"control audits, cursor garbage", "GET", "/control/audits?cursor=x", "", "cursor"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, c := peopled(t)
			queued(w)
			p := c.as("admin", x.method, x.target, x.body).problem(422, x.field)
			for _, e := range p.Errors {
				if e.Want == "" || len(e.Value) > maxValue {
					t.Errorf("field %q: value of %d bytes, want %q", e.Field, len(e.Value), e.Want)
				}
			}
			if len(w.writes) > 0 {
				t.Errorf("refused, and yet it wrote %v", w.writes)
			}
		})
	}
}

func TestNoRunToActOn(t *testing.T) {
	w, c := peopled(t)
	for _, id := range []string{"ewr-delays", "ewr-delays@2014-01-01T00:00:00Z", "a%00@b", "@x", "ewr-delays@..%2F.."} {
		c.as("operator", "POST", "/runs/"+id+"/stop", `{"reason":"x"}`).problem(404, "")
		c.as("operator", "POST", "/runs/"+id+"/links/revoke", `{"recipient":"all","reason":"x"}`).problem(404, "")
		c.as("operator", "GET", "/runs/"+id+"/accesses", "").problem(404, "")
		c.as("viewer", "GET", "/runs/"+id+"/audits", "").problem(404, "")
	}
	c.as("viewer", "GET", "/schedules/nobody/versions", "").problem(404, "")
	c.as("viewer", "GET", "/schedules/nobody/versions/1", "").problem(404, "")
	p := c.as("viewer", "GET", "/schedules/ewr-delays/versions/2", "").problem(404, "")
	if !strings.Contains(p.Detail, "versions 1 to 1") {
		t.Errorf("%+v", p)
	}
	if len(w.writes) > 0 {
		t.Fatal(w.writes)
	}
}

// TestSwitchesAreTheStages: who administers one workspace does not stop the others.
func TestSwitchesAreTheStages(t *testing.T) {
	w, c := peopled(t)
	c.as("admin@EWR admin@JFK", "PUT", "/control", `{"send":"off","reason":"x"}`).problem(403, "")
	c.as("admin@EWR", "GET", "/dead-letters", "").problem(403, "")
	if len(w.writes) > 0 {
		t.Fatal(w.writes)
	}
	var v ControlView
	c.as("viewer@EWR", "GET", "/control", "").want(200).into(&v)
	if v.Dispatch != "on" || v.Send != "on" || v.Changed != nil {
		t.Fatalf("%+v", v)
	}
	c.as("admin", "PUT", "/control", `{"send":"off","reason":"wrong numbers"}`).want(200).into(&v)
	if v.Dispatch != "on" || v.Send != "off" || v.Changed == nil || v.Changed.Why != "wrong numbers" || v.Changed.Before != "dispatch on, send on" {
		t.Fatalf("%+v %+v", v, v.Changed)
	}
}

// TestHashesAreForOperators: by a hash a guess at an address could be proved.
func TestHashesAreForOperators(t *testing.T) {
	w, c := peopled(t)
	queued(w)
	revoked := w.at.Add(-time.Hour)
	w.submissions[openRun] = []schedule.Submission{
		{Run: openRun, Channel: "email", RecipientHash: "aa11", Recipient: "ada@example.com", State: schedule.Submitted, Token: "t", RevokedAt: revoked},
		{Run: openRun, Channel: "email", RecipientHash: "bb22", Recipient: "bob@example.com", State: schedule.NotSent},
	}
	run := w.runs[openRun]
	run.LinksRevoked = w.at
	w.runs[openRun] = run
	var d RunDetail
	c.as("operator@EWR", "GET", "/runs/"+openRun, "").want(200).into(&d)
	if r := d.Recipients; r[0].Hash != "aa11" || !r[0].RevokedAt.Equal(revoked) || r[1].RevokedAt != nil || !d.LinksRevoked.Equal(w.at) {
		t.Fatalf("%+v", d)
	}
	if body := c.as("viewer@EWR", "GET", "/runs/"+openRun, "").want(200).Body; strings.Contains(body, "aa11") || strings.Contains(body, "bb22") {
		t.Fatal(body)
	}
}

func TestWhatPeopleDidIsPaged(t *testing.T) {
	w, c := peopled(t)
	queued(w)
	for i := range 5 {
		at := w.at.Add(-time.Duration(i) * time.Hour)
		for _, subject := range []string{"ewr-delays", openRun, schedule.ControlSubject} {
			w.audits[subject] = append(w.audits[subject], schedule.Audit{ID: "secret-id", Subject: subject, At: at, Who: "ada", What: fmt.Sprintf("act-%d", i)})
		}
		w.accesses[openRun] = append(w.accesses[openRun], schedule.Access{Run: openRun, Channel: "email", RecipientHash: "aa11", At: at, What: fmt.Sprintf("act-%d", i)})
		w.dead = append(w.dead, schedule.DeadLetter{MessageID: fmt.Sprintf("act-%d", i), Body: "{", Queue: "query-runs", Reason: "no JSON", At: at})
	}
	for _, target := range []string{"/schedules/ewr-delays/audits", "/runs/" + openRun + "/audits", "/control/audits", "/runs/" + openRun + "/accesses", "/dead-letters"} {
		var got []string
		for next := ""; ; {
			var page struct {
				Items []struct{ What, Message string }
				Next  string
			}
			a := c.as("admin", "GET", target+"?limit=2&cursor="+next, "").want(200).into(&page)
			if strings.Contains(a.Body, "secret-id") || len(page.Items) > 2 {
				t.Errorf("%s: %s", target, a.Body)
			}
			for _, i := range page.Items {
				got = append(got, i.What+i.Message)
			}
			if next = page.Next; next == "" {
				break
			}
		}
		if fmt.Sprint(got) != "[act-0 act-1 act-2 act-3 act-4]" {
			t.Errorf("%s: %v", target, got)
		}
	}
	// Its cursor is the list's alone.
	var page struct{ Next string }
	c.as("admin", "GET", "/runs/"+openRun+"/audits?limit=2", "").want(200).into(&page)
	c.as("admin", "GET", "/runs/"+openRun+"/accesses?cursor="+page.Next, "").problem(422, "cursor")
	c.as("admin", "GET", "/control/audits?cursor="+page.Next, "").problem(422, "cursor")
}

// TestVersionsOfTheSchedule: the ones that an earlier schedule of this id left above are not shown, and a viewer sees no
// address, in the definition or in the difference.
func TestVersionsOfTheSchedule(t *testing.T) {
	w, c := peopled(t)
	c.as("admin", "PUT", "/schedules/ewr-delays", definition("ewr-delays", "EWR", "name", "Late", "recipients", []any{map[string]any{"email": "bob@example.com"}})).want(200)
	left := w.definitions["ewr-delays"][0]
	left.Number = 3
	w.definitions["ewr-delays"] = append(w.definitions["ewr-delays"], left)
	var list struct{ Items []VersionView }
	c.as("viewer", "GET", "/schedules/ewr-delays/versions", "").want(200).into(&list)
	if len(list.Items) != 2 || list.Items[0].Version != 2 || list.Items[1].Version != 1 || list.Items[0].By != "ada" || list.Items[0].At == nil {
		t.Fatalf("%+v", list)
	}
	c.as("viewer", "GET", "/schedules/ewr-delays/versions/3", "").problem(404, "")
	c.as("viewer", "GET", "/schedules/ewr-delays/versions/1?against=3", "").problem(422, "against")
	for who, right := range map[string]routes.Right{"viewer@EWR": routes.Viewer, "operator@EWR": routes.Operator} {
		var v VersionDetail
		a := c.as(who, "GET", "/schedules/ewr-delays/versions/2?against=1", "").want(200).into(&v)
		if shown := strings.Contains(a.Body, "bob@") || strings.Contains(a.Body, "ada@"); shown != (right >= routes.Operator) {
			t.Errorf("%s: addresses shown %v: %s", who, shown, a.Body)
		}
		if v.Version != 2 || v.Against != 1 || v.Definition.Name != "Late" || len(v.Diff) != 2 || !strings.HasPrefix(v.Diff[0], `name: "Delayed departures" → "Late"`) || !strings.HasPrefix(v.Diff[1], "recipients[0].email: ") {
			t.Errorf("%s: %+v", who, v)
		}
	}
	var v VersionDetail
	c.as("viewer", "GET", "/schedules/ewr-delays/versions/1", "").want(200).into(&v)
	if v.Version != 1 || v.Against != 0 || v.Diff != nil || v.Definition.Name != "Delayed departures" {
		t.Fatalf("%+v", v)
	}
}
