package boot

import (
	"context"
	"errors"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
)

// Sources finds a source by its name and opens queries on it, for the workspaces that may use it.
type Sources struct {
	Configs interface {
		Source(ctx context.Context, name string) (schedule.SourceConfig, error)
	}
	SQLite *sqlite.Fetcher
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

// engine is what each engine's sources offer.
type engine interface {
	source.Source
	source.Viewer
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
	case cfg.Engine != "sqlite":
		return nil, failure.New(failure.SourceUnknown, "source %q has engine %q; want \"sqlite\"", name, cfg.Engine)
	}
	return s.SQLite.Source(cfg.Object), nil
}
