package store

import (
	"context"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"
	"almanac/internal/transition"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Facts are facts with names that a test outside can set.
type Facts struct {
	Owner    string
	Earlier  string
	Now      time.Time
	Wake     time.Time
	Yields   int
	Schedule *schedule.Schedule
	Run      snapshot.Run
	Before   time.Time
	Current  int
	Query    string
	Decided  []transition.Guard
}

// Advance does one transition through the only writer of states.
func Advance(ctx context.Context, s *Store, table, from, event string, k schema.Key, f Facts, put map[string]types.AttributeValue) error {
	fs := facts{owner: f.Owner, earlier: f.Earlier, now: f.Now, wake: f.Wake, yields: f.Yields, schedule: f.Schedule,
		run: f.Run, before: f.Before, current: f.Current, query: f.Query, decided: f.Decided}
	switch table {
	case schedule.Runs.Name:
		return advanceIn(ctx, s, schedule.Runs, from, event, k, fs, put)
	case schedule.Submissions.Name:
		return advanceIn(ctx, s, schedule.Submissions, from, event, k, fs, put)
	case snapshot.Runs.Name:
		return advanceIn(ctx, s, snapshot.Runs, from, event, k, fs, put)
	}
	return advanceIn(ctx, s, schedule.Schedules, from, event, k, fs, put)
}

func advanceIn[S, E ~string](ctx context.Context, s *Store, t transition.Table[S, E], from, event string, k schema.Key, f facts, put item) error {
	w, err := advance(step[S, E]{table: t, from: S(from), event: E(event), key: k, facts: f, put: put,
		with: update{set: map[string]any{schema.UpdatedAt: "2026-11-30T08:00:00.000Z"}}})
	if err != nil {
		return &schedule.Conflict{Event: event, Why: err.Error()}
	}
	return s.send(ctx, w)
}
