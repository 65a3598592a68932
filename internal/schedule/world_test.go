package schedule_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/boot"
	"almanac/internal/calendar"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/channel/webhook"
	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/queue"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"
	"almanac/internal/source/sqlite/databucket"
	"almanac/internal/store"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	_ "modernc.org/sqlite"
)

// TestMain fails when a code that this package owns is provoked by no test here.
func TestMain(m *testing.M) { failuretest.Main(m, "schedule") }

// ctx is the tests' own: calls made with it meet no fault.
var ctx = context.Background()

// start is where both clocks begin: a Monday, noon UTC. It lies far ahead of the machine's clock, so that no deadline
// of the held clock ever fires by itself.
var start = time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)

// The figures of the deployed functions (design.md §7).
const (
	deliverTime  = 5 * time.Minute
	dispatchTime = time.Minute
	visibility   = 30 * time.Minute
)

// world is the whole of scheduled delivery in one process: the real store, queue, bucket and sources over an AWS in
// memory, the real channels before receivers that the test scripts, and two clocks that the test holds.
type world struct {
	t          testing.TB
	maxReceive int // of the delivery queue
	step       time.Duration
	timing     schedule.Timing
	rate       int // mails a second

	mu     sync.Mutex
	now    time.Time
	shift  time.Duration // business time less wall time
	live   map[*invocation]bool
	tokens int
	ticked time.Time
	counts map[string]int

	db     *memcloud.Dynamo
	s3     *memcloud.S3
	sqs    *memcloud.SQS
	athena *memcloud.Athena
	store  *store.Store
	queue  *queue.Queue
	dlq    string

	mail  *mailbox
	hooks *receivers
	log   *logbook

	dispatcher *schedule.Dispatcher
	deliverer  *schedule.Deliverer
	consumer   boot.Consumer
	letters    boot.DeadLetters
	editor     *schedule.Editor
	links      *schedule.Links

	faults faults
	paused func(time.Duration) // while a worker waits for its turn to send
}

// option changes a world before it is wired.
type option func(*world)

func maxReceive(n int) option { return func(w *world) { w.maxReceive = n } }

// mailRate is the account's send rate; 0: none.
func mailRate(n int) option { return func(w *world) { w.rate = n } }

func timing(change func(*schedule.Timing)) option { return func(w *world) { change(&w.timing) } }

func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	w := &world{t: t, maxReceive: 20, step: time.Second, timing: schedule.DefaultTiming(), rate: 200, now: start, live: map[*invocation]bool{}, counts: map[string]int{}}
	w.timing.Parallel = 1
	for _, o := range options {
		o(w)
	}
	if err := w.timing.Validate(); err != nil {
		t.Fatal(err)
	}
	w.log = &logbook{}
	w.mail = &mailbox{w: w}
	w.hooks = newReceivers(w)
	w.cloud()
	w.wire()
	w.must(w.store.PutWorkspace(ctx, schedule.Workspace{ID: "EWR", Name: "Newark", Zone: "America/New_York"}, w.stop("test")))
	w.must(w.store.PutSource(ctx, schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "flights.sqlite", Workspaces: []string{"*"}}, w.stop("test")))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// cloud makes the table, the buckets and the two queues as the stack does.
