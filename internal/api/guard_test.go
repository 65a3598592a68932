package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
)

func discard() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

func nowOf(w *world) func() time.Time { return func() time.Time { return w.at } }

func TestPanicIsAProblemAndLoggedOnce(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	w.panics = "boom"
	p := c.as("viewer", "GET", "/schedules", "").problem(500, "")
	if p.RequestID != "req-1" || strings.Contains(p.Detail, "boom") {
		t.Fatalf("%+v", p)
	}
	if n := strings.Count(c.logs.String(), "boom"); n != 1 || strings.Count(c.logs.String(), "\n") != 1 {
		t.Fatalf("logged %d times:\n%s", n, c.logs)
	}
	w.panics = nil
	c.as("viewer", "GET", "/schedules", "").want(200)
}

func TestErrorsOfOthersAreLoggedAndNotShown(t *testing.T) {
	w := newWorld()
	c := start(t, w)
	for _, x := range []struct {
		err    error
		status int
	}{
		{errors.New("dial 10.0.0.7: secret detail"), 500},
		{failure.New(failure.StoreThrottled, "secret detail"), 503},
		{failure.New(failure.StoreUnavailable, "secret detail"), 503},
		{context.DeadlineExceeded, 503},
	} {
		c.logs.Reset()
		w.fail = x.err
		a := c.as("viewer", "GET", "/schedules", "")
		p := a.problem(x.status, "")
		if strings.Contains(a.Body, "secret") || p.RequestID != "req-1" {
			t.Errorf("%v: %s", x.err, a.Body)
		}
		if x.status == 503 && a.Headers["Retry-After"] == "" {
			t.Errorf("%v: no Retry-After", x.err)
		}
		if n := strings.Count(c.logs.String(), x.err.Error()); n != 1 {
			t.Errorf("%v: logged %d times:\n%s", x.err, n, c.logs)
		}
	}
}

func TestLogNamesTheRouteNeverTheToken(t *testing.T) {
	_, c := peopled(t)
	c.logs.Reset()
	c.as("", "GET", "/files/secret-token", "").want(302)
	c.as("", "POST", "/unsubscribe/secret-token", "").want(200)
	c.as("viewer", "GET", "/schedules/ewr-delays", "").want(200)
	c.as("", "GET", "/files/secret-token/x", "").want(404)
	log := c.logs.String()
	if strings.Contains(log, "secret-token") || strings.Contains(log, "sub-1") || strings.Contains(log, "ada") {
		t.Fatalf("the log tells a secret or a name:\n%s", log)
	}
	for _, want := range []string{`"route":"/files/{token}"`, `"status":302`, `"method":"POST","route":"/unsubscribe/{token}"`, `"request":"req-1"`, `"principal":"` + (Identity{Subject: "sub-1"}).Hash() + `"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "\n"); n != 4 {
		t.Errorf("%d lines for 4 requests", n)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	_, c := peopled(t)
	c.as("admin", "GET", "/nothing", "").problem(404, "")
	c.as("admin", "GET", "/schedules/", "").problem(404, "")
	c.as("admin", "GET", "//schedules", "").problem(404, "")
	a := c.as("admin", "PATCH", "/schedules/ewr-delays", "")
	a.problem(405, "")
	if allow := a.Headers["Allow"]; !strings.Contains(allow, "PUT") || !strings.Contains(allow, "DELETE") {
		t.Errorf("Allow: %q", allow)
	}
}

func TestEveryAnswerBearsItsHeaders(t *testing.T) {
	_, c := peopled(t)
	for _, target := range []string{"/schedules", "/nothing", "/files/secret-token", "/files/unknown", "/unsubscribe/secret-token"} {
		h := c.as("viewer", "GET", target, "").Headers
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Request-Id": "req-1"} {
			if h[name] != want {
				t.Errorf("%s: %s is %q, want %q", target, name, h[name], want)
			}
		}
		if csp := h["Content-Security-Policy"]; !strings.HasPrefix(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: CSP %q", target, csp)
		}
	}
}
