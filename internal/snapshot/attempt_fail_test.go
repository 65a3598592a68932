package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// failed walks an attempt and demands that it failed with a code.
func (a *attempts) failed(id string, code failure.Code) snapshot.Run {
	a.t.Helper()
	w := a.walk(a.claim(id))
	r := a.run(id)
	if !w.Failed || w.State != snapshot.StateFailed || r.State != snapshot.Failed || r.ErrorCode != string(code) {
		a.t.Fatalf("%s is %s with %s %q after %+v, want %s\n%s", id, r.State, r.ErrorCode, r.ErrorText, w, code, a.log.String())
	}
	failuretest.Saw(code)
	caps, err := a.ledger.Caps(bg, r.Owner)
	a.must(err)
	if slices.Contains(caps.Slots, id) {
		a.t.Fatal("a failed run holds a slot")
	}
	return r
}

// final demands that no retry follows, retried that one does.
func (a *attempts) final(r snapshot.Run) {
	a.t.Helper()
	if !r.NextAt.IsZero() || !r.Final() {
		a.t.Fatalf("%s: tried again at %s, want final", r.ErrorCode, r.NextAt)
	}
}

func (a *attempts) retried(r snapshot.Run) {
	a.t.Helper()
	if r.NextAt.IsZero() {
		a.t.Fatalf("%s is final, want a retry", r.ErrorCode)
	}
}

// Keys that cannot order a month settle it for good and are named. T: the messages name column, value and what is right.
func TestKeysThatCannotBe(t *testing.T) {
	keyed := func(typ string) string { return "create table k (id " + typ + ", n integer)" }
	for _, row := range []struct {
		name string
		ddl  []string
		says []string
	}{
		{"NULL", []string{keyed("integer"), "insert into k values (1, 1), (null, 2)"}, []string{`"id"`, "NULL", "first row"}},
		{"equal", []string{keyed("integer"), "insert into k values (1, 1), (2, 2), (2, 3)"}, []string{`"id" holds "2" after "2"`, "increase strictly"}},
		{"real", []string{keyed("real"), "insert into k values (1.5, 1)"}, []string{`"id"`, "real", "want an integer, a text or a decimal"}},
		{"bytes", []string{keyed("blob"), "insert into k values (x'00', 1)"}, []string{"bytes"}},
		{"two types", []string{keyed("blob"), "insert into k values (1, 1), ('a', 2)"}, []string{`the text "a"`, `the integer "1"`, "one type"}},
		{"too long", []string{keyed("text"), fmt.Sprintf("insert into k values ('%s', 1)", strings.Repeat("x", 257))}, []string{"257 bytes", "at most 256"}},
		{"NUL", []string{keyed("text"), "insert into k values (cast(x'610062' as text), 1)"}, []string{"NUL"}},
		{"not UTF-8", []string{keyed("text"), "insert into k values (cast(x'ff' as text), 1)"}, []string{"UTF-8"}},
		{"decimals in the order of their text", []string{keyed("decimal text"), "insert into k values ('10.5', 1), ('9.5', 2)"}, []string{`"9.5" after "10.5"`, "order of numbers"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := trips()
			d.Query, d.Control, d.ChunkRows = "select id, n from k", "select count(*) as rows from k", 2
			d.Format = snapshot.CSV // which takes any cell
			a := newAttempts(t, d)
			a.load(row.ddl...)
			r := a.failed(a.plan(newark).ID(), failure.KeyInvalid)
			a.final(r)
			for _, s := range row.says {
				if !strings.Contains(r.ErrorText, s) {
					t.Errorf("%q does not say %q", r.ErrorText, s)
				}
			}
		})
	}
}

