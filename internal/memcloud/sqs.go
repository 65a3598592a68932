package memcloud

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Limits of SQS. Sources: "Amazon SQS message quotas",
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
// and "Amazon SQS batch actions" (1,048,576 bytes a call; until August 2025
// it was 262,144), https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api.html
// A queue made with MaximumMessageSize=262144 keeps the older limit for its
// messages, as it does on AWS.
const (
	maxMessage    = 1024 * 1024
	maxDelay      = 900
	maxVisibility = 43200
	maxBatch      = 10
)

// SQS is an in-memory SQS (standard queues) with the methods of the SDK's
// client. It is safe for concurrent use. Time comes from the clock alone: a
// message becomes visible when the clock says so, and long polling returns at
// once. Messages come in the order in which they became visible, which AWS
// does not promise: Shuffle, such as that of math/rand/v2, mixes them.
type SQS struct {
	Hooks

	// FailEntry, if set, makes single entries of a SendMessageBatch fail: a
	// non-nil entry comes back under Failed, with the Id filled in, and its
	// message is not sent. It must not call the service.
	FailEntry func(entry types.SendMessageBatchRequestEntry) *types.BatchResultErrorEntry

	// Shuffle, if set, puts the visible messages of a queue in another order
	// before some are received.
	Shuffle func(n int, swap func(i, j int))

	clock func() time.Time

	mu       sync.Mutex
	queues   map[string]*queue // by URL
	nextID   int
	requests map[string]int
}

type queue struct {
	name, url, arn string
	visibility     int // seconds
	delay          int // seconds
	retention      int // seconds
	largest        int // bytes
	deadLetter     string
	maxReceive     int    // 0: no redrive
	policy         string // RedrivePolicy as given
	created        time.Time
	messages       []*message
}

// NewSQS makes an SQS without queues.
func NewSQS(clock func() time.Time) *SQS {
	return &SQS{clock: clock, queues: map[string]*queue{}, requests: map[string]int{}}
}

// Requests counts the served requests by API action; a batch is one.
func (s *SQS) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// serve runs one request with the lock held and counts it.
func serve[I, O any](ctx context.Context, s *SQS, operation string, in *I, do func(*I) (*O, error)) (*O, error) {
	return invoke(ctx, &s.Hooks, ServiceSQS, operation, in, func(in *I) (*O, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[operation]++
		return do(in)
	})
}

func (s *SQS) queue(url *string) (*queue, error) {
	q := s.queues[aws.ToString(url)]
	if q == nil {
		return nil, &types.QueueDoesNotExist{ErrorCodeOverride: queryCode("NonExistentQueue"), Message: aws.String("The specified queue does not exist: " + aws.ToString(url))}
	}
	q.expire(s.clock())
	return q, nil
}

// queryCode is the code that errors carry on the wire for some of SQS's types
// (ErrorCode of smithy.APIError gives it); the others have their type's name.
func queryCode(name string) *string { return aws.String("AWS.SimpleQueueService." + name) }

// invalidValue is what SQS answers to a bad parameter.
func invalidValue(format string, args ...any) error {
	return apiError("InvalidParameterValue", format, args...)
}

// CreateQueue makes a standard queue; the same name again gives the same URL.
func (s *SQS) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	return serve(ctx, s, "CreateQueue", in, func(in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
		name := aws.ToString(in.QueueName)
		if name == "" || len(name) > 80 || strings.HasSuffix(name, ".fifo") {
			return nil, invalidValue("Queue name %q: 1 to 80 characters; FIFO queues are not served by this stand-in", name)
		}
		q := &queue{
			name: name, url: "https://sqs.us-east-1.amazonaws.com/000000000000/" + name, arn: "arn:aws:sqs:us-east-1:000000000000:" + name,
			visibility: 30, retention: 345600, largest: maxMessage, created: s.clock(),
		}
		for _, key := range sortedNames(in.Attributes) {
			if err := q.set(key, in.Attributes[key], s); err != nil {
				return nil, err
			}
		}
		if have := s.queues[q.url]; have != nil {
			if !have.alike(q) {
				return nil, &types.QueueNameExists{ErrorCodeOverride: aws.String("QueueAlreadyExists"), Message: aws.String("A queue already exists with the same name and a different value for an attribute: " + name)}
			}
			return &sqs.CreateQueueOutput{QueueUrl: aws.String(q.url)}, nil
		}
		s.queues[q.url] = q
		return &sqs.CreateQueueOutput{QueueUrl: aws.String(q.url)}, nil
	})
}

func (q *queue) alike(r *queue) bool {
	return q.visibility == r.visibility && q.delay == r.delay && q.retention == r.retention && q.largest == r.largest && q.policy == r.policy
}

