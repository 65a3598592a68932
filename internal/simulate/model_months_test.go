package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The model of monthly snapshots: lifecycle D as its tables say it, over two workspaces of one owner, in UTC.
type monthModel struct {
	monthRows
	now     ms
	defs    map[string][]aMonthly // by workspace
	removed map[string]bool
	off     bool // dispatch
	read    map[string]aReading
	env     *supplies
	step    func()
}

// aMonthly is what of a definition the model speaks about.
type aMonthly struct {
	start          string // month
	mode           string
	off, watermark bool
	drift          bool // rows may differ by 40 % of the current version's
}

// aReading is what a run's rows cannot tell by themselves: what its generation has read, and what its last verdict found
// and what was accepted before.
type aReading struct {
	version, seen    int // of the source: when the generation began, and when its first chunk was read
	last, sum, rows  int // last key
	failed, accepted string
}

// supplies are the source and Step Functions: both sides ask them.
type supplies struct {
	months   map[string][]int64 // delays, by workspace and month
	moved    int                // the source's version
	lost     int                // rows that only the control query knows of
	complete ms                 // the watermark
	down     bool
	jobs     map[string]*jobExecution
	stopped  []*jobExecution // that a cancellation has stopped
}

// delays of a month: three flights where nobody loaded others.
func (e *supplies) delays(period string) []int64 {
	if list, loaded := e.months[period]; loaded {
		return list
	}
	return []int64{10, -3, 25}
}

// job is the execution of a run's job; nil: there is none.
func (e *supplies) job(id string, job int) *jobExecution { return e.jobs[id+"-j"+strconv.Itoa(job)] }

func (e *supplies) stop(id string, job int) {
	if x := e.job(id, job); x != nil {
		e.stopped = append(e.stopped, x)
	}
}

func newMonthModel(env *supplies) *monthModel {
	return &monthModel{monthRows: newMonthRows(), defs: map[string][]aMonthly{}, removed: map[string]bool{}, read: map[string]aReading{}, env: env, step: func() {}}
}

func (m *monthModel) clone() *monthModel {
	c := *m
	c.monthRows, c.read = m.monthRows.clone(), maps.Clone(m.read)
	c.step = func() {}
	return &c
}

const theOwner = "default"

// monthEnd is the first instant after a month, and monthAfter the month that begins there; months are in UTC here.
func monthEnd(month string) ms {
	t, err := time.Parse("2006-01", month)
	if err != nil {
		panic(err)
	}
	return t.AddDate(0, 1, 0).UnixMilli()
}

func monthAfter(month string) string { return ms2at(monthEnd(month)).Format("2006-01") }

// lastClosed is the current month: the last that has ended.
func (m *monthModel) lastClosed() string {
	t := ms2at(m.now)
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, -1, 0).Format("2006-01")
}

func snapshotName(ws, month string, version int) string {
	return ws + "_delays_" + month + "_v" + strconv.Itoa(version)
}

// periodOfRun takes a run's id apart: its head's name, and its version.
func headOfRun(id string) (period string, version int) {
	f := strings.Split(id, "_")
	return f[0] + " " + f[2], atoi(f[3][1:])
}

func (m *monthModel) defined(ws string) aMonthly { return m.defs[ws][len(m.defs[ws])-1] }

// offReason is why a series is not generated; empty: it is.
func (m *monthModel) offReason(ws string) string {
	switch {
	case m.removed[ws]:
		return "workspace_removed"
	case m.defined(ws).off:
		return "policy"
	}
	return ""
}

// ineligible is why a month cannot be generated.
func (m *monthModel) ineligible(ws, month string) string {
	if why := m.offReason(ws); why != "" {
		return why
	}
	if m.defined(ws).watermark && m.env.complete <= monthEnd(month) {
		return "loading"
	}
	return ""
}

// planTick brings each series up to date, and plans what it owes.
func (m *monthModel) planTick(ws string) {
	if len(m.defs[ws]) == 0 {
		return
	}
	off, d := m.offReason(ws), m.defined(ws)
	s, there := m.series[ws]
	if !there {
		if off == "workspace_removed" {
			return
		}
		s = aSeries{Next: d.start, Plan: m.now, Off: off}
		m.move(ws, s)
	}
	to := s
	if to.Off = off; to.Next < d.start || s.Off != "" && off == "" {
		to.Next = d.start
	}
	if h := m.heads[ws+" "+d.start]; off != "workspace_removed" && d.start < to.Next && (h.Latest == 0 || off == "" && h.State == "skipped" && h.Why == "policy") {
		to.Next = d.start
	}
	if to != s {
		to.Plan = m.now
		m.move(ws, to)
	}
	if to.Plan <= m.now {
		m.due(ws, to)
	}
}

