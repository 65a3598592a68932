package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/input"
)

// More bounds of a definition. Together they keep its row below 100 KB (design.md §3).
const (
	MaxVersions   = 9999 // of one month: keys and ids hold four digits
	MaxName       = 120
	MaxReason     = 200
	MaxColumns    = 200 // that the checks name
	MaxWaived     = 240
	MaxChunkRows  = 1_000_000
	MaxSingleRows = 10_000_000
	MaxDrift      = 1_000_000 // percent
	MaxLoadDelay  = 28 * 24 * time.Hour
	MaxDueAfter   = 366 * 24 * time.Hour
	MaxTimeout    = 4 * time.Hour // what Athena allows a query at most; other engines' end with their function
	maxDefinition = 90_000        // bytes
)

var (
	typeForm   = regexp.MustCompile(`^[a-z0-9-]{1,20}$`) // without "_", which parts an id; part of a job's name of at most 80
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)
	columnForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

	firstMonth  = calendar.Month{Year: 1970, Month: time.January}
	columnTypes = []string{"integer", "decimal", "real", "text", "boolean", "date", "timestamp"}
	summed      = []string{"integer", "decimal", "real"}
)

const (
	wantMonth  = "a month such as 2013-01"
	wantColumn = "a column's name of letters, digits and _, at most 63"
	wantType   = "1 to 20 small letters, digits and dashes, such as carrier-performance"
)

// Reserved parameters are given by the product.
var Reserved = []string{"workspace", "period_start", "period_end", cursorParam}

// ParseDefinition reads a definition strictly and fills in its defaults; every wrong field is named in the
// input.Problems that it returns.
func ParseDefinition(raw []byte) (Definition, error) {
	var d Definition
	if len(raw) > maxDefinition {
		return d, input.Problems{input.Wrong("definition", fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("at most %d bytes", maxDefinition))}
	}
	if err := input.Strict(raw, &d); err != nil {
		return d, input.Problems{unreadable(err, raw)}
	}
	d = d.withDefaults()
	if ps := d.Check(); len(ps) > 0 {
		return d, ps
	}
	return d, nil
}

// unreadable names the field that JSON holds in a form that cannot be read.
func unreadable(err error, raw []byte) input.Problem {
	var month *calendar.FieldError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &month):
		return input.Wrong(monthField(raw, month.Value), failure.Cut(input.Quote(month.Value), 60), wantMonth)
	case errors.As(err, &wrong) && wrong.Type == reflect.TypeFor[calendar.Month]():
		return input.Wrong(wrong.Field, "a "+wrong.Value, wantMonth)
	}
	return input.ProblemOf(err, "definition", input.FieldNames(reflect.TypeFor[Definition]()))
}

// monthField finds the field that holds a text which is no month.
func monthField(raw []byte, value string) string {
	var d struct {
		Start  any
		Waived []struct{ Month any }
	}
	if json.Unmarshal(raw, &d) != nil || d.Start == value {
		return "start"
	}
	for i, w := range d.Waived {
		if w.Month == value {
			return fmt.Sprintf("waived[%d].month", i)
		}
	}
	return "start"
}

func (d Definition) withDefaults() Definition {
	if d.Mode == "" {
		d.Mode = Auto
	}
	if d.Format == "" {
		d.Format = Parquet
	}
	if d.ChunkRows == 0 {
		d.ChunkRows = DefaultChunkRows
	}
	if d.SingleRows == 0 && d.Mode == Auto {
		d.SingleRows = DefaultSingleRows
	}
	if d.DueAfter == 0 {
		d.DueAfter = input.Duration(DefaultDueAfter)
	}
	return d
}

// Hash names a definition by its content: equal definitions make no new version.
func (d Definition) Hash() string {
	sum := sha256.Sum256(stored(d))
	return hex.EncodeToString(sum[:])
}

// stored is a document as it is stored.
func stored(document any) []byte {
	b, err := json.Marshal(document)
	if err != nil {
		panic("snapshot: a document that JSON cannot hold: " + err.Error()) // cannot happen: it came from JSON
	}
	return b
}

type checker struct{ input.Checker }

