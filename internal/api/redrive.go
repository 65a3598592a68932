package api

import (
	"context"
	"net/http"

	"almanac/internal/schedule"
)

func (s *server) registerRedrive() {
	registerBody[reasonBody](s, s.operation("POST", "/dead-letters/{message}/redrive", "redrive-dead-letter", "Read a dead letter again, and offer the run that it names", 404, 409, 422), true, s.redrive)
}

func (s *server) redrive(ctx context.Context, in *struct {
	Message string `path:"message" doc:"The dead letter's id, as GET /dead-letters shows it"`
	Raw
}) (*reply[DeadLetterView], error) {
	if !identifier(in.Message) {
		return nil, problem(http.StatusNotFound, "there is no dead letter %q", clip(in.Message))
	}
	var body reasonBody
	if err := decode(in.RawBody, &body); err != nil {
		return nil, err
	}
	if err := reason(body.Reason); err != nil {
		return nil, err
	}
	d, err := s.Editor.Redrive(ctx, in.Message, body.Reason, caller(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &reply[DeadLetterView]{deadLetterView(d)}, nil
}

func deadLetterView(d schedule.DeadLetter) DeadLetterView {
	return DeadLetterView{d.MessageID, d.Queue, d.Reason, d.Body, instant(d.At), instant(d.RedrivenAt)}
}