// Text and decimal keys are read in order, resumed at and compared as they are. A NOCASE column is ordered by its bytes.
func TestKeysOfEachType(t *testing.T) {
	for name, row := range map[string]struct {
		ddl         []string
		first, last string
		kind        string
	}{
		"text":    {[]string{"create table k (id text collate nocase, n)", "insert into k values ('a', 1), ('B', 2), ('=1+1', 3), ('é☃', 4), (''';--', 5), ('', 6), (':x', 7)"}, "t:", "t:é☃", "text"},
		"decimal": {[]string{"create table k (id decimal text, n)", "insert into k values ('1.10', 1), ('2.0000000000000000001', 2), ('3', 3), ('4.5', 4), ('5', 5)"}, "d:1.10", "d:5", "decimal"},
		"integer": {[]string{"create table k (id integer primary key, n)", "insert into k values (-9223372036854775808, 1), (-1, 2), (0, 3), (9007199254740993, 4), (9223372036854775807, 5)"},
			"i:-9223372036854775808", "i:9223372036854775807", "integer"},
	} {
		t.Run(name, func(t *testing.T) {
			d := trips()
			d.Query, d.Control, d.ChunkRows = "select id, n from k;\n", "select count(*) as rows from k", 2
			a := newAttempts(t, d)
			a.load(row.ddl...)
			r := a.plan(newark)
			a.fault = func(_ int, c memcloud.Call, after bool) bool {
				return after && c.Operation == "TransactWriteItems" && a.token < 4
			}
			a.walk(a.claim(r.ID())) // a call per chunk: each is resumed at the key before
			a.published(r.ID())
			m := a.current(newark)
			if m.Chunks[0].First != row.first || m.Chunks[len(m.Chunks)-1].Last != row.last || m.Key.Type != row.kind || len(a.rows(m)) != int(m.Totals.Rows) {
				t.Fatalf("%+v %+v", m.Key, m.Chunks)
			}
			c, err := a.reader.Compare(bg, m, m, 3)
			if err != nil || c.Unchanged != m.Totals.Rows || c.Changed+c.Added+c.Removed != 0 {
				t.Fatalf("%+v %v", c, err)
			}
		})
	}
}

// Definitions that the source's columns do not fit are final at once.
func TestDefinitionsThatDoNotFitTheirSource(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*snapshot.Definition)
		code   failure.Code
		says   string
	}{
		"no key column":       {func(d *snapshot.Definition) { d.Key = "nr" }, failure.DefinitionInvalid, `key names the column "nr"`},
		"sum of nothing":      {func(d *snapshot.Definition) { d.Control = "select count(*) as rows, 1 as nix from trips" }, failure.DefinitionInvalid, `"nix"`},
		"not_null of nothing": {func(d *snapshot.Definition) { d.Checks.NotNull = []string{"x"} }, failure.DefinitionInvalid, `checks.not_null names the column "x"`},
		"type of nothing":     {func(d *snapshot.Definition) { d.Checks.Types = map[string]string{"x": "text"} }, failure.DefinitionInvalid, `checks.types names the column "x"`},
		"no rows column":      {func(d *snapshot.Definition) { d.Control = "select count(*) as n from trips" }, failure.DefinitionInvalid, `no column "rows"`},
		"rows is text":        {func(d *snapshot.Definition) { d.Control = "select 'many' as rows from trips" }, failure.DefinitionInvalid, `"many"`},
		"sum is text":         {func(d *snapshot.Definition) { d.Control = "select 250 as rows, 'x' as delay" }, failure.DefinitionInvalid, `column "delay" is "x"`},
		"no control row":      {func(d *snapshot.Definition) { d.Control = "select 1 as rows where 0" }, failure.DefinitionInvalid, "no row"},
		"two control rows":    {func(d *snapshot.Definition) { d.Control = "select 250 as rows union all select 1" }, failure.DefinitionInvalid, "more than one row"},
		"two statements":      {func(d *snapshot.Definition) { d.Query = "select id from trips; delete from trips" }, failure.QueryInvalid, "delete"},
		"no select":           {func(d *snapshot.Definition) { d.Query = "delete from trips" }, failure.QueryInvalid, "delete"},
		"unknown source":      {func(d *snapshot.Definition) { d.Source = "nowhere" }, failure.SourceUnknown, "nowhere"},
		"too many rows":       {func(d *snapshot.Definition) { d.Limits.Rows = 249 }, failure.QueryTooManyRows, "249"},
		"undeclared":          {func(d *snapshot.Definition) { d.Query += " and carrier = :line" }, failure.ParameterInvalid, ":line"},
	} {
		t.Run(name, func(t *testing.T) {
			d := trips()
			row.change(&d)
			a := newAttempts(t, d)
			a.load(tripsTable, rowsFrom(5, 250))
			r := a.failed(a.plan(newark).ID(), row.code)
			a.final(r)
			if !strings.Contains(r.ErrorText, row.says) {
				t.Fatalf("%q does not say %q", r.ErrorText, row.says)
			}
		})
	}
}

