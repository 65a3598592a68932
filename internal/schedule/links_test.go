package schedule_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// linked is a world whose run has delivered to a mail and a webhook.
func linked(t *testing.T, change func(*schedule.Definition)) (w *world, run string) {
	w = newWorld(t)
	d := w.definition("s", "a@x.com", "b")
	if change != nil {
		change(&d)
	}
	run = w.admitted(d)
	w.quiet()
	w.wantState(run, schedule.Succeeded, "")
	return w, run
}

func wantGone(t *testing.T, err error, why string) *schedule.LinkGone {
	t.Helper()
	var gone *schedule.LinkGone
	if !errors.As(err, &gone) || gone.Why != why {
		t.Fatalf("got %v, want a link that is %s", err, why)
	}
	return gone
}

func TestLinkLivesAsLongAsTheFile(t *testing.T) {
	w, run := linked(t, nil)
	link := w.link(run, "a@x.com")
	w.shift = -24 * 365 * time.Hour // business time has no say
	for _, day := range []int{0, 6, 29} {
		w.advance(firstDue.AddDate(0, 0, day).Sub(w.wall()).Abs())
		url, err := w.links.Open(ctx, link)
		if err != nil || !strings.HasPrefix(url, "signed files/30d/s/") || !strings.HasSuffix(url, " for 1m0s") {
			t.Fatalf("day %d: %q %v", day, url, err)
		}
	}
	w.advance(firstDue.AddDate(0, 0, 30).Sub(w.wall()))
	gone := wantGone(t, second(w.links.Open(ctx, link)), "expired")
	if gone.ScheduleName != "Delays s" || gone.Owner != "ops@example.com" || gone.At.IsZero() {
		t.Errorf("it does not say whom to ask: %+v", gone)
	}
	w.advance(24 * time.Hour)
	wantGone(t, second(w.links.Open(ctx, link)), "expired")
	accesses := 0
	for _, it := range w.db.Items("Schedules") {
		if strings.HasPrefix(text(it, schema.SK), "ACCESS#") {
			accesses++
		}
	}
	if accesses != 3 {
		t.Errorf("%d accesses are logged, want 3", accesses)
	}
}

func TestLinkLife(t *testing.T) {
	w, run := linked(t, func(d *schedule.Definition) { d.File.LinkLife = schedule.Duration(7 * 24 * time.Hour) })
	link := w.link(run, "b")
	w.advance(6 * 24 * time.Hour)
	if _, err := w.links.Open(ctx, link); err != nil {
		t.Fatal(err)
	}
	w.advance(24 * time.Hour)
	wantGone(t, second(w.links.Open(ctx, link)), "expired")
}

func TestLinkLifeOfSeconds(t *testing.T) {
	w, run := linked(t, func(d *schedule.Definition) { d.File.LinkLife = schedule.Duration(2 * time.Second) })
	w.advance(2 * time.Second)
	wantGone(t, second(w.links.Open(ctx, w.link(run, "b"))), "expired")
}

func TestRevokedLink(t *testing.T) {
	w, run := linked(t, nil)
	s := w.sub(run, "b")
	w.set(schema.SubmissionKey(run, s.Channel, s.RecipientHash), schema.RevokedAt, txt(schema.Time(w.wall())))
	if gone := wantGone(t, second(w.links.Open(ctx, w.link(run, "b"))), "revoked"); gone.Owner == "" {
		t.Errorf("%+v", gone)
	}
	if _, err := w.links.Open(ctx, w.link(run, "a@x.com")); err != nil {
		t.Errorf("another recipient's link went with it: %v", err)
	}
}

func TestAccessThatCannotBeLoggedIsNotHandedOut(t *testing.T) {
	w, run := linked(t, nil)
	inv := w.invoke("api", time.Minute)
	w.faults.plan = func(c outside) fault {
		if c.name == "DynamoDB.PutItem" {
			return lostBefore
		}
		return none
	}
	if url, err := w.links.Open(inv, w.link(run, "b")); err == nil || url != "" {
		t.Errorf("%q %v", url, err)
	}
}

