// Package loopback has an HTTP client for a cloud on this machine.
package loopback

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client gives a client for an endpoint on loopback. It differs from the usual one in two ways.
//
// It reaches names that end in ".localhost" at 127.0.0.1, as RFC 6761 (section 6.3) asks of resolvers, since many
// systems' resolvers do not.
//
// It hands the transport a copy of the request's body. The AWS SDK closes the body as soon as the answer's head is there
// (smithy-go, transport/http/client.go). A server on loopback answers so quickly that the transport may not have seen
// the body's end by then; it takes the close for a failed upload and cuts the connection while the answer is read
// ("use of closed network connection", one request in some hundreds on a busy machine).
func Client(timeout time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, Address(address))
	}
	return &http.Client{Timeout: timeout, Transport: copyBody{transport}}
}

// Address turns a name that ends in ".localhost" into the address of loopback, and leaves others as they are.
func Address(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && strings.HasSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), ".localhost") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// largest is the size of a body that is copied; larger ones, such as the demo data, are left as they are.
const largest = 8 << 20

type copyBody struct{ next http.RoundTripper }

func (c copyBody) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength <= 0 || req.ContentLength > largest {
		return c.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close() // a RoundTripper closes the body, on errors too
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.next.RoundTrip(out)
}
