// Package client calls Almanac's API.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"almanac/internal/api"

	"almanac/internal/loopback"
)

// Client is the API as one signed-in person sees it.
type Client struct {
	Base  string // without a trailing slash
	HTTP  *http.Client
	Token func(ctx context.Context) (string, error)
	Wait  func(ctx context.Context, d time.Duration) error
}

// Unreachable is an API that did not answer, or not as itself.
type Unreachable struct {
	Base  string
	Cause error
}

func (u *Unreachable) Error() string {
	return "the API at " + u.Base + " does not answer: " + u.Cause.Error()
}
func (u *Unreachable) Unwrap() error { return u.Cause }

// tries is how often a request is made that the API asked to repeat; pause is the longest wait between two.
const (
	tries = 4
	pause = 5 * time.Second
)

// Call sends body as JSON, if there is one, and reads the answer into out, if that is not nil. A refusal is an
// *api.Problem. The API's requests may be repeated safely: what makes work carries a key.
func (c *Client) Call(ctx context.Context, method, path string, header http.Header, body, out any) (int, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	for try := 1; ; try++ {
		status, after, err := c.once(ctx, method, path, header, text, out)
		if err == nil || after == 0 || try == tries {
			return status, err
		}
		if err := c.Wait(ctx, min(after, pause)); err != nil {
			return status, err
		}
	}
}

// once is one request. after is not zero where it may be repeated after that time.
func (c *Client) once(ctx context.Context, method, path string, header http.Header, body []byte, out any) (status int, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	token, err := c.Token(ctx)
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return 0, 0, &Unreachable{c.Base, err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return resp.StatusCode, 0, &Unreachable{c.Base, err}
	}
	if resp.StatusCode >= 400 {
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
			after = time.Second
			if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
				after = time.Duration(s) * time.Second
			}
		}
		return resp.StatusCode, after, refusal(c.Base, resp, answer)
	}
	if out != nil && len(answer) > 0 {
		if err := json.Unmarshal(answer, out); err != nil {
			return resp.StatusCode, 0, &Unreachable{c.Base, fmt.Errorf("its answer is not what this version understands: %w", err)}
		}
	}
	return resp.StatusCode, 0, nil
}

// refusal reads a problem. What stands in front of the API (an authorizer, a gateway) has words of its own.
func refusal(base string, resp *http.Response, answer []byte) error {
	p := &api.Problem{}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(answer, p) == nil && p.Detail != "" {
		return p
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
		return &api.Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode), Detail: "the API's gateway refused the request"}
	}
	return &Unreachable{base, fmt.Errorf("status %s: %.200s", resp.Status, answer)}
}

// Is reports whether err is the API's refusal with a status.
func Is(err error, status int) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == status
}

// Path joins segments, escaped.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// All reads every page of a list.
func All[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	items := []T{}
	q := url.Values{"limit": {"100"}}
	for k, v := range query {
		q[k] = v
	}
	for {
		var page struct {
			Items []T    `json:"items"`
			Next  string `json:"next"`
		}
		if _, err := c.Call(ctx, "GET", path+"?"+q.Encode(), nil, nil, &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items, nil
		}
		q.Set("cursor", page.Next)
	}
}

// Transport dials names below localhost on this machine: not every resolver knows them, although RFC 6761 (6.3) gives
// them no other meaning.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dial := (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, loopback.Address(address))
	}
	proxy := t.Proxy
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if strings.HasSuffix(r.URL.Hostname(), ".localhost") {
			return nil, nil // this machine is never reached through a proxy
		}
		return proxy(r)
	}
	return t
}
