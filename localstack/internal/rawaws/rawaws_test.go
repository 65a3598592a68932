package rawaws

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func client(t *testing.T, handler http.HandlerFunc) Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Client{
		Endpoint: server.URL, Region: "us-east-1", HTTP: server.Client(), Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Credentials: aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"},
	}
}

func TestErrorsAreReadInEachForm(t *testing.T) {
	for name, body := range map[string]string{
		"JSON":       `{"__type":"com.amazon#ValidationException:","message":"no such thing"}`,
		"REST":       `{"code":"ValidationException","message":"no such thing"}`,
		"query":      `<ErrorResponse><Error><Code>ValidationException</Code><Message>no such thing</Message></Error></ErrorResponse>`,
		"S3":         `<Error><Code>ValidationException</Code><Message>no such thing</Message></Error>`,
		"upper case": `{"__type":"ValidationException","Message":"no such thing"}`,
	} {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); fmt.Fprint(w, body) })
		err := c.JSON(t.Context(), "states", "AWSStepFunctions.X", map[string]any{}, nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != "ValidationException" || e.Message != "no such thing" || e.Status != 400 {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestRequestsAreSignedForTheirService(t *testing.T) {
	var header http.Header
	c := client(t, func(w http.ResponseWriter, r *http.Request) { header = r.Header.Clone(); fmt.Fprint(w, `{"a":1}`) })
	var out struct{ A int }
	if err := c.JSON(t.Context(), "states", "AWSStepFunctions.X", map[string]any{}, &out); err != nil || out.A != 1 {
		t.Fatal(err, out)
	}
	if !strings.Contains(header.Get("Authorization"), "Credential=test/20260102/us-east-1/states/aws4_request") || header.Get("X-Amz-Target") != "AWSStepFunctions.X" {
		t.Errorf("sent %v", header)
	}
	c.Credentials = aws.Credentials{}
	if err := c.REST(t.Context(), "ses", http.MethodGet, "/", nil, nil); err != nil || header.Get("Authorization") != "" {
		t.Errorf("without credentials: %v, %q", err, header.Get("Authorization"))
	}
}

func TestAnswerThatIsNoJSON(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	var out struct{}
	if err := c.REST(t.Context(), "ses", http.MethodGet, "/path", nil, &out); err == nil || !strings.Contains(err.Error(), "/path") {
		t.Errorf("%v", err)
	}
}
