package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Each test here is a defect that was found by reading or by the death sweep, so that it does not come back.

// atRefusal deals a fault to the write that follows the n-th intent: the refusal of a recipient that is not asked.
func atRefusal(w *world, intent int, f fault) {
	puts, at := 0, 0
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "DynamoDB.PutItem" {
			puts++
			at = c.n
		}
		if puts == intent && c.inv.kind == "deliver" && c.name == "DynamoDB.UpdateItem" && c.n > at {
			puts = -1 << 30
			return f
		}
		return none
	}
}

func TestAnUnwantedRecipientStaysUnwantedAfterADeath(t *testing.T) {
	for _, recipient := range []string{"c", "c@x.com"} {
		for _, why := range []string{"removed", "not on the allow-list"} {
			for _, f := range []fault{dieBefore, lostBefore} {
				t.Run(fmt.Sprintf("%s %s %s", recipient, why, kinds[f]), func(t *testing.T) {
					w := newWorld(t)
					d := w.definition("s", "b", recipient)
					run := w.admitted(d)
					reason := channel.ReasonRemoved
					if why == "removed" {
						d.Recipients = d.Recipients[:1]
						w.apply(d)
					} else {
						reason = channel.ReasonRefused
						w.deliverer.Allowed = func(_, a string) bool { return !strings.HasSuffix(a, "/c") && a != "c@x.com" }
					}
					atRefusal(w, 2, f)
					w.quiet()
					w.wantState(run, schedule.Succeeded, "")
					w.wantSub(run, recipient, schedule.NotDelivered, reason)
					if len(w.hooks.to("c"))+len(w.mail.to("c@x.com")) != 0 {
						t.Error("it was asked\n" + w.dump())
					}
				})
			}
		}
	}
}

// A recipient that is wanted again after a death in between is rendered then, and asked.
func TestARecipientThatIsWantedAgainIsAsked(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b", "c")
	run := w.admitted(d)
	less := d
	less.Recipients = d.Recipients[:1]
	w.apply(less)
	atRefusal(w, 2, dieBefore)
	w.deliver()
	w.faults.plan = nil
	w.apply(d)
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	w.wantSub(run, "c", schedule.Submitted, "")
	if posts := w.hooks.to("c"); len(posts) != 1 || !strings.Contains(posts[0].body, run) {
		t.Errorf("%+v", posts)
	}
}

