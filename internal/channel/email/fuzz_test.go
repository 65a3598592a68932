package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"almanac/internal/channel"
)

// oneLine is what header.go promises of a person's text in one line, written anew.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069', r == '\u200E', r == '\u200F', r == '\u061C':
			b.WriteRune(' ')
		default:
			b.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "=?", "= ?")), " ")
}

// part is one leaf of a message, decoded.
type part struct {
	media, name string
	body        []byte
}

// leaves takes a message's body apart.
func leaves(t *testing.T, contentType, encoding, disposition string, body io.Reader) (out []part) {
	t.Helper()
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("Content-Type %q: %v", contentType, err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		switch encoding {
		case "base64":
			body = base64Reader(body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		default:
			t.Fatalf("a leaf in the encoding %q", encoding)
		}
		p := part{media: media}
		if p.body, err = io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
		if disposition != "" {
			kind, of, err := mime.ParseMediaType(disposition)
			if err != nil || kind != "attachment" || len(of) != 1 {
				t.Fatalf("Content-Disposition %q: %v", disposition, err)
			}
			p.name = of["filename"]
		}
		return []part{p}
	}
	r := multipart.NewReader(body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for name := range p.Header {
			if !slices.Contains([]string{"Content-Type", "Content-Transfer-Encoding", "Content-Disposition"}, name) {
				t.Fatalf("a part has the header %q", name)
			}
		}
		out = append(out, leaves(t, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.Header.Get("Content-Disposition"), p)...)
	}
}

// wantWire demands what every mail server takes: 7-bit lines of at most 998 bytes that end in CRLF (RFC 5321, 4.5.3.1.6).
func wantWire(t *testing.T, raw []byte) {
	t.Helper()
	for i, line := range bytes.SplitAfter(raw, []byte("\r\n")) {
		if line = bytes.TrimSuffix(line, []byte("\r\n")); len(line) > 998 || bytes.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' && r != '\t' }) {
			t.Fatalf("line %d: %q", i+1, line)
		}
	}
}

// wantHeaders demands exactly these headers, each once, with these values after decoding.
func wantHeaders(t *testing.T, got mail.Header, want map[string]string) {
	t.Helper()
	for name, values := range got {
		if _, ok := want[name]; !ok || len(values) != 1 {
			t.Fatalf("the header %s has the values %q", name, values)
		}
	}
	decoder := new(mime.WordDecoder)
	for name, value := range want {
		text, err := decoder.DecodeHeader(got.Get(name))
		if err != nil || value != "*" && text != value || text == "" {
			t.Fatalf("%s is %q, want %q: %v", name, text, value, err)
		}
	}
}

// short are texts that no bound cuts.
func short(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return len(oneLine(s)) > maxText || len(s) > 1000 })
}