func (w *world) cloud() {
	w.db, w.s3, w.sqs = memcloud.NewDynamo(w.wall), memcloud.NewS3(w.wall), memcloud.NewSQS(w.wall)
	w.athena = memcloud.NewAthena(w.wall, w.s3)
	w.db.Hooks, w.s3.Hooks, w.sqs.Hooks, w.athena.Hooks = w.hooked(), w.hooked(), w.hooked(), w.hooked()
	attributes := []dynamotypes.AttributeDefinition{}
	keys := func(names ...string) (out []dynamotypes.KeySchemaElement) {
		for i, n := range names {
			out = append(out, dynamotypes.KeySchemaElement{AttributeName: aws.String(n), KeyType: []dynamotypes.KeyType{"HASH", "RANGE"}[i]})
			attributes = append(attributes, dynamotypes.AttributeDefinition{AttributeName: aws.String(n), AttributeType: "S"})
		}
		return out
	}
	index := func(name string, k ...string) dynamotypes.GlobalSecondaryIndex {
		return dynamotypes.GlobalSecondaryIndex{IndexName: aws.String(name), KeySchema: keys(k...), Projection: &dynamotypes.Projection{ProjectionType: "KEYS_ONLY"}}
	}
	in := &dynamodb.CreateTableInput{TableName: aws.String("Schedules"), BillingMode: "PAY_PER_REQUEST", KeySchema: keys(schema.PK, schema.SK),
		GlobalSecondaryIndexes: []dynamotypes.GlobalSecondaryIndex{index(schema.IndexDue, schema.DueShard, schema.NextDueAt),
			index(schema.IndexOpen, schema.OpenShard, schema.WakeAt), index(schema.IndexDirectory, schema.DirKind, schema.DirName)}}
	in.AttributeDefinitions = attributes
	_, err := w.db.CreateTable(ctx, in)
	w.must(err)
	for _, b := range []string{"data", "files"} {
		_, err := w.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(b)})
		w.must(err)
	}
	_, err = w.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("data"), Key: aws.String("flights.sqlite"), Body: bytes.NewReader(flights(w.t))})
	w.must(err)
	dead, err := w.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("dead"), Attributes: map[string]string{"MessageRetentionPeriod": "1209600"}})
	w.must(err)
	live, err := w.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("query-runs"), Attributes: map[string]string{
		"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds())), "MessageRetentionPeriod": "345600",
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":%d}`, w.maxReceive)}})
	w.must(err)
	w.dlq, w.queue = *dead.QueueUrl, &queue.Queue{API: twiceSQS{w.sqs, w}, URL: *live.QueueUrl}
}

// wire builds the functions as package boot does, over the cloud in memory.
func (w *world) wire() {
	w.store = store.New(twiceDynamo{w.db, w}, "Schedules", "test")
	w.store.Lists = bucket.Lists{API: twiceS3{w.s3, w}, Bucket: "files"}
	w.store.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	clocks := schedule.Clocks{Wall: w.wall, Business: w.business}
	log, count := boot.NewLogger(w.log), boot.NewMetrics(io.MultiWriter(w.log), "Almanac", "test", w.wall)
	counted := func(name string, n int, outcome, kind string) {
		w.mu.Lock()
		w.counts[strings.TrimRight(name+" "+outcome, " ")] += n
		w.mu.Unlock()
		count(name, n, outcome, kind)
	}
	mail, err := email.New(w.mail, email.Config{From: "almanac@example.com", FromName: "Almanac"})
	w.must(err)
	hook, err := webhook.New(secrets{}, webhook.Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Now: w.wall})
	w.must(err)
	w.deliverer = &schedule.Deliverer{
		Ledger: w.store, Files: files{&bucket.Store{API: twiceS3{w.s3, w}, Bucket: "files", Pause: w.store.Pause}},
		Channels: map[string]channel.Channel{channel.Email: mail, channel.Webhook: tap{hook, w}},
		Notices:  map[string]channel.Announcer{channel.Email: mail, channel.Webhook: noticeTap{hook, w}},
		Pace:     schedule.Pace{Times: w.store, Rates: map[string]int{channel.Email: w.rate}, Pause: w.pause},
		Clocks:   clocks, Timing: w.timing, Token: w.token, Entropy: w.entropy, Links: "https://almanac.example",
		Allowed: boot.AllowList(nil), Log: log, Count: counted,
	}
	w.sandbox()
	settler := *w.deliverer
	settler.Files, settler.Sources, settler.Notices = nil, nil, nil // what schedule-exhaust does not hold
	ticking := *w.store
	ticking.Lists = nil // the tick has no right to the bucket
	w.dispatcher = &schedule.Dispatcher{Ledger: &ticking, Queue: w.queue, Clocks: clocks, Timing: w.timing, Token: w.token, Log: log, Count: counted}
	w.consumer = boot.Consumer{Handle: func(ctx context.Context, body string) schedule.Disposition { return w.deliverer.Handle(ctx, body) }, Hide: w.queue.Hide, Log: log}
	w.letters = boot.DeadLetters{Handle: (&schedule.Exhauster{Deliverer: &settler, Ledger: w.store, Queue: w.queue, QueueName: "query-runs"}).Handle, Log: log}
	w.editor = &schedule.Editor{Ledger: w.store, Queue: w.queue, Clocks: clocks, Timing: w.timing, Token: w.token, Log: log}
	w.links = &schedule.Links{Ledger: w.store, Wall: w.wall, Token: w.token, Timing: w.timing,
		Sign: func(_ context.Context, f schedule.RecordedFile, life time.Duration) (string, error) {
			return fmt.Sprintf("signed %s for %s", f.Key, life), nil
		}}
}

