package artifact

import (
	"bytes"
	"unicode/utf8"
)

// What a byte of a text asks for in the XML of a spreadsheet.
const (
	wantsEntity = 1 << iota // markup, and CR, which a reader of XML would take for LF
	wantsHex                // what XML 1.0 cannot hold, or may be the beginning of it
	wideText                // not ASCII
	lineBreak
)

var xmlClass = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = wantsHex
	}
	t['\t'], t['\n'], t['\r'] = 0, lineBreak, wantsEntity
	for _, c := range []byte("<>&\"") {
		t[c] = wantsEntity
	}
	for c := 0x80; c < 0x100; c++ {
		t[c] = wideText
	}
	t['_'] = wantsHex             // the beginning of what reads as an escape
	t[0xEF] = wideText | wantsHex // the first byte of U+FFFE and U+FFFF
	return t
}()

// validText is the text with U+FFFD for what is not UTF-8, and what its bytes ask for.
func validText(s []byte) ([]byte, byte) {
	var marks byte
	for _, c := range s {
		marks |= xmlClass[c]
	}
	if marks&wideText != 0 && !utf8.Valid(s) {
		return bytes.ToValidUTF8(s, []byte("\uFFFD")), marks | wantsHex
	}
	return s, marks
}

// appendXML appends a text as the content of an XML element, as validText has it. What XML 1.0 cannot hold becomes
// _xHHHH_, as Excel writes it, and so does the underscore of a text that would read as such:
// https://learn.microsoft.com/openspecs/office_standards/ms-oi29500/d34ae755-c53f-4a44-a363-c6dd3ee018a4
func appendXML(b, s []byte, marks byte) []byte {
	if marks&(wantsEntity|wantsHex) == 0 {
		return append(b, s...)
	}
	done := 0
	for i := 0; i < len(s); i++ {
		if xmlClass[s[i]]&(wantsEntity|wantsHex) == 0 {
			continue
		}
		put, width := xmlFor(s[i:])
		if put == "" {
			continue
		}
		b = append(append(b, s[done:i]...), put...)
		i += width - 1
		done = i + 1
	}
	return append(b, s[done:]...)
}

// xmlFor is what stands in XML for the first bytes of s, and how many these are; "" is for what stays.
func xmlFor(s []byte) (put string, width int) {
	switch c := s[0]; c {
	case '<':
		return "&lt;", 1
	case '>':
		return "&gt;", 1
	case '&':
		return "&amp;", 1
	case '"':
		return "&quot;", 1
	case '\r':
		return "&#13;", 1
	case '_':
		if readsAsEscape(s) {
			return "_x005F_", 1
		}
		return "", 1
	case 0xEF:
		if len(s) > 2 && s[1] == 0xBF && s[2] >= 0xBE { // U+FFFE and U+FFFF
			return "_xFFF" + string("EF"[s[2]-0xBE]) + "_", 3
		}
		return "", 1
	default:
		return "_x00" + string(upperHex[c>>4]) + string(upperHex[c&15]) + "_", 1
	}
}

const upperHex = "0123456789ABCDEF"

// readsAsEscape reports whether a reader would take the underscore at the beginning for that of an escape: _xHHHH, and
// then an underscore, also that of an escape which is yet to be written.
func readsAsEscape(s []byte) bool {
	if len(s) < 7 || s[1] != 'x' {
		return false
	}
	for _, c := range s[2:6] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	if s[6] == '_' {
		return true
	}
	if xmlClass[s[6]]&wantsHex == 0 {
		return false
	}
	put, _ := xmlFor(s[6:])
	return put != ""
}

// units counts characters as Excel does, by UTF-16: https://github.com/qax-os/excelize/issues/2205 and
// https://github.com/jmcnamara/XlsxWriter/issues/776 found that it wants to repair a file that counts otherwise.
func units(s []byte) (n int) {
	for _, c := range s {
		if c&0xC0 != 0x80 { // the first byte of a character
			n++
		}
		if c >= 0xF0 { // one of a surrogate pair
			n++
		}
	}
	return n
}

// columnsWide is about how many columns of a screen the longest line of a text takes.
func columnsWide(s []byte) (widest int) {
	for line := range bytes.SplitSeq(s[:min(len(s), 4*maxWidth)], []byte("\n")) {
		n := 0
		for _, r := range string(line) {
			if n++; r >= 0x1100 && r != utf8.RuneError { // most of what is twice as wide begins here
				n++
			}
		}
		widest = max(widest, n)
	}
	return widest
}
