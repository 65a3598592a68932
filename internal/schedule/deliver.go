package schedule

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"almanac/internal/channel"
	"almanac/internal/failure"
	"almanac/internal/source"
)

// DeliverLedger is what the consumer asks of the store. Every write is conditional; a *Conflict carries the row as it
// stands, any other error leaves unknown whether the write took effect and is settled by reading.
type DeliverLedger interface {
	Control(ctx context.Context) (Control, error)
	Run(ctx context.Context, id string) (Run, error)
	Schedule(ctx context.Context, id string) (Schedule, error)
	// Definition reads a version whole. Where its recipients cannot be read any more, the error is definition_invalid, and
	// the version comes without them.
	Definition(ctx context.Context, id string, version int) (Version, error)
	TargetReader
	Begin(ctx context.Context, r Run, l Lease) (Run, error)
	Release(ctx context.Context, r Run, l Lease, f *failure.Failure, visible time.Duration) error
	Yield(ctx context.Context, r Run, l Lease, maxYields int, why string) error
	RecordFile(ctx context.Context, r Run, l Lease, f RecordedFile) error
	RecordQuery(ctx context.Context, r Run, l Lease, id string) error
	// Conclude settles, and returns the notices that the settle put. The sweep looks at them from l.Wake on.
	Conclude(ctx context.Context, r Run, l Lease, o Outcome) (put []Notice, err error)

	BeforeRecipient(ctx context.Context, r Run, channel, recipientHash string) (Look, error)
	Submission(ctx context.Context, run, channel, recipientHash string) (Submission, error)
	Submissions(ctx context.Context, run string) ([]Submission, error)
	Intend(ctx context.Context, s Submission, expires int64) error
	Accepted(ctx context.Context, s Submission, providerID string) error
	Refused(ctx context.Context, s Submission) error
	NotAccepted(ctx context.Context, s Submission) error
	TakeOver(ctx context.Context, s Submission, t Take) error
	LoseTrack(ctx context.Context, s Submission, owner string, honoursKeys, about bool) error
	// Resend makes an unknown pending and another owner's, on the condition that its wish stands as read.
	Resend(ctx context.Context, read, taken Submission) error
	Abandon(ctx context.Context, s Submission, owner string, expires int64) error

	BeforeNotice(ctx context.Context, id string) (NoticeLook, error)
	RemoveNotice(ctx context.Context, id string) error
}

// Files keeps produced files.
type Files interface {
	// Write streams what produce writes into a new object; on any error nothing is left published.
	Write(ctx context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error
	// Read returns the whole object, checked against its recorded size and SHA-256.
	Read(ctx context.Context, f RecordedFile) ([]byte, error)
}

// Sources opens a query on a named source, if the workspace may use it.
type Sources interface {
	Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error)
}

// Deliverer is the consumer of the delivery queue: it turns a run into one file and one request per recipient.
type Deliverer struct {
	Ledger   DeliverLedger
	Files    Files
	Sources  Sources
	Channels map[string]channel.Channel
	Notices  map[string]channel.Announcer // by channel; nil: notices are left to the sweep
	Clocks   Clocks
	Timing   Timing
	Pace     Pace          // the account's send rate
	Token    func() string // fencing tokens and link secrets: at least 128 random bits, URL-safe
	Entropy  func() []byte // 16 random bytes
	Links    LinkBase
	Allowed  func(channelName, address string) bool // the stage's allow-list
	Log      *slog.Logger
	Count    Counter
}

// Disposition is what becomes of a message.
type Disposition struct {
	Again   bool          // named in batchItemFailures, after its visibility was set
	Visible time.Duration // when it may be seen again
}

var done = Disposition{}

func again(d time.Duration) Disposition { return Disposition{Again: true, Visible: d} }

