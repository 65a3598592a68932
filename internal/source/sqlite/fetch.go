package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// Bucket is where data files lie. An error that an HTTP answer caused has a method HTTPStatusCode() int, as the
// errors of the AWS SDK have: 403 and 404 are told apart from what may pass.
type Bucket interface {
	// Head tells the file's present version and size in bytes.
	Head(ctx context.Context, key string) (etag string, size int64, err error)
	// Get opens the file; etag is the version of exactly these bytes. The caller closes body.
	Get(ctx context.Context, key string) (body io.ReadCloser, etag string, err error)
}

// DefaultMaxBytes bounds the folder of fetched files: Lambda's /tmp has 512 MB by default, and sorting needs some too
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-ephemeral-storage.html).
const DefaultMaxBytes = 400 << 20

// staleTemp is the age at which an unfinished download belongs to nobody any more: a Lambda invocation ends after 15
// minutes.
const staleTemp = 15 * time.Minute

// Fetcher keeps data files of a bucket in a folder, each version fetched once. Files that are there already, from an
// earlier process in the same sandbox, are used again. It may be used from several goroutines.
type Fetcher struct {
	Bucket   Bucket
	Dir      string           // a folder for these files alone; made if it is not there
	MaxBytes int64            // all files together; zero means DefaultMaxBytes
	Defaults source.Limits    // of the sources that it makes
	Now      func() time.Time // for the age of unfinished downloads

	once    sync.Once
	turn    chan struct{} // one download or clean-up at a time
	mu      sync.Mutex
	readers map[string]int // open queries by file name
	late    atomic.Int64   // engines that do not stop
}

func (f *Fetcher) init() {
	f.once.Do(func() {
		f.turn = make(chan struct{}, 1)
		f.readers = map[string]int{}
		if f.MaxBytes == 0 {
			f.MaxBytes = DefaultMaxBytes
		}
	})
}

// Source reads the newest version of the file at the time of each Open. It is a source.Viewer as well.
func (f *Fetcher) Source(key string) *fetched { return &fetched{fetcher: f, key: key} }

// Busy reports whether an engine is still at work whose rows were closed, and waited for, before: it is within one long
// call of a function, holds a core and its memory, and nothing but the end of the process is sure to stop it.
func (f *Fetcher) Busy() bool { return f.late.Load() > 0 }

type fetched struct {
	fetcher *Fetcher
	key     string
}

// Open fetches the file if its version is not there yet; the query's time counts from then on only.
func (s *fetched) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	path, release, err := s.fetcher.hold(ctx, s.key)
	if err != nil {
		return nil, err
	}
	return open(ctx, path, q, q.Limits.Or(s.fetcher.Defaults).Or(source.Defaults), release, &s.fetcher.late)
}

// View holds the newest version of the file. Its version is the file's, by its ETag.
func (s *fetched) View(ctx context.Context) (source.View, error) {
	path, release, err := s.fetcher.hold(ctx, s.key)
	if err != nil {
		return nil, err
	}
	_, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), suffix), "-")
	return &view{path: path, version: version, limits: s.fetcher.Defaults, late: &s.fetcher.late, release: release}, nil
}

// hold returns the path of the newest version, which stays until release is called.
func (f *Fetcher) hold(ctx context.Context, key string) (path string, release func(), err error) {
	f.init()
	etag, size, err := f.Bucket.Head(ctx, key)
	if err != nil {
		return "", nil, bucketFailure(key, err)
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return "", nil, failure.Wrap(failure.SourceUnavailable, ctx.Err(), "the data file %s was not fetched in time", name(key))
	}
	file := fileName(key, etag)
	if !f.there(file, size) {
		if file, err = f.download(ctx, key, etag, size); err != nil {
			return "", nil, err
		}
	}
	f.mu.Lock()
	f.readers[file]++
	f.mu.Unlock()
	f.dropOthers(key, file)
	return filepath.Join(f.Dir, file), sync.OnceFunc(func() { f.release(file) }), nil
}

func (f *Fetcher) release(file string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers[file]--; f.readers[file] == 0 {
		delete(f.readers, file)
	}
}

func (f *Fetcher) busy(file string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readers[file] > 0
}

