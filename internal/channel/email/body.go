package email

import (
	_ "embed"
	htmltemplate "html/template"
	"strconv"
	"strings"
	"text/template"
	"time"
	_ "time/tzdata" // people read times in the schedule's zone, also where the system has no zone data
	"unicode"

	"almanac/internal/channel"
)

//go:embed body.txt.tmpl
var plainSource string

//go:embed body.html.tmpl
var htmlSource string

var (
	plainTemplate = template.Must(template.New("plain").Parse(plainSource))
	htmlTemplate  = htmltemplate.Must(htmltemplate.New("html").Parse(htmlSource))
)

// texts are the two forms of the body, with line breaks as `\n`.
type texts struct{ plain, html string }

// view is what the templates show. Every text is a person's, or comes from outside.
type view struct {
	Subject, Introduction, Schedule, Workspace string
	Occurrence, DataAsOf, Next, Rows, Owner    string
	FileName, FileSize, SHA256, Run            string
	Attached                                   bool
	Link, Unsubscribe                          string
}

// bodyOf renders both forms. It fails only if a template does.
func bodyOf(d channel.Delivery, f channel.Frozen) (texts, error) {
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		return texts{}, err
	}
	v := view{
		Subject:      plain(subject(d)),
		Introduction: paragraphs(d.Introduction),
		Schedule:     plain(d.ScheduleName),
		Workspace:    plain(d.Workspace),
		Occurrence:   moment(d.Nominal, zone),
		DataAsOf:     moment(d.File.DataAsOf, zone),
		Next:         "none is planned",
		Rows:         grouped(d.File.Rows),
		Owner:        plain(d.Owner),
		FileName:     plain(d.File.Name),
		FileSize:     size(d.File.Bytes),
		SHA256:       plain(d.File.SHA256),
		Run:          plain(d.RunID),
		Attached:     f.Attach,
		Link:         d.FileLink,
		Unsubscribe:  d.Unsubscribe,
	}
	if v.Introduction == "" {
		v.Introduction = "This is the scheduled file “" + v.Schedule + "” for " + v.Workspace + "."
	}
	if v.Owner == "" {
		v.Owner = "not named"
	}
	if !d.NextDue.IsZero() {
		v.Next = moment(d.NextDue, zone)
	}
	var p, h strings.Builder
	if err := plainTemplate.Execute(&p, v); err != nil {
		return texts{}, err
	}
	if err := htmlTemplate.Execute(&h, v); err != nil {
		return texts{}, err
	}
	return texts{plain: p.String(), html: h.String()}, nil
}

// subject is the schedule's own; without one, its name and the occurrence's date in the zone.
func subject(d channel.Delivery) string {
	if s := plain(d.Subject); s != "" {
		return s
	}
	name := plain(d.ScheduleName)
	if name == "" {
		name = "Scheduled file"
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil || d.Nominal.IsZero() {
		return name
	}
	return name + " – " + d.Nominal.In(zone).Format("2 January 2006, 15:04 MST")
}

// moment writes an instant as people read it in the zone; the zone's full name stands beside its abbreviation, which
// alone is ambiguous.
func moment(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return "not recorded"
	}
	return t.In(zone).Format("Monday, 2 January 2006, 15:04 MST") + " (" + zone.String() + ")"
}

// paragraphs keeps the line breaks of an introduction and no other control character.
func paragraphs(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n\n").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || turns(r) {
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// size writes bytes in the decimal unit that people know from their files, and exactly.
func size(n int64) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB (" + grouped(n) + " bytes)"
	case n >= 1_000:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + " kB (" + grouped(n) + " bytes)"
	}
	return grouped(n) + " bytes"
}
