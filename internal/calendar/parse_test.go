package calendar

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseAccepts(t *testing.T) {
	for cron, want := range map[string]string{ // the first time due after Thursday 2026-01-01 00:00 UTC
		"0 9 * * *":                  "2026-01-01T09:00:00Z",
		"00 09 01 01 *":              "2026-01-01T09:00:00Z",
		"  0\t9  * * MON-FRI ":       "2026-01-01T09:00:00Z",
		"*/20 * * * *":               "2026-01-01T00:20:00Z",
		"0 */5 * * *":                "2026-01-01T05:00:00Z",
		"10-50/20 8-10 * * *":        "2026-01-01T08:10:00Z",
		"0 0 * feb mon":              "2026-02-02T00:00:00Z",
		"0 0 * JAN,DEC Sat":          "2026-01-03T00:00:00Z",
		"0 0 * * 0":                  "2026-01-04T00:00:00Z",
		"0 0 * * 7":                  "2026-01-04T00:00:00Z",
		"0 0 * * SAT-SUN":            "2026-01-03T00:00:00Z",
		"0 0 * 3 SUN-SUN":            "2026-03-01T00:00:00Z",
		"0 0 L * *":                  "2026-01-31T00:00:00Z",
		"0 0 l 2 *":                  "2026-02-28T00:00:00Z",
		"0 0 15,L * *":               "2026-01-15T00:00:00Z",
		"0 0 * * 5L":                 "2026-01-30T00:00:00Z",
		"0 0 * * friL":               "2026-01-30T00:00:00Z",
		"0 0 * * 7L":                 "2026-01-25T00:00:00Z",
		"0 0 * * MON#2":              "2026-01-12T00:00:00Z",
		"0 0 * * 7#1,6#1":            "2026-01-03T00:00:00Z",
		"0 0 * * 5#5":                "2026-01-30T00:00:00Z",
		"0 0 13 * FRI":               "2026-01-02T00:00:00Z", // either matches
		"0 0 */2 * MON":              "2026-01-03T00:00:00Z", // */2 is set: day 3, before Monday the 5th
		"0 0 */1 * MON":              "2026-01-05T00:00:00Z", // */1 is *
		"0 0 13 * */1":               "2026-01-13T00:00:00Z",
		"0 0 31 2 MON":               "2026-02-02T00:00:00Z", // due, thanks to the Mondays
		"0 0 30,31 2,4 *":            "2026-04-30T00:00:00Z",
		"0 0 29 2 *":                 "2028-02-29T00:00:00Z",
		"59 23 31 12 *":              "2026-12-31T23:59:00Z",
		"0 0 * * 1,3-4,5L,2#1,0-6/6": "2026-01-03T00:00:00Z",
	} {
		t.Run(cron, func(t *testing.T) {
			r := mustParse(t, cron, "UTC", "")
			wantTimes(t, []time.Time{r.Next(at(t, "2026-01-01T00:00:00Z")).At}, want)
		})
	}
	for i, m := range strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC") {
		want := fmt.Sprintf("2027-%02d-01T00:00:00Z", i+1)
		wantTimes(t, []time.Time{mustParse(t, "0 0 1 "+m+" *", "UTC", "").Next(at(t, "2026-12-31T00:00:00Z")).At}, want)
	}
	for i, d := range strings.Fields("SUN MON TUE WED THU FRI SAT") {
		got := mustParse(t, "0 0 * * "+d, "UTC", "").Next(at(t, "2026-01-01T00:00:00Z")).At
		if got.Weekday() != time.Weekday(i) {
			t.Errorf("%s is %v", d, got.Weekday())
		}
	}
}