func (f *Fetcher) there(file string, size int64) bool {
	info, err := os.Stat(filepath.Join(f.Dir, file))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

const (
	suffix = ".sqlite"
	temp   = ".part"
)

// fileName names a version; its first half names the key.
func fileName(key, etag string) string { return digest(key) + "-" + digest(etag) + suffix }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// download brings the file in under a name that no reader looks for, and renames it when it is whole.
func (f *Fetcher) download(ctx context.Context, key, etag string, size int64) (file string, err error) {
	if size > f.MaxBytes {
		return "", failure.New(failure.SourceUnknown, "the data file %s has %d bytes, more than the %d that fit here: make it smaller, or give the function more storage", name(key), size, f.MaxBytes)
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return "", failure.Wrap(failure.SourceUnavailable, err, "the folder for data files could not be made")
	}
	if err := f.makeRoom(size); err != nil {
		return "", err
	}
	body, got, err := f.Bucket.Get(ctx, key)
	if err != nil {
		return "", bucketFailure(key, err)
	}
	defer body.Close()
	part, err := os.CreateTemp(f.Dir, "*"+temp)
	if err != nil {
		return "", failure.Wrap(failure.SourceUnavailable, err, "the data file %s could not be stored", name(key))
	}
	defer func() {
		if err != nil {
			part.Close()
			os.Remove(part.Name())
		}
	}()
	n, err := io.Copy(part, io.LimitReader(body, f.MaxBytes+1))
	switch {
	case err != nil:
		return "", failure.Wrap(failure.SourceUnavailable, err, "the data file %s broke off after %d bytes", name(key), n)
	case n > f.MaxBytes:
		return "", failure.New(failure.SourceUnknown, "the data file %s has more than the %d bytes that fit here: make it smaller, or give the function more storage", name(key), f.MaxBytes)
	case got == etag && n != size:
		return "", failure.New(failure.SourceUnavailable, "the data file %s came with %d bytes instead of %d", name(key), n, size)
	}
	if err = part.Close(); err != nil {
		return "", failure.Wrap(failure.SourceUnavailable, err, "the data file %s could not be stored", name(key))
	}
	file = fileName(key, got) // a newer version than Head's, if one came between
	if err = os.Rename(part.Name(), filepath.Join(f.Dir, file)); err != nil {
		return "", failure.Wrap(failure.SourceUnavailable, err, "the data file %s could not be stored", name(key))
	}
	return file, nil
}

// makeRoom removes files that no query reads until size more bytes fit.
func (f *Fetcher) makeRoom(size int64) error {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return failure.Wrap(failure.SourceUnavailable, err, "the folder of data files could not be read")
	}
	var used int64
	var idle []os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch {
		case strings.HasSuffix(e.Name(), temp) && f.Now().Sub(info.ModTime()) > staleTemp:
			os.Remove(filepath.Join(f.Dir, e.Name()))
			continue
		case strings.HasSuffix(e.Name(), suffix) && !f.busy(e.Name()):
			idle = append(idle, info)
		}
		used += info.Size()
	}
	for len(idle) > 0 && used+size > f.MaxBytes {
		if os.Remove(filepath.Join(f.Dir, idle[0].Name())) == nil {
			used -= idle[0].Size()
		}
		idle = idle[1:]
	}
	if used+size > f.MaxBytes {
		return failure.New(failure.SourceUnavailable, "a data file of %d bytes must wait: running queries hold %d of the %d bytes that fit here", size, used, f.MaxBytes)
	}
	return nil
}

// dropOthers removes the key's other versions that no query reads.
func (f *Fetcher) dropOthers(key, file string) {
	others, _ := filepath.Glob(filepath.Join(f.Dir, digest(key)+"-*"+suffix))
	for _, path := range others {
		if other := filepath.Base(path); other != file && !f.busy(other) {
			os.Remove(path)
		}
	}
}

func name(key string) string { return fmt.Sprintf("%q", failure.Cut(key, 120)) }

// bucketFailure tells apart what the bucket answered.
func bucketFailure(key string, err error) *failure.Failure {
	var answered interface{ HTTPStatusCode() int }
	if errors.As(err, &answered) {
		switch answered.HTTPStatusCode() {
		case 403: // also S3's answer for a missing key to one who may not list the bucket
			return failure.Wrap(failure.SourceAccessDenied, err, "the bucket refused to hand out the data file %s: give the function's role s3:GetObject on it and s3:ListBucket on its bucket", name(key))
		case 404:
			return failure.Wrap(failure.SourceUnknown, err, "the bucket has no data file %s: upload it, or correct the source's key", name(key))
		}
	}
	return failure.Wrap(failure.SourceUnavailable, err, "the data file %s could not be fetched", name(key))
}
