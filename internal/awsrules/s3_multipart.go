package awsrules

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// begin begins an upload, and gives what ends it.
func (c *check) begin(name string) *s3.CompleteMultipartUploadInput {
	c.Helper()
	out, err := c.S3.CreateMultipartUpload(c.ctx, &s3.CreateMultipartUploadInput{Bucket: &c.bucket, Key: c.object(name)})
	c.ready(err)
	return &s3.CompleteMultipartUploadInput{Bucket: &c.bucket, Key: c.object(name), UploadId: out.UploadId, MultipartUpload: &types.CompletedMultipartUpload{}}
}

// part sends a part and notes it for the end.
func (c *check) part(in *s3.CompleteMultipartUploadInput, number int32, body string) error {
	out, err := c.S3.UploadPart(c.ctx, &s3.UploadPartInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId, PartNumber: &number, Body: strings.NewReader(body)})
	if err == nil {
		in.MultipartUpload.Parts = append(in.MultipartUpload.Parts, types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC64NVME: out.ChecksumCRC64NVME})
	}
	return err
}

// upload begins an upload and sends its parts.
func (c *check) upload(name string, bodies ...string) *s3.CompleteMultipartUploadInput {
	c.Helper()
	in := c.begin(name)
	for i, body := range bodies {
		c.ready(c.part(in, int32(i+1), body))
	}
	return in
}

// complete ends an upload, where it must not replace with If-None-Match.
func (c *check) complete(in *s3.CompleteMultipartUploadInput, absent bool) error {
	if absent {
		in.IfNoneMatch = aws.String("*")
	}
	_, err := c.S3.CompleteMultipartUpload(c.ctx, in)
	return err
}

// full is a part of the least size that is not the last one's.
func full(letter string) string { return strings.Repeat(letter, 5<<20) }

const apiComplete = bucketAPI + "CompleteMultipartUpload.html"

func multipart() []Rule {
	return []Rule{
		{"s3/multipart/joins", "an upload joins its parts in the order of their numbers", apiComplete, func(c *check) {
			in := c.begin("x")
			c.ready(c.part(in, 7, "end"))
			c.ready(c.part(in, 2, full("a")))
			ps := in.MultipartUpload.Parts
			ps[0], ps[1] = ps[1], ps[0]
			if c.done("the end", c.complete(in, false)) {
				c.has("after the end", "x", full("a")+"end")
			}
		}},
		{"s3/multipart/not-before", "nothing is seen of it before its end", bucketGuide + "mpuoverview.html", func(c *check) {
			c.upload("x", "body")
			c.lacks("before the end", "x")
		}},
		{"s3/multipart/order", "the end names parts in ascending order", apiComplete, func(c *check) {
			in := c.upload("x", full("a"), "end")
			ps := in.MultipartUpload.Parts
			ps[0], ps[1] = ps[1], ps[0]
			c.refused("the end", c.complete(in, false), "InvalidPartOrder")
		}},
		{"s3/multipart/small-part", "a part has at least 5 MiB, but for the last", pageParts, func(c *check) {
			c.refused("the end", c.complete(c.upload("x", "small", "end"), false), "EntityTooSmall")
		}},
		{"s3/multipart/wrong-etag", "and by the ETag that they got", apiComplete, func(c *check) {
			in := c.upload("x", "body")
			in.MultipartUpload.Parts[0].ETag = aws.String(`"900150983cd24fb0d6963f7d28e17f72"`)
			c.refused("the end", c.complete(in, false), "InvalidPart")
		}},
		{"s3/multipart/missing-part", "and none that was not sent", apiComplete, func(c *check) {
			in := c.upload("x", "body")
			in.MultipartUpload.Parts[0].PartNumber = aws.Int32(2)
			c.refused("the end", c.complete(in, false), "InvalidPart")
		}},
		{"s3/multipart/refused-goes-on", "an end that was refused can be tried again", apiComplete, func(c *check) {
			in := c.upload("x", "body")
			etag := in.MultipartUpload.Parts[0].ETag
			in.MultipartUpload.Parts[0].ETag = aws.String(`"900150983cd24fb0d6963f7d28e17f72"`)
			if !c.refused("the end", c.complete(in, false), "InvalidPart") {
				return
			}
			in.MultipartUpload.Parts[0].ETag = etag
			if c.done("the end again", c.complete(in, false)) {
				c.has("after the end", "x", "body")
			}
		}},
		{"s3/multipart/part-again", "a part sent again replaces the one before", bucketAPI + "UploadPart.html", func(c *check) {
			in := c.upload("x", "first")
			c.ready(c.part(in, 1, "second"))
			in.MultipartUpload.Parts = in.MultipartUpload.Parts[1:]
			if c.done("the end", c.complete(in, false)) {
				c.has("after the end", "x", "second")
			}
		}},
		{"s3/multipart/part-numbers", "parts have the numbers 1 to 10,000", pageParts, func(c *check) {
			in := c.begin("x")
			c.done("part 10,000", c.part(in, 10000, "x"))
			c.refused("part 10,001", c.part(in, 10001, "x"), "InvalidArgument")
			c.refused("part 0", c.part(in, 0, "x"), "InvalidArgument")
		}},
		{"s3/multipart/no-parts", "an upload has a part", apiComplete, func(c *check) {
			c.refused("the end", c.complete(c.begin("x"), false), "MalformedXML", "InvalidRequest")
		}},
		{"s3/multipart/abort", "an upload that was aborted is gone with its parts", bucketAPI + "AbortMultipartUpload.html", func(c *check) {
			in := c.upload("x", "body")
			_, err := c.S3.AbortMultipartUpload(c.ctx, &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId})
			c.done("the abort", err)
			c.refused("the end", c.complete(in, false), "NoSuchUpload")
			c.refused("another part", c.part(in, 2, "x"), "NoSuchUpload")
			c.lacks("after the abort", "x")
		}},
		{"s3/multipart/abort-none", "an abort of no upload is NoSuchUpload", bucketAPI + "AbortMultipartUpload.html", func(c *check) {
			in := c.upload("x", "body")
			c.ready(c.complete(in, false))
			_, err := c.S3.AbortMultipartUpload(c.ctx, &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId})
			c.refused("an abort after the end", err, "NoSuchUpload")
			c.has("after the abort", "x", "body")
		}},
		{"s3/multipart/listed", "uploads are listed from their begin to their end", bucketAPI + "ListMultipartUploads.html", func(c *check) {
			in := c.upload("x", "body")
			c.listed("while it is open", *in.UploadId, true)
			c.ready(c.complete(in, false))
			c.listed("after its end", *in.UploadId, false)
		}},
		{"s3/multipart/etag", "the ETag of an upload tells its number of parts", bucketGuide + "checking-object-integrity-upload.html", func(c *check) {
			in := c.upload("x", full("a"), "end")
			out, err := c.S3.CompleteMultipartUpload(c.ctx, in)
			if c.done("the end", err) && !strings.HasSuffix(strings.Trim(aws.ToString(out.ETag), `"`), "-2") {
				c.unlike("the ETag is %s; want one that ends in -2", aws.ToString(out.ETag))
			}
		}},
	}
}

