package boot

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	athenatypes "github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// oneObject is a bucket with one object.
type oneObject struct {
	key    string
	status int // of every other
}

func (o oneObject) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if *in.Key == o.key {
		return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(o.key))}, nil
	}
	return nil, &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: o.status}}, Err: errors.New("no")}}
}

func TestAResultIsLookedForAtBothPlacesOnALocalCloudAlone(t *testing.T) {
	for _, row := range []struct {
		there  string
		status int
		local  bool
		found  bool
	}{
		{"queries/1.csv", 404, false, true}, {"queries/1.csv", 404, true, true}, {"queries/1.csv/1.csv", 404, true, true},
		{"queries/1.csv/1.csv", 404, false, false}, {"queries/1.csv/1.csv", 403, true, false}, {"", 404, true, false},
	} {
		body, err := results{oneObject{row.there, row.status}, row.local}.Open(t.Context(), "files", "queries/1.csv", 0)
		if (err == nil) != row.found {
			t.Errorf("%+v: %v", row, err)
		}
		if err == nil {
			body.Close()
		}
	}
}

func TestSourcesOfAthena(t *testing.T) {
	now := func() time.Time { return time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC) }
	store := memcloud.NewS3(now)
	if _, err := store.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("files")}); err != nil {
		t.Fatal(err)
	}
	api := memcloud.NewAthena(now, store)
	api.Engine = func(memcloud.AthenaQuery) memcloud.AthenaAnswer {
		return memcloud.AthenaAnswer{Type: athenatypes.StatementTypeDml, Columns: []athenatypes.ColumnInfo{{Name: aws.String("n"), Type: aws.String("bigint")}}, Rows: [][]*string{{aws.String("7")}}}
	}
	all := configs{"lake": {Name: "lake", Engine: "athena", Workspaces: []string{"EWR"}, Athena: &schedule.AthenaSource{Workgroup: "primary", Database: "lake", ScanLimit: 10_000_000}}}
	s := &Sources{Configs: all, Athena: Athena{API: api, Results: results{store, false}, Output: "s3://files/queries/", Now: now, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}}
	rows, err := s.Open(t.Context(), "lake", "EWR", source.Query{SQL: "SELECT n FROM t"})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := rows.Next(t.Context()); err != nil || row[0].Int != 7 {
		t.Fatalf("%+v %v", row, err)
	}
	rows.Close()
	asked := api.Started()[0]
	if asked.Catalog != schedule.GlueCatalog || asked.Database != "lake" || asked.Workgroup != "primary" || asked.Output != "s3://files/queries/" {
		t.Errorf("%+v", asked)
	}
	if _, err := s.Stop(t.Context(), "lake", "EWR", asked.ID); err != nil {
		t.Error(err)
	}
	_, err = s.Stop(t.Context(), "lake", "JFK", asked.ID)
	failuretest.Want(t, err, failure.SourceAccessDenied)
	if r, err := s.Test(t.Context(), "lake", "SELECT n FROM t"); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
	if v, err := s.View(t.Context(), "lake", "EWR"); err != nil || v.Version() != "" || v.ByteOrder(`"id"`, source.Text) != `"id"` || v.Close() != nil {
		t.Errorf("%v %v", v, err)
	} else if _, ok := v.(source.Apart); !ok {
		t.Errorf("%T tells nobody that its queries run apart", v)
	}
	s.Athena.Local = true
	if rows, err := s.Open(t.Context(), "lake", "EWR", source.Query{SQL: "SELECT n FROM t WHERE w = :workspace", Params: map[string]any{"workspace": "E'R"}}); err != nil {
		t.Error(err)
	} else {
		rows.Close()
	}
	if q := api.Started()[len(api.Started())-1]; q.SQL != "SELECT n FROM t WHERE w = 'E''R'" || len(q.Parameters) > 0 {
		t.Errorf("a local cloud is asked %q with %q", q.SQL, q.Parameters)
	}
	s.Athena.Output = ""
	_, err = s.Open(t.Context(), "lake", "EWR", source.Query{SQL: "SELECT n FROM t"})
	if f := failuretest.Want(t, err, failure.SourceUnknown); !strings.Contains(f.Message, "athenaDatabases") {
		t.Error(f.Message)
	}
}

func TestThePlaceForResults(t *testing.T) {
	with := func(place string) func(string) string {
		return func(name string) string {
			return map[string]string{EnvStage: "test", EnvAthenaOutput: place}[name]
		}
	}
	if c, err := Environment(with("s3://files/queries/")); err != nil || c.AthenaOutput != "s3://files/queries/" {
		t.Errorf("%q %v", c.AthenaOutput, err)
	}
	for _, place := range []string{"files/queries/", "s3://files/queries"} {
		if _, err := Environment(with(place)); err == nil || !strings.Contains(err.Error(), EnvAthenaOutput) || !strings.Contains(err.Error(), place) {
			t.Errorf("%q: %v", place, err)
		}
	}
}
