package schedule_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func TestV1OnlyTheOneThatFailedIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@example.com", "b", "c"))
	w.hooks.answer = answers("b", status(http.StatusServiceUnavailable), ok())
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if r.Attempts != 2 || r.Submitted != 3 || r.SkippedN != 0 {
		t.Errorf("%d attempts, %d submitted, %d skipped; want 2, 3, 0", r.Attempts, r.Submitted, r.SkippedN)
	}
	for name, want := range map[string]int{"b": 2, "c": 1} {
		if got := w.hooks.to(name); len(got) != want || taken(got) != 1 {
			t.Errorf("D7: %s was asked %d times and took %d; want %d and 1", name, len(got), taken(got), want)
		}
	}
	if n := len(w.mail.to("a@example.com")); n != 1 {
		t.Errorf("%d mails", n)
	}
	if n := w.s3.Requests()["PutObject"]; n != 2 { // one is the test's own data file
		t.Errorf("%d objects were put; the file is made once", n-1)
	}
	if s := w.schedule("s"); s.Streak != 0 || s.LastRun != r.Occurrence || !s.LastSuccess.Equal(firstDue) || s.OpenRun != "" {
		t.Errorf("schedule after the run: %+v", s)
	}
	if got := w.object(r.File.Key); got != "id,carrier,delay\r\n1,UA,5\r\n2,B6,\r\n3,\"'=1+1\",-7\r\n4,AA,9007199254740993\r\n" {
		t.Errorf("file %q", got)
	}
	if err := w.check(run, "a@example.com", "b", "c"); err != nil {
		t.Error(err)
	}
}

func TestV2SpellingsOfOneAddressAreOneSubmission(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "A@x.com", "a@X.com", "a@x.com"))
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 1 {
		t.Errorf("%d submitted", r.Submitted)
	}
	if subs := w.subs(run); len(subs) != 1 || len(w.mail.kept) != 1 || w.mail.kept[0].to != "A@x.com" {
		t.Errorf("%d submissions, mails %v", len(subs), w.mail.kept)
	}
}

