package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	signing "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

var (
	start    = time.Date(2026, 11, 30, 8, 0, 5, 0, time.UTC)
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

func secret(b byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// rotating gives each call's secrets in turn.
type rotating struct {
	calls [][]string
	n     int
}

func (r *rotating) Get(context.Context, string) ([]string, error) {
	s := r.calls[min(r.n, len(r.calls)-1)]
	r.n++
	return s, nil
}

func delivery(url string) channel.Delivery {
	return channel.Delivery{
		Key: "run-1#webhook#0123", ScheduleID: "s-1", ScheduleName: "Délais <1>", Workspace: "EWR", RunID: "run-1",
		Occurrence: "s-1@2013-01-02T14:00:00Z", Nominal: time.Date(2013, 1, 2, 9, 0, 0, 0, time.FixedZone("", -5*3600)), Zone: "America/New_York",
		Recipient: url, SecretID: "hook", FileLink: "https://almanac.example/files/tok?a=1&b=2",
		File: channel.File{Name: "délais.csv", MediaType: "text/csv", Rows: 7, Bytes: 9007199254740993, SHA256: strings.Repeat("a", 64), DataAsOf: start},
	}
}

type request struct {
	header http.Header
	body   []byte
}

func TestD8EachTryHasOneKeyAndEqualBytesAndItsOwnSignatures(t *testing.T) {
	var got []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, request{r.Header.Clone(), body})
		if len(got) == 1 {
			w.WriteHeader(500)
		}
	}))
	defer server.Close()
	at := time.Now().Truncate(time.Second) // the library checks time stamps against the real clock
	clock := at
	keys := &rotating{calls: [][]string{{secret(1)}, {secret(2), secret(1)}}}
	c, err := New(keys, Config{Private: loopback, Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	if !c.HonoursKeys() {
		t.Error("the key is not honoured")
	}
	d := delivery(server.URL + "/hook")
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.Lost {
		t.Fatalf("after 500: %+v", v)
	}
	clock = at.Add(60 * time.Second)
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.Accepted {
		t.Fatalf("after 200: %+v", v)
	}
	if len(got) != 2 || !bytes.Equal(got[0].body, got[1].body) || !bytes.Equal(got[0].body, f.Body) {
		t.Fatalf("%d requests, or bodies that differ", len(got))
	}
	for i, r := range got {
		if r.header.Get("webhook-id") != d.Key || r.header.Get("Content-Type") != "application/json" || r.header.Get("User-Agent") != userAgent || r.header.Get("Cookie") != "" {
			t.Errorf("try %d: headers %v", i+1, r.header)
		}
		if want := strconv.FormatInt(at.Add(time.Duration(i)*time.Minute).Unix(), 10); r.header.Get("webhook-timestamp") != want {
			t.Errorf("try %d: time stamp %s, want %s", i+1, r.header.Get("webhook-timestamp"), want)
		}
		if n := len(strings.Split(r.header.Get("webhook-signature"), " ")); n != i+1 {
			t.Errorf("try %d: %d signatures", i+1, n)
		}
		for _, s := range keys.calls[i] {
			verify(t, s, r, true)
		}
		verify(t, secret(9), r, false)
	}
	if got[0].header.Get("webhook-signature") == strings.Split(got[1].header.Get("webhook-signature"), " ")[1] {
		t.Error("the second try carries the first one's signature")
	}
	forged := request{got[1].header, append([]byte(" "), got[1].body...)}
	verify(t, secret(1), forged, false)
}

func verify(t *testing.T, s string, r request, good bool) {
	t.Helper()
	w, err := signing.NewWebhook(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Verify(r.body, r.header); (err == nil) != good {
		t.Errorf("verify: %v, want good %v", err, good)
	}
}

func TestBodyNamesTheFileAndNeverHoldsIt(t *testing.T) {
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery("https://receiver.example/")
	d.File.Open = func(context.Context) ([]byte, error) { t.Error("the file was read"); return nil, nil }
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"file.delivered","timestamp":"2026-11-30T08:00:05Z","data":{"schedule":{"id":"s-1","name":"Délais <1>"},` +
		`"workspace":"EWR","run":"run-1","occurrence":"s-1@2013-01-02T14:00:00Z","nominal_time":"2013-01-02T14:00:00Z","zone":"America/New_York",` +
		`"file":{"name":"délais.csv","type":"text/csv","rows":7,"bytes":9007199254740993,"sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",` +
		`"data_as_of":"2026-11-30T08:00:05Z","link":"https://almanac.example/files/tok?a=1&b=2"}}}`
	if string(f.Body) != want {
		t.Errorf("body\n%s\nwant\n%s", f.Body, want)
	}
	var p Payload
	if err := json.Unmarshal(f.Body, &p); err != nil || p.Data.File.Bytes != d.File.Bytes || p.Data.Schedule.Name != d.ScheduleName {
		t.Errorf("read back %+v, %v", p, err)
	}
	if len(f.BodyHash) != 64 || f.Attach {
		t.Errorf("frozen %+v", f)
	}
	d.FileLink = ""
	if _, err := c.Freeze(t.Context(), d, start, nil); !failure.Is(err, failure.ChannelMisconfig) {
		t.Errorf("without a link: %v", err)
	}
}

// A receiver that sends without end is read for 4 KiB, and its status counts.
func TestAnswersAreReadToTheirLimit(t *testing.T) {
	var written int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for block := make([]byte, 64<<10); r.Context().Err() == nil; written += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Private: loopback, Now: time.Now, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery(server.URL)
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.Accepted || time.Since(begin) > 5*time.Second {
		t.Fatalf("%+v after %s", v, time.Since(begin))
	}
	server.Close()
	if written > 64<<20 {
		t.Errorf("%d bytes were taken", written)
	}
}

func TestAProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Now: time.Now, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery("https://receiver.invalid/")
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.NotAccepted {
		t.Errorf("%+v", v)
	}
}

func TestConfiguration(t *testing.T) {
	for name, row := range map[string]struct {
		secrets Secrets
		cfg     Config
		names   string
	}{
		"no secrets":      {nil, Config{Now: time.Now}, "secrets"},
		"no clock":        {&rotating{}, Config{}, "Now"},
		"negative time":   {&rotating{}, Config{Now: time.Now, Timeout: -1}, "Timeout"},
		"network not one": {&rotating{}, Config{Now: time.Now, Private: make([]netip.Prefix, 1)}, "Private"},
	} {
		if _, err := New(row.secrets, row.cfg); err == nil || !strings.Contains(err.Error(), row.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewManager(nil, time.Now); err == nil {
		t.Error("a manager without a client")
	}
	for _, key := range []string{"", "a b", "a\r\nX: y", "ü"} {
		if err := checkHeader(key); err == nil {
			t.Errorf("key %q", key)
		}
	}
	if fmt.Sprint(checkSecret(secret(1))) != fmt.Sprint((*failure.Failure)(nil)) {
		t.Error("a good secret")
	}
}

// A receiver that switches protocols and then says nothing must not hold the worker: net/http hands out the bare
// connection, which the request's deadline does not end.
func TestSwitchingProtocolsIsARefusalAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nothing\r\n\r\n")
	}))
	t.Cleanup(server.Close)
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Private: loopback, Timeout: time.Second, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery(server.URL + "/hook")
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	verdict := make(chan channel.Verdict, 1)
	go func() { verdict <- c.Send(t.Context(), d, f) }()
	select {
	case v := <-verdict:
		if v.Outcome != channel.Refused || !strings.Contains(v.Detail, "101") {
			t.Errorf("%+v, want a refusal that names 101", v)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Send still waits, ten times its time-out later")
	}
}

// raw answers one request with these bytes.
func raw(t *testing.T, answer string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook"
}

// What a server may answer that no ordinary one does: each is read as far as it can be, and no further.
func TestOddAnswersAreReadForWhatTheySay(t *testing.T) {
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Private: loopback, Timeout: 10 * time.Second, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]channel.Outcome{
		"HTTP/1.1 302 Found\r\nLocation: http://[::1/%zz\r\nContent-Length: 0\r\n\r\n":         channel.Refused,
		"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n":                                      channel.Refused,
		"HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n":                                    channel.Lost,
		"HTTP/1.1 099 Nothing\r\nContent-Length: 0\r\n\r\n":                                    channel.Lost,
		strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20):                                 channel.Lost,
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n": channel.Accepted,
		"HTTP/1.1 999 Much\r\nContent-Length: 0\r\n\r\n":                                       channel.Lost,
	} {
		d := delivery(raw(t, answer))
		f, err := c.Freeze(t.Context(), d, start, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Send(t.Context(), d, f); v.Outcome != want {
			t.Errorf("%.40q: %+v, want outcome %v", answer, v, want)
		}
	}
}

// A receiver that has answered and then lets its body drip does not hold the worker for the rest of the try.
func TestABodyThatDripsIsLeft(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			if _, err := w.Write([]byte(".")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(&rotating{calls: [][]string{{secret(1)}}}, Config{Private: loopback, Timeout: time.Minute, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery(server.URL)
	f, err := c.Freeze(t.Context(), d, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if v := c.Send(t.Context(), d, f); v.Outcome != channel.Accepted || time.Since(begin) > 20*time.Second {
		t.Fatalf("%+v after %s", v, time.Since(begin))
	}
}
