package api

import (
	"context"
	"strconv"
	"time"

	"almanac/internal/schedule"
)

// ControlView is how the stage's switches stand, and who turned one last.
type ControlView struct {
	Dispatch string     `json:"dispatch" enum:"on,off" doc:"off: no due occurrence is admitted"`
	Send     string     `json:"send" enum:"on,off" doc:"off: no recipient is asked; runs wait until it is on"`
	Changed  *AuditView `json:"changed,omitempty"`
}

type controlBody struct {
	Dispatch *string `json:"dispatch,omitempty" enum:"on,off" doc:"absent: as it is"`
	Send     *string `json:"send,omitempty" enum:"on,off" doc:"absent: as it is"`
	Reason   string  `json:"reason"`
}

func (s *server) registerControl() {
	op := s.operation
	register(s, op("GET", "/control", "show-control", "The switches of this stage: dispatch and send"), s.showControl)
	registerBody[controlBody](s, op("PUT", "/control", "set-control", "Turn a switch; one that is left out stays as it is", 422), true, s.setControl)
	register(s, op("GET", "/control/audits", "list-control-audits", "Who turned the switches, the latest first", 422), s.listControlAudits)
	register(s, op("GET", "/dead-letters", "list-dead-letters", "Messages that nobody could read", 422), s.listDeadLetters)
}

func (s *server) showControl(ctx context.Context, _ *struct{}) (*reply[ControlView], error) {
	c, err := s.Reader.Control(ctx)
	if err != nil {
		return nil, err
	}
	return s.controlView(ctx, c)
}

func (s *server) controlView(ctx context.Context, c schedule.Control) (*reply[ControlView], error) {
	last, _, err := s.Reader.Audits(ctx, schedule.ControlSubject, "", 1)
	if err != nil {
		return nil, err
	}
	v := ControlView{Dispatch: schedule.OnOff(!c.DispatchOff), Send: schedule.OnOff(!c.SendOff)}
	if len(last) > 0 {
		changed := auditView(last[0])
		v.Changed = &changed
	}
	return &reply[ControlView]{v}, nil
}

func (s *server) setControl(ctx context.Context, in *Raw) (*reply[ControlView], error) {
	var body controlBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	turn := schedule.Switches{}
	var err error
	if turn.Dispatch, err = onOff("dispatch", body.Dispatch); err != nil {
		return nil, err
	}
	if turn.Send, err = onOff("send", body.Send); err != nil {
		return nil, err
	}
	if turn.Dispatch == nil && turn.Send == nil {
		return nil, wrong("dispatch", "", `"on" or "off", here or in send: at least one of the two switches`)
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	c, err := s.Editor.Switch(ctx, turn, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return s.controlView(ctx, c)
}

// onOff reads a switch; nil is one that is left as it is.
func onOff(field string, value *string) (*bool, error) {
	if value == nil {
		return nil, nil
	}
	on := *value == "on"
	if !on && *value != "off" {
		return nil, schedule.Problems{{Field: field, Value: strconv.Quote(*value), Want: `"on" or "off"`}}
	}
	return &on, nil
}

func (s *server) listControlAudits(ctx context.Context, in *Listing) (*list[AuditView], error) {
	return pageOf(ctx, *in, "control audits", schedule.ControlSubject, s.Reader.Audits, auditView)
}

// DeadLetterView is a message that nobody could read.
type DeadLetterView struct {
	Message  string     `json:"message" doc:"its id in the queue"`
	Queue    string     `json:"queue"`
	Reason   string     `json:"reason" doc:"why it could not be read"`
	Body     string     `json:"body" doc:"cut to 4 KB"`
	At       *time.Time `json:"at,omitempty" doc:"when it was recorded"`
	Redriven *time.Time `json:"redriven_at,omitempty" doc:"when a person last had it read again"`
}

func (s *server) listDeadLetters(ctx context.Context, in *Listing) (*list[DeadLetterView], error) {
	// Its of is no list's beside it: dead letters belong to the stage.
	read := func(ctx context.Context, _, from string, limit int) ([]schedule.DeadLetter, string, error) {
		return s.Reader.DeadLetterPage(ctx, from, limit)
	}
	return pageOf(ctx, *in, "dead letters", "", read, deadLetterView)
}