func TestV3OneAddressOnTwoSchedulesGetsTwo(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "a@x.com"))
	run := w.admitted(w.definition("t", "a@x.com"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	w.wantState(strings.Replace(run, "t@", "s@", 1), schedule.Succeeded, "")
	if n := len(w.mail.to("a@x.com")); n != 2 {
		t.Errorf("%d mails; want 2", n)
	}
}

func TestV4TheFrozenVersionIsDeliveredToThoseWhoAreLeft(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com", "b", "c")
	run := w.admitted(d)
	d.File.Delimiter = ";"
	d.Recipients = d.Recipients[:2]
	d.Recipients = append(d.Recipients, schedule.Recipient{Email: "new@x.com"})
	if c := w.apply(d); c.Action != "edit" || c.Version != 2 {
		t.Fatalf("%+v", c)
	}
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if got := w.object(r.File.Key); !strings.HasPrefix(got, "id,carrier,delay\r\n") || r.Version != 1 {
		t.Errorf("version %d delivered %q; want commas", r.Version, got)
	}
	w.wantSub(run, "c", schedule.NotDelivered, channel.ReasonRemoved)
	w.wantSub(run, "b", schedule.Submitted, "")
	if r.Submitted != 2 || r.SkippedN != 1 || len(w.hooks.to("c")) != 0 || len(w.mail.to("new@x.com")) != 0 {
		t.Errorf("%s", w.dump())
	}
}

// V5's part that the product has: the streak, and which run is the later one.
func TestV5Streak(t *testing.T) {
	w := newWorld(t)
	good := w.definition("s", "a@x.com")
	good.Recurrence.Cron = hourly
	bad := good
	bad.Query = "SELECT nothing FROM flights"
	w.apply(bad)
	streak := func(want int, last failure.Code) {
		t.Helper()
		if s := w.schedule("s"); s.Streak != want || s.State != schedule.Active || s.LastRunCode != string(last) {
			t.Fatalf("streak %d, %s, last code %q; want %d, active, %q", s.Streak, s.State, s.LastRunCode, want, last)
		}
	}
	for n := 1; n <= 4; n++ {
		w.to(start.Add(time.Duration(n) * time.Hour))
		w.quiet()
		streak(n, failure.QueryInvalid)
	}
	manual := func(key string) {
		t.Helper()
		w.advance(time.Minute)
		if _, fresh, err := w.editor.RunNow(ctx, "s", "ann", key, "h"); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		w.quiet()
	}
	manual("1")
	streak(5, failure.QueryInvalid) // a manual run that fails never pauses
	w.apply(good)
	manual("2")
	streak(0, "")
	w.apply(bad)
	w.to(start.Add(5 * time.Hour))
	w.quiet()
	streak(1, failure.QueryInvalid)
	empty := good
	empty.Query, empty.Empty = "SELECT id FROM flights WHERE id > 99", schedule.SuppressEmpty
	w.apply(empty)
	manual("3")
	streak(1, "") // unchanged by a skipped run
}

func TestV5AnOlderRunChangesNeitherStreakNorLastRun(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = "* * * * *"
	w.apply(d)
	w.to(start.Add(time.Minute))
	w.tick()
	older := w.receive(w.queue.URL) // its worker is slow to begin
	w.to(start.Add(2 * time.Minute))
	w.tick()
	w.deliver()
	before := w.schedule("s")
	if !before.LastRunNominal.Equal(start.Add(2*time.Minute)) || before.Streak != 0 || before.OpenRun != "" {
		t.Fatalf("%+v", before)
	}
	w.expire(schema.DefinitionKey("s", 1)) // so that the older run fails
	w.consume(w.invoke("deliver", deliverTime), older)
	w.wantState(schema.RunID("s", schedule.OccurrenceKey(start.Add(time.Minute))), schedule.Failed, failure.DefinitionInvalid)
	if after := w.schedule("s"); after != before {
		t.Errorf("an older run changed the schedule:\n%+v\n%+v", before, after)
	}
}

// The rule itself, for every kind of outcome.
func TestEffectOfASettle(t *testing.T) {
	at := start
	s := schedule.Schedule{ID: "s", State: schedule.Active, Version: 1, NextDue: at.Add(time.Hour), Streak: 4, LastRun: "x", LastRunNominal: at, OpenRun: "o"}
	r := schedule.Run{Schedule: "s", Occurrence: "o", Nominal: at.Add(time.Minute), State: schedule.Running}
	older := r
	older.Nominal, older.Occurrence = at.Add(-time.Minute), "p"
	fail := func(code failure.Code) schedule.Outcome { return schedule.Outcome{Event: schedule.Fail, Code: code} }
	for _, row := range []struct {
		name   string
		run    schedule.Run
		o      schedule.Outcome
		streak int // -1: unchanged
		last   bool
		closes bool
		pause  string
	}{
		{"succeeded", r, schedule.Outcome{Event: schedule.Succeed}, 0, true, true, ""},
		{"failed", r, fail(failure.QueryInvalid), 5, true, true, ""},
		{"skipped", r, schedule.Outcome{Event: schedule.SkipEmpty}, -1, true, true, ""},
		{"quiet failure", r, fail(failure.ScheduleDeleted), -1, true, true, ""},
		{"failure that pauses", r, fail(failure.SourceAccessDenied), 5, true, true, "source_access_denied"},
		{"older succeeded", older, schedule.Outcome{Event: schedule.Succeed}, -1, false, false, ""},
		{"older failed", older, fail(failure.QueryInvalid), -1, false, false, ""},
		{"older failure that pauses", older, fail(failure.ReportDeleted), -1, false, false, "report_deleted"},
	} {
		e := schedule.EffectOf(s, schedule.Definition{}, row.run, row.o)
		if got := e.Streak; (got == nil) != (row.streak < 0) || got != nil && *got != row.streak {
			t.Errorf("%s: streak %v, want %d", row.name, got, row.streak)
		}
		if (e.LastRun != nil) != row.last || e.CloseOpen != row.closes || e.Pause != row.pause {
			t.Errorf("%s: %+v", row.name, e)
		}
	}
	paused := s
	paused.State = schedule.Paused
	if e := schedule.EffectOf(paused, schedule.Definition{}, r, fail(failure.SourceAccessDenied)); e.Pause != "" {
		t.Error("a pause lands only on an active schedule")
	}
}

func TestV6Empty(t *testing.T) {
	for _, policy := range []schedule.EmptyPolicy{schedule.SuppressEmpty, schedule.DeliverEmpty} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "a@x.com", "b")
			d.Query, d.Empty = "SELECT id, delay FROM flights WHERE id > :least", policy
			d.Parameters = map[string]any{"least": 99}
			run := w.admitted(d)
			w.quiet()
			if policy == schedule.SuppressEmpty {
				r := w.wantState(run, schedule.Skipped, "")
				if r.History != "skipped_empty" || r.File != nil || len(w.subs(run)) != 0 || len(w.objects()) != 0 || len(w.mail.kept)+len(w.hooks.posts) != 0 {
					t.Error(w.dump())
				}
				if s := w.schedule("s"); s.Streak != 0 || s.LastRunState != schedule.Skipped || s.OpenRun != "" || !s.LastSuccess.IsZero() {
					t.Errorf("%+v", s)
				}
				return
			}
			r := w.wantState(run, schedule.Succeeded, "")
			if got := w.object(r.File.Key); got != "id,delay\r\n" || r.File.Rows != 0 || r.Submitted != 2 {
				t.Errorf("%q, %d rows", got, r.File.Rows)
			}
		})
	}
}

