package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

// peopled is a world with one schedule and run in each of two workspaces, and links.
func peopled(t *testing.T) (*world, *client) {
	t.Helper()
	w := newWorld()
	c := start(t, w)
	for id, ws := range map[string]string{"ewr-delays": "EWR", "jfk-delays": "JFK"} {
		c.as("admin", "PUT", "/schedules/"+id, definition(id, ws)).want(201)
		run := schedule.Run{Schedule: id, Occurrence: "2013-07-01T13:00:00Z", Workspace: ws, Version: 1, State: schedule.Succeeded, Nominal: w.at}
		w.runs[run.ID()] = run
	}
	w.groups = map[string][]schedule.GroupVersion{}
	for id, ws := range map[string]string{"ewr-managers": "EWR", "jfk-managers": "JFK"} {
		c.as("admin", "PUT", "/groups/"+id, groupOf(id, ws)).want(201)
	}
	w.links["secret-token"] = &link{name: "Delayed departures", owner: "ops@example.com"}
	w.writes = nil
	return w, c
}

// request for each route of the table; every one succeeds for whom may do it.
var samples = map[string]struct{ target, body string }{
	"GET /openapi.json":                 {"/openapi.json", ""},
	"GET /workspaces":                   {"/workspaces", ""},
	"PUT /workspaces/{workspace}":       {"/workspaces/EWR", `{"name":"Newark","zone":"America/New_York"}`},
	"GET /sources":                      {"/sources", ""},
	"PUT /sources/{source}":             {"/sources/ewr-only", `{"engine":"sqlite","object":"f.sqlite","workspaces":["EWR"]}`},
	"POST /sources/{source}/test":       {"/sources/ewr-only/test", ""},
	"GET /groups":                       {"/groups", ""},
	"GET /groups/{group}":               {"/groups/ewr-managers", ""},
	"PUT /groups/{group}":               {"/groups/ewr-managers", groupOf("ewr-managers", "EWR")},
	"POST /groups/{group}/plan":         {"/groups/ewr-managers/plan", groupOf("ewr-managers", "EWR")},
	"GET /groups/{group}/versions":      {"/groups/ewr-managers/versions", ""},
	"GET /groups/{group}/audits":        {"/groups/ewr-managers/audits", ""},
	"POST /schedules/plan":              {"/schedules/plan", `{"definitions":[` + definition("ewr-delays", "EWR") + `]}`},
	"GET /schedules":                    {"/schedules", ""},
	"PUT /schedules/{schedule}":         {"/schedules/ewr-delays", definition("ewr-delays", "EWR")},
	"GET /schedules/{schedule}":         {"/schedules/ewr-delays", ""},
	"DELETE /schedules/{schedule}":      {"/schedules/ewr-delays", `{"reason":"over"}`},
	"POST /schedules/{schedule}/pause":  {"/schedules/ewr-delays/pause", `{"reason":"holiday"}`},
	"POST /schedules/{schedule}/resume": {"/schedules/ewr-delays/resume", `{"reason":"back"}`},
	"POST /schedules/{schedule}/runs":   {"/schedules/ewr-delays/runs", ""},
	"GET /schedules/{schedule}/runs":    {"/schedules/ewr-delays/runs", ""},
	"GET /schedules/{schedule}/skips":   {"/schedules/ewr-delays/skips", ""},
	"GET /runs/{run}":                   {"/runs/ewr-delays@2013-07-01T13:00:00Z", ""},
	"GET /runs/{run}/recipients":        {"/runs/ewr-delays@2013-07-01T13:00:00Z/recipients?state=unknown", ""},

	"GET /groups/{group}/versions/{version}":       {"/groups/ewr-managers/versions/1", ""},
	"GET /schedules/{schedule}/versions":           {"/schedules/ewr-delays/versions", ""},
	"GET /schedules/{schedule}/versions/{version}": {"/schedules/ewr-delays/versions/1", ""},
	"GET /schedules/{schedule}/audits":             {"/schedules/ewr-delays/audits", ""},
	"POST /runs/{run}/stop":                        {"/runs/ewr-delays@2013-07-01T13:00:00Z/stop", `{"reason":"wrong numbers"}`},
	"POST /runs/{run}/links/revoke":                {"/runs/ewr-delays@2013-07-01T13:00:00Z/links/revoke", `{"recipient":"all","reason":"wrong numbers"}`},
	"GET /runs/{run}/accesses":                     {"/runs/ewr-delays@2013-07-01T13:00:00Z/accesses", ""},
	"GET /runs/{run}/audits":                       {"/runs/ewr-delays@2013-07-01T13:00:00Z/audits", ""},
	"GET /control":                                 {"/control", ""},
	"PUT /control":                                 {"/control", `{"send":"off","reason":"wrong numbers"}`},
	"GET /control/audits":                          {"/control/audits", ""},
	"GET /dead-letters":                            {"/dead-letters", ""},

	"GET /suppressions":                              {"/suppressions", ""},
	"GET /suppressions/{channel}/{recipient}":        {"/suppressions/email/" + suppressedHash, ""},
	"POST /suppressions/{channel}/{recipient}/lift":  {"/suppressions/email/" + suppressedHash + "/lift", `{"reason":"mailbox mended"}`},
	"GET /suppressions/{channel}/{recipient}/audits": {"/suppressions/email/" + suppressedHash + "/audits", ""},

	"GET /files/{token}":        {"/files/secret-token", ""},
	"GET /unsubscribe/{token}":  {"/unsubscribe/secret-token", ""},
	"POST /unsubscribe/{token}": {"/unsubscribe/secret-token", "List-Unsubscribe=One-Click"},
	"GET /clock":                {"/clock", ""},
	"PUT /clock":                {"/clock", `{"at":"2013-07-02T00:00:00Z"}`},
}

