package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	athenatypes "github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// alter writes a row behind the product's back: attributes of the given values, nil to remove one.
func (w *World) alter(k schema.Key, with map[string]any) {
	row := Row{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}}
	for name, v := range w.delivery.row(k) {
		row[name] = v
	}
	for name, v := range with {
		switch v := v.(type) {
		case nil:
			delete(row, name)
		case int:
			row[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		case bool:
			row[name] = &types.AttributeValueMemberBOOL{Value: v}
		case string:
			row[name] = &types.AttributeValueMemberS{Value: v}
		case types.AttributeValue:
			row[name] = v
		}
	}
	_, err := w.DB.PutItem(background, &dynamodb.PutItemInput{TableName: aws.String(Schedules), Item: row})
	w.must(err)
}

// wipe removes a row behind the product's back.
func (w *World) wipe(k schema.Key) {
	_, err := w.DB.DeleteItem(background, &dynamodb.DeleteItemInput{TableName: aws.String(Schedules), Key: Row{schema.PK: &types.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(k.SK)}}})
	w.must(err)
}

func firstKey() schema.Key { return schema.RunKey("s", schedule.OccurrenceKey(FirstDue)) }

func subOf(address string) schema.Key {
	return schema.SubmissionKey(FirstRun("s"), recipients1(address)[0].Channel(), hash(address))
}

// settledWorld has a run that succeeded, of a mail and a webhook.
func settledWorld(w *World) {
	w.Apply(telling(Definition("s", "a@example.com", "b")))
	first(w)
	w.Rest()
}

// admittedWorld has a run that nobody has begun.
func admittedWorld(w *World) {
	w.Off[queueRuns] = true
	w.Apply(telling(Definition("s", "a@example.com", "b")))
	first(w)
}

// runningWorld has a run that somebody holds, a file, and no submission.
func runningWorld(w *World) {
	w.befalls(func(c *Call) Form {
		if c.Worker.Name == queueRuns && c.Name == "DynamoDB.BatchGetItem" {
			return DieBefore
		}
		return AsAsked
	})
	w.Apply(telling(Definition("s", "a@example.com", "b")))
	first(w)
}

// unknownWorld has a failed run whose mail is unknown.
func unknownWorld(w *World) {
	cut(w)
	w.Apply(Once("s", "a@example.com", "b"))
	first(w)
	w.Rest()
}

func moveTime(at time.Time) string { return schema.Time(at) }

