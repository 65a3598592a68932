package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
)

type object struct {
	etag string
	body []byte
}

// memBucket holds objects in memory and counts what is fetched.
type memBucket struct {
	mu      sync.Mutex
	objects map[string]object
	gets    int
	headErr error
	getErr  error
	broken  error  // comes after half of the body
	onGet   func() // before the object is looked up
}

type status int

func (s status) Error() string       { return fmt.Sprintf("answer %d", int(s)) }
func (s status) HTTPStatusCode() int { return int(s) }

func (b *memBucket) Head(_ context.Context, key string) (string, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if b.headErr != nil || !ok {
		return "", 0, errors.Join(b.headErr, status(404))
	}
	return o.etag, int64(len(o.body)), nil
}

func (b *memBucket) Get(_ context.Context, key string) (io.ReadCloser, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.onGet != nil {
		b.onGet()
	}
	b.gets++
	if b.getErr != nil {
		return nil, "", b.getErr
	}
	o := b.objects[key]
	if b.broken != nil {
		return io.NopCloser(io.MultiReader(bytes.NewReader(o.body[:len(o.body)/2]), failing{b.broken})), o.etag, nil
	}
	return io.NopCloser(bytes.NewReader(o.body)), o.etag, nil
}

func (b *memBucket) put(key, etag string, body []byte) { b.objects[key] = object{etag, body} }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// version makes the bytes of a database whose table v holds one number.
func version(t testing.TB, n int) []byte {
	body, err := os.ReadFile(database(t, filepath.Join(t.TempDir(), "v.sqlite"), "CREATE TABLE v (n)", fmt.Sprintf("INSERT INTO v VALUES (%d)", n)))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func newFetcher(t testing.TB) (*Fetcher, *memBucket) {
	b := &memBucket{objects: map[string]object{}}
	now := time.Now()
	return &Fetcher{Bucket: b, Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return now }}, b
}

func (f *Fetcher) files(t testing.TB) []string {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func number(ctx context.Context, src source.Source) (int64, error) {
	out, err := sourcetest.Read(ctx, src, source.Query{SQL: "SELECT n FROM v"})
	if err != nil {
		return 0, err
	}
	return out.Rows[0][0].Int, nil
}

func TestFetchedOncePerVersion(t *testing.T) {
	f, b := newFetcher(t)
	b.put("k", "e1", version(t, 1))
	src := f.Source("k")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if n, err := number(t.Context(), src); n != 1 || err != nil {
				t.Errorf("%d %v", n, err)
			}
		})
	}
	group.Wait()
	if b.gets != 1 {
		t.Fatalf("fetched %d times for one version", b.gets)
	}
	b.put("k", "e2", version(t, 2))
	if n, err := number(t.Context(), src); n != 2 || err != nil || b.gets != 2 {
		t.Fatalf("%d %v after %d fetches; want the second version after 2", n, err, b.gets)
	}
	if files := f.files(t); len(files) != 1 {
		t.Fatalf("the old version was kept: %v", files)
	}
	again := &Fetcher{Bucket: b, Dir: f.Dir, Now: f.Now}
	if n, err := number(t.Context(), again.Source("k")); n != 2 || err != nil || b.gets != 2 {
		t.Fatalf("%d %v after %d fetches; a new process should use the file that is there", n, err, b.gets)
	}
}

