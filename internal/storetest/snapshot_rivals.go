package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
)

// month writes a place's world and reads its run.
func (b *bench) month(t testing.TB, state string, changes row) (place, snapshot.Run) {
	t.Helper()
	p := b.place()
	b.write(t, monthWorld(p, state, changes))
	return p, b.monthRun(t, p)
}

func (b *bench) monthRun(t testing.TB, p place) snapshot.Run {
	t.Helper()
	r, err := b.ledger().Run(context.WithoutCancel(t.Context()), p.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds demands the slots that a place's owner has.
func (b *bench) holds(t *testing.T, p place, slots, backfills []string) {
	t.Helper()
	c, err := b.ledger().Caps(t.Context(), p.schedule)
	slices.Sort(slots)
	slices.Sort(backfills)
	if err != nil || !slices.Equal(c.Slots, slots) || !slices.Equal(c.Backfills, backfills) {
		t.Errorf("slots %v, backfills %v, %v; want %v and %v", c.Slots, c.Backfills, err, slots, backfills)
	}
}

// refusedWith demands a conflict and hands over what it tells.
func refusedWith(t *testing.T, err error) told {
	t.Helper()
	c, ok := conflictIn(err)
	if !ok {
		t.Fatalf("got %v, want a Conflict", err)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var others = []string{"other-1", "other-2"}

func byAnn(reason string) snapshot.Cancellation {
	return snapshot.Cancellation{Reason: reason, By: "ann@example.com", At: wall}
}

func snapshotRivals(t *testing.T, b *bench) {
	t.Run("N1 cancel and publish", func(t *testing.T) { cancelOrPublish(t, b) })
	t.Run("N2 two dispatchers at a cap", func(t *testing.T) { atTheCap(t, b) })
	t.Run("N4 a frozen job thaws", func(t *testing.T) { thawed(t, b) })
	t.Run("N15 one chunk from two invocations", func(t *testing.T) { twins(t, b) })
	t.Run("N16 publish and roll back", func(t *testing.T) { publishOrRollBack(t, b) })
	t.Run("N17 cancel and claim", func(t *testing.T) { cancelOrClaim(t, b) })
	t.Run("planners plan a month once", func(t *testing.T) {
		p := b.place()
		lost := contest(t, 8, func(ctx context.Context, i int) error {
			return b.rival().ledger().Plan(ctx, firstPlanning(p, fmt.Sprintf("planner-%d", i)))
		})
		for _, c := range lost {
			if (c.snap == nil || c.snap.Version != 1) && (c.head == nil || c.head.Latest != 1) {
				t.Errorf("a loser does not learn what stands: %+v", c)
			}
		}
		runs, err := b.ledger().Versions(t.Context(), p.period())
		if h, herr := b.ledger().Head(t.Context(), p.period()); err != nil || herr != nil || len(runs) != 1 || h.Latest != 1 || h.Active != 1 {
			t.Errorf("%d versions, head %+v, %v, %v; want one", len(runs), h, err, herr)
		}
	})
}

// firstPlanning plans the first version of a month.
func firstPlanning(p place, token string) snapshot.Planning {
	a := planningOf(p, snapshot.Plan)
	a.Head, a.Run.Version, a.Token = snapshot.Head{Period: p.period()}, 1, token
	return a
}

// cancelOrPublish lets either come first, then both at once: exactly one of them has its way.
func cancelOrPublish(t *testing.T, b *bench) {
	publish := func(ctx context.Context, b *bench, p place, r snapshot.Run) error {
		return b.ledger().Publish(ctx, r, snapshot.Pointer{Period: p.period(), Version: 3}, wall)
	}
	t.Run("cancel first", func(t *testing.T) {
		p, r := b.month(t, "validating", nil)
		must(t, b.ledger().Cancel(t.Context(), r, byAnn(snapshot.ReasonOperator)))
		before := b.read(t, p)
		if c := refusedWith(t, publish(t.Context(), b, p, r)); c.snap == nil || c.snap.State != snapshot.Cancelled {
			t.Errorf("the refusal tells %+v, want the cancelled run", c)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("a refused publication changed rows:\n%s", d)
		}
	})
	t.Run("publish first", func(t *testing.T) {
		p, r := b.month(t, "validating", nil)
		must(t, publish(t.Context(), b, p, r))
		before := b.read(t, p)
		if c := refusedWith(t, b.ledger().Cancel(t.Context(), r, byAnn(snapshot.ReasonOperator))); c.snap == nil || c.snap.State != snapshot.Published {
			t.Errorf("the refusal tells %+v, want the published run", c)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("a refused cancellation changed rows:\n%s", d)
		}
	})
	t.Run("at once", func(t *testing.T) {
		p, r := b.month(t, "validating", nil)
		contest(t, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				return publish(ctx, b.rival(), p, r)
			}
			return b.rival().ledger().Cancel(ctx, r, byAnn(snapshot.ReasonOperator))
		})
		at, err := b.ledger().Pointer(t.Context(), p.period())
		now := b.monthRun(t, p)
		if err != nil || (now.State == snapshot.Published) != (at.Version == 4) || !now.Final() {
			t.Errorf("the run is %s and version %d current, %v", now.State, at.Version, err)
		}
		b.holds(t, p, slices.Clone(others), []string{"other-2"})
	})
}

// atTheCap has two dispatchers claim two runs for one slot, and many claim one run.
func atTheCap(t *testing.T, b *bench) {
	t.Run("one slot, two runs", func(t *testing.T) {
		p := b.place()
		b.write(t, monthWorld(p, "planned", nil).add(p.capsKey(), ownerRow(p, []string{"a", "b", "c", "d"}, nil).with(row{schema.BackfillCap: 0})).add(p.versionKey(3), monthRow(p, "planned")))
		runs, err := b.ledger().Versions(t.Context(), p.period())
		if err != nil || len(runs) != 2 {
			t.Fatalf("%d versions, %v; want 2", len(runs), err)
		}
		lost := contest(t, 2, func(ctx context.Context, i int) error {
			_, err := b.rival().ledger().Claim(ctx, runs[i], snapshot.Owner{ID: p.schedule, Cap: 5}, wall)
			return err
		})
		for _, c := range lost {
			if c.caps == nil || len(c.caps.Slots) != 5 {
				t.Errorf("the loser is told %+v, want the caps with 5 slots taken", c)
			}
		}
		c, err := b.ledger().Caps(t.Context(), p.schedule)
		if err != nil || len(c.Slots) != 5 {
			t.Errorf("%v, %v; want 5 admitted", c.Slots, err)
		}
		for i := range runs {
			now, err := b.ledger().Run(t.Context(), runs[i].ID())
			if err != nil || now.Failures != 1 || now.Admitted() != slices.Contains(c.Slots, now.ID()) {
				t.Errorf("%s is %s with %d failures, %v; want a slot for who is admitted, and no failed attempt", now.ID(), now.State, now.Failures, err)
			}
		}
	})
	t.Run("one run, eight dispatchers", func(t *testing.T) {
		p, r := b.month(t, "planned", nil)
		contest(t, 8, func(ctx context.Context, i int) error {
			_, err := b.rival().ledger().Claim(ctx, r, snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: 2}, wall.Add(time.Duration(i)*time.Millisecond))
			return err
		})
		if now := b.monthRun(t, p); now.Job != 4 || now.State != snapshot.Queued {
			t.Errorf("job %d, %s; want the next job once", now.Job, now.State)
		}
		b.holds(t, p, append([]string{p.snapshot()}, others...), []string{"other-2"})
	})
	t.Run("what a claim hands back is the row as it stands", func(t *testing.T) {
		p, r := b.month(t, "failed", nil)
		got, err := b.ledger().Claim(t.Context(), r, snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: 2}, wall.Add(time.Microsecond))
		if now := b.monthRun(t, p); err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", now) {
			t.Errorf("%+v, %v\nwant %+v", got, err, now)
		}
	})
}

