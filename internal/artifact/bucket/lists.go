package bucket

import (
	"bytes"
	"context"
	"io"

	"almanac/internal/failure"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ListAPI is the part of S3 that lists of recipients use.
type ListAPI interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Lists keeps lists of recipients under the SHA-256 of their bytes. Failures: file_unavailable; a list that is not there
// is file_inconsistent, since a row that names it was written after it.
type Lists struct {
	API    ListAPI
	Bucket string
}

// PutList writes the object whether it is there or not: its name says what it must hold, so that a second write changes
// nothing, and one over bytes that somebody changed mends them.
func (l Lists) PutList(ctx context.Context, hash string, b []byte) error {
	key := schema.ListKey(hash)
	_, err := l.API.PutObject(ctx, &s3.PutObjectInput{Bucket: &l.Bucket, Key: &key, Body: bytes.NewReader(b),
		ContentLength: aws.Int64(int64(len(b))), ContentType: aws.String("application/json")})
	if err != nil {
		return unavailable(err, "keep the list", key)
	}
	return nil
}

// List reads at most limit bytes.
func (l Lists) List(ctx context.Context, hash string, limit int) ([]byte, error) {
	key := schema.ListKey(hash)
	out, err := l.API.GetObject(ctx, &s3.GetObjectInput{Bucket: &l.Bucket, Key: &key})
	switch {
	case status(err) == 404:
		return nil, failure.Wrap(failure.FileInconsistent, err, "the list %q is not there any more", key)
	case err != nil:
		return nil, unavailable(err, "read the list", key)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, int64(limit)))
	if err != nil {
		return nil, unavailable(err, "read the list", key)
	}
	return b, nil
}
