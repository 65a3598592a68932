//go:build cloud

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"
	"almanac/internal/snapshot"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// january is business time of the tests of months: all of 2013, which the data hold, has closed, and December is the
// current month.
var january = time.Date(2014, 1, 15, 12, 0, 0, 0, time.UTC)

var december = calendar.Month{Year: 2013, Month: time.December}

// shelf is what a test of months has for itself: an owner with its caps, and the owner's workspaces.
type shelf struct {
	owner      string
	workspaces []string
	ledger     *store.Snapshots
}

// shelved makes a shelf with workspaces of its own. The owner is one for all such tests, which come one after another: each
// owner costs every dispatch some reads.
func shelved(t *testing.T, cap, backfill, workspaces int) shelf {
	t.Helper()
	return shelfOf(t, "tests", fresh(), cap, backfill, workspaces)
}

// apart makes a shelf of a new owner: a dispatch that is under way does not know it.
func apart(t *testing.T, cap, backfill, workspaces int) shelf {
	t.Helper()
	id := fresh()
	return shelfOf(t, id, id, cap, backfill, workspaces)
}

// shelfOf makes a shelf. At the end its workspaces are removed, so that no planner comes to them any more, and what is
// still under way is called off.
func shelfOf(t *testing.T, owner, id string, cap, backfill, workspaces int) shelf {
	t.Helper()
	s := shelf{owner: owner, ledger: store.NewSnapshots(dynamodb.NewFromConfig(cloud.aws), cloud.outputs["SnapshotsTable"], cloud.store)}
	setClock(t, january)
	must(t, "PUT", "/sources/flights", map[string]any{"name": "flights", "engine": "sqlite", "object": "flights.sqlite", "workspaces": []string{"*"}})
	must(t, "PUT", "/owners/"+owner, snapshot.Owner{ID: owner, Name: "Owner of tests", Cap: cap, Backfill: backfill})
	t.Cleanup(func() {
		c, err := s.ledger.Caps(context.Background(), owner)
		if err != nil {
			t.Error(err)
		}
		for _, run := range c.Slots {
			afterwards(t, "POST", "/snapshots/runs/"+run+"/cancel", reasoned, http.StatusConflict) // it has settled meanwhile
		}
	})
	for i := range workspaces {
		w := fmt.Sprintf("%s-%d", id, i)
		s.workspaces = append(s.workspaces, w)
		body := map[string]any{"id": w, "name": "Test of " + w, "zone": "America/New_York", "owner": owner}
		must(t, "PUT", "/workspaces/"+w, body)
		t.Cleanup(func() {
			body["removed"] = "2014-01-15"
			afterwards(t, "PUT", "/workspaces/"+w, body)
		})
	}
	return s
}

// afterwards asks the API in a clean-up, whose test's context has ended. Besides a success the given statuses will do.
func afterwards(t *testing.T, method, path string, body any, fine ...int) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	req, err := http.NewRequest(method, cloud.outputs["ApiUrl"]+path, bytes.NewReader(b))
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
	defer res.Body.Close()
	if res.StatusCode >= 300 && !slices.Contains(fine, res.StatusCode) {
		t.Errorf("%s %s: %s", method, path, res.Status)
	}
}

// What test definitions are made of: Newark's flights of the first days of each month, in the order of their numbers.
const (
	ofMonth   = "from flights where origin = 'EWR' and sched_dep_utc >= :period_start and sched_dep_utc < :period_end and day <= :days"
	monthRows = "select flight_id, carrier, flight, dest, dep_delay, distance " + ofMonth
	control   = "select count(*) as rows, sum(distance) as distance " + ofMonth
	// One row too many, as a source that lost one would show it.
	falseControl = "select count(*) + 1 as rows, sum(distance) as distance " + ofMonth
	// A control query that takes its time: a month stays in validation for as long.
	slowControl = "with recursive spin(n) as (select 1 union all select n + 1 from spin where n < :spin), spun(n) as (select max(n) from spin) " +
		"select count(*) as rows, sum(distance) as distance from spun, (select distance " + ofMonth + ")"
	spin = 6_000_000 // a few seconds
)

