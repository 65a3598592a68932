package memcloud

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 is an in-memory S3 with the methods of the SDK's client, without
// versions. It is safe for concurrent use and, like S3, consistent.
//
// A conflict of two conditional writes under way at once (409
// ConditionalRequestConflict) cannot arise by itself; let a Before hook return
// ConditionalConflict.
type S3 struct {
	Hooks

	// Changed, if set, hears of each object that is written or deleted: its
	// bytes before and after, nil where there was or is none. It must not call
	// the service.
	Changed func(bucket, key string, old, new []byte)

	clock func() time.Time

	mu       sync.Mutex
	buckets  map[string]map[string]*object
	uploads  map[string]*upload
	nextID   int
	requests map[string]int
}

type object struct {
	body        []byte
	etag        string
	sha256      *string // as its writer gave it
	contentType *string
	disposition *string
	encoding    *string
	cache       *string
	metadata    map[string]string
	modified    time.Time
}

// NewS3 makes an S3 without buckets. The clock gives LastModified.
func NewS3(clock func() time.Time) *S3 {
	return &S3{clock: clock, buckets: map[string]map[string]*object{}, uploads: map[string]*upload{}, requests: map[string]int{}}
}

// ConditionalConflict is the 409 that a conditional write gets when another
// write of the same key is under way.
func ConditionalConflict() error {
	return respond(apiError("ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation against this resource."))
}

// Requests counts the served requests by API action.
func (s *S3) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// PutClass counts the served requests that are billed as "PUT, COPY, POST, or
// LIST". Source: https://aws.amazon.com/s3/pricing/
func (s *S3) PutClass() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, operation := range []string{"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "ListObjectsV2", "ListMultipartUploads"} {
		n += s.requests[operation]
	}
	return n
}

// bucket finds the bucket of a request and counts the request; s.mu is held.
func (s *S3) bucket(operation string, name *string) (map[string]*object, error) {
	s.requests[operation]++
	b, ok := s.buckets[aws.ToString(name)]
	if !ok {
		return nil, &types.NoSuchBucket{Message: aws.String("The specified bucket does not exist: " + aws.ToString(name))}
	}
	return b, nil
}

// set puts an object in its place, nil for none, and tells who listens; s.mu is
// held.
func (s *S3) set(bucket, key string, o *object) {
	b := s.buckets[bucket]
	old := b[key]
	if o == nil {
		delete(b, key)
	} else {
		b[key] = o
	}
	if s.Changed != nil {
		s.Changed(bucket, key, old.bytes(), o.bytes())
	}
}

func (o *object) bytes() []byte {
	if o == nil {
		return nil
	}
	return o.body
}

// CreateBucket makes a bucket.
func (s *S3) CreateBucket(ctx context.Context, in *s3.CreateBucketInput, _ ...func(*s3.Options)) (*s3.CreateBucketOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "CreateBucket", in, func(in *s3.CreateBucketInput) (*s3.CreateBucketOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests["CreateBucket"]++
		name := aws.ToString(in.Bucket)
		if len(name) < 3 || len(name) > 63 {
			return nil, apiError("InvalidBucketName", "The specified bucket is not valid: %q must have 3 to 63 characters", name)
		}
		if s.buckets[name] != nil {
			return nil, &types.BucketAlreadyOwnedByYou{Message: aws.String("Your previous request to create the named bucket succeeded and you already own it: " + name)}
		}
		s.buckets[name] = map[string]*object{}
		return &s3.CreateBucketOutput{Location: aws.String("/" + name)}, nil
	})
}

// PutObject writes an object whole, under its precondition.
func (s *S3) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "PutObject", in, func(in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
		body, err := readBody(in.Body, in.ContentLength, in.ContentMD5, in.ChecksumSHA256)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		b, err := s.bucket("PutObject", in.Bucket)
		if err != nil {
			return nil, err
		}
		key, err := checkKey(in.Key)
		if err != nil {
			return nil, err
		}
		if err := checkWrite(b, key, in.IfNoneMatch, in.IfMatch); err != nil {
			return nil, err
		}
		o := &object{
			body: body, etag: etag(body), sha256: in.ChecksumSHA256, modified: s.clock(), metadata: lowered(in.Metadata),
			contentType: in.ContentType, disposition: in.ContentDisposition, encoding: in.ContentEncoding, cache: in.CacheControl,
		}
		s.set(*in.Bucket, key, o)
		return &s3.PutObjectOutput{ETag: aws.String(o.etag), ChecksumSHA256: in.ChecksumSHA256}, nil
	})
}

