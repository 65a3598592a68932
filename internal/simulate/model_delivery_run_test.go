package simulate

import (
	"maps"
	"slices"
	"strings"
)

// The model's attempt at a run: tables A and B.

// fault is why an attempt, or one request, did not come to its end.
type fault struct {
	code    string
	passing bool
	after   ms // the receiver's wish
}

// deliver is what a message that names a run does; again and visible are what becomes of the message.
func (m *deliveryModel) deliver(id string) (again bool, visible ms) {
	r, there := m.runs[id]
	if !there || m.sendOff || settledRun(r) || m.held(r) {
		return false, 0
	}
	if rest := r.Wake - minutes(5) - m.now; r.State == "running" && !r.Leased && r.Offers+r.Deads == 0 && !r.Stop && rest > 0 {
		return true, rest // a copy: the next attempt has its time, and nobody asked for it earlier
	}
	if r.Left <= 0 {
		m.fail(id, m.unlessStopped(id, "attempts_exhausted"))
		return false, 0
	}
	m.begin(id)
	f := m.attempt(id)
	r = m.runs[id]
	switch {
	case f == nil:
		return false, 0
	case f.passing && r.Left > 0:
		visible = doubled(30_000, r.Attempts-r.Yields, minutes(15))
		if f.after > 0 {
			visible = min(f.after, minutes(15))
		}
		r.Leased, r.LeaseEnd, r.Wake, r.Code = false, 0, m.now+visible+minutes(5), f.code
		m.runs[id] = r
		m.step()
		return true, visible
	case f.passing:
		f.code = "attempts_exhausted"
	}
	m.fail(id, f.code)
	return false, 0
}

func (m *deliveryModel) unlessStopped(id, code string) string {
	if m.runs[id].Stop {
		return "stopped_by_operator"
	}
	return code
}

// begin begins or resumes: an attempt costs one of the budget, and its lease ends a minute after its invocation must.
func (m *deliveryModel) begin(id string) {
	r := m.runs[id]
	end := m.now + at2ms(Start.Add(DeliverTime)) - at2ms(Start)
	r.State, r.Attempts, r.Left, r.Offers, r.Deads = "running", r.Attempts+1, r.Left-1, 0, 0
	r.Leased, r.LeaseEnd, r.Wake = true, end+minutes(1), end+minutes(2)
	m.runs[id] = r
	m.step()
}

// attempt does what is still to do, and settles; a fault says why not.
func (m *deliveryModel) attempt(id string) *fault {
	r, z := m.runs[id], m.frozen[id]
	s := m.schedules[z.schedule]
	switch {
	case r.Stop:
		return &fault{code: "stopped_by_operator"}
	case !m.inWork(id) && s.State == "deleted":
		return &fault{code: "schedule_deleted"}
	case !m.inWork(id) && s.State == "paused" && s.PausedBy == "system" && s.Pause == "source_access_denied":
		return &fault{code: "source_access_denied"}
	}
	if !r.File {
		rows, f := m.env.query()
		switch {
		case f != nil:
			return f
		case rows == 0 && z.suppress:
			m.settle(id, "skipped", "", 0, 0)
			return nil
		}
		r.File, r.Rows, r.FileEnd, r.LinkEnd = true, rows, m.now+30*day, m.now+30*day
		m.runs[id] = r
		m.step()
	}
	if f := m.recipients(id); f != nil {
		return f
	}
	return m.finish(id)
}

// inWork reports that an earlier attempt has made the run's file or asked a recipient: one that only began may have died
// before it looked at the schedule.
func (m *deliveryModel) inWork(id string) bool {
	r := m.runs[id]
	if r.Attempts <= 1 {
		return false
	}
	for k := range m.subs {
		if strings.HasPrefix(k, id+" ") {
			return true
		}
	}
	return r.File && r.RetryOf == "" // a retry brings its file
}

// recipients works through them: those that nobody has asked come first.
func (m *deliveryModel) recipients(id string) *fault {
	var fresh, asked []string
	for _, n := range m.frozen[id].to {
		switch s := m.subs[id+" "+target(n)]; s.State {
		case "":
			fresh = append(fresh, n)
		case "pending":
			asked = append(asked, n)
		case "not_sent": // a run with one can only fail, for the reason that it was about to fail for
			return &fault{code: s.Reason}
		}
	}
	var worst *fault
	for _, n := range append(fresh, asked...) {
		f, whole := m.recipient(id, n)
		if f == nil {
			continue
		}
		if !f.passing || whole {
			return f
		}
		if worst == nil || f.after > worst.after {
			worst = f
		}
	}
	return worst
}