func TestARemovedRecipientGetsNothingFromADeletedScheduleEither(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b", "c")
	w.hooks.answer = answers("c", status(503), ok())
	run := w.admitted(d)
	w.deliver()
	d.Recipients = d.Recipients[:1]
	w.apply(d)
	w.must(w.editor.Delete(ctx, "s", "over", "ann"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	w.wantSub(run, "c", schedule.NotDelivered, channel.ReasonRemoved)
	if taken(w.hooks.to("c")) != 0 {
		t.Error(w.dump())
	}
}

func TestDeadReceiversAtTheHeadHoldUpNobody(t *testing.T) {
	w := newWorld(t)
	var list []string
	for i := range 30 {
		list = append(list, fmt.Sprintf("dead%02d", i))
	}
	run := w.admitted(w.definition("s", append(list, "good@x.com")...))
	w.hooks.answer = func(string, int) reply { return status(503) }
	w.hooks.during = func(string, int) { w.advance(10 * time.Second) }
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	w.wantSub(run, "good@x.com", schedule.Submitted, "")
	if len(w.mail.to("good@x.com")) != 1 || !strings.Contains(r.ErrorText, "503") {
		t.Errorf("%q\n%s", r.ErrorText, w.dump())
	}
}

func TestStoreTroubleAfterASendLosesAtMostOneOutcome(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a@x.com", "b@x.com", "c@x.com", "d@x.com"))
	sent, left := false, 6
	w.faults.plan = func(c outside) fault {
		sent = sent || c.name == "SES.SendRawEmail"
		if sent && left > 0 && c.name == "DynamoDB.UpdateItem" {
			left--
			return lostBefore
		}
		return none
	}
	w.quiet()
	w.wantState(run, schedule.Failed, failure.DeliveryUnknown)
	unknown := 0
	for _, s := range w.subs(run) {
		if s.State == schedule.Unknown {
			unknown++
		}
	}
	if unknown > 1 || len(w.mail.kept) != 4 {
		t.Errorf("%d unknown, %d mails\n%s", unknown, len(w.mail.kept), w.dump())
	}
}

func TestAnActAndItsAuditAreOne(t *testing.T) {
	for _, f := range []fault{lostBefore, lostAfter, sentTwice} {
		for _, what := range []string{"create", "edit", "pause", "resume", "delete", "run now"} {
			t.Run(what+" "+kinds[f], func(t *testing.T) {
				w := newWorld(t)
				d := w.definition("s", "b")
				if what != "create" {
					w.apply(d)
				}
				if what == "resume" {
					_, err := w.editor.Pause(ctx, "s", "before", "ann")
					w.must(err)
				}
				before := len(w.audits())
				w.faults.plan = func(c outside) fault {
					if c.name == "DynamoDB.TransactWriteItems" {
						w.faults.plan = nil
						return f
					}
					return none
				}
				act := func() (err error) {
					inv := w.invoke("api", time.Minute)
					switch what {
					case "create":
						_, err = w.editor.Apply(inv, d, "ann", 0)
					case "edit":
						d.Name = "Other"
						_, err = w.editor.Apply(inv, d, "ann", 0)
					case "pause":
						_, err = w.editor.Pause(inv, "s", "because", "ann")
					case "resume":
						_, err = w.editor.Resume(inv, "s", "because", "ann")
					case "delete":
						err = w.editor.Delete(inv, "s", "because", "ann")
					case "run now":
						_, _, err = w.editor.RunNow(inv, "s", "ann", "key", "hash")
					}
					return err
				}
				err := act()
				if f == lostBefore && err != nil {
					err = act() // nothing was done: asking again is safe
				}
				if n := len(w.audits()) - before; err != nil || n != 1 {
					t.Errorf("%v, %d audits: %v", err, n, w.audits())
				}
			})
		}
	}
	t.Run("workspace and source", func(t *testing.T) {
		w := newWorld(t)
		before := len(w.audits())
		w.must(w.editor.PutWorkspace(ctx, schedule.Workspace{ID: "LGA", Name: "LaGuardia", Zone: "America/New_York"}, "ann"))
		w.must(w.editor.PutSource(ctx, schedule.SourceConfig{Name: "new", Engine: "sqlite", Object: "x", Workspaces: []string{"*"}}, "ann"))
		if n := len(w.audits()) - before; n != 2 {
			t.Errorf("%d audits", n)
		}
		full := schedule.Workspace{ID: "LGA", Name: "LaGuardia", Zone: "America/New_York", Owner: "airports", Start: "2013-01", Removed: "2013-06-01"}
		w.advance(time.Second)
		w.must(w.editor.PutWorkspace(ctx, full, "ann"))
		list, _, err := w.store.Audits(ctx, "workspace LGA", "", 10)
		if err != nil || len(list) != 2 || list[0].After != "LaGuardia, America/New_York, owner airports, from 2013-01, removed 2013-06-01" || list[1].After != "LaGuardia, America/New_York" {
			t.Errorf("%+v, %v; want both acts with what they set", list, err)
		}
	})
}

// audits lists what people did, as subject and act.
func (w *world) audits() (acts []string) {
	for _, it := range w.db.Items("Schedules") {
		if pk := text(it, schema.PK); strings.HasPrefix(pk, "AUDIT#") {
			acts = append(acts, pk+" "+text(it, schema.What))
		}
	}
	return acts
}

func TestSpentYieldsReleaseAndSayWhy(t *testing.T) {
	w := newWorld(t, timing(func(tm *schedule.Timing) { tm.MaxYields = 2 }))
	run := w.admitted(w.definition("s", strings.Split("b c d e f g h i j k l m", " ")...))
	w.hooks.during = func(string, int) { w.advance(4*time.Minute + 45*time.Second) }
	w.quiet()
	r := w.wantState(run, schedule.Failed, failure.AttemptsExhausted)
	if r.Yields != 2 || !strings.Contains(r.ErrorText, string(failure.OutOfTime)) {
		t.Errorf("%d yields, %q", r.Yields, r.ErrorText)
	}
}

// A receiver's wish holds also when the attempt that heard it ended by a yield.
func TestAYieldKeepsAReceiversWish(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "a", "b", "c", "d", "e"))
	w.hooks.answer = func(name string, n int) reply {
		if name == "a" && n == 0 {
			return reply{status: 429, retryAfter: "900"}
		}
		return ok()
	}
	w.hooks.during = func(name string, _ int) {
		if name != "a" {
			w.advance(4*time.Minute + 45*time.Second)
		}
	}
	w.quiet()
	posts := w.hooks.to("a")
	for i := 1; i < len(posts); i++ {
		if pause := posts[i].at.Sub(posts[0].at); pause < 15*time.Minute {
			t.Errorf("asked again after %s\n%s", pause, w.dump())
		}
	}
	w.wantState(run, schedule.Succeeded, "")
}

