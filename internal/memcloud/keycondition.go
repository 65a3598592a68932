package memcloud

import (
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// keyCondition is what a Query asks of the key: one partition, and perhaps a
// range of the sort key.
type keyCondition struct {
	hash     types.AttributeValue
	operator string // of the sort key: "", =, <, <=, >, >=, BETWEEN, begins_with
	low      types.AttributeValue
	high     types.AttributeValue // BETWEEN only
}

// keyCondition parses a KeyConditionExpression against a key.
func (s *scope) keyCondition(text *string, key keySchema) (*keyCondition, error) {
	if text == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	parsed, err := s.condition("KeyConditionExpression", text)
	if err != nil {
		return nil, err
	}
	k := &keyCondition{}
	seen := map[string]bool{}
	for _, part := range conjuncts(parsed) {
		if err := k.take(part, key, seen); err != nil {
			return nil, err
		}
	}
	if k.hash == nil {
		return nil, invalid("Query condition missed key schema element: %s", key.hash.name)
	}
	return k, nil
}

// conjuncts takes apart what AND joins.
func conjuncts(c condition) []condition {
	switch c := c.(type) {
	case allOf:
		return append(conjuncts(c.left), conjuncts(c.right)...)
	case group:
		return conjuncts(c.of)
	}
	return []condition{c}
}

// take reads one part of the condition.
func (k *keyCondition) take(c condition, key keySchema, seen map[string]bool) error {
	operator, p, values := simple(c)
	if operator == "" {
		return invalid("Invalid operator used in KeyConditionExpression: only one of = < <= > >= BETWEEN begins_with, on a key attribute and given values, joined by AND")
	}
	if len(p) != 1 {
		return invalid("Invalid KeyConditionExpression: KeyConditionExpressions cannot contain nested attribute paths: %s", p)
	}
	name := p.root()
	if !key.has(name) {
		return invalid("Query condition missed key schema element: %s is no key attribute; the key is %s", name, strings.Join(key.names(), ", "))
	}
	if seen[name] {
		return invalid("Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key")
	}
	seen[name] = true
	for _, v := range values {
		if typeOf(v) != string(key.kindOf(name)) {
			return invalid("One or more parameter values were invalid: Condition parameter type does not match schema type: key %s is %s, the value is %s", name, key.kindOf(name), typeOf(v))
		}
		if emptyScalar(v) {
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", longKind(v), name)
		}
	}
	if name == key.hash.name {
		if operator != "=" {
			return invalid("Query key condition not supported: the partition key %s needs =, not %s", name, operator)
		}
		k.hash = values[0]
		return nil
	}
	k.operator, k.low = operator, values[0]
	if operator == "BETWEEN" {
		k.high = values[1]
	}
	return nil
}

// simple takes apart a condition of a path and given values; the operator is
// empty for any other.
func simple(c condition) (operator string, p path, values []types.AttributeValue) {
	var left operand
	var right []operand
	switch c := c.(type) {
	case comparison:
		operator, left, right = c.operator, c.left, []operand{c.right}
		if _, turned := left.(valueOperand); turned {
			operator, left, right = turn[operator], c.right, []operand{c.left}
		}
	case between:
		operator, left, right = "BETWEEN", c.of, []operand{c.low, c.high}
	case test:
		operator, left, right = c.function, c.of, []operand{c.argument}
	}
	o, ok := left.(pathOperand)
	if !ok || operator == "<>" || operator != "begins_with" && strings.Contains(operator, "_") || operator == "contains" {
		return "", nil, nil
	}
	for _, r := range right {
		v, ok := r.(valueOperand)
		if !ok {
			return "", nil, nil
		}
		values = append(values, v.value)
	}
	return operator, o.path, values
}

// turn gives the operator for the sides changed over.
var turn = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// bounds gives the rows of the partition that the condition covers: from the
// first up to, not including, the second.
func (k *keyCondition) bounds(rows []*record) (from, to int) {
	first := func(is func(sortValue) bool) int {
		return sort.Search(len(rows), func(i int) bool { return is(rows[i].sort) })
	}
	if k.operator == "" {
		return 0, len(rows)
	}
	low := sortValueOf(k.low)
	atLeast := func(s sortValue) bool { return s.compare(low) >= 0 }
	above := func(s sortValue) bool { return s.compare(low) > 0 }
	switch k.operator {
	case "=":
		return first(atLeast), first(above)
	case "<":
		return 0, first(atLeast)
	case "<=":
		return 0, first(above)
	case ">":
		return first(above), len(rows)
	case ">=":
		return first(atLeast), len(rows)
	case "BETWEEN":
		high := sortValueOf(k.high)
		return first(atLeast), first(func(s sortValue) bool { return s.compare(high) > 0 })
	}
	return first(atLeast), first(func(s sortValue) bool {
		return s.text > low.text && !strings.HasPrefix(s.text, low.text)
	})
}

// pathsIn lists the document paths of a condition.
func pathsIn(c condition) []path {
	switch c := c.(type) {
	case anyOf:
		return append(pathsIn(c.left), pathsIn(c.right)...)
	case allOf:
		return append(pathsIn(c.left), pathsIn(c.right)...)
	case negated:
		return pathsIn(c.of)
	case group:
		return pathsIn(c.of)
	case comparison:
		return pathsOfOperands(c.left, c.right)
	case between:
		return pathsOfOperands(c.of, c.low, c.high)
	case oneOf:
		return pathsOfOperands(append([]operand{c.of}, c.choices...)...)
	case test:
		return pathsOfOperands(c.of, c.argument)
	}
	return nil
}

func pathsOfOperands(list ...operand) []path {
	var out []path
	for _, o := range list {
		if size, ok := o.(sizeOperand); ok {
			o = size.of
		}
		if p, ok := o.(pathOperand); ok {
			out = append(out, p.path)
		}
	}
	return out
}
