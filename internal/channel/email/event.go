package email

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

// Names of the headers by which a mail is known again. SES repeats a mail's own headers in its events, as long as they
// have no more than 10 KB (field headersTruncated); a test holds ours far below.
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html, "Mail object"
const (
	headerDelivery = "X-Almanac-Delivery"
	headerNotice   = "X-Almanac-Notice"
)

// topicTest is what SES publishes once, as plain text, to a topic that becomes the destination of events.
const topicTest = "Successfully validated SNS topic for Amazon SES event publishing."

// event is an event of SES as it publishes it to SNS. It may hold more fields than these.
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
type event struct {
	EventType string     `json:"eventType"`
	Mail      *mailed    `json:"mail"`
	Bounce    *bounce    `json:"bounce"`
	Complaint *complaint `json:"complaint"`
	Reject    *struct {
		Reason string `json:"reason"`
	} `json:"reject"`
}

type mailed struct {
	Timestamp   string   `json:"timestamp"`
	MessageID   string   `json:"messageId"`
	Account     string   `json:"sendingAccountId"`
	Destination []string `json:"destination"`
	Headers     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"headers"`
}

type bounce struct {
	Type       string `json:"bounceType"`
	Subtype    string `json:"bounceSubType"`
	Timestamp  string `json:"timestamp"`
	Recipients []struct {
		Address    string `json:"emailAddress"`
		Status     string `json:"status"`
		Diagnostic string `json:"diagnosticCode"`
	} `json:"bouncedRecipients"`
}

type complaint struct {
	Type      string `json:"complaintFeedbackType"`
	Subtype   string `json:"complaintSubType"`
	Timestamp string `json:"timestamp"`
}

// bounceTypes are SES's words for ours.
var bounceTypes = map[string]string{"Permanent": channel.Permanent, "Transient": channel.Transient, "Undetermined": channel.Undetermined}

// subtypes says for people what SES's finer words mean; General and Undetermined mean nothing that the type does not say.
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html, "Bounce types"
var subtypes = map[string]string{
	"NoEmail":                  "the bounce names no recipient",
	"Suppressed":               "SES has the address on its own suppression list, since it bounced lately",
	"OnAccountSuppressionList": "the address is on the account's suppression list in SES; while it is there no mail of this account is sent to it",
	"MailboxFull":              "mailbox full",
	"MessageTooLarge":          "mail too large for the receiver",
	"ContentRejected":          "the receiver refuses the content",
	"AttachmentRejected":       "the receiver refuses the attachment",
}

// statuses says what enhanced status codes mean, by what follows their class (RFC 3463, 3.2 to 3.8). They tell more than
// the subtype General, which most bounces have.
var statuses = map[string]string{
	"1.1": "mailbox does not exist", "1.2": "domain does not exist", "1.3": "address is not valid", "1.6": "mailbox has moved", "1.10": "domain takes no mail",
	"2.1": "mailbox disabled", "2.2": "mailbox full", "2.3": "mail too large for the mailbox",
	"3.4": "mail too large for the receiver", "4.1": "receiver did not answer", "4.4": "receiver cannot be reached", "4.7": "receiver could not be reached in time",
	"7.1": "receiver refuses by its policy",
}

// ParseEvent reads an event that SES published to SNS and SNS delivered raw. An event of a kind that nobody asked for has
// no Kind. An error names the field and what would be right, and nothing of what the event holds: it is for the log.
func ParseEvent(body string) (channel.MailEvent, error) {
	if strings.TrimSpace(body) == topicTest {
		return channel.MailEvent{}, nil
	}
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return channel.MailEvent{}, unreadable(err)
	}
	if e.EventType == "" {
		return channel.MailEvent{}, errors.New("eventType is missing; want Bounce, Complaint or Reject")
	}
	if e.Mail == nil {
		return channel.MailEvent{}, errors.New("mail is missing; want the mail that the event is about")
	}
	v := channel.MailEvent{Account: e.Mail.Account, Recipients: e.Mail.Destination}
	v.Key, v.Notice = e.Mail.header(headerDelivery), e.Mail.header(headerNotice)
	if id := e.Mail.MessageID; len(id) <= 128 && idForm.MatchString(id) {
		v.Mail = id
	}
	var err error
	switch e.EventType {
	case "Bounce":
		err = e.bounced(&v.Feedback)
	case "Complaint":
		err = e.complained(&v.Feedback)
	case "Reject":
		err = e.rejected(&v.Feedback)
	default:
		return v, nil
	}
	if err == nil && v.Mail == "" {
		err = errors.New("mail.messageId is missing, or none; want the id that SES gave the mail")
	}
	return v, err
}

// unreadable says where the document is wrong, without a word of it.
func unreadable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		kind, _, _ := strings.Cut(wrong.Value, " ") // "number 12" holds the number
		return fmt.Errorf("%s is a JSON %s; want %s", orElse(wrong.Field, "the event"), kind, wrong.Type.Kind())
	}
	return errors.New("the event is no JSON document; want an event of SES, delivered raw")
}

func (e event) bounced(f *channel.Feedback) (err error) {
	b := e.Bounce
	if b == nil {
		return errors.New("bounce is missing; want it in an event of type Bounce")
	}
	f.Kind, f.Type, f.Subtype = channel.Bounced, bounceTypes[b.Type], word(b.Subtype, 40)
	if f.Type == "" {
		return errors.New("bounce.bounceType is missing, or none; want Permanent, Transient or Undetermined")
	}
	f.Why = subtypes[f.Subtype]
	if len(b.Recipients) > 0 { // our mails have one
		r := b.Recipients[0]
		status := word(r.Status, 12)
		f.Detail = said(strings.TrimSpace(status + " " + r.Diagnostic))
		if _, finer, _ := strings.Cut(status, "."); f.Why == "" {
			f.Why = statuses[finer]
		}
	}
	f.At, err = instant("bounce.timestamp", b.Timestamp)
	return err
}

func (e event) complained(f *channel.Feedback) (err error) {
	c := e.Complaint
	if c == nil {
		return errors.New("complaint is missing; want it in an event of type Complaint")
	}
	f.Kind, f.Type, f.Subtype = channel.Complained, strings.ToLower(word(c.Type, 40)), word(c.Subtype, 40)
	f.Why = subtypes[f.Subtype]
	f.At, err = instant("complaint.timestamp", c.Timestamp)
	return err
}

// rejected: SES found a virus. The event has no time of its own.
func (e event) rejected(f *channel.Feedback) (err error) {
	if e.Reject == nil {
		return errors.New("reject is missing; want it in an event of type Reject")
	}
	f.Kind, f.Detail = channel.Rejected, said(e.Reject.Reason)
	f.Why = "SES found its content bad and did not send it"
	f.At, err = instant("mail.timestamp", e.Mail.Timestamp)
	return err
}

func instant(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 2000 || at.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%s is missing, or no instant; want one such as 2026-01-31T12:00:00.000Z", field)
	}
	return at.UTC(), nil
}

// header is the value of a header that the mail has once. Our mails have each once; one that has it twice is not ours.
func (m mailed) header(name string) string {
	value, n := "", 0
	for _, h := range m.Headers {
		if strings.EqualFold(strings.TrimSpace(h.Name), name) {
			value, n = strings.TrimSpace(h.Value), n+1
		}
	}
	if n != 1 || len(value) > maxText {
		return ""
	}
	return value
}

var (
	wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+=@-]*$`) // of SES: hexadecimal and dashes; of others: with a host
)

// word is a text that is one plain word, else nothing.
func word(s string, most int) string {
	if len(s) > most || !wordForm.MatchString(s) {
		return ""
	}
	return s
}

// anAddress is whatever looks like one, and more: diagnostics name the recipient, whom not everybody may see.
var anAddress = regexp.MustCompile(`[^\s<>()\[\],;:"']*(?:@|%40)[^\s<>()\[\],;:"']*`)

// said is a receiver's text, fit for one line and without addresses. A text may be as long as a message; it is cut at a
// blank first, so that no part of an address is left that does not look like one.
func said(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:strings.LastIndexAny(s[:most], " \t\r\n")+1] + "…"
	}
	return failure.Cut(plain(anAddress.ReplaceAllString(s, "…")), 200)
}
