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

// served is Lists over the real client, before a server that answers as the test says.
func served(t *testing.T, answer http.HandlerFunc) bucket.Lists {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return bucket.Lists{Bucket: "files", API: s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &server.URL, UsePathStyle: true,
		Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
}

func TestListsAreKeptUnderTheirHash(t *testing.T) {
	kept := map[string]string{}
	lists := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("If-None-Match") != "" {
				t.Errorf("headers: %v", r.Header)
			}
			b, _ := io.ReadAll(r.Body)
			kept[r.URL.Path] = string(b)
			return
		}
		if kept[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, kept[r.URL.Path])
	})
	_, err := lists.List(t.Context(), "abc", 100)
	failuretest.Want(t, err, failure.FileInconsistent)
	for _, body := range []string{`["a"]`, `["changed behind our back"]`, `["a"]`} {
		if err := lists.PutList(t.Context(), "abc", []byte(body)); err != nil {
			t.Fatal(err)
		}
		got, err := lists.List(t.Context(), "abc", 100)
		// The SDK may frame the body for its checksum; what is read is what was put.
		if err != nil || !strings.Contains(string(got), body) || kept["/files/recipients/abc.json"] == "" {
			t.Errorf("%q, %v; kept %v", got, err, kept)
		}
	}
	if got, err := lists.List(t.Context(), "abc", 3); err != nil || len(got) != 3 {
		t.Errorf("%q, %v; want no more than was asked for", got, err)
	}
}

func TestListsThatS3Refuses(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no right":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"an error of S3": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a body cut off": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Length", "50")
			_, _ = io.WriteString(w, "[")
		},
	} {
		t.Run(name, func(t *testing.T) {
			lists := served(t, answer)
			failuretest.Want(t, lists.PutList(t.Context(), "abc", []byte("[]")), failure.FileUnavailable)
			_, err := lists.List(t.Context(), "abc", 100)
			failuretest.Want(t, err, failure.FileUnavailable)
			if !strings.Contains(err.Error(), "recipients/abc.json") {
				t.Errorf("%v does not name the object", err)
			}
		})
	}
}
