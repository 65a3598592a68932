package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	athenatypes "github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
)

// written are attributes in pairs of name and value; nil removes one.
func written(pairs ...any) map[string]types.AttributeValue {
	out := map[string]types.AttributeValue{}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case nil:
			out[name] = nil
		case string:
			out[name] = &types.AttributeValueMemberS{Value: v}
		case int:
			out[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		case bool:
			out[name] = &types.AttributeValueMemberBOOL{Value: v}
		case snapshot.State:
			out[name] = &types.AttributeValueMemberS{Value: string(v)}
		case []string: // a map of ids, or the lines of a timeline
			if name == schema.Timeline {
				l := &types.AttributeValueMemberL{}
				for _, line := range v {
					l.Value = append(l.Value, &types.AttributeValueMemberS{Value: line})
				}
				out[name] = l
				continue
			}
			m := map[string]types.AttributeValue{}
			for _, id := range v {
				m[id] = &types.AttributeValueMemberBOOL{Value: true}
			}
			out[name] = &types.AttributeValueMemberM{Value: m}
		}
	}
	return out
}

var (
	februaryRow  = schema.SnapshotKey("EWR", "delays", "2040-02", 1)
	februaryHead = schema.HeadKey("EWR", "delays", "2040-02")
	februaryNow  = schema.CurrentKey("EWR", "delays", "2040-02")
	ownersCaps   = schema.CapsKey(snapshot.DefaultOwner)
	noTime       = "2041-01-01T00:00:00.000Z"
)

func plannedMonth(w *World) { w.defined(Delays("EWR", "2040-02")) }
func queuedMonth(w *World)  { plannedMonth(w); w.claimedOnly() }

// cutOff runs an attempt without faults as far as a state, and leaves it there.
func cutOff(state snapshot.State, besides func(Row) bool) func(*World) {
	return func(w *World) {
		plannedMonth(w)
		w.Reach(string(state), w.inState(february1, state, besides))
	}
}

func publishedMonth(w *World) { plannedMonth(w); w.attempted(february1) }

func publishedTwice(w *World) {
	publishedMonth(w)
	w.Data.Load("EWR 2040-02", 1, 2)
	w.rerun(february(2))
}

func failedOnce(w *World) {
	plannedMonth(w)
	w.refuse("Source.View", failure.SourceUnavailable, 1)
	w.attempted(february1)
}

// mismatched has failed in validating, and is claimed again.
func mismatched(w *World) {
	plannedMonth(w)
	w.Data.Lost = 1
	w.attempted(february1)
	time.Sleep(time.Hour)
	w.claimedOnly()
}

// wipeMonth deletes a row by hand.
func (w *World) wipeMonth(k schema.Key) {
	_, err := w.DB.DeleteItem(background, &dynamodb.DeleteItemInput{TableName: aws.String(Snapshots), Key: written(schema.PK, string(k.PK), schema.SK, string(k.SK))})
	w.must(err)
}

// chunkKeys are those of the objects of February's first version.
func (w *World) chunkKeys() (keys []string) {
	out, err := w.S3.ListObjectsV2(background, &s3.ListObjectsV2Input{Bucket: aws.String(MonthFiles), Prefix: aws.String(snapshot.RunPrefix(inFebruary, 1) + "g1/")})
	w.must(err)
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func (w *World) removeChunk() {
	_, err := w.S3.DeleteObject(background, &s3.DeleteObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String(w.chunkKeys()[0])})
	w.must(err)
}

// unseen does something that the rules do not hear of.
func (w *World) unseen(do func()) {
	row, object := w.DB.Changed, w.S3.Changed
	w.DB.Changed, w.S3.Changed = nil, nil
	do()
	w.DB.Changed, w.S3.Changed = row, object
}

