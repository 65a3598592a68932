package artifact

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxStem bounds the schedule's part of a file name, in bytes: with date and extension it stays below the 255 bytes
// of common file systems, and three times as long, percent-encoded, below the limits of mail headers.
const maxStem = 120

// FileName is the name under which people get a file: the schedule's name, cleaned of what a file system, a shell or a
// mail client may trip over, and the nominal time in the schedule's zone (UTC if nil). Where clocks are turned back and
// the local time comes twice, its offset tells the two apart.
func FileName(scheduleName string, nominal time.Time, zone *time.Location, f Format) string {
	if zone == nil {
		zone = time.UTC
	}
	local := nominal.In(zone)
	stamp := local.Format("2006-01-02 1504")
	if local.Second() != 0 {
		stamp = local.Format("2006-01-02 150405")
	}
	if twice(local) {
		stamp += local.Format(" -0700")
	}
	return stem(scheduleName) + " " + stamp + Extension(f)
}

// twice reports whether another instant near by has the same local time; turns are of half an hour, an hour or two.
func twice(local time.Time) bool {
	wall := local.Format(time.DateTime)
	for _, d := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if local.Add(d).Format(time.DateTime) == wall || local.Add(-d).Format(time.DateTime) == wall {
			return true
		}
	}
	return false
}

// stem cleans a name: https://learn.microsoft.com/windows/win32/fileio/naming-a-file is the strictest of the systems.
func stem(s string) string {
	clean := visible(s, "/\\:*?\"<>|%")
	if len(clean) > maxStem {
		cut := maxStem
		for !utf8.RuneStart(clean[cut]) {
			cut--
		}
		clean = clean[:cut]
	}
	clean = strings.TrimRight(strings.TrimLeft(clean, " .-~'="), " .")
	if clean == "" {
		clean = "schedule"
	}
	if first, _, _ := strings.Cut(clean, "."); reserved(first) {
		clean = "_" + clean
	}
	return clean
}

// visible is a name without invisible characters, among them those that turn the direction of writing, and with a space
// for what is forbidden or a space of any kind, but never two in a row.
func visible(s, forbidden string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		case strings.ContainsRune(forbidden, r), unicode.IsControl(r), unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(clean), " ")
}

// maxSheetName is how long the name of a sheet may be, by UTF-16; what else Excel asks of it is at
// https://support.microsoft.com/office/rename-a-worksheet-3f1f7148-ee83-404d-8ef0-9ff99fbad1f9
const maxSheetName = 31

// sheetName makes the name of the rows' sheet out of the schedule's; details tells that there is a sheet of the details.
func sheetName(s string, details bool) string {
	clean := strings.Trim(visible(s, "[]:*?/\\"), "' ")
	for units([]byte(clean)) > maxSheetName {
		_, last := utf8.DecodeLastRuneInString(clean)
		clean = strings.TrimRight(clean[:len(clean)-last], "' ")
	}
	if clean == "" || strings.EqualFold(clean, "History") || details && strings.EqualFold(clean, detailsName) {
		return "Rows"
	}
	return clean
}

// reserved names stand for devices on Windows, also with an extension.
func reserved(s string) bool {
	s = strings.ToUpper(strings.TrimSpace(s))
	switch s {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	digit, ok := strings.CutPrefix(s, "COM")
	if !ok {
		digit, ok = strings.CutPrefix(s, "LPT")
	}
	return ok && utf8.RuneCountInString(digit) == 1 && strings.ContainsAny(digit, "0123456789¹²³")
}

// ContentDisposition is the header value that makes a browser save the file under its name: RFC 6266, with the name in
// ASCII and, where that loses something, in UTF-8 by RFC 5987. Whatever name is given, it is one line of ASCII.
func ContentDisposition(name string) string {
	name = strings.ToValidUTF8(name, "")
	ascii := strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlnum(byte(r)) || strings.ContainsRune(" ._-()+,", r)) {
			return r
		}
		return '_'
	}, name)
	out := `attachment; filename="` + ascii + `"`
	if ascii != name {
		out += "; filename*=UTF-8''" + percent(name)
	}
	return out
}

// percent encodes all but RFC 5987's attr-char.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if isAlnum(c) || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
