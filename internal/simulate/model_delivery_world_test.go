package simulate

import (
	"context"
	"fmt"
	"strconv"

	"almanac/internal/boot"
	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/source"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func itoa(n int) string { return strconv.Itoa(n) }

// surroundings are how receivers and the source behave: both sides ask them.
type surroundings struct {
	receivers map[string]int // by name: a place in mailSays or hookSays
	source    int            // a place in sourceSays
}

// said is what a receiver answers to one request, as table B reads it, and whether it took what was sent.
type aVerdict struct {
	what  int
	code  string
	after ms
	took  bool
}

const (
	accepted = iota
	refused
	notAccepted
	lost
	accountRefused
)

var (
	mailSays = []aVerdict{{what: accepted, took: true}, {what: notAccepted, code: "send_throttled"}, {what: refused, code: "invalid"},
		{what: lost, took: true}, {what: lost}, {what: accountRefused, code: "sender_refused"}}
	mailAnswers = []error{nil, Coded("Throttling", "Maximum sending rate exceeded."), Coded("InvalidParameterValue", "Missing final '@domain'"),
		errCut, errCut, Coded("MessageRejected", "Email address is not verified.")}
	hookSays = []aVerdict{{what: accepted, took: true}, {what: notAccepted, code: "send_failed"}, {what: notAccepted, code: "send_throttled", after: 120_000},
		{what: refused, code: "refused"}, {what: lost, code: "send_failed"}, {what: lost, code: "send_failed", took: true}}
	hookAnswers = []Reply{{}, {Status: 503}, {Status: 429, RetryAfter: "120"}, {Status: 410}, {Status: 500}, {Cut: true}}
	sourceSays  = []string{"", "no rows", "source_unavailable", "query_invalid", "source_access_denied"}
)

func (e *surroundings) answer(name string) aVerdict {
	if byMail(name) {
		return mailSays[e.receivers[name]]
	}
	return hookSays[e.receivers[name]]
}

// query is what the source gives: rows, or why not.
func (e *surroundings) query() (rows int, f *fault) {
	switch code := sourceSays[e.source]; code {
	case "":
		return 4, nil
	case "no rows":
		return 0, nil
	default:
		return 0, &fault{code: code, passing: code == "source_unavailable"}
	}
}

// moody is the source as the surroundings have it.
type moody struct {
	*Data
	env *surroundings
}

func (s moody) Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error) {
	switch code := sourceSays[s.env.source]; code {
	case "":
	case "no rows":
		q.SQL = "select id from flights where 1 = 0"
	default:
		return nil, failure.New(failure.Code(code), "as the surroundings say")
	}
	return s.Data.Open(ctx, name, workspace, q)
}

// deliveryPair is the product and the model, side by side.
type deliveryPair struct {
	w     *World
	env   *surroundings
	rows  deliveryRows // of the product
	model *deliveryModel
	posts int // that were counted
	mails int
	made  int   // keys of manual runs
	until ms    // time stands still then: beyond it rows expire
	wrong error // set by an action whose answer is not the model's
}

func newDeliveryPair(w *World) *deliveryPair {
	env := &surroundings{receivers: map[string]int{}}
	p := &deliveryPair{w: w, env: env, rows: newDeliveryRows(), model: newDeliveryModel(env)}
	w.MailRate = 0
	w.Unwatched, w.S3.Changed = true, nil
	w.DB.Changed = func(table string, old, new Row) {
		if table == Schedules {
			p.rows.changed(old, new)
		}
	}
	w.Mail.Answer = func(to string, _ int) error {
		mood := env.receivers[to[:1]]
		if mailSays[mood].took && mailAnswers[mood] != nil {
			w.Mail.Kept = append(w.Mail.Kept, Letter{To: to}) // taken, and the answer is cut
		}
		return mailAnswers[mood]
	}
	w.Hooks.Answer = func(name string, _ int) Reply { return hookAnswers[env.receivers[name]] }
	w.Company()
	p.saveGroup("bc")
	p.until = at2ms(w.Now()) + 84*hour
	return p
}

