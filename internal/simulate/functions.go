package simulate

import (
	"context"
	"io"
	"log/slog"

	"almanac/internal/artifact/bucket"
	"almanac/internal/boot"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/channel/webhook"
	"almanac/internal/jobs"
	"almanac/internal/queue"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/store"

	lambdaevents "github.com/aws/aws-lambda-go/events"
)

// functions are the deployed functions, wired for one worker each, as package boot wires them.
type functions struct {
	runs, dlq string // the queues' addresses
	log       *slog.Logger
	MailRate  int // mails a second; 0: no bound
	Counts    map[string]int
}

func (f *functions) init(w *World) {
	f.log, f.Counts, f.MailRate = slog.New(slog.DiscardHandler), map[string]int{}, 200
}

// LogTo writes every log line, for a replay.
func (w *World) LogTo(out io.Writer) { w.log = boot.NewLogger(out) }

// Kit is all that a worker may need.
type Kit struct {
	w *World
	k *Worker // nil: the test itself, whose calls meet nothing
}

// Kit wires a worker's parts; nil stands for the scenario itself.
func (w *World) Kit(k *Worker) Kit {
	if k == nil {
		w.mu.Lock()
		w.started++
		k = &Worker{Name: "scenario", Number: w.started, w: w}
		w.mu.Unlock()
	}
	return Kit{w, k}
}

func (t Kit) count(name string, n int, outcome, _ string) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.Counts[name+" "+outcome] += n
}

func (t Kit) logger() *slog.Logger {
	return t.w.log.With("worker", t.k.Name, "number", t.k.Number)
}

// Store is the store of schedules.
func (t Kit) Store() *store.Store {
	s := store.New(t.w.DB, Schedules, "test")
	s.Lists = bucket.Lists{API: t.w.S3, Bucket: FileBucket}
	s.Pause = t.k.backoff
	return s
}

// Ledger is the store of snapshots.
func (t Kit) Ledger() *store.Snapshots {
	l := store.NewSnapshots(t.w.DB, Snapshots, t.Store())
	l.Store.Pause = t.k.backoff
	return l
}

// Queue is the delivery queue.
func (t Kit) Queue() *queue.Queue { return &queue.Queue{API: t.w.SQS, URL: t.w.runs} }

func (t Kit) clocks() schedule.Clocks {
	return schedule.Clocks{Wall: t.k.Now, Business: t.k.business}
}

func (t Kit) monthClocks() snapshot.Clocks {
	return snapshot.Clocks{Wall: t.k.Now, Business: t.k.business}
}

// Dispatcher is schedule-dispatch, which has no right to the bucket.
func (t Kit) Dispatcher() *schedule.Dispatcher {
	s := t.Store()
	s.Lists = nil
	return &schedule.Dispatcher{Ledger: s, Queue: t.Queue(), Clocks: t.clocks(), Timing: t.w.Schedule, Token: t.k.token, Log: t.logger(), Count: t.count}
}

// Settler is a deliverer that sends nothing.
func (t Kit) Settler() *schedule.Deliverer {
	return &schedule.Deliverer{Ledger: t.Store(), Clocks: t.clocks(), Timing: t.w.Schedule, Token: t.k.token, Entropy: t.k.entropy,
		Channels: map[string]channel.Channel{channel.Webhook: new(webhook.Channel), channel.Email: new(email.Channel)}, Log: t.logger(), Count: t.count}
}

// Deliverer is schedule-deliver.
func (t Kit) Deliverer() *schedule.Deliverer {
	mail, err := email.New(t.w.Mail, email.Config{From: "almanac@example.com", FromName: "Almanac"})
	t.w.must(err)
	hook, err := webhook.New(secrets{}, webhook.Config{Now: t.k.Now, Timeout: t.w.Schedule.SendTimeout.Std(), Out: t.w.Hooks})
	t.w.must(err)
	d := t.Settler()
	d.Channels = map[string]channel.Channel{channel.Email: mail, channel.Webhook: hook}
	d.Notices = map[string]channel.Announcer{channel.Email: mail, channel.Webhook: hook}
	d.Files = files{&bucket.Store{API: t.w.S3, Bucket: FileBucket, Pause: t.k.backoff}}
	d.Sources = t.sources()
	d.Links = "https://almanac.example"
	d.Pace = schedule.Pace{Times: t.Store(), Rates: map[string]int{channel.Email: t.w.MailRate}, Pause: t.k.pause}
	d.Allowed = boot.AllowList(nil)
	return d
}

