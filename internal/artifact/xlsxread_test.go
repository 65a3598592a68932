package artifact_test

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"almanac/internal/source"
)

// readXLSX is the suite's reader of XLSX: the parts of the zip are read whole, and the sheet's rows taken apart by their tags.
// A cell that is not there is NULL; text in a column of another type is what the sheet cannot hold as such.
func readXLSX(file []byte, columns []source.Column, take func([]source.Value) error) (names []string, err error) {
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	part, err := z.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	sheet, err := io.ReadAll(part)
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(view(sheet), "<sheetData>")
	if !ok {
		return nil, fmt.Errorf("no rows: %.200s", sheet)
	}
	row := make([]source.Value, len(columns))
	for n := 1; strings.HasPrefix(rest, "<row "); n++ {
		cells, after, ok := strings.Cut(rest, "</row>")
		cells, named := strings.CutPrefix(cells, fmt.Sprintf(`<row r="%d">`, n))
		if !ok || !named {
			return nil, fmt.Errorf("row %d is none: %.200s", n, rest)
		}
		rest = after
		clear(row)
		if err := eachCell(cells, n, func(i int, kind, content string) (err error) {
			if i >= len(columns) {
				return fmt.Errorf("row %d has a cell in column %d", n, i+1)
			}
			if n == 1 {
				names = append(names, content)
				return nil
			}
			row[i], err = excelCell(columns[i].Type, kind, content)
			return err
		}); err != nil {
			return nil, err
		}
		if n > 1 {
			if err := take(row); err != nil {
				return nil, err
			}
		}
	}
	if !strings.HasPrefix(rest, "</sheetData>") {
		return nil, fmt.Errorf("the rows do not end: %.200s", rest)
	}
	return names, nil
}

// eachCell takes a row apart: the place of each cell from 0, its type, and what it holds.
func eachCell(cells string, row int, take func(i int, kind, content string) error) error {
	for cells != "" {
		cell, after, ok := strings.Cut(cells, "</c>")
		cell, opened := strings.CutPrefix(cell, `<c r="`)
		ref, cell, named := strings.Cut(cell, `"`)
		attributes, content, whole := strings.Cut(cell, ">")
		if !ok || !opened || !named || !whole {
			return fmt.Errorf("row %d: no cell: %.200s", row, cells)
		}
		letters := strings.TrimRight(ref, "0123456789")
		if ref[len(letters):] != strconv.Itoa(row) {
			return fmt.Errorf("row %d has the cell %s", row, ref)
		}
		i := 0
		for _, c := range letters {
			i = i*26 + int(c-'A') + 1
		}
		kind := "n"
		if _, t, ok := strings.Cut(attributes, ` t="`); ok {
			kind, _, _ = strings.Cut(t, `"`)
		}
		_, content, _ = strings.Cut(content, ">") // of <v>, or of <is>
		if kind == "inlineStr" {
			_, content, _ = strings.Cut(content, ">")
		}
		content, _, _ = strings.Cut(content, "<")
		if strings.Contains(content, "&") {
			content = html.UnescapeString(content)
		}
		if strings.Contains(content, "_x") {
			content = unescape(content)
		}
		if err := take(i-1, kind, content); err != nil {
			return err
		}
		cells = after
	}
	return nil
}

// excelCell is a cell as its column's type asks for it.
func excelCell(of source.Type, kind, content string) (v source.Value, err error) {
	if kind == "b" || of == source.Text && kind != "inlineStr" {
		if of != source.Boolean {
			return v, fmt.Errorf("a cell of type %s holds %q in a column of another one", kind, content)
		}
		return source.Value{Kind: source.KindBool, Int: int64(content[0] - '0')}, nil
	}
	switch of {
	case source.Integer:
		v.Kind = source.KindInt
		v.Int, err = strconv.ParseInt(content, 10, 64)
	case source.Real:
		v.Kind = source.KindFloat
		v.Float, err = strconv.ParseFloat(content, 64)
	case source.Decimal:
		v = decimal(content)
	case source.Bytes:
		v.Kind = source.KindBytes
		v.Text, err = hex.DecodeString(strings.TrimPrefix(content, `\x`))
	case source.Date, source.Timestamp:
		v.Kind = map[source.Type]source.Kind{source.Date: source.KindDate, source.Timestamp: source.KindTimestamp}[of]
		v.Time, err = excelTime(kind, content)
	default:
		v = text(content)
	}
	return v, err
}

// excelTime is the moment of a serial number, to a thousandth of a second, or of a text.
func excelTime(kind, content string) (time.Time, error) {
	if kind == "inlineStr" {
		if len(content) == len(time.DateOnly) {
			content += "T00:00:00Z"
		}
		at, err := time.Parse(time.RFC3339Nano, content)
		return at.Round(time.Millisecond), err
	}
	serial, err := strconv.ParseFloat(content, 64)
	days := math.Floor(serial)
	thousandths := math.Round((serial - days) * 86_400_000)
	return time.Date(1899, 12, 30+int(days), 0, 0, 0, 0, time.UTC).Add(time.Duration(thousandths) * time.Millisecond), err
}