// Parameters are bound, and each query gets those that it names.
func TestParametersReachTheQueriesThatNameThem(t *testing.T) {
	d := trips()
	d.Query += " and delay >= :least"
	d.Control = "select count(*) as rows from trips where delay >= 0 and workspace = 'EWR' and :period_start < :period_end"
	d.Params = map[string]any{"least": int64(0)}
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 70))
	a.publish(newark)
	if m := a.current(newark); m.Totals.Rows != 40 {
		t.Fatalf("%+v", m.Totals)
	}
}

// T10: what is read are the bounds that stand on the run, whatever the workspace's zone has become.
func TestT10BoundsOfThePlanningAreRead(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, "insert into trips values (1, 'EWR', '2013-01-01T04:59:59Z', 'a', 0, '0', 0), (2, 'EWR', '2013-01-01T05:00:00Z', 'b', 0, '0', 0), "+
		"(3, 'EWR', '2013-02-01T04:59:59Z', 'c', 0, '0', 0), (4, 'EWR', '2013-02-01T05:00:00Z', 'd', 0, '0', 0), (5, 'JFK', '2013-01-10T00:00:00Z', 'e', 0, '0', 0)")
	a.publish(newark)
	if got := a.rows(a.current(newark)); len(got) != 2 || !strings.HasPrefix(got[0], "2|b") || !strings.HasPrefix(got[1], "3|c") {
		t.Fatalf("%q", got)
	}
}

// NULLs and types that reading again does not mend are final, and say how many cells.
func TestNullsAndTypesAreFinal(t *testing.T) {
	d := trips()
	d.Format = snapshot.CSV // which takes any cell
	d.Checks.NotNull = []string{"carrier", "id"}
	d.Checks.Types = map[string]string{"id": "integer", "carrier": "text", "delay": "integer", "fare": "decimal", "km": "real"}
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250), "update trips set delay = 'late' where id in (15, 2005)")
	r := a.failed(a.plan(newark).ID(), failure.ValidationRefused)
	a.final(r)
	checks := map[string]snapshot.Check{}
	for _, c := range r.Verdict.Checks {
		checks[c.Name] = c
	}
	for name, want := range map[string]snapshot.Check{
		"not_null:carrier": {Name: "not_null:carrier", Expected: "no NULL", Found: "84 NULL"},
		"not_null:id":      {Name: "not_null:id", Expected: "no NULL", Found: "no NULL", Passed: true},
		"type:delay":       {Name: "type:delay", Expected: "integer", Found: "2 other cells"},
		"type:km":          {Name: "type:km", Expected: "real", Found: "no other cell", Passed: true},
		"rows":             {Name: "rows", Expected: "250", Found: "250", Passed: true},
	} {
		if checks[name] != want {
			t.Errorf("%+v, want %+v", checks[name], want)
		}
	}
	if !strings.Contains(r.ErrorText, "not_null:carrier: expected no NULL, found 84 NULL") || r.Verdict.Manifest != "" {
		t.Fatalf("%q, manifest %q", r.ErrorText, r.Verdict.Manifest)
	}
}

