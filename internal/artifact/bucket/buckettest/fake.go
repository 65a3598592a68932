// Package buckettest is an S3 in memory for tests of uploads: it keeps the rules that they rely on, counts calls and
// fails the one that a test names, before or after it has taken effect.
package buckettest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sort"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Status is an error as an HTTP answer of S3 gives it; 0 is a connection that broke.
type Status int

func (s Status) Error() string       { return fmt.Sprintf("S3 answered %d", int(s)) }
func (s Status) HTTPStatusCode() int { return int(s) }

// Fault is what happens to a call.
type Fault struct {
	Err     error
	Applied bool // the call takes effect and only its answer is lost
}

// Object is a stored file.
type Object struct {
	Body                     []byte
	ContentType, Disposition string
}

type pending struct {
	object Object
	parts  map[int32][]byte
}

// S3 holds objects and unfinished uploads by "bucket/key".
type S3 struct {
	MinPart int // of all parts but the last; S3 has 5 MiB
	// Fault is asked before each call, with its number from 1 and its name.
	Fault func(call int, name string) *Fault

	mu      sync.Mutex
	calls   []string
	objects map[string]Object
	uploads map[string]*pending
	serial  int
}

// New is an empty S3.
func New() *S3 { return &S3{objects: map[string]Object{}, uploads: map[string]*pending{}} }

// Put stores an object behind the product's back.
func (f *S3) Put(bucket, key string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[bucket+"/"+key] = Object{Body: body}
}

// Object finds a stored object.
func (f *S3) Object(bucket, key string) (Object, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[bucket+"/"+key]
	return o, ok
}

// Unfinished counts uploads that were neither completed nor aborted.
func (f *S3) Unfinished() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.uploads) }

// Calls are the names of all calls so far.
func (f *S3) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.calls...)
}

// call runs one operation under the lock, with the fault that the test wants.
func call[T any](f *S3, ctx context.Context, name string, do func() (*T, error)) (*T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var fault *Fault
	if f.Fault != nil {
		fault = f.Fault(len(f.calls), name)
	}
	if fault != nil && !fault.Applied {
		return nil, fault.Err
	}
	out, err := do()
	if fault != nil && err == nil {
		return nil, fault.Err
	}
	return out, err
}

func (f *S3) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return call(f, ctx, "PutObject", func() (*s3.PutObjectOutput, error) {
		name := *in.Bucket + "/" + *in.Key
		if _, there := f.objects[name]; there && aws.ToString(in.IfNoneMatch) == "*" {
			return nil, Status(412)
		}
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return nil, err
		}
		f.objects[name] = Object{body, aws.ToString(in.ContentType), aws.ToString(in.ContentDisposition)}
		return &s3.PutObjectOutput{}, nil
	})
}

func (f *S3) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return call(f, ctx, "CreateMultipartUpload", func() (*s3.CreateMultipartUploadOutput, error) {
		f.serial++
		id := strconv.Itoa(f.serial)
		f.uploads[id] = &pending{Object{nil, aws.ToString(in.ContentType), aws.ToString(in.ContentDisposition)}, map[int32][]byte{}}
		return &s3.CreateMultipartUploadOutput{UploadId: &id}, nil
	})
}

func (f *S3) UploadPart(ctx context.Context, in *s3.UploadPartInput, _ ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	return call(f, ctx, "UploadPart", func() (*s3.UploadPartOutput, error) {
		u := f.uploads[*in.UploadId]
		if u == nil {
			return nil, Status(404)
		}
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return nil, err
		}
		u.parts[*in.PartNumber] = body
		return &s3.UploadPartOutput{ETag: aws.String(etag(*in.PartNumber))}, nil
	})
}

func etag(part int32) string { return fmt.Sprintf("\"part-%d\"", part) }

func (f *S3) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, _ ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return call(f, ctx, "CompleteMultipartUpload", func() (*s3.CompleteMultipartUploadOutput, error) {
		u, name := f.uploads[*in.UploadId], *in.Bucket+"/"+*in.Key
		if u == nil {
			return nil, Status(404)
		}
		if _, there := f.objects[name]; there && aws.ToString(in.IfNoneMatch) == "*" {
			return nil, Status(412)
		}
		body, err := f.assemble(u, in.MultipartUpload.Parts)
		if err != nil {
			return nil, err
		}
		u.object.Body = body
		f.objects[name] = u.object
		delete(f.uploads, *in.UploadId)
		return &s3.CompleteMultipartUploadOutput{}, nil
	})
}

func (f *S3) assemble(u *pending, parts []types.CompletedPart) ([]byte, error) {
	ordered := sort.SliceIsSorted(parts, func(i, j int) bool { return *parts[i].PartNumber < *parts[j].PartNumber })
	if !ordered || len(parts) == 0 || len(parts) != len(u.parts) {
		return nil, Status(400)
	}
	var body bytes.Buffer
	for i, p := range parts {
		part, ok := u.parts[*p.PartNumber]
		if !ok || aws.ToString(p.ETag) != etag(*p.PartNumber) || i < len(parts)-1 && len(part) < f.MinPart {
			return nil, Status(400)
		}
		body.Write(part)
	}
	return body.Bytes(), nil
}

func (f *S3) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, _ ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return call(f, ctx, "AbortMultipartUpload", func() (*s3.AbortMultipartUploadOutput, error) {
		if f.uploads[*in.UploadId] == nil {
			return nil, Status(404)
		}
		delete(f.uploads, *in.UploadId)
		return &s3.AbortMultipartUploadOutput{}, nil
	})
}

func (f *S3) HeadObject(ctx context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return call(f, ctx, "HeadObject", func() (*s3.HeadObjectOutput, error) {
		o, ok := f.objects[*in.Bucket+"/"+*in.Key]
		if !ok {
			return nil, Status(404)
		}
		return &s3.HeadObjectOutput{ContentLength: aws.Int64(int64(len(o.Body)))}, nil
	})
}

func (f *S3) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return call(f, ctx, "GetObject", func() (*s3.GetObjectOutput, error) {
		o, ok := f.objects[*in.Bucket+"/"+*in.Key]
		if !ok {
			return nil, Status(404)
		}
		return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(o.Body)), ContentLength: aws.Int64(int64(len(o.Body)))}, nil
	})
}
