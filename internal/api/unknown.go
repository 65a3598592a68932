package api

import (
	"context"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

// What people do about a recipient of whom nobody knows whether the request was accepted.
func (s *server) registerUnknown() {
	op := s.operation
	registerBody[resolveBody](s, op("POST", "/runs/{run}/recipients/{recipient}/resolve", "resolve-recipient", "Record what became of an unknown; nothing is sent", 404, 409, 422), true, s.resolve)
	send := op("POST", "/runs/{run}/recipients/{recipient}/resend", "resend-recipient", "Have an unknown sent the file again, under a new key; it is carried out soon", 404, 409, 422)
	send.DefaultStatus = 202
	registerBody[reasonBody](s, send, true, s.resend)
}

// recipientOf is the path of one recipient of a run.
type recipientOf struct {
	RunID
	Recipient string `path:"recipient" doc:"The recipient's hash, as GET /runs/{run} shows it to operators"`
	Raw
}

// unknownOf checks what every act on a recipient needs besides its reason.
func (s *server) unknownOf(ctx context.Context, in *recipientOf) error {
	if _, err := s.visibleRun(ctx, in.Run, routes.Operator); err != nil {
		return err
	}
	if !hashForm.MatchString(in.Recipient) {
		return wrong("recipient", in.Recipient, "the hash of a recipient, 32 hexadecimal digits as GET /runs/{run} shows it")
	}
	return nil
}

type resolveBody struct {
	As     string `json:"as" enum:"submitted,skipped" doc:"submitted: the recipient has the delivery; skipped: has it not, and is left at that"`
	Reason string `json:"reason"`
}

func (s *server) resolve(ctx context.Context, in *recipientOf) (*reply[RecipientView], error) {
	if err := s.unknownOf(ctx, in); err != nil {
		return nil, err
	}
	var body resolveBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if body.As != string(schedule.Submitted) && body.As != string(schedule.NotDelivered) {
		return nil, wrong("as", body.As, `"submitted" or "skipped"`)
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	sub, err := s.Editor.Resolve(ctx, in.Run, in.Recipient, body.As, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[RecipientView]{recipientView(sub, schedule.Run{}, routes.Operator)}, nil
}

func (s *server) resend(ctx context.Context, in *recipientOf) (*reply[RecipientView], error) {
	if err := s.unknownOf(ctx, in); err != nil {
		return nil, err
	}
	var body reasonBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	sub, err := s.Editor.Resend(ctx, in.Run, in.Recipient, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[RecipientView]{recipientView(sub, schedule.Run{}, routes.Operator)}, nil
}
