package memcloud

import (
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// operand is a value inside an expression. It is read from the item as it was
// before the request; nil with no error means: not there.
type operand interface {
	read(item attributes) (types.AttributeValue, error)
	String() string
}

type pathOperand struct{ path path }

func (o pathOperand) read(item attributes) (types.AttributeValue, error) {
	return o.path.find(item), nil
}
func (o pathOperand) String() string { return o.path.String() }

type valueOperand struct {
	key   string
	value types.AttributeValue
}

func (o valueOperand) read(attributes) (types.AttributeValue, error) { return o.value, nil }
func (o valueOperand) String() string                                { return o.key }

// sizeOperand is size(path): the length of a text or a binary, the number of
// elements of a set, list or map. Numbers, booleans and null have no size.
// A text's length is not documented more closely; here it counts characters.
type sizeOperand struct{ of operand }

func (o sizeOperand) String() string { return "size(" + o.of.String() + ")" }

func (o sizeOperand) read(item attributes) (types.AttributeValue, error) {
	v, err := o.of.read(item)
	if err != nil || v == nil {
		return nil, err
	}
	n := -1
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		n = utf8.RuneCountInString(v.Value)
	case *types.AttributeValueMemberB:
		n = len(v.Value)
	case *types.AttributeValueMemberL:
		n = len(v.Value)
	case *types.AttributeValueMemberM:
		n = len(v.Value)
	default:
		if kind, members := setMembers(v); kind != "" {
			n = len(members)
		}
	}
	if n < 0 {
		return nil, nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}, nil
}

// operand reads path, :value or size(path).
func (p *parser) operand() operand {
	if p.peek().kind == tokenValue {
		return p.value()
	}
	name, called := p.call()
	if !called {
		return pathOperand{p.path()}
	}
	if name != "size" {
		p.functionMisused(name)
		return valueOperand{}
	}
	of := p.operand()
	if _, nested := of.(sizeOperand); nested {
		p.fail("The function is not allowed to be used this way in an expression; function: size")
	}
	p.literal(of, "size", "S", "B", "SS", "NS", "BS", "L", "M")
	p.expect(")")
	return sizeOperand{of}
}

func (p *parser) functionMisused(name string) {
	switch name {
	case "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "if_not_exists", "list_append", "size":
		p.fail("The function is not allowed to be used this way in an expression; function: %s", name)
	default:
		p.fail("Invalid function name; function: %s", name)
	}
}

// value reads a :placeholder.
func (p *parser) value() valueOperand {
	t := p.take()
	if t.kind != tokenValue {
		p.syntaxAt(t)
		return valueOperand{}
	}
	v, ok := p.scope.values[t.text]
	if !ok {
		p.fail("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	p.scope.usedValues[t.text] = true
	return valueOperand{key: t.text, value: v}
}

// literal refuses a :placeholder whose type the operator cannot take. What an
// item holds is judged later, and then only makes the condition false.
func (p *parser) literal(o operand, operator string, allowed ...string) {
	v, ok := o.(valueOperand)
	if !ok || p.err != nil {
		return
	}
	kind := typeOf(v.value)
	for _, a := range allowed {
		if a == kind {
			return
		}
	}
	p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, kind)
}

// distinct refuses an operator that compares an attribute with itself.
func (p *parser) distinct(operator string, first operand, rest ...operand) {
	if _, ok := first.(pathOperand); !ok {
		return
	}
	for _, o := range rest {
		if p.err == nil && first.String() == o.String() {
			p.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", operator, first)
		}
	}
}
