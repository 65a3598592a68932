//go:build cloud

// Package e2e drives the deployed functions of a local cloud as users, operators and accidents do: through the API, by
// ticks, by messages, and by killing processes. `scripts/test e2e` starts the cloud and runs it.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/loopback"
	"almanac/internal/schedule"
	"almanac/internal/store"
	"almanac/localstack/e2e/scenario"
	"almanac/scripts/almanac/settings"
	"almanac/scripts/almanac/signin"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// monday is business time at the start of each test that does not say otherwise: 06:00 in New York, in the demo's data.
var monday = time.Date(2013, 5, 6, 10, 0, 0, 0, time.UTC)

// patience bounds every wait for a condition; it is generous, since the machine may be busy.
const patience = 90 * time.Second

// world is the deployed stack as a test sees it.
type world struct {
	name     string // of the cloud
	stack    settings.Stack
	outputs  map[string]string
	receiver string
	aws      aws.Config
	store    *store.Store
	tokens   map[string]string // by group
	http     *http.Client
	users    []user
	rows     *os.File // what became of each scenario
}

// user is a person that the seed made.
type user struct{ Name, Group, Password string }

var cloud world

func TestMain(m *testing.M) {
	if err := cloud.open(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := cloud.rows.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		code = 1
	}
	os.Exit(code)
}

func (w *world) open() error {
	for _, name := range []string{"ALMANAC_CLOUD", "ALMANAC_ENDPOINT", "ALMANAC_OUTPUTS", "ALMANAC_USERS", "ALMANAC_WEBHOOK_RECEIVER"} {
		if os.Getenv(name) == "" {
			return fmt.Errorf("%s is empty; run them by scripts/test e2e", name)
		}
	}
	if w.name = os.Getenv("ALMANAC_CLOUD"); !slices.Contains(scenario.Clouds, w.name) {
		return fmt.Errorf("ALMANAC_CLOUD is %q; want one of %s", w.name, strings.Join(scenario.Clouds, ", "))
	}
	if err := w.openRows(os.Getenv("ALMANAC_SCENARIOS")); err != nil {
		return err
	}
	if err := w.openStack(os.Getenv("ALMANAC_OUTPUTS")); err != nil {
		return err
	}
	w.receiver = os.Getenv("ALMANAC_WEBHOOK_RECEIVER")
	w.aws = aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv("ALMANAC_ENDPOINT")), HTTPClient: loopback.Client(30 * time.Second), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	w.store = store.New(dynamodb.NewFromConfig(w.aws), w.outputs["SchedulesTable"], "local")
	w.http = loopback.Client(30 * time.Second)
	w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return w.signIn()
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// openRows makes the file that the rows go to, empty; without a name they go nowhere.
func (w *world) openRows(name string) (err error) {
	if name == "" {
		name = os.DevNull
	}
	w.rows, err = os.Create(name)
	return err
}

func (w *world) openStack(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if w.stack, err = settings.FromOutputs(b, "local"); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(b, &stacks); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	w.outputs = stacks[w.stack.Name]
	return nil
}

// person signs in as people do: by the command line's own code, in whatever way the cloud's issuer has.
func (w *world) person() signin.SignIn {
	return signin.SignIn{Stack: w.stack, HTTP: w.http, Now: time.Now, Random: rand.Reader}
}

func (w *world) signIn() error {
	if err := readJSON(os.Getenv("ALMANAC_USERS"), &w.users); err != nil {
		return err
	}
	w.tokens = map[string]string{}
	for _, u := range w.users {
		t, err := w.person().Password(context.Background(), u.Name, u.Password)
		if err != nil {
			return err
		}
		w.tokens[u.Group] = t.Access
	}
	return nil
}

// scene begins a test: it finds the scenario in the table, and writes down what became of it. What this cloud cannot show
// is written down with its reason.
func scene(t *testing.T) {
	t.Helper()
	s, listed := scenario.Find(t.Name())
	if !listed {
		t.Fatalf("the table of scenarios does not list %s", t.Name())
	}
	answering(t)
	row := scenario.Row{Cloud: cloud.name, Test: s.Test, Outcome: scenario.OK}
	write := func() {
		if err := scenario.Write(cloud.rows, row); err != nil {
			t.Error(err)
		}
	}
	if reason := s.Not[cloud.name]; reason != "" {
		row.Outcome, row.Reason = scenario.Absent, reason
		write()
		t.Skipf("not on %s: %s", cloud.name, reason)
	}
	t.Cleanup(func() { // the first of the test's clean-ups, so the last that runs
		if t.Failed() {
			row.Outcome = scenario.Failed
		}
		write()
	})
}

