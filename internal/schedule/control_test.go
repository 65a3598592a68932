package schedule_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// I9: no recipient is begun without its reserve. Each request takes 95 seconds of an invocation's five minutes.
func TestI9YieldAfterProgress(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c", "d", "e", "f"))
	w.hooks.during = func(string, int) { w.advance(95 * time.Second) }
	w.deliver()
	r := w.run(run)
	if len(w.hooks.posts) != 3 || r.Yields != 1 || r.State != schedule.Running || r.LeaseOwner != "" || r.AttemptsLeft != 5 || r.Attempts != 1 {
		t.Fatalf("%d requests: %s", len(w.hooks.posts), w.dump())
	}
	if !w.deliver() { // visible at once
		t.Fatal("the message of a run that yielded is not visible")
	}
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Submitted != 5 || len(w.hooks.posts) != 5 || r.Yields != 1 || r.Attempts != 2 || r.AttemptsLeft != 4 {
		t.Error(w.dump())
	}
}

func TestI9ReleaseWithoutProgress(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", status(503), ok())
	w.deliver() // the file is recorded
	w.advance(time.Minute)
	short := w.invoke("deliver", w.timing.Reserve.Std()-time.Second)
	w.consume(short, w.receive(w.queue.URL))
	r := w.wantState(run, schedule.Running, failure.OutOfTime)
	if len(w.hooks.posts) != 1 || r.Yields != 0 || r.AttemptsLeft != 3 {
		t.Error(w.dump())
	}
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

func TestI9ASlowQueryIsOutOfTime(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.faults.plan = func(c outside) fault {
		if c.name == "S3.GetObject" {
			w.advance(deliverTime)
			return lostBefore
		}
		return none
	}
	w.deliver()
	w.wantState(run, schedule.Running, failure.OutOfTime)
	w.faults.plan = nil
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

func TestYieldsAreBounded(t *testing.T) {
	w := newWorld(t, timing(func(t *schedule.Timing) { t.MaxYields = 3 }))
	run := w.admitted(w.definition("s", "b", "c", "d", "e", "f", "g", "h"))
	w.hooks.during = func(string, int) { w.advance(deliverTime - 10*time.Second) }
	for range 12 {
		w.drain()
		w.advance(10 * time.Minute)
		w.tick()
	}
	if r := w.run(run); r.Yields != 3 || r.State != schedule.Succeeded || r.Submitted != 7 {
		t.Error(w.dump())
	}
}

func TestStopAskedWhileQueued(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com"))
	w.must(w.store.AskToStop(ctx, w.run(run), w.stop("wrong numbers")))
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.StoppedByOperator)
	if len(w.mail.kept)+len(w.objects())+len(w.subs(run)) != 0 || !strings.Contains(r.ErrorText, "wrong numbers") || !strings.Contains(r.ErrorText, "ann") {
		t.Errorf("%q %s", r.ErrorText, w.dump())
	}
}

func TestStopAskedOfARunInWork(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c", "a@x.com"))
	w.hooks.during = func(string, int) { w.must(w.store.AskToStop(ctx, w.run(run), w.stop("stop"))) }
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.StoppedByOperator)
	w.wantSub(run, "b", schedule.Submitted, "")
	w.wantSub(run, "c", schedule.NotSent, string(failure.StoppedByOperator))
	w.wantSub(run, "a@x.com", schedule.NotSent, string(failure.StoppedByOperator))
	if r.Attempts != 1 || r.Submitted != 1 {
		t.Error(w.dump())
	}
	if err := w.store.AskToStop(ctx, r, w.stop("again")); !schedule.IsConflict(err) {
		t.Errorf("a settled run: %v", err)
	}
}