// A file of 0 rows that an earlier attempt recorded does not outlive the policy either.
func TestV6ARecordedFileOfNoRowsIsSuppressed(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query, d.Empty = "SELECT id FROM flights WHERE id > 99", schedule.DeliverEmpty
	run := w.admitted(d)
	w.hooks.answer = answers("b", status(503), ok())
	w.deliver()
	if r := w.run(run); r.File == nil || r.File.Rows != 0 || r.State != schedule.Running {
		t.Fatal(w.dump())
	}
	l := schedule.Lease{Token: "t", Now: w.wall(), End: w.wall().Add(time.Minute), Wake: w.wall().Add(2 * time.Minute)}
	r, err := w.store.Begin(ctx, w.run(run), l)
	w.must(err)
	w.must(w.store.Settle(ctx, r, l, schedule.Outcome{Event: schedule.SkipEmpty}))
	w.wantState(run, schedule.Skipped, "")
}

func TestV7AQueryThatBreaksIsNeverEmpty(t *testing.T) {
	// The sum of the largest integer and one overflows when the row is read, not when the query is compiled.
	breaks := "SELECT CASE WHEN id = %d THEN abs(-9223372036854775807 - 1) ELSE id END FROM flights ORDER BY id"
	for _, row := range []int{1, 3} {
		t.Run(fmt.Sprintf("at row %d", row), func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "a@x.com", "b")
			d.Query, d.Empty = fmt.Sprintf(breaks, row), schedule.SuppressEmpty
			run := w.admitted(d)
			w.quiet()
			r := w.wantState(run, schedule.Failed, failure.QueryFailed)
			if len(w.objects()) != 0 || r.File != nil || len(w.subs(run)) != 0 || r.Attempts != 1 || w.schedule("s").Streak != 1 {
				t.Error(w.dump())
			}
		})
	}
}

func TestWrongSQLFailsAtOnceAndSaysWhere(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com")
	d.Query = "SELECT dely FROM flights"
	run := w.admitted(d)
	w.quiet()
	if r := w.wantState(run, schedule.Failed, failure.QueryInvalid); !strings.Contains(r.ErrorText, "dely") || r.Attempts != 1 {
		t.Errorf("%d attempts, %q", r.Attempts, r.ErrorText)
	}
}

func TestV8LargeFilesGoAsALinkSmallOnesAsAnAttachment(t *testing.T) {
	rows := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c LIMIT %d) SELECT substr(hex(zeroblob(500)), 1, CASE i WHEN 1 THEN 995 ELSE 998 END) AS x FROM c", n)
	}
	w := newWorld(t)
	small := w.definition("small", "a@x.com")
	small.Query = rows(5000)
	large := w.definition("large", "a@x.com")
	large.Query = rows(32000)
	w.apply(large)
	run := w.admitted(small)
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	big := w.wantState(strings.Replace(run, "small@", "large@", 1), schedule.Succeeded, "")
	if r.File.Bytes != 5_000_000 || big.File.Bytes != 32_000_000 {
		t.Fatalf("files of %d and %d bytes", r.File.Bytes, big.File.Bytes)
	}
	for _, l := range w.mail.to("a@x.com") {
		header, words, attached := l.parts(t)
		if strings.Contains(header.Get("Subject"), "large") || strings.Contains(words, "Delays large") {
			link := w.link(big.ID(), "a@x.com")
			if attached != "" || !strings.Contains(words, string(w.deliverer.Links)+"/files/"+link) {
				t.Errorf("%d bytes attached; the letter says %q", len(attached), words)
			}
			w.advance(6 * 24 * time.Hour)
			if url, err := w.links.Open(ctx, link); err != nil || url != "signed "+big.File.Key+" for 1m0s" {
				t.Errorf("day 6: %q %v", url, err)
			}
			continue
		}
		if attached != w.object(r.File.Key) {
			t.Errorf("%d bytes attached, which are not the file's %d", len(attached), r.File.Bytes)
		}
	}
}

