package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// What people do to months, and the world around them.

func (p *monthPair) define(a, b int) string {
	ws := theWorkspaces[b&3/3]
	d := aMonthly{start: []string{"2040-02", "2040-02", "2040-01", "2039-12"}[a&3], mode: []string{"chunked", "single"}[a>>2&1], off: a&0x18 == 0x18, watermark: a>>5&3 == 3, drift: a&0x80 == 0}
	p.apply(ws, d)
	return fmt.Sprintf("define %s: %+v", ws, d)
}

func (p *monthPair) apply(ws string, d aMonthly) {
	_, err := p.w.Kit(nil).MonthEditor().SaveDefinition(background, d.product(ws), "ann", 0)
	p.answered("define "+ws, err, p.model.removed[ws])
	if versions := p.model.defs[ws]; err == nil && (len(versions) == 0 || versions[len(versions)-1] != d) {
		p.model.defs[ws] = append(versions, d)
	}
}

func (p *monthPair) load(a, b int) string {
	x := p.period(a, b)
	delays := [][]int64{{10, -3, 25}, {5}, {1, 2, 3, 4, 5, 6, 7}, {}, {8, 8, 8, 8}}[a>>1%5]
	name := x.Workspace + " " + x.Month.String()
	p.w.Data.Load(name, delays...)
	p.env.months[name] = delays
	p.env.moved++
	return fmt.Sprintf("load %s: %v", name, delays)
}

func (p *monthPair) mood(a, _ int) string {
	p.env.down, p.env.lost = a%5 == 1, 0
	if a%5 == 2 {
		p.env.lost = 1 + a>>4&1
	}
	p.w.Data.Lost = p.env.lost
	return fmt.Sprintf("the source: down %v, %d rows lost", p.env.down, p.env.lost)
}

func (p *monthPair) watermark(a, _ int) string {
	at := []string{"2040-01-15", "2040-02-01", "2040-02-02", "2040-03-02", "2040-05-01"}[a%5]
	t, err := time.Parse(time.DateOnly, at)
	p.w.must(err)
	p.w.Data.Complete, p.env.complete = t, at2ms(t)
	return "the source is complete up to " + at
}

func (p *monthPair) cancel(a, b int) string {
	id := oneOf(idsOf(p.model.runs), a)
	if open := slices.DeleteFunc(idsOf(p.model.runs), func(id string) bool { return finalMonth(p.model.runs[id]) }); len(open) > 0 && b%4 > 0 {
		id = oneOf(open, a)
	}
	if id == "" {
		return "there is no run to cancel"
	}
	_, err := p.w.Kit(nil).MonthEditor().Cancel(background, id, "enough", "ann")
	r := p.model.runs[id]
	p.answered("cancel "+id, err, finalMonth(r))
	if !finalMonth(r) {
		p.model.cancel(id, "operator")
	}
	return "cancel " + id
}

func (p *monthPair) retryNow(a, b int) string {
	list := idsOf(p.model.runs)
	if failed := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return p.model.runs[id].Next == 0 }); len(failed) > 0 && b%4 > 0 {
		list = failed
	}
	id := oneOf(list, a)
	if id == "" {
		return "there is no run to retry"
	}
	_, err := p.w.Kit(nil).MonthEditor().RetryNow(background, id, "mended", "ann")
	r := p.model.runs[id]
	no := r.State != "failed" || r.Next == 0
	p.answered("retry now "+id, err, no)
	if !no {
		r.Next = p.model.now
		p.model.runs[id] = r
	}
	return "retry now " + id
}

// mayRequest is whether a period may be asked for.
func (m *monthModel) mayRequest(x snapshot.Period) bool {
	ws, month := x.Workspace, x.Month.String()
	return len(m.defs[ws]) > 0 && m.heads[ws+" "+month].Active == 0 && month >= m.defined(ws).start && month <= m.lastClosed() && m.ineligible(ws, month) == ""
}

