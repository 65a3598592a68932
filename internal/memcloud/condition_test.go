package memcloud

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

var sample = attributes{
	"n": num("5"), "big": num("9007199254740993"), "s": str("hello"), "b": bin("\x01\x02"), "flag": truth(true), "nul": null(),
	"l": lst(num("1"), str("x"), mp(attributes{"deep": str("y")})), "m": mp(attributes{"a": mp(attributes{"b": num("7")}), "elems": lst(num("0"), num("1"))}),
	"strs": ss("a", "b"), "nums": ns("1", "2.5"), "bins": bs("p", "q"), "dotted.name": num("3"),
}

var sampleNames = map[string]string{"#d": "dotted.name", "#st": "status", "#a": "a"}

var sampleValues = attributes{
	":five": num("5.0"), ":six": num("6"), ":four": num("4"), ":s5": str("5"), ":hello": str("hello"), ":he": str("he"), ":ell": str("ell"), ":z": str("zz"),
	":true": truth(true), ":null": null(), ":list": lst(num("1"), str("x"), mp(attributes{"deep": str("y")})), ":one": num("1"), ":x": str("x"),
	":a": str("a"), ":25": num("2.5"), ":q": bin("q"), ":b1": bin("\x01"), ":seven": num("7"), ":three": num("3"), ":S": str("S"), ":NS": str("NS"), ":M": str("M"),
	":strs": ss("b", "a"), ":big": num("9007199254740992"), ":bytes": bin("\x01\x02"), ":bad": str("WRONG"), ":zero": num("0"),
}

func parseCondition(text string) (condition, error) {
	s, err := newScope(sampleNames, sampleValues)
	if err != nil {
		return nil, err
	}
	return s.condition("ConditionExpression", aws.String(text))
}

var conditionCases = []struct {
	text string
	want bool
}{
	{"n = :five", true}, {"n = :s5", false}, {"n <> :five", false}, {"n <> :s5", true}, {"n < :six", true}, {"n < :five", false},
	{"n <= :five", true}, {"n > :four", true}, {"n >= :six", false}, {"n < :s5", false}, {"n > :s5", false},
	{"big = :big", false}, {"big > :big", true}, // would be equal as float64
	{"absent = :five", false}, {"absent <> :five", true}, {"absent < :five", false}, {"NOT absent < :five", true}, {"absent = gone", false},
	{"s BETWEEN :he AND :z", true}, {"n BETWEEN :four AND :six", true}, {"n BETWEEN :five AND :five", true}, {"s BETWEEN :four AND :six", false},
	{"NOT n BETWEEN :five AND :six", false}, {"n NOT_IN (:five)", false},
	{"n IN (:four, :five)", true}, {"n IN (:four, :s5)", false}, {"absent IN (:four)", false},
	{"attribute_exists(n)", true}, {"attribute_exists(m.a.b)", true}, {"attribute_exists(m.a.c)", false}, {"attribute_not_exists(l[3])", true}, {"attribute_exists(l[2].deep)", true}, {"attribute_exists(n.x)", false},
	{"attribute_exists(#d)", true}, {"attribute_not_exists(#st)", true}, {"#d = :three", true}, {"m.#a.b = :seven", true}, {"m.elems[1] = :one", true},
	{"attribute_type(n, :S)", false}, {"attribute_type(s, :S)", true}, {"attribute_type(nums, :NS)", true}, {"attribute_type(m.a, :M)", true}, {"attribute_type(absent, :S)", false},
	{"begins_with(s, :he)", true}, {"begins_with(s, :ell)", false}, {"begins_with(b, :b1)", true}, {"begins_with(n, :he)", false}, {"begins_with(absent, :he)", false},
	{"contains(s, :ell)", true}, {"contains(s, :five)", false}, {"contains(strs, :a)", true}, {"contains(strs, :z)", false}, {"contains(nums, :25)", true}, {"contains(nums, :s5)", false},
	{"contains(bins, :q)", true}, {"contains(l, :x)", true}, {"contains(l, :five)", false}, {"contains(m, :a)", false}, {"contains(b, :b1)", true},
	{"size(s) = :five", true}, {"size(strs) < :three", true}, {"size(l) = :three", true}, {"size(m) > :one", true}, {"size(b) > :one", true}, {"size(n) = :one", false}, {"size(absent) >= :zero", false}, {"size(s) BETWEEN :four AND :six", true},
	{"flag = :true", true}, {"nul = :null", true}, {"l = :list", true}, {"strs = :strs", true}, {"b = :bytes", true},
	{":five = n", true}, {":four < n", true}, {"m.a.b > n", true},
	{"n = :five AND s = :hello", true}, {"n = :four OR s = :hello", true}, {"n = :four AND s = :hello OR flag = :true", true}, {"n = :four AND (s = :hello OR flag = :true)", false},
	{"NOT n = :four AND s = :hello", true}, {"NOT (n = :five OR s = :z)", false}, {"NOT NOT n = :five", true}, {"not n = :four and s = :hello", true},
	{"(n=:five)AND(s<>:z)", true}, {" n\n=\t:five ", true},
}

