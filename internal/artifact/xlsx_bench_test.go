package artifact_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/xuri/excelize/v2"

	"almanac/internal/artifact"
	"almanac/internal/measure"
	"almanac/internal/source"
)

// viaExcelize writes the same rows with excelize's stream writer: numbers as numbers, times with a date format, the header
// bold and in view, as it offers them.
func viaExcelize(rows source.Rows, w io.Writer) (err error) {
	f := excelize.NewFile()
	defer func() { err = errors.Join(err, f.Close()) }()
	out, err := f.NewStreamWriter("Sheet1")
	if err != nil {
		return err
	}
	pattern := "yyyy-mm-dd hh:mm:ss"
	dates, err := f.NewStyle(&excelize.Style{CustomNumFmt: &pattern})
	if err != nil {
		return err
	}
	bold, err := f.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}})
	if err != nil {
		return err
	}
	if err := out.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	record := make([]any, len(rows.Columns()))
	for i, c := range rows.Columns() {
		record[i] = excelize.Cell{Value: c.Name, StyleID: bold}
	}
	for n := 1; ; n++ {
		cell, err := excelize.CoordinatesToCellName(1, n)
		if err != nil {
			return err
		}
		if err := out.SetRow(cell, record); err != nil {
			return err
		}
		row, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for i, v := range row {
			switch v.Kind {
			case source.KindNull:
				record[i] = nil
			case source.KindInt:
				record[i] = v.Int
			case source.KindFloat:
				record[i] = v.Float
			case source.KindTimestamp:
				record[i] = excelize.Cell{Value: v.Time, StyleID: dates}
			case source.KindDecimal:
				if record[i], err = strconv.ParseFloat(view(v.Text), 64); err != nil {
					return err
				}
			default:
				record[i] = view(v.Text)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Write(w)
}

// BenchmarkRatioXLSX compares with excelize's stream writer.
func BenchmarkRatioXLSX(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		_, beside := seen(b, n, artifact.Format{Kind: "xlsx"})
		costs := measure.Compare(b, 3, func() error { return viaExcelize(newGenerator(n), io.Discard) }, written(b, n, artifact.Format{Kind: "xlsx"}))
		measure.Row{What: "XLSX, 1000000 rows × 10 columns", Peer: "excelize v2.11.1, StreamWriter", Bound: measure.AtLeast, Aim: 5, Theirs: costs[0], Ours: costs[1], Beside: beside}.Report(b)
	}
}
