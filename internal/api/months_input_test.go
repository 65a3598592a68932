package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestEachInputOfMonthsIsRefusedByName is the matrix of bad input of the routes of monthly snapshots. Nothing is written.
func TestEachInputOfMonthsIsRefusedByName(t *testing.T) {
	long := strings.Repeat("x", 201)
	const (
		definition = "/snapshots/definitions/workspace/EWR/delays"
		month      = "/snapshots/months/EWR/delays/"
		run        = "/snapshots/runs/" + ewrMonth
		back       = "/snapshots/backfill"
	)
	backfill := func(edits ...string) string {
		return strings.NewReplacer(edits...).Replace(`{"type":"delays","workspaces":["EWR"],"from":"2013-01","to":"2013-03","reason":"history"}`)
	}
	for _, x := range []struct{ name, method, target, body, field string }{
		{"definition with a misspelt field", "PUT", definition, delaysOf("EWR", `"name"`, `"nmae"`), "nmae"},
		{"definition of another workspace", "PUT", definition, delaysOf("JFK"), "workspace"},
		{"definition of an owner", "PUT", definition, definitionOf(`"owner":"default"`), "workspace"},
		{"definition of both", "PUT", definition, definitionOf(`"workspace":"EWR","owner":"default"`), "owner"},
		{"definition of another type", "PUT", definition, delaysOf("EWR", `"type":"delays"`, `"type":"other"`), "type"},
		{"definition with a hostile type", "PUT", definition, delaysOf("EWR", `"type":"delays"`, `"type":"../../x#V#1"`), "type"},
		{"definition without a query", "PUT", definition, delaysOf("EWR", `"query"`, `"key2"`), "key2"},
		{"definition from no month", "PUT", definition, delaysOf("EWR", `2013-01`, `2013-13`), "start"},
		{"definition of a source that is not there", "PUT", definition, delaysOf("EWR", `"flights"`, `"nothing"`), "source"},
		{"plan of another workspace", "POST", definition + "/plan", delaysOf("JFK"), "workspace"},
		{"plan with a misspelt field", "POST", definition + "/plan", delaysOf("EWR", `"name"`, `"nmae"`), "nmae"},
		{"version zero", "GET", definition + "/versions/0", "", "version"},
		{"version no number", "GET", definition + "/versions/one", "", "version"},
		{"against zero", "GET", definition + "/versions/1?against=0", "", "against"},
		{"scope unknown", "GET", "/snapshots/definitions/planet/EWR/delays", "", "scope"},

		{"owner id other than the path's", "PUT", "/owners/acme", `{"id":"other","name":"x","cap":5,"backfill":1}`, "id"},
		{"owner cap zero", "PUT", "/owners/acme", `{"id":"acme","name":"x","cap":0,"backfill":0}`, "cap"},
		{"owner cap too large", "PUT", "/owners/acme", `{"id":"acme","name":"x","cap":201,"backfill":0}`, "cap"},
		{"owner backfill not below cap", "PUT", "/owners/acme", `{"id":"acme","name":"x","cap":5,"backfill":5}`, "backfill"},
		{"owner cap wrong type", "PUT", "/owners/acme", `{"id":"acme","name":"x","cap":"5","backfill":1}`, "cap"},
		{"owner with an unknown field", "PUT", "/owners/acme", `{"id":"acme","name":"x","cap":5,"backfill":1,"caps":2}`, "caps"},

		{"grid from no month", "GET", "/snapshots/grid?from=january", "", "from"},
		{"grid from a day", "GET", "/snapshots/grid?from=2013-01-01", "", "from"},
		{"grid to month 13", "GET", "/snapshots/grid?to=2013-13", "", "to"},
		{"grid before 1970", "GET", "/snapshots/grid?to=0001-01", "", "to"},
		{"grid backwards", "GET", "/snapshots/grid?from=2013-05&to=2013-04", "", "to"},
		{"grid of a century", "GET", "/snapshots/grid?from=1970-01&to=2070-01", "", "to"},
		{"grid with an unknown parameter", "GET", "/snapshots/grid?month=2013-01", "", "month"},
		{"month 00", "GET", month + "2013-00", "", "month"},
		{"month without a dash", "GET", month + "201301", "", "month"},
		{"month of one digit", "GET", month + "2013-1", "", "month"},
		{"month of the future's future", "GET", month + "20130-1", "", "month"},
		{"month hostile", "GET", month + "2013-01%23V%230001", "", "month"},
		{"manifest of version zero", "GET", month + "2013-01/manifest?version=0", "", "version"},
		{"manifest of no version", "GET", month + "2013-01/manifest?version=first", "", "version"},
		{"compare without from", "GET", month + "2013-01/compare?to=2", "", "from"},
		{"compare without to", "GET", month + "2013-01/compare?from=1", "", "to"},
		{"compare version zero", "GET", month + "2013-01/compare?from=0&to=2", "", "from"},
		{"compare with many examples", "GET", month + "2013-01/compare?from=1&to=2&examples=21", "", "examples"},
		{"ledger limit", "GET", "/snapshots/months/EWR/delays?limit=0", "", "limit"},
		{"ledger cursor of another list", "GET", "/snapshots/months/EWR/delays?cursor=eyJsIjoicnVucyJ9", "", "cursor"},

		{"rerun without a reason", "POST", month + "2013-01/versions", `{}`, "reason"},
		{"rerun with a blank reason", "POST", month + "2013-01/versions", `{"reason":" "}`, "reason"},
		{"rerun with a long reason", "POST", month + "2013-01/versions", `{"reason":"` + long + `"}`, "reason"},
		{"rerun of a month that is not over", "POST", month + "2013-07/versions", `{"reason":"x"}`, "month"},
		{"rerun of a type that is not there", "POST", "/snapshots/months/EWR/other/2013-01/versions", `{"reason":"x"}`, "type"},
		{"cancel without a reason", "POST", run + "2_v1/cancel", `{}`, "reason"},
		{"cancel with a line break", "POST", run + "2_v1/cancel", `{"reason":"a\nb"}`, "reason"},
		{"retry now with NUL", "POST", run + "3_v1/retry-now", `{"reason":"a\u0000"}`, "reason"},
		{"retry now with an unknown field", "POST", run + "3_v1/retry-now", `{"reason":"x","at":"now"}`, "at"},
		{"roll back with a list", "POST", run + "1_v1/roll-back", `[]`, "body"},
		{"accept without checks", "POST", run + "5_v1/accept", `{"reason":"x"}`, "checks"},
		{"accept checks of the wrong type", "POST", run + "5_v1/accept", `{"checks":"rows","reason":"x"}`, "checks"},
		{"accept a check that passed", "POST", run + "5_v1/accept", `{"checks":["rows"],"reason":"x"}`, "checks[0]"},
		{"verify from below", "POST", run + "1_v1/verify", `{"from":-1}`, "from"},
		{"verify beyond", "POST", run + "1_v1/verify", `{"from":2}`, "from"},
		{"verify from text", "POST", run + "1_v1/verify", `{"from":"0"}`, "from"},
		{"chunk no number", "GET", run + "1_v1/chunks/first", "", "chunk"},
		{"chunk below zero", "GET", run + "1_v1/chunks/-1", "", "chunk"},
		{"plan with a field", "POST", "/snapshots/plan", `{"now":true}`, "now"},

		{"backfill without a type", "POST", back, backfill(`"delays"`, `""`), "type"},
		{"backfill of a hostile type", "POST", back, backfill(`"delays"`, `"a#TYPE#b"`), "type"},
		{"backfill of a type that is not there", "POST", back, backfill(`"delays"`, `"other"`), ""},
		{"backfill without workspaces", "POST", back, backfill(`["EWR"]`, `[]`), "workspaces"},
		{"backfill of a workspace twice", "POST", back, backfill(`["EWR"]`, `["EWR","EWR"]`), "series[1]"},
		{"backfill of a hostile workspace", "POST", back, backfill(`["EWR"]`, `["EWR","x y"]`), "workspaces[1]"},
		{"backfill from nowhere", "POST", back, backfill(`"from":"2013-01",`, ``), "from"},
		{"backfill from no month", "POST", back, backfill(`2013-01`, `2013`), "from"},
		{"backfill backwards", "POST", back, backfill(`2013-03`, `2012-12`), "to"},
		{"backfill of too much", "POST", back, backfill(`2013-03`, `2043-03`), "to"},
		{"backfill dry_run of the wrong type", "POST", back, backfill(`"reason"`, `"dry_run":"yes","reason"`), "dry_run"},
		{"backfill without a reason", "POST", back, backfill(`,"reason":"history"`, ``), "reason"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, c := snapshotted(t)
			if x.field == "" { // each of its months is refused
				var v BackfillView
				if c.as("admin", x.method, x.target, x.body, "idempotency-key", "k").want(200).into(&v); v.Refused != 3 || !strings.Contains(v.Months[0].Refused, "a type that is defined for workspace EWR") {
					t.Errorf("%+v", v)
				}
				return
			}
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

func TestHostilePathsOfMonthsAreNotFound(t *testing.T) {
	w, c := snapshotted(t)
	for _, id := range []string{"x", "EWR_delays_2013-01", "EWR_delays_2013-01_v0", "EWR_delays_2013-01_v00001", "EWR_delays_2013-13_v1", "a%23b_delays_2013-01_v1", "_delays_2013-01_v1", "%00", strings.Repeat("x", 3000), "EWR_delays_2013-01_v99"} {
		for _, tail := range []string{"", "/manifest", "/audits", "/chunks/0"} {
			c.as("viewer", "GET", "/snapshots/runs/"+id+tail, "").problem(404, "")
		}
		c.as("operator", "POST", "/snapshots/runs/"+id+"/cancel", `{"reason":"x"}`).problem(404, "")
	}
	for _, path := range []string{"E%20R/delays", "EWR%23TYPE%23x/delays", "EWR/a%23b", "EWR/" + strings.Repeat("x", 300)} {
		c.as("viewer", "GET", "/snapshots/months/"+path, "").problem(404, "")
		c.as("viewer", "GET", "/snapshots/definitions/workspace/"+path, "").problem(404, "")
	}
	c.as("viewer", "GET", "/snapshots/months/EWR/nothing/2013-01", "").problem(404, "")
	c.as("viewer", "GET", "/owners/a%23b/audits", "").problem(404, "")
	c.as("viewer", "GET", "/snapshots/runs/"+ewrMonth+"2_v1/manifest", "").problem(404, "") // planned, not published
	for _, key := range []string{"", strings.Repeat("k", 201), "a\tb"} {
		status := 422
		if key == "" {
			status = 400
		}
		c.as("operator", "POST", "/snapshots/months/EWR/delays/2013-01/versions", `{"reason":"x"}`, "idempotency-key", key).problem(status, "Idempotency-Key")
	}
	if len(w.writes) > 0 {
		t.Errorf("refused, and yet it wrote %v", w.writes)
	}
}

// TestABrokenStoreIsNoEmptyAnswer: each route of months says that something is broken.
func TestABrokenStoreIsNoEmptyAnswer(t *testing.T) {
	w, c := snapshotted(t)
	w.fail = errors.New("down")
	for route, sample := range snapshotSamples {
		method, _, _ := strings.Cut(route, " ")
		if route == "POST /snapshots/plan" { // asks a function, no store
			continue
		}
		if a := c.as("admin", method, sample.target, sample.body, "idempotency-key", "k9"); a.StatusCode != 500 && a.StatusCode != 503 {
			t.Errorf("%s: %d %s", route, a.StatusCode, a.Body)
		}
	}
}

// broken is a planner that cannot be asked.
type broken struct{}

func (broken) Ask(context.Context) error { return errors.New("secret detail") }

// TestWhatCannotBeAskedOrSignedIsTold: without the detail, which the log has.
func TestWhatCannotBeAskedOrSignedIsTold(t *testing.T) {
	w, c := snapshotted(t)
	months := Months{Editor: w.months.Editor, Reader: w.months.Ledger, Board: w.months.Board, Files: w.months.Files, Planner: broken{}, Bounds: AnswerBounds{Manifest: 10},
		Sign: func(context.Context, string, string, time.Duration) (string, error) {
			return "", errors.New("secret detail")
		}}
	c.serve = Lambda(API{Editor: w, Reader: w, Links: w, Months: months, Claims: AuthorizerClaims{}, Log: discard(), Now: nowOf(w), NewID: func() string { return "x" }}.Handler())
	for target, status := range map[string]int{"/snapshots/plan": 503, "/snapshots/runs/" + ewrMonth + "1_v1/chunks/0": 500, "/snapshots/runs/" + ewrMonth + "1_v1/manifest": 500} {
		method := "GET"
		if status == 503 {
			method = "POST"
		}
		a := c.as("admin", method, target, "")
		a.problem(status, "")
		if strings.Contains(a.Body, "secret") || status == 503 && a.Headers["Retry-After"] == "" {
			t.Errorf("%s: %s", target, a.Body)
		}
	}
}
