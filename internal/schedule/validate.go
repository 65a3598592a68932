package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/failure"
)

// Bounds of a definition. Together they keep its row below 100 KB (design.md §3).
const (
	MaxName         = 120
	MaxQuery        = 20_000
	MaxRecipients   = 500 // longer lists come as a frozen object, with a later part of the product
	MaxParameters   = 50
	MaxIntroduction = 2_000
	MaxWorkspaces   = 500 // that one source names
	MaxNotify       = 5   // each notice is one action of the settle's transaction
	maxDefinition   = 90_000
)

// When failures in a row pause a schedule.
const (
	DefaultPauseAfter = 10
	MaxPauseAfter     = 1000
	NeverPause        = -1
)

var (
	idForm        = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	workspaceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)
	parameterForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	secretForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// Reserved parameters are given by the product.
var Reserved = []string{"workspace", "period_start", "period_end", "scheduled_time", "last_success_time"}

// ParseDefinition reads a definition strictly and fills in its defaults; every wrong field is named in the Problems
// that it returns.
func ParseDefinition(raw []byte) (Definition, error) {
	var d Definition
	if len(raw) > maxDefinition {
		return d, Problems{{"definition", fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("at most %d bytes", maxDefinition)}}
	}
	if err := strictJSON(raw, &d); err != nil {
		return d, Problems{jsonProblem(err)}
	}
	d = d.withDefaults()
	if ps := d.Check(); len(ps) > 0 {
		return d, ps
	}
	return d, nil
}

// jsonProblem turns the decoder's words into a problem with a field.
func jsonProblem(err error) Problem {
	var wrong *json.UnmarshalTypeError
	var twice *repeatedField
	switch {
	case errors.As(err, &twice):
		return Problem{failure.Cut(twice.name, 60), "written twice", "one value"}
	case !errors.As(err, &wrong):
	case wrong.Type == reflect.TypeFor[Duration]():
		return Problem{wrong.Field, failure.Cut(wrong.Value, 60), `a duration in text, such as "30s"`}
	default:
		return Problem{wrong.Field, article(wrong.Value), article(typeName(wrong.Type))}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		want := "one of the fields of a definition"
		if near := Nearest(name, fieldNames()); near != "" {
			want = "a field of a definition; did you mean " + near + "?"
		}
		return Problem{name, "not known", want}
	}
	return Problem{"definition", failure.Cut(err.Error(), 200), "one JSON document"}
}

// article puts "a" or "an" before the name of a type, and nothing before what needs none.
func article(name string) string {
	switch {
	case name == "true or false" || name == "text":
		return name
	case strings.ContainsRune("aeiou", rune(name[0])):
		return "an " + name
	}
	return "a " + name
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.Struct, reflect.Map:
		return "mapping"
	}
	return "number"
}

func fieldNames() []string {
	var names []string
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
			ft := f.Type
			if ft.Kind() == reflect.Slice {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				walk(ft)
			}
		}
	}
	walk(reflect.TypeFor[Definition]())
	return names
}

