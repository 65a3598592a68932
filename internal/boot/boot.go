package boot

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/channel"
	"almanac/internal/channel/email"
	"almanac/internal/channel/webhook"
	"almanac/internal/loopback"
	"almanac/internal/queue"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/postgres/signin"
	"almanac/internal/source/sqlite"
	"almanac/internal/source/sqlite/databucket"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Function is one function's wiring: what every function needs, and makers of the parts that some need.
type Function struct {
	Config Config
	AWS    aws.Config
	Log    *slog.Logger
	Count  schedule.Counter
	Store  *store.Store
	Clocks schedule.Clocks
}

// Start reads the environment and wires what every function has. Its error is for the log: it names each wrong
// variable.
func Start(ctx context.Context, need ...string) (*Function, error) {
	// A function that writes a large file has little that lives and makes much garbage: collecting it twice as often as usual
	// keeps it small.
	debug.SetGCPercent(50)
	cfg, err := Environment(os.Getenv, append(need, EnvSchedulesTable)...)
	if err != nil {
		return nil, err
	}
	var options []func(*awsconfig.LoadOptions) error
	if cfg.Local != "" {
		options = append(options, awsconfig.WithHTTPClient(loopback.Client(time.Minute)))
	}
	ac, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	f := &Function{Config: cfg, AWS: ac, Log: NewLogger(os.Stdout), Count: NewMetrics(os.Stdout, cfg.Metrics, cfg.Stage, time.Now)}
	f.Store = store.New(f.dynamo(), cfg.SchedulesTable, cfg.Stage)
	if cfg.FilesBucket != "" {
		f.Store.Lists = bucket.Lists{API: f.objects(), Bucket: cfg.FilesBucket}
	}
	f.Clocks = NewClocks(cfg, f.Store, time.Now)
	return f, nil
}

