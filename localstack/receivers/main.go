// Receivers is where the local cloud's deliveries arrive: an SMTP server that keeps whole mails, and an HTTP server that
// checks Standard Webhooks signatures and answers as it is told. Both listen on loopback only.
//
//	go run ./localstack/receivers --smtp 127.0.0.1:1025 --http 127.0.0.1:8025 --dir .local/received --secret-file .local/hook-secret
//
// When both listen it prints one line of JSON; it ends on SIGTERM or SIGINT. What was received stays in --dir and is
// listed again after a restart:
//
//	DIR/mail/000001.eml, .json and 000001-NAME for each attachment
//	DIR/hook/PATH/000001.json (headers and what was found) and .body
//
// Over HTTP:
//
//	POST   /PATH             a delivery
//	GET    /_received/PATH   what came to the path, oldest first
//	PUT    /_control/PATH    {"answers":[{"status":503},{"status":429,"retry_after":20},{"status":200}],"cut":false,"delay":"2s"}
//	GET    /_control/PATH    what was told
//	DELETE /_control/PATH    back to 200
//	GET    /_mails?to=ADDRESS&run=RUN   mails received, oldest first
//	PUT    /_mails/refuse    {"recipients":["nobody@ewr.example"]}: answered 550 from now on
//	GET    /_health          200
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, time.Now); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "receivers:", err)
		}
		os.Exit(1)
	}
}

// ready is the line that says that both servers listen.
type ready struct {
	Ready bool   `json:"ready"`
	SMTP  string `json:"smtp"`
	HTTP  string `json:"http"`
	Dir   string `json:"dir"`
	PID   int    `json:"pid"`
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return fmt.Sprint(*l) }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// run serves until ctx ends. now is wall time.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, now func() time.Time) error {
	flags := flag.NewFlagSet("receivers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	smtpAddr := flags.String("smtp", "127.0.0.1:1025", "where mail is received")
	httpAddr := flags.String("http", "127.0.0.1:8025", "where webhooks are received and control is taken")
	dir := flags.String("dir", "", "folder for what is received (required)")
	secretFile := flags.String("secret-file", "", `file with signing secrets, read at each request: one whsec_… a line, or {"current":"…","previous":"…"}`)
	var secrets, refuse list
	flags.Var(&secrets, "secret", "a signing secret, whsec_… (may be repeated)")
	flags.Var(&refuse, "refuse", "a mail recipient that is answered 550 (may be repeated)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || flags.NArg() > 0 {
		return fmt.Errorf("--dir is required, and nothing besides flags: got %q", flags.Args())
	}
	folder, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	mails, err := openMailbox(filepath.Join(folder, "mail"), refuse, now)
	if err != nil {
		return err
	}
	hooks, err := openHooks(filepath.Join(folder, "hook"), secretSource{given: secrets, file: *secretFile}, now)
	if err != nil {
		return err
	}
	smtpListener, err := listen("--smtp", *smtpAddr)
	if err != nil {
		return err
	}
	defer smtpListener.Close()
	httpListener, err := listen("--http", *httpAddr)
	if err != nil {
		return err
	}
	defer httpListener.Close()
	line, err := json.Marshal(ready{true, smtpListener.Addr().String(), httpListener.Addr().String(), folder, os.Getpid()})
	if err != nil {
		return err
	}
	return serve(ctx, mails, hooks, smtpListener, httpListener, func() { fmt.Fprintln(stdout, string(line)) })
}

// serve runs both servers until ctx ends or one of them breaks.
func serve(ctx context.Context, mails *mailbox, hooks *hooks, smtpListener, httpListener net.Listener, announce func()) error {
	mailServer := newMailServer(mails)
	webServer := &http.Server{Handler: handler(hooks, mails), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	broken := make(chan error, 2)
	go func() { broken <- mailServer.Serve(smtpListener) }()
	go func() { broken <- webServer.Serve(httpListener) }()
	announce()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if webServer.Shutdown(grace) != nil {
		webServer.Close()
	}
	if mailServer.Shutdown(grace) != nil {
		mailServer.Close()
	}
	return err
}

// listen opens a port on loopback, and nowhere else.
func listen(flag, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s %q: write host and port, such as 127.0.0.1:1025", flag, address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s %q: only loopback is possible, such as 127.0.0.1", flag, address)
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %q: the port is in use; stop what holds it or choose another", flag, address)
	}
	return l, err
}
