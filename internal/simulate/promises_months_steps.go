package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// monthScope are the periods, owners and partitions of chunks that a step was about.
type monthScope struct {
	periods map[snapshot.Period]bool
	owners  map[string]bool
	chunks  map[schema.Partition]bool
}

func newMonthScope() monthScope {
	return monthScope{map[snapshot.Period]bool{}, map[string]bool{}, map[schema.Partition]bool{}}
}

// inStep is the scope of the step's changes; each of its rules asks for it.
func (w *World) inStep(changes []Change) monthScope {
	if len(changes) == 0 {
		return monthScope{}
	}
	if w.months.scopeOf == w.checks {
		return w.months.scope
	}
	s := newMonthScope()
	for _, c := range changes {
		if c.Table != Snapshots || c.New == nil {
			continue
		}
		a := aboutOf(c.New)
		if a.period.Type != "" {
			s.periods[a.period] = true
		}
		if a.owner != "" {
			s.owners[a.owner] = true
		}
		if a.chunks != "" {
			s.chunks[a.chunks] = true
		}
	}
	w.months.scope, w.months.scopeOf = s, w.checks
	return s
}

// all is what a whole view is about.
func (v *monthView) all() monthScope {
	t := newMonthScope()
	for p := range v.heads {
		t.periods[p] = true
	}
	for o := range v.caps {
		t.owners[o] = true
	}
	for c := range v.chunks {
		t.chunks[schema.Partition(c)] = true
	}
	return t
}

// pointed: with each move of a current version stands, in the same transaction, the publication of that version, or the
// record of a roll back and its audit; and the version before is named.
func pointed(_ *World, changes []Change) error {
	used := map[string]bool{}
	for _, c := range changes {
		if c.Table != Snapshots || !strings.HasPrefix(keySK(c), schema.CurrentPrefix) {
			continue
		}
		if c.New == nil {
			return fmt.Errorf("%s was deleted", c.Key())
		}
		if why := causeOf(c, changes, used); why != nil {
			return fmt.Errorf("%s went from version %d to %d: %w", c.Key(), figure(c.Old, schema.Version), figure(c.New, schema.Version), why)
		}
		if figure(c.New, schema.Previous) != figure(c.Old, schema.Version) {
			return fmt.Errorf("%s went from version %d to %d and names %d as the one before", c.Key(), figure(c.Old, schema.Version), figure(c.New, schema.Version), figure(c.New, schema.Previous))
		}
	}
	return nil
}

func keySK(c Change) string {
	if c.New != nil {
		return Text(c.New, schema.SK)
	}
	return Text(c.Old, schema.SK)
}

// causeOf finds the one publication or roll back that a move belongs to.
func causeOf(c Change, changes []Change, used map[string]bool) error {
	month := strings.TrimPrefix(keySK(c), schema.CurrentPrefix)
	version, manifest := figure(c.New, schema.Version), Text(c.New, schema.Manifest)
	for _, o := range changes {
		sk := keySK(o)
		switch {
		case o.Table != Snapshots || o.New == nil || used[sk] || Text(o.New, schema.PK) != Text(c.New, schema.PK):
		case sk == fmt.Sprintf("%s%s%s%04d", schema.PeriodPrefix, month, schema.VersionMark, version):
			if stateOf(o.Old) == snapshot.Validating && stateOf(o.New) == snapshot.Published && Text(o.New, schema.Manifest) == manifest {
				used[sk] = true
				return nil
			}
		case strings.HasPrefix(sk, schema.MovePrefix+month+"#"):
			if o.Old == nil && figure(o.New, schema.Version) == version && figure(o.New, schema.Previous) == figure(c.Old, schema.Version) &&
				Text(o.New, schema.Manifest) == manifest && Text(o.New, schema.Who) != "" && Text(o.New, schema.Why) != "" && audited(changes, sk) {
				used[sk] = true
				return nil
			}
		}
	}
	return errors.New("neither a publication nor a recorded roll back stands beside it")
}

// audited: the act whose id ends a move's key has an audit.
func audited(changes []Change, move string) bool {
	id := move[strings.LastIndexByte(move, '#')+1:]
	return slices.ContainsFunc(changes, func(o Change) bool {
		return o.New != nil && strings.HasPrefix(Text(o.New, schema.PK), "AUDIT#") && strings.HasSuffix(Text(o.New, schema.SK), "#"+id)
	})
}

