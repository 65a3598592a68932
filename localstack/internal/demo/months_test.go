package demo

import (
	"encoding/json"
	"strings"
	"testing"
)

// gridOf is a grid of six series whose months stand as the letters say.
func gridOf(t *testing.T, series, letters string) (g grid) {
	t.Helper()
	var months []string
	for _, l := range strings.Split(letters, "") {
		months = append(months, `{"month": "2013-01", "letter": "`+l+`"}`)
	}
	row := `{"workspace": "EWR", "type": "` + series + `", "months": [` + strings.Join(months, ",") + `]}`
	if err := json.Unmarshal([]byte(`{"rows": [`+strings.Repeat(row+",", seriesOf-1)+row+`]}`), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// What the demo does again and what it leaves depends on how the months stand.
func TestTheGridSaysWhatIsLeftToDo(t *testing.T) {
	for letters, want := range map[string]struct {
		planned, done bool
		open          int
	}{
		"............": {false, false, 0},
		"PPPPPPPPPPP.": {false, false, 0},
		"PPPPPPPPPPPl": {false, false, 0},
		"PPPPPPPPPPP":  {false, false, 0}, // a month is missing
		"pqrvfPPPPPPP": {true, false, 5 * seriesOf},
		"---PPPPPPPFc": {true, true, 0},
	} {
		g := gridOf(t, "carrier-performance", letters)
		open, done := g.settled()
		if g.planned() != want.planned || done != want.done || open != want.open {
			t.Errorf("%s: planned %v, done %v, %d open; want %+v", letters, g.planned(), done, open, want)
		}
	}
	if _, done := (grid{}).settled(); done {
		t.Error("no months at all are taken for all of them")
	}
}

func TestAPersonsOwnSeriesAreNotTheDemos(t *testing.T) {
	g := gridOf(t, "carrier-performance", "PPPPPPPPPPPP")
	for _, own := range []gridRow{{Workspace: "EWR", Type: "gates"}, {Workspace: "BOS", Type: "carrier-performance"}} {
		own.Months = []struct{ Month, Letter string }{{"2013-01", "."}}
		g.Rows = append(g.Rows, own)
	}
	if _, done := g.settled(); done {
		t.Error("the others' months are taken for published ones")
	}
	if _, done := g.ours().settled(); !done {
		t.Error("the demo waits for months of somebody else")
	}
}

func TestAPlaceIsPutWhereCommandsWantIt(t *testing.T) {
	if got := strings.Join(mended.with("snapshot show", "-o", "json"), " "); got != "snapshot show JFK hourly-weather 2013-09 -o json" {
		t.Error(got)
	}
}