// set sets one attribute of a new queue.
func (q *queue) set(key, value string, s *SQS) error {
	number := func(into *int, low, high int) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return &types.InvalidAttributeValue{Message: aws.String("Invalid value for the parameter " + key + ": " + value + ", must be " + strconv.Itoa(low) + " to " + strconv.Itoa(high))}
		}
		*into = n
		return nil
	}
	switch types.QueueAttributeName(key) {
	case types.QueueAttributeNameVisibilityTimeout:
		return number(&q.visibility, 0, maxVisibility)
	case types.QueueAttributeNameDelaySeconds:
		return number(&q.delay, 0, maxDelay)
	case types.QueueAttributeNameMessageRetentionPeriod:
		return number(&q.retention, 60, 1209600)
	case types.QueueAttributeNameMaximumMessageSize:
		return number(&q.largest, 1024, maxMessage)
	case types.QueueAttributeNameRedrivePolicy:
		return q.setRedrive(value, s)
	case types.QueueAttributeNameKmsMasterKeyId, types.QueueAttributeNameSqsManagedSseEnabled, types.QueueAttributeNamePolicy, types.QueueAttributeNameReceiveMessageWaitTimeSeconds, types.QueueAttributeNameRedriveAllowPolicy:
		return nil // no effect here
	}
	return &types.InvalidAttributeName{Message: aws.String("Unknown Attribute " + key)}
}

// setRedrive reads a RedrivePolicy; maxReceiveCount may be text, as the
// console writes it.
func (q *queue) setRedrive(value string, s *SQS) error {
	bad := func(why string) error {
		return invalidValue("Value %s for parameter RedrivePolicy is invalid. Reason: %s", value, why)
	}
	var policy struct {
		Target string          `json:"deadLetterTargetArn"`
		Count  json.RawMessage `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(value), &policy); err != nil {
		return bad("it is no JSON object")
	}
	n, err := strconv.Atoi(strings.Trim(string(policy.Count), `"`))
	if err != nil || n < 1 || n > 1000 {
		return bad("maxReceiveCount must be 1 to 1000")
	}
	for _, other := range s.queues {
		if other.arn == policy.Target {
			q.deadLetter, q.maxReceive, q.policy = other.url, n, value
			return nil
		}
	}
	return bad("Dead letter target does not exist.")
}

// GetQueueUrl finds a queue by name.
func (s *SQS) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return serve(ctx, s, "GetQueueUrl", in, func(in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
		for _, url := range sortedNames(s.queues) {
			if s.queues[url].name == aws.ToString(in.QueueName) {
				return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(url)}, nil
			}
		}
		return nil, &types.QueueDoesNotExist{ErrorCodeOverride: queryCode("NonExistentQueue"), Message: aws.String("The specified queue does not exist: " + aws.ToString(in.QueueName))}
	})
}

// GetQueueAttributes gives settings and counts. The counts are exact here; on
// AWS they lag.
func (s *SQS) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return serve(ctx, s, "GetQueueAttributes", in, func(in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		all := q.attributes(s.clock())
		out := map[string]string{}
		for _, name := range in.AttributeNames {
			if name == types.QueueAttributeNameAll {
				out = all
				break
			}
			if v, ok := all[string(name)]; ok {
				out[string(name)] = v
			}
		}
		return &sqs.GetQueueAttributesOutput{Attributes: out}, nil
	})
}

func (q *queue) attributes(now time.Time) map[string]string {
	var visible, flying, delayed int
	for _, m := range q.messages {
		switch {
		case !m.visibleAt.After(now):
			visible++
		case m.receipt != "":
			flying++
		default:
			delayed++
		}
	}
	out := map[string]string{
		string(types.QueueAttributeNameQueueArn):                              q.arn,
		string(types.QueueAttributeNameVisibilityTimeout):                     strconv.Itoa(q.visibility),
		string(types.QueueAttributeNameDelaySeconds):                          strconv.Itoa(q.delay),
		string(types.QueueAttributeNameMessageRetentionPeriod):                strconv.Itoa(q.retention),
		string(types.QueueAttributeNameMaximumMessageSize):                    strconv.Itoa(q.largest),
		string(types.QueueAttributeNameCreatedTimestamp):                      strconv.FormatInt(q.created.Unix(), 10),
		string(types.QueueAttributeNameApproximateNumberOfMessages):           strconv.Itoa(visible),
		string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible): strconv.Itoa(flying),
		string(types.QueueAttributeNameApproximateNumberOfMessagesDelayed):    strconv.Itoa(delayed),
	}
	if q.policy != "" {
		out[string(types.QueueAttributeNameRedrivePolicy)] = q.policy
	}
	return out
}
