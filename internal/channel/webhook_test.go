package channel_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/channel/webhook"
	"almanac/internal/failure"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func whsec(b byte) string {
	key := make([]byte, 32)
	key[0] = b
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

type fixed []string

func (f fixed) Get(context.Context, string) ([]string, error) { return f, nil }

func hook(t *testing.T, cfg webhook.Config) *webhook.Channel {
	t.Helper()
	return hookWith(t, fixed{whsec(1)}, cfg)
}

func hookWith(t *testing.T, s webhook.Secrets, cfg webhook.Config) *webhook.Channel {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return now }
	}
	c, err := webhook.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func after(v channel.Verdict, d time.Duration) channel.Verdict { v.Failure.RetryAfter = d; return v }

func TestWebhookVerdicts(t *testing.T) {
	accepted := channel.Verdict{Outcome: channel.Accepted}
	for _, row := range []struct {
		status int
		retry  string
		want   channel.Verdict
	}{
		{200, "", accepted}, {201, "", accepted}, {202, "", accepted}, {204, "", accepted},
		{301, "", refused(channel.ReasonRefused)}, {302, "", refused(channel.ReasonRefused)}, {304, "", refused(channel.ReasonRefused)},
		{307, "", refused(channel.ReasonRefused)}, {308, "", refused(channel.ReasonRefused)},
		{400, "", refused(channel.ReasonRefused)}, {401, "", refused(channel.ReasonRefused)}, {403, "", refused(channel.ReasonRefused)},
		{404, "", refused(channel.ReasonRefused)}, {410, "", refused(channel.ReasonRefused)}, {422, "", refused(channel.ReasonRefused)},
		{408, "", lost()},
		{421, "", notAccepted(failure.SendFailed)}, {425, "", notAccepted(failure.SendFailed)},
		{425, "20", after(notAccepted(failure.SendFailed), 20*time.Second)},
		{429, "", notAccepted(failure.SendThrottled)},
		{429, "20", after(notAccepted(failure.SendThrottled), 20*time.Second)},
		{429, "7200", after(notAccepted(failure.SendThrottled), 15*time.Minute)},
		{429, "-5", notAccepted(failure.SendThrottled)},
		{429, "soon", notAccepted(failure.SendThrottled)},
		{429, "99999999999999999999", after(notAccepted(failure.SendThrottled), 15*time.Minute)},
		{429, now.Add(90 * time.Second).Format(http.TimeFormat), after(notAccepted(failure.SendThrottled), 90*time.Second)},
		{429, now.Add(-time.Hour).Format(http.TimeFormat), notAccepted(failure.SendThrottled)},
		{503, "", notAccepted(failure.SendFailed)},
		{503, "20", after(notAccepted(failure.SendFailed), 20*time.Second)},
		{500, "", lost()}, {502, "", lost()}, {504, "", lost()}, {599, "", lost()},
		{500, "30", after(lost(), 30*time.Second)},
	} {
		t.Run(fmt.Sprintf("%d %s", row.status, row.retry), func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "/elsewhere")
				if row.retry != "" {
					w.Header().Set("Retry-After", row.retry)
				}
				w.WriteHeader(row.status)
			}))
			defer server.Close()
			got := send(t, hook(t, webhook.Config{Private: loopback}), delivery(server.URL+"/hook?token=geheim"))
			check(t, got, row.want)
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			if s := got.Detail + fmt.Sprint(got.Failure); strings.Contains(s, "geheim") || strings.Contains(s, "127.0.0.1") {
				t.Errorf("the URL in %q", s)
			}
		})
	}
}

func TestV19WishesOfTheReceiverAreKept(t *testing.T) {
	answers := []struct {
		status int
		retry  string
	}{{503, ""}, {429, "20"}, {200, ""}}
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[n.Add(1)-1]
		if a.retry != "" {
			w.Header().Set("Retry-After", a.retry)
		}
		w.WriteHeader(a.status)
	}))
	defer server.Close()
	c, d := hook(t, webhook.Config{Private: loopback}), delivery(server.URL)
	check(t, send(t, c, d), notAccepted(failure.SendFailed)) // no wish: the run's own back-off counts
	check(t, send(t, c, d), after(notAccepted(failure.SendThrottled), 20*time.Second))
	check(t, send(t, c, d), channel.Verdict{Outcome: channel.Accepted})
}

