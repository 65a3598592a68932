package simulate

import (
	"fmt"
	"strings"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
)

// What people do to schedules and runs, and the world around them.

// definition is what two figures say.
func definition(a, b int) aDefinition {
	d := aDefinition{hourly: a&1 == 0, suppress: a&2 > 0, notify: a&4 == 0, catchUp: []string{"latest", "all", "none", "latest"}[a>>3&3],
		overlap: []string{"allow", "skip"}[a>>5&1], limit: []int{1, 2, 5, -1}[a>>6&3]}
	d.to = []string{"a", "h", "ah", "ab", "gh", "abh", "ga", "hk", "g", "bca"}[b%10]
	return d
}

func (d aDefinition) product(id string) schedule.Definition {
	out := Definition(id)
	out.Recurrence = calendar.Spec{Cron: "30 12 * * *", Zone: "UTC"}
	if d.hourly {
		out.Recurrence.Cron = "30 * * * *"
	}
	out.Empty = schedule.DeliverEmpty
	if d.suppress {
		out.Empty = schedule.SuppressEmpty
	}
	if d.notify {
		out.Notify = addresses("n")
	}
	out.CatchUp, out.Overlap, out.PauseAfter, out.Recipients = schedule.CatchUp(d.catchUp), schedule.Overlap(d.overlap), &d.limit, addresses(d.to)
	return out
}

func (p *deliveryPair) save(a, b int) string {
	id := []string{"s", "u"}[b>>4&1]
	d := definition(a, b)
	p.apply(id, d)
	return fmt.Sprintf("save %s: %+v", id, d)
}

func (p *deliveryPair) apply(id string, d aDefinition) {
	_, err := p.w.Kit(nil).Editor().Apply(background, d.product(id), "ann", 0)
	m := p.model
	m.now = at2ms(p.w.Now())
	s, there := m.schedules[id]
	p.answered("save "+id, err, s.State == "deleted")
	switch versions := m.defs[id]; {
	case s.State == "deleted":
		return
	case !there:
		m.schedules[id] = aSchedule{State: "active", Version: 1, Due: d.following(m.now)}
	case versions[len(versions)-1] == d:
		return
	default:
		if s.State == "active" && versions[len(versions)-1].hourly != d.hourly {
			s.Due = d.following(max(m.now, s.Last))
		}
		s.Version++
		m.schedules[id] = s
	}
	m.defs[id] = append(m.defs[id], d)
}

func (p *deliveryPair) pause(a, _ int) string {
	id := oneOf(idsOf(p.model.schedules), a)
	_, err := p.w.Kit(nil).Editor().Pause(background, id, "by hand", "ann")
	s := p.model.schedules[id]
	p.answered("pause "+id, err, s.State != "active")
	if s.State == "active" {
		s.State, s.Due, s.Pause, s.PausedBy = "paused", 0, "by hand", "ann"
		p.model.schedules[id] = s
	}
	return "pause " + id
}

func (p *deliveryPair) resume(a, _ int) string {
	id := oneOf(idsOf(p.model.schedules), a)
	_, err := p.w.Kit(nil).Editor().Resume(background, id, "again", "ann")
	m := p.model
	s := m.schedules[id]
	p.answered("resume "+id, err, s.State != "paused")
	if s.State == "paused" {
		s.State, s.Due, s.Pause, s.PausedBy = "active", m.defs[id][s.Version-1].following(max(m.now, s.Last)), "", ""
		m.schedules[id] = s
	}
	return "resume " + id
}

func (p *deliveryPair) remove(a, b int) string {
	if b%3 > 0 { // rare: a deleted schedule does little
		return "nobody deletes a schedule"
	}
	id := oneOf(idsOf(p.model.schedules), a)
	err := p.w.Kit(nil).Editor().Delete(background, id, "no more", "ann")
	s := p.model.schedules[id]
	p.answered("delete "+id, err, s.State == "deleted")
	s.State, s.Due = "deleted", 0
	p.model.schedules[id] = s
	return "delete " + id
}

func (p *deliveryPair) runNow(a, b int) string {
	id := oneOf(idsOf(p.model.schedules), a)
	if p.made++; b%8 == 0 {
		p.made-- // the key of the act before
	}
	r, made, err := p.w.Kit(nil).Editor().RunNow(background, id, "ann", fmt.Sprintf("run %d", p.made), "the same")
	m := p.model
	s := m.schedules[id]
	p.answered("run now "+id, err, s.State == "deleted")
	if err != nil {
		return "run now " + id
	}
	if _, known := m.runs[r.ID()]; known == made {
		p.wrong = fmt.Errorf("run now %s: the product says that it made %s: %v", id, r.ID(), made)
	} else if made {
		m.admit(r.ID(), id, aRun{Version: s.Version, Manual: true, Nominal: m.now})
	}
	return "run now " + id + ": " + r.ID()
}

func (p *deliveryPair) stop(a, _ int) string {
	id := oneOf(idsOf(p.model.runs), a)
	if open := p.openRuns(); len(open) > 0 && a&1 == 0 {
		id = oneOf(open, a>>1)
	}
	if id == "" {
		return "there is no run to stop"
	}
	_, err := p.w.Kit(nil).Editor().Stop(background, id, "enough", "ann")
	r := p.model.runs[id]
	p.answered("stop "+id, err, settledRun(r))
	if !settledRun(r) {
		r.Stop = true
		p.model.runs[id] = r
	}
	return "stop " + id
}

