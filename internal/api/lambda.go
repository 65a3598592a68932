package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Lambda serves events of payload format 2.0, from an HTTP API or a function URL. It is our own, since the adapter
// libraries split every request header at its commas, which breaks dates and user agents.
// Source: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
func Lambda(h http.Handler) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		w := &buffer{header: http.Header{}}
		if r, err := request(ctx, e); err != nil {
			problem(http.StatusBadRequest, "the request cannot be read: %s", err).write(w)
		} else {
			h.ServeHTTP(w, r)
		}
		if e.RequestContext.HTTP.Method == http.MethodHead {
			w.body.Reset() // net/http's own server leaves it out as well (RFC 9110, 9.3.2)
		}
		return w.response(), nil
	}
}

var errMethod = errors.New("its method is none of HTTP's")

// request makes the HTTP request that the event stands for. rawPath arrives decoded; query, headers and cookies
// arrive as sent, a header that was sent twice joined by commas.
func request(ctx context.Context, e events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, errors.New("its body is marked as base64 and is not")
		}
	}
	call := e.RequestContext
	if jwt := call.Authorizer; jwt != nil && jwt.JWT != nil {
		ctx = context.WithValue(ctx, claimsKey{}, jwt.JWT.Claims)
	}
	ctx = context.WithValue(ctx, gatewayIDKey{}, call.RequestID)
	path := e.RawPath
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	r, err := http.NewRequestWithContext(ctx, call.HTTP.Method, "/", bytes.NewReader(body))
	if err != nil || call.HTTP.Method == "" {
		return nil, errMethod
	}
	r.URL = &url.URL{Path: path, RawQuery: e.RawQueryString}
	r.Host, r.RequestURI = call.DomainName, r.URL.RequestURI()
	r.RemoteAddr = net.JoinHostPort(call.HTTP.SourceIP, "0")
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	if len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	return r, nil
}

// buffer is the answer while it is written.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header { return b.header }

func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}

// response is the event's answer: cookies apart, other headers that were set twice joined, a body that is not text in
// base64.
func (b *buffer) response() events.APIGatewayV2HTTPResponse {
	b.WriteHeader(http.StatusOK)
	out := events.APIGatewayV2HTTPResponse{StatusCode: b.status, Headers: map[string]string{}}
	for name, values := range b.header {
		if name == "Set-Cookie" {
			out.Cookies = values
			continue
		}
		out.Headers[name] = strings.Join(values, ", ")
	}
	if body := b.body.Bytes(); utf8.Valid(body) {
		out.Body = string(body)
	} else {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return out
}
