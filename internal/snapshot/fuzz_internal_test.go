package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// stone is a bucket that holds one object under every key.
type stone struct {
	Objects
	body []byte
}

func (s stone) Open(context.Context, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader(s.body)), int64(len(s.body)), nil
}

// FuzzManifest: bytes under a manifest's name are refused as file_inconsistent, with the object's name, or they are the
// manifest of this very version; and what is written down again and read back is equal.
func FuzzManifest(f *testing.F) {
	p := Period{Series: Series{Workspace: "EWR", Type: "trips"}}
	p.Month.Year, p.Month.Month = 2013, 1
	m := Manifest{Format: ManifestFormat, Run: "EWR/trips/2013-01/v1", Workspace: "EWR", Type: "trips", Month: p.Month, Version: 1, Generation: 1, Columns: []Column{{Name: "id", Type: "integer"}},
		Key: ManifestKeyColumn{"id", "integer"}, Files: Files{"csv", "gzip", ""}, Totals: Totals{Chunks: 1, Rows: 2, Bytes: 3, Sums: map[string]string{"fare": "1.50", "km": "2~3"}},
		Chunks: []ManifestChunk{{Object: "x/<&>", SHA256: "ab", Bytes: 3, Rows: 2, First: "i:1", Last: "i:2"}}, Checks: []Check{}, Product: "0.1"}
	whole, _, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.Replace(whole, []byte(`"version":1`), []byte(`"version":2`), 1))
	f.Add(bytes.Replace(whole, []byte(`2013-01"`), []byte(`2013-13"`), 1))
	f.Add(bytes.Replace(whole, []byte(`"chunks":[`), []byte(`"chunks":[null,{},`), 1))
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add(whole[:len(whole)/2])
	for _, s := range []string{"", "null", "{}", "[]", `{"format":7}`, "\xff", `{"totals":{"rows":1e30}}`, `{"period":{"start":"x"}}`, strings.Repeat("[", 20000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		got, err := readManifest(context.Background(), stone{body: body}, p, 1, hex.EncodeToString(sum[:]))
		if err != nil {
			if fail := failure.From(err); fail.Code != failure.FileInconsistent || !strings.Contains(fail.Message, "manifest-"+hex.EncodeToString(sum[:])) || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if got.Format != ManifestFormat || got.Workspace != "EWR" || got.Type != "trips" || got.Month != p.Month || got.Version != 1 {
			t.Fatalf("%q passes for the manifest of version 1", body)
		}
		again, hash, err := got.Encode()
		if err != nil {
			t.Fatalf("%q is read, and cannot be written: %v", body, err)
		}
		same, err := readManifest(context.Background(), stone{body: again}, p, 1, hash)
		if err != nil {
			t.Fatal(err)
		}
		if third, _, _ := same.Encode(); !bytes.Equal(third, again) {
			t.Fatalf("%q is written as %q, and then as %q", body, again, third)
		}
		if _, err := readManifest(context.Background(), stone{body: append(again, ' ')}, p, 1, hash); failure.From(err).Code != failure.FileInconsistent {
			t.Fatalf("a byte more is taken: %v", err)
		}
	})
}