func TestStopAskedOfASpentRun(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.set(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.AttemptsLeft, &types.AttributeValueMemberN{Value: "1"})
	w.faults.plan = dies("deliver", "S3.HeadObject", dieBefore)
	w.deliver()
	w.must(w.store.AskToStop(ctx, w.run(run), w.stop("stop")))
	w.quiet()
	w.wantState(run, schedule.Failed, failure.StoppedByOperator)
}

func (w *world) control(c schedule.Control) {
	w.t.Helper()
	was, err := w.store.Control(ctx)
	w.must(err)
	w.must(w.store.Switch(ctx, was, c, w.stop("test")))
}

func TestSendOffBeginsNothing(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.control(schedule.Control{SendOff: true})
	w.pass(2 * time.Hour)
	if r := w.run(run); r.State != schedule.Queued || r.Offers != 0 || w.messages(w.queue.URL) != 0 {
		t.Fatal(w.dump())
	}
	w.control(schedule.Control{})
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Attempts != 1 {
		t.Error(w.dump())
	}
}

func TestSendOffARunInWorkYieldsBeforeItsNextRecipient(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "c"))
	w.hooks.during = func(string, int) { w.control(schedule.Control{SendOff: true}) }
	w.deliver()
	if r := w.run(run); r.Yields != 1 || r.LeaseOwner != "" || r.AttemptsLeft != 5 || len(w.hooks.posts) != 1 {
		t.Fatal(w.dump())
	}
	w.hooks.during = nil
	w.pass(time.Hour)
	if r := w.run(run); r.State != schedule.Running || r.Attempts != 1 {
		t.Fatal(w.dump())
	}
	w.control(schedule.Control{})
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if len(w.hooks.to("b")) != 1 || len(w.hooks.to("c")) != 1 {
		t.Error(w.dump())
	}
}

func TestDispatchOffAdmitsNothingAndStillSweeps(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.receive(w.queue.URL) // the message is lost to a worker that never reports
	w.apply(w.definition("t", "c"))
	w.control(schedule.Control{DispatchOff: true})
	w.to(firstDue.AddDate(0, 0, 1))
	tally := w.tick()
	if !tally.Off || tally.Admitted != 0 || tally.Reoffer != 1 || len(w.runs("t")) != 0 {
		t.Fatalf("%+v", tally)
	}
	w.drain()
	w.wantState(run, schedule.Succeeded, "")
	w.control(schedule.Control{})
	w.quiet()
	if len(w.runs("t")) != 1 {
		t.Error("not admitted once dispatch was on again")
	}
}

func TestPauseAndResumeSendNothingThatWasMissed(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = hourly
	w.apply(d)
	w.to(start.Add(time.Hour))
	w.tick() // one is admitted before the pause, and is delivered
	s, err := w.editor.Pause(ctx, "s", "holidays", "ann")
	if err != nil || s.State != schedule.Paused || s.PauseReason != "holidays" || s.PausedBy != "ann" || !s.NextDue.IsZero() {
		t.Fatalf("%+v %v", s, err)
	}
	w.pass(3*time.Hour + 20*time.Minute)
	if runs := w.runs("s"); len(runs) != 1 || runs[0].State != schedule.Succeeded {
		t.Fatal(w.dump())
	}
	if _, err := w.editor.Pause(ctx, "s", "again", "ann"); !schedule.IsConflict(err) {
		t.Errorf("pause twice: %v", err)
	}
	s, err = w.editor.Resume(ctx, "s", "back", "ann")
	if err != nil || s.State != schedule.Active || !s.NextDue.Equal(start.Add(5*time.Hour)) || s.PauseReason != "" {
		t.Fatalf("%+v %v", s, err)
	}
	if _, err := w.editor.Resume(ctx, "s", "again", "ann"); !schedule.IsConflict(err) {
		t.Errorf("resume twice: %v", err)
	}
	w.pass(time.Hour)
	if runs, skips := w.runs("s"), w.skips("s"); len(runs) != 2 || len(skips) != 0 || !runs[0].Nominal.Equal(start.Add(5*time.Hour)) {
		t.Error(w.dump())
	}
	for name, reason := range map[string]string{"absent": "", "blank": "  ", "two lines": "a\nb", "long": strings.Repeat("x", 201)} {
		for _, act := range []error{second(w.editor.Pause(ctx, "s", reason, "ann")), second(w.editor.Resume(ctx, "s", reason, "ann")), w.editor.Delete(ctx, "s", reason, "ann")} {
			if act == nil || !strings.HasPrefix(act.Error(), "reason is ") {
				t.Errorf("%s: %v", name, act)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAPausedScheduleIsEditedAndResumedByItsNewRule(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	w.apply(d)
	_, err := w.editor.Pause(ctx, "s", "holidays", "ann")
	w.must(err)
	d.Recurrence.Cron = "15 * * * *"
	w.apply(d)
	if s := w.schedule("s"); s.State != schedule.Paused || !s.NextDue.IsZero() || s.Version != 2 {
		t.Fatalf("%+v", s)
	}
	s, err := w.editor.Resume(ctx, "s", "back", "ann")
	if err != nil || !s.NextDue.Equal(start.Add(15*time.Minute)) {
		t.Fatalf("%+v %v", s, err)
	}
}

// denied is what S3 answers to a role without the right.
func denied() error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 403}}, Err: coded("AccessDenied", "Access Denied")}}
}

