package memcloud

import (
	"bytes"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition is a parsed condition, filter or key condition. An item that does
// not exist is evaluated as an empty one.
type condition interface {
	holds(item attributes) bool
}

type (
	anyOf   struct{ left, right condition }
	allOf   struct{ left, right condition }
	negated struct{ of condition }
	group   struct{ of condition } // a pair of parentheses

	comparison struct {
		operator    string
		left, right operand
	}
	between struct{ of, low, high operand }
	oneOf   struct {
		of      operand
		choices []operand
	}
	test struct {
		function string
		of       operand
		argument operand // nil for attribute_exists and attribute_not_exists
	}
)

func (c anyOf) holds(item attributes) bool   { return c.left.holds(item) || c.right.holds(item) }
func (c allOf) holds(item attributes) bool   { return c.left.holds(item) && c.right.holds(item) }
func (c negated) holds(item attributes) bool { return !c.of.holds(item) }
func (c group) holds(item attributes) bool   { return c.of.holds(item) }

// holds is false when a side is missing or the types differ; <> is the exact
// opposite of =, so it is true then.
func (c comparison) holds(item attributes) bool {
	left, right := valueOf(c.left, item), valueOf(c.right, item)
	equal := left != nil && right != nil && equalValues(left, right)
	switch c.operator {
	case "=":
		return equal
	case "<>":
		return !equal
	}
	return inOrder(left, c.operator, right)
}

func inOrder(left types.AttributeValue, operator string, right types.AttributeValue) bool {
	n, ok := orderValues(left, right)
	if !ok {
		return false
	}
	switch operator {
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	}
	return n >= 0
}

func (c between) holds(item attributes) bool {
	v := valueOf(c.of, item)
	return inOrder(v, ">=", valueOf(c.low, item)) && inOrder(v, "<=", valueOf(c.high, item))
}

func (c oneOf) holds(item attributes) bool {
	v := valueOf(c.of, item)
	if v == nil {
		return false
	}
	for _, choice := range c.choices {
		if w := valueOf(choice, item); w != nil && equalValues(v, w) {
			return true
		}
	}
	return false
}

func (c test) holds(item attributes) bool {
	v := valueOf(c.of, item)
	switch c.function {
	case "attribute_exists":
		return v != nil
	case "attribute_not_exists":
		return v == nil
	}
	argument := valueOf(c.argument, item)
	if v == nil || argument == nil {
		return false
	}
	switch c.function {
	case "attribute_type":
		s, ok := argument.(*types.AttributeValueMemberS)
		return ok && s.Value == typeOf(v)
	case "begins_with":
		return beginsWith(v, argument)
	}
	return contains(v, argument)
}

// valueOf reads an operand of a condition; those never fail.
func valueOf(o operand, item attributes) types.AttributeValue {
	v, _ := o.read(item)
	return v
}

func beginsWith(v, prefix types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p, ok := prefix.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := prefix.(*types.AttributeValueMemberB)
		return ok && bytes.HasPrefix(v.Value, p.Value)
	}
	return false
}

// contains looks for a part of a text, a member of a set, an element of a list.
func contains(v, part types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && strings.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && bytes.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			if equalValues(e, part) {
				return true
			}
		}
		return false
	}
	kind, members := setMembers(v)
	if kind != typeOf(part)+"S" {
		return false
	}
	_, wanted := setMembers(makeSetOf(part))
	for _, m := range members {
		if m == wanted[0] {
			return true
		}
	}
	return false
}

// makeSetOf puts one scalar into a set of its own.
func makeSetOf(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return makeSet("NS", []string{v.Value})
	case *types.AttributeValueMemberB:
		return makeSet("BS", []string{string(v.Value)})
	case *types.AttributeValueMemberS:
		return makeSet("SS", []string{v.Value})
	}
	return nil
}
