package email

import (
	"encoding/base64"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"almanac/internal/failure"
)

// maxText is the longest text in bytes that goes into one header before it is encoded.
const maxText = 400

// plain makes a text fit for one line: control characters, line and paragraph separators and marks that turn the
// direction of writing become blanks, blanks are collapsed, broken UTF-8 is replaced, and what is too long is cut.
// `=?` is parted, so that no reader decodes an encoded word that a person has typed.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || turns(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.ReplaceAll(s, "=?", "= ?")
	return failure.Cut(strings.Join(strings.Fields(s), " "), maxText)
}

// turns reports the marks by which a text can be shown in another order than it is written (Unicode TR 9).
func turns(r rune) bool {
	return r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F' || r == '\u061C'
}

// text is a header's value for a person's text: plain, and as encoded words (RFC 2047) where it is not ASCII. The words
// are shorter than allowed, so that the first fits on the line of the longest header's name (76 bytes, RFC 2047 2).
func text(s string) string {
	s = plain(s)
	if !strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) {
		return s
	}
	var words []string
	for s != "" {
		n := min(len(s), 30)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// fold breaks a header line at blanks to lines of 76 bytes where it can (RFC 5322 2.2.3); the value must hold no line
// break. A word that is longer stays whole.
func fold(name, value string) string {
	var b strings.Builder
	b.WriteString(name + ":")
	column := len(name) + 1
	for i, word := range strings.Split(value, " ") {
		if column+1+len(word) > 76 && (i > 0 || len(name)+2+len(word) > 900) {
			b.WriteString("\r\n")
			column = 0
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	return b.String()
}

// foldValue is fold without the name, for writers that put it before by themselves.
func foldValue(name, value string) string {
	return strings.TrimPrefix(fold(name, value), name+": ")
}

// disposition tells the file's name twice where it is not plain ASCII: as a fallback, and as RFC 2231 has it (the
// ext-value of RFC 5987), which readers prefer.
func disposition(name string) string {
	name = strings.NewReplacer("/", "_", `\`, "_").Replace(failure.Cut(plain(name), 255)) // a name, never a path
	if name == "" {
		name = "file"
	}
	fallback := strings.Map(func(r rune) rune {
		if r > '~' || strings.ContainsRune(`"%`, r) {
			return '_'
		}
		return r
	}, name)
	value := `attachment; filename="` + fallback + `"`
	if fallback == name {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return value + "; filename*=UTF-8''" + b.String()
}

// mediaType is the file's type if it is one, so that nothing else can get into the header.
func mediaType(s string) string {
	t, params, err := mime.ParseMediaType(s)
	if err == nil && strings.Count(t, "/") == 1 {
		if out := mime.FormatMediaType(t, params); out != "" {
			return out
		}
	}
	return "application/octet-stream"
}
