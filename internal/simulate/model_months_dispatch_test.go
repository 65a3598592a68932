package simulate

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// The model's dispatcher and reconciler.

// permits is what the caps say about one more.
func (c aCaps) permits(backfill bool) bool {
	slots, backfills := len(strings.Fields(c.Slots)), len(strings.Fields(c.Backfills))
	switch {
	case slots >= c.Cap:
		return false
	case backfill:
		return backfills < c.Backfill
	case c.Backfill > 0:
		return slots < c.Cap-1 || backfills > 0
	}
	return true
}

// dispatch offers forgotten jobs again, and claims the oldest months that the caps permit, current ones first. Which of
// equally old ones goes first is left open: did tells it of the product. whole: the dispatcher came to its end.
func (m *monthModel) dispatch(did func(id string) aMonth, whole bool) {
	if m.off {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if whole || did(id).Offered == m.now || did(id).State == "failed" {
			m.reoffer(id, whole || did(id).Attached || did(id).State == "failed")
		}
	}
	for _, backfill := range []bool{false, true} {
		var ready []string
		for id, r := range m.runs {
			if r.Backfill == backfill && (r.State == "planned" || r.State == "failed" && r.Next > 0 && r.Next <= m.now) {
				ready = append(ready, id)
			}
		}
		first := func(id string) string { // of equally old ones, those that the product claimed
			period, _ := headOfRun(id)
			if did(id).Job == m.runs[id].Job {
				return period[4:] + "~"
			}
			return period[4:]
		}
		sort.Slice(ready, func(i, j int) bool { return first(ready[i])+ready[i] < first(ready[j])+ready[j] })
		for _, id := range ready {
			if !m.caps[theOwner].permits(backfill) || !whole && did(id).Job == m.runs[id].Job {
				break
			}
			r := m.runs[id]
			r.State, r.Job, r.Claimed, r.Offered, r.Attached, r.Verdict, r.Compared, r.Next = "queued", r.Job+1, m.now, m.now, false, "", 0, 0
			m.runs[id] = r
			m.slot(id, true, backfill)
			if whole || did(id).Attached {
				m.offer(id)
			}
		}
	}
}

// reoffer offers a queued run's job again that has not shown for five minutes; whole: to the end.
func (m *monthModel) reoffer(id string, whole bool) {
	r := m.runs[id]
	if r.State != "queued" || r.Attached || r.Offered > m.now-minutes(5) {
		return
	}
	r.Offered = m.now
	m.runs[id] = r
	m.step()
	if whole {
		m.offer(id)
	}
}

// offer starts a job by its name. One that runs is attached; one that has closed has lost the attempt.
func (m *monthModel) offer(id string) {
	r := m.runs[id]
	if job := m.env.job(id, r.Job); job != nil && job.closed() {
		m.fail(id, "job_lost", true)
		return
	}
	r.Attached = true
	m.runs[id] = r
	m.step()
}

// reconcile settles runs whose job is over and offers forgotten jobs.
func (m *monthModel) reconcile(id string) {
	r := m.runs[id]
	job := m.env.job(id, r.Job)
	switch {
	case !admittedMonth(r):
	case r.State == "queued" && !r.Attached && !m.off:
		m.reoffer(id, true)
	case job != nil && job.closed():
		m.fail(id, "job_lost", true)
	}
}
