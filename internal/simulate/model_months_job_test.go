package simulate

import (
	"slices"
	"strconv"
	"strings"
)

// The model's steps of an attempt job. What a step answers is its failure's code; empty: none.

// stale reports a step that has nothing to do any more: the run is another job's, or has settled.
func (m *monthModel) stale(id string, job int) bool {
	r := m.runs[id]
	return r.Job != job || !admittedMonth(r)
}

// run does one step of a job; caught is what the settle was handed.
func (m *monthModel) run(id string, job int, step, caught string) (code string) {
	if m.stale(id, job) {
		return ""
	}
	switch step {
	case "start":
		return m.start(id)
	case "generate":
		return m.generate(id)
	case "validate":
		return m.validate(id)
	case "publish":
		return m.publish(id)
	}
	m.fail(id, caught, caught != "validation_refused")
	return ""
}

// start begins a queued run's attempt: it goes on at the cursor, or begins a generation anew.
func (m *monthModel) start(id string) (code string) {
	r, z := m.runs[id], m.read[id]
	if r.State != "queued" {
		return ""
	}
	if m.env.down {
		return "source_unavailable"
	}
	if r.Generation == 0 || r.Mode == "single" || r.FailedIn == "validating" || z.version != m.env.moved {
		r.Generation, r.Chunks, r.Rows, r.Done = r.Generation+1, 0, 0, false
		z = aReading{version: m.env.moved, failed: z.failed, accepted: z.accepted}
	}
	if r.Mode == "" {
		r.Mode = m.definitionOf(id).mode
	}
	r.State, r.Attempts, r.Offered = "running", r.Attempts+1, 0
	r.Attached = true
	m.runs[id], m.read[id] = r, z
	m.step()
	return ""
}

func (m *monthModel) definitionOf(id string) aMonthly {
	period, _ := headOfRun(id)
	return m.defs[period[:3]][m.runs[id].Definition-1]
}

// generate commits chunks of two rows from the cursor on; a single pass is one chunk, and goes on to publish.
func (m *monthModel) generate(id string) (code string) {
	if m.runs[id].State == "queued" { // its start was never seen
		if code := m.start(id); code != "" {
			return code
		}
	}
	r, z := m.runs[id], m.read[id]
	if r.State != "running" {
		return ""
	}
	mine := !r.Done // this call reads the last chunk
	if mine && m.env.down {
		return "source_unavailable"
	}
	period, _ := headOfRun(id)
	delays := m.env.delays(period)
	for !r.Done {
		if r.Chunks == 0 {
			z.seen = m.env.moved
		}
		most := 2
		if r.Mode == "single" {
			most = len(delays)
		}
		for n := 0; n < most && z.last < len(delays); n++ {
			z.sum += int(delays[z.last])
			z.last++
			z.rows++
		}
		r.Chunks, r.Rows, r.Done = r.Chunks+1, z.rows, z.last >= len(delays)
		m.runs[id], m.read[id] = r, z
		m.chunks[id+"#G#"+strconv.Itoa(r.Generation)]++
		m.step()
	}
	if r.Mode != "single" {
		return ""
	}
	if code := m.begun(id); code != "" {
		return code
	}
	if m.env.down {
		return "source_unavailable"
	}
	if !mine && z.seen != m.env.moved { // the rows and the control query must be of one view
		return "source_changed"
	}
	if code := m.judge(id); code != "" {
		return code
	}
	return m.publish(id)
}

func (m *monthModel) begun(id string) (code string) {
	if r := m.runs[id]; r.State == "running" {
		r.State = "validating"
		m.runs[id] = r
		m.step()
	}
	return ""
}

func (m *monthModel) validate(id string) (code string) {
	if r := m.runs[id]; r.State == "running" && !r.Done {
		return "internal_error"
	}
	m.begun(id)
	r, z := m.runs[id], m.read[id]
	switch {
	case r.Verdict == "passed":
		return ""
	case r.Verdict == "failed":
		return verdictCode(z.failed)
	case m.env.down:
		return "source_unavailable"
	case r.Mode == "single" && z.seen != m.env.moved:
		return "source_changed"
	}
	return m.judge(id)
}

// verdictCode: as long as the rows are not the source's, what else is wrong with them may be gone when they are read again.
func verdictCode(failed string) string {
	for _, check := range strings.Fields(failed) {
		if !strings.HasPrefix(check, "drift") {
			return "validation_mismatch"
		}
	}
	if failed != "" {
		return "validation_refused"
	}
	return ""
}

// judge compares what was read with the control query, and with the current version.
func (m *monthModel) judge(id string) (code string) {
	period, _ := headOfRun(id)
	r, z := m.runs[id], m.read[id]
	want, sum := len(m.env.delays(period))+m.env.lost, 0
	for _, d := range m.env.delays(period) {
		sum += int(d)
	}
	z.failed = ""
	fails := func(check, found string) {
		if !slices.Contains(strings.Fields(z.accepted), check+"="+found) {
			z.failed += " " + check + "=" + found
		}
	}
	if want != z.rows {
		fails("rows", strconv.Itoa(z.rows))
	}
	if sum != z.sum {
		fails("sum:delay", strconv.Itoa(z.sum))
	}
	current := m.pointers[period].Version
	if current > 0 && m.definitionOf(id).drift {
		before := m.read[snapshotName(period[:3], period[4:], current)].rows
		if change := z.rows - before; 100*max(change, -change) > 40*before {
			fails("drift:rows:previous_version", strconv.Itoa(z.rows)+"/"+strconv.Itoa(before))
		}
	}
	r.Verdict, r.Compared = "passed", current
	if z.failed != "" {
		r.Verdict = "failed"
	}
	m.runs[id], m.read[id] = r, z
	m.step()
	return verdictCode(z.failed)
}

// publish makes the validated version the period's current one, and frees its slot.
func (m *monthModel) publish(id string) (code string) {
	r := m.runs[id]
	if r.State != "validating" || r.Verdict == "" {
		return "internal_error"
	}
	period, version := headOfRun(id)
	r.State = "published"
	m.runs[id] = r
	m.pointers[period] = aPointer{version, m.pointers[period].Version, id + "-j" + strconv.Itoa(r.Job)}
	h := m.heads[period]
	h.State, h.Why, h.Active, h.Late = "published", "", 0, 0
	m.heads[period] = h
	m.slot(id, false, false)
	m.step()
	return ""
}
