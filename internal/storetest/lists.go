package storetest

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// lists has a table of its own: every list is compared whole.
func lists(t *testing.T, b *bench) {
	shared := b
	b = newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	var due []string
	open := map[bool][]string{}
	ends := map[string][]string{}
	for i := range 40 {
		p := place{fmt.Sprintf("s%02d", i), "2013-06-03T12:00:00Z"}
		workspace := []string{"EWR", "JFK", "JFKX"}[i%3]
		state := []string{"active", "active", "paused", "deleted"}[i%4]
		r := scheduleRow(p, state).with(row{schema.Workspace: workspace})
		if state != "deleted" {
			r[schema.DirName] = schema.DirScheduleName(workspace, p.schedule)
			ends[workspace] = append(ends[workspace], p.schedule)
			ends[""] = append(ends[""], workspace+"/"+p.schedule)
		}
		if state == "active" && i%8 == 0 {
			r[schema.NextDueAt] = nextDue.Add(time.Hour) // not yet
		} else if state == "active" {
			due = append(due, p.schedule)
		}
		runState := []string{"queued", "running", "succeeded", "queued"}[i%4]
		run := runRow(p, runState)
		if runState == "queued" && i%3 == 0 {
			run[schema.WakeAt] = wall.Add(time.Millisecond) // not yet
		} else if runState != "succeeded" {
			open[runState == "running"] = append(open[runState == "running"], p.run())
		}
		b.write(t, world{}.add(p.scheduleKey(), r).add(p.runKey(), run))
	}
	slices.Sort(ends[""])
	for i, v := range ends[""] {
		ends[""][i] = v[len(v)-3:]
	}
	for _, limit := range []int{1, 2, 3, 100} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			shards(t, b, limit, due, open)
			for workspace, want := range ends {
				got := pages(t, limit, func(from string) ([]schedule.Schedule, string, error) {
					return b.Schedules(t.Context(), workspace, from, limit)
				}, func(s schedule.Schedule) string { return s.ID })
				if !slices.Equal(got, want) {
					t.Errorf("schedules of %q: %v, want %v", workspace, got, want)
				}
			}
			belowSchedule(t, b, limit)
		})
	}
	t.Run("submissions of a run, over several pages", func(t *testing.T) { manySubmissions(t, b) })
	t.Run("nothing to list", func(t *testing.T) { nothing(t, b) })
	t.Run("an index behind", func(t *testing.T) { behind(t, b) })
	t.Run("hostile cursors", func(t *testing.T) { hostileCursors(t, b) })
	t.Run("keys left over", func(t *testing.T) { leftOver(t, b) })
	t.Run("reads fail", func(t *testing.T) { readsFail(t, b) })
}

// pages reads a list to its end.
func pages[T any](t *testing.T, limit int, read func(from string) ([]T, string, error), id func(T) string) []string {
	t.Helper()
	var all []string
	from := ""
	for n := 0; ; n++ {
		list, next, err := read(from)
		if err != nil {
			t.Fatalf("page %d: %v", n, err)
		}
		if len(list) > limit {
			t.Errorf("page %d has %d rows, want at most %d", n, len(list), limit)
		}
		for _, v := range list {
			all = append(all, id(v))
		}
		if from = next; from == "" {
			return all
		}
		if n > 1000 {
			t.Fatal("the list does not end")
		}
	}
}

func self(s string) string { return s }