func TestSourceAccessDeniedPausesAndRefusesWhatWasAdmitted(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Cron = "*/5 * * * *"
	w.apply(d)
	w.to(start.Add(5 * time.Minute))
	w.tick()
	w.to(start.Add(9*time.Minute + 59*time.Second))
	w.to(start.Add(10 * time.Minute))
	w.tick()
	w.s3.Hooks.Before = func(_ context.Context, c memcloud.Call) error {
		if c.Operation == "HeadObject" {
			return denied()
		}
		return nil
	}
	w.deliver()
	runs := w.runs("s")
	if len(runs) != 2 {
		t.Fatal(w.dump())
	}
	w.wantState(runs[1].ID(), schedule.Failed, failure.SourceAccessDenied)
	if s := w.schedule("s"); s.State != schedule.Paused || s.PauseReason != string(failure.SourceAccessDenied) || s.PausedBy != schedule.System || !s.NextDue.IsZero() || s.Streak != 1 {
		t.Fatalf("%+v", s)
	}
	w.s3.Hooks.Before = nil
	w.quiet()
	w.wantState(runs[0].ID(), schedule.Failed, failure.SourceAccessDenied) // refused at begin, without asking the source
	if w.schedule("s").Streak != 2 || len(w.hooks.posts) != 0 {
		t.Error(w.dump())
	}
	_, err := w.editor.Resume(ctx, "s", "the role has the right now", "ann")
	w.must(err)
	w.to(w.schedule("s").NextDue)
	w.tick()
	w.drain()
	if runs := w.runs("s"); len(runs) != 3 || runs[0].State != schedule.Succeeded || w.schedule("s").Streak != 0 {
		t.Error(w.dump())
	}
}

func TestReportDeletedPausesAndRefusesWhatWasAdmitted(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	// Another run of the schedule settles as report_deleted.
	other, _, err := w.editor.RunNow(ctx, "s", "ann", "k", "h")
	w.must(err)
	l := schedule.Lease{Token: "t", Now: w.wall(), End: w.wall().Add(time.Minute), Wake: w.wall().Add(2 * time.Minute)}
	r, err := w.store.Begin(ctx, w.run(other.ID()), l)
	w.must(err)
	w.must(w.store.Settle(ctx, r, l, schedule.Outcome{Event: schedule.Fail, Code: failure.ReportDeleted, Message: "gone"}))
	if s := w.schedule("s"); s.State != schedule.Paused || s.PauseReason != string(failure.ReportDeleted) {
		t.Fatalf("%+v", s)
	}
	w.quiet()
	w.wantState(run, schedule.Failed, failure.ReportDeleted)
	if len(w.hooks.posts) != 0 {
		t.Error(w.dump())
	}
}

