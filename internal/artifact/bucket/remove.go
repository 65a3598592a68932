package bucket

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"almanac/internal/failure"
)

// Remover removes objects. Only a function that cleans up holds one.
type Remover struct {
	API interface {
		DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	}
	Bucket string
}

// removeAtOnce is S3's own bound: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
const removeAtOnce = 1000

// Remove removes objects; one that is gone is no error. On an error, file_unavailable, some may be left.
func (r Remover) Remove(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		now := keys[:min(len(keys), removeAtOnce)]
		keys = keys[len(now):]
		in := &s3.DeleteObjectsInput{Bucket: &r.Bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
		for _, k := range now {
			in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: aws.String(k)})
		}
		out, err := r.API.DeleteObjects(ctx, in)
		if err != nil {
			return unavailable(err, "remove", now[0])
		}
		if len(out.Errors) > 0 { // S3 answers 200 and lists what it did not remove
			e := out.Errors[0]
			return failure.New(failure.FileUnavailable, "the object %q could not be removed: %s %s", aws.ToString(e.Key), aws.ToString(e.Code), aws.ToString(e.Message))
		}
	}
	return nil
}
