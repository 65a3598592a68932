package boot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
	"almanac/internal/storetest"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const testMachine = "arn:aws:states:eu-central-1:111122223333:stateMachine:almanac-test-attempts"

func snapshotFunction(machine string) *Function {
	return &Function{Config: Config{Stage: "test", SnapshotsTable: "Snapshots", SnapshotsBucket: "snapshots", DataBucket: "data", AttemptMachine: machine,
		SnapshotDispatch: "dispatch", SnapshotPlan: "plan", SnapshotTiming: snapshot.DefaultTiming(), Timing: schedule.DefaultTiming()},
		AWS: aws.Config{Region: "eu-central-1"}, Log: slog.New(slog.DiscardHandler), Store: store.New(nil, "Schedules", "test"), Count: NewMetrics(io.Discard, "", "test", time.Now),
		Clocks: schedule.Clocks{Wall: time.Now, Business: func(context.Context) (time.Time, error) { return time.Now(), nil }}}
}

func TestSnapshotFunctionsAreWhole(t *testing.T) {
	f := snapshotFunction(testMachine)
	p, err := f.Planner()
	if err != nil || p.Ledger == nil || p.Watermark == nil || p.Jobs == nil || p.Dispatch == nil || p.Clocks.Business == nil || p.Token == nil || p.Count == nil || p.Timing.Validate() != nil {
		t.Errorf("planner %+v, %v", p, err)
	}
	d, err := f.SnapshotDispatcher()
	if err != nil || d.Ledger == nil || d.Jobs == nil || d.Off == nil || d.Clocks.Wall == nil || d.Count == nil || d.Timing.Validate() != nil {
		t.Errorf("dispatcher %+v, %v", d, err)
	}
	r, err := f.Reconciler()
	if err != nil || r.Ledger == nil || r.Jobs == nil || r.Objects == nil || r.Dispatch == nil || r.Off == nil || r.Clocks.Business == nil || r.Count == nil || r.Timing.Validate() != nil {
		t.Errorf("reconciler %+v, %v", r, err)
	}
	if s := f.Stepper(); s.Run == nil || s.Busy == nil || s.Busy() {
		t.Errorf("stepper %+v", s)
	}
	m, err := f.Months()
	if e := m.Editor; err != nil || m.Ledger == nil || e.Ledger == nil || e.Watermark == nil || e.Serves == nil || e.Queries == nil || e.Jobs == nil || e.Dispatch == nil || e.Token == nil || e.Timing.Validate() != nil ||
		m.Board.Ledger == nil || m.Board.Clocks.Business == nil || m.Files.Ledger == nil || m.Files.Objects == nil || m.Planner.Function != "plan" || m.Sign == nil {
		t.Errorf("months %+v, %v", m, err)
	}
	none := snapshotFunction("almanac")
	if _, err := none.Months(); err == nil {
		t.Error("months are wired over a state machine that is none")
	}
	_, planErr := none.Planner()
	_, dispatchErr := none.SnapshotDispatcher()
	_, reconcileErr := none.Reconciler()
	for _, err := range []error{planErr, dispatchErr, reconcileErr} {
		if err == nil || !strings.Contains(err.Error(), `"almanac"; want its ARN`) {
			t.Errorf("a state machine that is none: %v", err)
		}
	}
}

func TestObjectTokensAreSmallLettersAndDigits(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token := objectToken()
		if len(token) != 32 || strings.Trim(token, "0123456789abcdef") != "" || seen[token] {
			t.Fatalf("%q", token)
		}
		seen[token] = true
	}
}

func TestTheSnapshotsEnvironmentIsValidated(t *testing.T) {
	timing, err := json.Marshal(snapshot.DefaultTiming())
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]string{EnvStage: "prod", EnvSchedulesTable: "Schedules", EnvSnapshotsTable: "Snapshots", EnvSnapshotsBucket: "snapshots",
		EnvAttemptMachine: testMachine, EnvSnapshotDispatch: "dispatch", EnvSnapshotTiming: string(timing)}
	need := []string{EnvSnapshotsTable, EnvSnapshotsBucket, EnvAttemptMachine, EnvSnapshotDispatch}
	with := func(name, value string) func(string) string {
		env := maps.Clone(right)
		env[name] = value
		return func(n string) string { return env[n] }
	}
	c, err := Environment(with(EnvStage, "prod"), need...)
	if err != nil || c.SnapshotsTable != "Snapshots" || c.SnapshotsBucket != "snapshots" || c.AttemptMachine != testMachine || c.SnapshotDispatch != "dispatch" ||
		c.SnapshotTiming.Validate() != nil || c.SnapshotTiming.PageSize != snapshot.DefaultTiming().PageSize {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Environment(with(EnvSnapshotTiming, ""), need...); err != nil || c.SnapshotTiming.Validate() != nil {
		t.Errorf("no %s means the figures of the specification: %v", EnvSnapshotTiming, err)
	}
	for _, name := range need {
		if _, err := Environment(with(name, " "), need...); err == nil || !strings.Contains(err.Error(), name+` is " "; want a value`) {
			t.Errorf("%s absent: %v", name, err)
		}
	}
	for bad, want := range map[string]string{"fast": "SNAPSHOT_TIMING", `{"speed":5}`: "speed", `{"page_size":5}`: "retry_delays has 0 delays; want 3", `{"page_size":"5"}`: "page_size"} {
		if _, err := Environment(with(EnvSnapshotTiming, bad), need...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("timing %s: %v", bad, err)
		}
	}
	for _, service := range []string{"SFN", "LAMBDA"} {
		env := maps.Clone(right)
		env[EnvLocal], env["AWS_ENDPOINT_URL"], env["AWS_ENDPOINT_URL_"+service] = "ministack", "http://127.0.0.1:4566", "https://example.com"
		if _, err := Environment(func(n string) string { return env[n] }, need...); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL_"+service+" is") {
			t.Errorf("%s of another machine: %v", service, err)
		}
	}
}

