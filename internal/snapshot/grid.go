package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/input"

	"golang.org/x/sync/errgroup"
)

// BoardLedger is what looking at many months asks of the store.
type BoardLedger interface {
	Reading
	Workspaces(ctx context.Context) ([]Workspace, error)
	Definitions(ctx context.Context) ([]Version, error)
	SeriesNames(ctx context.Context) ([]Series, error)
	Series(ctx context.Context, s Series) (SeriesRow, error)
	// Line reads the months of a series from one to another that have a version, oldest first.
	Line(ctx context.Context, s Series, from, to calendar.Month) ([]Month, error)
	Caps(ctx context.Context, owner string) (Caps, error)
	Planned(ctx context.Context, owner string, backfill bool, limit int) ([]string, error)
}

// Board shows how months stand.
type Board struct {
	Ledger BoardLedger
	Clocks Clocks
}

// Bounds of a grid: what one answer may hold.
const (
	MaxGridMonths = 120
	MaxGridSeries = 200
	gridMonths    = 12 // where no month is named
	gridReaders   = 8  // series read at once
)

// GridQuery says which months of which series.
type GridQuery struct {
	Sees     func(workspace string) bool // whose series
	Type     string                      // only this one; empty: all
	From, To calendar.Month              // zero: up to the last closed month of any workspace, twelve months in all
}

// Grid is how the months of several series stand.
type Grid struct {
	From, To calendar.Month
	Rows     []GridRow // by workspace, then type
}

// GridRow is one series.
type GridRow struct {
	Series
	Off   string     // why no month of it is planned any more; empty: they are
	Cells []Standing // each month from From to To
}

// Grid reads the state of each month.
func (b Board) Grid(ctx context.Context, q GridQuery) (Grid, error) {
	now, err := b.Clocks.Business(ctx)
	if err != nil {
		return Grid{}, err
	}
	v, err := viewOf(ctx, b.Ledger)
	if err != nil {
		return Grid{}, err
	}
	names, err := b.Ledger.SeriesNames(ctx)
	if err != nil {
		return Grid{}, err
	}
	g := Grid{From: q.From, To: q.To}
	for _, s := range v.all(names) {
		if q.Sees(s.Workspace) && (q.Type == "" || s.Type == q.Type) {
			g.Rows = append(g.Rows, GridRow{Series: s, Off: v.line(s).off})
		}
	}
	if len(g.Rows) > MaxGridSeries {
		return g, input.Problems{input.Wrong("type", fmt.Sprintf("%d series", len(g.Rows)), fmt.Sprintf("a type or a workspace, so that at most %d remain", MaxGridSeries))}
	}
	if err := g.span(v, now); err != nil {
		return g, err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(gridReaders)
	for i := range g.Rows {
		work.Go(func() error {
			row := &g.Rows[i]
			list, err := b.Ledger.Line(ctx, row.Series, g.From, g.To)
			if err != nil {
				return err
			}
			l, err := v.placed(row.Series)
			if err != nil {
				return err
			}
			row.Cells = l.cells(g.From, g.To, list, now)
			return nil
		})
	}
	return g, work.Wait()
}

// placed is a line with its zone; a workspace that is not known any more has UTC.
func (v view) placed(s Series) (line, error) {
	l := v.line(s)
	if l.workspace.ID == "" {
		l.zone = time.UTC
		return l, nil
	}
	return l.located()
}

func (l line) cells(from, to calendar.Month, list []Month, now time.Time) (cells []Standing) {
	for m := from; !to.Before(m); m = m.Add(1) {
		i := slices.IndexFunc(list, func(x Month) bool { return x.Head.Month == m })
		if i < 0 {
			cells = append(cells, l.cell(m, Month{}, now))
		} else {
			cells = append(cells, l.cell(m, list[i], now))
		}
	}
	return cells
}

// span fills in and checks the months.
func (g *Grid) span(v view, now time.Time) error {
	if g.To == (calendar.Month{}) {
		g.To = calendar.MonthOf(now, time.UTC).Add(-1)
		for _, w := range v.workspaces { // the farthest east may be a month ahead
			if zone, err := calendar.LoadZone(w.Zone); err == nil {
				if m := calendar.MonthOf(now, zone).Add(-1); g.To.Before(m) {
					g.To = m
				}
			}
		}
		if g.To.Before(g.From) {
			g.To = g.From
		}
	}
	if g.From == (calendar.Month{}) {
		g.From = g.To.Add(1 - gridMonths)
	}
	switch n := (g.To.Year-g.From.Year)*12 + int(g.To.Month) - int(g.From.Month) + 1; {
	case n < 1:
		return input.Problems{input.Wrong("to", g.To.String(), "not before from, "+g.From.String())}
	case n > MaxGridMonths:
		return input.Problems{input.Wrong("to", fmt.Sprintf("%s: %d months", g.To, n), fmt.Sprintf("at most %d months at once", MaxGridMonths))}
	}
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// Owned are the workspaces of each owner that has some, by id.
func Owned(workspaces []Workspace) map[string][]string {
	owned := map[string][]string{}
	for _, w := range workspaces {
		owned[w.Owner] = append(owned[w.Owner], w.ID)
	}
	for _, list := range owned {
		slices.SortFunc(list, cmp.Compare[string])
	}
	return owned
}
