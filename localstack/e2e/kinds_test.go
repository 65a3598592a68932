//go:build cloud

package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

func TestV10APackedFileOfJSONLinesArrivesWhole(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("lines-%d", time.Now().UnixNano())
	d := save(t, func(d *schedule.Definition) {
		d.Query = "select flight_id, carrier, 9007199254740993 as beyond, null as absent from flights where origin = :workspace order by flight_id limit 100"
		d.File.Kind, d.File.Compression = "jsonl", "gzip"
		d.Recipients = append(d.Recipients, hook(path))
	})
	run := due(t, d)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 2 || r.File == nil || r.File.Rows != 100 || !strings.HasSuffix(r.File.Name, ".jsonl.gz") {
		t.Fatalf("submitted %d, file %+v; want 2, and 100 rows in a .jsonl.gz", r.Submitted, r.File)
	}
	got := hooks(t, path)
	if len(got) != 1 || !got[0].SignatureOK {
		t.Fatalf("webhook got %+v; want one signed request", got)
	}
	var body struct {
		Data struct {
			File struct{ Name, Type, Link string }
		}
	}
	if err := readJSON(got[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if f := body.Data.File; f.Type != "application/gzip" || f.Name != r.File.Name {
		t.Fatalf("the webhook was told of %+v", f)
	}
	m := mailed(t, run, 1)[0]
	if m.Fault != "" || len(m.Attachments) != 1 || m.Attachments[0].Name != r.File.Name {
		t.Fatalf("mail %+v; want %s attached", m, r.File.Name)
	}
	attached, err := os.ReadFile(m.Attachments[0].File)
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string][]byte{"the link's": download(t, body.Data.File.Link), "the attachment's": attached} {
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != r.File.SHA256 {
			t.Errorf("%s bytes are not those of the recorded file", what)
		}
		wantLines(t, content, 100)
	}
}

// wantLines unpacks a file and reads each line of it.
func wantLines(t *testing.T, packed []byte, rows int) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != rows {
		t.Fatalf("%d lines, want %d", len(lines), rows)
	}
	for _, line := range lines {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil || len(o) != 4 || o["beyond"] != "9007199254740993" || o["absent"] != nil || o["carrier"] == nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}
