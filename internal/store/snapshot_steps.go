package store

import (
	"context"
	"fmt"
	"time"

	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/source"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Begin starts the attempt of a queued run's job.
func (s *Snapshots) Begin(ctx context.Context, r snapshot.Run, b snapshot.Beginning) (snapshot.Run, error) {
	set := cursorAttributes(b.Cursor)
	set[schema.StartedAt], set[schema.Mode], set[schema.Generation], set[schema.Basis] = schema.Time(b.Now), string(b.Mode), b.Generation, encodeBasis(b.Basis)
	set[schema.OfferedAt] = nil // nobody offers it any more
	if b.Execution != "" {
		set[schema.Execution] = b.Execution
	}
	return s.moved(ctx, r, snapshot.Start, facts{}, update{set: set, add: map[string]int{schema.Attempts: 1}, append: entry(b.Now, "start, attempt %d", r.Attempts+1)},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Running) && num(it, schema.Job) == r.Job && str(it, schema.StartedAt) == schema.Time(b.Now)
		})
}

// Resume goes on with a job that was begun: it writes nothing that is not there, and hands back the row as it stands.
func (s *Snapshots) Resume(ctx context.Context, r snapshot.Run) (snapshot.Run, error) {
	event := snapshot.Resume
	if r.State == snapshot.Validating {
		event = snapshot.ResumeValidation
	}
	return s.moved(ctx, r, event, facts{}, update{set: map[string]any{schema.Job: r.Job}}, nil)
}

// Commit makes a chunk part of the generation and moves the cursor past it, in one transaction. r holds the cursor as
// read. The object's name, which no other invocation has, tells a lost reply from another's chunk.
func (s *Snapshots) Commit(ctx context.Context, r snapshot.Run, c snapshot.Chunk, to snapshot.Cursor, now time.Time) error {
	w, err := runWrite(r, snapshot.CommitChunk, facts{}, update{set: cursorAttributes(to)}, nil)
	if err != nil {
		return err
	}
	key := schema.ChunkKey(r.ID(), r.Generation, c.Number)
	put := write{event: string(snapshot.CommitChunk), key: key, put: keyItem(key), refused: "the chunk is committed already",
		mine: func(it item) bool { return str(it, schema.Object) == c.Object }}
	for k, v := range compact(chunkAttributes(c, now)) {
		put.put[k] = v
	}
	put.condition = "attribute_not_exists(" + put.expr.name(schema.PK) + ")"
	return s.Store.transact(ctx, w, put)
}

// BeginValidation ends generation.
func (s *Snapshots) BeginValidation(ctx context.Context, r snapshot.Run, now time.Time) (snapshot.Run, error) {
	return s.moved(ctx, r, snapshot.BeginValidation, facts{}, update{append: entry(now, "begin validation")},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Validating) && num(it, schema.Job) == r.Job
		})
}

// Chunks lists committed chunks of a generation in order, from a number on, at most limit.
func (s *Snapshots) Chunks(ctx context.Context, run string, generation, from, limit int) ([]snapshot.Chunk, error) {
	var e expression
	const last = 99_999_999
	cond := e.name(schema.PK) + " = " + e.value(string(schema.ChunkPartition(run, generation))) + " AND " + e.name(schema.SK) + " BETWEEN " +
		e.value(string(schema.ChunkKey(run, generation, from).SK)) + " AND " + e.value(string(schema.ChunkKey(run, generation, last).SK))
	sp := span{in: dynamodb.QueryInput{KeyConditionExpression: &cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ConsistentRead: aws.Bool(true)}}
	var list []snapshot.Chunk
	var start item
	for len(list) < limit {
		p, err := s.Store.query(ctx, sp, start, limit-len(list))
		if err != nil {
			return nil, err
		}
		for _, it := range p.items {
			c, err := decodeChunk(it)
			if err != nil {
				return nil, fmt.Errorf("chunks of %s: %w", run, err)
			}
			list = append(list, c)
		}
		if start = p.next; len(start) == 0 {
			break
		}
	}
	return list, nil
}

// RecordVerdict notes what validation found.
func (s *Snapshots) RecordVerdict(ctx context.Context, r snapshot.Run, v snapshot.Verdict, now time.Time) error {
	word := failed
	if v.Passed {
		word = passed
	}
	_, err := s.moved(ctx, r, snapshot.RecordVerdict, facts{}, update{set: map[string]any{schema.Verdict: word, schema.Manifest: v.Manifest, schema.ComparedTo: v.Current,
		schema.CheckList: document(v.Checks, len(v.Checks) == 0), schema.UpdatedAt: schema.Time(now)}},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Validating) && num(it, schema.Job) == r.Job && str(it, schema.Verdict) == word &&
				str(it, schema.Manifest) == v.Manifest && num(it, schema.ComparedTo) == v.Current
		})
	return err
}

