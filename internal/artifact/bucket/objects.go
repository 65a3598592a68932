package bucket

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ListingAPI is the part of S3 that lists objects.
type ListingAPI interface {
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Objects keeps the files of snapshots: a Store that also lists.
type Objects struct {
	*Store
	Listing ListingAPI
}

// Write streams a new object, as Store.Upload does.
func (o Objects) Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error {
	return o.Upload(ctx, key, mediaType, disposition, produce)
}

// List calls each for every object whose key begins with prefix, in the order of the keys' bytes, as S3 lists them
// (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html). It ends at each's first error, which it
// returns. Failures of its own: file_unavailable.
func (o Objects) List(ctx context.Context, prefix string, each func(key string, size int64) error) error {
	var next *string
	for {
		out, err := o.Listing.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &o.Bucket, Prefix: &prefix, ContinuationToken: next})
		if err != nil {
			return unavailable(err, "list objects below", prefix)
		}
		for _, object := range out.Contents {
			if err := each(aws.ToString(object.Key), aws.ToInt64(object.Size)); err != nil {
				return err
			}
		}
		if next = out.NextContinuationToken; !aws.ToBool(out.IsTruncated) || next == nil {
			return nil
		}
	}
}
