package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// onceDone is an act that is done when it is done, or when the product refuses it because it was done before.
func onceDone(do func(context.Context, Kit) error) func(context.Context, Kit) error {
	return func(ctx context.Context, t Kit) error {
		if err := do(ctx, t); err != nil && !snapshot.IsConflict(err) {
			return err
		}
		return nil
	}
}

func cancelling(id string) func(context.Context, Kit) error {
	return onceDone(func(ctx context.Context, t Kit) error {
		_, err := t.MonthEditor().Cancel(ctx, id, "not wanted", "ann")
		return err
	})
}

// requesting asks for another version, under a key: asked again, it makes no second one.
func requesting(ctx context.Context, t Kit) error {
	_, _, err := t.MonthEditor().RequestOnce(ctx, inFebruary, "the query was wrong", "ann", snapshot.Once{Who: "ann", Key: "k1", What: "rerun"})
	return err
}

// backfilling asks for the months of which nothing is published, under a key, and again for what no time was left for.
func backfilling(ctx context.Context, t Kit) error {
	months := snapshot.Range{Series: []snapshot.Series{inFebruary.Series}, From: monthOf("2040-01"), To: monthOf("2040-02")}
	list, err := t.MonthEditor().BackfillOnce(ctx, months, "it was missing", "ann", snapshot.Once{Who: "ann", Key: "k1", What: "backfill"})
	for _, p := range list {
		if strings.Contains(p.Why, "time was nearly up") {
			return errors.New(p.Why)
		}
	}
	return err
}

// cancelAt is a scenario in which a person cancels a month that has come to a state. A fault may let the month go on before
// the person asks again: then it is published.
func cancelAt(name string, state snapshot.State, besides func(Row) bool) Scenario {
	return Scenario{Name: "cancelled " + name, Want: "2040-02 v1 cancelled operator, cancel 2040-02 v1", Or: []string{"2040-02 v1 published g1"}, Drive: func(w *World) {
		w.defined(Delays("EWR", "2040-02"))
		w.Reach(name, w.inState(february1, state, besides))
		w.between("person", cancelling(february1))
	}}
}