// movedBy points February at its first version in one transaction with what is given.
func (w *World) movedBy(previous int, beside ...types.TransactWriteItem) {
	at := w.months.current[inFebruary]
	item := Row{}
	for name, v := range at {
		item[name] = v
	}
	for name, v := range written(schema.Version, 1, schema.Previous, previous, schema.Manifest, Text(w.months.runs[february1], schema.Manifest)) {
		item[name] = v
	}
	items := append([]types.TransactWriteItem{{Put: &types.Put{TableName: aws.String(Snapshots), Item: item}}}, beside...)
	_, err := w.DB.TransactWriteItems(background, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	w.must(err)
}

func (w *World) moveRecord(who string) types.TransactWriteItem {
	k := schema.MoveKey("EWR", "delays", "2040-02", noTime, "id1")
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(Snapshots), Item: written(schema.PK, string(k.PK), schema.SK, string(k.SK), schema.Version, 1, schema.Previous, 2,
		schema.Manifest, Text(w.months.runs[february1], schema.Manifest), schema.Who, who, schema.Why, "x")}}
}

func auditOf(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(Snapshots), Item: written(schema.PK, "AUDIT#x", schema.SK, noTime+"#"+id, schema.Who, "ann")}}
}

const (
	itsTable     = "a month moves only as its table says"
	staysSettled = "a settled month never changes"
	theIndex     = "the index of work says what is to be done with a month"
	chunkWrite   = "a chunk's record is written once"
	thePointer   = "the current version moves by one publication or one recorded roll back, and keeps the one before"
	theCursor    = "chunks are recorded one after another, and the cursor is their number"
	theSlots     = "the slots are the admitted months, and no more than the caps"
	theHead      = "a period's head says what its versions are"
	theRows      = "what is published is what the source held"
	theObject    = "no object of a month is written twice, or removed while it is needed"
	theWhole     = "the rows as a whole are as they were step by step"
	theRest      = "every month settles, and nothing of it goes on"
	theReading   = "what is published stays readable"
	execution    = "one execution per job"
)

