package memcloud

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Limits of a multipart upload. Source: "Amazon S3 multipart upload limits",
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	minPart  = 5 * 1024 * 1024 // all but the last
	maxParts = 10_000
)

type upload struct {
	id, bucket, key string
	parts           map[int32][]byte
	form            object // without a body
	begun           time.Time
}

// OpenUpload is a multipart upload that was neither completed nor aborted:
// its parts would be billed for ever.
type OpenUpload struct {
	Bucket, Key, UploadID string
	Parts                 int
	Initiated             time.Time
}

// OpenUploads lists them by key and id, for a test that looks for leaks.
func (s *S3) OpenUploads() []OpenUpload {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []OpenUpload
	for _, id := range sortedNames(s.uploads) {
		u := s.uploads[id]
		out = append(out, OpenUpload{u.bucket, u.key, u.id, len(u.parts), u.begun})
	}
	return out
}

// CreateMultipartUpload begins an upload in parts.
func (s *S3) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "CreateMultipartUpload", in, func(in *s3.CreateMultipartUploadInput) (*s3.CreateMultipartUploadOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.bucket("CreateMultipartUpload", in.Bucket); err != nil {
			return nil, err
		}
		key, err := checkKey(in.Key)
		if err != nil {
			return nil, err
		}
		s.nextID++
		u := &upload{
			id: fmt.Sprintf("upload-%08d", s.nextID), bucket: *in.Bucket, key: key, parts: map[int32][]byte{}, begun: s.clock(),
			form: object{metadata: lowered(in.Metadata), contentType: in.ContentType, disposition: in.ContentDisposition, encoding: in.ContentEncoding, cache: in.CacheControl},
		}
		s.uploads[u.id] = u
		return &s3.CreateMultipartUploadOutput{Bucket: in.Bucket, Key: in.Key, UploadId: aws.String(u.id)}, nil
	})
}

// open finds the upload of a request; s.mu is held.
func (s *S3) open(operation string, bucket, key, id *string) (*upload, error) {
	if _, err := s.bucket(operation, bucket); err != nil {
		return nil, err
	}
	u := s.uploads[aws.ToString(id)]
	if u == nil || u.bucket != aws.ToString(bucket) || u.key != aws.ToString(key) {
		return nil, &types.NoSuchUpload{Message: aws.String("The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed: " + aws.ToString(id))}
	}
	return u, nil
}

// UploadPart writes one part; the same number again replaces it.
func (s *S3) UploadPart(ctx context.Context, in *s3.UploadPartInput, _ ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "UploadPart", in, func(in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
		body, err := readBody(in.Body, in.ContentLength, in.ContentMD5, in.ChecksumSHA256)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		u, err := s.open("UploadPart", in.Bucket, in.Key, in.UploadId)
		if err != nil {
			return nil, err
		}
		n := aws.ToInt32(in.PartNumber)
		if n < 1 || n > maxParts {
			return nil, apiError("InvalidArgument", "Part number must be an integer between 1 and %d, inclusive, is %d", maxParts, n)
		}
		u.parts[n] = body
		return &s3.UploadPartOutput{ETag: aws.String(etag(body)), ChecksumSHA256: in.ChecksumSHA256}, nil
	})
}

// CompleteMultipartUpload joins the parts. Refused, the upload stays open:
// whoever began it has to abort it.
func (s *S3) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "CompleteMultipartUpload", in, func(in *s3.CompleteMultipartUploadInput) (*s3.CompleteMultipartUploadOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		u, err := s.open("CompleteMultipartUpload", in.Bucket, in.Key, in.UploadId)
		if err != nil {
			return nil, err
		}
		if in.MultipartUpload == nil || len(in.MultipartUpload.Parts) == 0 {
			return nil, apiError("MalformedXML", "You must specify at least one part")
		}
		o, err := u.join(in.MultipartUpload.Parts)
		if err != nil {
			return nil, err
		}
		if err := checkWrite(s.buckets[u.bucket], u.key, in.IfNoneMatch, in.IfMatch); err != nil {
			return nil, err
		}
		o.modified = s.clock()
		s.set(u.bucket, u.key, o)
		delete(s.uploads, u.id)
		return &s3.CompleteMultipartUploadOutput{Bucket: in.Bucket, Key: in.Key, ETag: aws.String(o.etag), Location: aws.String("/" + u.bucket + "/" + u.key)}, nil
	})
}

// join checks the list of parts and puts them together.
func (u *upload) join(parts []types.CompletedPart) (*object, error) {
	last := int32(0)
	for _, p := range parts {
		n := aws.ToInt32(p.PartNumber)
		if n <= last {
			return nil, apiError("InvalidPartOrder", "The list of parts was not in ascending order: part %d after part %d", n, last)
		}
		last = n
	}
	o := u.form
	var sums []byte
	for i, p := range parts {
		n := aws.ToInt32(p.PartNumber)
		body, ok := u.parts[n]
		sum := md5.Sum(body)
		if !ok || strings.Trim(aws.ToString(p.ETag), `"`) != hex.EncodeToString(sum[:]) {
			return nil, apiError("InvalidPart", "One or more of the specified parts could not be found: part %d with ETag %s", n, aws.ToString(p.ETag))
		}
		if i < len(parts)-1 && len(body) < minPart {
			return nil, apiError("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size: part %d has %d bytes, all but the last need %d", n, len(body), minPart)
		}
		o.body = append(o.body, body...)
		sums = append(sums, sum[:]...)
	}
	all := md5.Sum(sums)
	o.etag = fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(all[:]), len(parts))
	return &o, nil
}

// AbortMultipartUpload drops an upload and its parts.
func (s *S3) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, _ ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "AbortMultipartUpload", in, func(in *s3.AbortMultipartUploadInput) (*s3.AbortMultipartUploadOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		u, err := s.open("AbortMultipartUpload", in.Bucket, in.Key, in.UploadId)
		if err != nil {
			return nil, err
		}
		delete(s.uploads, u.id)
		return &s3.AbortMultipartUploadOutput{}, nil
	})
}

// ListMultipartUploads lists the open uploads of a bucket by key and id, all
// on one page (S3 has 1,000 on a page; with more, this refuses).
func (s *S3) ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput, _ ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "ListMultipartUploads", in, func(in *s3.ListMultipartUploadsInput) (*s3.ListMultipartUploadsOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.bucket("ListMultipartUploads", in.Bucket); err != nil {
			return nil, err
		}
		out := &s3.ListMultipartUploadsOutput{Bucket: in.Bucket, Prefix: in.Prefix, IsTruncated: aws.Bool(false)}
		byKey := map[string]*upload{}
		for id, u := range s.uploads {
			if u.bucket == aws.ToString(in.Bucket) && strings.HasPrefix(u.key, aws.ToString(in.Prefix)) {
				byKey[u.key+"\x00"+id] = u
			}
		}
		if len(byKey) > 1000 || in.MaxUploads != nil || in.KeyMarker != nil || in.Delimiter != nil {
			return nil, apiError("NotImplemented", "pages of uploads are not served by this stand-in: %d are open", len(byKey))
		}
		for _, name := range sortedNames(byKey) {
			u := byKey[name]
			out.Uploads = append(out.Uploads, types.MultipartUpload{Key: aws.String(u.key), UploadId: aws.String(u.id), Initiated: aws.Time(u.begun)})
		}
		return out, nil
	})
}
