package schedule_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/channel/webhook"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// telling has a definition tell the mail address boss@example.com and the receiver n.
func (w *world) telling(d *schedule.Definition) {
	d.Notify = []schedule.Recipient{{Email: "boss@example.com"}, {Webhook: w.hooks.address("n"), Secret: "ops"}}
}

func pauseAfter(d *schedule.Definition, n int) { d.PauseAfter = &n }

// toldOf decodes what the receiver n took: the type of each notice once, however often it came, in the order of arrival.
func (w *world) toldOf(t testing.TB) (types []string) {
	t.Helper()
	seen := map[string]string{}
	for _, p := range w.hooks.to("n") {
		if body, ok := seen[p.key]; ok && body != p.body {
			t.Errorf("two tries of notice %s differ:\n%s\n%s", p.key, body, p.body)
		}
		if !p.taken {
			continue
		}
		if _, ok := seen[p.key]; ok {
			continue
		}
		seen[p.key] = p.body
		var n webhook.NoticePayload
		if err := json.Unmarshal([]byte(p.body), &n); err != nil {
			t.Fatalf("%s: %v", p.body, err)
		}
		types = append(types, strings.TrimPrefix(n.Type, "schedule."))
	}
	return types
}

// left counts the notices in the outbox.
func (w *world) left() (n int) {
	for _, it := range w.db.Items("Schedules") {
		if strings.HasPrefix(text(it, schema.SK), schema.OutPrefix) {
			n++
		}
	}
	return n
}

func TestV5PauseAndNotices(t *testing.T) {
	w := newWorld(t)
	good := w.definition("s", "a@x.com")
	good.Recurrence.Cron = hourly
	w.telling(&good)
	pauseAfter(&good, 5)
	bad := good
	bad.Query = "SELECT nothing FROM flights"
	w.apply(bad)
	hour := 0
	due := func() {
		t.Helper()
		hour++
		w.to(start.Add(time.Duration(hour) * time.Hour))
		w.quiet()
	}
	manual := func(key string) {
		t.Helper()
		w.advance(time.Minute)
		if _, fresh, err := w.editor.RunNow(ctx, "s", "ann", key, "h"); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		w.quiet()
	}
	stands := func(streak int, state schedule.State, told ...string) {
		t.Helper()
		s := w.schedule("s")
		if s.Streak != streak || s.State != state {
			t.Fatalf("streak %d, %s; want %d, %s\n%s", s.Streak, s.State, streak, state, w.dump())
		}
		if got := w.toldOf(t); !slices.Equal(got, told) {
			t.Fatalf("told %v, want %v", got, told)
		}
		if n := len(w.mail.to("boss@example.com")); n != len(told) {
			t.Fatalf("%d mails, want %d", n, len(told))
		}
		if w.left() > 0 {
			t.Fatalf("%d notices are left", w.left())
		}
	}
	for n := 1; n <= 4; n++ {
		due()
		stands(n, schedule.Active, "failed")
	}
	manual("1")
	stands(5, schedule.Active, "failed") // a manual run never pauses
	w.apply(good)
	manual("2")
	stands(0, schedule.Active, "failed", "recovered")
	w.apply(bad)
	told := []string{"failed", "recovered", "failed"}
	for n := 1; n <= 4; n++ {
		due()
		stands(n, schedule.Active, told...)
	}
	due()
	told = append(told, "paused")
	stands(5, schedule.Paused, told...)
	if s := w.schedule("s"); s.PauseReason != schedule.PausedByFailures || s.PausedBy != schedule.System || !s.NextDue.IsZero() {
		t.Fatalf("%+v", s)
	}
	// A run by hand still works on a schedule that failures paused; its failure tells nothing new.
	manual("3")
	stands(6, schedule.Paused, told...)
	// A person's resume leaves the streak: the next failure of a due occurrence pauses again, and says so.
	hour++
	w.to(start.Add(time.Duration(hour) * time.Hour).Add(time.Minute))
	if _, err := w.editor.Resume(ctx, "s", "mended, I think", "ann"); err != nil {
		t.Fatal(err)
	}
	stands(6, schedule.Active, told...)
	due()
	told = append(told, "paused")
	stands(7, schedule.Paused, told...)
	w.apply(good)
	manual("4")
	stands(0, schedule.Paused, append(told, "recovered")...)
	posts := w.hooks.to("n")
	if last := posts[len(posts)-1].body; !strings.Contains(last, `"pause_reason":"failures"`) {
		t.Errorf("a success by hand resumes nothing, and the notice must say so: %s", last)
	}
}

