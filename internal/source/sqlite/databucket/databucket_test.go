package databucket_test

import (
	"bytes"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
	"almanac/internal/source/sqlite"
	"almanac/internal/source/sqlite/databucket"
)

// The real client against a server that answers as S3 does: the statuses must survive the SDK's wrapping.
func TestFetchThroughTheSDK(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flights.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE TABLE v (n)", "INSERT INTO v VALUES (42)"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gets := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/data/flights.sqlite":
			if r.Method == http.MethodGet {
				gets++
			}
			w.Header().Set("ETag", `"e1"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		case "/data/private":
			w.WriteHeader(http.StatusForbidden)
		case "/data/broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &server.URL, UsePathStyle: true, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})
	fetcher := &sqlite.Fetcher{Bucket: &databucket.Bucket{API: client, Name: "data"}, Dir: filepath.Join(t.TempDir(), "files"), Now: time.Now}
	for range 2 {
		out, err := sourcetest.Read(t.Context(), fetcher.Source("flights.sqlite"), source.Query{SQL: "SELECT n FROM v"})
		if err != nil || out.Rows[0][0].Int != 42 || gets != 1 {
			t.Fatalf("%+v %v after %d fetches, want 42 after one", out.Rows, err, gets)
		}
	}
	for key, code := range map[string]failure.Code{"nowhere": failure.SourceUnknown, "private": failure.SourceAccessDenied, "broken": failure.SourceUnavailable} {
		_, err := fetcher.Source(key).Open(t.Context(), source.Query{SQL: "SELECT 1"})
		failuretest.Want(t, err, code)
	}
	server.Close()
	_, err = fetcher.Source("flights.sqlite").Open(t.Context(), source.Query{SQL: "SELECT 1"})
	failuretest.Want(t, err, failure.SourceUnavailable)
}
