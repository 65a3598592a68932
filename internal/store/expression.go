package store

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is one row as DynamoDB holds it.
type item = map[string]types.AttributeValue

// expression collects the names and values that a condition and an update speak of. Every attribute goes by an alias,
// so that none can meet a reserved word.
type expression struct {
	names  map[string]string
	values map[string]types.AttributeValue
}

func (e *expression) name(attribute string) string {
	if e.names == nil {
		e.names = map[string]string{}
	}
	e.names["#"+attribute] = attribute
	return "#" + attribute
}

func (e *expression) value(v any) string {
	if e.values == nil {
		e.values = map[string]types.AttributeValue{}
	}
	av := attr(v)
	for k, old := range e.values {
		if same(old, av) {
			return k
		}
	}
	k := ":" + strconv.Itoa(len(e.values))
	e.values[k] = av
	return k
}

func same(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	}
	return false
}

// attr spells a Go value for DynamoDB. It knows what records hold and nothing else.
func attr(v any) types.AttributeValue {
	switch v := v.(type) {
	case types.AttributeValue:
		return v
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case []byte:
		return &types.AttributeValueMemberB{Value: v}
	case time.Time:
		return &types.AttributeValueMemberS{Value: schema.Time(v)}
	case []string:
		l := make([]types.AttributeValue, len(v))
		for i, s := range v {
			l[i] = attr(s)
		}
		return &types.AttributeValueMemberL{Value: l}
	case map[string]int:
		m := make(item, len(v))
		for k, n := range v {
			m[k] = attr(n)
		}
		return &types.AttributeValueMemberM{Value: m}
	case item:
		return &types.AttributeValueMemberM{Value: v}
	}
	panic(fmt.Sprintf("store: no attribute for %T", v))
}

// equals compares an attribute with a value as it was read: an empty value stands for an absent attribute.
func (e *expression) equals(attribute string, v any) string {
	if v == "" {
		return "attribute_not_exists(" + e.name(attribute) + ")"
	}
	return e.name(attribute) + " = " + e.value(v)
}

// update spells what a transition writes besides the state.
type update struct {
	set    map[string]any // nil or "" removes the attribute
	first  map[string]any // only where the attribute is absent
	add    map[string]int
	append string // one entry of the timeline
	// member is a key that take puts into maps of the row and leave takes out of them; both may be repeated.
	member      string
	take, leave []string
}

func (e *expression) update(u update) string {
	var sets, removes, adds []string
	for _, k := range sortedKeys(u.set) {
		v := u.set[k]
		if v == nil || v == "" {
			removes = append(removes, e.name(k))
			continue
		}
		sets = append(sets, e.name(k)+" = "+e.value(v))
	}
	for _, k := range sortedKeys(u.first) {
		n := e.name(k)
		sets = append(sets, n+" = if_not_exists("+n+", "+e.value(u.first[k])+")")
	}
	for _, k := range sortedKeys(u.add) {
		adds = append(adds, e.name(k)+" "+e.value(u.add[k]))
	}
	for _, m := range u.take {
		sets = append(sets, e.within(m, u.member)+" = "+e.value(true))
	}
	for _, m := range u.leave {
		removes = append(removes, e.within(m, u.member))
	}
	if u.append != "" {
		n := e.name(schema.Timeline)
		sets = append(sets, fmt.Sprintf("%s = list_append(if_not_exists(%s, %s), %s)", n, n, e.list(), e.list(u.append)))
	}
	var parts []string
	for _, p := range []struct {
		word string
		list []string
	}{{"SET", sets}, {"REMOVE", removes}, {"ADD", adds}} {
		if len(p.list) > 0 {
			parts = append(parts, p.word+" "+strings.Join(p.list, ", "))
		}
	}
	return strings.Join(parts, " ")
}

// within is the path of a key of a map. Keys are ids, which an alias cannot be made of.
func (e *expression) within(attribute, key string) string {
	path := e.name(attribute)
	e.names["#member"] = key
	return path + ".#member"
}

func (e *expression) list(entries ...string) string {
	k := ":list" + strconv.Itoa(len(e.values))
	if e.values == nil {
		e.values = map[string]types.AttributeValue{}
	}
	e.values[k] = attr(entries)
	return k
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func keyItem(k schema.Key) item {
	return item{schema.PK: attr(string(k.PK)), schema.SK: attr(string(k.SK))}
}