// FuzzChunkRecords: records of chunks, whatever stands in them, are folded into totals that an independent reading finds
// too, with every break of the keys noted, or refused with the chunk's number.
func FuzzChunkRecords(f *testing.F) {
	f.Add("i:1", "i:5", "10", int64(5), "i:6", "i:9", "20", int64(4), true)
	f.Add("t:a", "t:b", "1.5", int64(2), "t:c:d", "t:é", "-2.25", int64(2), true)
	f.Add("d:1.0", "d:1.50", "1e5", int64(2), "d:-1", "d:2", "x", int64(2), true)
	f.Add("", "", "0", int64(0), "i:1", "i:1", "9223372036854775808", int64(1), true)
	f.Add("i:9", "i:1", "1~2", int64(2), "t:1", "i:2", "NaN~Inf", int64(2), false)
	f.Add("i:x", "q:1", "", int64(-1), "i:9223372036854775807", "d:", "~", int64(1), true)
	f.Add("i:01", "i:+1", "+1", int64(1), "i:2", "i:3", "-0", int64(2), true)
	f.Add("d:00.10", "d:0.1", "0x1p4~1", int64(1), "d:.5", "d:5.", "1_000", int64(1), true)
	f.Fuzz(func(t *testing.T, first1, last1, sum1 string, rows1 int64, first2, last2, sum2 string, rows2 int64, increasing bool) {
		records := []Chunk{
			{Number: 0, First: first1, Last: last1, Rows: rows1, Bytes: 1, Sums: map[string]string{"x": sum1}, Increasing: true},
			{Number: 1, First: first2, Last: last2, Rows: rows2, Bytes: 2, Sums: map[string]string{"x": sum2}, Increasing: increasing},
		}
		fd := &fold{sums: map[string]Sum{}, nulls: map[string]int64{}, wrong: map[string]int64{}}
		for i, c := range records {
			err := fd.add(c)
			_, badFirst := DecodeKey(c.First)
			_, badLast := DecodeKey(c.Last)
			_, badSum := DecodeSum(c.Sums["x"])
			if bad := errors.Join(badFirst, badLast, badSum); (bad == nil) != (err == nil) {
				t.Fatalf("chunk %d %+v: %v, want %v", i, c, err, bad)
			}
			if err != nil {
				if !strings.Contains(err.Error(), "chunk "+string(rune('0'+i))) || !utf8.ValidString(err.Error()) {
					t.Fatalf("%v names no chunk", err)
				}
				return
			}
		}
		if fd.totals.Rows != rows1+rows2 || fd.totals.Bytes != 3 || fd.totals.Chunks != 2 || len(fd.chunks) != 2 || fd.numbers != "" {
			t.Fatalf("%+v", fd)
		}
		total := fd.sums["x"]
		if a, ok := new(big.Rat).SetString(sum1); ok && !strings.ContainsAny(sum1+sum2, "~eExX_/") {
			b, also := new(big.Rat).SetString(sum2)
			if want := a.Add(a, b); !also || total.rational().Cmp(want) != 0 || strings.Contains(total.String(), "/") {
				t.Fatalf("%q and %q are %s", sum1, sum2, total)
			}
			back, err := DecodeSum(EncodeSum(total))
			if err != nil || !back.Equal(total) || EncodeSum(back) != EncodeSum(total) {
				t.Fatalf("%s is spelled %q, and reads as %s: %v", total, EncodeSum(total), back, err)
			}
		}
		ordered, before := true, Key{}
		for _, c := range records {
			if c.Rows == 0 {
				continue // nothing is asked of it
			}
			a, _ := DecodeKey(c.First)
			b, _ := DecodeKey(c.Last)
			follows := before.Kind == NoKey || before.Kind == a.Kind && order(t, before, a) < 0
			ordered = ordered && c.Increasing && a.Kind == b.Kind && order(t, a, b) <= 0 && follows
			before = b
		}
		if ordered != (fd.keys == "") {
			t.Fatalf("%+v: keys are in order: %v; fold says %q", records, ordered, fd.keys)
		}
	})
}

// order compares two keys by an arithmetic of its own.
func order(t *testing.T, a, b Key) int {
	t.Helper()
	got, back := a.Compare(b), b.Compare(a)
	if sign(got) != -sign(back) {
		t.Fatalf("%v and %v: %d one way, %d the other", a, b, got, back)
	}
	want := cmp.Compare(a.Kind, b.Kind)
	if a.Kind == b.Kind {
		switch a.Kind {
		case IntegerKey:
			want = cmp.Compare(a.Int, b.Int)
		case DecimalKey:
			x, _ := new(big.Rat).SetString(a.Text)
			y, _ := new(big.Rat).SetString(b.Text)
			want = x.Cmp(y)
		default:
			want = bytes.Compare([]byte(a.Text), []byte(b.Text))
		}
	}
	if sign(got) != want {
		t.Fatalf("%v and %v compare as %d, want %d", a, b, got, want)
	}
	return want
}

