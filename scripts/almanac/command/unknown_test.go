package command

import (
	"context"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

func TestWrongActsOnUnknownsSayWhatIsRight(t *testing.T) {
	s := ready(t, "admin")
	for _, x := range []struct{ args, want string }{
		{"resolve --as skipped --reason x", "usage: almanac resolve"},
		{"resolve r@1 --recipient a@x.com --reason x", `--as is ""; want submitted or skipped`},
		{"resolve r@1 --recipient a@x.com --as Skipped --reason x", `--as is "Skipped"; want submitted or skipped`},
		{"resolve r@1 --as skipped --reason x", "--recipient is missing"},
		{"resolve r@1 --recipient nobody --as skipped --reason x", "name@example.com"},
		{"resolve r@1 --recipient a@x.com --as skipped", "--reason is missing"},
		{"resend --reason x", "usage: almanac resend"},
		{"resend r@1 --reason x", "--recipient is missing"},
		{"resend r@1 --recipient a@x.com", "--reason is missing"},
		{"resend r@1 --recipient nobody --reason x", "name@example.com"},
		{"resend a/b --recipient a@x.com --reason x", "is no run"},
		{"redrive --reason x", "usage: almanac redrive"},
		{"redrive m-1", "--reason is missing"},
		{"redrive a/b --reason x", "is no dead letter"},
		{"resolve a/b --recipient a@x.com --as skipped --reason x", "is no run"},
	} {
		_, err := s.run(Usage, strings.Split(x.args, " ")...)
		has(t, err, x.want)
	}
}

func TestResolve(t *testing.T) {
	s := applied(t, "operator")
	id := s.made()
	lost := s.product.Lose(t, id)[0]
	out, _ := s.run(Done, "resolve", id, "--recipient", strings.ToUpper(lost.Recipient[:1])+lost.Recipient[1:], "--as", "submitted", "--reason", "they called")
	has(t, out, id+": "+lost.Recipient+" is submitted")
	out, _ = s.run(Done, "show", id)
	has(t, out, "failed", "delivery_unknown", "resolved by ada: they called")
	_, err := s.run(Refused, "resolve", id, "--recipient", lost.RecipientHash, "--as", "skipped", "--reason", "x")
	has(t, err, "409", "now: "+id+", recipient "+lost.RecipientHash+", is submitted")
	out, _ = s.run(Done, "audits", id)
	has(t, out, "resolve", "unknown: email "+lost.RecipientHash, "submitted: email "+lost.RecipientHash)
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "viewer", "--password-stdin")
	_, err = s.run(Refused, "resolve", id, "--recipient", lost.RecipientHash, "--as", "skipped", "--reason", "x")
	has(t, err, "403", "operator")
}

func TestRetryShowsThenAsks(t *testing.T) {
	s := applied(t, "operator")
	id := s.made()
	lost := s.product.Lose(t, id)[0]
	for _, x := range []struct{ args, want string }{
		{"retry --reason x", "usage: almanac retry"},
		{"retry r@1", "--reason is missing"},
		{"retry r@1 --to all --reason x", `--to is "all"; want missing or everyone`},
		{"retry r@1 --include-unknown nobody --reason x", "--include-unknown"},
		{"retry a/b --reason x", "is no run"},
	} {
		_, err := s.run(Usage, strings.Split(x.args, " ")...)
		has(t, err, x.want)
	}
	out, _ := s.run(Refused, "retry", id, "--reason", "they called")
	has(t, out, "Retry of "+id+" with delays.csv, 3 rows", "Sends to\n  (nobody)", lost.Recipient, "sent to only if named", "has the delivery", "Nobody is left")
	include := []string{"retry", id, "--include-unknown", lost.Recipient, "--reason", "they called"}
	s.program.In = strings.NewReader("n\n")
	out, _ = s.run(Refused, include...)
	has(t, out, "Send to 1 recipients? [y/N]")
	if n := len(s.product.Offered()); n != 1 {
		t.Fatalf("%d offered although the person said no", n)
	}
	s.program.In = strings.NewReader("")
	s.run(Usage, include...)
	out, _ = s.run(Done, append(include, "--yes", "--key", "k-7")...)
	has(t, out, "may get the delivery twice", "queued  (key k-7)")
	out, _ = s.run(Done, append(include, "--yes", "--key", "k-7")...)
	has(t, out, "made before by the same key")
	offered := s.product.Offered()
	if len(offered) != 2 {
		t.Fatalf("offered %v", offered)
	}
	out, _ = s.run(Done, "show", offered[1])
	has(t, out, "Retry of", id)
	out, _ = s.run(Done, "retry", id, "--to", "everyone", "--reason", "all again", "--yes", "--key", "k-8")
	has(t, out, "everyone was asked for", "Leaves out\n  (nobody)")
}

func TestResend(t *testing.T) {
	s := applied(t, "operator")
	id := s.made()
	subs := s.product.Lose(t, id)
	out, _ := s.run(Done, "resend", id, "--recipient", subs[0].Recipient, "--reason", "they called")
	has(t, out, id+": "+subs[0].Recipient+" will be sent to again, asked for by ada: they called")
	out, _ = s.run(Done, "show", id)
	has(t, out, "unknown", "to be sent again, asked for by ada: they called")
	_, err := s.run(Refused, "resend", id, "--recipient", subs[1].Recipient, "--reason", "x")
	has(t, err, "409", "only an unknown", "is submitted")
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "viewer", "--password-stdin")
	_, err = s.run(Refused, "resend", id, "--recipient", subs[0].RecipientHash, "--reason", "x")
	has(t, err, "403", "operator")
}

func TestRedrive(t *testing.T) {
	s := applied(t, "admin")
	id := s.made()
	for name, body := range map[string]string{"m-1": `{"run":"` + id + `"}`, "m-2": "{", "m-3": `{"run":"gone@x"}`} {
		d := schedule.DeadLetter{MessageID: name, Queue: "query-runs", Body: body, Reason: "not read", At: s.now}
		if err := s.product.Store.RecordDead(context.Background(), d, s.now.AddDate(1, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := s.run(Done, "redrive", "m-1", "--reason", "mended")
	has(t, out, "m-1: read again at 2026-12-01T08:00:00Z")
	if offered := s.product.Offered(); len(offered) != 2 || offered[1] != id {
		t.Errorf("offered %v", offered)
	}
	list, _, err := s.product.Store.Audits(context.Background(), "dead letter m-1", "", 10)
	if err != nil || len(list) != 1 || list[0].Who != "ada" || list[0].Why != "mended" || list[0].After != "offered "+id {
		t.Errorf("audits %+v, %v", list, err)
	}
	_, told := s.run(Refused, "redrive", "m-2", "--reason", "x")
	has(t, told, "409", "nobody can read it", "find its sender")
	_, told = s.run(Refused, "redrive", "m-3", "--reason", "x")
	has(t, told, "409", "gone@x, which is not there")
	_, told = s.run(Refused, "redrive", "m-4", "--reason", "x")
	has(t, told, "404")
	s.product.Lose(t, id)
	_, told = s.run(Refused, "redrive", "m-1", "--reason", "x")
	has(t, told, "409", "settled as failed; retry as new", "now: "+id+" is failed")
	if n := len(s.product.Offered()); n != 2 {
		t.Errorf("refused, and yet %d were offered", n-2)
	}
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "operator", "--password-stdin")
	_, told = s.run(Refused, "redrive", "m-1", "--reason", "x")
	has(t, told, "403", "admin")
}