// What a notice says, in both channels.
func TestNoticesSayWhatHappenedAndWhatHelps(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com")
	d.Name, d.Query = "Delayed dépârtures", "SELECT nothing FROM flights"
	w.telling(&d)
	run := w.admitted(d)
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.QueryInvalid)
	posts, letters := w.hooks.to("n"), w.mail.to("boss@example.com")
	if len(posts) != 1 || len(letters) != 1 {
		t.Fatalf("%d requests, %d mails", len(posts), len(letters))
	}
	entry, _ := failure.Lookup(failure.QueryInvalid)
	var got webhook.NoticePayload
	if err := json.Unmarshal([]byte(posts[0].body), &got); err != nil {
		t.Fatal(err)
	}
	want := webhook.NoticePayload{Type: "schedule.failed", Timestamp: r.SettledAt.Truncate(time.Second), Data: webhook.NoticeData{
		Schedule: webhook.Schedule{ID: "s", Name: d.Name}, Workspace: "EWR", Run: run, Occurrence: r.Occurrence, NominalTime: firstDue, Zone: "UTC",
		Owner: "ops@example.com", Streak: 1,
		Failure: &webhook.Failure{Code: "query_invalid", Message: r.ErrorText, Meaning: entry.Meaning, Remedy: entry.Remedy}}}
	if fmt.Sprintf("%+v %+v", got, got.Data.Failure) != strings.ReplaceAll(fmt.Sprintf("%+v %+v", want, want.Data.Failure), fmt.Sprintf("%p", want.Data.Failure), fmt.Sprintf("%p", got.Data.Failure)) {
		t.Errorf("body %s\nwant %+v", posts[0].body, want)
	}
	hash := schedule.Targets(d.Notify)[1].Hash
	if id := run + "#failed#webhook#" + hash; posts[0].key != id {
		t.Errorf("webhook-id %q, want %q", posts[0].key, id)
	}
	header, text, _ := letters[0].parts(t)
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if err != nil || subject != "Delayed dépârtures failed: query_invalid" {
		t.Errorf("subject %q %v", subject, err)
	}
	if id := header.Get("X-Almanac-Notice"); id != run+"#failed#email#"+schedule.Targets(d.Notify)[0].Hash || header.Get("Message-Id") == "" {
		t.Errorf("notice %q, message id %q", id, header.Get("Message-Id"))
	}
	for _, part := range []string{run, "query_invalid", entry.Meaning, entry.Remedy, "1 failure", "ops@example.com", "almanac show " + run, r.ErrorText} {
		if !strings.Contains(text, part) {
			t.Errorf("the mail does not say %q:\n%s", part, text)
		}
	}
}

// What a receiver does not take is sent again, from equal facts under the same key, until it takes it or refuses it.
func TestNoticesAreKeptUntilTheyAreTaken(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer []reply
		posts  int
		told   bool
		counts map[string]int
	}{
		{"503, then taken", []reply{status(http.StatusServiceUnavailable), status(http.StatusServiceUnavailable), ok()}, 3, true, map[string]int{"notices kept": 2, "notices sent": 2}},
		{"429, then taken", []reply{{status: 429, retryAfter: "60"}, ok()}, 2, true, map[string]int{"notices kept": 1}},
		{"answer lost, then taken", []reply{{cut: true}, ok()}, 2, true, map[string]int{"notices kept": 1, "notices sent": 2}},
		{"gone", []reply{status(http.StatusGone)}, 1, false, map[string]int{"notices refused": 1, "notices sent": 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "a@x.com")
			d.Query = "SELECT nothing FROM flights"
			w.telling(&d)
			w.hooks.answer = answers("n", row.answer...)
			run := w.admitted(d)
			w.quiet()
			w.wantState(run, schedule.Failed, failure.QueryInvalid)
			posts := w.hooks.to("n")
			if len(posts) != row.posts || (len(w.toldOf(t)) == 1) != row.told || w.left() != 0 {
				t.Fatalf("%d requests, told %v, %d left", len(posts), w.toldOf(t), w.left())
			}
			for i := 1; i < len(posts); i++ {
				if wait := posts[i].at.Sub(posts[i-1].at); wait < 4*time.Minute || wait > time.Hour {
					t.Errorf("try %d came after %s", i+1, wait)
				}
			}
			if n := len(w.mail.to("boss@example.com")); n != 1 {
				t.Errorf("%d mails; the other address has nothing to do with it", n)
			}
			for _, secret := range []string{"example.com", w.hooks.server.URL, signingSecret} {
				if strings.Contains(w.log.text(), secret) {
					t.Errorf("%q stands in the log", secret)
				}
			}
			for name, n := range row.counts {
				if w.counts[name] != n {
					t.Errorf("%s: %d, want %d", name, w.counts[name], n)
				}
			}
		})
	}
}