func TestParseFridayToSundayHasSunday(t *testing.T) {
	for _, span := range []string{"5-7", "FRI-SUN", "fri-7", "5,6,0", "MON-SUN"} {
		got, _ := due(mustParse(t, "0 0 * * "+span, "UTC", ""), at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-04T00:00:00Z"))
		wantTimes(t, got, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z")
	}
}

func TestParseNormalisesTheSpec(t *testing.T) {
	got := mustParse(t, " 0  9 * *\tMON", "Asia/Kolkata", "")
	if want := (Spec{Cron: "0 9 * * MON", Zone: "Asia/Kolkata", Gap: GapRunOnce}); !got.Spec().Equal(want) || got.Location().String() != want.Zone {
		t.Errorf("got %+v, want %+v", got.Spec(), want)
	}
}

// Each row: the field wrong, its value, a part of what is said to be wrong, a part of what is said to be right.
func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("1,", 100) + "1 * * * *"
	for _, c := range []struct{ cron, problem, want string }{
		{"", "is empty", "exactly five fields"},
		{" \t ", "is empty", "exactly five fields"},
		{"0 9 * *", "has 4 fields", "exactly five fields: minute hour day-of-month month day-of-week"},
		{"0 9 * * * *", "has 6 fields", "exactly five fields"},
		{"0 0 9 * * * 2026", "has 7 fields", "exactly five fields"},
		{"0 9 * * * 2026-2030", "has 6 fields", "exactly five fields"},
		{"@daily", "is a macro", "every day"},
		{" @every 1h", "is a macro", "exactly five fields"},
		{"CRON_TZ=UTC 0 9 * * *", "has 6 fields", "exactly five fields"},
		{"TZ=UTC 9 * * *", `contains '='`, "digits"},
		{"0 9 ? * MON", `contains "?"`, `"*" for a day field`},
		{"0 9 * * MON;rm", `contains ';'`, "digits"},
		{"0 9 * *\nMON", `contains '\n'`, "digits"},
		{"0 9 * *\u00a0MON", `contains '\u00a0'`, "digits"},
		{"0 9 * * \x00", `contains '\x00'`, "digits"},
		{"0 9 * * \xff\xfe", `contains '�'`, "digits"},
		{"٠ 9 * * *", `contains '٠'`, "digits"},
		{"${jndi} 9 * * *", `contains '$'`, "digits"},
		{long, "has 209 bytes", "at most 200"},
		{strings.Repeat("* ", 1<<20), "has 2097152 bytes", "at most 200"},
		{"60 9 * * *", `bad minute: "60" is out of range`, "0 to 59"},
		{"0 24 * * *", `bad hour: "24" is out of range`, "0 to 23"},
		{"0 9 0 * *", `bad day-of-month: "0" is out of range`, "1 to 31"},
		{"0 9 32 * *", `bad day-of-month: "32" is out of range`, "1 to 31"},
		{"0 9 * 13 *", `bad month: "13" is out of range`, "1 to 12 or JAN to DEC"},
		{"0 9 * 0 *", `bad month: "0" is out of range`, "1 to 12"},
		{"0 9 * * 8", `bad day-of-week: "8" is out of range`, "0 to 7 or SUN to SAT"},
		{"0 9 * MARCH *", `bad month: "MARCH" is not understood`, "JAN to DEC"},
		{"0 9 * ANF *", `bad month: "ANF" is not understood`, "JAN to DEC"},
		{"0 9 * * MO", `bad day-of-week: "MO" is not understood`, "SUN to SAT"},
		{"MON 9 * * *", `bad minute: "MON" is not understood`, "0 to 59"},
		{"007 9 * * *", `bad minute: "007" is not understood`, "0 to 59"},
		{"-5 9 * * *", `bad minute: "-5" is not understood`, "0 to 59"},
		{"5- 9 * * *", `bad minute: "5-" is not understood`, "0 to 59"},
		{"1-2-3 9 * * *", `bad minute: "1-2-3" is not understood`, "0 to 59"},
		{"50-10 9 * * *", `"50-10" runs backwards`, "the smaller value first"},
		{"0 22-4 * * *", `"22-4" runs backwards`, "two ranges"},
		{"0 9 * * FRI-MON", `"FRI-MON" runs backwards`, "the smaller value first"},
		{"*/0 9 * * *", `"*/0" has a bad step`, "from 1 to 59"},
		{"*/60 9 * * *", `"*/60" has a bad step`, "from 1 to 59"},
		{"*/ 9 * * *", `"*/" has a bad step`, "from 1 to 59"},
		{"*/2/2 9 * * *", `"*/2/2" has a bad step`, "from 1 to 59"},
		{"*/-1 9 * * *", `"*/-1" has a bad step`, "from 1 to 59"},
		{"*/99999999999999999999 9 * * *", `has a bad step`, "from 1 to 59"},
		{"0 */24 * * *", `"*/24" has a bad step`, "from 1 to 23"},
		{"0 9 1-5/9 * *", `"1-5/9" has a bad step`, "from 1 to 4"},
		{"5/15 9 * * *", `"5/15" has a step on a single value`, `"5-59/2"`},
		{"1,,2 9 * * *", "empty place in its list", "one comma"},
		{", 9 * * *", "empty place in its list", "one comma"},
		{"0 9, * * *", "empty place in its list", "one comma"},
		{"0 *,5 * * *", `has "*" inside a list`, "alone"},
		{"*/15,7 9 * * *", `has "*" inside a list`, "0-59/5"},
		{"** 9 * * *", `"**" is not understood`, "0 to 59"},
		{"L 9 * * *", `bad minute: "L" is not understood`, "0 to 59"},
		{"0 9 LW * *", `"LW" is not understood`, `"L" for the last day`},
		{"0 9 15W * *", `"15W" is not understood`, `"L" for the last day`},
		{"0 9 L-3 * *", `"L-3" is not understood`, `"L" for the last day`},
		{"0 9 * * L", `"L" names no day`, `"5L" for the last Friday`},
		{"0 9 * * 8L", `"8L" is out of range`, "0 to 7"},
		{"0 9 * * XL", `"XL" is not understood`, "0 to 7"},
		{"0 9 * * 1-5L", `"1-5L" is not understood`, "0 to 7"},
		{"0 9 * * 5#0", `"5#0" names no week`, "#1 to #5"},
		{"0 9 * * 5#6", `"5#6" names no week`, "#1 to #5"},
		{"0 9 * * 5#", `"5#" names no week`, "#1 to #5"},
		{"0 9 * * 5#01", `"5#01" names no week`, "#1 to #5"},
		{"0 9 * * 5#1#2", `"5#1#2" names no week`, "#1 to #5"},
		{"0 9 * * #2", `"#2" is not understood`, "0 to 7"},
		{"0 9 1#2 * *", `bad day-of-month: "1#2" is not understood`, "1 to 31"},
		{"0 0 31 2 *", "is never due", "a day that occurs in one of its months"},
		{"0 0 30-31 FEB */1", "is never due", "a day that occurs"},
		{"* * 31 2,4,6,9,11 *", "is never due", "a day that occurs"},
	} {
		t.Run(show(c.cron), func(t *testing.T) {
			_, err := Parse(Spec{Cron: c.cron, Zone: "UTC"})
			wantFieldError(t, err, "cron", c.cron, c.problem, c.want)
		})
	}
}

func wantFieldError(t *testing.T, err error, field, value, problem, want string) {
	t.Helper()
	var fe *FieldError
	if !errors.As(err, &fe) {
		t.Fatalf("got %v, want a *FieldError", err)
	}
	if fe.Field != field || fe.Value != value || !strings.Contains(fe.Problem, problem) || !strings.Contains(fe.Want, want) {
		t.Errorf("got  %+v\nwant field %q, problem %q, want %q", fe, field, problem, want)
	}
	msg := err.Error()
	if !strings.HasPrefix(msg, field+": \"") || !strings.Contains(msg, problem) || !strings.Contains(msg, want) ||
		len(msg) > 600 || strings.ContainsAny(msg, "\n\x00") || !utf8.ValidString(msg) {
		t.Errorf("message %q", msg)
	}
}

func TestErrorReadsAsASentence(t *testing.T) {
	_, err := Parse(Spec{Cron: "0 9 * * * *", Zone: "UTC"})
	want := `cron: "0 9 * * * *" has 6 fields; want exactly five fields: minute hour day-of-month month day-of-week`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestParseNamesEveryWrongField(t *testing.T) {
	_, err := Parse(Spec{Cron: "nonsense", Zone: "Mars/Olympus", Gap: "later"})
	for _, want := range []string{`cron: "nonsense" has 1 field;`, `zone: "Mars/Olympus" is no zone`, `gap: "later" is no gap policy; want run-once or skip`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	for _, gap := range []Gap{"SKIP", "run_once", "skip ", "\x00", Gap(strings.Repeat("x", 5000))} {
		_, err := Parse(Spec{Cron: "0 9 * * *", Zone: "UTC", Gap: gap})
		wantFieldError(t, err, "gap", string(gap), "is no gap policy", "run-once or skip")
	}
	if _, ok := err.(*FieldError); ok {
		t.Error("three errors came as one")
	}
	if _, err := Parse(Spec{Cron: "0 9 * * *", Zone: ""}); err.(*FieldError).Field != "zone" {
		t.Error("one error did not come as a plain *FieldError")
	}
}

func TestT6ZonesByExactNameOnly(t *testing.T) {
	for _, name := range []string{"", "GMT Standard Time", "EST5", "Local", "local", "localtime", "Factory", "posixrules", "america/new_york",
		"America/New York", "AMERICA/NEW_YORK", "utc", " UTC", "UTC ", "UTC\n", "UTC\nCET", "UTC\x00", "America", "America/", "/UTC", "./UTC",
		"../zoneinfo/UTC", "America/../UTC", "posix/UTC", "right/UTC", "/etc/passwd", "../../etc/passwd", "C:\\x", "UTC+1", "+01:00",
		"EST5EDT,M3.2.0,M11.1.0", "America/New_York;x", "tzdata.zi", "zone.tab", "\xff", strings.Repeat("A", 1<<20)} {
		t.Run(show(name), func(t *testing.T) {
			loc, err := LoadZone(name)
			if loc != nil {
				t.Fatalf("got %v", loc)
			}
			wantFieldError(t, err, "zone", name, "", "")
			_, err = Parse(Spec{Cron: "0 9 * * *", Zone: name})
			wantFieldError(t, err, "zone", name, "", "")
		})
	}
	for name, want := range map[string]string{"GMT Standard Time": "America/New_York", "EST5": "IANA", "america/new_york": `"America/New_York", spelled exactly so`} {
		if _, err := LoadZone(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v lacks %q", name, err, want)
		}
	}
	for _, name := range []string{"UTC", "Etc/UTC", "EST5EDT", "US/Eastern", "GMT", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "Asia/Kolkata"} {
		if loc, err := LoadZone(name); err != nil || loc.String() != name {
			t.Errorf("%s: %v %v", name, loc, err)
		}
	}
}

func TestEveryListedZoneLoads(t *testing.T) {
	names := strings.Fields(zoneNames)
	if len(names) < 590 {
		t.Fatalf("%d names", len(names))
	}
	for i, n := range names {
		if _, err := LoadZone(n); err != nil {
			t.Error(err)
		}
		if i > 0 && n <= names[i-1] {
			t.Errorf("%s follows %s", n, names[i-1])
		}
	}
	if b, err := os.ReadFile("zones.txt"); err != nil || string(b) != zoneNames {
		t.Errorf("embedded list differs from the file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 9 * * *", "*/5 */2 L JAN-MAR MON#2,5L", "0 0 29 2 *", "30 2 * 3 SUN#2", "0 0 31 2 *", "@daily", "0 9 ? * *",
		"5/15 * * * *", "60 24 0 13 8", "*/99 9 * * *", ", , , , ,", "0 0 * 2 MON#5", "\x00 \xff * * *", "0 0 1-31/30 * FRI-SUN"} {
		f.Add(s, "America/New_York", "skip")
		f.Add(s, "Australia/Lord_Howe", "")
	}
	f.Add("0 9 * * *", "../../etc/passwd", "later")
	after := time.Date(2026, 2, 27, 10, 3, 4, 5, time.UTC)
	f.Fuzz(func(t *testing.T, cron, zone, gap string) {
		r, err := Parse(Spec{Cron: cron, Zone: zone, Gap: Gap(gap)})
		if err != nil {
			var fe *FieldError
			if r != nil || !errors.As(err, &fe) || fe.Field == "" || fe.Problem == "" || fe.Want == "" || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q %q %q: %v", cron, zone, gap, err)
			}
			return
		}
		n := r.Next(after)
		if !n.At.After(after) || n.At.Second() != 0 || n.At.Nanosecond() != 0 {
			t.Fatalf("%q %q %q: due at %v", cron, zone, gap, n.At)
		}
		if again, err := Parse(r.Spec()); err != nil || !again.Next(after).At.Equal(n.At) {
			t.Fatalf("%q %q %q: its own spec reads otherwise: %v", cron, zone, gap, err)
		}
		for _, s := range n.Skipped {
			if !s.First.After(after) || s.Last.Before(s.First) || s.Count < 1 || s.Reason == "" {
				t.Fatalf("%q %q %q: %+v", cron, zone, gap, s)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, cron, zone string }{
		{"weekdays", "0 9 * * MON-FRI", "America/New_York"},
		{"hourly", "0 * * * *", "America/New_York"},
		{"last day", "0 9 L * *", "Australia/Lord_Howe"},
		{"leap day", "0 9 29 2 *", "America/New_York"},
		{"rarest", "0 * * 2 MON#5", "Africa/Casablanca"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := mustParse(b, c.cron, c.zone, "")
			t := at(b, "2026-01-01T00:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				if r.Next(t).At.IsZero() {
					b.Fatal("never")
				}
			}
		})
	}
}
