// Package databucket reads data files out of S3 for sqlite.Fetcher.
package databucket

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// API is the part of S3 that the package uses.
type API interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Bucket is a sqlite.Bucket. Its errors are the SDK's own: those that S3 answered carry their HTTP status.
type Bucket struct {
	API  API
	Name string
}

// Head tells the present version and size of a file.
func (b *Bucket) Head(ctx context.Context, key string) (etag string, size int64, err error) {
	out, err := b.API.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.Name, Key: &key})
	if err != nil {
		return "", 0, err
	}
	return aws.ToString(out.ETag), aws.ToInt64(out.ContentLength), nil
}

// Get opens a file; the caller closes body.
func (b *Bucket) Get(ctx context.Context, key string) (body io.ReadCloser, etag string, err error) {
	out, err := b.API.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &key})
	if err != nil {
		return nil, "", err
	}
	return out.Body, aws.ToString(out.ETag), nil
}
