// Package rawaws sends single signed requests to an AWS API by its wire form. The local cloud's program and its probes
// use it for the few actions of services whose SDK client the product does not need.
package rawaws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Client calls one endpoint as one principal.
type Client struct {
	Endpoint    string // as http://127.0.0.1:4566
	Region      string
	Credentials aws.Credentials
	HTTP        *http.Client
	Now         func() time.Time
}

// Error is an answer of status 300 or more.
type Error struct {
	Status  int
	Code    string // AWS's name of the error, or empty if the answer has none
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (status %d): %s", e.Code, e.Status, e.Message) }

// JSON calls an action of a service that speaks AWS JSON: target as "AWSStepFunctions.StartExecution".
func (c Client) JSON(ctx context.Context, service, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.Do(ctx, service, http.MethodPost, "/", http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {target}}, body, out)
}

// REST calls an action of a service that speaks REST with JSON.
func (c Client) REST(ctx context.Context, service, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	return c.Do(ctx, service, method, path, http.Header{"Content-Type": {"application/json"}}, body, out)
}

// Query calls an action of a service that speaks the query protocol; the answer is XML text.
func (c Client) Query(ctx context.Context, service, version, action string, params map[string]string) (string, error) {
	form := url.Values{"Action": {action}, "Version": {version}}
	for name, value := range params {
		form.Set(name, value)
	}
	var text []byte
	err := c.Do(ctx, service, http.MethodPost, "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form.Encode()), &text)
	return string(text), err
}

// Do sends one signed request. out is nil, a *[]byte for the raw answer, or a pointer for JSON. An empty access key sends
// the request unsigned.
func (c Client) Do(ctx context.Context, service, method, path string, header http.Header, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header.Clone()
	if c.Credentials.AccessKeyID != "" {
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:])
		req.Header.Set("X-Amz-Content-Sha256", hash)
		if err := v4.NewSigner().SignHTTP(ctx, c.Credentials, req, hash, service, c.Region, c.Now()); err != nil {
			return err
		}
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 32<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return errorOf(res, text)
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = text
		return nil
	default:
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("answer of %s %s is no JSON: %w", service, path, err)
		}
		return nil
	}
}

// errorOf reads the three forms in which AWS services tell an error: a header, JSON, XML.
func errorOf(res *http.Response, text []byte) error {
	e := &Error{Status: res.StatusCode, Message: strings.TrimSpace(string(text))}
	var j struct {
		Type     string `json:"__type"`
		Code     string `json:"code"`
		Message  string `json:"message"`
		Message2 string `json:"Message"`
	}
	var x struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
		Error   struct {
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	switch {
	case json.Unmarshal(text, &j) == nil:
		e.Code = first(res.Header.Get("X-Amzn-Errortype"), j.Type, j.Code)
		e.Message = first(j.Message, j.Message2, e.Message)
	case xml.Unmarshal(text, &x) == nil:
		e.Code = first(x.Error.Code, x.Code)
		e.Message = first(x.Error.Message, x.Message, e.Message)
	}
	if i := strings.LastIndex(e.Code, "#"); i >= 0 {
		e.Code = e.Code[i+1:]
	}
	e.Code, _, _ = strings.Cut(e.Code, ":")
	return e
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