// Handle works on one message. It never returns an error: what went wrong is on the run, or the message comes again.
func (d *Deliverer) Handle(ctx context.Context, body string) Disposition {
	m, err := DecodeMessage(body)
	if err != nil {
		// Nobody can read it: at once back, so that it soon reaches the dead-letter queue, whose consumer keeps it.
		// What it holds is not logged: it came from a stranger.
		d.Log.Error("message cannot be read", "code", failure.MessageInvalid, "bytes", len(body))
		return again(0)
	}
	if m.Notice != "" {
		return d.handleNotice(ctx, m.Notice)
	}
	if m.Resend != "" {
		return d.handleResend(ctx, m.Resend)
	}
	w := &work{Deliverer: d, id: m.Run, log: d.Log.With("run", m.Run)}
	disposition, err := w.do(ctx)
	w.announce(ctx)
	if err != nil {
		f := failure.From(err)
		w.log.Error("nothing could be recorded; the message comes again", "code", f.Code, "error", err.Error())
		return again(d.Timing.BackoffBase.Std())
	}
	return disposition
}

// work is one message's way through the consumer.
type work struct {
	*Deliverer
	id       string
	log      *slog.Logger
	run      Run
	lease    Lease
	over     time.Time // the invocation's deadline
	def      Version
	all      []Target        // the run's recipients, once somebody asked
	next     *time.Time      // the occurrence after this one, once somebody asked
	live     map[string]bool // recipients of the schedule's present version, by target key; nil: all of the run's
	fresh    bool            // something was recorded since begin
	cost     source.Cost     // of queries, not yet counted
	answered bool            // the run's query is known to have ended
	unsure   bool            // whether a file was recorded: the reply was lost, and so was the read after it
	bytes    []byte          // the file's content, read once where it is attached
	put      []Notice        // what the settle has to tell
	rest     map[string]int  // how many this attempt has yet to ask, by channel
	turns    map[string]*turns
}

var errLost = errors.New("another worker holds the run")

func (w *work) do(ctx context.Context) (Disposition, error) {
	control, err := w.Ledger.Control(ctx)
	if err != nil {
		return done, err
	}
	if control.SendOff {
		w.log.Info("sending is off; the sweep offers the run again once it is on")
		return done, nil
	}
	w.run, err = w.Ledger.Run(ctx, w.id)
	now := w.Clocks.Wall()
	rest := w.run.rest(now, w.Timing)
	switch {
	case errors.Is(err, ErrNotFound):
		w.log.Warn("the message names a run that is not there, or no more")
		return done, nil
	case err != nil:
		return done, err
	case w.run.Settled():
		w.log.Info("the run has settled before", "state", w.run.State)
		return done, nil
	case w.run.LeaseLive(now):
		w.log.Info("another worker holds the run", "until", w.run.LeaseEnd)
		return done, nil
	case rest > 0:
		// The message itself is hidden for as long: this is a copy, and must not use up an attempt before its time.
		w.log.Info("the run waits for its next attempt; this copy of its message does too", "again_in", rest.String())
		return again(rest), nil
	}
	w.log = w.log.With("schedule", w.run.Schedule, "occurrence", w.run.Occurrence)
	if w.run.AttemptsLeft <= 0 {
		err := w.settleExhausted(ctx)
		if errors.As(err, new(yielded)) {
			return again(0), nil // nobody holds the run: the next delivery goes on
		}
		return done, w.settleLost(err)
	}
	if err := w.begin(ctx); err != nil {
		return done, w.settleLost(err)
	}
	return w.end(ctx, w.attempt(ctx))
}

// lost takes a conflict for what it is: somebody else was faster, and the sweep covers the rest.
func (w *work) lost(err error) bool {
	if !IsConflict(err) && !errors.Is(err, errLost) {
		return false
	}
	w.log.Info("another worker was faster", "reason", err.Error())
	return true
}

// settleLost is what is left of a settle's error.
func (w *work) settleLost(err error) error {
	if w.lost(err) {
		return nil
	}
	return err
}