func TestAPersonsPauseDoesNotHoldUpWhatWasAdmitted(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	_, err := w.editor.Pause(ctx, "s", string(failure.SourceAccessDenied), "ann") // even if the reason reads like a code
	w.must(err)
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
}

func TestDefinitionThatIsGoneOrBroken(t *testing.T) {
	t.Run("gone", func(t *testing.T) {
		w := newWorld(t)
		run := w.admitted(w.definition("s", "b"))
		w.expire(schema.DefinitionKey("s", 1))
		w.quiet()
		w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
	})
	t.Run("a zone that a newer database does not have", func(t *testing.T) {
		w := newWorld(t)
		d := w.definition("s", "b")
		run := w.admitted(d)
		w.set(schema.DefinitionKey("s", 1), schema.Body, txt(fmt.Sprintf(`{"id":"s","workspace":"EWR","name":"x","source":"flights","query":"SELECT 1","recurrence":{"cron":"0 * * * *","zone":"Mars/Olympus"},"file":{"kind":"csv","retention_days":30},"recipients":[{"webhook":%q,"secret":"ops"}]}`, w.hooks.address("b"))))
		w.quiet()
		w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
	})
	t.Run("a time limit that nobody can read", func(t *testing.T) {
		w := newWorld(t)
		run := w.admitted(w.definition("s", "b"))
		w.set(schema.DefinitionKey("s", 1), schema.Body, txt(`{"id":"s","workspace":"EWR","name":"x","source":"flights","query":"SELECT 1","recurrence":{"cron":"0 * * * *","zone":"UTC"},"limits":{"timeout":"soon"},"recipients":[]}`))
		w.quiet()
		if r := w.wantState(run, schedule.Failed, failure.DefinitionInvalid); !strings.Contains(r.ErrorText, "soon") {
			t.Errorf("%q", r.ErrorText)
		}
	})
	t.Run("dispatch meets a rule that nobody can read", func(t *testing.T) {
		w := newWorld(t)
		w.apply(w.definition("s", "b"))
		w.apply(w.definition("t", "b"))
		w.set(schema.DefinitionKey("s", 1), schema.Body, txt(`{"id":"s","recurrence":{"cron":"61 * * * *","zone":"UTC"}}`))
		w.to(firstDue)
		if tally := w.tick(); tally.Errors != 1 || tally.Admitted != 1 {
			t.Errorf("%+v: one broken schedule must not hold up another", tally)
		}
		if !strings.Contains(w.log.text(), string(failure.DefinitionInvalid)) {
			t.Error("the log does not say why")
		}
	})
}

func TestSourcesThatMayNotBeUsed(t *testing.T) {
	for name, row := range map[string]struct {
		config schedule.SourceConfig
		code   failure.Code
	}{
		"another workspace's": {schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "flights.sqlite", Workspaces: []string{"JFK"}}, failure.SourceAccessDenied},
		"no such file":        {schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "other.sqlite", Workspaces: []string{"*"}}, failure.SourceUnknown},
		"unknown engine":      {schedule.SourceConfig{Name: "flights", Engine: "oracle", Object: "x", Workspaces: []string{"*"}}, failure.SourceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.admitted(w.definition("s", "b"))
			w.must(w.store.PutSource(ctx, row.config, w.stop("test")))
			w.quiet()
			w.wantState(run, schedule.Failed, row.code)
		})
	}
	t.Run("not configured any more", func(t *testing.T) {
		w := newWorld(t)
		run := w.admitted(w.definition("s", "b"))
		w.expire(schema.SourceKey("flights"))
		w.quiet()
		w.wantState(run, schedule.Failed, failure.SourceUnknown)
	})
}

func TestUnsubscribedSuppressedAndNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.deliverer.Allowed = boot.AllowList([]string{"x.com", "127.0.0.1"})
	d := w.definition("s", "a@x.com", "Gone@X.com", "no@x.com", "stranger@example.net", "b")
	hash := func(address string) string {
		normal, err := channel.Normalise(channel.Email, address)
		w.must(err)
		return channel.RecipientHash(channel.Email, normal)
	}
	w.must(w.store.Suppress(ctx, schedule.Suppression{Channel: channel.Email, RecipientHash: hash("gone@x.com"), Reason: "bounce", At: w.wall()}))
	w.must(w.store.Unsubscribe(ctx, channel.Email, hash("no@x.com"), "s", w.wall()))
	w.must(w.store.Unsubscribe(ctx, channel.Email, hash("a@x.com"), "another", w.wall())) // from another schedule
	run := w.admitted(d)
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	w.wantSub(run, "Gone@X.com", schedule.NotDelivered, channel.ReasonSuppressed)
	w.wantSub(run, "no@x.com", schedule.NotDelivered, channel.ReasonUnsubscribed)
	w.wantSub(run, "stranger@example.net", schedule.NotDelivered, channel.ReasonRefused)
	if r.Submitted != 2 || r.SkippedN != 3 || len(w.mail.kept) != 1 || len(w.hooks.posts) != 1 {
		t.Error(w.dump())
	}
}

func TestChannelThatIsNotSetUp(t *testing.T) {
	w := newWorld(t)
	delete(w.deliverer.Channels, channel.Email)
	run := w.admitted(w.definition("s", "a@x.com"))
	w.quiet()
	w.wantState(run, schedule.Failed, failure.ChannelMisconfig)
	w.wantSub(run, "a@x.com", schedule.NotSent, string(failure.ChannelMisconfig))
}

func TestFileThatSomebodyChanged(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b", "a@x.com"))
	w.hooks.answer = answers("b", status(503), ok())
	w.mail.answer = func(_ string, n int) error {
		if n == 1 {
			return coded("Throttling", "Maximum sending rate exceeded.")
		}
		return nil
	}
	w.deliver()
	w.overwrite(w.run(run).File.Key, "other bytes")
	w.quiet()
	w.wantState(run, schedule.Failed, failure.FileInconsistent)
	w.wantSub(run, "a@x.com", schedule.NotSent, string(failure.FileInconsistent))
	if len(w.mail.kept) != 0 {
		t.Error("a file that is not the recorded one was sent")
	}
}