// reported runs a handler under the Go runtime's own client, as Lambda does, and returns the error that it reports: what
// Step Functions is given. The client ends the process when the runtime's API is gone; answering slowly forever keeps it.
func reported(t *testing.T, handler any) (errorType, message string) {
	t.Helper()
	got := make(chan messages.InvokeResponse_Error, 1)
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			if asked.Add(1) > 1 {
				<-r.Context().Done()
				return
			}
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", "4102444800000")
			io.WriteString(w, `{"step":"generate","run":"r","job":1}`)
			return
		}
		var e messages.InvokeResponse_Error
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		got <- e
	}))
	t.Setenv("AWS_LAMBDA_RUNTIME_API", strings.TrimPrefix(api.URL, "http://"))
	go lambda.Start(handler) // it never ends; neither does the server
	e := <-got
	return e.Type, e.Message
}

func TestStepsErrorsKeepTheirNamesOnTheWayToTheWorkflow(t *testing.T) {
	var failed error
	s := Stepper{Busy: func() bool { return false }, Run: func(_ context.Context, in snapshot.StepInput) (snapshot.Result, error) {
		if in.Step != snapshot.StepGenerate || in.Run != "r" || in.Job.Job != 1 {
			t.Errorf("given %+v", in)
		}
		return snapshot.Result{}, failed
	}}
	for name, err := range map[string]error{
		snapshot.NamePassing:   snapshot.Passing{Failure: failure.New(failure.QueryTimeout, "slow")},
		snapshot.NameRefused:   snapshot.Refused{Failure: failure.New(failure.QueryInvalid, "wrong")},
		snapshot.NameDisturbed: snapshot.Disturbed{Failure: failure.New(failure.StoreThrottled, "busy")},
	} {
		failed = err
		kind, message := reported(t, s.Step)
		cause, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message})
		back := snapshot.Caught{Error: kind, Cause: string(cause)}.Failure()
		if kind != name || back.Code != failure.From(err).Code {
			t.Errorf("reported as %q %q, read back as %s; want %s %s", kind, message, back.Code, name, failure.From(err).Code)
		}
	}
}

func TestAStepIsNotBegunWhereAnEngineDoesNotStop(t *testing.T) {
	s := Stepper{Busy: func() bool { return true }, Run: func(context.Context, snapshot.StepInput) (snapshot.Result, error) {
		t.Error("begun")
		return snapshot.Result{}, nil
	}}
	_, err := s.Step(t.Context(), snapshot.StepInput{Step: snapshot.StepGenerate})
	var ends messages.InvokeResponse_Error
	if !errors.As(err, &ends) || !ends.ShouldExit || ends.Type != snapshot.NameDisturbed {
		t.Errorf("%v; want the process ended and the step tried again", err)
	}
}

