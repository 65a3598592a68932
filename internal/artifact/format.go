package artifact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Format says how rows become a file. Its zero fields mean the defaults; Kind has none.
type Format struct {
	Kind      string `json:"kind"`                // "csv"
	Delimiter string `json:"delimiter,omitempty"` // "," (default), ";", a tab or "|"
	BOM       bool   `json:"bom,omitempty"`       // a byte order mark first, for old spreadsheet programs
	Null      string `json:"null,omitempty"`      // how NULL is spelled; by default an empty field without quotes
	// Exact leaves text that a spreadsheet may run as it is. It is for files that programs read, such as a month's; no
	// definition can ask for it.
	Exact bool `json:"-"`
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
}

var kinds = map[string]kind{
	// RFC 7111 for the header parameter.
	"csv": {"text/csv; charset=utf-8; header=present", ".csv", newCSV},
}

// Validate lists what is wrong; nil means that Write can use the format.
func (f Format) Validate() (errs []FieldError) {
	if _, ok := kinds[f.Kind]; !ok {
		errs = append(errs, FieldError{"kind", f.Kind, `"csv"`})
	}
	if f.Delimiter != "" && (len(f.Delimiter) != 1 || !strings.Contains(",;\t|", f.Delimiter)) {
		errs = append(errs, FieldError{"delimiter", f.Delimiter, `one of ",", ";", a tab ("\t") and "|"`})
	}
	if want := f.wrongNull(); want != "" {
		errs = append(errs, FieldError{"null", f.Null, want})
	}
	return errs
}

func (f Format) wrongNull() string {
	switch {
	case f.Null == "":
		return ""
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

// MediaType is the file's type as HTTP and MIME name it.
func MediaType(f Format) string { return kinds[f.Kind].mediaType }

// Extension is the end of the file's name, with its dot.
func Extension(f Format) string { return kinds[f.Kind].extension }
