package calendar

import (
	_ "embed"
	"strings"
	"time"
	_ "time/tzdata" // functions run where no zone data are installed
)

// zoneNames lists every zone and link of the IANA database, one a line, as Go's own copy of it names them (2026 edition),
// without "Factory", which means "not set" and reads as UTC. A list of our own is needed since time.LoadLocation also
// takes whatever files the system has: "Local", "posix/…", and "right/…", which counts leap seconds.
//
//go:embed zones.txt
var zoneNames string

const wantZone = `an exact name of the IANA time zone database, such as "America/New_York" or "UTC"`

// LoadZone returns the zone of an exact IANA name, links such as "US/Eastern" and "EST5EDT" included. Anything else is
// refused by a *FieldError: no name, "Local", Windows names, POSIX rules such as "EST5", another case, a path.
func LoadZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, &FieldError{"zone", name, "is empty", wantZone}
	}
	if !listed(name) {
		want := wantZone
		if n := otherCase(name); n != "" {
			want = `"` + n + `", spelled exactly so`
		}
		return nil, &FieldError{"zone", name, "is no zone of the IANA database", want}
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, &FieldError{"zone", name, "has no data here (" + err.Error() + ")", wantZone}
	}
	return loc, nil
}

func listed(name string) bool {
	return !strings.ContainsAny(name, "\r\n") && strings.Contains("\n"+zoneNames, "\n"+name+"\n")
}

// otherCase finds the name that differs in case only.
func otherCase(name string) string {
	for n := range strings.Lines(zoneNames) {
		if n = strings.TrimSpace(n); strings.EqualFold(n, name) {
			return n
		}
	}
	return ""
}
