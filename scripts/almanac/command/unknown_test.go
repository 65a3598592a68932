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
