package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func (a *attempts) object(key string) []byte {
	a.t.Helper()
	out, err := a.s3.GetObject(bg, &s3.GetObjectInput{Bucket: aws.String("files"), Key: &key})
	a.must(err)
	b, err := io.ReadAll(out.Body)
	a.must(err)
	return b
}

func (a *attempts) overwrite(key string, b []byte) {
	a.t.Helper()
	_, err := a.s3.PutObject(bg, &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key, Body: bytes.NewReader(b)})
	a.must(err)
}

// The files of CSV are what any reader of it reads, and equal rows give equal bytes: no time stands in them.
func TestFilesAreReadByOthers(t *testing.T) {
	var bodies [2][]byte
	for i := range bodies {
		d := trips()
		d.Format = snapshot.CSV
		a := newAttempts(t, d)
		a.load(tripsTable, rowsFrom(5, 30))
		a.step *= 1000
		a.publish(newark)
		m := a.current(newark)
		bodies[i] = a.object(m.Chunks[0].Object)
		zip, err := gzip.NewReader(bytes.NewReader(bodies[i]))
		a.must(err)
		if !zip.ModTime.IsZero() || zip.Name != "" {
			t.Fatalf("%+v", zip.Header)
		}
		list, err := csv.NewReader(zip).ReadAll()
		a.must(err)
		if len(list) != 31 || strings.Join(list[0], " ") != "id carrier delay fare km" || list[3][1] != `=UA "x", 2` || list[30][3] != "29.29" {
			t.Fatalf("%q", list[:4])
		}
	}
	if !bytes.Equal(bodies[0], bodies[1]) {
		t.Fatal("the same rows gave other bytes")
	}
}

// A manifest's bytes are canonical, and its name is their hash: validating the same chunks again gives the same.
func TestManifestIsCanonical(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.publish(newark)
	m := a.current(newark)
	body, hash, err := m.Encode()
	if err != nil || hash != r.Manifest() || !bytes.Equal(body, a.object(snapshot.ManifestKey(newark, 1, hash))) {
		t.Fatalf("%v: %s, recorded %s", err, hash, r.Manifest())
	}
	var fields map[string]any
	a.must(json.Unmarshal(body, &fields))
	want := "checks chunks columns compared_to definition files format generation key month period product run source totals type version workspace"
	if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); got != want {
		t.Fatalf("fields %s, want %s", got, want)
	}
	if m.Format != snapshot.ManifestFormat || m.Run != r.ID() || m.Definition.Hash != a.def.Hash() || m.Definition.Workspace != "EWR" || m.Source.Version != m.Source.Validated {
		t.Fatalf("%+v", m)
	}
}

// Versions are read by period and number; what is not published is not there.
func TestVersionsAreRead(t *testing.T) {
	a := newAttempts(t, trips())
	if _, err := a.reader.Current(bg, newark); !errors.Is(err, snapshot.ErrNotFound) {
		t.Fatal(err)
	}
	a.load(tripsTable, rowsFrom(5, 20))
	a.publish(newark)
	a.load(tripsTable, rowsFrom(5, 30))
	a.publish(newark)
	for version, rows := range map[int]int64{1: 20, 2: 30} {
		m, err := a.reader.Version(bg, newark, version)
		if err != nil || m.Totals.Rows != rows || !slices.Equal(a.rows(m), expected(5, int(rows))) {
			t.Fatalf("version %d: %+v %v", version, m.Totals, err)
		}
	}
	if m := a.current(newark); m.Version != 2 || m.ComparedTo.Current != 1 {
		t.Fatalf("%+v", m)
	}
	a.plan(newark)
	for _, version := range []int{0, 3, 4} {
		if _, err := a.reader.Version(bg, newark, version); !errors.Is(err, snapshot.ErrNotFound) {
			t.Fatalf("version %d: %v", version, err)
		}
	}
}

// A changed byte anywhere, in a manifest or a chunk, is found: no row of a changed month passes for one that was published.
func TestChangedBytesAreFound(t *testing.T) {
	for _, format := range []snapshot.FileFormat{snapshot.CSV, snapshot.Parquet} {
		t.Run(string(format), func(t *testing.T) { changedBytesAreFound(t, format) })
	}
}

func changedBytesAreFound(t *testing.T, format snapshot.FileFormat) {
	d := trips()
	d.Format = format
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.publish(newark)
	m := a.current(newark)
	manifest := snapshot.ManifestKey(newark, 1, r.Manifest())
	whole := a.object(manifest)
	for name, change := range map[string]func([]byte) []byte{
		"a digit": func(b []byte) []byte { return bytes.Replace(b, []byte(`"rows":250`), []byte(`"rows":251`), 1) },
		"a space": func(b []byte) []byte { return append(b, ' ') },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func([]byte) []byte { return nil },
	} {
		a.overwrite(manifest, change(bytes.Clone(whole)))
		_, err := a.reader.Current(bg, newark)
		if f := failuretest.Want(t, err, failure.FileInconsistent); !strings.Contains(f.Message, "manifest-") {
			t.Errorf("%s: %q", name, f.Message)
		}
	}
	a.overwrite(manifest, whole)
	key := m.Chunks[1].Object
	chunk := a.object(key)
	for name, change := range map[string]func([]byte) []byte{
		"a bit of the header": func(b []byte) []byte { b[4] ^= 1; return b }, // gzip's time, which no reader looks at
		"a bit in the middle": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"a bit of the length": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut":                 func(b []byte) []byte { return b[:len(b)-9] },
		"longer":              func(b []byte) []byte { return append(b, 0) },
		"empty":               func([]byte) []byte { return nil },
		"another chunk's":     func([]byte) []byte { return a.object(m.Chunks[2].Object) },
		"other bytes":         func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) },
	} {
		a.overwrite(key, change(bytes.Clone(chunk)))
		rows := a.reader.Rows(m)
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = rows.Next(bg)
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: %d rows were read to their end", name, n)
			continue
		}
		failuretest.Want(t, err, failure.FileInconsistent)
		if _, again := rows.Next(bg); again == nil || errors.Is(again, io.EOF) {
			t.Errorf("%s: after the failure came %v", name, again)
		}
		v, err := a.reader.Verify(bg, m)
		if err != nil || v.Bad != 1 || v.Chunks != 3 || v.Wrong[0].Object != key {
			t.Errorf("%s: %+v %v", name, v, err)
		}
	}
	_, err := a.s3.DeleteObject(bg, &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: &key})
	a.must(err)
	if v, err := a.reader.Verify(bg, m); err != nil || v.Bad != 1 || v.Wrong[0].Why != "it is not there" {
		t.Errorf("gone: %+v %v", v, err)
	}
}