func TestVersionInUseStays(t *testing.T) {
	f, b := newFetcher(t)
	b.put("k", "e1", version(t, 1))
	rows, err := f.Source("k").Open(t.Context(), source.Query{SQL: "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c LIMIT 100000) SELECT (SELECT n FROM v WHERE i > 0) FROM c"})
	if err != nil {
		t.Fatal(err)
	}
	b.put("k", "e2", version(t, 2))
	if n, err := number(t.Context(), f.Source("k")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if files := f.files(t); len(files) != 2 {
		t.Fatalf("%v: the version in use should stay beside the new one", files)
	}
	count := 0
	for {
		row, err := rows.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil || row[0].Int != 1 {
			t.Fatal(row, err)
		}
		count++
	}
	if rows.Close(); count != 100000 {
		t.Fatalf("%d rows", count)
	}
	if _, err := number(t.Context(), f.Source("k")); err != nil {
		t.Fatal(err)
	}
	if files := f.files(t); len(files) != 1 {
		t.Fatalf("%v: the old version should go once its reader is closed", files)
	}
}

func TestVersionThatChangesBetweenHeadAndGet(t *testing.T) {
	f, b := newFetcher(t)
	b.put("k", "e1", version(t, 1))
	newer := version(t, 2)
	b.onGet = func() { b.put("k", "e2", newer) }
	if n, err := number(t.Context(), f.Source("k")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := number(t.Context(), f.Source("k")); n != 2 || err != nil || b.gets != 1 {
		t.Fatalf("%d %v after %d fetches, want the newer version kept under its own name", n, err, b.gets)
	}
}

func TestRoomIsBounded(t *testing.T) {
	f, b := newFetcher(t)
	body := version(t, 1)
	f.MaxBytes = int64(len(body)) * 2
	for _, k := range []string{"a", "b", "c"} {
		b.put(k, "e", body)
		if _, err := number(t.Context(), f.Source(k)); err != nil {
			t.Fatal(err)
		}
	}
	if files := f.files(t); len(files) != 2 {
		t.Fatalf("%d files, want 2: %v", len(files), files)
	}
	t.Run("a file too large for the folder", func(t *testing.T) {
		b.put("big", "e", make([]byte, f.MaxBytes+1))
		_, err := number(t.Context(), f.Source("big"))
		if w := failuretest.Want(t, err, failure.SourceUnknown); !strings.Contains(w.Message, "big") || !strings.Contains(w.Message, fmt.Sprint(f.MaxBytes)) {
			t.Fatal(w.Message)
		}
	})
	t.Run("room held by running queries", func(t *testing.T) {
		for _, k := range []string{"a", "b"} {
			path, release, err := f.hold(t.Context(), k)
			if err != nil {
				t.Fatal(path, err)
			}
			defer release()
		}
		b.put("d", "e", body)
		_, err := number(t.Context(), f.Source("d"))
		failuretest.Want(t, err, failure.SourceUnavailable)
	})
}

func TestFetchFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*memBucket)
		code failure.Code
	}{
		{"404 at head", func(b *memBucket) { delete(b.objects, "k") }, failure.SourceUnknown},
		{"403 at head", func(b *memBucket) { b.headErr = status(403) }, failure.SourceAccessDenied},
		{"500 at head", func(b *memBucket) { b.headErr = status(500) }, failure.SourceUnavailable},
		{"404 at get", func(b *memBucket) { b.getErr = status(404) }, failure.SourceUnknown},
		{"403 at get", func(b *memBucket) { b.getErr = fmt.Errorf("operation: %w", status(403)) }, failure.SourceAccessDenied},
		{"no answer", func(b *memBucket) { b.getErr = errors.New("connection reset") }, failure.SourceUnavailable},
		{"broken off", func(b *memBucket) { b.broken = io.ErrUnexpectedEOF }, failure.SourceUnavailable},
		{"ends early", func(b *memBucket) { b.broken = io.EOF }, failure.SourceUnavailable},
		{"not a database", func(b *memBucket) { b.put("k", "e3", []byte(strings.Repeat("a,b\n", 100))) }, failure.SourceUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, b := newFetcher(t)
			good := version(t, 1)
			b.put("k", "e1", good)
			c.set(b)
			_, err := number(t.Context(), f.Source("k"))
			failuretest.Want(t, err, c.code)
			*b = memBucket{objects: map[string]object{"k": {"e1", good}}}
			if n, err := number(t.Context(), f.Source("k")); n != 1 || err != nil {
				t.Fatalf("%d %v once the cause is gone", n, err)
			}
			for _, file := range f.files(t) {
				if strings.HasSuffix(file, temp) {
					t.Fatalf("%s was left behind", file)
				}
			}
		})
	}
}

func TestUnfinishedDownloadsAreRemoved(t *testing.T) {
	f, b := newFetcher(t)
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(f.Dir, "1"+temp), filepath.Join(f.Dir, "2"+temp)
	for path, age := range map[string]time.Duration{old: staleTemp + time.Minute, young: time.Minute} {
		if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chtimes(path, time.Time{}, f.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	b.put("k", "e1", version(t, 1))
	if _, err := number(t.Context(), f.Source("k")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("a download that belongs to nobody was kept")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("another process's download was removed")
	}
}

func TestWaitingForADownloadEndsWithItsContext(t *testing.T) {
	f, b := newFetcher(t)
	b.put("k", "e1", version(t, 1))
	f.init()
	f.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Source("k").Open(ctx, source.Query{SQL: "SELECT n FROM v"})
	failuretest.Want(t, err, failure.SourceUnavailable)
}

// TestAnEngineThatDoesNotStopIsReported: the caller has its time-out, and whoever owns the process can see that the
// engine goes on, until it does not.
func TestAnEngineThatDoesNotStopIsReported(t *testing.T) {
	f, b := newFetcher(t)
	b.put("data", "1", version(t, 1))
	opened, err := f.Source("data").Open(t.Context(), source.Query{Limits: source.Limits{Timeout: 50 * time.Millisecond},
		SQL: "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened.Next(t.Context())
	failuretest.Want(t, err, failure.QueryTimeout)
	if f.Busy() {
		t.Error("late before anybody has waited for it")
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	opened.(*rows).overdue() // as a second Close would: counted once
	if !f.Busy() {
		t.Error("the engine that spins is not reported")
	}
	if n, err := number(t.Context(), f.Source("data")); err != nil || n != 1 {
		t.Errorf("another query meanwhile: %d, %v", n, err)
	}
	began := time.Now()
	<-opened.(*rows).done
	t.Logf("it went on for %s", time.Since(began))
	if f.Busy() {
		t.Error("reported after its end")
	}
}

// A view keeps its version of the file while the source goes on to the next one, and lets go of it when it is closed.
func TestViewHoldsItsVersion(t *testing.T) {
	f, b := newFetcher(t)
	b.put("k", "e1", version(t, 1))
	v, err := f.Source("k").View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := v.Version()
	b.put("k", "e2", version(t, 2))
	next, err := f.Source("k").View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if next.Version() == first || first == "" {
		t.Fatalf("versions %q and %q", first, next.Version())
	}
	for _, c := range []struct {
		v    source.View
		want int64
	}{{v, 1}, {next, 2}, {v, 1}} {
		if n, err := number(t.Context(), c.v); n != c.want || err != nil {
			t.Fatalf("%d %v, want %d", n, err, c.want)
		}
	}
	v.Close()
	if n, err := number(t.Context(), f.Source("k")); n != 2 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	if files := f.files(t); len(files) != 1 {
		t.Fatalf("the closed view's file stays: %v", files)
	}
	if _, err := f.Source("nowhere").View(t.Context()); err == nil {
		t.Fatal("a file that is not there was held")
	} else {
		failuretest.Want(t, err, failure.SourceUnknown)
	}
}
