package schedule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// check asserts what must hold of a run whatever happened on its way; recipients are spelled as in definition.
func (w *world) check(id string, recipients ...string) error {
	r := w.run(id)
	if !r.Settled() {
		return fmt.Errorf("the run is %s", r.State)
	}
	for _, it := range w.db.Items("Schedules") {
		if text(it, schema.OpenShard) != "" {
			return fmt.Errorf("%s / %s is still in the open-run index", text(it, schema.PK), text(it, schema.SK))
		}
	}
	if r.LeaseOwner != "" {
		return fmt.Errorf("a settled run has a lease")
	}
	if s := w.schedule(r.Schedule); s.OpenRun != "" || s.LastRun != r.Occurrence {
		return fmt.Errorf("the schedule says open_run %q, last run %q", s.OpenRun, s.LastRun)
	}
	if r.File != nil {
		sum := sha256.Sum256([]byte(w.object(r.File.Key)))
		if hex.EncodeToString(sum[:]) != r.File.SHA256 {
			return fmt.Errorf("the object's digest is not the recorded one")
		}
	}
	if n := len(w.objects()); n > r.Attempts {
		return fmt.Errorf("%d objects of %d attempts", n, r.Attempts)
	}
	byAddress := map[string]schedule.Submission{}
	for _, s := range w.subs(id) {
		byAddress[s.Recipient] = s
	}
	submitted, skipped := 0, 0
	for _, name := range recipients {
		var err error
		var s schedule.Submission
		if strings.Contains(name, "@") {
			s = byAddress[name]
			err = w.checkMail(r, s, name)
		} else {
			s = byAddress[w.hooks.address(name)]
			err = w.checkPosts(r, s, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch s.State {
		case schedule.Submitted:
			submitted++
		case schedule.NotDelivered:
			skipped++
		case "":
			if r.File != nil {
				return fmt.Errorf("%s has no submission although a file is recorded", name)
			}
		}
	}
	// An answer that comes after a run failed as delivery_unknown is recorded on its submission; the run's counts stay.
	late := r.ErrorCode == string(failure.DeliveryUnknown) && submitted == r.Submitted+1
	if r.Submitted != submitted && !late || r.SkippedN != skipped {
		return fmt.Errorf("the run counts %d submitted and %d skipped; the rows are %d and %d", r.Submitted, r.SkippedN, submitted, skipped)
	}
	if r.State == schedule.Succeeded && submitted+skipped != len(recipients) {
		return fmt.Errorf("succeeded with %d outcomes of %d", submitted+skipped, len(recipients))
	}
	return nil
}

func (w *world) checkMail(r schedule.Run, s schedule.Submission, name string) error {
	got := len(w.mail.to(name))
	switch {
	case got > 1:
		return fmt.Errorf("%d mails", got)
	case s.State == schedule.Pending:
		return fmt.Errorf("pending in a settled run")
	case s.State == schedule.Submitted && got != 1:
		return fmt.Errorf("submitted, and %d mails", got)
	case (s.State == schedule.NotSent || s.State == schedule.NotDelivered || s.State == "") && got != 0:
		return fmt.Errorf("%s, and %d mails", s.State, got)
	case s.State == schedule.Unknown && r.State != schedule.Failed:
		return fmt.Errorf("unknown, and the run %s", r.State)
	}
	return nil
}

func (w *world) checkPosts(_ schedule.Run, s schedule.Submission, name string) error {
	got := w.hooks.to(name)
	for _, p := range got {
		if p.key != got[0].key || p.body != got[0].body || p.key == "" {
			return fmt.Errorf("two tries differ: %q %q and %q %q", got[0].key, got[0].body, p.key, p.body)
		}
	}
	switch n := taken(got); {
	case s.State == schedule.Pending:
		return fmt.Errorf("pending in a settled run")
	case s.State == schedule.Submitted && n == 0:
		return fmt.Errorf("submitted, and nothing was taken")
	case (s.State == schedule.NotSent || s.State == schedule.NotDelivered || s.State == "") && n != 0:
		return fmt.Errorf("%s, and taken %d times", s.State, n)
	}
	return nil
}

// oneRun is one occurrence, with time until all is quiet.
func oneRun(t testing.TB, p path, f func(outside) fault) (w *world, run string) {
	w = newWorld(t, p.options...)
	w.step = 5 * time.Second
	d := w.definition("s", recipients3...)
	for id, members := range p.groups {
		w.group(id, members...)
	}
	if p.define != nil {
		p.define(&d)
	}
	w.apply(d)
	if p.told != "" {
		w.telling(&d)
		w.apply(d)
		w.set(schema.ScheduleKey("s"), schema.Streak, &dynamotypes.AttributeValueMemberN{Value: strconv.Itoa(p.streak)})
	}
	if p.prepare != nil {
		p.prepare(w)
	}
	own := w.faults.plan
	w.faults.plan = func(c outside) fault {
		if f != nil {
			if k := f(c); k != none {
				return k
			}
		}
		if own != nil {
			return own(c)
		}
		return none
	}
	w.to(firstDue)
	w.quiet()
	return w, schema.RunID("s", schedule.OccurrenceKey(firstDue))
}

var recipients3 = []string{"a@example.com", "b", "c"}

// path is a way that one run can go, and how it may end when one thing more goes wrong.
type path struct {
	name    string
	options []option
	define  func(*schedule.Definition)
	prepare func(*world)
	groups  map[string][]string // saved before the schedule, by id
	state   schedule.RunState   // without a fault
	code    failure.Code
	other   []failure.Code // with one
	streak  int            // of the schedule before
	told    string         // the one notice that boss@example.com and the receiver n get where the run ends as without a fault
}

var unknownToo = []failure.Code{failure.DeliveryUnknown}

var paths = []path{
	{name: "happy", state: schedule.Succeeded, other: unknownToo},
	{name: "retried", state: schedule.Succeeded, other: unknownToo, prepare: func(w *world) {
		w.hooks.answer = answers("b", status(503), reply{cut: true}, ok())
		w.mail.answer = func(_ string, n int) error {
			if n == 1 {
				return coded("Throttling", "Maximum sending rate exceeded.")
			}
			return nil
		}
	}},
	{name: "yields", state: schedule.Succeeded, other: unknownToo, prepare: func(w *world) {
		w.hooks.during = func(string, int) { w.advance(deliverTime - 10*time.Second) }
	}},
	{name: "a group", state: schedule.Succeeded, other: unknownToo, define: func(d *schedule.Definition) {
		d.Recipients = []schedule.Recipient{d.Recipients[2], {Group: "managers"}}
	}, groups: map[string][]string{"managers": {"a@example.com", "b", "c"}}},
	{name: "a list apart", state: schedule.Succeeded, other: unknownToo, prepare: func(w *world) { w.apart("s", 1) }},
	{name: "a list that is gone", state: schedule.Failed, code: failure.DefinitionInvalid, prepare: func(w *world) { w.gone(w.apart("s", 1)) }},
	{name: "gives up in two invocations", state: schedule.Failed, code: failure.SenderRefused, other: unknownToo, prepare: func(w *world) {
		w.mail.answer = func(string, int) error { return coded("AccountSendingPausedException", "paused") }
		w.faults.plan = func(c outside) fault {
			if c.inv.kind == "deliver" && c.name == "DynamoDB.PutItem" { // the first intent, then those who are given up
				w.advance(deliverTime/2 - 1500*time.Millisecond)
			}
			return none
		}
	}},
	{name: "D10 waits for its turn", options: []option{mailRate(1)}, state: schedule.Succeeded, other: unknownToo, prepare: func(w *world) {
		w.taken(firstDue.Add(20 * time.Second))
	}},
	{name: "D10 no turn in time", options: []option{mailRate(1)}, state: schedule.Succeeded, other: unknownToo, prepare: func(w *world) {
		w.taken(firstDue.Add(8 * time.Minute))
	}},
	{name: "wrong query", state: schedule.Failed, code: failure.QueryInvalid, define: func(d *schedule.Definition) { d.Query = "SELECT nothing" }},
	{name: "D14 first failure", told: "failed", state: schedule.Failed, code: failure.QueryInvalid, define: func(d *schedule.Definition) { d.Query = "SELECT nothing" }},
	{name: "D14 pause", told: "paused", streak: 4, state: schedule.Failed, code: failure.QueryInvalid, define: func(d *schedule.Definition) {
		d.Query = "SELECT nothing"
		pauseAfter(d, 5)
	}},
	{name: "D14 recovery", told: "recovered", streak: 4, state: schedule.Succeeded, other: unknownToo},
	{name: "D14 told by the sweep", told: "failed", options: []option{maxReceive(2)}, state: schedule.Failed, code: failure.NeverStarted, other: []failure.Code{failure.AttemptsExhausted}, prepare: func(w *world) {
		run := schema.RunID("s", schedule.OccurrenceKey(firstDue))
		w.faults.plan = func(c outside) fault {
			if c.inv.kind == "deliver" && !w.run(run).Settled() {
				return dieBefore
			}
			return none
		}
	}},
	{name: "empty", state: schedule.Skipped, define: func(d *schedule.Definition) {
		d.Query, d.Empty = "SELECT id FROM flights WHERE id > 99", schedule.SuppressEmpty
	}},
	{name: "sender refused", state: schedule.Failed, code: failure.SenderRefused, other: unknownToo, prepare: func(w *world) {
		w.mail.answer = func(string, int) error { return coded("AccountSendingPausedException", "paused") }
	}},
	{name: "never started", options: []option{maxReceive(2)}, state: schedule.Failed, code: failure.NeverStarted, other: []failure.Code{failure.AttemptsExhausted}, prepare: func(w *world) {
		w.faults.plan = func(c outside) fault {
			if c.inv.kind == "deliver" {
				return dieBefore
			}
			return none
		}
	}},
	{name: "dies always", state: schedule.Failed, code: failure.AttemptsExhausted, other: unknownToo, prepare: func(w *world) {
		w.faults.plan = func(c outside) fault {
			if c.name == "Webhook.Send" {
				return dieAfter
			}
			return none
		}
	}},
}

// The heart: whatever dies, is lost or is sent twice at whichever call, the world comes to rest with every promise kept.
func TestDeathAtEveryCall(t *testing.T) {
	var total atomic.Int64
	t.Cleanup(func() { t.Logf("%d worlds in all", total.Load()) })
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w, run := oneRun(t, p, nil)
			w.wantState(run, p.state, p.code)
			if err := p.judge(w, w.run(run)); err != nil {
				t.Fatal(err)
			}
			calls := append([]string{}, w.faults.log...)
			outcomes, ran := map[string]int{}, 0
			for n := 1; n <= len(calls); n++ {
				if p.name != "happy" && strings.HasSuffix(calls[n-1], ".Query") && n > 3 || len(calls) > 150 && n%3 != 1 {
					continue // a tick's reads of its index shards are alike, and so are the rounds of a long path
				}
				for f, kind := range kinds {
					ran++
					w, run := oneRun(t, p, nth(n, f))
					name := fmt.Sprintf("%s at call %d (%s)", kind, n, calls[n-1])
					r := w.run(run)
					outcomes[strings.TrimSpace(string(r.State)+" "+r.ErrorCode)]++
					if err := p.judge(w, r); err != nil {
						t.Fatalf("%s: %v\n%s", name, err, w.dump())
					}
					w.hooks.server.Close()
				}
			}
			total.Add(int64(ran))
			t.Logf("%d calls, %d worlds came to rest: %v", len(calls), ran, outcomes)
		})
	}
}

