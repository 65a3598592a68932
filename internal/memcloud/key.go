package memcloud

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Longest key values in bytes. Source: "Quotas",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxHashKey = 2048
	maxSortKey = 1024
)

// keyAttribute is one attribute of a key; the name is empty when there is none.
type keyAttribute struct {
	name string
	kind types.ScalarAttributeType
}

// keySchema is the key of a table or an index.
type keySchema struct{ hash, sort keyAttribute }

func (k keySchema) names() []string {
	if k.sort.name == "" {
		return []string{k.hash.name}
	}
	return []string{k.hash.name, k.sort.name}
}

func (k keySchema) has(name string) bool {
	return name != "" && (name == k.hash.name || name == k.sort.name)
}

// sortValue is a sort key in a form that can be ordered. Tables without a
// sort key use the zero value.
type sortValue struct {
	text   string // S and B
	number decimal
}

func sortValueOf(v types.AttributeValue) sortValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return sortValue{text: v.Value}
	case *types.AttributeValueMemberB:
		return sortValue{text: string(v.Value)}
	case *types.AttributeValueMemberN:
		return sortValue{number: mustDecimal(v.Value)}
	}
	return sortValue{}
}

func (s sortValue) compare(t sortValue) int {
	if c := strings.Compare(s.text, t.text); c != 0 {
		return c
	}
	return s.number.compare(t.number)
}

// position is where an item stands: its partition, its sort key, and for an
// index the key of the item in the table, since index keys may repeat.
type position struct {
	hash string
	sort sortValue
	id   string
}

func (p position) compare(q position) int {
	if c := p.sort.compare(q.sort); c != 0 {
		return c
	}
	return strings.Compare(p.id, q.id)
}

// position reads the key out of a checked item; the id is left to the caller.
func (k keySchema) position(item attributes) position {
	p := position{hash: string(encodeValue(make([]byte, 0, 64), item[k.hash.name]))}
	if k.sort.name != "" {
		p.sort = sortValueOf(item[k.sort.name])
	}
	return p
}

// identity names an item within its table.
func (k keySchema) identity(item attributes) string {
	out := encodeValue(make([]byte, 0, 96), item[k.hash.name])
	if k.sort.name != "" {
		out = encodeValue(append(out, '/'), item[k.sort.name])
	}
	return string(out)
}

// keyOf cuts the key out of an item.
func (k keySchema) keyOf(item attributes) attributes {
	out := attributes{}
	for _, name := range k.names() {
		out[name] = item[name]
	}
	return out
}

// checkKey checks the Key of a request: exactly the key's attributes.
func (k keySchema) checkKey(key attributes) (attributes, error) {
	if len(key) != len(k.names()) {
		return nil, invalid("The provided key element does not match the schema")
	}
	normal, err := normalItem(key)
	if err != nil {
		return nil, err
	}
	for _, name := range k.names() {
		v, ok := normal[name]
		if !ok {
			return nil, invalid("The provided key element does not match the schema")
		}
		if typeOf(v) != string(k.kindOf(name)) {
			return nil, invalid("The provided key element does not match the schema: key %s expected: %s actual: %s", name, k.kindOf(name), typeOf(v))
		}
	}
	return normal, k.checkSizes(normal)
}

// checkItem checks the key inside a whole item.
func (k keySchema) checkItem(item attributes) error {
	for _, name := range k.names() {
		v, ok := item[name]
		if !ok {
			return invalid("One or more parameter values were invalid: Missing the key %s in the item", name)
		}
		if typeOf(v) != string(k.kindOf(name)) {
			return invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", name, k.kindOf(name), typeOf(v))
		}
	}
	return k.checkSizes(item)
}

func (k keySchema) kindOf(name string) types.ScalarAttributeType {
	if name == k.hash.name {
		return k.hash.kind
	}
	return k.sort.kind
}

func (k keySchema) checkSizes(item attributes) error {
	for _, name := range k.names() {
		if emptyScalar(item[name]) {
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", longKind(item[name]), name)
		}
	}
	if valueSize(item[k.hash.name]) > maxHashKey {
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	if k.sort.name != "" && valueSize(item[k.sort.name]) > maxSortKey {
		return invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// checkIndexed checks the attributes of an index's key as far as the item has
// them; without them the item just does not stand in the index.
func (k keySchema) checkIndexed(index string, item attributes) error {
	for _, name := range k.names() {
		v, ok := item[name]
		if !ok {
			continue
		}
		if typeOf(v) != string(k.kindOf(name)) {
			return invalid("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", name, k.kindOf(name), typeOf(v), index)
		}
		if emptyScalar(v) {
			return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", longKind(v), index, name)
		}
		limit := maxSortKey
		if name == k.hash.name {
			limit = maxHashKey
		}
		if valueSize(v) > limit {
			return invalid("One or more parameter values were invalid: Size of index key %s has exceeded the maximum size limit of %d bytes. IndexName: %s", name, limit, index)
		}
	}
	return nil
}

func emptyScalar(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value == ""
	case *types.AttributeValueMemberB:
		return len(v.Value) == 0
	}
	return false
}

func longKind(v types.AttributeValue) string {
	if typeOf(v) == "B" {
		return "binary"
	}
	return "string"
}
