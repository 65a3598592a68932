package schedule_test

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// V6 of a kind that has no header: a file of no bytes, packed or not, is a file.
func TestV6EmptyJSONLines(t *testing.T) {
	for _, packing := range []string{"", "gzip", "zstd"} {
		w := newWorld(t)
		d := w.definition("s", "a@x.com", "b")
		d.Query, d.File.Kind, d.File.Compression = "SELECT id FROM flights WHERE id > 99", "jsonl", packing
		run := w.admitted(d)
		w.quiet()
		r := w.wantState(run, schedule.Succeeded, "")
		if got := w.object(r.File.Key); int64(len(got)) != r.File.Bytes || r.File.Rows != 0 || r.Submitted != 2 || (packing == "") != (got == "") {
			t.Errorf("%q: %q, %+v, %d submitted", packing, got, r.File, r.Submitted)
		}
		if err := w.check(run, "a@x.com", "b"); err != nil {
			t.Error(err)
		}
	}
}

// A packed file is stored, attached and told of as it is.
func TestV10APackedFileOfJSONLinesIsDelivered(t *testing.T) {
	w := newWorld(t)
	d := w.definition("s", "a@x.com", "b")
	d.File.Kind, d.File.Compression = "jsonl", "gzip"
	run := w.admitted(d)
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	stored := w.object(r.File.Key)
	zip, err := gzip.NewReader(strings.NewReader(stored))
	w.must(err)
	lines, err := io.ReadAll(zip)
	w.must(err)
	want := `{"id":1,"carrier":"UA","delay":5}
{"id":2,"carrier":"B6","delay":null}
{"id":3,"carrier":"=1+1","delay":-7}
{"id":4,"carrier":"AA","delay":"9007199254740993"}
`
	if string(lines) != want || r.File.Rows != 4 || !strings.HasSuffix(r.File.Key, ".jsonl.gz") || !strings.HasSuffix(r.File.Name, ".jsonl.gz") {
		t.Errorf("%+v holds %s", r.File, lines)
	}
	head, err := w.s3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String("files"), Key: &r.File.Key})
	w.must(err)
	if aws.ToString(head.ContentType) != "application/gzip" || head.ContentEncoding != nil {
		t.Errorf("stored as %s, %s", aws.ToString(head.ContentType), aws.ToString(head.ContentEncoding))
	}
	if mails := w.mail.to("a@x.com"); len(mails) != 1 || !strings.Contains(string(mails[0].raw), "application/gzip") || !strings.Contains(string(mails[0].raw), ".jsonl.gz") {
		t.Errorf("the mail is %+v", mails)
	}
	if posts := w.hooks.to("b"); len(posts) != 1 || !strings.Contains(posts[0].body, `"type":"application/gzip"`) || !strings.Contains(posts[0].body, `.jsonl.gz"`) {
		t.Errorf("the webhook was told %+v", posts)
	}
	if err := w.check(run, "a@x.com", "b"); err != nil {
		t.Error(err)
	}
}
