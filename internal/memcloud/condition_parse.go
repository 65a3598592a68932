package memcloud

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// condition parses a condition or filter; nil means none was given. Source of
// the grammar: "Condition and filter expressions, operators, and functions",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
func (s *scope) condition(kind string, text *string) (condition, error) {
	if text == nil {
		return nil, nil
	}
	p, err := newParser(kind, *text, s)
	if err != nil {
		return nil, err
	}
	c := p.or()
	return c, p.finish()
}

func (p *parser) or() condition {
	left := p.and()
	for p.keyword("OR") {
		p.count()
		left = anyOf{left, p.and()}
	}
	return left
}

func (p *parser) and() condition {
	left := p.not()
	for p.keyword("AND") {
		p.count()
		left = allOf{left, p.not()}
	}
	return left
}

func (p *parser) not() condition {
	if p.keyword("NOT") {
		p.count()
		return negated{p.not()}
	}
	return p.primary()
}

func (p *parser) primary() condition {
	if p.mark("(") {
		inner := p.or()
		p.expect(")")
		if _, twice := inner.(group); twice {
			p.fail("The expression has redundant parentheses;")
		}
		return group{inner}
	}
	if t := p.peek(); t.kind == tokenWord && t.text != "size" {
		if name, called := p.call(); called {
			return p.test(name)
		}
	}
	return p.relation(p.operand())
}

// relation reads what follows a first operand.
func (p *parser) relation(first operand) condition {
	p.count()
	if p.keyword("BETWEEN") {
		return p.between(first)
	}
	if p.keyword("IN") {
		return p.in(first)
	}
	t := p.take()
	switch {
	case t.kind != tokenMark:
	case t.text == "=" || t.text == "<>":
		c := comparison{t.text, first, p.operand()}
		p.distinct(t.text, c.left, c.right)
		return c
	case t.text[0] == '<' || t.text[0] == '>':
		c := comparison{t.text, first, p.operand()}
		p.literal(c.left, t.text, "S", "N", "B")
		p.literal(c.right, t.text, "S", "N", "B")
		p.distinct(t.text, c.left, c.right)
		return c
	}
	p.syntaxAt(t)
	return nil
}

func (p *parser) between(of operand) condition {
	c := between{of: of, low: p.operand()}
	if !p.keyword("AND") {
		p.syntax()
		return nil
	}
	c.high = p.operand()
	for _, o := range []operand{c.of, c.low, c.high} {
		p.literal(o, "BETWEEN", "S", "N", "B")
	}
	p.bounds(c.low, c.high)
	p.distinct("BETWEEN", of, c.low, c.high)
	return c
}

// bounds refuses two given bounds of different types or in the wrong order.
func (p *parser) bounds(low, high operand) {
	l, ok := low.(valueOperand)
	h, also := high.(valueOperand)
	if !ok || !also || p.err != nil {
		return
	}
	n, comparable := orderValues(l.value, h.value)
	if !comparable {
		p.fail("The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {%s}, upper bound operand: AttributeValue: {%s}", show(l.value), show(h.value))
	}
	if n > 0 {
		p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {%s}, upper bound operand: AttributeValue: {%s}", show(l.value), show(h.value))
	}
}

func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S:" + v.Value
	case *types.AttributeValueMemberN:
		return "N:" + v.Value
	}
	return typeOf(v)
}

func (p *parser) in(of operand) condition {
	p.expect("(")
	c := oneOf{of: of, choices: []operand{p.operand()}}
	for p.mark(",") {
		c.choices = append(c.choices, p.operand())
	}
	p.expect(")")
	if len(c.choices) > maxInOperands {
		p.fail("The IN operator is provided with too many operands; number of operands: %d", len(c.choices))
	}
	p.distinct("IN", of, c.choices...)
	return c
}

// test reads a function that is a condition by itself, after its "(".
func (p *parser) test(name string) condition {
	arguments := 2
	switch name {
	case "attribute_exists", "attribute_not_exists":
		arguments = 1
	case "attribute_type", "begins_with", "contains":
	default:
		p.functionMisused(name)
		return nil
	}
	given := []operand{p.operand()}
	for p.mark(",") {
		given = append(given, p.operand())
	}
	p.expect(")")
	if p.err == nil && len(given) != arguments {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(given))
	}
	if p.err != nil {
		return nil
	}
	c := test{function: name, of: given[0]}
	if arguments == 2 {
		c.argument = given[1]
		p.distinct(name, given[0], given[1])
	}
	p.testOperands(c)
	return c
}

func (p *parser) testOperands(c test) {
	switch c.function {
	case "begins_with":
		p.literal(c.of, c.function, "S", "B")
		p.literal(c.argument, c.function, "S", "B")
	case "attribute_type":
		p.needsPath(c)
		p.attributeType(c.argument)
	case "attribute_exists", "attribute_not_exists":
		p.needsPath(c)
	}
}

func (p *parser) needsPath(c test) {
	if _, ok := c.of.(pathOperand); !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", c.function)
	}
}

// attributeType wants one of the type letters as a given text.
func (p *parser) attributeType(argument operand) {
	v, ok := argument.(valueOperand)
	if !ok {
		p.fail("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: PATH")
		return
	}
	p.literal(v, "attribute_type", "S")
	if p.err != nil {
		return
	}
	switch s := v.value.(*types.AttributeValueMemberS).Value; s {
	case "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS":
	default:
		p.fail("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", s)
	}
}
