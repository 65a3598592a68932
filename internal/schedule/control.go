package schedule

import (
	"context"
	"errors"
	"fmt"
)

// ControlLedger is what the switches ask of the store.
type ControlLedger interface {
	Control(ctx context.Context) (Control, error)
	// Switch replaces the control as read, in one transaction with its audit; another's turn meanwhile is a Conflict.
	Switch(ctx context.Context, was, now Control, a Audit) error
}

// ControlSubject is what audits of the switches are about. Its blank keeps it apart from every schedule's id.
const ControlSubject = "stage control"

// Switches is what a person asks of the red button: true for on. A switch that is nil stays as it is.
type Switches struct{ Dispatch, Send *bool }

// Over is the control with the switches turned.
func (s Switches) Over(c Control) Control {
	if s.Dispatch != nil {
		c.DispatchOff = !*s.Dispatch
	}
	if s.Send != nil {
		c.SendOff = !*s.Send
	}
	return c
}

func (c Control) String() string {
	return fmt.Sprintf("dispatch %s, send %s", OnOff(!c.DispatchOff), OnOff(!c.SendOff))
}

// OnOff spells a switch.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Switch turns the stage's switches and returns how they stand. Two people who turn different switches at once both get
// what they asked for. What changes nothing is no act and leaves no audit.
func (e *Editor) Switch(ctx context.Context, s Switches, reason, by string) (Control, error) {
	if ps := needReason(reason); ps != nil {
		return Control{}, ps
	}
	a := e.audit(ControlSubject, by, "control", reason, "", "")
	for try := 0; ; try++ {
		was, err := e.Ledger.Control(ctx)
		if err != nil {
			return was, err
		}
		now := s.Over(was)
		if now == was {
			return was, nil
		}
		a.Before, a.After = was.String(), now.String()
		err = e.Ledger.Switch(ctx, was, now, a)
		if retry(ctx, err, try) {
			continue // somebody else turned one between read and write
		}
		return now, err
	}
}

// retry reports that a write met a row that changed since it was read, and may be decided anew.
func retry(ctx context.Context, err error, try int) bool {
	var c *Conflict
	return errors.As(err, &c) && ctx.Err() == nil && try < rereads
}