// Nearest finds the name that differs least, if it is near enough to be meant.
func Nearest(name string, names []string) string {
	best, at := "", 3
	for _, n := range names {
		if d := distance(name, n); d < at {
			best, at = n, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func (d Definition) withDefaults() Definition {
	if d.Empty == "" {
		d.Empty = DeliverEmpty
	}
	if d.File.Kind == "" {
		d.File.Kind = "csv"
	}
	if d.File.RetentionDays == 0 {
		d.File.RetentionDays = 30
	}
	if d.Recurrence.Gap == "" {
		d.Recurrence.Gap = calendar.GapRunOnce
	}
	return d
}

// Hash names a definition by its content: equal definitions make no new version.
func (d Definition) Hash() string {
	b, err := json.Marshal(d)
	if err != nil {
		panic("schedule: a definition that JSON cannot hold: " + err.Error()) // cannot happen: it came from JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

type checker struct{ ps Problems }

func (c *checker) bad(field, value, want string) {
	c.ps = append(c.ps, Problem{field, failure.Cut(value, 120), want})
}

func (c *checker) form(field, value string, re *regexp.Regexp, want string) {
	if !re.MatchString(value) {
		c.bad(field, quote(value), want)
	}
}

func quote(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

// line checks a text that people read in one line: no control character survives into a mail's header or a file name,
// none that turns the direction of what follows, and something of it can be seen.
func (c *checker) line(field, value string, limit int, required bool) {
	switch {
	case value == "" && required:
		c.bad(field, "", "a text of at most "+fmt.Sprint(limit)+" characters")
	case value == "":
	case !utf8.ValidString(value), strings.ContainsFunc(value, breaks):
		c.bad(field, quote(value), "text without line breaks and control characters")
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		c.bad(field, quote(value), "text without characters that change the direction of writing, such as U+202E")
	case utf8.RuneCountInString(value) > limit:
		c.bad(field, fmt.Sprintf("%d characters", utf8.RuneCountInString(value)), fmt.Sprintf("at most %d characters", limit))
	case !strings.ContainsFunc(value, visible):
		c.bad(field, quote(value), "a text that can be seen")
	}
}

// breaks reports a control character or a separator of lines or paragraphs.
func breaks(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// visible reports a letter, digit, sign or symbol that leaves ink: fillers and the empty Braille pattern are letters and
// symbols by name only.
func visible(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != '\u2800' && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// Check names every wrong field of a definition.
func (d Definition) Check() Problems {
	var c checker
	c.form("id", d.ID, idForm, "1 to 64 small letters, digits and dashes, such as delayed-departures")
	c.form("workspace", d.Workspace, workspaceForm, "the id of a workspace, such as EWR")
	c.line("name", d.Name, MaxName, true)
	c.line("owner", d.Owner, MaxName, true)
	c.form("source", d.Source, workspaceForm, "the name of a source, such as flights")
	c.query(d.Query)
	c.parameters(d.Parameters)
	c.recurrence(d.Recurrence)
	for _, e := range d.File.Format.Validate() {
		c.bad("file."+e.Field, quote(e.Value), e.Want)
	}
	if !slices.Contains(Retentions, d.File.RetentionDays) {
		c.bad("file.retention_days", fmt.Sprint(d.File.RetentionDays), fmt.Sprintf("one of %v", Retentions))
	}
	if life := d.File.LinkLife.Std(); life != 0 && life < MinLinkLife || life > time.Duration(d.File.RetentionDays)*24*time.Hour {
		c.bad("file.link_life", life.String(), "at least 1s and at most the file's retention")
	}
	if d.Empty != SuppressEmpty && d.Empty != DeliverEmpty {
		c.bad("empty", quote(string(d.Empty)), `"suppress" or "deliver"`)
	}
	c.catchUp(d)
	c.recipients(d.Recipients)
	c.notices(d)
	c.line("mail.subject", d.Mail.Subject, MaxName, false)
	if n := utf8.RuneCountInString(d.Mail.Introduction); n > MaxIntroduction {
		c.bad("mail.introduction", fmt.Sprintf("%d characters", n), fmt.Sprintf("at most %d characters", MaxIntroduction))
	}
	c.limits(d.Limits)
	c.stored(d)
	return c.ps
}

// stored checks the size of the row that the definition becomes: JSON spells some characters with six bytes.
func (c *checker) stored(d Definition) {
	if b, err := json.Marshal(d); err == nil && len(b) > maxDefinition {
		c.bad("definition", fmt.Sprintf("%d bytes as it is stored", len(b)), fmt.Sprintf("at most %d bytes; <, > and & count as six each", maxDefinition))
	}
}

func (c *checker) query(q string) {
	switch {
	case strings.TrimSpace(q) == "":
		c.bad("query", quote(q), "one query that only reads")
	case len(q) > MaxQuery:
		c.bad("query", fmt.Sprintf("%d bytes", len(q)), fmt.Sprintf("at most %d bytes", MaxQuery))
	case !utf8.ValidString(q) || strings.Contains(q, "\x00"):
		c.bad("query", quote(q), "UTF-8 text without NUL")
	}
}

func (c *checker) parameters(ps Parameters) {
	if len(ps) > MaxParameters {
		c.bad("parameters", fmt.Sprint(len(ps)), fmt.Sprintf("at most %d", MaxParameters))
	}
	for name, v := range ps {
		field := "parameters." + failure.Cut(name, 60)
		if !parameterForm.MatchString(name) {
			c.bad(field, quote(name), "a name of small letters, digits and _, such as min_delay")
		}
		if slices.Contains(Reserved, name) {
			c.bad(field, quote(name), "another name: this one is given by the product")
		}
		switch v := v.(type) {
		case nil, bool, float64, int64, int:
		case string:
			if !utf8.ValidString(v) || strings.Contains(v, "\x00") {
				c.bad(field, quote(v), "UTF-8 text without NUL")
			}
		case json.Number:
			c.bad(field, v.String(), "a number that fits: a whole one into 64 bits with its sign, another one below 1.8e308")
		default:
			c.bad(field, fmt.Sprintf("a %T", v), "text, a number, true, false or null")
		}
	}
}

// recurrence checks a rule. A zone that is left open is the workspace's, which is filled in when the definition is saved.
func (c *checker) recurrence(s calendar.Spec) {
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	_, err := calendar.Parse(s)
	if err == nil {
		return
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, e := range errs {
		var f *calendar.FieldError
		if errors.As(e, &f) {
			c.ps = append(c.ps, Problem{"recurrence." + f.Field, calendarValue(f), f.Want})
			continue
		}
		c.bad("recurrence", e.Error(), "a recurrence")
	}
}

func calendarValue(f *calendar.FieldError) string {
	if f.Value == "" {
		return ""
	}
	return failure.Cut(strings.TrimSpace(fmt.Sprintf("%q, which %s", f.Value, f.Problem)), 250)
}

func (c *checker) catchUp(d Definition) {
	switch d.CatchUp {
	case "", CatchUpLatest, CatchUpAll, CatchUpNone:
	default:
		c.bad("catch_up", quote(string(d.CatchUp)), `"latest", "all" or "none"`)
	}
	switch w := d.CatchUpWindow.Std(); {
	case w == 0:
	case d.CatchUp != CatchUpAll:
		c.bad("catch_up_window", w.String(), `nothing: only catch_up "all" has a window`)
	case w < 0 || w > MaxWindow:
		c.bad("catch_up_window", w.String(), "more than 0 and at most "+MaxWindow.String())
	}
	switch d.Overlap {
	case "", OverlapAllow, OverlapSkip:
	default:
		c.bad("overlap", quote(string(d.Overlap)), `"allow" or "skip"`)
	}
}

func (c *checker) recipients(rs []Recipient) {
	if len(rs) == 0 {
		c.bad("recipients", "", "at least one recipient, such as {email: name@example.com}")
	}
	if len(rs) > MaxRecipients {
		c.bad("recipients", fmt.Sprint(len(rs)), fmt.Sprintf("at most %d", MaxRecipients))
	}
	c.addresses("recipients", rs)
}

// notices checks when a schedule pauses by itself and who hears of it.
func (c *checker) notices(d Definition) {
	if n := d.PauseAfter; n != nil && *n != NeverPause && (*n < 1 || *n > MaxPauseAfter) {
		c.bad("pause_after_failures", fmt.Sprint(*n), fmt.Sprintf("1 to %d failures in a row, or -1 for never; leave it out for %d", MaxPauseAfter, DefaultPauseAfter))
	}
	if len(d.Notify) > MaxNotify {
		c.bad("notify", fmt.Sprint(len(d.Notify)), fmt.Sprintf("at most %d", MaxNotify))
	}
	c.addresses("notify", d.Notify)
}

// addresses checks each entry of a list of recipients.
func (c *checker) addresses(list string, rs []Recipient) {
	for i, r := range rs {
		field := fmt.Sprintf("%s[%d]", list, i)
		switch {
		case r.Email != "" && r.Webhook != "":
			c.bad(field, "both an email and a webhook", "one of the two; write two recipients")
		case r.Email == "" && r.Webhook == "":
			c.bad(field, "", "an email or a webhook")
		case r.Webhook != "" && r.Secret == "":
			c.bad(field+".secret", "", "the id of the secret that signs, such as ops")
		case r.Webhook == "" && r.Secret != "":
			c.bad(field+".secret", quote(r.Secret), "nothing: only webhooks are signed")
		case r.Secret != "" && !secretForm.MatchString(r.Secret):
			c.bad(field+".secret", quote(r.Secret), "letters, digits, - and _")
		}
		if a := r.Address(); a != "" {
			if _, err := channel.Normalise(r.Channel(), a); err != nil {
				c.bad(field+"."+r.Channel(), quote(a), "an address that can be delivered to: "+err.Error())
			}
		}
	}
}

// Bounds of a definition's limits: more than these no run can reach. A file is one object of S3 and a run one
// invocation (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const (
	MaxRows     = 1_000_000_000
	MaxBytes    = 5 << 30
	MaxTimeout  = 15 * time.Minute
	MinLinkLife = time.Second
)

func (c *checker) limits(l DefinitionLimit) {
	if l.Rows < 0 || l.Rows > MaxRows {
		c.bad("limits.rows", fmt.Sprint(l.Rows), fmt.Sprintf("more than 0 and at most %d", MaxRows))
	}
	if l.Bytes < 0 || l.Bytes > MaxBytes {
		c.bad("limits.bytes", fmt.Sprint(l.Bytes), fmt.Sprintf("more than 0 and at most %d (5 GiB)", MaxBytes))
	}
	if l.Timeout != "" {
		if d, err := time.ParseDuration(l.Timeout); err != nil || d <= 0 || d > MaxTimeout {
			c.bad("limits.timeout", quote(l.Timeout), `a duration such as "90s", more than 0 and at most 15m`)
		}
	}
}

// Check names every wrong field of a workspace.
func (w Workspace) Check() Problems {
	var c checker
	c.form("id", w.ID, workspaceForm, "letters, digits, - and _, at most 40, such as EWR")
	c.line("name", w.Name, MaxName, true)
	if _, err := calendar.LoadZone(w.Zone); err != nil {
		c.bad("zone", quote(w.Zone), "the exact name of an IANA time zone, such as America/New_York")
	}
	return c.ps
}

// Check names every wrong field of a source.
func (s SourceConfig) Check() Problems {
	var c checker
	c.form("name", s.Name, workspaceForm, "letters, digits, - and _, at most 40, such as flights")
	if s.Engine != "sqlite" {
		c.bad("engine", quote(s.Engine), `"sqlite"`)
	}
	if s.Object == "" || strings.HasPrefix(s.Object, "/") || strings.Contains(s.Object, "..") || strings.ContainsFunc(s.Object, unicode.IsControl) || len(s.Object) > 512 {
		c.bad("object", quote(s.Object), "the key of a file in the data bucket, such as sources/flights.sqlite")
	}
	if len(s.Workspaces) == 0 {
		c.bad("workspaces", "", `the workspaces that may use it, or "*"`)
	}
	if n := len(s.Workspaces); n > MaxWorkspaces {
		c.bad("workspaces", fmt.Sprint(n), fmt.Sprintf(`at most %d, or "*" for all`, MaxWorkspaces))
		return c.ps
	}
	for i, w := range s.Workspaces {
		if w != "*" {
			c.form(fmt.Sprintf("workspaces[%d]", i), w, workspaceForm, `a workspace's id, or "*"`)
		}
	}
	return c.ps
}
