package memcloud

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// Held is a message that a queue holds.
type Held struct {
	Body            string
	Sent, VisibleAt time.Time
	Received        int // how often
}

// Messages lists what a queue holds, in the order of sending, for a test that checks the whole world. It meets no hook;
// an unknown queue holds nothing.
func (s *SQS) Messages(url string) (out []Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(&url)
	if err != nil {
		return nil
	}
	for _, m := range q.messages {
		out = append(out, Held{m.body, m.sent, m.visibleAt, m.received})
	}
	return out
}

// Execution is one that was started.
type Execution struct {
	ARN, Input string
	Status     types.ExecutionStatus
	Started    time.Time
}

// Executions lists all that were ever started, by ARN, for a test that checks the whole world. It meets no hook.
func (s *States) Executions() (out []Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, arn := range sortedNames(s.executions) {
		e := s.executions[arn]
		out = append(out, Execution{arn, e.input, e.status, e.started})
	}
	return out
}