func actScenarios() []Scenario {
	return []Scenario{
		cancelAt("while planned", snapshot.Planned, nil),
		cancelAt("while queued", snapshot.Queued, nil),
		cancelAt("before its first chunk", snapshot.Running, nil),
		cancelAt("after its first chunk", snapshot.Running, func(it Row) bool { return figure(it, schema.Cursor) == 1 }),
		cancelAt("while validating", snapshot.Validating, nil),
		cancelAt("before publication", snapshot.Validating, func(it Row) bool { return Text(it, schema.Verdict) == "passed" }),
		{Name: "cancelled before its next attempt", Want: "2040-02 v1 cancelled operator f1, cancel 2040-02 v1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceUnavailable, 1)
			w.attempted(february1)
			w.Insist(w.Now(), "person", cancelling(february1))
		}},
		{Name: "defined by a person", Ended: pointing, Want: "2040-02 v1 published g1; 1 before 0", Drive: func(w *World) {
			w.Insist(w.Now(), "person", func(ctx context.Context, t Kit) error {
				c, err := t.MonthEditor().SaveDefinition(ctx, single("2040-02"), "ann", 0)
				if err == nil && c.Version != 1 {
					err = fmt.Errorf("it was saved as version %d", c.Version)
				}
				return err
			})
			w.Reach("that it is saved", func() bool { return w.saved })
			w.planNow()
		}},
		{Name: "rerun after an edit", Ended: pointing, Want: "2040-02 v1 published g1, 2040-02 v2 published g1, request 2040-02 v2; 2 before 1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.attempted(february1)
			d := single("2040-02")
			d.Query = strings.Replace(d.Query, "select id", "select  id", 1)
			w.Define(d)
			w.quiet()
			w.Insist(w.Now(), "person", requesting)
		}},
		{Name: "rerun of a month that failed for good", Ended: pointing, Want: "2040-02 v1 failed source_access_denied f1, 2040-02 v2 published g1, request 2040-02 v2; 2 before 0", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceAccessDenied, 1)
			w.attempted(february1)
			w.Insist(w.Now(), "person", requesting)
		}},
		{Name: "rolled back", Ended: pointing, Want: "2040-02 v1 published g1, 2040-02 v2 published g1, roll back 2040-02 v1, request 2040-02 v2; 1 before 2", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.attempted(february1)
			w.Data.Load("EWR 2040-02", 1, 2)
			w.rerun(february(2))
			w.Insist(w.Now(), "person", onceDone(func(ctx context.Context, t Kit) error {
				_, err := t.MonthEditor().RollBack(ctx, inFebruary, 1, "the second is wrong", "ann")
				return err
			}))
		}},
		{Name: "a check is accepted", Ended: pointing, Want: "2040-02 v1 failed validation_refused f1, 2040-02 v2 published g1, accept checks 2040-02 v2; 2 before 0", Drive: func(w *World) {
			w.defined(refusing())
			w.attempted(february1)
			w.Insist(w.Now(), "person", func(ctx context.Context, t Kit) error {
				_, _, err := t.MonthEditor().AcceptOnce(ctx, february1, []string{"type:delay"}, "they are numbers", "ann", snapshot.Once{Who: "ann", Key: "k1", What: "accept"})
				return err
			})
		}},
		{Name: "tried again now", Want: "2040-02 v1 published g1 f1, retry now 2040-02 v1", Drive: func(w *World) {
			w.defined(single("2040-02"))
			w.refuse("Source.View", failure.SourceUnavailable, 1)
			w.attempted(february1)
			w.Insist(w.Now(), "person", onceDone(func(ctx context.Context, t Kit) error {
				_, err := t.MonthEditor().RetryNow(ctx, february1, "the source is back", "ann")
				return err
			}))
		}},
		{Name: "backfill by a person", Want: "2040-01 v1 cancelled operator, 2040-01 v2 published g1, 2040-02 v1 published g1, cancel 2040-01 v1, request 2040-01 v2", Drive: func(w *World) {
			w.defined(single("2040-01"))
			w.attempted(february1)
			w.must(cancelling("EWR_delays_2040-01_v1")(background, w.Kit(nil)))
			w.quiet()
			w.Insist(w.Now(), "person", backfilling)
		}},
		{Name: "switched off while running", Want: "2040-02 v1 cancelled policy", Or: []string{"2040-02 v1 published g1"}, Drive: func(w *World) {
			w.defined(Delays("EWR", "2040-02"))
			w.Reach("running", w.inState(february1, snapshot.Running, nil))
			d := Delays("EWR", "2040-02")
			d.Off = true
			w.Define(d)
			w.Workers = max(w.Workers, 2)
			if w.Choose == nil {
				w.Choose = preferring(rulePlan)
			}
			w.fire(rulePlan)
		}},
		{Name: "leftovers are removed", Ended: func(w *World) string {
			return settledMonths(w) + "; " + w.left("EWR_delays_2040-01_v1") + "; " + w.left(february1)
		}, Want: "2040-01 v1 cancelled operator, 2040-02 v1 published g1, cancel 2040-01 v1; ; chunk chunk manifest", Drive: func(w *World) {
			w.defined(Delays("EWR", "2040-01"))
			w.attempted(february1)
			w.leave(february1, "left over")
			w.leave("EWR_delays_2040-01_v1", "half written")
			w.must(cancelling("EWR_delays_2040-01_v1")(background, w.Kit(nil)))
			w.quiet()
			w.For(8 * 24 * time.Hour)
			w.tickUntil(ruleReconcile, func() bool {
				for _, it := range w.months.runs {
					if Text(it, schema.SettledShard) != "" {
						return false
					}
				}
				return true
			})
		}},
	}
}