// shards reads both suggestion indexes, shard by shard.
func shards(t *testing.T, b *bench, limit int, due []string, open map[bool][]string) {
	var gotDue []string
	gotOpen := map[bool][]string{}
	for i := range schema.Shards {
		ids := pages(t, limit, func(from string) ([]string, string, error) { return b.Due(t.Context(), i, nextDue, from, limit) }, self)
		for _, id := range ids {
			if schema.DueShardOf(id) != schema.DueShardAt(i) {
				t.Errorf("schedule %s came out of shard %d", id, i)
			}
		}
		gotDue = append(gotDue, ids...)
		for _, begun := range []bool{false, true} {
			runs := pages(t, limit, func(from string) ([]string, string, error) { return b.Open(t.Context(), begun, i, wall, from, limit) }, self)
			for _, id := range runs {
				if schema.OpenShardOf(id, begun) != schema.OpenShardAt(i, begun) {
					t.Errorf("run %s came out of shard %d, begun %v", id, i, begun)
				}
			}
			gotOpen[begun] = append(gotOpen[begun], runs...)
		}
	}
	for name, pair := range map[string][2][]string{"due": {gotDue, due}, "queued": {gotOpen[false], open[false]}, "running": {gotOpen[true], open[true]}} {
		if len(pair[1]) == 0 {
			t.Errorf("%s: nothing is there to be found", name)
		}
		slices.Sort(pair[0])
		slices.Sort(pair[1])
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

// belowSchedule lists the runs and skip records of one schedule, the latest first.
func belowSchedule(t *testing.T, b *bench, limit int) {
	p := b.place()
	var occurrences, firsts []string
	w := world{}
	for day := 1; day <= 5; day++ {
		q := place{p.schedule, fmt.Sprintf("2013-06-%02dT12:00:00Z", day)}
		w.add(q.runKey(), runRow(q, "succeeded"))
		occurrences = append([]string{q.occurrence}, occurrences...)
		first := at(fmt.Sprintf("2013-05-%02dT12:00:00.000Z", day))
		// Two kinds begin at one instant: two records, in the order of their kinds.
		for _, kind := range []schedule.SkipKind{schedule.SkipGap, schedule.SkipMissed} {
			w.add(schema.SkipKey(p.schedule, first, string(kind)), row{schema.First: first, schema.Last: first.Add(time.Hour), schema.Count: day, schema.Reason: "because " + string(kind)})
			firsts = append([]string{fmt.Sprintf("%s %s %d", schema.Time(first), kind, day)}, firsts...)
		}
	}
	q := place{p.schedule, "manual-0a"}
	w.add(q.runKey(), runRow(q, "succeeded").with(row{schema.Manual: true}))
	b.write(t, w)
	got := pages(t, limit, func(from string) ([]schedule.Run, string, error) { return b.Runs(t.Context(), p.schedule, from, limit) },
		func(r schedule.Run) string { return r.Occurrence })
	if want := append([]string{"manual-0a"}, occurrences...); !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	skips := pages(t, limit, func(from string) ([]schedule.Skip, string, error) {
		return b.Skips(t.Context(), p.schedule, from, limit)
	},
		func(s schedule.Skip) string {
			if s.Schedule != p.schedule || !s.Last.Equal(s.First.Add(time.Hour)) || s.Reason != "because "+string(s.Kind) {
				t.Errorf("skip %+v", s)
			}
			return fmt.Sprintf("%s %s %d", schema.Time(s.First), s.Kind, s.Count)
		})
	if !slices.Equal(skips, firsts) {
		t.Errorf("skips %v, want %v", skips, firsts)
	}
}

// manySubmissions lists more than one megabyte, which is what a page holds at most (AWS: Query).
func manySubmissions(t *testing.T, b *bench) {
	p := b.place()
	const n = 12
	body := make([]byte, 120_000)
	w := world{}
	for i := range n {
		w.add(schema.SubmissionKey(p.run(), "webhook", fmt.Sprintf("%04x", i)), subRow(p, "submitted").with(row{schema.Body: deflated(body, flate.NoCompression)}))
	}
	w.add(schema.AccessKey(p.run(), "webhook", "0001", wall, "a1"), row{schema.What: "download"})
	b.write(t, w)
	b.tap.reset()
	subs, err := b.Submissions(t.Context(), p.run())
	if err != nil || len(subs) != n || b.tap.calls.Load() < 2 {
		t.Errorf("%d submissions in %d calls, %v; want %d in more than one", len(subs), b.tap.calls.Load(), err, n)
	}
	for i, s := range subs {
		if s.RecipientHash != fmt.Sprintf("%04x", i) || s.Channel != "webhook" || len(s.Frozen.Body) != 0 || s.Run != p.run() {
			t.Errorf("submission %d is %s of %s", i, s.RecipientHash, s.Run)
		}
	}
}

func nothing(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	if rs, next, err := b.Runs(ctx, p.schedule, "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("runs: %v %q %v", rs, next, err)
	}
	if rs, next, err := b.Skips(ctx, p.schedule, "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("skips: %v %q %v", rs, next, err)
	}
	if rs, next, err := b.Schedules(ctx, "nowhere", "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("schedules: %v %q %v", rs, next, err)
	}
	if rs, next, err := b.Audits(ctx, p.schedule, "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("audits: %v %q %v", rs, next, err)
	}
	if rs, err := b.Submissions(ctx, p.run()); len(rs) > 0 || err != nil {
		t.Errorf("submissions: %v %v", rs, err)
	}
	if rs, next, err := b.Versions(ctx, p.schedule, "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("versions: %v %q %v", rs, next, err)
	}
	if rs, next, err := b.Accesses(ctx, p.run(), "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("accesses: %v %q %v", rs, next, err)
	}
	if rs, next, err := b.DeadLetterPage(ctx, "", 10); len(rs) > 0 || next != "" || err != nil {
		t.Errorf("dead letters: %v %q %v", rs, next, err)
	}
	for name, read := range map[string]func() error{
		"run":              func() error { _, err := b.Run(ctx, p.run()); return err },
		"no run's id":      func() error { _, err := b.Run(ctx, "no-at-sign"); return err },
		"no schedule's id": func() error { _, err := b.Run(ctx, "@2013"); return err },
		"schedule":         func() error { _, err := b.Schedule(ctx, p.schedule); return err },
		"definition":       func() error { _, err := b.Definition(ctx, p.schedule, 1); return err },
		"submission":       func() error { _, err := b.Submission(ctx, p.run(), "email", "ff"); return err },
		"workspace":        func() error { _, err := b.Workspace(ctx, "nowhere"); return err },
		"source":           func() error { _, err := b.Source(ctx, "nothing"); return err },
		"before recipient": func() error {
			_, err := b.BeforeRecipient(ctx, schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}, "email", "ff")
			return err
		},
	} {
		if err := read(); !errors.Is(err, schedule.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

// behind answers as the indexes were before the last writes: a schedule that has gone is still listed, one that moved is
// listed at its old place. Lists follow the rows.
func behind(t *testing.T, b *bench) {
	ctx := t.Context()
	p, gone := b.place(), b.place()
	ghost := scheduleRow(gone, "active").with(row{schema.DirName: schema.DirScheduleName("LGA", gone.schedule), schema.Workspace: "LGA"})
	b.write(t, world{}.add(p.scheduleKey(), scheduleRow(p, "active").with(row{schema.DirName: schema.DirScheduleName("LGA", p.schedule), schema.Workspace: "LGA"})))
	b.tap.reset()
	b.tap.stale = func(in *dynamodb.QueryInput, out *dynamodb.QueryOutput) {
		if *in.IndexName == schema.IndexDirectory {
			out.Items = append(out.Items, world{}.add(gone.scheduleKey(), ghost)[gone.scheduleKey()])
		}
	}
	list, _, err := b.Schedules(ctx, "LGA", "", 10)
	b.tap.reset()
	if err != nil || len(list) != 1 || list[0].ID != p.schedule {
		t.Errorf("%+v, %v; want only %s", list, err, p.schedule)
	}
	b.tap.stale = func(_ *dynamodb.QueryInput, out *dynamodb.QueryOutput) { out.Items = nil }
	list, _, err = b.Schedules(ctx, "LGA", "", 10)
	b.tap.reset()
	if err != nil || len(list) != 0 {
		t.Errorf("%+v, %v; want none yet", list, err)
	}
	b.overwrite(t, p.scheduleKey(), world{}.add(p.scheduleKey(), scheduleRow(p, "deleted"))[p.scheduleKey()])
	b.tap.stale = func(_ *dynamodb.QueryInput, out *dynamodb.QueryOutput) {
		out.Items = append(out.Items[:0], world{}.add(p.scheduleKey(), row{})[p.scheduleKey()])
	}
	list, _, err = b.Schedules(ctx, "LGA", "", 10)
	b.tap.reset()
	if err != nil || len(list) != 0 {
		t.Errorf("%+v, %v; want none: it is deleted", list, err)
	}
}

// hostileCursors hands lists what they never handed out: a wrong input of the caller's, and no row of another list.
func hostileCursors(t *testing.T, b *bench) {
	ctx := t.Context()
	p, other := b.place(), b.place()
	for _, q := range []place{p, other} {
		for i := range 3 {
			at := place{q.schedule, fmt.Sprintf("2013-06-%02dT12:00:00Z", i+1)}
			first := nextDue.Add(time.Duration(i) * time.Hour)
			b.write(t, world{}.add(at.runKey(), runRow(at, "succeeded")).add(q.scheduleKey(), scheduleRow(q, "active")).
				add(schema.SkipKey(q.schedule, first, "gap"), row{schema.First: first, schema.Last: first, schema.Count: 1, schema.Reason: "gap"}))
		}
	}
	_, foreign, err := b.Runs(ctx, other.schedule, "", 1)
	if err != nil || foreign == "" {
		t.Fatal(foreign, err)
	}
	_, skipping, err := b.Skips(ctx, p.schedule, "", 1)
	if err != nil || skipping == "" {
		t.Fatal(skipping, err)
	}
	_, listing, err := b.Schedules(ctx, "", "", 1)
	if err != nil || listing == "" {
		t.Fatal(listing, err)
	}
	cursors := map[string]string{
		"no JSON": "x", "a number": "7", "an array": "[]", "null": "null", "empty object": "{}", "not text": `{"pk":1,"sk":2}`, "only half a key": `{"pk":"SCHED#` + p.schedule + `"}`,
		"an attribute too much": `{"pk":"SCHED#` + p.schedule + `","sk":"RUN#2013","zone":"x"}`, "an empty sort key": `{"pk":"SCHED#` + p.schedule + `","sk":""}`,
		"control characters": "{\"pk\":\"a\x00\",\"sk\":\"b\"}", "very long": `{"pk":"` + string(make([]byte, 100_000)) + `","sk":"x"}`,
		"another schedule's": foreign, "below the run's": `{"pk":"SCHED#` + p.schedule + `","sk":"AAA"}`,
	}
	reads := map[string]func(from string) error{
		"runs":      func(from string) error { _, _, err := b.Runs(ctx, p.schedule, from, 1); return err },
		"skips":     func(from string) error { _, _, err := b.Skips(ctx, p.schedule, from, 1); return err },
		"schedules": func(from string) error { _, _, err := b.Schedules(ctx, "EWR", from, 1); return err },
		"due":       func(from string) error { _, _, err := b.Due(ctx, 0, wall, from, 1); return err },
		"queued":    func(from string) error { _, _, err := b.Open(ctx, false, 0, wall, from, 1); return err },
		"running":   func(from string) error { _, _, err := b.Open(ctx, true, 0, wall, from, 1); return err },
		"audits":    func(from string) error { _, _, err := b.Audits(ctx, p.schedule, from, 1); return err },
		"versions":  func(from string) error { _, _, err := b.Versions(ctx, p.schedule, from, 1); return err },
		"accesses":  func(from string) error { _, _, err := b.Accesses(ctx, p.run(), from, 1); return err },
		"dead":      func(from string) error { _, _, err := b.DeadLetterPage(ctx, from, 1); return err },
	}
	for list, read := range reads {
		for name, from := range cursors {
			wantProblem(t, list+", "+name, read(from))
		}
	}
	wantProblem(t, "runs, the skips' cursor", reads["runs"](skipping))
	wantProblem(t, "due, the directory's cursor", reads["due"](listing))
	wantProblem(t, "queued, the directory's cursor", reads["queued"](listing))
	inQueue := `{"pk":"SCHED#x","sk":"RUN#x","open_shard":"` + schema.OpenShardAt(0, false) + `","wake_at":"` + schema.Time(wall) + `"}`
	if err := reads["queued"](inQueue); err != nil {
		t.Errorf("queued, a cursor of its own: %v", err)
	}
	wantProblem(t, "running, the cursor of the queued", reads["running"](inQueue))
	wantProblem(t, "runs, the directory's cursor", reads["runs"](listing))
}

func wantProblem(t *testing.T, name string, err error) {
	t.Helper()
	var ps schedule.Problems
	if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Field != "cursor" || ps[0].Want == "" || len(ps[0].Value) > 200 {
		t.Errorf("%s: %v, want a Problem with the cursor", name, err)
	}
}

// leftOver leaves keys of a batch unprocessed: they are asked for again, after a pause.
func leftOver(t *testing.T, b *bench) {
	b.tap.reset()
	b.pauses.asked = nil
	turn := 0
	b.tap.unprocessed = func(keys int) int { turn++; return keys / (1 + turn%2) }
	list, _, err := b.Schedules(t.Context(), "JFK", "", 100)
	b.tap.reset()
	all, _, err2 := b.Schedules(t.Context(), "JFK", "", 100)
	if err != nil || err2 != nil || !reflect.DeepEqual(list, all) || len(all) == 0 || len(b.pauses.asked) < 3 {
		t.Errorf("%d of %d schedules after %d pauses, %v, %v", len(list), len(all), len(b.pauses.asked), err, err2)
	}
	b.bounded(t)
	// A caller whose time is over does not ask for ever.
	ctx, cancel := context.WithCancel(t.Context())
	b.tap.unprocessed = func(keys int) int { cancel(); return keys }
	_, _, err = b.Schedules(ctx, "JFK", "", 100)
	b.tap.reset()
	failuretest.Want(t, err, failure.StoreUnavailable)
}

// readsFail fails each read in each way: a passing failure, and nothing that looks like an empty list.
func readsFail(t *testing.T, b *bench) {
	ctx := t.Context()
	p := b.place()
	b.write(t, withSchedule("running", nil)(p))
	reads := map[string]func() error{
		"run":          func() error { _, err := b.Run(ctx, p.run()); return err },
		"schedule":     func() error { _, err := b.Schedule(ctx, p.schedule); return err },
		"definition":   func() error { _, err := b.Definition(ctx, p.schedule, 1); return err },
		"submission":   func() error { _, err := b.Submission(ctx, p.run(), "email", "ff"); return err },
		"submissions":  func() error { _, err := b.Submissions(ctx, p.run()); return err },
		"outline":      func() error { _, err := b.Outline(ctx, p.schedule, 1); return err },
		"sub page":     func() error { _, _, err := b.SubmissionPage(ctx, p.run(), "", "", 10); return err },
		"control":      func() error { _, err := b.Control(ctx); return err },
		"clock":        func() error { _, err := b.Clock(ctx); return err },
		"workspace":    func() error { _, err := b.Workspace(ctx, "EWR"); return err },
		"source":       func() error { _, err := b.Source(ctx, "flights"); return err },
		"workspaces":   func() error { _, err := b.Workspaces(ctx); return err },
		"sources":      func() error { _, err := b.Sources(ctx); return err },
		"unsubscribed": func() error { _, err := b.Unsubscribed(ctx, "email", "ff", p.schedule); return err },
		"dead letters": func() error { _, err := b.DeadLetters(ctx); return err },
		"schedules":    func() error { _, _, err := b.Schedules(ctx, "", "", 10); return err },
		"runs":         func() error { _, _, err := b.Runs(ctx, p.schedule, "", 10); return err },
		"skips":        func() error { _, _, err := b.Skips(ctx, p.schedule, "", 10); return err },
		"due":          func() error { _, _, err := b.Due(ctx, 0, wall, "", 10); return err },
		"queued":       func() error { _, _, err := b.Open(ctx, false, 0, wall, "", 10); return err },
		"running":      func() error { _, _, err := b.Open(ctx, true, 0, wall, "", 10); return err },
		"audits":       func() error { _, _, err := b.Audits(ctx, p.schedule, "", 10); return err },
		"versions":     func() error { _, _, err := b.Versions(ctx, p.schedule, "", 10); return err },
		"accesses":     func() error { _, _, err := b.Accesses(ctx, p.run(), "", 10); return err },
		"dead page":    func() error { _, _, err := b.DeadLetterPage(ctx, "", 10); return err },
		"before recipient": func() error {
			_, err := b.BeforeRecipient(ctx, schedule.Run{Schedule: p.schedule, Occurrence: p.occurrence}, "email", "ff")
			return err
		},
	}
	for name, read := range reads {
		for _, f := range faultKinds {
			b.tap.reset()
			b.tap.after = func(_ int, operation string) error { return f.err(operation) }
			err := read()
			b.tap.reset()
			if got := failure.From(err); err == nil || got.Code != f.code || !got.Passing() {
				t.Errorf("%s, %s: %v, want %s", name, f.name, err, f.code)
			}
		}
	}
	// The rows behind a list may fail after the index answered.
	b.tap.before = func(_ int, operation string) error {
		if operation == "BatchGetItem" {
			return timedOut()
		}
		return nil
	}
	_, _, err := b.Schedules(ctx, "", "", 10)
	failuretest.Want(t, err, failure.StoreUnavailable)
	b.tap.reset()
}