// define saves a definition of one of the shelf's workspaces, from December on unless change says otherwise.
func (s shelf) define(t *testing.T, workspace, typ string, change func(*snapshot.Definition)) snapshot.Definition {
	t.Helper()
	d := snapshot.Definition{Scope: snapshot.Scope{Workspace: workspace}, Type: typ, Name: t.Name(), Source: "flights", Start: december,
		Query: monthRows, Key: "flight_id", Control: control, Mode: snapshot.Single, Params: input.Parameters{"days": 2}}
	if change != nil {
		change(&d)
	}
	must(t, "PUT", "/snapshots/definitions/workspace/"+workspace+"/"+typ, d)
	return d
}

// inChunks makes a definition one that takes long: hundreds of chunks of a few rows.
func inChunks(rows int64, days int) func(*snapshot.Definition) {
	return func(d *snapshot.Definition) {
		d.Mode, d.ChunkRows, d.Params["days"] = snapshot.Chunked, rows, days
	}
}

// rerun asks for a version of a month, as a person does, and gives its id.
func rerun(t *testing.T, workspace, typ string, m calendar.Month) string {
	t.Helper()
	var v struct {
		ID string `json:"id"`
	}
	b := must(t, "POST", fmt.Sprintf("/snapshots/months/%s/%s/%s/versions", workspace, typ, m), reasoned, "Idempotency-Key", fresh())
	if err := json.Unmarshal(b, &v); err != nil || v.ID == "" {
		t.Fatalf("%s, %v", b, err)
	}
	return v.ID
}

var reasoned = map[string]string{"reason": "a test"}

// fresh is a text that no other test has: an id, or a key.
func fresh() string { return "t" + strconv.FormatInt(time.Now().UnixMicro(), 36) }

// act does something to a version that needs a reason.
func act(t *testing.T, id, what string) {
	t.Helper()
	must(t, "POST", "/snapshots/runs/"+id+"/"+what, reasoned)
}

// hold turns dispatch off, so that versions stay as they are planned; what it returns turns it on. A dispatch that is
// under way goes on: so a test holds before it makes its shelf, apart.
func hold(t *testing.T) (release func()) {
	t.Helper()
	turn := func(to string) map[string]string { return map[string]string{"dispatch": to, "reason": "a test"} }
	must(t, "PUT", "/control", turn("off"))
	t.Cleanup(func() { afterwards(t, "PUT", "/control", turn("on")) })
	return func() { t.Helper(); must(t, "PUT", "/control", turn("on")) }
}

// ticked invokes a function of months as its rule does.
func ticked[T any](t *testing.T, function string) (tally T) {
	t.Helper()
	b := invoke(t, function, `{}`)
	if err := json.Unmarshal(b, &tally); err != nil {
		t.Fatalf("%s: %s, %v", function, b, err)
	}
	return tally
}

func planTick(t *testing.T) snapshot.PlanTally {
	t.Helper()
	return ticked[snapshot.PlanTally](t, "SnapshotPlanFunction")
}

func claimTick(t *testing.T) snapshot.DispatchTally {
	t.Helper()
	return ticked[snapshot.DispatchTally](t, "SnapshotDispatchFunction")
}

func reconcileTick(t *testing.T) snapshot.Findings {
	t.Helper()
	return ticked[snapshot.Findings](t, "SnapshotReconcileFunction")
}

