package api

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestEachInputFieldIsRefusedByName is the matrix of bad input: for each field of each body, parameter and header that
// the API itself reads: absent, wrong type, out of range, hostile text, contradictory pair. Nothing is written.
func TestEachInputFieldIsRefusedByName(t *testing.T) {
	long := strings.Repeat("x", 201)
	for _, x := range []struct{ name, method, target, body, field string }{
		{"reason absent", "POST", "/schedules/ewr-delays/pause", `{}`, "reason"},
		{"reason null", "POST", "/schedules/ewr-delays/pause", `{"reason":null}`, "reason"},
		{"reason wrong type", "POST", "/schedules/ewr-delays/pause", `{"reason":7}`, "reason"},
		{"reason blank", "POST", "/schedules/ewr-delays/pause", `{"reason":"  "}`, "reason"},
		{"reason too long", "POST", "/schedules/ewr-delays/resume", `{"reason":"` + long + `"}`, "reason"},
		{"reason with a line break", "DELETE", "/schedules/ewr-delays", `{"reason":"a\r\nX: y"}`, "reason"},
		{"reason with NUL", "DELETE", "/schedules/ewr-delays", `{"reason":"a\u0000"}`, "reason"},
		{"reason with half a surrogate", "DELETE", "/schedules/ewr-delays", `{"reason":"\ud800"}`, "reason"},
		{"reason misspelt", "POST", "/schedules/ewr-delays/pause", `{"raeson":"x","reason":"y"}`, "raeson"},

		{"version wrong type", "POST", "/schedules/ewr-delays/runs", `{"version":"1"}`, "version"},
		{"version broken", "POST", "/schedules/ewr-delays/runs", `{"version":1.5}`, "version"},
		{"version negative", "POST", "/schedules/ewr-delays/runs", `{"version":-1}`, "version"},
		{"version beyond int64", "POST", "/schedules/ewr-delays/runs", `{"version":99999999999999999999}`, "version"},
		{"run with an unknown field", "POST", "/schedules/ewr-delays/runs", `{"force":true}`, "force"},

		{"definitions absent", "POST", "/schedules/plan", `{}`, "definitions"},
		{"definitions empty", "POST", "/schedules/plan", `{"definitions":[]}`, "definitions"},
		{"definitions wrong type", "POST", "/schedules/plan", `{"definitions":{}}`, "definitions"},
		{"definitions too many", "POST", "/schedules/plan", `{"definitions":[` + strings.Repeat("{},", 100) + `{}]}`, "definitions"},
		{"definition of the wrong kind", "POST", "/schedules/plan", `{"definitions":[7]}`, "definitions[0]"},
		{"recipient of a definition", "POST", "/schedules/plan", `{"definitions":[` + definition("a", "EWR", "recipients", []any{map[string]any{"email": "a b@x.com"}}) + `]}`, "definitions[0].recipients[0].email"},

		{"id other than the path's", "PUT", "/schedules/a", definition("b", "EWR"), "id"},
		{"workspace id other than the path's", "PUT", "/workspaces/EWR", `{"id":"JFK","name":"x","zone":"UTC"}`, "id"},
		{"workspace zone wrong type", "PUT", "/workspaces/EWR", `{"zone":5}`, "zone"},
		{"workspace zone unknown", "PUT", "/workspaces/EWR", `{"name":"x","zone":"EST5"}`, "zone"},
		{"workspace with a misspelt field", "PUT", "/workspaces/EWR", `{"zoen":"UTC"}`, "zoen"},
		{"source name other than the path's", "PUT", "/sources/a", `{"name":"b","engine":"sqlite"}`, "name"},
		{"source workspaces wrong type", "PUT", "/sources/a", `{"workspaces":"EWR"}`, "workspaces"},
		{"database with a misspelt field", "PUT", "/sources/a", `{"engine":"postgres","workspaces":["EWR"],"postgres":{"hots":"x"}}`, "postgres.hots"},
		{"database with a password", "PUT", "/sources/a", `{"engine":"postgres","workspaces":["EWR"],"postgres":{"password":"x"}}`, "postgres.password"},
		{"database no object", "PUT", "/sources/a", `{"engine":"postgres","workspaces":["EWR"],"postgres":"db.example.com"}`, "postgres"},
		{"database null", "PUT", "/sources/a", `{"engine":"postgres","workspaces":["EWR"],"postgres":null}`, "postgres"},
		{"lake with a misspelt field", "PUT", "/sources/a", `{"engine":"athena","workspaces":["EWR"],"athena":{"databse":"x"}}`, "athena.databse"},
		{"lake with a place of its own", "PUT", "/sources/a", `{"engine":"athena","workspaces":["EWR"],"athena":{"output":"s3://elsewhere/"}}`, "athena.output"},
		{"lake no object", "PUT", "/sources/a", `{"engine":"athena","workspaces":["EWR"],"athena":"lake"}`, "athena"},
		{"scan limit wrong type", "PUT", "/sources/a", `{"engine":"athena","workspaces":["EWR"],"athena":{"scan_limit":"1 TB"}}`, "athena.scan_limit"},
		{"port wrong type", "PUT", "/sources/a", `{"engine":"postgres","workspaces":["EWR"],"postgres":{"port":"5432"}}`, "postgres.port"},
		{"test's query wrong type", "POST", "/sources/flights/test", `{"query":7}`, "query"},
		{"test's query too long", "POST", "/sources/flights/test", `{"query":"` + strings.Repeat("x", 65537) + `"}`, "query"},
		{"test with an unknown field", "POST", "/sources/flights/test", `{"limit":7}`, "limit"},
		{"source with an unknown field", "PUT", "/sources/a", `{"password":"x"}`, "password"},

		{"clock absent", "PUT", "/clock", `{}`, "at"},
		{"clock wrong type", "PUT", "/clock", `{"at":5}`, "at"},
		{"clock no time", "PUT", "/clock", `{"at":"yesterday"}`, "at"},
		{"clock out of range", "PUT", "/clock", `{"at":"9999-01-01T00:00:00Z"}`, "at"},
		{"frozen wrong type", "PUT", "/clock", `{"at":"2013-01-01T00:00:00Z","frozen":"yes"}`, "frozen"},

		{"limit zero", "GET", "/schedules?limit=0", "", "limit"},
		{"limit too large", "GET", "/schedules?limit=101", "", "limit"},
		{"limit wrong type", "GET", "/schedules?limit=ten", "", "limit"},
		{"limit huge", "GET", "/schedules/ewr-delays/runs?limit=99999999999999999999", "", "limit"},
		{"cursor garbage", "GET", "/schedules?cursor=%21%21", "", "cursor"},
		{"parameter unknown", "GET", "/schedules?offset=3", "", "offset"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, c := peopled(t)
			p := c.as("admin", x.method, x.target, x.body, "idempotency-key", "k").problem(422, x.field)
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

func TestUnknownFieldSuggestsTheNearest(t *testing.T) {
	_, c := peopled(t)
	for body, want := range map[string]string{`{"raeson":"x"}`: `did you mean "reason"?`, `{"Reason":"x"}`: `did you mean "reason"?`, `{"colour":"x"}`: "fields reason"} {
		p := c.as("operator", "POST", "/schedules/ewr-delays/pause", body).problem(422, "")
		if !strings.Contains(p.Errors[0].Want, want) {
			t.Errorf("%s: %+v", body, p.Errors)
		}
	}
}

func TestBodiesThatAreNoObject(t *testing.T) {
	w, c := peopled(t)
	for _, body := range []string{"", "null", "[]", "7", `"x"`, "{", `{"reason":"x"}{"reason":"y"}`, `{"reason":"x"} trailing`, "\xff\xfe", strings.Repeat("[", 20000)} {
		a := c.as("operator", "POST", "/schedules/ewr-delays/pause", body)
		if a.StatusCode != 422 && a.StatusCode != 400 || len(w.writes) > 0 {
			t.Errorf("%.30q: %d %s", body, a.StatusCode, a.Body)
		}
		a.problem(a.StatusCode, "")
	}
	c.as("operator", "POST", "/schedules/ewr-delays/pause", `{"reason":"`+strings.Repeat("x", 2<<20)+`"}`).problem(413, "")
}

func TestHostileIdsAreNotFound(t *testing.T) {
	_, c := peopled(t)
	for _, id := range []string{"no-such", "a%20b", "SCHED%23x", "%00", strings.Repeat("x", 3000), "ünï", "a@b"} {
		c.as("viewer", "GET", "/schedules/"+id, "").problem(404, "")
		c.as("operator", "POST", "/schedules/"+id+"/pause", `{"reason":"x"}`).problem(404, "")
	}
}

func TestHostileCursors(t *testing.T) {
	_, c := peopled(t)
	enc := base64.RawURLEncoding.EncodeToString
	for _, cursor := range []string{
		"x", "====", enc([]byte("{}")), enc([]byte(`{"l":"schedules"}`)), enc([]byte(`{"l":"schedules","p":"1","x":2}`)), enc([]byte(`{"l":"schedules","p":"a\u0000b"}`)),
		enc([]byte(`{"l":"runs","p":"1"}`)), enc([]byte(`{"l":"schedules","o":"JFK","p":"1"}`)), enc([]byte(`{"l":"schedules","p":"1"}{}`)), enc([]byte(`[1]`)), enc([]byte("\xff")),
		enc([]byte(`{"l":"schedules","p":"99999"}`)), strings.Repeat("A", 4000), enc([]byte(`{"l":"schedules","p":"1"}`)) + "=", enc([]byte(`{"l":"schedules","p":7}`)),
	} {
		c.as("viewer", "GET", "/schedules?cursor="+cursor, "").problem(422, "cursor")
	}
}

// FuzzCursor: whatever is sent, a cursor is either refused or one that this list could have handed out.
func FuzzCursor(f *testing.F) {
	for _, c := range []cursor{{List: "runs", Of: "a", Place: "7"}, {List: "runs", Of: "a", Workspace: "EWR", Place: `{"pk":"x"}`}, {List: "skips", Of: "a", Place: "7"}} {
		f.Add(c.String())
	}
	f.Add("")
	f.Add("e30")
	f.Add("!!")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text, "runs", "a")
		if err != nil {
			return
		}
		if c.List != "runs" || c.Of != "a" || !printable(c.Place) {
			t.Fatalf("%q became %+v", text, c)
		}
		if again, err := parseCursor(c.String(), "runs", "a"); text != "" && (err != nil || again != c) {
			t.Fatalf("%+v does not survive: %+v %v", c, again, err)
		}
	})
}

