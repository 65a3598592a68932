package memcloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func newTestS3(t testing.TB) *S3 {
	t.Helper()
	s := NewS3(newClock().read)
	_, err := s.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("files")})
	must(t, err)
	return s
}

func upObject(s *S3, key, body string) error {
	_, err := s.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("files"), Key: aws.String(key), Body: strings.NewReader(body)})
	return err
}

func wantStatus(t testing.TB, err error, status int, code string) {
	t.Helper()
	wantCode(t, err, code, "")
	var response *awshttp.ResponseError
	if !errors.As(err, &response) || response.HTTPStatusCode() != status {
		t.Fatalf("got %v, want status %d", err, status)
	}
}

func TestObjects(t *testing.T) {
	s := newTestS3(t)
	put, err := s.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("files"), Key: aws.String("a/b.csv"), Body: strings.NewReader("hello world"), ContentType: aws.String("text/csv"),
		ContentDisposition: aws.String(`attachment; filename="b.csv"`), Metadata: map[string]string{"Run": "1"}, ContentLength: aws.Int64(11),
		ChecksumSHA256: aws.String("uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="),
	})
	must(t, err)
	if *put.ETag != `"5eb63bbbe01eeed093cb22bb8f5acdc3"` {
		t.Error(*put.ETag)
	}
	got, err := s.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv")})
	must(t, err)
	body, err := io.ReadAll(got.Body)
	must(t, err)
	head, err := s.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv")})
	must(t, err)
	if string(body) != "hello world" || *got.ContentType != "text/csv" || got.Metadata["run"] != "1" || *head.ContentDisposition != *got.ContentDisposition || *head.ContentLength != 11 || *head.ETag != *put.ETag || !head.LastModified.Equal(newClock().now) {
		t.Errorf("%q %+v %+v", body, got, head)
	}
	for text, want := range map[string]string{"bytes=0-4": "hello", "bytes=6-": "world", "bytes=-3": "rld", "bytes=6-99": "world", "bytes=-99": "hello world", "bytes=x": "hello world"} {
		out, err := s.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv"), Range: aws.String(text)})
		must(t, err)
		if body, _ := io.ReadAll(out.Body); string(body) != want || *out.ContentLength != int64(len(want)) {
			t.Errorf("%s is %q", text, body)
		}
	}
	_, err = s.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv"), Range: aws.String("bytes=11-")})
	wantStatus(t, err, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	for range 2 {
		_, err = s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv")})
		must(t, err)
	}
	_, err = s.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv")})
	var missing *types.NoSuchKey
	if wantStatus(t, err, http.StatusNotFound, "NoSuchKey"); !errors.As(err, &missing) {
		t.Error("NoSuchKey is not typed")
	}
	_, err = s.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String("files"), Key: aws.String("a/b.csv")})
	wantStatus(t, err, http.StatusNotFound, "NotFound")
	_, err = s.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("nope"), Key: aws.String("a")})
	wantStatus(t, err, http.StatusNotFound, "NoSuchBucket")
}

func TestConditionalPut(t *testing.T) {
	s := newTestS3(t)
	put := func(key, match string) error {
		_, err := s.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("files"), Key: aws.String(key), Body: strings.NewReader("x"), IfNoneMatch: aws.String(match)})
		return err
	}
	must(t, put("a", "*"))
	wantStatus(t, put("a", "*"), http.StatusPreconditionFailed, "PreconditionFailed")
	wantStatus(t, put("b", `"etag"`), http.StatusNotImplemented, "NotImplemented")
	wantStatus(t, ConditionalConflict(), http.StatusConflict, "ConditionalRequestConflict")
	if s.PutClass() != 3 {
		t.Errorf("%d requests counted: refused ones are billed too", s.PutClass())
	}
}

func TestRefusedObjects(t *testing.T) {
	s := newTestS3(t)
	for name, c := range map[string]struct {
		in   s3.PutObjectInput
		code string
	}{
		"no key":     {s3.PutObjectInput{}, "InvalidArgument"},
		"long key":   {s3.PutObjectInput{Key: aws.String(strings.Repeat("k", 1025))}, "KeyTooLongError"},
		"bad length": {s3.PutObjectInput{Key: aws.String("k"), Body: strings.NewReader("x"), ContentLength: aws.Int64(2)}, "IncompleteBody"},
		"bad MD5":    {s3.PutObjectInput{Key: aws.String("k"), ContentMD5: aws.String("x")}, "BadDigest"},
		"bad SHA":    {s3.PutObjectInput{Key: aws.String("k"), ChecksumSHA256: aws.String("x")}, "BadDigest"},
	} {
		c.in.Bucket = aws.String("files")
		_, err := s.PutObject(ctx, &c.in)
		t.Log(name)
		wantCode(t, err, c.code, "")
	}
	_, err := s.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("files"), Key: aws.String("k"), Body: iotest.ErrReader(errCut)})
	if !errors.Is(err, errCut) || len(s.buckets["files"]) != 0 {
		t.Errorf("got %v", err)
	}
	_, err = s.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("files")})
	wantCode(t, err, "BucketAlreadyOwnedByYou", "")
	_, err = s.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("x")})
	wantCode(t, err, "InvalidBucketName", "")
}

