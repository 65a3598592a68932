package email

import (
	"bytes"
	"context"
	"html"
	"mime"
	"net/mail"
	"strings"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

func noticeOf(kind channel.NoticeKind) channel.Notice {
	n := channel.Notice{ID: "s-1@2013-01-02T14:00:00Z#" + string(kind) + "#email#00ff", Kind: kind, At: now, ScheduleID: "s-1", ScheduleName: "Delayed departures",
		Workspace: "EWR", Zone: "America/New_York", Owner: "Team Flights", RunID: "s-1@2013-01-02T14:00:00Z", Occurrence: "2013-01-02T14:00:00Z",
		Nominal: time.Date(2013, 1, 2, 14, 0, 0, 0, time.UTC), Code: "query_invalid", Message: "no such column: dely", Streak: 1, Recipient: "Ops@EWR.example"}
	switch kind {
	case channel.NoticePaused:
		n.Streak, n.Pause = 5, "failures"
	case channel.NoticeRecovered:
		n.Streak, n.Code, n.Message = 3, "", ""
	}
	return n
}

// announced sends a notice and returns what SES got: the header, and both texts decoded.
func announced(t *testing.T, n channel.Notice) (raw []byte, header mail.Header, text string) {
	t.Helper()
	c, o := newChannel(t)
	if v := c.Announce(t.Context(), n); v.Outcome != channel.Accepted || v.ProviderID != "id" || len(o.sent) != 1 {
		t.Fatalf("%+v, %d sent", v, len(o.sent))
	}
	in := o.sent[0]
	if *in.Source != "almanac@example.com" || *in.ConfigurationSetName != "main" || len(in.Destinations) != 1 || in.Destinations[0] != strings.TrimSpace(n.Recipient) {
		t.Errorf("from %s by %s to %v", *in.Source, *in.ConfigurationSetName, in.Destinations)
	}
	r := takeApart(t, in.RawMessage.Data)
	return r.raw, r.header, r.plain + r.html
}

func TestNoticeByKind(t *testing.T) {
	entry, _ := failure.Lookup(failure.QueryInvalid)
	for _, row := range []struct {
		kind    channel.NoticeKind
		subject string
		says    []string
		not     []string
	}{
		{channel.NoticeFailed, "Delayed departures failed: query_invalid", []string{"has failed", "query_invalid", "no such column: dely", entry.Meaning, entry.Remedy, "1 failure", "almanac show s-1@2013-01-02T14:00:00Z", "9:00 EST"}, []string{"almanac resume"}},
		{channel.NoticePaused, "Delayed departures is paused: failures", []string{"paused after 5 failures in a row", "no such column: dely", entry.Remedy, "almanac show s-1@", "almanac resume s-1 --reason"}, nil},
		{channel.NoticeRecovered, "Delayed departures works again", []string{"delivered again, after 3 failures in a row", "almanac show"}, []string{"Meaning", "What helps", "resume", "query_invalid"}},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			n := noticeOf(row.kind)
			raw, header, text := announced(t, n)
			again, _, _ := announced(t, n)
			if !bytes.Equal(raw, again) {
				t.Error("two tries differ")
			}
			if got := header.Get("Subject"); got != row.subject {
				t.Errorf("subject %q, want %q", got, row.subject)
			}
			for name, want := range map[string]string{"X-Almanac-Notice": n.ID, "X-Almanac-Event": "schedule." + string(row.kind), "X-Almanac-Run": n.RunID, "X-Almanac-Schedule": "s-1",
				"Auto-Submitted": "auto-generated", "Date": "Mon, 30 Nov 2026 08:00:05 +0000", "To": "Ops@EWR.example"} {
				if header.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, header.Get(name), want)
				}
			}
			for _, part := range row.says {
				if strings.Count(html.UnescapeString(text), part) < 2 {
					t.Errorf("not in both texts: %q\n%s", part, text)
				}
			}
			for _, part := range row.not {
				if strings.Contains(text, part) {
					t.Errorf("it says %q\n%s", part, text)
				}
			}
		})
	}
	_, a, _ := announced(t, noticeOf(channel.NoticeFailed))
	_, b, _ := announced(t, noticeOf(channel.NoticePaused))
	if a.Get("Message-ID") == b.Get("Message-ID") || !strings.HasSuffix(a.Get("Message-ID"), "@example.com>") {
		t.Errorf("message ids %s and %s", a.Get("Message-ID"), b.Get("Message-ID"))
	}
}

func TestNoticeOfACodeThatPausesByItself(t *testing.T) {
	n := noticeOf(channel.NoticePaused)
	n.Code, n.Pause, n.Streak = "source_access_denied", "source_access_denied", 1
	_, header, text := announced(t, n)
	if header.Get("Subject") != "Delayed departures is paused: source_access_denied" || strings.Contains(text, "paused after") || !strings.Contains(text, "give the role access") {
		t.Errorf("%q\n%s", header.Get("Subject"), text)
	}
}

func TestNoticeOfARecoveryWhilePaused(t *testing.T) {
	n := noticeOf(channel.NoticeRecovered)
	n.Pause = "failures"
	_, header, text := announced(t, n)
	if header.Get("Subject") != "Delayed departures works again" || strings.Count(text, "still paused (failures)") != 2 || !strings.Contains(text, "almanac resume s-1") || strings.Contains(text, "Nothing needs to be done") {
		t.Errorf("%q\n%s", header.Get("Subject"), text)
	}
}

// X4: no text of a person, or of a database, becomes a header or markup; what cannot be read still makes a notice.
func TestX4NoticeHostile(t *testing.T) {
	n := noticeOf(channel.NoticeFailed)
	n.ScheduleName = "D\r\nBcc: evil@x.test\u2028 =?utf-8?B?eA==?= \u202e ü"
	n.Message = "<script>alert(1)</script>\r\n\r\n--alternative-"
	n.Owner, n.Workspace, n.Zone, n.Code = "", "<b>", "No/Where", "no_such_code"
	_, header, text := announced(t, n)
	if header.Get("Bcc") != "" {
		t.Error("a header came in by the name")
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "D Bcc: evil@x.test") || !strings.HasSuffix(subject, "failed: no_such_code") {
		t.Errorf("subject %q, %v", subject, err)
	}
	markup := text[strings.Index(text, "<!DOCTYPE"):]
	if strings.Contains(markup, "<script>") || !strings.Contains(markup, "&lt;script&gt;") || strings.Contains(markup, "<b>") {
		t.Errorf("markup came through:\n%s", markup)
	}
	for _, part := range []string{"not named", "not known", "read the run", "UTC"} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q", part)
		}
	}
	n.ScheduleName = ""
	if _, header, _ = announced(t, n); !strings.HasPrefix(header.Get("Subject"), "s-1 failed") {
		t.Errorf("without a name: %q", header.Get("Subject"))
	}
}

func TestNoticeThatCannotBeSent(t *testing.T) {
	c, o := newChannel(t)
	n := noticeOf(channel.NoticeFailed)
	n.Recipient = "a@x.com\r\nBcc: e@x.test"
	if v := c.Announce(t.Context(), n); v.Outcome != channel.Refused || v.Reason != channel.ReasonInvalid {
		t.Errorf("%+v", v)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if v := c.Announce(over, noticeOf(channel.NoticeFailed)); v.Outcome != channel.NotAccepted || v.Failure.Code != failure.SendFailed {
		t.Errorf("%+v", v)
	}
	if len(o.sent) != 0 {
		t.Errorf("%d sent", len(o.sent))
	}
}
