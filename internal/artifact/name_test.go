package artifact_test

import (
	"mime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/artifact"
)

func TestV11FileName(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2013, 6, 1, 13, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"Q3 \"a/b\"\r\nx":         "Q3 a b x 2013-06-01 0900.csv",
		"Late flights 🛫✈️":        "Late flights 🛫✈️ 2013-06-01 0900.csv",
		"":                        "schedule 2013-06-01 0900.csv",
		" . ":                     "schedule 2013-06-01 0900.csv",
		"../../etc/passwd":        "etc passwd 2013-06-01 0900.csv",
		"con.report":              "_con.report 2013-06-01 0900.csv",
		"LPT¹":                    "_LPT¹ 2013-06-01 0900.csv",
		"console":                 "console 2013-06-01 0900.csv",
		"--help":                  "help 2013-06-01 0900.csv",
		"a\u202Efdp.exe":          "afdp.exe 2013-06-01 0900.csv",
		"a\x00b\u2028c\ufeff\xff": "a b c 2013-06-01 0900.csv",
		"100% sure?":              "100 sure 2013-06-01 0900.csv",
		"Größe":                   "Größe 2013-06-01 0900.csv",
		"ends with dots...":       "ends with dots 2013-06-01 0900.csv",
	} {
		if got := artifact.FileName(name, at, zone, plain); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	long := artifact.FileName(strings.Repeat("é🛫", 500), at, zone, plain)
	if len(long) > 150 || !utf8.ValidString(long) || !strings.HasSuffix(long, " 2013-06-01 0900.csv") {
		t.Errorf("a long name: %d bytes, %q", len(long), long)
	}
	for utc, want := range map[string]string{ // clocks are turned back at 06:00Z
		"2026-11-01T04:30:00Z": "s 2026-11-01 0030.csv", "2026-11-01T05:30:00Z": "s 2026-11-01 0130 -0400.csv", "2026-11-01T06:30:00Z": "s 2026-11-01 0130 -0500.csv",
		"2026-11-01T07:30:00Z": "s 2026-11-01 0230.csv", "2026-11-01T07:30:07Z": "s 2026-11-01 023007.csv",
	} {
		nominal, _ := time.Parse(time.RFC3339, utc)
		if got := artifact.FileName("s", nominal, zone, plain); got != want {
			t.Errorf("%s: %q, want %q", utc, got, want)
		}
	}
	if got := artifact.FileName("s", at, nil, plain); got != "s 2013-06-01 1300.csv" {
		t.Errorf("without a zone: %q", got)
	}
}

func TestV11ContentDisposition(t *testing.T) {
	for name, want := range map[string]string{
		"a b 2013.csv":             `attachment; filename="a b 2013.csv"`,
		"Größe 🛫.csv":              `attachment; filename="Gr__e _.csv"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%F0%9F%9B%AB.csv`,
		"x\"\r\nSet-Cookie: a=b\\": `attachment; filename="x___Set-Cookie_ a_b_"; filename*=UTF-8''x%22%0D%0ASet-Cookie%3A%20a%3Db%5C`,
		"it's 5%.csv":              `attachment; filename="it_s 5_.csv"; filename*=UTF-8''it%27s%205%25.csv`,
	} {
		got := artifact.ContentDisposition(name)
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", name, got, want)
		}
		kind, params, err := mime.ParseMediaType(got)
		if err != nil || kind != "attachment" || params["filename"] != name {
			t.Errorf("%q reads back as %q %q %v", name, kind, params["filename"], err)
		}
		for _, c := range []byte(got) {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%q has the byte %#x", got, c)
			}
		}
	}
}
