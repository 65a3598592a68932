package storetest

import (
	"slices"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// slots are given back once, however often that is asked for.
func slots(t *testing.T, b *bench) {
	t.Run("N3 a terminal event three times", func(t *testing.T) {
		for name, end := range map[string]func(snapshot.Run) error{
			"fail": func(r snapshot.Run) error {
				return b.ledger().Fail(t.Context(), r, snapshot.Settlement{Code: failure.SourceUnavailable, Text: "no answer"}, wall)
			},
			"publish": func(r snapshot.Run) error {
				return b.ledger().Publish(t.Context(), r, snapshot.Pointer{Period: r.Period, Version: 3}, wall)
			},
			"cancel": func(r snapshot.Run) error {
				return b.ledger().Cancel(t.Context(), r, byAnn(snapshot.ReasonOperator))
			},
		} {
			p, r := b.month(t, "validating", nil)
			must(t, end(r))
			once := b.read(t, p)
			for range 2 {
				must(t, end(r))
				must(t, b.ledger().Free(t.Context(), p.schedule, p.snapshot()))
			}
			if d := diff(b.read(t, p), once); d != "" {
				t.Errorf("%s three times changed rows:\n%s", name, d)
			}
			b.holds(t, p, slices.Clone(others), []string{"other-2"})
		}
	})
	t.Run("freeing looks at the run", func(t *testing.T) {
		for _, state := range snapshot.Runs.States {
			p := b.place()
			w := monthWorld(p, string(state), nil)
			w.add(p.capsKey(), ownerRow(p, append([]string{p.snapshot()}, others...), []string{p.snapshot()}))
			b.write(t, w)
			r := b.monthRun(t, p)
			err := b.ledger().Free(t.Context(), p.schedule, p.snapshot())
			if r.Admitted() {
				if c := refusedWith(t, err); c.snap == nil || c.snap.State != state {
					t.Errorf("%s: the refusal tells %+v, want the run", state, c)
				}
				b.holds(t, p, append([]string{p.snapshot()}, others...), []string{p.snapshot()})
				continue
			}
			must(t, err)
			want := w.after([]change{slotsOf(p, others, nil)})
			if d := diff(b.read(t, p), want); d != "" {
				t.Errorf("%s: %s", state, d)
			}
		}
	})
	t.Run("freeing what no row stands for", func(t *testing.T) {
		p := b.place()
		b.write(t, world{}.add(p.capsKey(), ownerRow(p, []string{"no id of ours", p.snapshot(), "other-1"}, nil)))
		must(t, b.ledger().Free(t.Context(), p.schedule, "no id of ours"))
		must(t, b.ledger().Free(t.Context(), p.schedule, p.snapshot()))
		b.holds(t, p, []string{"other-1"}, nil)
	})
	t.Run("freeing makes no owner", func(t *testing.T) {
		p := b.place()
		refusedWith(t, b.ledger().Free(t.Context(), p.schedule, p.snapshot()))
		refusedWith(t, b.ledger().Free(t.Context(), p.schedule, "no id of ours"))
		if d := diff(b.read(t, p), world{}); d != "" {
			t.Error(d)
		}
	})
	t.Run("N2 caps that were changed since they were read", func(t *testing.T) {
		for name, c := range map[string]struct {
			backfill bool
			read     snapshot.Owner
			stands   int // for backfills
		}{
			"all":                              {false, snapshot.Owner{Cap: 9, Backfill: 2}, 2},
			"all, without backfills":           {false, snapshot.Owner{Cap: 9}, 0},
			"all, for a backfill":              {true, snapshot.Owner{Cap: 9, Backfill: 2}, 2},
			"backfills":                        {true, snapshot.Owner{Cap: 5, Backfill: 3}, 2},
			"backfills, where there were none": {false, snapshot.Owner{Cap: 5}, 2},
			"backfills, under a current month": {false, snapshot.Owner{Cap: 5, Backfill: 3}, 2},
		} {
			p, r := b.month(t, "planned", row{schema.Backfill: c.backfill})
			b.write(t, world{}.add(p.capsKey(), ownerRow(p, others, []string{"other-2"}).with(row{schema.BackfillCap: c.stands})))
			before := b.read(t, p)
			_, err := b.ledger().Claim(t.Context(), r, c.read, wall)
			if told := refusedWith(t, err); told.caps == nil || told.caps.Cap != 5 || told.caps.Owner.Backfill != c.stands {
				t.Errorf("%s: the refusal tells %+v, want the caps as they stand", name, told)
			}
			if d := diff(b.read(t, p), before); d != "" {
				t.Errorf("%s: a refused claim changed rows:\n%s", name, d)
			}
		}
	})
	t.Run("an owner comes with its first plan, and is configured", func(t *testing.T) { owners(t, b) })
}

func owners(t *testing.T, b *bench) {
	p := b.place()
	caps, err := b.ledger().Caps(t.Context(), p.schedule)
	if err != nil || caps.ID != p.schedule || caps.Cap != 5 || caps.Owner.Backfill != 2 || len(caps.Slots) > 0 {
		t.Errorf("%+v, %v; want the default caps", caps, err)
	}
	must(t, b.ledger().Plan(t.Context(), firstPlanning(p, "planner-1")))
	made := row{schema.Name: p.schedule, schema.Cap: 5, schema.BackfillCap: 2, schema.Slots: row{}, schema.Backfill: row{}, schema.DirKind: "owner", schema.DirName: p.schedule}
	if got, want := b.read(t, p)[p.capsKey()], (world{}).add(p.capsKey(), made)[p.capsKey()]; len(diffItem(p.capsKey(), got, want)) > 0 {
		t.Errorf("the owner's item is %s, want %s", show(got), show(want))
	}
	r, err := b.ledger().Run(t.Context(), snapshot.Run{Period: p.period(), Version: 1}.ID())
	must(t, err)
	_, err = b.ledger().Claim(t.Context(), r, caps.Owner, wall)
	must(t, err)
	o := snapshot.Owner{ID: p.schedule, Name: "Airports", Cap: 9, Backfill: 3}
	must(t, b.ledger().SaveOwner(t.Context(), o, monthAct(p.schedule, "save owner")))
	must(t, b.ledger().SaveOwner(t.Context(), o, monthAct(p.schedule, "save owner"))) // sent again
	caps, err = b.ledger().Caps(t.Context(), p.schedule)
	if err != nil || caps.Owner != o || !slices.Equal(caps.Slots, []string{r.ID()}) {
		t.Errorf("%+v, %v; want %+v with its slot kept", caps, err, o)
	}
	q := b.place()
	o.ID = q.schedule
	must(t, b.ledger().SaveOwner(t.Context(), o, monthAct(q.schedule, "save owner")))
	if caps, err = b.ledger().Caps(t.Context(), q.schedule); err != nil || caps.Owner != o || len(caps.Slots)+len(caps.Backfills) > 0 {
		t.Errorf("%+v, %v; want %+v", caps, err, o)
	}
	a := firstPlanning(q, "planner-1")
	must(t, b.ledger().Plan(t.Context(), a))
	if caps, err = b.ledger().Caps(t.Context(), q.schedule); err != nil || caps.Owner != o {
		t.Errorf("planning changed a configured owner to %+v, %v", caps.Owner, err)
	}
}