// begin takes the lease. It ends a margin after this invocation must have ended, and is never extended.
func (w *work) begin(ctx context.Context) error {
	now, end := w.Clocks.Wall(), w.ends(ctx)
	margin := w.Timing.LeaseMargin.Std()
	w.lease = Lease{Token: w.Token(), Now: now, End: end.Add(margin), Wake: end.Add(2 * margin)}
	run, err := w.Ledger.Begin(ctx, w.run, w.lease)
	if err != nil {
		return err
	}
	w.run = run
	w.log = w.log.With("attempt", run.Attempts)
	w.log.Info("attempt begins", "left", run.AttemptsLeft)
	return nil
}

// ends notes when this invocation must have ended.
func (w *work) ends(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = w.Clocks.Wall().Add(time.Minute)
	}
	w.over = end
	return end
}

// now returns the lease with the wall time of the write that is about to be done.
func (w *work) now() Lease {
	l := w.lease
	l.Now = w.Clocks.Wall()
	return l
}

// yielded ends an attempt that made progress, or must make none; see lifecycles A, "yield".
type yielded struct{ why string }

func (y yielded) Error() string { return "yield: " + y.why }

// errEmpty ends an attempt whose query returned no rows where the policy suppresses delivery.
var errEmpty = errors.New("no rows")

// end turns how an attempt ended into a write and a disposition.
func (w *work) end(ctx context.Context, err error) (Disposition, error) {
	// The attempt's own context may be over. Of what it left, a quarter is for the last write and a quarter for the
	// message's visibility; whatever time there is before that is for giving up recipients.
	enough := w.givingUpEnds().Sub(w.Clocks.Wall()) + w.Timing.settling()/4
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), enough)
	defer cancel()
	var y yielded
	switch {
	case err == nil:
		return done, nil
	case w.lost(err):
		return done, nil
	case errors.Is(err, errEmpty):
		err = w.settle(ctx, Outcome{Event: SkipEmpty})
		return done, w.settleLost(err)
	case errors.As(err, &y) && w.run.Yields < w.Timing.MaxYields:
		return w.yield(ctx, y)
	}
	if errors.As(err, &y) {
		err = failure.New(failure.OutOfTime, "%s, after %d yields", y.why, w.run.Yields)
	}
	f := failure.From(err)
	if !f.Passing() {
		return w.failed(ctx, f)
	}
	if w.run.AttemptsLeft <= 0 {
		return w.failed(ctx, exhausted(f))
	}
	return w.release(ctx, f, err)
}

// exhausted is what a passing failure becomes when no attempt remains: the last error is part of the message.
func exhausted(last *failure.Failure) *failure.Failure {
	return failure.Wrap(failure.AttemptsExhausted, last, "every attempt failed; the last one with %s: %s", last.Code, last.Message)
}

func (w *work) release(ctx context.Context, f *failure.Failure, cause error) (Disposition, error) {
	visible := Backoff(w.run.Attempts-w.run.Yields, f.RetryAfter, w.Timing)
	l := w.now()
	l.Wake = l.Now.Add(visible + w.Timing.SweepReleased.Std())
	w.log.Warn("attempt failed for a passing reason", "code", f.Code, "error", cause.Error(), "again_in", visible.String())
	w.Count("attempts_released", 1, string(f.Code), "")
	if err := w.Ledger.Release(ctx, w.run, l, f, visible); err != nil {
		return done, w.settleLost(err)
	}
	w.charged()
	return again(visible), nil
}

// Backoff is how long a message stays invisible after a passing failure of the n-th attempt: base × 2^n, or what the
// receiver asks for, at most BackoffMax.
func Backoff(n int, retryAfter time.Duration, t Timing) time.Duration {
	if retryAfter > 0 {
		return min(retryAfter, t.BackoffMax.Std())
	}
	return doubling(t.BackoffBase.Std(), n, t.BackoffMax.Std())
}

// settleExhausted settles a run that nobody holds and that has no attempt left. A stop that a person asked for comes
// before the attempts' end.
func (w *work) settleExhausted(ctx context.Context) error {
	w.ends(ctx)
	w.lease = Lease{Token: w.Token(), Now: w.Clocks.Wall()}
	f := failure.New(failure.AttemptsExhausted, "every attempt failed or died; the last error kept is %s: %s", orNone(w.run.ErrorCode), orNone(w.run.ErrorText))
	if w.run.StopBy != "" {
		f = w.stopped(w.run)
	}
	return w.fail(ctx, f)
}

