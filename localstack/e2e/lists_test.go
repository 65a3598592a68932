//go:build cloud

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// A list that does not fit a definition's row, on the deployed stack: saved by the API, frozen as an object, read by the
// consumer under its own role. Each recipient is asked exactly once, under a key of its own.
func TestAListOfFiveHundredAndOneStandsApartAndEachGetsOneRequest(t *testing.T) {
	scene(t)
	const many = schedule.InlineRecipients + 1
	path := fmt.Sprintf("list-%d", time.Now().UnixNano())
	d := save(t, func(d *schedule.Definition) {
		d.Recipients = nil
		for i := range many {
			d.Recipients = append(d.Recipients, schedule.Recipient{Webhook: fmt.Sprintf("%s/%s?desk=%d", cloud.receiver, path, i), Secret: "demo"})
		}
	})
	run := due(t, d)
	var r schedule.Run
	next := time.Now()
	awaitWithin(t.Context(), t, 4*time.Minute, "the end of "+run, func() (bool, string) {
		if time.Now().After(next) {
			tick(t)
			next = time.Now().Add(5 * time.Second)
		}
		var err error
		r, err = cloud.store.Run(t.Context(), run)
		if err != nil {
			return false, err.Error()
		}
		return r.Settled(), fmt.Sprintf("%s, %d attempts, %d yields, %s %s", r.State, r.Attempts, r.Yields, r.ErrorCode, r.ErrorText)
	})
	want(t, r, schedule.Succeeded, "")
	keys := map[string]bool{}
	for _, q := range hooks(t, path) {
		keys[q.ID] = true
	}
	if n := len(hooks(t, path)); r.Submitted != many || n != many || len(keys) != many {
		t.Fatalf("%d submitted, %d requests under %d keys; want %d of each", r.Submitted, n, len(keys), many)
	}
}

// An unknown is resolved by a person who asked the recipient: it is recorded, nothing is sent, the run stays as it settled.
func TestAnUnknownIsResolvedByAPerson(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("resolve-%d", time.Now().UnixNano())
	cut := map[string]any{"cut": true}
	tell(t, path, cut, cut, cut, cut, cut, map[string]any{"status": 200})
	d := save(t, func(d *schedule.Definition) { d.Recipients = []schedule.Recipient{hook(path)} })
	run := due(t, d)
	want(t, settled(t, run), schedule.Failed, "attempts_exhausted")
	s := outcomes(t, run)[cloud.receiver+"/"+path]
	act := "/runs/" + run + "/recipients/" + s.RecipientHash + "/resolve"
	body := map[string]string{"as": "submitted", "reason": "they have it"}
	if status, b := call(t, "viewer", "POST", act, body); status != 403 {
		t.Fatalf("a viewer may resolve: %d %s", status, b)
	}
	if status, b := call(t, "operator", "POST", act, body); status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	if s := outcomes(t, run)[cloud.receiver+"/"+path]; s.State != schedule.Submitted {
		t.Fatalf("outcome %s, want submitted", s.State)
	}
	if status, b := call(t, "operator", "POST", act, body); status != 409 {
		t.Fatalf("resolved twice: %d %s; want 409", status, b)
	}
	if r, err := cloud.store.Run(t.Context(), run); err != nil || r.State != schedule.Failed || len(hooks(t, path)) != 5 {
		t.Fatalf("run %+v, %v, %d requests; want it failed as before, and nothing sent", r, err, len(hooks(t, path)))
	}
}

// A dead letter that can be read now, as after an upgrade, is redriven by a person: its run is offered again and delivered.
func TestADeadLetterIsRedriven(t *testing.T) {
	scene(t)
	d := save(t, nil)
	mapping := deliverMapping(t)
	enable(t, mapping, false)
	t.Cleanup(func() { enableFor(context.Background(), t, mapping, true) })
	run := due(t, d)
	purge(t.Context(), t)
	letter := schedule.DeadLetter{MessageID: fmt.Sprintf("letter-%d", time.Now().UnixNano()), Queue: "query-runs", Body: schedule.EncodeMessage(run), Reason: "written by a later version", At: time.Now()}
	if err := cloud.store.RecordDead(t.Context(), letter, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	enable(t, mapping, true)
	act, body := "/dead-letters/"+letter.MessageID+"/redrive", map[string]string{"reason": "the upgrade reads it"}
	if status, b := call(t, "operator", "POST", act, body); status != 403 {
		t.Fatalf("an operator may redrive: %d %s", status, b)
	}
	must(t, "POST", act, body)
	eventually(t, "the end of "+run+", without a sweep", func() (bool, string) {
		r, err := cloud.store.Run(t.Context(), run)
		if err != nil {
			return false, err.Error()
		}
		return r.State == schedule.Succeeded, fmt.Sprintf("%s, attempts %d", r.State, r.Attempts)
	})
	mailed(t, run, 1)
	if status, b := call(t, "admin", "POST", act, body); status != 409 {
		t.Fatalf("redriven again after its run has settled: %d %s; want 409", status, b)
	}
}
