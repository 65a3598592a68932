package athena

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"almanac/internal/calendar"
	"almanac/internal/source"
)

// column is a column of a result and how its cells are read.
type column struct {
	source.Column
	read func(*source.Value, []byte) error
}

// columnOf reads a column's type. https://docs.aws.amazon.com/athena/latest/ug/data-types.html
func columnOf(c types.ColumnInfo) column {
	name := aws.ToString(c.Label)
	if name == "" {
		name = aws.ToString(c.Name)
	}
	out := column{Column: source.Column{Name: name, Type: source.Text}, read: readText}
	switch strings.ToLower(aws.ToString(c.Type)) {
	case "tinyint", "smallint", "integer", "int", "bigint":
		out.Type, out.read = source.Integer, readInteger
	case "real", "float", "double":
		out.Type, out.read = source.Real, readFloat
	case "decimal":
		out.Type, out.read = source.Decimal, readDecimal
		out.Precision, out.Scale = int(c.Precision), int(c.Scale)
	case "boolean":
		out.Type, out.read = source.Boolean, readBoolean
	case "date":
		out.Type, out.read = source.Date, readDate
	case "timestamp":
		out.Type, out.read = source.Timestamp, readTimestamp
	case "timestamp with time zone":
		out.Type, out.read, out.Zoned = source.Timestamp, new(zones).read, true
	case "varbinary", "binary":
		out.Type, out.read = source.Bytes, readBytes
	}
	return out
}

func readText(v *source.Value, text []byte) error {
	v.Kind, v.Text = source.KindText, text
	return nil
}

func readInteger(v *source.Value, text []byte) (err error) {
	v.Kind = source.KindInt
	v.Int, err = strconv.ParseInt(string(text), 10, 64)
	return err
}

func readFloat(v *source.Value, text []byte) (err error) {
	v.Kind = source.KindFloat
	v.Float, err = strconv.ParseFloat(string(text), 64)
	return err
}

func readDecimal(v *source.Value, text []byte) error {
	v.Kind, v.Text = source.KindDecimal, text
	digits := bytes.TrimPrefix(text, []byte("-"))
	if bytes.Count(digits, []byte(".")) > 1 || len(bytes.Trim(digits, "0123456789.")) > 0 || len(bytes.Trim(digits, ".")) == 0 {
		return fmt.Errorf("%q is no decimal", text)
	}
	return nil
}

func readBoolean(v *source.Value, text []byte) error {
	v.Kind, v.Int = source.KindBool, 0
	switch string(text) {
	case "true":
		v.Int = 1
	case "false":
	default:
		return fmt.Errorf("%q is neither true nor false", text)
	}
	return nil
}

func readDate(v *source.Value, text []byte) (err error) {
	v.Kind = source.KindDate
	v.Time, err = time.Parse(time.DateOnly, string(text))
	return err
}

func readTimestamp(v *source.Value, text []byte) (err error) {
	v.Kind = source.KindTimestamp
	v.Time, err = time.Parse(time.DateTime, string(text)) // takes a fraction too
	return err
}

// readBytes reads two hexadecimal digits a byte, the bytes apart by spaces.
func readBytes(v *source.Value, text []byte) error {
	v.Kind = source.KindBytes
	digits := bytes.ReplaceAll(text, []byte(" "), nil)
	n, err := hex.Decode(digits, digits)
	v.Text = digits[:n]
	return err
}

// zones remembers the zone of the cell before.
type zones struct {
	name string
	zone *time.Location
}

// read reads a time and behind it the name or the offset of its zone.
func (z *zones) read(v *source.Value, text []byte) error {
	v.Kind = source.KindTimestamp
	i := bytes.LastIndexByte(text, ' ')
	if i < 0 {
		return fmt.Errorf("%q has no zone", text)
	}
	if name := string(text[i+1:]); z.zone == nil || name != z.name {
		zone, err := zoneOf(name)
		if err != nil {
			return err
		}
		z.name, z.zone = name, zone
	}
	at, err := time.ParseInLocation(time.DateTime, string(text[:i]), z.zone)
	v.Time = at.UTC()
	return err
}

func zoneOf(name string) (*time.Location, error) {
	if name != "" && (name[0] == '+' || name[0] == '-') {
		at, err := time.Parse("-07:00", name)
		if err != nil {
			return nil, err
		}
		return at.Location(), nil
	}
	return calendar.LoadZone(name)
}