// Must ends a function that cannot start: Lambda reports it, and the log says why.
func Must(f *Function, err error) *Function {
	if err != nil {
		NewLogger(os.Stdout).Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	return f
}

// ClockReader reads the business clock of the local profile.
type ClockReader interface {
	Clock(ctx context.Context) (schedule.ClockSetting, error)
}

// NewClocks makes the two clocks. Only the local profile reads a setting for business time; elsewhere it is wall time.
func NewClocks(cfg Config, r ClockReader, wall func() time.Time) schedule.Clocks {
	business := func(context.Context) (time.Time, error) { return wall().UTC(), nil }
	if cfg.Local != "" {
		business = func(ctx context.Context) (time.Time, error) {
			c, err := r.Clock(ctx)
			return c.At(wall().UTC()), err
		}
	}
	return schedule.Clocks{Wall: func() time.Time { return wall().UTC() }, Business: business}
}

// NewLogger writes JSON lines, as CloudWatch reads them.
func NewLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// Token makes 128 random bits, URL-safe: fencing tokens and link secrets.
func Token() string { return base64.RawURLEncoding.EncodeToString(Entropy()) }

// Entropy makes 16 random bytes. crypto/rand does not fail on the systems that Lambda runs on.
func Entropy() []byte {
	b := make([]byte, 16)
	rand.Read(b)
	return b
}

// Queue is the delivery queue. Fewer requests at once than the ten connections to a host that the SDK's client keeps.
func (f *Function) Queue() *queue.Queue {
	return &queue.Queue{API: sqs.NewFromConfig(f.AWS), URL: f.Config.QueryQueue, Parallel: 8}
}

// Dispatcher wires the tick.
func (f *Function) Dispatcher() *schedule.Dispatcher {
	return &schedule.Dispatcher{Ledger: f.Store, Queue: f.Queue(), Clocks: f.Clocks, Timing: f.Config.Timing, Token: Token, Log: f.Log, Count: f.Count}
}

// Settler is a deliverer that settles and sends nothing: what schedule-exhaust needs. It knows the channels' promises
// but holds no client of theirs.
func (f *Function) Settler() *schedule.Deliverer {
	return &schedule.Deliverer{Ledger: f.Store, Clocks: f.Clocks, Timing: f.Config.Timing, Token: Token, Entropy: Entropy,
		Channels: map[string]channel.Channel{channel.Webhook: new(webhook.Channel), channel.Email: new(email.Channel)}, Log: f.Log, Count: f.Count}
}

// Deliverer wires the consumer.
func (f *Function) Deliverer() (*schedule.Deliverer, error) {
	objects := f.objects()
	mail, err := email.New(email.NewClient(f.AWS), email.Config{From: f.Config.MailFrom, FromName: f.Config.MailName, ConfigurationSet: f.Config.MailSet})
	if err != nil {
		return nil, err
	}
	secrets, err := webhook.NewManager(secretsmanager.NewFromConfig(f.AWS), time.Now)
	if err != nil {
		return nil, err
	}
	hook, err := webhook.New(prefixed{secrets, f.Config.SecretPrefix}, webhook.Config{Private: f.Config.PrivateNetworks, Timeout: f.Config.Timing.SendTimeout.Std(), Now: time.Now})
	if err != nil {
		return nil, err
	}
	d := f.Settler()
	d.Channels = map[string]channel.Channel{channel.Email: mail, channel.Webhook: hook}
	d.Notices = map[string]channel.Announcer{channel.Email: mail, channel.Webhook: hook}
	d.Files = files{&bucket.Store{API: objects, Bucket: f.Config.FilesBucket}}
	d.Sources = f.sources(objects)
	d.Links = schedule.LinkBase(f.Config.PublicURL)
	d.Pace = schedule.Pace{Times: f.Store, Rates: map[string]int{channel.Email: f.Config.MailRate}, Pause: f.Store.Pause}
	d.Allowed = AllowList(f.Config.AllowList)
	return d, nil
}

// sources are those of the data bucket and of databases.
func (f *Function) sources(objects *s3.Client) *Sources {
	return &Sources{Configs: f.Store, Postgres: Postgres{Secrets: &signin.Secrets{API: secretsmanager.NewFromConfig(f.AWS)}, AWS: f.AWS, Local: f.Config.Local != ""}, Athena: f.athena(objects),
		SQLite: &sqlite.Fetcher{Bucket: &databucket.Bucket{API: objects, Name: f.Config.DataBucket}, Dir: filepath.Join(os.TempDir(), "almanac-sources", f.Config.DataBucket), Defaults: source.Defaults, Now: time.Now}}
}

// SourceTester tests sources for people.
func (f *Function) SourceTester() *Sources { return f.sources(f.objects()) }

// objects is the S3 client. The local clouds serve buckets by path only.
func (f *Function) objects() *s3.Client {
	return s3.NewFromConfig(f.AWS, func(o *s3.Options) { o.UsePathStyle = f.Config.Local != "" })
}

// dynamo is the DynamoDB client. The store tries again by itself what is throttled, so the SDK does so once only, and soon:
// its own tries and pauses (three, up to 20 s: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html)
// would multiply the store's.
func (f *Function) dynamo() *dynamodb.Client {
	return dynamodb.NewFromConfig(f.AWS, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = 2, 500*time.Millisecond })
	})
}

// prefixed reads a stage's own secrets.
type prefixed struct {
	webhook.Secrets
	prefix string
}

func (p prefixed) Get(ctx context.Context, id string) ([]string, error) {
	return p.Secrets.Get(ctx, p.prefix+id)
}

// files adapts the bucket to the domain.
type files struct{ *bucket.Store }

func (f files) Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error {
	return f.Upload(ctx, key, mediaType, disposition, produce)
}

func (f files) Read(ctx context.Context, file schedule.RecordedFile) ([]byte, error) {
	return f.ReadAll(ctx, file.Key, file.Bytes, file.SHA256)
}

// AllowList reports whether a stage may send to an address: by the address itself, an e-mail's domain or a webhook's
// host. An empty list allows everyone.
func AllowList(entries []string) func(channelName, address string) bool {
	if len(entries) == 0 {
		return func(string, string) bool { return true }
	}
	allowed := map[string]bool{}
	for _, e := range entries {
		allowed[strings.ToLower(e)] = true
	}
	return func(channelName, address string) bool {
		normal, err := channel.Normalise(channelName, address)
		if err != nil {
			return false
		}
		if channelName == channel.Webhook {
			return allowed[hostOf(normal)]
		}
		_, domain, _ := strings.Cut(normal, "@")
		return allowed[normal] || allowed[domain]
	}
}

func hostOf(address string) string {
	r, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return ""
	}
	return r.URL.Hostname()
}