// broken are worlds in which a promise of deliveries is broken on purpose.
var brokenDeliveries = []struct {
	promise string
	name    string
	world   func(*World)
	spoil   func(*World)
}{
	{"a run moves only as table A says, and stays as it settled", "a settled run fails", settledWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.State: "failed"})
	}},
	{"a run moves only as table A says, and stays as it settled", "a settled run's counts change", settledWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.Submitted: 7})
	}},
	{"a run moves only as table A says, and stays as it settled", "a settled run's counts change as its links are taken back", settledWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.Submitted: 7, schema.LinksRevoked: moveTime(w.Now())})
	}},
	{"a run moves only as table A says, and stays as it settled", "a run is gone", settledWorld, func(w *World) { w.wipe(firstKey()) }},
	{"a run moves only as table A says, and stays as it settled", "a queued run fails", admittedWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.State: "failed", schema.SettledAt: moveTime(w.Now()), schema.SettledBy: "x", schema.WakeAt: nil, schema.OpenShard: nil})
	}},
	{"a run moves only as table A says, and stays as it settled", "begun without an attempt", admittedWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.State: "running", schema.LeaseOwner: "x", schema.LeaseEnd: moveTime(w.Now()), schema.OpenShard: schema.OpenShardOf(FirstRun("s"), true), schema.Attempts: 1})
	}},
	{"a run moves only as table A says, and stays as it settled", "taken from its holder", runningWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.LeaseOwner: "thief", schema.Attempts: 2, schema.AttemptsLeft: 3})
	}},
	{"a run moves only as table A says, and stays as it settled", "settled by another", runningWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.State: "failed", schema.SettledAt: moveTime(w.Now()), schema.SettledBy: "thief", schema.WakeAt: nil, schema.OpenShard: nil, schema.LeaseOwner: nil, schema.LeaseEnd: nil})
	}},
	{"a run moves only as table A says, and stays as it settled", "another file", runningWorld, func(w *World) {
		w.alter(firstKey(), map[string]any{schema.File: "another"})
	}},
	{"a submission moves only as table B says, and keeps its outcome", "sent again", settledWorld, func(w *World) {
		w.alter(subOf("b"), map[string]any{schema.State: "pending"})
	}},
	{"a submission moves only as table B says, and keeps its outcome", "a mail taken over although it may have been accepted", runningWorld, func(w *World) {
		owner := Text(w.delivery.run(FirstRun("s")), schema.LeaseOwner)
		w.alter(subOf("a@example.com"), map[string]any{schema.State: "pending", schema.Owner: owner, schema.Tries: 1, schema.UpdatedAt: moveTime(w.Now())})
		w.checkChanged()
		w.alter(subOf("a@example.com"), map[string]any{schema.Owner: "other", schema.Tries: 2})
	}},
	{"a submission moves only as table B says, and keeps its outcome", "a resend without a wish", unknownWorld, func(w *World) {
		w.alter(subOf("a@example.com"), map[string]any{schema.State: "pending", schema.Owner: "x", schema.Resends: 1})
	}},
	{"a submission moves only as table B says, and keeps its outcome", "a submission is gone", settledWorld, func(w *World) { w.wipe(subOf("b")) }},
	{"a schedule moves only as table C says", "deleted, and active again", settledWorld, func(w *World) {
		w.must(w.Kit(nil).Editor().Delete(background, "s", "a test", "ann"))
		w.checkChanged()
		w.alter(schema.ScheduleKey("s"), map[string]any{schema.State: "active", schema.DirKind: schema.DirSchedules})
	}},
	{"a schedule moves only as table C says", "back to a day before", settledWorld, func(w *World) {
		w.alter(schema.ScheduleKey("s"), map[string]any{schema.LastNominal: moveTime(FirstDue.AddDate(0, 0, -1))})
	}},
	{"indexes hold what is open, and nothing else", "a settled run in the open-run index", admittedWorld, func(w *World) {
		w.alter(schema.RunKey("s", "manual"), map[string]any{schema.State: "queued", schema.AttemptsLeft: 5})
	}},
	{"indexes hold what is open, and nothing else", "a paused schedule is due", settledWorld, func(w *World) {
		w.alter(schema.ScheduleKey("s"), map[string]any{schema.State: "paused"})
	}},
	{"what is recorded once stays", "a version is another", settledWorld, func(w *World) {
		w.alter(schema.DefinitionKey("s", 1), map[string]any{schema.Body: "{}"})
	}},
	{"what is recorded once stays", "a skip record shrinks", settledWorld, func(w *World) {
		k := schema.SkipKey("s", Start, "missed")
		w.alter(k, map[string]any{schema.First: moveTime(Start), schema.Last: moveTime(Start), schema.Count: 2})
		w.checkChanged()
		w.alter(k, map[string]any{schema.Count: 1})
	}},
	{"each act of a person has its audit, and each audit its act", "paused by nobody", settledWorld, func(w *World) {
		w.alter(schema.ScheduleKey("s"), map[string]any{schema.State: "paused", schema.PausedBy: "ann", schema.PauseReason: "x", schema.DueShard: nil, schema.NextDueAt: nil})
	}},
	{"each act of a person has its audit, and each audit its act", "an audit of nothing", settledWorld, func(w *World) {
		w.alter(schema.AuditKey("s", w.Now(), "x"), map[string]any{schema.What: "pause"})
	}},
	{"a lease is taken when nobody holds one, and intents are their holder's", "an intent of nobody's", runningWorld, func(w *World) {
		w.alter(subOf("b"), map[string]any{schema.State: "pending", schema.Owner: "nobody", schema.Tries: 1, schema.UpdatedAt: moveTime(w.Now())})
	}},
	{"a lease is taken when nobody holds one, and intents are their holder's", "an intent after the lease", runningWorld, func(w *World) {
		owner := Text(w.delivery.run(FirstRun("s")), schema.LeaseOwner)
		w.alter(subOf("b"), map[string]any{schema.State: "pending", schema.Owner: owner, schema.Tries: 1, schema.UpdatedAt: moveTime(w.Now().Add(time.Hour))})
	}},
	{"a settled run's counts are its submissions'", "succeeded with nothing sent", runningWorld, func(w *World) {
		w.settle(map[string]any{schema.State: "succeeded", schema.Submitted: 2})
	}},
	{"streak, last run, open run and pause follow a settle, and nothing else", "a streak out of nowhere", settledWorld, func(w *World) {
		w.alter(schema.ScheduleKey("s"), map[string]any{schema.LastRunNominal: moveTime(w.Now()), schema.Streak: 3})
	}},
	{"streak, last run, open run and pause follow a settle, and nothing else", "a settle that its schedule does not know", runningWorld, func(w *World) {
		for _, r := range []string{"a@example.com", "b"} {
			w.alter(subOf(r), map[string]any{schema.State: "not_sent"})
		}
		w.settle(map[string]any{schema.State: "failed", schema.ErrorCode: "query_invalid"})
	}},
	{"notices come with the settle that they tell of, and go when they are told", "a notice of nothing", settledWorld, func(w *World) {
		w.alter(schema.NoticeKey(noticeID()), map[string]any{schema.NextAt: moveTime(w.Now()), schema.Body: "{}"})
	}},
	{"notices come with the settle that they tell of, and go when they are told", "a notice goes untold", settledWorld, func(w *World) {
		w.delivery.hear(nil, Row{schema.PK: &types.AttributeValueMemberS{Value: string(schema.NoticeKey(noticeID()).PK)}, schema.SK: &types.AttributeValueMemberS{Value: string(schema.NoticeKey(noticeID()).SK)}})
		w.alter(schema.NoticeKey(noticeID()), map[string]any{schema.NextAt: moveTime(w.Now())})
		w.changes = nil
		w.wipe(schema.NoticeKey(noticeID()))
	}},
	{"a retry to the missing names nobody who has the delivery", "a retry to who has it", settledWorld, func(w *World) {
		id := schema.RunID("s", "manual1")
		_, occurrence, _ := schema.SplitRunID(id)
		w.alter(schema.AuditKey(id, w.Now(), "x"), map[string]any{schema.What: "retry as new", schema.After: "1 recipients, missing"})
		w.alter(schema.RunKey("s", occurrence), map[string]any{schema.State: "queued", schema.Manual: true, schema.AttemptsLeft: 5, schema.RetryOf: FirstRun("s"),
			schema.WakeAt: moveTime(w.Now()), schema.OpenShard: schema.OpenShardOf(id, false),
			schema.Targets: &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: channel.Webhook + "#" + hash("b")}}}})
	}},
	{"the recorded file is the object, whole", "a digest of other bytes", admittedWorld, func(w *World) {
		w.Off[queueRuns] = false
		w.befalls(func(c *Call) Form {
			if c.Worker.Name == queueRuns && c.Name == "DynamoDB.UpdateItem" && c.Of > 8 { // record file
				for key := range w.delivery.objects {
					w.delivery.objects[key] = []byte("other bytes\n")
				}
			}
			return AsAsked
		})
		w.For(time.Minute)
	}},
	{"nobody is sent to but the recipients, each request as it was first made", "a stranger", settledWorld, func(w *World) {
		p := w.Hooks.To("b")[0]
		p.Name = "stranger"
		w.Hooks.Posts = append(w.Hooks.Posts, p)
	}},
	{"nobody is sent to but the recipients, each request as it was first made", "another body under one key", settledWorld, func(w *World) {
		p := w.Hooks.To("b")[0]
		p.Body = strings.Replace(p.Body, "Delays", "Others", 1)
		w.Hooks.Posts = append(w.Hooks.Posts, p)
	}},
	{"nobody is sent to but the recipients, each request as it was first made", "another key", settledWorld, func(w *World) {
		p := w.Hooks.To("b")[0]
		p.Key += "/2"
		w.Hooks.Posts = append(w.Hooks.Posts, p)
	}},
	{"nobody is sent to but the recipients, each request as it was first made", "a mail twice", settledWorld, func(w *World) {
		w.Mail.Kept = append(w.Mail.Kept, w.Mail.Kept[0])
	}},
	{"nobody is sent to but the recipients, each request as it was first made", "who was taken off", settledWorld, func(w *World) {
		delete(w.delivery.reach[FirstRun("s")], Address("b"))
		w.Hooks.Posts = append(w.Hooks.Posts, w.Hooks.To("b")[0])
	}},
	{"the batch response names what was not done, and nothing else", "a settled run comes again", settledWorld, func(w *World) { w.answersAs(schedule.EncodeMessage(FirstRun("s")), true) }},
	{"the batch response names what was not done, and nothing else", "an open run's message is deleted", admittedWorld, func(w *World) { w.answersAs(schedule.EncodeMessage(FirstRun("s")), false) }},
	{"the batch response names what was not done, and nothing else", "what nobody can read is deleted", settledWorld, func(w *World) { w.answersAs("{", false) }},
	{"a run's query is paid for once", "a query of nobody's", settledWorld, func(w *World) {
		w.lake(lakeRows(0))
		_, err := w.Athena.StartQueryExecution(background, &athena.StartQueryExecutionInput{QueryString: aws.String("select 1"), ClientRequestToken: aws.String(strings.Repeat("t", 32)),
			ResultConfiguration: &athenatypes.ResultConfiguration{OutputLocation: aws.String("s3://lake/")}})
		w.must(err)
		w.checkWhole()
	}},
	{"a run's query is paid for once", "the second after a result", settledWorld, func(w *World) {
		w.lake(lakeRows(0))
		for n := 1; n <= 2; n++ {
			_, err := w.Athena.StartQueryExecution(background, &athena.StartQueryExecutionInput{QueryString: aws.String("select 1"), ClientRequestToken: aws.String(schedule.QueryToken(w.RunOf("s"), n)),
				ResultConfiguration: &athenatypes.ResultConfiguration{OutputLocation: aws.String("s3://lake/")}})
			w.must(err)
			w.Athena.State(w.Athena.Started()[n-1].ID)
		}
		w.checkWhole()
	}},
	{"one file per run, never overwritten", "overwritten", settledWorld, func(w *World) {
		for key := range w.delivery.objects {
			_, err := w.S3.PutObject(background, &s3.PutObjectInput{Bucket: aws.String(FileBucket), Key: aws.String(key), Body: strings.NewReader("x")})
			w.must(err)
		}
	}},
	{"one file per run, never overwritten", "removed", settledWorld, func(w *World) {
		for key := range w.delivery.objects {
			_, err := w.S3.DeleteObject(background, &s3.DeleteObjectInput{Bucket: aws.String(FileBucket), Key: aws.String(key)})
			w.must(err)
		}
	}},
	{"every run settles, within its attempts and its time", "a run that nobody reads for a night", admittedWorld, func(w *World) {
		w.For(12 * time.Hour)
		w.Off[queueRuns] = false
		w.Rest()
	}},
	{"every run settles, within its attempts and its time", "an open run at rest", admittedWorld, func(w *World) { w.checkWhole() }},
	{"submissions say what their receivers know", "submitted, and nothing was taken", settledWorld, func(w *World) {
		clear(w.delivery.taken)
		w.checkWhole()
	}},
	{"submissions say what their receivers know", "two keys for one delivery", settledWorld, func(w *World) {
		w.delivery.apply("b", FirstRun("s")+"/"+channel.Webhook+"#"+hash("b")+"/2")
		w.checkWhole()
	}},
	{"every notice is told", "one is not", settledWorld, func(w *World) {
		w.delivery.notices["s@x#failed#email#y"] = true
		w.checkWhole()
	}},
}

