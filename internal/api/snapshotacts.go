package api

import (
	"context"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/snapshot"
)

func (s *server) registerSnapshotActs() {
	op := s.operation
	registerBody[reasonBody](s, op("POST", snapshotPath+"/cancel", "cancel-snapshot", "Cancel a version that has not settled; its job is stopped and its slot freed", 404, 409, 422), true, s.cancelSnapshot)
	registerBody[reasonBody](s, op("POST", snapshotPath+"/retry-now", "retry-snapshot-now", "Let a version that waits for its next attempt be tried at once", 404, 409, 422), true, s.retrySnapshotNow)
	registerBody[acceptBody](s, op("POST", snapshotPath+"/accept", "accept-checks", "Ask for a new version that passes the named checks where it finds the same values again", 400, 404, 409, 422), true, s.acceptChecks)
	registerBody[reasonBody](s, op("POST", snapshotPath+"/roll-back", "roll-back", "Make this published version the month's current one again", 404, 409, 422), true, s.rollBack)
}

// reasoning reads a body that gives a reason.
func reasoning(raw []byte, body any, text *string) error {
	if err := decode(raw, body); err != nil {
		return err
	}
	return reason(*text)
}

// onceBy names the caller's request by its key; what is all that it says.
func onceBy(ctx context.Context, key string, what ...string) (snapshot.Once, error) {
	// The subject makes the key the caller's own, whatever two people call themselves.
	return snapshot.Once{Who: caller(ctx).Subject, Key: key, What: strings.Join(what, "\n")}, idempotencyKey(key)
}

type reasonedSnapshot struct {
	SnapshotID
	Raw
}

func (s *server) cancelSnapshot(ctx context.Context, in *reasonedSnapshot) (*reply[SnapshotView], error) {
	return s.acted(ctx, in, s.Months.Editor.Cancel)
}

func (s *server) retrySnapshotNow(ctx context.Context, in *reasonedSnapshot) (*reply[SnapshotView], error) {
	return s.acted(ctx, in, s.Months.Editor.RetryNow)
}

// acted does what needs a reason to a version.
func (s *server) acted(ctx context.Context, in *reasonedSnapshot, act func(ctx context.Context, id, why, by string) (snapshot.Run, error)) (*reply[SnapshotView], error) {
	if _, err := s.visibleSnapshot(ctx, in.Snapshot, routes.Operator); err != nil {
		return nil, err
	}
	var body reasonBody
	if err := reasoning(in.RawBody, &body, &body.Reason); err != nil {
		return nil, err
	}
	r, err := act(ctx, in.Snapshot, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[SnapshotView]{snapshotView(r, snapshot.Pointer{})}, nil
}

type acceptBody struct {
	Checks []string `json:"checks" doc:"names of checks that the version failed"`
	Reason string   `json:"reason"`
}

func (s *server) acceptChecks(ctx context.Context, in *struct {
	SnapshotID
	Raw
	Key string `header:"Idempotency-Key" doc:"required; the same key makes one version"`
}) (*snapshotReply, error) {
	if _, err := s.visibleSnapshot(ctx, in.Snapshot, routes.Operator); err != nil {
		return nil, err
	}
	var body acceptBody
	if err := reasoning(in.RawBody, &body, &body.Reason); err != nil {
		return nil, err
	}
	once, err := onceBy(ctx, in.Key, append([]string{"accept", in.Snapshot, body.Reason}, body.Checks...)...)
	if err != nil {
		return nil, err
	}
	r, created, err := s.Months.Editor.AcceptOnce(ctx, in.Snapshot, body.Checks, body.Reason, caller(ctx).Name, once)
	if err != nil {
		return nil, reused(err, in.Key)
	}
	return versionMade(r, created), nil
}

func (s *server) rollBack(ctx context.Context, in *reasonedSnapshot) (*reply[CurrentView], error) {
	r, err := s.visibleSnapshot(ctx, in.Snapshot, routes.Operator)
	if err != nil {
		return nil, err
	}
	var body reasonBody
	if err := reasoning(in.RawBody, &body, &body.Reason); err != nil {
		return nil, err
	}
	p, err := s.Months.Editor.RollBack(ctx, r.Period, r.Version, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[CurrentView]{*currentView(p)}, nil
}
