//go:build cloud

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/snapshot"

	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// N1, N17 and table D's cancel in each active state: the slot is free, the job is stopped, and nothing is published.
func TestN1AMonthIsCancelledInEachState(t *testing.T) {
	scene(t)
	type reached func(t *testing.T, s shelf, id string)
	wait := func(what string, done func(snapshot.Run) bool) reached {
		return func(t *testing.T, s shelf, id string) { s.until(t, id, what, done) }
	}
	for _, c := range []struct {
		state  snapshot.State
		held   bool
		change func(*snapshot.Definition)
		reach  reached
	}{
		{snapshot.Planned, true, nil, func(*testing.T, shelf, string) {}},
		{snapshot.Queued, true, nil, func(t *testing.T, s shelf, id string) { s.claim(t, id) }},
		{snapshot.Running, false, inChunks(4, 10), wait("the first chunks", func(r snapshot.Run) bool { return r.Cursor.Chunk > 3 })},
		{snapshot.Validating, false, slowly(spin), wait("validation", in(snapshot.Validating))},
		{snapshot.Failed, false, func(d *snapshot.Definition) { d.Control = falseControl }, wait("the first failure", in(snapshot.Failed))},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			made := shelved
			if c.held {
				hold(t)
				made = apart
			}
			s := made(t, 2, 0, 1)
			s.define(t, s.workspaces[0], "called-off", c.change)
			id := rerun(t, s.workspaces[0], "called-off", december)
			c.reach(t, s, id)
			before := s.run(t, id)
			if before.State != c.state {
				t.Fatalf("%s is %s, want %s", id, before.State, c.state)
			}
			act(t, id, "cancel")
			if c.state == snapshot.Running || c.state == snapshot.Validating {
				closes(t, before, sfntypes.ExecutionStatusAborted)
			}
			r := s.run(t, id)
			if r.State != snapshot.Cancelled || r.Reason != snapshot.ReasonOperator || !strings.Contains(r.CancelledBy, "@") {
				t.Errorf("%s is %s, %s by %q; want it cancelled by a person", id, r.State, r.Reason, r.CancelledBy)
			}
			if held := s.caps(t); len(held.Slots) != 0 {
				t.Errorf("slots %v are held; want none", held.Slots)
			}
			if v := s.current(t, r.Period); v != 0 {
				t.Errorf("version %d is current; want none", v)
			}
			status, b := call(t, "admin", "POST", "/snapshots/runs/"+id+"/cancel", reasoned)
			if status != 409 || !strings.Contains(string(b), "cancelled") {
				t.Errorf("cancelled again: %d %s; want 409", status, b)
			}
			// It is still so when all ticks have come.
			claimTick(t)
			reconcileTick(t)
			if again := s.run(t, id); again.State != snapshot.Cancelled || len(again.Timeline) != len(r.Timeline) {
				t.Errorf("%s is %s after further ticks, timeline %q; want it cancelled", id, again.State, again.Timeline)
			}
		})
	}
}

// slowly makes a definition whose months stay in validation for a while.
func slowly(spin int) func(*snapshot.Definition) {
	return func(d *snapshot.Definition) {
		d.Mode, d.Control, d.Params["spin"] = snapshot.Chunked, slowControl, spin
	}
}

// claim queues a version as a dispatcher does that dies before it has started the job.
func (s shelf) claim(t *testing.T, id string) snapshot.Run {
	t.Helper()
	r, err := s.ledger.Claim(t.Context(), s.run(t, id), s.caps(t).Owner, time.Now())
	if err != nil {
		t.Fatalf("claim of %s: %v", id, err)
	}
	return r
}

// N16: while a version is under way a rerun is refused and names it, and so is a roll back; afterwards the month goes
// back to an earlier version, whose files were kept.
func TestN16ARerunAndARollBackAreRefusedWhileAVersionIsUnderWay(t *testing.T) {
	scene(t)
	s := shelved(t, 3, 1, 1)
	w := s.workspaces[0]
	s.define(t, w, "again", nil)
	v1 := rerun(t, w, "again", december)
	first := s.settled(t, v1, snapshot.Published)
	month := fmt.Sprintf("/snapshots/months/%s/again/%s", w, december)
	s.define(t, w, "again", slowly(spin))
	v2 := rerun(t, w, "again", december)
	for what, path := range map[string]string{"a rerun": month + "/versions", "a roll back": "/snapshots/runs/" + v1 + "/roll-back"} {
		status, b := call(t, "admin", "POST", path, reasoned, "Idempotency-Key", fresh())
		var problem struct{ Current struct{ Run string } }
		if err := json.Unmarshal(b, &problem); status != 409 || err != nil || problem.Current.Run != v2 {
			t.Errorf("%s: %d %s; want 409 that names %s", what, status, b, v2)
		}
	}
	s.settled(t, v2, snapshot.Published)
	shown := func() (m snapshot.Manifest) {
		t.Helper()
		if b := must(t, "GET", month+"/manifest", nil); json.Unmarshal(b, &m) != nil {
			t.Fatalf("the manifest is %s", b)
		}
		return m
	}
	if v := shown().Version; v != 2 || s.current(t, first.Period) != 2 {
		t.Fatalf("the manifest is of version %d; want 2", v)
	}
	act(t, v1, "roll-back")
	if m := shown(); m.Version != 1 || m.Run != v1 || s.current(t, first.Period) != 1 {
		t.Fatalf("the manifest is of version %d after the roll back; want 1", m.Version)
	}
	// The same key asks for the same version.
	key := fresh()
	var ids [2]string
	for i := range ids {
		var v struct {
			ID string `json:"id"`
		}
		if b := must(t, "POST", month+"/versions", reasoned, "Idempotency-Key", key); json.Unmarshal(b, &v) != nil {
			t.Fatalf("%s", b)
		}
		ids[i] = v.ID
	}
	if ids[0] != ids[1] || ids[0] != w+"_again_2013-12_v3" {
		t.Errorf("one key made %v; want version 3 twice", ids)
	}
	s.settled(t, ids[0], snapshot.Published)
}

// N2: four of five slots are taken, six months wait, two dispatchers come at once: one more is claimed.
func TestN2TwoDispatchersAtACapClaimOne(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, 5, 0, 1)
	w := s.workspaces[0]
	var ids []string
	for i := range 10 {
		typ := fmt.Sprint("busy-", i)
		s.define(t, w, typ, slowly(2*spin)) // busy for longer than the test looks
		ids = append(ids, rerun(t, w, typ, december))
	}
	for _, id := range ids[:4] {
		s.claim(t, id)
	}
	release()
	tallies := make(chan int, 2)
	for range 2 {
		go func() {
			b, err := quietly("SnapshotDispatchFunction")
			var tally snapshot.DispatchTally
			if err != nil || json.Unmarshal(b, &tally) != nil || tally.Errors > 0 {
				t.Errorf("a dispatcher said %s, %v", b, err)
			}
			tallies <- tally.Claimed
		}()
	}
	claimed := <-tallies + <-tallies
	// The minute's own tick may have claimed it; nobody more than that.
	if c := s.caps(t); claimed > 1 || len(c.Slots) != 5 {
		t.Errorf("two dispatchers claimed %d, slots %v; want one claim and five slots", claimed, c.Slots)
	}
	hold(t)
	for _, id := range ids {
		if r := s.run(t, id); !r.Final() {
			if r.Failures > 0 {
				t.Errorf("%s has %d failures; a refused claim is no failed attempt", id, r.Failures)
			}
			act(t, id, "cancel")
		}
	}
}
