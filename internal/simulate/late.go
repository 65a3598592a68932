package simulate

import (
	"time"

	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// soonKnown is how long an index, or Step Functions' account of an execution, may know nothing of what has happened. AWS
// names no bound for either: "in a fraction of a second, under normal conditions" for indexes, and "may not reflect very
// recent updates" for executions. Some seconds are unkind.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
const soonKnown = 10 * time.Second

// lag sets how far behind its table the index is that a worker is about to read; the scenario itself reads what there is.
func (w *World) lag(input any, worker bool) {
	q, is := input.(*dynamodb.QueryInput)
	if !is || q.IndexName == nil || w.Lag == nil {
		return
	}
	n := 0
	if worker {
		n = w.Lag(w.young(*q.TableName))
	}
	w.DB.StaleIndex(n)
}

// young counts a table's latest writes of which an index may know nothing.
func (w *World) young(table string) int {
	list := w.watch.times[table]
	for len(list) > 0 && w.Now().Sub(list[0]) > soonKnown {
		list = list[1:]
	}
	w.watch.times[table] = list
	return len(list)
}

// outdated makes the answer about an execution that of some seconds ago.
func (w *World) outdated(c memcloud.Call) error {
	out, is := c.Output.(*sfn.DescribeExecutionOutput)
	if !is || w.Behind == nil || !w.Behind() {
		return nil
	}
	switch ended := out.StopDate; {
	case ended != nil && w.Now().Sub(*ended) < soonKnown:
		out.Status, out.StopDate, out.Error, out.Cause = sfntypes.ExecutionStatusRunning, nil, nil, nil
	case ended == nil && w.Now().Sub(*out.StartDate) < soonKnown:
		return &sfntypes.ExecutionDoesNotExist{Message: aws.String("Execution Does Not Exist: '" + *out.ExecutionArn + "'")}
	}
	return nil
}

// arrive starts the function of a rule as often as its invocation comes about: a rule's event, or an asynchronous
// invocation, may come twice, and one that waits for too long is dropped.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func (w *World) arrive(rule string) {
	n := 1
	if w.Arrives != nil {
		n = w.Arrives()
	}
	w.ticked[rule] = w.Now()
	for range n {
		w.fire(rule)
	}
}