// Check names every wrong field of a definition.
func (d Definition) Check() input.Problems {
	var c checker
	c.scope(d.Scope)
	c.Form("type", d.Type, typeForm, wantType)
	c.Line("name", d.Name, MaxName, true)
	c.Form("source", d.Source, nameForm, "the name of a source, such as flights")
	switch {
	case d.Start == (calendar.Month{}):
		c.Bad("start", "", wantMonth)
	case d.Start.Before(firstMonth):
		c.Bad("start", d.Start.String(), "a month from "+firstMonth.String()+" on")
	}
	c.query("query", d.Query, d.Scope)
	c.query("control", d.Control, d.Scope)
	c.Form("key", d.Key, columnForm, wantColumn+", that increases strictly from row to row")
	c.checks(d)
	c.mode(d)
	c.delays(d)
	c.waived(d)
	c.limits(d.Limits)
	c.Parameters(d.Params, Reserved)
	if len(c.Problems) == 0 && len(stored(d)) > maxDefinition {
		c.Bad("definition", fmt.Sprintf("%d bytes as it is stored", len(stored(d))), fmt.Sprintf("at most %d bytes; <, > and & count as six each", maxDefinition))
	}
	return c.Problems
}

func (c *checker) scope(s Scope) {
	switch {
	case s.Workspace == "" && s.Owner == "":
		c.Bad("workspace", "", "the id of a workspace, such as EWR, or in its place owner: all workspaces of an owner")
	case s.Workspace != "" && s.Owner != "":
		c.Bad("owner", fmt.Sprintf("%q beside workspace %q", s.Owner, s.Workspace), "one of the two")
	case s.Workspace != "":
		c.Form("workspace", s.Workspace, nameForm, "the id of a workspace, such as EWR")
	default:
		c.Form("owner", s.Owner, nameForm, "the id of an owner, such as "+DefaultOwner)
	}
}

// query checks a query of a month: it must be one about the month, and where it serves many workspaces, about one of them.
func (c *checker) query(field, q string, s Scope) {
	before := len(c.Problems)
	if c.Query(field, q); len(c.Problems) > before {
		return
	}
	demanded := []string{"period_start", "period_end"}
	if s.Owner != "" {
		demanded = append(demanded, "workspace")
	}
	for _, name := range demanded {
		if !names(q, name) {
			c.Bad(field, failure.Cut(input.Quote(q), 60)+", which does not name :"+name, "a query of the month's rows: at least "+":"+strings.Join(demanded, ", :"))
			return
		}
	}
}