func noticeID() string { return schema.NoticeID(FirstRun("s"), "failed", channel.Webhook, hash("n")) }

// settle settles the first run behind the product's back, as its holder would.
func (w *World) settle(with map[string]any) {
	all := map[string]any{schema.SettledAt: moveTime(w.Now()), schema.SettledBy: Text(w.delivery.run(FirstRun("s")), schema.LeaseOwner), schema.Skipped: 0,
		schema.WakeAt: nil, schema.OpenShard: nil, schema.LeaseOwner: nil, schema.LeaseEnd: nil}
	for name, v := range with {
		all[name] = v
	}
	w.alter(firstKey(), all)
}

// answersAs has a consumer answer to a message, named or not.
func (w *World) answersAs(body string, named bool) {
	var e lambdaevents.SQSEventResponse
	if named {
		e.BatchItemFailures = append(e.BatchItemFailures, lambdaevents.SQSBatchItemFailure{ItemIdentifier: "m"})
	}
	w.delivery.hearAnswer(&Worker{Name: queueRuns}, queueRuns, []sqstypes.Message{{MessageId: aws.String("m"), Body: &body}}, e)
}

// Each promise is broken on purpose, and says so: one that cannot fail promises nothing.
func TestPromisesOfDeliveriesCanBreak(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range brokenDeliveries {
		seen[b.promise] = true
		t.Run(b.name, func(t *testing.T) {
			there := false
			err := Run(t, func(w *World) {
				w.Company()
				b.world(w)
				w.checkChanged()
				there = true
				b.spoil(w)
				w.checkChanged()
			})
			if !there || err == nil || !strings.HasPrefix(err.Error(), b.promise) {
				t.Errorf("%v; want it to say %q", err, b.promise)
			}
		})
	}
	for _, name := range promiseNames(deliveryRowRules, deliveryStepRules, deliveryBlobRules, deliveryWholeRules) {
		if !seen[name] {
			t.Errorf("no test breaks the promise %q", name)
		}
	}
}

// promiseNames are those of a half's rules.
func promiseNames(rows []rowRule, steps []stepRule, blobs []blobRule, wholes []wholeRule) (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	for _, r := range steps {
		names = append(names, r.name)
	}
	for _, r := range blobs {
		names = append(names, r.name)
	}
	for _, r := range wholes {
		names = append(names, r.name)
	}
	return names
}
