package artifact_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// gunzipped reads what the standard library unpacks: one member, and nothing behind it.
func gunzipped(read reader) reader {
	return func(file []byte, columns []source.Column, take func([]source.Value) error) ([]string, error) {
		rest := bytes.NewReader(file)
		zip, err := gzip.NewReader(rest)
		if err != nil {
			return nil, err
		}
		zip.Multistream(false)
		whole, err := io.ReadAll(zip)
		if err != nil {
			return nil, err
		}
		if rest.Len() > 0 {
			return nil, fmt.Errorf("%d bytes behind the member", rest.Len())
		}
		return read(whole, columns, take)
	}
}

// unzstd reads what the decoder unpacks, whose checksum it demands.
func unzstd(read reader) reader {
	return func(file []byte, columns []source.Column, take func([]source.Value) error) ([]string, error) {
		var header zstd.Header
		if err := header.Decode(file); err != nil || !header.HasCheckSum || header.WindowSize > 1<<20 {
			return nil, errors.Join(err, fmt.Errorf("the frame has the header %+v; want a check sum, and a window of at most 1 MiB", header))
		}
		zip, err := zstd.NewReader(bytes.NewReader(file), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer zip.Close()
		whole, err := io.ReadAll(zip)
		if err != nil {
			return nil, err
		}
		return read(whole, columns, take)
	}
}

func TestPackedFilesAreNamedByTheirPacking(t *testing.T) {
	for _, c := range []struct {
		f               artifact.Format
		mediaType, ends string
	}{
		{artifact.Format{Kind: "csv"}, "text/csv; charset=utf-8; header=present", ".csv"},
		{artifact.Format{Kind: "csv", Compression: "gzip"}, "application/gzip", ".csv.gz"},
		{artifact.Format{Kind: "csv", Compression: "zstd"}, "application/zstd", ".csv.zst"},
		{artifact.Format{Kind: "jsonl"}, "application/jsonl", ".jsonl"},
		{artifact.Format{Kind: "jsonl", Compression: "gzip"}, "application/gzip", ".jsonl.gz"},
		{artifact.Format{Kind: "jsonl", Compression: "zstd"}, "application/zstd", ".jsonl.zst"},
	} {
		if got := artifact.MediaType(c.f); got != c.mediaType {
			t.Errorf("%+v: %s, want %s", c.f, got, c.mediaType)
		}
		if got := artifact.FileName("Delays", epoch, nil, c.f); !strings.HasSuffix(got, "00"+c.ends) {
			t.Errorf("%+v: the name %q, want it to end in %s", c.f, got, c.ends)
		}
	}
}

// The header of a gzip file is all that could tell one day's file from another's.
func TestAGzipHeaderHasNeitherTimeNorName(t *testing.T) {
	k := suiteKind{format: artifact.Format{Kind: "csv", Compression: "gzip"}}
	zip, err := gzip.NewReader(bytes.NewReader(k.file(t, many(1))))
	if err != nil {
		t.Fatal(err)
	}
	if h := zip.Header; h.Name != "" || h.Comment != "" || len(h.Extra) > 0 || !h.ModTime.IsZero() {
		t.Fatalf("%+v", h)
	}
}

// A packed file has the very bytes of the plain one.
func TestPackedBytesAreThePlainOnes(t *testing.T) {
	rows := &table{columns: countedColumns}
	for from := new(counted); from.next < 30_000; from.next++ {
		from.set(from.next)
		rows.rows = append(rows.rows, []source.Value{from.row[0], text(string(from.text)), from.row[2]})
	}
	plainFile := write(t, rows, plain)
	for packing, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		rows.next = 0
		packed := write(t, rows, artifact.Format{Kind: "csv", Compression: packing})
		zip, err := open(strings.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(zip)
		if err != nil || string(got) != plainFile || len(packed) > len(plainFile)/2 {
			t.Errorf("%s: %d bytes unpack to %d of %d: %v", packing, len(packed), len(got), len(plainFile), err)
		}
	}
}

func TestFieldsThatAKindDoesNotTake(t *testing.T) {
	for name, c := range map[string]struct {
		f     artifact.Format
		field string
		want  []string
	}{
		"compression unknown":           {artifact.Format{Kind: "csv", Compression: "zip"}, "compression", []string{`"gzip" or "zstd"`, "absent"}},
		"compression case":              {artifact.Format{Kind: "csv", Compression: "GZIP"}, "compression", []string{`"gzip" or "zstd"`}},
		"compression none":              {artifact.Format{Kind: "csv", Compression: "none"}, "compression", []string{"absent for none"}},
		"delimiter of JSON Lines":       {artifact.Format{Kind: "jsonl", Delimiter: ";"}, "delimiter", []string{"absent", `"jsonl"`, `"csv"`}},
		"wrong delimiter of JSON Lines": {artifact.Format{Kind: "jsonl", Delimiter: ":"}, "delimiter", []string{"absent", `"csv"`}},
		"bom of JSON Lines":             {artifact.Format{Kind: "jsonl", BOM: true}, "bom", []string{"absent", `"csv"`}},
		"null of JSON Lines":            {artifact.Format{Kind: "jsonl", Null: "NULL"}, "null", []string{"absent", `"csv"`}},
		"compression of JSON Lines":     {artifact.Format{Kind: "jsonl", Compression: "lz4"}, "compression", []string{`"gzip" or "zstd"`}},
		"compression hostile":           {artifact.Format{Kind: "csv", Compression: "gzip\r\nx: y"}, "compression", []string{`"gzip" or "zstd"`}},
	} {
		t.Run(name, func(t *testing.T) { wantFieldError(t, c.f, c.field, c.want...) })
	}
}

// wantFieldError demands that a format has one wrong field, and that the error says what would be right.
func wantFieldError(t *testing.T, f artifact.Format, field string, want ...string) {
	t.Helper()
	errs := f.Validate()
	if len(errs) != 1 || errs[0].Field != field || errs[0].Value == "" {
		t.Fatalf("%+v, want one error of %s", errs, field)
	}
	for _, part := range want {
		if !strings.Contains(errs[0].Want, part) {
			t.Errorf("the error wants %q, which does not say %q", errs[0].Want, part)
		}
	}
}
