package storetest

import (
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// scheduleChanges are what may become of a schedule between the read and the write of a settle, one at a time.
func scheduleChanges(p place, state string) map[string]row {
	other := row{schema.State: "active", schema.NextDueAt: nextDue, schema.DueShard: schema.DueShardOf(p.schedule)}
	if state == "active" {
		other = scheduleRow(p, "paused")
	}
	return map[string]row{
		"streak":       {schema.Streak: 9},
		"open run":     {schema.OpenRun: "2013-06-09T12:00:00Z"},
		"last run":     {schema.LastRunNominal: nominal.Add(-48 * time.Hour)},
		"last success": {schema.LastSuccess: nominal.Add(-72 * time.Hour)},
		"state":        other,
		"version":      {schema.Version: 5},
		"next due":     {schema.NextDueAt: nextDue.Add(time.Hour)},
	}
}

// settledMeanwhile changes the schedule under a settle, each attribute that the settle decides by alone: the settle reads
// it again, and lands at its second try. What it does not decide by does not keep it.
func settledMeanwhile(t *testing.T, b *bench) {
	s, again := runs(b), map[string]int{}
	for _, w := range s.ways {
		if event := schedule.RunEvent(w.event); w.given == nil || event != schedule.Succeed && event != schedule.SkipEmpty && event != schedule.Fail {
			continue
		}
		for _, state := range []string{"active", "paused", "deleted"} {
			for _, streak := range []int{0, 3} {
				for name := range scheduleChanges(place{}, state) {
					if b.changedUnder(t, s, w, state, streak, name) {
						again[name]++
					}
				}
			}
		}
	}
	for name := range scheduleChanges(place{}, "active") {
		if again[name] == 0 {
			t.Errorf("no settle reads the schedule again where its %s has changed", name)
		}
	}
}

// changedUnder reports whether the settle was refused because of the change, and tried again.
func (b *bench) changedUnder(t *testing.T, s subject, w way, state string, streak int, name string) bool {
	p := b.place()
	before := w.given(p)
	if _, ok := before[p.scheduleKey()]; !ok {
		return false
	}
	stands := scheduleRow(p, state).with(row{schema.Streak: streak})
	before = before.add(p.scheduleKey(), stands)
	b.write(t, before)
	r := b.seen(t, s, w, p)
	tries := 0
	b.tap.reset()
	b.tap.before = func(_ int, operation string) error {
		if operation == "TransactWriteItems" {
			if tries++; tries == 1 {
				b.write(t, world{}.add(p.scheduleKey(), stands.with(scheduleChanges(p, state)[name])))
			}
		}
		return nil
	}
	err := w.do(t.Context(), b.Store, p, r)
	b.tap.reset()
	title := w.title() + ", " + state + ", its " + name + " changed"
	if err != nil {
		t.Errorf("%s: %v", title, err)
	}
	if tries == 0 {
		return false // it means nothing to the schedule
	}
	decides := name != "version" && name != "next due"
	if name == "version" { // whose definition says who is told, and when a streak pauses
		decides = w.event == string(schedule.Fail) || w.event == string(schedule.Succeed) && streak > 0 && state != "deleted"
	}
	if name == "next due" {
		decides = strings.Contains(w.title(), "pauses") && state == "active"
	}
	if decides && tries < 2 {
		t.Errorf("%s: written on what was read before", title)
	}
	return tries > 1
}
