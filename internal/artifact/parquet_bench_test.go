package artifact_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"almanac/internal/artifact"
	"almanac/internal/measure"
)

// python has DuckDB; .local/bin/cloud install puts it there.
var python = filepath.Join("..", "..", ".local", "venv", "bin", "python")

// BenchmarkRatioParquet compares with DuckDB on one thread, which has the rows in memory. Both write a file.
func BenchmarkRatioParquet(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		_, beside := seen(b, n, parquetFile)
		folder := b.TempDir()
		own := func() error {
			f, err := os.Create(filepath.Join(folder, "own.parquet"))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = artifact.Write(b.Context(), newGenerator(n), parquetFile, f, 0)
			return err
		}
		if err := own(); err != nil {
			b.Fatal(err)
		}
		var used []float64 // the other process's processor time
		peer := duckDB(b, filepath.Join(folder, "own.parquet"), filepath.Join(folder, "duckdb.parquet"))
		costs := measure.Compare(b, rounds, func() error {
			seconds, err := peer()
			used = append(used, seconds*1000)
			return err
		}, own)
		slices.Sort(used)
		costs[0].CPU = used[len(used)/2]
		size := func(name string) float64 {
			info, err := os.Stat(filepath.Join(folder, name))
			if err != nil {
				b.Fatal(err)
			}
			return float64(info.Size()) / 1e6
		}
		measure.Row{What: "Parquet, 1000000 rows × 10 columns", Peer: "DuckDB 2.0.1 on one thread, zstd", Bound: measure.AtMost, Aim: 1.3, Theirs: costs[0], Ours: costs[1],
			Beside: fmt.Sprintf("%s; DuckDB's file %.1f MB", beside, size("duckdb.parquet"))}.Report(b)
	}
}

// duckDB loads a file, and returns what writes it again.
func duckDB(b *testing.B, from, to string) func() (seconds float64, err error) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), python, "testdata/duckdb_parquet.py", "copy", from, to)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatalf("%v: DuckDB is installed by `.local/bin/cloud install`", err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	said := func() (string, error) {
		if !lines.Scan() {
			return "", fmt.Errorf("DuckDB says no more: %v", lines.Err())
		}
		return strings.TrimSpace(lines.Text()), nil
	}
	if _, err := said(); err != nil {
		b.Fatal(err)
	}
	return func() (float64, error) {
		if _, err := fmt.Fprintln(in, "write"); err != nil {
			return 0, err
		}
		line, err := said()
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(line, 64)
	}
}
