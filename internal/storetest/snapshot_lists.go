package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/store"
)

// snapshotLists has a table of its own: every list is compared whole. other is a store of the table Schedules.
func snapshotLists(t *testing.T, other, shared *bench) {
	b := newSnapshotsBench(t, Harness{DB: shared.tap.DynamoDB.(Client), Advance: shared.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	var all []place
	for i := range 7 {
		p := place{fmt.Sprintf("w%d", i), ""}
		all = append(all, p)
	}
	t.Run("work of an owner", func(t *testing.T) { workLists(t, b, all) })
	t.Run("by shard", func(t *testing.T) { shardLists(t, b, all) })
	t.Run("a series' months", func(t *testing.T) { monthLists(t, b) })
	t.Run("chunks", func(t *testing.T) { chunkLists(t, b) })
	t.Run("names", func(t *testing.T) { nameLists(t, b) })
	t.Run("workspaces", func(t *testing.T) { workspaceList(t, other, b) })
}

// workLists puts runs of several workspaces under one owner.
func workLists(t *testing.T, b *bench, all []place) {
	const owner = "airports"
	l, ctx := b.ledger(), t.Context()
	for i, p := range all {
		month := func(back int) time.Time { return time.Date(2013, time.Month(5-back), 1, 0, 0, 0, 0, time.UTC) }
		kind := i%2 == 1
		b.write(t, world{}.
			add(p.versionKey(1), monthRow(p, "planned").with(row{schema.Work: schema.WorkPlanned(owner, kind), schema.WorkAt: month(i)})).
			add(p.versionKey(2), monthRow(p, "failed").with(row{schema.Work: schema.WorkRetry(owner, kind), schema.WorkAt: wall.Add(time.Duration(3-i) * time.Minute)})).
			add(p.versionKey(3), monthRow(p, "running").with(row{schema.Work: schema.WorkOpen(owner), schema.WorkAt: wall.Add(-time.Duration(i) * time.Minute)})).
			add(p.versionKey(5), monthRow(p, "published")))
	}
	ids := func(version int, places ...int) (list []string) {
		for _, i := range places {
			list = append(list, snapshot.Run{Period: all[i].period(), Version: version}.ID())
		}
		return list
	}
	for name, c := range map[string]struct {
		got  func() ([]string, error)
		want []string
	}{
		"planned current":        {func() ([]string, error) { return l.Planned(ctx, owner, false, 10) }, ids(1, 6, 4, 2, 0)},
		"planned backfills":      {func() ([]string, error) { return l.Planned(ctx, owner, true, 10) }, ids(1, 5, 3, 1)},
		"two planned":            {func() ([]string, error) { return l.Planned(ctx, owner, false, 2) }, ids(1, 6, 4)},
		"retries due":            {func() ([]string, error) { return l.Retries(ctx, owner, false, wall, 10) }, ids(2, 6, 4)},
		"backfills' retries due": {func() ([]string, error) { return l.Retries(ctx, owner, true, wall, 10) }, ids(2, 5, 3)},
		"one retry":              {func() ([]string, error) { return l.Retries(ctx, owner, true, wall, 1) }, ids(2, 5)},
		"open":                   {func() ([]string, error) { return l.Open(ctx, owner) }, ids(3, 6, 5, 4, 3, 2, 1, 0)},
		"another owner's":        {func() ([]string, error) { return l.Open(ctx, "nobody") }, nil},
	} {
		got, err := c.got()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	b.write(t, world{}.add(schema.CapsKey("stray"), row{schema.Work: schema.WorkOpen("stray"), schema.WorkAt: wall}))
	if _, err := l.Open(ctx, "stray"); err == nil {
		t.Error("an owner's item was taken for a run")
	}
}

// shardLists reads the three lists that are spread over shards, page by page.
func shardLists(t *testing.T, b *bench, all []place) {
	l, ctx := b.ledger(), t.Context()
	var due, late, left, lost []string
	for i, p := range all {
		soon := time.Duration(i-3) * time.Hour // three come too early
		run, failed := snapshot.Run{Period: p.period(), Version: 5}.ID(), snapshot.Run{Period: p.period(), Version: 6}.ID()
		b.write(t, world{}.add(schema.SeriesKey(p.schedule, typ), row{schema.PlanShard: schema.PlanShardOf(p.schedule, typ), schema.PlanAt: mayEnd.Add(soon),
			schema.LateShard: schema.LateShardOf(p.schedule, typ), schema.LateAt: mayEnd.Add(soon)}).
			add(p.headKey(), monthHead(p).with(row{schema.LateAt: mayEnd.Add(soon)})).
			add(p.versionKey(5), monthRow(p, "published").with(row{schema.SettledShard: schema.SettledShardOf(run), schema.SettledAt: wall.Add(soon)})).
			add(p.versionKey(6), monthRow(p, "failed").with(row{schema.NextAttempt: nil, schema.Work: nil, schema.WorkAt: nil,
				schema.SettledShard: schema.FailedShardOf(failed), schema.SettledAt: wall.Add(soon)})))
		if soon <= 0 {
			due = append(due, p.schedule)
			late = append(late, fmt.Sprint(p.schedule, " 2013-05 ", schema.Time(mayEnd.Add(soon))), fmt.Sprint(p.schedule, " 0000-00 ", schema.Time(mayEnd.Add(soon))))
			left, lost = append(left, run), append(lost, failed)
		}
	}
	for _, limit := range []int{1, 2, 100} {
		var gotDue, gotLate, gotLeft, gotLost []string
		for shard := range schema.Shards {
			gotDue = append(gotDue, pages(t, limit, func(from string) ([]snapshot.Series, string, error) {
				return l.DueSeries(ctx, shard, mayEnd, from, limit)
			},
				func(s snapshot.Series) string { return s.Workspace })...)
			gotLate = append(gotLate, pages(t, limit, func(from string) ([]snapshot.Lateness, string, error) { return l.Late(ctx, shard, mayEnd, from, limit) },
				func(x snapshot.Lateness) string {
					return fmt.Sprint(x.Workspace, " ", x.Month, " ", schema.Time(x.Since))
				})...)
			gotLeft = append(gotLeft, pages(t, limit, func(from string) ([]string, string, error) { return l.Leftovers(ctx, shard, wall, from, limit) }, self)...)
			gotLost = append(gotLost, pages(t, limit, func(from string) ([]string, string, error) { return l.Failures(ctx, shard, wall, from, limit) }, self)...)
		}
		for name, lists := range map[string][2][]string{"due": {gotDue, due}, "late": {gotLate, late}, "leftovers": {gotLeft, left}, "failures": {gotLost, lost}} {
			slices.Sort(lists[0])
			slices.Sort(lists[1])
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("%s, limit %d: %v, want %v", name, limit, lists[0], lists[1])
			}
		}
	}
	for range 2 {
		must(t, l.Cleaned(ctx, left[0]))
	}
	list, _, err := l.Leftovers(ctx, shardOf(left[0]), wall, "", 100)
	if err != nil || slices.Contains(list, left[0]) {
		t.Errorf("%v, %v; want %s cleaned", list, err, left[0])
	}
	for name, err := range map[string]error{
		"due":       third(l.DueSeries(ctx, 0, mayEnd, "nonsense", 1)),
		"late":      third(l.Late(ctx, 0, mayEnd, "nonsense", 1)),
		"leftovers": third(l.Leftovers(ctx, 0, mayEnd, "nonsense", 1)),
		"failures":  third(l.Failures(ctx, 0, mayEnd, "nonsense", 1)),
	} {
		if _, ok := err.(schedule.Problems); !ok {
			t.Errorf("%s with a cursor of nobody: %v, want Problems", name, err)
		}
	}
}

func third[T any](_ T, _ string, err error) error { return err }

func shardOf(run string) int {
	for i := range schema.Shards {
		if schema.SettledShardAt(i) == schema.SettledShardOf(run) {
			return i
		}
	}
	return -1
}

func monthLists(t *testing.T, b *bench) {
	p := b.place()
	w := world{}
	for back := range 3 {
		w.add(schema.HeadKey(p.schedule, typ, may.Add(-back).String()), row{schema.OwnerOf: p.schedule, schema.Latest: 4, schema.LatestState: "published", schema.LatestWhy: "x", schema.LateAt: lateSince})
		for v := 1; v <= 4; v++ {
			w.add(schema.SnapshotKey(p.schedule, typ, may.Add(-back).String(), v), monthRow(p, "published"))
		}
	}
	b.write(t, w.add(p.pointerKey(), current(p)).add(schema.SeriesKey(p.schedule, typ), row{schema.OwnerOf: p.schedule}))
	heads, err := b.ledger().Months(t.Context(), p.period().Series)
	var want []snapshot.Head
	for back := 2; back >= 0; back-- {
		at := p.period()
		at.Month = may.Add(-back)
		want = append(want, snapshot.Head{Period: at, Owner: p.schedule, Latest: 4, LatestState: "published", LatestWhy: "x", LateAt: lateSince})
	}
	if err != nil || !slices.Equal(heads, want) {
		t.Errorf("%+v, %v; want %+v", heads, err, want)
	}
	runs, err := b.ledger().Versions(t.Context(), p.period())
	var versions []int
	for _, r := range runs {
		versions = append(versions, r.Version)
		if r.Period != p.period() {
			t.Errorf("%s is of another month", r.ID())
		}
	}
	if err != nil || !slices.Equal(versions, []int{4, 3, 2, 1}) {
		t.Errorf("versions %v, %v; want the latest first", versions, err)
	}
}

func chunkLists(t *testing.T, b *bench) {
	p := b.place()
	w := world{}
	for _, n := range []int{1, 2, 3, 9, 10, 11, 99_999_999} {
		w.add(schema.ChunkKey(p.snapshot(), 2, n), row{schema.Object: fmt.Sprint("o", n), schema.Rows: 5, schema.Size: 50, schema.SHA: "ab", schema.FirstKey: "a", schema.LastKey: "b",
			schema.Sums: `{"x":"1.5"}`, schema.Nulls: `{"y":3}`, schema.SourceVersion: "v7", schema.Increasing: true})
	}
	b.write(t, w.add(schema.ChunkKey(p.snapshot(), 3, 1), row{schema.Object: "another generation"}))
	for _, c := range []struct {
		from, limit int
		want        []int
	}{{0, 100, []int{1, 2, 3, 9, 10, 11, 99_999_999}}, {1, 2, []int{1, 2}}, {3, 3, []int{3, 9, 10}}, {12, 1, []int{99_999_999}}, {1, 0, nil}} {
		list, err := b.ledger().Chunks(t.Context(), p.snapshot(), 2, c.from, c.limit)
		var got []int
		for _, ch := range list {
			got = append(got, ch.Number)
			want := snapshot.Chunk{Number: ch.Number, Object: fmt.Sprint("o", ch.Number), SHA256: "ab", Bytes: 50, Rows: 5, First: "a", Last: "b",
				Sums: map[string]string{"x": "1.5"}, Nulls: map[string]int64{"y": 3}, Source: "v7", Increasing: true}
			if !reflect.DeepEqual(ch, want) {
				t.Errorf("%+v, want %+v", ch, want)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("from %d, %d: %v, %v; want %v", c.from, c.limit, got, err, c.want)
		}
	}
}

// nameLists has more rows than a page of the directory.
func nameLists(t *testing.T, b *bench) {
	l, ctx := b.ledger(), t.Context()
	var owners, series, definitions []string
	if list, err := l.Owners(ctx); err != nil || len(list) != 1 || list[0] != (snapshot.Owner{ID: "default", Name: "default", Cap: 5, Backfill: 2}) {
		t.Errorf("%v, %v; want the default owner alone", list, err)
	}
	for i := range 103 {
		id := fmt.Sprintf("n%03d", i)
		must(t, l.SaveOwner(ctx, snapshot.Owner{ID: id, Name: id, Cap: 2, Backfill: 1}, monthAct(id, "save owner")))
		must(t, l.PutSeries(ctx, snapshot.SeriesRow{Series: snapshot.Series{Workspace: id, Type: typ}, Owner: id, Next: may}, time.Time{}))
		must(t, l.SaveDefinition(ctx, snapshot.Version{Number: 1, Definition: snapshot.Definition{Scope: snapshot.Scope{Owner: id}, Type: typ, Start: may}}, 0, monthAct("definition "+id, "save definition")))
		owners, series, definitions = append(owners, id+" 2 1"), append(series, id+" "+typ), append(definitions, id+" "+typ+" 1")
	}
	b.write(t, world{}.add(schema.CapsKey("gone"), row{schema.DirKind: "owner", schema.DirName: "aaa"}))
	b.overwrite(t, schema.CapsKey("gone"), nil)
	gotOwners, err := l.Owners(ctx)
	compare(t, "owners", err, texts(gotOwners, func(o snapshot.Owner) string { return fmt.Sprint(o.ID, " ", o.Cap, " ", o.Backfill) }), append(owners, "default 5 2"))
	gotSeries, err := l.SeriesNames(ctx)
	compare(t, "series", err, texts(gotSeries, func(s snapshot.Series) string { return s.Workspace + " " + s.Type }), series)
	gotDefinitions, err := l.Definitions(ctx)
	compare(t, "definitions", err, texts(gotDefinitions, func(v snapshot.Version) string { return fmt.Sprint(v.Owner, " ", v.Type, " ", v.Number) }), definitions)
	must(t, l.SaveOwner(ctx, snapshot.Owner{ID: "default", Name: "All", Cap: 7, Backfill: 3}, monthAct("default", "save owner")))
	gotOwners, err = l.Owners(ctx)
	if err != nil || len(gotOwners) != 104 || gotOwners[0] != (snapshot.Owner{ID: "default", Name: "All", Cap: 7, Backfill: 3}) {
		t.Errorf("%d owners, the first %+v, %v; want the configured default owner once", len(gotOwners), gotOwners[0], err)
	}
}

func texts[T any](list []T, text func(T) string) (out []string) {
	for _, v := range list {
		out = append(out, text(v))
	}
	return out
}

// compare leaves out what other tests of the table have put.
func compare(t *testing.T, name string, err error, got, want []string) {
	t.Helper()
	got = slices.DeleteFunc(got, func(s string) bool { return s[0] != 'n' && s[0] != 'd' })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v; want %v", name, got, err, want)
	}
}

func workspaceList(t *testing.T, other, b *bench) {
	both := &store.Snapshots{Store: b.Store, Schedules: other.Store}
	ctx := t.Context()
	before, err := both.Workspaces(ctx)
	must(t, err)
	for _, w := range []schedule.Workspace{
		{ID: "SNAP1", Name: "Newark", Zone: "America/New_York", Owner: "airports", Start: "2013-01", Removed: "2013-06-01"},
		{ID: "SNAP2", Name: "Auckland", Zone: "Pacific/Auckland"},
		{ID: "SNAP3", Name: "Reykjavik", Zone: "Atlantic/Reykjavik", Removed: "2013-06-01T12:00:00+02:00"},
	} {
		must(t, other.PutWorkspace(ctx, w, actOf("workspace "+w.ID, "act-1", "save")))
	}
	got, err := both.Workspaces(ctx)
	want := []snapshot.Workspace{
		{ID: "SNAP1", Zone: "America/New_York", Owner: "airports", Start: may.Add(-4), Removed: mayEnd},
		{ID: "SNAP2", Zone: "Pacific/Auckland", Owner: "default"},
		{ID: "SNAP3", Zone: "Atlantic/Reykjavik", Owner: "default", Removed: at("2013-06-01T10:00:00.000Z")},
	}
	got = slices.DeleteFunc(got, func(w snapshot.Workspace) bool { return slices.Contains(before, w) })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	must(t, other.PutWorkspace(ctx, schedule.Workspace{ID: "SNAP4", Name: "x", Zone: "UTC", Removed: "soon"}, actOf("workspace SNAP4", "act-1", "save")))
	if _, err := both.Workspaces(ctx); err == nil {
		t.Error("a workspace that cannot be read was listed")
	}
	must(t, other.PutWorkspace(ctx, schedule.Workspace{ID: "SNAP4", Name: "x", Zone: "UTC"}, actOf("workspace SNAP4", "act-2", "save")))
}
