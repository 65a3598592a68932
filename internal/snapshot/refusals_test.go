package snapshot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Steps that the workflow does not call where a run stands so say what is wrong, and leave the run as it is.
func TestStepsOutOfTheirOrder(t *testing.T) {
	unread := func(d *snapshot.Definition) {}
	for name, row := range map[string]struct {
		def    func(*snapshot.Definition)
		before []string
		step   string
		code   failure.Code
		words  string
	}{
		"validation before the end":        {unread, []string{snapshot.StepStart}, snapshot.StepValidate, failure.InternalError, "before the month was read to its end"},
		"publication before a verdict":     {unread, []string{snapshot.StepStart}, snapshot.StepPublish, failure.InternalError, "before there was a verdict"},
		"publication of a failed verdict":  {func(d *snapshot.Definition) { d.Checks.NotNull = []string{"carrier"} }, []string{snapshot.StepStart, snapshot.StepGenerate, snapshot.StepValidate}, snapshot.StepPublish, failure.ValidationRefused, "carrier"},
		"validation after a failed one":    {func(d *snapshot.Definition) { d.Checks.NotNull = []string{"carrier"} }, []string{snapshot.StepStart, snapshot.StepGenerate, snapshot.StepValidate}, snapshot.StepValidate, failure.ValidationRefused, "carrier"},
		"settlement of what has no reason": {unread, nil, snapshot.StepSettle, failure.StepDied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			def := trips()
			row.def(&def)
			a := newAttempts(t, def)
			a.load(tripsTable, rowsFrom(5, 250))
			j := a.claim(a.plan(newark).ID())
			for _, step := range row.before {
				_, _ = a.call(bg, snapshot.StepInput{Step: step, Job: j}) // the last one may fail, as the run then tells
			}
			before := standing(a.run(j.Run))
			_, err := a.call(bg, snapshot.StepInput{Step: row.step, Job: j})
			if row.step == snapshot.StepSettle {
				a.must(err)
				if r := a.run(j.Run); r.State != snapshot.Failed || r.ErrorCode != string(row.code) {
					t.Errorf("%s %s", r.State, r.ErrorCode)
				}
				return
			}
			if f := failuretest.Want(t, err, row.code); !strings.Contains(f.Message, row.words) {
				t.Errorf("%q does not say %q", f.Message, row.words)
			}
			if after := standing(a.run(j.Run)); after != before {
				t.Errorf("the run stands as %s, was %s", after, before)
			}
		})
	}
}

// stubborn is a ledger whose row changes whenever somebody settles it.
type stubborn struct {
	snapshot.StepLedger
	tries int
}

func (s *stubborn) Fail(context.Context, snapshot.Run, snapshot.Settlement, time.Time) error {
	s.tries++
	return &snapshot.Conflict{Event: "fail", Why: "the row has changed"}
}

// A settlement that never finds the row as it was read is tried again by the workflow: nothing says that it was done.
func TestARowThatKeepsChangingIsNotSettled(t *testing.T) {
	a := newAttempts(t, trips())
	j := a.claim(a.plan(newark).ID())
	s := &stubborn{StepLedger: a.steps.Ledger}
	a.steps.Ledger = s
	_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepSettle, Job: j})
	if _, ok := err.(snapshot.Disturbed); !ok || s.tries != 5 {
		t.Errorf("got %T %v after %d tries, want Disturbed after 5", err, err, s.tries)
	}
	failuretest.Want(t, err, failure.StoreUnavailable)
}

// A cursor that nobody can read stops the attempt: it is not begun anew at the first row.
func TestACursorThatNobodyCanRead(t *testing.T) {
	a := newAttempts(t, trips())
	a.load(tripsTable, rowsFrom(5, 250))
	for _, a := range []*attempts{a, newLake(t, lakeTrips(), 250).attempts} {
		j := a.claim(a.plan(newark).ID())
		_, err := a.call(bg, snapshot.StepInput{Step: snapshot.StepStart, Job: j})
		a.must(err)
		k := schema.SnapshotKey("EWR", "trips", "2013-01", 1)
		_, err = a.db.UpdateItem(bg, &dynamodb.UpdateItemInput{TableName: aws.String("Snapshots"),
			Key:              map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}},
			UpdateExpression: aws.String("SET #k = :k"), ExpressionAttributeNames: map[string]string{"#k": schema.CursorKey},
			ExpressionAttributeValues: map[string]types.AttributeValue{":k": &types.AttributeValueMemberS{Value: "x:1"}}})
		a.must(err)
		if _, err = a.call(bg, snapshot.StepInput{Step: snapshot.StepGenerate, Job: j}); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("got %v", err)
		}
		if r := a.run(j.Run); r.Cursor.Chunk != 0 || len(a.objects(r)) != 0 {
			t.Errorf("rows were read: %+v", r.Cursor)
		}
	}
}

// A workspace whose zone is not known any more gets no months, and the tick says so.
func TestAZoneThatIsNotKnown(t *testing.T) {
	d := newDesk(t)
	d.define("2040-02", unchanged)
	d.plan()
	d.advance(27 * 24 * time.Hour)
	d.workspace("EWR", func(w *schedule.Workspace) { w.Zone = "Mars/Base" })
	if got := d.plan(); got.Errors == 0 || got.Planned > 0 || !strings.Contains(d.log.String(), "Mars/Base") {
		t.Errorf("%+v\n%s", got, d.log)
	}
	d.wantLedger("2040-02 v1 planned")
}

// Leftovers that cannot be removed stay to be removed, however many there are.
func TestLeftoversThatCannotBeRemoved(t *testing.T) {
	d := newDesk(t)
	refused(d)
	run := d.run(id("2040-02", 1))
	prefix := snapshot.GenerationPrefix(run.Period, 1, 1)
	for i := range 1000 {
		d.put(fmt.Sprintf("%sx%04d", prefix, i), "rows")
	}
	d.advance(60 * 24 * time.Hour)
	n := 0
	d.s3.Hooks.Before = func(_ context.Context, c memcloud.Call) error {
		if c.Operation == "DeleteObjects" {
			n++
			return errLost
		}
		return nil
	}
	if f := d.mend(); f.Errors == 0 || f.Cleaned > 0 || f.Removed > 0 || n == 0 {
		t.Errorf("%+v after %d removals", f, n)
	}
	d.s3.Hooks.Before = nil
	if f := d.mend(); f.Cleaned != 1 || f.Removed < 1001 || len(d.objects(prefix)) > 0 {
		t.Errorf("%+v, and %d objects are left", f, len(d.objects(prefix)))
	}
}
