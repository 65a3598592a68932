package boot

import (
	"context"
	"errors"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/input"
	"almanac/internal/jobs"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
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
	ledger := f.snapshots()
	return Months{
		Ledger: ledger,
		Editor: &snapshot.Editor{Ledger: ledger, Watermark: snapshot.ReadWatermark(f.sources(f.objects())), Serves: f.serves, Jobs: j, Dispatch: f.asker(),
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

// serves reports whether a workspace may use a source.
func (f *Function) serves(ctx context.Context, source, workspace string) (bool, error) {
	c, err := f.Store.Source(ctx, source)
	if errors.Is(err, schedule.ErrNotFound) {
		return false, nil
	}
	if err == nil && c.Engine == schedule.EngineAthena {
		return false, input.Problems{input.Wrong("source", input.Quote(source), "a source that can be held at one version, of engine sqlite or postgres: this one is Athena's")}
	}
	return err == nil && c.Serves(workspace), err
}
