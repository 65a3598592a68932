package boot

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// onLoopback refuses an endpoint that is not this machine: the local profile must never reach a real account.
func onLoopback(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return fmt.Errorf("AWS_ENDPOINT_URL is %q; the local profile wants an address on loopback such as http://127.0.0.1:4566", endpoint)
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("AWS_ENDPOINT_URL is %q; the local profile refuses any address that is not loopback", net.JoinHostPort(host, u.Port()))
}
