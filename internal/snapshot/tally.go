package snapshot

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"almanac/internal/failure"
	"almanac/internal/parquet"
	"almanac/internal/source"
)

// MaxMonthColumns bounds a month's columns: its first chunk's record names them all and must stay small.
const MaxMonthColumns = 1000

// shape is what is demanded of a month's rows, by the place of the column.
type shape struct {
	columns []Column
	file    []parquet.Column // of Parquet files: as far as they are decided
	key     int
	keyType source.Type
	sums    []place
	notNull []place
	types   []place
}

type place struct {
	at   int
	name string
	typ  string // of types
}

// shapeOf finds the columns that a definition speaks of; sums are those that the control query names. A column that is
// not there makes the definition unusable.
func shapeOf(d Definition, columns []source.Column, sums []string) (shape, error) {
	s := shape{}
	at := map[string]int{}
	for i, c := range columns {
		if _, twice := at[c.Name]; twice {
			return s, failure.New(failure.DefinitionInvalid, "the query has two columns %q; give each a name of its own", failure.Cut(c.Name, 80))
		}
		at[c.Name] = i
		s.columns = append(s.columns, Column{Name: c.Name, Type: typeName(c.Type)})
		s.file = append(s.file, parquet.Column{Name: c.Name, Type: demanded(c, d.Checks.Types[c.Name])})
	}
	if len(columns) > MaxMonthColumns {
		return s, failure.New(failure.DefinitionInvalid, "the query has %d columns; want at most %d", len(columns), MaxMonthColumns)
	}
	find := func(field, name string) (place, error) {
		i, ok := at[name]
		if !ok {
			return place{}, failure.New(failure.DefinitionInvalid, "%s names the column %q, which the query does not have", field, failure.Cut(name, 80))
		}
		return place{at: i, name: name}, nil
	}
	k, err := find("key", d.Key)
	if err != nil {
		return s, err
	}
	s.key, s.keyType = k.at, columns[k.at].Type
	for _, name := range summedColumns(d, sums) {
		p, err := find("the control query, or checks.drift_sums,", name)
		if err != nil {
			return s, err
		}
		s.sums = append(s.sums, p)
	}
	for _, name := range d.Checks.NotNull {
		p, err := find("checks.not_null", name)
		if err != nil {
			return s, err
		}
		s.notNull = append(s.notNull, p)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Checks.Types)) {
		p, err := find("checks.types", name)
		if err != nil {
			return s, err
		}
		p.typ = d.Checks.Types[name]
		s.types = append(s.types, p)
	}
	return s, nil
}