// FuzzMail: whatever stands in the texts that people write, the message reads back, with net/mail and mime, as exactly those
// texts in their places: no header more, no part more, no tag more, and the file byte for byte.
func FuzzMail(f *testing.F) {
	add := func(subject, intro, name, file, owner, to, key string, content []byte) {
		f.Add(subject, intro, name, file, owner, to, key, content, true)
		f.Add(subject, intro, name, file, owner, to, key, content, false)
	}
	add("Departures", "Every departure.\n\nEach morning.", "Delays", "Delays 2040-03-05 0630.csv", "ops@example.com", "ann@example.com", "s@2040/email#00ff", []byte("a,b\r\n1,2\r\n"))
	add("a\r\nBcc: eve@example.com", "x\r\n.\r\n--mixed-00\r\nContent-Type: text/html", "\r\n\r\n<script>", "a\"; filename=evil.exe\r\nX: y", "<b>&amp;</b>", "o'hara+tag@example.com", "k", []byte("\r\n.\r\n--mixed-"))
	add("=?utf-8?Q?x?=", "{{.Link}} <a href=javascript:x>", "日本語の報告", "../../日本 \u202egnp.csv", "é", "a@b.example", "s@x", nil)
	add(strings.Repeat("wide é ", 40), strings.Repeat("x", 300)+"\u2028y", strings.Repeat("a", 399), strings.Repeat("ü", 120)+".csv", "\xff\xfe", "x@xn--bcher-kva.example", strings.Repeat("k", 200), bytes.Repeat([]byte{0, 255}, 100))
	add("", "", "", "", "", "a@example.com", "", []byte{0})
	add("=", "=\n=20\n", "?=", "%41.csv", " . ", "{x}~@example.com", "a b", []byte("="))
	c, err := New(mute{}, Config{From: "almanac@example.com", FromName: "Almanac, the “Product”"})
	if err != nil {
		f.Fatal(err)
	}
	tags := -1
	f.Fuzz(func(t *testing.T, subject, intro, name, file, owner, to, key string, content []byte, stop bool) {
		if channel.ValidateAddress(to) != nil || !short(subject, name, file, owner, key) || len(intro) > 2000 {
			return
		}
		sum := sha256.Sum256(content)
		d := channel.Delivery{Key: key, ScheduleID: "s", ScheduleName: name, Workspace: "EWR", RunID: "s@2040", Occurrence: "2040", Nominal: time.Unix(2214000000, 0), Zone: "America/New_York",
			Recipient: to, Owner: owner, Subject: subject, Introduction: intro, FileLink: "https://almanac.example/files/t",
			File: channel.File{Name: file, MediaType: "text/csv; charset=utf-8", Rows: 2, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
				Open: func(context.Context) ([]byte, error) { return content, nil }}}
		if stop {
			d.Unsubscribe = "https://almanac.example/unsubscribe/t"
		}
		frozen, err := c.Freeze(context.Background(), d, time.Unix(2214000000, 0), make([]byte, 16))
		if err != nil {
			t.Fatal(err)
		}
		raw, verdict := c.message(context.Background(), d, frozen)
		if raw == nil || hash(raw) != frozen.BodyHash {
			t.Fatalf("the message is not the one that was frozen: %+v", verdict)
		}
		wantWire(t, raw)
		letter, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"To": strings.TrimSpace(to), "Subject": "*", "From": "*", "Date": "*", "Message-Id": "*", "Mime-Version": "1.0", "Auto-Submitted": "auto-generated", "Content-Type": "*",
			"X-Almanac-Schedule": "s", "X-Almanac-Run": "s@2040", "X-Almanac-Occurrence": "2040", "X-Almanac-Workspace": "EWR", headerDelivery: oneLine(key)}
		if want[headerDelivery] == "" {
			delete(want, headerDelivery) // an empty header says nothing
			delete(letter.Header, headerDelivery)
		}
		if stop {
			want["List-Unsubscribe"], want["List-Unsubscribe-Post"] = "<"+d.Unsubscribe+">", "List-Unsubscribe=One-Click"
		}
		if s := oneLine(subject); s != "" {
			want["Subject"] = s
		}
		wantHeaders(t, letter.Header, want)
		if a, err := letter.Header.AddressList("To"); err != nil || len(a) != 1 || a[0].Address != strings.TrimSpace(to) {
			t.Fatalf("To %q: %v %v", letter.Header.Get("To"), a, err)
		}
		if a, err := letter.Header.AddressList("From"); err != nil || len(a) != 1 || a[0].Address != "almanac@example.com" || a[0].Name != "Almanac, the “Product”" {
			t.Fatalf("From %q: %v %v", letter.Header.Get("From"), a, err)
		}
		parts := leaves(t, letter.Header.Get("Content-Type"), "", "", letter.Body)
		if len(parts) != 3 || parts[0].media != "text/plain" || parts[1].media != "text/html" || parts[2].media != "text/csv" {
			t.Fatalf("%d parts: %q", len(parts), raw)
		}
		if !bytes.Equal(parts[2].body, content) {
			t.Fatalf("the file is %q, was %q", parts[2].body, content)
		}
		wantName := strings.NewReplacer("/", "_", `\`, "_").Replace(oneLine(file))
		if wantName == "" {
			wantName = "file"
		}
		if len(wantName) <= 255 && parts[2].name != wantName {
			t.Fatalf("the file is called %q, want %q", parts[2].name, wantName)
		}
		plainText, htmlText := string(parts[0].body), string(parts[1].body)
		if !utf8.ValidString(plainText) || !utf8.ValidString(htmlText) {
			t.Fatal("a body is not UTF-8")
		}
		for _, s := range []string{oneLine(name), oneLine(owner), oneLine(file)} {
			if !strings.Contains(plainText, s) || !strings.Contains(html.UnescapeString(htmlText), s) {
				t.Fatalf("%q is not in a body:\n%s\n%s", s, plainText, htmlText)
			}
		}
		for line := range strings.FieldsFuncSeq(intro, func(r rune) bool { return strings.ContainsRune("\r\n\u2028\u2029", r) }) {
			if s := line; s == oneLine(s) && s != "" && !strings.Contains(s, "= ?") && (!strings.Contains(plainText, s) || !strings.Contains(html.UnescapeString(htmlText), s)) {
				t.Fatalf("%q of the introduction is not in a body:\n%s\n%s", s, plainText, htmlText)
			}
		}
		n := strings.Count(htmlText, "<")*1000 + strings.Count(htmlText, ">")
		if stop {
			n -= 2*1000 + 2 // the link that stops the mails
		}
		if tags < 0 {
			tags = n
		}
		if n != tags {
			t.Fatalf("the HTML has other tags than always:\n%s", htmlText)
		}
	})
}

// mute is a mail service that is never asked.
type mute struct{ SES }

// FuzzNotice: notices say what a run's failure said, which comes from sources, in the same way.
func FuzzNotice(f *testing.F) {
	f.Add("Delays", "no such column: carier", "query_invalid", "ops@example.com", "ann@example.com")
	f.Add("a\r\nBcc: eve@example.com", "\r\n\r\n<script>alert(1)</script>", "x", "=?utf-8?B?eA==?=", "a@example.com")
	f.Add("日本", "\u202e\x00\xff", "", "", "x@b.example")
	c, err := New(mute{}, Config{From: "almanac@example.com"})
	if err != nil {
		f.Fatal(err)
	}
	tags := map[bool]string{} // by whether a code is shown
	f.Fuzz(func(t *testing.T, name, message, code, owner, to string) {
		if channel.ValidateAddress(to) != nil || !short(name, message, code, owner) {
			return
		}
		raw, err := c.renderNotice(channel.Notice{ID: "s@2040#failed#email#00ff", Kind: channel.NoticeFailed, At: time.Unix(2214000000, 0), ScheduleID: "s", ScheduleName: name, Workspace: "EWR",
			Zone: "America/New_York", Owner: owner, RunID: "s@2040", Nominal: time.Unix(2214000000, 0), Code: code, Message: message, Streak: 1, Recipient: to})
		if err != nil {
			t.Fatal(err)
		}
		wantWire(t, raw)
		letter, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		for header, values := range letter.Header {
			if len(values) != 1 || strings.Contains(header, "Bcc") {
				t.Fatalf("%s: %q", header, values)
			}
		}
		if a, err := letter.Header.AddressList("To"); err != nil || len(a) != 1 || a[0].Address != strings.TrimSpace(to) {
			t.Fatalf("To: %v %v", a, err)
		}
		parts := leaves(t, letter.Header.Get("Content-Type"), letter.Header.Get("Content-Transfer-Encoding"), "", letter.Body)
		if len(parts) != 2 || parts[0].media != "text/plain" || parts[1].media != "text/html" {
			t.Fatalf("%d parts: %q", len(parts), raw)
		}
		text := html.UnescapeString(string(parts[1].body))
		shown := []string{oneLine(name), oneLine(owner)}
		if oneLine(code) != "" {
			shown = append(shown, oneLine(message))
		}
		for _, s := range shown {
			if !strings.Contains(string(parts[0].body), s) || !strings.Contains(text, s) {
				t.Fatalf("%q is not in a body:\n%s\n%s", s, parts[0].body, text)
			}
		}
		n := fmt.Sprint(strings.Count(string(parts[1].body), "<"), strings.Count(string(parts[1].body), ">"))
		form := oneLine(code) == ""
		if tags[form] == "" {
			tags[form] = n
		}
		if n != tags[form] {
			t.Fatalf("the HTML has other tags than always:\n%s", parts[1].body)
		}
	})
}