// thawed lets a job that was taken for lost write again after the next one has begun.
func thawed(t *testing.T, b *bench) {
	p, frozen := b.month(t, "running", nil)
	l, ctx := b.ledger(), t.Context()
	must(t, l.Fail(ctx, frozen, snapshot.Settlement{Code: failure.SourceUnavailable, Text: "no answer", NextAt: wall}, wall))
	second, err := l.Claim(ctx, b.monthRun(t, p), snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: 2}, wall)
	must(t, err)
	second, err = l.Begin(ctx, second, snapshot.Beginning{Mode: snapshot.Chunked, Generation: 2, Cursor: frozen.Cursor, Now: wall, Basis: frozen.Basis})
	must(t, err)
	must(t, l.Commit(ctx, second, snapshot.Chunk{Number: 13, Object: "of the second"}, snapshot.Cursor{Chunk: 13, Key: "i:1300", Rows: 1300}, wall))
	before := b.read(t, p)
	for name, write := range map[string]func() error{
		"commit": func() error {
			return l.Commit(ctx, frozen, snapshot.Chunk{Number: 13, Object: "of the first"}, snapshot.Cursor{Chunk: 13, Key: "i:1300", Rows: 1300}, wall)
		},
		"commit after the other's cursor": func() error {
			at := frozen
			at.Cursor = snapshot.Cursor{Chunk: 13, Key: "i:1300", Rows: 1300}
			return l.Commit(ctx, at, snapshot.Chunk{Number: 14, Object: "of the first"}, snapshot.Cursor{Chunk: 14, Key: "i:1400", Rows: 1400}, wall)
		},
		"begin validation": func() error { _, err := l.BeginValidation(ctx, frozen, wall); return err },
		"fail": func() error {
			return l.Fail(ctx, frozen, snapshot.Settlement{Code: failure.SourceUnavailable, Text: "x"}, wall)
		},
		"resume": func() error { _, err := l.Resume(ctx, frozen); return err },
		"attach": func() error { return l.Attach(ctx, frozen, "arn:old") },
	} {
		c := refusedWith(t, write())
		if c.snap == nil || c.snap.Job != 4 {
			t.Errorf("%s: the refusal tells %+v, want the run in its fourth job", name, c)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Errorf("%s by a frozen job changed rows:\n%s", name, d)
		}
	}
}

