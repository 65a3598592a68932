package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"almanac/internal/snapshot"
	"almanac/localstack/internal/deploy"
	"almanac/localstack/internal/seed"
	"almanac/localstack/internal/step"
)

// The demo's months: those of 2013, planned when all of them have closed.
const (
	closed    = "2014-01-06T14:00:00Z"
	firstOf   = "2013-01"
	lastOf    = "2013-12"
	monthsOf  = 12
	whyMonths = "the months of 2013 are planned before the schedules begin"
)

var (
	airports = []string{"EWR", "JFK", "LGA"}
	types    = []string{"carrier-performance", "hourly-weather"}
	seriesOf = len(airports) * len(types)
)

// place is WORKSPACE TYPE MONTH, as commands take it.
type place [3]string

var (
	// cancelled is the month that a person calls off while it waits for its turn.
	cancelled = place{"JFK", "carrier-performance", "2013-11"}
	// mended is the month of whose weather readings are missing at first.
	mended = place{"JFK", "hourly-weather", "2013-09"}
)

func (p place) with(before string, after ...string) []string {
	return slices.Concat(strings.Fields(before), p[:], after)
}

// grid is what the command line shows of the months of 2013, as JSON.
type grid struct{ Rows []gridRow }

type gridRow struct {
	Workspace string
	Type      string
	Months    []struct{ Month, Letter string }
}

// ours is the grid of the demo's own series: a person may have defined others beside them.
func (g grid) ours() grid {
	g.Rows = slices.DeleteFunc(g.Rows, func(r gridRow) bool {
		return !slices.Contains(airports, r.Workspace) || !slices.Contains(types, r.Type)
	})
	return g
}

func (d Demo) grid(ctx context.Context) (g grid, err error) {
	out, err := d.almanac(ctx, "", "grid", "--from", firstOf, "--to", lastOf, "-o", "json")
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal([]byte(out), &g); err != nil {
		return g, fmt.Errorf("almanac grid: %w", err)
	}
	return g.ours(), nil
}

// count is how many months stand as one of the letters, and how many there are.
func (g grid) count(letters ...string) (n, all int) {
	for _, r := range g.Rows {
		for _, m := range r.Months {
			all++
			if slices.Contains(letters, m.Letter) {
				n++
			}
		}
	}
	return n, all
}

// planned reports whether each month has a version, or is known not to be wanted.
func (g grid) planned() bool {
	none, all := g.count(snapshot.LetterNone, snapshot.LetterLoading)
	return none == 0 && all == seriesOf*monthsOf
}

// settled reports whether nothing is under way any more.
func (g grid) settled() (open int, done bool) {
	open, _ = g.count(snapshot.LetterPlanned, snapshot.LetterQueued, snapshot.LetterRunning, snapshot.LetterValidating, snapshot.LetterWaiting)
	return open, open == 0 && g.planned()
}

// month is what the command line shows of a month, as JSON.
type month struct {
	Versions []struct { // the latest first
		State    string
		Failures int
		Next     *time.Time `json:"next_attempt"`
	}
}

func (d Demo) month(ctx context.Context, p place) (m month, err error) {
	out, err := d.almanac(ctx, "", p.with("snapshot show", "-o", "json")...)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Versions) == 0 {
		return m, errors.Join(fmt.Errorf("almanac snapshot show %s has no version", strings.Join(p[:], " ")), err)
	}
	return m, nil
}

// plan has the months of 2013 planned, with business time in January 2014 and dispatch off, so that no schedule is due
// there. What comes behind it sets business time back and turns dispatch on.
func (d Demo) plan(ctx context.Context) (string, error) {
	folder, err := d.definitions()
	if err != nil {
		return "", err
	}
	if _, err := d.almanac(ctx, "", "control", "set", "--dispatch", "off", "--reason", whyMonths); err != nil {
		return "", err
	}
	if _, err := d.almanac(ctx, "", "clock", "set", closed, "--frozen"); err != nil {
		return "", err
	}
	for _, file := range []string{"airports.yaml", "months.yaml"} {
		if _, err := d.almanac(ctx, "", "apply", "-f", filepath.Join(folder, file), "--yes"); err != nil {
			return "", err
		}
	}
	if _, err := d.almanac(ctx, "", "plan-now"); err != nil {
		return "", err
	}
	err = d.patient(ctx, time.Minute, func() (bool, string, error) {
		g, err := d.grid(ctx)
		n, all := g.count(snapshot.LetterNone)
		return g.planned(), fmt.Sprintf("%d of %d months are not planned", n, all), err
	})
	return "as if it were " + closed, err
}