func TestRunNow(t *testing.T) {
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	before := w.schedule("s")
	r, fresh, err := w.editor.RunNow(ctx, "s", "ann", "key-1", "hash")
	if err != nil || !fresh || !r.Manual || r.RequestedBy != "ann" {
		t.Fatal(r, fresh, err)
	}
	if after := w.schedule("s"); after != before {
		t.Errorf("a manual run moved the schedule: %+v", after)
	}
	again, fresh, err := w.editor.RunNow(ctx, "s", "ann", "key-1", "hash")
	if err != nil || fresh || again.ID() != r.ID() {
		t.Errorf("the same key: %s %v %v", again.ID(), fresh, err)
	}
	if _, _, err := w.editor.RunNow(ctx, "s", "ann", "key-1", "other"); !schedule.IsConflict(err) || !strings.Contains(err.Error(), "key reused") {
		t.Errorf("the same key with another request: %v", err)
	}
	if other, fresh, err := w.editor.RunNow(ctx, "s", "bob", "key-1", "hash"); err != nil || !fresh || other.ID() == r.ID() {
		t.Errorf("another person's key: %s %v %v", other.ID(), fresh, err)
	}
	w.quiet()
	if runs := w.runs("s"); len(runs) != 2 || len(w.hooks.posts) != 2 {
		t.Error(w.dump())
	}
	again, fresh, err = w.editor.RunNow(ctx, "s", "ann", "key-1", "hash")
	if err != nil || fresh || again.State != schedule.Succeeded {
		t.Errorf("after the run: %v %v %v", again.State, fresh, err)
	}
	_, err = w.editor.Pause(ctx, "s", "holidays", "ann")
	w.must(err)
	if _, fresh, err := w.editor.RunNow(ctx, "s", "ann", "key-2", "hash"); err != nil || !fresh {
		t.Errorf("a paused schedule is run by hand: %v %v", fresh, err)
	}
	w.must(w.editor.Delete(ctx, "s", "done", "ann"))
	for _, id := range []string{"s", "nothing"} {
		if _, _, err := w.editor.RunNow(ctx, id, "ann", "key-3", "hash"); err != schedule.ErrNotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestRunNowHeldAtEachCallAndAskedAgain(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		w.apply(w.definition("s", "b"))
		inv := w.invoke("api", dispatchTime)
		z, held := w.freeze(inv, n, func() {
			if _, _, err := w.editor.RunNow(inv, "s", "ann", "k", "h"); err != nil {
				t.Error(err)
			}
		})
		if !held {
			w.hooks.server.Close()
			break
		}
		_, _, err := w.editor.RunNow(ctx, "s", "ann", "k", "h")
		w.must(err)
		z.release()
		w.quiet()
		if len(w.runs("s")) != 1 || len(w.hooks.posts) != 1 {
			t.Fatalf("held at %d: %s", n, w.dump())
		}
		w.hooks.server.Close()
	}
}

func TestApply(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	plan, err := w.editor.Plan(ctx, d)
	if err != nil || plan.Action != "create" || len(plan.NextDue) != 5 || !plan.NextDue[0].At.Equal(firstDue) {
		t.Fatalf("%+v %v", plan, err)
	}
	if _, err := w.store.Schedule(ctx, "s"); err != schedule.ErrNotFound {
		t.Error("a plan changed something")
	}
	if c := w.apply(d); c.Action != "create" || c.Version != 1 {
		t.Errorf("%+v", c)
	}
	if c := w.apply(d); c.Action != "unchanged" || c.Version != 1 || len(c.Diff) != 0 {
		t.Errorf("%+v", c)
	}
	w.to(firstDue.Add(time.Hour))
	next := w.schedule("s").NextDue
	d.Name = "Other name"
	if c := w.apply(d); c.Action != "edit" || c.Version != 2 || len(c.Diff) != 1 || !strings.HasPrefix(c.Diff[0], "name: ") {
		t.Errorf("%+v", c)
	}
	if s := w.schedule("s"); !s.NextDue.Equal(next) {
		t.Errorf("an edit that leaves the recurrence moved next due from %s to %s", next, s.NextDue)
	}
	d.Recurrence.Cron = hourly
	w.apply(d)
	if s := w.schedule("s"); !s.NextDue.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("next due %s", s.NextDue)
	}
	d.Workspace = "JFK"
	w.must(w.store.PutWorkspace(ctx, schedule.Workspace{ID: "JFK", Name: "Kennedy", Zone: "America/New_York"}, w.stop("test")))
	for field, change := range map[string]func(*schedule.Definition){
		"workspace": func(d *schedule.Definition) {},
		"source":    func(d *schedule.Definition) { d.Workspace, d.Source = "EWR", "nothing" },
		"workspace is \"LGA\"": func(d *schedule.Definition) {
			d.ID, d.Workspace = "new", "LGA"
		},
	} {
		e := d
		change(&e)
		if _, err := w.editor.Apply(ctx, e, "ann", 0); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	w.must(w.editor.Delete(ctx, "s", "done", "ann"))
	if _, err := w.editor.Apply(ctx, d, "ann", 0); !schedule.IsConflict(err) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("%v", err)
	}
	if err := w.editor.Delete(ctx, "s", "done", "ann"); err != schedule.ErrNotFound {
		t.Errorf("delete twice: %v", err)
	}
}

