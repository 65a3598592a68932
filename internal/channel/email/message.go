package email

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"

	"almanac/internal/channel"
)

const lineLen = 76 // bytes of base64 in one line, RFC 2045 6.8

// render makes the whole MIME message: for an equal Delivery and Frozen and equal content, equal bytes. Every line is
// 7-bit and shorter than SES's 1,000 bytes.
func (c *Channel) render(d channel.Delivery, f channel.Frozen, content []byte) ([]byte, error) {
	texts, err := bodyOf(d, f)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(16<<10 + int(encodedLen(int64(len(content)))))
	for _, h := range c.headers(d, f) {
		b.WriteString(fold(h[0], h[1]) + "\r\n")
	}
	if !f.Attach {
		b.WriteString(fold("Content-Type", multipartType("alternative", f)) + "\r\n\r\n")
		err = writeAlternative(&b, f, texts)
		return b.Bytes(), err
	}
	b.WriteString(fold("Content-Type", multipartType("mixed", f)) + "\r\n\r\n")
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundary("mixed", f)); err != nil {
		return nil, err
	}
	part, err := w.CreatePart(partHeader("Content-Type", multipartType("alternative", f)))
	if err == nil {
		err = writeAlternative(part, f, texts)
	}
	if err == nil {
		part, err = w.CreatePart(partHeader("Content-Type", mediaType(d.File.MediaType),
			"Content-Disposition", disposition(d.File.Name), "Content-Transfer-Encoding", "base64"))
	}
	if err == nil {
		err = writeBase64(part, content)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// headers in the order in which they are written. SES puts its own Message-ID and Date over ours
// (https://docs.aws.amazon.com/ses/latest/dg/header-fields.html), so our ids travel in X- headers as well.
func (c *Channel) headers(d channel.Delivery, f channel.Frozen) [][2]string {
	_, domain, _ := strings.Cut(c.from.Address, "@")
	id := sha256.Sum256([]byte(d.Key))
	h := [][2]string{
		{"From", c.from.String()},
		{"To", plain(d.Recipient)},
		{"Subject", text(subject(d))},
		{"Date", f.Date.Format("Mon, 02 Jan 2006 15:04:05 -0700")},
		{"Message-ID", "<" + hex.EncodeToString(id[:16]) + "@" + domain + ">"},
		{"MIME-Version", "1.0"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: no vacation notice in reply
		{headerDelivery, text(d.Key)},
		{"X-Almanac-Schedule", text(d.ScheduleID)},
		{"X-Almanac-Run", text(d.RunID)},
		{"X-Almanac-Occurrence", text(d.Occurrence)},
		{"X-Almanac-Workspace", text(d.Workspace)},
	}
	if d.Unsubscribe != "" { // RFC 8058: a POST to the URL unsubscribes, nothing else is asked
		h = append(h, [2]string{"List-Unsubscribe", "<" + d.Unsubscribe + ">"},
			[2]string{"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"})
	}
	return h
}

func boundary(kind string, f channel.Frozen) string { return kind + "-" + f.Boundary }

func multipartType(kind string, f channel.Frozen) string {
	return "multipart/" + kind + `; boundary="` + boundary(kind, f) + `"`
}

func partHeader(pairs ...string) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], foldValue(pairs[i], pairs[i+1]))
	}
	return h
}

// writeAlternative writes the plain text, then the HTML: readers show the last one that they can.
func writeAlternative(to io.Writer, f channel.Frozen, t texts) error {
	w := multipart.NewWriter(to)
	if err := w.SetBoundary(boundary("alternative", f)); err != nil {
		return err
	}
	for _, p := range []struct{ media, text string }{{"text/plain; charset=utf-8", t.plain}, {"text/html; charset=utf-8", t.html}} {
		part, err := w.CreatePart(partHeader("Content-Type", p.media, "Content-Transfer-Encoding", "quoted-printable"))
		if err != nil {
			return err
		}
		q := quotedprintable.NewWriter(part)
		if _, err := io.WriteString(q, p.text); err != nil {
			return err
		}
		if err := q.Close(); err != nil {
			return err
		}
	}
	return w.Close()
}

// encodedLen is the number of bytes that writeBase64 makes of n.
func encodedLen(n int64) int64 {
	chars := (n + 2) / 3 * 4
	return chars + (chars+lineLen-1)/lineLen*2
}

func writeBase64(to io.Writer, content []byte) error {
	const chunk = lineLen / 4 * 3
	line := make([]byte, 0, lineLen+2)
	for len(content) > 0 {
		n := min(chunk, len(content))
		line = base64.StdEncoding.AppendEncode(line[:0], content[:n])
		if _, err := to.Write(append(line, '\r', '\n')); err != nil {
			return err
		}
		content = content[n:]
	}
	return nil
}