// TestEachRouteLetsInWhomTheTableSays walks every route with every role, in all workspaces, in the one that the
// request touches, and in another.
func TestEachRouteLetsInWhomTheTableSays(t *testing.T) {
	roleOf := map[string]routes.Right{"viewer": routes.Viewer, "operator": routes.Operator, "admin": routes.Admin}
	for _, route := range routes.Table {
		key := route.Method + " " + route.Path
		sample, ok := samples[key]
		if !ok {
			t.Fatalf("no sample request for %s", key)
		}
		inWorkspace := strings.Contains(route.Path, "{schedule}") || strings.Contains(route.Path, "{run}") || strings.Contains(route.Path, "{workspace}") || strings.Contains(route.Path, "{source}") || strings.Contains(route.Path, "{group}")
		months, inEWR := ofMonths(route.Path)
		inWorkspace = inWorkspace || inEWR
		for _, who := range []string{"", "strangers", "viewer", "operator", "admin", "viewer@EWR", "operator@EWR", "admin@EWR", "viewer@JFK", "operator@JFK", "admin@JFK"} {
			t.Run(key+" as "+who, func(t *testing.T) {
				prepare := peopled
				if months {
					prepare = snapshotted
				}
				w, c := prepare(t)
				w.stoppable = true
				if route.Path == "/schedules/{schedule}/resume" {
					c.as("admin", "POST", "/schedules/ewr-delays/pause", `{"reason":"holiday"}`).want(200)
				}
				w.writes = nil
				got := c.as(who, route.Method, sample.target, sample.body, "idempotency-key", "k1").StatusCode
				role, workspace, scoped := strings.Cut(who, "@")
				have := roleOf[role]
				allowed := route.Right == routes.Public || have >= min(route.Right, routes.Admin) && have >= routes.Viewer
				if scoped && route.Right >= routes.Stage {
					allowed = false
				}
				hidden := false
				if scoped && workspace != "EWR" && inWorkspace {
					allowed, hidden = false, inEWR || strings.Contains(route.Path, "{schedule}") || strings.Contains(route.Path, "{run}") || strings.Contains(route.Path, "{group}")
				}
				if route.Path == "/snapshots/backfill" && workspace == "JFK" && have >= routes.Operator {
					if got != 422 {
						t.Fatalf("a backfill in a workspace that the caller may not see: %d, want 422", got)
					}
					return
				}
				if route.Path == "/schedules/plan" && who != "" && workspace == "JFK" {
					if got != 422 {
						t.Fatalf("planning in a workspace that the caller may not see: %d, want 422", got)
					}
					return
				}
				switch {
				case allowed && got >= 400:
					t.Fatalf("status %d, want it let in", got)
				case !allowed && who == "" && got != http.StatusUnauthorized:
					t.Fatalf("status %d without a token, want 401", got)
				case !allowed && who != "" && hidden && have >= route.Right && got != http.StatusNotFound:
					t.Fatalf("status %d, want 404: the caller may not know that it is there", got)
				case !allowed && who != "" && got != http.StatusForbidden && got != http.StatusNotFound:
					t.Fatalf("status %d, want 403 or 404", got)
				case !allowed && len(w.writes) > 0:
					t.Fatalf("refused, and yet it wrote %v", w.writes)
				case route.Method == "GET" && len(w.writes) > 0 && route.Path != "/files/{token}" && route.Path != chunkPath:
					t.Fatalf("a GET changed something: %v", w.writes)
				}
			})
		}
	}
}

