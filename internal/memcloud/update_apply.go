package memcloud

import (
	"sort"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// apply gives the item after the update; the old one stays as it is, and
// every right-hand side reads the old one. Lists keep their old indexes until
// everything else is done, then what is removed is removed from behind.
func (u *update) apply(old attributes) (attributes, error) {
	out := make(attributes, len(old)+len(u.sets))
	for name, v := range old {
		out[name] = v
	}
	for _, p := range u.paths() {
		if v := out[p.root()]; v != nil && len(p) > 1 {
			out[p.root()] = copyValue(v)
		}
	}
	changes, removes, err := u.results(old)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if err := place(out, c.path, c.value); err != nil {
			return nil, err
		}
	}
	sort.Slice(removes, func(i, j int) bool { return removes[j].before(removes[i]) })
	for _, p := range removes {
		if err := remove(out, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type change struct {
	path  path
	value types.AttributeValue
}

// results computes what is to be written where, and what is to go. Changes
// are in the order of their paths: new elements of a list are appended in the
// order of the indexes that were given for them.
func (u *update) results(old attributes) (changes []change, removes []path, err error) {
	for _, a := range u.sets {
		v, err := present(a.value, old)
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, change{a.path, copyValue(v)})
	}
	for _, a := range u.adds {
		v, err := added(a.path.find(old), a.value.(valueOperand).value)
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, change{a.path, v})
	}
	removes = append(removes, u.removes...)
	for _, a := range u.deletes {
		have := a.path.find(old)
		if have == nil {
			if len(a.path) > 1 {
				if _, err := parent(old, a.path); err != nil {
					return nil, nil, err
				}
			}
			continue
		}
		left, err := subtracted(have, a.value.(valueOperand).value)
		switch {
		case err != nil:
			return nil, nil, err
		case left == nil:
			removes = append(removes, a.path)
		default:
			changes = append(changes, change{a.path, left})
		}
	}
	sort.SliceStable(changes, func(i, j int) bool { return changes[i].path.before(changes[j].path) })
	return changes, removes, nil
}

// added is ADD: a number grows, a set takes members, what is missing begins.
func added(have, more types.AttributeValue) (types.AttributeValue, error) {
	if have == nil {
		return copyValue(more), nil
	}
	if typeOf(more) == "N" {
		return sum(have, "+", more)
	}
	kind, members := setMembers(have)
	moreKind, extra := setMembers(more)
	if kind != moreKind {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	seen := map[string]bool{}
	var all []string
	for _, m := range append(append([]string(nil), members...), extra...) {
		if !seen[m] {
			seen[m] = true
			all = append(all, m)
		}
	}
	return makeSet(kind, all), nil
}

// subtracted is DELETE; nil when nothing is left, as no set may be empty.
func subtracted(have, less types.AttributeValue) (types.AttributeValue, error) {
	kind, members := setMembers(have)
	lessKind, gone := setMembers(less)
	if kind != lessKind {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	drop := map[string]bool{}
	for _, m := range gone {
		drop[m] = true
	}
	var left []string
	for _, m := range members {
		if !drop[m] {
			left = append(left, m)
		}
	}
	if left == nil {
		return nil, nil
	}
	return makeSet(kind, left), nil
}

func badPath() error {
	return invalid("The document path provided in the update expression is invalid for update")
}

// parent gives the list or map that holds the path's last step.
func parent(item attributes, p path) (types.AttributeValue, error) {
	v := p[:len(p)-1].find(item)
	last := p[len(p)-1]
	switch v.(type) {
	case *types.AttributeValueMemberM:
		if last.index < 0 {
			return v, nil
		}
	case *types.AttributeValueMemberL:
		if last.index >= 0 {
			return v, nil
		}
	}
	return nil, badPath()
}

// place writes one value; an index beyond the end of a list appends.
func place(item attributes, p path, v types.AttributeValue) error {
	if len(p) == 1 {
		item[p[0].name] = v
		return nil
	}
	in, err := parent(item, p)
	if err != nil {
		return err
	}
	last := p[len(p)-1]
	switch in := in.(type) {
	case *types.AttributeValueMemberM:
		in.Value[last.name] = v
	case *types.AttributeValueMemberL:
		if last.index < len(in.Value) {
			in.Value[last.index] = v
		} else {
			in.Value = append(in.Value, v)
		}
	}
	return nil
}

// remove takes one value out; what is not there needs no removing, but what
// should hold it must be there.
func remove(item attributes, p path) error {
	if len(p) == 1 {
		delete(item, p[0].name)
		return nil
	}
	in, err := parent(item, p)
	if err != nil {
		return err
	}
	last := p[len(p)-1]
	switch in := in.(type) {
	case *types.AttributeValueMemberM:
		delete(in.Value, last.name)
	case *types.AttributeValueMemberL:
		if last.index < len(in.Value) {
			in.Value = append(in.Value[:last.index], in.Value[last.index+1:]...)
		}
	}
	return nil
}