// Exhauster is schedule-exhaust.
func (t Kit) Exhauster() *schedule.Exhauster {
	return &schedule.Exhauster{Deliverer: t.Settler(), Ledger: t.Store(), Queue: t.Queue(), QueueName: queryRuns}
}

// Editor is people's part of schedules.
func (t Kit) Editor() *schedule.Editor {
	return &schedule.Editor{Ledger: t.Store(), Queue: t.Queue(), Clocks: t.clocks(), Timing: t.w.Schedule, Token: t.k.token, Log: t.logger()}
}

// deliver handles one event of the delivery queue.
func (t Kit) deliver(ctx context.Context, e lambdaevents.SQSEvent) (lambdaevents.SQSEventResponse, error) {
	return boot.Consumer{Handle: t.Deliverer().Handle, Hide: t.Queue().Hide, Log: t.logger()}.Batch(ctx, e)
}

// exhaust handles one event of the dead-letter queue.
func (t Kit) exhaust(ctx context.Context, e lambdaevents.SQSEvent) (lambdaevents.SQSEventResponse, error) {
	return boot.DeadLetters{Handle: t.Exhauster().Handle, Log: t.logger()}.Batch(ctx, e)
}

// files adapts the bucket to the domain, as package boot does.
type files struct{ *bucket.Store }

func (f files) Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error {
	return f.Upload(ctx, key, mediaType, disposition, produce)
}

func (f files) Read(ctx context.Context, file schedule.RecordedFile) ([]byte, error) {
	return f.ReadAll(ctx, file.Key, file.Bytes, file.SHA256)
}

func (t Kit) jobs() jobs.Jobs {
	j, err := jobs.New(t.w.Steps, machineARN)
	t.w.must(err)
	return j
}

func (t Kit) asker() jobs.Asker { return jobs.Asker{API: functionsAPI{t.w}, Function: "dispatch"} }

func (t Kit) objects() bucket.Objects {
	return bucket.Objects{Store: &bucket.Store{API: t.w.S3, Bucket: MonthFiles, Pause: t.k.backoff}, Listing: t.w.S3}
}

func (t Kit) off(ctx context.Context) (bool, error) {
	c, err := t.Store().Control(ctx)
	return c.DispatchOff, err
}

// Planner is snapshot-plan.
func (t Kit) Planner() *snapshot.Planner {
	return &snapshot.Planner{Ledger: t.Ledger(), Watermark: snapshot.ReadWatermark(t.sources()), Queries: t.sources(), Jobs: t.jobs(), Dispatch: t.asker(),
		Clocks: t.monthClocks(), Timing: t.w.Months, Token: t.k.token, Log: t.logger(), Count: t.count}
}

// MonthDispatcher is snapshot-dispatch.
func (t Kit) MonthDispatcher() *snapshot.Dispatcher {
	return &snapshot.Dispatcher{Ledger: t.Ledger(), Jobs: t.jobs(), Off: t.off, Clocks: t.monthClocks(), Timing: t.w.Months, Log: t.logger(), Count: t.count}
}

// Reconciler is snapshot-reconcile.
func (t Kit) Reconciler() *snapshot.Reconciler {
	leavings := struct {
		bucket.Objects
		bucket.Remover
	}{t.objects(), bucket.Remover{API: t.w.S3, Bucket: MonthFiles}}
	return &snapshot.Reconciler{Ledger: t.Ledger(), Jobs: t.jobs(), Objects: leavings, Dispatch: t.asker(), Off: t.off,
		Clocks: t.monthClocks(), Timing: t.w.Months, Log: t.logger(), Count: t.count}
}

// Stepper is snapshot-step.
func (t Kit) Stepper() *snapshot.Steps {
	return &snapshot.Steps{Ledger: t.Ledger(), Sources: t.sources(), Objects: t.objects(), Dispatch: t.asker(), Clocks: t.monthClocks(),
		Timing: t.w.Months, Token: t.k.hexToken, Product: "test", Log: t.logger(), Count: t.count}
}

// MonthEditor is people's part of snapshots.
func (t Kit) MonthEditor() *snapshot.Editor {
	return &snapshot.Editor{Ledger: t.Ledger(), Watermark: snapshot.ReadWatermark(t.sources()), Queries: t.sources(), Jobs: t.jobs(), Dispatch: t.asker(),
		Serves: func(context.Context, snapshot.Definition, string) (bool, error) { return true, nil },
		Clocks: t.monthClocks(), Timing: t.w.Months, Token: t.k.token, Log: t.logger()}
}

// Reader reads published months.
func (t Kit) Reader() snapshot.Reader {
	return snapshot.Reader{Ledger: t.Ledger(), Objects: t.objects()}
}