// twins commit the same chunk of one job under two object keys: one record, and the other reads where the cursor is.
func twins(t *testing.T, b *bench) {
	p, r := b.month(t, "running", nil)
	lost := contest(t, 4, func(ctx context.Context, i int) error {
		return b.rival().ledger().Commit(ctx, r, snapshot.Chunk{Number: 13, Object: fmt.Sprintf("token-%d", i)}, snapshot.Cursor{Chunk: 13, Key: "i:1300", Rows: 1300}, wall)
	})
	for _, c := range lost {
		if c.snap == nil || c.snap.Cursor.Chunk != 13 {
			t.Errorf("a loser is told %+v, want the run with its cursor after the chunk", c)
		}
	}
	list, err := b.ledger().Chunks(t.Context(), p.snapshot(), 2, 0, 10)
	if err != nil || len(list) != 1 {
		t.Errorf("%d chunks, %v; want one", len(list), err)
	}
	// A record without its cursor cannot come to be; if it stood, it would not be overwritten.
	lone := b.place()
	b.write(t, monthWorld(lone, "running", nil).add(lone.chunkKey(), row{schema.Object: "another's"}))
	before := b.read(t, lone)
	refusedWith(t, b.ledger().Commit(t.Context(), b.monthRun(t, lone), snapshot.Chunk{Number: 13, Object: "ours"}, snapshot.Cursor{Chunk: 13, Key: "i:1300"}, wall))
	if d := diff(b.read(t, lone), before); d != "" {
		t.Error(d)
	}
}

