package awsrules

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Pages of AWS about S3.
const (
	bucketGuide     = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
	bucketAPI       = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_"
	pageConditional = bucketGuide + "conditional-writes.html"
	pageReads       = bucketGuide + "conditional-reads.html"
	pageConsistency = bucketGuide + "Welcome.html#ConsistencyModel"
	pageIntegrity   = bucketGuide + "checking-object-integrity.html"
	pageParts       = bucketGuide + "qfacts.html"
)

// object is a key of the rule's own.
func (c *check) object(name string) *string { return aws.String(c.id + "/" + name) }

func (c *check) store(name, body string, change func(*s3.PutObjectInput)) (*s3.PutObjectOutput, error) {
	in := &s3.PutObjectInput{Bucket: &c.bucket, Key: c.object(name), Body: strings.NewReader(body)}
	if change != nil {
		change(in)
	}
	return c.S3.PutObject(c.ctx, in)
}

func (c *check) stored(name, body string) (etag *string) {
	c.Helper()
	out, err := c.store(name, body, nil)
	c.ready(err)
	return out.ETag
}

// fetch reads an object; change makes it another read.
func (c *check) fetch(name string, change func(*s3.GetObjectInput)) (string, *s3.GetObjectOutput, error) {
	in := &s3.GetObjectInput{Bucket: &c.bucket, Key: c.object(name)}
	if change != nil {
		change(in)
	}
	out, err := c.S3.GetObject(c.ctx, in)
	if err != nil {
		return "", nil, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	return string(body), out, err
}

// has notes an object other than the wanted one.
func (c *check) has(what, name, want string) {
	c.Helper()
	if got, _, err := c.fetch(name, nil); c.done(what, err) && got != want {
		c.unlike("%s: the object has %d bytes, %.20q; want %d, %.20q", what, len(got), got, len(want), want)
	}
}

// lacks notes an object that should not be there.
func (c *check) lacks(what, name string) {
	c.Helper()
	_, _, err := c.fetch(name, nil)
	c.refused(what, err, "NoSuchKey")
}

func objects() []Rule {
	return []Rule{
		{"s3/objects/own-write", "a read sees the write before it, also the write over another", pageConsistency, func(c *check) {
			for _, body := range []string{"first", "second", ""} {
				c.stored("x", body)
				c.has("the write before", "x", body)
			}
		}},
		{"s3/objects/absent", "an object that is not there is NoSuchKey, to a head NotFound", bucketAPI + "GetObject.html", func(c *check) {
			c.lacks("a read of no object", "gone")
			_, err := c.S3.HeadObject(c.ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: c.object("gone")})
			c.refused("a head of no object", err, "NotFound")
		}},
		{"s3/objects/no-bucket", "a bucket that is not there is NoSuchBucket", bucketAPI + "PutObject.html", func(c *check) {
			_, err := c.store("x", "x", func(in *s3.PutObjectInput) { in.Bucket = aws.String(c.bucket + "-gone") })
			c.refused("a put into no bucket", err, "NoSuchBucket")
		}},
		{"s3/objects/delete", "a deleted object is gone, and a delete of none is no error", bucketAPI + "DeleteObject.html", func(c *check) {
			c.stored("x", "x")
			for _, what := range []string{"the delete", "the second delete"} {
				_, err := c.S3.DeleteObject(c.ctx, &s3.DeleteObjectInput{Bucket: &c.bucket, Key: c.object("x")})
				c.done(what, err)
				c.lacks("after "+what, "x")
			}
		}},
		{"s3/objects/delete-many", "a delete of many names each that is gone, those too that were not there", bucketAPI + "DeleteObjects.html", func(c *check) {
			c.stored("x", "x")
			out, err := c.S3.DeleteObjects(c.ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: c.object("x")}, {Key: c.object("gone")}}}})
			if c.done("the delete", err) && (len(out.Deleted) != 2 || len(out.Errors) != 0) {
				c.unlike("%d deleted, %d errors; want 2 and none", len(out.Deleted), len(out.Errors))
			}
			c.lacks("after the delete", "x")
		}},
		{"s3/objects/delete-quietly", "or none of them, when it is to be quiet", bucketAPI + "DeleteObjects.html", func(c *check) {
			c.stored("x", "x")
			out, err := c.S3.DeleteObjects(c.ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket, Delete: &types.Delete{Quiet: aws.Bool(true), Objects: []types.ObjectIdentifier{{Key: c.object("x")}}}})
			if c.done("the delete", err) && len(out.Deleted)+len(out.Errors) != 0 {
				c.unlike("%d deleted, %d errors; want none", len(out.Deleted), len(out.Errors))
			}
			c.lacks("after the delete", "x")
		}},
		{"s3/objects/delete-above-thousand", "it names at most 1,000", bucketAPI + "DeleteObjects.html", func(c *check) {
			var all []types.ObjectIdentifier
			for i := range 1001 {
				all = append(all, types.ObjectIdentifier{Key: c.object(fmt.Sprint(i))})
			}
			_, err := c.S3.DeleteObjects(c.ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket, Delete: &types.Delete{Objects: all}})
			c.refused("1,001 keys", err, "MalformedXML")
		}},
		{"s3/objects/headers", "an object has the headers and the metadata that it was put with", bucketAPI + "PutObject.html", func(c *check) {
			_, err := c.store("x", "abc", func(in *s3.PutObjectInput) {
				in.ContentType, in.ContentDisposition, in.Metadata = aws.String("text/csv"), aws.String(`attachment; filename="a.csv"`), map[string]string{"run": "r1"}
			})
			if !c.done("the put", err) {
				return
			}
			out, err := c.S3.HeadObject(c.ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: c.object("x")})
			if c.done("the head", err) && (aws.ToString(out.ContentType) != "text/csv" || aws.ToString(out.ContentDisposition) != `attachment; filename="a.csv"` || out.Metadata["run"] != "r1" || aws.ToInt64(out.ContentLength) != 3) {
				c.unlike("the head has %q, %q, %v and %d bytes", aws.ToString(out.ContentType), aws.ToString(out.ContentDisposition), out.Metadata, aws.ToInt64(out.ContentLength))
			}
		}},
		{"s3/objects/key-length", "a key has at most 1,024 bytes", bucketGuide + "object-keys.html", func(c *check) {
			long := func(n int) string { return strings.Repeat("k", n-len(*c.object(""))) }
			_, err := c.store(long(1024), "x", nil)
			c.done("1,024 bytes", err)
			_, err = c.store(long(1025), "x", nil)
			c.refused("1,025 bytes", err, "KeyTooLongError")
		}},
		{"s3/objects/etag", "the ETag of an object that was put whole is its MD5", bucketAPI + "Object.html", func(c *check) {
			sum := md5.Sum([]byte("abc"))
			if got, want := aws.ToString(c.stored("x", "abc")), `"`+hex.EncodeToString(sum[:])+`"`; got != want {
				c.unlike("the ETag is %s; want %s", got, want)
			}
		}},
	}
}

