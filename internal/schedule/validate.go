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
	"unicode/utf8"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/input"
)

// Bounds of a definition. Together they keep its row below 100 KB (design.md §3): recipients that are too many for it, or
// too long, stand apart.
const (
	MaxName         = 120
	MaxRecipients   = 10_000
	MaxIntroduction = 2_000
	MaxWorkspaces   = 500    // that one source or group names
	MaxNotify       = 5      // each notice is one action of the settle's transaction
	maxDefinition   = 90_000 // bytes, without its recipients

	// InlineRecipients is how many recipients, or targets of a retry, stand on a row.
	InlineRecipients = 500
	// MaxRecipientsBytes bounds the recipients as JSON, so that a request or answer that holds them stays below the 6 MB of
	// a Lambda function's, quotes escaped. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	MaxRecipientsBytes = 4_000_000
	maxDocument        = MaxRecipientsBytes + maxDefinition // bytes as a person writes them
)

// Apart reports recipients that do not fit the definition's row.
func (d Definition) Apart() bool {
	return len(d.Recipients) > InlineRecipients || len(stored(d)) > maxDefinition
}

// stored is a part of a definition as it is stored.
func stored(part any) []byte {
	b, err := json.Marshal(part)
	if err != nil {
		panic("schedule: a definition that JSON cannot hold: " + err.Error()) // cannot happen: it came from JSON
	}
	return b
}

// When failures in a row pause a schedule.
const (
	DefaultPauseAfter = 10
	MaxPauseAfter     = 1000
	NeverPause        = -1
)

var (
	idForm        = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	workspaceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)
	secretForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// What people write is read and checked as in every other document of the product.
type (
	Problem    = input.Problem
	Problems   = input.Problems
	Duration   = input.Duration
	Parameters = input.Parameters
)

// Reserved parameters are given by the product.
var Reserved = []string{"workspace", "period_start", "period_end", "scheduled_time", "last_success_time"}

// ParseDefinition reads a definition strictly and fills in its defaults; every wrong field is named in the Problems
// that it returns.
func ParseDefinition(raw []byte) (Definition, error) {
	var d Definition
	if len(raw) > maxDocument {
		return d, Problems{input.Wrong("definition", fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("at most %d bytes", maxDocument))}
	}
	if err := input.Strict(raw, &d); err != nil {
		return d, Problems{input.ProblemOf(err, "definition", input.FieldNames(reflect.TypeFor[Definition]()))}
	}
	d = d.withDefaults()
	if ps := d.Check(); len(ps) > 0 {
		return d, ps
	}
	return d, nil
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
	sum := sha256.Sum256(stored(d))
	return hex.EncodeToString(sum[:])
}

type checker struct{ input.Checker }

// Check names every wrong field of a definition.
func (d Definition) Check() Problems {
	var c checker
	c.Form("id", d.ID, idForm, "1 to 64 small letters, digits and dashes, such as delayed-departures")
	c.Form("workspace", d.Workspace, workspaceForm, "the id of a workspace, such as EWR")
	c.Line("name", d.Name, MaxName, true)
	c.Line("owner", d.Owner, MaxName, true)
	c.Form("source", d.Source, workspaceForm, "the name of a source, such as flights")
	c.Query("query", d.Query)
	c.Parameters(d.Parameters, Reserved)
	c.recurrence(d.Recurrence)
	for _, e := range d.File.Format.Validate() {
		c.Bad("file."+e.Field, input.Quote(e.Value), e.Want)
	}
	if !slices.Contains(Retentions, d.File.RetentionDays) {
		c.Bad("file.retention_days", fmt.Sprint(d.File.RetentionDays), fmt.Sprintf("one of %v", Retentions))
	}
	if life := d.File.LinkLife.Std(); life != 0 && life < MinLinkLife || life > time.Duration(d.File.RetentionDays)*24*time.Hour {
		c.Bad("file.link_life", life.String(), "at least 1s and at most the file's retention")
	}
	if d.Empty != SuppressEmpty && d.Empty != DeliverEmpty {
		c.Bad("empty", input.Quote(string(d.Empty)), `"suppress" or "deliver"`)
	}
	c.catchUp(d)
	c.recipients(d.Recipients, true)
	c.notices(d)
	c.Line("mail.subject", d.Mail.Subject, MaxName, false)
	if n := utf8.RuneCountInString(d.Mail.Introduction); n > MaxIntroduction {
		c.Bad("mail.introduction", fmt.Sprintf("%d characters", n), fmt.Sprintf("at most %d characters", MaxIntroduction))
	}
	c.limits(d.Limits)
	c.stored(d)
	return c.Problems
}

// stored checks the size of the row that the definition becomes, and of its recipients: JSON spells some characters with
// six bytes.
func (c *checker) stored(d Definition) {
	c.listed(d.Recipients)
	d.Recipients = nil
	if n := len(stored(d)); n > maxDefinition {
		c.Bad("definition", fmt.Sprintf("%d bytes as it is stored, without its recipients", n), fmt.Sprintf("at most %d bytes", maxDefinition)+six)
	}
}

const six = "; <, > and & count as six each"

