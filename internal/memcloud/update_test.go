package memcloud

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func parseUpdate(text string) (*update, error) {
	s, err := newScope(sampleNames, updateValues)
	if err != nil {
		return nil, err
	}
	return s.update(aws.String(text))
}

var updateValues = attributes{
	":one": num("1"), ":half": num("0.5"), ":s": str("new"), ":l": lst(str("z")), ":empty": lst(), ":strs": ss("b", "c"), ":all": ss("a", "b"), ":nums": ns("2.5", "3"), ":m": mp(attributes{"k": num("1")}), ":huge": num("9e125"),
}

var updateCasesOld = attributes{
	"n": num("5"), "o": num("1"), "s": str("x"), "l": lst(num("0"), num("1"), num("2"), num("3")), "m": mp(attributes{"a": num("1"), "inn": mp(attributes{"k": str("v")})}), "strs": ss("a", "b"), "nums": ns("1", "2.50"), "lm": lst(mp(attributes{"a": num("1"), "b": num("2")})),
}

// A nil value removes.
var updateCases = map[string]attributes{
	"SET n = :one":                                       {"n": num("1")},
	"set n = n + :one, fresh = n":                        {"n": num("6"), "fresh": num("5")},
	"SET n = o, o = n":                                   {"n": num("1"), "o": num("5")},
	"SET n = n - :half":                                  {"n": num("4.5")},
	"SET n = :one - n":                                   {"n": num("-4")},
	"SET c = if_not_exists(c, :one)":                     {"c": num("1")},
	"SET n = if_not_exists(n, :one) + :one":              {"n": num("6")},
	"SET c = if_not_exists(c, :one) + :half":             {"c": num("1.5")},
	"SET n = (n + :one)":                                 {"n": num("6")},
	"SET l = list_append(l, :l)":                         {"l": lst(num("0"), num("1"), num("2"), num("3"), str("z"))},
	"SET l = list_append(:l, l)":                         {"l": lst(str("z"), num("0"), num("1"), num("2"), num("3"))},
	"SET k = list_append(if_not_exists(k, :empty), :l)":  {"k": lst(str("z"))},
	"SET m.a = :s, m.inn.k2 = :one":                      {"m": mp(attributes{"a": str("new"), "inn": mp(attributes{"k": str("v"), "k2": num("1")})})},
	"SET m.#st = :s":                                     {"m": mp(attributes{"a": num("1"), "status": str("new"), "inn": mp(attributes{"k": str("v")})})},
	"SET l[1] = :s":                                      {"l": lst(num("0"), str("new"), num("2"), num("3"))},
	"SET l[9] = :s, l[7] = :one":                         {"l": lst(num("0"), num("1"), num("2"), num("3"), num("1"), str("new"))},
	"SET lm[0].a = :s REMOVE lm[0].b":                    {"lm": lst(mp(attributes{"a": str("new")}))},
	"REMOVE n, s":                                        {"n": nil, "s": nil},
	"REMOVE gone, m.gone, l[9]":                          {},
	"REMOVE l[0], l[2]":                                  {"l": lst(num("1"), num("3"))},
	"REMOVE l[0] SET l[1] = :s":                          {"l": lst(str("new"), num("2"), num("3"))},
	"REMOVE m.inn.k":                                     {"m": mp(attributes{"a": num("1"), "inn": mp(attributes{})})},
	"ADD n :one, cnt :half":                              {"n": num("6"), "cnt": num("0.5")},
	"ADD strs :strs, fresh :strs":                        {"strs": ss("a", "b", "c"), "fresh": ss("b", "c")},
	"ADD nums :nums":                                     {"nums": ns("1", "2.5", "3")},
	"ADD m.a :one":                                       {"m": mp(attributes{"a": num("2"), "inn": mp(attributes{"k": str("v")})})},
	"DELETE strs :strs, gone :strs":                      {"strs": ss("a")},
	"DELETE strs :all":                                   {"strs": nil},
	"SET n = :one REMOVE s ADD o :one DELETE strs :strs": {"n": num("1"), "s": nil, "o": num("2"), "strs": ss("a")},
}

func TestUpdates(t *testing.T) {
	old := updateCasesOld
	for text, change := range updateCases {
		t.Run(text, func(t *testing.T) {
			before := string(encodeItem(nil, old))
			u, err := parseUpdate(text)
			must(t, err)
			normal, err := normalItem(old)
			must(t, err)
			got, err := u.apply(normal)
			must(t, err)
			want := copyItem(normal)
			for name, v := range change {
				if v == nil {
					delete(want, name)
				} else {
					want[name] = v
				}
			}
			want, err = normalItem(want)
			must(t, err)
			wantItem(t, got, want)
			if string(encodeItem(nil, old)) != before {
				t.Error("the old item was changed")
			}
		})
	}
}

var refusedUpdatesOld = attributes{"n": num("5"), "s": str("x"), "l": lst(num("0")), "m": mp(attributes{}), "strs": ss("a"), "huge": num("9e125")}

