package postgres

import (
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"almanac/internal/source"
)

// columnsOf reads a description of the result. A column of a domain has the type that the domain is made of.
func columnsOf(fields []pgconn.FieldDescription) []source.Column {
	out := make([]source.Column, len(fields))
	for i, f := range fields {
		c := source.Column{Name: string(f.Name), Type: source.Text}
		switch f.DataTypeOID {
		case oidBool:
			c.Type = source.Boolean
		case oidBytea:
			c.Type = source.Bytes
		case oidInt8, oidInt2, oidInt4, oidOID:
			c.Type = source.Integer
		case oidFloat4, oidFloat8:
			c.Type = source.Real
		case oidDate:
			c.Type = source.Date
		case oidTimestamp:
			c.Type = source.Timestamp
		case oidTimestamptz:
			c.Type, c.Zoned = source.Timestamp, true
		case oidNumeric:
			c.Type = source.Decimal
			c.Precision, c.Scale = precision(f.TypeModifier)
		}
		out[i] = c
	}
	return out
}

// precision reads the modifier of a numeric (src/backend/utils/adt/numeric.c of PostgreSQL). A negative scale, which has
// no digits behind the point, is 0 with the zeros counted as digits.
func precision(modifier int32) (digits, scale int) {
	if modifier < 4 {
		return 0, 0
	}
	m := modifier - 4
	digits, scale = int(m>>16&0xffff), int(m&0x7ff)
	if scale >= 1024 {
		scale -= 2048
	}
	if scale < 0 {
		return digits - scale, 0
	}
	return max(digits, scale), scale
}

// decode reads one cell from PostgreSQL's text form; raw lies in the connection's buffer and is used in place. ok is
// false for a text that is none of its type. What a kind cannot hold is a text, as PostgreSQL writes it: the numeric NaN
// and Infinity, the dates and times infinity and -infinity, BC, and those of the year 10000 and later.
func decode(oid uint32, raw []byte, v *source.Value) (ok bool) {
	switch oid {
	case oidInt8, oidInt4, oidInt2, oidOID:
		v.Kind = source.KindInt
		v.Int, ok = integer(raw)
		return ok
	case oidNumeric:
		v.Kind, v.Text = source.KindDecimal, raw
		if len(raw) == 0 || raw[len(raw)-1] > '9' { // NaN, Infinity, -Infinity
			v.Kind = source.KindText
		}
		return true
	case oidFloat8, oidFloat4:
		v.Kind = source.KindFloat
		v.Float, ok = float(raw)
		return ok
	case oidBool:
		v.Kind, v.Int = source.KindBool, 0
		if len(raw) == 1 && raw[0] == 't' {
			v.Int = 1
		}
		return len(raw) == 1
	case oidDate:
		return moment(raw, source.KindDate, v)
	case oidTimestamp, oidTimestamptz:
		return moment(raw, source.KindTimestamp, v)
	case oidBytea:
		v.Kind = source.KindBytes
		if len(raw) < 2 || raw[0] != '\\' || raw[1] != 'x' {
			return false
		}
		n, err := hex.Decode(raw, raw[2:]) // writes behind where it reads
		v.Text = raw[:n]
		return err == nil
	}
	v.Kind, v.Text = source.KindText, raw
	return true
}

func integer(s []byte) (int64, bool) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0') // 19 digits fit
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

func float(s []byte) (float64, bool) {
	switch string(s) {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return f, err == nil
}

// moment reads a date or time of the years 1 to 9999 in ISO form, its zone being UTC where it has one.
func moment(raw []byte, kind source.Kind, v *source.Value) bool {
	v.Kind, v.Text = source.KindText, raw
	if len(raw) < 10 || raw[4] != '-' || raw[7] != '-' || raw[len(raw)-1] == 'C' {
		return len(raw) > 0 // infinity, BC, or a year of five digits
	}
	year, ok1 := digits(raw[:4])
	month, ok2 := digits(raw[5:7])
	day, ok3 := digits(raw[8:10])
	seconds := days(year, month, day) * 86400
	nanos, ok4 := 0, len(raw) == 10
	if kind == source.KindTimestamp {
		var clock int64
		clock, nanos, ok4 = timeOfDay(raw[10:])
		seconds += clock
	}
	v.Kind, v.Time = kind, time.Unix(seconds, int64(nanos)).UTC()
	return ok1 && ok2 && ok3 && ok4
}

// timeOfDay reads " 13:04:05.000006" with or without "+00" behind it.
func timeOfDay(s []byte) (seconds int64, nanos int, ok bool) {
	if len(s) < 9 || s[0] != ' ' || s[3] != ':' || s[6] != ':' {
		return 0, 0, false
	}
	h, ok1 := digits(s[1:3])
	m, ok2 := digits(s[4:6])
	sec, ok3 := digits(s[7:9])
	s = s[9:]
	if n := len(s); n >= 3 && string(s[n-3:]) == "+00" {
		s = s[:n-3]
	}
	if len(s) > 0 {
		if s[0] != '.' || len(s) < 2 || len(s) > 10 {
			return 0, 0, false
		}
		var good bool
		if nanos, good = digits(s[1:]); !good {
			return 0, 0, false
		}
		for range 10 - len(s) {
			nanos *= 10
		}
	}
	return int64(h*3600 + m*60 + sec), nanos, ok1 && ok2 && ok3
}

func digits(s []byte) (n int, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// days is the number of a date since 1970, in years that begin in March:
// https://howardhinnant.github.io/date_algorithms.html#days_from_civil explains the method.
func days(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	inYear := (153*(month-3)+2)/5 + day - 1
	return int64(365*year + year/4 - year/100 + year/400 + inYear - 719468)
}