// A chunk's object that is gone, or has other bytes by its size, fails the check of the objects; the retry writes it anew.
func TestObjectsAreLookedForBeforePublication(t *testing.T) {
	for name, harm := range map[string]func(*attempts, string){
		"gone": func(a *attempts, key string) {
			_, err := a.s3.DeleteObject(bg, &s3.DeleteObjectInput{Bucket: aws.String("files"), Key: &key})
			a.must(err)
		},
		"shorter": func(a *attempts, key string) {
			_, err := a.s3.PutObject(bg, &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key, Body: strings.NewReader("x")})
			a.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempts(t, trips())
			a.load(tripsTable, rowsFrom(5, 250))
			r := a.plan(newark)
			j := a.claim(r.ID())
			for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate} {
				_, err := a.call(bg, snapshot.StepInput{Step: step, Job: j})
				a.must(err)
			}
			harm(a, a.objects(r)[1])
			a.walk(j)
			r = a.run(r.ID())
			if r.ErrorCode != string(failure.ValidationMismatch) || !strings.Contains(r.ErrorText, "objects: expected every chunk with its size, found chunk-00000001-") {
				t.Fatalf("%+v", r)
			}
			failuretest.Saw(failure.ValidationMismatch)
			a.retried(r)
			a.walk(a.claim(r.ID()))
			a.published(r.ID())
		})
	}
}

// A retry goes on at the cursor while definition, bounds and source are the same, and begins anew where the source changed.
func TestRetryGoesOnAtTheCursorOfTheSameSource(t *testing.T) {
	for name, changed := range map[string]bool{"the same source": false, "another version of it": true} {
		t.Run(name, func(t *testing.T) {
			body := makeFile(t, tripsTable, rowsFrom(5, 250))
			a := newAttempts(t, trips())
			a.putFile("trips.sqlite", body)
			r := a.plan(newark)
			j := a.claim(r.ID())
			puts := 0
			a.s3.Hooks.Before = a.refusing(func(c memcloud.Call) bool {
				if c.Operation == "PutObject" {
					puts++
				}
				return c.Operation == "PutObject" && puts > 2
			})
			a.walk(j)
			r = a.run(r.ID())
			if r.ErrorCode != string(failure.FileUnavailable) || r.Cursor.Chunk != 2 {
				t.Fatalf("%+v", r)
			}
			a.retried(r)
			if changed {
				a.load(tripsTable, rowsFrom(5, 251))
			}
			a.s3.Hooks.Before = a.refusing(func(memcloud.Call) bool { return false })
			a.walk(a.claim(r.ID()))
			r = a.published(r.ID())
			want := 1
			if changed {
				want = 2
			}
			if r.Generation != want || r.Attempts != 2 || len(a.current(newark).Chunks) != 3 {
				t.Fatalf("generation %d after %d attempts, want %d", r.Generation, r.Attempts, want)
			}
		})
	}
}

// refusing refuses calls to S3 as a service that is down does.
func (a *attempts) refusing(which func(memcloud.Call) bool) func(ctx context.Context, c memcloud.Call) error {
	return func(ctx context.Context, c memcloud.Call) error {
		if ctx.Value(processKey{}) != nil && which(c) {
			return errors.New("no answer")
		}
		return a.hook(ctx, c, false)
	}
}

// Columns that changed between chunks are noticed; the next attempt reads everything again.
func TestSourceThatChangedItsColumns(t *testing.T) {
	d := trips()
	d.Query = "select * from trips where workspace = :workspace and at >= :period_start and at < :period_end"
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	killed := false
	a.fault = func(_ int, c memcloud.Call, after bool) bool {
		if after && c.Operation == "TransactWriteItems" && !killed {
			killed = true
			return true
		}
		return false
	}
	j := a.claim(r.ID())
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
	a.must(err)
	_, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j})
	if err == nil {
		t.Fatal("the process was to die")
	}
	a.load(tripsTable, rowsFrom(5, 250), "alter table trips add column note text")
	a.walk(j)
	r = a.run(r.ID())
	if r.ErrorCode != string(failure.SourceChanged) {
		t.Fatalf("%+v", r)
	}
	failuretest.Saw(failure.SourceChanged)
	a.retried(r)
	a.walk(a.claim(r.ID()))
	if r = a.published(r.ID()); r.Generation != 2 || len(a.current(newark).Columns) != 8 {
		t.Fatalf("%+v", r)
	}
}

