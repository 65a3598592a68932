package channel_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"

	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/failure"
)

var credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
})

func sesConfig(endpoint string) aws.Config {
	return aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(endpoint), Credentials: credentials}
}

func mailer(t *testing.T, client email.SES) *email.Channel {
	t.Helper()
	c, err := email.New(client, email.Config{From: "almanac@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sesError answers as SES's query protocol does.
func sesError(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="http://ses.amazonaws.com/doc/2010-12-01/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, text)
}

func sesAccepts(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<SendRawEmailResponse xmlns="http://ses.amazonaws.com/doc/2010-12-01/"><SendRawEmailResult><MessageId>%s</MessageId></SendRawEmailResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></SendRawEmailResponse>`, id)
}

func runRefused(code failure.Code) channel.Verdict {
	return channel.Verdict{Outcome: channel.RunRefused, Failure: failure.New(code, "")}
}

func notAccepted(code failure.Code) channel.Verdict {
	return channel.Verdict{Outcome: channel.NotAccepted, Failure: failure.New(code, "")}
}

func lost() channel.Verdict {
	return channel.Verdict{Outcome: channel.Lost, Failure: failure.New(failure.SendFailed, "")}
}

func refused(reason string) channel.Verdict {
	return channel.Verdict{Outcome: channel.Refused, Reason: reason}
}

// Every row of the verdict table, through the real SDK client and a real server.
func TestEmailVerdicts(t *testing.T) {
	const sandbox = "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: someone@example.org"
	quota := runRefused(failure.SendThrottled)
	quota.Failure.RetryAfter = 15 * time.Minute
	for _, row := range []struct {
		name   string
		status int
		code   string
		text   string
		want   channel.Verdict
	}{
		{"sending rate", 400, "Throttling", "Maximum sending rate exceeded.", notAccepted(failure.SendThrottled)},
		{"sending rate, other spelling", 400, "ThrottlingException", "Rate exceeded", notAccepted(failure.SendThrottled)},
		{"throttled with 503", 503, "Throttling", "Maximum sending rate exceeded.", notAccepted(failure.SendThrottled)},
		{"daily quota", 400, "Throttling", "Daily message quota exceeded.", quota},
		{"limit", 400, "LimitExceeded", "too many", notAccepted(failure.SendThrottled)},
		{"V21 sandbox", 400, "MessageRejected", sandbox, runRefused(failure.SenderRefused)},
		{"V21 paused", 400, "MessageRejected", "Sending suspended: account is paused", runRefused(failure.SenderRefused)},
		{"V21 shut down", 400, "MessageRejected", "Sending is shutdown for this account", runRefused(failure.SenderRefused)},
		{"V21 rejection not known", 400, "MessageRejected", "Something new", runRefused(failure.SenderRefused)},
		{"suppressed", 400, "MessageRejected", "Address blacklisted.", refused(channel.ReasonSuppressed)},
		{"account paused", 400, "AccountSendingPausedException", "paused", runRefused(failure.SenderRefused)},
		{"account paused, API's spelling", 400, "AccountSendingPaused", "paused", runRefused(failure.SenderRefused)},
		{"set paused", 400, "ConfigurationSetSendingPausedException", "paused", runRefused(failure.SenderRefused)},
		{"MAIL FROM", 400, "MailFromDomainNotVerifiedException", "no MX", runRefused(failure.SenderRefused)},
		{"from not verified", 400, "FromEmailAddressNotVerified", "x", runRefused(failure.SenderRefused)},
		{"no production access", 400, "ProductionAccessNotGranted", "x", runRefused(failure.SenderRefused)},
		{"no such set", 400, "ConfigurationSetDoesNotExist", "x", runRefused(failure.ChannelMisconfig)},
		{"access denied", 403, "AccessDenied", "User: arn is not authorized", runRefused(failure.ChannelMisconfig)},
		{"bad key", 403, "InvalidClientTokenId", "x", runRefused(failure.ChannelMisconfig)},
		{"bad signature", 403, "SignatureDoesNotMatch", "x", runRefused(failure.ChannelMisconfig)},
		{"missing domain", 400, "InvalidParameterValue", "Missing final '@domain'", refused(channel.ReasonInvalid)},
		{"local part", 400, "InvalidParameterValue", "Local address contains control or whitespace", refused(channel.ReasonInvalid)},
		{"domain", 400, "InvalidParameterValue", "Domain contains illegal character", refused(channel.ReasonInvalid)},
		{"illegal address", 400, "InvalidParameterValue", "Illegal address", refused(channel.ReasonInvalid)},
		{"parameter of ours", 400, "InvalidParameterValue", "Message length is more than 10485760 bytes long", runRefused(failure.ChannelMisconfig)},
		{"validation", 400, "ValidationError", "1 validation error", runRefused(failure.ChannelMisconfig)},
		{"expired token", 403, "ExpiredToken", "x", notAccepted(failure.SendFailed)},
		{"coded 4xx not known", 418, "Teapot", "x", notAccepted(failure.SendFailed)},
		{"fault of SES", 500, "InternalFailure", "x", lost()},
		{"unavailable", 503, "ServiceUnavailable", "x", lost()},
		{"accepted", 200, "", "", channel.Verdict{Outcome: channel.Accepted}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				io.Copy(io.Discard, r.Body)
				if row.status == 200 {
					sesAccepts(w, "id-7")
					return
				}
				sesError(w, row.status, row.code, row.text)
			}))
			defer server.Close()
			got := send(t, mailer(t, email.NewClient(sesConfig(server.URL))), delivery("someone@example.org"))
			check(t, got, row.want)
			if row.status == 200 && got.ProviderID != "id-7" {
				t.Errorf("provider's id %q", got.ProviderID)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			if s := got.Detail + fmt.Sprint(got.Failure); strings.Contains(s, "someone@") {
				t.Errorf("an address in %q", s)
			}
		})
	}
}

// An answer without a code of SES's own, whatever its status, may come from something between us and SES.
func TestEmailAnswerThatIsNotOfSES(t *testing.T) {
	for _, status := range []int{200, 400, 408, 413, 502, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(status)
				io.WriteString(w, "<html>proxy")
			}))
			defer server.Close()
			check(t, send(t, mailer(t, email.NewClient(sesConfig(server.URL))), delivery("a@example.org")), lost())
		})
	}
}

// cutter is an SES that takes a request whole and closes the connection instead of answering.
func cutter(requests *atomic.Int32) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
}

func TestV16AcceptedAndReplyCutIsOneRequestAndUnknown(t *testing.T) {
	clients := map[string]func(aws.Config) email.SES{
		"our client":                 func(c aws.Config) email.SES { return email.NewClient(c) },
		"a client that would retry":  func(c aws.Config) email.SES { return ses.NewFromConfig(c) },
		"a wrapper around ours":      func(c aws.Config) email.SES { return wrapped{email.NewClient(c)} },
		"retries asked for in AWS's": func(c aws.Config) email.SES { c.RetryMaxAttempts = 5; return email.NewClient(c) },
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := cutter(&requests)
			defer server.Close()
			check(t, send(t, mailer(t, client(sesConfig(server.URL))), delivery("a@example.org")), lost())
			if n := requests.Load(); n != 1 {
				t.Fatalf("%d requests reached the server, want 1", n)
			}
		})
	}
	t.Run("on a connection used before", func(t *testing.T) {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if requests.Add(1) == 1 {
				sesAccepts(w, "first")
				return
			}
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}))
		defer server.Close()
		c := mailer(t, email.NewClient(sesConfig(server.URL)))
		check(t, send(t, c, delivery("a@example.org")), channel.Verdict{Outcome: channel.Accepted})
		check(t, send(t, c, delivery("b@example.org")), lost())
		if n := requests.Load(); n != 2 {
			t.Fatalf("%d requests, want 2", n)
		}
	})
	t.Run("no answer in time", func(t *testing.T) {
		var requests atomic.Int32
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			requests.Add(1)
			<-release
		}))
		defer server.Close()
		defer close(release)
		c := mailer(t, email.NewClient(sesConfig(server.URL)))
		d := delivery("a@example.org")
		f, err := c.Freeze(t.Context(), d, now, entropy)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		check(t, c.Send(ctx, d, f), lost())
		if n := requests.Load(); n != 1 {
			t.Fatalf("%d requests, want 1", n)
		}
	})
}

// wrapped hides the client and its options, as a layer that injects faults does.
type wrapped struct{ inner email.SES }

func (w wrapped) SendRawEmail(ctx context.Context, in *ses.SendRawEmailInput, _ ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	return w.inner.SendRawEmail(ctx, in)
}

func TestEmailNothingLeftIsNotAccepted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	defer plain.Close()
	noCredentials := sesConfig(plain.URL)
	noCredentials.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no credentials today")
	})
	for name, client := range map[string]email.SES{
		"connection refused":     email.NewClient(sesConfig(closed)),
		"refused, by a wrapper":  wrapped{email.NewClient(sesConfig(closed))},
		"name not known":         email.NewClient(sesConfig("http://ses.invalid")),
		"TLS with a plain peer":  email.NewClient(sesConfig(strings.Replace(plain.URL, "http:", "https:", 1))),
		"credentials not to get": email.NewClient(noCredentials),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, send(t, mailer(t, client), delivery("a@example.org")), notAccepted(failure.SendFailed))
		})
	}
	t.Run("deadline over before", func(t *testing.T) {
		c := mailer(t, email.NewClient(sesConfig(plain.URL)))
		d := delivery("a@example.org")
		f, err := c.Freeze(t.Context(), d, now, entropy)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, c.Send(ctx, d, f), notAccepted(failure.SendFailed))
	})
}

// An error of which nothing is known may stand for a mail that was accepted.
func TestEmailUnknownErrorIsLost(t *testing.T) {
	check(t, send(t, mailer(t, failing{}), delivery("a@example.org")), lost())
}

type failing struct{}

func (failing) SendRawEmail(context.Context, *ses.SendRawEmailInput, ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	return nil, errors.New("something broke")
}

func TestEmailBadRecipientIsRefusedAloneAndNothingIsSent(t *testing.T) {
	for _, bad := range []string{"", "nobody", "a@x.com\r\nBcc: e@x.test", "a@x.com, b@x.com"} {
		check(t, send(t, mailer(t, failing{}), delivery(bad)), refused(channel.ReasonInvalid))
	}
}

func TestD10OnlyTheThrottledWaitAndEachGetsOneMail(t *testing.T) {
	var mu sync.Mutex
	mails := map[string]int{}
	var inWindow int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		mu.Lock()
		defer mu.Unlock()
		if inWindow++; inWindow > 5 {
			sesError(w, 400, "Throttling", "Maximum sending rate exceeded.")
			return
		}
		raw, err := base64.StdEncoding.DecodeString(form.Get("RawMessage.Data"))
		if err != nil || len(raw) == 0 {
			t.Errorf("no message in the request: %v", err)
		}
		mails[form.Get("Destinations.member.1")]++
		sesAccepts(w, "id")
	}))
	defer server.Close()
	c := mailer(t, email.NewClient(sesConfig(server.URL)))
	var waiting []channel.Delivery
	for i := range 20 {
		waiting = append(waiting, delivery(fmt.Sprintf("r%d@example.org", i)))
	}
	windows := 0
	for ; len(waiting) > 0 && windows < 10; windows++ {
		mu.Lock()
		inWindow = 0
		mu.Unlock()
		var later []channel.Delivery
		for _, d := range waiting {
			v := send(t, c, d)
			if v.Outcome != channel.Accepted {
				check(t, v, notAccepted(failure.SendThrottled))
				later = append(later, d)
			}
		}
		waiting = later
	}
	if windows != 4 || len(mails) != 20 {
		t.Fatalf("%d windows for %d recipients, want 4 for 20", windows, len(mails))
	}
	for to, n := range mails {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}