// FuzzBody: a body is either refused with a named field or read exactly.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"reason":"x"}`, `{"reason":1}`, `{"x":{}}`, `{"reason":"a","reason":"b"}`, `{}`, `null`, "\xff", `{"reason":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var body reasonBody
		err := decode(b, &body)
		if err != nil && !strings.Contains(fmt.Sprint(err), "want") {
			t.Fatalf("%q: %v says not what would be right", b, err)
		}
		if err == nil && reason(body.Reason) == nil && (body.Reason == "" || !printable(body.Reason)) {
			t.Fatalf("%q became %q", b, body.Reason)
		}
	})
}

// A body of 1 MB can be wrong in a hundred thousand places; the answer stays one that Lambda can send.
func TestAnswersToVeryWrongBodiesStaySmall(t *testing.T) {
	_, c := peopled(t)
	many := `{"id":"b","recipients":[` + strings.Repeat("{},", 28_000) + `{}]}`
	var fields strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&fields, `"a%d":1,`, i)
	}
	for name, x := range map[string]struct{ method, target, body string }{
		"recipients":      {"PUT", "/schedules/b", many},
		"plans":           {"POST", "/schedules/plan", `{"definitions":[` + strings.Repeat(many+",", 9) + many + `]}`},
		"unknown fields":  {"POST", "/schedules/ewr-delays/pause", `{` + fields.String() + `"reason":"x"}`},
		"one endless one": {"PUT", "/schedules/b", `{"` + strings.Repeat("é", 40_000) + `":1}`},
	} {
		p := c.as("admin", x.method, x.target, x.body).problem(422, "")
		size := 0
		for _, e := range p.Errors {
			size += len(e.Field) + len(e.Value) + len(e.Want)
		}
		if n := len(p.Errors); n == 0 || n > 101 || size > 64<<10 {
			t.Errorf("%s: %d errors of %d bytes", name, n, size)
		}
		if last := p.Errors[len(p.Errors)-1]; len(p.Errors) == 101 && !strings.HasSuffix(last.Value, " more") {
			t.Errorf("%s: the last error is %+v, want how many more there are", name, last)
		}
	}
}