func TestConditions(t *testing.T) {
	for _, c := range conditionCases {
		got, err := parseCondition(c.text)
		if strings.Contains(c.text, "NOT_IN") {
			if err == nil {
				t.Errorf("%s was taken", c.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.holds(sample) != c.want {
			t.Errorf("%s is %v, want %v", c.text, !c.want, c.want)
		}
	}
}

func TestConditionOnAMissingItem(t *testing.T) {
	for text, want := range map[string]bool{
		"attribute_not_exists(n)": true, "attribute_exists(n)": false, "n = :five": false, "n <> :five": true, "size(s) > :zero": false,
	} {
		c, err := parseCondition(text)
		must(t, err)
		if c.holds(nil) != want {
			t.Errorf("%s on no item is not %v", text, want)
		}
	}
}

var refusedConditions = map[string]string{
	"":                             "The expression can not be empty",
	"  ":                           "Syntax error; token: \"<EOF>\"",
	"status = :five":               "Attribute name is a reserved keyword; reserved keyword: status",
	"m.name = :five":               "reserved keyword: name",
	"size = :five":                 "reserved keyword: size",
	"attribute_exists(TTL)":        "reserved keyword: TTL",
	"#gone = :five":                "An expression attribute name used in the document path is not defined; attribute name: #gone",
	"n = :gone":                    "An expression attribute value used in expression is not defined; attribute value: :gone",
	"n = ":                         "Syntax error; token: \"<EOF>\"",
	"n == :five":                   "Syntax error; token: \"=\"",
	"n = :five AND":                "Syntax error",
	"n = :five s = :hello":         "Syntax error; token: \"s\"",
	"n":                            "Syntax error",
	"(n = :five":                   "Syntax error",
	"n = :five)":                   "Syntax error",
	"n = 5":                        "Syntax error; token: \"5\"",
	"n = \"x\"":                    "Syntax error; token: \"\"\"",
	"_n = :five":                   "Syntax error",
	"n. = :five":                   "Syntax error",
	"l[x] = :five":                 "Syntax error",
	"l[-1] = :five":                "Syntax error",
	"# = :five":                    "Syntax error",
	"((n = :five))":                "redundant parentheses",
	"s = :hello AND ((n = :five))": "redundant parentheses",
	"attribute_exists(:five)":      "requires a document path",
	"attribute_exists(n, s)":       "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2",
	"begins_with(s)":               "number of operands: 1",
	"begins_with(s, :five)":        "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
	"attribute_type(s, :bad)":      "Invalid attribute type name found; type: WRONG",
	"attribute_type(s, :five)":     "operand type: N",
	"attribute_type(s, n)":         "operand type: PATH",
	"n < :true":                    "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
	"n BETWEEN :six AND :four":     "requires upper bound to be greater than or equal to lower bound",
	"n BETWEEN :four AND :hello":   "requires same data type",
	"n BETWEEN :four OR :six":      "Syntax error",
	"n IN ()":                      "Syntax error",
	"size(:five) = :five":          "operator or function: size, operand type: N",
	"size(size(s)) = :five":        "not allowed to be used this way",
	"size(s)":                      "Syntax error",
	"n = attribute_exists(s)":      "The function is not allowed to be used this way in an expression; function: attribute_exists",
	"if_not_exists(n, :five)":      "not allowed to be used this way",
	"Attribute_Exists(n)":          "Invalid function name; function: Attribute_Exists",
	"n = n":                        "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]",
	"contains(s, s)":               "must be distinct",
	"n IN (" + strings.Repeat(":five,", 100) + ":six)": "too many operands",
	"n = :five" + strings.Repeat(" OR n = :five", 400): "Expression size has exceeded the maximum allowed size",
	strings.Repeat("NOT ", 310) + "n = :five":          "too many operators",
	"m" + strings.Repeat(".x", 40) + " = :five":        "too many nesting levels",
}

func TestRefusedConditions(t *testing.T) {
	for text, words := range refusedConditions {
		_, err := parseCondition(text)
		if err == nil {
			t.Errorf("%.60s was taken", text)
			continue
		}
		wantCode(t, err, "ValidationException", words)
		if !strings.Contains(err.Error(), "Invalid ConditionExpression: ") {
			t.Errorf("%.60s: the error does not name the expression: %v", text, err)
		}
	}
}

func TestReservedWords(t *testing.T) {
	if len(reservedWords) != 573 {
		t.Errorf("%d words, AWS lists 573", len(reservedWords))
	}
	for _, word := range []string{"status", "Name", "TOKEN", "state", "owner", "zone", "ttl", "counter", "abort", "year"} {
		if !reserved(word) {
			t.Errorf("%s is reserved", word)
		}
	}
	for _, word := range []string{"version", "lease", "pk", "next_due_at", "streak", "statuses"} {
		if reserved(word) {
			t.Errorf("%s is free", word)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for name, c := range map[string]struct {
		names  map[string]string
		values attributes
		text   *string
		words  string
	}{
		"unused name":           {map[string]string{"#a": "a", "#b": "b"}, nil, aws.String("attribute_exists(#a)"), "ExpressionAttributeNames unused in expressions: keys: {#b}"},
		"unused value":          {nil, attributes{":a": num("1"), ":b": num("1")}, aws.String("x = :a"), "ExpressionAttributeValues unused in expressions: keys: {:b}"},
		"names, no expression":  {map[string]string{"#a": "a"}, nil, nil, "can only be specified when using expressions"},
		"values, no expression": {nil, attributes{":a": num("1")}, nil, "can only be specified when using expressions"},
		"empty names":           {map[string]string{}, nil, aws.String("attribute_exists(a)"), "ExpressionAttributeNames must not be empty"},
		"empty values":          {nil, attributes{}, aws.String("attribute_exists(a)"), "ExpressionAttributeValues must not be empty"},
		"bad name key":          {map[string]string{"a": "a"}, nil, aws.String("attribute_exists(a)"), "Syntax error; key: \"a\""},
		"bad value key":         {nil, attributes{":a-b": num("1")}, aws.String("x = :a"), "Syntax error; key: \":a-b\""},
		"name of nothing":       {map[string]string{"#a": ""}, nil, aws.String("attribute_exists(#a)"), "Empty attribute name"},
		"bad number":            {nil, attributes{":a": num("ten")}, aws.String("x = :a"), "cannot be converted to a numeric value: ten for key :a"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newScope(c.names, c.values)
			if err == nil {
				if _, err = s.condition("ConditionExpression", c.text); err == nil {
					err = s.finish()
				}
			}
			wantCode(t, err, "ValidationException", c.words)
		})
	}
}

// Whatever the text, parsing ends with a tree or a ValidationException, and a
// tree can be evaluated.
func FuzzCondition(f *testing.F) {
	for _, seed := range []string{"n = :five", "NOT (a.b[0] IN (:six, :x)) OR size(#d) BETWEEN :four AND :six", "contains(l,:x", "((n=:five))", "a[99999999999999999999]", "#", ":", "n<>:five"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCondition(text)
		if err != nil {
			if !strings.Contains(err.Error(), "ValidationException") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if c.holds(sample) == (negated{c}).holds(sample) {
			t.Fatalf("%q: NOT does not turn it round", text)
		}
		c.holds(nil)
	})
}