// judge says whether a world in which one thing more went wrong came to a right end.
func (p path) judge(w *world, r schedule.Run) error {
	if err := w.check(r.ID(), recipients3...); err != nil {
		return err
	}
	code := failure.Code(r.ErrorCode)
	if (r.State != p.state || code != p.code) && (r.State != schedule.Failed || !slices.Contains(p.other, code)) {
		return fmt.Errorf("the run is %s %s", r.State, r.ErrorCode)
	}
	if code == failure.DeliveryUnknown && w.sub(r.ID(), "a@example.com").State != schedule.Unknown {
		return fmt.Errorf("delivery_unknown, and no mail is unknown")
	}
	streak := 0
	if r.State == schedule.Failed {
		streak = p.streak + 1
	}
	if s := w.schedule("s"); s.Streak != streak {
		return fmt.Errorf("streak %d, want %d", s.Streak, streak)
	}
	if p.told == "" {
		return nil
	}
	return w.checkTold(p.told, r.State == p.state)
}

// checkTold asserts that an event was told at least once, and under one id; or not at all where it did not come about.
func (w *world) checkTold(kind string, came bool) error {
	want, ids := []string(nil), map[string]bool{}
	if came {
		want = []string{kind}
	}
	if got := w.toldOf(w.t); !slices.Equal(got, want) {
		return fmt.Errorf("the receiver was told %v, want %v", got, want)
	}
	letters := w.mail.to("boss@example.com")
	for _, l := range letters {
		header, _, _ := l.parts(w.t)
		ids[header.Get("X-Almanac-Notice")+string(l.raw)] = true
	}
	if len(ids) != len(want) {
		return fmt.Errorf("%d mails of %d different contents, want %d", len(letters), len(ids), len(want))
	}
	if n := w.left(); n > 0 {
		return fmt.Errorf("%d notices are left", n)
	}
	return nil
}