// recipient brings one to an outcome; whole: nobody else is to be asked.
func (m *deliveryModel) recipient(id, n string) (f *fault, whole bool) {
	key := id + " " + target(n)
	s := m.subs[key]
	removed := !slices.Contains(m.present(m.frozen[id].schedule), n)
	doubtful := false
	switch {
	case s.State == "":
		s = aSub{State: "pending", Mark: removed, Tries: 1}
		if removed {
			s.Tries = 0
		}
	case s.Mark && !removed && s.RetryAt > m.now:
		return &fault{"send_throttled", true, s.RetryAt - m.now}, false
	case s.Mark && removed: // taken over, and the mark stays until the refusal
	case s.Mark:
		s.Mark, s.RetryAt, s.Tries = false, 0, s.Tries+1
	case byMail(n): // whoever sent it did not come back: it may have it
		m.put(key, aSub{State: "unknown", Tries: s.Tries})
		return nil, false
	default:
		doubtful = true
		s.Tries++
	}
	m.put(key, s)
	if removed {
		m.put(key, aSub{State: "skipped", Reason: "removed", Tries: s.Tries})
		return nil, false
	}
	said := m.ask(n, id+"/"+target(n))
	switch said.what {
	case accepted:
		m.put(key, aSub{State: "submitted", Tries: s.Tries})
		return nil, false
	case refused:
		m.put(key, aSub{State: "skipped", Reason: said.code, Tries: s.Tries})
		return nil, false
	case lost:
		if byMail(n) {
			m.put(key, aSub{State: "unknown", Tries: s.Tries})
			return nil, false
		}
		return &fault{said.code, true, 0}, false
	}
	if !doubtful {
		s.Mark, s.RetryAt = true, 0
		if said.after > 0 {
			s.RetryAt = m.now + said.after
		}
		m.put(key, s)
	}
	return &fault{said.code, said.what == notAccepted, said.after}, said.what == accountRefused
}

func (m *deliveryModel) put(key string, s aSub) {
	m.subs[key] = s
	m.step()
}

// ask is one request. What its receiver took counts, whatever it answers.
func (m *deliveryModel) ask(n, key string) aVerdict {
	said := m.env.answer(n)
	if said.took {
		if byMail(n) {
			key = n + "@example.com"
		}
		m.took[key]++
	}
	m.step()
	return said
}

// finish succeeds where every recipient is submitted or skipped.
func (m *deliveryModel) finish(id string) *fault {
	submitted, skipped := 0, 0
	for _, n := range m.frozen[id].to {
		switch m.subs[id+" "+target(n)].State {
		case "submitted":
			submitted++
		case "skipped":
			skipped++
		default:
			return &fault{code: "delivery_unknown"}
		}
	}
	m.settle(id, "succeeded", "", submitted, skipped)
	return nil
}

