package schedule_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/mail"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"almanac/internal/load"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/aws"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// scripts/load gives larger figures.
var (
	loadSchedules   = flag.Int("load.schedules", 500, "schedules that are due in one minute")
	loadRecipients  = flag.Int("load.recipients", 500, "recipients of one schedule")
	loadRate        = flag.Int("load.rate", 0, "mails a second of the account; 0: no bound")
	loadConcurrency = flag.Int("load.concurrency", 20, "deliver functions at once; 50 in production")
)

// loaded is a world under load.
type loaded struct {
	*world
	fleet    *fleet
	began    time.Time
	promises []load.Promise
	turns    atomic.Int64 // writes to the rows of the send rate, refused ones too: they cost the same
}

func newLoaded(t *testing.T, options ...option) *loaded {
	w := newWorld(t, append(options, mailRate(*loadRate))...)
	l := &loaded{world: w, fleet: newFleet(w)}
	pause := func(ctx context.Context, d time.Duration) error {
		l.fleet.spend(d)
		return ctx.Err()
	}
	w.deliverer.Pace.Pause, w.store.Pause = pause, pause
	w.watchTurns(func(error) { l.turns.Add(1) })
	return l
}

// owes saves a definition whose occurrences are promised.
func (l *loaded) owes(d schedule.Definition, nominal ...time.Time) {
	l.apply(d)
	p := load.Promise{Schedule: d.ID}
	for _, at := range nominal {
		p.Occurrences = append(p.Occurrences, schedule.OccurrenceKey(at))
	}
	for _, t := range schedule.Targets(d.Recipients) {
		p.Addresses = append(p.Addresses, t.Address())
	}
	l.promises = append(l.promises, p)
}

// drains moves the clocks to a due time and lets the product work until every promised run has settled.
func (l *loaded) drains(due time.Time) {
	l.t.Helper()
	l.to(due)
	l.began = l.wall()
	owed, end := 0, l.began.Add(6*time.Hour)
	for _, p := range l.promises {
		owed += len(p.Occurrences)
	}
	l.fleet.run(*loadConcurrency, func() bool {
		settled, open := l.settled()
		if l.wall().After(end) {
			l.t.Errorf("not drained after %s: %d of %d runs have settled", end.Sub(l.began), settled, owed)
			return true
		}
		return settled >= owed && open == 0 && l.left()+l.messages(l.queue.URL)+l.messages(l.dlq) == 0
	})
}

// settled counts the runs that have settled and those that are open.
func (l *loaded) settled() (settled, open int) {
	l.db.Any("Schedules", func(it map[string]dynamotypes.AttributeValue) bool {
		switch {
		case !strings.HasPrefix(text(it, schema.SK), schema.RunPrefix):
		case text(it, schema.SettledAt) != "":
			settled++
		default:
			open++
		}
		return false
	})
	return settled, open
}

// outside lists what was found outside the table.
func (l *loaded) outside() load.Outside {
	out := load.Outside{Accepted: map[string]int{}}
	for _, m := range l.mail.kept {
		letter, err := mail.ReadMessage(bytes.NewReader(m.raw))
		l.must(err)
		if run := letter.Header.Get("X-Almanac-Run"); letter.Header.Get("X-Almanac-Notice") == "" {
			out.Accepted[load.At(run, m.to)]++
		}
	}
	for _, p := range l.hooks.posts {
		if run, _, delivery := strings.Cut(p.key, "/"); delivery && p.taken {
			out.Accepted[load.At(run, l.hooks.address(p.name))]++
		}
	}
	for from := ""; ; {
		page, err := l.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String("files"), Prefix: aws.String("files/"), StartAfter: &from})
		l.must(err)
		for _, o := range page.Contents {
			out.Files = append(out.Files, *o.Key)
			from = *o.Key
		}
		if !*page.IsTruncated {
			return out
		}
	}
}

// kept fails the test for each broken promise, and returns the runs.
func (l *loaded) kept(settle func(schedule.Run) error) []schedule.Run {
	l.t.Helper()
	return l.keptBy(l.outside(), settle)
}

// keptBy is kept where the test itself noted what the receivers took.
func (l *loaded) keptBy(out load.Outside, settle func(schedule.Run) error) []schedule.Run {
	l.t.Helper()
	runs, broken, err := load.Kept(ctx, l.store, l.promises, out, settle)
	l.must(err)
	for i, b := range broken {
		if i == 20 {
			l.t.Errorf("and %d more", len(broken)-i)
			break
		}
		l.t.Error(b)
	}
	if n := l.messages(l.queue.URL) + l.messages(l.dlq); n > 0 {
		l.t.Errorf("%d messages are left", n)
	}
	return runs
}