// call asks the API as a member of a group ("" for nobody) and returns status and body.
func call(t *testing.T, group, method, path string, body any, headers ...string) (int, []byte) {
	t.Helper()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, cloud.outputs["ApiUrl"]+path, r)
	if err != nil {
		t.Fatal(err)
	}
	if group != "" {
		req.Header.Set("Authorization", "Bearer "+cloud.tokens[group])
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := cloud.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, b
}

// must asks the API as admin and fails the test on any status but a good one.
func must(t *testing.T, method, path string, body any, headers ...string) []byte {
	t.Helper()
	status, b := call(t, "admin", method, path, body, headers...)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, b)
	}
	return b
}

// setClock sets business time; frozen, so that what is due is exactly what the test says.
func setClock(t *testing.T, at time.Time) {
	t.Helper()
	must(t, "PUT", "/clock", map[string]any{"at": at.Format(time.RFC3339), "frozen": true})
}

// tick invokes the dispatcher as the rule does.
func tick(t *testing.T) schedule.Tally {
	t.Helper()
	var tally schedule.Tally
	if err := json.Unmarshal(invoke(t, "DispatchFunction", `{}`), &tally); err != nil {
		t.Fatal(err)
	}
	if tally.Errors > 0 {
		t.Fatalf("the tick met errors: %+v", tally)
	}
	return tally
}

func invoke(t *testing.T, function, event string) []byte {
	t.Helper()
	out, err := lambda.NewFromConfig(cloud.aws).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(cloud.outputs[function]), Payload: []byte(event)})
	if err != nil {
		t.Fatal(err)
	}
	if out.FunctionError != nil {
		t.Fatalf("%s: %s: %s", function, *out.FunctionError, out.Payload)
	}
	return out.Payload
}

// definition is a daily schedule of the demo's data at 06:30 in New York; change makes it the test's own.
func definition(t *testing.T, change func(*schedule.Definition)) schedule.Definition {
	id := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(id) > 50 {
		id = id[:50]
	}
	id = fmt.Sprintf("%s-%d", strings.Trim(id, "-"), time.Now().UnixMilli()%1e9)
	d := schedule.Definition{ID: id, Workspace: "EWR", Name: "Test of " + id, Owner: "ops@example.com", Source: "flights",
		Query: "select flight_id, carrier, flight from flights where origin = :workspace order by flight_id limit 100"}
	d.Recurrence.Cron, d.Recurrence.Zone = "30 6 * * *", "America/New_York"
	d.Recipients = []schedule.Recipient{{Email: id + "@example.com"}}
	if change != nil {
		change(&d)
	}
	return d
}

// save applies a definition with the clock at monday, so that its first occurrence is at 10:30 UTC.
func save(t *testing.T, change func(*schedule.Definition)) schedule.Definition {
	t.Helper()
	must(t, "PUT", "/workspaces/EWR", map[string]any{"id": "EWR", "name": "Newark", "zone": "America/New_York"})
	must(t, "PUT", "/sources/flights", map[string]any{"name": "flights", "engine": "sqlite", "object": "flights.sqlite", "workspaces": []string{"*"}})
	setClock(t, monday)
	d := definition(t, change)
	must(t, "PUT", "/schedules/"+d.ID, d)
	t.Cleanup(func() {
		body, _ := json.Marshal(map[string]string{"reason": "the test is over"})
		req, err := http.NewRequest("DELETE", cloud.outputs["ApiUrl"]+"/schedules/"+d.ID+"?reason=the+test+is+over", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+cloud.tokens["admin"])
		req.Header.Set("Content-Type", "application/json")
		res, err := cloud.http.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
	})
	return d
}

// due moves business time to the first occurrence and ticks; it returns the run's id.
func due(t *testing.T, d schedule.Definition) string {
	t.Helper()
	setClock(t, monday.Add(30*time.Minute))
	tick(t)
	return d.ID + "@2013-05-06T10:30:00Z"
}

// eventually waits for a condition; what it last saw is part of the failure.
func eventually(t *testing.T, what string, look func() (done bool, seen string)) {
	t.Helper()
	await(t.Context(), t, what, look)
}

// answering ends a test at once when the cloud has died: nothing it waits for can come any more.
func answering(t *testing.T) {
	t.Helper()
	address := strings.TrimPrefix(aws.ToString(cloud.aws.BaseEndpoint), "http://")
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatalf("%s no longer answers (%v); see %s, then run scripts/test e2e again", cloud.name, err, filepath.Join(filepath.Dir(os.Getenv("ALMANAC_OUTPUTS")), "logs", "emulator.log"))
	}
	conn.Close()
}

