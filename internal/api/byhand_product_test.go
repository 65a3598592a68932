package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/internal/channel"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
)

// acts lists what people did, by the API, the latest first.
func (c caller) acts(target string) []string {
	c.t.Helper()
	var page struct{ Items []api.AuditView }
	c.do("GET", target, "", 200, &page)
	out := []string{}
	for _, a := range page.Items {
		out = append(out, fmt.Sprintf("%s: %s (%s) %s > %s", a.Who, a.What, a.Why, a.Before, a.After))
	}
	return out
}

func (c caller) acted(target string, want ...string) {
	c.t.Helper()
	if got := c.acts(target); !slices.Equal(got, want) {
		c.t.Errorf("%s: %q, want %q", target, got, want)
	}
}

// opened is a product with an admitted run of two recipients.
func opened(t *testing.T) (*apitest.Product, caller, string) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("Delays", "ada@example.com", "bob@example.com"), 201, nil)
	return p, c, p.Admit(t, "delays", time.Date(2013, 7, 1, 14, 0, 0, 0, time.UTC))
}

func hashOf(t *testing.T, address string) string {
	t.Helper()
	n, err := channel.Normalise(channel.Email, address)
	if err != nil {
		t.Fatal(err)
	}
	return channel.RecipientHash(channel.Email, n)
}

func TestStopIsAWishThatStandsOnce(t *testing.T) {
	p, c, id := opened(t)
	var r api.RunView
	c.do("POST", "/runs/"+id+"/stop", `{"reason":"wrong numbers"}`, 200, &r)
	if r.State != "queued" || r.Stop == nil || r.Stop.By != "ada" || r.Stop.Reason != "wrong numbers" {
		t.Fatalf("%+v", r)
	}
	c.do("POST", "/runs/"+id+"/stop", `{"reason":"really"}`, 200, &r)
	if r.Stop.Reason != "wrong numbers" {
		t.Fatalf("a second ask replaced the first: %+v", r.Stop)
	}
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	if d.Stop == nil || d.Stop.Reason != "wrong numbers" || !strings.HasSuffix(d.Timeline[len(d.Timeline)-1], "asked to stop") {
		t.Fatalf("%+v", d)
	}
	p.Fail(t, id, "stopped_by_operator", "ada: wrong numbers")
	var problem api.Problem
	c.do("POST", "/runs/"+id+"/stop", `{"reason":"again"}`, 409, &problem)
	if problem.Current == nil || problem.Current.State != "failed" || problem.Current.Run != id || !strings.Contains(problem.Detail, "settled as failed") {
		t.Fatalf("%+v", problem)
	}
	c.acted("/runs/"+id+"/audits", "ada: stop (wrong numbers) queued > asked to stop")
}

// TestStopMeetsTheWorker: the run is begun, or settled, between the stop's read and its write.
func TestStopMeetsTheWorker(t *testing.T) {
	for _, x := range []struct {
		name   string
		meet   func(p *apitest.Product, t *testing.T, id string)
		status int
		acts   []string
	}{
		{"begun", func(p *apitest.Product, t *testing.T, id string) { p.Begin(t, id) }, 200, []string{"ada: stop (x) running > asked to stop"}},
		{"settled", func(p *apitest.Product, t *testing.T, id string) { p.Deliver(t, id) }, 409, []string{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, c, id := opened(t)
			met := false
			p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
				if call.Operation == "TransactWriteItems" && !met {
					met = true
					x.meet(p, t, id)
				}
				return nil
			}
			c.do("POST", "/runs/"+id+"/stop", `{"reason":"x"}`, x.status, nil)
			if !met {
				t.Fatal("the stop wrote otherwise than this test expects")
			}
			c.acted("/runs/"+id+"/audits", x.acts...)
		})
	}
}

func TestALostReplyToAStopIsNoSecondAct(t *testing.T) {
	p, c, id := opened(t)
	lost := false
	p.DB.Hooks.After = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !lost {
			lost = true
			return context.DeadlineExceeded
		}
		return nil
	}
	c.do("POST", "/runs/"+id+"/stop", `{"reason":"x"}`, 200, nil)
	c.acted("/runs/"+id+"/audits", "ada: stop (x) queued > asked to stop")
	if !lost {
		t.Fatal("no reply was lost")
	}
}

