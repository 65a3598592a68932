package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

func (s *server) registerRetry() {
	op := s.operation
	register(s, op("GET", "/runs/{run}/retry", "plan-retry", "Whom a retry as new would send to, and why not the others; changes nothing", 404, 409, 422), s.planRetry)
	registerBody[retryBody](s, op("POST", "/runs/{run}/retry", "retry-run", "Send a settled run's recorded file as a new run to those who got nothing", 400, 404, 409, 422), true, s.retryRun)
}

// RetryView is whom a retry sends to.
type RetryView struct {
	Run    string        `json:"run" doc:"the run that is repeated"`
	To     string        `json:"to" enum:"missing,everyone"`
	File   *FileView     `json:"file,omitempty" doc:"what is sent; absent: none was recorded, and the new run makes one"`
	Sends  int           `json:"send_count" doc:"how many it sends to"`
	Leaves int           `json:"leave_count" doc:"how many it leaves out"`
	Send   []RetryTarget `json:"send" doc:"the first 200 of them"`
	Leave  []RetryTarget `json:"leave" doc:"the first 200 of them, unknowns before others"`
}

// shownTargets is how many targets of a retry are shown: a preview of ten thousand must fit an answer.
const shownTargets = 200

// RetryTarget is one recipient of a retry.
type RetryTarget struct {
	Channel   string `json:"channel"`
	Recipient string `json:"recipient"`
	Hash      string `json:"hash"`
	Outcome   string `json:"outcome,omitempty" doc:"in the run that is repeated; absent: was not asked"`
	Why       string `json:"why"`
}

func (s *server) planRetry(ctx context.Context, in *struct {
	RunID
	To      string   `query:"to" doc:"missing (default) or everyone"`
	Unknown []string `query:"include_unknown,explode" doc:"hash of a recipient who is unknown, to be sent to nevertheless; may be given several times"`
}) (*reply[RetryView], error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return nil, err
	}
	p, err := s.Editor.PlanRetry(ctx, in.Run, schedule.RetryRequest{To: in.To, IncludeUnknown: in.Unknown})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.Leave, func(a, b schedule.RetryTarget) int { return unknownFirst(a) - unknownFirst(b) })
	v := RetryView{Run: in.Run, To: p.To, File: runView(p.Of).File, Sends: len(p.Send), Leaves: len(p.Leave), Send: retryTargets(p.Send), Leave: retryTargets(p.Leave)}
	return &reply[RetryView]{v}, nil
}

// unknownFirst orders those of whom nobody knows before the others: a person may include them.
func unknownFirst(t schedule.RetryTarget) int {
	if t.State == schedule.Unknown {
		return 0
	}
	return 1
}

func retryTargets(list []schedule.RetryTarget) []RetryTarget {
	list = list[:min(len(list), shownTargets)]
	out := make([]RetryTarget, 0, len(list))
	for _, t := range list {
		out = append(out, RetryTarget{t.Channel(), t.Address(), t.Hash, string(t.State), t.Why})
	}
	return out
}

type retryBody struct {
	To             string   `json:"to,omitempty" enum:"missing,everyone" doc:"missing (default): who was not asked, not sent to, or refused; everyone: also who has the delivery"`
	IncludeUnknown []string `json:"include_unknown,omitempty" doc:"hashes of recipients who are unknown, to be sent to nevertheless"`
	Reason         string   `json:"reason"`
}

func (s *server) retryRun(ctx context.Context, in *struct {
	RunID
	Raw
	Key string `header:"Idempotency-Key" doc:"required; the same key makes one run"`
}) (*runReply, error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return nil, err
	}
	if err := idempotencyKey(in.Key); err != nil {
		return nil, err
	}
	var body retryBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte("retry\n" + in.Run + "\n" + body.To + "\n" + strings.Join(body.IncludeUnknown, ",") + "\n" + body.Reason))
	who := caller(ctx)
	q := schedule.RetryRequest{To: body.To, IncludeUnknown: body.IncludeUnknown}
	run, created, err := s.Editor.Retry(ctx, in.Run, q, body.Reason, who.Name, who.Subject+" "+in.Key, hex.EncodeToString(hash[:]))
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
