package memcloud

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type message struct {
	id, body   string
	attributes map[string]types.MessageAttributeValue
	system     map[string]string
	sent       time.Time
	visibleAt  time.Time
	number     int    // order of sending
	received   int    // ApproximateReceiveCount
	receipt    string // of the latest receive
	receivedAt time.Time
	firstAt    time.Time
	source     string // ARN of the queue it died in
}

// outgoing is one message as a caller sends it.
type outgoing struct {
	body       *string
	delay      int32
	attributes map[string]types.MessageAttributeValue
	group      *string
	duplicate  *string
}

// check checks one message and gives its size in bytes: body, and name, type
// and value of each attribute.
func (q *queue) check(m outgoing) (size int, err error) {
	if aws.ToString(m.body) == "" {
		return 0, apiError("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	if m.duplicate != nil {
		return 0, invalidValue("Value %s for parameter MessageDeduplicationId is invalid. Reason: The request includes a parameter that is not valid for this queue type.", *m.duplicate)
	}
	if m.delay < 0 || m.delay > maxDelay {
		return 0, invalidValue("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= %d.", m.delay, maxDelay)
	}
	if len(m.attributes) > 10 {
		return 0, invalidValue("Number of message attributes [%d] exceeds the allowed maximum [10].", len(m.attributes))
	}
	size = len(*m.body)
	for name, a := range m.attributes {
		if a.DataType == nil || a.StringValue == nil && a.BinaryValue == nil {
			return 0, invalidValue("The message attribute '%s' must contain a non-empty type and a value.", name)
		}
		size += len(name) + len(*a.DataType) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	if size > q.largest {
		return size, invalidValue("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.largest)
	}
	if !utf8.ValidString(*m.body) || strings.ContainsFunc(*m.body, forbidden) {
		return size, &types.InvalidMessageContents{Message: aws.String("Invalid binary character in the message body; allowed are #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD, #x10000 to #x10FFFF")}
	}
	return size, nil
}

func forbidden(r rune) bool {
	return r < 0x20 && r != 0x9 && r != 0xa && r != 0xd || r == 0xfffe || r == 0xffff
}

// send puts a checked message into the queue.
func (s *SQS) send(q *queue, m outgoing) *message {
	s.nextID++
	now := s.clock()
	delay := int(m.delay)
	if delay == 0 {
		delay = q.delay // the SDK does not send a zero
	}
	out := &message{
		id: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.nextID), body: *m.body, number: s.nextID,
		sent: now, visibleAt: now.Add(time.Duration(delay) * time.Second), attributes: map[string]types.MessageAttributeValue{}, system: map[string]string{},
	}
	for name, a := range m.attributes {
		out.attributes[name] = a
	}
	if m.group != nil {
		out.system["MessageGroupId"] = *m.group
	}
	q.messages = append(q.messages, out)
	return out
}

func bodyMD5(body string) *string {
	sum := md5.Sum([]byte(body))
	return aws.String(hex.EncodeToString(sum[:]))
}

// SendMessage sends one message.
func (s *SQS) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return serve(ctx, s, "SendMessage", in, func(in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		m := outgoing{in.MessageBody, in.DelaySeconds, in.MessageAttributes, in.MessageGroupId, in.MessageDeduplicationId}
		if _, err := q.check(m); err != nil {
			return nil, err
		}
		sent := s.send(q, m)
		return &sqs.SendMessageOutput{MessageId: aws.String(sent.id), MD5OfMessageBody: bodyMD5(sent.body)}, nil
	})
}

// SendMessageBatch sends up to 10 messages; single ones may fail while the
// call succeeds.
func (s *SQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return serve(ctx, s, "SendMessageBatch", in, func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		if err := checkBatch(in.Entries); err != nil {
			return nil, err
		}
		out := &sqs.SendMessageBatchOutput{Successful: []types.SendMessageBatchResultEntry{}, Failed: []types.BatchResultErrorEntry{}}
		total := 0
		for _, e := range in.Entries {
			size, _ := q.check(batchOutgoing(e))
			total += size
		}
		if total > maxMessage {
			return nil, &types.BatchRequestTooLong{ErrorCodeOverride: queryCode("BatchRequestTooLong"), Message: aws.String(fmt.Sprintf("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, total))}
		}
		for _, e := range in.Entries {
			if failed := s.refuse(q, e); failed != nil {
				out.Failed = append(out.Failed, *failed)
				continue
			}
			m := s.send(q, batchOutgoing(e))
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: aws.String(m.id), MD5OfMessageBody: bodyMD5(m.body)})
		}
		return out, nil
	})
}

func batchOutgoing(e types.SendMessageBatchRequestEntry) outgoing {
	return outgoing{e.MessageBody, e.DelaySeconds, e.MessageAttributes, e.MessageGroupId, e.MessageDeduplicationId}
}

// refuse gives the failure of one entry, nil if it can be sent.
func (s *SQS) refuse(q *queue, e types.SendMessageBatchRequestEntry) *types.BatchResultErrorEntry {
	if s.FailEntry != nil {
		if failed := s.FailEntry(e); failed != nil {
			out := *failed
			out.Id = e.Id
			return &out
		}
	}
	if _, err := q.check(batchOutgoing(e)); err != nil {
		reason := reasonOf(err)
		code := "InvalidParameterValue"
		if _, contents := err.(*types.InvalidMessageContents); contents {
			code = "InvalidMessageContents"
		}
		return &types.BatchResultErrorEntry{Id: e.Id, Code: aws.String(code), Message: reason.Message, SenderFault: true}
	}
	return nil
}

func checkBatch(entries []types.SendMessageBatchRequestEntry) error {
	if len(entries) == 0 {
		return &types.EmptyBatchRequest{ErrorCodeOverride: queryCode("EmptyBatchRequest"), Message: aws.String("There should be at least one SendMessageBatchRequestEntry in the request.")}
	}
	if len(entries) > maxBatch {
		return &types.TooManyEntriesInBatchRequest{ErrorCodeOverride: queryCode("TooManyEntriesInBatchRequest"), Message: aws.String(fmt.Sprintf("Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(entries)))}
	}
	seen := map[string]bool{}
	for _, e := range entries {
		id := aws.ToString(e.Id)
		if id == "" || len(id) > 80 || strings.ContainsFunc(id, func(r rune) bool { return r > 0x7f || !wordByte(byte(r)) && r != '-' }) {
			return &types.InvalidBatchEntryId{ErrorCodeOverride: queryCode("InvalidBatchEntryId"), Message: aws.String(fmt.Sprintf("A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long; it is %q.", id))}
		}
		if seen[id] {
			return &types.BatchEntryIdsNotDistinct{ErrorCodeOverride: queryCode("BatchEntryIdsNotDistinct"), Message: aws.String("Id " + id + " repeated.")}
		}
		seen[id] = true
	}
	return nil
}

// expire drops what is older than the queue keeps.
func (q *queue) expire(now time.Time) {
	kept := q.messages[:0]
	for _, m := range q.messages {
		if now.Sub(m.sent) < time.Duration(q.retention)*time.Second {
			kept = append(kept, m)
		}
	}
	clear(q.messages[len(kept):])
	q.messages = kept
}

// ReceiveMessage takes up to 10 visible messages and hides them. A message
// that has been received maxReceiveCount times goes to the dead-letter queue
// instead, at this moment, as on AWS; it keeps its id and the time it was sent.
func (s *SQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return serve(ctx, s, "ReceiveMessage", in, func(in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		want, hide := int(in.MaxNumberOfMessages), int(in.VisibilityTimeout)
		if want == 0 {
			want = 1
		}
		if hide == 0 {
			hide = q.visibility // the SDK does not send a zero
		}
		switch {
		case want < 1 || want > maxBatch:
			return nil, invalidValue("Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and %d, if provided.", want, maxBatch)
		case hide < 0 || hide > maxVisibility:
			return nil, invalidValue("Value %d for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= %d, if provided.", hide, maxVisibility)
		case in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20:
			return nil, invalidValue("Value %d for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.", in.WaitTimeSeconds)
		}
		out := &sqs.ReceiveMessageOutput{}
		for _, m := range s.visible(q) {
			if len(out.Messages) == want {
				break
			}
			if q.maxReceive > 0 && m.received >= q.maxReceive {
				s.bury(q, m)
				continue
			}
			s.hand(m, time.Duration(hide)*time.Second)
			out.Messages = append(out.Messages, m.shown(in))
		}
		return out, nil
	})
}

// visible lists the messages that can be received now, longest visible first.
func (s *SQS) visible(q *queue) []*message {
	now := s.clock()
	var out []*message
	for _, m := range q.messages {
		if !m.visibleAt.After(now) {
			out = append(out, m)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if !out[i].visibleAt.Equal(out[j].visibleAt) {
			return out[i].visibleAt.Before(out[j].visibleAt)
		}
		return out[i].number < out[j].number
	})
	if s.Shuffle != nil {
		s.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// NextVisible is when the first message of a queue can be received; zero where
// it holds none.
func (s *SQS) NextVisible(url string) (at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(&url)
	if err != nil {
		return at
	}
	for _, m := range q.messages {
		if at.IsZero() || m.visibleAt.Before(at) {
			at = m.visibleAt
		}
	}
	return at
}

// hand notes that a message is being received.
func (s *SQS) hand(m *message, hide time.Duration) {
	now := s.clock()
	s.nextID++
	if m.received == 0 {
		m.firstAt = now
	}
	m.received++
	m.receipt = fmt.Sprintf("receipt-%s-%d", m.id, s.nextID)
	m.receivedAt, m.visibleAt = now, now.Add(hide)
}

// bury moves a message to the dead-letter queue, visible there at once.
func (s *SQS) bury(q *queue, m *message) {
	q.drop(m)
	m.receipt, m.visibleAt, m.source = "", s.clock(), q.arn
	dead := s.queues[q.deadLetter]
	dead.messages = append(dead.messages, m)
}

func (q *queue) drop(m *message) {
	for i, have := range q.messages {
		if have == m {
			q.messages = append(q.messages[:i], q.messages[i+1:]...)
			return
		}
	}
}

// shown renders a message with the attributes that were asked for.
func (m *message) shown(in *sqs.ReceiveMessageInput) types.Message {
	out := types.Message{MessageId: aws.String(m.id), Body: aws.String(m.body), MD5OfBody: bodyMD5(m.body), ReceiptHandle: aws.String(m.receipt), Attributes: map[string]string{}}
	all := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.received),
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.firstAt.UnixMilli(), 10),
		"SenderId":                         "000000000000",
	}
	for name, v := range m.system {
		all[name] = v
	}
	if m.source != "" {
		all["DeadLetterQueueSourceArn"] = m.source
	}
	asked := map[string]bool{}
	for _, name := range in.MessageSystemAttributeNames {
		asked[string(name)] = true
	}
	for _, name := range in.AttributeNames {
		asked[string(name)] = true
	}
	for name, v := range all {
		if asked["All"] || asked[name] {
			out.Attributes[name] = v
		}
	}
	for name, v := range m.attributes {
		for _, pattern := range in.MessageAttributeNames {
			prefix, wild := strings.CutSuffix(pattern, ".*")
			if pattern == "All" || pattern == name || wild && strings.HasPrefix(name, prefix) {
				if out.MessageAttributes == nil {
					out.MessageAttributes = map[string]types.MessageAttributeValue{}
				}
				out.MessageAttributes[name] = v
			}
		}
	}
	return out
}

// held finds the message of a receipt handle; nil if it is gone, or was
// received again since.
func (q *queue) held(receipt *string) (*message, error) {
	if !strings.HasPrefix(aws.ToString(receipt), "receipt-") {
		return nil, &types.ReceiptHandleIsInvalid{Message: aws.String("The input receipt handle is invalid: " + aws.ToString(receipt))}
	}
	for _, m := range q.messages {
		if m.receipt == *receipt {
			return m, nil
		}
	}
	return nil, nil
}

// DeleteMessage deletes a message by its latest receipt. An older receipt, or
// one of a message that is gone, succeeds and deletes nothing.
func (s *SQS) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return serve(ctx, s, "DeleteMessage", in, func(in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		m, err := q.held(in.ReceiptHandle)
		if err != nil {
			return nil, err
		}
		if m != nil {
			q.drop(m)
		}
		return &sqs.DeleteMessageOutput{}, nil
	})
}

// ChangeMessageVisibility hides a message for so many seconds from now; 0
// shows it at once. Altogether it can be hidden 12 hours from its receipt on.
func (s *SQS) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return serve(ctx, s, "ChangeMessageVisibility", in, func(in *sqs.ChangeMessageVisibilityInput) (*sqs.ChangeMessageVisibilityOutput, error) {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		m, err := q.held(in.ReceiptHandle)
		if err != nil {
			return nil, err
		}
		now, hide := s.clock(), time.Duration(in.VisibilityTimeout)*time.Second
		switch {
		case in.VisibilityTimeout < 0 || in.VisibilityTimeout > maxVisibility:
			return nil, invalidValue("Value %d for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and %d.", in.VisibilityTimeout, maxVisibility)
		case m == nil:
			return nil, invalidValue("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", aws.ToString(in.ReceiptHandle))
		case !m.visibleAt.After(now):
			return nil, &types.MessageNotInflight{ErrorCodeOverride: queryCode("MessageNotInflight"), Message: aws.String("The specified message isn't in flight.")}
		case now.Add(hide).Sub(m.receivedAt) > maxVisibility*time.Second:
			return nil, invalidValue("Value %d for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [%d seconds].", in.VisibilityTimeout, maxVisibility)
		}
		m.visibleAt = now.Add(hide)
		return &sqs.ChangeMessageVisibilityOutput{}, nil
	})
}
