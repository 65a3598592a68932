package simulate

import (
	"maps"
	"slices"
	"strings"
)

// The model's ends of runs: tables A to C, notices, resends and dead letters.

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
