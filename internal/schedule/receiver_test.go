package schedule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/smithy-go"
)

// mailbox is SES: it keeps what it accepts, and answers as the test says.
type mailbox struct {
	w      *world
	mu     sync.Mutex
	asked  map[string]int
	at     []time.Time // of every request
	kept   []letter
	taken  int                          // letters accepted
	answer func(to string, n int) error // nil: every request is accepted
	during func(to string)              // while a request is under way
	take   func(to string, raw []byte)  // nil: what is accepted is kept
}

type letter struct {
	to  string
	raw []byte
	at  time.Time
}

// coded is a refusal with a code of SES's own.
func coded(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient}
}

func (m *mailbox) SendRawEmail(ctx context.Context, in *ses.SendRawEmailInput, _ ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	if err := m.w.before(ctx, "SES.SendRawEmail"); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	to := in.Destinations[0]
	if m.during != nil {
		m.during(to)
	}
	m.mu.Lock()
	if m.asked == nil {
		m.asked = map[string]int{}
	}
	m.asked[to]++
	if m.take == nil {
		m.at = append(m.at, m.w.wall())
	}
	n := m.asked[to]
	m.mu.Unlock()
	if m.answer != nil {
		if err := m.answer(to, n); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	if m.take == nil {
		m.kept = append(m.kept, letter{to, bytes.Clone(in.RawMessage.Data), m.w.wall()})
	}
	m.taken++
	id := fmt.Sprintf("ses-%d", m.taken)
	m.mu.Unlock()
	if m.take != nil {
		m.take(to, in.RawMessage.Data)
	}
	if err := m.w.after(ctx); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return &ses.SendRawEmailOutput{MessageId: aws.String(id)}, nil
}

// to lists the letters that an address got.
func (m *mailbox) to(address string) (out []letter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.kept {
		if l.to == address {
			out = append(out, l)
		}
	}
	return out
}

// attachment takes the file out of a letter; "" where there is none. header is a header of the letter.
func (l letter) parts(t testing.TB) (header mail.Header, text, attachment string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(l.raw))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(kind, encoding string, disposition string, body io.Reader)
	walk = func(kind, encoding, disposition string, body io.Reader) {
		media, params, err := mime.ParseMediaType(kind)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(media, "multipart/") {
			r := multipart.NewReader(body, params["boundary"])
			for {
				p, err := r.NextRawPart()
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				walk(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.Header.Get("Content-Disposition"), p)
			}
		}
		content := decoded(t, encoding, body)
		if strings.HasPrefix(disposition, "attachment") {
			attachment = content
		} else {
			text += content
		}
	}
	walk(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), "", m.Body)
	return m.Header, text, attachment
}

// receivers are webhooks on loopback: they keep each request, and answer as the test says.
type receivers struct {
	w      *world
	server *httptest.Server
	mu     sync.Mutex
	posts  []post
	asked  map[string]int
	answer func(name string, n int) reply // nil: 204
	during func(name string, n int)       // while a request is under way
	take   func(post)                     // nil: requests are kept
}

// reply is what a receiver answers; cut closes the connection instead, after the request was taken.
type reply struct {
	status     int
	retryAfter string
	cut        bool
}

type post struct {
	name, key, body string
	at              time.Time
	taken           bool // answered with 2xx, or cut after it was taken
}

func newReceivers(w *world) *receivers {
	r := &receivers{w: w, asked: map[string]int{}}
	r.server = httptest.NewServer(r)
	w.t.Cleanup(r.server.Close)
	return r
}

func (r *receivers) address(name string) string { return r.server.URL + "/" + name }

func (r *receivers) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	name := strings.TrimPrefix(in.URL.Path, "/")
	r.mu.Lock()
	r.asked[name]++
	n := r.asked[name]
	r.mu.Unlock()
	a := reply{status: http.StatusNoContent}
	if r.answer != nil {
		a = r.answer(name, n)
	}
	p := post{name, in.Header.Get("webhook-id"), string(body), r.w.wall(), a.cut || a.status/100 == 2}
	if r.take != nil {
		r.take(p)
	} else {
		r.mu.Lock()
		r.posts = append(r.posts, p)
		r.mu.Unlock()
	}
	if r.during != nil {
		r.during(name, n)
	}
	if a.cut {
		if conn, _, err := out.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return
	}
	if a.retryAfter != "" {
		out.Header().Set("Retry-After", a.retryAfter)
	}
	out.WriteHeader(a.status)
}

// to lists the requests that a receiver got.
func (r *receivers) to(name string) (out []post) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.posts {
		if p.name == name {
			out = append(out, p)
		}
	}
	return out
}

// answers scripts one receiver's answers in order; the last one is repeated. Others take everything.
func answers(name string, list ...reply) func(string, int) reply {
	return func(to string, n int) reply {
		if to != name {
			return reply{status: http.StatusNoContent}
		}
		return list[min(n, len(list))-1]
	}
}

func ok() reply          { return reply{status: http.StatusNoContent} }
func status(n int) reply { return reply{status: n} }
func taken(ps []post) (n int) {
	for _, p := range ps {
		if p.taken {
			n++
		}
	}
	return n
}

// logbook keeps log and metric lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// lines decodes every line.
func (l *logbook) lines(t testing.TB) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.text()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}