func (s shelf) run(t *testing.T, id string) snapshot.Run {
	t.Helper()
	r, err := s.ledger.Run(t.Context(), id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return r
}

// until waits until a version is as wanted, ticking as the rule does.
func (s shelf) until(t *testing.T, id, what string, done func(snapshot.Run) bool) (r snapshot.Run) {
	t.Helper()
	next := time.Now().Add(time.Second)
	eventually(t, what+" of "+id, func() (bool, string) {
		if time.Now().After(next) {
			claimTick(t)
			next = time.Now().Add(time.Second)
		}
		r = s.run(t, id)
		return done(r), fmt.Sprintf("%s, job %d, attempts %d, failures %d, %d chunks, %s %s, timeline %q", r.State, r.Job, r.Attempts, r.Failures, r.Cursor.Chunk, r.ErrorCode, r.ErrorText, r.Timeline)
	})
	return r
}

// settled waits until a version has settled for good, as wanted.
func (s shelf) settled(t *testing.T, id string, state snapshot.State) snapshot.Run {
	t.Helper()
	r := s.until(t, id, "the end", snapshot.Run.Final)
	if r.State != state {
		t.Fatalf("%s is %s (%s: %s), want %s; timeline %q", id, r.State, r.ErrorCode, r.ErrorText, state, r.Timeline)
	}
	return r
}

func in(state snapshot.State) func(snapshot.Run) bool {
	return func(r snapshot.Run) bool { return r.State == state }
}

// caps are the shelf's slots as they stand.
func (s shelf) caps(t *testing.T) snapshot.Caps {
	t.Helper()
	c, err := s.ledger.Caps(t.Context(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// current is the version of a month that is current; 0: none.
func (s shelf) current(t *testing.T, p snapshot.Period) int {
	t.Helper()
	pointer, err := s.ledger.Pointer(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pointer.Version
}

func executionOf(t *testing.T, r snapshot.Run) string {
	t.Helper()
	out, err := sfn.NewFromConfig(cloud.aws).DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &r.Execution})
	if err != nil {
		t.Fatalf("%s: %v", r.Execution, err)
	}
	return string(out.Status)
}

// closes waits until the execution of a version's job has closed with a status.
func closes(t *testing.T, r snapshot.Run, status sfntypes.ExecutionStatus) {
	t.Helper()
	eventually(t, "the end of execution "+r.Execution, func() (bool, string) {
		have := executionOf(t, r)
		return have == string(status), have
	})
}

// abort stops an execution as a person does in the console of Step Functions.
func abort(t *testing.T, r snapshot.Run) {
	t.Helper()
	if _, err := sfn.NewFromConfig(cloud.aws).StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: &r.Execution}); err != nil {
		t.Fatal(err)
	}
	closes(t, r, sfntypes.ExecutionStatusAborted)
}

// startStray starts an execution of a job's name that is about no version there is, so that it fails.
func startStray(t *testing.T, name string) (arn string) {
	t.Helper()
	out, err := sfn.NewFromConfig(cloud.aws).StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String(cloud.outputs["AttemptMachineArn"]), Name: &name, Input: aws.String(`{"run": "nobody_nothing_2013-12_v1", "job": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.ExecutionArn)
}

// rework replaces the workflow of attempt jobs by a changed one; the end of the test restores it.
func rework(t *testing.T, change func(state map[string]any)) (restore func()) {
	t.Helper()
	client, machine := sfn.NewFromConfig(cloud.aws), cloud.outputs["AttemptMachineArn"]
	out, err := client.DescribeStateMachine(t.Context(), &sfn.DescribeStateMachineInput{StateMachineArn: &machine})
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := json.Unmarshal([]byte(aws.ToString(out.Definition)), &definition); err != nil {
		t.Fatal(err)
	}
	for _, s := range definition["States"].(map[string]any) {
		change(s.(map[string]any))
	}
	changed, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string) error {
		_, err := client.UpdateStateMachine(context.Background(), &sfn.UpdateStateMachineInput{StateMachineArn: &machine, Definition: &text})
		return err
	}
	if err := put(string(changed)); err != nil {
		t.Fatal(err)
	}
	restored := false
	restore = func() {
		t.Helper()
		if restored {
			return
		}
		restored = true
		if err := put(aws.ToString(out.Definition)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	return restore
}