func TestHostileTokens(t *testing.T) {
	w, run := linked(t, nil)
	good := w.sub(run, "b")
	encode := func(parts ...string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\n")))
	}
	for name, token := range map[string]string{
		"empty": "", "no base64": "%%%", "padded": w.link(run, "b") + "==", "empty secret": encode(good.Run, good.Channel, good.RecipientHash, ""),
		"wrong secret": encode(good.Run, good.Channel, good.RecipientHash, "guess"), "another recipient's secret": encode(good.Run, good.Channel, good.RecipientHash, w.sub(run, "a@x.com").Token),
		"no such run": encode("s@2001-01-01T00:00:00Z", good.Channel, good.RecipientHash, good.Token), "no run": encode("", good.Channel, good.RecipientHash, good.Token),
		"a part more": encode(good.Run, good.Channel, good.RecipientHash, good.Token, "x"), "a part less": encode(good.Run, good.Channel, good.Token),
		"long": encode(strings.Repeat("x", 4000), "a", "b", "c"), "another kind of row": encode(good.Run, good.Channel+"#"+good.RecipientHash, "", good.Token),
		"binary": encode("\x00\xff", "\x00", "\x00", "\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{second(w.links.Open(ctx, token)), second(w.links.Unsubscription(ctx, token)), second(w.links.Unsubscribe(ctx, token))} {
				if gone := wantGone(t, err, "unknown"); gone.ScheduleName != "" || gone.Owner != "" {
					t.Errorf("it tells a stranger something: %+v", gone)
				}
			}
		})
	}
	w.expire(schema.RunKey("s", schedule.OccurrenceKey(firstDue)))
	wantGone(t, second(w.links.Open(ctx, w.link(run, "b"))), "unknown")
}

// A link that was sent before its file was recorded cannot be; a submission without a file leads nowhere.
func TestLinkOfARunWithoutAFile(t *testing.T) {
	w, run := linked(t, nil)
	link := w.link(run, "b")
	w.remove(schema.RunKey("s", schedule.OccurrenceKey(firstDue)), schema.File)
	wantGone(t, second(w.links.Open(ctx, link)), "unknown")
}

func TestUnsubscribeByItsLinkTwice(t *testing.T) {
	w, run := linked(t, nil)
	header, _, _ := w.mail.to("a@x.com")[0].parts(t)
	link := w.unsubscribeLink(run, "a@x.com")
	if got := header.Get("List-Unsubscribe"); !strings.Contains(strings.ReplaceAll(got, " ", ""), "https://almanac.example/unsubscribe/"+link) || header.Get("List-Unsubscribe-Post") == "" {
		t.Errorf("List-Unsubscribe %q", got)
	}
	if u, err := w.links.Unsubscription(ctx, link); err != nil || u.Done || u.ScheduleName != "Delays s" || u.Owner == "" {
		t.Fatalf("%+v %v", u, err)
	}
	for range 2 {
		if u, err := w.links.Unsubscribe(ctx, link); err != nil || !u.Done {
			t.Fatalf("%+v %v", u, err)
		}
		w.advance(time.Second)
	}
	if u, err := w.links.Unsubscription(ctx, link); err != nil || !u.Done {
		t.Fatalf("%+v %v", u, err)
	}
	w.to(firstDue.AddDate(0, 0, 1))
	w.quiet()
	next := w.runs("s")[0].ID()
	w.wantState(next, schedule.Succeeded, "")
	w.wantSub(next, "a@x.com", schedule.NotDelivered, channel.ReasonUnsubscribed)
	w.wantSub(next, "b", schedule.Submitted, "")
}

func TestWebhookBodyHasALinkAndNoUnsubscribe(t *testing.T) {
	w, run := linked(t, nil)
	body := w.hooks.to("b")[0].body
	if !strings.Contains(body, "https://almanac.example/files/"+w.link(run, "b")) || strings.Contains(body, "unsubscribe") {
		t.Errorf("%s", body)
	}
	if got := w.deliverer.Links.Unsubscribe(w.sub(run, "b")); got != "" {
		t.Errorf("a webhook has an unsubscribe link %q", got)
	}
}

// Who is forwarded the link to a file cannot unsubscribe the one it was made for, and the other way round.
func TestALinkServesItsPurposeOnly(t *testing.T) {
	w, run := linked(t, nil)
	for _, recipient := range []string{"a@x.com", "b"} {
		wantGone(t, second(w.links.Unsubscription(ctx, w.link(run, recipient))), "unknown")
		wantGone(t, second(w.links.Unsubscribe(ctx, w.link(run, recipient))), "unknown")
	}
	wantGone(t, second(w.links.Open(ctx, w.unsubscribeLink(run, "a@x.com"))), "unknown")
	if no, err := w.store.Unsubscribed(ctx, channel.Email, w.sub(run, "a@x.com").RecipientHash, "s"); err != nil || no {
		t.Errorf("unsubscribed: %v %v", no, err)
	}
}