func orNone(s string) string {
	if s == "" {
		return "none: the worker died"
	}
	return s
}

func (w *work) stopped(r Run) *failure.Failure {
	return failure.New(failure.StoppedByOperator, "stopped by %s: %s", r.StopBy, r.StopWhy)
}

func (w *work) settle(ctx context.Context, o Outcome) error {
	l := w.now()
	l.Wake = l.Now.Add(w.Timing.SweepQueued.Std())
	put, err := w.Ledger.Conclude(ctx, w.run, l, o)
	if err != nil {
		return err
	}
	w.put = put
	w.charged()
	row, _ := Runs.Next(w.run.State, o.Event)
	w.Count("runs_settled", 1, string(row.To), string(o.Code))
	w.log.Info("run settled", "state", row.To, "code", o.Code, "submitted", o.Submitted, "skipped", o.Skipped)
	return nil
}

// attempt does what is still to do: the file if none is recorded, then every recipient without an outcome.
func (w *work) attempt(ctx context.Context) error {
	if err := w.define(ctx); err != nil {
		return err
	}
	// A request begun at the reserve has its whole time; what is left then is enough to write down how it all ended.
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-w.Timing.settling()))
		defer cancel()
	}
	if w.run.File == nil {
		if err := w.produce(ctx); err != nil {
			return err
		}
	}
	return w.deliver(ctx)
}

// define reads the frozen definition version and what became of the schedule since.
func (w *work) define(ctx context.Context) error {
	def, err := w.Ledger.Definition(ctx, w.run.Schedule, w.run.Version)
	if errors.Is(err, ErrNotFound) {
		return failure.New(failure.DefinitionInvalid, "version %d of schedule %s is not there any more", w.run.Version, w.run.Schedule)
	}
	if err != nil {
		return err
	}
	w.def = def
	if w.run.StopBy != "" {
		return w.stopped(w.run)
	}
	s, err := w.Ledger.Schedule(ctx, w.run.Schedule)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if f := w.calledOff(s, errors.Is(err, ErrNotFound)); f != nil {
		if there, err := w.inWork(ctx); err != nil {
			return err
		} else if !there {
			return f
		}
	}
	if s.Version == 0 {
		return nil // the schedule's row has expired: a run in work is delivered as it was admitted
	}
	if len(def.Groups) > 0 { // before the query: a run that has too many recipients makes no file
		if _, err := w.recipients(ctx); err != nil {
			return err
		}
	}
	return w.presence(ctx, s)
}

// calledOff says why a run that is not in work is not to be delivered any more; nil: it is.
func (w *work) calledOff(s Schedule, expired bool) *failure.Failure {
	switch {
	case expired, s.State == Deleted:
		return failure.New(failure.ScheduleDeleted, "schedule %s was deleted before this run had asked anybody", w.run.Schedule)
	case s.State == Paused && s.PausedBy == System && pausesRuns(s.PauseReason):
		return failure.New(failure.Code(s.PauseReason), "schedule %s is paused: %s", s.ID, s.PauseReason)
	}
	return nil
}

// inWork reports whether an earlier attempt made the run's file, or asked a recipient. One that only took the lease may
// have died before it looked at the schedule: then this one is the first that does. A retry may have its file from the run
// that it repeats: it is in work once it has asked somebody.
func (w *work) inWork(ctx context.Context) (bool, error) {
	if w.run.Attempts <= 1 {
		return false, nil
	}
	if w.run.File != nil && w.run.RetryOf == "" {
		return true, nil
	}
	subs, err := w.Ledger.Submissions(ctx, w.id)
	return len(subs) > 0, err
}

// System is who acts where no person does.
const System = "system"

// pausesRuns reports a pause that holds for runs admitted before it, too.
func pausesRuns(reason string) bool {
	e, ok := failure.Lookup(failure.Code(reason))
	return ok && e.Pauses
}
