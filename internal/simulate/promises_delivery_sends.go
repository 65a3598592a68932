package simulate

import (
	"encoding/json"
	"fmt"
	"strings"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// alone reports that no two processes work at once in this world, and none was held up.
func (w *World) alone() bool { return w.Workers <= 1 && !w.delivery.held && w.SkewOf == nil }

// sendsRight holds each request that arrived since the last step against what was recorded before it was sent.
func sendsRight(w *World, _ []Change) error {
	p := &w.delivery
	for ; p.posts < len(w.Hooks.Posts); p.posts++ {
		post := w.Hooks.Posts[p.posts]
		var body struct {
			Type string
			Data struct{ Run string }
		}
		if err := json.Unmarshal([]byte(post.Body), &body); err != nil {
			return fmt.Errorf("a request to %s: %w", post.Name, err)
		}
		if err := w.sent(channel.Webhook, Address(post.Name), post.Key, post.Body, body.Type != "file.delivered"); err != nil {
			return err
		}
		if body.Type == "file.delivered" && !strings.HasPrefix(post.Key, body.Data.Run+"/") {
			return fmt.Errorf("the request %s is about %s", post.Key, body.Data.Run)
		}
		if post.Taken {
			p.apply(post.Name, post.Key)
		}
	}
	for ; p.mails < len(w.Mail.Asked); p.mails++ {
		l := w.Mail.Asked[p.mails]
		key, notice := l.Header.Get("X-Almanac-Delivery"), l.Header.Get("X-Almanac-Notice")
		if err := w.sent(channel.Email, l.To, key+notice, string(l.Raw), notice != ""); err != nil {
			return err
		}
	}
	for ; p.letters < len(w.Mail.Kept); p.letters++ {
		l := w.Mail.Kept[p.letters]
		key := l.Header.Get("X-Almanac-Delivery")
		if key != "" && p.once[l.To+" "+key] {
			return fmt.Errorf("%s got the mail %s twice", l.To, key)
		}
		p.apply(l.To, key)
	}
	return nil
}

// apply is a receiver that honours keys: it applies each key once.
func (p *deliveryPromises) apply(to, key string) {
	if run, name, hash, _, ok := schema.SplitDeliveryKey(key); ok && !p.once[to+" "+key] {
		p.once[to+" "+key] = true
		p.taken[run+"/"+name+"#"+hash]++
	}
}

// sent holds one request against its row, and against the first under its key.
func (w *World) sent(name, address, key, body string, notice bool) error {
	p := &w.delivery
	p.asked[key]++
	if first, again := p.bodies[address+" "+key]; again && first != body {
		return fmt.Errorf("two tries of %s to %s differ:\n%s\n%s", key, address, first, body)
	}
	p.bodies[address+" "+key] = body
	normal, err := channel.Normalise(name, address)
	if err != nil {
		return err
	}
	hash := channel.RecipientHash(name, normal)
	if notice {
		if !p.notices[key] || !strings.HasSuffix(key, "#"+name+"#"+hash) {
			return fmt.Errorf("%s is told %s, which is no notice to it", address, key)
		}
		return nil
	}
	run, channelName, recipient, n, ok := schema.SplitDeliveryKey(key)
	if !ok || channelName != name || recipient != hash {
		return fmt.Errorf("%s is sent %s, which is no key of its", address, key)
	}
	sub := p.row(schema.SubmissionKey(run, name, hash))
	if sub == nil || n > figure(sub, schema.Resends)+1 {
		return fmt.Errorf("%s is sent %s, and nobody has noted the intent", address, key)
	}
	return w.recipient(run, address)
}

// recipient holds an address against those whom a run is for, and against those who were on the schedule when it was begun.
func (w *World) recipient(run, address string) error {
	p := &w.delivery
	row := p.run(run)
	sched, _, _ := schema.SplitRunID(run)
	all, err := w.named(sched, figure(row, schema.DefVersion), groupsOfRun(row))
	switch {
	case err != nil:
		return err
	case !all[address]:
		return fmt.Errorf("%s is no recipient of %s", address, run)
	case !p.reach[run][address]:
		return fmt.Errorf("%s was taken off before %s was begun, and is sent to", address, run)
	}
	return nil
}

// answer is what a consumer answered of one message.
type answer struct {
	k     *Worker
	queue string
	id    string
	body  string
	again bool // named
}

// hearAnswer notes what a consumer answered, to be judged when the step is done.
func (p *deliveryPromises) hearAnswer(k *Worker, queue string, ms []sqstypes.Message, e lambdaevents.SQSEventResponse) {
	for _, m := range ms {
		a := answer{k: k, queue: queue, id: *m.MessageId, body: *m.Body}
		for _, f := range e.BatchItemFailures {
			a.again = a.again || f.ItemIdentifier == a.id
		}
		p.answers = append(p.answers, a)
	}
}

// answersTrue judges each answer by the rows as they stand.
//
// A message that is not named is deleted: what it asked for is done, is another's who holds it, or stands in the open-run
// index or the outbox, where the sweep finds it. A message that is named comes again: it is not done, unless its worker
// could not know, because a call of its own went wrong.
func answersTrue(w *World, _ []Change) error {
	w.mu.Lock()
	answers := w.delivery.answers
	w.delivery.answers = nil
	w.mu.Unlock()
	for _, a := range answers {
		if err := w.answerTrue(a); err != nil {
			return fmt.Errorf("%s %d answered %q, named: %v: %w", a.k.Name, a.k.Number, a.body, a.again, err)
		}
	}
	return nil
}

func (w *World) answerTrue(a answer) error {
	p := &w.delivery
	m, err := schedule.DecodeMessage(a.body)
	certain := w.alone() && !a.k.hurt
	switch {
	case err != nil && a.queue == queueRuns && !a.again:
		return fmt.Errorf("nobody could read it, and it is deleted")
	case err != nil && a.queue == queueDead && !a.again && p.row(schema.DeadLetterKey(a.id)) == nil:
		return fmt.Errorf("nobody could read it, and it is not kept")
	case err != nil:
		return nil
	case m.Notice != "":
		if a.again && certain {
			return fmt.Errorf("a notice that was looked at comes again by its message, and by the sweep")
		}
		return nil // what is left of it stands in the outbox
	case m.Resend != "":
		return w.resendAnswered(a, m.Resend, certain)
	}
	run := p.run(m.Run)
	open := run != nil && !settled(run)
	control := p.row(schema.ControlKey("test"))
	switch live := wallOf(run, schema.LeaseEnd).After(w.Now()); {
	case a.again && !open && certain:
		return fmt.Errorf("the run is %s", stateNow(run))
	case a.again && a.queue == queueDead && certain:
		return fmt.Errorf("a dead letter whose handling did not fail")
	case a.again || !open:
		return nil
	case run[schema.OpenShard] == nil || run[schema.WakeAt] == nil:
		return fmt.Errorf("the run is %s, and no sweep finds it", stateNow(run))
	case a.queue == queueRuns && certain && !live && !yes(control, schema.SendOff):
		return fmt.Errorf("the run is %s, nobody holds it, and the message is deleted", stateNow(run))
	}
	return nil
}

// resendAnswered judges the answer of a wish: what is left of it stands in the outbox, or its request is pending under a
// lease that the message waits for.
func (w *World) resendAnswered(a answer, id string, certain bool) error {
	p := &w.delivery
	run, name, hash, wish, _ := schema.SplitResendID(id)
	sub := p.row(schema.SubmissionKey(run, name, hash))
	pending := Text(sub, schema.State) == string(schedule.Pending)
	kept := p.row(schema.NoticeKey(id)) != nil
	switch {
	case !a.again && Text(sub, schema.ResendWish) == wish && Text(sub, schema.State) == string(schedule.Unknown) && !kept: // a resolved one bears it for nothing
		return fmt.Errorf("the wish stands, and no sweep finds it")
	case !a.again && pending && figure(sub, schema.Resends) > 0 && !kept:
		return fmt.Errorf("its request is pending, and no sweep finds it")
	case a.again && certain && !pending:
		return fmt.Errorf("the request is %s", Text(sub, schema.State))
	}
	return nil
}
