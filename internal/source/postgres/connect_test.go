package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/postgres/pgtest"
	"almanac/internal/source/sourcetest"
)

// one asks for the number of rows of "numbers".
func one(ctx context.Context, s source.Source) (int64, error) {
	out, err := sourcetest.Read(ctx, s, source.Query{SQL: "SELECT count(*) FROM numbers"})
	if err != nil {
		return 0, err
	}
	return out.Rows[0][0].Int, nil
}

var numbers = []string{"CREATE TABLE numbers (n bigint, name text)", "INSERT INTO numbers SELECT g, 'row ' || g FROM generate_series(1, 2000) AS g"}

func wants(t *testing.T, err error, code failure.Code, says ...string) {
	t.Helper()
	f := failuretest.Want(t, err, code)
	for _, s := range says {
		if !strings.Contains(f.Message, s) {
			t.Errorf("%q does not say %q", f.Message, s)
		}
	}
	if strings.Contains(err.Error(), pgtest.Password) {
		t.Errorf("%v holds the password", err)
	}
}

// encrypted says whether this very connection is, and how.
const encrypted = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

func TestTLS(t *testing.T) {
	src := openTest(t, numbers...)
	other, err := pgtest.NewAuthority()
	must(t, err)
	for _, row := range []struct {
		name, says string
		change     func(*Config)
		tls        int64
	}{
		{"in full by default", "", func(*Config) {}, 1},
		{"in full", "", func(c *Config) { c.TLS = VerifyFull }, 1},
		{"in full for another name", "is for another host (localhost)", func(c *Config) { c.Host = "127.0.0.1" }, 0},
		{"in full with an unknown authority", "authority that is not trusted", func(c *Config) { c.CA = other.PEM }, 0},
		{"in full with the system's authorities", "authority that is not trusted", func(c *Config) { c.CA = "" }, 0},
		{"the authority alone", "", func(c *Config) { c.TLS, c.Host = VerifyCA, "127.0.0.1" }, 1},
		{"the authority alone, unknown", "authority that is not trusted", func(c *Config) { c.TLS, c.CA = VerifyCA, other.PEM }, 0},
		{"off", "", func(c *Config) { c.TLS = Off }, 0},
		{"a mode that is none", `tls is "prefer"`, func(c *Config) { c.TLS = "prefer" }, 0},
		{"a ca that is none", "no certificate", func(c *Config) { c.CA = "-----BEGIN" }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &Source{Config: src.Config, SignIn: src.SignIn}
			row.change(&s.Config)
			out, err := sourcetest.Read(t.Context(), s, source.Query{SQL: encrypted})
			if row.says != "" {
				wants(t, err, failure.SourceUnavailable, row.says)
				return
			}
			must(t, err)
			if got := out.Rows[0]; got[0].Int != row.tls || row.tls == 1 && !strings.HasPrefix(string(got[1].Text), "TLSv1.") {
				t.Fatalf("the connection has TLS %d (%s), want %d", got[0].Int, got[1].Text, row.tls)
			}
		})
	}
}

// listening is a server that does to each connection what it is told.
func listening(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); serve(conn) }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// request reads the client's wish for TLS.
func request(conn net.Conn) { _, _ = conn.Read(make([]byte, 8)) }