// sandbox gives the invocations to come a process of their own: a held one keeps its folder of data files to itself.
func (w *world) sandbox() {
	d := *w.deliverer
	d.Sources = &boot.Sources{Configs: w.store, Athena: boot.Athena{API: w.athena, Results: lakeResults{w.s3}, Output: "s3://files/queries/", Now: w.wall, Pause: w.pause}, SQLite: &sqlite.Fetcher{Bucket: &databucket.Bucket{API: w.s3, Name: "data"},
		Dir: filepath.Join(w.t.TempDir(), "sources"), Defaults: source.Defaults, Now: w.wall}}
	w.deliverer = &d
}

// files adapts the bucket to the domain, as package boot does.
type files struct{ *bucket.Store }

func (f files) Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error {
	return f.Upload(ctx, key, mediaType, disposition, produce)
}

func (f files) Read(ctx context.Context, file schedule.RecordedFile) ([]byte, error) {
	return f.ReadAll(ctx, file.Key, file.Bytes, file.SHA256)
}

// secrets sign for every id alike.
type secrets struct{}

const signingSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

func (secrets) Get(context.Context, string) ([]string, error) { return []string{signingSecret}, nil }

// flights is a small SQLite database, made once per process.
func flights(t testing.TB) []byte {
	t.Helper()
	body, err := madeOnce()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var madeOnce = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "almanac-flights")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "flights.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"CREATE TABLE flights (id INTEGER, carrier TEXT, delay INTEGER)",
		"INSERT INTO flights VALUES (1,'UA',5),(2,'B6',NULL),(3,'=1+1',-7),(4,'AA',9007199254740993)"} {
		if _, err := db.Exec(statement); err != nil {
			return nil, err
		}
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// wall is the held wall clock; business the held business clock.
func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) business(context.Context) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now.Add(w.shift), nil
}

// token is deterministic, and as long and URL-safe as a real one.
func (w *world) token() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens++
	return fmt.Sprintf("token-%016d", w.tokens)
}

func (w *world) entropy() []byte { return []byte(w.token()[6:]) }

// advance moves both clocks. Invocations whose deadline has come learn of it.
func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	for inv := range w.live {
		if !w.now.Before(inv.deadline) {
			inv.expire()
		}
	}
}

// pause lets a wait of a worker pass at once. Waits of several workers that began together pass together.
func (w *world) pause(ctx context.Context, d time.Duration) error {
	until := w.wall().Add(d)
	if w.paused != nil {
		w.paused(d)
	}
	if left := until.Sub(w.wall()); left > 0 {
		w.advance(left)
	}
	return ctx.Err()
}

// to moves both clocks to an instant of business time.
func (w *world) to(at time.Time) {
	w.t.Helper()
	now, _ := w.business(ctx)
	if at.Before(now) {
		w.t.Fatalf("clocks do not go back from %s to %s", now, at)
	}
	w.advance(at.Sub(now))
}

