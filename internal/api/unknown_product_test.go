package api_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"almanac/internal/api"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
)

func resolving(run, hash, as string) (target, body string) {
	return "/runs/" + run + "/recipients/" + hash + "/resolve", fmt.Sprintf(`{"as":%q,"reason":"they called"}`, as)
}

func TestResolveIsRecordedOnceAndTheRunStaysFailed(t *testing.T) {
	for _, as := range []string{"submitted", "skipped"} {
		t.Run(as, func(t *testing.T) {
			p, c, id := opened(t)
			lost := p.Lose(t, id)[0]
			p.Pass(1e9)
			target, body := resolving(id, lost.RecipientHash, as)
			var v api.RecipientView
			c.do("POST", target, body, 200, &v)
			if v.Outcome != as || v.Recipient != lost.Recipient || v.Detail != "resolved by ada: they called" || (v.Reason == schedule.ReasonResolved) != (as == "skipped") {
				t.Errorf("%+v", v)
			}
			var d api.RunDetail
			c.do("GET", "/runs/"+id, "", 200, &d)
			if d.State != "failed" || d.Error.Code != "delivery_unknown" || d.Submitted != 1 {
				t.Errorf("the settled run moved: %+v", d.RunView)
			}
			for _, r := range d.Recipients {
				if r.Hash == lost.RecipientHash && !reflect.DeepEqual(r, v) {
					t.Errorf("shown as %+v, want %+v", r, v)
				}
			}
			var problem api.Problem
			for _, again := range []string{"submitted", "skipped"} {
				target, body := resolving(id, lost.RecipientHash, again)
				c.do("POST", target, body, 409, &problem)
				if problem.Current == nil || problem.Current.State != as || problem.Current.Recipient != lost.RecipientHash || problem.Current.Run != id {
					t.Errorf("%+v %+v", problem, problem.Current)
				}
			}
			c.acted("/runs/"+id+"/audits", fmt.Sprintf("ada: resolve (they called) unknown: email %s > %s: email %[1]s", lost.RecipientHash, as))
		})
	}
}

func TestOnlyAnUnknownIsResolved(t *testing.T) {
	p, c, id := opened(t)
	subs := p.Lose(t, id)
	target, body := resolving(id, subs[1].RecipientHash, "skipped")
	var problem api.Problem
	c.do("POST", target, body, 409, &problem)
	if problem.Current == nil || problem.Current.State != "submitted" || !strings.Contains(problem.Detail, "only an unknown") {
		t.Errorf("%+v", problem)
	}
	target, body = resolving(id, hashOf(t, "nobody@example.com"), "skipped")
	c.do("POST", target, body, 422, &problem)
	if len(problem.Errors) != 1 || problem.Errors[0].Field != "recipient" || !strings.Contains(problem.Errors[0].Want, "was not asked") {
		t.Errorf("%+v", problem)
	}
	c.acted("/runs/" + id + "/audits")
}

// TestTwoResolveAtOnce: both read the unknown; one has the say, the other hears what it is now.
func TestTwoResolveAtOnce(t *testing.T) {
	p, c, id := opened(t)
	lost := p.Lose(t, id)[0]
	met := false
	p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !met {
			met = true
			if _, err := p.API.Editor.Resolve(context.Background(), id, lost.RecipientHash, "submitted", "has it", "bob"); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	target, body := resolving(id, lost.RecipientHash, "skipped")
	var problem api.Problem
	c.do("POST", target, body, 409, &problem)
	if problem.Current == nil || problem.Current.State != "submitted" {
		t.Errorf("%+v", problem)
	}
	c.acted("/runs/"+id+"/audits", fmt.Sprintf("bob: resolve (has it) unknown: email %s > submitted: email %[1]s", lost.RecipientHash))
}

func TestALostReplyToAResolveIsNoSecondAct(t *testing.T) {
	p, c, id := opened(t)
	sub := p.Lose(t, id)[0]
	lost := false
	p.DB.Hooks.After = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !lost {
			lost = true
			return context.DeadlineExceeded
		}
		return nil
	}
	target, body := resolving(id, sub.RecipientHash, "skipped")
	c.do("POST", target, body, 200, nil)
	if !lost || len(c.acts("/runs/"+id+"/audits")) != 1 {
		t.Errorf("lost %v, %q", lost, c.acts("/runs/"+id+"/audits"))
	}
}