func TestALinksLifeCountsFromTheFile(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.File.LinkLife = schedule.Duration(time.Hour)
	run := w.admitted(d)
	w.control(schedule.Control{SendOff: true})
	w.drain()
	w.advance(2 * time.Hour)
	w.control(schedule.Control{})
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	if _, err := w.links.Open(ctx, w.link(run, "b")); err != nil {
		t.Errorf("dead on arrival: %v", err)
	}
}

func TestWhatIsOnlyLateIsNotMissed(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence = calendar.Spec{Cron: "*/5 * * * *", Zone: "UTC"}
	w.apply(d)
	w.to(start.Add(26 * time.Minute)) // :05, :10 and :15 are missed, :20 and :25 only late
	w.tick()
	var ran []string
	for _, r := range w.runs("s") {
		ran = append(ran, r.Nominal.Format("15:04"))
	}
	if got, want := strings.Join(ran, " "), start.Add(25*time.Minute).Format("15:04")+" "+start.Add(20*time.Minute).Format("15:04")+" "+start.Add(15*time.Minute).Format("15:04"); got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	if s := w.skips("s"); len(s) != 1 || s[0].Count != 2 || s[0].Kind != schedule.SkipMissed {
		t.Errorf("%+v", s)
	}
}

// T2 also while nobody ticked: what a change of the clocks left out has its record beside the range that was missed.
func TestT2AGapInsideAnOutageHasItsRecord(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence = calendar.Spec{Cron: "30 2 * * *", Zone: "America/New_York", Gap: calendar.GapSkip}
	w.apply(d)
	w.to(time.Date(2040, 3, 9, 12, 0, 0, 0, time.UTC))
	w.pass(time.Minute)
	w.to(time.Date(2040, 3, 14, 12, 0, 0, 0, time.UTC)) // the clocks change on the 11th
	w.pass(10 * time.Minute)
	kinds := map[schedule.SkipKind]int{}
	for _, s := range w.skips("s") {
		kinds[s.Kind] += s.Count
	}
	if kinds[schedule.SkipGap] != 1 || kinds[schedule.SkipMissed] == 0 {
		t.Errorf("%v %+v", kinds, w.skips("s"))
	}
}

// A worker that was held since it read the run goes on from the row as it stands: the file is not made twice.
func TestAResumeFromAStaleReadUsesTheFileRecordedMeanwhile(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	failed := false
	w.faults.plan = func(c outside) fault {
		if c.inv.kind == "deliver" && c.name == "S3.PutObject" && !failed {
			failed = true
			return lostBefore
		}
		return none
	}
	messages := w.receive(w.queue.URL)
	_, err := w.consumer.Batch(w.invoke("deliver", deliverTime), event(messages))
	w.must(err)
	w.faults.plan = nil
	w.advance(2 * time.Minute)
	w.hooks.answer = answers("b", status(503), ok())
	inv := w.invoke("deliver", deliverTime)
	z, held := w.freeze(inv, 3, func() { _, _ = w.consumer.Batch(inv, event(messages)) })
	if !held {
		t.Fatal("it was not held")
	}
	_, err = w.consumer.Batch(w.invoke("deliver", deliverTime), event(messages))
	w.must(err)
	recorded := w.run(run).File
	z.release()
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if recorded == nil || r.File.Key != recorded.Key || len(w.objects()) != 1 {
		t.Errorf("%v\n%s", w.objects(), w.dump())
	}
}