// names reports whether a query names a parameter.
func names(q, parameter string) bool {
	for rest, found := q, true; found; {
		_, rest, found = strings.Cut(rest, ":"+parameter)
		if found && (rest == "" || !wordByte(rest[0])) {
			return true
		}
	}
	return false
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func (c *checker) checks(d Definition) {
	k := d.Checks
	if n := len(k.NotNull) + len(k.Types) + len(k.DriftSums); n > MaxColumns {
		c.Bad("checks", fmt.Sprintf("%d columns", n), fmt.Sprintf("at most %d", MaxColumns))
		return
	}
	for i, column := range k.NotNull {
		field := fmt.Sprintf("checks.not_null[%d]", i)
		c.Form(field, column, columnForm, wantColumn)
		if slices.Index(k.NotNull, column) < i {
			c.Bad(field, input.Quote(column)+" again", "each column once")
		}
	}
	for _, column := range slices.Sorted(maps.Keys(k.Types)) {
		field, typ := "checks.types."+failure.Cut(column, 60), k.Types[column]
		c.Form(field, column, columnForm, wantColumn)
		switch {
		case !slices.Contains(columnTypes, typ):
			c.Bad(field, input.Quote(typ), "one of "+strings.Join(columnTypes, ", "))
		case column == d.Key && (typ == "boolean" || typ == "real"):
			c.Bad(field, input.Quote(typ), "a type that a key can have: it orders the rows exactly")
		}
	}
	c.drift("checks.drift_rows", k.DriftRows)
	for _, column := range slices.Sorted(maps.Keys(k.DriftSums)) {
		field, drift := "checks.drift_sums."+failure.Cut(column, 60), k.DriftSums[column]
		c.Form(field, column, columnForm, wantColumn)
		if typ, ok := k.Types[column]; ok && !slices.Contains(summed, typ) {
			c.Bad(field, "the sum of a column that checks.types calls "+typ, "a column of "+strings.Join(summed, ", "))
		}
		if drift.ByVersion == nil && drift.ByMonth == nil {
			c.Bad(field, "", "previous_version or previous_month, in percent")
		}
		c.drift(field, drift)
	}
}

func (c *checker) drift(field string, d Drift) {
	for _, b := range []struct {
		name  string
		bound *float64
	}{{"previous_version", d.ByVersion}, {"previous_month", d.ByMonth}} {
		if b.bound != nil && !(*b.bound > 0 && *b.bound <= MaxDrift) {
			c.Bad(field+"."+b.name, fmt.Sprint(*b.bound), fmt.Sprintf("a percentage more than 0 and at most %d, such as 25", MaxDrift))
		}
	}
}

func (c *checker) mode(d Definition) {
	switch d.Mode {
	case Auto, Single, Chunked:
	default:
		c.Bad("mode", input.Quote(string(d.Mode)), `"auto", "single" or "chunked"`)
	}
	switch d.Format {
	case Parquet, CSV:
	default:
		c.Bad("format", input.Quote(string(d.Format)), `"parquet" or "csv"`)
	}
	if d.ChunkRows < 1 || d.ChunkRows > MaxChunkRows {
		c.Bad("chunk_rows", fmt.Sprint(d.ChunkRows), fmt.Sprintf("1 to %d", MaxChunkRows))
	}
	switch {
	case d.Mode != Auto && d.SingleRows != 0:
		c.Bad("single_rows", fmt.Sprint(d.SingleRows), `nothing: only mode "auto" chooses by rows`)
	case d.Mode == Auto && (d.SingleRows < 1 || d.SingleRows > MaxSingleRows):
		c.Bad("single_rows", fmt.Sprint(d.SingleRows), fmt.Sprintf("1 to %d", MaxSingleRows))
	}
}

func (c *checker) delays(d Definition) {
	if d.Watermark != "" {
		c.Query("watermark", d.Watermark)
	}
	load, due := d.LoadDelay.Std(), d.DueAfter.Std()
	if load < 0 || load > MaxLoadDelay {
		c.Bad("load_delay", load.String(), "0 to "+MaxLoadDelay.String())
	}
	switch {
	case due <= 0 || due > MaxDueAfter:
		c.Bad("due_after", due.String(), "more than 0 and at most "+MaxDueAfter.String())
	case load >= 0 && due <= load:
		c.Bad("due_after", fmt.Sprintf("%s beside load_delay %s", due, load), "more than load_delay: a month would be late before it may be planned")
	}
}

func (c *checker) waived(d Definition) {
	if n := len(d.Waived); n > MaxWaived {
		c.Bad("waived", fmt.Sprint(n), fmt.Sprintf("at most %d", MaxWaived))
		return
	}
	seen := map[calendar.Month]bool{}
	for i, w := range d.Waived {
		field := fmt.Sprintf("waived[%d]", i)
		switch {
		case w.Month == (calendar.Month{}):
			c.Bad(field+".month", "", wantMonth)
		case w.Month.Before(d.Start):
			c.Bad(field+".month", w.Month.String(), "a month from start on, "+d.Start.String())
		case seen[w.Month]:
			c.Bad(field+".month", w.Month.String()+" again", "each month once")
		}
		seen[w.Month] = true
		c.Line(field+".reason", w.Reason, MaxReason, true)
	}
}

func (c *checker) limits(l RunLimits) {
	if l.Rows < 0 {
		c.Bad("limits.rows", fmt.Sprint(l.Rows), "0 or more; 0 is the source's default")
	}
	if l.Bytes < 0 {
		c.Bad("limits.bytes", fmt.Sprint(l.Bytes), "0 or more; 0 is the source's default")
	}
	if t := l.Timeout.Std(); t < 0 || t > MaxTimeout {
		c.Bad("limits.timeout", t.String(), "0 to "+MaxTimeout.String()+"; 0 is the source's default")
	}
}

// ParseOwner reads an owner strictly.
func ParseOwner(raw []byte) (Owner, error) {
	var o Owner
	if err := input.Strict(raw, &o); err != nil {
		return o, input.Problems{input.ProblemOf(err, "owner", input.FieldNames(reflect.TypeFor[Owner]()))}
	}
	if ps := o.Check(); len(ps) > 0 {
		return o, ps
	}
	return o, nil
}

// Check names every wrong field of an owner.
func (o Owner) Check() input.Problems {
	var c checker
	c.Form("id", o.ID, nameForm, "letters, digits, - and _, at most 40, such as "+DefaultOwner)
	c.Line("name", o.Name, MaxName, true)
	if o.Cap < 1 || o.Cap > MaxCap {
		c.Bad("cap", fmt.Sprint(o.Cap), fmt.Sprintf("1 to %d", MaxCap))
	}
	switch {
	case o.Backfill < 0:
		c.Bad("backfill", fmt.Sprint(o.Backfill), "0 or more")
	case o.Cap >= 1 && o.Backfill >= o.Cap:
		c.Bad("backfill", fmt.Sprintf("%d beside cap %d", o.Backfill, o.Cap), "less than cap: a slot is left to current months")
	}
	return c.Problems
}
