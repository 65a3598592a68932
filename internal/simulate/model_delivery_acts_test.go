package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var deliveryKinds = []kind[*deliveryPair]{
	{"deliver the next message", 14, (*deliveryPair).deliverNext},
	{"time passes", 8, (*deliveryPair).passTime},
	{"tick", 5, (*deliveryPair).tick},
	{"save a schedule", 3, (*deliveryPair).save},
	{"pause", 1, (*deliveryPair).pause},
	{"resume", 2, (*deliveryPair).resume},
	{"delete", 1, (*deliveryPair).remove},
	{"run now", 5, (*deliveryPair).runNow},
	{"a message comes again", 4, (*deliveryPair).comesAgain},
	{"deliver, and die at some call", 5, (*deliveryPair).deliverDying},
	{"tick, and die at some call", 1, (*deliveryPair).tickDying},
	{"exhaust", 3, (*deliveryPair).exhaust},
	{"stop", 2, (*deliveryPair).stop},
	{"retry as new", 3, (*deliveryPair).retry},
	{"resend", 3, (*deliveryPair).resend},
	{"resolve", 2, (*deliveryPair).resolve},
	{"a receiver changes its mood", 6, (*deliveryPair).mood},
	{"the source changes its mood", 3, (*deliveryPair).sourceMood},
	{"switch", 1, (*deliveryPair).turn},
	{"change the group", 1, (*deliveryPair).changeGroup},
}

// The product does what lifecycles A, B, C and E say, whatever is done to it in whatever order.
func TestModelOfDelivery(t *testing.T) {
	checkModel(t, deliveryKinds, playDelivery, "run succeeded", "run skipped", "run failed delivery_unknown", "run failed attempts_exhausted", "run failed never_started",
		"run failed stopped_by_operator", "run failed query_invalid", "run failed source_access_denied", "run failed sender_refused", "run failed schedule_deleted",
		"submission submitted", "submission pending", "submission unknown", "submission not_sent sender_refused", "submission skipped removed", "submission skipped refused", "submission skipped invalid",
		"submission skipped resolved", "sent again", "schedule active", "schedule paused failures", "schedule paused source_access_denied", "schedule deleted", "skip missed", "skip overlap", "in the outbox")
}

func playDelivery(t *testing.T, moves []move, ends map[string]int) (told []string, err error) {
	failed := Run(t, func(w *World) {
		p := newDeliveryPair(w)
		defer func() { p.model.count(ends) }()
		p.apply("s", aDefinition{catchUp: "latest", overlap: "allow", limit: 5, to: "ah", notify: true, hourly: true})
		for _, m := range moves {
			p.model.now = at2ms(w.Now())
			told = append(told, deliveryKinds[m.kind].do(p, m.a, m.b))
			if err = p.compare(); err != nil {
				return
			}
		}
	})
	if failed != nil {
		return told, failed
	}
	return told, err
}

// count counts how a sequence ended.
func (m *deliveryModel) count(ends map[string]int) {
	for _, r := range m.runs {
		ends[strings.TrimSpace("run "+r.State+" "+r.Code)]++
	}
	for _, s := range m.subs {
		if ends[strings.TrimSpace("submission "+s.State+" "+s.Reason)]++; s.Resends > 0 {
			ends["sent again"]++
		}
	}
	for _, s := range m.schedules {
		ends[strings.TrimSpace("schedule "+s.State+" "+s.Pause)]++
	}
	for k := range m.skips {
		_, kind, _ := strings.Cut(k, "#")
		ends["skip "+kind]++
	}
	ends["in the outbox"] += len(m.out)
}

func idsOf[V any](rows map[string]V) []string { return slices.Sorted(maps.Keys(rows)) }

// one picks one of a list; "" where there is none.
func oneOf(list []string, n int) string {
	if len(list) == 0 {
		return ""
	}
	return list[n%len(list)]
}

// answered holds what a command answered against what the model expects of it.
func (p *deliveryPair) answered(what string, err error, refused bool) {
	if (err != nil) != refused && p.wrong == nil {
		p.wrong = fmt.Errorf("%s: the product answers %v, the model says refused: %v", what, err, refused)
	}
}

func (p *deliveryPair) became(what string, d schedule.Disposition, again bool, visible ms) {
	if d.Again != again || d.Visible.Milliseconds() != visible {
		p.wrong = fmt.Errorf("%s: the message is to come again: %v, in %s; the model says %v, in %s", what, d.Again, d.Visible, again, time.Duration(visible)*time.Millisecond)
	}
}

func (p *deliveryPair) deliverNext(int, int) string {
	m := p.next()
	if m == nil {
		return "no message is to be delivered"
	}
	var d schedule.Disposition
	p.consume(p.w.calm(DeliverTime), p.w.Kit(nil), p.w.runs, *m, &d)
	again, visible := p.model.message(*m.Body)
	p.became(*m.Body, d, again, visible)
	return "deliver " + *m.Body
}

