package schedule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"almanac/internal/failure"
)

// The account has one send rate, whatever sends (SES counts recipients a second, per account and region, and each mail
// here has one: https://docs.aws.amazon.com/ses/latest/dg/quotas.html). It is a token bucket in the table: a channel's row
// holds one instant, up to which all send times are taken. Send times lie 1/rate apart. A worker takes several at once, by
// adding their span to that instant: DynamoDB does one addition after the other, so that no two workers ever hold the same
// send time, and none refuses another's. Only where the instant is of no use (there is none yet, it lies too far back, or
// too far ahead) is it set, on the condition that it is as read.
//
// A send time may be used from its instant on, for turnLife; then it is lost, so that workers that stood still do not
// send in one go what they missed. Hence no window of length t sees more than rate × (t + turnLife) + 1 requests.
//
// Nobody starves. A worker takes new send times only when its last ones are behind it or lost, and at most TurnSpan worth
// of them. So with W workers at most W × TurnSpan is taken ahead, and TurnSpan more for each that died while it waited
// or lost a reply. The stage's profile holds that against the time of one invocation: every attempt comes to its turn. One
// that was late anyway (a long query) has recorded its file and yields, which costs no attempt; the next has the whole
// time. Where even that fails, the clocks are wrong, and the attempt is released until the next free send time.

const (
	// TurnSpan is how much of the send rate a worker takes at once. A run of R mails costs one write for every TurnSpan
	// worth of them, one at least.
	TurnSpan = 2 * time.Second
	// MaxAhead is how far ahead send times can be taken by right. A row beyond it was written by a clock that was wrong,
	// and counts as absent: a wrong clock holds up others for this long at most.
	MaxAhead = 10 * time.Minute
	// turnLife is how long a send time may be used.
	turnLife = time.Second
	// turnBurst is how much unused time of the past is taken where send times begin anew. Less than turnLife, or it would
	// be lost at once.
	turnBurst = turnLife / 2
	// turnIdle is how far back the instant may lie before send times begin anew. More than turnBurst: an account that uses
	// less than its rate leaves the instant behind again and again, and between two beginnings all workers add to it.
	turnIdle = turnLife * 3 / 4
	// turnStale is a wait after which what was read before it is read again: a stop, the switch, an unsubscription.
	turnStale = 500 * time.Millisecond
)

// MaxRate is the highest send rate that can be configured, in requests a second.
const MaxRate = 10_000

// RateForm says what ParseRate takes.
const RateForm = "a whole number of messages a second, 1 to 10000"

// ParseRate reads a send rate; ok is false where it is not of RateForm.
func ParseRate(text string) (rate int, ok bool) {
	rate, err := strconv.Atoi(text)
	return rate, err == nil && strconv.Itoa(rate) == text && rate >= 1 && rate <= MaxRate
}

// SendTimes keeps, for each channel, the instant up to which send times are taken.
type SendTimes interface {
	// TakeSendTimes takes the next span of a channel's send times that nobody has. by is a token of this one call. ask says
	// what is wanted; it is asked again for each try, because the clock goes on, and its span must stay the same. Rivals are
	// no failure: where one was quicker, the next try comes after a pause, until ctx ends. Where the span would begin too
	// late nothing is written.
	TakeSendTimes(ctx context.Context, channel, by string, ask func() Wanted) (Taken, error)
}

// Wanted is a span of send times, and where it may begin. Instants are kept in microseconds: the span and Anew count as
// rounded up to them.
type Wanted struct {
	Span  time.Duration
	Idle  time.Time // where the instant lies before it, or there is none, send times begin anew
	Anew  time.Time // where they begin then
	Last  time.Time // the latest at which the span may begin
	Limit time.Time // an instant after it was written by a clock that was wrong: send times begin anew
}

// Begins tells where the span begins where send times are taken until an instant (zero: none is known), and whether that
// is anew, whatever the instant says.
func (w Wanted) Begins(until time.Time) (start time.Time, anew bool) {
	if until.Before(w.Idle) || until.After(w.Limit) {
		return w.Anew.Add(time.Microsecond - 1).Truncate(time.Microsecond), true
	}
	return until, false
}

// Taken is what became of what was wanted.
type Taken struct {
	Start time.Time // where the span begins; where it is late: would begin
	Late  bool      // that is after Wanted.Last: nothing was taken
	Wrong time.Time // an instant after Wanted.Limit, where send times began anew because of it
}

// Pace is the send rate of a stage. The zero Pace holds nothing back.
type Pace struct {
	Times SendTimes
	Rates map[string]int // requests a second, by channel; a channel that is absent is not paced
	Pause func(ctx context.Context, d time.Duration) error
}

