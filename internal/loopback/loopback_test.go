package loopback

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"abc.execute-api.localhost:4566": "127.0.0.1:4566", "ABC.LOCALHOST:80": "127.0.0.1:80", "a.localhost.:80": "127.0.0.1:80",
		"localhost:4566": "localhost:4566", "localhost.example.com:80": "localhost.example.com:80", "evillocalhost:80": "evillocalhost:80", "nonsense": "nonsense",
	} {
		if got := Address(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// closing is a body that must not be read once it is closed, as the SDK's are.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Read(p []byte) (int, error) {
	if c.closed {
		return 0, io.ErrClosedPipe
	}
	return c.Reader.Read(p)
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestClientReachesNamesBelowLocalhostAndSendsTheBodyWhole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Host+" ") //nolint:errcheck // the test sees it
		io.Copy(w, r.Body)            //nolint:errcheck // the test sees it
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host := "abc.execute-api.localhost:" + u.Port()
	req, err := http.NewRequest(http.MethodPost, "http://"+host+"/", &closing{Reader: strings.NewReader("the body")})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 8
	res, err := Client(time.Minute).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != host+" the body" {
		t.Errorf("%q, %v", got, err)
	}
}

type seen struct{ body io.ReadCloser }

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.body = r.Body
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

func TestTransportNeverSeesTheCallersBody(t *testing.T) {
	for name, c := range map[string]struct {
		length int64
		copied bool
	}{"a small one": {8, true}, "a large one": {largest + 1, false}, "one of unknown length": {-1, false}} {
		next := &seen{}
		body := &closing{Reader: strings.NewReader("the body")}
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = c.length
		if _, err := (copyBody{next}).RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if copied := next.body != io.ReadCloser(body); copied != c.copied || body.closed != c.copied {
			t.Errorf("%s: copied %t, closed %t, want %t", name, copied, body.closed, c.copied)
		}
		if c.copied {
			if got, err := io.ReadAll(next.body); err != nil || !bytes.Equal(got, []byte("the body")) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}
