package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ses"

	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/channel/webhook"
)

var (
	secretA = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	secretB = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
)

// program is one run of the receivers.
type program struct {
	ready
	stop func() error // ends it and waits
}

func startReceivers(t *testing.T, dir string, more ...string) program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	args := append([]string{"--smtp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--dir", dir}, more...)
	go func() {
		err := run(ctx, args, in, io.Discard, time.Now)
		in.CloseWithError(err)
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		cancel()
		t.Fatalf("no ready line: %v", err)
	}
	p := program{}
	if err := json.Unmarshal(line, &p.ready); err != nil || !p.Ready || p.PID != os.Getpid() {
		t.Fatalf("ready line %q: %v", line, err)
	}
	stopped := false
	p.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { p.stop() })
	return p
}

// call sends JSON and reads JSON.
func (p program) call(t *testing.T, method, path, body string, into any) int {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+p.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
	return res.StatusCode
}

type secrets []string

func (s secrets) Get(context.Context, string) ([]string, error) { return s, nil }

func delivery(to string, content []byte) channel.Delivery {
	sum := sha256.Sum256(content)
	return channel.Delivery{Key: "k-" + to[len(to)-4:], ScheduleID: "s-1", ScheduleName: "Delays", Workspace: "EWR", RunID: "run-1", Occurrence: "o", Zone: "America/New_York",
		Nominal: time.Now(), Recipient: to, Owner: "ops", SecretID: "hook", FileLink: "https://almanac.example/files/t", Unsubscribe: "https://almanac.example/unsubscribe/t",
		File: channel.File{Name: "../délais\n.csv", MediaType: "text/csv", Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
			Open: func(context.Context) ([]byte, error) { return content, nil }}}
}

