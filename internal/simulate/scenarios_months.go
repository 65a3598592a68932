package simulate

import (
	"almanac/internal/calendar"
	"almanac/internal/snapshot"
)

// Delays is a definition of type delays for a workspace from a month on, in chunks of two rows.
func Delays(workspace, start string) snapshot.Definition {
	m, err := calendar.ParseMonth(start)
	if err != nil {
		panic(err)
	}
	return snapshot.Definition{Scope: snapshot.Scope{Workspace: workspace}, Type: "delays", Name: "Delays", Source: "flights", Start: m, Key: "id", Mode: snapshot.Chunked, ChunkRows: 2,
		Query:   "select id, delay from flights where origin = :workspace and at >= :period_start and at < :period_end",
		Control: "select count(*) as rows, sum(delay) as delay from flights where origin = :workspace and at >= :period_start and at < :period_end"}
}

// Define saves a definition of months.
func (w *World) Define(d snapshot.Definition) {
	_, err := w.Kit(nil).MonthEditor().SaveDefinition(background, d, "ann", 0)
	w.must(err)
}

// Month reads a version of a month, such as "EWR_delays_2040-02_v1".
func (w *World) Month(id string) snapshot.Run {
	r, err := w.Kit(nil).Ledger().Run(background, id)
	w.must(err)
	return r
}

func endedMonth(id string) func(*World) string {
	return func(w *World) string {
		r := w.Month(id)
		return string(r.State) + " " + r.ErrorCode
	}
}

func monthScenarios() []Scenario {
	return []Scenario{
		{Name: "chunked", Half: "months", Ended: endedMonth("EWR_delays_2040-02_v1"), Want: "published", Drive: func(w *World) { w.Define(Delays("EWR", "2040-02")) }},
	}
}
