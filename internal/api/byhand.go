package api

import (
	"context"
	"regexp"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

// RunID is the path of one run.
type RunID struct {
	Run string `path:"run" doc:"The run's id: schedule@occurrence"`
}

func (s *server) registerByHand() {
	op := s.operation
	registerBody[reasonBody](s, op("POST", "/runs/{run}/stop", "stop-run", "Ask an open run to end; it fails as stopped_by_operator at its next step", 404, 409, 422), true, s.stopRun)
	registerBody[revokeBody](s, op("POST", "/runs/{run}/links/revoke", "revoke-links", "Take back the download link of one recipient, or all links of the run", 404, 409, 422), true, s.revokeLinks)
	register(s, op("GET", "/runs/{run}/accesses", "list-accesses", "Whose links were used, by recipient and time", 404, 422), s.listAccesses)
	register(s, op("GET", "/runs/{run}/audits", "list-run-audits", "What people did to a run, the latest first", 404, 422), s.listRunAudits)
	register(s, op("GET", "/schedules/{schedule}/audits", "list-schedule-audits", "What people did to a schedule, the latest first", 404, 422), s.listScheduleAudits)
}

type reasonedRun struct {
	RunID
	Raw
}

func (s *server) stopRun(ctx context.Context, in *reasonedRun) (*reply[RunView], error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return nil, err
	}
	var body reasonBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	run, err := s.Editor.Stop(ctx, in.Run, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[RunView]{runView(run)}, nil
}

type revokeBody struct {
	Recipient string `json:"recipient" doc:"the hash of a recipient as GET /runs/{run} shows it to operators, or \"all\": also those who would be asked later"`
	Reason    string `json:"reason"`
}

// RevocationView is a link, or all links of a run, that lead nowhere any more.
type RevocationView struct {
	Run       string    `json:"run"`
	Channel   string    `json:"channel,omitempty"`
	Recipient string    `json:"recipient" doc:"the recipient's hash, or \"all\""`
	RevokedAt time.Time `json:"revoked_at" doc:"of the first act that took it back"`
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (s *server) revokeLinks(ctx context.Context, in *reasonedRun) (*reply[RevocationView], error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return nil, err
	}
	var body revokeBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if body.Recipient != schedule.AllLinks && !hashForm.MatchString(body.Recipient) {
		return nil, wrong("recipient", body.Recipient, `the hash of a recipient, 32 hexadecimal digits as GET /runs/{run} shows it, or "all"`)
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	done, err := s.Editor.RevokeLinks(ctx, in.Run, body.Recipient, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	v := RevocationView{Run: done.Run, Recipient: schedule.AllLinks, RevokedAt: done.At}
	if sub := done.Submission; sub != nil {
		v.Channel, v.Recipient = sub.Channel, sub.RecipientHash
	}
	return &reply[RevocationView]{v}, nil
}

// AccessView is one use of a recipient's link. Neither the address nor the program of who used it is kept.
type AccessView struct {
	At      time.Time `json:"at"`
	What    string    `json:"what" enum:"download,unsubscribe"`
	Channel string    `json:"channel"`
	Hash    string    `json:"hash" doc:"the recipient's, as GET /runs/{run} shows it"`
}

type runList struct {
	RunID
	Listing
}

func (s *server) listAccesses(ctx context.Context, in *runList) (*list[AccessView], error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return nil, err
	}
	return pageOf(ctx, in.Listing, "accesses", in.Run, s.Reader.Accesses, func(a schedule.Access) AccessView {
		return AccessView{a.At, a.What, a.Channel, a.RecipientHash}
	})
}

// AuditView is one act of a person.
type AuditView struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	What   string    `json:"what"`
	Why    string    `json:"why,omitempty"`
	Before string    `json:"before,omitempty"`
	After  string    `json:"after,omitempty"`
}

func auditView(a schedule.Audit) AuditView {
	return AuditView{a.At, a.Who, a.What, a.Why, a.Before, a.After}
}

func (s *server) listRunAudits(ctx context.Context, in *runList) (*list[AuditView], error) {
	if _, err := s.visibleRun(ctx, in.Run, routes.Viewer); err != nil {
		return nil, err
	}
	return pageOf(ctx, in.Listing, "run audits", in.Run, s.Reader.Audits, auditView)
}

func (s *server) listScheduleAudits(ctx context.Context, in *runsOf) (*list[AuditView], error) {
	return listBelow(s, ctx, in, "audits", s.Reader.Audits, auditView)
}
