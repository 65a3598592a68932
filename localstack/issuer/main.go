// Command issuer gives tokens to the demo's people on a local cloud that has no user pools. It stands for a Cognito user
// pool as far as Almanac sees one: the sign-in page with the code flow and PKCE, the token endpoint, the keys, and
// tokens of the same shape. It is a tool of tests and demos: it listens on loopback alone and keeps no account.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "issuer:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	listen   string
	users    string
	key      string
	client   string
	callback string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("issuer", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.listen, "listen", "", "address on loopback")
	f.StringVar(&o.users, "users", "", "file of the people who may sign in")
	f.StringVar(&o.key, "key", "", "file of the signing key, made if it is not there")
	f.StringVar(&o.client, "client", "almanac", "client id that tokens are for")
	f.StringVar(&o.callback, "callback", "http://localhost:8765/callback", "where the code is brought")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%w; want --listen 127.0.0.1:PORT --users FILE --key FILE [--client ID] [--callback URL]", err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.check()
}

func (o options) check() error {
	at, err := netip.ParseAddrPort(o.listen)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--listen is %q; want an address on loopback with its port, such as 127.0.0.1:4569: whoever reaches it may try passwords", o.listen)
	}
	for name, file := range map[string]string{"users": o.users, "key": o.key} {
		if file == "" {
			return fmt.Errorf("--%s is absent; want a file", name)
		}
	}
	if !clientForm.MatchString(o.client) {
		return fmt.Errorf("--client is %q; want up to 64 letters, digits and dashes", o.client)
	}
	u, err := url.Parse(o.callback)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Port() == "" || !onLoopback(u.Hostname()) {
		return fmt.Errorf("--callback is %q; want an http address on loopback with its port, without query", o.callback)
	}
	return nil
}

func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// run serves until ctx ends. It says in one line of JSON when it is ready, and at what address.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	key, err := loadKey(o.key, rand.Reader)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w; end what uses the port, or choose another", err)
	}
	address := "http://" + listener.Addr().String()
	i, err := newIssuer(address, o, key, time.Now, rand.Reader)
	if err != nil {
		listener.Close()
		return err
	}
	server := &http.Server{Handler: i.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := json.NewEncoder(out).Encode(map[string]any{"ready": true, "issuer": address, "client": o.client}); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