// post delivers once through the product's own channel.
func (p program) post(t *testing.T, path string, signedBy ...string) channel.Verdict {
	t.Helper()
	c, err := webhook.New(secrets(signedBy), webhook.Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 5 * time.Second, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery("http://"+p.HTTP+path, nil)
	f, err := c.Freeze(t.Context(), d, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Send(t.Context(), d, f)
}

func (p program) received(t *testing.T, path string) []request {
	t.Helper()
	var all []request
	if status := p.call(t, "GET", "/_received"+path, "", &all); status != 200 {
		t.Fatalf("status %d", status)
	}
	return all
}

func TestWebhookSignaturesAreVerified(t *testing.T) {
	p := startReceivers(t, t.TempDir(), "--secret", secretA)
	if v := p.post(t, "/in", secretA); v.Outcome != channel.Accepted {
		t.Errorf("signed by the secret: %+v", v)
	}
	if v := p.post(t, "/in", secretB, secretA); v.Outcome != channel.Accepted {
		t.Errorf("signed by two: %+v", v)
	}
	if v := p.post(t, "/in", secretB); v.Outcome != channel.Refused {
		t.Errorf("signed by another: %+v", v)
	}
	if status := p.call(t, "POST", "/in", "{}", nil); status != 401 {
		t.Errorf("not signed: %d", status)
	}
	all := p.received(t, "/in")
	if len(all) != 4 {
		t.Fatalf("%d requests, want 4", len(all))
	}
	for i, want := range []struct {
		ok         bool
		signatures int
		answer     int
	}{{true, 1, 200}, {true, 2, 200}, {false, 1, 401}, {false, 0, 401}} {
		r := all[i]
		body, err := os.ReadFile(r.Body)
		sum := sha256.Sum256(body)
		if r.SignatureOK != want.ok || (r.Fault == "") != want.ok || r.Signatures != want.signatures || r.Answer != want.answer || err != nil || r.BodySHA256 != hex.EncodeToString(sum[:]) || r.Bytes != len(body) {
			t.Errorf("request %d: %+v, %v", i+1, r, err)
		}
	}
	if all[0].ID == "" || all[0].Timestamp == "" || all[0].Header.Get("User-Agent") == "" || all[0].Received.IsZero() {
		t.Errorf("%+v", all[0])
	}
	if len(p.received(t, "/other")) != 0 {
		t.Error("another path lists them too")
	}
}

func TestSecretFileIsReadAtEachRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	put := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(secretA + "\n")
	p := startReceivers(t, t.TempDir(), "--secret-file", file)
	if v := p.post(t, "/in", secretA); v.Outcome != channel.Accepted {
		t.Errorf("%+v", v)
	}
	put(`{"current":"` + secretB + `","previous":"` + secretA + `"}`)
	if v := p.post(t, "/in", secretB); v.Outcome != channel.Accepted {
		t.Errorf("after the rotation: %+v", v)
	}
	put(secretB)
	if v := p.post(t, "/in", secretA); v.Outcome != channel.Refused {
		t.Errorf("the old secret: %+v", v)
	}
}

func TestAnswersAsTold(t *testing.T) {
	p := startReceivers(t, t.TempDir(), "--secret", secretA)
	tell := func(path, body string) {
		t.Helper()
		if status := p.call(t, "PUT", "/_control"+path, body, nil); status != 200 {
			t.Fatalf("%s: %d", body, status)
		}
	}
	tell("/a", `{"answers":[{"status":503},{"status":429,"retry_after":20},{"status":200}]}`)
	for i, want := range []channel.Outcome{channel.NotAccepted, channel.NotAccepted, channel.Accepted, channel.Accepted} {
		v := p.post(t, "/a", secretA)
		if v.Outcome != want || (i == 1 && v.Failure.RetryAfter != 20*time.Second) {
			t.Errorf("try %d: %+v", i+1, v)
		}
	}
	tell("/b", `{"answers":[{"status":500},{"status":200}]}`)
	tell("/c", `{"answers":[{"status":410}]}`)
	tell("/d", `{"cut":true}`)
	tell("/e", `{"answers":[{"status":200}],"delay":"250ms"}`)
	tell("/f", `{"answers":[{"status":302,"location":"/a"}]}`)
	for path, want := range map[string]channel.Outcome{"/b": channel.Lost, "/c": channel.Refused, "/d": channel.Lost, "/e": channel.Accepted, "/f": channel.Refused} {
		begin := time.Now()
		if v := p.post(t, path, secretA); v.Outcome != want {
			t.Errorf("%s: %+v", path, v)
		}
		if path == "/e" && time.Since(begin) < 250*time.Millisecond {
			t.Error("the slow answer was not slow")
		}
		if all := p.received(t, path); len(all) != 1 || !all[0].SignatureOK {
			t.Errorf("%s: %+v", path, all)
		}
	}
	if v := p.post(t, "/b", secretA); v.Outcome != channel.Accepted {
		t.Errorf("after 500: %+v", v)
	}
	if p.call(t, "DELETE", "/_control/c", "", nil); p.post(t, "/c", secretA).Outcome != channel.Accepted {
		t.Error("the control was not taken back")
	}
}

func TestControlRefusesWhatItDoesNotUnderstand(t *testing.T) {
	p := startReceivers(t, t.TempDir())
	for name, row := range map[string]struct{ path, body, names string }{
		"empty":         {"/_control/a", `{}`, "answers"},
		"no JSON":       {"/_control/a", `x`, "JSON"},
		"two values":    {"/_control/a", `{"cut":true}{}`, "JSON"},
		"misspelt":      {"/_control/a", `{"answer":[]}`, "answer"},
		"wrong type":    {"/_control/a", `{"answers":[{"status":"200"}]}`, "status"},
		"no status":     {"/_control/a", `{"answers":[{}]}`, "status 0"},
		"informational": {"/_control/a", `{"answers":[{"status":100}]}`, "status 100"},
		"too high":      {"/_control/a", `{"answers":[{"status":600}]}`, "status 600"},
		"delay":         {"/_control/a", `{"cut":true,"delay":"-1s"}`, "-1s"},
		"long delay":    {"/_control/a", `{"cut":true,"delay":"11m"}`, "11m"},
		"retry after":   {"/_control/a", `{"answers":[{"status":429,"retry_after":{}}]}`, "retry_after"},
		"refuse":        {"/_mails/refuse", `{"recipients":"a"}`, "recipients"},
	} {
		var got struct{ Detail string }
		if status := p.call(t, "PUT", row.path, row.body, &got); status != 400 || !strings.Contains(got.Detail, row.names) {
			t.Errorf("%s: %d %q", name, status, got.Detail)
		}
	}
	if status := p.call(t, "POST", "/_contrl/a", "{}", nil); status != 404 {
		t.Errorf("a misspelt control was taken for a delivery: %d", status)
	}
	if status := p.call(t, "GET", "/a", "", nil); status != 405 {
		t.Errorf("GET: %d", status)
	}
}

// outbox hands the product's raw message to a real SMTP server, as the emulator's SES does.
type outbox struct{ addr string }

func (o outbox) SendRawEmail(_ context.Context, in *ses.SendRawEmailInput, _ ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	return &ses.SendRawEmailOutput{}, smtp.SendMail(o.addr, nil, *in.Source, in.Destinations, in.RawMessage.Data)
}

func (p program) mail(t *testing.T, to string, content []byte) channel.Verdict {
	t.Helper()
	c, err := email.New(outbox{p.SMTP}, email.Config{From: "almanac@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery(to, content)
	f, err := c.Freeze(t.Context(), d, time.Now(), make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	return c.Send(t.Context(), d, f)
}

func TestMailsAreKeptWholeWithTheirAttachment(t *testing.T) {
	dir := t.TempDir()
	p := startReceivers(t, dir, "--refuse", "Nobody@ewr.example")
	content := append(bytes.Repeat([]byte{0, 1, 2, 0xff, '\n', '.', '\r'}, 20_000), ".\r\n.\r\nend"...)
	if v := p.mail(t, "ops@ewr.example", content); v.Outcome != channel.Accepted {
		t.Fatalf("%+v", v)
	}
	if v := p.mail(t, "nobody@EWR.example", content); v.Outcome == channel.Accepted {
		t.Error("a refused recipient got a mail")
	}
	if status := p.call(t, "PUT", "/_mails/refuse", `{"recipients":["other@ewr.example"]}`, nil); status != 200 {
		t.Fatal(status)
	}
	if v := p.mail(t, "nobody@ewr.example", nil); v.Outcome != channel.Accepted {
		t.Errorf("no longer refused: %+v", v)
	}
	check := func(p program) {
		t.Helper()
		var all []received
		p.call(t, "GET", "/_mails?to=OPS@ewr.example&run=run-1", "", &all)
		if len(all) != 1 || len(all[0].Attachments) != 1 {
			t.Fatalf("%+v", all)
		}
		m, a := all[0], all[0].Attachments[0]
		got, err := os.ReadFile(a.File)
		if err != nil || !bytes.Equal(got, content) || a.Bytes != len(content) || a.Name != ".._délais .csv" || filepath.Dir(a.File) != filepath.Join(dir, "mail") {
			t.Errorf("attachment %+v: %d bytes, %v", a, len(got), err)
		}
		raw, err := os.ReadFile(m.File)
		if err != nil || !bytes.Contains(raw, []byte("List-Unsubscribe-Post: List-Unsubscribe=One-Click")) || !strings.HasSuffix(m.File, ".eml") {
			t.Errorf("%v\n%s", err, raw[:min(len(raw), 2000)])
		}
		if !strings.HasPrefix(m.Subject, "Delays – ") || m.From != "almanac@example.com" || m.Run != "run-1" || m.Schedule != "s-1" || m.Unsubscribe != "https://almanac.example/unsubscribe/t" || m.Fault != "" || m.Received.IsZero() {
			t.Errorf("%+v", m)
		}
		var any []received
		if p.call(t, "GET", "/_mails", "", &any); len(any) != 2 {
			t.Errorf("%d mails in all, want 2", len(any))
		}
		if p.call(t, "GET", "/_mails?run=run-2", "", &any); len(any) != 0 {
			t.Errorf("%d mails of another run", len(any))
		}
	}
	check(p)
	if err := p.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	check(startReceivers(t, dir))
}

func TestReceivedStaysAfterARestart(t *testing.T) {
	dir := t.TempDir()
	first := startReceivers(t, dir, "--secret", secretA)
	first.post(t, "/in/a%20b", secretA)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := startReceivers(t, dir, "--secret", secretA)
	second.post(t, "/in/a%20b", secretA)
	all := second.received(t, "/in/a%20b")
	if len(all) != 2 || all[0].Body == all[1].Body || all[0].Path != "/in/a b" {
		t.Fatalf("%+v", all)
	}
}

func TestAMailThatIsNotWellFormedIsKeptAndSaysSo(t *testing.T) {
	p := startReceivers(t, t.TempDir())
	const raw = "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!\r\n--b--\r\n"
	if err := smtp.SendMail(p.SMTP, nil, "a@x.com", []string{"b@x.com"}, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	var all []received
	p.call(t, "GET", "/_mails?to=b@x.com", "", &all)
	if len(all) != 1 || all[0].Fault == "" || all[0].Subject != "x" || len(all[0].Attachments) != 0 {
		t.Fatalf("%+v", all)
	}
	if got, err := os.ReadFile(all[0].File); err != nil || string(got) != raw {
		t.Errorf("kept %q, %v", got, err)
	}
}

func TestFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	for name, row := range map[string]struct {
		args  []string
		names string
	}{
		"no folder":       {[]string{}, "--dir"},
		"a word too many": {[]string{"--dir", dir, "x"}, `"x"`},
		"not loopback":    {[]string{"--dir", dir, "--smtp", "0.0.0.0:0"}, "loopback"},
		"every interface": {[]string{"--dir", dir, "--smtp", "127.0.0.1:0", "--http", ":0"}, "loopback"},
		"no port":         {[]string{"--dir", dir, "--smtp", "127.0.0.1"}, "host and port"},
		"port in use":     {[]string{"--dir", dir, "--smtp", taken.Addr().String()}, "in use"},
		"bad secret":      {[]string{"--dir", dir, "--secret", "abc"}, "whsec_"},
		"no such file":    {[]string{"--dir", dir, "--secret-file", filepath.Join(dir, "none")}, "--secret-file"},
		"flag not known":  {[]string{"--dirr", dir}, "dirr"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := run(ctx, row.args, io.Discard, io.Discard, time.Now)
		cancel()
		if err == nil || !strings.Contains(err.Error(), row.names) || strings.Contains(fmt.Sprint(err), "abc") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