func file(s schedule.Submission) string { return schedule.LinkBase("").File(s) }

// TestOneLinkIsTakenBack: its holder is told whom to ask, on day 6 as on day 0; the others' links work; who is
// unsubscribing still may; each opening that led somewhere is on record.
func TestOneLinkIsTakenBack(t *testing.T) {
	p, c, id := opened(t)
	subs := p.Deliver(t, id)
	ada, bob := hashOf(t, "ada@example.com"), hashOf(t, "bob@example.com")
	links := map[string]schedule.Submission{}
	for _, s := range subs {
		links[s.RecipientHash] = s
	}
	c.do("GET", file(links[ada]), "", 302, nil)
	c.do("GET", file(links[bob]), "", 302, nil)
	p.Pass(time.Hour)
	var done, again api.RevocationView
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"`+ada+`","reason":"left the company"}`, 200, &done)
	at := p.Wall()
	if done.Recipient != ada || done.Channel != "email" || done.Run != id || !done.RevokedAt.Equal(at) {
		t.Fatalf("%+v", done)
	}
	p.Pass(time.Hour)
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"`+ada+`","reason":"again"}`, 200, &again)
	if again != done {
		t.Fatalf("taken back twice: %+v, then %+v", done, again)
	}
	for _, day := range []int{0, 6} {
		p.Pass(time.Duration(day) * 24 * time.Hour)
		page := c.do("GET", file(links[ada]), "", 410, nil).Body
		if !strings.Contains(page, "withdrawn") || !strings.Contains(page, "ask ops@example.com") || strings.Contains(page, "left the company") {
			t.Fatalf("day %d: %s", day, page)
		}
		c.do("GET", file(links[bob]), "", 302, nil)
	}
	c.do("POST", schedule.LinkBase("").Unsubscribe(links[ada]), "List-Unsubscribe=One-Click", 200, nil)
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	for _, r := range d.Recipients {
		if revoked := r.RevokedAt != nil; revoked != (r.Hash == ada) || revoked && !r.RevokedAt.Equal(at) {
			t.Errorf("%+v", r)
		}
	}
	var page struct{ Items []api.AccessView }
	c.do("GET", "/runs/"+id+"/accesses", "", 200, &page)
	seen := map[string][]string{}
	for _, a := range page.Items {
		seen[a.Hash] = append(seen[a.Hash], a.What)
		if a.Channel != "email" || a.At.IsZero() {
			t.Errorf("%+v", a)
		}
	}
	if !slices.Equal(seen[ada], []string{"download", "unsubscribe"}) || !slices.Equal(seen[bob], []string{"download", "download", "download"}) {
		t.Errorf("accesses %v: what was refused is none, each that led on is one", seen)
	}
	acts := c.acts("/runs/" + id + "/audits")
	if len(acts) != 1 || acts[0] != "ada: revoke links (left the company) valid until "+links0(p, t, id)+" > revoked for email "+ada {
		t.Errorf("%q", acts)
	}
	if strings.Contains(acts[0], "@") {
		t.Errorf("an address is kept in an audit: %s", acts[0])
	}
}

func links0(p *apitest.Product, t *testing.T, id string) string {
	t.Helper()
	r, err := p.Store.Run(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.LinkExpires.UTC().Format(time.RFC3339)
}

// TestAllLinksAreTakenBack: also those of recipients who are asked after the act.
func TestAllLinksAreTakenBack(t *testing.T) {
	p, c, id := opened(t)
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"all","reason":"wrong month"}`, 200, nil)
	at := p.Wall()
	p.Pass(time.Minute)
	var again api.RevocationView
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"all","reason":"again"}`, 200, &again)
	if again.Recipient != "all" || again.Channel != "" || !again.RevokedAt.Equal(at) {
		t.Fatalf("%+v", again)
	}
	for _, s := range p.Deliver(t, id) {
		if page := c.do("GET", file(s), "", 410, nil).Body; !strings.Contains(page, "withdrawn") || !strings.Contains(page, "ops@example.com") {
			t.Errorf("%s", page)
		}
	}
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	if d.State != "succeeded" || d.LinksRevoked == nil || !d.LinksRevoked.Equal(at) || d.Recipients[0].RevokedAt == nil || d.File.Links == nil {
		t.Fatalf("%+v", d)
	}
	var page struct{ Items []api.AccessView }
	c.do("GET", "/runs/"+id+"/accesses", "", 200, &page)
	if len(page.Items) != 0 {
		t.Fatalf("%+v", page)
	}
	c.acted("/runs/"+id+"/audits", "ada: revoke links (wrong month) no file yet > all revoked")
}

