package schedule_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/load"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// scripts/test runs it with 1,000 runs of 200 recipients, scripts/load throttled one of 10,000 besides. Without flags it is
// a small part of that.
var (
	loadRuns = flag.Int("load.runs", 25, "runs under duplicates and throttles")
	loadEach = flag.Int("load.each", 200, "recipients of each of them")
	loadSeed = flag.Uint64("load.seed", 1, "what is throttled and what comes twice")
)

// Of a hundred.
const (
	duplicated = 10 // messages that are handed out, of which another copy comes
	throttled  = 5  // calls, retries of the SDK's own included, that are refused for the rate
)

// throttler refuses calls for their rate, before they have any effect, and hands out messages twice.
//
// Where the product's clients are the SDK's with its standard retries (all but SES, whose retries are off), a refused call
// is made again as the SDK would: by its own retryer, after the delay that it says.
type throttler struct {
	l   *loaded
	sdk aws.RetryerV2

	mu        sync.Mutex
	random    *rand.Rand
	refused   map[string]int // by service and code
	persisted int            // calls that the SDK gave up, or does not try again: the product is told
	copies    int
	handed    int // messages handed out
}

func newThrottler(l *loaded) *throttler {
	x := &throttler{l: l, sdk: retry.NewStandard(), random: rand.New(rand.NewPCG(*loadSeed, 7)), refused: map[string]int{}}
	for _, h := range []*memcloud.Hooks{&l.db.Hooks, &l.s3.Hooks, &l.sqs.Hooks} {
		before := h.Before
		h.Before = func(ctx context.Context, c memcloud.Call) error {
			if err := x.refuse(ctx, c); err != nil {
				return err
			}
			return before(ctx, c)
		}
	}
	after := l.sqs.Hooks.After
	l.sqs.Hooks.After = func(ctx context.Context, c memcloud.Call) error {
		if out, ok := c.Output.(*sqs.ReceiveMessageOutput); ok && *c.Input.(*sqs.ReceiveMessageInput).QueueUrl == l.queue.URL {
			x.copy(out.Messages)
		}
		return after(ctx, c)
	}
	l.mail.answer = func(to string, n int) error {
		if x.once("SES Throttling", to, n) {
			return coded("Throttling", "Maximum sending rate exceeded.")
		}
		return nil
	}
	l.hooks.answer = func(name string, n int) reply {
		if x.once("webhook 429", name, n) {
			return reply{status: http.StatusTooManyRequests, retryAfter: fmt.Sprint(5 * n)}
		}
		return ok()
	}
	l.faults.met = true // a tick may fail: the next one goes on
	return x
}

// once decides by the recipient and how often it was asked, so that no order of invocations changes who is refused.
func (x *throttler) once(kind, to string, n int) bool {
	h := fnv.New64a()
	fmt.Fprint(h, *loadSeed, to, "#", n)
	if rand.New(rand.NewPCG(h.Sum64(), 3)).IntN(100) >= throttled {
		return false
	}
	x.note(kind)
	return true
}

func (x *throttler) note(kind string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused[kind]++
}

func (x *throttler) draw(percent int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.random.IntN(100) < percent
}

// refuse is asked before each call out of an invocation.
func (x *throttler) refuse(ctx context.Context, c memcloud.Call) error {
	if ctx.Value(invocationKey{}) == nil {
		return nil
	}
	for n := 1; x.draw(throttled); n++ {
		err := x.throttle(c)
		if n == x.sdk.MaxAttempts() || !x.sdk.IsErrorRetryable(err) {
			x.mu.Lock()
			x.persisted++
			x.mu.Unlock()
			return err
		}
		d, bad := x.sdk.RetryDelay(n, err)
		x.l.must(bad)
		if c.Operation != "GetObject" { // as in latencies: others of this process wait for it
			x.l.fleet.spend(d)
		}
	}
	return nil
}

// throttle is what the service says to a call that it refuses for its rate.
// DynamoDB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html and, for transactions,
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html (CancellationReasons);
// S3: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (SlowDown);
// SQS: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html.
func (x *throttler) throttle(c memcloud.Call) error {
	var err smithy.APIError
	in, _ := c.Input.(*dynamodb.TransactWriteItemsInput)
	switch one := x.draw(50); {
	case c.Service == memcloud.ServiceS3:
		err = &smithy.GenericAPIError{Code: "SlowDown", Message: "Please reduce your request rate.", Fault: smithy.FaultServer}
	case c.Service == memcloud.ServiceSQS && one:
		err = &sqstypes.RequestThrottled{Message: aws.String("Rate exceeded")}
	case c.Service == memcloud.ServiceSQS:
		err = coded("ThrottlingException", "Rate exceeded").(smithy.APIError)
	case in != nil && one:
		reasons := make([]dynamotypes.CancellationReason, len(in.TransactItems))
		for i := range reasons {
			reasons[i].Code = aws.String("None")
		}
		reasons[0].Code = aws.String("ThrottlingError")
		err = &dynamotypes.TransactionCanceledException{Message: aws.String("Transaction cancelled [ThrottlingError]"), CancellationReasons: reasons}
	case one:
		err = &dynamotypes.ProvisionedThroughputExceededException{Message: aws.String("The level of configured provisioned throughput for the table was exceeded")}
	default:
		err = &dynamotypes.ThrottlingException{Message: aws.String("Throughput exceeds the current capacity of your table or index")}
	}
	x.note(c.Service + " " + err.ErrorCode())
	return err
}

