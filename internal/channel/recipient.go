package channel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"almanac/internal/failure"
)

// Limits of recipients, in bytes. 64 and 254 are RFC 5321's (4.5.3.1.1, and a path of 256 with its angle brackets);
// MaxURL keeps a row small.
const (
	maxLocal   = 64
	maxAddress = 254
	MaxURL     = 2048
)

// Names lists the channels that a definition may name.
func Names() []string { return []string{Email, Webhook} }

// Validate says whether a definition may name the recipient on the channel. private lists the networks, besides the
// public ones, that webhooks may reach. The error names the field `recipient`, the value and what would be right; it is
// meant for the person who typed the value, and must not be logged.
func Validate(channel, recipient string, private ...netip.Prefix) error {
	switch channel {
	case Email:
		return ValidateAddress(recipient)
	case Webhook:
		return ValidateURL(recipient, private...)
	}
	return fmt.Errorf("channel %q: not known; use one of %s", failure.Cut(channel, 40), strings.Join(Names(), ", "))
}

// Normalise gives the one spelling under which a recipient is counted: spellings that reach the same receiver are one
// submission. E-mail: trimmed, and folded to lower case on both sides of the @ (a mailbox that tells `A` from `a` is
// not met in practice, two mails to one person are). Webhook: scheme and host in lower case, default port dropped, an
// empty path is `/`; path and query stay, since they are the receiver's own. Nothing is sent to the normalised spelling.
func Normalise(channel, recipient string) (string, error) {
	switch channel {
	case Email:
		if err := ValidateAddress(recipient); err != nil {
			return "", err
		}
		return lowerASCII(strings.TrimSpace(recipient)), nil
	case Webhook:
		u, err := parseURL(recipient)
		if err != nil {
			return "", err
		}
		u.Host = hostPort(u)
		if u.Path == "" {
			u.Path = "/"
		}
		return u.String(), nil
	}
	return "", Validate(channel, recipient)
}

// RecipientHash names a recipient in keys, logs and metrics: 32 hex digits, half of the SHA-256 over the channel and
// the normalised spelling.
func RecipientHash(channel, normalised string) string {
	sum := sha256.Sum256([]byte(channel + "\n" + normalised))
	return hex.EncodeToString(sum[:16])
}

// ValidateAddress accepts one bare address that SES can send to: 7-bit ASCII, a dot-atom, @, and a domain of at least
// two labels; a domain in another script goes in its `xn--` form.
// Source: https://docs.aws.amazon.com/ses/latest/APIReference/API_SendRawEmail.html (no SMTPUTF8, punycode domains).
func ValidateAddress(raw string) error {
	s := strings.TrimSpace(raw)
	bad := func(why string) error {
		return fmt.Errorf("recipient %q: %s; write one address such as name@example.com", failure.Cut(raw, 100), why)
	}
	if s == "" {
		return bad("it is empty")
	}
	if len(s) > maxAddress {
		return bad(fmt.Sprintf("%d bytes, at most %d are possible", len(s), maxAddress))
	}
	for _, r := range s {
		if r < 0x21 || r == 0x7f {
			return bad("it has a blank or a control character")
		}
		if r > 0x7f {
			return bad("only ASCII is possible, a domain in another script goes in its xn-- form")
		}
	}
	local, domain, found := strings.Cut(s, "@")
	if !found || strings.Contains(domain, "@") {
		return bad("it needs exactly one @")
	}
	if why := localFault(local); why != "" {
		return bad(why)
	}
	if why := domainFault(domain); why != "" {
		return bad(why)
	}
	return nil
}

// atext beyond letters and digits, RFC 5322 3.2.3.
const atext = "!#$%&'*+-/=?^_`{|}~"

func localFault(local string) string {
	switch {
	case local == "":
		return "nothing stands before the @"
	case len(local) > maxLocal:
		return fmt.Sprintf("%d bytes before the @, at most %d are possible", len(local), maxLocal)
	case strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, ".."):
		return "a dot at the edge, or two in a row, before the @"
	}
	for i := 0; i < len(local); i++ {
		if c := local[i]; !alnum(c) && c != '.' && strings.IndexByte(atext, c) < 0 {
			return fmt.Sprintf("%q is not possible before the @", c)
		}
	}
	return ""
}

