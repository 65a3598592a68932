package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"almanac/internal/memcloud"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Form is what befalls one outside call.
type Form int

const (
	AsAsked     Form = iota
	DieBefore        // the process dies before the request leaves
	DieAfter         // the process dies when the request has taken effect
	LostReply        // it took effect, but the caller sees a time-out and goes on
	Refused          // nothing happened, and the caller sees throttling or 5xx
	Outage           // the same, and so for every later call of this worker to that service
	Deadline         // nothing happened, and no answer comes until the invocation's time is over
	Late             // it took effect, and the answer comes when a second of the invocation's time is left
	SentAgain        // its reply is lost, and the SDK sends it again by itself
	Zombie           // the process is frozen; its work is done elsewhere, to the end; then it is thawed and goes on
	LostRequest      // nothing happened, but the caller sees a time-out, as with a lost reply, and goes on
	Conflicted       // nothing happened: DynamoDB was at work on another write of the same item
)

// Forms are the ways in which a call can go wrong.
var Forms = []Form{DieBefore, DieAfter, LostReply, Refused, Outage, Deadline, Late, SentAgain, Zombie, LostRequest, Conflicted}

var formNames = map[Form]string{AsAsked: "as-asked", DieBefore: "die-before", DieAfter: "die-after", LostReply: "lost-reply", Refused: "refused", Outage: "outage",
	Deadline: "deadline", Late: "late", SentAgain: "sent-again", Zombie: "zombie", LostRequest: "lost-request", Conflicted: "conflicted"}

func (f Form) String() string { return formNames[f] }

// Strikes reports whether a form can befall a call of this name as something of its own. A read has no effect, so that it
// is all the same whether it comes about before its process dies, before its reply is lost, or twice.
func (f Form) Strikes(name string) bool {
	writes := (&Call{Name: name}).Writes()
	switch f {
	case DieAfter, SentAgain, LostRequest:
		return writes
	case Conflicted:
		return writes && service(name) == memcloud.ServiceDynamoDB
	}
	return true
}

// ParseForm reads a form's name.
func ParseForm(name string) (Form, error) {
	for f, n := range formNames {
		if n == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("form %q: there is none; want one of %s", name, Forms)
}

// Call is one call of a worker to the outside, on its way.
type Call struct {
	Worker *Worker
	N      int    // counted over the world in the order in which calls were let go, from 1
	Of     int    // counted over its worker, in the same order
	Name   string // "DynamoDB.PutItem"
	Key    string // what it is about: an item, an object, a name
	Input  any

	release chan Form
}

// String names the call for people.
func (c *Call) String() string {
	return fmt.Sprintf("call %d: %s %d, its call %d: %s %s", c.N, c.Worker.Name, c.Worker.Number, c.Of, c.Name, c.Key)
}

// Writes reports whether the call may change something outside.
func (c *Call) Writes() bool {
	_, operation, _ := strings.Cut(c.Name, ".")
	return !slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "GetObject", "HeadObject", "ListObjectsV2", "DescribeExecution", "GetQueueAttributes", "GetQueryExecution", "GetQueryResults", "Open", "View", "Next", "Read"}, operation)
}

var (
	errDead = errors.New("the process is dead")
	errLost = &smithyhttp.RequestSendError{Err: errors.New("i/o timeout")}
)

// refusal is what a service answers that takes no more.
func refusal(name string) error {
	code := map[string]string{memcloud.ServiceDynamoDB: "ThrottlingException", memcloud.ServiceS3: "SlowDown", memcloud.ServiceSQS: "RequestThrottled",
		memcloud.ServiceStates: "ThrottlingException", memcloud.ServiceAthena: "TooManyRequestsException", "Lambda": "TooManyRequestsException", "SES": "Throttling"}[service(name)]
	return &smithy.GenericAPIError{Code: code, Message: "Rate exceeded", Fault: smithy.FaultServer}
}

// conflict is what DynamoDB answers while another write of the same item is under way: single writes by a type of their
// own, transactions among their reasons.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
func conflict(input any) error {
	message := aws.String("Transaction is ongoing for the item")
	in, ok := input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return &types.TransactionConflictException{Message: message}
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[0] = types.CancellationReason{Code: aws.String("TransactionConflict"), Message: message}
	return &types.TransactionCanceledException{Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons"), CancellationReasons: reasons}
}

// keyOf says what a request is about.
func keyOf(input any) string {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return itemKey(in.Key)
	case *dynamodb.PutItemInput:
		return itemKey(in.Item)
	case *dynamodb.UpdateItemInput:
		return itemKey(in.Key)
	case *dynamodb.DeleteItemInput:
		return itemKey(in.Key)
	case *dynamodb.QueryInput:
		return aws.ToString(in.IndexName) + valuesOf(in.ExpressionAttributeValues)
	case *dynamodb.BatchGetItemInput:
		for _, r := range in.RequestItems {
			return itemKey(r.Keys[0])
		}
	case *dynamodb.TransactWriteItemsInput:
		return transactionKey(in)
	case *s3.PutObjectInput:
		return *in.Key
	case *s3.GetObjectInput:
		return *in.Key
	case *s3.ListObjectsV2Input:
		return aws.ToString(in.Prefix)
	case *sfn.StartExecutionInput:
		return *in.Name
	case *athena.StartQueryExecutionInput:
		return *in.ClientRequestToken
	case *athena.GetQueryExecutionInput:
		return *in.QueryExecutionId
	case *athena.GetQueryResultsInput:
		return *in.QueryExecutionId
	case *athena.StopQueryExecutionInput:
		return *in.QueryExecutionId
	}
	return ""
}