var monthBreaches = []struct {
	promise, name string
	at            func(*World)
	breaks        func(*World)
}{
	{itsTable, "a job that falls back", queuedMonth, func(w *World) { w.put(februaryRow, written(schema.Job, 0)) }},
	{itsTable, "a job that is passed over", failedOnce, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Queued, schema.Job, 3, schema.NextAttempt, nil, schema.ClaimedAt, noTime, schema.Work, schema.WorkOpen("default"), schema.WorkAt, noTime))
	}},
	{itsTable, "a claim before its time", failedOnce, func(w *World) {
		at := schema.Time(w.Now())
		w.put(februaryRow, written(schema.State, snapshot.Queued, schema.Job, 2, schema.NextAttempt, nil, schema.ClaimedAt, at, schema.Work, schema.WorkOpen("default"), schema.WorkAt, at))
	}},
	{itsTable, "a state that no event leads to", cutOff(snapshot.Running, nil), func(w *World) { w.put(februaryRow, written(schema.State, snapshot.Queued)) }},
	{itsTable, "a cancelled month that is published", queuedMonth, func(w *World) { w.put(februaryRow, written(schema.State, snapshot.Published)) }},
	{itsTable, "a publication without a verdict", cutOff(snapshot.Validating, nil), func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Published, schema.Work, nil, schema.WorkAt, nil, schema.SettledShard, "settled#00", schema.SettledAt, noTime))
	}},
	{itsTable, "a cursor that leaps", cutOff(snapshot.Running, nil), func(w *World) { w.put(februaryRow, written(schema.Cursor, 2)) }},
	{itsTable, "rows that are gone", cutOff(snapshot.Running, func(it Row) bool { return figure(it, schema.Cursor) == 1 }), func(w *World) {
		w.put(februaryRow, written(schema.Cursor, 2, schema.CursorRows, 0))
	}},
	{itsTable, "an attempt that is not counted", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Running, schema.Mode, "chunked", schema.Generation, 1, schema.Cursor, 0))
	}},
	{itsTable, "a generation that goes on after it was refused", mismatched, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Running, schema.Attempts, 2, schema.OfferedAt, nil))
	}},
	{itsTable, "another mode", mismatched, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Running, schema.Attempts, 2, schema.Mode, "single", schema.Generation, 2, schema.Cursor, 0, schema.CursorKey, nil, schema.CursorRows, 0, schema.CursorDone, nil))
	}},
	{itsTable, "a month that is validated before its end", cutOff(snapshot.Running, nil), func(w *World) { w.put(februaryRow, written(schema.State, snapshot.Validating)) }},
	{itsTable, "a failure that is not counted", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Failed, schema.ErrorCode, "source_unavailable", schema.NextAttempt, noTime, schema.FailedIn, "queued", schema.Work, schema.WorkRetry("default", false), schema.WorkAt, noTime))
	}},
	{itsTable, "a refusal that is tried again", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Failed, schema.ErrorCode, "query_invalid", schema.NextAttempt, noTime, schema.Failures, 1, schema.FailedIn, "queued", schema.Work, schema.WorkRetry("default", false), schema.WorkAt, noTime))
	}},
	{itsTable, "a passing failure that is final", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Failed, schema.ErrorCode, "source_unavailable", schema.Failures, 1, schema.FailedIn, "queued", schema.Work, nil, schema.WorkAt, nil, schema.SettledShard, "failed#00"))
	}},
	{itsTable, "a failure that forgets where it was", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Failed, schema.ErrorCode, "job_lost", schema.NextAttempt, noTime, schema.Failures, 1, schema.Work, schema.WorkRetry("default", false), schema.WorkAt, noTime))
	}},
	{itsTable, "a cancellation without a reason", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Cancelled, schema.Work, nil, schema.WorkAt, nil, schema.SettledShard, "settled#00"))
	}},
	{itsTable, "an offer of a job that is attached", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.Execution, "arn"))
		w.put(februaryRow, written(schema.OfferedAt, noTime))
	}},
	{itsTable, "a verdict that passed without a manifest", cutOff(snapshot.Validating, nil), func(w *World) { w.put(februaryRow, written(schema.Verdict, "passed")) }},
	{itsTable, "bounds that move", queuedMonth, func(w *World) { w.put(februaryRow, written(schema.PeriodEnd, noTime)) }},
	{itsTable, "a timeline that is written anew", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.Timeline, []string{"nothing"}, schema.Execution, "arn"))
	}},
	{itsTable, "a row that is gone", queuedMonth, func(w *World) { w.wipeMonth(februaryRow) }},
	{itsTable, "a month that begins with a job", plannedMonth, func(w *World) {
		it := written(schema.PK, string(februaryRow.PK), schema.SK, "P#2040-01#V#0001", schema.State, snapshot.Planned, schema.Job, 4)
		_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Snapshots), Item: it})
		w.must(err)
	}},
	{itsTable, "a request of nobody", publishedMonth, func(w *World) {
		_, err := w.Kit(nil).MonthEditor().Request(background, inFebruary, "again", "ann")
		w.must(err)
		w.put(schema.SnapshotKey("EWR", "delays", "2040-02", 2), written(schema.RequestedBy, "bob"))
	}},

	{staysSettled, "a published month with another manifest", publishedMonth, func(w *World) { w.put(februaryRow, written(schema.Manifest, "x")) }},
	{staysSettled, "a published month that is cancelled", publishedMonth, func(w *World) { w.put(februaryRow, written(schema.State, snapshot.Cancelled)) }},
	{staysSettled, "a published month whose mark moves", publishedMonth, func(w *World) { w.put(februaryRow, written(schema.SettledShard, "settled#99")) }},
	{staysSettled, "a cancelled month that runs", func(w *World) { queuedMonth(w); w.must(cancelling(february1)(background, w.Kit(nil))) }, func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Running))
	}},
	{staysSettled, "a published month that is gone", publishedMonth, func(w *World) { w.wipeMonth(februaryRow) }},

	{theIndex, "a planned month that nobody finds", plannedMonth, func(w *World) { w.put(februaryRow, written(schema.Work, nil, schema.WorkAt, nil)) }},
	{theIndex, "an admitted month among the planned", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.Work, schema.WorkPlanned("default", false)))
	}},
	{theIndex, "a retry at another time", failedOnce, func(w *World) { w.put(februaryRow, written(schema.WorkAt, noTime)) }},
	{theIndex, "an open month among what is left over", queuedMonth, func(w *World) {
		w.put(februaryRow, written(schema.SettledShard, "settled#00"))
	}},
	{theIndex, "a month that settles and leaves nothing to clean", cutOff(snapshot.Validating, func(it Row) bool { return Text(it, schema.Verdict) == "passed" }), func(w *World) {
		w.put(februaryRow, written(schema.State, snapshot.Published, schema.Work, nil, schema.WorkAt, nil, schema.SettledAt, noTime))
	}},

	{chunkWrite, "a chunk with another digest", publishedMonth, func(w *World) { w.put(schema.ChunkKey(february1, 1, 0), written(schema.SHA, "x")) }},
	{chunkWrite, "a chunk that is gone", publishedMonth, func(w *World) { w.wipeMonth(schema.ChunkKey(february1, 1, 1)) }},

	{thePointer, "a move of nobody's", publishedTwice, func(w *World) { w.movedBy(2) }},
	{thePointer, "a roll back without an audit", publishedTwice, func(w *World) { w.movedBy(2, w.moveRecord("ann")) }},
	{thePointer, "a roll back by nobody", publishedTwice, func(w *World) { w.movedBy(2, w.moveRecord(""), auditOf("id1")) }},
	{thePointer, "a roll back that forgets the version before", publishedTwice, func(w *World) { w.movedBy(0, w.moveRecord("ann"), auditOf("id1")) }},
	{thePointer, "a current version that is gone", publishedMonth, func(w *World) { w.wipeMonth(februaryNow) }},

	{theCursor, "a cursor without its chunk", cutOff(snapshot.Running, nil), func(w *World) { w.put(februaryRow, written(schema.Cursor, 1)) }},
	{theCursor, "rows that no chunk has", cutOff(snapshot.Running, func(it Row) bool { return figure(it, schema.Cursor) == 1 }), func(w *World) {
		w.put(februaryRow, written(schema.CursorRows, 7))
	}},
	{theCursor, "a chunk without the cursor", cutOff(snapshot.Running, nil), func(w *World) { w.chunkByHand(1, 0) }},
	{theCursor, "a chunk after a gap", cutOff(snapshot.Running, nil), func(w *World) {
		w.put(februaryRow, written(schema.Cursor, 1))
		w.chunkByHand(1, 4)
	}},
	{theCursor, "a chunk of a generation to come", cutOff(snapshot.Running, nil), func(w *World) { w.chunkByHand(3, 0) }},

	{theSlots, "a slot that is lost", queuedMonth, func(w *World) { w.put(ownersCaps, written(schema.Slots, []string{})) }},
	{theSlots, "a slot of nobody's", queuedMonth, func(w *World) { w.put(ownersCaps, written(schema.Slots, []string{february1, "x"})) }},
	{theSlots, "a current month among the backfills", queuedMonth, func(w *World) { w.put(ownersCaps, written(schema.Backfill, []string{february1})) }},
	{theSlots, "more slots than there are", queuedMonth, func(w *World) {
		w.months.strange = map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true}
		w.put(ownersCaps, written(schema.Slots, []string{february1, "a", "b", "c", "d", "e"}, schema.Backfill, []string{"a"}))
	}},
	{theSlots, "more backfills than there may be", queuedMonth, func(w *World) {
		w.months.strange = map[string]bool{"a": true, "b": true, "c": true}
		w.put(ownersCaps, written(schema.Slots, []string{february1, "a", "b", "c"}, schema.Backfill, []string{"a", "b", "c"}))
	}},
	{theSlots, "a current month in the slot of backfills", queuedMonth, func(w *World) {
		w.months.strange = map[string]bool{"a": true, "b": true, "c": true, "d": true}
		w.put(ownersCaps, written(schema.Slots, []string{february1, "a", "b", "c"}))
		w.put(ownersCaps, written(schema.Slots, []string{february1, "a", "b", "c", "d"}))
	}},
	{theSlots, "caps that are gone", queuedMonth, func(w *World) { w.wipeMonth(ownersCaps) }},

	{theHead, "a month that its head does not know", queuedMonth, func(w *World) { w.put(februaryHead, written(schema.Active, nil)) }},
	{theHead, "a version that there is not", queuedMonth, func(w *World) { w.put(februaryHead, written(schema.Latest, 2)) }},
	{theHead, "a head that tells another end", publishedMonth, func(w *World) { w.put(februaryHead, written(schema.LatestState, "failed")) }},
	{theHead, "a published month that is late", publishedMonth, func(w *World) { w.put(februaryHead, written(schema.LateShard, "late#00", schema.LateAt, noTime)) }},
	{theHead, "a current version that was not published", publishedMonth, func(w *World) {
		w.months.runs[february1] = w.months.runs["none"]
		w.months.runs[february1] = written(schema.State, snapshot.Cancelled)
		w.put(februaryHead, written(schema.LatestState, snapshot.Cancelled))
	}},
	{theHead, "two versions under way", queuedMonth, func(w *World) {
		it := written(schema.PK, string(februaryRow.PK), schema.SK, "P#2040-02#V#0002", schema.State, snapshot.Planned, schema.Job, 0, schema.Attempts, 0, schema.Failures, 0,
			schema.OwnerOf, "default", schema.Work, schema.WorkPlanned("default", false), schema.WorkAt, noTime)
		_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Snapshots), Item: it})
		w.must(err)
	}},

	{theRows, "a chunk that is not there", cutOff(snapshot.Validating, func(it Row) bool { return Text(it, schema.Verdict) == "passed" }), func(w *World) {
		w.unseen(w.removeChunk)
		w.Rest()
	}},
	{theRows, "other rows than the source's", plannedMonth, func(w *World) {
		w.Reach("validating", w.inState(february1, snapshot.Validating, func(it Row) bool { return Text(it, schema.Verdict) == "passed" }))
		w.Data.held[0]["EWR 2040-02"] = []int64{10, -3, 26}
		w.Rest()
	}},
	{theRows, "a row too many", plannedMonth, func(w *World) {
		w.Reach("validating", w.inState(february1, snapshot.Validating, func(it Row) bool { return Text(it, schema.Verdict) == "passed" }))
		w.Data.held[0]["EWR 2040-02"] = []int64{10, -3}
		w.Rest()
	}},

	{theObject, "a chunk that is written again", publishedMonth, func(w *World) {
		_, err := w.S3.PutObject(background, &s3.PutObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String(w.chunkKeys()[0]), Body: bytes.NewReader([]byte("x"))})
		w.must(err)
	}},
	{theObject, "a chunk that is removed", publishedMonth, func(w *World) { w.removeChunk() }},
	{theObject, "a chunk of a month under way", cutOff(snapshot.Running, func(it Row) bool { return figure(it, schema.Cursor) == 1 }), func(w *World) { w.removeChunk() }},
	{theObject, "what was left a moment ago", func(w *World) {
		failedOnce(w)
		w.leave(february1, "g1/x")
		w.must(cancelling(february1)(background, w.Kit(nil)))
	}, func(w *World) { w.removeChunk() }},
	{theObject, "an object of no run", plannedMonth, func(w *World) {
		_, err := w.S3.PutObject(background, &s3.PutObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String("x"), Body: strings.NewReader("x")})
		w.must(err)
		_, err = w.S3.DeleteObject(background, &s3.DeleteObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String("x")})
		w.must(err)
	}},

	{theWhole, "a row that nobody was seen to write", publishedMonth, func(w *World) { w.unseen(func() { w.put(februaryHead, written(schema.Latest, 2)) }) }},
	{theWhole, "a chunk that nobody was seen to remove", publishedMonth, func(w *World) { w.unseen(func() { w.wipeMonth(schema.ChunkKey(february1, 1, 1)) }) }},

	{theRest, "a month that waits", plannedMonth, func(*World) {}},
	{theRest, "a month that nobody dispatches for a day", plannedMonth, func(w *World) {
		w.held(func() { w.For(24 * time.Hour) }, ruleMonths)
		w.Rest()
	}},
	{theRest, "a slot that is held", publishedMonth, func(w *World) {
		w.months.strange[february1] = true
		w.put(ownersCaps, written(schema.Slots, []string{february1}))
	}},
	{theRest, "an execution that runs", publishedMonth, func(w *World) {
		w.Steps.OnStart = nil
		_, err := w.Steps.StartExecution(background, &sfn.StartExecutionInput{StateMachineArn: aws.String(machineARN), Name: aws.String("x"), Input: aws.String("{}")})
		w.must(err)
		w.months.started[executionOf("x")] = true
	}},
	{theRest, "a month with more jobs than failures account for", publishedMonth, func(w *World) {
		w.unseen(func() { w.put(februaryRow, written(schema.Job, 3)) })
		w.months.runs[february1] = w.rowNow(februaryRow)
	}},

	{theReading, "a chunk that has vanished", publishedMonth, func(w *World) { w.unseen(w.removeChunk) }},
	{theReading, "a chunk with other bytes", publishedMonth, func(w *World) {
		w.unseen(func() {
			_, err := w.S3.PutObject(background, &s3.PutObjectInput{Bucket: aws.String(MonthFiles), Key: aws.String(w.chunkKeys()[1]), Body: bytes.NewReader([]byte("x"))})
			w.must(err)
		})
	}},

	{execution, "an execution that starts twice", queuedMonth, func(w *World) {
		w.begunExecution(executionOf(february1+"-j1"), snapshot.Job{Run: february1, Job: 1})
		w.begunExecution(executionOf(february1+"-j1"), snapshot.Job{Run: february1, Job: 1})
	}},
	{execution, "an execution of another job's name", queuedMonth, func(w *World) {
		w.begunExecution(executionOf(february1+"-j2"), snapshot.Job{Run: february1, Job: 1})
	}},
	{execution, "an execution before its claim", plannedMonth, func(w *World) {
		w.begunExecution(executionOf(february1+"-j1"), snapshot.Job{Run: february1, Job: 1})
	}},
	{"a month's queries are paid for once", "a query of nobody's", fromLake, func(w *World) { w.asksLake("select 1", strings.Repeat("t", 32)) }},
	{"a month's queries are paid for once", "the rows a second time", fromLake, func(w *World) { w.asksLake("select id, delay "+ofMonths, w.Month(february1).QueryToken(3)) }},
	{"a month's queries are paid for once", "the control a second time", fromLake, func(w *World) {
		w.asksLake("select count(*) as rows "+ofMonths, w.Month(february1).QueryToken(3))
	}},
	{"a month's queries are paid for once", "another id is recorded", fromLake, func(w *World) {
		w.unseen(func() { w.put(februaryRow, written(schema.QueryID, "another")) })
	}},
	{"a month's queries are paid for once", "its cost is not whole", fromLake, func(w *World) {
		w.unseen(func() { w.put(februaryRow, written(schema.QueryScanned, 1)) })
	}},
	{"a month's queries are paid for once", "its cost is more than all", fromLake, func(w *World) {
		w.unseen(func() { w.put(februaryRow, written(schema.QueryScanned, 1<<40)) })
	}},
	{"a settled month never changes", "its query's cost, which was told before", fromLake, func(w *World) { w.put(februaryRow, written(schema.QueryScanned, 1)) }},
	{"a month moves only as its table says", "a query beside one that runs", lakeRuns, func(w *World) {
		w.put(februaryRow, written(schema.QueryNumber, 2, schema.QueryID, "another"))
	}},
	{"a month moves only as its table says", "what a query has cost, twice", lakeNoted, func(w *World) { w.put(februaryRow, written(schema.QueryScanned, 2<<30)) }},
	{"a month moves only as its table says", "less than a query has cost", lakeNoted, func(w *World) { w.put(februaryRow, written(schema.QueryScanned, 1)) }},
	{"a month moves only as its table says", "a query that is noted and was none", cutOff(snapshot.Running, nil), func(w *World) { w.put(februaryRow, written(schema.QueryNoted, true)) }},
}

