package artifact_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"almanac/internal/artifact"
	"almanac/internal/artifact/bucket"
	"almanac/internal/artifact/bucket/buckettest"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

// noise makes rows of about 100 bytes of which no compressor makes fewer than half.
func noise(n int) *table {
	r := &table{columns: []source.Column{{Name: "noise", Type: source.Text}}}
	random := rand.NewChaCha8([32]byte{7})
	b := make([]byte, 48)
	for range n {
		random.Read(b) // never fails
		r.rows = append(r.rows, []source.Value{text(hex.EncodeToString(b))})
	}
	return r
}

// faulty fails at its n-th call.
type faulty struct {
	n, calls int
	err      error
	short    bool
}

func (w *faulty) Write(p []byte) (int, error) {
	if w.calls++; w.calls != w.n {
		return len(p), nil
	}
	if w.short {
		return len(p) - 1, nil
	}
	return 0, w.err
}

// suiteRows is how many rows of noise make several blocks of each kind of file.
const suiteRows = 60_000

func TestSuiteF3AWriterThatFailsAtAnyCall(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		r := noise(suiteRows)
		write := func(w io.Writer) error {
			r.next = 0
			got, err := artifact.Write(t.Context(), r, k.format, w, 0)
			if err != nil && got != (artifact.Result{}) {
				t.Errorf("the result %+v of a file that failed", got)
			}
			return err
		}
		n := 1
		for ; ; n++ { // each call, the last ones being those that flush and close
			cause := errors.New("disk full")
			w := &faulty{n: n, err: cause}
			err := write(w)
			if w.calls < n {
				if err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				break
			}
			if failuretest.Want(t, err, failure.FileUnavailable); !errors.Is(err, cause) {
				t.Errorf("call %d: %v does not carry its cause", n, err)
			}
			failuretest.Want(t, write(&faulty{n: n, short: true}), failure.FileUnavailable)
			own := failure.New(failure.FileInconsistent, "the bucket says so")
			if err := write(&faulty{n: n, err: fmt.Errorf("part: %w", own)}); failure.From(err) != own {
				t.Errorf("call %d: %v, want the writer's own failure", n, err)
			}
		}
		if n < 4 {
			t.Errorf("the file took %d calls; want several blocks", n-1)
		}
	})
}

// The whole path: rows into S3, whichever call of it fails.
func TestSuiteF3NothingIsPublishedWhenTheUploadFails(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		r := noise(suiteRows)
		for n := 1; ; n++ {
			fake := buckettest.New()
			hit := false
			fake.Fault = func(call int, _ string) *buckettest.Fault {
				if call != n {
					return nil
				}
				hit = true
				return &buckettest.Fault{Err: buckettest.Status(500)}
			}
			store := &bucket.Store{API: fake, Bucket: "b", PartSize: 1 << 20}
			r.next = 0
			err := store.Upload(t.Context(), "k", artifact.MediaType(k.format), "attachment", func(w io.Writer) error {
				_, err := artifact.Write(t.Context(), r, k.format, w, 0)
				return err
			})
			if !hit {
				if _, ok := fake.Object("b", "k"); !ok || n < 4 {
					t.Fatalf("without a fault nothing was published, or in %d calls only: %v", n-1, err)
				}
				break
			}
			failuretest.Want(t, err, failure.FileUnavailable)
			if _, ok := fake.Object("b", "k"); ok || fake.Unfinished() > 0 {
				t.Errorf("call %d failed: published %v, %d unfinished", n, ok, fake.Unfinished())
			}
		}
	})
}

