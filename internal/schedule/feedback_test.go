package schedule_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-lambda-go/events"
)

const ourAccount = "111122223333"

// object is a JSON object.
type object = map[string]any

// bounced is what SES publishes when a letter comes back for good, with the letter's own headers; change, if not nil,
// makes it another event.
func (w *world) bounced(l letter, id string, change func(event, mail object)) string {
	w.t.Helper()
	header, _, _ := l.parts(w.t)
	headers := []any{}
	for name, values := range header {
		for _, v := range values {
			headers = append(headers, object{"name": name, "value": v})
		}
	}
	at := w.wall().Format("2006-01-02T15:04:05.000Z")
	mail := object{"timestamp": at, "sendingAccountId": ourAccount, "messageId": id, "destination": []string{l.to}, "headersTruncated": false, "headers": headers}
	event := object{"eventType": "Bounce", "mail": mail, "bounce": object{"bounceType": "Permanent", "bounceSubType": "General", "timestamp": at,
		"bouncedRecipients": []any{object{"emailAddress": l.to, "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 <" + l.to + ">: user unknown"}}}}
	if change != nil {
		change(event, mail)
	}
	b, err := json.Marshal(event)
	w.must(err)
	return string(b)
}

func complained(kind string) func(event, mail object) {
	return func(event, mail object) {
		event["eventType"] = "Complaint"
		event["complaint"] = object{"timestamp": mail["timestamp"], "complaintFeedbackType": kind}
	}
}

// events invokes delivery-events once with messages; it returns those that come again.
func (w *world) events(bodies ...string) (again []string) {
	w.t.Helper()
	taker := &schedule.FeedbackTaker{Ledger: w.store, Parse: email.ParseEvent, Account: ourAccount, Wall: w.wall, Log: boot.NewLogger(w.log), Count: func(name string, n int, outcome, kind string) {
		w.mu.Lock()
		w.counts[strings.TrimSpace(name+" "+outcome+" "+kind)] += n
		w.mu.Unlock()
	}}
	inv := w.invoke("events", dispatchTime)
	defer w.end(inv)
	var e events.SQSEvent
	for i, b := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprintf("m-%d", i), Body: b})
	}
	out, err := boot.MailEvents{Handle: taker.Handle, Log: boot.NewLogger(w.log)}.Batch(inv, e)
	w.must(err)
	if inv.dead.Load() {
		return bodies
	}
	for i, b := range bodies {
		for _, f := range out.BatchItemFailures {
			if f.ItemIdentifier == fmt.Sprintf("m-%d", i) {
				again = append(again, b)
			}
		}
	}
	return again
}

// mailed is a run of "s" that has succeeded, and the letter of its one recipient.
func mailed(t testing.TB) (w *world, run string, l letter) {
	w = newWorld(t)
	run = w.admitted(w.definition("s", "a@example.com"))
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	return w, run, w.mail.to("a@example.com")[0]
}

// hashed is how records name an address.
func hashed(address string) string {
	return schedule.Targets([]schedule.Recipient{{Email: address}})[0].Hash
}

func (w *world) suppressed(address string) bool {
	w.t.Helper()
	s, err := w.store.Suppression(ctx, channel.Email, hashed(address))
	return err == nil && s.Holds()
}

