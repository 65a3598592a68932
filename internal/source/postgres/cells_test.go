package postgres

import (
	"math"
	"time"

	"almanac/internal/source"
	"almanac/internal/source/sourcetest"
)

func integerCell(n int64) source.Value { return source.Value{Kind: source.KindInt, Int: n} }
func floatCell(f float64) source.Value { return source.Value{Kind: source.KindFloat, Float: f} }
func decimalCell(s string) source.Value {
	return source.Value{Kind: source.KindDecimal, Text: []byte(s)}
}
func boolCell(n int64) source.Value { return source.Value{Kind: source.KindBool, Int: n} }
func bytesCell(s string) source.Value {
	return source.Value{Kind: source.KindBytes, Text: []byte(s)}
}
func dateCell(year int, month time.Month, day int) source.Value {
	return source.Value{Kind: source.KindDate, Time: time.Date(year, month, day, 0, 0, 0, 0, time.UTC)}
}
func timeCell(text string) source.Value {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return source.Value{Kind: source.KindTimestamp, Time: at.UTC()}
}

var (
	instants = source.Column{Name: "any", Type: source.Timestamp, Zoned: true}
	civil    = source.Column{Name: "any", Type: source.Timestamp}
	texts    = source.Column{Name: "any", Type: source.Text}
)

func decimals(precision, scale int) source.Column {
	return source.Column{Name: "any", Type: source.Decimal, Precision: precision, Scale: scale}
}