// Business time of the local profile: due times lie in another year, leases and links in this one.
func TestTwoClocks(t *testing.T) {
	w := newWorld(t)
	w.shift = time.Date(2013, 7, 1, 12, 0, 0, 0, time.UTC).Sub(start)
	d := w.definition("s", "b")
	d.Query = "SELECT :scheduled_time AS at, :last_success_time AS last, :workspace AS ws"
	w.apply(d)
	w.to(time.Date(2013, 7, 1, 12, 30, 0, 0, time.UTC))
	w.quiet()
	w.to(time.Date(2013, 7, 2, 12, 30, 0, 0, time.UTC))
	w.quiet()
	runs := w.runs("s")
	if len(runs) != 2 || runs[0].Occurrence != "2013-07-02T12:30:00Z" || runs[0].CreatedAt.Year() != 2040 || runs[0].LinkExpires.Year() != 2040 || runs[0].File.DataAsOf.Year() != 2013 {
		t.Fatal(w.dump())
	}
	if got := w.object(runs[0].File.Key); !strings.Contains(got, "2013-07-02") || !strings.Contains(got, "2013-07-01") || !strings.Contains(got, "EWR") {
		t.Errorf("%q", got)
	}
}

func TestParameterThatTheQueryDoesNotDeclare(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT id FROM flights WHERE delay > :least"
	run := w.admitted(d)
	w.quiet()
	w.wantState(run, schedule.Failed, failure.ParameterInvalid)
}

// A recurrence that ends takes the schedule out of the due index and leaves it active.
func TestNothingDueAnyMore(t *testing.T) {
	rule, err := calendar.Parse(calendar.Spec{Cron: daily, Zone: "UTC"})
	if err != nil || rule.Next(start).At.IsZero() {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.apply(w.definition("s", "b"))
	s := w.schedule("s")
	def, err := w.store.Definition(ctx, "s", 1)
	w.must(err)
	r := schedule.NewRun(def, s.NextDue, w.wall(), w.timing)
	w.must(w.store.Admit(ctx, schedule.Admission{Run: r, Token: "t", Schedule: &s, TTL: w.wall().AddDate(1, 0, 0)}))
	if s := w.schedule("s"); !s.NextDue.IsZero() || s.State != schedule.Active {
		t.Errorf("%+v", s)
	}
	w.to(firstDue)
	if tally := w.tick(); tally.Admitted != 0 {
		t.Errorf("%+v", tally)
	}
}

// A tick whose time is nearly up leaves the rest to the next one.
func TestWhatDoesNotFitGoesOnInTheNextTick(t *testing.T) {
	w := newWorld(t, timing(func(t *schedule.Timing) { t.PageSize = 2 }))
	for i := range 60 {
		w.apply(w.definition(fmt.Sprintf("s%02d", i), "b"))
	}
	w.to(firstDue)
	admitted := 0
	w.faults.plan = func(c outside) fault {
		if c.name == "DynamoDB.TransactWriteItems" {
			w.advance(2 * time.Second)
		}
		return none
	}
	for n := 0; admitted < 60; n++ {
		tally := w.tick()
		if admitted += tally.Admitted; n > 20 || (admitted < 60) != tally.Partial || tally.Admitted == 0 {
			t.Fatalf("tick %d: %+v, %d in all", n, tally, admitted)
		}
	}
	for _, d := range w.allRuns() {
		if d.State != schedule.Queued {
			t.Fatal(w.dump())
		}
	}
	if got := w.messages(w.queue.URL); got < 60 {
		t.Errorf("%d messages", got)
	}
}

// stop is ann's wish that a run ends.
func (w *world) stop(why string) schedule.Audit {
	return schedule.Audit{ID: w.token(), Subject: "a run", At: w.wall(), Who: "ann", What: "ask to stop", Why: why}
}
