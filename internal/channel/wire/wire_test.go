package wire

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestWordsSayTheCauseAndNameNoHost(t *testing.T) {
	const host = "receiver.example"
	op := func(op string, err error) error {
		return &url.Error{Op: "Post", URL: "https://" + host + "/?token=geheim", Err: &net.OpError{Op: op, Net: "tcp", Err: err}}
	}
	for want, err := range map[string]error{
		"given up before an answer came":              fmt.Errorf("%s: %w", host, context.Canceled),
		"no answer in time":                           op("read", os.ErrDeadlineExceeded),
		"the host's name is not known":                &net.DNSError{Name: host, IsNotFound: true},
		"the host's name could not be resolved":       &net.DNSError{Name: host, IsTimeout: true},
		"connection refused":                          op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"the connection was reset":                    op("read", os.NewSyscallError("read", syscall.ECONNRESET)),
		"the connection was closed without an answer": &url.Error{Op: "Post", URL: host, Err: io.EOF},
		"the host's certificate is not valid for it":  x509.HostnameError{Certificate: &x509.Certificate{}, Host: host},
		"the host could not be reached":               op("dial", errors.New(host+": no route")),
		"the exchange broke off":                      errors.New(host),
	} {
		if got := Words(err); got != want || strings.Contains(got, host) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestNothingLeftNeedsProof(t *testing.T) {
	unknown := errors.New("something broke")
	var unused Watch
	if unused.NothingLeft(unknown) {
		t.Error("an unwatched request was called not sent")
	}
	if !unused.NothingLeft(&net.OpError{Op: "dial", Err: unknown}) || !unused.NothingLeft(&net.DNSError{}) {
		t.Error("a dial that failed was called sent")
	}
	if unused.NothingLeft(&net.OpError{Op: "read", Err: unknown}) {
		t.Error("a read that failed was called not sent")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	address := server.URL
	get := func() bool {
		var w Watch
		req, err := http.NewRequestWithContext(w.Context(t.Context()), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		return w.NothingLeft(unknown)
	}
	if get() {
		t.Error("a request that had a connection was called not sent")
	}
	http.DefaultClient.CloseIdleConnections()
	server.Close()
	if !get() {
		t.Error("a request that never had a connection was called sent")
	}
}
