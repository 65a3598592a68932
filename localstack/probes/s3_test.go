//go:build cloud

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestS3PresignedURLExpires(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	if _, err := objects().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("x"), Body: strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	signed, err := s3.NewPresignClient(objects()).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("x")}, s3.WithPresignExpires(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	get := func() int {
		res, err := client.Get(signed.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if status := get(); status != 200 {
		unlike(t, "a fresh link: %d, want 200", status)
	}
	eventually(t, 10*time.Second, func() (bool, string) {
		status := get()
		return status == 403, fmt.Sprintf("status %d of an expired link", status)
	})
}

func TestS3LifecycleDoesNotRun(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	if _, err := objects().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("x"), Body: strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := objects().PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{
		Bucket: &bucket, LifecycleConfiguration: &s3types.BucketLifecycleConfiguration{Rules: []s3types.LifecycleRule{{
			ID: aws.String("past"), Status: s3types.ExpirationStatusEnabled, Filter: &s3types.LifecycleRuleFilter{Prefix: aws.String("")},
			Expiration: &s3types.LifecycleExpiration{Date: aws.Time(time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2))},
		}}},
	}); err != nil {
		t.Fatal(err)
	}
	// On AWS the object's head names its expiry at once:
	// https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-expire-general-considerations.html
	head, err := objects().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String("x")})
	if err != nil || head.Expiration != nil {
		like(t, "the head of an object that a rule expired: %v, expiry %q", err, aws.ToString(head.Expiration))
	}
}