// recorded: a month's cursor is the number of its generation's chunks, whose numbers have no gap, and has their rows.
func recorded(w *World, changes []Change) error {
	t := w.inStep(changes)
	if len(t.periods)+len(t.chunks) == 0 {
		return nil
	}
	return w.months.recorded(t)
}

func (v *monthView) recorded(t monthScope) error {
	known := map[schema.Partition]bool{}
	for p := range t.periods {
		for _, version := range v.versions[p] {
			id := snapshot.Run{Period: p, Version: version}.ID()
			partition := schema.ChunkPartition(id, figure(v.runs[id], schema.Generation))
			known[partition] = true
			if err := v.counted(id, partition); err != nil {
				return err
			}
		}
	}
	for partition := range t.chunks {
		run := strings.TrimPrefix(string(partition), "SNAP#")
		run, generation, _ := strings.Cut(run, "#G#")
		g, err := strconv.Atoi(generation)
		if row := v.runs[run]; err != nil || row == nil || g > figure(row, schema.Generation) {
			return fmt.Errorf("%s holds chunks of a generation that %s does not have", partition, run)
		}
		if !known[partition] {
			if err := v.counted(run, schema.ChunkPartition(run, figure(v.runs[run], schema.Generation))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *monthView) counted(id string, partition schema.Partition) error {
	rows, list := 0, v.chunks[string(partition)]
	for i, c := range list {
		if want := fmt.Sprintf("%s%08d", schema.ChunkPrefix, i); Text(c, schema.SK) != want {
			return fmt.Errorf("%s has %s where %s should be", partition, Text(c, schema.SK), want)
		}
		rows += figure(c, schema.Rows)
	}
	if run := v.runs[id]; figure(run, schema.Cursor) != len(list) || figure(run, schema.CursorRows) != rows {
		return fmt.Errorf("the cursor of %s is at %d chunks and %d rows; recorded in generation %d are %d and %d", id, figure(run, schema.Cursor), figure(run, schema.CursorRows),
			figure(run, schema.Generation), len(list), rows)
	}
	return nil
}

// slotted: an owner's slots are its admitted months, those of backfills are the backfills among them, and none is taken
// beyond what the caps permit.
func slotted(w *World, changes []Change) error {
	for _, c := range changes {
		if c.Table == Snapshots && keySK(c) == "CAPS" {
			if err := taken(c); err != nil {
				return fmt.Errorf("%s: %w", c.Key(), err)
			}
		}
	}
	return w.months.slotted(w.inStep(changes), w.months.strange)
}

// taken checks a change of an owner's slots against its caps: each of the months that it adds, one in a transaction.
func taken(c Change) error {
	if c.New == nil {
		return errors.New("it was deleted")
	}
	before, now := ids(c.Old, schema.Slots), ids(c.New, schema.Slots)
	if len(now) <= len(before) {
		return nil
	}
	limit, backfills := figure(c.New, schema.Cap), figure(c.New, schema.BackfillCap)
	held, holds := len(ids(c.Old, schema.Backfill)), len(ids(c.New, schema.Backfill))
	switch {
	case len(now) > limit:
		return fmt.Errorf("%d slots are taken, of %d", len(now), limit)
	case holds > held && holds > backfills:
		return fmt.Errorf("%d slots are taken by backfills, of %d", holds, backfills)
	case holds == held && backfills > 0 && held == 0 && len(before) >= limit-1:
		return errors.New("a current month took the slot that is left to backfills")
	}
	return nil
}

func (v *monthView) slotted(t monthScope, strange map[string]bool) error {
	for owner := range t.owners {
		var admitted, backfills []string
		for _, id := range slices.Sorted(maps.Keys(v.runs)) {
			if run := v.runs[id]; admittedRow(run) && Text(run, schema.OwnerOf) == owner {
				admitted = append(admitted, id)
				if truth(run, schema.Backfill) {
					backfills = append(backfills, id)
				}
			}
		}
		foreign := func(id string) bool { return strange[id] }
		slots, held := slices.DeleteFunc(ids(v.caps[owner], schema.Slots), foreign), slices.DeleteFunc(ids(v.caps[owner], schema.Backfill), foreign)
		if !slices.Equal(slots, admitted) || !slices.Equal(held, backfills) {
			return fmt.Errorf("owner %s: slots %q, of them backfills %q; admitted are %q, of them backfills %q", owner, slots, held, admitted, backfills)
		}
	}
	return nil
}

// headed: a head names the latest version and the one that has not settled, if there is one, and how the latest has settled;
// a period of which something is published is not late.
func headed(w *World, changes []Change) error { return w.months.headed(w.inStep(changes)) }

func (v *monthView) headed(t monthScope) error {
	for p := range t.periods {
		head, latest, active := v.heads[p], 0, 0
		for _, version := range v.versions[p] {
			latest = max(latest, version)
			if !settledRow(v.runs[snapshot.Run{Period: p, Version: version}.ID()]) {
				if active > 0 {
					return fmt.Errorf("%v has two versions that have not settled, %d and %d", p, active, version)
				}
				active = version
			}
		}
		if figure(head, schema.Latest) != latest || figure(head, schema.Active) != active {
			return fmt.Errorf("the head of %v names version %d as the latest and %d as active; they are %d and %d", p, figure(head, schema.Latest), figure(head, schema.Active), latest, active)
		}
		run := v.runs[snapshot.Run{Period: p, Version: latest}.ID()]
		if settledRow(run) && (Text(head, schema.LatestState) != Text(run, schema.State) || Text(head, schema.LatestWhy) != Text(run, schema.Reason)) {
			return fmt.Errorf("the head of %v says that its latest is %s %s; it is %s %s", p, Text(head, schema.LatestState), Text(head, schema.LatestWhy), stateOf(run), Text(run, schema.Reason))
		}
		if current := v.current[p]; current != nil {
			if Text(head, schema.LateShard) != "" {
				return fmt.Errorf("%v stands among the late ones although version %d is published", p, figure(current, schema.Version))
			}
			id := snapshot.Run{Period: p, Version: figure(current, schema.Version)}.ID()
			if stateOf(v.runs[id]) != snapshot.Published || Text(v.runs[id], schema.Manifest) != Text(current, schema.Manifest) {
				return fmt.Errorf("the current version of %v is %s, which is %s", p, id, stateOf(v.runs[id]))
			}
		}
	}
	return nil
}

// published: the manifest of a version that is published names chunks that are there with their digests, and their rows are
// those that the source's version held.
func published(w *World, changes []Change) error {
	for _, c := range changes {
		run, ok := runOfRow(c.New)
		if !ok || stateOf(c.New) != snapshot.Published || stateOf(c.Old) == snapshot.Published {
			continue
		}
		m, err := w.readable(run)
		if err != nil {
			return fmt.Errorf("%s: %w", run, err)
		}
		p, version := periodOfRun(run)
		hash := Text(c.New, schema.Manifest)
		w.months.needs(run, snapshot.ManifestKey(p, version, hash), hash)
		for _, chunk := range m.Chunks {
			w.months.needs(run, chunk.Object, chunk.SHA256)
		}
	}
	return nil
}

func (p *monthPromises) needs(run, key, digest string) { p.needed[key], p.digests[key] = run, digest }

// readable reads a published version to its end, every digest being checked, and compares it with the source.
func (w *World) readable(run string) (snapshot.Manifest, error) {
	p, version := periodOfRun(run)
	reader := Kit{w, &Worker{Name: "judge", w: w}}.Reader()
	m, err := reader.Version(background, p, version)
	if err != nil {
		return m, err
	}
	got, err := rowsOf(background, reader, m)
	if err != nil {
		return m, err
	}
	var want []string
	sum := int64(0)
	validated, read := w.lakeVersion(m.Source.Validated), w.lakeVersion(m.Source.Version)
	for i, d := range w.Data.At(validated, p.Workspace, p.Month.String()) {
		want = append(want, fmt.Sprintf("%d|%d", i+1, d))
		sum += d
	}
	same := len(got) == len(want)
	if read == validated { // otherwise the source moved while it was read: numbers and sums agree
		same = slices.Equal(got, want)
	}
	if !same || m.Totals.Rows != int64(len(want)) || len(want) > 0 && m.Totals.Sums["delay"] != fmt.Sprint(sum) {
		return m, fmt.Errorf("it has %q, %+v; the source at %s held %q, in all %d", got, m.Totals, m.Source.Validated, want, sum)
	}
	return m, nil
}

func rowsOf(ctx context.Context, reader snapshot.Reader, m snapshot.Manifest) (out []string, err error) {
	rows := reader.Rows(m)
	defer rows.Close()
	for {
		row, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var cells []string
		for _, c := range row {
			cells = append(cells, string(c.Text))
		}
		out = append(out, strings.Join(cells, "|"))
	}
}

// cleanMargin is how far a worker's clock may be wrong.
const cleanMargin = 10 * time.Minute

// objectKept: an object is written once, and removed only a week after its run has settled, and where no manifest needs it.
func objectKept(w *World, b Blob) error {
	if b.Bucket != MonthFiles {
		return nil
	}
	if b.New != nil {
		return demand(b.Old == nil, "it was written again")
	}
	if run := w.months.needed[b.Key]; run != "" {
		return fmt.Errorf("it was removed, and %s needs it", run)
	}
	parts := strings.Split(b.Key, "/")
	if len(parts) < 6 {
		return errors.New("it was removed, and is no run's")
	}
	version, err := strconv.Atoi(strings.TrimPrefix(parts[4], "v"))
	if err != nil {
		return err
	}
	run := w.months.runs[schema.SnapshotID(parts[1], parts[2], parts[3], version)]
	if !settledRow(run) {
		return fmt.Errorf("it was removed while its run is %q", stateOf(run))
	}
	if age := w.Now().Sub(instant(Text(run, schema.SettledAt))); age < w.Months.CleanAfter.Std()-cleanMargin {
		return fmt.Errorf("it was removed %s after its run has settled", age)
	}
	return nil
}

// recounted rebuilds what the rules remember from the table, and applies them to all of it.
func recounted(w *World) error {
	v := newMonthView()
	w.DB.Any(Snapshots, func(it Row) bool { v.take(it); return false })
	for what, pair := range map[string][2]any{"runs": {v.runs, w.months.runs}, "heads": {v.heads, w.months.heads}, "current versions": {v.current, w.months.current},
		"caps": {v.caps, w.months.caps}, "chunks": {v.chunks, w.months.chunks}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			return fmt.Errorf("%s in the table are not those that were seen to be written", what)
		}
	}
	t := v.all()
	return errors.Join(v.recorded(t), v.slotted(t, w.months.strange), v.headed(t))
}

// monthWithin is how long a version may take until it settles: its attempts, with what Step Functions tries of each step
// again and what the reconciler finds of it, the waits between them, and as long for those before it in its owner's slots.
func (w *World) monthWithin() time.Duration {
	attempts := time.Duration(snapshot.MaxFailures) * (4*StepTime + 2*w.Months.JobGrace.Std() + 2*mendEvery)
	for _, wait := range w.Months.RetryDelays {
		attempts += wait.Std()
	}
	return 2 * attempts
}

// everyMonthSettled: at rest every version is published, final, skipped or cancelled, no slot is held, and no execution runs.
func everyMonthSettled(w *World) error {
	for _, id := range slices.Sorted(maps.Keys(w.months.runs)) {
		run := w.months.runs[id]
		if !settledRow(run) {
			return fmt.Errorf("%s is %s", id, stateOf(run))
		}
		if f := figure(run, schema.Failures); f > snapshot.MaxFailures || figure(run, schema.Job) > f+1 {
			return fmt.Errorf("%s had %d jobs and %d failures", id, figure(run, schema.Job), f)
		}
		if took := instant(Text(run, schema.SettledAt)).Sub(instant(Text(run, schema.CreatedAt))); took > w.monthWithin() {
			return fmt.Errorf("%s took %s; want at most %s", id, took, w.monthWithin())
		}
	}
	for owner, caps := range w.months.caps {
		if held := append(ids(caps, schema.Slots), ids(caps, schema.Backfill)...); len(held) > 0 {
			return fmt.Errorf("owner %s holds slots for %q", owner, held)
		}
	}
	for arn := range w.months.started {
		if w.Steps.Runs(arn) {
			return fmt.Errorf("%s runs", arn)
		}
	}
	return nil
}

// allReadable: every object of what was published is there, with the digest that was recorded; its rows were read when it
// was published.
func allReadable(w *World) error {
	for key, run := range w.months.needed {
		out, err := w.S3.GetObject(background, &s3.GetObjectInput{Bucket: aws.String(MonthFiles), Key: &key})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", run, key, err)
		}
		body, err := io.ReadAll(out.Body)
		if sum := sha256.Sum256(body); err != nil || hex.EncodeToString(sum[:]) != w.months.digests[key] {
			return fmt.Errorf("%s: %s has other bytes than were published: %v", run, key, err)
		}
	}
	return nil
}