var refusedUpdates = map[string]string{
	"SET n = ((n + :one))":         "redundant parentheses",
	"DELETE gone.a :strs":          "The document path provided in the update expression is invalid for update",
	"SET l[01] = :one":             "Syntax error; token: \"01\"",
	"":                             "The expression can not be empty",
	"SET":                          "Syntax error",
	"SET n":                        "Syntax error",
	"SET n = ":                     "Syntax error",
	"n = :one":                     "Syntax error",
	"SET n = :one,":                "Syntax error",
	"SET n = n * :one":             "Syntax error",
	"SET n = n + :one + :one":      "Syntax error",
	"SET n = size(s)":              "not allowed to be used this way",
	"SET n = frob(s)":              "Invalid function name; function: frob",
	"SET name = :one":              "reserved keyword: name",
	"SET n = :one SET s = :s":      "The \"SET\" section can only be used once",
	"SET n = :one, n = :half":      "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]",
	"SET m.a = :one REMOVE m":      "Two document paths overlap",
	"SET m.a = :one, m[0] = :one":  "Two document paths conflict with each other",
	"ADD n :s":                     "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
	"DELETE strs :one":             "operator: DELETE, operand type: NUMBER",
	"ADD n s":                      "Syntax error",
	"SET n = n + :s":               "operator or function: +, operand type: S",
	"SET l = list_append(l, :one)": "operator or function: list_append, operand type: N",
	"SET n = gone":                 "refers to an attribute that does not exist in the item",
	"SET n = gone + :one":          "refers to an attribute that does not exist in the item",
	"SET n = m.gone":               "refers to an attribute that does not exist in the item",
	"SET n = s + :one":             "An operand in the update expression has an incorrect data type",
	"SET l = list_append(n, :l)":   "An operand in the update expression has an incorrect data type",
	"ADD s :one":                   "An operand in the update expression has an incorrect data type",
	"ADD strs :nums":               "An operand in the update expression has an incorrect data type",
	"DELETE strs :nums":            "An operand in the update expression has an incorrect data type",
	"SET gone.a = :one":            "The document path provided in the update expression is invalid for update",
	"SET m.a.b = :one":             "The document path provided in the update expression is invalid for update",
	"SET n.a = :one":               "The document path provided in the update expression is invalid for update",
	"SET m[0] = :one":              "The document path provided in the update expression is invalid for update",
	"SET l.a = :one":               "The document path provided in the update expression is invalid for update",
	"REMOVE gone.a":                "The document path provided in the update expression is invalid for update",
	"ADD huge :huge":               "Number overflow",
	"SET n = huge + :one":          "Number overflow", // 126 digits
}

func TestRefusedUpdates(t *testing.T) {
	old := refusedUpdatesOld
	for text, words := range refusedUpdates {
		t.Run(text, func(t *testing.T) {
			u, err := parseUpdate(text)
			if err == nil {
				_, err = u.apply(old)
			}
			wantCode(t, err, "ValidationException", words)
		})
	}
}

func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{"SET n = n + :one REMOVE l[0], m.a", "ADD strs :strs DELETE strs :strs", "SET l[3] = list_append(l, :l), a.b.c = if_not_exists(x, :s)", "REMOVE"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseUpdate(text)
		if err == nil {
			before := string(encodeItem(nil, sample))
			_, err = u.apply(sample)
			if string(encodeItem(nil, sample)) != before {
				t.Fatalf("%q changed the old item", text)
			}
		}
		if err != nil && !strings.Contains(err.Error(), "ValidationException") {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func TestReturnValues(t *testing.T) {
	key := attributes{"pk": str("a")}
	before := attributes{"pk": str("a"), "n": num("1"), "keep": str("k"), "m": mp(attributes{"x": num("1"), "y": num("2")})}
	for _, c := range []struct {
		mode types.ReturnValue
		want attributes
	}{
		{"", nil}, {types.ReturnValueNone, nil},
		{types.ReturnValueAllOld, before},
		{types.ReturnValueAllNew, attributes{"pk": str("a"), "n": num("2"), "keep": str("k"), "m": mp(attributes{"x": num("9"), "y": num("2")})}},
		{types.ReturnValueUpdatedOld, attributes{"n": num("1"), "m": mp(attributes{"x": num("1")})}},
		{types.ReturnValueUpdatedNew, attributes{"n": num("2"), "m": mp(attributes{"x": num("9")})}},
	} {
		t.Run("update "+string(c.mode), func(t *testing.T) {
			d := newTestDynamo(t, newClock())
			putT(t, d, "plain", before)
			out, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: key, UpdateExpression: aws.String("SET n = n + :one, m.x = :nine"), ExpressionAttributeValues: attributes{":one": num("1"), ":nine": num("9")}, ReturnValues: c.mode})
			must(t, err)
			wantItem(t, out.Attributes, c.want)
		})
	}
	d := newTestDynamo(t, newClock())
	out, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: before, ReturnValues: types.ReturnValueAllOld})
	must(t, err)
	if out.Attributes != nil {
		t.Error("a new item has no old one")
	}
	out, err = d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: key, ReturnValues: types.ReturnValueAllOld})
	must(t, err)
	wantItem(t, out.Attributes, before)
	gone, err := d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("plain"), Key: key, ReturnValues: types.ReturnValueAllOld})
	must(t, err)
	wantItem(t, gone.Attributes, key)
	_, err = d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("plain"), Key: key, ReturnValues: types.ReturnValueAllNew})
	wantCode(t, err, "ValidationException", "Return values set to invalid value")
	_, err = d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("plain"), Item: key, ReturnValues: types.ReturnValueUpdatedNew})
	wantCode(t, err, "ValidationException", "Return values set to invalid value")
	_, err = d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("plain"), Key: key, ReturnValues: "SOME"})
	wantCode(t, err, "ValidationException", "returnValues")
}