// link is the token of a recipient's links.
func (w *world) link(run, recipient string) string {
	w.t.Helper()
	s := w.sub(run, recipient)
	return strings.TrimPrefix(schedule.LinkBase("").File(s), "/files/")
}

// unsubscribeLink is the token of the other link of a recipient.
func (w *world) unsubscribeLink(run, recipient string) string {
	w.t.Helper()
	return strings.TrimPrefix(schedule.LinkBase("").Unsubscribe(w.sub(run, recipient)), "/unsubscribe/")
}

func TestV12CatchUpLatest(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = hourly
	w.apply(d)
	w.to(start.Add(3*time.Hour + 11*time.Minute))
	w.tick()
	runs, skips := w.runs("s"), w.skips("s")
	if len(runs) != 1 || !runs[0].Nominal.Equal(start.Add(3*time.Hour)) {
		t.Fatalf("%d runs: %s", len(runs), w.dump())
	}
	if len(skips) != 1 || !skips[0].First.Equal(start.Add(time.Hour)) || !skips[0].Last.Equal(start.Add(2*time.Hour)) || skips[0].Count != 2 || skips[0].Reason == "" {
		t.Fatalf("skips %+v", skips)
	}
	if s := w.schedule("s"); !s.NextDue.Equal(start.Add(4*time.Hour)) || !s.LastNominal.Equal(start.Add(3*time.Hour)) {
		t.Errorf("%+v", s)
	}
	w.quiet()
	w.wantState(runs[0].ID(), schedule.Succeeded, "")
}

func TestV12ATick61SecondsLateMissesNothing(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = "* * * * *"
	w.apply(d)
	w.to(start.Add(2*time.Minute + 61*time.Second))
	w.tick()
	if runs := w.runs("s"); len(runs) != 3 || len(w.skips("s")) != 0 {
		t.Fatalf("%d runs, skips %+v; want 3 runs and no skip", len(runs), w.skips("s"))
	}
}

func TestV12OneMissedOccurrenceRunsLate(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	w.apply(d)
	w.to(firstDue.Add(5 * time.Hour))
	w.tick()
	if runs := w.runs("s"); len(runs) != 1 || !runs[0].Nominal.Equal(firstDue) || len(w.skips("s")) != 0 {
		t.Fatal(w.dump())
	}
}

func TestT2GapLeavesASkipRecord(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	// 2040-03-11 is the change in New York; the day before is admitted, and its successor found behind the gap.
	d.Recurrence = calendar.Spec{Cron: "30 2 * * *", Zone: "America/New_York", Gap: calendar.GapSkip}
	w.apply(d)
	day10 := time.Date(2040, 3, 10, 7, 30, 0, 0, time.UTC)
	for at := w.schedule("s").NextDue; !at.After(day10); at = w.schedule("s").NextDue {
		w.to(at)
		w.tick()
	}
	if next, want := w.schedule("s").NextDue, time.Date(2040, 3, 12, 6, 30, 0, 0, time.UTC); !next.Equal(want) {
		t.Fatalf("next due %s, want %s", next, want)
	}
	skips := w.skips("s")
	if len(skips) != 1 || skips[0].Count != 1 || skips[0].Reason == "" {
		t.Fatalf("%+v", skips)
	}
}

