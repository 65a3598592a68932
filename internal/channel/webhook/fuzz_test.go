package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
)

// line stands for the network: it keeps the request and answers with bytes.
type line struct {
	request *http.Request
	body    []byte
	answer  string
}

func (w *line) RoundTrip(r *http.Request) (*http.Response, error) {
	w.request = r
	w.body, _ = io.ReadAll(r.Body)
	return http.ReadResponse(bufio.NewReader(strings.NewReader(w.answer)), r)
}

type keys []string

func (k keys) Get(context.Context, string) ([]string, error) { return k, nil }

var now = time.Date(2040, 3, 5, 12, 30, 0, 0, time.UTC)

func posting(t testing.TB, w *line, secrets ...string) *Channel {
	t.Helper()
	c, err := New(keys(secrets), Config{Now: func() time.Time { return now }, Out: w})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func secretOf(seed byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, 32))
}

// FuzzPost: whatever the texts, the receiver gets JSON that says exactly them, and each signature is the HMAC that Standard
// Webhooks describes, computed here by hand; the headers hold our key and no header more.
func FuzzPost(f *testing.F) {
	f.Add("s@2040/webhook#00ff", "Delays", "Delays 2040.csv", "ops@example.com", "https://almanac.example/files/t", "https://h.example/x?y=1", byte(1), byte(2))
	f.Add("k\r\nX-Evil: 1", "a\"}{\\", "\u2028</script>", "\xff\xfe", "https://almanac.example/files/<&>", "https://h.example", byte(0), byte(0))
	f.Add("", "日本", "\x00", "", "", "https://h.example/\r\nX: y", byte(3), byte(3))
	f.Add("k", "a", "b", "c", "d", "http://h.example", byte(9), byte(8))
	f.Add("k.1.2", ".", "{}", "é", "x", "https://127.0.0.1:70000/", byte(255), byte(0))
	f.Fuzz(func(t *testing.T, key, name, file, owner, link, to string, first, second byte) {
		w := &line{answer: "HTTP/1.1 204 No Content\r\n\r\n"}
		c := posting(t, w, secretOf(first), secretOf(second))
		d := channel.Delivery{Key: key, ScheduleID: "s", ScheduleName: name, Workspace: "EWR", RunID: "s@2040", Occurrence: "2040", Nominal: now, Zone: "America/New_York", Recipient: to,
			Owner: owner, SecretID: "ops", FileLink: link, File: channel.File{Name: file, MediaType: "text/csv", Rows: 3, Bytes: 5, SHA256: "ab", DataAsOf: now}}
		frozen, err := c.Freeze(context.Background(), d, now, nil)
		if err != nil {
			if fail := failure.From(err); link != "" || fail.Code != failure.ChannelMisconfig {
				t.Fatal(err)
			}
			return
		}
		again, _ := c.Freeze(context.Background(), d, now, nil)
		if !bytes.Equal(frozen.Body, again.Body) || frozen.BodyHash != again.BodyHash {
			t.Fatal("two renderings differ")
		}
		v := c.Send(context.Background(), d, frozen)
		if w.request == nil {
			if v.Outcome == channel.Accepted || v.Outcome == channel.Lost {
				t.Fatalf("nothing was sent, and the verdict is %+v", v)
			}
			if channel.ValidateURL(to) == nil && strings.Trim(key, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") == "" && key != "" {
				t.Fatalf("%q to %q was not sent: %+v", key, to, v)
			}
			return
		}
		if v.Outcome != channel.Accepted || !bytes.Equal(w.body, frozen.Body) {
			t.Fatalf("%+v; %q was sent, %q was frozen", v, w.body, frozen.Body)
		}
		var got map[string]any
		if err := json.Unmarshal(w.body, &got); err != nil {
			t.Fatalf("%q: %v", w.body, err)
		}
		valid := func(s string) string { // JSON holds no other bytes, and puts this in the place of each
			var b strings.Builder
			for _, r := range s {
				b.WriteRune(r)
			}
			return b.String()
		}
		data := got["data"].(map[string]any)
		for what, pair := range map[string][2]any{
			"name": {data["schedule"].(map[string]any)["name"], valid(name)}, "file": {data["file"].(map[string]any)["name"], valid(file)},
			"link": {data["file"].(map[string]any)["link"], valid(link)}, "type": {got["type"], "file.delivered"}, "run": {data["run"], "s@2040"},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s is %q, want %q", what, pair[0], pair[1])
			}
		}
		if said, _ := data["owner"].(string); said != valid(owner) {
			t.Fatalf("owner is %q, want %q", said, owner)
		}
		want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {userAgent}, "Webhook-Id": {key}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
			"Webhook-Signature": {signed(key, first, w.body) + " " + signed(key, second, w.body)}}
		if !reflect.DeepEqual(w.request.Header, want) || w.request.Method != http.MethodPost || w.request.URL.User != nil {
			t.Fatalf("%s %s %v, want %v", w.request.Method, w.request.URL, w.request.Header, want)
		}
	})
}