// publishOrRollBack refuses a roll back while a version is active; afterwards it moves the pointer and is recorded.
func publishOrRollBack(t *testing.T, b *bench) {
	staged := func(t *testing.T, state string, head row) (place, snapshot.Run, snapshot.Run, snapshot.Pointer) {
		t.Helper()
		p := b.place()
		b.write(t, monthWorld(p, state, nil).add(p.headKey(), monthHead(p).with(head)).add(p.versionKey(2), monthRow(p, "published").with(row{schema.Manifest: "22"})).add(p.versionKey(3), monthRow(p, "failed")))
		second, err := b.ledger().Run(t.Context(), snapshot.Run{Period: p.period(), Version: 2}.ID())
		must(t, err)
		at, err := b.ledger().Pointer(t.Context(), p.period())
		must(t, err)
		return p, b.monthRun(t, p), second, at
	}
	back := func(ctx context.Context, b *bench, p place, at snapshot.Pointer, to snapshot.Run) error {
		return b.ledger().RollBack(ctx, at, to, monthAct(p.schedule, "roll back"))
	}
	t.Run("while a version is active", func(t *testing.T) {
		p, _, second, at := staged(t, "validating", nil)
		before := b.read(t, p)
		if c := refusedWith(t, back(t.Context(), b, p, at, second)); c.head == nil || c.head.Active != 4 {
			t.Errorf("the refusal tells %+v, want the head with its active version", c)
		}
		if d := diff(b.read(t, p), before); d != "" {
			t.Error(d)
		}
	})
	t.Run("afterwards", func(t *testing.T) {
		p, r, second, at := staged(t, "validating", nil)
		must(t, b.ledger().Publish(t.Context(), r, at, wall))
		before := b.read(t, p)
		if c := refusedWith(t, back(t.Context(), b, p, at, second)); c.pointer == nil || c.pointer.Version != 4 {
			t.Errorf("with an old pointer the refusal tells %+v, want the pointer as it stands", c)
		}
		now, err := b.ledger().Pointer(t.Context(), p.period())
		must(t, err)
		must(t, back(t.Context(), b, p, now, second))
		must(t, back(t.Context(), b, p, now, second)) // sent again: the act is there
		want := before.after([]change{actRow(monthAct(p.schedule, "roll back")),
			{key: p.pointerKey(), set: row{schema.Version: 2, schema.Previous: 4, schema.Manifest: "22", schema.MovedAt: actAt, schema.MovedBy: "ann@example.com", schema.Reason: "holidays"}},
			{key: schema.MoveKey(p.schedule, typ, may.String(), schema.Time(actAt), "act-1"), set: row{schema.Version: 2, schema.Previous: 4, schema.Manifest: "22", schema.Who: "ann@example.com", schema.Why: "holidays"}}})
		if d := diff(b.read(t, p), want); d != "" {
			t.Error(d)
		}
	})
	t.Run("to a version that is not published", func(t *testing.T) {
		p, _, _, at := staged(t, "published", row{schema.Active: nil})
		third, err := b.ledger().Run(t.Context(), snapshot.Run{Period: p.period(), Version: 3}.ID())
		must(t, err)
		if c := refusedWith(t, back(t.Context(), b, p, at, third)); c.snap == nil || c.snap.State != snapshot.Failed {
			t.Errorf("the refusal tells %+v, want the run as it stands", c)
		}
	})
	t.Run("of a month without a version", func(t *testing.T) {
		p := b.place()
		refusedWith(t, back(t.Context(), b, p, snapshot.Pointer{Period: p.period()}, snapshot.Run{Period: p.period(), Version: 1}))
		if d := diff(b.read(t, p), world{}); d != "" {
			t.Error(d)
		}
	})
	t.Run("at once", func(t *testing.T) {
		p, r, second, at := staged(t, "validating", nil)
		contest(t, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				return b.rival().ledger().Publish(ctx, r, at, wall)
			}
			return back(ctx, b.rival(), p, at, second)
		})
		if now, err := b.ledger().Pointer(t.Context(), p.period()); err != nil || now.Version != 4 || now.Previous != 3 {
			t.Errorf("%+v, %v; want version 4 after 3", now, err)
		}
	})
}

// cancelOrClaim has a claim come between a cancellation's read and its write: told so, the cancellation goes on with the run
// as it stands, and the slot is free.
func cancelOrClaim(t *testing.T, b *bench) {
	p, read := b.month(t, "planned", nil)
	_, err := b.ledger().Claim(t.Context(), read, snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: 2}, wall)
	must(t, err)
	c := refusedWith(t, b.ledger().Cancel(t.Context(), read, byAnn(snapshot.ReasonOperator)))
	if c.snap == nil || c.snap.State != snapshot.Queued {
		t.Fatalf("the refusal tells %+v, want the queued run", c)
	}
	must(t, b.ledger().Cancel(t.Context(), *c.snap, byAnn(snapshot.ReasonOperator)))
	if now := b.monthRun(t, p); now.State != snapshot.Cancelled {
		t.Errorf("the run is %s, want cancelled", now.State)
	}
	b.holds(t, p, slices.Clone(others), []string{"other-2"})

	p, read = b.month(t, "planned", nil)
	contest(t, 2, func(ctx context.Context, i int) error {
		if i == 0 {
			_, err := b.rival().ledger().Claim(ctx, read, snapshot.Owner{ID: p.schedule, Cap: 5, Backfill: 2}, wall)
			return err
		}
		return b.rival().ledger().Cancel(ctx, read, byAnn(snapshot.ReasonOperator))
	})
	now := b.monthRun(t, p)
	if caps, err := b.ledger().Caps(t.Context(), p.schedule); err != nil || slices.Contains(caps.Slots, p.snapshot()) != now.Admitted() {
		t.Errorf("the run is %s and the slots %v, %v", now.State, caps.Slots, err)
	}
}
