package boot

import (
	"context"
	"errors"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/postgres"
	"almanac/internal/source/postgres/signin"
	"almanac/internal/source/sqlite"
)

// Sources finds a source by its name and opens queries on it, for the workspaces that may use it.
type Sources struct {
	Configs interface {
		Source(ctx context.Context, name string) (schedule.SourceConfig, error)
	}
	SQLite   *sqlite.Fetcher
	Postgres Postgres
	Athena   Athena
}

// Postgres is what sources of that engine need besides their configuration.
type Postgres struct {
	Secrets *signin.Secrets
	AWS     aws.Config // region and credentials of IAM authentication
	Local   bool       // the local profile, which reaches this machine alone
}

// Busy reports whether an engine does not stop.
func (s *Sources) Busy() bool { return s.SQLite.Busy() }

// Open asks the named source.
func (s *Sources) Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error) {
	src, err := s.find(ctx, name, workspace)
	if err != nil {
		return nil, err
	}
	return src.Open(ctx, q)
}

// View holds the named source at its present version.
func (s *Sources) View(ctx context.Context, name, workspace string) (source.View, error) {
	src, err := s.find(ctx, name, workspace)
	if err != nil {
		return nil, err
	}
	return src.View(ctx)
}

// Test says how far the named source can be used, for whom may configure it.
func (s *Sources) Test(ctx context.Context, name, sql string) (source.Report, error) {
	cfg, err := s.Configs.Source(ctx, name)
	if err != nil {
		return source.Report{}, err
	}
	src, err := s.engine(cfg)
	if err != nil {
		var r source.Report
		r.Add("configuration", 0, "", err)
		return r, nil
	}
	return src.Test(ctx, sql), nil
}

// engine is what each engine's sources offer.
type engine interface {
	source.Source
	source.Viewer
	source.Tester
}

func (s *Sources) find(ctx context.Context, name, workspace string) (engine, error) {
	cfg, err := s.Configs.Source(ctx, name)
	switch {
	case errors.Is(err, schedule.ErrNotFound):
		return nil, failure.New(failure.SourceUnknown, "source %q is not configured", name)
	case err != nil:
		return nil, err
	case !cfg.Serves(workspace):
		return nil, failure.New(failure.SourceAccessDenied, "workspace %s may not use source %q", workspace, name)
	}
	return s.engine(cfg)
}

func (s *Sources) engine(cfg schedule.SourceConfig) (engine, error) {
	switch {
	case cfg.Engine == schedule.EngineSQLite:
		return s.SQLite.Source(cfg.Object), nil
	case cfg.Engine == schedule.EnginePostgres && cfg.Postgres != nil:
		return s.Postgres.source(cfg.Name, *cfg.Postgres)
	case cfg.Engine == schedule.EngineAthena && cfg.Athena != nil:
		a, err := s.Athena.source(cfg.Name, *cfg.Athena)
		if err != nil {
			return nil, err
		}
		return apart{a}, nil
	}
	return nil, failure.New(failure.SourceUnknown, `source %q has engine %q; want "sqlite", "postgres" or "athena"`, cfg.Name, cfg.Engine)
}

func (p Postgres) source(name string, c schedule.PostgresSource) (engine, error) {
	if p.Local && !loopbackHost(c.Host) {
		return nil, failure.New(failure.SourceUnknown, "source %q is at %s; the local profile reaches this machine alone: localhost or an address of loopback", name, c.Host)
	}
	signIn := p.Secrets.Login(c.Secret)
	if c.IAMUser != "" {
		signIn = signin.Token(p.AWS, c.Address(), c.IAMUser)
	}
	return &postgres.Source{Defaults: source.Defaults, SignIn: signIn,
		Config: postgres.Config{Host: c.Host, Port: c.Port, Database: c.Database, TLS: c.TLS, CA: c.CA, SearchPath: c.SearchPath, Application: "almanac"}}, nil
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
