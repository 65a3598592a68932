package memcloud

import (
	"sort"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// step is one part of a document path: a name, or an index into a list.
type step struct {
	name  string
	index int // -1 for a name
}

// path is a document path with its #names resolved.
type path []step

func (p path) root() string { return p[0].name }

// String is the form that AWS uses in its errors: [a, [0], b].
func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		parts[i] = s.name
		if s.index >= 0 {
			parts[i] = "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// find gives the value at the path, or nil.
func (p path) find(item attributes) types.AttributeValue {
	v := item[p[0].name]
	for _, s := range p[1:] {
		v = s.in(v)
	}
	return v
}

// in steps into a list or a map; nil where there is nothing.
func (s step) in(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		if s.index < 0 {
			return v.Value[s.name]
		}
	case *types.AttributeValueMemberL:
		if s.index >= 0 && s.index < len(v.Value) {
			return v.Value[s.index]
		}
	}
	return nil
}

// before orders paths step by step, indexes by number.
func (p path) before(q path) bool {
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] {
			if p[i].index != q[i].index {
				return p[i].index < q[i].index
			}
			return p[i].name < q[i].name
		}
	}
	return len(p) < len(q)
}

// checkDistinct refuses paths of one expression that touch each other: one
// inside the other, or one reading as a map what the other reads as a list.
func checkDistinct(kind string, paths []path) error {
	for i, p := range paths {
		for _, q := range paths[:i] {
			if err := checkPair(kind, q, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPair(kind string, p, q path) error {
	for i := range min(len(p), len(q)) {
		if p[i] == q[i] {
			continue
		}
		if (p[i].index < 0) != (q[i].index < 0) {
			return invalid("Invalid %s: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", kind, p, q)
		}
		return nil
	}
	return invalid("Invalid %s: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", kind, p, q)
}

// project keeps of an item what the paths name. Maps and lists are kept as
// far as something in them is named; elements of a list close ranks.
func project(item attributes, paths []path) attributes {
	out := attributes{}
	groups := map[string][]path{}
	for _, p := range paths {
		groups[p.root()] = append(groups[p.root()], p[1:])
	}
	for name, rest := range groups {
		if v := projectValue(item[name], rest); v != nil {
			out[name] = v
		}
	}
	return out
}

func projectValue(v types.AttributeValue, paths []path) types.AttributeValue {
	if v == nil {
		return nil
	}
	groups := map[step][]path{}
	for _, p := range paths {
		if len(p) == 0 {
			return v
		}
		groups[p[0]] = append(groups[p[0]], p[1:])
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		return projectMap(v, groups)
	case *types.AttributeValueMemberL:
		return projectList(v, groups)
	}
	return nil
}

func projectMap(v *types.AttributeValueMemberM, groups map[step][]path) types.AttributeValue {
	out := attributes{}
	for s, rest := range groups {
		if found := projectValue(s.in(v), rest); found != nil {
			out[s.name] = found
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &types.AttributeValueMemberM{Value: out}
}

func projectList(v *types.AttributeValueMemberL, groups map[step][]path) types.AttributeValue {
	steps := make([]step, 0, len(groups))
	for s := range groups {
		steps = append(steps, s)
	}
	sort.Slice(steps, func(i, j int) bool { return steps[i].index < steps[j].index })
	var out []types.AttributeValue
	for _, s := range steps {
		if found := projectValue(s.in(v), groups[s]); found != nil {
			out = append(out, found)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &types.AttributeValueMemberL{Value: out}
}
