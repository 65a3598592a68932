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