// signed is a signature by the letter of the specification: base64 of HMAC-SHA256 over id.timestamp.body.
func signed(key string, seed byte, body []byte) string {
	mac := hmac.New(sha256.New, bytes.Repeat([]byte{seed}, 32))
	mac.Write([]byte(key + "." + strconv.FormatInt(now.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// FuzzAnswer: whatever a receiver answers, there is one verdict that fits the status; only 2xx is accepted, what failed for a
// passing reason says so, and a wish to be left alone is between nothing and the cap, exactly as written.
func FuzzAnswer(f *testing.F) {
	for _, after := range []string{"", "0", "30", "900", "901", "99999999999999999999", "-5", "+5", " 7 ", "1.5", "0x10", "١٢", "Mon, 05 Mar 2040 12:31:00 GMT", "Monday, 05-Mar-40 12:31:00 GMT", "Mon Mar  5 12:31:00 2040",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 05 Mar 2040 12:31:00 EST", "120\r\nRetry-After: 5", "\x00", strings.Repeat("9", 5000)} {
		for _, status := range []int{200, 204, 301, 400, 410, 425, 429, 500, 503, 599} {
			f.Add(status, after, "")
		}
	}
	for _, status := range []int{0, 99, 100, 101, 103, 199, 600, 999, -1} {
		f.Add(status, "5", "body")
	}
	f.Add(200, "\r\nContent-Length: 99999999999\r\nX: y", strings.Repeat("x", 9000))
	f.Add(503, "5\r\nTransfer-Encoding: chunked", "ffffffff\r\nx")
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		w := &line{answer: "HTTP/1.1 " + strconv.Itoa(status) + " X\r\nRetry-After: " + after + "\r\n\r\n" + body}
		c := posting(t, w, secretOf(1))
		d := channel.Delivery{Key: "k", Recipient: "https://h.example/", SecretID: "ops"}
		v := c.Send(context.Background(), d, channel.Frozen{Body: []byte("{}")})
		response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(w.answer)), w.request)
		if err != nil { // no HTTP: the bytes have left, and nobody can say what became of them
			if v.Outcome != channel.Lost || !v.Failure.Passing() {
				t.Fatalf("%q: %+v", w.answer, v)
			}
			return
		}
		status = response.StatusCode
		if (v.Outcome == channel.Accepted) != (status >= 200 && status < 300) {
			t.Fatalf("%d: %+v", status, v)
		}
		switch v.Outcome {
		case channel.Accepted:
			return
		case channel.Refused:
			if v.Failure != nil || v.Reason == "" || status < 300 && status != 101 || status >= 500 || status == 429 {
				t.Fatalf("%d: %+v", status, v)
			}
			return
		case channel.NotAccepted, channel.Lost:
		default:
			t.Fatalf("%d: %+v", status, v)
		}
		if !v.Failure.Passing() || !strings.Contains(v.Failure.Message, strconv.Itoa(status)) || strings.Contains(v.Failure.Message, "body") {
			t.Fatalf("%d: %+v", status, v.Failure)
		}
		if got, want := v.Failure.RetryAfter, wanted(response.Header.Get("Retry-After")); got != want {
			t.Fatalf("Retry-After %q is %s, want %s", response.Header.Get("Retry-After"), got, want)
		}
	})
}

// wanted reads Retry-After by RFC 9110, 10.2.3 alone: digits are seconds, however many; otherwise a date in one of HTTP's
// three forms.
func wanted(header string) time.Duration {
	if header != "" && strings.Trim(header, "0123456789") == "" {
		n, _ := new(big.Int).SetString(header, 10)
		if n.Cmp(big.NewInt(900)) > 0 {
			return maxRetryAfter
		}
		return time.Duration(n.Int64()) * time.Second
	}
	for _, form := range []string{http.TimeFormat, time.RFC850, time.ANSIC} {
		if at, err := time.Parse(form, header); err == nil {
			return max(0, min(at.Sub(now), maxRetryAfter))
		}
	}
	return 0
}
