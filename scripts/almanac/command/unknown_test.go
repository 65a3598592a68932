package command

import (
	"strings"
	"testing"
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