func TestMultipart(t *testing.T) {
	s := newTestS3(t)
	begin := func(key string) *string {
		out, err := s.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String("files"), Key: aws.String(key), ContentType: aws.String("text/csv")})
		must(t, err)
		return out.UploadId
	}
	part := func(key string, id *string, n int32, size int) types.CompletedPart {
		out, err := s.UploadPart(ctx, &s3.UploadPartInput{Bucket: aws.String("files"), Key: aws.String(key), UploadId: id, PartNumber: aws.Int32(n), Body: bytes.NewReader(make([]byte, size))})
		must(t, err)
		return types.CompletedPart{PartNumber: aws.Int32(n), ETag: out.ETag}
	}
	complete := func(key string, id *string, match *string, parts ...types.CompletedPart) error {
		_, err := s.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: aws.String("files"), Key: aws.String(key), UploadId: id, IfNoneMatch: match, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
		return err
	}
	id := begin("big")
	one, two, three := part("big", id, 1, minPart), part("big", id, 2, minPart-1), part("big", id, 3, 10)
	wantCode(t, complete("big", id, nil, one, two, three), "EntityTooSmall", "part 2")
	wantCode(t, complete("big", id, nil, three, one), "InvalidPartOrder", "")
	wantCode(t, complete("big", id, nil, one, types.CompletedPart{PartNumber: aws.Int32(9), ETag: one.ETag}), "InvalidPart", "part 9")
	wantCode(t, complete("big", id, nil, types.CompletedPart{PartNumber: aws.Int32(1), ETag: two.ETag}), "InvalidPart", "part 1")
	wantCode(t, complete("big", id, nil), "MalformedXML", "")
	wantCode(t, complete("other", id, nil, one), "NoSuchUpload", "")
	if open := s.OpenUploads(); len(open) != 1 || open[0].Key != "big" || open[0].Parts != 3 {
		t.Fatalf("open: %+v", open)
	}
	listed, err := s.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: aws.String("files"), Prefix: aws.String("b")})
	must(t, err)
	if len(listed.Uploads) != 1 || *listed.Uploads[0].UploadId != *id {
		t.Fatalf("%+v", listed.Uploads)
	}
	must(t, complete("big", id, aws.String("*"), one, three))
	head, err := s.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String("files"), Key: aws.String("big")})
	must(t, err)
	if *head.ContentLength != minPart+10 || !strings.HasSuffix(*head.ETag, `-2"`) || *head.ContentType != "text/csv" {
		t.Errorf("%d %s", *head.ContentLength, *head.ETag)
	}
	wantCode(t, complete("big", id, nil, one, three), "NoSuchUpload", "")

	// A lost race keeps the upload open until it is aborted.
	id = begin("big")
	one = part("big", id, 1, 10)
	wantStatus(t, complete("big", id, aws.String("*"), one), http.StatusPreconditionFailed, "PreconditionFailed")
	if len(s.OpenUploads()) != 1 {
		t.Error("a refused completion closed the upload")
	}
	abort := func() error {
		_, err := s.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: aws.String("files"), Key: aws.String("big"), UploadId: id})
		return err
	}
	must(t, abort())
	wantStatus(t, abort(), http.StatusNotFound, "NoSuchUpload")
	if len(s.OpenUploads()) != 0 {
		t.Error("an upload leaks")
	}
	id = begin("c")
	_, err = s.UploadPart(ctx, &s3.UploadPartInput{Bucket: aws.String("files"), Key: aws.String("c"), UploadId: id, PartNumber: aws.Int32(0)})
	wantCode(t, err, "InvalidArgument", "between 1 and 10000")
	if r := s.Requests(); r["CreateMultipartUpload"] != 3 || r["UploadPart"] != 5 || r["CompleteMultipartUpload"] != 9 || s.PutClass() != 3+5+9+1 {
		t.Errorf("%v, %d", r, s.PutClass())
	}
}

func TestListObjects(t *testing.T) {
	s := newTestS3(t)
	for _, key := range []string{"b", "a/2", "a/1", "a/x/1", "a/x/2", "c/1", "a"} {
		must(t, upObject(s, key, key))
	}
	list := func(in *s3.ListObjectsV2Input) string {
		in.Bucket = aws.String("files")
		var got []string
		for {
			out, err := s.ListObjectsV2(ctx, in)
			must(t, err)
			for _, o := range out.Contents {
				got = append(got, *o.Key)
			}
			for _, p := range out.CommonPrefixes {
				got = append(got, "+"+*p.Prefix)
			}
			if int(*out.KeyCount) != len(out.Contents)+len(out.CommonPrefixes) {
				t.Errorf("key count %d", *out.KeyCount)
			}
			if !*out.IsTruncated {
				return fmt.Sprint(got)
			}
			in.ContinuationToken = out.NextContinuationToken
		}
	}
	for _, limit := range []*int32{nil, aws.Int32(1), aws.Int32(2)} {
		for want, in := range map[string]s3.ListObjectsV2Input{
			"[a a/1 a/2 a/x/1 a/x/2 b c/1]": {},
			"[a/1 a/2 a/x/1 a/x/2]":         {Prefix: aws.String("a/")},
			"[a/x/1 a/x/2 b c/1]":           {StartAfter: aws.String("a/2")},
		} {
			in.MaxKeys = limit
			if got := list(&in); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if got := list(&s3.ListObjectsV2Input{Delimiter: aws.String("/")}); got != "[a b +a/ +c/]" {
		t.Error(got)
	}
	if got := list(&s3.ListObjectsV2Input{Delimiter: aws.String("/"), MaxKeys: aws.Int32(1)}); got != "[a +a/ b +c/]" {
		t.Error(got)
	}
	if got := list(&s3.ListObjectsV2Input{Delimiter: aws.String("/"), Prefix: aws.String("a/")}); got != "[a/1 a/2 +a/x/]" {
		t.Error(got)
	}
	_, err := s.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String("files"), ContinuationToken: aws.String("!")})
	wantCode(t, err, "InvalidArgument", "continuation token")
}
