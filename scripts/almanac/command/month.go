package command

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"almanac/internal/api"
	"almanac/internal/calendar"
	"almanac/scripts/almanac/client"
)

// monthOf takes WORKSPACE TYPE MONTH from the arguments, and gives the path of the month below the API.
func monthOf(args []string) (string, error) {
	if err := named("workspace", args[0]); err != nil {
		return "", err
	}
	if err := named("type of snapshots", args[1]); err != nil {
		return "", err
	}
	if _, err := calendar.ParseMonth(args[2]); err != nil {
		return "", usage("MONTH is %q; want a month such as 2013-01", args[2])
	}
	return client.Path("snapshots", "months", args[0], args[1], args[2]), nil
}

func versionOf(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, usage("VERSION is %q; want a number from 1 on", text)
	}
	return n, nil
}

// onMonth reads the month that a command is about.
func (p *Program) onMonth(ctx context.Context, c *call) (*client.Client, string, api.MonthView, error) {
	var v api.MonthView
	path, err := monthOf(c.args)
	if err != nil {
		return nil, "", v, err
	}
	conn, err := p.connect()
	if err != nil {
		return nil, "", v, err
	}
	_, err = conn.Call(ctx, "GET", path, nil, nil, &v)
	return conn, path, v, err
}

// snapshotIn is a month's version of a number, 0: the latest.
func snapshotIn(v api.MonthView, version int) (api.SnapshotView, error) {
	for _, s := range v.Versions {
		if version == 0 || s.Version == version {
			return s, nil
		}
	}
	return api.SnapshotView{}, &api.Problem{Status: http.StatusNotFound, Title: http.StatusText(http.StatusNotFound),
		Detail: fmt.Sprintf("%s %s %s has no version%s", v.Workspace, v.Type, v.Month, optional(version > 0, " %d", version))}
}

func (p *Program) snapshot(ctx context.Context, c *call) error {
	verb := c.args[0]
	c.args = c.args[1:]
	switch {
	case verb == "show" && (len(c.args) == 3 || len(c.args) == 4):
		return p.showMonth(ctx, c)
	case verb == "list" && len(c.args) == 2:
		return p.listMonths(ctx, c)
	case verb == "audits" && len(c.args) == 4:
		return p.auditsOfMonth(ctx, c)
	}
	return usage("usage: almanac snapshot show WORKSPACE TYPE MONTH [VERSION] | list WORKSPACE TYPE | audits WORKSPACE TYPE MONTH VERSION")
}

