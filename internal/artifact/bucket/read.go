package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"almanac/internal/failure"
)

// Open reads a file as a stream; size is in bytes. The caller closes it. A file that is not there is
// file_inconsistent, since a run that names it has recorded it; anything else is file_unavailable.
func (s *Store) Open(ctx context.Context, key string) (body io.ReadCloser, size int64, err error) {
	out, err := s.API.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket, Key: &key})
	switch {
	case status(err) == 404:
		return nil, 0, failure.Wrap(failure.FileInconsistent, err, "the stored file %q is not there any more", failure.Cut(key, 200))
	case err != nil:
		return nil, 0, unavailable(err, "read", key)
	}
	return out.Body, aws.ToInt64(out.ContentLength), nil
}

// ReadAll reads a file of known size and digest (lower-case hexadecimal SHA-256) into memory. Other bytes than the
// recorded ones are file_inconsistent.
func (s *Store) ReadAll(ctx context.Context, key string, size int64, digest string) ([]byte, error) {
	body, _, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	n, err := io.Copy(&b, io.LimitReader(body, size+1))
	if err != nil {
		return nil, unavailable(err, "read", key)
	}
	sum := sha256.Sum256(b.Bytes())
	if n != size || hex.EncodeToString(sum[:]) != digest {
		return nil, failure.New(failure.FileInconsistent, "the stored file %q is not the one that was recorded (%d bytes, SHA-256 %s)", failure.Cut(key, 200), size, digest)
	}
	return b.Bytes(), nil
}
