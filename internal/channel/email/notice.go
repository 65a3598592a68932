package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	htmltemplate "html/template"
	"strings"
	"text/template"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

//go:embed notice.txt.tmpl
var plainNotice string

//go:embed notice.html.tmpl
var htmlNotice string

var (
	plainNoticeTemplate = template.Must(template.New("notice").Parse(plainNotice))
	htmlNoticeTemplate  = htmltemplate.Must(htmltemplate.New("notice").Parse(htmlNotice))
)

var _ channel.Announcer = (*Channel)(nil)

// Announce mails a notice. SES honours no key, so a notice whose answer was lost and that is tried again can arrive
// twice; both carry one id, in X-Almanac-Notice and Message-ID.
func (c *Channel) Announce(ctx context.Context, n channel.Notice) channel.Verdict {
	if v, ok := sendable(ctx, n.Recipient); !ok {
		return v
	}
	message, err := c.renderNotice(n)
	if err != nil {
		return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.From(err)}
	}
	return c.submit(ctx, n.Recipient, message)
}

// renderNotice makes the whole message: for an equal notice, equal bytes.
func (c *Channel) renderNotice(n channel.Notice) ([]byte, error) {
	v := noticeView(n)
	var p, h strings.Builder
	if err := plainNoticeTemplate.Execute(&p, v); err != nil {
		return nil, err
	}
	if err := htmlNoticeTemplate.Execute(&h, v); err != nil {
		return nil, err
	}
	id := sha256.Sum256([]byte(n.ID))
	f := channel.Frozen{Date: n.At.UTC().Truncate(time.Second), Boundary: hex.EncodeToString(id[16:])}
	_, domain, _ := strings.Cut(c.from.Address, "@")
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", c.from.String()},
		{"To", plain(n.Recipient)},
		{"Subject", text(v.Subject)},
		{"Date", f.Date.Format("Mon, 02 Jan 2006 15:04:05 -0700")},
		{"Message-ID", "<" + hex.EncodeToString(id[:16]) + "@" + domain + ">"},
		{"MIME-Version", "1.0"},
		{"Auto-Submitted", "auto-generated"},
		{headerNotice, text(n.ID)},
		{"X-Almanac-Event", "schedule." + text(string(n.Kind))},
		{"X-Almanac-Schedule", text(n.ScheduleID)},
		{"X-Almanac-Run", text(n.RunID)},
		{"X-Almanac-Workspace", text(n.Workspace)},
		{"Content-Type", multipartType("alternative", f)},
	} {
		b.WriteString(fold(h[0], h[1]) + "\r\n")
	}
	b.WriteString("\r\n")
	err := writeAlternative(&b, f, texts{plain: p.String(), html: h.String()})
	return b.Bytes(), err
}

// notice is what the templates show. Every text is a person's, or comes from outside.
type notice struct {
	Subject, What, Schedule, Workspace, Occurrence, Run string
	Code, Message, Meaning, Remedy, Streak, Owner, ID   string
	Next                                                string
	Commands                                            []string
}

func noticeView(n channel.Notice) notice {
	zone, err := time.LoadLocation(n.Zone)
	if err != nil {
		zone = time.UTC // the notice matters more than the zone that it is told in
	}
	entry, _ := failure.Lookup(failure.Code(n.Code))
	v := notice{
		Schedule: plain(n.ScheduleName), Workspace: plain(n.Workspace), Occurrence: moment(n.Nominal, zone), Run: plain(n.RunID),
		Code: plain(n.Code), Message: plain(n.Message), Meaning: orElse(entry.Meaning, "not known"), Remedy: orElse(entry.Remedy, "read the run"),
		Streak: failures(n.Streak), Owner: orElse(plain(n.Owner), "not named"), ID: plain(n.ID),
	}
	if v.Schedule == "" {
		v.Schedule = plain(n.ScheduleID)
	}
	if n.Manual {
		v.Occurrence += ", by hand"
	}
	v.say(n)
	return v
}

// say words the notice by its kind.
func (v *notice) say(n channel.Notice) {
	show, resume := "almanac show "+v.Run, "almanac resume "+plain(n.ScheduleID)+" --reason \"…\""
	switch n.Kind {
	case channel.NoticePaused:
		v.Subject = v.Schedule + " is paused: " + plain(n.Pause)
		v.What = "The schedule “" + v.Schedule + "” is paused: no further occurrence is delivered until a person resumes it."
		if n.Pause != n.Code {
			v.What = "The schedule “" + v.Schedule + "” is paused after " + v.Streak + " in a row: no further occurrence is delivered until a person resumes it."
		}
		v.Next = "See what happened, mend it, then resume. The streak stays until a run succeeds, so the next failure of a due occurrence pauses the schedule again."
		v.Commands = []string{show, resume}
	case channel.NoticeRecovered:
		v.Subject = v.Schedule + " works again"
		v.What = "The schedule “" + v.Schedule + "” has delivered again, after " + v.Streak + " in a row."
		v.Next = "Nothing needs to be done. What the failed runs did not deliver can be delivered by hand."
		v.Commands = []string{show}
		if n.Pause != "" {
			v.Next = "The schedule is still paused (" + plain(n.Pause) + "): no further occurrence is delivered until a person resumes it."
			v.Commands = []string{show, resume}
		}
	default:
		v.Subject = v.Schedule + " failed: " + v.Code
		v.What = "A run of the schedule “" + v.Schedule + "” has failed. Further failures in a row are not told one by one."
		v.Next = "See what happened."
		v.Commands = []string{show}
	}
}

func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