func preconditions() []Rule {
	absent := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
	return []Rule{
		{"s3/conditions/put-if-absent", "a put that must not replace is taken where nothing is", pageConditional, func(c *check) {
			if _, err := c.store("x", "first", absent); c.done("the put", err) {
				c.has("after the put", "x", "first")
			}
		}},
		{"s3/conditions/put-if-absent-refused", "and refused with 412 where something is, which stays", pageConditional, func(c *check) {
			c.stored("x", "first")
			_, err := c.store("x", "second", absent)
			c.refused("the put", err, "PreconditionFailed")
			c.has("after the refusal", "x", "first")
		}},
		{"s3/conditions/put-after-delete", "it is taken again after a delete", pageConditional, func(c *check) {
			c.stored("x", "first")
			_, err := c.S3.DeleteObject(c.ctx, &s3.DeleteObjectInput{Bucket: &c.bucket, Key: c.object("x")})
			c.ready(err)
			_, err = c.store("x", "second", absent)
			c.done("the put", err)
		}},
		{"s3/conditions/complete-if-absent", "so is the end of an upload", pageConditional, func(c *check) {
			if c.done("the end", c.complete(c.upload("x", "body"), true)) {
				c.has("after the end", "x", "body")
			}
		}},
		{"s3/conditions/complete-if-absent-refused", "and refused where something is, which stays", pageConditional, func(c *check) {
			c.stored("x", "first")
			c.refused("the end", c.complete(c.upload("x", "body"), true), "PreconditionFailed")
			c.has("after the refusal", "x", "first")
		}},
		{"s3/conditions/complete-decides", "what counts is what is there at the end of an upload, not at its begin", pageConditional, func(c *check) {
			in := c.upload("x", "body")
			_, err := c.store("x", "between", absent)
			c.done("a put meanwhile", err)
			c.refused("the end", c.complete(in, true), "PreconditionFailed")
			c.has("after the refusal", "x", "between")
		}},
		{"s3/conditions/if-match", "a put that must replace a certain object does", pageConditional, func(c *check) {
			etag := c.stored("x", "first")
			if _, err := c.store("x", "second", func(in *s3.PutObjectInput) { in.IfMatch = etag }); c.done("the put", err) {
				c.has("after the put", "x", "second")
			}
		}},
		{"s3/conditions/if-match-other", "and is refused with 412 where another is", pageConditional, func(c *check) {
			etag := c.stored("x", "first")
			c.stored("x", "second")
			_, err := c.store("x", "third", func(in *s3.PutObjectInput) { in.IfMatch = etag })
			c.refused("the put", err, "PreconditionFailed")
			c.has("after the refusal", "x", "second")
		}},
		{"s3/conditions/if-match-none", "and with 404 where none is", pageConditional, func(c *check) {
			_, err := c.store("x", "first", func(in *s3.PutObjectInput) { in.IfMatch = aws.String(`"900150983cd24fb0d6963f7d28e17f72"`) })
			c.refused("the put", err, "NoSuchKey")
			c.lacks("after the refusal", "x")
		}},
		{"s3/conditions/complete-if-match", "the end of an upload knows it too", pageConditional, func(c *check) {
			etag := c.stored("x", "first")
			c.stored("x", "second")
			in := c.upload("x", "body")
			in.IfMatch = etag
			c.refused("the end", c.complete(in, false), "PreconditionFailed")
			c.has("after the refusal", "x", "second")
		}},
		{"s3/conditions/read-if-match", "a read of a certain object is refused with 412 where another is", pageReads, func(c *check) {
			etag := c.stored("x", "first")
			_, _, err := c.fetch("x", func(in *s3.GetObjectInput) { in.IfMatch = etag })
			c.done("the read", err)
			c.stored("x", "second")
			_, _, err = c.fetch("x", func(in *s3.GetObjectInput) { in.IfMatch = etag })
			c.refused("the read of what was", err, "PreconditionFailed")
		}},
		{"s3/conditions/read-if-none-match", "a read of any other object gives 304 where it is the same", pageReads, func(c *check) {
			etag := c.stored("x", "first")
			_, _, err := c.fetch("x", func(in *s3.GetObjectInput) { in.IfNoneMatch = etag })
			c.refused("the read of the same", err, "NotModified")
			c.stored("x", "second")
			_, _, err = c.fetch("x", func(in *s3.GetObjectInput) { in.IfNoneMatch = etag })
			c.done("the read of another", err)
		}},
	}
}

