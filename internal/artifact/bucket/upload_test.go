package bucket_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/artifact/bucket/buckettest"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
)

const part = 1000

func setUp() (*bucket.Store, *buckettest.S3) {
	fake := buckettest.New()
	fake.MinPart = part
	return &bucket.Store{API: fake, Bucket: "files", PartSize: part, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}, fake
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/251)
	}
	return b
}

// in writes b in pieces of unlike sizes.
func in(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for step := 1; len(b) > 0; step = step*3 + 1 {
			n := min(step, len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
}

func upload(t *testing.T, s *bucket.Store, b []byte) error {
	t.Helper()
	return s.Upload(t.Context(), "k", "text/csv", `attachment; filename="a.csv"`, in(b))
}

// absent fails unless nothing is published and nothing lies around.
func absent(t *testing.T, fake *buckettest.S3) {
	t.Helper()
	if o, ok := fake.Object("files", "k"); ok {
		t.Errorf("an object of %d bytes was published", len(o.Body))
	}
	if n := fake.Unfinished(); n != 0 {
		t.Errorf("%d unfinished uploads left", n)
	}
}

func TestUploadBySize(t *testing.T) {
	for size, calls := range map[int]int{0: 1, 1: 1, part - 1: 1, part: 1, part + 1: 4, 2 * part: 4, 2*part + 1: 5, 5*part + 17: 8} {
		s, fake := setUp()
		want := content(size)
		if err := upload(t, s, want); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		o, _ := fake.Object("files", "k")
		if !bytes.Equal(o.Body, want) || o.ContentType != "text/csv" || o.Disposition != `attachment; filename="a.csv"` {
			t.Errorf("%d bytes came out as %d with %q and %q", size, len(o.Body), o.ContentType, o.Disposition)
		}
		if got := fake.Calls(); len(got) != calls || fake.Unfinished() != 0 {
			t.Errorf("%d bytes took %v", size, got)
		}
	}
}

func TestF1AnswerLostAtEachCall(t *testing.T) {
	for _, size := range []int{part / 2, 3*part + 5} {
		for n := 1; ; n++ {
			s, fake := setUp()
			fake.Fault = func(call int, _ string) *buckettest.Fault {
				if call == n {
					return &buckettest.Fault{Err: buckettest.Status(0), Applied: true}
				}
				return nil
			}
			err := upload(t, s, content(size))
			last := fake.Calls()
			if len(last) < n {
				break // every call has had its turn
			}
			switch name := last[n-1]; name {
			case "PutObject", "CompleteMultipartUpload":
				if o, _ := fake.Object("files", "k"); err != nil || !bytes.Equal(o.Body, content(size)) {
					t.Errorf("%d bytes, answer of %s lost: %v; the object is there and equal, so this is success", size, name, err)
				}
			default:
				failuretest.Want(t, err, failure.FileUnavailable)
				if _, ok := fake.Object("files", "k"); ok {
					t.Errorf("%d bytes, answer of %s lost: published", size, name)
				}
			}
		}
	}
}

func TestF1PreconditionFailed(t *testing.T) {
	for _, size := range []int{part / 2, 3*part + 5} {
		s, fake := setUp()
		want := content(size)
		fake.Put("files", "k", want)
		if err := upload(t, s, want); err != nil {
			t.Errorf("%d bytes, our own earlier try is equal: %v, want success", size, err)
		}
		if n := fake.Unfinished(); n != 0 {
			t.Errorf("%d unfinished uploads left", n)
		}
		other := content(size)
		other[size-1]++
		for name, stored := range map[string][]byte{"same size": other, "other size": want[1:]} {
			fake.Put("files", "k", stored)
			err := upload(t, s, want)
			failuretest.Want(t, err, failure.FileInconsistent)
			if o, _ := fake.Object("files", "k"); !bytes.Equal(o.Body, stored) || fake.Unfinished() != 0 {
				t.Errorf("%s: the stored object was touched, or parts left", name)
			}
		}
	}
}

func TestF1Conflict(t *testing.T) {
	conflicts := func(most int) (*bucket.Store, *buckettest.S3) {
		s, fake := setUp()
		fake.Fault = func(call int, name string) *buckettest.Fault {
			if name == "PutObject" && call <= most {
				return &buckettest.Fault{Err: buckettest.Status(409)}
			}
			return nil
		}
		return s, fake
	}
	t.Run("passes", func(t *testing.T) {
		s, fake := conflicts(2)
		if err := upload(t, s, content(10)); err != nil || len(fake.Calls()) != 3 {
			t.Fatalf("%v after %v", err, fake.Calls())
		}
	})
	t.Run("stays", func(t *testing.T) {
		s, fake := conflicts(100)
		if f := failuretest.Want(t, upload(t, s, content(10)), failure.FileUnavailable); !f.Passing() {
			t.Fatal("a conflict may pass")
		}
		absent(t, fake)
	})
	t.Run("of a completion", func(t *testing.T) {
		s, fake := setUp()
		fake.Fault = func(_ int, name string) *buckettest.Fault {
			if name == "CompleteMultipartUpload" {
				return &buckettest.Fault{Err: buckettest.Status(409)}
			}
			return nil
		}
		failuretest.Want(t, upload(t, s, content(3*part)), failure.FileUnavailable)
		absent(t, fake)
	})
}

func TestF3NothingIsPublishedWhereverACallFails(t *testing.T) {
	for _, code := range []int{403, 500} {
		for _, size := range []int{part / 2, part + 1, 4*part + 5} {
			for n := 1; ; n++ {
				s, fake := setUp()
				failed := ""
				fake.Fault = func(call int, name string) *buckettest.Fault {
					if call == n {
						failed = name
						return &buckettest.Fault{Err: fmt.Errorf("operation: %w", buckettest.Status(code))}
					}
					return nil
				}
				err := upload(t, s, content(size))
				if failed == "" {
					break
				}
				t.Run(fmt.Sprintf("%d at call %d of %d bytes, %s", code, n, size, failed), func(t *testing.T) {
					failuretest.Want(t, err, failure.FileUnavailable)
					absent(t, fake)
				})
			}
		}
	}
}

// lateWriter buffers everything, as a compressor does, and fails when it is flushed.
type lateWriter struct {
	w    io.Writer
	rows int
}

func (l *lateWriter) Write(p []byte) (int, error) { l.rows++; return l.w.Write(p) }
func (l *lateWriter) Close() error                { return errors.New("disk full at close") }

func TestF3ProducerThatFailsAtItsEnd(t *testing.T) {
	late := errors.New("disk full at close")
	for _, size := range []int{0, part / 2, part, 3*part + 1} {
		s, fake := setUp()
		err := s.Upload(t.Context(), "k", "text/csv", "attachment", func(w io.Writer) error {
			l := &lateWriter{w: w}
			if err := in(content(size))(l); err != nil {
				return err
			}
			return l.Close()
		})
		if err == nil || err.Error() != late.Error() {
			t.Errorf("%d bytes: %v, want the producer's own error", size, err)
		}
		absent(t, fake)
	}
}

func TestProducerThatHidesAWriteError(t *testing.T) {
	s, fake := setUp()
	fake.Fault = func(_ int, name string) *buckettest.Fault {
		if name == "UploadPart" {
			return &buckettest.Fault{Err: buckettest.Status(500)}
		}
		return nil
	}
	err := s.Upload(t.Context(), "k", "text/csv", "attachment", func(w io.Writer) error {
		_ = in(content(9 * part))(w)
		return nil
	})
	failuretest.Want(t, err, failure.FileUnavailable)
	absent(t, fake)
}

func TestProducerThatPanicsOrIsCancelled(t *testing.T) {
	t.Run("panic", func(t *testing.T) {
		s, fake := setUp()
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
			absent(t, fake)
		}()
		_ = s.Upload(t.Context(), "k", "text/csv", "attachment", func(w io.Writer) error {
			_ = in(content(3 * part))(w)
			panic("a bug")
		})
	})
	t.Run("cancel", func(t *testing.T) {
		s, fake := setUp()
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Upload(ctx, "k", "text/csv", "attachment", func(w io.Writer) error {
			if err := in(content(3 * part))(w); err != nil {
				return err
			}
			cancel()
			return in(content(3 * part))(w)
		})
		failuretest.Want(t, err, failure.FileUnavailable)
		absent(t, fake)
		if calls := fake.Calls(); calls[len(calls)-1] != "AbortMultipartUpload" {
			t.Errorf("%v does not end with the clean-up", calls)
		}
	})
}

func TestTooLarge(t *testing.T) {
	s, fake := setUp()
	s.MaxBytes = 2*part + 1
	if err := upload(t, s, content(2*part+1)); err != nil {
		t.Fatal(err)
	}
	s, fake = setUp()
	s.MaxBytes = 2 * part
	f := failuretest.Want(t, upload(t, s, content(2*part+1)), failure.FileTooLarge)
	if !strings.Contains(f.Message, "2000") {
		t.Error(f.Message)
	}
	absent(t, fake)
}

func TestPartsGrowWithTheLimit(t *testing.T) {
	s, fake := setUp()
	s.MaxBytes = 10_000 << 20 // 10,000 parts of 1 MiB
	if err := upload(t, s, content(3<<20+1)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range fake.Calls() {
		if c == "UploadPart" {
			n++
		}
	}
	if n != 4 {
		t.Fatalf("%d parts for 3 MiB and a byte, want 4 of up to 1 MiB", n)
	}
}

func TestRead(t *testing.T) {
	s, fake := setUp()
	want := content(5000)
	sum := sha256.Sum256(want)
	digest := hex.EncodeToString(sum[:])
	fake.Put("files", "k", want)
	if got, err := s.ReadAll(t.Context(), "k", 5000, digest); err != nil || !bytes.Equal(got, want) {
		t.Fatal(err)
	}
	body, size, err := s.Open(t.Context(), "k")
	if err != nil || size != 5000 {
		t.Fatal(size, err)
	}
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, want) {
		t.Fatal(err)
	}
	changed := slices.Clone(want)
	changed[0]++
	for name, stored := range map[string][]byte{"changed": changed, "longer": append(slices.Clone(want), 0), "shorter": want[:4999]} {
		fake.Put("files", "k", stored)
		_, err := s.ReadAll(t.Context(), "k", 5000, digest)
		if f := failuretest.Want(t, err, failure.FileInconsistent); !strings.Contains(f.Message, digest) {
			t.Errorf("%s: %q", name, f.Message)
		}
	}
	_, _, err = s.Open(t.Context(), "nowhere")
	failuretest.Want(t, err, failure.FileInconsistent)
	for _, code := range []int{0, 403, 500} {
		fake.Fault = func(int, string) *buckettest.Fault { return &buckettest.Fault{Err: buckettest.Status(code)} }
		_, err := s.ReadAll(t.Context(), "k", 5000, digest)
		failuretest.Want(t, err, failure.FileUnavailable)
	}
}
