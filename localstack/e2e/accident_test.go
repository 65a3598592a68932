//go:build cloud

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// open gets an address without following it on.
func open(t *testing.T, address string) (status int, location string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := cloud.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), b
}

// drained waits until the delivery queue holds nothing, visible or in work.
func drained(t *testing.T) {
	t.Helper()
	emptied(t, "QueryRunsQueueUrl")
}

// emptied waits until a queue holds no message, visible or in work.
func emptied(t *testing.T, queue string) {
	t.Helper()
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
	eventually(t, "an empty queue", func() (bool, string) {
		out, err := sqs.NewFromConfig(cloud.aws).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(cloud.outputs[queue]), AttributeNames: names})
		if err != nil {
			return false, err.Error()
		}
		a, b := out.Attributes[string(names[0])], out.Attributes[string(names[1])]
		return a == "0" && b == "0", fmt.Sprintf("%s visible, %s in work", a, b)
	})
}

// processes finds the running environments of a function: each is a process of this machine.
func processes(t *testing.T, function string) map[int]map[string]string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			continue // it ended meanwhile, or is not ours
		}
		env := map[string]string{}
		for _, kv := range bytes.Split(b, []byte{0}) {
			k, v, _ := strings.Cut(string(kv), "=")
			env[k] = v
		}
		if env["AWS_LAMBDA_FUNCTION_NAME"] != cloud.outputs[function] || env["AWS_ENDPOINT_URL"] != aws.ToString(cloud.aws.BaseEndpoint) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			t.Fatal(err)
		}
		found[pid] = env
	}
	return found
}

// kill ends every environment of a function in the middle of whatever it does.
func kill(t *testing.T, function string) {
	t.Helper()
	pids := processes(t, function)
	if len(pids) == 0 {
		t.Fatalf("no process of %s runs", function)
	}
	for pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
}

// S7, D9 and V1 on the deployed functions: the worker dies between send and record; the lease ends, the sweep offers
// the run again, the file is reused and the receiver gets the same key and bytes.
func TestS7D9AWorkerKilledBetweenSendAndRecordIsResumed(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("killed-%d", time.Now().UnixNano())
	tell(t, path, map[string]any{"status": 200, "delay": "1500ms"}, map[string]any{"status": 200})
	d := save(t, func(d *schedule.Definition) {
		d.Recipients = append(d.Recipients, hook(path), schedule.Recipient{Email: "after@example.com"})
	})
	run := due(t, d)
	eventually(t, "the first request", func() (bool, string) {
		n := len(hooks(t, path))
		return n > 0, fmt.Sprintf("%d requests", n)
	})
	before, err := cloud.store.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, "DeliverFunction")
	// The dead worker's message stays hidden for the visibility of a crash; it must not be in the way of other tests.
	t.Cleanup(func() { purge(context.Background(), t) })
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if r.Attempts != 2 || r.File == nil || before.File == nil || r.File.Key != before.File.Key {
		t.Fatalf("attempts %d, file %+v before and %+v after; want 2 attempts and one file", r.Attempts, before.File, r.File)
	}
	got := hooks(t, path)
	if len(got) != 2 || got[0].ID != got[1].ID || got[0].BodySHA256 != got[1].BodySHA256 {
		t.Fatalf("requests %+v; want two of one key and equal bytes", got)
	}
	mailed(t, run, 2) // one to each address: the one before the death was not repeated
	if r.Submitted != 3 {
		t.Fatalf("submitted %d, want 3", r.Submitted)
	}
}

// Two workers on one run: while one works, a second message for the same run finds a live lease and goes away.
func TestASecondMessageWhileAWorkerHoldsTheRunDoesNothing(t *testing.T) {
	scene(t)
	path := fmt.Sprintf("held-%d", time.Now().UnixNano())
	tell(t, path, map[string]any{"status": 200, "delay": "1500ms"})
	d := save(t, func(d *schedule.Definition) { d.Recipients = []schedule.Recipient{hook(path)} })
	run := due(t, d)
	eventually(t, "the first request", func() (bool, string) { return len(hooks(t, path)) > 0, "none" })
	for range 3 {
		send(t, "QueryRunsQueueUrl", schedule.EncodeMessage(run))
	}
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	drained(t)
	if n := len(hooks(t, path)); n != 1 || r.Attempts != 1 {
		t.Fatalf("%d requests in %d attempts, want 1 in 1", n, r.Attempts)
	}
}

