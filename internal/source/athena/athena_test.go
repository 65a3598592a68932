package athena_test

import (
	"context"
	"io"
	"math"
	"testing"
	"time"

	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/source"
	"almanac/internal/source/athena"
	"almanac/internal/source/sourcetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func TestMain(m *testing.M) { failuretest.Main(m, "source/athena") }

// results reads out of the in-memory S3.
type results struct{ s3 *memcloud.S3 }

func (r results) Open(ctx context.Context, bucket, key string, from int64) (io.ReadCloser, error) {
	out, err := r.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: athena.Range(from)})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// sleep waits for real, for the suite alone.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lake is a source over an Athena in memory.
func lake(t testing.TB, now func() time.Time, answer func(memcloud.AthenaQuery) memcloud.AthenaAnswer) (*athena.Source, *memcloud.Athena, *memcloud.S3) {
	store := memcloud.NewS3(now)
	if _, err := store.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: aws.String("files")}); err != nil {
		t.Fatal(err)
	}
	api := memcloud.NewAthena(now, store)
	api.Engine = answer
	return &athena.Source{API: api, Results: results{store}, Workgroup: "primary", Catalog: "AwsDataCatalog", Database: "lake", Output: "s3://files/queries/",
		Now: now, Pause: sleep}, api, store
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB, ddl []string) source.Source {
		src, _, _ := lake(t, time.Now, newEngine(t, ddl).answer)
		return src
	}, sourcetest.Dialect{
		Decimal: "DECIMAL TEXT",
		Bytes:   "BLOB",
		Hex:     "x'00ff0a'",
		Runaway: runaway,
		Breaks:  "SELECT abs(CASE WHEN n = 1500 THEN -9223372036854775807 - 1 ELSE n END) FROM numbers ORDER BY n",
		// A parameter stands in the WHERE clause alone: the second is looked for among the asked ones and their neighbours.
		Epoch: `SELECT e FROM (SELECT column1 + (n - 3) * 3600 AS e FROM (VALUES (1370091600), (1383456600), (1383460200), (-20701), (951782400)), numbers WHERE n < 6)
			WHERE strftime('%Y-%m-%d %H:%M:%S', e, 'unixepoch') || '.000000' = :scheduled_time GROUP BY e`,
		HugeRow:      "SELECT hex(zeroblob(7000000)) AS a, hex(zeroblob(7000000)) AS b, hex(zeroblob(7000000)) AS c",
		MaxColumns:   2000, // SQLite's, which stands behind; Athena names no number
		MaxParameter: 1024,
		Long:         "replace(hex(zeroblob(%d)), '00', '0123456789abcdé')",
		Waits:        true,
		NoView:       true,
		Cells: []sourcetest.Cell{
			{SQL: "9223372036854775807", Want: source.Value{Kind: source.KindInt, Int: math.MaxInt64}, Column: source.Column{Name: "integers", Type: source.Integer}},
			{SQL: "-9223372036854775807 - 1", Want: source.Value{Kind: source.KindInt, Int: math.MinInt64}},
			{SQL: "5e-324", Want: source.Value{Kind: source.KindFloat, Float: 5e-324}, Column: source.Column{Name: "floats", Type: source.Real}},
			{SQL: "1.7976931348623157e308", Want: source.Value{Kind: source.KindFloat, Float: math.MaxFloat64}},
			{SQL: "9e999", Want: source.Value{Kind: source.KindFloat, Float: math.Inf(1)}},
			{SQL: "'two' || char(10) || 'lines, a \"quote\"'", Want: sourcetest.Text("two\nlines, a \"quote\"")},
			{SQL: "char(13) || char(10)", Want: sourcetest.Text("\r\n")},
			{SQL: "'[1, 2]'", Want: sourcetest.Text("[1, 2]"), Column: source.Column{Name: "text", Type: source.Text}},
			{SQL: "x'000a'", Want: source.Value{Kind: source.KindBytes, Text: []byte{0, '\n'}}, Column: source.Column{Name: "bytes", Type: source.Bytes}},
			{SQL: "x''", Want: source.Value{Kind: source.KindBytes, Text: []byte{}}},
			{SQL: "''", Want: sourcetest.Text("")},
			{SQL: "NULL", Want: source.Value{Kind: source.KindNull}},
		},
		Writes: map[string]string{
			"insert":          "INSERT INTO numbers VALUES (1, 'x')",
			"update":          "UPDATE numbers SET n = 0",
			"delete":          "DELETE FROM numbers",
			"merge":           "MERGE INTO numbers USING numbers AS o ON numbers.n = o.n WHEN MATCHED THEN DELETE",
			"unload":          "UNLOAD (SELECT n FROM numbers) TO 's3://elsewhere/' WITH (format = 'PARQUET')",
			"create as":       "CREATE TABLE other AS SELECT n FROM numbers",
			"create view":     "CREATE VIEW w AS SELECT 1",
			"drop":            "DROP TABLE numbers",
			"alter":           "ALTER TABLE numbers ADD COLUMNS (m bigint)",
			"repair a table":  "MSCK REPAIR TABLE numbers",
			"create, comment": "/* SELECT */ CREATE TABLE other AS SELECT n FROM numbers",
		},
	})
}
