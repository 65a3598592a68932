package jobs

import (
	"context"
	"fmt"

	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Functions is the part of Lambda that the package uses.
type Functions interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Asker asks for a dispatch by an asynchronous invocation of its function, which carries nothing: a dispatch looks at
// everything.
type Asker struct {
	API      Functions
	Function string // name
}

var _ snapshot.Dispatch = Asker{}

// accepted is what Lambda answers to an event that it has queued.
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
const accepted = 202

// Ask has Lambda queue one invocation.
func (a Asker) Ask(ctx context.Context) error {
	out, err := a.API.Invoke(ctx, &lambda.InvokeInput{FunctionName: &a.Function, InvocationType: types.InvocationTypeEvent, Payload: []byte("{}")})
	if err != nil {
		return fmt.Errorf("ask %s for a dispatch: %w", a.Function, err)
	}
	if out.StatusCode != accepted {
		return fmt.Errorf("ask %s for a dispatch: Lambda answered %d %s; want %d", a.Function, out.StatusCode, aws.ToString(out.FunctionError), accepted)
	}
	return nil
}
