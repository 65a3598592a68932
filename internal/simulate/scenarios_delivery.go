package simulate

import (
	"strings"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// FirstDue is when a daily schedule is due first.
var FirstDue = Start.Add(30 * time.Minute)

// Definition is a valid one, due daily at 12:30 UTC; recipients are spelled "x@…" for e-mail, anything else is a
// receiver's name.
func Definition(id string, recipients ...string) schedule.Definition {
	d := schedule.Definition{ID: id, Workspace: "EWR", Name: "Delays " + id, Owner: "ops@example.com", Source: "flights",
		Query: "select id, delay from flights", Recurrence: calendar.Spec{Cron: "30 12 * * *", Zone: "UTC"}}
	d.File.Kind, d.File.RetentionDays = "csv", 30
	for _, r := range recipients {
		if strings.Contains(r, "@") {
			d.Recipients = append(d.Recipients, schedule.Recipient{Email: r})
			continue
		}
		d.Recipients = append(d.Recipients, schedule.Recipient{Webhook: Address(r), Secret: "ops"})
	}
	return d
}

// Apply saves a definition.
func (w *World) Apply(d schedule.Definition) {
	_, err := w.Kit(nil).Editor().Apply(background, d, "ann", 0)
	w.must(err)
}

// RunOf reads the run of a schedule's first due occurrence.
func (w *World) RunOf(id string) schedule.Run {
	r, err := w.Kit(nil).Store().Run(background, schema.RunID(id, schedule.OccurrenceKey(FirstDue)))
	w.must(err)
	return r
}

func endedFirst(w *World) string {
	r := w.RunOf("s")
	return string(r.State) + " " + r.ErrorCode
}

// sender may die between its intent and the answer: what nobody can know, the run says.
var unknownToo = []string{"failed delivery_unknown"}

func deliveryScenarios() []Scenario {
	return []Scenario{
		{Name: "happy", Half: "delivery", Ended: endedFirst, Want: "succeeded", Or: unknownToo, Drive: func(w *World) {
			w.Apply(Definition("s", "a@example.com", "b"))
			w.For(31 * time.Minute)
		}},
	}
}
