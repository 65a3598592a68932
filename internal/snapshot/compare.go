package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"almanac/internal/failure"
)

// Comparison is the difference of two versions, from the first to the second. Rows are the same where their keys are, and
// changed where a column that both versions have differs. Examples are the first of their kind.
type Comparison struct {
	From           ComparedVersion  `json:"from"`
	To             ComparedVersion  `json:"to"`
	Added          int64            `json:"added"`
	Removed        int64            `json:"removed"`
	Changed        int64            `json:"changed"`
	Unchanged      int64            `json:"unchanged"`
	AddedKeys      []string         `json:"added_keys,omitempty"`
	RemovedKeys    []string         `json:"removed_keys,omitempty"`
	ChangedRows    []ChangedRow     `json:"changed_rows,omitempty"`
	AddedColumns   []string         `json:"added_columns,omitempty"`
	RemovedColumns []string         `json:"removed_columns,omitempty"`
	ByColumn       map[string]int64 `json:"changed_by_column,omitempty"` // rows in which the column differs
}

// ComparedVersion is one side of a comparison.
type ComparedVersion struct {
	Run    string `json:"run"`
	Totals Totals `json:"totals"`
}

// ChangedRow is one row that differs; nil is NULL. Values are cut at MaxExample bytes.
type ChangedRow struct {
	Key     string                `json:"key"`
	Columns map[string][2]*string `json:"columns"`
}

// MaxExample bounds a value that a comparison shows, in bytes.
const MaxExample = 200

// side is one version while it is merged.
type side struct {
	rows  *MonthRows
	kind  KeyKind
	keyAt int
	key   Key
	row   []Cell
	end   bool
}

// Compare merges two versions by their keys, reading each once and holding a row of each. At most examples of each kind
// are kept.
func (r Reader) Compare(ctx context.Context, a, b Manifest, examples int) (Comparison, error) {
	c := Comparison{From: ComparedVersion{a.Run, a.Totals}, To: ComparedVersion{b.Run, b.Totals}, ByColumn: map[string]int64{}}
	if a.Key.Column != b.Key.Column || a.Key.Type != b.Key.Type && a.Totals.Rows > 0 && b.Totals.Rows > 0 {
		return c, failure.New(failure.DefinitionInvalid, "%s has the key %q (%s) and %s the key %q (%s); only versions of one key can be compared",
			a.Run, a.Key.Column, a.Key.Type, b.Run, b.Key.Column, b.Key.Type)
	}
	left, err := r.side(a)
	if err != nil {
		return c, err
	}
	defer left.rows.Close()
	right, err := r.side(b)
	if err != nil {
		return c, err
	}
	defer right.rows.Close()
	m := merger{Comparison: &c, examples: examples}
	m.columns(a.Columns, b.Columns)
	return c, m.merge(ctx, left, right)
}

func (r Reader) side(m Manifest) (*side, error) {
	s := &side{rows: r.Rows(m), keyAt: slices.IndexFunc(m.Columns, func(c Column) bool { return c.Name == m.Key.Column })}
	switch m.Key.Type {
	case "integer":
		s.kind = IntegerKey
	case "decimal":
		s.kind = DecimalKey
	case "text":
		s.kind = TextKey
	}
	if s.keyAt < 0 || s.kind == NoKey && m.Totals.Rows > 0 {
		return nil, failure.New(failure.FileInconsistent, "the manifest of %s names no key column of its own: %q (%s)", m.Run, m.Key.Column, m.Key.Type)
	}
	return s, nil
}

// step goes to the next row.
func (s *side) step(ctx context.Context) error {
	row, err := s.rows.Next(ctx)
	if errors.Is(err, io.EOF) {
		s.end, s.row = true, nil
		return nil
	}
	if err != nil {
		return err
	}
	k, err := keyFrom(s.kind, string(row[s.keyAt].Text))
	if err != nil || s.key.Kind != NoKey && s.key.Compare(k) >= 0 {
		return failure.Wrap(failure.FileInconsistent, err, "the key %q follows %q in %s; keys must increase", k, s.key, s.rows.manifest.Run)
	}
	s.key, s.row = k, row
	return nil
}

type merger struct {
	*Comparison
	examples int
	both     []pair
}

// pair is a column that both sides have.
type pair struct {
	name        string
	left, right int
}

func (m *merger) columns(a, b []Column) {
	at := map[string]int{}
	for i, c := range b {
		at[c.Name] = i
	}
	for i, c := range a {
		j, ok := at[c.Name]
		if !ok {
			m.RemovedColumns = append(m.RemovedColumns, c.Name)
			continue
		}
		m.both = append(m.both, pair{c.Name, i, j})
		delete(at, c.Name)
	}
	m.AddedColumns = slices.Sorted(maps.Keys(at))
}

func (m *merger) merge(ctx context.Context, left, right *side) error {
	if err := errors.Join(left.step(ctx), right.step(ctx)); err != nil {
		return err
	}
	for !left.end || !right.end {
		order := 0
		switch {
		case left.end:
			order = 1
		case right.end:
			order = -1
		default:
			order = left.key.Compare(right.key)
		}
		switch {
		case order < 0:
			m.Removed++
			m.RemovedKeys = m.example(m.RemovedKeys, left.key)
		case order > 0:
			m.Added++
			m.AddedKeys = m.example(m.AddedKeys, right.key)
		default:
			m.same(left, right)
		}
		if order <= 0 {
			if err := left.step(ctx); err != nil {
				return err
			}
		}
		if order >= 0 {
			if err := right.step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) example(list []string, k Key) []string {
	if len(list) < m.examples {
		list = append(list, k.String())
	}
	return list
}

// same compares two rows of one key.
func (m *merger) same(left, right *side) {
	var shown *ChangedRow
	changed := false
	for _, p := range m.both {
		a, b := left.row[p.left], right.row[p.right]
		if a.Null == b.Null && bytes.Equal(a.Text, b.Text) {
			continue
		}
		m.ByColumn[p.name]++
		if !changed && len(m.ChangedRows) < m.examples {
			shown = &ChangedRow{Key: left.key.String(), Columns: map[string][2]*string{}}
		}
		changed = true
		if shown != nil {
			shown.Columns[p.name] = [2]*string{shownCell(a), shownCell(b)}
		}
	}
	if !changed {
		m.Unchanged++
		return
	}
	m.Changed++
	if shown != nil {
		m.ChangedRows = append(m.ChangedRows, *shown)
	}
}

func shownCell(c Cell) *string {
	if c.Null {
		return nil
	}
	text := failure.Cut(string(c.Text), MaxExample)
	return &text
}