func (p *deliveryPair) retry(a, b int) string {
	m := p.model
	id := oneOf(idsOf(m.runs), a)
	if id == "" {
		return "there is no run to retry"
	}
	r, z := m.runs[id], m.frozen[id]
	q := schedule.RetryRequest{To: []string{schedule.RetryMissing, schedule.RetryMissing, schedule.RetryEveryone}[b%3]}
	named := q.To == schedule.RetryMissing && b&4 > 0
	var to []string
	for _, n := range z.to {
		s := m.subs[id+" "+target(n)]
		if s.State == "unknown" && named {
			_, hash, _ := strings.Cut(target(n), "#")
			q.IncludeUnknown = append(q.IncludeUnknown, hash)
		}
		if s.State != "pending" && (q.To == schedule.RetryEveryone || s.State == "" || s.State == "not_sent" || s.State == "skipped" && s.Reason == "refused" || s.State == "unknown" && named) {
			to = append(to, n)
		}
	}
	p.made++
	fresh, made, err := p.w.Kit(nil).Editor().Retry(background, id, q, "once more", "ann", fmt.Sprintf("retry %d", p.made), "a retry")
	no := r.State != "failed" && r.State != "succeeded" || m.schedules[z.schedule].State == "deleted" || len(to) == 0 || r.File && m.now >= r.FileEnd
	p.answered("retry "+id, err, no)
	if err != nil || no || !made {
		return "retry " + id + ", refused"
	}
	m.frozen[fresh.ID()] = frozenRun{z.schedule, to, z.suppress}
	again := aRun{Version: r.Version, Manual: true, Nominal: m.now, RetryOf: id, File: r.File, Rows: r.Rows, FileEnd: r.FileEnd}
	if r.File {
		again.LinkEnd = min(m.now+30*day, r.FileEnd)
	}
	m.admit(fresh.ID(), z.schedule, again)
	return fmt.Sprintf("retry %s as %s to %v", id, fresh.ID(), to)
}

// anUnknown picks a submission, an unknown one where there is any.
func (p *deliveryPair) anUnknown(a int) (run, t string) {
	var unknown []string
	for _, k := range idsOf(p.model.subs) {
		if p.model.subs[k].State == "unknown" {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 || a%8 == 0 {
		unknown = idsOf(p.model.subs)
	}
	run, t, _ = strings.Cut(oneOf(unknown, a), " ")
	return run, t
}

func (p *deliveryPair) resend(a, _ int) string {
	id, t := p.anUnknown(a)
	if id == "" {
		return "there is nothing to resend"
	}
	_, hash, _ := strings.Cut(t, "#")
	sub, err := p.w.Kit(nil).Editor().Resend(background, id, hash, "once more", "ann")
	m, key := p.model, id+" "+t
	s, r := m.subs[key], m.runs[id]
	no := s.State != "unknown" || !settledRun(r) || !r.File || m.now >= r.LinkEnd
	p.answered("resend "+key, err, no)
	if err == nil && !no && s.Wish == "" {
		s.Wish = sub.Wish.ID
		m.subs[key] = s
		m.out[id+"#"+t+"#"+s.Wish] = aOut{Next: m.now + minutes(5)}
	}
	return "resend " + key
}

func (p *deliveryPair) resolve(a, b int) string {
	id, t := p.anUnknown(a)
	if id == "" {
		return "there is nothing to resolve"
	}
	_, hash, _ := strings.Cut(t, "#")
	as := []string{"submitted", "skipped"}[b%2]
	_, err := p.w.Kit(nil).Editor().Resolve(background, id, hash, as, "asked them", "ann")
	m, key := p.model, id+" "+t
	s := m.subs[key]
	p.answered("resolve "+key, err, s.State != "unknown")
	if s.State == "unknown" {
		if s.State, s.Reason = as, ""; as == "skipped" {
			s.Reason = "resolved"
		}
		m.subs[key] = s
	}
	return "resolve " + key + " as " + as
}

func (p *deliveryPair) mood(a, b int) string {
	n := string("abchkn"[a%6])
	if p.env.receivers[n] = b % 9; p.env.receivers[n] > 5 {
		p.env.receivers[n] = 0
	}
	return fmt.Sprintf("receiver %s: %+v", n, p.env.answer(n))
}

func (p *deliveryPair) sourceMood(a, _ int) string {
	if p.env.source = a % 8; p.env.source > 4 {
		p.env.source = 0
	}
	return "the source: " + sourceSays[p.env.source]
}

func (p *deliveryPair) turn(a, b int) string {
	var s schedule.Switches
	on := b%3 > 0 // mostly on again
	if a&1 == 0 {
		s.Send, p.model.sendOff = &on, !on
	} else {
		s.Dispatch, p.model.dispOff = &on, !on
	}
	_, err := p.w.Kit(nil).Editor().Switch(background, s, "a test", "ann")
	p.w.must(err)
	return fmt.Sprintf("switch: send off %v, dispatch off %v", p.model.sendOff, p.model.dispOff)
}

func (p *deliveryPair) changeGroup(a, _ int) string {
	members := []string{"bc", "b", "ch", "abk"}[a%4]
	p.saveGroup(members)
	return "the group: " + members
}
