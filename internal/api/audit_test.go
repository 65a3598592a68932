package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"almanac/internal/api"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
)

// TestActsAreAudited: each act leaves one audit that says who, what and why; what changes nothing and what is refused
// leave none.
func TestActsAreAudited(t *testing.T) {
	p, c := started(t)
	told := func(subject string) []string {
		t.Helper()
		list, _, err := p.Store.Audits(context.Background(), subject, "", 50)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range list {
			out = append(out, fmt.Sprintf("%s: %s (%s) %s > %s", a.Who, a.What, a.Why, a.Before, a.After))
		}
		return out
	}
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	c.do("PUT", "/schedules/delays", hourly("D"), 200, nil) // unchanged
	p.Pass(1e9)
	c.do("PUT", "/schedules/delays", daily("D"), 200, nil)
	c.do("PUT", "/schedules/delays", hourly("E"), 412, nil, "if-match", `"1"`)
	p.Pass(1e9)
	c.do("POST", "/schedules/delays/pause", `{"reason":"holiday"}`, 200, nil)
	c.do("POST", "/schedules/delays/pause", `{"reason":"again"}`, 409, nil)
	c.do("POST", "/schedules/delays/resume", `{}`, 422, nil) // no reason
	p.Pass(1e9)
	c.do("POST", "/schedules/delays/resume", `{"reason":"back"}`, 200, nil)
	var run api.RunView
	c.do("POST", "/schedules/delays/runs", "", 201, &run, "idempotency-key", "k-1")
	c.do("POST", "/schedules/delays/runs", "", 200, nil, "idempotency-key", "k-1")
	p.Pass(1e9)
	c.do("DELETE", "/schedules/delays", `{"reason":"over"}`, 204, nil)
	for subject, want := range map[string][]string{
		"delays": {"ada: delete (over) active > deleted", "ada: resume (back) paused > active", "ada: pause (holiday) active > paused",
			"ada: edit () version 1 > version 2", "ada: create ()  > version 1"},
		run.ID:           {"ada: run now ()  > version 2"},
		"workspace EWR":  {"ada: save ()  > Newark, America/New_York"},
		"source flights": {"ada: save ()  > sqlite flights.sqlite"},
	} {
		if got := told(subject); !slices.Equal(got, want) {
			t.Errorf("%s: audits %q, want %q", subject, got, want)
		}
	}
}

// TestALostReplyIsNoSecondAct: the store's answer to a pause is lost on its way; the caller hears that it is done, and
// there is one audit of it.
func TestALostReplyIsNoSecondAct(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("D"), 201, nil)
	lost := false
	p.DB.Hooks.After = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !lost {
			lost = true
			return context.DeadlineExceeded
		}
		return nil
	}
	var v api.ScheduleView
	c.do("POST", "/schedules/delays/pause", `{"reason":"holiday"}`, 200, &v)
	if !lost || v.State != "paused" || v.Pause.Reason != "holiday" {
		t.Fatalf("lost %v: %+v", lost, v)
	}
	list, _, err := p.Store.Audits(context.Background(), "delays", "", 10)
	if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(a schedule.Audit) bool { return a.What == "pause" }) {
		t.Fatalf("audits %+v, %v; want the creation and one pause", list, err)
	}
}
