package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

func TestAGroupBelongsToEachWorkspaceThatUsesIt(t *testing.T) {
	_, c := peopled(t)
	both := strings.Replace(groupOf("shared", "EWR"), `["EWR"]`, `["EWR","JFK"]`, 1)
	all := groupOf("all", "*")
	for _, x := range []struct {
		who, target, body string
		status            int
		want              string
	}{
		{"admin@EWR", "/groups/new", groupOf("new", "EWR"), 201, ""},
		{"admin@EWR", "/groups/new", groupOf("new", "JFK"), 403, "admin@JFK"}, // it would be taken away, and pushed onto others
		{"admin@EWR", "/groups/shared", both, 403, "admin@JFK"},
		{"admin@EWR admin@JFK", "/groups/shared", both, 201, ""},
		{"admin@EWR", "/groups/shared", groupOf("shared", "EWR"), 403, "admin@JFK"}, // JFK uses it now
		{"admin@EWR admin@JFK", "/groups/all", all, 403, "the group admin"},
		{"operator", "/groups/all", all, 403, "admin"},
		{"admin", "/groups/all", all, 201, ""},
		{"admin@EWR", "/groups/all", groupOf("all", "EWR"), 403, "the group admin"},
		{"admin@EWR", "/groups/jfk-managers", groupOf("jfk-managers", "EWR"), 404, "may not see it"},
	} {
		a := c.as(x.who, "PUT", x.target, x.body)
		if x.status >= 400 {
			if p := a.problem(x.status, ""); !strings.Contains(p.Detail, x.want) {
				t.Errorf("%s: %s: %q does not name %q", x.who, x.target, p.Detail, x.want)
			}
			if plan := c.as(x.who, "POST", x.target+"/plan", x.body); (plan.StatusCode == 404) != (x.status == 404) {
				t.Errorf("%s plans %s: %d, and saving it is %d", x.who, x.target, plan.StatusCode, x.status)
			}
			continue
		}
		a.want(x.status)
	}
	for who, want := range map[string]string{"viewer@EWR": "workspaces: differ (some that may use the group are not yours to see)", "viewer": "workspaces: EWR, JFK → EWR"} {
		var v ChangeView
		c.as(who, "POST", "/groups/shared/plan", groupOf("shared", "EWR")).want(200).into(&v)
		if !slices.Equal(v.Diff, []string{want}) {
			t.Errorf("%s plans %q, want %q", who, v.Diff, want)
		}
	}
	var l struct{ Items []GroupView }
	for who, want := range map[string][]string{"viewer": {"all", "ewr-managers", "jfk-managers", "new", "shared"}, "viewer@EWR": {"all", "ewr-managers", "new", "shared"}, "viewer@LGA": {"all"}} {
		c.as(who, "GET", "/groups", "").want(200).into(&l)
		var got []string
		for _, g := range l.Items {
			got = append(got, g.ID)
			if strings.HasSuffix(who, "@EWR") && slices.Contains(g.Workspaces, "JFK") {
				t.Errorf("%s is told of JFK by %+v", who, g)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", who, got, want)
		}
	}
	c.as("viewer@LGA", "GET", "/groups/ewr-managers", "").problem(404, "")
	c.as("viewer@LGA", "GET", "/groups/a%23b", "").problem(404, "")
	c.as("viewer", "GET", "/groups/nobody/audits", "").problem(404, "")
	c.as("viewer@LGA", "GET", "/groups/ewr-managers/versions", "").problem(404, "")
	c.as("viewer@LGA", "GET", "/groups/ewr-managers/versions/1", "").problem(404, "")
}

func TestMembersAreShownToOperators(t *testing.T) {
	_, c := peopled(t)
	c.as("admin", "PUT", "/groups/ewr-managers", groupOf("ewr-managers", "EWR", "ada@example.com", "eve@example.com")).want(200)
	for who, address := range map[string]string{"viewer": "a…@example.com", "viewer@EWR": "a…@example.com", "operator@EWR": "ada@example.com", "viewer@EWR operator@JFK": "a…@example.com"} {
		var d GroupDetail
		a := c.as(who, "GET", "/groups/ewr-managers", "").want(200).into(&d)
		if a.Headers["Etag"] != `"2"` || d.Recipients[0].Email != address || d.Members != 3 || d.Version != 2 || d.By != "ada" || (d.Hash == "") == strings.HasPrefix(who, "operator") {
			t.Errorf("%s sees %+v, etag %q", who, d, a.Headers["Etag"])
		}
		c.as(who, "GET", "/groups/ewr-managers/versions/2?against=1", "").want(200).into(&d)
		want := []string{"recipients: differs (operators are shown how)"}
		if strings.HasPrefix(who, "operator") {
			want = []string{"recipients: added ada@example.com", "recipients: added eve@example.com"}
		}
		if !slices.Equal(d.Diff, want) || d.Against != 1 {
			t.Errorf("%s is told %q, want %q", who, d.Diff, want)
		}
		var l struct{ Items []VersionView }
		c.as(who, "GET", "/groups/ewr-managers/versions", "").want(200).into(&l)
		if len(l.Items) != 2 || l.Items[0].Version != 2 || (l.Items[0].Hash == "") == strings.HasPrefix(who, "operator") {
			t.Errorf("%s sees versions %+v", who, l.Items)
		}
	}
	c.as("viewer", "GET", "/groups/ewr-managers/versions/3", "").problem(404, "")
	c.as("viewer", "GET", "/groups/ewr-managers/versions/2?against=9", "").problem(422, "against")
}

func TestAGroupIsSavedFromTheVersionThatWasSeen(t *testing.T) {
	w, c := peopled(t)
	next := groupOf("ewr-managers", "EWR", "ada@example.com")
	var v ChangeView
	c.as("admin@EWR", "POST", "/groups/ewr-managers/plan", next).want(200).into(&v)
	if v.Action != "edit" || v.Version != 2 || !slices.Equal(v.Diff, []string{"recipients: added ada@example.com"}) || len(w.writes) != 0 {
		t.Errorf("plan %+v wrote %v", v, w.writes)
	}
	another := func() {
		v := w.groups["ewr-managers"][0]
		w.race, v.Number = nil, len(w.groups["ewr-managers"])+1
		w.groups["ewr-managers"] = append(w.groups["ewr-managers"], v)
	}
	c.as("viewer", "POST", "/groups/ewr-managers/plan", next).want(200).into(&v)
	if !slices.Equal(v.Diff, []string{"recipients: differs (operators are shown how)"}) {
		t.Errorf("a viewer's plan shows %q", v.Diff)
	}
	c.as("admin", "PUT", "/groups/ewr-managers", next, "if-match", `"7"`).problem(412, "")
	c.as("admin", "PUT", "/groups/ewr-managers", next, "if-match", `1`).problem(422, "If-Match")
	c.as("admin", "PUT", "/groups/unborn", groupOf("unborn", "EWR"), "if-match", `"1"`).problem(412, "")
	w.race = another
	c.as("admin", "PUT", "/groups/ewr-managers", next, "if-match", `"1"`).problem(412, "")
	w.race = another
	c.as("admin", "PUT", "/groups/ewr-managers", next).problem(409, "")
	if a := c.as("admin", "PUT", "/groups/ewr-managers", next, "if-match", `"3"`).want(200); a.Headers["Etag"] != `"4"` {
		t.Errorf("etag %q", a.Headers["Etag"])
	}
	c.as("admin", "PUT", "/groups/ewr-managers", groupOf("other", "EWR")).problem(422, "id")
	c.as("admin", "PUT", "/groups/ewr-managers", `{"id":"ewr-managers","nme":"x"}`).problem(422, "nme")
	c.as("admin", "PUT", "/groups/ewr-managers", `[`).problem(422, "group")
	w.fail = errors.New("down")
	for _, target := range []string{"/groups", "/groups/ewr-managers", "/groups/ewr-managers/versions/1"} {
		c.as("admin", "GET", target, "").problem(500, "")
	}
	c.as("admin", "PUT", "/groups/ewr-managers", next).problem(500, "")
}

func TestAPlanShowsHowManyMembersGroupsHaveNow(t *testing.T) {
	v := changeView(schedule.Change{Groups: []schedule.GroupHead{{ID: "managers", Version: 3, Members: 12, Name: "m", Workspaces: []string{"EWR"}}}})
	if !slices.Equal(v.Groups, []GroupCount{{"managers", 3, 12}}) {
		t.Errorf("%+v", v.Groups)
	}
	d := masked(schedule.Definition{Recipients: []schedule.Recipient{{Group: "managers"}, {Email: "ada@example.com"}}}, 0)
	if d.Recipients[0] != (schedule.Recipient{Group: "managers"}) || d.Recipients[1].Email != "a…@example.com" {
		t.Errorf("a viewer is shown %+v", d.Recipients)
	}
}