// RecordQuery notes a query that runs apart from us: the first of its generation and purpose, or one after another that
// ended without a result.
func (s *Snapshots) RecordQuery(ctx context.Context, r snapshot.Run, q snapshot.Query) error {
	_, err := s.moved(ctx, r, snapshot.RecordQuery, facts{query: q.For}, update{set: map[string]any{schema.QueryID: q.ID, schema.QueryFor: q.For, schema.QueryEnded: nil, schema.QueryNoted: nil},
		add: map[string]int{schema.QueryNumber: 1}},
		func(it item) bool {
			return num(it, schema.Job) == r.Job && str(it, schema.QueryID) == q.ID && str(it, schema.QueryFor) == q.For
		})
	return err
}

// NoteQuery notes what became of the recorded query, and adds its cost to the run's unless it was noted before.
func (s *Snapshots) NoteQuery(ctx context.Context, r snapshot.Run, ended bool, c source.Cost) (snapshot.Run, error) {
	u, mine := noting(r, ended, c)
	return s.moved(ctx, r, snapshot.NoteQuery, facts{}, u, mine)
}

// NoteStopped notes that the query of a run that no job holds any more was stopped. It stands beside what the run has come to,
// and changes nothing of that.
func (s *Snapshots) NoteStopped(ctx context.Context, r snapshot.Run, c source.Cost) (snapshot.Run, error) {
	u, mine := noting(r, true, c)
	row := item{}
	w := write{event: "note stopped", key: snapshotKey(r), refused: "the run has another query, or has moved on", mine: mine, row: &row}
	w.condition = w.expr.equals(schema.State, string(r.State)) + " AND " + queryAsRead(&w.expr, facts{run: r})
	w.update = w.expr.update(u)
	if err := s.Store.send(ctx, w); err != nil {
		return r, err
	}
	return decodeSnapshot(row)
}

func noting(r snapshot.Run, ended bool, c source.Cost) (update, func(item) bool) {
	total := r.QueryCost
	if !r.Query.Noted {
		total = total.Add(c)
	}
	u := update{set: map[string]any{schema.QueryNoted: true, schema.QueryEnded: nil}}
	if ended {
		u.set[schema.QueryEnded] = true
	}
	costs(u.set, total)
	return u, func(it item) bool {
		return num(it, schema.Job) == r.Job && str(it, schema.QueryID) == r.Query.ID && flag(it, schema.QueryNoted) && flag(it, schema.QueryEnded) == ended
	}
}

// Publish makes a version the period's current one, in one transaction with the run, the period's head and the slot. read
// is the current pointer as read; the verdict must have been found against it.
func (s *Snapshots) Publish(ctx context.Context, r snapshot.Run, read snapshot.Pointer, now time.Time) error {
	w, err := runWrite(r, snapshot.Publish, facts{current: read.Version, decided: []transition.Guard{snapshot.CurrentAsRead}},
		update{set: settledSnapshot(r, now), append: entry(now, "publish")},
		func(it item) bool {
			return str(it, schema.State) == string(snapshot.Published) && num(it, schema.Job) == r.Job && str(it, schema.Manifest) == r.Manifest()
		})
	if err != nil {
		return err
	}
	point := pointing(read, snapshot.Pointer{Period: r.Period, Version: r.Version, Manifest: r.Manifest(), MovedAt: now, MovedBy: r.JobName()}, string(snapshot.Publish))
	return s.Store.transact(ctx, w, point, headDone(r, snapshot.Publish, snapshot.Published, "", true), freeing(r.Owner, r.ID()))
}

// pointing moves a current pointer on the condition that it is as read.
func pointing(read, to snapshot.Pointer, event string) write {
	w := write{event: event, key: currentKey(to.Period), refused: "the current version is not the one that was read"}
	e := &w.expr
	set := map[string]any{schema.Version: to.Version, schema.Previous: nil, schema.Manifest: to.Manifest, schema.MovedAt: schema.Time(to.MovedAt),
		schema.MovedBy: to.MovedBy, schema.Reason: to.Reason}
	if read.Version == 0 {
		w.condition = "attribute_not_exists(" + e.name(schema.PK) + ")"
	} else {
		w.condition = e.equals(schema.Version, read.Version)
		set[schema.Previous] = read.Version
	}
	w.update = e.update(update{set: set})
	return w
}