// An object of no bytes is a file as well.
func TestSuiteAnEmptyResultIsStored(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		fake := buckettest.New()
		store := &bucket.Store{API: fake, Bucket: "b"}
		var res artifact.Result
		err := store.Upload(t.Context(), "k", artifact.MediaType(k.format), "attachment", func(w io.Writer) (err error) {
			res, err = artifact.Write(t.Context(), column(source.Text), k.format, w, 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.ReadAll(t.Context(), "k", res.Bytes, res.SHA256)
		if err != nil || int64(len(got)) != res.Bytes {
			t.Fatalf("%d bytes, %v; want %d", len(got), err, res.Bytes)
		}
	})
}

func TestSuiteV7RowsThatBreakOffMakeNoFile(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		want := failure.New(failure.QueryFailed, "broke")
		for _, n := range []int{0, 1, 30_000} {
			r := noise(n)
			r.err = want
			var out bytes.Buffer
			if res, err := artifact.Write(t.Context(), r, k.format, &out, 0); err != error(want) || res != (artifact.Result{}) {
				t.Errorf("after %d rows: %+v %v", n, res, err)
			}
			if !k.lines {
				if _, err := k.read(out.Bytes(), r.columns, func([]source.Value) error { return nil }); err == nil {
					t.Errorf("after %d rows the %d bytes that were written pass for a whole file", n, out.Len())
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := artifact.Write(ctx, noise(3), k.format, io.Discard, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestSuiteAFileBeyondItsLimitIsRefused(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		r := noise(suiteRows)
		size := int64(len(k.file(t, r)))
		for _, limit := range []int64{1, 100, 1 << 20, size - 1} {
			r.next = 0
			var out bytes.Buffer
			_, err := artifact.Write(t.Context(), r, k.format, &out, limit)
			if f := failuretest.Want(t, err, failure.FileTooLarge); !strings.Contains(f.Message, fmt.Sprint(limit)) || int64(out.Len()) > limit {
				t.Errorf("limit %d: %q, %d bytes written", limit, f.Message, out.Len())
			}
		}
		r.next = 0
		if res, err := artifact.Write(t.Context(), r, k.format, io.Discard, size); err != nil || res.Bytes != size {
			t.Errorf("at the limit of %d: %+v %v", size, res, err)
		}
	})
}

// counted makes numbered rows of three columns as they are asked for, and watches the heap.
type counted struct {
	n, next int
	row     [3]source.Value
	text    []byte
	peak    uint64
}

var countedColumns = []source.Column{{Name: "n", Type: source.Integer}, {Name: "text", Type: source.Text}, {Name: "odd", Type: source.Boolean}}

func (c *counted) Columns() []source.Column { return countedColumns }
func (c *counted) Close() error             { return nil }
func (c *counted) Next(context.Context) ([]source.Value, error) {
	if c.next%20_000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.peak = max(c.peak, m.HeapInuse)
	}
	if c.next == c.n {
		return nil, io.EOF
	}
	c.set(c.next)
	c.next++
	return c.row[:], nil
}

func (c *counted) set(n int) {
	c.text = fmt.Appendf(c.text[:0], "row %d", n*7919)
	c.row = [3]source.Value{integer(int64(n)), {Kind: source.KindText, Text: c.text}, {Kind: source.KindBool, Int: int64(n & 1)}}
	if n%5 == 0 {
		c.row[2] = null
	}
}

// suiteHeap is what a writer may hold beside the rows, whatever their number.
const suiteHeap = 64 << 20

func TestSuiteAMillionRowsInBoundedMemory(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		const n = 1_000_000
		path := filepath.Join(t.TempDir(), "file")
		w, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		rows := &counted{n: n}
		res, err := artifact.Write(t.Context(), rows, k.format, w, 0)
		if err := errors.Join(err, w.Close()); err != nil || res.Rows != n {
			t.Fatalf("%+v %v; want %d rows", res, err, n)
		}
		if rows.peak > before.HeapInuse+suiteHeap {
			t.Errorf("the heap grew from %d to %d bytes; want at most %d more", before.HeapInuse, rows.peak, suiteHeap)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, seen := &counted{}, 0
		_, err = k.read(file, countedColumns, func(row []source.Value) error {
			want.set(seen)
			for i, v := range want.row {
				if len(row) != len(want.row) || !k.equal(row[i], v) {
					return fmt.Errorf("row %d, column %d: %s, want %s", seen, i+1, shown(row[i]), shown(v))
				}
			}
			seen++
			return nil
		})
		if err != nil || seen != n {
			t.Fatalf("%d rows came back: %v", seen, err)
		}
	})
}

func TestSuiteSixteenThousandColumns(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		r := &table{rows: make([][]source.Value, 3)}
		for i := range 16_384 {
			c, cells := source.Column{Name: fmt.Sprint("c", i), Type: source.Integer}, [3]source.Value{integer(int64(i)), null, integer(int64(-i))}
			if i%2 == 1 {
				c.Type, cells = source.Text, [3]source.Value{text(fmt.Sprint("t,", i)), text(""), null}
			}
			r.columns = append(r.columns, c)
			for n, v := range cells {
				r.rows[n] = append(r.rows[n], v)
			}
		}
		k.same(t, r)
	})
}

func TestSuiteACellOfAMegabyte(t *testing.T) {
	suite(t, func(t *testing.T, k suiteKind) {
		big := column(source.Text, text("before"), text(strings.Repeat("a\"é☃\n🚚,", 1<<20/14+1)), text("after"))
		if k.cell == 0 {
			k.same(t, big)
			return
		}
		_, err := artifact.Write(t.Context(), big, k.format, io.Discard, 0)
		if f := failuretest.Want(t, err, failure.FileUnsupported); !strings.Contains(strings.ReplaceAll(f.Message, ",", ""), fmt.Sprint(k.cell)) || !strings.Contains(f.Message, "column 2") {
			t.Errorf("%q names not the limit of %d, or not the column", f.Message, k.cell)
		}
	})
}
