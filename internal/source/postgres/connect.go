package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// How a connection is secured. TLS is 1.2 at least.
const (
	VerifyFull = "verify-full" // the certificate is for this host and of a trusted authority
	VerifyCA   = "verify-ca"   // of a trusted authority, for whatever host: behind a tunnel or an address of one's own
	Off        = "off"         // no TLS; passwords are sent as SCRAM or MD5 only
)

// Config says where a database is.
type Config struct {
	Host, Database string
	Port           int      // 0: 5432
	TLS            string   // empty: VerifyFull
	CA             string   // root certificates in PEM; empty: those of the system
	SearchPath     []string // schemas; empty: public
	Application    string   // shown in pg_stat_activity; empty: almanac
}

// Login is who signs in.
type Login struct{ User, Password string }

// SignIn gives the login of a source. With fresh it reads it anew, since the one that it gave before was refused: a secret
// that was rotated meanwhile. Errors are *failure.Failure, without any part of a secret.
type SignIn func(ctx context.Context, fresh bool) (Login, error)

// connectWait bounds each try to begin a session.
const connectWait = 10 * time.Second

// stage is how far a connection has come.
type stage int

const (
	dialling stage = iota
	connected
	secured
	signedIn
)

func (c Config) port() int {
	if c.Port == 0 {
		return 5432
	}
	return c.Port
}

func (c Config) mode() string {
	if c.TLS == "" {
		return VerifyFull
	}
	return c.TLS
}

func (c Config) address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.port())) }

// tls makes the client's side of TLS, nil where there is none.
func (c Config) tls() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.Host}
	if c.CA != "" {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, failure.New(failure.SourceUnavailable, "the source's ca holds no certificate: write root certificates in PEM")
		}
	}
	switch c.mode() {
	case Off:
		return nil, nil
	case VerifyFull:
		return out, nil
	case VerifyCA:
		out.InsecureSkipVerify = true // of the name; VerifyConnection checks the rest
		out.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: out.RootCAs, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
		return out, nil
	}
	return nil, failure.New(failure.SourceUnavailable, "the source's tls is %q; want %q, %q or %q", failure.Cut(c.TLS, 40), VerifyFull, VerifyCA, Off)
}

// settings are those of the session. Forms of values are fixed, so that they mean one thing: dates and times ISO in UTC,
// intervals ISO 8601, floats with all their digits, bytes in hexadecimals, texts in UTF-8.
func (c Config) settings() map[string]string {
	var path strings.Builder
	for _, schema := range c.SearchPath {
		path.WriteString(`"` + strings.ReplaceAll(schema, `"`, `""`) + `", `)
	}
	if len(c.SearchPath) == 0 {
		path.WriteString("public, ")
	}
	application := c.Application
	if application == "" {
		application = "almanac"
	}
	return map[string]string{
		"application_name": application, "client_encoding": "UTF8", "DateStyle": "ISO, YMD", "TimeZone": "UTC", "IntervalStyle": "iso_8601",
		"extra_float_digits": "3", "bytea_output": "hex", "standard_conforming_strings": "on", "xmloption": "content",
		"default_transaction_read_only": "on",
		// each transaction sets its own; what a role has by default must not end the statement that does so
		"statement_timeout": "0",
		// named, the temporary schema comes last instead of first:
		// https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-SEARCH-PATH
		"search_path": path.String() + "pg_temp",
	}
}

// dial begins a session and notes how far it comes.
func (c Config) dial(ctx context.Context, login Login, way *progress) (*pgconn.PgConn, error) {
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	// pgconn reads PGHOST, ~/.pgpass and the like here; everything that they could say is set below.
	cfg, err := pgconn.ParseConfig("host=localhost user=x sslmode=disable")
	if err != nil {
		return nil, failure.Wrap(failure.InternalError, err, "the environment holds settings of PostgreSQL (PGSERVICE and the like) that cannot be read: remove them")
	}
	cfg.Host, cfg.Port, cfg.Database, cfg.User, cfg.Password = c.Host, uint16(c.port()), c.Database, login.User, login.Password
	cfg.TLSConfig, cfg.Fallbacks, cfg.RuntimeParams, cfg.ConnectTimeout = secure, nil, c.settings(), 0
	cfg.SSLNegotiation, cfg.SSLCertMode, cfg.ChannelBinding, cfg.ValidateConnect = "postgres", "disable", "prefer", nil
	cfg.RequireAuth, cfg.MinProtocolVersion, cfg.MaxProtocolVersion = "", "3.0", "3.0"
	cfg.MaxProtocolMessageBodyLen = maxMessage
	if secure == nil {
		cfg.RequireAuth = "scram-sha-256,md5"
	}
	dialer := &net.Dialer{}
	cfg.LookupFunc = net.DefaultResolver.LookupHost
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			way.reach(connected)
		}
		return conn, err
	}
	cfg.AfterNetConnect = func(ctx context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if s, ok := conn.(*tls.Conn); ok {
			if err := s.HandshakeContext(ctx); err != nil {
				return conn, err
			}
		}
		way.reach(secured)
		return conn, nil
	}
	return pgconn.ConnectConfig(ctx, cfg)
}

// maxMessage bounds one message of the server, and with it the memory that a row takes: PostgreSQL's own bound is 1 GB.
const maxMessage = source.MaxRow + 1<<20

// connect signs in, once more with a login read anew where the first is refused.
func (s *Source) connect(ctx context.Context, way *progress) (*pgconn.PgConn, error) {
	login, err := s.SignIn(ctx, false)
	if err != nil {
		return nil, err
	}
	conn, err := s.begin(ctx, login, way)
	if !refusedLogin(err) {
		return conn, err
	}
	again, anew := s.SignIn(ctx, true)
	if anew != nil {
		return nil, anew
	}
	if again == login {
		return nil, err
	}
	return s.begin(ctx, again, way)
}

// begin begins one session. Its error is a failure.
func (s *Source) begin(ctx context.Context, login Login, way *progress) (*pgconn.PgConn, error) {
	bounded, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	conn, err := s.Config.dial(bounded, login, way)
	var f *failure.Failure
	switch {
	case err == nil:
		way.user = login.User
		way.reach(signedIn)
		return conn, nil
	case errors.As(err, &f):
		return nil, f
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, failure.Wrap(failure.SourceUnavailable, ctx.Err(), "the query was cancelled before the database was reached")
	}
	return nil, s.Config.unreachable(err, way.at)
}

// refusedLogin reports whether a login itself was refused: a wrong password, or a user that is not there (any more).
func refusedLogin(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && strings.HasPrefix(answer.Code, "28")
}

// started is how each transaction begins: the reader sees one state of the database and can change nothing.
func started(limits source.Limits) string {
	return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; " + timed(limits)
}

// timed bounds the statements that follow in the server too, a little later than here, so that it ends what nobody waits
// for any more even where no request to cancel reaches it.
func timed(limits source.Limits) string {
	return fmt.Sprintf("SET LOCAL statement_timeout = %d", min(limits.Timeout+5*time.Second, 24*24*time.Hour).Milliseconds())
}
