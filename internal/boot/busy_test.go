package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/schedule"
	"almanac/internal/source/sqlite"

	"github.com/aws/aws-lambda-go/lambda"
)

// consumerProcess marks the process that TestABusyProcessAnswersAndEnds starts.
const consumerProcess = "ALMANAC_TEST_CONSUMER"

// TestConsumerProcess is that process: a consumer whose engine does not stop after its first message.
func TestConsumerProcess(t *testing.T) {
	if os.Getenv(consumerProcess) == "" {
		t.Skip("started by TestABusyProcessAnswersAndEnds")
	}
	busy := false
	lambda.Start(boot.Consumer{Log: boot.NewLogger(os.Stdout), Busy: func() bool { return busy },
		Handle: func(_ context.Context, body string) schedule.Disposition {
			fmt.Println("handled", body)
			busy = body == "spins"
			return schedule.Disposition{}
		},
		Hide: func(_ context.Context, receipt string, d time.Duration) error {
			fmt.Println("hidden", receipt, d)
			return nil
		}}.Batch)
}

// TestABusyProcessAnswersAndEnds runs a consumer against the runtime's interface: the batch that started the engine is
// answered, the next one fails untouched, and only then the process ends.
func TestABusyProcessAnswersAndEnds(t *testing.T) {
	var mu sync.Mutex
	var said []string
	bodies := []string{"good", "spins", "next", "never"}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			body := bodies[min(asked, len(bodies)-1)]
			asked++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", body)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
			json.NewEncoder(w).Encode(batch(body))
			return
		}
		b, _ := io.ReadAll(r.Body)
		parts := strings.Split(r.URL.Path, "/")
		said = append(said, strings.Join(parts[len(parts)-2:], " ")+" "+string(b))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestConsumerProcess$")
	child.Env = append(os.Environ(), consumerProcess+"=1", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"))
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("the process did not end by itself: %v\n%s", err, out)
	}
	want := []string{`good response {"batchItemFailures":[]}`, `spins response {"batchItemFailures":[]}`, `next error {"errorMessage":"the engine of`}
	if len(said) != 3 || asked != 3 || !slices.EqualFunc(said, want, strings.HasPrefix) {
		t.Errorf("asked %d times, said %q", asked, said)
	}
	for _, line := range []string{"handled good", "handled spins", "hidden receipt-next 1s", "the process ends"} {
		if !bytes.Contains(out, []byte(line)) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if bytes.Contains(out, []byte("handled next")) {
		t.Errorf("the busy process took a message:\n%s", out)
	}
}

func TestTheConsumerAsksItsSources(t *testing.T) {
	f := &boot.Function{Log: boot.NewLogger(io.Discard)}
	c := f.Consumer(&schedule.Deliverer{Sources: &boot.Sources{SQLite: &sqlite.Fetcher{}}})
	if c.Busy == nil || c.Busy() {
		t.Error("the consumer cannot see a busy engine, or sees one that is not there")
	}
}