// summedColumns are the columns whose sums are kept: those of the control query and those whose drift is bounded.
func summedColumns(d Definition, controlled []string) []string {
	out := slices.Clone(controlled)
	for _, name := range slices.Sorted(maps.Keys(d.Checks.DriftSums)) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// tally is what is counted of a chunk's rows.
type tally struct {
	shape
	before   Key // the last key before the chunk
	last     keyCell
	kept     []byte // the text of last
	firstKey Key
	rows     int64
	sum      []Sum
	nulls    []int64
	wrong    []int64
}

func newTally(s shape, before Key) *tally {
	return &tally{shape: s, before: before, sum: make([]Sum, len(s.sums)), nulls: make([]int64, len(s.notNull)), wrong: make([]int64, len(s.types))}
}

// add counts a row, and refuses one whose key does not increase.
func (t *tally) add(row []source.Value) error {
	var k keyCell
	if err := keyOf(&row[t.key], &k); err != nil {
		return t.named(err)
	}
	if err := t.follows(&k); err != nil {
		return err
	}
	t.kept = append(t.kept[:0], k.text...)
	k.text = t.kept
	t.last = k
	if t.rows++; t.rows == 1 {
		t.firstKey = k.key()
	}
	for i, p := range t.sums {
		t.sum[i].Add(&row[p.at])
	}
	for i, p := range t.notNull {
		if row[p.at].Kind == source.KindNull {
			t.nulls[i]++
		}
	}
	for i, p := range t.types {
		if !fits(&row[p.at], p.typ) {
			t.wrong[i]++
		}
	}
	return nil
}

// follows refuses a key that is not above the one before it.
func (t *tally) follows(k *keyCell) error {
	if t.rows == 0 {
		if t.before.Kind != NoKey && t.before.Compare(k.key()) >= 0 {
			return t.notAbove(t.before, k.key())
		}
		return nil
	}
	above := false
	switch {
	case k.kind != t.last.kind:
	case k.kind == IntegerKey:
		above = k.num > t.last.num
	case k.kind == DecimalKey:
		above = compareDecimals(t.last.text, k.text) < 0
	default:
		above = string(t.last.text) < string(k.text)
	}
	if above {
		return nil
	}
	return t.notAbove(t.last.key(), k.key())
}

func (t *tally) notAbove(before, k Key) error {
	name := t.columns[t.key].Name
	if before.Kind != k.Kind {
		return failure.New(failure.KeyInvalid, "the key column %q holds %s %q after %s %q; want keys of one type", name, keyType(k.Kind), k, keyType(before.Kind), before)
	}
	return failure.New(failure.KeyInvalid, "the key column %q holds %q after %q; want keys that increase strictly from row to row, in the order of %s", name, k, before, keyOrder(k.Kind))
}

// named adds the column's name and the row before to what is wrong with a key.
func (t *tally) named(err error) error {
	f := failure.From(err)
	after := t.before
	if t.rows > 0 {
		after = t.last.key()
	}
	where := "in the first row"
	if after.Kind != NoKey {
		where = "after the key " + failure.Cut(after.String(), 80)
	}
	return failure.New(f.Code, "the key column %q: %s (%s)", t.columns[t.key].Name, f.Message, where)
}

// lastKey is the last key counted, or the one before the chunk.
func (t *tally) lastKey() Key {
	if t.rows == 0 {
		return t.before
	}
	return t.last.key()
}

// record fills in what a chunk's record says of its rows.
func (t *tally) record(c *Chunk) {
	c.Rows, c.Increasing = t.rows, true
	if t.rows > 0 {
		c.First, c.Last = EncodeKey(t.firstKey), EncodeKey(t.last.key())
	}
	c.Sums = map[string]string{}
	for i, p := range t.sums {
		c.Sums[p.name] = EncodeSum(t.sum[i])
		if n := t.sum[i].misfits; n > 0 {
			c.Wrong = counted(c.Wrong, p.name, n)
		}
	}
	for i, p := range t.notNull {
		if t.nulls[i] > 0 {
			c.Nulls = counted(c.Nulls, p.name, t.nulls[i])
		}
	}
	for i, p := range t.types {
		if t.wrong[i] > 0 {
			c.Wrong = counted(c.Wrong, p.name, max(t.wrong[i], c.Wrong[p.name]))
		}
	}
}

func counted(m map[string]int64, name string, n int64) map[string]int64 {
	if m == nil {
		m = map[string]int64{}
	}
	m[name] = n
	return m
}

// The forms of dates and times in engines that keep them as text.
var (
	dateForm      = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timestampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)? ?(Z|UTC|[+-]\d\d:?\d\d)?$`)
)

// fits reports whether a cell is of the type that a definition demands; NULL is of every type. An integer is a decimal and
// a real as well, 0 and 1 are booleans, and text in the form of ISO 8601 is a date or a timestamp: not every engine has
// types of their own for them.
func fits(v *source.Value, typ string) bool {
	if v.Kind == source.KindNull {
		return true
	}
	switch typ {
	case "integer":
		return v.Kind == source.KindInt
	case "decimal":
		return v.Kind == source.KindDecimal || v.Kind == source.KindInt
	case "real":
		return v.Kind == source.KindFloat || v.Kind == source.KindInt
	case "text":
		return v.Kind == source.KindText
	case "boolean":
		return v.Kind == source.KindBool || v.Kind == source.KindInt && (v.Int == 0 || v.Int == 1)
	case "date":
		return v.Kind == source.KindDate || v.Kind == source.KindText && dateForm.Match(v.Text) && parses(time.DateOnly, v.Text)
	case "timestamp":
		return v.Kind == source.KindTimestamp || v.Kind == source.KindText && timestampForm.Match(v.Text) && parses(time.DateOnly, v.Text[:10])
	}
	return false
}

func parses(layout string, text []byte) bool {
	_, err := time.Parse(layout, string(text))
	return err == nil
}

func keyType(k KeyKind) string {
	switch k {
	case IntegerKey:
		return "the integer"
	case DecimalKey:
		return "the decimal"
	}
	return "the text"
}

func keyOrder(k KeyKind) string {
	if k == TextKey {
		return "their bytes"
	}
	return "numbers"
}

func typeName(t source.Type) string {
	switch t {
	case source.Integer:
		return "integer"
	case source.Real:
		return "real"
	case source.Decimal:
		return "decimal"
	case source.Text:
		return "text"
	case source.Bytes:
		return "bytes"
	case source.Boolean:
		return "boolean"
	case source.Date:
		return "date"
	case source.Timestamp:
		return "timestamp"
	}
	return "unknown"
}
