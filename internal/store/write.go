package store

import (
	"context"
	"errors"
	"fmt"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// write is one conditional write, alone or as part of a transaction.
type write struct {
	event     string
	key       schema.Key
	put       item // a whole new item; nil: an update
	update    string
	condition string
	expr      expression
	check     bool // only the condition: nothing is written
	// refused says what it means that the condition does not hold; empty: the row changed since it was read.
	refused string
	// mine reports, on the row as it stands, that this very write took effect before its reply was lost.
	mine func(item) bool
	// row, where not nil, receives the row as it stands after this write, or stood when the write was refused.
	row *item
}

// step is one transition: the table's row that the caller believes to be in force, and what is written with it.
type step[S, E ~string] struct {
	table transition.Table[S, E]
	from  S // as read
	event E
	key   schema.Key
	facts facts
	with  update
	put   item // where from is Absent
	mine  func(item) bool
}

// errIllegal is a transition that no row of the table allows; nothing was sent.
type errIllegal struct{ table, from, event, why string }

func (e errIllegal) Error() string {
	return fmt.Sprintf("%s: %q is not possible in state %q: %s", e.table, e.event, e.from, e.why)
}

// advance is the only place that writes a state: the new state and the condition both come from the table's row.
func advance[S, E ~string](s step[S, E]) (write, error) {
	row, ok := s.table.Next(s.from, s.event)
	if !ok {
		return write{}, errIllegal{s.table.Name, string(s.from), string(s.event), "no such row"}
	}
	w := write{event: string(s.event), key: s.key, mine: s.mine}
	cond, ok := condition(&w.expr, row, s.facts)
	if !ok {
		return write{}, errIllegal{s.table.Name, string(s.from), string(s.event), "its guard was not decided: " + row.When.String()}
	}
	w.condition = cond
	if row.From == transition.Absent {
		w.put = item{schema.State: attr(string(row.To))}
		for k, v := range s.put {
			w.put[k] = v
		}
		for k, v := range keyItem(s.key) {
			w.put[k] = v
		}
		return w, nil
	}
	if row.To != row.From {
		set := map[string]any{schema.State: string(row.To)}
		for k, v := range s.with.set {
			set[k] = v
		}
		s.with.set = set
	}
	w.update = w.expr.update(s.with)
	return w, nil
}

// send does one write alone.
func (s *Store) send(ctx context.Context, w write) error {
	for n := 0; ; n++ {
		err := s.sendOnce(ctx, w)
		if err == nil {
			return nil
		}
		var refused *types.ConditionalCheckFailedException
		if errors.As(err, &refused) {
			return decide(w, refused.Item)
		}
		if again(err) && n < maxTries {
			if err := s.Pause(ctx, jitter(n)); err == nil {
				continue
			}
		}
		return s.afterLoss(ctx, err, w)
	}
}

func (s *Store) sendOnce(ctx context.Context, w write) error {
	const all = types.ReturnValuesOnConditionCheckFailureAllOld
	if w.put != nil {
		_, err := s.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Table, Item: w.put, ConditionExpression: text(w.condition),
			ExpressionAttributeNames: w.expr.names, ExpressionAttributeValues: w.expr.values, ReturnValuesOnConditionCheckFailure: all})
		return err
	}
	in := &dynamodb.UpdateItemInput{TableName: &s.Table, Key: keyItem(w.key), UpdateExpression: &w.update,
		ConditionExpression: text(w.condition), ExpressionAttributeNames: w.expr.names, ExpressionAttributeValues: w.expr.values,
		ReturnValuesOnConditionCheckFailure: all}
	if w.row != nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	out, err := s.DB.UpdateItem(ctx, in)
	if err == nil {
		w.took(out.Attributes)
	}
	return err
}

// took notes the row as it stands after the write, or stood at its refusal.
func (w write) took(row item) {
	if w.row != nil {
		*w.row = row
	}
}

// transact does several writes, all or none. At most 25 (design.md §3); AWS allows 100.
func (s *Store) transact(ctx context.Context, ws ...write) error {
	if len(ws) == 1 {
		return s.send(ctx, ws[0])
	}
	in := &dynamodb.TransactWriteItemsInput{}
	for _, w := range ws {
		in.TransactItems = append(in.TransactItems, s.action(w))
	}
	for n := 0; ; n++ {
		_, err := s.DB.TransactWriteItems(ctx, in)
		if err == nil {
			return nil
		}
		var cancelled *types.TransactionCanceledException
		if errors.As(err, &cancelled) {
			if i, old := firstRefused(cancelled.CancellationReasons); i >= 0 {
				return s.decideAll(ctx, ws, i, old)
			}
		}
		if again(err) && n < maxTries {
			if err := s.Pause(ctx, jitter(n)); err == nil {
				continue
			}
		}
		return s.afterLoss(ctx, err, ws...)
	}
}

