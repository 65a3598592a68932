package artifact_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"almanac/internal/artifact"
)

var escape = regexp.MustCompile("_x[0-9A-Fa-f]{4}_")

// unescape undoes Excel's escapes from left to right, as its documents have it.
func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.ParseUint(m[2:6], 16, 16)
		if err != nil {
			return m
		}
		return string(rune(n))
	})
}

// FuzzXLSXText: whatever the text, the sheet is XML that a plain reader takes, and the text comes back whole.
func FuzzXLSXText(f *testing.F) {
	for _, s := range []string{"plain", "", " ", "\t\n\r", "<&>\"'", "]]>", "_x0041_", "_x0041_x0042_", "_x0041\x01", "\x01x0041_", "_x005F_", "_X0041_", "_x00zz_", "__x0041__", "_x0041", "a\xffb", "\xef\xbf",
		"\uFFFE\uFFFF\uFFFD", "_xabCD\uFFFF", "_x0041<", "_x0041\xef\xbb\xbf", "\x00\x1f\x7f", "é☃🚚", "=1+1", "\r\n", "\u0085\u2028", "_x0041__x0042_"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		if len(s) > 30_000 {
			return
		}
		var file bytes.Buffer
		r := row(text(string(s)))
		if _, err := artifact.Write(t.Context(), r, artifact.Format{Kind: "xlsx"}, &file, 0); err != nil {
			t.Fatal(err)
		}
		got := texts(t, file.Bytes())
		if want := strings.ToValidUTF8(string(s), "\uFFFD"); len(got) != 2 || got[1] != want {
			t.Fatalf("%q came back as %q", want, got)
		}
	})
}