func (c *check) listed(when, id string, want bool) {
	c.Helper()
	out, err := c.S3.ListMultipartUploads(c.ctx, &s3.ListMultipartUploadsInput{Bucket: &c.bucket, Prefix: c.object("")})
	if !c.done("the list", err) {
		return
	}
	found := false
	for _, u := range out.Uploads {
		found = found || aws.ToString(u.UploadId) == id
	}
	if found != want {
		c.unlike("%s the upload is in the list: %t; want %t", when, found, want)
	}
}

const apiList = bucketAPI + "ListObjectsV2.html"

// list gives keys, without the rule's own prefix, and the common prefixes, of all pages.
func (c *check) listAll(change func(*s3.ListObjectsV2Input)) (ks, prefixes []string, pages int) {
	c.Helper()
	in := &s3.ListObjectsV2Input{Bucket: &c.bucket, Prefix: c.object("")}
	if change != nil {
		change(in)
	}
	for pages = 1; pages < 20; pages++ {
		out, err := c.S3.ListObjectsV2(c.ctx, in)
		if !c.done("a page", err) {
			return ks, prefixes, pages
		}
		for _, o := range out.Contents {
			ks = append(ks, strings.TrimPrefix(*o.Key, *c.object("")))
		}
		for _, p := range out.CommonPrefixes {
			prefixes = append(prefixes, strings.TrimPrefix(*p.Prefix, *c.object("")))
		}
		if !aws.ToBool(out.IsTruncated) {
			break
		}
		in.ContinuationToken = out.NextContinuationToken
	}
	return ks, prefixes, pages
}

func lists() []Rule {
	three := func(c *check) {
		for _, name := range []string{"a/2", "a/1", "b", "Z", "é"} {
			c.stored(name, name)
		}
	}
	keysAre := func(c *check, want string, change func(*s3.ListObjectsV2Input)) {
		if ks, _, _ := c.listAll(change); fmt.Sprint(ks) != want {
			c.unlike("the list is %v; want %s", ks, want)
		}
	}
	return []Rule{
		{"s3/lists/order", "keys are listed in the order of their bytes", apiList, func(c *check) {
			three(c)
			keysAre(c, "[Z a/1 a/2 b é]", nil)
		}},
		{"s3/lists/pages", "in pages that follow each other, each key once", apiList, func(c *check) {
			three(c)
			ks, _, pages := c.listAll(func(in *s3.ListObjectsV2Input) { in.MaxKeys = aws.Int32(2) })
			if fmt.Sprint(ks) != "[Z a/1 a/2 b é]" || pages != 3 {
				c.unlike("the list is %v on %d pages; want five keys on 3", ks, pages)
			}
		}},
		{"s3/lists/prefix", "a prefix leaves out the others", apiList, func(c *check) {
			three(c)
			keysAre(c, "[a/1 a/2]", func(in *s3.ListObjectsV2Input) { in.Prefix = c.object("a/") })
		}},
		{"s3/lists/delimiter", "a delimiter joins those with a common prefix", apiList, func(c *check) {
			three(c)
			ks, prefixes, _ := c.listAll(func(in *s3.ListObjectsV2Input) { in.Delimiter = aws.String("/") })
			if fmt.Sprint(ks, prefixes) != "[Z b é] [a/]" {
				c.unlike("the list is %v and %v; want [Z b é] and [a/]", ks, prefixes)
			}
		}},
		{"s3/lists/start-after", "a list may begin behind a key", apiList, func(c *check) {
			three(c)
			keysAre(c, "[a/2 b é]", func(in *s3.ListObjectsV2Input) { in.StartAfter = c.object("a/1") })
		}},
		{"s3/lists/own-write", "a list sees the writes and deletes before it", pageConsistency, func(c *check) {
			for i := range 3 {
				c.stored("x", fmt.Sprint(i))
				keysAre(c, "[x]", nil)
				_, err := c.S3.DeleteObject(c.ctx, &s3.DeleteObjectInput{Bucket: &c.bucket, Key: c.object("x")})
				c.ready(err)
				keysAre(c, "[]", nil)
			}
		}},
	}
}
