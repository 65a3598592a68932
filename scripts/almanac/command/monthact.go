package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"almanac/internal/api"
	"almanac/internal/calendar"
	"almanac/scripts/almanac/client"
)

// idempotent makes sure that the request has a key.
func (p *Program) idempotent(c *call) error {
	if c.key != "" {
		return nil
	}
	b := make([]byte, 16)
	if _, err := io.ReadFull(p.Random, b); err != nil {
		return fmt.Errorf("no random numbers: %w", err)
	}
	c.key = hex.EncodeToString(b)
	return nil
}

// repeatable tells how to ask again where the answer was lost.
func repeatable(err error, key string) error {
	var down *client.Unreachable
	if errors.As(err, &down) {
		return fmt.Errorf("%w; whether it was done is unknown: repeat with --key %s", err, key)
	}
	return err
}

// makeVersion asks for a new version of a month.
func (p *Program) makeVersion(ctx context.Context, c *call, conn *client.Client, path string, body any) error {
	if err := p.idempotent(c); err != nil {
		return err
	}
	var s api.SnapshotView
	status, err := conn.Call(ctx, "POST", path, http.Header{"Idempotency-Key": {c.key}}, body, &s)
	if err != nil {
		return repeatable(err, c.key)
	}
	p.printf("%s  %s%s  (key %s)\n", s.ID, s.State, optional(status == http.StatusOK, ", made before by the same key"), c.key)
	return nil
}

func (p *Program) rerun(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
	path, err := monthOf(c.args)
	if err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	return p.makeVersion(ctx, c, conn, path+"/versions", map[string]string{"reason": c.reason})
}

func (p *Program) accept(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
	if len(c.checks) == 0 {
		return usage("--check is missing: name the failed checks; almanac snapshot show lists them")
	}
	conn, _, v, err := p.onMonth(ctx, c)
	if err != nil {
		return err
	}
	s, err := snapshotIn(v, 0)
	if err != nil {
		return err
	}
	return p.makeVersion(ctx, c, conn, client.Path("snapshots", "runs", s.ID, "accept"), map[string]any{"checks": []string(c.checks), "reason": c.reason})
}

func (p *Program) cancel(ctx context.Context, c *call) error {
	return p.actOnMonth(ctx, c, "cancel", func(s api.SnapshotView) string { return "cancelled" })
}

func (p *Program) retryNow(ctx context.Context, c *call) error {
	return p.actOnMonth(ctx, c, "retry-now", func(s api.SnapshotView) string { return "due since " + when(s.NextAt) })
}

// actOnMonth does something to a month's latest version.
func (p *Program) actOnMonth(ctx context.Context, c *call, verb string, done func(api.SnapshotView) string) error {
	if err := needReason(c); err != nil {
		return err
	}
	conn, _, v, err := p.onMonth(ctx, c)
	if err != nil {
		return err
	}
	s, err := snapshotIn(v, 0)
	if err != nil {
		return err
	}
	if _, err := conn.Call(ctx, "POST", client.Path("snapshots", "runs", s.ID, verb), nil, map[string]string{"reason": c.reason}, &s); err != nil {
		return err
	}
	p.printf("%s: %s\n", s.ID, done(s))
	return nil
}

func (p *Program) rollBack(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
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
	var now api.CurrentView
	if _, err := conn.Call(ctx, "POST", client.Path("snapshots", "runs", s.ID, "roll-back"), nil, map[string]string{"reason": c.reason}, &now); err != nil {
		return err
	}
	p.printf("%s %s %s: version %d is current, in place of version %d\n", v.Workspace, v.Type, v.Month, now.Version, now.Previous)
	return nil
}

func (p *Program) planMonths(ctx context.Context, c *call) error {
	conn, err := p.connect()
	if err != nil {
		return err
	}
	if _, err := conn.Call(ctx, "POST", "/snapshots/plan", nil, nil, nil); err != nil {
		return err
	}
	p.printf("the planner was asked to look; almanac grid shows what comes of it\n")
	return nil
}

// backfill plans the months of a range, in as many requests as it takes: those of one workspace after the other.
func (p *Program) backfill(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
	if err := named("type of snapshots", c.args[0]); err != nil {
		return err
	}
	if c.workspace == "" || c.from == "" || c.until == "" {
		return usage("usage: almanac backfill TYPE --workspace W[,W...] --from MONTH --to MONTH [--dry-run] --reason WHY")
	}
	from, err := calendar.ParseMonth(c.from)
	if err != nil {
		return usage("--from is %q; want a month such as 2013-01", c.from)
	}
	to, err := calendar.ParseMonth(c.until)
	if err != nil || to.Before(from) {
		return usage("--to is %q; want a month such as 2013-12, not before --from", c.until)
	}
	if err := p.idempotent(c); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	all := api.BackfillView{DryRun: c.dryRun, Months: []api.ProposalView{}}
	for _, w := range strings.Split(c.workspace, ",") {
		for m := from; !to.Before(m); m = m.Add(api.MaxBackfill) {
			last := m.Add(api.MaxBackfill - 1)
			if to.Before(last) {
				last = to
			}
			body := map[string]any{"type": c.args[0], "workspaces": []string{w}, "from": m, "to": last, "dry_run": c.dryRun, "reason": c.reason}
			var part api.BackfillView
			if _, err := conn.Call(ctx, "POST", "/snapshots/backfill", http.Header{"Idempotency-Key": {c.key}}, body, &part); err != nil {
				if len(all.Months) > 0 && !c.json {
					p.printBackfill(all, c.key)
				}
				return repeatable(err, c.key)
			}
			all.Planned, all.Refused, all.Months = all.Planned+part.Planned, all.Refused+part.Refused, append(all.Months, part.Months...)
		}
	}
	if c.json {
		return printJSON(p.Out, all)
	}
	p.printBackfill(all, c.key)
	return nil
}

func (p *Program) printBackfill(v api.BackfillView, key string) {
	t := newTable("WORKSPACE", "TYPE", "MONTH", "RUN", "WHY NOT")
	for _, m := range v.Months {
		t.row(m.Workspace, m.Type, m.Month, dash(m.Run), m.Refused)
	}
	t.write(p.Out)
	if v.DryRun {
		p.printf("\n%d would be planned, %d refused; nothing was done.\n", v.Planned, v.Refused)
		return
	}
	p.printf("\n%d planned, %d refused.  (key %s)\n", v.Planned, v.Refused, key)
}