var cells = []sourcetest.Cell{
	{SQL: "9223372036854775807", Want: integerCell(math.MaxInt64), Column: source.Column{Name: "any", Type: source.Integer}},
	{SQL: "(-9223372036854775808)::bigint", Want: integerCell(math.MinInt64)},
	{SQL: "(-32768)::smallint", Want: integerCell(-32768)},
	{SQL: "4294967295::oid", Want: integerCell(4294967295)},
	{SQL: "0", Want: integerCell(0)},

	{SQL: "0.1000000000000000055", Want: decimalCell("0.1000000000000000055"), Column: decimals(0, 0)},
	{SQL: "(-5)::numeric(10,2)", Want: decimalCell("-5.00"), Column: decimals(10, 2)},
	{SQL: "12345::numeric(5,-2)", Want: decimalCell("12300"), Column: decimals(7, 0)},
	{SQL: "0.00012::numeric(2,5)", Want: decimalCell("0.00012"), Column: decimals(5, 5)},
	{SQL: "99999999999999999999999999999999999999.9999999999", Want: decimalCell("99999999999999999999999999999999999999.9999999999")},
	{SQL: "9223372036854775808", Want: decimalCell("9223372036854775808")},
	{SQL: "'NaN'::numeric", Want: sourcetest.Text("NaN"), Column: decimals(0, 0)},
	{SQL: "'Infinity'::numeric", Want: sourcetest.Text("Infinity")},
	{SQL: "'-Infinity'::numeric", Want: sourcetest.Text("-Infinity")},
	{SQL: "sum(n) OVER ()", Want: decimalCell("6")},

	{SQL: "0.1::float8", Want: floatCell(0.1), Column: source.Column{Name: "any", Type: source.Real}},
	{SQL: "0.1::float4", Want: floatCell(0.1)},
	{SQL: "'NaN'::float8", Want: floatCell(math.NaN())},
	{SQL: "'-Infinity'::float4", Want: floatCell(math.Inf(-1))},
	{SQL: "'Infinity'::float8", Want: floatCell(math.Inf(1))},
	{SQL: "'-0'::float8", Want: floatCell(math.Copysign(0, -1))},
	{SQL: "5e-324::float8", Want: floatCell(5e-324)},
	{SQL: "1.7976931348623157e308::float8", Want: floatCell(math.MaxFloat64)},
	{SQL: "(1::float8 / 3)", Want: floatCell(1.0 / 3)},

	{SQL: "true", Want: boolCell(1), Column: source.Column{Name: "any", Type: source.Boolean}},
	{SQL: "false", Want: boolCell(0)},
	{SQL: `'\x00ff0a'::bytea`, Want: bytesCell("\x00\xff\n"), Column: source.Column{Name: "any", Type: source.Bytes}},
	{SQL: `''::bytea`, Want: bytesCell("")},

	{SQL: "'2013-06-01'::date", Want: dateCell(2013, 6, 1), Column: source.Column{Name: "any", Type: source.Date}},
	{SQL: "'0001-01-01'::date", Want: dateCell(1, 1, 1)},
	{SQL: "'9999-12-31'::date", Want: dateCell(9999, 12, 31)},
	{SQL: "'2000-02-29'::date", Want: dateCell(2000, 2, 29)},
	{SQL: "'10000-01-01'::date", Want: sourcetest.Text("10000-01-01")},
	{SQL: "'0044-03-15 BC'::date", Want: sourcetest.Text("0044-03-15 BC")},
	{SQL: "'infinity'::date", Want: sourcetest.Text("infinity")},
	{SQL: "'-infinity'::date", Want: sourcetest.Text("-infinity")},

	{SQL: "'2013-06-01 13:04:05'::timestamp", Want: timeCell("2013-06-01T13:04:05Z"), Column: civil},
	{SQL: "'2013-06-01 13:04:05.000006'::timestamp", Want: timeCell("2013-06-01T13:04:05.000006Z"), Column: civil},
	{SQL: "'2013-06-01 13:04:05.5'::timestamp(3)", Want: timeCell("2013-06-01T13:04:05.5Z"), Column: civil},
	{SQL: "'1969-12-31 23:59:59.999999'::timestamp", Want: timeCell("1969-12-31T23:59:59.999999Z")},
	{SQL: "'infinity'::timestamp", Want: sourcetest.Text("infinity"), Column: civil},
	{SQL: "'-infinity'::timestamptz", Want: sourcetest.Text("-infinity"), Column: instants},
	{SQL: "'2013-11-03 01:30:00 America/New_York'::timestamptz", Want: timeCell("2013-11-03T06:30:00Z"), Column: instants},
	{SQL: "'2013-11-03 01:30:00-04'::timestamptz", Want: timeCell("2013-11-03T05:30:00Z"), Column: instants},
	{SQL: "'1883-01-01 00:00:00 America/New_York'::timestamptz", Want: timeCell("1883-01-01T04:56:02Z")},
	{SQL: "'0044-03-15 12:00:00+00 BC'::timestamptz", Want: sourcetest.Text("0044-03-15 12:00:00+00 BC")},
	{SQL: "'12345-03-15 12:00:00+00'::timestamptz", Want: sourcetest.Text("12345-03-15 12:00:00+00")},

	{SQL: "'13:04:05.5'::time", Want: sourcetest.Text("13:04:05.5"), Column: texts},
	{SQL: "'13:04:05+02'::timetz", Want: sourcetest.Text("13:04:05+02")},
	{SQL: "'1 year 2 mons 3 days 04:05:06.7'::interval", Want: sourcetest.Text("P1Y2M3DT4H5M6.7S")},
	{SQL: "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", Want: sourcetest.Text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), Column: texts},
	{SQL: `'{"a": 9007199254740993, "b": 1.50}'::json`, Want: sourcetest.Text(`{"a": 9007199254740993, "b": 1.50}`)},
	{SQL: `'{"b":1.50,"a":9007199254740993}'::jsonb`, Want: sourcetest.Text(`{"a": 9007199254740993, "b": 1.50}`)},
	{SQL: "array[1, NULL, 3]", Want: sourcetest.Text("{1,NULL,3}")},
	{SQL: `array['a,b', '"', '']`, Want: sourcetest.Text(`{"a,b","\"",""}`)},
	{SQL: "'x'::char(3)", Want: sourcetest.Text("x  ")},
	{SQL: "''::text", Want: sourcetest.Text("")},
	{SQL: "E'é☃\\n'", Want: sourcetest.Text("é☃\n")},
	{SQL: "NULL::int", Want: source.Value{Kind: source.KindNull}, Column: source.Column{Name: "any", Type: source.Integer}},
	{SQL: "'192.168.0.1/24'::inet", Want: sourcetest.Text("192.168.0.1/24")},
	{SQL: "row(1, 'a')", Want: sourcetest.Text("(1,a)")},
	{SQL: "int4range(1, 5)", Want: sourcetest.Text("[1,5)")},
}
