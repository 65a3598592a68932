package transition_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

var update = flag.Bool("update", false, "draw the diagrams in README.md anew from the tables")

const readme = "../../README.md"

func TestTheTablesAreSound(t *testing.T) {
	for _, err := range []error{schedule.Runs.Check(), schedule.Submissions.Check(), schedule.Schedules.Check(), snapshot.Runs.Check()} {
		if err != nil {
			t.Error(err)
		}
	}
	for state, want := range map[schedule.RunState]bool{schedule.Queued: false, schedule.Running: false, schedule.Succeeded: true, schedule.Skipped: true, schedule.Failed: true} {
		if schedule.Runs.Settled(state) != want {
			t.Errorf("run %s settled: %v, want %v", state, !want, want)
		}
	}
	for state, want := range map[schedule.SubmissionState]bool{schedule.Pending: false, schedule.Unknown: false, schedule.Submitted: true, schedule.NotDelivered: true, schedule.NotSent: true} {
		if schedule.Submissions.Settled(state) != want {
			t.Errorf("submission %s settled: %v, want %v", state, !want, want)
		}
	}
	if schedule.Schedules.Settled(schedule.Active) || schedule.Schedules.Settled(schedule.Paused) || !schedule.Schedules.Settled(schedule.Deleted) {
		t.Error("of a schedule's states only deleted is settled")
	}
	for _, state := range snapshot.Runs.States {
		want := state == snapshot.Published || state == snapshot.Skipped || state == snapshot.Cancelled // failed may have a next attempt
		if snapshot.Runs.Settled(state) != want {
			t.Errorf("snapshot %s settled: %v, want %v", state, !want, want)
		}
	}
}

// No run comes back to life, and none fails that never began (lifecycles A and D, "Never").
func TestWhatNeverHappens(t *testing.T) {
	for _, r := range schedule.Runs.Rows {
		if schedule.Runs.Settled(r.From) && r.From != "" {
			t.Errorf("%s leaves the settled state %s", r.Event, r.From)
		}
		if r.From == schedule.Queued && r.To == schedule.Failed {
			t.Errorf("%s fails a run that never began", r.Event)
		}
	}
	for _, r := range snapshot.Runs.Rows {
		if snapshot.Runs.Settled(r.From) && r.From != "" {
			t.Errorf("%s leaves the settled state %s", r.Event, r.From)
		}
		if r.To == snapshot.Published && r.From != snapshot.Validating {
			t.Errorf("%s publishes what was not validated", r.Event)
		}
	}
}

// The diagrams in the README are drawn from the tables. Each stands between a marker with its table's name and the end
// of the block that follows.
func TestReadmeShowsTheTables(t *testing.T) {
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, diagram := range map[string]string{
		schedule.Runs.Name:        schedule.Runs.Mermaid(),
		schedule.Submissions.Name: schedule.Submissions.Mermaid(),
		schedule.Schedules.Name:   schedule.Schedules.Mermaid(),
		snapshot.Runs.Name:        snapshot.Runs.Mermaid(),
	} {
		t.Run(name, func(t *testing.T) {
			start, end, err := block(text, name)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				text = text[:start] + diagram + text[end:]
				return
			}
			if got := text[start:end]; got != diagram {
				t.Errorf("README.md shows\n%s\nwhile the table says\n%s\nRun: go test ./internal/transition -run TestReadme -update", got, diagram)
			}
		})
	}
	if *update && !t.Failed() && text != string(raw) {
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// block finds the diagram of a table: where the lines between ```mermaid and ``` begin and end.
func block(text, name string) (start, end int, err error) {
	marker := "<!-- diagram: " + name + " -->"
	_, after, found := strings.Cut(text, marker)
	if !found {
		return 0, 0, fmt.Errorf("README.md has no line %s; put it where the diagram should stand, with a ```mermaid block below", marker)
	}
	const open, close = "```mermaid\n", "```"
	rest := strings.TrimLeft(after, " \r\n")
	if !strings.HasPrefix(rest, open) {
		return 0, 0, fmt.Errorf("README.md: after %s comes %.30q, want a ```mermaid block", marker, rest)
	}
	start = len(text) - len(rest) + len(open)
	n := strings.Index(text[start:], "\n"+close)
	switch {
	case strings.HasPrefix(text[start:], close):
		return start, start, nil
	case n < 0:
		return 0, 0, fmt.Errorf("README.md: the ```mermaid block after %s does not end", marker)
	}
	return start, start + n + 1, nil
}

func TestBlock(t *testing.T) {
	good := "# x\n<!-- diagram: door -->\n\n```mermaid\na\nb\n```\nmore\n```\n"
	if s, e, err := block(good, "door"); err != nil || good[s:e] != "a\nb\n" {
		t.Errorf("%q, %v", good[s:e], err)
	}
	empty := "<!-- diagram: door -->\n```mermaid\n```\n"
	if s, e, err := block(empty, "door"); err != nil || s != e || empty[s:] != "```\n" {
		t.Errorf("an empty block: %d, %d, %v", s, e, err)
	}
	for text, want := range map[string]string{
		"# nothing": "has no line <!-- diagram: door -->",
		"<!-- diagram: door2 -->\n```mermaid\n```":    "has no line <!-- diagram: door -->",
		"<!-- diagram: door -->\ntext\n":              "want a ```mermaid block",
		"<!-- diagram: door -->\n```go\nx\n```":       "want a ```mermaid block",
		"<!-- diagram: door -->\n```mermaid\nx\nmore": "does not end",
	} {
		if _, _, err := block(text, "door"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