func TestOnlyPublicRoutesAnswerWithoutToken(t *testing.T) {
	_, c := peopled(t)
	for _, route := range routes.Table {
		sample := samples[route.Method+" "+route.Path]
		got := c.as("", route.Method, sample.target, sample.body).StatusCode
		if public := route.Right == routes.Public; public != (got != http.StatusUnauthorized) {
			t.Errorf("%s %s without a token: %d", route.Method, route.Path, got)
		}
	}
}

func TestRefusalsNameTheGroupToAskFor(t *testing.T) {
	_, c := peopled(t)
	for _, x := range []struct{ who, method, target, body, want string }{
		{"strangers", "GET", "/schedules", "", "viewer@WORKSPACE"},
		{"viewer", "POST", "/schedules/ewr-delays/pause", `{"reason":"x"}`, "the group operator"},
		{"viewer@EWR operator@JFK", "POST", "/schedules/ewr-delays/pause", `{"reason":"x"}`, "operator@EWR"},
		{"admin@EWR", "PUT", "/schedules/new", definition("new", "JFK"), "admin@JFK"},
		{"admin@EWR", "PUT", "/sources/flights", `{"engine":"sqlite","object":"f","workspaces":["EWR"]}`, "the group admin"},
		{"admin@EWR", "PUT", "/clock", `{"at":"2013-07-02T00:00:00Z"}`, "the group admin"},
	} {
		p := c.as(x.who, x.method, x.target, x.body).problem(403, "")
		if !strings.Contains(p.Detail, x.want) {
			t.Errorf("%s: %s %s: %q does not name %q", x.who, x.method, x.target, p.Detail, x.want)
		}
	}
}

func TestListsShowOnlyTheCallersWorkspaces(t *testing.T) {
	_, c := peopled(t)
	names := func(who, target string) (ids []string) {
		var body struct {
			Items []struct{ ID, Name string }
		}
		c.as(who, "GET", target, "").want(200).into(&body)
		for _, i := range body.Items {
			if i.ID == "" {
				i.ID = i.Name
			}
			ids = append(ids, i.ID)
		}
		return ids
	}
	for _, x := range []struct{ who, target, want string }{
		{"viewer", "/schedules", "ewr-delays jfk-delays"},
		{"viewer@EWR", "/schedules", "ewr-delays"},
		{"viewer@EWR viewer@JFK", "/schedules", "ewr-delays jfk-delays"},
		{"viewer@EWR", "/schedules?workspace=JFK", ""},
		{"viewer", "/schedules?workspace=JFK", "jfk-delays"},
		{"viewer", "/schedules?workspace=%20", ""},
		{"admin", "/schedules?workspace=JFK%23", ""},
		{"admin", "/schedules?workspace=..%2FJFK", ""},
		{"admin", "/schedules?workspace=" + strings.Repeat("x", 3000), ""},
		{"viewer@EWR", "/workspaces", "EWR"},
		{"viewer", "/workspaces", "EWR JFK"},
		{"viewer@EWR", "/sources", "ewr-only flights"},
		{"viewer@JFK", "/sources", "flights jfk-only"},
	} {
		if got := strings.Join(names(x.who, x.target), " "); got != x.want {
			t.Errorf("%s sees %q at %s, want %q", x.who, got, x.target, x.want)
		}
	}
}

// TestASourceTellsNobodyOfOtherWorkspaces: nor where the data lies, to those who cannot change it.
func TestASourceTellsNobodyOfOtherWorkspaces(t *testing.T) {
	_, c := peopled(t)
	c.as("admin", "PUT", "/sources/shared", `{"engine":"sqlite","object":"both.sqlite","workspaces":["EWR","JFK"]}`).want(200)
	for _, x := range []struct{ who, workspaces, object string }{
		{"viewer@EWR", "EWR", ""},
		{"operator@JFK viewer@EWR", "EWR JFK", ""},
		{"viewer", "EWR JFK", ""},
		{"admin@EWR", "EWR", ""}, // not theirs to change alone
		{"admin@EWR viewer", "EWR JFK", ""},
		{"admin@EWR admin@JFK", "EWR JFK", "both.sqlite"},
		{"admin", "EWR JFK", "both.sqlite"},
	} {
		var body struct{ Items []SourceView }
		a := c.as(x.who, "GET", "/sources", "").want(200).into(&body)
		i := slices.IndexFunc(body.Items, func(v SourceView) bool { return v.Name == "shared" })
		if i < 0 || strings.Join(body.Items[i].Workspaces, " ") != x.workspaces || body.Items[i].Object != x.object {
			t.Errorf("%s sees %s", x.who, a.Body)
		}
	}
}

