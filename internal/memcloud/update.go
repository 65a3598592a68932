package memcloud

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// update is a parsed UpdateExpression. Source of the rules: "Using update
// expressions in DynamoDB",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
type update struct {
	sets    []assignment
	removes []path
	adds    []assignment
	deletes []assignment
}

type assignment struct {
	path  path
	value operand
}

// paths lists everything the update touches.
func (u *update) paths() []path {
	var out []path
	for _, list := range [][]assignment{u.sets, u.adds, u.deletes} {
		for _, a := range list {
			out = append(out, a.path)
		}
	}
	return append(out, u.removes...)
}

// writes reports whether the update puts anything into an item.
func (u *update) writes() bool { return len(u.sets)+len(u.adds) > 0 }

// arithmetic is a + b or a - b.
type arithmetic struct {
	operator    string
	left, right operand
}

func (o arithmetic) String() string { return fmt.Sprintf("%s %s %s", o.left, o.operator, o.right) }

func (o arithmetic) read(item attributes) (types.AttributeValue, error) {
	left, err := present(o.left, item)
	if err != nil {
		return nil, err
	}
	right, err := present(o.right, item)
	if err != nil {
		return nil, err
	}
	return sum(left, o.operator, right)
}

func sum(left types.AttributeValue, operator string, right types.AttributeValue) (types.AttributeValue, error) {
	l, ok := left.(*types.AttributeValueMemberN)
	r, also := right.(*types.AttributeValueMemberN)
	if !ok || !also {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	term := mustDecimal(r.Value)
	if operator == "-" {
		term = term.minus()
	}
	d, err := mustDecimal(l.Value).add(term)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: d.String()}, nil
}

// ifNotExists is the value at the path, or else the other.
type ifNotExists struct {
	path  path
	other operand
}

func (o ifNotExists) String() string { return fmt.Sprintf("if_not_exists(%s, %s)", o.path, o.other) }

func (o ifNotExists) read(item attributes) (types.AttributeValue, error) {
	if v := o.path.find(item); v != nil {
		return v, nil
	}
	return present(o.other, item)
}

// listAppend is two lists in a row.
type listAppend struct{ left, right operand }

func (o listAppend) String() string { return fmt.Sprintf("list_append(%s, %s)", o.left, o.right) }

func (o listAppend) read(item attributes) (types.AttributeValue, error) {
	left, err := present(o.left, item)
	if err != nil {
		return nil, err
	}
	right, err := present(o.right, item)
	if err != nil {
		return nil, err
	}
	l, ok := left.(*types.AttributeValueMemberL)
	r, also := right.(*types.AttributeValueMemberL)
	if !ok || !also {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	out := make([]types.AttributeValue, 0, len(l.Value)+len(r.Value))
	return &types.AttributeValueMemberL{Value: append(append(out, l.Value...), r.Value...)}, nil
}

// present reads an operand that has to be there.
func present(o operand, item attributes) (types.AttributeValue, error) {
	v, err := o.read(item)
	if err == nil && v == nil {
		err = invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, err
}

// update parses an UpdateExpression; nil means none was given.
func (s *scope) update(text *string) (*update, error) {
	if text == nil {
		return nil, nil
	}
	p, err := newParser("UpdateExpression", *text, s)
	if err != nil {
		return nil, err
	}
	u := &update{}
	seen := map[string]bool{}
	for p.err == nil && p.peek().kind != tokenEnd {
		p.section(u, seen)
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return u, checkDistinct(p.kind, u.paths())
}

// section reads one of the four clauses; each may come once.
func (p *parser) section(u *update, seen map[string]bool) {
	for _, word := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		if !p.keyword(word) {
			continue
		}
		if seen[word] {
			p.fail("The %q section can only be used once in an update expression;", word)
			return
		}
		seen[word] = true
		switch word {
		case "SET":
			u.sets = p.assignments(p.set)
		case "REMOVE":
			u.removes = p.pathsOf()
		case "ADD":
			u.adds = p.assignments(func() assignment { return p.pair("ADD", "N", "SS", "NS", "BS") })
		case "DELETE":
			u.deletes = p.assignments(func() assignment { return p.pair("DELETE", "SS", "NS", "BS") })
		}
		return
	}
	p.syntax()
}

func (p *parser) assignments(read func() assignment) []assignment {
	out := []assignment{read()}
	for p.mark(",") {
		out = append(out, read())
	}
	return out
}

func (p *parser) set() assignment {
	target := p.path()
	p.expect("=")
	p.count()
	return assignment{target, p.sum()}
}

// pair reads "path :value" of ADD and DELETE.
func (p *parser) pair(operator string, allowed ...string) assignment {
	p.count()
	a := assignment{path: p.path()}
	v := p.value()
	a.value = v
	if p.err == nil && !slices.Contains(allowed, typeOf(v.value)) {
		p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", operator, longType[typeOf(v.value)], operator)
	}
	return a
}

// longType is how the errors of ADD and DELETE name a type.
var longType = map[string]string{"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL", "L": "LIST", "M": "MAP", "SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET"}

// sum reads an operand, or two with + or - between them.
func (p *parser) sum() operand {
	left := p.term()
	for _, operator := range []string{"+", "-"} {
		if !p.mark(operator) {
			continue
		}
		p.count()
		right := p.term()
		p.literal(left, operator, "N")
		p.literal(right, operator, "N")
		return arithmetic{operator, left, right}
	}
	return left
}

func (p *parser) term() operand {
	if p.mark("(") {
		twice := p.peek().kind == tokenMark && p.peek().text == "("
		inner := p.sum()
		if twice && p.tokens[max(0, p.next-1)].text == ")" {
			p.fail("The expression has redundant parentheses;")
		}
		p.expect(")")
		return inner
	}
	if p.peek().kind == tokenValue {
		return p.value()
	}
	name, called := p.call()
	if !called {
		return pathOperand{p.path()}
	}
	switch name {
	case "if_not_exists":
		target := p.path()
		p.expect(",")
		other := p.term()
		p.expect(")")
		return ifNotExists{target, other}
	case "list_append":
		left := p.term()
		p.expect(",")
		right := p.term()
		p.expect(")")
		p.literal(left, name, "L")
		p.literal(right, name, "L")
		return listAppend{left, right}
	}
	p.functionMisused(name)
	return valueOperand{}
}
