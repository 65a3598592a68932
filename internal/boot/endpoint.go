package boot

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// strayEndpoints names the settings by which a call of the local profile would leave this machine: an address that is
// not loopback, for all services or for one, or the wish to ignore them all. The SDK prefers a service's own.
// Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
func strayEndpoints(get func(string) string) (problems []string) {
	const all, ignore = "AWS_ENDPOINT_URL", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
	if err := onLoopback(get(all)); err != nil {
		problems = append(problems, err.Error())
	}
	for _, service := range []string{"DYNAMODB", "S3", "SQS", "SES", "SECRETS_MANAGER", "SFN", "LAMBDA"} {
		name := all + "_" + service
		if own := get(name); own != "" && onLoopback(own) != nil {
			problems = append(problems, fmt.Sprintf("%s is %q; the local profile refuses any address that is not loopback", name, own))
		}
	}
	if v := get(ignore); strings.EqualFold(v, "true") {
		problems = append(problems, fmt.Sprintf("%s is %q; the local profile would then reach AWS itself, want nothing", ignore, v))
	}
	return problems
}

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
