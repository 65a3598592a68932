package channel_test

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"almanac/internal/channel"
)

func TestV2SpellingsOfOneAddressAreOneSubmission(t *testing.T) {
	hashes := map[string]bool{}
	for _, s := range []string{"A@x.com", "a@X.com", "a@x.com", " a@x.com "} {
		n, err := channel.Normalise(channel.Email, s)
		if err != nil || n != "a@x.com" {
			t.Fatalf("%q: %q, %v", s, n, err)
		}
		hashes[channel.RecipientHash(channel.Email, n)] = true
	}
	if len(hashes) != 1 {
		t.Fatalf("%d submissions, want 1", len(hashes))
	}
	for h := range hashes {
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(h) {
			t.Fatalf("hash %q is not 32 hex digits", h)
		}
		if h == channel.RecipientHash(channel.Webhook, "a@x.com") {
			t.Fatal("channels share a hash")
		}
	}
}

func TestNormaliseURL(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://Example.COM:443":            "https://example.com/",
		"https://example.com/":               "https://example.com/",
		"https://example.com./Hook?A=B%20c":  "https://example.com/Hook?A=B%20c",
		"http://Example.com:80/x":            "http://example.com/x",
		"http://example.com:8080/x":          "http://example.com:8080/x",
		"https://example.com:0443/x":         "https://example.com/x",
		"https://[2001:DB8:0:0::1]:8443/a/B": "https://[2001:db8::1]:8443/a/B",
	} {
		if got, err := channel.Normalise(channel.Webhook, in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := channel.Normalise("fax", "1"); err == nil || !strings.Contains(err.Error(), `"fax"`) {
		t.Errorf("an unknown channel: %v", err)
	}
}

func TestValidateAddress(t *testing.T) {
	for _, ok := range []string{"a@x.com", "a.b+c@x-y.co.uk", "o'neill@x.com", "A_B@xn--bcher-kva.example", strings.Repeat("a", 64) + "@x.com"} {
		if err := channel.Validate(channel.Email, ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for name, bad := range map[string]string{
		"empty": "", "blank": "   ", "no at": "x.com", "two at": "a@b@x.com", "no local": "@x.com", "no domain": "a@",
		"one label": "a@localhost", "X4 line break": "a@x.com\r\nBcc: e@x.test", "X4 break in the local part": "a\r\nBcc@x.com",
		"NUL": "a\x00@x.com", "blank inside": "a b@x.com", "two addresses": "a@x.com,b@x.com", "list": "a@x.com;b@x.com",
		"display name": "A <a@x.com>", "quoted": `"a b"@x.com`, "not ASCII": "ä@x.com", "domain not ASCII": "a@bücher.example",
		"dots": "a..b@x.com", "edge dot": ".a@x.com", "label edge": "a@-x.com", "empty label": "a@x..com", "literal": "a@[127.0.0.1]",
		"address as domain": "a@127.0.0.1", "underscore": "a@x_y.com", "long local": strings.Repeat("a", 65) + "@x.com",
		"long": "a@" + strings.Repeat("x.", 130) + "com", "long label": "a@" + strings.Repeat("x", 64) + ".com",
	} {
		err := channel.Validate(channel.Email, bad)
		if err == nil || !strings.HasPrefix(err.Error(), "recipient ") || !strings.Contains(err.Error(), "name@example.com") || strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := channel.Normalise(channel.Email, bad); err == nil {
			t.Errorf("%s: normalised", name)
		}
	}
}

func TestValidateURL(t *testing.T) {
	loop := netip.MustParsePrefix("127.0.0.0/8")
	for _, ok := range []string{"https://example.com", "https://example.com:8443/a?b=c", "https://xn--bcher-kva.example/", "https://[2001:db8::1]/"} {
		if err := channel.ValidateURL(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, ok := range []string{"http://127.0.0.1:9/x", "http://receiver.internal/x"} {
		if err := channel.ValidateURL(ok, loop); err != nil {
			t.Errorf("%q with a private network: %v", ok, err)
		}
	}
	if err := channel.ValidateURL("http://10.0.0.1/", loop); err == nil {
		t.Error("http to an address outside the private networks")
	}
	for name, bad := range map[string]string{
		"empty": "", "no scheme": "example.com/x", "relative": "/x", "ftp": "ftp://example.com/", "file": "file:///etc/passwd",
		"javascript": "javascript:alert(1)", "http": "http://example.com/", "no host": "https:///x", "opaque": "https:example.com",
		"user": "https://u:p@example.com/", "fragment": "https://example.com/#x", "empty fragment": "https://example.com/#",
		"line break": "https://example.com/\r\nX: y", "blank": "https://example.com/a b", "NUL": "https://example.com/\x00",
		"backslash": `https://example.com\@127.0.0.1/`, "not ASCII": "https://bücher.example/", "port": "https://example.com:99999/",
		"port zero": "https://example.com:0/", "port text": "https://example.com:x/", "empty port": "https://example.com:/",
		"decimal address": "https://2130706433/", "short address": "https://127.1/", "hexadecimal address": "https://0x7f000001/", "octal": "https://0177.0.0.1/",
		"zone": "https://[fe80::1%25eth0]/", "bad IPv6": "https://[::g]/", "escape in host": "https://ex%41mple.com/", "long": "https://example.com/" + strings.Repeat("x", 2048),
		"empty label": "https://example..com/",
	} {
		err := channel.Validate(channel.Webhook, bad)
		if err == nil || !strings.HasPrefix(err.Error(), "recipient ") || !strings.Contains(err.Error(), "https") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