func (p *monthPair) request(a, b int) string {
	x := p.period(a, b)
	_, err := p.w.Kit(nil).MonthEditor().Request(background, x, "again", "ann")
	may := p.model.mayRequest(x)
	p.answered("request "+x.Workspace+" "+x.Month.String(), err, !may)
	if may {
		p.model.newVersion(x.Workspace, x.Month.String(), "", "ann")
	}
	return "request " + x.Workspace + " " + x.Month.String()
}

func (p *monthPair) accept(a, b int) string {
	m := p.model
	list := idsOf(m.runs)
	if failed := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return m.runs[id].Verdict != "failed" || !finalMonth(m.runs[id]) }); len(failed) > 0 && b%4 > 0 {
		list = failed
	}
	id := oneOf(list, a)
	if id == "" {
		return "there is no run whose checks can be accepted"
	}
	r, z := m.runs[id], m.read[id]
	var checks []string
	if r.Verdict == "failed" {
		checks = checksOf(z.failed)
	}
	_, err := p.w.Kit(nil).MonthEditor().Accept(background, id, checks, "it is so", "ann")
	period, version := headOfRun(id)
	x := p.periodNamed(period)
	may := r.State == "failed" && finalMonth(r) && len(checks) > 0 && m.heads[period].Latest == version && m.mayRequest(x)
	p.answered("accept "+id, err, !may)
	if may {
		m.newVersion(x.Workspace, x.Month.String(), "", "ann")
		accepted := slices.DeleteFunc(strings.Fields(z.accepted), func(f string) bool {
			name, _, _ := strings.Cut(f, "=")
			return slices.Contains(checks, name)
		})
		m.read[snapshotName(x.Workspace, x.Month.String(), version+1)] = aReading{accepted: strings.Join(accepted, " ") + z.failed}
	}
	return fmt.Sprintf("accept %v of %s", checks, id)
}

func (p *monthPair) periodNamed(period string) snapshot.Period {
	x := snapshot.Period{Series: snapshot.Series{Workspace: period[:3], Type: "delays"}}
	p.w.must(x.Month.UnmarshalText([]byte(period[4:])))
	return x
}

func (p *monthPair) rollBack(a, b int) string {
	m := p.model
	period := oneOf(idsOf(m.heads), a)
	if list := idsOf(m.pointers); len(list) > 0 && b%4 > 0 {
		period = oneOf(list, a)
	}
	if period == "" {
		return "there is no period to roll back"
	}
	version := 1 + b>>2%3
	_, err := p.w.Kit(nil).MonthEditor().RollBack(background, p.periodNamed(period), version, "it was right", "ann")
	now := m.pointers[period]
	no := m.heads[period].Active > 0 || now.Version == 0 || now.Version == version || m.runs[snapshotName(period[:3], period[4:], version)].State != "published"
	p.answered(fmt.Sprintf("roll back %s to %d", period, version), err, no)
	if !no {
		m.pointers[period] = aPointer{version, now.Version, "ann"}
		m.moves[period]++
	}
	return fmt.Sprintf("roll back %s to %d", period, version)
}

func (p *monthPair) changeCaps(a, _ int) string {
	most := 1 + a%4
	back := a >> 2 % most
	p.caps(most, back)
	return fmt.Sprintf("caps: %d, of them %d for backfills", most, back)
}

func (p *monthPair) caps(most, back int) {
	p.w.must(p.w.Kit(nil).MonthEditor().SaveOwner(background, snapshot.Owner{ID: theOwner, Name: theOwner, Cap: most, Backfill: back}, "ann"))
	c := p.model.caps[theOwner]
	c.Cap, c.Backfill = most, back
	p.model.caps[theOwner] = c
}

func (p *monthPair) remove(a, b int) string {
	ws := theWorkspaces[a&1]
	p.workspace(ws, b%3 == 0)
	return fmt.Sprintf("workspace %s: removed %v", ws, p.model.removed[ws])
}

func (p *monthPair) turn(a, _ int) string {
	on := a%3 > 0
	_, err := p.w.Kit(nil).Editor().Switch(background, schedule.Switches{Dispatch: &on}, "a test", "ann")
	p.w.must(err)
	p.model.off = !on
	return fmt.Sprintf("dispatch on: %v", on)
}
