package snapshot_test

// One command prints the figures of a month of 1,000,000 rows in 100 chunks:
//
//	go test ./internal/snapshot -run '^$' -bench Chunks -benchtime 1x

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/artifact/bucket"
	"almanac/internal/measure"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// voidS3 takes chunks and keeps their sizes only, so that a month in memory is not counted as the step's.
type voidS3 struct {
	*memcloud.S3
	mu    sync.Mutex
	sizes map[string]int64
}

func (v *voidS3) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if strings.HasSuffix(*in.Key, ".json") {
		return v.S3.PutObject(ctx, in, o...)
	}
	n, err := io.Copy(io.Discard, in.Body)
	v.mu.Lock()
	v.sizes[*in.Key] = n
	v.mu.Unlock()
	return &s3.PutObjectOutput{}, err
}

func (v *voidS3) ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := &s3.ListObjectsV2Output{IsTruncated: aws.Bool(false)}
	for key, size := range v.sizes {
		out.Contents = append(out.Contents, types.Object{Key: aws.String(key), Size: aws.Int64(size)})
	}
	slices.SortFunc(out.Contents, func(a, b types.Object) int { return strings.Compare(*a.Key, *b.Key) })
	return out, nil
}

// fileSource is one file for every name.
type fileSource struct{ *sqlite.File }

func (f fileSource) View(ctx context.Context, _, _ string) (source.View, error) {
	return f.File.View(ctx)
}

const million = 1_000_000

// millionRows is a file of a million rows with ten columns, made once for a benchmark.
func millionRows(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "million.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{"pragma journal_mode = off", "pragma synchronous = off",
		"create table orders (id integer primary key, account integer, amount decimal text, price decimal text, created_at text, updated_at text, name text, status text, note text, quantity integer)",
		fmt.Sprintf(`insert into orders with recursive c(i) as (select 1 union all select i + 1 from c where i < %d)
			select i, 1000000000 + i * 7919 %% 9000000000, printf('%%d.%%02d', i * 37 %% 1000000 - 62500, i %% 100), printf('%%d.%%06d', i * 31 %% 1000, i * 17 %% 1000000),
			datetime(1767225600 + i * 3, 'unixepoch'), datetime(1767225600 + i * 5, 'unixepoch'), 'name of ' || (i * 7919 %% 100003), 'status ' || (i %% 8),
			case i %% 10 when 0 then null else 'a note on order ' || (i %% 977) end, case i %% 5 when 0 then null else i %% 512 end from c`, million)} {
		if _, err := db.Exec(s); err != nil {
			b.Fatal(err)
		}
	}
	return path
}

func orders() snapshot.Definition {
	d := trips()
	d.Query = "select * from orders"
	d.Control = "select count(*) as rows, sum(quantity) as quantity, sum(account) as account from orders"
	d.Checks.NotNull, d.Checks.Types = []string{"name", "status"}, map[string]string{"amount": "decimal", "account": "integer"}
	d.ChunkRows = million / 100
	return d
}