func TestV13AllowBothRunWithFilesAndKeysOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = hourly
	w.apply(d)
	w.to(start.Add(time.Hour))
	w.tick()
	z, held := w.freezeDeliver(4) // the first is still running when the next falls due
	if !held {
		t.Fatal("the first run ended too soon")
	}
	w.to(start.Add(2 * time.Hour))
	w.tick()
	if _, fresh, err := w.editor.RunNow(ctx, "s", "ann", "k", "h"); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	w.drain()
	z.release()
	w.quiet()
	keys, paths := map[string]bool{}, map[string]bool{}
	for _, r := range w.runs("s") {
		w.wantState(r.ID(), schedule.Succeeded, "")
		paths[r.File.Key] = true
	}
	for _, p := range w.hooks.to("b") {
		keys[p.key] = true
	}
	if len(keys) != 3 || len(paths) != 3 {
		t.Errorf("%d keys and %d files of three runs", len(keys), len(paths))
	}
}

// freezeDeliver receives a message and holds its worker at its n-th outside call.
func (w *world) freezeDeliver(n int) (*frozen, bool) {
	w.t.Helper()
	ms := w.receive(w.queue.URL)
	if len(ms) == 0 {
		w.t.Fatal("there is no message to work on")
	}
	inv := w.invoke("deliver", deliverTime)
	return w.freeze(inv, n, func() { w.consume(inv, ms) })
}

func TestV16AcceptedAndReplyCut(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, in.Body)
		if conn, _, err := out.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
	}))
	defer server.Close()
	client := email.NewClient(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: anyone})
	mail, err := email.New(client, email.Config{From: "almanac@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.deliverer.Channels[channel.Email] = mail
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.DeliveryUnknown)
	w.wantSub(run, "a@x.com", schedule.Unknown, "")
	w.wantSub(run, "b", schedule.Submitted, "")
	if n := requests.Load(); n != 1 || r.Submitted != 1 || r.Attempts != 1 {
		t.Errorf("%d requests reached the server, want 1; %s", n, w.dump())
	}
}

func TestV17NoCopiesWhileTheBacklogStands(t *testing.T) {
	const many, bound = 3000, 40
	w := newWorld(t, timing(func(t *schedule.Timing) { t.Backlog = bound }))
	w.apply(w.definition("s", "b"))
	def, err := w.store.Definition(ctx, "s", 1)
	w.must(err)
	for i := range many {
		r := schedule.NewRun(def, start, start, w.timing)
		r.Manual, r.Occurrence = true, fmt.Sprintf("manual-%06d", i)
		w.must(w.store.Admit(ctx, schedule.Admission{Run: r, Token: w.token(), TTL: start.AddDate(1, 0, 0)}))
	}
	var first []string
	for _, r := range w.runs("s")[:bound+10] {
		first = append(first, r.ID())
	}
	if failed, err := w.queue.Send(ctx, first); err != nil || len(failed) != 0 {
		t.Fatal(failed, err)
	}
	for range 3 {
		w.advance(6 * time.Minute)
		if tally := w.tick(); tally.Reoffer != 0 || tally.Backlog != bound+10 || tally.Errors != 0 {
			t.Fatalf("%+v", tally)
		}
	}
	if n := w.messages(w.queue.URL); n != bound+10 {
		t.Fatalf("%d messages; the sweep bred copies", n)
	}
	w.receive(w.queue.URL) // the backlog falls to the bound
	for w.messages(w.queue.URL) > 0 {
		ms := w.receive(w.queue.URL)
		if len(ms) == 0 {
			break
		}
	}
	if tally := w.tick(); tally.Reoffer != many || tally.Unsent != 0 {
		t.Fatalf("%+v; want every run offered once, page by page", tally)
	}
	if tally := w.tick(); tally.Reoffer != 0 {
		t.Fatalf("%+v: offered again before its wake_at", tally)
	}
}

func TestV18AlwaysDies(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b"))
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "S3.HeadObject" {
			return dieBefore // its memory is used up when the rows are read
		}
		return none
	}
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	if r.Attempts != 5 || r.AttemptsLeft != 0 || w.schedule("s").Streak != 1 {
		t.Errorf("%d attempts, %d left", r.Attempts, r.AttemptsLeft)
	}
	begins := 0
	for _, line := range r.Timeline {
		if strings.Contains(line, ", attempt ") {
			begins++
		}
	}
	if begins != 5 {
		t.Errorf("%d attempts in the timeline:\n%s", begins, w.dump())
	}
}