func TestRetryIsPreviewedAndMadeOncePerKey(t *testing.T) {
	p, c, id := opened(t)
	subs := p.Lose(t, id)
	lost, has := subs[0], subs[1]
	var plan api.RetryView
	c.do("GET", "/runs/"+id+"/retry", "", 200, &plan)
	if plan.To != "missing" || len(plan.Send) != 0 || len(plan.Leave) != 2 || plan.File == nil || plan.File.Rows != 3 || plan.Run != id {
		t.Fatalf("%+v", plan)
	}
	var problem api.Problem
	c.do("POST", "/runs/"+id+"/retry", `{"reason":"x"}`, 409, &problem, "idempotency-key", "k-0")
	if !strings.Contains(problem.Detail, "nobody is left") || problem.Current == nil || problem.Current.Run != id {
		t.Errorf("%+v", problem)
	}
	c.do("GET", "/runs/"+id+"/retry?include_unknown="+lost.RecipientHash, "", 200, &plan)
	if len(plan.Send) != 1 || plan.Send[0].Hash != lost.RecipientHash || plan.Send[0].Outcome != "unknown" || len(plan.Leave) != 1 || plan.Leave[0].Why != "has the delivery" {
		t.Fatalf("%+v", plan)
	}
	c.do("GET", "/runs/"+id+"/retry?include_unknown="+has.RecipientHash, "", 409, &problem)
	if problem.Current == nil || problem.Current.Recipient != has.RecipientHash || problem.Current.State != "submitted" {
		t.Errorf("%+v", problem)
	}
	c.acted("/runs/" + id + "/audits")
	body := fmt.Sprintf(`{"include_unknown":[%q],"reason":"they called"}`, lost.RecipientHash)
	var made, again api.RunView
	c.do("POST", "/runs/"+id+"/retry", body, 201, &made, "idempotency-key", "k-1")
	c.do("POST", "/runs/"+id+"/retry", body, 200, &again, "idempotency-key", "k-1")
	if made.ID != again.ID || made.RetryOf != id || made.State != "queued" || !made.Manual || made.File == nil || made.File.SHA256 != plan.File.SHA256 {
		t.Errorf("%+v, then %+v", made, again)
	}
	c.do("POST", "/runs/"+id+"/retry", `{"to":"everyone","reason":"they called"}`, 422, &problem, "idempotency-key", "k-1")
	if len(problem.Errors) != 1 || problem.Errors[0].Field != "Idempotency-Key" {
		t.Errorf("%+v", problem)
	}
	if offered := p.Offered(); !reflect.DeepEqual(offered, []string{made.ID}) {
		t.Errorf("offered %v", offered)
	}
	c.acted("/runs/"+made.ID+"/audits", "ada: retry as new (they called) "+id+" > 1 recipients, missing")
	c.do("GET", "/runs/"+id+"/retry?to=everyone", "", 200, &plan)
	if len(plan.Send) != 2 || len(plan.Leave) != 0 {
		t.Errorf("%+v", plan)
	}
	c.do("GET", "/runs/"+made.ID+"/retry", "", 409, &problem)
	if !strings.Contains(problem.Detail, "queued") {
		t.Errorf("%+v", problem)
	}
}

