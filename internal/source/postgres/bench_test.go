package postgres

// go test ./internal/source/postgres -run '^$' -bench Ratio -benchtime 1x

import (
	"context"
	"errors"
	"io"
	"testing"

	"almanac/internal/artifact"
	"almanac/internal/measure"
	"almanac/internal/source"
)

// ordersSQL makes rows of ten columns: integers, decimals, times, texts, of which some need quotes, and NULLs.
const ordersSQL = `CREATE TABLE orders AS SELECT g AS id, 1000000000 + g * 7919 % 9000000000 AS account, (g % 1000000 + 0.25)::numeric(12,2) AS amount, (g % 1000 / 7.0)::numeric(12,6) AS price,
'2026-01-01Z'::timestamptz + g * interval '8111 milliseconds' AS created_at, '2026-01-01Z'::timestamptz + g % 1000000007 * interval '1 millisecond' AS updated_at,
CASE WHEN g % 100 = 0 THEN 'name, inc' ELSE 'name ' || g END AS name, (array['pending','approved','shipped','delivered'])[1 + g % 4] AS status,
CASE WHEN g % 10 < 3 THEN NULL ELSE 'a note of three words' END AS note, CASE WHEN g % 10 < 2 THEN NULL ELSE g % 512 END AS quantity FROM generate_series(1::bigint, 1000000) AS g`

// BenchmarkRatioPostgres compares source to file with a bare drain of the same source.
func BenchmarkRatioPostgres(b *testing.B) {
	src := openTest(b, ordersSQL, "VACUUM ANALYZE orders")
	read := func(use func(source.Rows) error) func() error {
		return func() error {
			rows, err := src.Open(b.Context(), source.Query{SQL: "SELECT * FROM orders"})
			must(b, err)
			defer rows.Close()
			return use(rows)
		}
	}
	drain := func(rows source.Rows) error {
		for {
			if _, err := rows.Next(context.Background()); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	write := func(rows source.Rows) error {
		_, err := artifact.Write(b.Context(), rows, artifact.Format{Kind: "csv"}, io.Discard, 0)
		return err
	}
	for b.Loop() {
		costs := measure.Compare(b, 5, read(drain), read(write))
		measure.Row{What: "PostgreSQL to CSV, 1000000 rows × 10 columns", Peer: "draining the same query", Bound: measure.AtMost, Aim: 1.1, Theirs: costs[0], Ours: costs[1]}.Report(b)
	}
}
