package schedule_test

import (
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"strings"
	"testing"
)

// decoded undoes a part's transfer encoding.
func decoded(t testing.TB, encoding string, body io.Reader) string {
	t.Helper()
	switch strings.ToLower(encoding) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
