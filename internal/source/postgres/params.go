package postgres

import (
	"math"
	"slices"
	"strconv"
	"time"

	"almanac/internal/source"
)

// Object ids of PostgreSQL's own types, which never change (src/include/catalog/pg_type.dat of PostgreSQL).
const (
	oidUnknown     = 0 // the server decides
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidOID         = 26
	oidFloat4      = 700
	oidFloat8      = 701
	oidDate        = 1082
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidNumeric     = 1700
)

// arguments are a query's parameters by number: their types and, in text form, their values.
type arguments struct {
	oids   []uint32
	values [][]byte
}

// spelled is how a parameter's number is written.
var spelled = func() (out [maxParams + 1]string) {
	for i := range out {
		out[i] = "$" + strconv.Itoa(i)
	}
	return out
}()

// bind gives each parameter the type that PostgreSQL gives a constant of its kind: a whole number is an integer, or a
// bigint if it does not fit; another number is numeric; a text takes the type that its place asks for; a time is a
// timestamptz.
func bind(names []string, params map[string]any) (a arguments, err error) {
	for _, name := range names {
		value, ok := params[name]
		if !ok {
			return a, source.Absent(":" + name)
		}
		if err := source.CheckValue(name, value); err != nil {
			return a, err
		}
		oid, text := argument(value)
		a.oids, a.values = append(a.oids, oid), append(a.values, text)
	}
	return a, source.CheckUsed(params, func(name string) bool { return slices.Contains(names, name) })
}

func argument(value any) (oid uint32, text []byte) {
	switch v := value.(type) {
	case bool:
		return oidBool, strconv.AppendBool(nil, v)
	case int:
		return argument(int64(v))
	case int64:
		oid = oidInt8
		if v >= math.MinInt32 && v <= math.MaxInt32 {
			oid = oidInt4
		}
		return oid, strconv.AppendInt(nil, v, 10)
	case float64:
		return oidNumeric, strconv.AppendFloat(nil, v, 'g', -1, 64)
	case string:
		return oidUnknown, []byte(v)
	case time.Time:
		return oidTimestamptz, v.UTC().AppendFormat(nil, time.RFC3339Nano)
	}
	return oidUnknown, nil // NULL
}
