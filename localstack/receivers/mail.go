package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// maxMail is the longest mail taken, in bytes; SES's own limit is below it.
const maxMail = 64 << 20

// received describes one mail; it is stored beside it.
type received struct {
	ID          string       `json:"id"`
	Received    time.Time    `json:"received"`
	From        string       `json:"from"`
	To          []string     `json:"to"`
	Subject     string       `json:"subject"`
	Run         string       `json:"run,omitempty"` // X-Almanac-Run
	Schedule    string       `json:"schedule,omitempty"`
	Delivery    string       `json:"delivery,omitempty"`
	Unsubscribe string       `json:"unsubscribe,omitempty"`
	File        string       `json:"file"`
	Fault       string       `json:"fault,omitempty"` // what is not well-formed about it
	Attachments []attachment `json:"attachments"`
}

type attachment struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	File   string `json:"file"`
}

// mailbox keeps mails in a folder. The description is written last, so that whatever is listed is whole.
type mailbox struct {
	dir string
	now func() time.Time

	mu     sync.Mutex
	mails  []received
	last   int
	refuse map[string]bool
}

func openMailbox(dir string, refuse []string, now func() time.Time) (*mailbox, error) {
	m := &mailbox{dir: dir, now: now}
	m.setRefused(refuse)
	var err error
	m.mails, m.last, err = load[received](dir)
	return m, err
}

func (m *mailbox) setRefused(recipients []string) {
	refuse := map[string]bool{}
	for _, r := range recipients {
		refuse[strings.ToLower(strings.TrimSpace(r))] = true
	}
	m.mu.Lock()
	m.refuse = refuse
	m.mu.Unlock()
}

func (m *mailbox) refused(recipient string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuse[strings.ToLower(recipient)]
}

// find lists the mails to an address and of a run; an empty one means any.
func (m *mailbox) find(to, run string) []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []received{}
	for _, r := range m.mails {
		match := to == ""
		for _, a := range r.To {
			match = match || strings.EqualFold(a, to)
		}
		if match && (run == "" || run == r.Run) {
			out = append(out, r)
		}
	}
	return out
}

// keep stores a mail as it came.
func (m *mailbox) keep(from string, to []string, raw []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	id := fmt.Sprintf("%06d", m.last)
	r := received{ID: id, Received: m.now().UTC(), From: from, To: to, File: filepath.Join(m.dir, id+".eml"), Attachments: []attachment{}}
	if err := write(r.File, raw); err != nil {
		return err
	}
	parts, err := r.read(raw)
	if err != nil {
		r.Fault = err.Error()
	}
	for i, p := range parts {
		name := safe(p.Name, i)
		if i > 0 {
			name = fmt.Sprintf("%d-%s", i+1, name) // two may have one name
		}
		p.File = filepath.Join(m.dir, id+"-"+name)
		if err := write(p.File, p.content); err != nil {
			return err
		}
		r.Attachments = append(r.Attachments, p.attachment)
	}
	if err := writeJSON(filepath.Join(m.dir, id+".json"), r); err != nil {
		return err
	}
	m.mails = append(m.mails, r)
	return nil
}

type part struct {
	attachment
	content []byte
}

// read takes the mail apart, and returns what it found before a fault.
func (r *received) read(raw []byte) ([]part, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	word := func(name string) string {
		s, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get(name))
		if err != nil {
			return msg.Header.Get(name)
		}
		return s
	}
	r.Subject, r.Run, r.Schedule, r.Delivery = word("Subject"), word("X-Almanac-Run"), word("X-Almanac-Schedule"), word("X-Almanac-Delivery")
	r.Unsubscribe = strings.Trim(msg.Header.Get("List-Unsubscribe"), "<>")
	return attachments(msg.Header.Get("Content-Type"), msg.Body, 0)
}

// attachments finds the parts that say that they are one, at any depth a mail has in practice.
func attachments(contentType string, body io.Reader, depth int) (out []part, err error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		return nil, err
	}
	if depth > 5 {
		return nil, errors.New("parts nested deeper than five")
	}
	reader := multipart.NewReader(body, params["boundary"])
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		kind := p.Header.Get("Content-Type")
		if strings.HasPrefix(strings.ToLower(kind), "multipart/") {
			inner, err := attachments(kind, p, depth+1)
			out = append(out, inner...)
			if err != nil {
				return out, err
			}
			continue
		}
		how, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		if err != nil || how != "attachment" {
			continue
		}
		content, err := io.ReadAll(decoder(p.Header.Get("Content-Transfer-Encoding"), p))
		if err != nil {
			return out, fmt.Errorf("attachment %q: %w", params["filename"], err)
		}
		sum := sha256.Sum256(content)
		out = append(out, part{attachment{Name: params["filename"], Type: kind, Bytes: len(content), SHA256: hex.EncodeToString(sum[:])}, content})
	}
}

func decoder(encoding string, r io.Reader) io.Reader {
	switch strings.ToLower(encoding) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, r)
	case "quoted-printable":
		return quotedprintable.NewReader(r)
	}
	return r
}

func newMailServer(m *mailbox) *smtp.Server {
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: m}, nil }))
	s.Domain = "localhost"
	s.MaxMessageBytes = maxMail
	s.MaxRecipients = 100
	s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute
	return s
}

// session is one SMTP dialogue.
type session struct {
	box  *mailbox
	from string
	to   []string
}

func (s *session) Reset()        { s.from, s.to = "", nil }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.box.refused(to) {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox here"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return s.box.keep(s.from, s.to, raw)
}