// A lost message: the queue is purged before anybody reads it, and the sweep offers the run again.
func TestALostMessageIsFoundByTheSweep(t *testing.T) {
	scene(t)
	d := save(t, nil)
	mapping := deliverMapping(t)
	enable(t, mapping, false)
	t.Cleanup(func() { enableFor(context.Background(), t, mapping, true) })
	run := due(t, d)
	purge(t.Context(), t)
	enable(t, mapping, true)
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if !strings.Contains(strings.Join(r.Timeline, "\n"), "offered again") {
		t.Fatalf("timeline %v; want that it was offered again", r.Timeline)
	}
	mailed(t, run, 1)
}

func purge(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := sqs.NewFromConfig(cloud.aws).PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: aws.String(cloud.outputs["QueryRunsQueueUrl"])}); err != nil {
		t.Fatal(err)
	}
}

func deliverMapping(t *testing.T) string {
	t.Helper()
	out, err := lambda.NewFromConfig(cloud.aws).ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(cloud.outputs["DeliverFunction"])})
	if err != nil || len(out.EventSourceMappings) != 1 {
		t.Fatalf("%v, %v; want one event source", out, err)
	}
	return aws.ToString(out.EventSourceMappings[0].UUID)
}

func enable(t *testing.T, mapping string, on bool) {
	t.Helper()
	enableFor(t.Context(), t, mapping, on)
}

// enableFor switches the event source and waits until that is done: a poller that still runs would take a message more.
func enableFor(ctx context.Context, t *testing.T, mapping string, on bool) {
	t.Helper()
	client, wanted := lambda.NewFromConfig(cloud.aws), map[bool]string{true: "Enabled", false: "Disabled"}[on]
	if _, err := client.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: &mapping, Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "event source "+wanted, func() (bool, string) {
		out, err := client.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &mapping})
		if err != nil {
			return false, err.Error()
		}
		return aws.ToString(out.State) == wanted, aws.ToString(out.State)
	})
}

// A poison message passes through the dead-letter queue and is kept for a person; a good one beside it is not held up.
func TestAPoisonMessageIsKeptAndNothingElseIsHeldUp(t *testing.T) {
	scene(t)
	poison := fmt.Sprintf(`{"rum": "not-a-run-%d"}`, time.Now().UnixNano())
	d := save(t, nil)
	send(t, "QueryRunsQueueUrl", poison)
	run := due(t, d)
	want(t, settled(t, run), schedule.Succeeded, "")
	eventually(t, "the record of the poison message", func() (bool, string) {
		letters, err := cloud.store.DeadLetters(t.Context())
		if err != nil {
			return false, err.Error()
		}
		for _, l := range letters {
			if l.Body == poison && strings.Contains(l.Reason, "rum") {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d other records", len(letters))
	})
	drained(t)
}

// A run whose message dies three times without an attempt between is settled, not left.
func TestARunThatNeverStartsIsSettled(t *testing.T) {
	scene(t)
	d := save(t, nil)
	mapping := deliverMapping(t)
	enable(t, mapping, false)
	t.Cleanup(func() { enableFor(context.Background(), t, mapping, true) })
	run := due(t, d)
	for range 3 {
		send(t, "QueryRunsDlqUrl", schedule.EncodeMessage(run))
		before, err := cloud.store.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next look at the dead letter", func() (bool, string) {
			r, err := cloud.store.Run(t.Context(), run)
			if err != nil {
				return false, err.Error()
			}
			return r.Settled() || r.DeadLetters > before.DeadLetters, fmt.Sprintf("%s, %d visits", r.State, r.DeadLetters)
		})
	}
	r, err := cloud.store.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, schedule.Failed, "never_started")
	if n := len(mails(t, run)); n != 0 {
		t.Fatalf("%d mails of a run that never started", n)
	}
}
