package schedule_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// What a message asks for is an act as well: it is told by the message's coming again, or by the wish that stays in the
// outbox. Recipients of these are webhooks, so that what is asked for again is asked for under the same key.
func init() {
	for name, a := range map[string]act{
		"message of a run":             {false, twoHooks, message},
		"message while sending is off": {true, func(w *world) string { run := twoHooks(w); w.control(schedule.Control{SendOff: true}); return run }, message},
		"message that somebody stopped": {false, func(w *world) string {
			run := twoHooks(w)
			w.must(second(w.editor.Stop(bg, run, "why", "ann")))
			return run
		}, message},
		"message after a worker died": {false, func(w *world) string {
			run := twoHooks(w)
			w.dies("Webhook.Send")
			w.to(w.run(run).LeaseEnd.Add(time.Second))
			return run
		}, message},
		"message after a receiver was busy": {false, busy, message},
		"message for one who may not be asked any more": {false, func(w *world) string {
			run := busy(w)
			w.deliverer.Allowed = boot.AllowList([]string{"example.com"})
			return run
		}, message},
		"message after a mail was not accepted": {false, func(w *world) string {
			w.mail.answer = func(_ string, n int) error {
				if n == 1 {
					return coded("Throttling", "Maximum sending rate exceeded.")
				}
				return nil
			}
			run := w.admitted(w.definition("s", "a@x.com"))
			w.deliver()
			w.advance(time.Hour)
			return run
		}, mailSent},
		"message of a run whose query is paid for": {false, func(w *world) string {
			w.lake(delays(time.Second))
			return w.admitted(w.lakeDefinition())
		}, message},
		"message of a run without rows": {false, func(w *world) string {
			d := w.definition("s", "b")
			d.Query, d.Empty = "SELECT id FROM flights WHERE id > 99", schedule.SuppressEmpty
			return w.admitted(d)
		}, message},
		"message of a query since the last success": {false, func(w *world) string {
			d := w.definition("s", "b")
			d.Query = "SELECT id FROM flights WHERE :last_success_time IS NULL OR id > 1"
			return w.admitted(d)
		}, message},
		"message of a wish":                      {false, wished, sent},
		"message of a wish whose answer is lost": {false, func(w *world) string { id := wished(w); w.hooks.answer = answers("b", reply{cut: true}); return id }, wish},
		"message of a wish that may not be sent": {false, func(w *world) string {
			id := wished(w)
			w.deliverer.Allowed = boot.AllowList([]string{"example.com"})
			return id
		}, wish},
		"message of a wish nobody came back from": {false, func(w *world) string { id := wished(w); w.dies("Webhook.Send"); w.advance(time.Hour); return id }, wish},
		"message of a notice":                     {false, outboxed, notice},
		"message of a notice nobody is to receive": {false, func(w *world) string {
			id := outboxed(w)
			w.deliverer.Allowed = boot.AllowList([]string{"elsewhere.test"})
			return id
		}, notice},
	} {
		acts[name] = a
	}
}

var errAgain = errors.New("it comes again")

func message(ctx context.Context, w *world, run string) (any, error) {
	if w.deliverer.Handle(ctx, schedule.EncodeMessage(run)).Again {
		return nil, errAgain
	}
	return nil, nil
}

// mailSent is a message whose mail was sent, unless nobody knows of it.
func mailSent(ctx context.Context, w *world, run string) (any, error) {
	if _, err := message(ctx, w, run); err != nil {
		return nil, err
	}
	if w.sub(run, "a@x.com").State == schedule.Unknown {
		return nil, errors.New("nobody knows of it")
	}
	return nil, nil
}

func wish(ctx context.Context, w *world, id string) (any, error) {
	again := w.deliverer.Handle(ctx, schedule.EncodeResend(id)).Again
	return nil, w.settledOf(id, again)
}

