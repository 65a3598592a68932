package command

import (
	"context"
	"net/url"

	"almanac/internal/api"
)

// grid prints how months stand: a table for each workspace, a line for each type, a column for each month.
func (p *Program) grid(ctx context.Context, c *call) error {
	q := url.Values{}
	for name, value := range map[string]string{"workspace": c.workspace, "type": c.typ, "from": c.from, "to": c.until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var g api.GridView
	if _, err := conn.Call(ctx, "GET", "/snapshots/grid?"+q.Encode(), nil, nil, &g); err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, g)
	}
	p.printGrid(g)
	p.warn(ctx, conn)
	return nil
}

func (p *Program) printGrid(g api.GridView) {
	if len(g.Rows) == 0 {
		p.printf("(no snapshots are defined)\n")
		return
	}
	t := &table{}
	workspace := ""
	used := map[string]bool{}
	late := false
	for i, r := range g.Rows {
		if r.Workspace != workspace {
			if i > 0 {
				t.row("")
			}
			workspace = r.Workspace
			head := []string{workspace}
			for _, m := range r.Months {
				head = append(head, m.Month.String())
			}
			t.row(head...)
		}
		cells := []string{"  " + r.Type}
		for _, m := range r.Months {
			cells = append(cells, m.String())
			used[m.Letter], used[m.Next], late = true, true, late || m.Late
		}
		t.row(cells...)
	}
	t.write(p.Out)
	p.printf("\n")
	t = &table{}
	for _, l := range g.Legend {
		if used[l.Letter] {
			t.row(l.Letter, l.Meaning)
		}
	}
	if late {
		t.row("!", "late: nothing of it is published yet")
	}
	t.write(p.Out)
}
