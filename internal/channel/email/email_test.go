package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

var (
	now     = time.Date(2026, 11, 30, 8, 0, 5, 999, time.UTC)
	entropy = []byte("0123456789abcdef")
)

// outbox keeps what it is asked to send.
type outbox struct{ sent []*ses.SendRawEmailInput }

func (o *outbox) SendRawEmail(_ context.Context, in *ses.SendRawEmailInput, _ ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	o.sent = append(o.sent, in)
	return &ses.SendRawEmailOutput{MessageId: aws.String("id")}, nil
}

func newChannel(t *testing.T) (*Channel, *outbox) {
	t.Helper()
	o := &outbox{}
	c, err := New(o, Config{From: "almanac@example.com", FromName: "Almanac für alle", ConfigurationSet: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return c, o
}

func delivery(content []byte) channel.Delivery {
	return channel.Delivery{
		Key: "s-1@2013-01-02T14:00:00Z#email#0123", ScheduleID: "s-1", ScheduleName: "Delayed departures", Workspace: "EWR",
		RunID: "run-1", Occurrence: "s-1@2013-01-02T14:00:00Z", Nominal: time.Date(2013, 1, 2, 14, 0, 0, 0, time.UTC),
		Zone: "America/New_York", Recipient: "Ops@EWR.example", Owner: "Team Flights <flights@ewr.example>",
		NextDue:  time.Date(2013, 1, 3, 14, 0, 0, 0, time.UTC),
		FileLink: "https://almanac.example/files/tok?a=1&b=2", Unsubscribe: "https://almanac.example/unsubscribe/tok",
		File: file("delays.csv", content),
	}
}

func file(name string, content []byte) channel.File {
	return channel.File{Name: name, MediaType: "text/csv; charset=utf-8", Rows: 1234567, Bytes: int64(len(content)), SHA256: hash(content),
		DataAsOf: time.Date(2013, 1, 2, 13, 59, 0, 0, time.UTC), Open: func(context.Context) ([]byte, error) { return content, nil }}
}

// noise is content that holds every byte.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// received is a message as a reader takes it apart.
type received struct {
	raw         []byte
	header      mail.Header
	plain, html string
	attached    []byte
	fileName    string
	disposition string
	parts       int
}

func sendOne(t *testing.T, d channel.Delivery) (received, channel.Frozen) {
	t.Helper()
	c, o := newChannel(t)
	f, err := c.Freeze(t.Context(), d, now, entropy)
	if err != nil {
		t.Fatalf("freeze: %v", err)
	}
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.Accepted || v.ProviderID != "id" || v.Detail != "" {
		t.Fatalf("verdict %+v", v)
	}
	if len(o.sent) != 1 {
		t.Fatalf("%d requests", len(o.sent))
	}
	in := o.sent[0]
	if aws.ToString(in.Source) != "almanac@example.com" || len(in.Destinations) != 1 || in.Destinations[0] != d.Recipient || aws.ToString(in.ConfigurationSetName) != "main" {
		t.Fatalf("envelope %v %v %v", aws.ToString(in.Source), in.Destinations, aws.ToString(in.ConfigurationSetName))
	}
	if f.BodyHash != hash(in.RawMessage.Data) {
		t.Error("the frozen hash is not that of the message")
	}
	return takeApart(t, in.RawMessage.Data), f
}

func takeApart(t *testing.T, raw []byte) received {
	t.Helper()
	for i, line := range bytes.SplitAfter(raw, []byte("\n")) {
		if len(line) > 998 || (len(line) > 0 && !bytes.HasSuffix(line, []byte("\r\n"))) || bytes.ContainsFunc(line, func(r rune) bool { return r > 126 }) || bytes.Count(line, []byte("\r")) > 1 {
			t.Fatalf("line %d is long, not 7-bit or has a bare line end: %q", i+1, line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r := received{raw: raw, header: m.Header}
	r.walk(t, m.Header.Get("Content-Type"), m.Body)
	return r
}

func (r *received) walk(t *testing.T, contentType string, body io.Reader) {
	t.Helper()
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		t.Fatalf("content type %q: %v", contentType, err)
	}
	reader := multipart.NewReader(body, params["boundary"])
	for {
		p, err := reader.NextPart() // takes off quoted-printable
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		r.parts++
		kind := p.Header.Get("Content-Type")
		switch {
		case strings.HasPrefix(kind, "multipart/"):
			r.walk(t, kind, p)
		case p.Header.Get("Content-Disposition") != "":
			r.disposition = p.Header.Get("Content-Disposition")
			_, params, err := mime.ParseMediaType(r.disposition)
			if err != nil {
				t.Fatalf("disposition %q: %v", r.disposition, err)
			}
			r.fileName = params["filename"]
			r.attached = decode(t, p)
		case strings.HasPrefix(kind, "text/plain"):
			r.plain = string(all(t, p))
		case strings.HasPrefix(kind, "text/html"):
			r.html = string(all(t, p))
		default:
			t.Fatalf("a part of type %q", kind)
		}
	}
}

func decode(t *testing.T, p *multipart.Part) []byte {
	t.Helper()
	if p.Header.Get("Content-Transfer-Encoding") != "base64" {
		t.Fatalf("encoding %q", p.Header.Get("Content-Transfer-Encoding"))
	}
	return all(t, base64Reader(p))
}

func all(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func subjectOf(t *testing.T, r received) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(r.header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMessageSaysWhatItIs(t *testing.T) {
	content := []byte("a,b\r\n1,2\r\n")
	r, f := sendOne(t, delivery(content))
	if !f.Attach || !bytes.Equal(r.attached, content) || r.fileName != "delays.csv" || r.parts != 4 {
		t.Fatalf("attach %v, %d bytes as %q, %d parts", f.Attach, len(r.attached), r.fileName, r.parts)
	}
	for name, want := range map[string]string{
		"To": "Ops@EWR.example", "Date": "Mon, 30 Nov 2026 08:00:05 +0000", "Mime-Version": "1.0", "Auto-Submitted": "auto-generated",
		"List-Unsubscribe": "<https://almanac.example/unsubscribe/tok>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"X-Almanac-Run": "run-1", "X-Almanac-Schedule": "s-1", "X-Almanac-Workspace": "EWR",
		"X-Almanac-Occurrence": "s-1@2013-01-02T14:00:00Z", "X-Almanac-Delivery": "s-1@2013-01-02T14:00:00Z#email#0123",
	} {
		if got := r.header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	from, err := mail.ParseAddress(r.header.Get("From"))
	if err != nil || from.Name != "Almanac für alle" || from.Address != "almanac@example.com" {
		t.Errorf("from %v, %v", from, err)
	}
	if id := r.header.Get("Message-Id"); !strings.HasPrefix(id, "<") || !strings.HasSuffix(id, "@example.com>") {
		t.Errorf("message id %q", id)
	}
	if got, want := subjectOf(t, r), "Delayed departures – 2 January 2013, 09:00 EST"; got != want {
		t.Errorf("subject %q, want %q", got, want)
	}
	for _, want := range []string{"Delayed departures", "EWR", "Wednesday, 2 January 2013, 09:00 EST (America/New_York)", "08:59 EST", "1,234,567", "delays.csv, 10 bytes",
		hash(content), "Team Flights", "Thursday, 3 January 2013, 09:00 EST", "https://almanac.example/unsubscribe/tok", "run-1", "The file is attached."} {
		if !strings.Contains(r.plain, want) {
			t.Errorf("the text lacks %q:\n%s", want, r.plain)
		}
		if !strings.Contains(r.html, want) {
			t.Errorf("the HTML lacks %q:\n%s", want, r.html)
		}
	}
	if strings.Contains(r.plain, "/files/") {
		t.Error("a link beside the attachment")
	}
}

func TestMessageUsesTheSchedulesOwnTexts(t *testing.T) {
	d := delivery(nil)
	d.Subject, d.Introduction, d.NextDue, d.Unsubscribe = "Verspätungen", "Line one.\r\nLine <b>two</b> & \"three\".\x07", time.Time{}, ""
	r, _ := sendOne(t, d)
	if got := subjectOf(t, r); got != "Verspätungen" {
		t.Errorf("subject %q", got)
	}
	if !strings.Contains(r.plain, "Line one.\r\nLine <b>two</b> & \"three\".") || strings.Contains(r.plain, "\x07") {
		t.Errorf("text:\n%s", r.plain)
	}
	if strings.Contains(r.html, "<b>") || !strings.Contains(r.html, "Line &lt;b&gt;two&lt;/b&gt; &amp; &#34;three&#34;.") {
		t.Errorf("HTML:\n%s", r.html)
	}
	if !strings.Contains(r.plain, "none is planned") || !strings.Contains(r.plain, "ask the owner") || r.header.Get("List-Unsubscribe") != "" || r.header.Get("List-Unsubscribe-Post") != "" {
		t.Errorf("text:\n%s", r.plain)
	}
}

func TestX4HostileTextsStayInTheirHeader(t *testing.T) {
	for name, hostile := range map[string]string{
		"break":           "a\r\nBcc: e@x.test",
		"bare LF":         "a\nBcc: e@x.test\n\nbody",
		"bare CR":         "a\rBcc: e@x.test",
		"NEL and LS":      "a\u0085Bcc: e@x.test\u2028Bcc: e@x.test",
		"break and emoji": "🙂\r\n\r\n<script>alert(1)</script>",
		"encoded word":    "=?utf-8?B?DQpCY2M6IGVAeC50ZXN0?=",
		"NUL":             "a\x00b",
		"not UTF-8":       "a\xff\xfe",
		"long":            strings.Repeat("Ü", 5000),
		"long word":       strings.Repeat("x", 5000),
		"many words":      strings.Repeat("word ", 60),
		"turned":          "a\u202Egpj.exe",
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery([]byte("x"))
			d.Subject, d.ScheduleName, d.Workspace, d.ScheduleID, d.RunID, d.Occurrence, d.Key, d.Owner = hostile, hostile, hostile, hostile, hostile, hostile, hostile, hostile
			d.File.Name, d.File.MediaType, d.Introduction = hostile, hostile, hostile
			r, _ := sendOne(t, d)
			if len(r.header["Bcc"]) != 0 || len(r.header["Subject"]) != 1 || len(r.header["To"]) != 1 || r.parts != 4 {
				t.Fatalf("headers %v, %d parts", r.header, r.parts)
			}
			if s := subjectOf(t, r); strings.ContainsAny(s, "\r\n\x00\u0085\u2028\u202E") || s == "" {
				t.Errorf("subject %q", s)
			}
			if strings.Contains(r.html, "<script>") {
				t.Error("a script in the HTML")
			}
			if string(r.attached) != "x" {
				t.Errorf("attached %q", r.attached)
			}
		})
	}
	t.Run("recipient", func(t *testing.T) {
		c, _ := newChannel(t)
		d := delivery(nil)
		d.Recipient = "a@x.com\r\nBcc: e@x.test"
		f, err := c.Freeze(t.Context(), d, now, entropy)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.render(d, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := takeApart(t, raw); len(m.header["Bcc"]) != 0 {
			t.Error("a header came out of the recipient")
		}
	})
}

func TestHeadersAreFolded(t *testing.T) {
	d := delivery(nil)
	d.Subject = strings.TrimSpace(strings.Repeat("Verspätete Abflüge ", 15))
	d.Occurrence = strings.Repeat("ü", 60)
	r, _ := sendOne(t, d)
	if got := subjectOf(t, r); got != d.Subject {
		t.Errorf("subject %q, want %q", got, d.Subject)
	}
	for _, line := range strings.Split(strings.SplitN(string(r.raw), "\r\n\r\n", 2)[0], "\r\n") {
		if len(line) > 76 {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
}

func TestV11FileNameOfAnyScript(t *testing.T) {
	for in, want := range map[string]string{
		"Q3 \"a/b\"\r\nx 🙂.csv":        `Q3 "a_b" x 🙂.csv`,
		"delays 2013-01-02.csv":        "delays 2013-01-02.csv",
		"Verspätungen.csv":             "Verspätungen.csv",
		`..\..\x/y.csv`:                `.._.._x_y.csv`,
		"50% off.csv":                  "50% off.csv",
		`a"; filename="evil.exe`:       `a"; filename="evil.exe`,
		strings.Repeat("ü", 120) + ".": strings.Repeat("ü", 120) + ".",
		"":                             "file",
	} {
		d := delivery([]byte("x"))
		d.File.Name = in
		r, _ := sendOne(t, d)
		if r.fileName != want {
			t.Errorf("%q: received as %q (%s), want %q", in, r.fileName, r.disposition, want)
		}
		if fallback, _, found := strings.Cut(strings.TrimPrefix(r.disposition, `attachment; filename="`), `"`); !found || fallback == "" || strings.ContainsAny(fallback, `/\`) {
			t.Errorf("%q: fallback in %q", in, r.disposition)
		}
	}
}

func TestV8FiveMegabytesAreAttachedByteEqual(t *testing.T) {
	content := noise(5_000_000)
	r, f := sendOne(t, delivery(content))
	if !f.Attach || !bytes.Equal(r.attached, content) {
		t.Fatalf("attach %v, %d bytes received", f.Attach, len(r.attached))
	}
	if len(r.raw) > MaxMessage {
		t.Fatalf("%d bytes", len(r.raw))
	}
}

func TestV8ThirtyTwoMegabytesGoAsALink(t *testing.T) {
	d := delivery(nil)
	d.File.Bytes = 32_000_000
	d.File.Open = func(context.Context) ([]byte, error) { t.Error("the file was read"); return nil, errors.New("no") }
	r, f := sendOne(t, d)
	if f.Attach || r.attached != nil || r.parts != 2 {
		t.Fatalf("attach %v, %d parts", f.Attach, r.parts)
	}
	if !strings.Contains(r.plain, d.FileLink) || !strings.Contains(r.html, `href="https://almanac.example/files/tok?a=1&amp;b=2"`) || strings.Contains(r.plain, "is attached") {
		t.Errorf("text:\n%s\nHTML:\n%s", r.plain, r.html)
	}
}

// The decision is exact: the largest file that fits is attached, one byte more is not.
func TestV8TheBoundaryIsTheEncodedMessage(t *testing.T) {
	c, _ := newChannel(t)
	largest := func(n int64) bool {
		d := delivery(nil)
		d.File.Bytes = n
		d.File.Open = func(context.Context) ([]byte, error) { return nil, errors.New("asked for") }
		_, err := c.Freeze(t.Context(), d, now, entropy)
		return err != nil // it is attached if the file was asked for
	}
	low, high := int64(5_000_000), int64(32_000_000)
	for high-low > 1 {
		if mid := (low + high) / 2; largest(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	d := delivery(noise(int(low)))
	r, f := sendOne(t, d)
	if !f.Attach || len(r.raw) > MaxMessage || len(r.raw) < MaxMessage-20 {
		t.Fatalf("%d bytes make a message of %d, limit %d", low, len(r.raw), MaxMessage)
	}
}

func TestEncodedLenIsWhatIsWritten(t *testing.T) {
	for n := range 400 {
		var b bytes.Buffer
		if err := writeBase64(&b, noise(n)); err != nil {
			t.Fatal(err)
		}
		if int64(b.Len()) != encodedLen(int64(n)) {
			t.Fatalf("%d bytes: %d written, %d foretold", n, b.Len(), encodedLen(int64(n)))
		}
	}
}

func TestEachTryHasEqualBytes(t *testing.T) {
	c, o := newChannel(t)
	d := delivery(noise(100_000))
	f, err := c.Freeze(t.Context(), d, now, entropy)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newChannel(t) // another invocation
	for _, ch := range []*Channel{c, c, {ses: o, from: other.from, set: other.set}} {
		if v := ch.Send(t.Context(), d, f); v.Outcome != channel.Accepted {
			t.Fatalf("%+v", v)
		}
	}
	for _, in := range o.sent[1:] {
		if !bytes.Equal(in.RawMessage.Data, o.sent[0].RawMessage.Data) {
			t.Fatal("the tries differ")
		}
	}
	again, err := c.Freeze(t.Context(), d, now, []byte("fedcba9876543210"))
	if err != nil || again.Boundary == f.Boundary {
		t.Fatalf("the boundary does not come from the entropy: %v", err)
	}
}

func TestOnlyTheRecordedFileIsAttached(t *testing.T) {
	c, o := newChannel(t)
	good := delivery([]byte("recorded"))
	f, err := c.Freeze(t.Context(), good, now, entropy)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no answer")
	for name, row := range map[string]struct {
		open    func(context.Context) ([]byte, error)
		code    failure.Code
		outcome channel.Outcome
	}{
		"other content":  {func(context.Context) ([]byte, error) { return []byte("RECORDED"), nil }, failure.FileInconsistent, channel.RunRefused},
		"shorter":        {func(context.Context) ([]byte, error) { return []byte("rec"), nil }, failure.FileInconsistent, channel.RunRefused},
		"not to be read": {func(context.Context) ([]byte, error) { return nil, failure.Wrap(failure.FileUnavailable, broken, "x") }, failure.FileUnavailable, channel.NotAccepted},
		"no way to read": {nil, failure.FileUnavailable, channel.NotAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			d := good
			d.File.Open = row.open
			if _, err := c.Freeze(t.Context(), d, now, entropy); !failure.Is(err, row.code) {
				t.Errorf("freeze: %v, want %s", err, row.code)
			}
			if v := c.Send(t.Context(), d, f); v.Outcome != row.outcome || v.Failure.Code != row.code {
				t.Errorf("send: %+v", v)
			}
		})
	}
	if len(o.sent) != 0 {
		t.Errorf("%d mails left", len(o.sent))
	}
}

func TestDeliveriesThatCannotBeRendered(t *testing.T) {
	c, _ := newChannel(t)
	for name, row := range map[string]struct {
		change func(*channel.Delivery)
		code   failure.Code
		names  string
	}{
		"no zone":              {func(d *channel.Delivery) { d.Zone = "" }, failure.DefinitionInvalid, "zone"},
		"Windows zone":         {func(d *channel.Delivery) { d.Zone = "GMT Standard Time" }, failure.DefinitionInvalid, "GMT Standard Time"},
		"machine's zone":       {func(d *channel.Delivery) { d.Zone = "Local" }, failure.DefinitionInvalid, "Local"},
		"link with a break":    {func(d *channel.Delivery) { d.FileLink = "https://x.example/\r\nBcc: e@x.test" }, failure.ChannelMisconfig, "download link"},
		"script as a link":     {func(d *channel.Delivery) { d.FileLink = "javascript:alert(1)" }, failure.ChannelMisconfig, "download link"},
		"unsubscribe escaping": {func(d *channel.Delivery) { d.Unsubscribe = "https://x.example/>,<mailto:e@x.test" }, failure.ChannelMisconfig, "unsubscribe link"},
		"long link":            {func(d *channel.Delivery) { d.Unsubscribe = "https://x.example/" + strings.Repeat("x", 900) }, failure.ChannelMisconfig, "unsubscribe link"},
		"too large, no link":   {func(d *channel.Delivery) { d.FileLink = ""; d.File.Bytes = 1 << 40 }, failure.ChannelMisconfig, "1099511627776"},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery([]byte("x"))
			row.change(&d)
			_, err := c.Freeze(t.Context(), d, now, entropy)
			if !failure.Is(err, row.code) || !strings.Contains(err.Error(), row.names) {
				t.Errorf("%v, want %s naming %q", err, row.code, row.names)
			}
		})
	}
	if _, err := c.Freeze(t.Context(), delivery(nil), now, entropy[:3]); err == nil {
		t.Error("3 bytes of entropy were enough")
	}
}

func TestConfiguration(t *testing.T) {
	for name, row := range map[string]struct {
		client SES
		cfg    Config
		names  string
	}{
		"no client":    {nil, Config{From: "a@x.com"}, "client"},
		"no sender":    {&outbox{}, Config{}, "From"},
		"hostile":      {&outbox{}, Config{From: "a@x.com\r\nBcc: e@x.test"}, "From"},
		"set":          {&outbox{}, Config{From: "a@x.com", ConfigurationSet: "a b"}, "ConfigurationSet"},
		"set too long": {&outbox{}, Config{From: "a@x.com", ConfigurationSet: strings.Repeat("a", 65)}, "ConfigurationSet"},
	} {
		if _, err := New(row.client, row.cfg); err == nil || !strings.Contains(err.Error(), row.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := New(&outbox{}, Config{From: "a@x.com", FromName: "x\r\nBcc: e@x.test"})
	if err != nil || strings.ContainsAny(c.from.Name, "\r\n") || c.HonoursKeys() {
		t.Errorf("%v, %+v", err, c)
	}
	sum := sha256.Sum256(nil)
	if hash(nil) != hex.EncodeToString(sum[:]) {
		t.Error("hash")
	}
}