// A bounce stands beside the outcome, the run stays settled, the next run passes the address over, and a person who lifts
// that lets it through again: whatever comes twice.
func TestABounceIsAddedBesideTheOutcome(t *testing.T) {
	w, run, l := mailed(t)
	before := w.run(run)
	event := w.bounced(l, "ses-1", nil)
	for range 2 {
		if again := w.events(event, event); len(again) > 0 {
			t.Fatalf("comes again: %v\n%s", again, w.log.text())
		}
	}
	s := w.sub(run, "a@example.com")
	if s.State != schedule.Submitted || len(s.Feedback) != 1 || s.Feedback[0] != (channel.Feedback{Kind: channel.Bounced, At: w.wall(), Type: channel.Permanent, Subtype: "General",
		Why: "mailbox does not exist", Detail: "5.1.1 smtp; 550 5.1.1 <…>: user unknown", Mail: "ses-1"}) || s.Feedback[0].Mail != s.ProviderID {
		t.Fatalf("%+v", s)
	}
	if r := w.run(run); !reflect.DeepEqual(r, before) {
		t.Fatalf("the run is %+v, was %+v", r, before)
	}
	sup, err := w.store.Suppression(ctx, channel.Email, hashed("a@example.com"))
	if err != nil || sup.Reason != "bounce" || sup.Why != "mailbox does not exist" || sup.Run != run || !sup.At.Equal(s.Feedback[0].At) || !sup.Holds() {
		t.Fatalf("%+v, %v", sup, err)
	}
	if w.counts["mail_events bounce_permanent delivery"] != 4 {
		t.Errorf("counts %v", w.counts)
	}

	w.to(firstDue.AddDate(0, 0, 1))
	w.quiet()
	second := schema.RunID("s", schedule.OccurrenceKey(firstDue.AddDate(0, 0, 1)))
	w.wantState(second, schedule.Succeeded, "")
	w.wantSub(second, "a@example.com", schedule.NotDelivered, channel.ReasonSuppressed)

	for range 2 {
		if got, err := w.editor.Lift(ctx, channel.Email, hashed("a@example.com"), "mailbox mended", "ann"); err != nil || got.Lift.By != "ann" || got.Lift.Why != "mailbox mended" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	w.events(event) // once more, long after
	w.to(firstDue.AddDate(0, 0, 2))
	w.quiet()
	third := schema.RunID("s", schedule.OccurrenceKey(firstDue.AddDate(0, 0, 2)))
	w.wantSub(third, "a@example.com", schedule.Submitted, "")
	if n := len(w.mail.to("a@example.com")); n != 2 {
		t.Fatalf("%d mails, want 2", n)
	}
	// It bounces again.
	w.advance(time.Second)
	w.events(w.bounced(w.mail.to("a@example.com")[1], "ses-2", nil))
	if !w.suppressed("a@example.com") {
		t.Error("a bounce after the person's act does not suppress")
	}
}

// What suppresses and what does not, what is added and what stands.
func TestKindsOfFeedback(t *testing.T) {
	transient := func(event, _ object) { event["bounce"].(object)["bounceType"] = "Transient" }
	rejected := func(event, _ object) { event["eventType"], event["reject"] = "Reject", object{"reason": "Bad content"} }
	tomorrow := func(event, _ object) { event["bounce"].(object)["timestamp"] = "2099-01-01T00:00:00.000Z" }
	for _, x := range []struct {
		name       string
		change     func(event, mail object)
		kind       channel.FeedbackKind
		suppresses bool
		counted    string
	}{
		{"permanent", nil, channel.Bounced, true, "bounce_permanent"},
		{"transient", transient, channel.Bounced, false, "bounce_transient"},
		{"complaint", complained("abuse"), channel.Complained, true, "complaint"},
		{"no spam", complained("not-spam"), channel.Complained, false, "complaint"},
		{"rejected", rejected, channel.Rejected, false, "rejection"},
		{"in a time to come", tomorrow, channel.Bounced, true, "bounce_permanent"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, run, l := mailed(t)
			w.advance(time.Minute)
			if again := w.events(w.bounced(l, "ses-1", x.change)); len(again) > 0 {
				t.Fatal(w.log.text())
			}
			s := w.sub(run, "a@example.com")
			if s.State != schedule.Submitted || len(s.Feedback) != 1 || s.Feedback[0].Kind != x.kind || s.Feedback[0].At.After(w.wall()) {
				t.Errorf("%+v", s)
			}
			if w.suppressed("a@example.com") != x.suppresses || w.counts["mail_events "+x.counted+" delivery"] != 1 {
				t.Errorf("suppressed %v, counts %v", w.suppressed("a@example.com"), w.counts)
			}
		})
	}
	t.Run("one of each kind", func(t *testing.T) {
		w, run, l := mailed(t)
		w.events(w.bounced(l, "ses-1", rejected), w.bounced(l, "ses-1", complained("abuse")), w.bounced(l, "ses-1", transient), w.bounced(l, "ses-9", nil))
		s := w.sub(run, "a@example.com")
		if len(s.Feedback) != 3 || s.Feedback[0].Type != channel.Transient || s.Feedback[1].Type != "abuse" || s.Feedback[2].Kind != channel.Rejected {
			t.Errorf("%+v", s.Feedback)
		}
		if sup, err := w.store.Suppression(ctx, channel.Email, hashed("a@example.com")); err != nil || sup.Reason != "complaint" {
			t.Errorf("the first reason does not stand: %+v, %v", sup, err)
		}
	})
}

