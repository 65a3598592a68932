// Package wire tells, after a request failed without an answer, whether any of its bytes can have left: only then is
// the outcome unknown (lifecycles B, "a time-out, reset or 5xx after the bytes left means unknown").
package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// Watch follows one request. Its zero value is ready.
type Watch struct{ asked, connected atomic.Bool }

// Context returns a context whose HTTP request is watched. Use it for one request only.
func (w *Watch) Context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { w.connected.Store(true) },
	})
}

// NothingLeft reports whether it is certain that no byte of the request left. A request's bytes go only to a connection
// that is ready, TLS handshake included, so a request that never got one sent nothing. Without such proof the answer is
// no: a request that may have been accepted must not be taken for one that was not.
func (w *Watch) NothingLeft(err error) bool {
	if w.connected.Load() {
		return false
	}
	if w.asked.Load() {
		return true
	}
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// Words says what went wrong without naming a host, an address or a URL: those are recipients, or hold tokens.
func Words(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.Is(err, context.Canceled):
		return "given up before an answer came"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host's name is not known"
	case errors.As(err, &dns):
		return "the host's name could not be resolved"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed without an answer"
	case isCertificate(err):
		return "the host's certificate is not valid for it"
	case errors.As(err, &record), errors.As(err, &alert):
		return "the TLS handshake failed"
	case errors.As(err, &op) && op.Op == "dial":
		return "the host could not be reached"
	}
	return "the exchange broke off"
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}
