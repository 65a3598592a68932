package api

import (
	"strings"
	"testing"
)

// F6 a link promises only what it can keep: the address is signed at each click, for a moment, and is never stored.
func TestF6FileLinkIsSignedAtTheClick(t *testing.T) {
	w, c := peopled(t)
	first := c.as("", "GET", "/files/secret-token", "").want(302)
	second := c.as("", "GET", "/files/secret-token", "").want(302)
	a, b := first.Headers["Location"], second.Headers["Location"]
	if a == b || !strings.Contains(a, "signature=1") || !strings.Contains(b, "signature=2") || w.signed != 2 {
		t.Fatalf("%s, %s: not signed at each click", a, b)
	}
	if first.Headers["Cache-Control"] != "no-store" || first.Headers["Referrer-Policy"] != "no-referrer" {
		t.Fatalf("%v", first.Headers)
	}
}

func TestDeadLinksSayWhomToAsk(t *testing.T) {
	w, c := peopled(t)
	w.links["old"] = &link{name: "Q3 <b>\"x\"", owner: "ops@example.com", gone: "expired"}
	w.links["taken-back"] = &link{name: "Q3", owner: "ops@example.com", gone: "revoked"}
	for token, status := range map[string]int{"old": 410, "taken-back": 410, "nobody-knows": 404, strings.Repeat("x", 2000): 404, "a%20b": 404, "%0d%0aSet-Cookie:x": 404} {
		for _, path := range []string{"/files/", "/unsubscribe/"} {
			a := c.as("", "GET", path+token, "").want(status)
			if ct := a.Headers["Content-Type"]; ct != "text/html; charset=utf-8" || !strings.Contains(a.Body, "ask") {
				t.Fatalf("%s%s: %s %s", path, token, ct, a.Body)
			}
			if status == 410 && !strings.Contains(a.Body, "ops@example.com") {
				t.Fatalf("%s does not say whom to ask: %s", token, a.Body)
			}
			if strings.Contains(a.Body, "<b>") || a.Headers["Location"] != "" {
				t.Fatalf("%s: %s", token, a.Body)
			}
		}
	}
}

func TestUnsubscribePageChangesNothingTheButtonDoes(t *testing.T) {
	w, c := peopled(t)
	page := c.as("", "GET", "/unsubscribe/secret-token", "").want(200)
	if len(w.writes) > 0 || !strings.Contains(page.Body, `<form method="post">`) || !strings.Contains(page.Body, "Delayed departures") {
		t.Fatalf("%v %s", w.writes, page.Body)
	}
	csp := page.Headers["Content-Security-Policy"]
	if !strings.Contains(csp, "form-action 'self'") || !strings.Contains(csp, "style-src 'sha256-") || strings.Contains(csp, "unsafe") || strings.Contains(csp, ",") {
		t.Fatalf("CSP %q", csp)
	}
	// The mail client's one click: a form of one field, no cookie, no token of ours.
	done := c.as("", "POST", "/unsubscribe/secret-token", "List-Unsubscribe=One-Click", "content-type", "application/x-www-form-urlencoded").want(200)
	if len(w.writes) != 1 || !strings.Contains(done.Body, "You are unsubscribed") || len(done.Cookies) > 0 {
		t.Fatalf("%v %s", w.writes, done.Body)
	}
	again := c.as("", "POST", "/unsubscribe/secret-token", "").want(200)
	if !strings.Contains(again.Body, "You are unsubscribed") {
		t.Fatal(again.Body)
	}
	if after := c.as("", "GET", "/unsubscribe/secret-token", "").want(200); strings.Contains(after.Body, "<form") {
		t.Fatalf("the button is still there: %s", after.Body)
	}
}

func TestOneClickAsMultipartForm(t *testing.T) {
	w, c := peopled(t)
	body := "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n"
	c.as("", "POST", "/unsubscribe/secret-token", body, "content-type", "multipart/form-data; boundary=b").want(200)
	if len(w.writes) != 1 {
		t.Fatal(w.writes)
	}
}

// Scanners of mail ask with HEAD first. That is no click: nothing is signed, and nobody is recorded to have fetched.
func TestHeadSignsNothingAndHasNoBody(t *testing.T) {
	w, c := peopled(t)
	a := c.as("", "HEAD", "/files/secret-token", "").want(405)
	if w.signed != 0 || a.Headers["Location"] != "" || a.Headers["Allow"] != "GET" || a.Body != "" {
		t.Fatalf("%d signed, %+v", w.signed, a)
	}
	for target, status := range map[string]int{"/unsubscribe/secret-token": 200, "/unsubscribe/nobody-knows": 404, "/nowhere": 404} {
		if a := c.as("", "HEAD", target, "").want(status); a.Body != "" || len(w.writes) > 0 {
			t.Errorf("%s: %q, wrote %v", target, a.Body, w.writes)
		}
	}
	if a := c.as("viewer", "HEAD", "/schedules", "").want(200); a.Body != "" {
		t.Errorf("a body: %q", a.Body)
	}
}