// TestSomebodyElsesIdIsNotTaken: an id in a workspace that the caller may not see is not there, and is not theirs.
func TestSomebodyElsesIdIsNotTaken(t *testing.T) {
	w, c := peopled(t)
	c.as("admin@EWR", "PUT", "/schedules/jfk-delays", definition("jfk-delays", "EWR")).problem(404, "")
	c.as("admin@EWR", "POST", "/schedules/plan", `{"definitions":[`+definition("jfk-delays", "EWR")+`]}`).problem(422, "definitions[0].id")
	if len(w.writes) > 0 {
		t.Fatalf("wrote %v", w.writes)
	}
}

func TestGroupsBecomeRightsInOnePlace(t *testing.T) {
	for _, x := range []struct {
		claim           string
		everywhere, ewr routes.Right
		highest         routes.Right
	}{
		{"[admin viewer]", routes.Admin, routes.Admin, routes.Admin},
		{"[viewer operator@EWR]", routes.Viewer, routes.Operator, routes.Operator},
		{"[operator@EWR viewer@EWR]", routes.Public, routes.Operator, routes.Operator},
		{"[admin@JFK]", routes.Public, routes.Public, routes.Admin},
		// One group whose name has what could be taken for a separator is no other group.
		{`["admin@EWR","x"]`, routes.Public, routes.Public, routes.Public},
		{`["admin"]`, routes.Public, routes.Public, routes.Public},
		{"[team,admin]", routes.Public, routes.Public, routes.Public},
		{"[team,admin viewer]", routes.Viewer, routes.Viewer, routes.Viewer},
		{"[admin,]", routes.Public, routes.Public, routes.Public},
		{"[[admin]]", routes.Public, routes.Public, routes.Public},
		{"[team\tadmin]", routes.Public, routes.Public, routes.Public},
		{"[team\u00a0admin]", routes.Public, routes.Public, routes.Public},
		{"[admin@EWR,JFK]", routes.Public, routes.Public, routes.Public},
		{"[admin@EWR@JFK]", routes.Public, routes.Public, routes.Public},
		{"my admin", routes.Public, routes.Public, routes.Public},
		{"[admin", routes.Public, routes.Public, routes.Public},
		{"viewer", routes.Viewer, routes.Viewer, routes.Viewer},
		{"[finance Admin superadmin admin@ @EWR]", routes.Public, routes.Public, routes.Public},
		{"", routes.Public, routes.Public, routes.Public},
	} {
		id, ok := identify(map[string]string{"sub": "s", "cognito:groups": x.claim})
		if !ok || id.Everywhere() != x.everywhere || id.In("EWR") != x.ewr || id.Highest() != x.highest {
			t.Errorf("%s: everywhere %d, EWR %d, highest %d", x.claim, id.Everywhere(), id.In("EWR"), id.Highest())
		}
	}
	if _, ok := identify(map[string]string{"cognito:groups": "[admin]"}); ok {
		t.Error("a token that names nobody was let in")
	}
}

// TestHeadersAreNoClaims: whoever writes headers is not believed.
func TestHeadersAreNoClaims(t *testing.T) {
	_, c := peopled(t)
	c.as("", "GET", "/schedules", "", "authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.", "x-amzn-claims", "admin").problem(401, "")
}

func TestOutsideTheLocalProfileThereIsNoClock(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	c.serve = Lambda(API{Editor: w, Reader: w, Links: w, Claims: AuthorizerClaims{}, Log: discard(), Now: nowOf(w), NewID: func() string { return "x" }}.Handler())
	c.as("admin", "GET", "/clock", "").problem(404, "")
	c.as("admin", "PUT", "/clock", `{"at":"2013-07-02T00:00:00Z"}`).problem(404, "")
}

// TestAFileOfOthersIsNotReachedByANewName: who administers one workspace must not read another's data through a source
// of their own on the same file.
func TestAFileOfOthersIsNotReachedByANewName(t *testing.T) {
	w, c := peopled(t)
	c.as("admin", "PUT", "/sources/jfk-only", `{"engine":"sqlite","object":"jfk.sqlite","workspaces":["JFK"]}`).want(200)
	w.writes = nil
	p := c.as("admin@EWR", "PUT", "/sources/mine", `{"engine":"sqlite","object":"jfk.sqlite","workspaces":["EWR"]}`).problem(403, "")
	if !strings.Contains(p.Detail, "admin@JFK") || len(w.writes) > 0 {
		t.Fatalf("%q, wrote %v", p.Detail, w.writes)
	}
	c.as("admin@EWR admin@JFK", "PUT", "/sources/mine", `{"engine":"sqlite","object":"jfk.sqlite","workspaces":["EWR"]}`).want(200)
}
