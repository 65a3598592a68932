package memcloud

import (
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxPage is how many bytes one Query or Scan reads. Source: "Paginating
// table query results in DynamoDB",
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
const maxPage = 1024 * 1024

// search is what Query and Scan have in common.
type search struct {
	table      *table
	index      *index // nil: the table itself
	key        keySchema
	rows       *ordered
	filter     condition
	paths      []path
	limit      int // 0: none
	start      attributes
	count      bool // only count
	consistent bool
}

// searchOf checks the common parameters, all but the expressions.
func (d *Dynamo) searchOf(tableName, indexName *string, limit *int32, consistent *bool, start attributes) (*search, error) {
	t, err := d.table(tableName)
	if err != nil {
		return nil, err
	}
	s := &search{table: t, key: t.key, rows: t.rows, consistent: aws.ToBool(consistent)}
	if indexName != nil {
		if s.index = t.index(*indexName); s.index == nil {
			return nil, invalid("The table does not have the specified index: %s", *indexName)
		}
		if s.consistent {
			return nil, invalid("Consistent reads are not supported on global secondary indexes")
		}
		s.key, s.rows = s.index.key, s.index.rows
	}
	if limit != nil {
		if *limit < 1 {
			return nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *limit)
		}
		s.limit = int(*limit)
	}
	if start != nil {
		if s.start, err = s.checkStart(start); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// names are the attributes of a LastEvaluatedKey.
func (s *search) names() map[string]keySchema {
	out := map[string]keySchema{}
	for _, k := range []keySchema{s.table.key, s.key} {
		for _, name := range k.names() {
			out[name] = k
		}
	}
	return out
}

func (s *search) checkStart(start attributes) (attributes, error) {
	names := s.names()
	normal, err := normalItem(start)
	if err != nil {
		return nil, err
	}
	if len(normal) != len(names) {
		return nil, invalid("The provided starting key is invalid")
	}
	for name, k := range names {
		if v := normal[name]; v == nil || typeOf(v) != string(k.kindOf(name)) {
			return nil, invalid("The provided starting key is invalid: key attribute %s is missing or has the wrong type", name)
		}
	}
	return normal, nil
}

// startPosition is where the page before ended.
func (s *search) startPosition() position {
	at := s.key.position(s.start)
	at.id = s.table.key.identity(s.start)
	return at
}

// choose checks Select together with the projection and what the index has.
func (s *search) choose(selected types.Select, projection bool) error {
	switch selected {
	case "":
	case types.SelectSpecificAttributes:
		if !projection {
			return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	case types.SelectCount, types.SelectAllAttributes, types.SelectAllProjectedAttributes:
		if projection {
			return invalid("Cannot specify the ProjectionExpression when choosing to get %s", selected)
		}
	default:
		return invalid("Value '%s' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]", selected)
	}
	s.count = selected == types.SelectCount
	if selected == types.SelectAllProjectedAttributes && s.index == nil {
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	if s.index == nil || s.index.all {
		return nil
	}
	if selected == types.SelectAllAttributes {
		return invalid("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", s.index.name)
	}
	// A filter on what the index does not hold could never be true, so it is
	// refused like a projection of it.
	for _, p := range append(pathsIn(s.filter), s.paths...) {
		if !s.index.projected[p.root()] {
			return invalid("One or more parameter values were invalid: Global secondary index %s does not project [%s]", s.index.name, p.root())
		}
	}
	return nil
}

// page is one page of results.
type page struct {
	items   []map[string]types.AttributeValue
	count   int32
	scanned int32
	last    attributes // LastEvaluatedKey; nil at the end
	bill    *bill
}

// read reads one page. A page that ends because of its limit has a last key
// even if nothing follows: AWS does not look ahead.
func (s *search) read(rows iter.Seq[*record]) page {
	var out page
	var last *record
	size := 0
	for r := range rows {
		if last != nil && size+r.size > maxPage {
			out.last = s.lastKey(last)
			break
		}
		size += r.size
		out.scanned++
		last = r
		if s.filter == nil || s.filter.holds(r.item) {
			out.count++
			if !s.count {
				out.items = append(out.items, picked(r.item, s.paths))
			}
		}
		if s.limit > 0 && int(out.scanned) == s.limit {
			out.last = s.lastKey(last)
			break
		}
	}
	if out.items == nil && !s.count {
		out.items = []map[string]types.AttributeValue{}
	}
	out.bill = &bill{}
	if s.index != nil {
		out.bill.index(s.index.name, readUnits(size, false))
	} else {
		out.bill.table = readUnits(size, s.consistent)
	}
	return out
}

func (s *search) lastKey(r *record) attributes {
	out := attributes{}
	for name := range s.names() {
		out[name] = copyValue(r.item[name])
	}
	return out
}