func (p *Program) listMonths(ctx context.Context, c *call) error {
	for _, name := range c.args {
		if err := named("workspace or type", name); err != nil {
			return err
		}
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	return printList(ctx, p, c, conn, client.Path("snapshots", "months", c.args[0], c.args[1]), nil,
		[]string{"MONTH", "VERSION", "STATE", "CURRENT", "ATTEMPTS", "SETTLED", "REASON"}, snapshotCells)
}

func snapshotCells(s api.SnapshotView) []string {
	return []string{s.Month, fmt.Sprint(s.Version), stateOf(s), optional(s.Current, "current"), fmt.Sprint(s.Attempts), when(s.SettledAt), dash(first(s.Reason, s.Code))}
}

// stateOf tells a failure that is final from one that is tried again.
func stateOf(s api.SnapshotView) string {
	if s.State != "failed" {
		return s.State
	}
	if s.NextAt == nil {
		return "failed for good"
	}
	return "failed, again at " + when(s.NextAt)
}

func (p *Program) auditsOfMonth(ctx context.Context, c *call) error {
	version, err := versionOf(c.args[3])
	if err != nil {
		return err
	}
	conn, _, v, err := p.onMonth(ctx, c)
	if err != nil {
		return err
	}
	s, err := snapshotIn(v, version)
	if err != nil {
		return err
	}
	return printList(ctx, p, c, conn, client.Path("snapshots", "runs", s.ID, "audits"), nil, auditHead, auditCells)
}

// showMonth says how a month stands and why, and tells the life of its latest version, or of another.
func (p *Program) showMonth(ctx context.Context, c *call) error {
	version := 0
	if len(c.args) == 4 {
		var err error
		if version, err = versionOf(c.args[3]); err != nil {
			return err
		}
	}
	conn, _, v, err := p.onMonth(ctx, c)
	if err != nil {
		return err
	}
	if c.json && version == 0 {
		return printJSON(p.Out, v)
	}
	var d api.SnapshotDetail
	if len(v.Versions) > 0 || version > 0 {
		s, err := snapshotIn(v, version)
		if err != nil {
			return err
		}
		if _, err := conn.Call(ctx, "GET", client.Path("snapshots", "runs", s.ID), nil, nil, &d); err != nil {
			return err
		}
	}
	if c.json {
		return printJSON(p.Out, d)
	}
	p.printMonth(v)
	if d.ID != "" {
		p.printSnapshot(d)
	}
	p.warn(ctx, conn)
	return nil
}

func (p *Program) printMonth(v api.MonthView) {
	p.printf("%s %s %s  %s\n", v.Workspace, v.Type, v.Month, v.Standing)
	for _, line := range v.Why {
		p.printf("  %s\n", plain(line))
	}
	if len(v.Versions) == 0 {
		return
	}
	p.printf("\nVersions\n")
	t := newTable("  VERSION", "STATE", "CURRENT", "ATTEMPTS", "SETTLED", "REASON")
	for _, s := range v.Versions {
		cells := snapshotCells(s)[1:]
		cells[0] = "  " + cells[0]
		t.row(cells...)
	}
	t.write(p.Out)
}

func (p *Program) printSnapshot(d api.SnapshotDetail) {
	p.printf("\n%s\n", d.ID)
	t := newTable()
	t.row("  State", stateOf(d.SnapshotView)+optional(d.Backfill, ", a backfill"))
	t.row("  Definition", fmt.Sprintf("%s, version %d", d.Definition, d.DefVersion))
	t.row("  Period", fmt.Sprintf("%s to %s, %s", when(d.Start), when(d.End), dash(d.Zone)))
	if d.RequestedBy != "" {
		t.row("  Asked for by", d.RequestedBy+": "+d.RequestWhy)
	}
	t.row("  Attempts", fmt.Sprintf("%d, %d failures", d.Attempts, d.Failures))
	t.row("  Generated", fmt.Sprintf("%d rows in %d chunks%s, generation %d", d.Rows, d.Chunks, optional(d.Mode != "", ", %s", d.Mode), d.Generation))
	if e := d.Error; e != nil {
		t.row("  Error", e.Code+": "+e.Meaning)
		t.row("", e.Message)
		t.row("  Remedy", e.Remedy)
	}
	if d.CancelledBy != "" {
		t.row("  Cancelled by", d.CancelledBy+": "+first(d.ReasonText, d.Reason))
	}
	for _, a := range d.Accepted {
		t.row("  Accepted", fmt.Sprintf("%s as %s, by %s: %s", a.Check, a.Found, a.By, a.Why))
	}
	if d.Object != "" {
		t.row("  Manifest", d.Object)
	}
	if d.Execution != "" {
		t.row("  Job", fmt.Sprintf("%d, %s", d.Job, d.Execution))
	}
	t.write(p.Out)
	p.printChecks(d)
	p.printf("\nTimeline\n")
	for _, line := range d.Timeline {
		p.printf("  %s\n", plain(line))
	}
}

func (p *Program) printChecks(d api.SnapshotDetail) {
	if len(d.Checks) == 0 {
		return
	}
	p.printf("\nChecks\n")
	t := newTable("  CHECK", "VERDICT", "EXPECTED", "FOUND")
	for _, k := range d.Checks {
		verdict := "failed"
		if k.Passed {
			verdict = "passed"
		} else if k.Accepted != "" {
			verdict = "accepted by " + k.Accepted
		}
		t.row("  "+k.Name, verdict, k.Expected, k.Found)
	}
	t.write(p.Out)
}
