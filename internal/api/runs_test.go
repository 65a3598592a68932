package api

import (
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
)

func TestRunNowIsMadeOncePerKey(t *testing.T) {
	w, c := peopled(t)
	var first, second RunView
	a := c.as("operator", "POST", "/schedules/ewr-delays/runs", "", "idempotency-key", "k-1").want(201).into(&first)
	if a.Headers["Location"] != "/runs/"+first.ID || first.State != "queued" || !first.Manual {
		t.Fatalf("%v %+v", a.Headers, first)
	}
	b := c.as("operator", "POST", "/schedules/ewr-delays/runs", "{}", "idempotency-key", "k-1").want(200).into(&second)
	if second.ID != first.ID || b.Headers["Idempotency-Replayed"] != "true" || len(w.writes) != 1 {
		t.Fatalf("%+v %v", second, w.writes)
	}
	c.as("operator", "GET", a.Headers["Location"], "").want(200)
	c.as("operator", "POST", "/schedules/ewr-delays/runs", "", "idempotency-key", "k-2").want(201)
	p := c.as("operator", "POST", "/schedules/ewr-delays/runs", `{"version":1}`, "idempotency-key", "k-1").problem(422, "Idempotency-Key")
	if p.Current == nil || p.Current.Run != first.ID || len(w.writes) != 2 {
		t.Fatalf("%+v %v", p, w.writes)
	}
}

func TestRunNowOfAnotherVersionIsRefused(t *testing.T) {
	w, c := peopled(t)
	p := c.as("operator", "POST", "/schedules/ewr-delays/runs", `{"version":4}`, "idempotency-key", "k").problem(412, "")
	if p.Current.Version != 1 || len(w.writes) != 0 {
		t.Fatalf("%+v", p)
	}
}

func TestIdempotencyKeyIsRequiredAndNamed(t *testing.T) {
	w, c := peopled(t)
	p := c.as("operator", "POST", "/schedules/ewr-delays/runs", "").problem(400, "Idempotency-Key")
	if !strings.Contains(p.Detail, "Idempotency-Key") {
		t.Fatalf("%+v", p)
	}
	for _, hostile := range []string{strings.Repeat("x", 201), "a\x00b", "ключ", "a\nb"} {
		c.as("operator", "POST", "/schedules/ewr-delays/runs", "", "idempotency-key", hostile).problem(422, "Idempotency-Key")
	}
	c.as("operator", "POST", "/schedules/ewr-delays/runs", "", "idempotency-key", "a, b").want(201)
	if len(w.writes) != 1 {
		t.Fatal(w.writes)
	}
}