// await is eventually for clean-ups, whose test's context has ended.
func await(ctx context.Context, t *testing.T, what string, look func() (done bool, seen string)) {
	t.Helper()
	awaitWithin(ctx, t, patience, what, look)
}

// awaitWithin is await for what may take longer, or shorter.
func awaitWithin(ctx context.Context, t *testing.T, within time.Duration, what string, look func() (done bool, seen string)) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		done, seen := look()
		if done {
			return
		}
		answering(t)
		if time.Now().After(end) {
			t.Fatalf("%s did not come within %s; last seen: %s", what, within, seen)
		}
		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// settled waits until a run has settled, ticking as the rule does, and returns it.
func settled(t *testing.T, run string) schedule.Run {
	t.Helper()
	var r schedule.Run
	next := time.Now().Add(2 * time.Second)
	eventually(t, "the end of "+run, func() (bool, string) {
		if time.Now().After(next) {
			tick(t)
			next = time.Now().Add(2 * time.Second)
		}
		var err error
		r, err = cloud.store.Run(t.Context(), run)
		if err != nil {
			return false, err.Error()
		}
		return r.Settled(), fmt.Sprintf("%s, attempts %d, %s %s, timeline %v", r.State, r.Attempts, r.ErrorCode, r.ErrorText, r.Timeline)
	})
	return r
}

func want(t *testing.T, r schedule.Run, state schedule.RunState, code string) {
	t.Helper()
	if r.State != state || r.ErrorCode != code {
		t.Fatalf("run %s is %s (%s: %s), want %s %s; timeline %v", r.ID(), r.State, r.ErrorCode, r.ErrorText, state, code, r.Timeline)
	}
}

// request is one delivery that the webhook receiver got.
type request struct {
	ID          string `json:"id"`
	BodySHA256  string `json:"body_sha256"`
	SignatureOK bool   `json:"signature_ok"`
	Answer      int    `json:"answer"`
	Body        string `json:"body_file"`
}

// mail is one message that the mail receiver got.
type mail struct {
	To          []string `json:"to"`
	Subject     string   `json:"subject"`
	Run         string   `json:"run"`
	Unsubscribe string   `json:"unsubscribe"`
	File        string   `json:"file"`
	Fault       string   `json:"fault"`
	Attachments []struct {
		Name   string `json:"name"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
		File   string `json:"file"`
	} `json:"attachments"`
}

func received(t *testing.T, path string, into any) {
	t.Helper()
	res, err := http.Get(cloud.receiver + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("receiver %s: %s", path, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatalf("receiver %s: %v", path, err)
	}
}

// hooks lists what a webhook path received.
func hooks(t *testing.T, path string) []request {
	t.Helper()
	var list []request
	received(t, "/_received/"+path, &list)
	return list
}

// mails lists what the mail receiver got of a run.
func mails(t *testing.T, run string) []mail {
	t.Helper()
	var list []mail
	received(t, "/_mails?run="+strings.ReplaceAll(run, ":", "%3A"), &list)
	return list
}

// mailed waits for n mails of a run: the emulator relays after it has answered.
func mailed(t *testing.T, run string, n int) []mail {
	t.Helper()
	var list []mail
	eventually(t, fmt.Sprintf("%d mails of %s", n, run), func() (bool, string) {
		list = mails(t, run)
		return len(list) >= n, fmt.Sprintf("%d mails", len(list))
	})
	if len(list) != n {
		t.Fatalf("%d mails of %s, want %d", len(list), run, n)
	}
	return list
}

// tell scripts the answers of a webhook path.
func tell(t *testing.T, path string, answers ...map[string]any) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"answers": answers})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "PUT", cloud.receiver+"/_control/"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		b, _ := io.ReadAll(res.Body)
		t.Fatalf("receiver: %s %s", res.Status, b)
	}
}

func hook(path string) schedule.Recipient {
	return schedule.Recipient{Webhook: cloud.receiver + "/" + path, Secret: "demo"}
}

// send puts a message into a queue, as anybody with the right could.
func send(t *testing.T, queue, body string) {
	t.Helper()
	_, err := sqs.NewFromConfig(cloud.aws).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(cloud.outputs[queue]), MessageBody: &body})
	if err != nil {
		t.Fatal(err)
	}
}

// outcomes are the states of a run's submissions, by what part of the address the test knows.
func outcomes(t *testing.T, run string) map[string]schedule.Submission {
	t.Helper()
	subs, err := cloud.store.Submissions(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]schedule.Submission{}
	for _, s := range subs {
		m[s.Recipient] = s
	}
	return m
}