func TestTheSwitchOfDispatchHoldsThatOfSnapshots(t *testing.T) {
	db := memcloud.NewDynamo(time.Now)
	text, hash, sort := dynamotypes.ScalarAttributeTypeS, dynamotypes.KeyTypeHash, dynamotypes.KeyTypeRange
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("Schedules"), BillingMode: dynamotypes.BillingModePayPerRequest,
		KeySchema:            []dynamotypes.KeySchemaElement{{AttributeName: aws.String(schema.PK), KeyType: hash}, {AttributeName: aws.String(schema.SK), KeyType: sort}},
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{AttributeName: aws.String(schema.PK), AttributeType: text}, {AttributeName: aws.String(schema.SK), AttributeType: text}}})
	if err != nil {
		t.Fatal(err)
	}
	f := snapshotFunction(testMachine)
	f.Store = store.New(db, "Schedules", "test")
	was := schedule.Control{}
	for _, now := range []schedule.Control{{DispatchOff: true}, {SendOff: true}, {}} {
		if err := f.Store.Switch(t.Context(), was, now, schedule.Audit{ID: Token(), Who: "ann", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		was = now
		if off, err := f.dispatchOff(t.Context()); err != nil || off != now.DispatchOff {
			t.Errorf("%+v: off %t, %v", now, off, err)
		}
	}
	db.Before = func(context.Context, memcloud.Call) error { return errors.New("cut") }
	f.Store.Pause = func(context.Context, time.Duration) error { return errors.New("no time") }
	if _, err := f.dispatchOff(t.Context()); err == nil {
		t.Error("a switch that cannot be read is an error, not on")
	}
}

// TestASourceServesWhoItIsOpenTo: what a definition's source is held against.
func TestASourceServesWhoItIsOpenTo(t *testing.T) {
	wall := func() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }
	db := memcloud.NewDynamo(wall)
	f := snapshotFunction(testMachine)
	f.Store = store.New(db, "Schedules", "test")
	if _, err := f.serves(t.Context(), snapshot.Definition{Source: "flights"}, "EWR"); err == nil {
		t.Error("a store that is not there says who may use what")
	}
	if _, err := db.CreateTable(t.Context(), storetest.TableInput("Schedules")); err != nil {
		t.Fatal(err)
	}
	if err := f.Store.PutSource(t.Context(), schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "f.sqlite", Workspaces: []string{"EWR"}}, schedule.Audit{ID: "a", Subject: "s", At: wall()}); err != nil {
		t.Fatal(err)
	}
	for of, want := range map[[2]string]bool{{"flights", "EWR"}: true, {"flights", "JFK"}: false, {"nothing", "EWR"}: false} {
		if got, err := f.serves(t.Context(), snapshot.Definition{Source: of[0]}, of[1]); err != nil || got != want {
			t.Errorf("source %s serves %s: %v, %v", of[0], of[1], got, err)
		}
	}
	lake := schedule.SourceConfig{Name: "lake", Engine: "athena", Athena: &schedule.AthenaSource{Workgroup: "w", Database: "lake"}, Workspaces: []string{"EWR"}}
	if err := f.Store.PutSource(t.Context(), lake, schedule.Audit{ID: "b", Subject: "s", At: wall()}); err != nil {
		t.Fatal(err)
	}
	d := snapshot.Definition{Source: "lake", Key: "id", Mode: snapshot.Auto, Checks: snapshot.Checks{NotNull: []string{"at"}, Types: map[string]string{"at": "timestamp"}, DriftSums: map[string]snapshot.Drift{"delay": {}}}}
	for _, mode := range []snapshot.Mode{snapshot.Auto, snapshot.Chunked} {
		d.Mode = mode
		if got, err := f.serves(t.Context(), d, "EWR"); err != nil || !got {
			t.Errorf("mode %s of Athena: %v, %v", mode, got, err)
		}
	}
	for field, change := range map[string]func(*snapshot.Definition){
		"mode":                    func(d *snapshot.Definition) { d.Mode = snapshot.Single },
		"key":                     func(d *snapshot.Definition) { d.Key = "ID" },
		"checks.not_null[0]":      func(d *snapshot.Definition) { d.Checks.NotNull = []string{"At"} },
		"checks.types.At":         func(d *snapshot.Definition) { d.Checks.Types = map[string]string{"At": "timestamp"} },
		"checks.drift_sums.dElay": func(d *snapshot.Definition) { d.Checks.DriftSums = map[string]snapshot.Drift{"dElay": {}} },
	} {
		wrong := d
		change(&wrong)
		var ps input.Problems
		if got, err := f.serves(t.Context(), wrong, "EWR"); got || !errors.As(err, &ps) || len(ps) != 1 || ps[0].Field != field || !strings.Contains(err.Error(), "Athena") {
			t.Errorf("%s: %v, %v", field, got, err)
		}
		if got, err := f.serves(t.Context(), wrong, "JFK"); got || err != nil {
			t.Errorf("%s, for whom it is not open: %v, %v", field, got, err)
		}
	}
}

func TestAFileOfAMonthIsSignedUnderItsName(t *testing.T) {
	presign := s3.NewPresignClient(s3.New(s3.Options{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}))
	address, err := signer(presign, "months")(t.Context(), "snapshots/EWR/c.csv.gz", "EWR.csv.gz", time.Minute)
	u, bad := url.Parse(address)
	if err != nil || bad != nil || !strings.HasPrefix(u.Host, "months.") || u.Path != "/snapshots/EWR/c.csv.gz" || u.Query().Get("X-Amz-Expires") != "60" || !strings.Contains(u.Query().Get("response-content-disposition"), "EWR.csv.gz") {
		t.Errorf("%s, %v", address, err)
	}
	refusing := s3.NewPresignClient(s3.New(s3.Options{Region: "eu-central-1"}))
	if _, err := signer(refusing, "")(t.Context(), "x", "x", time.Minute); err == nil {
		t.Error("an address without a bucket is signed")
	}
}
