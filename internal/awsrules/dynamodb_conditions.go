package awsrules

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sample is the item that conditions are asked of.
func sample() item {
	return item{
		"num": num("10"), "same": num("10"), "fewer": num("9"), "txt": str("abc"), "low": str("a"), "cap": str("Z"), "yes": truth(true), "nil": null(), "bits": bin("ab"),
		"lst": list(num("1"), str("x"), mapped(item{"deep": num("7")})), "doc": mapped(item{"k": str("v"), "n": num("1")}), "tags": texts("a", "b"), "nums": nums("1", "2"), "blank": str(""),
	}
}

// asked is a condition and whether it holds for the sample.
type asked struct {
	text   string
	values item
	want   bool
}

// condition is a rule of conditions: each case is asked by a put that would leave the item as it is.
func condition(id, says, source string, all ...asked) Rule {
	return Rule{"dynamodb/conditions/" + id, says, source, func(c *check) {
		it := c.given("sample", sample())
		for _, a := range all {
			c.ask(it, a)
		}
		c.holds("the item after all", "sample", it)
	}}
}

func (c *check) ask(it item, a asked) {
	c.Helper()
	_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: it, ConditionExpression: &a.text, ExpressionAttributeValues: a.values})
	switch code := codeOf(err); {
	case a.want && err != nil:
		c.unlike("%s is refused: %v; want that it holds", a.text, err)
	case !a.want && code != "ConditionalCheckFailedException":
		c.unlike("%s: %s; want ConditionalCheckFailedException", a.text, said(err))
	}
}