func TestNoticesWaitWhileSendingIsOff(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing FROM flights"
	w.telling(&d)
	w.admitted(d)
	off, on := false, true
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "DynamoDB.TransactWriteItems" {
			if _, err := w.editor.Switch(ctx, schedule.Switches{Send: &off}, "incident", "ann"); err != nil {
				t.Error(err)
			}
		}
		return none
	}
	w.deliver()
	w.faults.plan = nil
	w.pass(2 * time.Hour)
	if len(w.hooks.to("n"))+len(w.mail.kept) != 0 || w.left() != 2 {
		t.Fatalf("%d left, mails %v", w.left(), w.mail.kept)
	}
	// A message that was under way when sending was switched off sends nothing either.
	w.raw(schedule.EncodeNotice(w.notices()[0]))
	w.deliver()
	if len(w.hooks.to("n"))+len(w.mail.kept) != 0 || w.left() != 2 {
		t.Fatalf("%d left after a message", w.left())
	}
	if _, err := w.editor.Switch(ctx, schedule.Switches{Send: &on}, "over", "ann"); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	if got := w.toldOf(t); !slices.Equal(got, []string{"failed"}) || len(w.mail.to("boss@example.com")) != 1 {
		t.Errorf("told %v", got)
	}
}

// notices lists the ids in the outbox.
func (w *world) notices() (ids []string) {
	for _, it := range w.db.Items("Schedules") {
		if id, ok := strings.CutPrefix(text(it, schema.SK), schema.OutPrefix); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// An address that the stage must not send to, or that bounced, is not told; the notice does not come back for it.
func TestNoticesGoOnlyWhereTheStageMaySend(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing FROM flights"
	w.telling(&d)
	d.Notify = append(d.Notify, schedule.Recipient{Email: "stranger@elsewhere.test"}, schedule.Recipient{Email: "bounced@example.com"})
	w.must(w.store.Suppress(ctx, schedule.Suppression{Channel: channel.Email, RecipientHash: schedule.Targets(d.Notify)[3].Hash, Reason: "bounce", At: w.wall()}))
	w.deliverer.Allowed = boot.AllowList([]string{"example.com", "127.0.0.1"})
	w.admitted(d)
	w.quiet()
	if len(w.mail.kept) != 1 || w.mail.kept[0].to != "boss@example.com" || len(w.toldOf(t)) != 1 || w.left() != 0 {
		t.Fatalf("mails %v, told %v, %d left", w.mail.kept, w.toldOf(t), w.left())
	}
	if w.counts["notices refused"] != 2 || w.counts["notices sent"] != 2 {
		t.Errorf("counts %v", w.counts)
	}
}

// Of two workers that come to settle one run the second is refused, and tells nobody; so is one that was frozen while it
// told, and wakes when another has.
func TestD14OnlyTheSettleThatLandedTells(t *testing.T) {
	world := func() (*world, string) {
		w := newWorld(t)
		d := w.definition("s", "b")
		d.Query = "SELECT nothing FROM flights"
		w.telling(&d)
		return w, w.admitted(d)
	}
	w, _ := world()
	w.faults.log = nil
	w.deliver()
	calls := slices.DeleteFunc(w.faults.log, func(name string) bool { return !strings.HasPrefix(name, "deliver ") })
	for n, name := range calls {
		t.Run(fmt.Sprintf("frozen at call %d, %s", n+1, name), func(t *testing.T) {
			w, run := world()
			inv, ms := w.invoke("deliver", deliverTime), w.receive(w.queue.URL)
			z, held := w.freeze(inv, n+1, func() { w.consume(inv, ms) })
			if !held {
				t.Fatal("it was not held")
			}
			w.advance(deliverTime + 2*time.Minute)
			w.pass(time.Hour)
			w.wantState(run, schedule.Failed, failure.QueryInvalid)
			z.release()
			w.quiet()
			if s := w.schedule("s"); s.Streak != 1 {
				t.Errorf("streak %d: the counter hangs on the one settle", s.Streak)
			}
			if err := w.checkTold("failed", true); err != nil {
				t.Error(err)
			}
		})
	}
}

// schedule-exhaust settles and holds no client of a channel: what it has to tell the sweep has sent.
func TestNoticesOfTheExhaustConsumerAreSentByTheSweep(t *testing.T) {
	w := newWorld(t, maxReceive(1), timing(func(x *schedule.Timing) { x.NeverStarted = 1 }))
	d := w.definition("s", "b")
	w.telling(&d)
	run := w.admitted(d)
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.inv.calls == 1 && w.run(run).State == schedule.Queued {
			return dieBefore
		}
		return none
	}
	w.deliver()
	w.advance(visibility)
	for !w.exhaust() {
		w.deliver()
	}
	w.wantState(run, schedule.Failed, failure.NeverStarted)
	if w.left() != 2 || len(w.mail.kept) != 0 {
		t.Fatalf("%d notices wait, mails %v", w.left(), w.mail.kept)
	}
	w.quiet()
	if got := w.toldOf(t); !slices.Equal(got, []string{"failed"}) || len(w.mail.to("boss@example.com")) != 1 || w.left() != 0 {
		t.Errorf("told %v, %d left", got, w.left())
	}
}

// outboxOf makes a world whose one failed run left two notices to the sweep.
func outboxOf(t *testing.T, options ...option) *world {
	w := newWorld(t, options...)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing FROM flights"
	w.telling(&d)
	w.admitted(d)
	announcers := w.deliverer.Notices
	w.deliverer.Notices = nil
	w.deliver()
	w.deliverer.Notices = announcers
	if w.left() != 2 {
		t.Fatalf("%d notices\n%s", w.left(), w.dump())
	}
	return w
}

func TestTheSweepOffersANoticeOnceWhenItsTimeHasCome(t *testing.T) {
	w := outboxOf(t)
	w.advance(5*time.Minute - time.Second)
	if tally := w.tick(); tally.Notices != 0 {
		t.Fatalf("%+v before their worker's time is over", tally)
	}
	w.advance(time.Second)
	var both sync.WaitGroup
	tallies := make([]schedule.Tally, 2)
	for i := range tallies {
		inv := w.invoke("dispatch", dispatchTime)
		both.Go(func() { tallies[i], _ = w.dispatcher.Tick(inv) })
	}
	both.Wait()
	if n := tallies[0].Notices + tallies[1].Notices; n != 2 || w.messages(w.queue.URL) != 2 {
		t.Errorf("two ticks at once sent %d messages, %d are there; want 2", n, w.messages(w.queue.URL))
	}
	// Nobody works on them: each next message comes later, at most an hour after the one before.
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		w.advance(wait*time.Minute - time.Second)
		if tally := w.tick(); tally.Notices != 0 {
			t.Fatalf("%+v too early, %d min after the last", tally, wait)
		}
		w.advance(time.Second)
		if tally := w.tick(); tally.Notices != 2 {
			t.Fatalf("%+v, %d min after the last", tally, wait)
		}
	}
	w.drain() // all copies: the first sends, the others find nothing
	if got := w.hooks.to("n"); len(got) != 1 || len(w.mail.to("boss@example.com")) != 1 || w.left() != 0 {
		t.Errorf("%d requests, %d mails, %d left", len(got), len(w.mail.kept), w.left())
	}
}

