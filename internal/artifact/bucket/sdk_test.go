package bucket_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"almanac/internal/artifact/bucket"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
)

// The real client against a server that refuses as S3 does: the status must survive the SDK's wrapping, and the
// condition must be on the wire.
func TestF1ThroughTheSDK(t *testing.T) {
	for name, c := range map[string]struct {
		stored string
		code   failure.Code
	}{"equal": {"hello", ""}, "other": {"world", failure.FileInconsistent}} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPut:
					if r.Header.Get("If-None-Match") != "*" || r.Header.Get("Content-Type") != "text/csv" || r.Header.Get("Content-Disposition") != "attachment" {
						t.Errorf("headers: %v", r.Header)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(http.StatusPreconditionFailed)
				case http.MethodHead:
					w.Header().Set("Content-Length", "5")
				default:
					_, _ = io.Copy(w, strings.NewReader(c.stored))
				}
			}))
			defer server.Close()
			client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &server.URL, UsePathStyle: true, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
			err := (&bucket.Store{API: client, Bucket: "files"}).Upload(t.Context(), "k", "text/csv", "attachment", in([]byte("hello")))
			if c.code == "" && err != nil {
				t.Fatal(err)
			}
			if c.code != "" {
				failuretest.Want(t, err, c.code)
			}
		})
	}
}