func (p *deliveryPair) deliverDying(a, b int) string {
	m := p.next()
	if m == nil {
		id := oneOf(p.openRuns(), b>>1)
		if id == "" {
			return "no message is to be delivered"
		}
		body := schedule.EncodeMessage(id)
		none := "0"
		m = &sqstypes.Message{Body: &body, MessageId: &none, ReceiptHandle: &none}
	}
	n, form := 1+a%48, deathForm(b)
	var d schedule.Disposition
	died := p.w.dying("deliver", DeliverTime, n, form, func(ctx context.Context, t Kit) { d = p.handler(t, new(schedule.Disposition)).Handle(ctx, *m.Body) })
	var again bool
	var visible ms
	open := p.branches(func(q *deliveryModel) { again, visible = q.message(*m.Body) })
	if !died {
		p.collapse(open[len(open)-1:])
		_, _ = again, visible
		_ = d
		return fmt.Sprintf("deliver %s, with fewer than %d calls", *m.Body, n)
	}
	p.collapse(open)
	return fmt.Sprintf("deliver %s, %s at call %d", *m.Body, form, n)
}

// comesAgain hands over a message of some run, settled or not, beside those of the queue.
func (p *deliveryPair) comesAgain(a, _ int) string {
	id := oneOf(idsOf(p.model.runs), a)
	if id == "" {
		return "no run's message can come again"
	}
	var d schedule.Disposition
	p.handler(p.w.Kit(nil), &d).Handle(p.w.calm(DeliverTime), schedule.EncodeMessage(id))
	again, visible := p.model.deliver(id)
	p.became(id, d, again, visible)
	return "a message of " + id + " comes again"
}

func (p *deliveryPair) passTime(a, _ int) string {
	spans := []time.Duration{time.Minute, 5 * time.Minute, 7 * time.Minute, 10 * time.Minute, 30 * time.Minute, 31 * time.Minute, time.Hour, 3 * time.Hour, 25 * time.Hour, 20 * time.Second}
	d := spans[a%len(spans)]
	if p.model.now+d.Milliseconds() > p.until {
		return "no time is left to pass"
	}
	time.Sleep(d)
	return d.String() + " pass"
}

func (p *deliveryPair) tick(int, int) string {
	tally, err := p.w.Kit(nil).Dispatcher().Tick(p.w.calm(TickTime))
	p.w.must(err)
	if tally.Errors > 0 {
		p.wrong = fmt.Errorf("the tick counts errors: %+v", tally)
	}
	for _, chain := range p.model.tickChains() {
		chain(p.model)
	}
	return "tick"
}

// tickDying: what belongs to one schedule, run or notice is done up to some step; the others come in any order.
func (p *deliveryPair) tickDying(a, b int) string {
	n, form := 1+a%80, deathForm(b)
	if !p.w.dying("tick", TickTime, n, form, func(ctx context.Context, t Kit) { _, _ = t.Dispatcher().Tick(ctx) }) {
		n = 0
	}
	for _, chain := range p.model.tickChains() {
		open := p.branches(chain)
		p.model = p.rows.upTo(open)
	}
	return fmt.Sprintf("tick, %s at call %d", form, n)
}

// upTo picks the furthest of the states that the product is in, in the rows that any of them touches; the first where none is.
func (r deliveryRows) upTo(open []*deliveryModel) *deliveryModel {
	return furthest(open, func(m *deliveryModel) bool {
		return alike(r.schedules, open, m, func(m *deliveryModel) map[string]aSchedule { return m.schedules }) &&
			alike(r.runs, open, m, func(m *deliveryModel) map[string]aRun { return m.runs }) &&
			alike(r.skips, open, m, func(m *deliveryModel) map[string]aSkip { return m.skips }) &&
			alike(r.out, open, m, func(m *deliveryModel) map[string]aOut { return m.out })
	})
}

func (p *deliveryPair) openRuns() (open []string) {
	for _, id := range idsOf(p.model.runs) {
		if !settledRun(p.model.runs[id]) {
			open = append(open, id)
		}
	}
	return open
}

func (p *deliveryPair) exhaust(a, b int) string {
	id := oneOf(p.openRuns(), a)
	if id == "" {
		id = oneOf(idsOf(p.model.runs), a)
	}
	if id == "" {
		return "no run's message is dead"
	}
	work := func(ctx context.Context, t Kit) error {
		return t.Exhauster().Handle(ctx, "dead", schedule.EncodeMessage(id))
	}
	if b%4 > 0 {
		p.w.must(work(p.w.calm(DeliverTime), p.w.Kit(nil)))
		p.model.exhaust(id)
		return "exhaust " + id
	}
	died := p.w.dying("exhaust", DeliverTime, 1+b/8, deathForm(b>>2), func(ctx context.Context, t Kit) { _ = work(ctx, t) })
	open := p.branches(func(m *deliveryModel) { m.exhaust(id) })
	if !died {
		open = open[len(open)-1:]
	}
	p.collapse(open)
	return fmt.Sprintf("exhaust %s, died at call %d: %v", id, 1+b/8, died)
}