// patient asks until something is so, and tells of what it last saw when it never is.
func (d Demo) patient(ctx context.Context, most time.Duration, look func() (done bool, seen string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		done, seen, err := look()
		if done {
			return nil
		}
		if pauseErr := d.Pause(ctx, 500*time.Millisecond); pauseErr != nil {
			if err != nil {
				seen = err.Error()
			}
			return step.Fail(errors.Join(pauseErr, err), seen, "look at the log of the functions: "+d.Instance.EmulatorLog())
		}
	}
}

// begin turns dispatch on and calls one month off, which asks for a dispatch of the others.
func (d Demo) begin(ctx context.Context) (string, error) {
	if _, err := d.almanac(ctx, "", "control", "set", "--dispatch", "on", "--reason", whyMonths+": that is done"); err != nil {
		return "", err
	}
	m, err := d.month(ctx, cancelled)
	if err != nil || len(m.Versions) > 1 || m.Versions[0].State != string(snapshot.Planned) {
		return "", err // an earlier run of the demo has come further, or a person has
	}
	_, err = d.almanac(ctx, "", cancelled.with("cancel", "--reason", "the airline will send its November again")...)
	return "", err
}

// mend waits until validation has found what is missing, brings the data in order and has the month tried again.
func (d Demo) mend(ctx context.Context) (string, error) {
	var m month
	err := d.patient(ctx, 2*time.Minute, func() (done bool, seen string, err error) {
		m, err = d.month(ctx, mended)
		if err != nil {
			return false, "", err
		}
		v := m.Versions[0]
		return v.Failures > 0 || v.State == string(snapshot.Published), fmt.Sprintf("%s is %s", strings.Join(mended[:], " "), v.State), nil
	})
	if err != nil {
		return "", err
	}
	outputs, err := deploy.ReadOutputs(d.Instance.Outputs())
	if err != nil {
		return "", err
	}
	if _, err := (seed.Seeder{Instance: d.Instance, Outputs: outputs, HTTP: d.HTTP, Report: d.Report}).Weather(ctx); err != nil {
		return "", err
	}
	return "", d.again(ctx)
}

// again has the mended month tried now. It may be tried already, and where it is not for good: as a new version.
func (d Demo) again(ctx context.Context) error {
	return d.patient(ctx, time.Minute, func() (bool, string, error) {
		m, err := d.month(ctx, mended)
		if err != nil {
			return false, "", err
		}
		const why = "the readings that were lost have been sent again"
		switch v := m.Versions[0]; {
		case v.State == string(snapshot.Published):
			return true, "", nil
		case v.State != string(snapshot.Failed):
			return false, strings.Join(mended[:], " ") + " is " + v.State, nil
		case v.Next == nil:
			_, err = d.almanac(ctx, "", mended.with("rerun", "--reason", why)...)
		default:
			_, err = d.almanac(ctx, "", mended.with("retry-now", "--reason", why)...)
		}
		return false, strings.Join(mended[:], " ") + " is tried again", err
	})
}

// finish waits for the months that are still under way.
func (d Demo) finish(ctx context.Context) (string, error) {
	var published int
	err := d.patient(ctx, 3*time.Minute, func() (bool, string, error) {
		g, err := d.grid(ctx)
		open, done := g.settled()
		published, _ = g.count(snapshot.LetterPublished)
		return done, fmt.Sprintf("%d months are under way", open), err
	})
	return fmt.Sprintf("%d are published", published), err
}

// monthsSummary prints the grid, and why one month is empty.
func (d Demo) monthsSummary(ctx context.Context) error {
	line := d.Report.Line
	text, err := d.almanac(ctx, "", cancelled.with("snapshot show")...)
	if err != nil {
		return err
	}
	why, _, _ := strings.Cut(text, "\nVersions\n")
	line("")
	line("Why is this month empty?")
	line("")
	line("  %s", strings.ReplaceAll(strings.TrimSpace(why), "\n", "\n  "))
	text, err = d.almanac(ctx, "", "grid", "--from", firstOf, "--to", lastOf)
	if err != nil {
		return err
	}
	line("")
	line("The months of 2013, planned as of 6 January 2014:")
	line("")
	line("%s", strings.TrimRight(text, "\n"))
	return nil
}
