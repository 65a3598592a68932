//go:build duckdb

package artifact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/source"
)

// DuckDB reads a file of more than one row group, with every type and NULL, as the rows that were written.
func TestParquetReadByDuckDBIsTheRows(t *testing.T) {
	noon := time.Date(1969, 7, 20, 20, 17, 40, 123456000, time.UTC)
	in := columnar([]source.Column{named("z big", source.Integer), named("a", source.Real), named("narrow", source.Decimal, 18, 4), named("wide", source.Decimal, 38, 20), named("open", source.Decimal),
		named("few", source.Text), named("many", source.Text), named("raw", source.Bytes), named("truth", source.Boolean), named("day", source.Date), {Name: "at", Type: source.Timestamp, Zoned: true}, named("clock", source.Timestamp), named("nothing", source.Unknown)})
	for i := range 140_000 {
		row := []source.Value{integer(9007199254740993 - int64(i)*7919), float(float64(i) / 3), decimal(fmt.Sprintf("%d.%04d", i-70_000, i%10_000)), decimal(fmt.Sprintf("-%d.%020d", i+1, i)),
			decimal(fmt.Sprintf("0.%d0000000000000055", i)), text(fmt.Sprint("state ", i%9)), text(fmt.Sprintf("é \"%d\", =1+1", i)), raws(fmt.Sprintf("\x00\xff%d", i)), truth(int64(i % 2)),
			date(noon.AddDate(0, 0, i).Truncate(24 * time.Hour)), stamp(noon.Add(time.Duration(i) * 7919 * time.Microsecond)), stamp(noon.Add(time.Duration(i) * 104729 * time.Microsecond)), null}
		for j := range row {
			if (i+j)%11 == 0 {
				row[j] = null
			}
		}
		in.rows = append(in.rows, row)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := artifact.Write(t.Context(), in, parquetFile, file, 0); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "testdata/duckdb_parquet.py", "hash", path)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var got struct {
		Columns []string
		Rows    int
		SHA256  string
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	same(t, "columns", got.Columns, "z big BIGINT", "a DOUBLE", "narrow DECIMAL(18,4)", "wide DECIMAL(38,20)", "open VARCHAR", "few VARCHAR", "many VARCHAR", "raw BLOB", "truth BOOLEAN", "day DATE",
		"at TIMESTAMP WITH TIME ZONE", "clock TIMESTAMP", "nothing VARCHAR")
	if want := digestOf(in); got.Rows != len(in.rows) || got.SHA256 != want {
		t.Errorf("DuckDB reads %d rows with the hash %s, want %d with %s", got.Rows, got.SHA256, len(in.rows), want)
	}
}

// digestOf spells cells as testdata/duckdb_parquet.py does.
func digestOf(in *table) string {
	sum := sha256.New()
	for _, row := range in.rows {
		cells := make([]string, len(row))
		for i, v := range row {
			switch v.Kind {
			case source.KindNull:
				cells[i] = "\x00"
			case source.KindInt:
				cells[i] = strconv.FormatInt(v.Int, 10)
			case source.KindFloat:
				cells[i] = hexOf(v.Float)
			case source.KindBytes:
				cells[i] = hex.EncodeToString(v.Text)
			case source.KindBool:
				cells[i] = strconv.FormatBool(v.Int == 1)
			case source.KindDate:
				cells[i] = strconv.FormatInt(int64(math.Floor(float64(v.Time.Unix())/86400)), 10)
			case source.KindTimestamp:
				cells[i] = strconv.FormatInt(v.Time.UnixMicro(), 10)
			default:
				cells[i] = string(v.Text)
			}
		}
		fmt.Fprintf(sum, "%s\n", strings.Join(cells, "\x1f"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// hexOf is Python's float.hex.
func hexOf(f float64) string {
	if f == 0 {
		return "0x0.0p+0"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'x', 13, 64), "p")
	n, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%sp%+d", mantissa, n)
}
