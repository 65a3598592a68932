package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/xuri/excelize/v2"

	"almanac/internal/artifact"
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

// BenchmarkRatioXLSX compares with excelize's stream writer on the same rows in the same run: at least 5 is the aim.
func BenchmarkRatioXLSX(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d rows", n), func(b *testing.B) {
			var peer, own cost
			var peak uint64
			var size int64
			for b.Loop() {
				measured := newGenerator(n)
				measured.sample = 10_000
				res, err := artifact.Write(b.Context(), measured, artifact.Format{Kind: "xlsx"}, io.Discard, 0)
				if err != nil {
					b.Fatal(err)
				}
				peak, size = measured.peak, res.Bytes
				costs := compare(b, 3, func() error { return viaExcelize(newGenerator(n), io.Discard) },
					func() error {
						_, err := artifact.Write(b.Context(), newGenerator(n), artifact.Format{Kind: "xlsx"}, io.Discard, 0)
						return err
					})
				peer, own = costs[0], costs[1]
			}
			b.ReportMetric(peer.wall/own.wall, "x-excelize")
			b.ReportMetric(peer.cpu/own.cpu, "x-by-cpu")
			b.ReportMetric(own.wall, "ms-artifact")
			b.ReportMetric(peer.wall, "ms-excelize")
			b.ReportMetric(float64(peak)/(1<<20), "MiB-peak-heap")
			b.ReportMetric(float64(size)/1e6, "MB-file")
			b.ReportMetric(0, "ns/op")
		})
	}
}
