//go:build cloud

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// What the backfill is about: a year of three workspaces and two types, in five slots of which two are for backfills.
const (
	yearCap, yearBackfill = 5, 2
	yearWorkspaces        = 3
)

var yearTypes = []string{"in-chunks", "in-one"}

// A year of backfills under the owner's caps, watched all the while: the slots that are taken and the executions that run
// never exceed them, each month is published once, and the current months do not wait for the backfills.
func TestABackfillOfAYearStaysWithinItsCaps(t *testing.T) {
	scene(t)
	release := hold(t)
	s := apart(t, yearCap, yearBackfill, yearWorkspaces)
	from := calendar.Month{Year: 2013, Month: time.January}
	for _, w := range s.workspaces {
		s.define(t, w, yearTypes[0], func(d *snapshot.Definition) {
			inChunks(150, 1)(d)
			d.Start = from
		})
		s.define(t, w, yearTypes[1], func(d *snapshot.Definition) { d.Start, d.Params["days"] = from, 1 })
	}
	for _, typ := range yearTypes {
		body := map[string]any{"type": typ, "workspaces": s.workspaces, "from": "2013-01", "to": "2013-12", "reason": "a year", "dry_run": true}
		would := backfilled(t, body)
		body["dry_run"] = false
		did := backfilled(t, body)
		if len(would) != 12*yearWorkspaces || len(did) != len(would) {
			t.Fatalf("%d months by the dry run, %d by the backfill; want %d", len(would), len(did), 12*yearWorkspaces)
		}
		for month, run := range would {
			if did[month] != run || !strings.HasSuffix(run, "_v1") {
				t.Errorf("%s: the dry run says %q, the backfill %q; want version 1", month, run, did[month])
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	m := &monitor{s: s}
	ended := make(chan struct{})
	go func() { defer close(ended); m.watch(ctx) }()
	began := time.Now()
	release()
	s.yearIsPublished(t, from)
	took := time.Since(began)
	stop()
	<-ended
	t.Logf("%d months in %.1f s; looked %d times at the slots: at most %d, of them %d for backfills; at most %d executions at once",
		12*yearWorkspaces*len(yearTypes), took.Seconds(), m.looks, m.slots, m.backfills, m.executions)
	for _, problem := range m.problems {
		t.Error(problem)
	}
	// Five slots were wanted all the while, so that a monitor which saw fewer saw nothing.
	if m.looks < 20 || m.backfills != yearBackfill || m.slots <= yearBackfill {
		t.Errorf("the monitor looked %d times and saw %d slots, %d for backfills; want to have seen both kinds", m.looks, m.slots, m.backfills)
	}
	if c := s.caps(t); len(c.Slots) != 0 || len(c.Backfills) != 0 {
		t.Errorf("slots %v are held; want none", c.Slots)
	}
}

// backfilled asks for a backfill and gives the versions that it plans by month and workspace.
func backfilled(t *testing.T, body map[string]any) map[string]string {
	t.Helper()
	var v struct {
		Months []struct{ Workspace, Month, Run, Refused string }
	}
	b := must(t, "POST", "/snapshots/backfill", body, "Idempotency-Key", fresh())
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s, %v", b, err)
	}
	runs := map[string]string{}
	for _, m := range v.Months {
		if m.Refused != "" {
			t.Fatalf("%s %s is refused: %s", m.Workspace, m.Month, m.Refused)
		}
		runs[m.Workspace+" "+m.Month] = m.Run
	}
	return runs
}

// yearIsPublished waits for every month, with two dispatchers at a time beside those that settled months ask for.
func (s shelf) yearIsPublished(t *testing.T, from calendar.Month) {
	t.Helper()
	next, open := time.Now(), 0
	awaitWithin(t.Context(), t, 5*time.Minute, "the year", func() (bool, string) {
		if time.Now().Before(next) { // the cloud has better things to do than to answer us
			return false, fmt.Sprintf("%d months open", open)
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := quietly("SnapshotDispatchFunction"); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		next, open = time.Now().Add(2*time.Second), 0
		for _, w := range s.workspaces {
			for _, typ := range yearTypes {
				list, err := s.ledger.Line(t.Context(), snapshot.Series{Workspace: w, Type: typ}, from, december)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range list {
					latest, ok := m.Latest()
					switch {
					case !ok || !latest.Final():
						open++
					case latest.State != snapshot.Published || latest.Version != 1 || latest.Failures != 0:
						t.Fatalf("%s is %s after %d failures (%s: %s); want version 1 published", latest.ID(), latest.State, latest.Failures, latest.ErrorCode, latest.ErrorText)
					}
				}
				open += 12 - len(list)
			}
		}
		return open == 0, fmt.Sprintf("%d months open", open)
	})
}

// monitor looks at an owner's slots and executions for as long as it may.
type monitor struct {
	s                                   shelf
	looks, slots, backfills, executions int
	problems                            []string
}

func (m *monitor) watch(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := m.s.ledger.Caps(ctx, m.s.owner)
		if err != nil {
			m.trouble(ctx, "the slots could not be read: %v", err)
			return
		}
		m.looks++
		m.slots, m.backfills = max(m.slots, len(c.Slots)), max(m.backfills, len(c.Backfills))
		if len(c.Slots) > yearCap || len(c.Backfills) > yearBackfill {
			m.trouble(ctx, "%d slots are taken, %d by backfills; want at most %d and %d", len(c.Slots), len(c.Backfills), yearCap, yearBackfill)
		}
		if m.looks%10 == 0 {
			m.lookAtExecutions(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (m *monitor) trouble(ctx context.Context, format string, args ...any) {
	if ctx.Err() == nil && len(m.problems) < 5 {
		m.problems = append(m.problems, fmt.Sprintf(format, args...))
	}
}

// lookAtExecutions counts the executions of the owner that have a slot. One whose version is settled runs on for a
// moment, until the workflow has heard its last step's answer.
func (m *monitor) lookAtExecutions(ctx context.Context) {
	out, err := sfn.NewFromConfig(cloud.aws).ListExecutions(ctx, &sfn.ListExecutionsInput{
		StateMachineArn: aws.String(cloud.outputs["AttemptMachineArn"]), StatusFilter: sfntypes.ExecutionStatusRunning})
	if err != nil {
		m.trouble(ctx, "the executions could not be listed: %v", err)
		return
	}
	n := 0
	for _, e := range out.Executions {
		id, _, _ := strings.Cut(aws.ToString(e.Name), "-j")
		if !strings.HasPrefix(id, m.s.owner) {
			continue
		}
		r, err := m.s.ledger.Run(ctx, id)
		if err != nil {
			m.trouble(ctx, "%s: %v", id, err)
			return
		}
		if r.Admitted() {
			n++
		}
	}
	m.executions = max(m.executions, n)
	if n > yearCap {
		m.trouble(ctx, "%d executions run; want at most %d", n, yearCap)
	}
}