func TestNoNoticeIsOfferedWhileTheBacklogIsLong(t *testing.T) {
	w := outboxOf(t, timing(func(x *schedule.Timing) { x.Backlog = 1 }))
	w.raw("x")
	w.raw("y")
	w.advance(time.Hour)
	if tally := w.tick(); tally.Notices != 0 || tally.Backlog != 2 {
		t.Fatalf("%+v", tally)
	}
	w.receive(w.queue.URL)
	if tally := w.tick(); tally.Notices != 2 {
		t.Fatalf("%+v", tally)
	}
}

// A notice that nobody takes is said to be on its last try before TTL takes it.
func TestANoticeThatNobodyTakesIsReported(t *testing.T) {
	w := outboxOf(t)
	w.hooks.answer = answers("n", status(503))
	w.pass(time.Hour)
	if w.left() != 1 || w.counts["notices expiring"] != 0 {
		t.Fatalf("%d left, counts %v", w.left(), w.counts)
	}
	w.advance(schedule.NoticeLife - 2*time.Hour)
	w.pass(2 * time.Hour)
	if w.counts["notices expiring"] == 0 || !strings.Contains(w.log.text(), "this is its last try") {
		t.Errorf("counts %v", w.counts)
	}
	w.hooks.server.Close()
}

func TestADeadLetterOfANoticeIsLeftToTheSweep(t *testing.T) {
	w := outboxOf(t)
	_, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.dlq, MessageBody: aws.String(schedule.EncodeNotice(w.notices()[0]))})
	w.must(err)
	w.exhaust()
	if dead, err := w.store.DeadLetters(ctx); err != nil || len(dead) != 0 || w.messages(w.dlq) != 0 || w.left() != 2 {
		t.Fatalf("%v %v, %d messages, %d left", dead, err, w.messages(w.dlq), w.left())
	}
	w.quiet()
	if len(w.toldOf(t)) != 1 || w.left() != 0 {
		t.Errorf("told %v, %d left", w.toldOf(t), w.left())
	}
}