func conditions() []Rule {
	v := func(x value) item { return item{":v": x} }
	return []Rule{
		condition("equals", "= compares value and type; numbers by their value", pageOperators,
			asked{"num = :v", v(num("10")), true}, asked{"num = :v", v(num("1e1")), true}, asked{"num = :v", v(str("10")), false}, asked{"num = same", nil, true}, asked{"num = fewer", nil, false},
			asked{"txt = :v", v(str("abc")), true}, asked{"txt = :v", v(str("ABC")), false}, asked{"yes = :v", v(truth(true)), true}, asked{"yes = :v", v(truth(false)), false},
			asked{"nil = :v", v(null()), true}, asked{"bits = :v", v(bin("ab")), true}, asked{"blank = :v", v(str("")), true}),
		condition("equals-documents", "= compares lists in order, maps and sets without", pageOperators,
			asked{"doc = :v", v(mapped(item{"n": num("1"), "k": str("v")})), true}, asked{"doc = :v", v(mapped(item{"k": str("v")})), false},
			asked{"tags = :v", v(&types.AttributeValueMemberSS{Value: []string{"b", "a"}}), true}, asked{"tags = :v", v(texts("a")), false},
			asked{"lst = :v", v(list(str("x"), num("1"))), false}),
		condition("missing-attribute", "a comparison with an attribute that is not there is false, and <> is true", pageOperators,
			asked{"gone = :v", v(str("x")), false}, asked{"gone < :v", v(num("1")), false}, asked{"gone >= :v", v(num("1")), false}, asked{"gone <> :v", v(str("x")), true}, asked{"NOT gone = :v", v(str("x")), true},
			asked{"gone BETWEEN :v AND :w", item{":v": num("0"), ":w": num("9")}, false}, asked{"gone IN (:v)", v(str("x")), false}, asked{"NOT gone IN (:v)", v(str("x")), true}, asked{"num = gone", nil, false}),
		condition("order-of-numbers", "numbers are ordered by value", pageOperators,
			asked{"num > fewer", nil, true}, asked{"num < :v", v(num("10.5")), true}, asked{"num <= :v", v(num("10")), true}, asked{"num >= :v", v(num("10.0")), true}, asked{"num < :v", v(num("10")), false},
			asked{"num > :v", v(num("-11")), true}, asked{"num > :v", v(num("1e2")), false}),
		condition("order-of-texts", "texts are ordered by the bytes of UTF-8", pageTypes,
			asked{"txt > low", nil, true}, asked{"cap < low", nil, true}, asked{"txt < :v", v(str("abcd")), true}, asked{"txt < :v", v(str("é")), true}, asked{"txt >= :v", v(str("abc")), true}),
		condition("order-of-types", "values of different types have no order", pageOperators,
			asked{"num < :v", v(str("9")), false}, asked{"num >= :v", v(str("9")), false}, asked{"txt > num", nil, false}, asked{"txt <= num", nil, false}),
		condition("between", "BETWEEN includes both ends", pageOperators,
			asked{"num BETWEEN :v AND :w", item{":v": num("10"), ":w": num("11")}, true}, asked{"num BETWEEN :v AND :w", item{":v": num("9"), ":w": num("10")}, true},
			asked{"num BETWEEN :v AND :w", item{":v": num("11"), ":w": num("12")}, false}, asked{"txt BETWEEN :v AND :w", item{":v": str("a"), ":w": str("b")}, true}, asked{"num BETWEEN fewer AND same", nil, true}),
		condition("in", "IN is true for any of the listed", pageOperators,
			asked{"txt IN (:v, :w)", item{":v": str("x"), ":w": str("abc")}, true}, asked{"txt IN (:v)", v(str("x")), false}, asked{"num IN (:v, fewer, same)", v(num("3")), true}),
		condition("precedence", "NOT binds before AND, AND before OR, parentheses before all", pageOperators,
			asked{"txt = :v OR txt = :w AND num = fewer", item{":v": str("abc"), ":w": str("abc")}, true}, asked{"(txt = :v OR txt = :w) AND num = fewer", item{":v": str("abc"), ":w": str("x")}, false},
			asked{"NOT txt = :v AND num = fewer", v(str("x")), false}, asked{"NOT txt = :v OR num = same", v(str("abc")), true}, asked{"NOT (txt = :v OR num = same)", v(str("x")), false},
			asked{"txt = :v aNd nOt num = fewer", v(str("abc")), true}),
		condition("exists", "attribute_exists and attribute_not_exists look at the path; NULL exists", pageOperators,
			asked{"attribute_exists(num)", nil, true}, asked{"attribute_exists(gone)", nil, false}, asked{"attribute_not_exists(gone)", nil, true}, asked{"attribute_not_exists(num)", nil, false},
			asked{"attribute_exists(nil)", nil, true}, asked{"attribute_exists(blank)", nil, true}, asked{"attribute_exists(doc.k)", nil, true}, asked{"attribute_not_exists(doc.gone)", nil, true},
			asked{"attribute_not_exists(gone.further)", nil, true}, asked{"attribute_not_exists(txt.further)", nil, true}, asked{"attribute_exists(lst[1])", nil, true}, asked{"attribute_not_exists(lst[9])", nil, true}),
		condition("paths", "a path leads into maps and lists", guide+"Expressions.Attributes.html",
			asked{"doc.n = :v", v(num("1")), true}, asked{"lst[0] = :v", v(num("1")), true}, asked{"lst[2].deep > :v", v(num("6")), true}, asked{"doc.gone = :v", v(num("1")), false}, asked{"gone.n = :v", v(num("1")), false}, asked{"txt.n = :v", v(num("1")), false}, asked{"lst[7] <> :v", v(num("1")), true}),
		condition("type", "attribute_type tells the type", pageOperators,
			asked{"attribute_type(num, :v)", v(str("N")), true}, asked{"attribute_type(num, :v)", v(str("S")), false}, asked{"attribute_type(nil, :v)", v(str("NULL")), true}, asked{"attribute_type(doc, :v)", v(str("M")), true},
			asked{"attribute_type(tags, :v)", v(str("SS")), true}, asked{"attribute_type(gone, :v)", v(str("S")), false}),
		condition("begins-with", "begins_with looks at texts and binaries", pageOperators,
			asked{"begins_with(txt, :v)", v(str("ab")), true}, asked{"begins_with(txt, :v)", v(str("b")), false}, asked{"begins_with(bits, :v)", v(bin("a")), true}, asked{"begins_with(gone, :v)", v(str("a")), false}),
		condition("begins-with-a-number", "it is false for an attribute of another type", pageOperators, asked{"begins_with(num, :v)", v(str("1")), false}, asked{"begins_with(doc, :v)", v(str("1")), false}),
		condition("contains", "contains finds a part of a text, a member of a set, an element of a list", pageOperators,
			asked{"contains(txt, :v)", v(str("bc")), true}, asked{"contains(txt, :v)", v(str("cb")), false}, asked{"contains(tags, :v)", v(str("b")), true}, asked{"contains(tags, :v)", v(str("c")), false},
			asked{"contains(nums, :v)", v(num("2")), true}, asked{"contains(lst, :v)", v(str("x")), true}, asked{"contains(lst, :v)", v(str("y")), false}, asked{"contains(gone, :v)", v(str("x")), false}),
		condition("contains-a-number", "members that are numbers are found by their value", pageOperators, asked{"contains(nums, :v)", v(num("2.0")), true}, asked{"contains(lst, :v)", v(num("1.0")), true}),
		condition("size", "size is the length of a text or binary, the number of members of the others", pageOperators,
			asked{"size(txt) = :v", v(num("3")), true}, asked{"size(bits) = :v", v(num("2")), true}, asked{"size(lst) = :v", v(num("3")), true}, asked{"size(doc) = :v", v(num("2")), true}, asked{"size(tags) > :v", v(num("1")), true},
			asked{"size(blank) = :v", v(num("0")), true}, asked{"size(gone) < :v", v(num("9")), false}),
		{"dynamodb/conditions/missing-item", "for an item that is not there every attribute is missing", pageConditions, missingItem},
		{"dynamodb/conditions/hundred-in", "IN takes up to 100 values", pageOperators, func(c *check) { c.manyIn(100, true) }},
		{"dynamodb/conditions/above-hundred-in", "IN takes no more than 100 values", pageOperators, func(c *check) { c.manyIn(101, false) }},
	}
}

func missingItem(c *check) {
	for i, a := range []asked{
		{"attribute_not_exists(pk)", nil, true}, {"attribute_exists(pk)", nil, false}, {"num = :v", item{":v": num("1")}, false}, {"num <> :v", item{":v": num("1")}, true},
		{"attribute_not_exists(pk) OR num < :v", item{":v": num("1")}, true}, {"NOT num = :v", item{":v": num("1")}, true},
	} {
		c.ask(c.with(fmt.Sprint("absent-", i), sample()), a)
	}
}

func (c *check) manyIn(n int, taken bool) {
	it := c.given("sample", sample())
	vs, names := item{}, []string{}
	for i := range n {
		name := fmt.Sprint(":v", i)
		vs[name], names = num(fmt.Sprint(i)), append(names, name)
	}
	text := "num IN (" + strings.Join(names, ",") + ")"
	_, err := c.DynamoDB.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: &c.main, Item: it, ConditionExpression: &text, ExpressionAttributeValues: vs})
	if what := fmt.Sprintf("IN with %d values", n); taken {
		c.done(what, err)
	} else {
		c.refused(what, err, "ValidationException")
	}
}
