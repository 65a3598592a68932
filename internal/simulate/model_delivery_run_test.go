package simulate

import (
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
