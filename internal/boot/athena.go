package boot

import (
	"context"
	"errors"
	"io"
	"path"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/athena"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sdk "github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Athena is what sources of that engine need besides their configuration. Without an output there are none.
type Athena struct {
	API     athena.API
	Results athena.Results
	Output  string
	Now     func() time.Time
	Pause   func(context.Context, time.Duration) error
	Local   bool // on a local cloud, which takes no execution parameters
}

// athena wires Athena.
func (f *Function) athena(objects *s3.Client) Athena {
	return Athena{API: sdk.NewFromConfig(f.AWS), Results: QueryResults(objects, f.Config.Local != ""), Output: f.Config.AthenaOutput, Now: time.Now, Pause: f.Store.Pause, Local: f.Config.Local != ""}
}

func (a Athena) source(name string, c schedule.AthenaSource) (*athena.Source, error) {
	if a.Output == "" {
		return nil, failure.New(failure.SourceUnknown, "source %q is Athena's, which this stage may not ask: deploy it with the setting athenaDatabases", name)
	}
	c = c.InCatalog()
	return &athena.Source{API: a.API, Results: a.Results, Output: a.Output, Workgroup: c.Workgroup, Catalog: c.Catalog, Database: c.Database,
		ScanLimit: c.ScanLimit, Inline: a.Local, Now: a.Now, Pause: a.Pause}, nil
}

// apart is an Athena source as one of those that months are read from.
type apart struct{ *athena.Source }

func (a apart) View(context.Context) (source.View, error) { return a.Source.Apart(), nil }

// Stop ends a query that goes on without its caller. Engines whose queries end with their callers have none.
func (s *Sources) Stop(ctx context.Context, name, workspace, id string) (source.Cost, error) {
	src, err := s.find(ctx, name, workspace)
	if err != nil {
		return source.Cost{}, err
	}
	if a, ok := src.(interface {
		Stop(context.Context, string) (source.Cost, error)
	}); ok {
		return a.Stop(ctx, id)
	}
	return source.Cost{}, nil
}

// QueryResults reads what Athena has written; local: on a local cloud.
func QueryResults(objects *s3.Client, local bool) athena.Results { return results{objects, local} }

// results reads what Athena has written.
type results struct {
	api interface {
		GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	}
	local bool
}

// Open opens a result. MiniStack writes it below the place that it tells, by its name once more.
func (r results) Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error) {
	in := s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: athena.Range(from)}
	out, err := r.api.GetObject(ctx, &in)
	var answered *awshttp.ResponseError
	if r.local && errors.As(err, &answered) && answered.HTTPStatusCode() == 404 {
		below := path.Join(key, path.Base(key))
		in.Key = &below
		out, err = r.api.GetObject(ctx, &in)
	}
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}