func TestAZoneLeftOpenIsTheWorkspaces(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Recurrence.Zone = ""
	c, err := w.editor.Apply(ctx, d, "ann", 0)
	w.must(err)
	v, err := w.store.Definition(ctx, "s", 1)
	w.must(err)
	if v.Recurrence.Zone != "America/New_York" || len(c.NextDue) == 0 {
		t.Errorf("%+v %+v", v.Recurrence, c)
	}
	if c, err = w.editor.Apply(ctx, d, "ann", 0); err != nil || c.Action != "unchanged" {
		t.Errorf("%+v %v", c, err)
	}
}

// A worker takes send times for the mails that it has yet to send, whoever else is on the list.
func TestAWorkerTakesSendTimesForItsMailsAlone(t *testing.T) {
	w := newWorld(t, mailRate(5))
	run := w.admitted(w.definition("s", append(mails(12), "b", "c", "e")...))
	watched := w.watchTakes()
	w.deliver()
	w.wantState(run, schedule.Succeeded, "")
	if want := []time.Duration{schedule.TurnSpan, 400 * time.Millisecond}; !slices.Equal(watched.span, want) {
		t.Errorf("12 mails took %v, want %v", watched.span, want)
	}
}

// crowds are groups of as many members as there can be, no two alike, made when they are read. live is the most memory
// that was in use then.
type crowds struct {
	schedule.TargetReader
	live uint64
}

func (c *crowds) RunTargets(context.Context, schedule.Run) ([]string, error) { return nil, nil }

func (c *crowds) GroupVersion(_ context.Context, id string, n int) (schedule.GroupVersion, error) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	c.live = max(c.live, m.HeapAlloc)
	v := schedule.GroupVersion{Number: n, Group: schedule.Group{ID: id, Workspaces: []string{"*"}}}
	for i := range schedule.MaxRecipients {
		v.Recipients = append(v.Recipients, schedule.Recipient{Webhook: fmt.Sprintf("https://%s.example.com/%d/%s", id, i, strings.Repeat("x", 300)), Secret: "ops"})
	}
	return v, nil
}