// A store that does not answer is no finding.
func TestReadingFromAStoreThatDoesNotAnswer(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	a.publish(newark)
	m := a.current(newark)
	a.s3.Before = func(context.Context, memcloud.Call) error { return errors.New("no answer") }
	_, err := a.reader.Verify(bg, m)
	failuretest.Want(t, err, failure.FileUnavailable)
	_, err = a.reader.Rows(m).Next(bg)
	failuretest.Want(t, err, failure.FileUnavailable)
	_, err = a.reader.Current(bg, newark)
	failuretest.Want(t, err, failure.FileUnavailable)
	_, err = a.reader.Compare(bg, m, m, 1)
	failuretest.Want(t, err, failure.FileUnavailable)
}

func TestClosedRowsAreNotAtTheirEnd(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	a.publish(newark)
	rows := a.reader.Rows(a.current(newark))
	if _, err := rows.Next(bg); err != nil {
		t.Fatal(err)
	}
	a.must(rows.Close())
	if _, err := rows.Next(bg); err == nil || errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// Two versions are compared by their keys: added, removed, changed, by column, with the first examples.
func TestCompare(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	a.publish(newark)
	d := trips()
	d.Query = strings.Replace(d.Query, "km", "km, delay * 2 as twice", 1)
	d.ChunkRows = 70        // the cut does not matter
	d.Format = snapshot.CSV // and neither does the kind of file
	a.save(d, 2)
	a.load(tripsTable, rowsFrom(5, 250), "delete from trips where id in (5, 1005, 2495)", "insert into trips select id + 1, workspace, at, carrier, delay, fare, km from trips where id in (15, 25)",
		"update trips set carrier = '' where id = 35", "update trips set delay = delay + 1, fare = null where id in (45, 2005)")
	a.publish(newark, func(r *snapshot.Run) { r.Definition = 2 })
	one, err := a.reader.Version(bg, newark, 1)
	a.must(err)
	two := a.current(newark)
	c, err := a.reader.Compare(bg, one, two, 2)
	a.must(err)
	if c.Added != 2 || c.Removed != 3 || c.Changed != 3 || c.Unchanged != 244 || c.From.Totals.Rows != 250 || c.To.Totals.Rows != 249 {
		t.Fatalf("%+v", c)
	}
	if fmt.Sprint(c.AddedKeys, c.RemovedKeys, c.AddedColumns, c.RemovedColumns, c.ByColumn) != "[16 26] [5 1005] [twice] [] map[carrier:1 delay:2 fare:2]" {
		t.Fatalf("%v %v %v %v %v", c.AddedKeys, c.RemovedKeys, c.AddedColumns, c.RemovedColumns, c.ByColumn)
	}
	if len(c.ChangedRows) != 2 || c.ChangedRows[0].Key != "35" || c.ChangedRows[0].Columns["carrier"][0] != nil || *c.ChangedRows[0].Columns["carrier"][1] != "" ||
		c.ChangedRows[1].Key != "45" || *c.ChangedRows[1].Columns["fare"][0] != "4.04" || c.ChangedRows[1].Columns["fare"][1] != nil {
		t.Fatalf("%+v", c.ChangedRows)
	}
	back, err := a.reader.Compare(bg, two, one, 0)
	if err != nil || back.Added != 3 || back.Removed != 2 || back.Changed != 3 || len(back.AddedKeys)+len(back.ChangedRows) != 0 || back.RemovedColumns[0] != "twice" {
		t.Fatalf("%+v %v", back, err)
	}
}

// Versions whose rows are ordered by different keys cannot be merged.
func TestCompareWantsOneKey(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	a.publish(newark)
	d := trips()
	d.Key = "km"
	d.Query = strings.Replace(d.Query, "km", "cast(id as text) as km", 1)
	d.Query = strings.Replace(d.Query, "id,", "id + 1000 as id,", 1)
	d.Control = "select count(*) as rows from trips"
	a.save(d, 2)
	a.publish(newark, func(r *snapshot.Run) { r.Definition = 2 })
	one, err := a.reader.Version(bg, newark, 1)
	a.must(err)
	_, err = a.reader.Compare(bg, one, a.current(newark), 1)
	if f := failuretest.Want(t, err, failure.DefinitionInvalid); !strings.Contains(f.Message, `"id" (integer)`) || !strings.Contains(f.Message, `"km" (text)`) {
		t.Fatal(f.Message)
	}
}