func sign(n int) int { return cmp.Compare(n, 0) }

// FuzzKey: a key cell is refused as key_invalid, or it comes back from a record as it was.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "a", "a:b", "i:1", "é", "\x00", "\xff", strings.Repeat("x", 257), "-0.50", "0", "9223372036854775807", "00"} {
		f.Add([]byte(s), int64(len(s)), byte(source.KindText))
		f.Add([]byte(s), int64(-1), byte(source.KindDecimal))
		f.Add([]byte(s), int64(-1<<63), byte(source.KindInt))
	}
	f.Fuzz(func(t *testing.T, text []byte, n int64, kind byte) {
		v := source.Value{Kind: source.Kind(kind), Text: text, Int: n}
		var cell keyCell
		if err := keyOf(&v, &cell); err != nil {
			if fail := failure.From(err); fail.Code != failure.KeyInvalid || !utf8.ValidString(err.Error()) {
				t.Fatal(err)
			}
			return
		}
		k := cell.key()
		if k.Kind == DecimalKey && !isDecimal(k.Text) {
			return // a source that calls this a decimal breaks its own word; the record then says so
		}
		back, err := DecodeKey(EncodeKey(k))
		if err != nil || back != k || back.Compare(k) != 0 || back.Param() != k.Param() {
			t.Fatalf("%+v is spelled %q, and reads as %+v: %v", k, EncodeKey(k), back, err)
		}
		if b, err := json.Marshal(EncodeKey(k)); err != nil || !utf8.Valid(b) {
			t.Fatalf("%q %v", b, err)
		}
	})
}

// FuzzChunkRows: bytes of a chunk are read as encoding/csv reads them, NULL apart from an empty text, or refused; nothing is
// read twice or left out.
func FuzzChunkRows(f *testing.F) {
	for _, s := range []string{"a,b\r\n1,2\r\n", "a\r\n\"\"\r\n\r\n", "\"x\"\"y\",\"\r\n\"\r\n", "a,b\r\n1\r\n", "a\n", "a\r", "\"", "\"a\"b\r\n", "a\"b\r\n", ",\r\n,\r\n", "\xff\r\n", "a,\"b\r\nc\",\r\n", "\"\"\"\"\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := newCSVReader(bytes.NewReader(file))
		var got [][]string
		var end error
		for end == nil {
			cells, err := r.next()
			if end = err; err != nil {
				break
			}
			var record []string
			for _, c := range cells {
				if c.Null && len(c.Text) > 0 {
					t.Fatalf("%q: NULL with the text %q", file, c.Text)
				}
				record = append(record, string(c.Text))
			}
			if len(cells) > 1 || !cells[0].Null { // encoding/csv skips lines with nothing in them
				got = append(got, record)
			}
		}
		if !errors.Is(end, io.EOF) {
			if !errors.Is(end, io.ErrUnexpectedEOF) && !strings.Contains(end.Error(), "record") {
				t.Fatalf("%q: %v", file, end)
			}
			return
		}
		want := csv.NewReader(bytes.NewReader(file))
		want.FieldsPerRecord = -1
		records, err := want.ReadAll()
		if err != nil {
			return // ours takes a quote inside a field as it stands, and the digest has vouched for the bytes before
		}
		if len(records) == 0 && len(got) == 0 {
			return
		}
		for i := range got {
			for j := range got[i] {
				got[i][j] = strings.ReplaceAll(got[i][j], "\r\n", "\n")
			}
		}
		if bytes.Contains(bytes.ReplaceAll(file, []byte("\r\n"), nil), []byte("\n")) || bytes.HasSuffix(file, []byte("\r")) {
			return // encoding/csv ends a record at a bare LF, too
		}
		if !reflect.DeepEqual(records, got) {
			t.Fatalf("%q: %q, encoding/csv reads %q", file, got, records)
		}
	})
}
