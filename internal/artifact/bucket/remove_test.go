package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// deletes is DeleteObjects as a test scripts it.
type deletes func(*s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error)

func (d deletes) DeleteObjects(_ context.Context, in *s3.DeleteObjectsInput, _ ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return d(in)
}

func TestRemoveTakesAsManyAtOnceAsS3Does(t *testing.T) {
	cloud := memcloud.NewS3(time.Now)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := cloud.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("files")})
	must(err)
	keys := []string{"gone"}
	for i := range 1001 {
		key := fmt.Sprintf("k/%04d", i)
		_, err := cloud.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key})
		must(err)
		if keys = append(keys, key); i == 7 {
			keys = keys[:len(keys)-1] // this one stays
		}
	}
	must(bucket.Remover{API: cloud, Bucket: "files"}.Remove(t.Context(), keys))
	out, err := cloud.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("files")})
	must(err)
	if len(out.Contents) != 1 || *out.Contents[0].Key != "k/0007" {
		t.Errorf("left: %d objects", len(out.Contents))
	}
	if n := cloud.Requests()["DeleteObjects"]; n != 2 {
		t.Errorf("%d calls for 1001 keys", n)
	}
	must(bucket.Remover{API: cloud, Bucket: "files"}.Remove(t.Context(), nil))
	if _, err := cloud.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("files"), Delete: &types.Delete{}}); err == nil {
		t.Error("a request without keys was taken")
	}
}

func TestRemoveTellsWhatWasNotRemoved(t *testing.T) {
	for name, d := range map[string]deletes{
		"the call fails": func(*s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) { return nil, errors.New("reset") },
		"one is refused": func(in *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) {
			return &s3.DeleteObjectsOutput{Errors: []types.Error{{Key: in.Delete.Objects[0].Key, Code: aws.String("AccessDenied")}}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			failuretest.Want(t, bucket.Remover{API: d, Bucket: "files"}.Remove(t.Context(), []string{"k"}), failure.FileUnavailable)
		})
	}
}