// fail gives every recipient without an outcome one, and settles.
func (m *deliveryModel) fail(id, code string) {
	submitted, skipped := 0, 0
	if m.runs[id].File {
		var keys []string
		for k := range m.subs {
			if strings.HasPrefix(k, id+" ") {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, n := range m.frozen[id].to {
			if k := id + " " + target(n); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			switch s := m.subs[k]; {
			case s.State == "" || s.State == "pending" && s.Mark:
				m.put(k, aSub{State: "not_sent", Reason: code, Tries: s.Tries})
			case s.State == "pending":
				m.put(k, aSub{State: "unknown", Tries: s.Tries})
			case s.State == "submitted":
				submitted++
			case s.State == "skipped":
				skipped++
			}
		}
	}
	m.settle(id, "failed", code, submitted, skipped)
}

// settle ends a run, with what that means for its schedule, and tells whom it concerns.
func (m *deliveryModel) settle(id, state, code string, submitted, skipped int) {
	r := m.runs[id]
	r.State, r.Code, r.Submitted, r.Skipped, r.Leased, r.LeaseEnd, r.Wake = state, code, submitted, skipped, false, 0, 0
	if state == "skipped" {
		r.History = "skipped_empty"
	}
	m.runs[id] = r
	notices := m.effect(id, r)
	m.step()
	if m.quiet {
		return
	}
	for _, n := range notices {
		m.tell(n)
	}
}

// effect is the settle's part on the schedule; it returns the notices that it put.
func (m *deliveryModel) effect(id string, r aRun) (notices []string) {
	name := m.frozen[id].schedule
	s := m.schedules[name]
	d := m.defs[name][s.Version-1]
	before, occ, later := s.Streak, occurrence(id), s.LastNominal == 0 || r.Nominal > s.LastNominal
	if s.Open == occ {
		s.Open = ""
	}
	counted := later && r.Code != "schedule_deleted"
	if later {
		s.LastRun, s.LastNominal, s.LastState, s.LastCode = occ, r.Nominal, r.State, r.Code
	}
	tell := ""
	switch {
	case r.State == "succeeded":
		s.Success = max(s.Success, r.Nominal)
		if later {
			s.Streak = 0
			if before > 0 {
				tell = "recovered"
			}
		}
	case r.State == "failed" && counted:
		s.Streak++
		if before == 0 {
			tell = "failed"
		}
	}
	if r.State == "failed" && s.State == "active" {
		why := ""
		if r.Code == "source_access_denied" {
			why = r.Code
		} else if counted && !r.Manual && d.limit >= 0 && s.Streak >= d.limit {
			why = "failures"
		}
		if why != "" {
			s.State, s.Due, s.Pause, s.PausedBy, tell = "paused", 0, why, "system", "paused"
		}
	}
	m.schedules[name] = s
	if tell == "" || s.State == "deleted" || !d.notify {
		return nil
	}
	n := id + "#" + tell + "#" + target("n")
	m.out[n] = aOut{Next: m.now + minutes(5)}
	return []string{n}
}

// tell tries one notice: what is taken or refused leaves the outbox.
func (m *deliveryModel) tell(id string) {
	if _, there := m.out[id]; !there || m.sendOff {
		return
	}
	if said := m.ask("n", id); said.what == accepted || said.what == refused {
		delete(m.out, id)
		m.step()
	}
}

// resend carries out a person's wish, once.
func (m *deliveryModel) resend(wish string) (again bool, visible ms) {
	id, rest, _ := strings.Cut(wish, "#")
	at := strings.LastIndex(rest, "#")
	key, token := id+" "+rest[:at], rest[at+1:]
	s := m.subs[key]
	switch {
	case s.State == "pending" && s.Resends > 0 && m.now <= s.Until:
		return true, s.Until - m.now + 1000
	case s.State == "pending" && s.Resends > 0: // its sender did not come back
		m.put(key, aSub{State: "unknown", Tries: s.Tries, Resends: s.Resends})
	case s.State != "unknown" || s.Wish != token:
	case m.sendOff:
		return false, 0
	default:
		m.sendAgain(id, key, s)
	}
	if _, there := m.out[wish]; there {
		delete(m.out, wish)
		m.step()
	}
	return false, 0
}

func (m *deliveryModel) sendAgain(id, key string, s aSub) {
	n := recipientOf(strings.TrimPrefix(key, id+" "))
	removed := !slices.Contains(m.present(m.frozen[id].schedule), n)
	end := m.now + at2ms(Start.Add(DeliverTime)) - at2ms(Start)
	s = aSub{State: "pending", Tries: s.Tries, Resends: s.Resends + 1, Until: end + minutes(1)}
	if !removed {
		s.Tries++
	}
	m.put(key, s)
	end1 := aSub{State: "unknown", Tries: s.Tries, Resends: s.Resends} // whatever is no verdict leaves it so
	if removed {
		end1.State, end1.Reason = "skipped", "removed"
		m.put(key, end1)
		return
	}
	switch said := m.ask(n, id+"/"+target(n)+"/"+itoa(s.Resends+1)); said.what {
	case accepted:
		end1.State = "submitted"
	case refused:
		end1.State, end1.Reason = "skipped", said.code
	}
	m.put(key, end1)
}

func recipientOf(t string) string {
	for _, n := range slices.Sorted(maps.Keys(targets)) {
		if targets[n] == t {
			return n
		}
	}
	return ""
}

// exhaust is what a message does that came out of the dead-letter queue.
func (m *deliveryModel) exhaust(id string) {
	r, there := m.runs[id]
	m.quiet = true
	defer func() { m.quiet = false }()
	switch {
	case !there || settledRun(r) || m.held(r):
	case r.Left <= 0:
		m.fail(id, m.unlessStopped(id, "attempts_exhausted"))
	case r.Deads+1 >= 3:
		m.begin(id)
		m.fail(id, m.unlessStopped(id, "never_started"))
	default:
		r.Wake, r.Offers, r.Deads = m.now+doubled(minutes(5), r.Offers, hour), r.Offers+1, r.Deads+1
		m.runs[id] = r
		m.step()
	}
}
