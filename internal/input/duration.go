package input

import (
	"encoding/json"
	"reflect"
	"time"
)

// Duration is a time.Duration that JSON spells as text, e.g. "30s".
type Duration time.Duration

func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON answers with the decoder's own kind of error, so that the decoder adds which field it was.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	v, err := time.Duration(0), json.Unmarshal(b, &s)
	if err == nil {
		v, err = time.ParseDuration(s)
	}
	if err != nil {
		return &json.UnmarshalTypeError{Value: string(b), Type: reflect.TypeFor[Duration]()}
	}
	*d = Duration(v)
	return nil
}

// Std is the duration as the standard library knows it.
func (d Duration) Std() time.Duration { return time.Duration(d) }