// tick invokes schedule-dispatch.
func (w *world) tick() schedule.Tally {
	w.t.Helper()
	inv := w.invoke("dispatch", dispatchTime)
	defer w.end(inv)
	tally, err := w.dispatcher.Tick(inv)
	if err != nil && !inv.dead.Load() && !w.faults.met {
		w.t.Fatalf("tick: %v", err)
	}
	return tally
}

func (w *world) receive(url string) []sqstypes.Message {
	w.t.Helper()
	out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1})
	w.must(err)
	return out.Messages
}

// deliver receives one message that can be seen and invokes schedule-deliver with it, as Lambda does; false: none.
func (w *world) deliver() bool {
	w.t.Helper()
	ms := w.receive(w.queue.URL)
	if len(ms) == 0 {
		return false
	}
	w.consume(w.invoke("deliver", deliverTime), ms)
	return true
}

// consume runs the consumer on messages, and deletes those that it does not name. What dies deletes nothing.
func (w *world) consume(inv *invocation, ms []sqstypes.Message) {
	w.t.Helper()
	out, err := w.consumer.Batch(inv, event(ms))
	w.end(inv)
	w.answer(inv, w.queue.URL, ms, out, err)
}

// exhaust does the same for the dead-letter queue.
func (w *world) exhaust() bool {
	w.t.Helper()
	ms := w.receive(w.dlq)
	if len(ms) == 0 {
		return false
	}
	inv := w.invoke("exhaust", deliverTime)
	out, err := w.letters.Batch(inv, event(ms))
	w.end(inv)
	w.answer(inv, w.dlq, ms, out, err)
	return true
}

func event(ms []sqstypes.Message) (e events.SQSEvent) {
	for _, m := range ms {
		e.Records = append(e.Records, events.SQSMessage{MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body})
	}
	return e
}

func (w *world) answer(inv *invocation, url string, ms []sqstypes.Message, out events.SQSEventResponse, err error) {
	w.t.Helper()
	if inv.dead.Load() {
		return
	}
	w.must(err)
	poller := w.invoke("poller", dispatchTime)
	defer w.end(poller)
	for _, m := range ms {
		named := slices.ContainsFunc(out.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == *m.MessageId })
		if !named {
			// A delete that fails is a redelivery: the poller does not mind.
			_, _ = w.sqs.DeleteMessage(poller, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
		}
	}
}

// drain works on every message that can be seen now.
func (w *world) drain() {
	w.t.Helper()
	for n := 0; w.deliver() || w.exhaust(); n++ {
		if n > 5000 {
			w.t.Fatalf("messages breed: %s", w.dump())
		}
	}
}

// quiet lets time pass, with a tick each minute, until every run has settled and no message is left.
func (w *world) quiet() {
	w.t.Helper()
	for end := w.wall().Add(12 * time.Hour); ; w.advance(w.step) {
		w.minute()
		w.drain()
		if w.done() {
			return
		}
		if w.wall().After(end) {
			w.t.Fatalf("not quiet after twelve hours: %s", w.dump())
		}
	}
}

// pass lets a stretch of time pass in the same way.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.wall().Add(d); ; w.advance(w.step) {
		w.minute()
		w.drain()
		if !w.wall().Before(end) {
			return
		}
	}
}

// minute ticks once a minute, unless no row says that anything is due: a tick would find nothing to do.
func (w *world) minute() {
	now := w.wall()
	if m := now.Truncate(time.Minute); m.After(w.ticked) {
		w.ticked = m
		if w.due(now) {
			w.tick()
		}
	}
}

func (w *world) due(now time.Time) bool {
	business, _ := w.business(ctx)
	at, nominal := schema.Time(now), schema.Time(business)
	return w.db.Any("Schedules", func(it map[string]dynamotypes.AttributeValue) bool {
		wake, next, notice := text(it, schema.WakeAt), text(it, schema.NextDueAt), text(it, schema.NextAt)
		return notice != "" && notice <= at || wake != "" && text(it, schema.OpenShard) != "" && wake <= at || next != "" && next <= nominal
	})
}