// Feedback tells of an unknown that its mail did leave, and of a resend, whose mail has a key and an id of its own.
func TestFeedbackOfAnUnknownAndOfItsResend(t *testing.T) {
	w, run := lostMail(t)
	w.events(w.bounced(w.mail.to("a@example.com")[0], "ses-1", func(event, _ object) { event["bounce"].(object)["bounceType"] = "Transient" }))
	s := w.sub(run, "a@example.com")
	if s.State != schedule.Unknown || len(s.Feedback) != 1 || s.Feedback[0].Mail != "ses-1" || s.ProviderID != "" {
		t.Fatalf("%+v", s)
	}
	w.mail.answer = nil
	w.faults.plan = nil
	_, err := w.editor.Resend(ctx, run, hashed("a@example.com"), "they called", "ann")
	w.must(err)
	w.quiet()
	letters := w.mail.to("a@example.com")
	if header, _, _ := letters[len(letters)-1].parts(t); !strings.HasSuffix(header.Get("X-Almanac-Delivery"), "/2") {
		t.Fatalf("the resend's key is %q", header.Get("X-Almanac-Delivery"))
	}
	w.events(w.bounced(letters[len(letters)-1], "ses-other", complained("abuse")), w.bounced(letters[len(letters)-1], "ses-2", nil))
	s = w.sub(run, "a@example.com")
	if s.State != schedule.Submitted || len(s.Feedback) != 3 || s.Feedback[2].Mail == s.ProviderID {
		t.Fatalf("%+v", s)
	}
	if a, b := s.Feedback[0], s.Feedback[1]; a.Mail != "ses-1" || a.Type != channel.Transient || b.Mail != "ses-2" || b.Type != channel.Permanent {
		t.Errorf("the resend's bounce does not stand beside the first: %+v", s.Feedback)
	}
}

// lostMail is a run whose one mail left, and whose answer was lost.
func lostMail(t *testing.T) (*world, string) {
	w := newWorld(t)
	w.faults.plan = func(c outside) fault {
		if c.name == "SES.SendRawEmail" {
			return lostAfter
		}
		return none
	}
	run := w.admitted(w.definition("s", "a@example.com"))
	w.quiet()
	w.wantSub(run, "a@example.com", schedule.Unknown, "")
	return w, run
}

// Mails of notices suppress too, while the run that they tell of is there.
func TestABouncedNoticeSuppresses(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "b")
	d.Query = "SELECT nothing FROM flights"
	w.telling(&d)
	run := w.admitted(d)
	w.quiet()
	event := w.bounced(w.mail.to("boss@example.com")[0], "ses-1", nil)
	if again := w.events(event); len(again) > 0 || !w.suppressed("boss@example.com") || w.counts["mail_events bounce_permanent notice"] != 1 {
		t.Fatalf("%v %v\n%s", again, w.counts, w.log.text())
	}
	if s, err := w.store.Suppression(ctx, channel.Email, hashed("boss@example.com")); err != nil || s.Run != run {
		t.Errorf("%+v, %v", s, err)
	}
	w2 := newWorld(t)
	if again := w2.events(event); len(again) > 0 || w2.suppressed("boss@example.com") || w2.counts["mail_events nobody bounce"] != 1 {
		t.Errorf("of a run that is not there: %v %v", again, w2.counts)
	}
}

// Events about mails that are none of ours change nothing, and do not come again. Those that cannot be read do.
func TestEventsOfOthersAreDropped(t *testing.T) {
	w, run, l := mailed(t)
	key := run + "/email#" + hashed("a@example.com")
	headers := func(names ...string) func(event, mail object) {
		return func(_, mail object) {
			list := []any{}
			for i := 0; i < len(names); i += 2 {
				list = append(list, object{"name": names[i], "value": names[i+1]})
			}
			mail["headers"] = list
		}
	}
	const name = "X-Almanac-Delivery"
	for what, change := range map[string]func(event, mail object){
		"another account":           func(_, mail object) { mail["sendingAccountId"] = "999999999999" },
		"no account":                func(_, mail object) { delete(mail, "sendingAccountId") },
		"no header of ours":         headers("To", "a@example.com"),
		"no headers":                func(_, mail object) { delete(mail, "headers") },
		"truncated before ours":     func(_, mail object) { mail["headers"], mail["headersTruncated"] = []any{}, true },
		"delivery and notice":       headers(name, key, "X-Almanac-Notice", run+"#failed#email#"+hashed("a@example.com")),
		"the header twice":          headers(name, key, name, key),
		"a key of nothing":          headers(name, "x"),
		"a run of nothing":          headers(name, "s/email#"+hashed("a@example.com")),
		"a run that never was":      headers(name, "t@2040-03-05T12:30:00Z/email#"+hashed("a@example.com")),
		"an occurrence of nothing":  headers(name, "s@x y/email#"+hashed("a@example.com")),
		"a hostile schedule":        headers(name, "../s@2040-03-05T12:30:00Z/email#"+hashed("a@example.com")),
		"a webhook's key":           headers(name, run+"/webhook#"+hashed("a@example.com")),
		"a hash of nothing":         headers(name, run+"/email#"+strings.ToUpper(hashed("a@example.com"))),
		"a first resend":            headers(name, key+"/1"),
		"a resend of nothing":       headers(name, key+"/02"),
		"somebody else's recipient": headers(name, run+"/email#"+hashed("b@example.com")),
		"it went to somebody else":  func(_, mail object) { mail["destination"] = []string{"b@example.com", "no address"} },
		"it went to nobody":         func(_, mail object) { delete(mail, "destination") },
		"another kind":              func(event, _ object) { event["eventType"] = "Delivery" },
		"a notice's id of nothing":  headers("X-Almanac-Notice", "x#y"),
	} {
		t.Run(what, func(t *testing.T) {
			if again := w.events(w.bounced(l, "ses-1", change)); len(again) > 0 {
				t.Errorf("it comes again: %s", w.log.text())
			}
			if s := w.sub(run, "a@example.com"); len(s.Feedback) > 0 || w.suppressed("a@example.com") || w.suppressed("b@example.com") {
				t.Errorf("it changed something: %+v", s)
			}
		})
	}
	if n := w.counts["mail_events nobody bounce"] + w.counts["mail_events ignored"]; n != 21 {
		t.Errorf("%d dropped: %v", n, w.counts)
	}
	good := w.bounced(l, "ses-1", nil)
	bad := []string{"", "a@example.com", `{"eventType":"Bounce"}`}
	if again := w.events(append(bad, good)...); fmt.Sprint(again) != fmt.Sprint(bad) || w.counts["mail_events unreadable"] != len(bad) || !w.suppressed("a@example.com") {
		t.Errorf("%q come again, want %q: %v", again, bad, w.counts)
	}
	w.expire(schema.SubmissionKey(run, channel.Email, hashed("a@example.com")))
	if again := w.events(good); len(again) > 0 || len(w.subs(run)) != 0 {
		t.Errorf("of an expired submission: %v comes again, %v is there", again, w.subs(run))
	}
	for _, secret := range []string{"@example.com", "user unknown", "diagnosticCode"} {
		if strings.Contains(w.log.text(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, w.log.text())
		}
	}
}