// sent is a wish that is carried out, unless nobody knows of it again.
func sent(ctx context.Context, w *world, id string) (any, error) {
	if _, err := wish(ctx, w, id); err != nil {
		return nil, err
	}
	run, _, _, _, _ := schema.SplitResendID(id)
	if w.sub(run, "b").State == schedule.Unknown {
		return nil, errors.New("nobody knows of it, as before")
	}
	return nil, nil
}

func notice(ctx context.Context, w *world, id string) (any, error) {
	again := w.deliverer.Handle(ctx, schedule.EncodeNotice(id)).Again
	return nil, w.settledOf(id, again)
}

// settledOf is an error while a wish or a notice is to be seen to again.
func (w *world) settledOf(id string, again bool) error {
	if again || slices.Contains(w.notices(), strings.TrimPrefix(id, schema.OutPrefix)) {
		return errAgain
	}
	return nil
}

func twoHooks(w *world) string { return w.admitted(w.definition("s", "b", "c")) }

// busy is a run whose first receiver has answered once that it is busy.
func busy(w *world) string {
	w.hooks.answer = answers("b", status(503), ok())
	run := twoHooks(w)
	w.deliver()
	w.advance(time.Hour)
	return run
}

// wished is a wish to send again what nobody knows of.
func wished(w *world) string {
	run := oneUnknown(w)
	sub := w.resend(run, "b")
	return schema.ResendID(run, sub.Channel, sub.RecipientHash, sub.Wish.ID)
}

// outboxed is a notice that waits in the outbox.
func outboxed(w *world) string {
	d := w.definition("s", "b")
	d.Query = "SELECT missing FROM flights"
	w.telling(&d)
	w.admitted(d)
	announcers := w.deliverer.Notices
	w.deliverer.Notices = nil // the worker that fails the run has no time for it
	w.deliver()
	w.deliverer.Notices = announcers
	return w.notices()[0]
}

// dies lets the next worker die once it has made a call.
func (w *world) dies(call string) {
	w.faults.plan = dies("deliver", call, dieAfter)
	w.deliver()
	w.faults.plan = nil
}

// A query that breaks off while its rows are written leaves no file, and the run tells why.
func TestAQueryThatBreaksOffLeavesNoFile(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Limits.Rows = 1
	run := w.admitted(d)
	w.quiet()
	if r := w.wantState(run, schedule.Failed, failure.QueryTooManyRows); r.File != nil || len(w.hooks.to("b")) != 0 {
		t.Errorf("file %+v, %d requests", r.File, len(w.hooks.to("b")))
	}
}

// A channel that is taken out of a stage between two attempts fails the run by name; nothing else is asked.
func TestAChannelThatIsNotThereAnyMore(t *testing.T) {
	w := newWorld(t)
	run := busy(w)
	before := len(w.hooks.to("b"))
	delete(w.deliverer.Channels, "webhook")
	w.quiet()
	w.wantState(run, schedule.Failed, failure.ChannelMisconfig)
	if n := len(w.hooks.to("b")); n != before {
		t.Errorf("%d more requests", n-before)
	}
}

// Two retries under one key for different things, at once: one makes the run, the other is told that its key is used.
func TestTwoRetriesAtOnceUnderOneKey(t *testing.T) {
	w := newWorld(t)
	run := oneUnknown(w)
	retry := func(hash string) (bool, error) {
		_, created, err := w.editor.Retry(w.invoke("act", dispatchTime), run, schedule.RetryRequest{To: schedule.RetryEveryone}, "why", "ann", "key", hash)
		return created, err
	}
	w.faults.plan = func(c outside) fault {
		if c.name == "DynamoDB.TransactWriteItems" {
			w.faults.plan = nil
			if created, err := retry("other"); !created || err != nil {
				t.Errorf("the faster one: %t, %v", created, err)
			}
		}
		return none
	}
	created, err := retry("mine")
	var c *schedule.Conflict
	if created || !errors.As(err, &c) || !strings.Contains(c.Why, "key reused") {
		t.Errorf("got %t, %v", created, err)
	}
}