func TestWebhookBrokenExchanges(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	var requests atomic.Int32
	cut := cutter(&requests)
	defer cut.Close()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-release }))
	defer slow.Close()
	defer close(release)
	tls := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	tls.Config.ErrorLog = nil
	defer tls.Close()
	for _, row := range []struct {
		name, url string
		want      channel.Verdict
	}{
		{"connection refused", closed, notAccepted(failure.SendFailed)},
		{"name not known", "https://receiver.invalid/", notAccepted(failure.SendFailed)},
		{"certificate not trusted", tls.URL, notAccepted(failure.SendFailed)},
		{"TLS with a plain peer", strings.Replace(slow.URL, "http:", "https:", 1), notAccepted(failure.SendFailed)},
		{"cut after the request", cut.URL, lost()},
		{"no answer in time", slow.URL, lost()},
	} {
		t.Run(row.name, func(t *testing.T) {
			check(t, send(t, hook(t, webhook.Config{Private: loopback, Timeout: 500 * time.Millisecond}), delivery(row.url)), row.want)
		})
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests reached the server that cuts, want 1", n)
	}
}

func TestX3NoAddressThatIsNotPublicIsReached(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := hook(t, webhook.Config{Timeout: 2 * time.Second})
	for _, host := range []string{
		"127.0.0.1", "127.8.8.8", "localhost", "[::1]", "0.0.0.0", "[::]", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "[fc00::1]", "100.64.0.1", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1",
		"255.255.255.255", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[ff02::1]", "[::127.0.0.1]",
		"2130706433", "0x7f.0.0.1", "127.1", "0177.0.0.1",
	} {
		t.Run(host, func(t *testing.T) {
			check(t, send(t, c, delivery("https://"+host+":"+port+"/")), refused(channel.ReasonInvalid))
		})
	}
}

func TestX3ARedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			location := "http://169.254.169.254/latest/meta-data/"
			if r.URL.Path == "/near" {
				location = target.URL
			}
			w.Header().Set("Location", location)
			w.WriteHeader(status)
		}))
		for _, path := range []string{"/far", "/near"} {
			v := send(t, hook(t, webhook.Config{Private: loopback}), delivery(server.URL+path))
			check(t, v, refused(channel.ReasonRefused))
			if !strings.Contains(v.Detail, "configure the final URL") {
				t.Errorf("detail %q does not say what helps", v.Detail)
			}
		}
		server.Close()
		target.Close()
	}
}

// The name leads to an allowed address at first and to one that is not allowed afterwards.
func TestX3ANameThatChangesItsAddressIsCheckedAtEachDial(t *testing.T) {
	arrived := map[string]*atomic.Int32{"127.0.0.2": {}, "127.0.0.1": {}}
	first, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{first, second} {
		host, _, _ := net.SplitHostPort(l.Addr().String())
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived[host].Add(1) })}
		go s.Serve(l)
		defer s.Close()
	}
	var asked atomic.Int32
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ip := netip.MustParseAddr("127.0.0.1")
		if asked.Load() == 0 {
			ip = netip.MustParseAddr("127.0.0.2")
		}
		return nameServer(ip), nil
	}}
	c := hook(t, webhook.Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolver: resolver})
	d := delivery("http://rebinding.example:" + port + "/")
	check(t, send(t, c, d), channel.Verdict{Outcome: channel.Accepted})
	asked.Store(1)
	check(t, send(t, c, d), refused(channel.ReasonInvalid))
	if a, b := arrived["127.0.0.2"].Load(), arrived["127.0.0.1"].Load(); a != 1 || b != 0 {
		t.Fatalf("%d and %d requests, want 1 and none", a, b)
	}
}

// nameServer answers every A question with ip, every other with nothing, over one connection framed as DNS over TCP.
func nameServer(ip netip.Addr) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		var size [2]byte
		for {
			if _, err := io.ReadFull(server, size[:]); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(server, q); err != nil {
				return
			}
			end := 12
			for q[end] != 0 {
				end += int(q[end]) + 1
			}
			end += 5 // the root label, type and class
			answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
			if q[end-3] == 1 {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip.AsSlice()...)
			}
			binary.BigEndian.PutUint16(size[:], uint16(len(answer)))
			if _, err := server.Write(append(size[:], answer...)); err != nil {
				return
			}
		}
	}()
	return client
}