// put leaves an object as another service does, past every hook.
func (s *S3) put(bucket, key string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.buckets[bucket]; !ok {
		return &types.NoSuchBucket{Message: aws.String("The specified bucket does not exist: " + bucket)}
	}
	s.set(bucket, key, &object{body: body, etag: etag(body), modified: s.clock(), contentType: aws.String("application/octet-stream")})
	return nil
}

// readBody reads a request's body and checks what the caller said about it.
func readBody(r io.Reader, length *int64, md5sum, sha *string) ([]byte, error) {
	var body []byte
	if r != nil {
		var err error
		if body, err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
	}
	if length != nil && *length != int64(len(body)) {
		return nil, apiError("IncompleteBody", "The request body has %d bytes, Content-Length says %d", len(body), *length)
	}
	m, h := md5.Sum(body), sha256.Sum256(body)
	if md5sum != nil && *md5sum != base64.StdEncoding.EncodeToString(m[:]) {
		return nil, apiError("BadDigest", "The Content-MD5 you specified did not match what we received.")
	}
	if sha != nil && *sha != base64.StdEncoding.EncodeToString(h[:]) {
		return nil, apiError("BadDigest", "The SHA256 you specified did not match the calculated checksum.")
	}
	return body, nil
}

func etag(body []byte) string {
	m := md5.Sum(body)
	return `"` + hex.EncodeToString(m[:]) + `"`
}

// checkKey checks an object's key: 1 to 1,024 bytes.
func checkKey(key *string) (string, error) {
	k := aws.ToString(key)
	if k == "" {
		return "", apiError("InvalidArgument", "The object key is missing")
	}
	if len(k) > 1024 {
		return "", apiError("KeyTooLongError", "Your key is too long: %d bytes, 1024 are allowed", len(k))
	}
	return k, nil
}

// lowered gives metadata as S3 gives it back: names in lower case.
func lowered(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for name, v := range in {
		out[strings.ToLower(name)] = v
	}
	return out
}

// GetObject reads an object, or one range of it.
func (s *S3) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "GetObject", in, func(in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b, err := s.bucket("GetObject", in.Bucket)
		if err != nil {
			return nil, err
		}
		o := b[aws.ToString(in.Key)]
		if o == nil {
			return nil, &types.NoSuchKey{Message: aws.String("The specified key does not exist: " + aws.ToString(in.Key))}
		}
		if err := o.checkRead(in.IfMatch, in.IfNoneMatch); err != nil {
			return nil, err
		}
		from, to, ranged, err := parseRange(aws.ToString(in.Range), len(o.body))
		if err != nil {
			return nil, err
		}
		out := &s3.GetObjectOutput{
			Body: io.NopCloser(bytes.NewReader(o.body[from:to])), ContentLength: aws.Int64(int64(to - from)),
			ETag: aws.String(o.etag), LastModified: aws.Time(o.modified), Metadata: maps.Clone(o.metadata), AcceptRanges: aws.String("bytes"),
			ContentType: o.kind(), ContentDisposition: o.disposition, ContentEncoding: o.encoding, CacheControl: o.cache,
		}
		if ranged {
			out.ContentRange = aws.String(fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(o.body)))
		}
		return out, nil
	})
}

// kind is the content type; S3 has a default.
func (o *object) kind() *string {
	if o.contentType == nil {
		return aws.String("binary/octet-stream")
	}
	return o.contentType
}

