package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"almanac/internal/input"
	"almanac/internal/memcloud"
	"almanac/internal/snapshot"
)

// One request asked five times at once makes one version, and each is told of it.
func TestARequestAskedSeveralTimesAtOnceMakesOneVersion(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	once := snapshot.Once{Who: "ann", Key: "k", What: "rerun"}
	var all sync.WaitGroup
	var mu sync.Mutex
	created := 0
	for range 5 {
		all.Go(func() {
			r, made, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "ann", once)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || r.ID() != id("2040-01", 1) {
				t.Errorf("%s, %v", r.ID(), err)
			}
			if made {
				created++
			}
		})
	}
	all.Wait()
	if created == 0 {
		t.Error("nobody was told that the version is new")
	}
	if runs, err := d.store.Versions(ctx, period("2040-01")); err != nil || len(runs) != 1 {
		t.Errorf("%d versions, %v", len(runs), err)
	}
	other := once
	other.What = "another"
	var c *snapshot.Conflict
	if _, _, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "ann", other); !errors.As(err, &c) || !strings.HasPrefix(c.Why, snapshot.KeyReused) || c.Run == nil {
		t.Errorf("%v, want the key refused", err)
	}
	other.Who, other.What = "bob", once.What
	if _, _, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "bob", other); !snapshot.IsConflict(err) || strings.Contains(err.Error(), snapshot.KeyReused) {
		t.Errorf("%v, want another person's request refused for the active version", err)
	}
	if _, _, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "ann", snapshot.Once{}); !snapshot.IsConflict(err) {
		t.Errorf("%v, want a request without a key refused for the active version", err)
	}
	if _, _, err := d.editor.AcceptOnce(ctx, "nothing", []string{"rows"}, "why", "ann", once); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// A store that breaks while the key is looked for makes nothing.
func TestWhereAKeyCannotBeLookedForNothingIsMade(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	once := snapshot.Once{Who: "ann", Key: "k", What: "rerun"}
	if _, _, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "ann", once); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"V#", "AUDIT#"} {
		d.db.Hooks.Before = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == "Query" {
				d.mu.Lock()
				defer d.mu.Unlock()
				if d.read++; broken == "V#" || d.read > 1 { // the versions are read first, then their audits
					return errors.New("down")
				}
			}
			return nil
		}
		d.read = 0
		if _, _, err := d.editor.RequestOnce(ctx, period("2040-01"), "why", "ann", once); err == nil || snapshot.IsConflict(err) {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

// A grid is of so many months and series as an answer can hold.
func TestAGridHasItsBounds(t *testing.T) {
	d := newDesk(t)
	d.define("2040-01", unchanged)
	board := snapshot.Board{Ledger: d.store, Clocks: d.editor.Clocks}
	all := func(string) bool { return true }
	g, err := board.Grid(ctx, snapshot.GridQuery{Sees: all})
	if err != nil || g.From != month("2039-03") || g.To != month("2040-02") || len(g.Rows) != 1 || len(g.Rows[0].Cells) != 12 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err = board.Grid(ctx, snapshot.GridQuery{Sees: all, From: month("2041-05")}); err != nil || g.To != month("2041-05") {
		t.Errorf("%+v, %v", g, err)
	}
	var ps input.Problems
	if _, err := board.Grid(ctx, snapshot.GridQuery{Sees: all, From: month("2030-02"), To: month("2040-02")}); !errors.As(err, &ps) || ps[0].Field != "to" {
		t.Errorf("%v, want too many months refused", err)
	}
	many := manySeries{d.store}
	if _, err := (snapshot.Board{Ledger: many, Clocks: d.editor.Clocks}).Grid(ctx, snapshot.GridQuery{Sees: all}); !errors.As(err, &ps) || ps[0].Field != "type" {
		t.Errorf("%v, want too many series refused", err)
	}
	if g, err := (snapshot.Board{Ledger: many, Clocks: d.editor.Clocks}).Grid(ctx, snapshot.GridQuery{Sees: all, Type: "delays"}); err != nil || len(g.Rows) != 2 || g.Rows[1].Off != snapshot.ReasonRemoved {
		t.Errorf("%+v, %v", g, err)
	}
}

// manySeries has more series than a grid takes, of a workspace that nobody knows any more.
type manySeries struct{ snapshot.BoardLedger }

func (m manySeries) SeriesNames(context.Context) ([]snapshot.Series, error) {
	list := []snapshot.Series{{Workspace: "GONE", Type: "delays"}}
	for i := range snapshot.MaxGridSeries {
		list = append(list, snapshot.Series{Workspace: "GONE", Type: strings.Repeat("x", 1+i%10) + string(rune('a'+i/10))})
	}
	return list, nil
}
