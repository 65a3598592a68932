package simulate

import (
	"maps"
	"slices"
	"strings"

	"almanac/internal/channel"
)

// The model of delivery: lifecycles A, B, C and E as the tables say it. Each function does what one event does; step is
// called after each write or request, where a process may die.
type deliveryModel struct {
	deliveryRows
	now     ms
	defs    map[string][]aDefinition // by schedule; version 1 is the first
	groups  [][]string               // members of the one group, by version
	frozen  map[string]frozenRun     // by run
	sendOff bool
	dispOff bool
	env     *surroundings
	step    func()
	quiet   bool // who works sends no notices: the consumer of dead letters
}

// aDefinition is what of a definition the model speaks about. Recipients are names: a letter, or g for the group.
type aDefinition struct {
	hourly, suppress, notify bool
	catchUp, overlap         string
	limit                    int // of failures in a row; -1: none
	to                       string
}

// frozenRun is what a run keeps from its admission.
type frozenRun struct {
	schedule string
	to       []string // names of distinct recipients, in their order
	suppress bool
}

func newDeliveryModel(env *surroundings) *deliveryModel {
	return &deliveryModel{deliveryRows: newDeliveryRows(), defs: map[string][]aDefinition{}, frozen: map[string]frozenRun{}, env: env, step: func() {}}
}

func (m *deliveryModel) clone() *deliveryModel {
	c := *m
	c.deliveryRows = m.deliveryRows.clone()
	c.frozen = maps.Clone(m.frozen)
	c.step, c.quiet = func() {}, false
	return &c
}

const (
	hour         = ms(3_600_000)
	day          = 24 * hour
	maxAttempts  = 5
	firstDueHour = ms(12*3_600_000 + 30*60_000) // of a day
)

// following is the first occurrence after an instant: half past each hour, or half past twelve.
func (d aDefinition) following(after ms) ms {
	every, at := day, firstDueHour
	if d.hourly {
		every, at = hour, 30*60_000
	}
	t := after - after%every + at
	for t <= after {
		t += every
	}
	for t-every > after {
		t -= every
	}
	return t
}

// members are the distinct recipients of a list, with the group's members in a version in its place.
func (m *deliveryModel) members(to string, version int) (names []string) {
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, n := range strings.Split(to, "") {
		if n != "g" {
			add(n)
			continue
		}
		for _, member := range m.groups[version-1] {
			add(member)
		}
	}
	return names
}

// present are those who are on a schedule now.
func (m *deliveryModel) present(schedule string) []string {
	d := m.defs[schedule]
	return m.members(d[len(d)-1].to, len(m.groups))
}

// target is a recipient's name as rows spell it: a, b and c are read by e-mail, h and k are receivers.
func target(name string) string { return targets[name] }

var targets = func() map[string]string {
	out := map[string]string{}
	for _, n := range []string{"a", "b", "c"} {
		out[n] = channel.Email + "#" + channel.RecipientHash(channel.Email, n+"@example.com")
	}
	for _, n := range []string{"h", "k", "n"} {
		out[n] = channel.Webhook + "#" + channel.RecipientHash(channel.Webhook, Address(n))
	}
	return out
}()

func byMail(name string) bool { return name < "h" }

func settledRun(r aRun) bool { return r.State != "queued" && r.State != "running" }

func (m *deliveryModel) held(r aRun) bool {
	return r.State == "running" && r.Leased && m.now <= r.LeaseEnd
}

func occurrence(run string) string { _, occ, _ := strings.Cut(run, "@"); return occ }

func doubled(base ms, n int, most ms) ms {
	for ; n > 0 && base < most; n-- {
		base *= 2
	}
	return min(base, most)
}

// admit records a queued run of a version.
func (m *deliveryModel) admit(id, schedule string, r aRun) {
	d := m.defs[schedule][r.Version-1]
	r.State, r.Left, r.Wake = "queued", maxAttempts, m.now+minutes(5)
	m.runs[id] = r
	if _, known := m.frozen[id]; !known {
		m.frozen[id] = frozenRun{schedule, m.members(d.to, len(m.groups)), d.suppress}
	}
}

// tickChains are what a tick does, apart for each schedule, run and notice: which comes first is left open.
func (m *deliveryModel) tickChains() (chains []func(*deliveryModel)) {
	if !m.dispOff {
		for _, id := range slices.Sorted(maps.Keys(m.schedules)) {
			chains = append(chains, func(m *deliveryModel) { m.admitDue(id) })
		}
	}
	if m.sendOff {
		return chains
	}
	// Runs that are admitted by this very tick are not due to be looked at.
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if r := m.runs[id]; !settledRun(r) && r.Wake <= m.now && !m.held(r) {
			chains = append(chains, func(m *deliveryModel) {
				r.Wake, r.Offers = m.now+doubled(minutes(5), r.Offers, hour), r.Offers+1
				m.runs[id] = r
				m.step()
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.out)) {
		if o := m.out[id]; o.Next <= m.now {
			chains = append(chains, func(m *deliveryModel) {
				m.out[id] = aOut{m.now + doubled(minutes(5), o.Tries, hour), o.Tries + 1}
				m.step()
			})
		}
	}
	return chains
}

// admitDue admits or passes over what one schedule owes.
func (m *deliveryModel) admitDue(id string) {
	for {
		s := m.schedules[id]
		if s.State != "active" || s.Due == 0 || s.Due > m.now {
			return
		}
		d := m.defs[id][s.Version-1]
		late := func(t ms) bool { return m.now-t > minutes(10) }
		next := d.following(s.Due)
		switch {
		case late(s.Due) && (d.catchUp == "none" || d.catchUp == "latest" && late(next) || d.catchUp == "all" && m.now-s.Due > day):
			m.passOver(id, d, "missed")
		case d.overlap == "skip" && s.Open != "":
			m.passOver(id, d, "overlap")
		default:
			run := id + "@" + ms2at(s.Due).Format("2006-01-02T15:04:05Z")
			m.admit(run, id, aRun{Version: s.Version, Nominal: s.Due})
			s.Last, s.Open, s.SkipFirst, s.SkipKind, s.Due = s.Due, occurrence(run), 0, "", next
			m.schedules[id] = s
			m.step()
		}
	}
}

// passOver moves past one occurrence, and past those after it that are missed as well: one record holds the range.
func (m *deliveryModel) passOver(id string, d aDefinition, kind string) {
	s := m.schedules[id]
	if s.SkipKind != kind {
		s.SkipFirst, s.SkipKind = s.Due, kind
	}
	key := id + " " + ms2at(s.SkipFirst).Format("2006-01-02T15:04:05Z") + "#" + kind
	k := m.skips[key]
	k.First = s.SkipFirst
	late := func(t ms) bool { return m.now-t > minutes(10) }
	for again := true; again; {
		k.Last, k.Count = s.Due, k.Count+1
		s.Last, s.Due = s.Due, d.following(s.Due)
		again = kind == "missed" && (d.catchUp == "none" && late(s.Due) || d.catchUp == "latest" && late(d.following(s.Due)) || d.catchUp == "all" && m.now-s.Due > day)
	}
	m.schedules[id], m.skips[key] = s, k
	m.step()
}