func ranges() []Rule {
	const body = "0123456789"
	source := bucketAPI + "GetObject.html"
	part := func(id, says, ask, want, contentRange string) Rule {
		return Rule{"s3/ranges/" + id, says, source, func(c *check) {
			c.stored("x", body)
			got, out, err := c.fetch("x", func(in *s3.GetObjectInput) { in.Range = &ask })
			if c.done(ask, err) && (got != want || aws.ToString(out.ContentRange) != contentRange || aws.ToInt64(out.ContentLength) != int64(len(want))) {
				c.unlike("%s: %q, %d bytes, range %q; want %q, range %q", ask, got, aws.ToInt64(out.ContentLength), aws.ToString(out.ContentRange), want, contentRange)
			}
		}}
	}
	return []Rule{
		part("middle", "a range includes both ends", "bytes=2-4", "234", "bytes 2-4/10"),
		part("open", "a range without an end goes to the end", "bytes=7-", "789", "bytes 7-9/10"),
		part("last", "a range without a begin counts from the end", "bytes=-3", "789", "bytes 7-9/10"),
		part("beyond", "a range that goes beyond ends with the object", "bytes=8-99", "89", "bytes 8-9/10"),
		{"s3/ranges/outside", "a range that begins beyond is refused", source, func(c *check) {
			c.stored("x", body)
			_, _, err := c.fetch("x", func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=10-") })
			c.refused("bytes=10-", err, "InvalidRange")
		}},
	}
}

func checksums() []Rule {
	sum := func(text string) *string {
		h := sha256.Sum256([]byte(text))
		return aws.String(base64.StdEncoding.EncodeToString(h[:]))
	}
	digest := func(text string) *string {
		h := md5.Sum([]byte(text))
		return aws.String(base64.StdEncoding.EncodeToString(h[:]))
	}
	return []Rule{
		{"s3/checksums/md5", "a put with its MD5 is taken, with another refused", pageIntegrity, func(c *check) {
			_, err := c.store("x", "abc", func(in *s3.PutObjectInput) { in.ContentMD5 = digest("abc") })
			c.done("with its MD5", err)
			_, err = c.store("y", "abc", func(in *s3.PutObjectInput) { in.ContentMD5 = digest("abd") })
			c.refused("with another", err, "BadDigest")
			c.lacks("after the refusal", "y")
		}},
		{"s3/checksums/sha256", "a put with its SHA-256 is taken, with another refused", pageIntegrity, func(c *check) {
			_, err := c.store("x", "abc", func(in *s3.PutObjectInput) { in.ChecksumSHA256 = sum("abc") })
			c.done("with its SHA-256", err)
			_, err = c.store("y", "abc", func(in *s3.PutObjectInput) { in.ChecksumSHA256 = sum("abd") })
			c.refused("with another", err, "BadDigest")
			c.lacks("after the refusal", "y")
		}},
		{"s3/checksums/kept", "a head gives the SHA-256 of a put, when asked", bucketAPI + "HeadObject.html", func(c *check) {
			_, err := c.store("x", "abc", func(in *s3.PutObjectInput) { in.ChecksumSHA256 = sum("abc") })
			c.ready(err)
			out, err := c.S3.HeadObject(c.ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: c.object("x"), ChecksumMode: types.ChecksumModeEnabled})
			if c.done("the head", err) && aws.ToString(out.ChecksumSHA256) != *sum("abc") {
				c.unlike("the head has the SHA-256 %q; want %q", aws.ToString(out.ChecksumSHA256), *sum("abc"))
			}
		}},
		{"s3/checksums/part", "a part with another MD5 than its own is refused", pageIntegrity, func(c *check) {
			in := c.begin("x")
			_, err := c.S3.UploadPart(c.ctx, &s3.UploadPartInput{Bucket: &c.bucket, Key: in.Key, UploadId: in.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("abc")), ContentMD5: digest("abd")})
			c.refused("the part", err, "BadDigest")
		}},
	}
}
