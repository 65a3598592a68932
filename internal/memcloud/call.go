package memcloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Service names as Call carries them; they are the SDK's service ids.
const (
	ServiceDynamoDB = "DynamoDB"
	ServiceS3       = "S3"
	ServiceSQS      = "SQS"
)

// Call is one request as a hook sees it.
type Call struct {
	Service   string // ServiceDynamoDB, ServiceS3 or ServiceSQS
	Operation string // the API action, e.g. "PutItem"
	Input     any    // the *XInput as the caller passed it; not to be changed

	// Output and Err are the reply that an After hook may hide. Both are nil
	// in Before.
	Output any
	Err    error
}

// Hooks are the fault seam of each service. They run outside the service's
// lock, so a hook may call the service, and may block: that is how a test
// holds one caller while another goes on. Set them before the service is used
// by more than one goroutine.
type Hooks struct {
	// Before runs when a request arrives. An error means: the request was
	// never served, nothing changed, nothing is counted. The caller gets it.
	Before func(ctx context.Context, call Call) error

	// After runs when a request has been served, refusals included. An error
	// means: what the request did stands, but the reply is lost; the caller
	// gets this error in its place.
	After func(ctx context.Context, call Call) error

	// Again, if set, says whether a served request arrives once more, as one
	// does that the SDK has sent again because its reply was lost. The caller
	// gets the second answer.
	Again func(ctx context.Context, call Call) bool
}

// invoke runs one request between its hooks and dresses errors the way the
// SDK's client does, so that errors.As finds the same types as on AWS.
func invoke[I, O any](ctx context.Context, h *Hooks, service, operation string, in *I, serve func(*I) (*O, error)) (*O, error) {
	if in == nil {
		in = new(I)
	}
	call := Call{Service: service, Operation: operation, Input: in}
	if err := ctx.Err(); err != nil {
		return nil, operationError(call, &smithy.CanceledError{Err: err})
	}
	if h.Before != nil {
		if err := h.Before(ctx, call); err != nil {
			return nil, operationError(call, err)
		}
	}
	out, err := serve(in)
	if h.Again != nil && h.Again(ctx, call) {
		rewind(in)
		out, err = serve(in)
	}
	if h.After != nil {
		call.Err = err
		if err == nil {
			call.Output = out
		}
		if lost := h.After(ctx, call); lost != nil {
			return nil, operationError(call, lost)
		}
	}
	if err != nil {
		return nil, operationError(call, respond(err))
	}
	return out, nil
}

// rewind brings the body of a request back to its start.
func rewind(in any) {
	var body io.Reader
	switch in := in.(type) {
	case *s3.PutObjectInput:
		body = in.Body
	case *s3.UploadPartInput:
		body = in.Body
	}
	if s, ok := body.(io.Seeker); ok {
		_, _ = s.Seek(0, io.SeekStart) // a body that cannot go back is read on, and refused for its length
	}
}

// operationError names service and action in front of the cause.
func operationError(call Call, err error) error {
	return &smithy.OperationError{ServiceID: call.Service, OperationName: call.Operation, Err: err}
}

// respond wraps a refusal in the HTTP response that would have carried it.
func respond(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	return &awshttp.ResponseError{
		RequestID: "memcloud",
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: statusOf(api.ErrorCode())}},
			Err:      err,
		},
	}
}

// statusOf gives the HTTP status of the codes whose status is not 400.
func statusOf(code string) int {
	switch code {
	case "NoSuchKey", "NoSuchBucket", "NoSuchUpload", "NotFound":
		return http.StatusNotFound
	case "NotModified":
		return http.StatusNotModified
	case "PreconditionFailed":
		return http.StatusPreconditionFailed
	case "ConditionalRequestConflict", "BucketAlreadyOwnedByYou":
		return http.StatusConflict
	case "InvalidRange":
		return http.StatusRequestedRangeNotSatisfiable
	case "NotImplemented":
		return http.StatusNotImplemented
	}
	return http.StatusBadRequest
}

// apiError builds a refusal that the SDK has no type for.
func apiError(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// invalid builds DynamoDB's ValidationException, which the SDK leaves untyped.
func invalid(format string, args ...any) error {
	return apiError("ValidationException", format, args...)
}