func text(it map[string]dynamotypes.AttributeValue, name string) string {
	if v, ok := it[name].(*dynamotypes.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// done reports that nothing is due, no run is open, no notice is left and both queues are empty.
func (w *world) done() bool {
	if w.due(w.wall()) {
		return false
	}
	left := w.db.Any("Schedules", func(it map[string]dynamotypes.AttributeValue) bool {
		return text(it, schema.OpenShard) != "" || text(it, schema.NextAt) != ""
	})
	return !left && w.messages(w.queue.URL) == 0 && w.messages(w.dlq) == 0
}

// messages counts a queue's messages, visible or not.
func (w *world) messages(url string) (n int) {
	w.t.Helper()
	out, err := w.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	w.must(err)
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		var v int
		fmt.Sscan(out.Attributes[name], &v)
		n += v
	}
	return n
}

// dump shows the world where a test gives up.
func (w *world) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s, %d messages, %d dead\n", w.wall(), w.messages(w.queue.URL), w.messages(w.dlq))
	for _, r := range w.allRuns() {
		fmt.Fprintf(&b, "%s %s %s %s\n  %s\n", r.ID(), r.State, r.ErrorCode, r.ErrorText, strings.Join(r.Timeline, "\n  "))
		for _, s := range w.subs(r.ID()) {
			fmt.Fprintf(&b, "  %s %s %s marked=%v tries=%d %s %s\n", s.Channel, s.Recipient, s.State, s.NotAccepted, s.Tries, s.Reason, s.Detail)
		}
	}
	return b.String()
}

// daily is due at 12:30 UTC each day; hourly at each full hour.
const (
	daily  = "30 12 * * *"
	hourly = "0 * * * *"
)

var firstDue = start.Add(30 * time.Minute) // of daily

// definition is a valid one; recipients are spelled "x@…" for e-mail, anything else is a receiver's name.
func (w *world) definition(id string, recipients ...string) schedule.Definition {
	d := schedule.Definition{ID: id, Workspace: "EWR", Name: "Delays " + id, Owner: "ops@example.com", Source: "flights",
		Query: "SELECT id, carrier, delay FROM flights ORDER BY id", Recurrence: calendar.Spec{Cron: daily, Zone: "UTC"}}
	d.File.Kind, d.File.RetentionDays = "csv", 30
	for _, r := range recipients {
		if strings.Contains(r, "@") {
			d.Recipients = append(d.Recipients, schedule.Recipient{Email: r})
			continue
		}
		d.Recipients = append(d.Recipients, schedule.Recipient{Webhook: w.hooks.address(r), Secret: "ops"})
	}
	return d
}

func (w *world) apply(d schedule.Definition) schedule.Change {
	w.t.Helper()
	c, err := w.editor.Apply(ctx, d, "ann", 0)
	w.must(err)
	return c
}

// admitted applies a daily definition, moves the clocks to its first due time, ticks, and returns the run.
func (w *world) admitted(d schedule.Definition) string {
	w.t.Helper()
	w.apply(d)
	w.to(firstDue)
	if t := w.tick(); t.Admitted < 1 {
		w.t.Fatalf("tick admitted nothing: %+v", t)
	}
	return schema.RunID(d.ID, schedule.OccurrenceKey(firstDue))
}

func (w *world) run(id string) schedule.Run {
	w.t.Helper()
	r, err := w.store.Run(ctx, id)
	w.must(err)
	return r
}

func (w *world) schedule(id string) schedule.Schedule {
	w.t.Helper()
	s, err := w.store.Schedule(ctx, id)
	w.must(err)
	return s
}

func (w *world) subs(run string) []schedule.Submission {
	w.t.Helper()
	subs, err := w.store.Submissions(ctx, run)
	w.must(err)
	return subs
}

