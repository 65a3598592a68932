package sqlite

import (
	"context"
	"fmt"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/source"
)

var _ source.Tester = (*fetched)(nil)

// Test fetches the file, names its tables and reads first rows.
func (s *fetched) Test(ctx context.Context, sql string) (r source.Report) {
	var held source.View
	if !r.Step("file", func() (says string, err error) {
		if held, err = s.View(ctx); err != nil {
			return "", err
		}
		return "version " + held.Version(), nil
	}) {
		return r
	}
	defer held.Close()
	var tables []string
	if !r.Step("rights", func() (string, error) {
		_, rows, err := source.First(ctx, held, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name", mostTables)
		for _, row := range rows {
			tables = append(tables, *row[0])
		}
		if err == nil && len(tables) == 0 {
			err = failure.New(failure.SourceUnknown, "the data file has no tables: upload another")
		}
		return "has " + strings.Join(tables[:min(len(tables), source.PreviewRows)], ", "), err
	}) {
		return r
	}
	if sql == "" {
		sql = fmt.Sprintf(`SELECT * FROM "%s" LIMIT %d`, strings.ReplaceAll(tables[0], `"`, `""`), source.PreviewRows)
	}
	r.Preview(ctx, held, sql)
	return r
}

// mostTables bounds the names that a test reads.
const mostTables = 1000