// Whatever dies, is lost or is sent twice at whichever call, an event that is delivered until it is taken is recorded
// once, with its suppression.
func TestDeathAtEveryCallOfAnEvent(t *testing.T) {
	take := func(f func(outside) fault, notice bool) (w *world, calls []string) {
		w, _, l := mailed(t)
		if notice {
			d := w.definition("t", "b")
			d.Query = "SELECT nothing FROM flights"
			w.telling(&d)
			w.apply(d)
			w.to(firstDue.AddDate(0, 0, 1))
			w.quiet()
			l = w.mail.to("boss@example.com")[0]
		}
		event := w.bounced(l, "ses-1", nil)
		w.faults.n, w.faults.log, w.faults.plan = 0, nil, f
		for n := 0; len(w.events(event)) > 0; n++ {
			if n > 3 {
				t.Fatalf("the event is never taken: %s", w.log.text())
			}
		}
		w.faults.plan = nil
		return w, w.faults.log
	}
	for _, notice := range []bool{false, true} {
		_, calls := take(nil, notice)
		if len(calls) != 2 {
			t.Fatalf("calls %v, want two", calls)
		}
		for n := 1; n <= len(calls); n++ {
			for f, kind := range kinds {
				w, _ := take(nth(n, f), notice)
				address := "a@example.com"
				if notice {
					address = "boss@example.com"
				} else if s := w.sub("s@"+schedule.OccurrenceKey(firstDue), address); len(s.Feedback) != 1 || s.State != schedule.Submitted {
					t.Errorf("%s at call %d (%s): %+v", kind, n, calls[n-1], s)
				}
				if !w.suppressed(address) {
					t.Errorf("%s at call %d (%s): not suppressed", kind, n, calls[n-1])
				}
			}
		}
	}
}

// TestLiftRefusesWhatNamesNobody: for each field absent, of a wrong form, hostile.
func TestLiftRefusesWhatNamesNobody(t *testing.T) {
	w := newWorld(t)
	h := hashed("a@example.com")
	for _, x := range []struct{ channel, recipient, reason, field string }{
		{"email", h, "", "reason"}, {"email", h, " ", "reason"}, {"email", h, strings.Repeat("x", 201), "reason"},
		{"", h, "x", "channel"}, {"fax", h, "x", "channel"}, {"email\n", h, "x", "channel"},
		{"email", "", "x", "recipient"}, {"email", "a@example.com", "x", "recipient"}, {"email", h + "0", "x", "recipient"}, {"email", h[:31] + "#", "x", "recipient"},
	} {
		if _, err := w.editor.Lift(ctx, x.channel, x.recipient, x.reason, "ann"); err == nil || !strings.HasPrefix(err.Error(), x.field+" is ") {
			t.Errorf("%+v: %v, want a problem with %s", x, err, x.field)
		}
	}
	if _, err := w.editor.Lift(ctx, "email", h, "x", "ann"); err != schedule.ErrNotFound {
		t.Errorf("%v, want not found", err)
	}
}
