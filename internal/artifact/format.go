package artifact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Format says how rows become a file. Its zero fields mean the defaults; Kind has none.
type Format struct {
	Kind      string `json:"kind"`                // one of kinds
	Delimiter string `json:"delimiter,omitempty"` // "," (default), ";", a tab or "|"
	BOM       bool   `json:"bom,omitempty"`       // a byte order mark first, for old spreadsheet programs
	Null      string `json:"null,omitempty"`      // how NULL is spelled; by default an empty field without quotes
	// Compression packs the file: "gzip", "zstd" or, by default, not at all.
	Compression string `json:"compression,omitempty" doc:"gzip or zstd; absent: not packed"`
	// Details asks for a second sheet that says what the run was; for xlsx.
	Details bool `json:"details,omitempty" doc:"for xlsx: a second sheet that says what the run was"`
	// Exact leaves text that a spreadsheet may run as it is. It is for files that programs read, such as a month's; no
	// definition can ask for it.
	Exact bool `json:"-"`
	// Origin is what a file may show of where its rows come from, above all the zone of its times; no definition can set it.
	Origin Origin `json:"-"`
}

// FieldError is one field of a definition that cannot be used.
type FieldError struct {
	Field string // below the format, such as "delimiter"
	Value string
	Want  string // what would be right
}

const maxNull = 20 // characters

// kind is one kind of file.
type kind struct {
	mediaType string // as HTTP and MIME name it
	extension string // the end of a file's name, with its dot
	encoder   func(Format, *out) encoder
	fields    []string // those of fields that it takes
}

var kinds = map[string]kind{
	// RFC 7111 for the header parameter.
	"csv": {"text/csv; charset=utf-8; header=present", ".csv", newCSV, []string{"delimiter", "bom", "null", "compression", "exact"}},
	// IANA has registered none; https://spec.openapis.org/registry/media-type/sequential_json names this one.
	"jsonl": {"application/jsonl", ".jsonl", newJSONLines, []string{"compression", "exact"}},
	// https://www.iana.org/assignments/media-types/application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
	"xlsx": {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx", newXLSX, []string{"details"}},
	// https://www.iana.org/assignments/media-types/application/vnd.apache.parquet
	"parquet": {"application/vnd.apache.parquet", ".parquet", newParquet, []string{"exact"}},
}

// fields are those of a format that only some kinds take: how the field is spelled ("" where it is left out), and what
// would be right where it is wrong.
var fields = []struct {
	name  string
	value func(Format) string
	wrong func(Format) string
}{
	{"delimiter", func(f Format) string { return f.Delimiter }, Format.wrongDelimiter},
	{"bom", func(f Format) string { return yes(f.BOM) }, neverWrong},
	{"null", func(f Format) string { return f.Null }, Format.wrongNull},
	{"compression", func(f Format) string { return f.Compression }, Format.wrongCompression},
	{"details", func(f Format) string { return yes(f.Details) }, neverWrong},
	{"exact", func(f Format) string { return yes(f.Exact) }, neverWrong},
}

// yes spells a field that is true or left out.
func yes(b bool) string { return map[bool]string{true: "true"}[b] }

func neverWrong(Format) string { return "" }

// Validate lists what is wrong; nil means that Write can use the format.
func (f Format) Validate() (errs []FieldError) {
	k, known := kinds[f.Kind]
	if !known {
		errs = append(errs, FieldError{"kind", f.Kind, oneOf(slices.Sorted(maps.Keys(kinds)))})
	}
	for _, field := range fields {
		value := field.value(f)
		if value == "" {
			continue
		}
		want := field.wrong(f)
		if known && !slices.Contains(k.fields, field.name) {
			want = fmt.Sprintf("absent, since the kind is %q; it is for %s", f.Kind, oneOf(taking(field.name)))
		}
		if want != "" {
			errs = append(errs, FieldError{field.name, value, want})
		}
	}
	return errs
}

// taking are the kinds that take a field.
func taking(field string) (names []string) {
	for name, k := range kinds {
		if slices.Contains(k.fields, field) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// oneOf writes names as a choice: "a", "b" or "c".
func oneOf(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}

func (f Format) wrongDelimiter() string {
	if len(f.Delimiter) != 1 || !strings.Contains(",;\t|", f.Delimiter) {
		return `one of ",", ";", a tab ("\t") and "|"`
	}
	return ""
}

func (f Format) wrongCompression() string {
	if _, ok := packers[f.Compression]; !ok {
		return oneOf(slices.Sorted(maps.Keys(packers))) + ", or absent for none"
	}
	return ""
}

func (f Format) wrongNull() string {
	switch {
	case !utf8.ValidString(f.Null) || utf8.RuneCountInString(f.Null) > maxNull:
		return "at most 20 characters"
	case strings.ContainsFunc(f.Null, func(r rune) bool { return r == '"' || !unicode.IsPrint(r) }) || strings.Contains(f.Null, f.delimiter()):
		return "printable characters without a quote or the delimiter, such as NULL"
	case strings.TrimSpace(f.Null) != f.Null:
		return "no space at its ends"
	case f.Null != "-" && dangerous([]byte(f.Null)):
		return `a word that no spreadsheet runs as a formula, such as NULL or "-"`
	}
	return ""
}

func (f Format) delimiter() string {
	if f.Delimiter == "" {
		return ","
	}
	return f.Delimiter
}

// MediaType is the file's type as HTTP and MIME name it. A packed file has the type of its packing: it is stored and sent
// as it is, and no reader is to unpack it unasked, as a Content-Encoding would make it.
func MediaType(f Format) string {
	if p, ok := packers[f.Compression]; ok {
		return p.mediaType
	}
	return kinds[f.Kind].mediaType
}

// Extension is the end of the file's name, with its dots, such as .csv or .jsonl.gz.
func Extension(f Format) string { return kinds[f.Kind].extension + packers[f.Compression].extension }
