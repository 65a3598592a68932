package store

import (
	flags "flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var rewrite = flags.Bool("update", false, "write the conditions as they are now into testdata/conditions.golden")

const golden = "testdata/conditions.golden"

// Every guard that a table names means something here, and nothing here is without a table.
func TestEveryGuardHasAMeaning(t *testing.T) {
	used := map[transition.Guard]bool{}
	collect(used, schedule.Runs.Rows)
	collect(used, schedule.Submissions.Rows)
	collect(used, schedule.Schedules.Rows)
	collect(used, snapshot.Runs.Rows)
	for g := range used {
		m, ok := guards[g]
		switch {
		case !ok:
			t.Errorf("guard %q of a table has no entry in guards", g)
		case (m.expr == nil) == (m.decider == ""):
			t.Errorf("guard %q: want either an expression or who decides", g)
		}
	}
	for g := range guards {
		if !used[g] {
			t.Errorf("guards has %q, which no table names", g)
		}
	}
}

func collect[S, E ~string](used map[transition.Guard]bool, rows []transition.Row[S, E]) {
	for _, r := range rows {
		for _, all := range r.When {
			for _, g := range all {
				used[g] = true
			}
		}
	}
}

// The conditions as they are sent, in words: whoever changes one sees it in the golden file, and so does the reviewer.
func TestConditionsAreAsReviewed(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The condition of every row of the four tables, one line per alternative. Made by: go test ./internal/store -run TestConditions -update\n")
	spell(t, &b, schedule.Runs)
	spell(t, &b, schedule.Submissions)
	spell(t, &b, schedule.Schedules)
	spell(t, &b, snapshot.Runs)
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, was := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(was)) {
		g, w := at(got, i), at(was, i)
		if g != w {
			t.Errorf("%s:%d\n is  %s\n was %s\nIf that is meant, run: go test ./internal/store -run TestConditions -update", golden, i+1, g, w)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}

var (
	theNow  = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	theWake = theNow.Add(-time.Minute)
	theDue  = theNow.Add(time.Hour)
	words   = strings.NewReplacer(`"2026-11-30T08:00:00.000Z"`, "‹now›", `"2026-11-30T07:59:00.000Z"`, "‹as read›", `"2026-11-30T09:00:00.000Z"`, "‹as read›",
		`"the-owner"`, "‹owner›", `"the-earlier"`, "‹owner as read›", `"the-open"`, "‹as read›", `"the-file"`, "‹as read›", "version = 7", "version = ‹as read›",
		`"2026-11-30T07:55:00.000Z"`, "‹five minutes ago›", "job = 11", "job = ‹as read›", "failures = 2", "failures = ‹as read›", "generation = 4", "generation = ‹as read›", "cursor = 12", "cursor = ‹as read›",
		`"the-key"`, "‹as read›", `"the-query"`, "‹as read›", `"the-manifest"`, "‹as read›", "compared_to = 3", "compared_to = ‹current as read›", `"the-purpose"`, "‹purpose›")
	theRun = snapshot.Run{Job: 11, Query: snapshot.Query{ID: "the-query"}, Failures: 2, Generation: 4, Cursor: snapshot.Cursor{Chunk: 12, Key: "the-key"}, OfferedAt: theWake, Verdict: &snapshot.Verdict{Manifest: "the-manifest"}}
	alias  = regexp.MustCompile(`#(\w+)|(:\w+)`)
)

func spell[S, E ~string](t *testing.T, b *strings.Builder, table transition.Table[S, E]) {
	fmt.Fprintf(b, "\n## %s\n", table.Name)
	for _, row := range table.Rows {
		from := string(row.From)
		if row.From == transition.Absent {
			from = "–"
		}
		fmt.Fprintf(b, "\n%s: %s → %s\n", row.Event, from, row.To)
		for _, all := range row.When {
			one := row
			one.When = transition.When{all}
			var e expression
			f := facts{owner: "the-owner", earlier: "the-earlier", now: theNow, wake: theWake, yields: 200, file: "the-file", decided: all,
				schedule: &schedule.Schedule{Version: 7, NextDue: theDue, OpenRun: "the-open"}, before: theNow.Add(-5 * time.Minute), current: 3, query: "the-purpose", run: theRun}
			expr, ok := condition(&e, one, f)
			if !ok {
				t.Errorf("%s in state %s: no condition although all is decided", row.Event, from)
			}
			expr = alias.ReplaceAllStringFunc(expr, func(a string) string {
				if a[0] == '#' {
					return e.names[a]
				}
				return literal(t, e.values[a])
			})
			var caller []string
			for _, g := range all {
				if guards[g].expr == nil {
					caller = append(caller, string(g))
				}
			}
			fmt.Fprintf(b, "  %s\n", words.Replace(expr))
			if len(caller) > 0 {
				fmt.Fprintf(b, "    decided before: %s\n", strings.Join(caller, "; "))
			}
		}
	}
}

func literal(t *testing.T, v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return `"` + v.Value + `"`
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	}
	t.Errorf("a condition compares with a %T", v)
	return "?"
}
