package boot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/input"
	"almanac/internal/jobs"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/source/athena"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Months is what people read and do of monthly snapshots.
type Months struct {
	Ledger  *store.Snapshots
	Editor  *snapshot.Editor
	Board   snapshot.Board
	Files   snapshot.Reader
	Planner jobs.Asker // of the planner, not of the dispatcher
	// Sign makes an address that serves an object under a name for some time.
	Sign func(ctx context.Context, object, name string, life time.Duration) (string, error)
}

// Months wires people's part of monthly snapshots.
func (f *Function) Months() (Months, error) {
	j, err := f.jobs()
	if err != nil {
		return Months{}, err
	}
	ledger, sources := f.snapshots(), f.sources(f.objects())
	return Months{
		Ledger: ledger,
		Editor: &snapshot.Editor{Ledger: ledger, Watermark: snapshot.ReadWatermark(sources), Serves: f.serves, Queries: sources, Jobs: j, Dispatch: f.asker(),
			Clocks: f.snapshotClocks(), Timing: f.Config.SnapshotTiming, Token: Token, Log: f.Log},
		Board:   snapshot.Board{Ledger: ledger, Clocks: f.snapshotClocks()},
		Files:   snapshot.Reader{Ledger: ledger, Objects: f.snapshotObjects()},
		Planner: jobs.Asker{API: lambda.NewFromConfig(f.AWS), Function: f.Config.SnapshotPlan},
		Sign:    signer(s3.NewPresignClient(f.objects()), f.Config.SnapshotsBucket),
	}, nil
}

func signer(presign *s3.PresignClient, bucket string) func(ctx context.Context, object, name string, life time.Duration) (string, error) {
	return func(ctx context.Context, object, name string, life time.Duration) (string, error) {
		out, err := presign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &object,
			ResponseContentDisposition: aws.String(artifact.ContentDisposition(name))}, s3.WithPresignExpires(life))
		if err != nil {
			return "", err
		}
		return out.URL, nil
	}
}

// serves reports whether a workspace may use a definition's source, and what of the definition the source's engine cannot do.
func (f *Function) serves(ctx context.Context, d snapshot.Definition, workspace string) (bool, error) {
	c, err := f.Store.Source(ctx, d.Source)
	if errors.Is(err, schedule.ErrNotFound) {
		return false, nil
	}
	if err != nil || !c.Serves(workspace) {
		return false, err
	}
	if ps := ofAthena(d); c.Engine == schedule.EngineAthena && len(ps) > 0 {
		return false, ps
	}
	return true, nil
}

// ofAthena names what Athena cannot do for months: hold two queries at one version, and give a column a name with capitals.
func ofAthena(d snapshot.Definition) input.Problems {
	var c input.Checker
	if d.Mode == snapshot.Single {
		c.Bad("mode", `"single"`, fmt.Sprintf(`"auto" or "chunked": source %q is Athena's, which holds no two queries at one version`, d.Source))
	}
	column := func(field, name string) {
		if athena.Capitals(name) {
			c.Bad(field, input.Quote(name), "a column's name in small letters, as Athena gives it: "+strings.ToLower(name))
		}
	}
	column("key", d.Key)
	for i, name := range d.Checks.NotNull {
		column(fmt.Sprintf("checks.not_null[%d]", i), name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Checks.Types)) {
		column("checks.types."+name, name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Checks.DriftSums)) {
		column("checks.drift_sums."+name, name)
	}
	return c.Problems
}
