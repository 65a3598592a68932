package memcloud

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// checkWrite is the precondition of a write. If-None-Match knows only "*" there; If-Match names the object that is to be
// replaced: 412 where another is, 404 where none is. Source: "How to prevent object overwrites with conditional writes",
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
func checkWrite(b map[string]*object, key string, ifNoneMatch, ifMatch *string) error {
	if ifNoneMatch != nil && *ifNoneMatch != "*" {
		return apiError("NotImplemented", "If-None-Match %q: only * is possible for a write", *ifNoneMatch)
	}
	o := b[key]
	if ifMatch != nil && o == nil {
		return &types.NoSuchKey{Message: aws.String("The specified key does not exist: " + key)}
	}
	if ifNoneMatch != nil && o != nil || ifMatch != nil && !sameETag(*ifMatch, o.etag) {
		return apiError("PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	return nil
}

// checkRead is the precondition of a read by ETag: 412 where If-Match names another object, 304 where If-None-Match names
// this one. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
func (o *object) checkRead(ifMatch, ifNoneMatch *string) error {
	if ifMatch != nil && *ifMatch != "*" && !sameETag(*ifMatch, o.etag) {
		return apiError("PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	if ifNoneMatch != nil && (*ifNoneMatch == "*" || sameETag(*ifNoneMatch, o.etag)) {
		return apiError("NotModified", "Not Modified")
	}
	return nil
}

func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// checksum is the SHA-256 that the object was put with, for a read that asks for it.
func (o *object) checksum(mode types.ChecksumMode) *string {
	if mode != types.ChecksumModeEnabled {
		return nil
	}
	return o.sha256
}