// only applies the rules of one name to what has changed, and to the whole.
func (w *World) only(name string) error {
	var errs []error
	for _, c := range w.changes {
		for _, r := range monthRowRules {
			if r.name == name {
				errs = append(errs, r.holds(w, c))
			}
		}
	}
	for _, r := range monthStepRules {
		if r.name == name {
			errs = append(errs, r.holds(w, w.changes))
		}
	}
	for _, b := range w.blobs {
		for _, r := range monthBlobRules {
			if r.name == name {
				errs = append(errs, r.holds(w, b))
			}
		}
	}
	for _, r := range monthWholeRules {
		if r.name == name {
			errs = append(errs, r.holds(w))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if w.wrong != "" {
		return errors.New(w.wrong)
	}
	return nil
}

func (w *World) rowNow(k schema.Key) (row Row) {
	for _, it := range w.DB.Items(Snapshots) {
		if Text(it, schema.PK) == string(k.PK) && Text(it, schema.SK) == string(k.SK) {
			row = it
		}
	}
	return row
}

func (w *World) chunkByHand(generation, number int) {
	k := schema.ChunkKey(february1, generation, number)
	_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Snapshots), Item: written(schema.PK, string(k.PK), schema.SK, string(k.SK), schema.Rows, 2)})
	w.must(err)
}

