// Package bucket keeps files in S3: streamed in with flat memory, published at once or not at all, never overwritten.
package bucket

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"almanac/internal/failure"
)

// API is the part of S3 that the package uses.
type API interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	CreateMultipartUpload(context.Context, *s3.CreateMultipartUploadInput, ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// maxParts is S3's own bound: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const maxParts = 10_000

// DefaultPartSize is also the size up to which a file goes in one PutObject. An upload holds two parts in memory.
const DefaultPartSize = 8 << 20

// Store is one bucket. Its fields are set before it is used and then only read.
type Store struct {
	API      API
	Bucket   string
	PartSize int64 // zero means DefaultPartSize; S3 wants 5 MiB at least
	MaxBytes int64 // the largest file; parts grow so that 10,000 of them hold it. Zero means what fits into 10,000 parts
	// Pause waits between tries of a conflicting put; nil means a timer.
	Pause func(context.Context, time.Duration) error
}

func (s *Store) partSize() int64 {
	size := s.PartSize
	if size == 0 {
		size = DefaultPartSize
	}
	if needed := (s.MaxBytes + maxParts - 1) / maxParts; needed > size {
		const mib = 1 << 20
		size = (needed + mib - 1) / mib * mib
	}
	return size
}

func (s *Store) maxBytes() int64 {
	if s.MaxBytes > 0 {
		return s.MaxBytes
	}
	return s.partSize() * maxParts
}

func (s *Store) pause(ctx context.Context, d time.Duration) error {
	if s.Pause != nil {
		return s.Pause(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// status is the HTTP status of S3's answer, 0 if none came.
func status(err error) int {
	var answered interface{ HTTPStatusCode() int }
	if errors.As(err, &answered) {
		return answered.HTTPStatusCode()
	}
	return 0
}

func unavailable(err error, what, key string) *failure.Failure {
	if status(err) == 403 {
		return failure.Wrap(failure.FileUnavailable, err, "S3 refused to %s %q: the function's role lacks a right on the bucket or its key", what, failure.Cut(key, 200))
	}
	return failure.Wrap(failure.FileUnavailable, err, "S3 could not %s %q", what, failure.Cut(key, 200))
}