func TestServersThatAreNone(t *testing.T) {
	authority, err := pgtest.NewAuthority()
	must(t, err)
	cert, key, err := authority.Certificate("localhost")
	must(t, err)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(t, err)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := closed.Addr().(*net.TCPAddr).Port
	must(t, closed.Close())
	secured := func(serve func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			request(conn)
			_, _ = conn.Write([]byte("S"))
			s := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}})
			if s.Handshake() == nil {
				serve(s)
			}
		}
	}
	asked := make(chan string, 1)
	for _, row := range []struct {
		name string
		cfg  Config
		says string
	}{
		{"no such name", Config{Host: "nowhere.invalid"}, "the host nowhere.invalid has no address"},
		{"nobody listens", Config{Host: "localhost", Port: port}, "does not answer"},
		{"no TLS", Config{Host: "localhost", Port: listening(t, func(c net.Conn) { request(c); _, _ = c.Write([]byte("N")) })}, "does not speak TLS as the source asks (tls: verify-full)"},
		{"hangs up", Config{Host: "localhost", Port: listening(t, func(net.Conn) {})}, "does not speak TLS"},
		{"another protocol", Config{Host: "localhost", CA: authority.PEM, Port: listening(t, secured(func(c net.Conn) {
			request(c)
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}))}, "did not begin a session"},
		// a password in the clear would be anybody's on the way
		{"asks for the password itself without TLS", Config{Host: "localhost", TLS: Off, Port: listening(t, func(c net.Conn) {
			request(c)
			_, _ = c.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3})
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			b, _ := io.ReadAll(c)
			asked <- string(b)
		})}, "how it asks for passwords"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := one(t.Context(), &Source{Config: row.cfg, SignIn: known(reader)})
			wants(t, err, failure.SourceUnavailable, row.says)
		})
	}
	if strings.Contains(<-asked, pgtest.Password) {
		t.Error("the password was sent")
	}
}

// A server that takes the connection and says nothing: the query's time ends the wait.
func TestASilentServer(t *testing.T) {
	port := listening(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<10)); _, _ = c.Read(make([]byte, 1)) })
	src := &Source{Config: Config{Host: "localhost", Port: port}, SignIn: known(reader)}
	_, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT 1", Limits: source.Limits{Timeout: 100 * time.Millisecond}})
	wants(t, err, failure.QueryTimeout, "100ms")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = one(ctx, src)
	wants(t, err, failure.SourceUnavailable, "cancelled")
	late, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = src.View(late)
	failuretest.Want(t, err, failure.SourceUnavailable)
}

func TestSignIn(t *testing.T) {
	src := openTest(t, numbers...)
	must(t, server.Exec(t.Context(), "postgres", "CREATE ROLE locked_out NOLOGIN PASSWORD 'x'", "CREATE ROLE tls_only LOGIN PASSWORD 'x'", "REVOKE CONNECT ON DATABASE "+src.Config.Database+" FROM PUBLIC",
		"GRANT CONNECT ON DATABASE "+src.Config.Database+" TO "+pgtest.Reader))
	for _, row := range []struct {
		name   string
		login  Login
		change func(*Config)
		code   failure.Code
		says   string
	}{
		{"wrong password", Login{pgtest.Reader, "guess"}, nil, failure.SourceAccessDenied, "password authentication failed"},
		{"no such role", Login{"nobody_knows", "x"}, nil, failure.SourceAccessDenied, "nobody_knows"},
		{"a role that may not sign in", Login{"locked_out", "x"}, nil, failure.SourceAccessDenied, "locked_out"},
		{"a role that must come with TLS", Login{"tls_only", "x"}, func(c *Config) { c.TLS = Off }, failure.SourceAccessDenied, "tls_only"},
		{"a role without the database", Login{"tls_only", "x"}, nil, failure.SourceAccessDenied, "permission denied for database"},
		{"no such database", reader, func(c *Config) { c.Database = "nothing" }, failure.SourceUnknown, "nothing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &Source{Config: src.Config, SignIn: known(row.login)}
			if row.change != nil {
				row.change(&s.Config)
			}
			_, err := one(t.Context(), s)
			wants(t, err, row.code, row.says)
			_, err = s.View(t.Context())
			wants(t, err, row.code, row.says)
		})
	}
}