func (p *deliveryPair) saveGroup(members string) {
	g := schedule.Group{ID: "g", Name: "Group", Workspaces: []string{"*"}, Recipients: addresses(members)}
	_, err := p.w.Kit(nil).Editor().ApplyGroup(background, g, "ann", len(p.model.groups))
	p.w.must(err)
	if list := p.model.members(members, 0); len(p.model.groups) == 0 || fmt.Sprint(list) != fmt.Sprint(p.model.groups[len(p.model.groups)-1]) {
		p.model.groups = append(p.model.groups, list)
	}
}

func addresses(names string) (out []schedule.Recipient) {
	for _, r := range names {
		switch n := string(r); {
		case n == "g":
			out = append(out, schedule.Recipient{Group: "g"})
		case byMail(n):
			out = append(out, schedule.Recipient{Email: n + "@example.com"})
		default:
			out = append(out, schedule.Recipient{Webhook: Address(n), Secret: "ops"})
		}
	}
	return out
}

// compare tells where product and model differ.
func (p *deliveryPair) compare() error {
	for _, x := range p.w.Hooks.Posts[p.posts:] {
		if x.Taken {
			p.rows.took[x.Key]++
		}
	}
	for _, l := range p.w.Mail.Kept[p.mails:] {
		p.rows.took[l.To]++
	}
	p.posts, p.mails = len(p.w.Hooks.Posts), len(p.w.Mail.Kept)
	if p.wrong != nil {
		return p.wrong
	}
	if d := p.rows.unlike(p.model.deliveryRows); d != "" {
		return fmt.Errorf("%s", d)
	}
	return nil
}

// collapse makes the model one of the states that the specification leaves open, the one that the product is in.
func (p *deliveryPair) collapse(open []*deliveryModel) {
	p.wrong = p.compare() // counts what receivers took
	p.wrong = nil
	why := ""
	for _, m := range open {
		d := p.rows.unlike(m.deliveryRows)
		if d == "" {
			p.model = m
			return
		}
		why += "\n  " + d
	}
	p.wrong = fmt.Errorf("a process died, and the product is in none of %d states that may be:%s", len(open), why)
}

// branches does something to the model and returns its state before, and after each step on the way.
func (p *deliveryPair) branches(do func(*deliveryModel)) (open []*deliveryModel) {
	m := p.model
	open = append(open, m.clone())
	m.step = func() { open = append(open, m.clone()) }
	do(m)
	m.step = func() {}
	return append(open, m)
}

// handler is the product's consumer of the delivery queue, with what became of the last message.
func (p *deliveryPair) handler(t Kit, became *schedule.Disposition) boot.Consumer {
	d := t.Deliverer()
	d.Sources = moody{p.w.Data, p.env}
	return boot.Consumer{Hide: t.Queue().Hide, Log: t.logger(), Handle: func(ctx context.Context, body string) schedule.Disposition {
		*became = d.Handle(ctx, body)
		return *became
	}}
}

// consume hands a message to the consumer, as the poller does.
func (p *deliveryPair) consume(ctx context.Context, t Kit, queue string, m sqstypes.Message, became *schedule.Disposition) {
	e := lambdaevents.SQSEvent{Records: []lambdaevents.SQSMessage{{MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body}}}
	answer, err := p.handler(t, became).Batch(ctx, e)
	if k := workerOf(ctx); err != nil || len(answer.BatchItemFailures) > 0 || k != nil && k.isDead() {
		return
	}
	_, err = p.w.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
	if k := workerOf(ctx); k == nil {
		p.w.must(err)
	}
}

// next takes the next visible message; nil: there is none.
func (p *deliveryPair) next() *sqstypes.Message {
	out, err := p.w.SQS.ReceiveMessage(background, &sqs.ReceiveMessageInput{QueueUrl: &p.w.runs, MaxNumberOfMessages: 1})
	p.w.must(err)
	if len(out.Messages) == 0 {
		return nil
	}
	return &out.Messages[0]
}

// expect is what the model says of a message.
func (m *deliveryModel) message(body string) (again bool, visible ms) {
	n, err := schedule.DecodeMessage(body)
	switch {
	case err != nil:
		panic(err)
	case n.Notice != "":
		m.tell(n.Notice)
		return false, 0
	case n.Resend != "":
		return m.resend(n.Resend)
	}
	return m.deliver(n.Run)
}
