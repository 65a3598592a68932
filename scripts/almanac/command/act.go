package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"almanac/internal/api"
	"almanac/scripts/almanac/client"
)

func (p *Program) runNow(ctx context.Context, c *call) error {
	if err := named("schedule", c.args[0]); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	if c.key == "" {
		b := make([]byte, 16)
		if _, err := io.ReadFull(p.Random, b); err != nil {
			return fmt.Errorf("no random numbers: %w", err)
		}
		c.key = hex.EncodeToString(b)
	}
	body := map[string]any{}
	if c.version != 0 {
		body["version"] = c.version
	}
	var r api.RunView
	status, err := conn.Call(ctx, "POST", client.Path("schedules", c.args[0], "runs"), http.Header{"Idempotency-Key": {c.key}}, body, &r)
	var down *client.Unreachable
	if errors.As(err, &down) {
		return fmt.Errorf("%w; whether the run was made is unknown: repeat with --key %s", err, c.key)
	} else if err != nil {
		return err
	}
	p.printf("%s  %s%s  (key %s)\n", r.ID, r.State, optional(status == http.StatusOK, ", made before by the same key"), c.key)
	if !c.wait {
		return nil
	}
	return p.follow(ctx, conn, r.ID)
}

func (p *Program) tail(ctx context.Context, c *call) error {
	if err := named("run", c.args[0]); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	return p.follow(ctx, conn, c.args[0])
}

// interval is between two looks at a run.
const interval = time.Second

// follow prints a run's steps as they come, until it settles.
func (p *Program) follow(ctx context.Context, conn *client.Client, id string) error {
	shown, state := 0, ""
	for {
		var r api.RunDetail
		if _, err := conn.Call(ctx, "GET", client.Path("runs", id)+"?recipients=false", nil, nil, &r); err != nil {
			return err
		}
		if len(r.Timeline) < shown { // the oldest entries give way on a long run
			shown = 0
		}
		for ; shown < len(r.Timeline); shown++ {
			p.printf("%s\n", plain(r.Timeline[shown]))
		}
		if r.State != state {
			state = r.State
			p.printf("%s: %s\n", r.ID, state)
		}
		switch state {
		case "succeeded", "skipped":
			return nil
		case "failed":
			if e := r.Error; e != nil {
				p.printf("%s: %s (%s)\nRemedy: %s\n", e.Code, plain(e.Message), e.Meaning, e.Remedy)
			}
			return errFailed
		}
		if err := p.Wait(ctx, interval); err != nil {
			return fmt.Errorf("stopped following %s, which is %s: %w", id, state, err)
		}
	}
}

func (p *Program) pause(ctx context.Context, c *call) error {
	return p.switched(ctx, c, "POST", "pause", "paused")
}

func (p *Program) resume(ctx context.Context, c *call) error {
	return p.switched(ctx, c, "POST", "resume", "resumed")
}

func (p *Program) remove(ctx context.Context, c *call) error {
	return p.switched(ctx, c, "DELETE", "", "deleted")
}

func (p *Program) switched(ctx context.Context, c *call, method, verb, done string) error {
	if err := needReason(c); err != nil {
		return err
	}
	if err := named("schedule", c.args[0]); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	path := client.Path("schedules", c.args[0])
	if verb != "" {
		path += "/" + verb
	}
	var s api.ScheduleView
	if _, err := conn.Call(ctx, method, path, nil, map[string]string{"reason": c.reason}, &s); err != nil {
		return err
	}
	p.printf("%s: %s%s\n", c.args[0], done, optional(s.NextDue != nil, ", next due %s", when(s.NextDue)))
	return nil
}

type clockView struct {
	At     time.Time `json:"at"`
	Frozen bool      `json:"frozen"`
}

func (p *Program) clock(ctx context.Context, c *call) error {
	set := c.args[0] == "set"
	if c.args[0] != "get" && !set || set != (len(c.args) == 2) {
		return usage("usage: almanac clock get | set TIME [--frozen]")
	}
	var at time.Time
	if set {
		var err error
		if at, err = time.Parse(time.RFC3339, c.args[1]); err != nil {
			return usage("TIME is %q; want a time such as 2013-07-01T12:00:00Z", c.args[1])
		}
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var v clockView
	if set {
		_, err = conn.Call(ctx, "PUT", "/clock", nil, clockView{at, c.frozen}, &v)
	} else {
		_, err = conn.Call(ctx, "GET", "/clock", nil, nil, &v)
	}
	if client.Is(err, http.StatusNotFound) {
		return errors.Join(errors.New("this stack has no business clock of its own: only the local profile has"), err)
	} else if err != nil {
		return err
	}
	p.printf("%s%s\n", when(&v.At), optional(v.Frozen, " (frozen)"))
	return nil
}
