//go:build cloud

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// quietly invokes a function from another goroutine than the test's.
func quietly(function string) ([]byte, error) {
	out, err := lambda.NewFromConfig(cloud.aws).Invoke(context.Background(), &lambda.InvokeInput{FunctionName: aws.String(cloud.outputs[function]), Payload: []byte(`{}`)})
	if err != nil {
		return nil, err
	}
	if out.FunctionError != nil {
		return nil, fmt.Errorf("%s: %s: %s", function, *out.FunctionError, out.Payload)
	}
	return out.Payload, nil
}

// jobGrace is how long the local profile waits for a job to show.
const jobGrace = 5 * time.Second

// N8: a dispatcher dies between claim and start. Nothing is offered before the grace is over; then the same job is.
func TestN8ALostStartIsOfferedAgainUnderTheSameName(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "lost-start", nil)
	id := rerun(t, s.workspaces[0], "lost-start", december)
	claimed := s.claim(t, id)
	release()
	r := s.settled(t, id, snapshot.Published)
	if r.Job != 1 || r.Attempts != 1 || r.Failures != 0 || !strings.HasSuffix(r.Execution, ":"+claimed.JobName()) {
		t.Fatalf("job %d, attempts %d, failures %d, execution %q; want the first job offered again", r.Job, r.Attempts, r.Failures, r.Execution)
	}
	if waited := r.StartedAt.Sub(claimed.ClaimedAt); waited < jobGrace {
		t.Errorf("the job was offered again and began %s after its claim; want that it is waited for, %s", waited, jobGrace)
	}
}

// N7: a job closed without ever having begun its version, since it was started with another input: job_lost, and the next
// claim has a new name.
func TestN7AJobThatClosedBeforeItBeganIsLost(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "closed", nil)
	id := rerun(t, s.workspaces[0], "closed", december)
	claimed := s.claim(t, id)
	stray := startStray(t, claimed.JobName())
	closes(t, snapshot.Run{Execution: stray}, sfntypes.ExecutionStatusFailed)
	release()
	r := s.settled(t, id, snapshot.Published)
	if r.Job != 2 || r.Failures != 1 || r.ErrorCode != "job_lost" || !strings.Contains(r.ErrorText, "FAILED") {
		t.Fatalf("job %d, %d failures, %s: %s; want job 2 after job_lost", r.Job, r.Failures, r.ErrorCode, r.ErrorText)
	}
}

// A person aborts the execution. Nobody tells of it: the reconciler finds it, and the next attempt goes on at the cursor.
func TestAnExecutionAbortedByHandIsFoundByTheReconciler(t *testing.T) {
	scene(t)
	s := shelved(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "aborted", inChunks(4, 4))
	id := rerun(t, s.workspaces[0], "aborted", december)
	r := s.until(t, id, "the first chunks", func(r snapshot.Run) bool { return r.Cursor.Chunk >= 5 && r.Execution != "" })
	abort(t, r)
	s.lost(t, id)
	r = s.settled(t, id, snapshot.Published)
	if r.Job != 2 || r.Attempts != 2 || r.Failures != 1 || r.Generation != 1 {
		t.Fatalf("job %d, attempts %d, failures %d, generation %d; want a second attempt that goes on in the first generation; timeline %q", r.Job, r.Attempts, r.Failures, r.Generation, r.Timeline)
	}
}

// lost waits until the reconciler has settled the attempt of a version whose job has closed.
func (s shelf) lost(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the settling of "+id+" as job_lost", func() (bool, string) {
		reconcileTick(t)
		r := s.run(t, id)
		return r.Failures == 1 && r.ErrorCode == "job_lost", fmt.Sprintf("%s, %d failures, %s", r.State, r.Failures, r.ErrorCode)
	})
	if c := s.caps(t); len(c.Slots) > 1 {
		t.Errorf("slots %v are held; want at most that of the next attempt", c.Slots)
	}
}

// A settle that never came: the workflow without what catches a step's error. The execution fails, the row knows nothing,
// and the reconciler settles the attempt.
func TestALostSettleIsFoundByTheReconciler(t *testing.T) {
	scene(t)
	s := shelved(t, 2, 1, 1)
	s.define(t, s.workspaces[0], "lost-settle", func(d *snapshot.Definition) { d.Mode, d.Control = snapshot.Chunked, falseControl })
	restore := rework(t, func(state map[string]any) { delete(state, "Catch") })
	id := rerun(t, s.workspaces[0], "lost-settle", december)
	r := s.until(t, id, "validation", func(r snapshot.Run) bool { return r.State == snapshot.Validating && r.Execution != "" })
	closes(t, r, sfntypes.ExecutionStatusFailed)
	if r := s.run(t, id); r.State != snapshot.Validating || r.Failures != 0 {
		t.Fatalf("%s with %d failures; want that nobody has settled it", r.State, r.Failures)
	}
	restore()
	s.lost(t, id)
	// The next attempt's own settle is heard: it reads everything again, and finds the mismatch.
	r = s.until(t, id, "the second failure", func(r snapshot.Run) bool { return r.Failures == 2 })
	if r.ErrorCode != "validation_mismatch" || r.Job != 2 || r.Generation != 2 {
		t.Errorf("%s of job %d in generation %d; want validation_mismatch of job 2 in generation 2", r.ErrorCode, r.Job, r.Generation)
	}
	act(t, id, "cancel")
}