// managed is a Secrets Manager with one secret.
type managed struct {
	text *string
	err  error
	asks int
}

func (m *managed) GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	m.asks++
	if m.err != nil {
		return nil, m.err
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: m.text}, nil
}

func TestWebhookSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	text := func(s string) *managed { return &managed{text: aws.String(s)} }
	for _, row := range []struct {
		name    string
		manager *managed
		want    channel.Verdict
	}{
		{"one", text(`{"current":"` + whsec(1) + `"}`), channel.Verdict{Outcome: channel.Accepted}},
		{"two", text(`{"current":"` + whsec(1) + `","previous":"` + whsec(2) + `"}`), channel.Verdict{Outcome: channel.Accepted}},
		{"previous emptied", text(`{"current":"` + whsec(1) + `","previous":""}`), channel.Verdict{Outcome: channel.Accepted}},
		{"not readable", &managed{err: errors.New("AccessDeniedException")}, notAccepted(failure.SecretUnavailable)},
		{"binary", &managed{}, runRefused(failure.ChannelMisconfig)},
		{"not JSON", text(whsec(1)), runRefused(failure.ChannelMisconfig)},
		{"empty object", text(`{}`), runRefused(failure.ChannelMisconfig)},
		{"wrong type", text(`{"current":7}`), runRefused(failure.ChannelMisconfig)},
		{"a field not known", text(`{"current":"` + whsec(1) + `","pervious":"x"}`), runRefused(failure.ChannelMisconfig)},
		{"no prefix", text(`{"current":"` + whsec(1)[6:] + `"}`), runRefused(failure.ChannelMisconfig)},
		{"not base64", text(`{"current":"whsec_!!!"}`), runRefused(failure.ChannelMisconfig)},
		{"short", text(`{"current":"whsec_AAAA"}`), runRefused(failure.ChannelMisconfig)},
		{"bad previous", text(`{"current":"` + whsec(1) + `","previous":"old"}`), runRefused(failure.ChannelMisconfig)},
		{"both the same", text(`{"current":"` + whsec(1) + `","previous":"` + whsec(1) + `"}`), runRefused(failure.ChannelMisconfig)},
		{"two values", text(`{"current":"` + whsec(1) + `"}{}`), runRefused(failure.ChannelMisconfig)},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := webhook.NewManager(row.manager, func() time.Time { return now })
			if err != nil {
				t.Fatal(err)
			}
			got := send(t, hookWith(t, m, webhook.Config{Private: loopback}), delivery(server.URL))
			check(t, got, row.want)
			if s := fmt.Sprint(got.Failure); strings.Contains(s, whsec(1)[6:20]) {
				t.Errorf("a secret in %q", s)
			}
		})
	}
	t.Run("none named", func(t *testing.T) {
		d := delivery(server.URL)
		d.SecretID = ""
		check(t, send(t, hook(t, webhook.Config{Private: loopback}), d), runRefused(failure.ChannelMisconfig))
	})
	t.Run("three active", func(t *testing.T) {
		check(t, send(t, hookWith(t, fixed{whsec(1), whsec(2), whsec(3)}, webhook.Config{Private: loopback}), delivery(server.URL)), runRefused(failure.ChannelMisconfig))
	})
}

func TestWebhookSecretsAreKeptForFiveMinutes(t *testing.T) {
	m := &managed{text: aws.String(`{"current":"` + whsec(1) + `"}`)}
	at := now
	s, err := webhook.NewManager(m, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	get := func(wantAsks int, want string) {
		t.Helper()
		got, err := s.Get(t.Context(), "hook")
		if err != nil || len(got) != 1 || got[0] != want || m.asks != wantAsks {
			t.Fatalf("%d asks (want %d), %v", m.asks, wantAsks, err)
		}
	}
	get(1, whsec(1))
	m.text = aws.String(`{"current":"` + whsec(2) + `"}`)
	at = now.Add(5*time.Minute - time.Nanosecond)
	get(1, whsec(1))
	at = now.Add(5 * time.Minute)
	get(2, whsec(2))
	m.err, at = errors.New("down"), now.Add(time.Hour)
	if _, err := s.Get(t.Context(), "hook"); err == nil {
		t.Fatal("an ended entry was used")
	}
	m.err = nil
	get(4, whsec(2))
}