func itemKey(it Row) string { return Text(it, schema.PK) + " / " + Text(it, schema.SK) }

func transactionKey(in *dynamodb.TransactWriteItemsInput) string {
	var keys []string
	for _, i := range in.TransactItems {
		switch {
		case i.Put != nil:
			keys = append(keys, itemKey(i.Put.Item))
		case i.Update != nil:
			keys = append(keys, itemKey(i.Update.Key))
		case i.Delete != nil:
			keys = append(keys, itemKey(i.Delete.Key))
		case i.ConditionCheck != nil:
			keys = append(keys, itemKey(i.ConditionCheck.Key))
		}
	}
	return strings.Join(keys, " + ")
}

func valuesOf(values Row) (out string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out += " " + Text(values, name)
	}
	return out
}

func service(name string) string { s, _, _ := strings.Cut(name, "."); return s }

// before parks a call until the scheduler lets it go; an error is what its caller gets instead of an answer.
func (w *World) before(ctx context.Context, name string, input any) error {
	k := workerOf(ctx)
	if k == nil {
		w.lag(input, false)
		return nil
	}
	k.mu.Lock()
	dead, outage := k.dead, k.outage
	k.mu.Unlock()
	c := &Call{Worker: k, Name: name, Key: keyOf(input), Input: input, release: make(chan Form, 1)}
	switch {
	case dead:
		return errDead
	case outage == service(name):
		return refusal(name)
	}
	w.park(c)
	form := <-c.release
	if k.isDead() {
		return errDead
	}
	switch form {
	case DieBefore:
		k.kill()
		return errDead
	case Refused:
		return refusal(name)
	case LostRequest:
		return errLost
	case Outage:
		k.mu.Lock()
		k.outage = service(name)
		k.mu.Unlock()
		return refusal(name)
	case Deadline:
		<-k.done
		return errors.Join(errLost, context.DeadlineExceeded)
	case DieAfter, LostReply, Late, SentAgain:
		w.mu.Lock()
		w.pending[input] = form
		w.mu.Unlock()
	}
	if err := (invocation{k}).Err(); err != nil {
		return err // its time was over before the request left
	}
	w.lag(input, true)
	return nil
}

// form takes what is to befall a call that has been served.
func (w *World) form(input any) Form {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.pending[input]
	delete(w.pending, input)
	return f
}

// served is asked when a request has taken effect; an error is what its caller gets instead of the answer.
func (w *World) served(ctx context.Context, input any) error {
	k := workerOf(ctx)
	if k == nil {
		return nil
	}
	if k.isDead() {
		return errDead
	}
	switch w.form(input) {
	case DieAfter:
		k.kill()
		return errDead
	case LostReply:
		return errLost
	case Late:
		if d := k.deadline.Sub(w.Now()) - time.Second; d > 0 {
			w.sleep(invocation{k}, d)
		}
	}
	return nil
}

// again tells whether a request is to arrive once more.
func (w *World) again(input any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[input] != SentAgain {
		return false
	}
	delete(w.pending, input)
	return true
}

// hooks puts every request of a service under the scheduler.
func (w *World) hooks() memcloud.Hooks {
	return memcloud.Hooks{
		Before: func(ctx context.Context, c memcloud.Call) error {
			return w.before(ctx, c.Service+"."+c.Operation, c.Input)
		},
		After: func(ctx context.Context, c memcloud.Call) error {
			err := w.served(ctx, c.Input)
			if err == nil {
				err = w.outdated(c)
			}
			w.hear(ctx, c.Output, errors.Join(c.Err, err))
			return err
		},
		Again: func(_ context.Context, c memcloud.Call) bool { return w.again(c.Input) },
	}
}

// outside puts a call of another kind under the scheduler: serve is what the receiver does, each time that the request
// arrives. What a client sees of a lost request, and of a refused one, is its own: lost and refused say it.
func (w *World) outside(ctx context.Context, name string, serve func() error) error {
	input := new(byte)
	if err := w.before(ctx, name, input); err != nil {
		return err
	}
	err := serve()
	switch again := w.again(input); {
	case again && service(name) == "SES": // its client sends nothing again by itself
		return errLost
	case again:
		err = serve()
	}
	if lost := w.served(ctx, input); lost != nil {
		err = lost
	}
	w.hear(ctx, nil, err)
	return err
}

// hear tells whoever follows the workers what one of them was answered.
func (w *World) hear(ctx context.Context, answer any, err error) {
	if k := workerOf(ctx); k != nil && w.heard != nil {
		w.heard(k, answer, err)
	}
}

// cut is a connection that broke after the request had left.
var errCut = io.ErrUnexpectedEOF
