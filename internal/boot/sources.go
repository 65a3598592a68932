package boot

import (
	"context"
	"errors"
	"io"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Sources finds a source by its name and opens queries on it, for the workspaces that may use it.
type Sources struct {
	Configs interface {
		Source(ctx context.Context, name string) (schedule.SourceConfig, error)
	}
	SQLite *sqlite.Fetcher
}

// Open asks the named source.
func (s *Sources) Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error) {
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
	return s.SQLite.Source(cfg.Object).Open(ctx, q)
}

// dataFiles is the data bucket as the SQLite sources read it.
type dataFiles struct {
	api    *s3.Client
	bucket string
}

func (d dataFiles) Head(ctx context.Context, key string) (etag string, size int64, err error) {
	out, err := d.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &d.bucket, Key: &key})
	if err != nil {
		return "", 0, err
	}
	return aws.ToString(out.ETag), aws.ToInt64(out.ContentLength), nil
}

func (d dataFiles) Get(ctx context.Context, key string) (body io.ReadCloser, etag string, err error) {
	out, err := d.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &d.bucket, Key: &key})
	if err != nil {
		return nil, "", err
	}
	return out.Body, aws.ToString(out.ETag), nil
}
