package artifact_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"almanac/internal/source"
)

// field is one field of a file as an independent reader finds it.
type field struct {
	text   string
	quoted bool
}

// parts takes a file apart by RFC 4180 alone, and tells which fields were quoted: encoding/csv does not, and makes CRLF
// within a field LF.
func parts(file []byte, delimiter byte) (records [][]field, err error) {
	err = eachRecord(file, delimiter, func(record []field) error {
		records = append(records, append([]field(nil), record...))
		return nil
	})
	return records, err
}

// eachRecord hands out one record after another, valid until the next one.
func eachRecord(file []byte, delimiter byte, take func([]field) error) error {
	var record []field
	ends := string([]byte{delimiter, '\r', '\n', '"'})
	for rest := file; len(rest) > 0; {
		var f field
		if rest[0] == '"' {
			f.quoted = true
			var text []byte
			for rest = rest[1:]; ; rest = rest[1:] {
				i := bytes.IndexByte(rest, '"')
				if i < 0 {
					return fmt.Errorf("a quote that does not end")
				}
				text = append(text, rest[:i]...)
				if rest = rest[i+1:]; len(rest) == 0 || rest[0] != '"' {
					break
				}
				text = append(text, '"')
			}
			f.text = string(text)
		} else {
			i := bytes.IndexAny(rest, ends)
			if i < 0 {
				return fmt.Errorf("a record that does not end")
			}
			f.text, rest = string(rest[:i]), rest[i:]
		}
		record = append(record, f)
		switch {
		case len(rest) > 0 && rest[0] == delimiter:
			rest = rest[1:]
		case bytes.HasPrefix(rest, []byte("\r\n")):
			rest = rest[2:]
			if err := take(record); err != nil {
				return err
			}
			record = record[:0]
		default:
			return fmt.Errorf("%q where a delimiter or CRLF should be", rest[:min(len(rest), 20)])
		}
	}
	if len(record) > 0 {
		return fmt.Errorf("the last record does not end")
	}
	return nil
}

// readCSV is the suite's reader of CSV: an empty field without quotes is NULL, everything else is of its column's type.
func readCSV(file []byte, columns []source.Column, take func([]source.Value) error) (names []string, err error) {
	err = eachRecord(file, ',', func(record []field) error {
		if names == nil {
			for _, f := range record {
				names = append(names, f.text)
			}
			return nil
		}
		if len(record) != len(columns) {
			return fmt.Errorf("%d fields in a record, want %d", len(record), len(columns))
		}
		row := make([]source.Value, len(record))
		for i, f := range record {
			if f.text == "" && !f.quoted {
				continue // NULL
			}
			if row[i], err = valueOf(f.text, columns[i].Type); err != nil {
				return fmt.Errorf("column %d: %w", i+1, err)
			}
			if columns[i].Type == source.Bytes {
				if row[i].Text, err = hex.DecodeString(f.text[2:]); err != nil || f.text[:2] != `\x` {
					return fmt.Errorf("column %d: %q is not \\x and hexadecimal digits", i+1, f.text)
				}
			}
		}
		return take(row)
	})
	return names, err
}

// valueOf reads the text that CSV and JSON Lines share for a cell of a type.
func valueOf(text string, of source.Type) (v source.Value, err error) {
	switch of {
	case source.Integer:
		v.Kind = source.KindInt
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case source.Real:
		v.Kind = source.KindFloat
		v.Float, err = strconv.ParseFloat(text, 64)
	case source.Boolean:
		var yes bool
		v.Kind = source.KindBool
		if yes, err = strconv.ParseBool(text); yes {
			v.Int = 1
		}
	case source.Date:
		v.Kind = source.KindDate
		v.Time, err = time.Parse(time.DateOnly, text)
	case source.Timestamp:
		v.Kind = source.KindTimestamp
		v.Time, err = time.Parse(time.RFC3339Nano, text)
	case source.Decimal:
		v = source.Value{Kind: source.KindDecimal, Text: []byte(text)}
	case source.Bytes:
		v = source.Value{Kind: source.KindBytes, Text: []byte(text)}
	default:
		v = source.Value{Kind: source.KindText, Text: []byte(text)}
	}
	return v, err
}