func TestShowRunSaysWhatWentWrongAndWhatHelps(t *testing.T) {
	w, c := peopled(t)
	id := "ewr-delays@2013-07-02T13:00:00Z"
	w.runs[id] = schedule.Run{
		Schedule: "ewr-delays", Occurrence: "2013-07-02T13:00:00Z", Workspace: "EWR", Version: 1, State: schedule.Failed, Attempts: 2, AttemptsLeft: 3, Yields: 1,
		ErrorCode: string(failure.DeliveryUnknown), ErrorText: "the answer for one recipient was lost", Submitted: 1, SkippedN: 1,
		File:        &schedule.RecordedFile{Key: "secret/key", Name: "delays.csv", Rows: 12, Bytes: 345, SHA256: "ab", DataAsOf: w.at},
		FileExpires: w.at.Add(24 * time.Hour), LeaseOwner: "lease-secret", Timeline: []string{"13:00 admitted", "13:01 begun"}, StopBy: "eve", StopWhy: "wrong month",
	}
	w.submissions[id] = []schedule.Submission{
		{Run: id, Channel: "email", Recipient: "ada@example.com", State: schedule.Submitted, Tries: 1, ProviderID: "ses-1", Token: "tok-secret"},
		{Run: id, Channel: "email", Recipient: "bob@example.com", State: schedule.NotDelivered, Reason: "refused", Detail: "550", Tries: 1},
		{Run: id, Channel: "webhook", Recipient: "https://h.example/x/tok", State: schedule.Unknown, Tries: 2},
	}
	var d RunDetail
	a := c.as("operator", "GET", "/runs/"+id, "").want(200).into(&d)
	e, _ := failure.Lookup(failure.DeliveryUnknown)
	if d.Error == nil || d.Error.Meaning != e.Meaning || d.Error.Remedy != e.Remedy || d.Error.Code != "delivery_unknown" || d.Error.Message == "" {
		t.Fatalf("%+v", d.Error)
	}
	if f := d.File; f == nil || f.Name != "delays.csv" || f.Rows != 12 || f.Bytes != 345 || f.SHA256 != "ab" || !f.Expires.Equal(w.at.Add(24*time.Hour)) {
		t.Fatalf("%+v", d.File)
	}
	if len(d.Recipients) != 3 || d.Recipients[1].Reason != "refused" || d.Recipients[2].Outcome != "unknown" || d.Recipients[2].Tries != 2 || d.Recipients[0].Recipient != "ada@example.com" {
		t.Fatalf("%+v", d.Recipients)
	}
	if len(d.Timeline) != 2 || d.Attempts != 2 || d.Yields != 1 || d.Stop == nil || d.Stop.By != "eve" {
		t.Fatalf("%+v", d)
	}
	for _, secret := range []string{"tok-secret", "lease-secret", "secret/key"} {
		if strings.Contains(a.Body, secret) {
			t.Fatalf("%s is shown: %s", secret, a.Body)
		}
	}
	viewer := c.as("viewer", "GET", "/runs/"+id, "").want(200).Body
	if strings.Contains(viewer, "ada@") || strings.Contains(viewer, "/x/tok") || !strings.Contains(viewer, "b…@example.com") {
		t.Fatalf("%s", viewer)
	}
}

func TestRunsAndSkipsArePaged(t *testing.T) {
	w, c := peopled(t)
	for i := range 5 {
		at := w.at.Add(time.Duration(i) * time.Hour)
		w.skips["ewr-delays"] = append(w.skips["ewr-delays"], schedule.Skip{Schedule: "ewr-delays", First: at, Last: at, Count: 1, Reason: "gap"})
	}
	var p struct {
		Items []SkipView
		Next  string
	}
	c.as("viewer", "GET", "/schedules/ewr-delays/skips?limit=3", "").want(200).into(&p)
	if len(p.Items) != 3 || p.Next == "" || p.Items[0].Reason != "gap" {
		t.Fatalf("%+v", p)
	}
	next := p.Next
	p.Next = ""
	c.as("viewer", "GET", "/schedules/ewr-delays/skips?limit=3&cursor="+next, "").want(200).into(&p)
	if len(p.Items) != 2 || p.Next != "" {
		t.Fatalf("%+v", p)
	}
	// A cursor of one list is none of another, nor of another schedule.
	c.as("viewer", "GET", "/schedules/ewr-delays/runs?cursor="+next, "").problem(422, "cursor")
	c.as("viewer", "GET", "/schedules/jfk-delays/skips?cursor="+next, "").problem(422, "cursor")
}

func TestNoRunOfThatName(t *testing.T) {
	_, c := peopled(t)
	for _, id := range []string{"ewr-delays", "ewr-delays@", "@2013", "ewr-delays@2014-01-01T00:00:00Z", "a@b c", "a%00@b", "x@" + strings.Repeat("9", 300), "ewr-delays@..%2F..", "é@1"} {
		c.as("viewer", "GET", "/runs/"+id, "").problem(404, "")
	}
	c.as("viewer@JFK", "GET", "/runs/ewr-delays@2013-07-01T13:00:00Z", "").problem(404, "")
}

func TestMask(t *testing.T) {
	for _, x := range []struct{ kind, in, want string }{
		{"email", "ada@example.com", "a…@example.com"}, {"email", " b@x.org ", "b…@x.org"}, {"email", "@x", "…"}, {"email", "nobody", "…"},
		{"webhook", "https://h.example:8443/a?b=c", "https://h.example:8443/…"}, {"webhook", "::", "…"}, {"webhook", "", "…"},
	} {
		if got := mask(x.kind, x.in); got != x.want {
			t.Errorf("%s %q: %q, want %q", x.kind, x.in, got, x.want)
		}
	}
}
