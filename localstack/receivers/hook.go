package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	signing "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const maxBody = 1 << 20 // bytes of a delivery that are taken

// request describes one delivery that came; it is stored beside its body.
type request struct {
	ID          string      `json:"id"`        // webhook-id
	Timestamp   string      `json:"timestamp"` // webhook-timestamp, as it came
	Path        string      `json:"path"`
	BodySHA256  string      `json:"body_sha256"`
	Bytes       int         `json:"bytes"`
	SignatureOK bool        `json:"signature_ok"`
	Fault       string      `json:"fault,omitempty"` // why the signature is not right
	Received    time.Time   `json:"received"`
	Answer      int         `json:"answer"` // the status; 0: the connection was cut instead
	Body        string      `json:"body_file"`
	Header      http.Header `json:"header"`
	Signatures  int         `json:"signatures"` // how many it carried
}

// answer is one thing to answer.
type answer struct {
	Status     int    `json:"status"`                // 200 to 599; 0 only with cut
	RetryAfter wish   `json:"retry_after,omitempty"` // header Retry-After: seconds, or a date as text
	Location   string `json:"location,omitempty"`
	Body       string `json:"body,omitempty"`
	Cut        bool   `json:"cut,omitempty"`   // close the connection after reading, instead of answering
	Delay      string `json:"delay,omitempty"` // wait so long before, such as 2s
}

// wish is a Retry-After, given as a number of seconds or as text.
type wish string

// UnmarshalJSON takes both.
func (w *wish) UnmarshalJSON(b []byte) error {
	var seconds uint32
	if json.Unmarshal(b, &seconds) == nil {
		*w = wish(strconv.FormatUint(uint64(seconds), 10))
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("retry_after %s: must be seconds, or a date as text", b)
	}
	*w = wish(text)
	return nil
}

// told is what a path answers: one after the other, the last again and again. Cut and delay hold for each.
type told struct {
	Answers []answer `json:"answers"`
	Cut     bool     `json:"cut,omitempty"`
	Delay   string   `json:"delay,omitempty"`
}

type box struct {
	dir      string
	last     int
	requests []request
	told     *told
	answered int
}

// hooks receives deliveries, path by path.
type hooks struct {
	dir     string
	secrets secretSource
	now     func() time.Time

	mu    sync.Mutex
	paths map[string]*box
}

func openHooks(dir string, secrets secretSource, now func() time.Time) (*hooks, error) {
	if _, err := secrets.read(); err != nil {
		return nil, err
	}
	return &hooks{dir: dir, secrets: secrets, now: now, paths: map[string]*box{}}, nil
}

// at finds a path's box, with what it received before a restart. The caller holds the lock.
func (h *hooks) at(path string) (*box, error) {
	if b := h.paths[path]; b != nil {
		return b, nil
	}
	name := url.PathEscape(path)
	if len(name) > 120 {
		sum := sha256.Sum256([]byte(path))
		name = name[:80] + "-" + hex.EncodeToString(sum[:8])
	}
	b := &box{dir: filepath.Join(h.dir, name)}
	var err error
	if b.requests, b.last, err = load[request](b.dir); err != nil {
		return nil, err
	}
	h.paths[path] = b
	return b, nil
}

// receive stores a delivery and answers as told; without being told, 200, or 401 if its signature is not right.
func (h *hooks) receive(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_") {
		problem(w, http.StatusNotFound, "no such control; paths that begin with /_ take no deliveries")
		return
	}
	if r.Method != http.MethodPost {
		problem(w, http.StatusMethodNotAllowed, "deliveries are POSTs")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	a, wait, err := h.keep(r, body)
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if !pause(r.Context(), wait) || a.Cut {
		cut(w)
		return
	}
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", string(a.RetryAfter))
	}
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