// sub is the submission of one recipient, spelled as in definition.
func (w *world) sub(run, recipient string) schedule.Submission {
	w.t.Helper()
	address := recipient
	if !strings.Contains(recipient, "@") {
		address = w.hooks.address(recipient)
	}
	for _, s := range w.subs(run) {
		if s.Recipient == address {
			return s
		}
	}
	w.t.Fatalf("run %s has no submission for %s: %s", run, recipient, w.dump())
	return schedule.Submission{}
}

func (w *world) skips(id string) []schedule.Skip {
	w.t.Helper()
	skips, _, err := w.store.Skips(ctx, id, "", 0)
	w.must(err)
	return skips
}

func (w *world) runs(id string) []schedule.Run {
	w.t.Helper()
	runs, _, err := w.store.Runs(ctx, id, "", 0)
	w.must(err)
	return runs
}

// allRuns reads the runs of every schedule.
func (w *world) allRuns() (runs []schedule.Run) {
	for _, it := range w.db.Items("Schedules") {
		if text(it, schema.SK) == "STATE" {
			runs = append(runs, w.runs(strings.TrimPrefix(text(it, schema.PK), "SCHED#"))...)
		}
	}
	return runs
}

// wantState fails the test unless the run stands so; a code is noted as provoked.
func (w *world) wantState(run string, state schedule.RunState, code failure.Code) schedule.Run {
	w.t.Helper()
	r := w.run(run)
	if r.State != state || r.ErrorCode != string(code) {
		w.t.Fatalf("run %s is %s %q, want %s %q\n%s", run, r.State, r.ErrorCode, state, code, w.dump())
	}
	if code != "" {
		failuretest.Saw(code)
	}
	return r
}

func (w *world) wantSub(run, recipient string, state schedule.SubmissionState, reason string) {
	w.t.Helper()
	if s := w.sub(run, recipient); s.State != state || s.Reason != reason {
		w.t.Fatalf("%s is %s %q (%s), want %s %q", recipient, s.State, s.Reason, s.Detail, state, reason)
	}
}

// object reads a produced file.
func (w *world) object(key string) string {
	w.t.Helper()
	out, err := w.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("files"), Key: &key})
	w.must(err)
	body, err := io.ReadAll(out.Body)
	w.must(err)
	return string(body)
}

// objects lists the produced files.
func (w *world) objects() (keys []string) {
	w.t.Helper()
	out, err := w.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String("files"), Prefix: aws.String("files/")})
	w.must(err)
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

// anyone signs for a server that does not check.
var anyone = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
})

// expire removes a row, as TTL does.
func (w *world) expire(k schema.Key) {
	w.t.Helper()
	_, err := w.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("Schedules"), Key: row(k)})
	w.must(err)
}

func row(k schema.Key) map[string]dynamotypes.AttributeValue {
	return map[string]dynamotypes.AttributeValue{schema.PK: &dynamotypes.AttributeValueMemberS{Value: string(k.PK)}, schema.SK: &dynamotypes.AttributeValueMemberS{Value: string(k.SK)}}
}

// set writes one attribute of a row behind the product's back.
func (w *world) set(k schema.Key, name string, v dynamotypes.AttributeValue) {
	w.t.Helper()
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("Schedules"), Key: row(k), UpdateExpression: aws.String("SET #a = :v"),
		ExpressionAttributeNames: map[string]string{"#a": name}, ExpressionAttributeValues: map[string]dynamotypes.AttributeValue{":v": v}})
	w.must(err)
}

func txt(s string) dynamotypes.AttributeValue { return &dynamotypes.AttributeValueMemberS{Value: s} }

func (w *world) remove(k schema.Key, name string) {
	w.t.Helper()
	_, err := w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("Schedules"), Key: row(k), UpdateExpression: aws.String("REMOVE #a"),
		ExpressionAttributeNames: map[string]string{"#a": name}})
	w.must(err)
}

// overwrite changes a produced file behind the product's back.
func (w *world) overwrite(key, body string) {
	w.t.Helper()
	_, err := w.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("files"), Key: &key, Body: strings.NewReader(body)})
	w.must(err)
}