// The members of all groups that a schedule can name may be more than fit a function's memory: they are counted, and not
// held.
func TestMembersOfManyGroupsAreCountedAndNotHeld(t *testing.T) {
	var def schedule.Version
	run := schedule.Run{Workspace: "EWR", Groups: map[string]int{}}
	for i := range schedule.MaxGroups {
		id := fmt.Sprintf("g%d", i)
		def.Recipients = append(def.Recipients, schedule.Recipient{Group: id})
		run.Groups[id] = 1
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := &crowds{}
	_, err := schedule.RecipientsOf(ctx, c, run, def)
	if err == nil || !strings.Contains(err.Error(), "200000 recipients with the members of g0 (version 1), ") {
		t.Errorf("%v", err)
	}
	if took := int64(c.live) - int64(before.HeapAlloc); took > 40<<20 {
		t.Errorf("%d groups took %d MiB", schedule.MaxGroups, took>>20)
	}
}

// A retry whose row names nobody is sent to nobody: not to all that its definition names.
func TestARetryThatNamesNobodyIsSentToNobody(t *testing.T) {
	w, old := mixed(t)
	asked := len(w.mail.kept) + len(w.hooks.posts)
	r, _, err := w.editor.Retry(ctx, old, schedule.RetryRequest{}, "they called", "ann", "k", "hash")
	w.must(err)
	w.set(schema.RunKey(r.Schedule, r.Occurrence), schema.Targets, &dynamotypes.AttributeValueMemberL{})
	w.quiet()
	got := w.wantState(r.ID(), schedule.Failed, failure.DefinitionInvalid)
	if n := len(w.mail.kept) + len(w.hooks.posts); n != asked || len(w.subs(r.ID())) != 0 || !strings.Contains(got.ErrorText, "does not name") {
		t.Errorf("%d requests more: %s", n-asked, w.dump())
	}
}

// The preview of a retry that names as many unknowns as one may fits an HTTP API's request, beside 4 KB of headers.
func TestAPreviewOfARetryFitsARequest(t *testing.T) {
	run := schema.RunID(strings.Repeat("s", 64), schedule.ManualKey("ann", "key"))
	line := "GET /runs/" + run + "/retry?" + strings.Repeat("&include_unknown="+strings.Repeat("0", 32), schedule.MaxNamed) + " HTTP/1.1"
	if n := len(line) + 4096; n > 10_240 {
		t.Errorf("%d bytes, want at most 10240", n)
	}
}

// A receiver asks to be left alone, and copies of the run's message come meanwhile: none of them uses up an attempt. Found by
// the load under throttles and duplicates, where a run lost its last recipient that way.
func TestACopyUsesUpNoAttemptBeforeItsTime(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", reply{status: 429, retryAfter: "300"}, ok())
	w.drain()
	for range 8 {
		_, err := w.queue.Send(ctx, []string{run})
		w.must(err)
		w.advance(10 * time.Second)
		w.drain()
	}
	if r := w.run(run); r.Attempts != 1 || len(w.hooks.to("b")) != 1 {
		t.Fatalf("%d attempts and %d requests before the time\n%s", r.Attempts, len(w.hooks.to("b")), w.dump())
	}
	w.quiet()
	if r := w.wantState(run, schedule.Succeeded, ""); r.Attempts != 2 || len(w.hooks.to("b")) != 2 {
		t.Errorf("%d attempts and %d requests\n%s", r.Attempts, len(w.hooks.to("b")), w.dump())
	}
}

// Who has it stopped does not wait for the next attempt's time.
func TestARestingRunIsStoppedByTheNextMessage(t *testing.T) {
	w := newWorld(t)
	run := w.admitted(w.definition("s", "b"))
	w.hooks.answer = answers("b", reply{status: 429, retryAfter: "300"})
	w.drain()
	_, err := w.editor.Stop(ctx, run, "enough", "ann")
	w.must(err)
	_, err = w.queue.Send(ctx, []string{run})
	w.must(err)
	w.drain()
	w.wantState(run, schedule.Failed, failure.StoppedByOperator)
}

// A dead worker's run is no resting one: whoever comes after its lease goes on at once, however long the margins are.
func TestADeadWorkersRunDoesNotRest(t *testing.T) {
	w := newWorld(t, timing(func(t *schedule.Timing) {
		t.LeaseMargin, t.SweepReleased = schedule.Duration(10*time.Minute), schedule.Duration(time.Minute)
	}))
	run := w.admitted(w.definition("s", "b"))
	z, held := w.freezeDeliver(4)
	if !held {
		t.Fatal("the attempt makes fewer than four calls")
	}
	r := w.run(run)
	if r.LeaseOwner == "" {
		t.Fatalf("the worker was held before it took the lease: %+v", r)
	}
	w.to(r.LeaseEnd.Add(time.Second))
	w.raw(schedule.EncodeMessage(run))
	w.deliver()
	if r := w.run(run); r.Attempts != 2 {
		t.Errorf("%d attempts, want the second one to begin as soon as the lease is over\n%s", r.Attempts, w.dump())
	}
	z.release()
}

func TestASwitchNeedsAReason(t *testing.T) {
	w := newWorld(t)
	off := false
	_, err := w.editor.Switch(ctx, schedule.Switches{Send: &off}, "", "ann")
	var ps schedule.Problems
	if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Field != "reason" {
		t.Errorf("got %v, want a problem with the reason", err)
	}
	if c, err := w.store.Control(ctx); err != nil || c.SendOff {
		t.Errorf("%+v, %v: sending was switched off without a reason", c, err)
	}
}
