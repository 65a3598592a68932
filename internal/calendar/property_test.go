package calendar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	yearsFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	yearsTo   = time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
)

var bothGaps = []Gap{GapRunOnce, GapSkip}

// fixedRules go through every change of every zone.
var fixedRules = strings.Split(strings.ReplaceAll(`0 * * * *|30 * * * *|*/15 * * * *|0 */2 * * *|15 */3 * * *|* 2 * * *
30 2 * * *|0,30 2 * * *|30 2,3 * * *|45 2,3 * * *|30 1 * * *|0,15,30,45 0-4 * * *|0 0 * * *|30 0 * * *|59 23 * * *|30 23,0 * * *
0 0-23 * * *|0 0 L * *|30 0 * * SUN|0 0 1,15 * MON|30 2 */2 * 6-7|15 2 * * 7L|0 2 * 3,4,9-11 SUN#1,SUN#2,7#5
*/7 */5 13-31/3 * FRI-SUN`, "\n", "|"), "|")

// randomRule draws a valid rule that is fond of the hours in which clocks change.
func randomRule(r *rand.Rand) string {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	num := func(lo, hi int) string { return strconv.Itoa(lo + r.IntN(hi-lo+1)) }
	span := func(lo, hi int) string {
		a := lo + r.IntN(hi-lo)
		b := a + 1 + r.IntN(hi-a)
		return pick(fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(b-a)))
	}
	item := func(lo, hi int) string { return pick(num(lo, hi), num(lo, hi), span(lo, hi)) }
	list := func(lo, hi int) string { return pick(item(lo, hi), item(lo, hi)+","+item(lo, hi)) }
	minute := pick("0", "30", list(0, 59), list(0, 59), "*/"+num(1, 59))
	hour := pick("*", "*/"+num(1, 23), list(0, 4), list(0, 4), list(0, 23), "23,0", "0-3")
	day := pick("*", "*", "*", list(1, 31), "*/"+num(2, 30), "L", "L,"+num(1, 31))
	month := pick("*", "*", "*", list(1, 12), "*/"+num(1, 11), "MAR,APR,SEP-NOV")
	weekday := pick("*", "*", "*", list(0, 7), "SUN", "FRI-SUN", "0#"+num(1, 5), num(0, 7)+"L", "SAT#"+num(1, 5)+",7L", "*/"+num(2, 6))
	return strings.Join([]string{minute, hour, day, month, weekday}, " ")
}

// parsed reports whether Parse takes the rule: a random one may never be due.
func parsed(cron, zone string, gap Gap) bool {
	_, err := Parse(Spec{Cron: cron, Zone: zone, Gap: gap})
	return err == nil
}

// lastOfLeapYears lie on the day that Go's ZoneBounds gets wrong.
var lastOfLeapYears = []time.Time{
	time.Date(2028, 12, 31, 12, 0, 0, 0, time.UTC), time.Date(2044, 12, 31, 0, 0, 0, 0, time.UTC),
}

// seed is printed by a failing test; CALENDAR_SEED=n runs it again.
func seed(t *testing.T) *rand.Rand {
	n := uint64(time.Now().UnixNano())
	if s := os.Getenv("CALENDAR_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to run again: CALENDAR_SEED=%d go test -run '%s' ./internal/calendar", n, t.Name())
	return rand.New(rand.NewPCG(n, 1))
}

// TestAgainstOracleAtEveryChange walks 30 hours on both sides of each change of two years, in each zone.
func TestAgainstOracleAtEveryChange(t *testing.T) {
	t.Parallel()
	r := seed(t)
	var n tally
	changes := 0
	for i, name := range zonesCompared {
		loc := mustZone(t, name)
		at := changesIn(loc, yearsFrom, yearsTo)
		changes += len(at)
		at = append(at, lastOfLeapYears[i%2])
		// and at a time without a change
		at = append(at, yearsFrom.Add(time.Duration(r.IntN(700*24*60))*time.Minute))
		for _, change := range at {
			from, to := change.Add(-30*time.Hour), change.Add(30*time.Hour)
			list := minutesOf(loc, from.Add(-26*time.Hour), to)
			rules := append([]string{}, fixedRules...)
			for range 8 {
				rules = append(rules, randomRule(r))
			}
			for _, cron := range rules {
				for _, gap := range bothGaps {
					if parsed(cron, name, gap) {
						// Any moment is a fair one to ask from, the change itself and the hours around it above all.
						start := change.Add(time.Duration(r.IntN(240)-120) * time.Minute)
						n.compare(t, cron, name, gap, list, from, to)
						n.compare(t, cron, name, gap, list, start, to)
					}
				}
			}
		}
	}
	if changes < 50 || n.skips == 0 {
		t.Errorf("only %d changes, %d skips", changes, n.skips)
	}
	t.Logf("%d zones, %d changes: %d cases, %d times due, %d skips agree", len(zonesCompared), changes, n.cases, n.times, n.skips)
}

