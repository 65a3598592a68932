package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Once names a person's request, so that asking it again finds the version that it made and makes no other one. Who and
// Key are the caller and its own name of the request; What is all that the request says. A zero Key names nothing: each
// request is one of its own.
type Once struct{ Who, Key, What string }

// KeyReused is why a request is refused whose key another request of the same period has used.
const KeyReused = "key reused for another request"

func (o Once) token() string { return o.name() + "." + half(o.What) }

func (o Once) name() string { return half(o.Who + "\n" + o.Key) }

func half(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// RequestOnce is Request, once per key; created is false where the key had made the version before.
func (e *Editor) RequestOnce(ctx context.Context, p Period, why, by string, o Once) (r Run, created bool, err error) {
	return e.once(ctx, p, o, func(e *Editor) (Run, error) { return e.Request(ctx, p, why, by) })
}

// AcceptOnce is Accept, once per key.
func (e *Editor) AcceptOnce(ctx context.Context, id string, checks []string, why, by string, o Once) (r Run, created bool, err error) {
	r, err = e.Ledger.Run(ctx, id)
	if err != nil {
		return r, false, err
	}
	return e.once(ctx, r.Period, o, func(e *Editor) (Run, error) { return e.Accept(ctx, id, checks, why, by) })
}

// BackfillOnce is Backfill, once per key: a period that the key has planned before is listed with its run again.
func (e *Editor) BackfillOnce(ctx context.Context, g Range, why, by string, o Once) ([]Proposal, error) {
	list, err := e.under(o).Backfill(ctx, g, why, by, false)
	for i, p := range list {
		if p.Run != "" || o.Key == "" {
			continue
		}
		r, made, failed := e.made(ctx, p.Period, o)
		if IsConflict(failed) {
			list[i].Why = KeyReused
		} else if failed != nil {
			return list, failed
		} else if made {
			list[i].Run, list[i].Why = r.ID(), ""
		}
	}
	return list, err
}

// once looks for what the key has made, before the act and, where that was refused, again: the same request may have been
// asked twice at a time.
func (e *Editor) once(ctx context.Context, p Period, o Once, act func(*Editor) (Run, error)) (Run, bool, error) {
	if r, made, err := e.made(ctx, p, o); made || err != nil {
		return r, false, err
	}
	r, err := act(e.under(o))
	if IsConflict(err) {
		if r, made, failed := e.made(ctx, p, o); made && failed == nil {
			return r, false, nil
		}
	}
	return r, err == nil, err
}

// under is the editor whose requests' audits bear the request's token: a run's row is written with each chunk, and must not
// grow by it.
func (e *Editor) under(o Once) *Editor {
	if o.Key == "" {
		return e
	}
	named := *e
	named.Token = o.token
	return &named
}

// made finds the version that a request has made.
func (e *Editor) made(ctx context.Context, p Period, o Once) (Run, bool, error) {
	if o.Key == "" {
		return Run{}, false, nil
	}
	runs, err := e.Ledger.Versions(ctx, p)
	if err != nil {
		return Run{}, false, err
	}
	for _, r := range runs {
		if r.RequestedBy == "" {
			continue // the planner's
		}
		ids, err := e.Ledger.AuditIDs(ctx, r.ID())
		if err != nil {
			return Run{}, false, err
		}
		for _, id := range ids {
			if id == o.token() {
				return r, true, nil
			}
			if strings.HasPrefix(id, o.name()+".") {
				return r, false, &Conflict{Event: string(Request), Why: fmt.Sprintf("%s: it has made %s", KeyReused, r.ID()), Run: &r}
			}
		}
	}
	return Run{}, false, nil
}