func TestBadInputOfRetry(t *testing.T) {
	p, c, id := opened(t)
	lost := p.Lose(t, id)[0]
	before := len(p.Offered())
	long := strings.Repeat("x", 201)
	for _, x := range []struct{ name, body, field string }{
		{"no reason", `{}`, "reason"},
		{"reason null", `{"reason":null}`, "reason"},
		{"reason too long", `{"reason":"` + long + `"}`, "reason"},
		{"reason hostile", `{"reason":"x\r\ny"}`, "reason"},
		{"to wrong type", `{"to":["missing"],"reason":"x"}`, "to"},
		{"to null", `{"to":null,"reason":"x"}`, "to"},
		{"to all", `{"to":"all","reason":"x"}`, "to"},
		{"to hostile", `{"to":"everyone\u0000","reason":"x"}`, "to"},
		{"unknowns as a text", `{"include_unknown":"` + lost.RecipientHash + `","reason":"x"}`, "include_unknown"},
		{"an address", `{"include_unknown":["ada@example.com"],"reason":"x"}`, "include_unknown[0]"},
		{"of another run", `{"include_unknown":["` + strings.Repeat("0", 32) + `"],"reason":"x"}`, "include_unknown[0]"},
		{"hash with a line", `{"include_unknown":["` + lost.RecipientHash + `\n"],"reason":"x"}`, "include_unknown[0]"},
		{"too many", `{"include_unknown":["x"` + strings.Repeat(`,"x"`, schedule.MaxNamed) + `],"reason":"x"}`, "include_unknown"},
		{"contradiction", `{"to":"everyone","include_unknown":["` + lost.RecipientHash + `"],"reason":"x"}`, "include_unknown"},
		{"misspelt", `{"include_unkown":[],"reason":"x"}`, "include_unkown"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := c
			c.t = t
			var problem api.Problem
			c.do("POST", "/runs/"+id+"/retry", x.body, 422, &problem, "idempotency-key", "k")
			if len(problem.Errors) == 0 || problem.Errors[0].Field != x.field || problem.Errors[0].Want == "" {
				t.Errorf("%+v, want field %s", problem.Errors, x.field)
			}
		})
	}
	c.do("POST", "/runs/"+id+"/retry", `{"reason":"x"}`, 400, nil)
	c.do("GET", "/runs/"+id+"/retry?to=all", "", 422, nil)
	c.do("GET", "/runs/"+id+"/retry?include_unknown=ada", "", 422, nil)
	c.do("GET", "/runs/"+id+"/retry?unknown=x", "", 422, nil)
	c.do("GET", "/runs/delays@2014-01-01T00:00:00Z/retry", "", 404, nil)
	if n := len(p.Offered()); n != before {
		t.Errorf("refused, and yet %d were offered", n-before)
	}
}

func TestResendIsAskedForOnceAndShown(t *testing.T) {
	p, c, id := opened(t)
	subs := p.Lose(t, id)
	target := "/runs/" + id + "/recipients/" + subs[0].RecipientHash + "/resend"
	var v, again api.RecipientView
	c.do("POST", target, `{"reason":"they called"}`, 202, &v)
	if v.Outcome != "unknown" || v.Resend == nil || *v.Resend != (api.StopView{By: "ada", Reason: "they called"}) {
		t.Fatalf("%+v", v)
	}
	c.do("POST", target, `{"reason":"really"}`, 202, &again)
	if again.Resend == nil || again.Resend.Reason != "they called" {
		t.Errorf("a second ask replaced the first: %+v", again.Resend)
	}
	if offered := p.Offered(); len(offered) != 2 || offered[0] != offered[1] || !strings.HasPrefix(offered[0], id+"#email#"+subs[0].RecipientHash+"#") {
		t.Errorf("offered %v", offered)
	}
	c.acted("/runs/"+id+"/audits", fmt.Sprintf("ada: resend (they called) unknown: email %s > asked to send as number 2: email %[1]s", subs[0].RecipientHash))
	var problem api.Problem
	c.do("POST", "/runs/"+id+"/recipients/"+subs[1].RecipientHash+"/resend", `{"reason":"x"}`, 409, &problem)
	if problem.Current == nil || problem.Current.State != "submitted" {
		t.Errorf("%+v", problem)
	}
	var d api.RunDetail
	c.do("GET", "/runs/"+id, "", 200, &d)
	shown := 0
	for _, r := range d.Recipients {
		if r.Resend != nil {
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("%d recipients are shown to be sent again", shown)
	}
}