// fromLake is a month that was published from Athena.
func fromLake(w *World) {
	w.lakeOf(nil, nil)
	w.defined(lakeMonths())
	w.attempted(february1)
}

// lakeRuns has a query under way, lakeNoted one that has ended.
func lakeRuns(w *World) {
	w.lakeOf(map[string]time.Duration{lakeOfRows: time.Hour}, nil)
	w.defined(lakeMonths())
	w.Reach("that its rows are asked for", w.inState(february1, snapshot.Running, func(it Row) bool { return Text(it, schema.QueryID) != "" }))
}

func lakeNoted(w *World) {
	w.lakeOf(nil, nil)
	w.defined(lakeMonths())
	w.Reach("that its query has ended", w.inState(february1, snapshot.Running, func(it Row) bool { return truth(it, schema.QueryNoted) }))
}

// asksLake starts a query as no step does.
func (w *World) asksLake(sql, token string) {
	_, err := w.Athena.StartQueryExecution(background, &athena.StartQueryExecutionInput{QueryString: &sql, ClientRequestToken: &token, ExecutionParameters: []string{"'EWR'", "TIMESTAMP '2040-02-01 05:00:00.000000'"},
		ResultConfiguration: &athenatypes.ResultConfiguration{OutputLocation: aws.String("s3://lake/")}})
	w.must(err)
}

// Each promise of months is broken on purpose, in each of its parts, and is seen to be broken.
func TestMonthsPromisesCanBeBroken(t *testing.T) {
	broken := map[string]bool{execution: true}
	for _, b := range monthBreaches {
		broken[b.promise] = true
		t.Run(b.name, func(t *testing.T) {
			var only error
			err := Run(t, func(w *World) {
				w.Company()
				b.at(w)
				w.checkChanged()
				b.breaks(w)
				only = w.only(b.promise)
				w.checkChanged()
				w.checkWhole()
			})
			if err == nil {
				t.Fatal("the world goes on")
			}
			if only == nil {
				only = err // while it was brought about
			}
			if !strings.HasPrefix(only.Error(), b.promise+":") {
				t.Errorf("%v; want that %q is broken", only, b.promise)
			}
		})
	}
	names := promiseNames(monthRowRules, monthStepRules, monthBlobRules, monthWholeRules)
	for _, name := range names {
		if !broken[name] {
			t.Errorf("nothing breaks the promise that %s", name)
		}
	}
	if len(names)+1 != len(broken) || !slices.Contains(names, theRest) {
		t.Errorf("%d promises, %d are broken", len(names)+1, len(broken))
	}
}
