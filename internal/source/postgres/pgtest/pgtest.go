// Package pgtest starts a real PostgreSQL for tests: the programs that the system's package installs, on loopback, with
// a data folder, a port, a certificate and roles of its own, ended by its own process id.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Names and passwords of the roles: one that may do everything, by trust and on the server's socket alone, and one that
// signs in as a source does.
const (
	Superuser = "almanac_owner"
	Reader    = "almanac_reader"
	Password  = "s3cret:of:the:reader"
)

// Server is a running one.
type Server struct {
	Port int
	CA   string // PEM of the authority that signed its certificate, which is made for the name "localhost"
	Log  string // path

	folder  string
	process *exec.Cmd
	ended   chan struct{}
}

// Start starts one with these settings besides, such as "max_connections=10", and makes the reader's role. Stop ends it.
func Start(settings ...string) (*Server, error) {
	programs, err := programs()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "almanac-pg-") // short: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, Log: filepath.Join(folder, "log"), ended: make(chan struct{})}
	if err := s.start(programs, settings); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// programs is the folder of the newest server that is installed: Debian and Ubuntu put each version into one of its own.
func programs() (string, error) {
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/opt/homebrew/opt/postgresql@*/bin/postgres", "/usr/bin/postgres"} {
		matches, _ := filepath.Glob(pattern)
		found = append(found, matches...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no PostgreSQL server is installed: scripts/test installs it, as does apt-get install postgresql")
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(filepath.Base(filepath.Dir(filepath.Dir(path))), "postgresql@-"))
	return n
}

func (s *Server) start(programs string, settings []string) error {
	if err := s.certificates(); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	s.Port = port
	credential, err := unprivileged()
	if err != nil {
		return err
	}
	if err := s.own(credential); err != nil {
		return err
	}
	data := filepath.Join(s.folder, "data")
	initdb := s.command(credential, filepath.Join(programs, "initdb"), "-D", data, "-U", Superuser, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := s.configure(data, settings); err != nil {
		return err
	}
	if err := s.own(credential); err != nil {
		return err
	}
	log, err := os.Create(s.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = s.command(credential, filepath.Join(programs, "postgres"), "-D", data)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	go func() { _ = s.process.Wait(); close(s.ended) }()
	if err := s.ready(); err != nil {
		return err
	}
	return s.Exec(context.Background(), "postgres", "CREATE ROLE "+Reader+" LOGIN PASSWORD '"+Password+"'")
}

func (s *Server) configure(data string, settings []string) error {
	// Whoever comes over TCP must know a password; names that begin so must come with TLS besides.
	access := "local all " + Superuser + " trust\nhostnossl all tls_only all reject\nhost all all all scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(access), 0o600); err != nil {
		return err
	}
	lines := append([]string{"listen_addresses='127.0.0.1'", fmt.Sprintf("port=%d", s.Port), "unix_socket_directories='" + s.folder + "'", "fsync=off", "synchronous_commit=off",
		"full_page_writes=off", "ssl=on", "ssl_cert_file='" + filepath.Join(s.folder, "server.pem") + "'", "ssl_key_file='" + filepath.Join(s.folder, "server.key") + "'",
		"password_encryption='scram-sha-256'", "max_connections=60", "shared_buffers='32MB'", "log_min_messages='fatal'"}, settings...)
	f, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "\n"+strings.Join(lines, "\n")+"\n")
	return firstError(err, f.Close())
}

// ready waits until the server answers, or ended.
func (s *Server) ready() error {
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := s.connect(context.Background(), "postgres")
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-s.ended:
			return fmt.Errorf("PostgreSQL ended: %s", s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL did not begin to serve: %w\n%s", err, s.lastWords())
		}
	}
}

func (s *Server) lastWords() string {
	text, _ := os.ReadFile(s.Log)
	return string(bytes.TrimSpace(text))
}

// connect signs in as the superuser, on the socket.
func (s *Server) connect(ctx context.Context, database string) (*pgconn.PgConn, error) {
	c, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", s.folder, s.Port, Superuser, database))
	if err != nil {
		return nil, err
	}
	return pgconn.ConnectConfig(ctx, c)
}

// Exec runs statements as the superuser, each in a transaction of its own, since some want that.
func (s *Server) Exec(ctx context.Context, database string, statements ...string) error {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Value asks for one cell as the superuser.
func (s *Server) Value(ctx context.Context, database, sql string) (string, error) {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	out, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	if len(out) != 1 || len(out[0].Rows) != 1 || len(out[0].Rows[0]) != 1 {
		return "", fmt.Errorf("%s: not one row with one column", sql)
	}
	return string(out[0].Rows[0][0]), nil
}

// Kill ends it at once, as a machine that dies does.
func (s *Server) Kill() {
	_ = s.process.Process.Signal(syscall.SIGQUIT) // the immediate shutdown, which takes its children along
	<-s.ended
}

// Stop ends it, if it runs, and removes its folder.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT) // the fast shutdown
		select {
		case <-s.ended:
		case <-time.After(30 * time.Second):
			_ = s.process.Process.Signal(syscall.SIGQUIT)
			<-s.ended
		}
	}
	_ = os.RemoveAll(s.folder)
}

func (s *Server) command(credential *syscall.Credential, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.folder
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }), "LC_ALL=C.UTF-8")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	return c
}

// unprivileged is who runs the server, which refuses to be root; nil for this user.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, firstError(err1, err2)
	}
	return nil, fmt.Errorf("there is no user postgres or nobody for the server, which refuses to run as root")
}

// own hands the folder over to who runs the server.
func (s *Server) own(c *syscall.Credential) error {
	if c == nil {
		return nil
	}
	return filepath.WalkDir(s.folder, func(path string, _ os.DirEntry, err error) error {
		return firstError(err, os.Lchown(path, int(c.Uid), int(c.Gid)))
	})
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