// A secret that was rotated between two queries is read again, once, and only when the login was refused.
func TestRotation(t *testing.T) {
	src := openTest(t, numbers...)
	const role = "rotating"
	must(t, server.Exec(t.Context(), "postgres", "CREATE ROLE "+role+" LOGIN PASSWORD 'first'"))
	must(t, server.Exec(t.Context(), src.Config.Database, "GRANT SELECT ON numbers TO "+role))
	t.Cleanup(func() {
		must(t, server.Exec(context.Background(), src.Config.Database, "DROP OWNED BY "+role, "DROP ROLE "+role))
	})
	current, kept := Login{role, "first"}, Login{}
	var reads []bool
	src.SignIn = func(_ context.Context, fresh bool) (Login, error) {
		reads = append(reads, fresh)
		if fresh || kept == (Login{}) {
			kept = current
		}
		return kept, nil
	}
	n, err := one(t.Context(), src)
	if err != nil || n != 2000 || len(reads) != 1 {
		t.Fatalf("%d rows, %v, reads %v", n, err, reads)
	}
	must(t, server.Exec(t.Context(), "postgres", "ALTER ROLE "+role+" PASSWORD 'second'"))
	current.Password, reads = "second", nil
	if n, err := one(t.Context(), src); err != nil || n != 2000 || len(reads) != 2 || reads[0] || !reads[1] {
		t.Fatalf("%d rows, %v, reads %v", n, err, reads)
	}
	// the secret is behind: one try with the login that is known, none with the same again
	must(t, server.Exec(t.Context(), "postgres", "ALTER ROLE "+role+" PASSWORD 'third'"))
	reads = nil
	_, err = one(t.Context(), src)
	wants(t, err, failure.SourceAccessDenied, "password authentication failed")
	if len(reads) != 2 {
		t.Fatalf("reads %v", reads)
	}
	broken := failure.New(failure.SourceAccessDenied, "the secret may not be read")
	for _, when := range []bool{false, true} {
		src.SignIn = func(_ context.Context, fresh bool) (Login, error) {
			if fresh == when {
				return Login{}, broken
			}
			return Login{role, "first"}, nil
		}
		if _, err := one(t.Context(), src); !errors.Is(err, broken) {
			t.Errorf("fresh %v: %v", when, err)
		}
	}
}

func TestSessionSettings(t *testing.T) {
	src := openTest(t, "CREATE SCHEMA reports", "CREATE TABLE reports.numbers AS SELECT 1 AS n", "CREATE TABLE numbers AS SELECT 2 AS n", `CREATE SCHEMA "odd ""one"`, `CREATE TABLE "odd ""one".numbers AS SELECT 3 AS n`,
		"GRANT USAGE ON SCHEMA reports, \"odd \"\"one\" TO PUBLIC", "GRANT SELECT ON ALL TABLES IN SCHEMA reports, \"odd \"\"one\" TO PUBLIC",
		"ALTER ROLE "+pgtest.Reader+" SET search_path = nowhere", "ALTER ROLE "+pgtest.Reader+" SET statement_timeout = 1", "ALTER ROLE "+pgtest.Reader+" SET DateStyle = 'German'", "ALTER ROLE "+pgtest.Reader+" SET TimeZone = 'Asia/Tokyo'")
	t.Cleanup(func() {
		must(t, server.Exec(context.Background(), "postgres", "ALTER ROLE "+pgtest.Reader+" RESET ALL"))
	})
	for want, path := range map[int64][]string{1: {"reports", "public"}, 2: nil, 3: {`odd "one`, "reports"}} {
		src.Config.SearchPath = path
		out, err := sourcetest.Read(t.Context(), src, source.Query{SQL: "SELECT n, '2013-02-01 00:00 UTC'::timestamptz, current_setting('application_name'), current_setting('transaction_isolation'), current_setting('transaction_read_only') FROM numbers"})
		must(t, err)
		if row := out.Rows[0]; row[0].Int != want || !row[1].Time.Equal(time.Date(2013, 2, 1, 0, 0, 0, 0, time.UTC)) ||
			string(row[2].Text)+" "+string(row[3].Text)+" "+string(row[4].Text) != "almanac repeatable read on" {
			t.Errorf("%v: %+v", path, row)
		}
	}
}
