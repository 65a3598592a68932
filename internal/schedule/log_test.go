package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// What is logged and counted while deliveries go well and badly: JSON lines that name the run, and no address, token
// or secret in any of them.
func TestLogsNameTheRunAndHoldNoSecret(t *testing.T) {
	w := newWorld(t)
	w.hooks.answer = answers("b", status(503), reply{cut: true}, ok())
	w.mail.answer = func(to string, n int) error {
		switch {
		case to == "refused@example.org":
			return coded("MessageRejected", "Address blacklisted. refused@example.org")
		case n == 1:
			return coded("Throttling", "Maximum sending rate exceeded.")
		}
		return nil
	}
	first := w.admitted(w.definition("s", "secretary@example.com", "refused@example.org", "b"))
	w.quiet()
	w.wantState(first, schedule.Succeeded, "")
	bad := w.definition("t", "other@example.com")
	bad.Query = "SELECT nothing"
	w.apply(bad)
	_, _, err := w.editor.RunNow(ctx, "t", "ann", "k", "h")
	w.must(err)
	w.raw("poison for secretary@example.com") // a message that nobody can read is kept, not logged
	w.faults.plan = dies("deliver", "DynamoDB.TransactWriteItems", lostBefore)
	w.quiet()
	w.to(firstDue.AddDate(0, 0, 1).Add(-time.Hour))

	secrets := []string{"example.com", "example.org", signingSecret, w.hooks.server.URL, "webhook-signature"}
	for _, s := range w.subs(first) {
		secrets = append(secrets, s.Token, w.link(first, strings.TrimPrefix(s.Recipient, w.hooks.server.URL+"/")))
	}
	logged, counted := 0, map[string]bool{}
	for _, line := range w.log.lines(t) {
		text := fmt.Sprint(line)
		for _, s := range secrets {
			if s != "" && strings.Contains(text, s) {
				t.Errorf("%q stands in %s", s, text)
			}
		}
		if aws, ok := line["_aws"].(map[string]any); ok {
			metric := aws["CloudWatchMetrics"].([]any)[0].(map[string]any)
			for _, d := range metric["Dimensions"].([]any)[0].([]any) {
				if d != "stage" && d != "outcome" && d != "kind" {
					t.Errorf("dimension %v in %s", d, text)
				}
				if line[d.(string)] == nil {
					t.Errorf("dimension %v without a value in %s", d, text)
				}
			}
			counted[metric["Metrics"].([]any)[0].(map[string]any)["Name"].(string)] = true
			continue
		}
		logged++
		if line["msg"] == nil || line["level"] == nil || line["time"] == nil {
			t.Errorf("no log line: %s", text)
		}
		if run, ok := line["run"].(string); ok && line["attempt"] == nil {
			switch line["msg"] {
			case "admitted", "the run has settled before", "another worker holds the run", "another worker was faster", "a dead letter's run is offered again":
			default:
				t.Errorf("%s of run %s names no attempt: %s", line["msg"], run, text)
			}
		}
		switch line["msg"] {
		case "attempt begins", "file recorded", "recipient done", "request was not settled", "attempt failed for a passing reason", "run settled":
			if line["run"] == nil || line["occurrence"] == nil || line["attempt"] == nil {
				t.Errorf("run, occurrence or attempt is missing: %s", text)
			}
		}
	}
	if logged < 20 {
		t.Errorf("%d lines", logged)
	}
	for _, name := range []string{"admitted", "runs_settled", "submissions", "attempts_released", "file_bytes"} {
		if !counted[name] {
			t.Errorf("nothing counts %s", name)
		}
	}
}
