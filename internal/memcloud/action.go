package memcloud

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// request is what Put, Update, Delete and ConditionCheck have in common,
// alone or in a transaction.
type request struct {
	table     *string
	item      attributes // Put: the whole item
	key       attributes // the others
	update    *string
	condition *string
	names     map[string]string
	values    attributes
	onFailure types.ReturnValuesOnConditionCheckFailure
}

// action is a checked request, ready to be tried on the table.
type action struct {
	table     *table
	at        position   // of the item in its table
	key       attributes // checked
	item      attributes // Put: checked
	updates   bool
	checks    bool    // only a condition: nothing is written
	update    *update // nil: an update that only makes the item
	condition condition
	onFailure types.ReturnValuesOnConditionCheckFailure
}

// put checks a request to write a whole item.
func (d *Dynamo) put(r request) (*action, error) {
	a, err := d.begin(r)
	if err != nil {
		return nil, err
	}
	if a.item, err = normalItem(r.item); err != nil {
		return nil, err
	}
	if err := a.table.checkItem(a.item, "Item size has exceeded the maximum allowed size"); err != nil {
		return nil, err
	}
	a.key = a.table.key.keyOf(a.item)
	a.at = a.table.place(a.key)
	return a, nil
}

// keyed checks a request that names its item by key.
func (d *Dynamo) keyed(r request) (*action, error) {
	a, err := d.begin(r)
	if err != nil {
		return nil, err
	}
	if a.key, err = a.table.key.checkKey(r.key); err != nil {
		return nil, err
	}
	a.at = a.table.place(a.key)
	return a, nil
}

// modify checks a request to update an item.
func (d *Dynamo) modify(r request) (*action, error) {
	a, err := d.keyed(r)
	if err != nil {
		return nil, err
	}
	a.updates = true
	if a.update == nil {
		return a, nil
	}
	for _, p := range a.update.paths() {
		if a.table.key.has(p.root()) {
			return nil, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", p.root())
		}
	}
	return a, nil
}

// begin checks table and expressions.
func (d *Dynamo) begin(r request) (*action, error) {
	t, err := d.table(r.table)
	if err != nil {
		return nil, err
	}
	switch r.onFailure {
	case "", types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld:
	default:
		return nil, invalid("Value '%s' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]", r.onFailure)
	}
	s, err := newScope(r.names, r.values)
	if err != nil {
		return nil, err
	}
	a := &action{table: t, onFailure: r.onFailure}
	if a.update, err = s.update(r.update); err != nil {
		return nil, err
	}
	if a.condition, err = s.condition("ConditionExpression", r.condition); err != nil {
		return nil, err
	}
	weaken(r, a)
	return a, s.finish()
}

// try works out what the action would do now; nothing changes yet. A refused
// condition comes back as ConditionalCheckFailedException; the write then
// says what it touched, for the bill.
func (a *action) try() (write, error) {
	old := a.table.rows.get(a.at)
	var was attributes
	if old != nil {
		was = old.item
	}
	if a.condition != nil && !a.condition.holds(was) {
		refused := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if a.onFailure == types.ReturnValuesOnConditionCheckFailureAllOld && old != nil {
			refused.Item = copyItem(was)
		}
		touched := write{old: old}
		if a.item != nil {
			touched.new = a.record(a.item)
		}
		return touched, refused
	}
	switch {
	case a.item != nil:
		return a.table.planned(old, a.record(a.item)), nil
	case a.updates:
		return a.tryUpdate(old)
	case a.checks:
		return a.table.planned(old, old), nil
	}
	return a.table.planned(old, nil), nil
}

// record is the item as it will be stored.
func (a *action) record(item attributes) *record {
	return &record{position: a.at, item: item, size: itemSize(item)}
}

// tryUpdate makes an item that is not there, except where the update only
// takes away: AWS then leaves it at that.
func (a *action) tryUpdate(old *record) (write, error) {
	base := a.key
	if old != nil {
		base = old.item
	}
	item := base
	if a.update != nil {
		var err error
		if item, err = a.update.apply(base); err != nil {
			return write{old: old}, err
		}
	}
	if old == nil && a.update != nil && !a.update.writes() {
		return a.table.planned(nil, nil), nil
	}
	if err := a.table.checkItem(item, "Item size to update has exceeded the maximum allowed size"); err != nil {
		return write{old: old}, err
	}
	return a.table.planned(old, a.record(item)), nil
}