// listed checks the size of a list of recipients as it is stored.
func (c *checker) listed(rs []Recipient) {
	if n := len(stored(rs)); n > MaxRecipientsBytes {
		c.Bad("recipients", fmt.Sprintf("%d bytes as they are stored", n), fmt.Sprintf("at most %d bytes", MaxRecipientsBytes)+six)
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
			c.Problems = append(c.Problems, input.Wrong("recurrence."+f.Field, calendarValue(f), f.Want))
			continue
		}
		c.Bad("recurrence", e.Error(), "a recurrence")
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
		c.Bad("catch_up", input.Quote(string(d.CatchUp)), `"latest", "all" or "none"`)
	}
	switch w := d.CatchUpWindow.Std(); {
	case w == 0:
	case d.CatchUp != CatchUpAll:
		c.Bad("catch_up_window", w.String(), `nothing: only catch_up "all" has a window`)
	case w < 0 || w > MaxWindow:
		c.Bad("catch_up_window", w.String(), "more than 0 and at most "+MaxWindow.String())
	}
	switch d.Overlap {
	case "", OverlapAllow, OverlapSkip:
	default:
		c.Bad("overlap", input.Quote(string(d.Overlap)), `"allow" or "skip"`)
	}
}

// recipients checks a list of recipients, which may hold groups or must not.
func (c *checker) recipients(rs []Recipient, groups bool) {
	if len(rs) == 0 {
		c.Bad("recipients", "", "at least one recipient, such as {email: name@example.com}")
	}
	if len(rs) > MaxRecipients {
		c.Bad("recipients", fmt.Sprint(len(rs)), fmt.Sprintf("at most %d", MaxRecipients))
	}
	c.addresses("recipients", rs, groups)
	if n := len(groupsOf(rs)); groups && n > MaxGroups {
		c.Bad("recipients", fmt.Sprintf("%d groups", n), fmt.Sprintf("at most %d groups", MaxGroups))
	}
}

// notices checks when a schedule pauses by itself and who hears of it.
func (c *checker) notices(d Definition) {
	if n := d.PauseAfter; n != nil && *n != NeverPause && (*n < 1 || *n > MaxPauseAfter) {
		c.Bad("pause_after_failures", fmt.Sprint(*n), fmt.Sprintf("1 to %d failures in a row, or -1 for never; leave it out for %d", MaxPauseAfter, DefaultPauseAfter))
	}
	if len(d.Notify) > MaxNotify {
		c.Bad("notify", fmt.Sprint(len(d.Notify)), fmt.Sprintf("at most %d", MaxNotify))
	}
	c.addresses("notify", d.Notify, false)
}

// Bounds of a definition's limits: more than these no run can reach. A file is one object of S3 and a run one
// invocation (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const (
	MaxRows     = 1_000_000_000
	MaxBytes    = 5 << 30
	MaxTimeout  = 4 * time.Hour // what Athena allows a query at most; other engines end with their function
	MinLinkLife = time.Second
)

func (c *checker) limits(l DefinitionLimit) {
	if l.Rows < 0 || l.Rows > MaxRows {
		c.Bad("limits.rows", fmt.Sprint(l.Rows), fmt.Sprintf("more than 0 and at most %d", MaxRows))
	}
	if l.Bytes < 0 || l.Bytes > MaxBytes {
		c.Bad("limits.bytes", fmt.Sprint(l.Bytes), fmt.Sprintf("more than 0 and at most %d (5 GiB)", MaxBytes))
	}
	if l.Timeout != "" {
		if d, err := time.ParseDuration(l.Timeout); err != nil || d <= 0 || d > MaxTimeout {
			c.Bad("limits.timeout", input.Quote(l.Timeout), `a duration such as "90s", more than 0 and at most 4h`)
		}
	}
}

// Check names every wrong field of a workspace.
func (w Workspace) Check() Problems {
	var c checker
	c.Form("id", w.ID, workspaceForm, "letters, digits, - and _, at most 40, such as EWR")
	c.Line("name", w.Name, MaxName, true)
	if _, err := calendar.LoadZone(w.Zone); err != nil {
		c.Bad("zone", input.Quote(w.Zone), "the exact name of an IANA time zone, such as America/New_York")
	}
	if w.Owner != "" {
		c.Form("owner", w.Owner, workspaceForm, "letters, digits, - and _, at most 40, such as default")
	}
	if _, err := calendar.ParseMonth(w.Start); w.Start != "" && err != nil {
		c.Bad("start", input.Quote(w.Start), `a month, such as "2026-02"`)
	}
	if _, err := (Workspace{Zone: "UTC", Removed: w.Removed}).RemovedAt(); err != nil {
		c.Bad("removed", input.Quote(w.Removed), `a date, such as "2026-02-28", or an instant in RFC 3339`)
	}
	return c.Problems
}

// workspaces checks who may use something.
func (c *checker) workspaces(list []string) {
	if len(list) == 0 {
		c.Bad("workspaces", "", `the workspaces that may use it, or "*"`)
	}
	if n := len(list); n > MaxWorkspaces {
		c.Bad("workspaces", fmt.Sprint(n), fmt.Sprintf(`at most %d, or "*" for all`, MaxWorkspaces))
		return
	}
	for i, w := range list {
		if w != "*" {
			c.Form(fmt.Sprintf("workspaces[%d]", i), w, workspaceForm, `a workspace's id, or "*"`)
		}
	}
}
