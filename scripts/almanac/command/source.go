package command

import (
	"context"
	"fmt"

	"almanac/internal/api"
	"almanac/scripts/almanac/client"
)

// source test says step by step whether a source can be used, and shows first rows.
func (p *Program) source(ctx context.Context, c *call) error {
	if c.args[0] != "test" {
		return usage("usage: almanac source test NAME [--query SQL]")
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var v api.SourceTest
	if _, err := conn.Call(ctx, "POST", client.Path("sources", c.args[1], "test"), nil, map[string]string{"query": c.query}, &v); err != nil {
		return err
	}
	if c.json {
		if err := printJSON(p.Out, v); err != nil {
			return err
		}
	} else {
		p.printTest(v)
	}
	if !v.OK {
		return errFailed
	}
	return nil
}

func (p *Program) printTest(v api.SourceTest) {
	t := newTable("STEP", "VERDICT", "TIME", "")
	for _, s := range v.Steps {
		verdict := "ok"
		if !s.OK {
			verdict = s.Code
		}
		t.row(s.Step, verdict, fmt.Sprintf("%d ms", s.Milliseconds), s.Says)
	}
	t.write(p.Out)
	if len(v.Columns) == 0 {
		return
	}
	p.printf("\n")
	first := newTable(v.Columns...)
	for _, row := range v.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = "NULL"
			if cell != nil {
				cells[i] = *cell
			}
		}
		first.row(cells...)
	}
	first.write(p.Out)
	if len(v.Rows) == 0 {
		p.printf("(no rows)\n")
	}
}
