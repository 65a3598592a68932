package sourcetest

import (
	"testing"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// view checks that a source can be held: several queries, one within another, see the same rows under one version.
func (s suite) view(t *testing.T) {
	viewer, ok := s.open(t, numbers).(source.Viewer)
	if s.d.NoView {
		if ok {
			t.Fatal("the source is a source.Viewer, which the engine cannot be")
		}
		return
	}
	if !ok {
		t.Fatal("the source is no source.Viewer")
	}
	held := func(t *testing.T) source.View {
		t.Helper()
		v, err := viewer.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close() })
		return v
	}
	t.Run("two queries at once see the same rows", func(t *testing.T) {
		v := held(t)
		rows, err := v.Open(t.Context(), source.Query{SQL: "SELECT n FROM numbers ORDER BY n"})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		if row, err := rows.Next(t.Context()); err != nil || row[0].Int != 1 {
			t.Fatalf("%+v %v", row, err)
		}
		if out := s.must(t, v, source.Query{SQL: "SELECT COUNT(*) FROM numbers"}); out.Rows[0][0].Int != 2000 {
			t.Fatalf("%+v", out.Rows)
		}
		if row, err := rows.Next(t.Context()); err != nil || row[0].Int != 2 {
			t.Fatalf("%+v %v", row, err)
		}
	})
	t.Run("views of the same rows have one version", func(t *testing.T) {
		if a, b := held(t), held(t); a.Version() != b.Version() {
			t.Fatalf("%q and %q", a.Version(), b.Version())
		}
	})
	t.Run("limits and refusals are those of the source", func(t *testing.T) {
		v := held(t)
		s.refused(t, v, source.Query{SQL: "SELECT n FROM numbers", Limits: source.Limits{Rows: 3}}, failure.QueryTooManyRows)
		s.refused(t, v, source.Query{SQL: "SELECT n FROM nombers"}, failure.QueryInvalid)
	})
	t.Run("it may be closed twice", func(t *testing.T) {
		v := held(t)
		for range 2 {
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
