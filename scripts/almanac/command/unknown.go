package command

import (
	"context"
	"fmt"

	"almanac/internal/api"
	"almanac/scripts/almanac/client"
)

// onRecipient checks what an act on one recipient of a run needs, and connects.
func (p *Program) onRecipient(c *call) (*client.Client, string, error) {
	if c.recipient == "" {
		return nil, "", usage("--recipient is missing: the address, URL or hash of one recipient; almanac show RUN lists them")
	}
	hash, err := hashOf(c.recipient)
	if err != nil {
		return nil, "", err
	}
	conn, err := p.onRun(c)
	return conn, hash, err
}

func (p *Program) resolve(ctx context.Context, c *call) error {
	if c.as != "submitted" && c.as != "skipped" {
		return usage("--as is %q; want submitted or skipped", c.as)
	}
	conn, hash, err := p.onRecipient(c)
	if err != nil {
		return err
	}
	var v api.RecipientView
	body := map[string]string{"as": c.as, "reason": c.reason}
	if _, err := conn.Call(ctx, "POST", client.Path("runs", c.args[0], "recipients", hash, "resolve"), nil, body, &v); err != nil {
		return err
	}
	p.printf("%s: %s is %s\n", c.args[0], plain(v.Recipient), v.Outcome)
	return nil
}

func (p *Program) resend(ctx context.Context, c *call) error {
	conn, hash, err := p.onRecipient(c)
	if err != nil {
		return err
	}
	var v api.RecipientView
	if _, err := conn.Call(ctx, "POST", client.Path("runs", c.args[0], "recipients", hash, "resend"), nil, map[string]string{"reason": c.reason}, &v); err != nil {
		return err
	}
	if v.Resend == nil {
		return &client.Unreachable{Base: conn.Base, Cause: fmt.Errorf("its answer shows no resend")}
	}
	p.printf("%s: %s will be sent to again, asked for by %s: %s\nalmanac show %[1]s tells what came of it\n", c.args[0], plain(v.Recipient), plain(v.Resend.By), plain(v.Resend.Reason))
	return nil
}

func (p *Program) redrive(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
	if err := named("dead letter", c.args[0]); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var v api.DeadLetterView
	if _, err := conn.Call(ctx, "POST", client.Path("dead-letters", c.args[0], "redrive"), nil, map[string]string{"reason": c.reason}, &v); err != nil {
		return err
	}
	p.printf("%s: read again at %s, and what it names is offered\n", v.Message, when(v.Redriven))
	return nil
}
