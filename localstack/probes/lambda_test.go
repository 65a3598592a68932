//go:build cloud

package probes

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

func TestLambdaReusesItsProcess(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	first, _, err := invoke(t, f, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := invoke(t, f, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	if first.PID == 0 || first.PID != second.PID {
		unlike(t, "two invocations one after the other ran in processes %d and %d, want one process", first.PID, second.PID)
	}
	if first.Remaining < 25_000 || first.Remaining > 30_000 {
		unlike(t, "the function sees %d ms until its deadline, want nearly its time-out of 30 s", first.Remaining)
	}
	if first.Env["AWS_ENDPOINT_URL"] != endpoint {
		unlike(t, "the function's endpoint is %q, want %q", first.Env["AWS_ENDPOINT_URL"], endpoint)
	}
	// LocalStack marks its keys, so that nobody takes them for AWS's: LSIA.
	if key := first.Env["AWS_ACCESS_KEY_ID"]; !strings.HasPrefix(key, "ASIA") && !strings.HasPrefix(key, "LSIA") {
		unlike(t, "the function's key is %q, want one of its role's session", first.Env["AWS_ACCESS_KEY_ID"])
	}
}

func TestLambdaFunctionsShareFolders(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	one, two := name(t, "-1"), name(t, "-2")
	makeFunction(t, one, nil)
	makeFunction(t, two, nil)
	at, _, err := invoke(t, one, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(at.Temp, "probe-"+run)
	if _, failed, err := invoke(t, one, map[string]any{"do": "write", "path": path, "text": "from another function"}); err != nil || failed != "" {
		t.Fatal(err, failed)
	}
	got, _, err := invoke(t, two, map[string]any{"do": "read", "path": path})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != "from another function" {
		like(t, "a second function reads %q, error %q", got.Text, got.Error)
	}
}

func TestLambdaInheritsTheEmulatorsEnvironment(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	got, _, err := invoke(t, f, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Env["AUTH"] != "true" || got.Env["STATE_DIR"] == "" {
		like(t, "the function sees AUTH=%q, STATE_DIR=%q", got.Env["AUTH"], got.Env["STATE_DIR"])
	}
}

func TestLambdaMemoryIsNotLimited(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil) // 128 MB
	if _, failed, err := invoke(t, f, map[string]any{"do": "allocate", "bytes": 200 << 20}); err != nil || failed != "" {
		like(t, "200 MB in a function of 128 MB: %v %s", err, failed)
	}
}

func TestLambdaTimeoutEndsTheProcess(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, func(in *lambda.CreateFunctionInput) { in.Timeout = aws.Int32(1) })
	before, _, err := invoke(t, f, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, failed, err := invoke(t, f, map[string]any{"do": "sleep", "ms": 20_000})
	if err != nil {
		t.Fatal(err)
	}
	if failed == "" || !strings.Contains(got.Message, "timed out") || time.Since(began) > 8*time.Second {
		unlike(t, "a function that sleeps beyond its second: %s %q after %s, want a time-out", failed, got.Message, time.Since(began))
	}
	after, _, err := invoke(t, f, map[string]any{"do": "identity"})
	if err != nil {
		t.Fatal(err)
	}
	if after.PID == before.PID {
		unlike(t, "process %d lives on after its time-out", after.PID)
	}
}

func TestLambdaCrashIsAnErrorAndANewProcessFollows(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	got, failed, err := invoke(t, f, map[string]any{"do": "exit"})
	if err != nil {
		t.Fatal(err)
	}
	if failed == "" || got.ErrorType != "Runtime.ExitError" {
		unlike(t, "a function that exits: %q, %+v, want Runtime.ExitError", failed, got)
	}
	if again, failed, err := invoke(t, f, map[string]any{"do": "identity"}); err != nil || failed != "" || again.PID == 0 {
		unlike(t, "the invocation after a crash: %v %s", err, failed)
	}
}

func TestLambdaReservedConcurrency(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	if _, err := functions().PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: &f, ReservedConcurrentExecutions: aws.Int32(1)}); err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		if _, _, err := invoke(t, f, map[string]any{"do": "sleep", "ms": 4000, "key": t.Name() + run}); err != nil {
			t.Error(err)
		}
	})
	waitDeliveries(t, t.Name()+run, 1, 20*time.Second)
	if _, _, err := invoke(t, f, map[string]any{"do": "identity"}); codeOf(err) != "TooManyRequestsException" {
		unlike(t, "a second invocation beside a reserved one: %v, want TooManyRequestsException", err)
	}
	held.Wait()
}

func TestLambdaAsyncRetriesComeEarly(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f, key := name(t, ""), t.Name()+run
	makeFunction(t, f, nil)
	async(t, f, key)
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html: two retries, one minute and
	// two minutes later.
	all := waitDeliveries(t, key, 3, 40*time.Second)
	if gap := all[1].At.Sub(all[0].At); gap > 20*time.Second {
		like(t, "the first retry came after %s", gap)
	}
}

func TestLambdaAsyncRetryAttemptsZero(t *testing.T) {
	t.Parallel()
	if !asOnAWS(t) {
		return
	}
	f, key := name(t, ""), t.Name()+run
	makeFunction(t, f, nil)
	if _, err := functions().PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: &f, MaximumRetryAttempts: aws.Int32(0), MaximumEventAgeInSeconds: aws.Int32(60),
	}); err != nil {
		t.Fatal(err)
	}
	async(t, f, key)
	waitDeliveries(t, key, 1, 20*time.Second)
	// A retry would come after one second (see the probe above); a later event is the proof that time went by.
	later := key + "-later"
	for i := range 6 {
		payload := `{"do":"sleep","ms":800,"key":"` + later + `"}`
		if _, err := functions().Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &f, Payload: []byte(payload)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if all := deliveries(t, key); len(all) != 1 {
		unlike(t, "%d deliveries with no retries allowed, want 1", len(all))
	}
}

func async(t *testing.T, function, key string) {
	t.Helper()
	out, err := functions().Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: &function, InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(`{"do":"fail","key":"` + key + `"}`),
	})
	if err != nil || out.StatusCode != 202 {
		t.Fatalf("asynchronous invocation: %v, %+v", err, out)
	}
}

func TestLambdaResponseMayBeLargerThanSixMegabytes(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	f := name(t, "")
	makeFunction(t, f, nil)
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: 6 MB each for request and response. A NUL
	// takes six bytes in JSON.
	got, failed, err := invoke(t, f, map[string]any{"do": "bytes", "bytes": 2 << 20})
	if err != nil || failed != "" || len(got.Text) != 2<<20 {
		like(t, "a response of 12 MB: %v %s %s", err, failed, got.ErrorType)
	}
}
