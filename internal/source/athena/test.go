package athena

import (
	"context"
	"fmt"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/source"
)

var _ source.Tester = (*Source)(nil)

// mostTables bounds the names that a test reads.
const mostTables = 1000

// Test reads the first rows of a query, without one those of the first table that the database lists. Each step is a query
// that is paid for, ten megabytes at least.
func (s *Source) Test(ctx context.Context, sql string) (r source.Report) {
	if sql != "" {
		r.Preview(ctx, s, sql)
		return r
	}
	var tables []string
	if !r.Step("rights", func() (string, error) {
		list := "SELECT table_name FROM information_schema.tables WHERE table_schema = '" + strings.ReplaceAll(s.Database, "'", "''") + "' ORDER BY table_name"
		_, rows, err := source.First(ctx, s, list, mostTables)
		for _, row := range rows {
			tables = append(tables, *row[0])
		}
		if err == nil && len(tables) == 0 {
			err = failure.New(failure.SourceUnknown, "database %q has no tables, or none that the product's role may see", s.Database)
		}
		return "has " + strings.Join(tables[:min(len(tables), source.PreviewRows)], ", "), err
	}) {
		return r
	}
	r.Preview(ctx, s, fmt.Sprintf(`SELECT * FROM "%s" LIMIT %d`, strings.ReplaceAll(tables[0], `"`, `""`), source.PreviewRows))
	return r
}