// move writes a series' row; it is late from three days after the end of the first month that it never planned.
func (m *monthModel) move(ws string, s aSeries) {
	if s.Late = 0; s.Off == "" {
		s.Late = monthEnd(max(s.Next, m.defined(ws).start)) + 3*day
	}
	m.series[ws] = s
	m.step()
}

func (m *monthModel) due(ws string, s aSeries) {
	if s.Off != "" {
		for _, p := range slices.Sorted(maps.Keys(m.heads)) {
			if h := m.heads[p]; strings.HasPrefix(p, ws+" ") && h.Active > 0 {
				m.cancel(snapshotName(ws, p[len(ws)+1:], h.Active), s.Off)
			}
		}
	}
	still := []string{}
	for _, month := range strings.Fields(s.Revisit) {
		if m.plan(ws, month) {
			still = append(still, month)
		}
	}
	s.Plan = m.now
	if s.Off == "workspace_removed" {
		s.Plan += day
	} else {
		for ; monthEnd(s.Next) <= m.now; s.Next = monthAfter(s.Next) {
			if m.plan(ws, s.Next) && !slices.Contains(still, s.Next) {
				still = append(still, s.Next)
			}
		}
		switch next := monthEnd(s.Next); {
		case len(still) > 0:
		case s.Off != "":
			s.Plan = min(m.now+day, next)
		default:
			s.Plan = next
		}
	}
	s.Revisit = strings.Join(still, " ")
	m.move(ws, s)
}

// plan plans or skips a month, unless it was before; again: it waits for its source.
func (m *monthModel) plan(ws, month string) (again bool) {
	h := m.heads[ws+" "+month]
	if h.Active > 0 || h.Latest > 0 && h.State != "skipped" {
		return false
	}
	why := m.ineligible(ws, month)
	if why != "" && h.Latest > 0 && h.Why == why {
		return why == "loading"
	}
	m.newVersion(ws, month, why, "")
	return why == "loading"
}

// newVersion records a version as planned, or as skipped where there is a reason.
func (m *monthModel) newVersion(ws, month, why, by string) {
	period := ws + " " + month
	n := m.heads[period].Latest + 1
	h := aHead{Latest: n, State: "planned", Active: n, Late: monthEnd(month) + 3*day}
	r := aMonth{State: "planned", Definition: len(m.defs[ws]), Backfill: month < m.lastClosed(), By: by}
	if why != "" {
		h.State, h.Why, h.Active, r.State, r.Reason = "skipped", why, 0, "skipped", why
		if why != "loading" {
			h.Late = 0
		}
	}
	if by != "" && m.pointers[period].Version > 0 {
		h.Late = 0
	}
	m.heads[period], m.runs[snapshotName(ws, month, n)] = h, r
	m.step()
}

func admittedMonth(r aMonth) bool {
	return r.State == "queued" || r.State == "running" || r.State == "validating"
}

// final reports that a run has settled for good.
func finalMonth(r aMonth) bool {
	return r.State == "published" || r.State == "skipped" || r.State == "cancelled" || r.State == "failed" && r.Next == 0
}

// slot takes or frees a slot.
func (m *monthModel) slot(id string, take, backfill bool) {
	change := func(text string, in bool) string {
		list := slices.DeleteFunc(strings.Fields(text), func(x string) bool { return x == id })
		if in {
			list = append(list, id)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	c := m.caps[theOwner]
	c.Slots, c.Backfills = change(c.Slots, take), change(c.Backfills, take && backfill)
	m.caps[theOwner] = c
}

// cancel cancels a run that has not settled.
func (m *monthModel) cancel(id, why string) {
	r := m.runs[id]
	if admittedMonth(r) {
		m.slot(id, false, false)
	}
	r.State, r.Reason, r.Next, r.Offered = "cancelled", why, 0, 0
	m.runs[id] = r
	period, _ := headOfRun(id)
	h := m.heads[period]
	if h.State, h.Why, h.Active = "cancelled", why, 0; why != "operator" {
		h.Late = 0
	}
	m.heads[period] = h
	m.step()
	m.env.stop(id, r.Job)
}

// fail settles an attempt: three failures are followed by a delay each, the fourth and any refusal is final.
func (m *monthModel) fail(id, code string, passing bool) {
	r := m.runs[id]
	if r.State != "queued" || r.FailedIn == "" {
		r.FailedIn = r.State
	}
	r.State, r.Code, r.Next, r.Offered = "failed", code, 0, 0
	if passing && r.Failures < 3 {
		r.Next = m.now + []ms{minutes(5), minutes(30), minutes(120)}[r.Failures]
	}
	r.Failures++
	m.runs[id] = r
	m.slot(id, false, false)
	if r.Next == 0 {
		period, _ := headOfRun(id)
		h := m.heads[period]
		h.State, h.Why, h.Active = "failed", "", 0
		m.heads[period] = h
	}
	m.step()
}