// N6: three failures are followed by widening delays, the fourth is final; nothing starts a fifth.
func TestN6FourFailures(t *testing.T) {
	d := trips()
	d.Control = "select 1 as rows"
	a := newAttempts(t, d)
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	delays := []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	for i, want := range delays {
		r = a.failed(r.ID(), failure.ValidationMismatch)
		if got := r.NextAt.Sub(a.now).Round(time.Minute); got != want || r.Failures != i+1 {
			t.Fatalf("failure %d: next attempt after %s, want %s", r.Failures, got, want)
		}
	}
	r = a.failed(r.ID(), failure.ValidationMismatch)
	a.final(r)
	if head, err := a.ledger.Head(bg, newark); err != nil || head.Active != 0 || r.Failures != 4 {
		t.Fatalf("%+v %v", head, err)
	}
	if caps, err := a.ledger.Caps(bg, r.Owner); err != nil {
		t.Fatal(err)
	} else if _, err := a.ledger.Claim(bg, r, caps.Owner, a.now.Add(1000*time.Hour)); !snapshot.IsConflict(err) {
		t.Fatalf("a fifth attempt: %v", err)
	}
}

// A step whose process dies at each try is caught in the end, and its attempt settled as one that may pass.
func TestStepThatAlwaysDies(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	a.fault = func(_ int, c memcloud.Call, _ bool) bool { return c.Operation == "PutObject" }
	w := a.walk(a.claim(r.ID()))
	r = a.run(r.ID())
	if !w.Failed || r.ErrorCode != string(failure.StepDied) || !strings.Contains(r.ErrorText, "Runtime.ExitError") || w.Calls != 1+7+1 {
		t.Fatalf("%+v %+v", w, r)
	}
	failuretest.Saw(failure.StepDied)
	a.retried(r)
}

// A ledger that is out of reach for a while disturbs the job and costs no attempt.
func TestDisturbedLedgerIsNoFailedAttempt(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	r := a.plan(newark)
	down := 5
	a.db.Hooks.Before = func(ctx context.Context, c memcloud.Call) error {
		if ctx.Value(processKey{}) != nil && c.Operation == "TransactWriteItems" && down > 0 {
			down--
			return errors.New("no answer")
		}
		return a.hook(ctx, c, false)
	}
	a.walk(a.claim(r.ID()))
	if r = a.published(r.ID()); r.Attempts != 1 || r.Failures != 0 || down != 0 {
		t.Fatalf("%+v, %d", r, down)
	}
}

// S2, N1: a run that is cancelled while its job works is neither committed to nor published; the job ends without effect.
func TestS2CancelledWhileItsJobWorks(t *testing.T) {
	for _, row := range []struct {
		operation string
		n         int
	}{{"TransactWriteItems", 1}, {"TransactWriteItems", 3}, {"ListObjectsV2", 1}, {"TransactWriteItems", 4}} { // the last one publishes
		operation, n := row.operation, row.n
		a := newAttempts(t, trips())
		a.load(tripsTable, rowsFrom(5, 250))
		r := a.plan(newark)
		a.fault = func(_ int, c memcloud.Call, after bool) bool {
			if c.Operation != operation || after {
				return false
			}
			if n--; n == 0 {
				now := a.run(r.ID())
				a.must(a.ledger.Cancel(bg, now, snapshot.Cancellation{Reason: snapshot.ReasonOperator, Text: "not wanted", By: "ann", At: a.now}))
			}
			return false
		}
		w := a.walk(a.claim(r.ID()))
		got := a.run(r.ID())
		if w.Failed || got.State != snapshot.Cancelled || got.Failures != 0 {
			t.Fatalf("%s: %+v %+v\n%s", operation, w, got, a.log.String())
		}
		if p, err := a.ledger.Pointer(bg, newark); err != nil || p.Version != 0 {
			t.Fatalf("%s: published: %+v %v", operation, p, err)
		}
	}
}

