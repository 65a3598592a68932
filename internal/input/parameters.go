package input

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Parameters are a definition's own. Numbers are exact: a whole one is an int64, also beyond 2^53 and also where it is
// written as 1e3 or 5.0, any other a float64. One that is neither stays a json.Number, which Check refuses.
type Parameters map[string]any

// UnmarshalJSON reads an object.
func (p *Parameters) UnmarshalJSON(b []byte) error {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return err
	}
	for name, v := range m {
		if n, ok := v.(json.Number); ok {
			m[name] = number(n)
		}
	}
	*p = m
	return nil
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	f, err := n.Float64()
	switch {
	case err != nil:
		return n
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 && strings.ContainsAny(n.String(), ".eE"):
		return int64(f)
	case !strings.ContainsAny(n.String(), ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != n.String():
		return n // a whole number that only a nearby float could hold
	}
	return f
}
