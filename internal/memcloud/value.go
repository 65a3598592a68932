package memcloud

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attributes is an item, or the inside of a map.
type attributes = map[string]types.AttributeValue

// maxDepth is how many levels an attribute may have: a text in 31 lists has 32. Source: "Quotas",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxDepth = 32

// typeOf is the type letter that attribute_type and error messages use.
func typeOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	}
	return ""
}

// normalItem checks a whole item and gives a copy with normal numbers.
func normalItem(item attributes) (attributes, error) {
	out := make(attributes, len(item))
	var first string // of the names that are wrong
	var wrong error
	for name, given := range item {
		v, err := normalValue(given, 0)
		if name == "" {
			err = invalid("Empty attribute name")
		}
		if err != nil && (wrong == nil || name < first) {
			first, wrong = name, err
		}
		out[name] = v
	}
	if wrong != nil {
		return nil, wrong
	}
	return out, nil
}

// normalValue checks one value and gives a deep copy of it with its numbers
// in normal form. Stored values are never changed afterwards.
func normalValue(v types.AttributeValue, depth int) (types.AttributeValue, error) {
	if depth >= maxDepth {
		return nil, invalid("Nesting Levels have exceeded supported limits: attributes may be nested %d deep", maxDepth)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}, nil
	case *types.AttributeValueMemberN:
		d, err := parseDecimal(v.Value)
		return &types.AttributeValueMemberN{Value: d.String()}, err
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}, nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case *types.AttributeValueMemberL:
		return normalList(v, depth)
	case *types.AttributeValueMemberM:
		return normalMap(v, depth)
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return normalSet(v)
	}
	return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

func normalList(v *types.AttributeValueMemberL, depth int) (types.AttributeValue, error) {
	out := make([]types.AttributeValue, len(v.Value))
	for i, e := range v.Value {
		n, err := normalValue(e, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return &types.AttributeValueMemberL{Value: out}, nil
}

func normalMap(v *types.AttributeValueMemberM, depth int) (types.AttributeValue, error) {
	out := make(attributes, len(v.Value))
	for _, name := range sortedNames(v.Value) {
		n, err := normalValue(v.Value[name], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = n
	}
	return &types.AttributeValueMemberM{Value: out}, nil
}

// normalSet sorts the members, so that equal sets look equal; AWS promises no
// order either.
func normalSet(v types.AttributeValue) (types.AttributeValue, error) {
	kind, members := setMembers(v)
	if len(members) == 0 {
		names := map[string]string{"SS": "string", "NS": "number", "BS": "binary"}
		return nil, invalid("One or more parameter values were invalid: An %s set  may not be empty", names[kind])
	}
	out := make([]string, 0, len(members))
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if kind == "NS" {
			d, err := parseDecimal(m)
			if err != nil {
				return nil, err
			}
			m = d.String()
		}
		if seen[m] {
			return nil, invalid("One or more parameter values were invalid: Input collection [%s] contains duplicates.", strings.Join(members, ", "))
		}
		seen[m] = true
		out = append(out, m)
	}
	return makeSet(kind, out), nil
}

// setMembers gives the kind and the members of a set, binary ones as strings
// of the same bytes. The kind is empty for anything else.
func setMembers(v types.AttributeValue) (kind string, members []string) {
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		return "SS", v.Value
	case *types.AttributeValueMemberNS:
		return "NS", v.Value
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			members = append(members, string(b))
		}
		return "BS", members
	}
	return "", nil
}

// makeSet builds a set from normal, distinct members.
func makeSet(kind string, members []string) types.AttributeValue {
	switch kind {
	case "NS":
		sort.Slice(members, func(i, j int) bool { return mustDecimal(members[i]).compare(mustDecimal(members[j])) < 0 })
		return &types.AttributeValueMemberNS{Value: members}
	case "BS":
		sort.Strings(members)
		out := make([][]byte, len(members))
		for i, m := range members {
			out[i] = []byte(m)
		}
		return &types.AttributeValueMemberBS{Value: out}
	}
	sort.Strings(members)
	return &types.AttributeValueMemberSS{Value: members}
}

// mustDecimal reads a number that has been normalised before.
func mustDecimal(text string) decimal {
	d, err := parseDecimal(text)
	if err != nil {
		panic("memcloud: a stored number is not a number: " + text)
	}
	return d
}

// copyItem is a deep copy for the caller, who may change what he gets.
func copyItem(item attributes) attributes {
	if item == nil {
		return nil
	}
	out := make(attributes, len(item))
	for name, v := range item {
		out[name] = copyValue(v)
	}
	return out
}

func copyValue(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: copyItem(v.Value)}
	case *types.AttributeValueMemberL:
		out := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			out[i] = copyValue(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	}
	kind, members := setMembers(v)
	return makeSet(kind, append([]string(nil), members...))
}

// encodeValue appends an unambiguous text of a normal value: two values are
// equal exactly when their texts are.
func encodeValue(out []byte, v types.AttributeValue) []byte {
	out = append(append(out, typeOf(v)...), '(')
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		out = encodeText(out, v.Value)
	case *types.AttributeValueMemberN:
		out = append(out, v.Value...)
	case *types.AttributeValueMemberB:
		out = encodeText(out, string(v.Value))
	case *types.AttributeValueMemberBOOL:
		out = strconv.AppendBool(out, v.Value)
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			out = append(encodeValue(out, e), ',')
		}
	case *types.AttributeValueMemberM:
		out = encodeItem(out, v.Value)
	default:
		_, members := setMembers(v)
		for _, m := range members {
			out = encodeText(out, m)
		}
	}
	return append(out, ')')
}

// encodeText writes the length first, so that no text can imitate what follows.
func encodeText(out []byte, text string) []byte {
	out = append(strconv.AppendInt(out, int64(len(text)), 10), ':')
	return append(out, text...)
}

func encodeItem(out []byte, item attributes) []byte {
	for _, name := range sortedNames(item) {
		out = append(encodeText(out, name), '=')
		out = append(encodeValue(out, item[name]), ',')
	}
	return out
}

// equalValues compares two normal values; different types are never equal.
func equalValues(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	}
	return typeOf(a) == typeOf(b) && string(encodeValue(nil, a)) == string(encodeValue(nil, b))
}

func equalItems(a, b attributes) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if w, ok := b[name]; !ok || !equalValues(v, w) {
			return false
		}
	}
	return true
}

// orderValues compares two scalars; ok is false where they have no order:
// different types, or a type without one.
func orderValues(a, b types.AttributeValue) (c int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, is := b.(*types.AttributeValueMemberS); is {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, is := b.(*types.AttributeValueMemberN); is {
			return mustDecimal(a.Value).compare(mustDecimal(b.Value)), true
		}
	case *types.AttributeValueMemberB:
		if b, is := b.(*types.AttributeValueMemberB); is {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// itemSize is the size in bytes by which AWS limits and bills. Source:
// "DynamoDB item sizes and formats",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemSize(item attributes) int {
	size := 0
	for name, v := range item {
		size += len(name) + valueSize(v)
	}
	return size
}

// valueSize counts 3 bytes for a list or map and 1 for each of its elements.
func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return mustDecimal(v.Value).size()
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + itemSize(v.Value)
	case *types.AttributeValueMemberL:
		size := 3 + len(v.Value)
		for _, e := range v.Value {
			size += valueSize(e)
		}
		return size
	}
	kind, members := setMembers(v)
	size := 0
	for _, m := range members {
		if kind == "NS" {
			size += mustDecimal(m).size()
		} else {
			size += len(m)
		}
	}
	return size
}

// sortedNames makes everything that walks over attributes deterministic.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