// N16: a version is published against the current one that its verdict compared with. Where the pointer has moved since,
// as after a restore, the month is judged anew.
func TestN16PointerThatMovedSinceTheVerdict(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 20))
	one, two := a.publish(newark), a.publish(newark)
	r := a.plan(newark)
	j := a.claim(r.ID())
	for _, step := range []string{snapshot.StepStart, snapshot.StepGenerate, snapshot.StepValidate} {
		_, err := a.call(bg, snapshot.StepInput{Step: step, Job: j})
		a.must(err)
	}
	judged := a.run(r.ID())
	if judged.Verdict == nil || judged.Verdict.Current != two.Version {
		t.Fatalf("%+v", judged.Verdict)
	}
	if err := a.ledger.RollBack(bg, pointerOf(a), one, snapshot.Audit{ID: "b", Subject: "x", Who: "ann", What: "roll back", Why: "wrong", At: a.now}); !snapshot.IsConflict(err) {
		t.Fatalf("a roll back while a version is active: %v", err)
	}
	a.repoint(one)
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepPublish, Job: j})
	a.must(err)
	a.published(r.ID())
	if m := a.current(newark); m.ComparedTo.Current != one.Version || pointerOf(a).Previous != one.Version {
		t.Fatalf("%+v", m.ComparedTo)
	}
}

func pointerOf(a *attempts) snapshot.Pointer {
	a.t.Helper()
	p, err := a.ledger.Pointer(bg, newark)
	a.must(err)
	return p
}

// repoint moves the current pointer as no act does.
func (a *attempts) repoint(to snapshot.Run) {
	a.t.Helper()
	k := schema.CurrentKey(to.Workspace, to.Type, to.Month.String())
	_, err := a.db.UpdateItem(bg, &dynamodb.UpdateItemInput{TableName: aws.String("Snapshots"),
		Key:              map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}},
		UpdateExpression: aws.String("SET #v = :v, #m = :m"), ExpressionAttributeNames: map[string]string{"#v": schema.Version, "#m": schema.Manifest},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: fmt.Sprint(to.Version)}, ":m": &types.AttributeValueMemberS{Value: to.Manifest()}}})
	a.must(err)
}

// Inputs that no job sends.
func TestStepInputsThatCannotBe(t *testing.T) {
	a := newAttempts(t, trips())
	for name, in := range map[string]snapshot.StepInput{
		`step is "dance"`:       {Step: "dance"},
		`step is ""`:            {},
		"job is 0":              {Step: snapshot.StepStart, Job: snapshot.Job{Run: "EWR_trips_2013-01_v1"}},
		"job is -1":             {Step: snapshot.StepGenerate, Job: snapshot.Job{Run: "EWR_trips_2013-01_v1", Job: -1}},
		`no run "nowhere"`:      {Step: snapshot.StepStart, Job: snapshot.Job{Run: "nowhere", Job: 1}},
		`no run "EWR_trips_201`: {Step: snapshot.StepStart, Job: snapshot.Job{Run: "EWR_trips_2013-01_v1", Job: 1}},
	} {
		_, err := a.steps.Run(bg, in)
		if _, ok := err.(snapshot.Refused); !ok {
			t.Fatalf("%s: %T %v", name, err, err)
		}
		if f := failuretest.Want(t, err, failure.MessageInvalid); !strings.Contains(f.Message, name) {
			t.Errorf("%q does not say %q", f.Message, name)
		}
	}
}