func TestV19SeenAgainAfterBackoffAndRetryAfter(t *testing.T) {
	w := newWorld(t)
	w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", status(503), reply{status: 429, retryAfter: "20"}, ok())
	w.quiet()
	got := w.hooks.to("b")
	if len(got) != 3 {
		t.Fatalf("%d requests", len(got))
	}
	for i, want := range []time.Duration{60 * time.Second, 20 * time.Second} {
		if d := got[i+1].at.Sub(got[i].at); d < want || d > want+2*time.Second {
			t.Errorf("try %d came after %s, want %s", i+2, d, want)
		}
	}
}

func TestV20DeletedWhileQueued(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com"))
	w.must(w.editor.Delete(ctx, "s", "no longer wanted", "ann"))
	w.quiet()
	w.wantState(run, schedule.Failed, failure.ScheduleDeleted)
	if s := w.schedule("s"); s.State != schedule.Deleted || s.Streak != 0 || !s.NextDue.IsZero() || len(w.mail.kept) != 0 {
		t.Errorf("%+v", s)
	}
	w.pass(25 * time.Hour)
	if n := len(w.runs("s")); n != 1 {
		t.Errorf("%d runs of a deleted schedule", n)
	}
	if e, _ := failure.Lookup(failure.ScheduleDeleted); !e.Quiet {
		t.Error("it must have no streak and no notice")
	}
}

// A run is in work once it has its file or has asked somebody: an attempt that took the lease and broke off before it
// looked at the schedule leaves it to the next one, also where a retry brings its file.
func TestV20DeletedBeforeAnAttemptLooked(t *testing.T) {
	for name, retried := range map[string]bool{"due": false, "retry": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.definition("s", "b")
			run := w.admitted(d)
			if retried {
				w.hooks.answer = answers("b", status(400))
				w.settles(run)
				r, _, err := w.editor.Retry(ctx, run, schedule.RetryRequest{}, "again", "ann", "key-1", "hash-1")
				w.must(err)
				run = r.ID()
			}
			n := len(w.hooks.posts)
			w.must(w.editor.Delete(ctx, "s", "no longer wanted", "ann"))
			reads := 0
			w.faults.plan = func(c outside) fault {
				if c.inv.kind != "deliver" {
					return none
				}
				switch {
				case c.name == "DynamoDB.UpdateItem" && reads == 0:
					reads++
					return dieAfter // begun
				case c.name == "DynamoDB.Query" && reads == 1: // who was asked
					reads++
					return lostBefore
				}
				return none
			}
			w.quiet()
			r := w.wantState(run, schedule.Failed, failure.ScheduleDeleted)
			if len(w.hooks.posts) != n || r.Attempts < 3 || r.ErrorText != "schedule s was deleted before this run had asked anybody" {
				t.Errorf("%d requests, %d attempts, %q", len(w.hooks.posts)-n, r.Attempts, r.ErrorText)
			}
		})
	}
}

func TestV20DeletedInFlight(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", status(503), ok())
	w.deliver()
	w.must(w.editor.Delete(ctx, "s", "no longer wanted", "ann"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	s := w.schedule("s")
	if s.State != schedule.Deleted || s.Workspace != "EWR" || s.Version != 1 {
		t.Errorf("ghost: %+v", s)
	}
}

func TestV20TheRowIsGoneAltogether(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", status(503), ok())
	w.deliver()
	w.expire(schema.ScheduleKey("s"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if _, err := w.store.Schedule(ctx, "s"); err != schedule.ErrNotFound {
		t.Errorf("the settle made a ghost: %v", err)
	}
}

func TestV21TheAccountMayNotSend(t *testing.T) {
	w := newWorld(t)
	w.mail.answer = func(string, int) error {
		return coded("MessageRejected", "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: a@x.com")
	}
	run := w.admitted(w.definition("s", "a@x.com", "d@x.com", "b"))
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.SenderRefused)
	for _, to := range []string{"a@x.com", "d@x.com", "b"} {
		w.wantSub(run, to, schedule.NotSent, string(failure.SenderRefused))
	}
	if r.SkippedN != 0 || r.Submitted != 0 || w.mail.asked["a@x.com"] != 1 || w.mail.asked["d@x.com"] != 0 {
		t.Errorf("%s %v", w.dump(), w.mail.asked)
	}
}