// copy sends some messages once more, while they are being worked on or some time later.
func (x *throttler) copy(ms []sqstypes.Message) {
	for _, m := range ms {
		again := x.draw(duplicated)
		x.mu.Lock()
		x.handed++
		delay := x.random.Int32N(120)
		if x.random.IntN(2) == 0 {
			delay = 0
		}
		if again {
			x.copies++
		}
		x.mu.Unlock()
		if again {
			_, err := x.l.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &x.l.queue.URL, MessageBody: m.Body, DelaySeconds: delay})
			x.l.must(err)
		}
	}
}

// receipts are what receivers took, without the bodies: a table of this size keeps them in memory already.
type receipts struct {
	l        *loaded
	mu       sync.Mutex
	accepted map[string]int      // by load.At
	bodies   map[string][32]byte // digest of what came first, by the key of a webhook's request
	differ   int                 // requests under a key that came with another body before
}

func newReceipts(l *loaded) *receipts {
	r := &receipts{l: l, accepted: map[string]int{}, bodies: map[string][32]byte{}}
	l.mail.take = func(to string, raw []byte) {
		letter, err := mail.ReadMessage(bytes.NewReader(raw))
		l.must(err)
		r.took(letter.Header.Get("X-Almanac-Run"), to)
	}
	l.hooks.take = func(p post) {
		run, _, delivery := strings.Cut(p.key, "/")
		r.mu.Lock()
		digest, seen := r.bodies[p.key]
		if got := sha256.Sum256([]byte(p.body)); !seen {
			r.bodies[p.key] = got
		} else if got != digest {
			r.differ++
		}
		r.mu.Unlock()
		if delivery && p.taken {
			r.took(run, l.hooks.address(p.name))
		}
	}
	return r
}

func (r *receipts) took(run, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accepted[load.At(run, to)]++; len(r.accepted)%1000 == 0 {
		r.l.log.mu.Lock()
		r.l.log.buf.Reset()
		r.l.log.mu.Unlock()
		r.l.faults.mu.Lock()
		r.l.faults.log = nil
		r.l.faults.mu.Unlock()
	}
}

// double counts the requests that a receiver accepted beyond the first.
func (r *receipts) double() (n int) {
	for _, k := range r.accepted {
		n += k - 1
	}
	return n
}

// Many runs with many recipients are due in one minute; one message in ten is handed out once more, while a worker is at it
// or later, and one call in twenty is refused for its rate, by each service and by each receiver. Nothing is lost, nothing
// comes twice.
func TestLoadThrottlesAndDuplicates(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	x, got := newThrottler(l), newReceipts(l)
	for n := range *loadRuns {
		var to []string
		for i := range *loadEach {
			if i%10 == 9 {
				to = append(to, fmt.Sprintf("hook-%d-%d", n, i))
				continue
			}
			to = append(to, fmt.Sprintf("a%d.%d@example.com", n, i))
		}
		l.owes(l.definition(fmt.Sprintf("s-%05d", n), to...), firstDue)
	}
	before, real := l.db.Units(), time.Now()
	l.drains(firstDue)
	units, took := l.db.Units().Since(before).Total(), time.Since(real)
	attempts := 0
	out := l.outside()
	out.Accepted = got.accepted
	runs := l.keptBy(out, func(r schedule.Run) error {
		attempts += r.Attempts - r.Yields
		if r.State != schedule.Succeeded || r.Submitted != *loadEach {
			return fmt.Errorf("%s %s %s, %d of %d submitted", r.State, r.ErrorCode, r.ErrorText, r.Submitted, *loadEach)
		}
		return nil
	})
	owed := *loadRuns * *loadEach
	lost := owed - len(got.accepted)
	l.shown("under throttles and duplicates", runs)
	t.Logf("%d submissions of %d runs in %s on this machine, seed %d: %d lost, %d double, %d with another body than before", owed, len(runs), took.Round(time.Millisecond), *loadSeed, lost, got.double(), got.differ)
	t.Logf("%d duplicates beside %d other messages handed out; %d attempts of %d runs", x.copies, x.handed-x.copies, attempts, len(runs))
	t.Logf("%d of %d calls throttled, %d of them told to the product: %v", x.all(), l.faults.n, x.persisted, x.refused)
	t.Logf("%.2f write units per submission, %.2f read units", (units.TableWrite+units.IndexWrite)/float64(owed), (units.TableRead+units.IndexRead)/float64(owed))
	if lost != 0 || got.double() != 0 || got.differ != 0 {
		t.Error("a promise is broken")
	}
	if x.handed > 200 && x.copies*20 < x.handed || x.all()*40 < l.faults.n {
		t.Errorf("%d duplicates and %d throttles: nothing was shown", x.copies, x.all())
	}
}

func (x *throttler) all() (n int) {
	for _, k := range x.refused {
		n += k
	}
	return n
}