func (s *Store) action(w write) types.TransactWriteItem {
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	if w.put != nil {
		return types.TransactWriteItem{Put: &types.Put{TableName: &s.Table, Item: w.put, ConditionExpression: text(w.condition),
			ExpressionAttributeNames: w.expr.names, ExpressionAttributeValues: w.expr.values, ReturnValuesOnConditionCheckFailure: all}}
	}
	if w.check {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &s.Table, Key: keyItem(w.key), ConditionExpression: &w.condition,
			ExpressionAttributeNames: w.expr.names, ExpressionAttributeValues: w.expr.values, ReturnValuesOnConditionCheckFailure: all}}
	}
	return types.TransactWriteItem{Update: &types.Update{TableName: &s.Table, Key: keyItem(w.key), UpdateExpression: &w.update,
		ConditionExpression: text(w.condition), ExpressionAttributeNames: w.expr.names, ExpressionAttributeValues: w.expr.values,
		ReturnValuesOnConditionCheckFailure: all}}
}

// firstRefused reads the cancellation reason by reason: a refused condition decides, whatever else happened beside it.
func firstRefused(reasons []types.CancellationReason) (int, item) {
	for i, r := range reasons {
		if aws.ToString(r.Code) == "ConditionalCheckFailed" {
			return i, r.Item
		}
	}
	return -1, nil
}

// decide reads a refusal: the row already holds what we wanted to write, or it is another's.
func decide(w write, old item) error {
	w.took(old)
	if w.mine != nil && len(old) > 0 && w.mine(old) {
		return nil
	}
	return conflict(w, old)
}

// decideAll reads the refusal of a transaction. All or none took effect, so that one write that is ours means all are:
// a refusal of another's condition may stand before it in the list, so each refused write is asked by reading its row.
func (s *Store) decideAll(ctx context.Context, ws []write, i int, old item) error {
	for _, w := range ws {
		if w.mine == nil {
			continue
		}
		row, err := s.get(ctx, w.key)
		if err != nil {
			return err
		}
		if len(row) > 0 && w.mine(row) {
			return nil
		}
	}
	return conflict(ws[i], old)
}

// why says in words why a write was refused.
func (w write) why(old item) string {
	switch {
	case len(old) == 0:
		return "there is no such row"
	case w.refused != "":
		return w.refused
	}
	return "the row changed since it was read"
}

func conflict(w write, old item) error {
	if ofSnapshots(w.key) {
		return snapshotConflict(w, old)
	}
	c := &schedule.Conflict{Event: w.event, Why: w.why(old)}
	switch kindOf(w.key) {
	case schema.RunPrefix:
		if r, err := decodeRun(old); err == nil {
			c.Run = &r
		}
	case schema.SubPrefix:
		if r, err := decodeSubmission(old); err == nil {
			c.Submission = &r
		}
	case "STATE":
		if r, err := decodeSchedule(old); err == nil {
			c.Schedule = &r
		}
	}
	return c
}

// afterLoss settles a write whose reply does not tell: by reading the row, never by hope.
func (s *Store) afterLoss(ctx context.Context, err error, ws ...write) error {
	for _, w := range ws {
		if w.mine == nil {
			continue
		}
		row, readErr := s.get(ctx, w.key)
		if readErr == nil && len(row) > 0 && w.mine(row) {
			w.took(row)
			return nil
		}
	}
	return classify(err)
}

// again reports an error that says nothing was written and that a moment later it may pass: a conflict of
// transactions, or a throttle. Reasons are read one by one (S8).
func again(err error) bool {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for _, r := range cancelled.CancellationReasons {
			switch aws.ToString(r.Code) {
			case "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			default:
				return false
			}
		}
		return true
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "TransactionConflictException", "TransactionInProgressException", "ThrottlingException",
		"ProvisionedThroughputExceededException", "RequestLimitExceeded":
		return true
	}
	return false
}

// classify turns what DynamoDB or the way to it said into a failure of ours.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if again(err) {
		return failure.Wrap(failure.StoreThrottled, err, "DynamoDB asked for a slower pace")
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "InternalServerError", "InternalFailure", "ServiceUnavailable":
		default:
			// A validation error or a missing right is a defect of ours or of the installation. The run is thrown back,
			// and its attempts end: an operator reads it on the run.
			return failure.Wrap(failure.InternalError, err, "DynamoDB refused a request: %s: %s", api.ErrorCode(), failure.Cut(api.ErrorMessage(), 200))
		}
	}
	return failure.Wrap(failure.StoreUnavailable, err, "DynamoDB could not be reached, or its reply was lost")
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
