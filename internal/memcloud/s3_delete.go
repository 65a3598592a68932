package memcloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// DeleteObjects deletes at most 1,000 objects; one that is not there counts as deleted, and none or more are a malformed
// request. https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
func (s *S3) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, _ ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "DeleteObjects", in, func(in *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.bucket("DeleteObjects", in.Bucket); err != nil {
			return nil, err
		}
		if in.Delete == nil || len(in.Delete.Objects) == 0 || len(in.Delete.Objects) > 1000 {
			return nil, apiError("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
		}
		out := &s3.DeleteObjectsOutput{}
		for _, o := range in.Delete.Objects {
			s.set(*in.Bucket, aws.ToString(o.Key), nil)
			if !aws.ToBool(in.Delete.Quiet) {
				out.Deleted = append(out.Deleted, types.DeletedObject{Key: o.Key})
			}
		}
		return out, nil
	})
}