// shown writes how the runs went.
func (l *loaded) shown(title string, runs []schedule.Run) {
	var out strings.Builder
	var admitted, settled, late, took []time.Duration
	yields := 0
	for _, r := range runs {
		admitted, settled = append(admitted, r.CreatedAt.Sub(l.began)), append(settled, r.SettledAt.Sub(l.began))
		late, took = append(late, r.CreatedAt.Sub(r.Nominal)), append(took, r.SettledAt.Sub(r.Nominal))
		yields += r.Yields
	}
	fmt.Fprintf(&out, "%s: %d runs, %d functions at once, %d yields; time as the model of fleet_test.go has it\n", title, len(runs), *loadConcurrency, yields)
	if *loadRate > 0 {
		fmt.Fprintf(&out, "  %d writes to take turns to send, at %d mails a second\n", l.turns.Load(), *loadRate)
	}
	load.Percentiles(&out, "admitted after its due time", late)
	load.Percentiles(&out, "settled after its due time", took)
	load.Histogram(&out, load.Column{Name: "admitted", After: admitted}, load.Column{Name: "settled", After: settled})
	l.t.Log("\n" + out.String())
}

// Many schedules are due in one minute: none is lost, none is delivered twice.
func TestLoadManySchedulesDueAtOnce(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	for n := range *loadSchedules {
		d := l.definition(fmt.Sprintf("s-%05d", n), fmt.Sprintf("a%d@example.com", n))
		if n%4 == 0 {
			d.Recipients = append(d.Recipients, schedule.Recipient{Webhook: l.hooks.address(fmt.Sprint(n)), Secret: "ops"})
		}
		l.owes(d, firstDue)
	}
	real := time.Now()
	l.drains(firstDue)
	l.shown(fmt.Sprintf("%d schedules due at once (%s on this machine)", *loadSchedules, time.Since(real).Round(time.Millisecond)), l.kept(nil))
}

// One schedule has many recipients: as many invocations as it takes come one after the other, and each recipient is asked
// once. A request takes so long that all of them need a quarter of an hour.
func TestLoadManyRecipientsOfOneSchedule(t *testing.T) {
	l := newLoaded(t)
	var to []string
	for n := range *loadRecipients {
		to = append(to, fmt.Sprintf("a%05d@example.com", n))
	}
	each := 15 * time.Minute / time.Duration(len(to))
	l.mail.during = func(string) { l.fleet.spend(each) }
	l.owes(l.definition("s", to...), firstDue)
	l.drains(firstDue)
	var sent []time.Duration
	for _, m := range l.mail.kept {
		sent = append(sent, m.at.Sub(l.began))
	}
	runs := l.kept(nil)
	if len(runs) == 1 && runs[0].Yields == 0 {
		t.Error("one invocation did it all: nothing was shown")
	}
	l.shown(fmt.Sprintf("%d recipients of one schedule, each request %s longer", len(to), each), runs)
	var out strings.Builder
	load.Histogram(&out, load.Column{Name: "accepted", After: sent})
	t.Log("\n" + out.String())
}

// A mailbox that takes two seconds for each mail holds up its own schedules, which yield and go on, and nobody else's for
// longer than a function is free; nothing times out.
func TestLoadAMailboxThatAnswersSlowly(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	l.mail.during = func(to string) {
		if strings.HasSuffix(to, "@slow.example.com") {
			l.fleet.spend(2 * time.Second)
		}
	}
	slow := max(2, *loadConcurrency*4/5)
	for n := range slow {
		var to []string
		for i := range 150 { // 300 s of sending: more than one invocation has
			to = append(to, fmt.Sprintf("a%d@slow.example.com", i))
		}
		l.owes(l.definition(fmt.Sprintf("slow-%05d", n), to...), firstDue)
	}
	for n := range *loadSchedules {
		l.owes(l.definition(fmt.Sprintf("quick-%05d", n), fmt.Sprintf("a%d@example.com", n)), firstDue)
	}
	l.drains(firstDue)
	var slowly, quickly []schedule.Run
	for _, r := range l.kept(nil) {
		if strings.HasPrefix(r.Schedule, "slow") {
			slowly = append(slowly, r)
			if r.Yields == 0 {
				t.Errorf("%s had 300 s of sending and never yielded", r.ID())
			}
			continue
		}
		quickly = append(quickly, r)
	}
	l.shown(fmt.Sprintf("beside %d schedules with 150 slow recipients each: the quick ones", slow), quickly)
	l.shown("the slow ones", slowly)
}