// A worker without time leaves its notices to the sweep: the settle stands, and nothing holds its message up.
func TestAWorkerWithoutTimeLeavesItsNotices(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing FROM flights"
	w.telling(&d)
	run := w.admitted(d)
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "DynamoDB.TransactWriteItems" {
			w.advance(deliverTime - 10*time.Second)
		}
		return none
	}
	w.deliver()
	w.faults.plan = nil
	w.wantState(run, schedule.Failed, failure.QueryInvalid)
	if w.left() != 2 || len(w.mail.kept) != 0 || w.messages(w.queue.URL) != 0 {
		t.Fatalf("%d left, %d mails, %d messages", w.left(), len(w.mail.kept), w.messages(w.queue.URL))
	}
	w.quiet()
	if len(w.toldOf(t)) != 1 || len(w.mail.to("boss@example.com")) != 1 {
		t.Errorf("told %v", w.toldOf(t))
	}
}

// The figures: an ordinary success costs what it did, whoever would be told of a failure; a failure that is told costs
// its notices.
func TestUnitsOfASettleThatTells(t *testing.T) {
	units := func(query string, tell bool) (write, read float64, calls int) {
		w := newWorld(t)
		d := w.definition("s", "a@x.com")
		if query != "" {
			d.Query = query
		}
		if tell {
			w.telling(&d)
		}
		w.apply(d)
		w.to(firstDue)
		w.tick()
		before := w.db.Units()
		w.deliver()
		u := w.db.Units().Since(before).Total()
		return u.TableWrite, u.TableRead, u.Calls
	}
	quietWrite, _, quietCalls := units("", false)
	write, read, calls := units("", true)
	if write != quietWrite || calls != quietCalls {
		t.Errorf("a success that would have been told costs %.0f write units in %d calls, one that would not %.0f in %d", write, calls, quietWrite, quietCalls)
	}
	t.Logf("%-34s %6s %6s %6s", "delivery, one recipient", "write", "read", "calls")
	t.Logf("%-34s %6.0f %6.1f %6d", "success", write, read, calls)
	untold, r0, c0 := units("SELECT nothing FROM flights", false)
	t.Logf("%-34s %6.0f %6.1f %6d", "failure, nobody named", untold, r0, c0)
	told, r2, c2 := units("SELECT nothing FROM flights", true)
	t.Logf("%-34s %6.0f %6.1f %6d", "failure, two told and deleted", told, r2, c2)
	// In the transaction 2 units for each notice, which has less than one KB; 1 for each deletion; 1 for the mail's turn to
	// send. Calls: a look and a deletion each; the mail's turn is read and taken.
	if told-untold != 7 || c2-c0 != 6 {
		t.Errorf("two notices cost %.0f write units and %d calls, want 7 and 6", told-untold, c2-c0)
	}
}

// The pure rule, at its edges.
func TestEffectOfTells(t *testing.T) {
	s := schedule.Schedule{ID: "s", State: schedule.Active, LastRunNominal: start, Streak: 4}
	r := schedule.Run{Schedule: "s", Occurrence: "o", Nominal: start.Add(time.Minute), State: schedule.Running}
	fail := schedule.Outcome{Event: schedule.Fail, Code: failure.QueryInvalid}
	limit := func(n int) schedule.Definition { return schedule.Definition{PauseAfter: &n} }
	manual := r
	manual.Manual = true
	for _, row := range []struct {
		name  string
		d     schedule.Definition
		run   schedule.Run
		pause string
		kind  channel.NoticeKind
	}{
		{"below", limit(6), r, "", ""},
		{"at", limit(5), r, "failures", channel.NoticePaused},
		{"beyond, the limit was lowered", limit(1), r, "failures", channel.NoticePaused},
		{"never", limit(schedule.NeverPause), r, "", ""},
		{"by hand", limit(5), manual, "", ""},
		{"default", schedule.Definition{}, r, "", ""},
	} {
		if e := schedule.EffectOf(s, row.d, row.run, fail); e.Pause != row.pause || e.Notice != row.kind || !e.NeedsDefinition() {
			t.Errorf("%s: %+v", row.name, e)
		}
	}
	s.Streak = 0
	if e := schedule.EffectOf(s, limit(1), r, schedule.Outcome{Event: schedule.Succeed}); e.NeedsDefinition() || e.Notice != "" {
		t.Errorf("an ordinary success asks for the definition: %+v", e)
	}
}