func domainFault(domain string) string {
	labels := strings.Split(domain, ".")
	if len(labels) < 2 {
		return "the domain needs at least two labels"
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.HasPrefix(l, "-") || strings.HasSuffix(l, "-") {
			return "the domain has a label that is empty, too long or edged by a hyphen"
		}
		for i := 0; i < len(l); i++ {
			if !alnum(l[i]) && l[i] != '-' {
				return fmt.Sprintf("%q is not possible in a domain", l[i])
			}
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "the domain's last label is a number"
	}
	return ""
}

// ValidateURL accepts a webhook's URL: https, absolute, without user, password or fragment. http is accepted only
// where private networks are configured: a literal address must lie in one of them; for a name the dialler sees to it.
// A literal address that is neither public by the dialler's rules nor private is refused when dialling.
func ValidateURL(raw string, private ...netip.Prefix) error {
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	if u.Scheme == "https" {
		return nil
	}
	bad := func(why string) error {
		return fmt.Errorf("recipient %q: %s; use https", failure.Cut(raw, 100), why)
	}
	if len(private) == 0 {
		return bad("http would send the file's link in the clear")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name: every connection over http is held to the private networks when it is dialled
	}
	for _, p := range private {
		if p.Contains(ip) {
			return nil
		}
	}
	return bad("http is for the configured private networks only")
}

func parseURL(raw string) (*url.URL, error) {
	bad := func(why string) error {
		return fmt.Errorf("recipient %q: %s; write a URL such as https://example.com/hook", failure.Cut(raw, 100), why)
	}
	s := strings.TrimSpace(raw)
	switch {
	case s == "":
		return nil, bad("it is empty")
	case len(s) > MaxURL:
		return nil, bad(fmt.Sprintf("%d bytes, at most %d are possible", len(s), MaxURL))
	}
	for _, r := range s {
		if r <= 0x20 || r >= 0x7f || r == '\\' {
			return nil, bad("it has a blank, a control character, a backslash or a character beyond ASCII (write it percent-encoded, a host in its xn-- form)")
		}
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, bad("it is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, bad("its scheme is not https")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, bad("it names no host")
	case u.User != nil:
		return nil, bad("a user or a password in it would be stored and logged by others; deliveries are signed instead")
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, bad("a fragment is never sent")
	}
	if why := hostFault(u.Hostname()); why != "" {
		return nil, bad(why)
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if ap, err := netip.ParseAddrPort("192.0.2.1:" + p); err != nil || ap.Port() == 0 {
			return nil, bad("its port is not between 1 and 65535")
		}
	}
	return u, nil
}

// hostFault refuses spellings that one resolver reads as a name and another as an address (`127.1`, `0x7f000001`).
func hostFault(host string) string {
	if strings.Contains(host, "%") {
		return "an address with an interface's zone cannot be reached from everywhere"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	if strings.Contains(host, ":") {
		return "its host is no IPv6 address"
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 {
			return "its host has a label that is empty or too long"
		}
		for i := 0; i < len(l); i++ {
			if !alnum(l[i]) && l[i] != '-' && l[i] != '_' {
				return fmt.Sprintf("%q is not possible in a host", l[i])
			}
		}
	}
	if last := lowerASCII(labels[len(labels)-1]); numeric(last) || strings.HasPrefix(last, "0x") {
		return "its host looks like an address but is none; write four decimal numbers"
	}
	return ""
}

// hostPort is the host as counted: lower case, no trailing dot, no default port.
func hostPort(u *url.URL) string {
	host := strings.TrimSuffix(lowerASCII(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
		if ip.Is6() {
			host = "[" + host + "]"
		}
	}
	port := strings.TrimLeft(u.Port(), "0")
	if port == "" || (u.Scheme == "https" && port == "443") || (u.Scheme == "http" && port == "80") {
		return host
	}
	return host + ":" + port
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func numeric(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