// parseRange reads "bytes=a-b", "bytes=a-" or "bytes=-n".
func parseRange(text string, size int) (from, to int, ranged bool, err error) {
	if text == "" {
		return 0, size, false, nil
	}
	first, last, found := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if !found || !strings.HasPrefix(text, "bytes=") {
		return 0, size, false, nil // not a range that HTTP knows: the whole
	}
	unsatisfiable := apiError("InvalidRange", "The requested range is not satisfiable: %s of %d bytes", text, size)
	if first == "" {
		n, bad := strconv.Atoi(last)
		if bad != nil || n == 0 || size == 0 {
			return 0, 0, false, unsatisfiable
		}
		return max(0, size-n), size, true, nil
	}
	from, bad := strconv.Atoi(first)
	if bad != nil || from >= size {
		return 0, 0, false, unsatisfiable
	}
	to = size
	if last != "" {
		n, bad := strconv.Atoi(last)
		if bad != nil || n < from {
			return 0, size, false, nil
		}
		to = min(size, n+1)
	}
	return from, to, true, nil
}

// HeadObject describes an object.
func (s *S3) HeadObject(ctx context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "HeadObject", in, func(in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b, err := s.bucket("HeadObject", in.Bucket)
		if err != nil {
			return nil, &types.NotFound{Message: aws.String("Not Found")} // a HEAD has no body to say more
		}
		o := b[aws.ToString(in.Key)]
		if o == nil {
			return nil, &types.NotFound{Message: aws.String("Not Found")}
		}
		if err := o.checkRead(in.IfMatch, in.IfNoneMatch); err != nil {
			return nil, err
		}
		return &s3.HeadObjectOutput{
			ChecksumSHA256: o.checksum(in.ChecksumMode),
			ContentLength:  aws.Int64(int64(len(o.body))), ETag: aws.String(o.etag), LastModified: aws.Time(o.modified),
			Metadata: maps.Clone(o.metadata), AcceptRanges: aws.String("bytes"),
			ContentType: o.kind(), ContentDisposition: o.disposition, ContentEncoding: o.encoding, CacheControl: o.cache,
		}, nil
	})
}

// DeleteObject deletes an object; one that is not there is no error.
func (s *S3) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "DeleteObject", in, func(in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.bucket("DeleteObject", in.Bucket); err != nil {
			return nil, err
		}
		s.set(*in.Bucket, aws.ToString(in.Key), nil)
		return &s3.DeleteObjectOutput{}, nil
	})
}

// ListObjectsV2 lists keys in order, with prefix, delimiter and pages.
func (s *S3) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return invoke(ctx, &s.Hooks, ServiceS3, "ListObjectsV2", in, func(in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b, err := s.bucket("ListObjectsV2", in.Bucket)
		if err != nil {
			return nil, err
		}
		return list(b, in)
	})
}

func list(b map[string]*object, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	limit := 1000
	if in.MaxKeys != nil {
		limit = min(limit, int(*in.MaxKeys))
	}
	after := aws.ToString(in.StartAfter)
	if in.ContinuationToken != nil {
		token, err := base64.URLEncoding.DecodeString(*in.ContinuationToken)
		if err != nil {
			return nil, apiError("InvalidArgument", "The continuation token provided is incorrect: %s", *in.ContinuationToken)
		}
		after = string(token)
	}
	prefix, delimiter := aws.ToString(in.Prefix), aws.ToString(in.Delimiter)
	out := &s3.ListObjectsV2Output{Name: in.Bucket, Prefix: in.Prefix, Delimiter: in.Delimiter, MaxKeys: aws.Int32(int32(limit)), IsTruncated: aws.Bool(false)}
	count, last := 0, ""
	for _, key := range sortedNames(b) {
		rest, ok := strings.CutPrefix(key, prefix)
		common := ""
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			common = prefix + rest[:i+len(delimiter)]
		}
		if !ok || key <= after || common != "" && (common == last || strings.HasPrefix(after, common)) {
			continue
		}
		if count == limit {
			out.IsTruncated = aws.Bool(true)
			out.NextContinuationToken = aws.String(base64.URLEncoding.EncodeToString([]byte(last)))
			break
		}
		count++
		if common != "" {
			last = common
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: aws.String(common)})
			continue
		}
		last = key
		out.Contents = append(out.Contents, types.Object{Key: aws.String(key), ETag: aws.String(b[key].etag), Size: aws.Int64(int64(len(b[key].body))), LastModified: aws.Time(b[key].modified), StorageClass: types.ObjectStorageClassStandard})
	}
	out.KeyCount = aws.Int32(int32(count))
	return out, nil
}
