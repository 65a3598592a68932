package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	signing "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"almanac/internal/channel"
)

func noticeOf(kind channel.NoticeKind, url string) channel.Notice {
	n := channel.Notice{ID: "s-1@2013-01-02T14:00:00Z#" + string(kind) + "#webhook#00ff", Kind: kind, At: start, ScheduleID: "s-1", ScheduleName: "Délais <1>",
		Workspace: "EWR", Zone: "America/New_York", Owner: "ops", RunID: "s-1@2013-01-02T14:00:00Z", Occurrence: "2013-01-02T14:00:00Z",
		Nominal: time.Date(2013, 1, 2, 9, 0, 0, 0, time.FixedZone("", -5*3600)), Code: "query_invalid", Message: "no such column: \"dely\"", Streak: 1, Recipient: url, SecretID: "hook"}
	switch kind {
	case channel.NoticePaused:
		n.Streak, n.Pause, n.Manual = 5, "failures", true
	case channel.NoticeRecovered:
		n.Streak, n.Code, n.Message = 3, "", ""
	}
	return n
}

// Each try of a notice has one id and equal bytes, and signatures that the receiver's library accepts.
func TestD14NoticeTriesAreEqual(t *testing.T) {
	want := map[channel.NoticeKind]string{
		channel.NoticeFailed: `"type":"schedule.failed"`, channel.NoticePaused: `"type":"schedule.paused"`, channel.NoticeRecovered: `"type":"schedule.recovered"`,
	}
	for kind, typed := range want {
		t.Run(string(kind), func(t *testing.T) {
			var got []request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = append(got, request{r.Header, body})
				if len(got) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer server.Close()
			at := start
			c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Private: loopback, Now: func() time.Time { at = at.Add(time.Second); return at }})
			if err != nil {
				t.Fatal(err)
			}
			n := noticeOf(kind, server.URL)
			if v := c.Announce(t.Context(), n); v.Outcome != channel.NotAccepted {
				t.Fatalf("%+v", v)
			}
			if v := c.Announce(t.Context(), n); v.Outcome != channel.Accepted {
				t.Fatalf("%+v", v)
			}
			verifier, err := signing.NewWebhook(secret(1))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got {
				if r.header.Get("webhook-id") != n.ID || !bytes.Equal(r.body, got[0].body) || r.header.Get("Content-Type") != "application/json" {
					t.Errorf("id %q, body %s", r.header.Get("webhook-id"), r.body)
				}
				if err := verifier.VerifyIgnoringTimestamp(r.body, r.header); err != nil {
					t.Error(err)
				}
			}
			if got[0].header.Get("webhook-signature") == got[1].header.Get("webhook-signature") {
				t.Error("the second try bears the first one's signature")
			}
			if !strings.Contains(string(got[0].body), typed) {
				t.Errorf("%s", got[0].body)
			}
			var p NoticePayload
			if err := json.Unmarshal(got[0].body, &p); err != nil {
				t.Fatal(err)
			}
			d := p.Data
			if !p.Timestamp.Equal(start) || d.Schedule.Name != "Délais <1>" || d.Run != n.RunID || !d.NominalTime.Equal(n.Nominal) || d.Streak != n.Streak || d.PauseReason != n.Pause || d.Manual != n.Manual {
				t.Errorf("%s", got[0].body)
			}
			if (d.Failure == nil) != (kind == channel.NoticeRecovered) || d.Failure != nil && (d.Failure.Message != n.Message || d.Failure.Remedy == "" || d.Failure.Meaning == "") {
				t.Errorf("failure %+v", d.Failure)
			}
		})
	}
}

func TestNoticeThatCannotBeSent(t *testing.T) {
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	if v := c.Announce(t.Context(), noticeOf(channel.NoticeFailed, "http://127.0.0.1:1/")); v.Outcome != channel.Refused || v.Reason != channel.ReasonInvalid {
		t.Errorf("X4 a private address: %+v", v)
	}
	n := noticeOf(channel.NoticeFailed, "https://x.com/")
	n.SecretID = ""
	if v := c.Announce(t.Context(), n); v.Outcome != channel.RunRefused {
		t.Errorf("no secret: %+v", v)
	}
}