// TestAgainstOracleOverTwoYears walks every minute of two years, in every third zone, for rules that are due seldom.
func TestAgainstOracleOverTwoYears(t *testing.T) {
	t.Parallel()
	r := seed(t)
	var n tally
	for i := r.IntN(3); i < len(zonesCompared); i += 3 {
		name := zonesCompared[i]
		list := minutesOf(mustZone(t, name), yearsFrom, yearsTo)
		rules := []string{"30 2 * * *", "0 0 31 * *", "15 0 29 2,3,10 SUN#5", "30 1 L * 7L", "45 * 1 * MON#1"}
		for len(rules) < 6 {
			f := strings.Fields(randomRule(r))
			f[0] = strconv.Itoa(r.IntN(60))
			rules = append(rules, strings.Join(f, " "))
		}
		for _, cron := range rules {
			gap := bothGaps[r.IntN(2)]
			if parsed(cron, name, gap) {
				n.compare(t, cron, name, gap, list, yearsFrom, yearsTo)
			}
		}
	}
	t.Logf("%d cases, %d times due, %d skips agree", n.cases, n.times, n.skips)
}

// TestAgainstOracleAcrossLostAndRepeatedDays covers changes of a whole day, which no zone has in the two years.
func TestAgainstOracleAcrossLostAndRepeatedDays(t *testing.T) {
	t.Parallel()
	r := seed(t)
	var n tally
	for zone, change := range map[string]string{
		"Pacific/Apia": "2011-12-30T10:00:00Z", "Pacific/Fakaofo": "2011-12-30T11:00:00Z", // a day lost
		"Pacific/Kwajalein": "1969-09-30T13:00:00Z", // 23 hours repeated
		"Asia/Pyongyang":    "2018-05-04T15:00:00Z", // half an hour lost
		"America/Caracas":   "2016-05-01T07:00:00Z", "Europe/Volgograd": "2018-10-27T23:00:00Z", "America/St_Johns": "2009-11-01T02:31:00Z",
	} {
		mid := at(t, change)
		from, to := mid.Add(-60*time.Hour), mid.Add(60*time.Hour)
		list := minutesOf(mustZone(t, zone), from.Add(-26*time.Hour), to)
		for i := range 40 {
			cron := randomRule(r)
			if i < len(fixedRules) {
				cron = fixedRules[i]
			}
			for _, gap := range bothGaps {
				if parsed(cron, zone, gap) {
					n.compare(t, cron, zone, gap, list, from, to)
					n.compare(t, cron, zone, gap, list, mid.Add(time.Duration(r.IntN(3000)-1500)*time.Minute), to)
				}
			}
		}
	}
	t.Logf("%d cases, %d times due, %d skips agree", n.cases, n.times, n.skips)
}

// TestSpansGoForward walks every zone's stretches and wants each to end after its start, with one offset to its last second.
func TestSpansGoForward(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(zoneNames) {
		z := zone{mustZone(t, name)}
		for s := z.spanFrom(time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC)); !s.last() && s.start.Year() < 2110; s = z.spanFrom(s.end) {
			if !s.end.After(s.start) {
				t.Fatalf("%s: a stretch from %v to %v", name, s.start, s.end)
			}
			if _, off := s.end.Add(-time.Second).In(z.loc).Zone(); time.Duration(off)*time.Second != s.offset {
				t.Fatalf("%s: the stretch from %v to %v has two offsets", name, s.start, s.end)
			}
		}
	}
}

// TestResolverAtEveryChangeOfEveryZone checks locate against plain conversion at the edges of each change since 1900.
func TestResolverAtEveryChangeOfEveryZone(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, name := range strings.Fields(zoneNames) {
		z := zone{mustZone(t, name)}
		s := z.spanFrom(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))
		for !s.last() && s.end.Year() < 2040 {
			next := z.spanFrom(s.end)
			for _, c := range []time.Time{s.civilAt(s.end).Add(-time.Second), s.civilAt(s.end), next.civilAt(s.end).Add(-time.Second), next.civilAt(s.end)} {
				p := z.locate(c)
				for i, at := range p.shown {
					if _, off := at.In(z.loc).Zone(); !at.Add(time.Duration(off)*time.Second).Equal(c) || i > 0 && !p.shown[i-1].Before(at) {
						t.Fatalf("%s: %v does not show %v", name, at.In(z.loc), c)
					}
				}
				if len(p.shown) == 0 && (c.Before(p.gap.first()) || !c.Before(p.gap.end())) {
					t.Fatalf("%s: %v is neither shown nor left out", name, c)
				}
				checked++
			}
			s = next
		}
	}
	if checked < 100_000 {
		t.Errorf("only %d", checked)
	}
	t.Logf("%d local times", checked)
}
