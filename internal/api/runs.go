package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

func (s *server) registerRuns() {
	register(s, s.operation("GET", "/schedules/{schedule}/runs", "list-runs", "Runs of a schedule: those asked for by hand, then the latest first", 404, 422), s.listRuns)
	register(s, s.operation("GET", "/runs/{run}", "show-run", "One run: attempts, file, recipients, timeline", 404), s.showRun)
	register(s, s.operation("GET", "/runs/{run}/recipients", "list-recipients", "Recipients of a run and what became of each request", 404, 422), s.listRecipients)
}

type runsOf struct {
	ScheduleID
	Listing
}

func (s *server) listRuns(ctx context.Context, in *runsOf) (*list[RunView], error) {
	return listBelow(s, ctx, in, "runs", s.Reader.Runs, runView)
}

func (s *server) listSkips(ctx context.Context, in *runsOf) (*list[SkipView], error) {
	return listBelow(s, ctx, in, "skips", s.Reader.Skips, func(k schedule.Skip) SkipView {
		return SkipView{k.First, k.Last, k.Count, k.Reason}
	})
}

// listBelow is a list of rows that belong to one schedule.
func listBelow[R, T any](s *server, ctx context.Context, in *runsOf, name string, read func(ctx context.Context, id, cursor string, limit int) ([]R, string, error), view func(R) T) (*list[T], error) {
	if _, err := s.visible(ctx, in.Schedule, routes.Viewer); err != nil {
		return nil, err
	}
	return pageOf(ctx, in.Listing, name, in.Schedule, read, view)
}

// pageOf is one page of a list of rows that belong to of.
func pageOf[R, T any](ctx context.Context, in Listing, name, of string, read func(ctx context.Context, of, cursor string, limit int) ([]R, string, error), view func(R) T) (*list[T], error) {
	at, err := parseCursor(in.Cursor, name, of)
	if err != nil {
		return nil, err
	}
	rows, next, err := read(ctx, of, at.Place, in.Limit)
	if err != nil {
		return nil, forged(err, at, in.Cursor)
	}
	return listOf(rows, view, at, next), nil
}

// visibleRun reads a run for a caller who needs a right in its workspace. One that the caller may not see is not there.
func (s *server) visibleRun(ctx context.Context, run string, right routes.Right) (schedule.Run, error) {
	none := problem(http.StatusNotFound, "there is no run %q, or you may not see it", clip(run))
	id, occurrence, ok := schema.SplitRunID(run)
	if !ok || !identifier(id) || !identifier(strings.ReplaceAll(occurrence, "#", "")) {
		return schedule.Run{}, none
	}
	row, err := s.Reader.Run(ctx, run)
	if errors.Is(err, schedule.ErrNotFound) {
		return row, none
	} else if err != nil {
		return row, err
	}
	switch have := caller(ctx).In(row.Workspace); {
	case have < routes.Viewer:
		return schedule.Run{}, none
	case have < right:
		return schedule.Run{}, lacking(right, row.Workspace)
	}
	return row, nil
}

// runShown leaves the recipients out for who follows a run: their rows are one partition, and reading ten thousand of them
// each second would take the reads from its delivery (3,000 units a second:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html).
type runShown struct {
	RunID
	Recipients bool `query:"recipients" default:"true" doc:"false: without recipients and their outcomes"`
}

func (s *server) showRun(ctx context.Context, in *runShown) (*reply[RunDetail], error) {
	row, err := s.visibleRun(ctx, in.Run, routes.Viewer)
	if err != nil {
		return nil, err
	}
	recipients := RecipientSummary{Outcomes: map[string]int{}, Recipients: []RecipientView{}}
	if in.Recipients {
		if recipients, err = s.recipients(ctx, row); err != nil {
			return nil, err
		}
	}
	return &reply[RunDetail]{RunDetail{RunView: runView(row), RecipientSummary: recipients, Offers: row.Offers, DeadLetters: row.DeadLetters,
		History: row.History, Timeline: orEmpty(row.Timeline)}}, nil
}

type runNowBody struct {
	Version int `json:"version,omitempty" doc:"run only if the schedule has this version; absent: whatever it has"`
}

type runReply struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotency-Replayed"`
	Body     RunView
}

func (s *server) runNow(ctx context.Context, in *struct {
	ScheduleID
	Raw
	Key string `header:"Idempotency-Key" doc:"required; the same key makes one run"`
}) (*runReply, error) {
	row, err := s.visible(ctx, in.Schedule, routes.Operator)
	if err != nil {
		return nil, err
	}
	if err := idempotencyKey(in.Key); err != nil {
		return nil, err
	}
	var body runNowBody
	if len(bytes.TrimSpace(in.RawBody)) > 0 {
		if err := decode(in.RawBody, &body); err != nil {
			return nil, err
		}
	}
	if body.Version < 0 {
		return nil, wrong("version", fmt.Sprint(body.Version), "a version of the schedule, 1 or more")
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "run\n%s\n%d", in.Schedule, body.Version))
	// The subject makes the key the caller's own, whatever two people call themselves; the name is what audits show.
	who := caller(ctx)
	key := who.Subject + " " + in.Key
	if body.Version != 0 && body.Version != row.Version && !s.made(ctx, schema.RunID(row.ID, schedule.ManualKey(who.Name, key))) {
		p := problem(http.StatusPreconditionFailed, "the schedule has version %d, not %d", row.Version, body.Version)
		p.Current = &Current{Schedule: row.ID, State: string(row.State), Version: row.Version}
		return nil, p
	}
	run, created, err := s.Editor.RunNow(ctx, in.Schedule, who.Name, key, hex.EncodeToString(hash[:]))
	var conflict *schedule.Conflict
	if errors.As(err, &conflict) && strings.HasPrefix(conflict.Why, "key reused") {
		return nil, conflicting(http.StatusUnprocessableEntity, conflict).field("Idempotency-Key", in.Key, "a key that no other request has used")
	} else if err != nil {
		return nil, err
	}
	out := &runReply{Status: http.StatusCreated, Location: "/runs/" + run.ID(), Body: runView(run)}
	if !created {
		out.Status, out.Replayed = http.StatusOK, "true"
	}
	return out, nil
}

// made reports whether the request was carried out before: then it is answered as it was, whatever the schedule's
// version is by now. Where that cannot be read the version decides.
func (s *server) made(ctx context.Context, run string) bool {
	_, err := s.Reader.Run(ctx, run)
	return err == nil
}

const maxKey = 200

// idempotencyKey checks the header that names the request.
func idempotencyKey(key string) error {
	const want = "a text of your own that names this request, such as a UUID: 1 to 200 visible ASCII characters"
	if key == "" {
		return problem(http.StatusBadRequest, "the header Idempotency-Key is missing").field("Idempotency-Key", "", want)
	}
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return problem(http.StatusUnprocessableEntity, "a header cannot be used").field("Idempotency-Key", key, want)
	}
	return nil
}