// BenchmarkRatioChunks pairs one plain pass of the source through the writer, as a delivery makes it, with the same rows in
// 100 committed chunks; what is compared are medians of the pairs. The peak is the process's, from after the set-up on.
func BenchmarkRatioChunks(b *testing.B) {
	src := &sqlite.File{Path: millionRows(b)}
	var plain, chunked []measure.Cost
	resetPeak(b)
	for i := range 5 * b.N {
		void := &voidS3{S3: memcloud.NewS3(time.Now), sizes: map[string]int64{}}
		if _, err := void.CreateBucket(bg, &s3.CreateBucketInput{Bucket: aws.String("files")}); err != nil {
			b.Fatal(err)
		}
		objects := bucket.Objects{Store: &bucket.Store{API: void, Bucket: "files"}, Listing: void}
		one := func() {
			plain = append(plain, measure.One(b, func() error { return onePass(src, void) }))
		}
		if i%2 == 0 { // neither is always the one that finds the other's garbage
			one()
		}
		a := newAttempts(b, orders())
		a.steps.Sources, a.steps.Objects = fileSource{src}, objects
		clear(void.sizes)
		job := a.claim(a.plan(newark).ID())
		if _, err := a.steps.Start(bg, job, ""); err != nil {
			b.Fatal(err)
		}
		chunked = append(chunked, measure.One(b, func() error {
			if got, err := a.steps.Generate(bg, job); err != nil || !got.Done || got.Chunks != 100 {
				return fmt.Errorf("%+v, %w", got, err)
			}
			return nil
		}))
		for _, step := range []func(context.Context, snapshot.Job) (snapshot.Result, error){a.steps.Validate, a.steps.Publish} {
			if _, err := step(bg, job); err != nil {
				b.Fatal(err)
			}
		}
		a.published(job.Run)
		if i%2 == 1 {
			one()
		}
	}
	measure.Row{What: "a month in 100 chunks, 1000000 rows × 10 columns", Peer: "one plain pass of the same source and writer", Bound: measure.AtMost,
		Theirs: measure.Medians(plain), Ours: measure.Medians(chunked), Beside: fmt.Sprintf("peak of the process %.0f MiB", peak(b))}.Report(b)
}

// onePass is the source in the order of its key through the same writer, as one object.
func onePass(src source.Source, to *voidS3) error {
	rows, err := src.Open(bg, source.Query{SQL: "select * from orders order by id"})
	if err != nil {
		return err
	}
	defer rows.Close()
	store := &bucket.Store{API: discarding{to}, Bucket: "files"}
	return store.Upload(bg, "plain.parquet", "application/vnd.apache.parquet", "", func(w io.Writer) error {
		_, err := artifact.Write(bg, rows, artifact.Format{Kind: "parquet"}, w, 0)
		return err
	})
}

// discarding takes parts and keeps none.
type discarding struct{ *voidS3 }

func (d discarding) UploadPart(_ context.Context, in *s3.UploadPartInput, _ ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	_, err := io.Copy(io.Discard, in.Body)
	return &s3.UploadPartOutput{ETag: aws.String("x")}, err
}

func (d discarding) CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return &s3.CompleteMultipartUploadOutput{}, nil
}

// resetPeak makes the kernel forget the process's peak; peak reads it, in MiB.
// Source: https://docs.kernel.org/filesystems/proc.html, clear_refs and VmHWM.
func resetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak counts the set-up as well: %v", err)
	}
}

func peak(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Logf("no peak: %v", err)
		return 0
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kib, _ := strconv.Atoi(strings.Fields(string(rest))[0])
			return float64(kib) / 1024
		}
	}
	return 0
}

// A month of 100 chunks costs what it must: one PUT for each chunk and one for the manifest, one list of the objects, four
// write units for each chunk's record and cursor, and few more; one call of each step.
func TestCallsAndUnitsOfAHundredChunks(t *testing.T) {
	d := trips()
	d.ChunkRows = 10
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 1000))
	r := a.plan(newark)
	j := a.claim(r.ID())
	before, puts := a.db.Units(), a.s3.Requests()["PutObject"]
	w := a.walk(j)
	a.published(r.ID())
	units, requests := a.db.Units().Since(before), a.s3.Requests()
	commits, total := units["TransactWriteItems"], units.Total()
	puts = requests["PutObject"] - puts
	t.Logf("S3: %d PUT, %d LIST (floor 101). DynamoDB: %.0f write units of the table, %.0f of indexes, in %d calls (floor 400 + 20). Step Functions: %d calls, %d transitions (floor 8–20)",
		puts, requests["ListObjectsV2"], total.TableWrite, total.IndexWrite, commits.Calls, w.Calls, w.Transitions)
	if puts != 101 || requests["ListObjectsV2"] != 1 || total.TableWrite > 420 || w.Transitions > 20 || w.Calls != 4 {
		t.Errorf("more than that")
	}
	if got := a.rows(a.current(newark)); !slices.Equal(got, expected(5, 1000)) {
		t.Errorf("%d rows", len(got))
	}
}
