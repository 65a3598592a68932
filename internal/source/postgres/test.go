package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

var _ source.Tester = (*Source)(nil)

// Test says how far a connection comes, what its login may do, and how the first rows look.
func (s *Source) Test(ctx context.Context, sql string) (r source.Report) {
	if !s.testConnection(ctx, &r) {
		return r
	}
	var tables []string
	if !r.Step("rights", func() (says string, err error) {
		tables, says, err = s.rights(ctx)
		if err == nil && len(tables) == 0 && sql == "" {
			err = failure.New(failure.SourceAccessDenied, "the login may read no table of its search path: grant it USAGE on the schema and SELECT on the tables, or correct search_path")
		}
		return says, err
	}) {
		return r
	}
	if sql == "" {
		sql = fmt.Sprintf("SELECT * FROM %s LIMIT %d", tables[0], source.PreviewRows)
	}
	r.Preview(ctx, s, sql)
	return r
}

func (s *Source) testConnection(ctx context.Context, r *source.Report) bool {
	if !r.Step("login", func() (string, error) {
		login, err := s.SignIn(ctx, false)
		return "known: " + login.User, err
	}) {
		return false
	}
	way := newProgress()
	conn, err := s.connect(ctx, way)
	if err == nil {
		defer func() { _ = leave(conn) }()
	}
	if ctx.Err() != nil && err != nil {
		err = failure.Wrap(failure.SourceUnavailable, err, "%s did not come so far within the time of a test: check that the functions' network and security group reach it", s.Config.address())
	}
	secure := s.Config.mode()
	for _, step := range []struct {
		name string
		ends stage
		says string
	}{
		{"network", connected, s.Config.address() + " answers"},
		{"TLS", secured, secure},
		{"sign-in", signedIn, ""},
	} {
		if way.at < step.ends {
			r.Add(step.name, way.took(step.ends), "", err)
			return false
		}
		switch {
		case step.name == "TLS" && secure == Off:
			step.says = "off: what is read can be read on the way"
		case step.name == "TLS" && conn != nil:
			step.says += ", " + tls.VersionName(conn.Conn().(*tls.Conn).ConnectionState().Version)
		case step.name == "sign-in":
			step.says = "as " + way.user + ", PostgreSQL " + conn.ParameterStatus("server_version")
		}
		r.Add(step.name, way.took(step.ends), step.says, nil)
	}
	return true
}

const (
	// readable are the tables and views of the search path that the login may read, spelled as a query does.
	readable = `SELECT c.oid::regclass::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname = ANY (pg_catalog.current_schemas(false)) AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1`
	// powers are what a login that only reads does not need.
	powers = `SELECT 'is a superuser' FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper
UNION ALL SELECT 'may write to ' || count(*) || ' tables of its search path' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND n.nspname = ANY (pg_catalog.current_schemas(false)) AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') HAVING count(*) > 0
UNION ALL SELECT 'is a member of ' || r.rolname FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_roles me ON me.rolname = current_user
WHERE r.oid <> me.oid AND NOT me.rolsuper AND pg_catalog.pg_has_role(me.oid, r.oid, 'MEMBER') AND r.rolname NOT IN ('rds_iam', 'pg_read_all_data')`
	mostTables = 1000
)

func (s *Source) rights(ctx context.Context) (tables []string, says string, err error) {
	if tables, err = s.names(ctx, readable); err != nil {
		return nil, "", err
	}
	more, err := s.names(ctx, powers)
	if err != nil {
		return nil, "", err
	}
	shown := strings.Join(tables[:min(len(tables), source.PreviewRows)], ", ")
	switch n := len(tables); {
	case n == 0:
		says = "no table of the search path may be read"
	case n > source.PreviewRows:
		says = fmt.Sprintf("may read %d tables: %s and others", n, shown)
	default:
		says = "may read " + shown
	}
	if len(more) > 0 {
		says += "; more than it needs: it " + strings.Join(more, ", ")
	}
	return tables, says, nil
}

// names reads a column of texts.
func (s *Source) names(ctx context.Context, sql string) (out []string, err error) {
	_, rows, err := source.First(ctx, s, sql, mostTables)
	for _, row := range rows {
		out = append(out, *row[0])
	}
	return out, err
}

// progress notes when a connection came how far.
type progress struct {
	at    stage
	user  string
	times [signedIn + 1]time.Time
}

func newProgress() *progress {
	p := &progress{}
	p.times[dialling] = time.Now()
	return p
}

func (p *progress) reach(s stage) {
	p.at = max(p.at, s)
	p.times[s] = time.Now()
}

// took is how long the way from one stage to the next took, or takes already.
func (p *progress) took(to stage) time.Duration {
	if p.at < to {
		return time.Since(p.times[to-1])
	}
	return p.times[to].Sub(p.times[to-1])
}
