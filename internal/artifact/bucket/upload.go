package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"almanac/internal/failure"
)

// abortTime is how long the clean-up of a failed upload may take; the upload's own context may be over by then.
const abortTime = 10 * time.Second

// putTries bounds how often a put that S3 answers with 409 is sent.
const putTries = 4

// Upload streams what produce writes into the object. The object appears when produce has returned nil and every byte
// is with S3, or not at all: a produce that fails, at whatever call, publishes nothing.
//
// The object must not exist: the key holds the writer's lease token, so an object that is there can only be this
// writer's own earlier try. If it has the very same bytes the upload has succeeded, otherwise it is file_inconsistent
// (case F1). A request whose answer is lost is settled by reading the object. Other failures: produce's error as it is,
// file_too_large, file_unavailable.
func (s *Store) Upload(ctx context.Context, key, contentType, disposition string, produce func(io.Writer) error) error {
	u := &upload{store: s, ctx: ctx, key: key, contentType: contentType, disposition: disposition, hash: sha256.New(), size: s.partSize()}
	defer u.cleanUp()
	if err := produce(u); err != nil {
		if u.failed != nil {
			return u.failed // produce may have said it in its own words
		}
		return err
	}
	return u.close()
}

// upload is the writer that produce gets. Parts are sent by one goroutine at a time, while the next part is filled.
type upload struct {
	store                         *Store
	ctx                           context.Context
	key, contentType, disposition string

	hash    hash.Hash
	total   int64
	size    int64 // of a part
	part    []byte
	spare   []byte // the buffer that is not being filled
	failed  error  // sticky
	id      *string
	parts   []types.CompletedPart
	sending chan error // answers once, if a part is under way
	done    bool       // nothing is left to clean up
}

func (u *upload) Write(p []byte) (int, error) {
	if u.failed != nil {
		return 0, u.failed
	}
	if max := u.store.maxBytes(); u.total+int64(len(p)) > max {
		u.failed = failure.New(failure.FileTooLarge, "the file passes its limit of %d bytes: narrow the query, or raise limits.bytes", max)
		return 0, u.failed
	}
	u.total += int64(len(p))
	u.hash.Write(p)
	written := 0
	for len(p) > 0 {
		if int64(len(u.part)) == u.size { // more is coming, so this is not the last part
			if u.failed = u.sendPart(); u.failed != nil {
				return written, u.failed
			}
		}
		n := min(len(p), int(u.size)-len(u.part))
		u.part = append(u.part, p[:n]...)
		p, written = p[n:], written+n
	}
	return written, nil
}

// sendPart waits for the part before, and starts to send the one that is full.
func (u *upload) sendPart() error {
	if err := u.wait(); err != nil {
		return err
	}
	if u.id == nil {
		out, err := u.store.API.CreateMultipartUpload(u.ctx, &s3.CreateMultipartUploadInput{
			Bucket: &u.store.Bucket, Key: &u.key, ContentType: &u.contentType, ContentDisposition: &u.disposition,
		})
		if err != nil {
			return unavailable(err, "begin an upload of", u.key)
		}
		u.id = out.UploadId
	}
	body, number := u.part, int32(len(u.parts)+1)
	u.parts = append(u.parts, types.CompletedPart{PartNumber: aws.Int32(number)})
	answer := make(chan error, 1)
	u.sending = answer
	go func() {
		out, err := u.store.API.UploadPart(u.ctx, &s3.UploadPartInput{
			Bucket: &u.store.Bucket, Key: &u.key, UploadId: u.id, PartNumber: aws.Int32(number), Body: bytes.NewReader(body),
		})
		if err != nil {
			answer <- unavailable(err, "store a part of", u.key)
			return
		}
		done := &u.parts[number-1] // read by others only after answer
		done.ETag, done.ChecksumCRC32, done.ChecksumCRC32C, done.ChecksumCRC64NVME = out.ETag, out.ChecksumCRC32, out.ChecksumCRC32C, out.ChecksumCRC64NVME
		done.ChecksumSHA1, done.ChecksumSHA256 = out.ChecksumSHA1, out.ChecksumSHA256
		answer <- nil
	}()
	u.part, u.spare = u.spare[:0], body
	return nil
}

// wait ends the sending of a part, if one is under way.
func (u *upload) wait() error {
	if u.sending == nil {
		return nil
	}
	err := <-u.sending
	u.sending = nil
	return err
}

// close publishes the object.
func (u *upload) close() error {
	if u.failed != nil { // produce has swallowed it
		return u.failed
	}
	if u.id == nil {
		return u.put()
	}
	if err := u.sendPart(); err != nil {
		return err
	}
	if err := u.wait(); err != nil {
		return err
	}
	_, err := u.store.API.CompleteMultipartUpload(u.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.store.Bucket, Key: &u.key, UploadId: u.id, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	if err != nil { // after a 409 every part has to be sent again (S3 API, CompleteMultipartUpload): the next attempt does
		if err := u.settle(err); err != nil {
			return err
		}
		if status(err) == 412 {
			return nil // the object is an earlier try's; this try's parts are still there, and cleanUp drops them
		}
	}
	u.done = true
	return nil
}

// put stores a file of at most one part.
func (u *upload) put() error {
	var err error
	for try := range putTries {
		if try > 0 {
			if paused := u.store.pause(u.ctx, 100*time.Millisecond<<try); paused != nil {
				break
			}
		}
		_, err = u.store.API.PutObject(u.ctx, &s3.PutObjectInput{
			Bucket: &u.store.Bucket, Key: &u.key, ContentType: &u.contentType, ContentDisposition: &u.disposition,
			Body: bytes.NewReader(u.part), ContentLength: aws.Int64(int64(len(u.part))), IfNoneMatch: aws.String("*"),
		})
		if err == nil {
			return nil
		}
		if status(err) != 409 { // another request on the key was under way (S3 API, PutObject): send it again
			break
		}
	}
	return u.settle(err)
}

// settle decides after a failed publication: nil if the object is there with our bytes.
func (u *upload) settle(cause error) error {
	ctx := u.ctx
	code := status(cause)
	if code >= 400 && code < 500 && code != 412 && code != 404 && code != 408 && code != 409 {
		return unavailable(cause, "publish", u.key) // a plain refusal: nothing was stored
	}
	head, err := u.store.API.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.store.Bucket, Key: &u.key})
	if err != nil {
		return unavailable(errors.Join(cause, err), "publish", u.key)
	}
	if aws.ToInt64(head.ContentLength) != u.total {
		return u.inconsistent()
	}
	body, _, err := u.store.Open(ctx, u.key)
	if err != nil {
		return err
	}
	defer body.Close()
	stored := sha256.New()
	if _, err := io.Copy(stored, body); err != nil {
		return unavailable(err, "read back", u.key)
	}
	if !bytes.Equal(stored.Sum(nil), u.hash.Sum(nil)) {
		return u.inconsistent()
	}
	return nil
}

func (u *upload) inconsistent() error {
	return failure.New(failure.FileInconsistent, "another file is stored under %q, a key that only this writer knows", failure.Cut(u.key, 200))
}

// cleanUp drops the parts of an upload that was not published. If that fails as well, the bucket's rule for unfinished
// uploads drops them later.
func (u *upload) cleanUp() {
	_ = u.wait()
	if u.id == nil || u.done {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortTime)
	defer cancel()
	_, _ = u.store.API.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.store.Bucket, Key: &u.key, UploadId: u.id})
}
