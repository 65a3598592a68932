package webhook

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// errNotPrivate: plain http to an address outside the configured private networks.
var errNotPrivate = errors.New("plain http is for the configured private networks only")

// newTransport makes the only way out. No http.Client is around it: that would read the Location of a redirect, and call
// one that it cannot read a broken exchange, where a redirect is an answer and no acceptance. Each connection is checked when it is dialled, at the address that the name
// resolved to at that moment, so that neither a name that changes its address nor a redirect gets past (X3). Connections
// are not kept: each try dials, and is checked, anew.
func newTransport(cfg Config) http.RoundTripper {
	var v4, v6 []netip.Prefix
	for _, p := range cfg.Private {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	// Any port: a public receiver may listen where it likes, and what must not be reached is told by its address.
	public := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	private := func(_, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err == nil {
			for _, p := range cfg.Private {
				if p.Contains(target.Addr()) {
					return nil
				}
			}
		}
		return errNotPrivate
	}
	return byScheme{https: transport(cfg, public.Safe), http: transport(cfg, private)}
}

type control = func(network, address string, c syscall.RawConn) error

func transport(cfg Config, check control) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: check, Resolver: cfg.Resolver}
	return &http.Transport{
		Proxy:                  nil, // a proxy would dial for us, unchecked
		DialContext:            dialer.DialContext,
		TLSClientConfig:        cfg.TLS,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaders,
	}
}

// byScheme chooses the dialler's rules: https may go to public addresses, http may not.
type byScheme struct{ https, http *http.Transport }

func (b byScheme) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return b.https.RoundTrip(r)
	}
	return b.http.RoundTrip(r)
}

// blocked reports whether the dialler refused the address.
func blocked(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) ||
		errors.Is(err, ssrf.ErrProhibitedPort) || errors.Is(err, errNotPrivate)
}
