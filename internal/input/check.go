package input

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"almanac/internal/failure"
)

// Bounds of what every kind of definition has.
const (
	MaxQuery      = 20_000 // bytes
	MaxParameters = 50
)

var parameterForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Checker collects the problems of one document.
type Checker struct{ Problems Problems }

// Bad notes a wrong field; an empty value means that it is missing.
func (c *Checker) Bad(field, value, want string) {
	c.Problems = append(c.Problems, Problem{field, failure.Cut(value, 120), want})
}

// Form checks a text against a form.
func (c *Checker) Form(field, value string, re *regexp.Regexp, want string) {
	if !re.MatchString(value) {
		c.Bad(field, Quote(value), want)
	}
}

// Quote shows a text in a problem; an empty one stays empty.
func Quote(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

// Line checks a text that people read in one line: no control character survives into a mail's header or a file name,
// none that turns the direction of what follows, and something of it can be seen.
func (c *Checker) Line(field, value string, limit int, required bool) {
	switch {
	case value == "" && required:
		c.Bad(field, "", "a text of at most "+fmt.Sprint(limit)+" characters")
	case value == "":
	case !utf8.ValidString(value), strings.ContainsFunc(value, breaks):
		c.Bad(field, Quote(value), "text without line breaks and control characters")
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		c.Bad(field, Quote(value), "text without characters that change the direction of writing, such as U+202E")
	case utf8.RuneCountInString(value) > limit:
		c.Bad(field, fmt.Sprintf("%d characters", utf8.RuneCountInString(value)), fmt.Sprintf("at most %d characters", limit))
	case !strings.ContainsFunc(value, visible):
		c.Bad(field, Quote(value), "a text that can be seen")
	}
}

// breaks reports a control character or a separator of lines or paragraphs.
func breaks(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// visible reports a letter, digit, sign or symbol that leaves ink: fillers and the empty Braille pattern are letters and
// symbols by name only.
func visible(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != '\u2800' && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// Query checks the text of a query.
func (c *Checker) Query(field, q string) {
	switch {
	case strings.TrimSpace(q) == "":
		c.Bad(field, Quote(q), "one query that only reads")
	case len(q) > MaxQuery:
		c.Bad(field, fmt.Sprintf("%d bytes", len(q)), fmt.Sprintf("at most %d bytes", MaxQuery))
	case !utf8.ValidString(q) || strings.Contains(q, "\x00"):
		c.Bad(field, Quote(q), "UTF-8 text without NUL")
	}
}

// Parameters checks a definition's own parameters; reserved ones are given by the product.
func (c *Checker) Parameters(ps Parameters, reserved []string) {
	if len(ps) > MaxParameters {
		c.Bad("parameters", fmt.Sprint(len(ps)), fmt.Sprintf("at most %d", MaxParameters))
	}
	for name, v := range ps {
		field := "parameters." + failure.Cut(name, 60)
		if !parameterForm.MatchString(name) {
			c.Bad(field, Quote(name), "a name of small letters, digits and _, such as min_delay")
		}
		if slices.Contains(reserved, name) {
			c.Bad(field, Quote(name), "another name: this one is given by the product")
		}
		switch v := v.(type) {
		case nil, bool, float64, int64, int:
		case string:
			if !utf8.ValidString(v) || strings.Contains(v, "\x00") {
				c.Bad(field, Quote(v), "UTF-8 text without NUL")
			}
		case json.Number:
			c.Bad(field, v.String(), "a number that fits: a whole one into 64 bits with its sign, another one below 1.8e308")
		default:
			c.Bad(field, fmt.Sprintf("a %T", v), "text, a number, true, false or null")
		}
	}
}
