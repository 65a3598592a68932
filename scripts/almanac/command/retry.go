package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"almanac/internal/api"
	"almanac/scripts/almanac/client"
)

// repeatedFlag is a flag that may be given several times.
type repeatedFlag []string

func (r *repeatedFlag) String() string     { return strings.Join(*r, ", ") }
func (r *repeatedFlag) Set(v string) error { *r = append(*r, v); return nil }

func (p *Program) retry(ctx context.Context, c *call) error {
	if c.to != "missing" && c.to != "everyone" {
		return usage("--to is %q; want missing or everyone", c.to)
	}
	q := url.Values{"to": {c.to}}
	body := map[string]any{"to": c.to, "reason": c.reason}
	if len(c.unknown) > 0 {
		var hashes []string
		for _, address := range c.unknown {
			hash, err := hashOf(address)
			if err != nil {
				return usage("--include-unknown: %v", err)
			}
			hashes = append(hashes, hash)
		}
		q["include_unknown"], body["include_unknown"] = hashes, hashes
	}
	conn, err := p.onRun(c)
	if err != nil {
		return err
	}
	path := client.Path("runs", c.args[0], "retry")
	var plan api.RetryView
	if _, err := conn.Call(ctx, "GET", path+"?"+q.Encode(), nil, nil, &plan); err != nil {
		return err
	}
	p.printRetry(plan)
	if len(plan.Send) == 0 {
		p.printf("Nobody is left to send to.\n")
		return errFailed
	}
	if !c.yes {
		if err := p.ask(fmt.Sprintf("Send to %d recipients? [y/N] ", plan.Sends)); err != nil {
			return err
		}
	}
	if c.key == "" {
		b := make([]byte, 16)
		if _, err := io.ReadFull(p.Random, b); err != nil {
			return fmt.Errorf("no random numbers: %w", err)
		}
		c.key = hex.EncodeToString(b)
	}
	var r api.RunView
	status, err := conn.Call(ctx, "POST", path, http.Header{"Idempotency-Key": {c.key}}, body, &r)
	var down *client.Unreachable
	if errors.As(err, &down) {
		return fmt.Errorf("%w; whether the run was made is unknown: repeat with --key %s", err, c.key)
	} else if err != nil {
		return err
	}
	p.printf("%s  %s%s  (key %s)\n", r.ID, r.State, optional(status == http.StatusOK, ", made before by the same key"), c.key)
	return nil
}

func (p *Program) printRetry(v api.RetryView) {
	what := "a file that the new run makes: none was recorded"
	if f := v.File; f != nil {
		what = fmt.Sprintf("%s, %d rows, %d bytes", plain(f.Name), f.Rows, f.Bytes)
	}
	p.printf("Retry of %s with %s\n", v.Run, what)
	for _, part := range []struct {
		title string
		list  []api.RetryTarget
		count int
	}{{"Sends to", v.Send, v.Sends}, {"Leaves out", v.Leave, v.Leaves}} {
		p.printf("\n%s\n", part.title)
		t := newTable()
		for _, x := range part.list {
			t.row("  "+x.Channel, x.Recipient, dash(x.Outcome), x.Why)
		}
		t.write(p.Out)
		if len(part.list) == 0 {
			p.printf("  (nobody)\n")
		}
		if more := part.count - len(part.list); more > 0 {
			p.printf("  and %d more\n", more)
		}
	}
}
