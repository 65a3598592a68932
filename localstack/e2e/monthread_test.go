//go:build cloud

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A month with NULLs, empty texts and texts that CSV must quote, read by a program that is not ours: as Parquet, which is what
// a definition gets that does not ask, and as CSV. Beside its files lies one that no manifest lists, as a frozen twin of a
// step leaves it.
func TestAPublishedMonthReadByDuckDBIsTheSource(t *testing.T) {
	scene(t)
	s := shelved(t, 2, 1, 1)
	for typ, format := range map[string]snapshot.FileFormat{"read": "", "read-csv": snapshot.CSV} {
		t.Run(typ, func(t *testing.T) { s.readByDuckDB(t, typ, format) })
	}
}

func (s shelf) readByDuckDB(t *testing.T, typ string, format snapshot.FileFormat) {
	d := s.define(t, s.workspaces[0], typ, func(d *snapshot.Definition) {
		inChunks(300, 3)(d)
		d.Format = format
		d.Query = "select flight_id, carrier, tailnum, dep_delay, lat as latitude, '' as blank, " +
			"'to \"' || dest || '\", or' || char(10) || 'not' as words " + strings.Replace(ofMonth, "flights", "flights left join airports on faa = dest", 1)
		d.Control = "select count(*) as rows, sum(dep_delay) as dep_delay " + ofMonth
	})
	id := rerun(t, d.Workspace, d.Type, december)
	r := s.settled(t, id, snapshot.Published)
	body := must(t, "GET", "/snapshots/runs/"+id+"/manifest", nil)
	var m snapshot.Manifest
	if err := json.Unmarshal(body, &m); err != nil || len(m.Chunks) < 3 {
		t.Fatalf("the manifest is %s, %v; want several chunks", body, err)
	}
	if want := map[snapshot.FileFormat]string{"": "parquet", snapshot.CSV: "csv"}[format]; m.Files.Format != want {
		t.Errorf("the files are %s, want %s", m.Files.Format, want)
	}
	s.twin(t, m.Chunks[0].Object)
	folder := t.TempDir()
	s.fetch(t, snapshot.RunPrefix(r.Period, r.Version), folder)
	manifest := filepath.Join(folder, "manifest.json")
	if err := os.WriteFile(manifest, body, 0o600); err != nil {
		t.Fatal(err)
	}
	params, err := json.Marshal(d.Params)
	if err != nil {
		t.Fatal(err)
	}
	local := filepath.Join("..", "..", ".local")
	cmd := exec.CommandContext(t.Context(), filepath.Join(local, "venv", "bin", "python"), "read_month.py",
		manifest, folder, filepath.Join(local, "demo-data", "flights.sqlite"), d.Query, string(params))
	var said, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var rows struct{ Source, Month, Prefix int64 }
	if err := json.Unmarshal(said.Bytes(), &rows); err != nil || rows.Source != m.Totals.Rows || rows.Month != m.Totals.Rows || rows.Prefix != m.Totals.Rows+m.Chunks[0].Rows {
		t.Fatalf("DuckDB read %s, %v; the manifest has %d rows, and the twin %d", said.String(), err, m.Totals.Rows, m.Chunks[0].Rows)
	}
}

func objects() *s3.Client {
	return s3.NewFromConfig(cloud.aws, func(o *s3.Options) { o.UsePathStyle = true })
}

// twin puts a copy of a chunk beside it, under another token.
func (s shelf) twin(t *testing.T, key string) {
	t.Helper()
	bucket := cloud.outputs["SnapshotsBucket"]
	i := strings.LastIndexByte(key, '-')
	_, err := objects().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(key[:i] + "-0123456789abcdef" + key[strings.IndexByte(key[i:], '.')+i:]), Body: bytes.NewReader(read(t, key))})
	if err != nil {
		t.Fatal(err)
	}
}

// read reads an object of a month.
func read(t *testing.T, key string) []byte {
	t.Helper()
	out, err := objects().GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(cloud.outputs["SnapshotsBucket"]), Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fetch copies all objects of a prefix into a folder, under their keys.
func (s shelf) fetch(t *testing.T, prefix, folder string) {
	t.Helper()
	out, err := objects().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(cloud.outputs["SnapshotsBucket"]), Prefix: &prefix})
	if err != nil || aws.ToBool(out.IsTruncated) {
		t.Fatalf("%v, %v", out, err)
	}
	for _, o := range out.Contents {
		path := filepath.Join(folder, filepath.FromSlash(aws.ToString(o.Key)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, read(t, aws.ToString(o.Key)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