// TestWhoHasNoLink: a hash of nobody, and of one who was given none.
func TestWhoHasNoLink(t *testing.T) {
	p, c, id := opened(t)
	var problem api.Problem
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"`+hashOf(t, "ada@example.com")+`","reason":"x"}`, 422, &problem)
	if problem.Errors[0].Field != "recipient" || !strings.Contains(problem.Errors[0].Want, "given no link") {
		t.Fatalf("%+v", problem)
	}
	if err := p.Store.Abandon(context.Background(), schedule.Submission{Run: id, Channel: channel.Email, RecipientHash: hashOf(t, "bob@example.com"),
		Recipient: "bob@example.com", UpdatedAt: p.Wall()}, "worker", p.Wall().Add(time.Hour).Unix()); err != nil {
		t.Fatal(err)
	}
	c.do("POST", "/runs/"+id+"/links/revoke", `{"recipient":"`+hashOf(t, "bob@example.com")+`","reason":"x"}`, 422, nil)
	c.acted("/runs/" + id + "/audits")
}

// TestTwoTakeBackTheSameLink at once: one act, one audit, and both hear that it is done.
func TestTwoTakeBackTheSameLink(t *testing.T) {
	for _, all := range []bool{true, false} {
		p, c, id := opened(t)
		recipient := "all"
		if !all {
			recipient = p.Deliver(t, id)[0].RecipientHash
		}
		body := func(why string) string { return `{"recipient":"` + recipient + `","reason":"` + why + `"}` }
		met := false
		p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
			if call.Operation == "TransactWriteItems" && !met {
				met = true
				c.do("POST", "/runs/"+id+"/links/revoke", body("first"), 200, nil)
			}
			return nil
		}
		var v api.RevocationView
		c.do("POST", "/runs/"+id+"/links/revoke", body("second"), 200, &v)
		acts := c.acts("/runs/" + id + "/audits")
		if !met || len(acts) != 1 || !strings.Contains(acts[0], "(first)") || !v.RevokedAt.Equal(p.Wall()) {
			t.Errorf("all %v: %q %+v", all, acts, v)
		}
	}
}

func TestSwitches(t *testing.T) {
	p, c := started(t)
	ctx := context.Background()
	is := func(want schedule.Control) {
		t.Helper()
		if got, err := p.Store.Control(ctx); err != nil || got != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
	}
	var v api.ControlView
	c.do("PUT", "/control", `{"dispatch":"off","reason":"maintenance"}`, 200, &v)
	if v.Dispatch != "off" || v.Send != "on" || v.Changed == nil || v.Changed.Who != "ada" || v.Changed.Why != "maintenance" || !v.Changed.At.Equal(p.Wall()) {
		t.Fatalf("%+v", v)
	}
	is(schedule.Control{DispatchOff: true})
	c.do("PUT", "/control", `{"dispatch":"off","reason":"again"}`, 200, nil) // changes nothing
	p.Pass(time.Second)
	// Two people at once, each another switch: neither undoes the other's.
	met := false
	p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !met {
			met = true
			c.do("PUT", "/control", `{"send":"off","reason":"red button"}`, 200, nil)
			p.Pass(time.Second)
		}
		return nil
	}
	c.do("PUT", "/control", `{"dispatch":"on","reason":"over"}`, 200, &v)
	is(schedule.Control{SendOff: true})
	if !met || v.Dispatch != "on" || v.Send != "off" {
		t.Fatalf("%+v", v)
	}
	acts := c.acts("/control/audits")
	slices.Sort(acts)
	if want := []string{
		"ada: control (maintenance) dispatch on, send on > dispatch off, send on",
		"ada: control (over) dispatch off, send off > dispatch on, send off",
		"ada: control (red button) dispatch off, send on > dispatch off, send off",
	}; !slices.Equal(acts, want) {
		t.Fatalf("%q, want %q", acts, want)
	}
	c.do("PUT", "/control", `{"dispatch":"on","send":"on","reason":"all is well"}`, 200, &v)
	is(schedule.Control{})
	if v.Changed.Why != "all is well" || len(c.acts("/control/audits")) != 4 {
		t.Fatalf("%+v", v.Changed)
	}
	// A schedule may be called what it likes: its audits are its own.
	c.do("PUT", "/schedules/control", strings.Replace(hourly("Control"), `"delays"`, `"control"`, 1), 201, nil)
	c.acted("/schedules/control/audits", "ada: create ()  > version 1")
}

// TestTheVersionThatARunUsed: edited three times; the run names the version that it was admitted under, and its
// definition is still there.
func TestTheVersionThatARunUsed(t *testing.T) {
	p, c := started(t)
	c.do("PUT", "/schedules/delays", hourly("First"), 201, nil)
	id := p.Admit(t, "delays", time.Date(2013, 7, 1, 14, 0, 0, 0, time.UTC))
	p.Pass(time.Minute)
	c.do("PUT", "/schedules/delays", daily("Second"), 200, nil)
	c.do("PUT", "/schedules/delays", daily("Third"), 200, nil)
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	var v api.VersionDetail
	c.do("GET", fmt.Sprintf("/schedules/delays/versions/%d", d.Version), "", 200, &v)
	if d.Version != 1 || v.Definition.Name != "First" || v.Definition.Recurrence.Cron != "0 * * * *" || v.By != "ada" || v.Hash == "" {
		t.Fatalf("%+v", v)
	}
	var page struct{ Items []api.VersionView }
	c.do("GET", "/schedules/delays/versions", "", 200, &page)
	if len(page.Items) != 3 || page.Items[0].Version != 3 || page.Items[2].Hash != v.Hash || page.Items[0].Hash == v.Hash {
		t.Fatalf("%+v", page)
	}
	c.do("GET", "/schedules/delays/versions/2?against=1", "", 200, &v)
	if want := []string{`name: "First" → "Second"`, `recurrence.cron: "0 * * * *" → "0 18 * * *"`}; !slices.Equal(v.Diff, want) {
		t.Fatalf("%q, want %q", v.Diff, want)
	}
	c.do("GET", "/schedules/delays/versions/1?against=2", "", 200, &v)
	if v.Diff[0] != `name: "Second" → "First"` {
		t.Fatalf("%q", v.Diff)
	}
	c.do("GET", "/schedules/delays/versions/2?against=2", "", 200, &v)
	if len(v.Diff) != 0 {
		t.Fatalf("%q", v.Diff)
	}
	acts := c.acts("/schedules/delays/audits")
	slices.Sort(acts)
	if want := []string{"ada: create ()  > version 1", "ada: edit () version 1 > version 2", "ada: edit () version 2 > version 3"}; !slices.Equal(acts, want) {
		t.Fatalf("%q", acts)
	}
}

func TestDeadLettersAreListed(t *testing.T) {
	p, c := started(t)
	letter := schedule.DeadLetter{MessageID: "m-1", Queue: "query-runs", Body: "{\"run\":", Reason: "it is no JSON", At: p.Wall()}
	if err := p.Store.RecordDead(context.Background(), letter, p.Wall().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	var page struct{ Items []api.DeadLetterView }
	c.do("GET", "/dead-letters", "", 200, &page)
	if len(page.Items) != 1 || page.Items[0].Message != "m-1" || page.Items[0].Body != letter.Body || page.Items[0].Reason != letter.Reason || !page.Items[0].At.Equal(p.Wall()) {
		t.Fatalf("%+v", page)
	}
}
