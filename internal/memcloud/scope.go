package memcloud

import (
	"strings"
)

// scope resolves the placeholders of one request's expressions and notes
// which were used: AWS refuses those that no expression uses.
type scope struct {
	names      map[string]string
	values     attributes
	usedNames  map[string]bool
	usedValues map[string]bool
	any        bool // an expression was given
}

// newScope checks the placeholders. A map that is there but empty is refused,
// as the SDK sends it.
func newScope(names map[string]string, values attributes) (*scope, error) {
	if names != nil && len(names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	if values != nil && len(values) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	for _, key := range sortedNames(names) {
		if !placeholder(key, '#') {
			return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
		}
		if names[key] == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
		}
	}
	s := &scope{names: names, values: make(attributes, len(values)), usedNames: map[string]bool{}, usedValues: map[string]bool{}}
	for _, key := range sortedNames(values) {
		if !placeholder(key, ':') {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
		}
		v, err := normalValue(values[key], 0)
		if err != nil {
			return nil, prefixed(err, "ExpressionAttributeValues contains invalid value: ", " for key "+key)
		}
		s.values[key] = v
	}
	return s, nil
}

// placeholder reports whether the key is #word or :word.
func placeholder(key string, mark byte) bool {
	if len(key) < 2 || key[0] != mark {
		return false
	}
	for i := 1; i < len(key); i++ {
		if !wordByte(key[i]) {
			return false
		}
	}
	return true
}

// finish refuses placeholders that nothing used.
func (s *scope) finish() error {
	if !s.any {
		if len(s.names) > 0 {
			return invalid("ExpressionAttributeNames can only be specified when using expressions")
		}
		if len(s.values) > 0 {
			return invalid("ExpressionAttributeValues can only be specified when using expressions")
		}
	}
	if len(s.usedNames) == len(s.names) && len(s.usedValues) == len(s.values) {
		return nil // all were used: what is noted as used was given
	}
	if unused := without(sortedNames(s.names), s.usedNames); len(unused) > 0 {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	if unused := without(sortedNames(s.values), s.usedValues); len(unused) > 0 {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	return nil
}

func without(keys []string, used map[string]bool) []string {
	var out []string
	for _, key := range keys {
		if !used[key] {
			out = append(out, key)
		}
	}
	return out
}
