package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/channel"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
)

// suppressed is a recipient whose mail bounced at the time given.
func suppressed(hash string, at time.Time) schedule.Suppression {
	return schedule.Suppression{Channel: channel.Email, RecipientHash: hash, Reason: "bounce", Why: "mailbox does not exist", Run: "delays@2013-07-01T13:00:00Z", At: at}
}

// TestASuppressionIsLiftedOnceAndStaysOnRecord: by a person with a reason, audited; a second ask finds the first, a
// bounce that happened before changes nothing, one after it does.
func TestASuppressionIsLiftedOnceAndStaysOnRecord(t *testing.T) {
	p, c := started(t)
	hash := hashOf(t, "Ada@Example.com")
	at := "/suppressions/email/" + hash
	c.do("GET", at, "", 404, nil)
	sup := suppressed(hash, p.Wall().Add(-time.Minute))
	if err := p.Store.Suppress(t.Context(), sup); err != nil {
		t.Fatal(err)
	}
	var page struct{ Items []api.SuppressionView }
	c.do("GET", "/suppressions", "", 200, &page)
	if len(page.Items) != 1 || page.Items[0].Hash != hash || page.Items[0].Reason != "bounce" || page.Items[0].Run != sup.Run || page.Items[0].Lifted != nil || !page.Items[0].At.Equal(sup.At) {
		t.Fatalf("%+v", page)
	}
	var v api.SuppressionView
	for _, why := range []string{"mailbox mended", "really"} {
		c.do("POST", at+"/lift", `{"reason":"`+why+`"}`, 200, &v)
		if v.Lifted == nil || v.Lifted.By != "ada" || v.Lifted.Reason != "mailbox mended" || v.Lifted.At == nil {
			t.Fatalf("%s: %+v", why, v)
		}
	}
	c.do("GET", "/suppressions", "", 200, &page)
	if len(page.Items) != 0 {
		t.Fatalf("%+v", page)
	}
	if err := p.Store.Suppress(t.Context(), sup); err != nil { // the event comes again
		t.Fatal(err)
	}
	c.do("GET", at, "", 200, &v)
	if v.Lifted == nil {
		t.Fatalf("%+v", v)
	}
	var audits struct{ Items []api.AuditView }
	c.do("GET", at+"/audits", "", 200, &audits)
	if len(audits.Items) != 1 || audits.Items[0].Who != "ada" || audits.Items[0].Why != "mailbox mended" || audits.Items[0].What != "lift suppression" ||
		!strings.HasPrefix(audits.Items[0].Before, "bounce at ") || audits.Items[0].After != "lifted" {
		t.Fatalf("%+v", audits)
	}
	if err := p.Store.Suppress(t.Context(), suppressed(hash, p.Wall().Add(time.Hour))); err != nil { // and then it bounces again
		t.Fatal(err)
	}
	var again api.SuppressionView
	c.do("GET", at, "", 200, &again)
	if again.Lifted != nil {
		t.Fatalf("%+v", again)
	}
}

// TestTwoLiftAtOnce: both get what they asked for, and one act is on record.
func TestTwoLiftAtOnce(t *testing.T) {
	p, c := started(t)
	hash := hashOf(t, "ada@example.com")
	at := "/suppressions/email/" + hash
	if err := p.Store.Suppress(t.Context(), suppressed(hash, p.Wall())); err != nil {
		t.Fatal(err)
	}
	met := false
	p.DB.Hooks.Before = func(_ context.Context, call memcloud.Call) error {
		if call.Operation == "TransactWriteItems" && !met {
			met = true
			c.do("POST", at+"/lift", `{"reason":"first"}`, 200, nil)
		}
		return nil
	}
	var v api.SuppressionView
	c.do("POST", at+"/lift", `{"reason":"second"}`, 200, &v)
	if !met || v.Lifted == nil || v.Lifted.Reason != "first" {
		t.Fatalf("met %v: %+v", met, v.Lifted)
	}
	c.acted(at+"/audits", "ada: lift suppression (first) bounce at "+p.Wall().UTC().Format(time.RFC3339)+", run delays@2013-07-01T13:00:00Z > lifted")
}