func (h *hooks) keep(r *http.Request, body []byte) (a answer, wait time.Duration, err error) {
	sum := sha256.Sum256(body)
	q := request{
		ID: r.Header.Get(signing.HeaderWebhookID), Timestamp: r.Header.Get(signing.HeaderWebhookTimestamp), Path: r.URL.Path,
		BodySHA256: hex.EncodeToString(sum[:]), Bytes: len(body), Received: h.now().UTC(), Header: r.Header,
		Signatures: len(strings.Fields(r.Header.Get(signing.HeaderWebhookSignature))),
	}
	if err := h.verify(body, r.Header); err != nil {
		q.Fault = err.Error()
	} else {
		q.SignatureOK = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.at(r.URL.Path)
	if err != nil {
		return a, 0, err
	}
	a, wait = b.next(q.SignatureOK)
	q.Answer = a.Status
	if a.Cut {
		q.Answer = 0
	}
	b.last++
	number := fmt.Sprintf("%06d", b.last)
	q.Body = filepath.Join(b.dir, number+".body")
	if err := write(q.Body, body); err != nil {
		return a, 0, err
	}
	if err := writeJSON(filepath.Join(b.dir, number+".json"), q); err != nil {
		return a, 0, err
	}
	b.requests = append(b.requests, q)
	return a, wait, nil
}

// next is the answer to the next request.
func (b *box) next(signed bool) (answer, time.Duration) {
	if b.told == nil {
		if signed {
			return answer{Status: http.StatusOK}, 0
		}
		return answer{Status: http.StatusUnauthorized, Body: "the signature is not right\n"}, 0
	}
	a := b.told.Answers[min(b.answered, len(b.told.Answers)-1)]
	b.answered++
	a.Cut = a.Cut || b.told.Cut
	text := a.Delay
	if text == "" {
		text = b.told.Delay
	}
	wait, _ := time.ParseDuration(text) // checked when it was told; empty is 0
	return a, wait
}

// verify accepts a signature by any of the secrets.
func (h *hooks) verify(body []byte, header http.Header) error {
	secrets, err := h.secrets.read()
	if err != nil {
		return err
	}
	fault := errors.New("no secret is configured")
	for _, s := range secrets {
		w, err := signing.NewWebhook(s)
		if err == nil {
			err = w.Verify(body, header)
		}
		if err == nil {
			return nil
		}
		fault = err
	}
	return fault
}

func (t *told) check() error {
	if len(t.Answers) == 0 {
		if !t.Cut && t.Delay == "" {
			return errors.New(`answers: none; give at least one, such as {"answers":[{"status":200}]}`)
		}
		t.Answers = []answer{{Status: http.StatusOK}}
	}
	delays := []string{t.Delay}
	for i, a := range t.Answers {
		if (a.Status < 200 || a.Status > 599) && !(a.Status == 0 && (a.Cut || t.Cut)) {
			return fmt.Errorf("answers[%d].status %d: must be 200 to 599", i, a.Status)
		}
		delays = append(delays, a.Delay)
	}
	for _, d := range delays {
		if wait, err := time.ParseDuration(d); d != "" && (err != nil || wait < 0 || wait > 10*time.Minute) {
			return fmt.Errorf("delay %q: must be 0 to 10m, such as 2s", d)
		}
	}
	return nil
}

// secretSource gives the secrets that a signature may be by.
type secretSource struct {
	given []string
	file  string
}

// read returns the secrets given and those of the file as it is now.
func (s secretSource) read() ([]string, error) {
	all := append([]string{}, s.given...)
	if s.file != "" {
		b, err := os.ReadFile(s.file)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		var pair struct{ Current, Previous string }
		if json.Unmarshal(b, &pair) == nil {
			all = append(all, pair.Current, pair.Previous)
		} else {
			all = append(all, strings.Split(string(b), "\n")...)
		}
	}
	var out []string
	for _, line := range all {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if _, err := signing.NewWebhook(line); err != nil || !strings.HasPrefix(line, "whsec_") {
			return nil, errors.New("a signing secret is none; write whsec_ followed by base64")
		}
		out = append(out, line)
	}
	return out, nil
}

// pause waits, unless the sender or this program gives up before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// cut closes the connection without an answer.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}
