package storetest

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// tap stands between the store and DynamoDB. It counts calls and can fail them on either side of their effect, on any
// runner alike.
type tap struct {
	store.DynamoDB
	calls  atomic.Int64
	writes atomic.Int64
	// eventual counts reads of the table that may be behind: only indexes may.
	eventual atomic.Int64
	// before and after are asked for call n, from 0, of an operation. An error from before: the call was never served.
	// An error from after: it was, and its reply is lost. They may block, to hold one caller while another goes on.
	before, after func(n int, operation string) error
	// stale, if set, replaces the reply of a Query on an index.
	stale func(*dynamodb.QueryInput, *dynamodb.QueryOutput)
	// unprocessed, if set, says how many keys of a BatchGetItem are left over.
	unprocessed func(keys int) int
}

// reset starts counting anew and takes every fault out.
func (t *tap) reset() {
	t.calls.Store(0)
	t.writes.Store(0)
	t.before, t.after, t.stale, t.unprocessed = nil, nil, nil, nil
}

func through[I, O any](t *tap, ctx context.Context, operation string, in *I, serve func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error)) (*O, error) {
	n := int(t.calls.Add(1)) - 1
	if isWrite(operation) {
		t.writes.Add(1)
	}
	if t.before != nil {
		if err := t.before(n, operation); err != nil {
			return nil, &smithy.OperationError{ServiceID: "DynamoDB", OperationName: operation, Err: err}
		}
	}
	out, err := serve(ctx, in)
	if t.after != nil {
		if lost := t.after(n, operation); lost != nil {
			return nil, &smithy.OperationError{ServiceID: "DynamoDB", OperationName: operation, Err: lost}
		}
	}
	return out, err
}

func (t *tap) consistent(asked *bool) {
	if !aws.ToBool(asked) {
		t.eventual.Add(1)
	}
}

func isWrite(operation string) bool {
	return strings.HasPrefix(operation, "Put") || strings.HasPrefix(operation, "Delete") || strings.HasPrefix(operation, "Update") || strings.HasPrefix(operation, "Transact")
}

func (t *tap) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	t.consistent(in.ConsistentRead)
	return through(t, ctx, "GetItem", in, t.DynamoDB.GetItem)
}

func (t *tap) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(t, ctx, "PutItem", in, t.DynamoDB.PutItem)
}

func (t *tap) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return through(t, ctx, "UpdateItem", in, t.DynamoDB.UpdateItem)
}

func (t *tap) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return through(t, ctx, "DeleteItem", in, t.DynamoDB.DeleteItem)
}

func (t *tap) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(t, ctx, "TransactWriteItems", in, t.DynamoDB.TransactWriteItems)
}

func (t *tap) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.IndexName == nil {
		t.consistent(in.ConsistentRead)
	}
	out, err := through(t, ctx, "Query", in, t.DynamoDB.Query)
	if err == nil && t.stale != nil && in.IndexName != nil {
		t.stale(in, out)
	}
	return out, err
}

// BatchGetItem serves only some of the keys where unprocessed says so.
func (t *tap) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	for _, ask := range in.RequestItems {
		t.consistent(ask.ConsistentRead)
	}
	if t.unprocessed == nil {
		return through(t, ctx, "BatchGetItem", in, t.DynamoDB.BatchGetItem)
	}
	some, rest := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}}, map[string]types.KeysAndAttributes{}
	for table, ask := range in.RequestItems {
		n := len(ask.Keys) - t.unprocessed(len(ask.Keys))
		left := ask
		ask.Keys, left.Keys = ask.Keys[:n], ask.Keys[n:]
		if n > 0 {
			some.RequestItems[table] = ask
		}
		if len(left.Keys) > 0 {
			rest[table] = left
		}
	}
	if len(some.RequestItems) == 0 {
		t.calls.Add(1)
		return &dynamodb.BatchGetItemOutput{UnprocessedKeys: rest}, nil
	}
	out, err := through(t, ctx, "BatchGetItem", some, t.DynamoDB.BatchGetItem)
	if err == nil {
		out.UnprocessedKeys = rest
	}
	return out, err
}

// The faults, dressed as the SDK's client dresses them.

// timedOut is a reply that did not come in time.
func timedOut() error { return &smithyhttp.RequestSendError{Err: os.ErrDeadlineExceeded} }

// broken is an answer of 500.
func broken() error {
	return answered(http.StatusInternalServerError, &types.InternalServerError{Message: aws.String("broken on purpose")})
}

// unavailable is an answer of 503 that DynamoDB's model does not type.
func unavailable() error {
	return answered(http.StatusServiceUnavailable, &smithy.GenericAPIError{Code: "ServiceUnavailable", Message: "on purpose", Fault: smithy.FaultServer})
}

func throttled() error {
	return answered(http.StatusBadRequest, &smithy.GenericAPIError{Code: "ThrottlingException", Message: "on purpose", Fault: smithy.FaultClient})
}

// conflicting is a conflict of transactions: for a transaction in its list of reasons, one of which is a throttle (S8).
func conflicting(operation string) error {
	if operation != "TransactWriteItems" {
		return answered(http.StatusBadRequest, &types.TransactionConflictException{Message: aws.String("on purpose")})
	}
	return cancelled("TransactionConflict", "ThrottlingError")
}

func cancelled(codes ...string) error {
	e := &types.TransactionCanceledException{Message: aws.String("on purpose")}
	for _, c := range codes {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(c)})
	}
	return answered(http.StatusBadRequest, e)
}

func answered(status int, err error) error {
	return &awshttp.ResponseError{RequestID: "storetest", ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}}
}