// turns are the send times that one worker holds on one channel.
type turns struct {
	next       time.Time // the first of them
	n          int       // how many, a gap apart
	used, lost int       // of those that were taken last
}

// gapOf is the time between two send times, rounded up.
func gapOf(rate int) time.Duration {
	return (time.Second + time.Duration(rate) - 1) / time.Duration(rate)
}

// drop loses the send times that nobody used in time.
func (h *turns) drop(now time.Time, gap time.Duration) {
	for h.n > 0 && now.Sub(h.next) > turnLife {
		h.pop(gap)
		h.lost++
	}
}

func (h *turns) pop(gap time.Duration) {
	h.next = h.next.Add(gap)
	h.n--
}

// wish is how many send times to take next: what this worker is known to use, so that a slow one takes no rate from
// others that it loses, and a bit more where it lost none.
func (h *turns) wish(most int) int {
	switch {
	case h.used+h.lost == 0:
		return most
	case h.lost > 0:
		return max(1, h.used)
	}
	return min(most, h.used+1+h.used/4)
}

// noTurn is that no send time comes before the worker must go.
type noTurn struct{ wait time.Duration }

func (n noTurn) Error() string {
	return fmt.Sprintf("the send rate has no turn in this invocation; the next one is in %s", n.wait)
}

func (n noTurn) failure() *failure.Failure {
	return failure.New(failure.SendThrottled, "%s", n.Error()).After(max(n.wait, time.Second))
}

// errLookAgain is that a wait was so long that what was read before it may not hold any more. The send time is kept.
var errLookAgain = errors.New("waited for a turn; look again")

// await waits for a send time and uses it up. wanted is how many requests this worker has for the channel, last the wall
// time at which it may begin one at the latest; noTurn says that none comes before it.
func (d *Deliverer) await(ctx context.Context, h *turns, channelName string, wanted int, last time.Time) error {
	rate := d.Pace.Rates[channelName]
	if rate == 0 {
		return nil
	}
	gap := gapOf(rate)
	for waited := time.Duration(0); ; {
		now := d.Clocks.Wall()
		if h.drop(now, gap); h.n == 0 {
			if err := d.take(ctx, h, channelName, gap, wanted, last); err != nil {
				return err
			}
			continue
		}
		wait := h.next.Sub(now)
		switch {
		case wait <= 0 && waited >= turnStale:
			return errLookAgain
		case wait <= 0:
			h.pop(gap)
			h.used++
			return nil
		case h.next.After(last):
			return noTurn{wait}
		}
		if wait >= turnStale {
			d.Count("send_turns", 1, "waited", channelName)
			d.Log.Info("waiting for a turn to send", "channel", channelName, "wait", wait.String())
		}
		if err := d.Pace.Pause(ctx, wait); err != nil {
			return noTurn{wait}
		}
		waited += wait
	}
}

// take reserves the next send times that nobody has.
func (d *Deliverer) take(ctx context.Context, h *turns, channelName string, gap time.Duration, wanted int, last time.Time) error {
	n := min(h.wish(max(1, int(TurnSpan/gap))), max(1, wanted))
	var now time.Time
	got, err := d.Pace.Times.TakeSendTimes(ctx, channelName, d.Token(), func() Wanted {
		now = d.Clocks.Wall()
		return Wanted{Span: time.Duration(n) * gap, Idle: now.Add(-turnIdle), Anew: now.Add(-turnBurst), Last: last, Limit: now.Add(MaxAhead)}
	})
	if err != nil {
		return err
	}
	if got.Late {
		d.Count("send_turns", 1, "none", channelName)
		return noTurn{got.Start.Sub(now)}
	}
	if !got.Wrong.IsZero() {
		d.Count("send_turns", 1, "reset", channelName)
		d.Log.Error("send times were taken further ahead than can be: a clock was wrong; they begin anew", "channel", channelName,
			"until", got.Wrong, "ahead", got.Wrong.Sub(now).String())
	}
	*h = turns{next: got.Start, n: n}
	return nil
}

// turn waits until this worker may send on a channel. It comes before the intent or the take-over, never between that and
// the request. Without a turn the attempt ends: it yields where it has recorded something, else it is released.
func (w *work) turn(ctx context.Context, channelName string) error {
	if w.turns == nil {
		w.turns = map[string]*turns{}
	}
	h := w.turns[channelName]
	if h == nil {
		h = &turns{}
		w.turns[channelName] = h
	}
	err := w.await(ctx, h, channelName, w.rest[channelName], w.lease.End.Add(-w.Timing.LeaseMargin.Std()-w.Timing.Reserve.Std()))
	var none noTurn
	switch {
	case !errors.As(err, &none):
		return err
	case w.fresh:
		return yielded{"the send rate had no turn before the time was up"}
	}
	return wholeRun{none.failure()}
}
