package api

import (
	"strings"
	"testing"
)

// TestBadInputOfActsOnUnknowns: for each field: absent, null, wrong type, out of range, hostile text, an unknown
// neighbour. Nothing is written.
func TestBadInputOfActsOnUnknowns(t *testing.T) {
	run := "/runs/" + openRun
	resolve := run + "/recipients/" + someHash + "/resolve"
	resend := run + "/recipients/" + someHash + "/resend"
	long := strings.Repeat("x", 201)
	for _, x := range []struct{ name, method, target, body, field string }{
		{"resolve without as", "POST", resolve, `{"reason":"x"}`, "as"},
		{"resolve, as null", "POST", resolve, `{"as":null,"reason":"x"}`, "as"},
		{"resolve, as wrong type", "POST", resolve, `{"as":1,"reason":"x"}`, "as"},
		{"resolve as pending", "POST", resolve, `{"as":"pending","reason":"x"}`, "as"},
		{"resolve as Skipped", "POST", resolve, `{"as":"Skipped","reason":"x"}`, "as"},
		{"resolve, as hostile", "POST", resolve, `{"as":"skipped\u0000","reason":"x"}`, "as"},
		{"resolve without reason", "POST", resolve, `{"as":"skipped"}`, "reason"},
		{"resolve, reason blank", "POST", resolve, `{"as":"skipped","reason":" "}`, "reason"},
		{"resolve, reason too long", "POST", resolve, `{"as":"skipped","reason":"` + long + `"}`, "reason"},
		{"resolve, reason hostile", "POST", resolve, `{"as":"skipped","reason":"x\ny"}`, "reason"},
		{"resolve, misspelt", "POST", resolve, `{"sa":"skipped","reason":"x"}`, "sa"},
		{"resolve an address", "POST", run + "/recipients/ada@example.com/resolve", `{"as":"skipped","reason":"x"}`, "recipient"},
		{"resolve, hash too short", "POST", run + "/recipients/" + someHash[1:] + "/resolve", `{"as":"skipped","reason":"x"}`, "recipient"},
		{"resolve, hash in capitals", "POST", run + "/recipients/" + strings.ToUpper(someHash) + "/resolve", `{"as":"skipped","reason":"x"}`, "recipient"},
		{"resolve, hash hostile", "POST", run + "/recipients/" + someHash[2:] + "%00/resolve", `{"as":"skipped","reason":"x"}`, "recipient"},
		{"resend without reason", "POST", resend, `{}`, "reason"},
		{"resend, reason null", "POST", resend, `{"reason":null}`, "reason"},
		{"resend, reason too long", "POST", resend, `{"reason":"` + long + `"}`, "reason"},
		{"resend, reason hostile", "POST", resend, `{"reason":"x\r\ny"}`, "reason"},
		{"resend with an unknown field", "POST", resend, `{"reason":"x","as":"skipped"}`, "as"},
		{"redrive without reason", "POST", "/dead-letters/m-1/redrive", `{}`, "reason"},
		{"redrive, reason hostile", "POST", "/dead-letters/m-1/redrive", `{"reason":"x\ny"}`, "reason"},
		{"redrive with an unknown field", "POST", "/dead-letters/m-1/redrive", `{"reason":"x","force":true}`, "force"},
		{"resend to an address", "POST", run + "/recipients/ada@example.com/resend", `{"reason":"x"}`, "recipient"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, c := peopled(t)
			queued(w)
			p := c.as("admin", x.method, x.target, x.body).problem(422, x.field)
			for _, e := range p.Errors {
				if e.Want == "" || len(e.Value) > maxValue {
					t.Errorf("field %q: value of %d bytes, want %q", e.Field, len(e.Value), e.Want)
				}
			}
			if len(w.writes) > 0 {
				t.Errorf("refused, and yet it wrote %v", w.writes)
			}
		})
	}
}

func TestNoRunWhoseRecipientToActOn(t *testing.T) {
	w, c := peopled(t)
	for _, id := range []string{"ewr-delays", "ewr-delays@2014-01-01T00:00:00Z", "@x"} {
		c.as("operator", "POST", "/runs/"+id+"/recipients/"+someHash+"/resolve", `{"as":"skipped","reason":"x"}`).problem(404, "")
		c.as("operator", "POST", "/runs/"+id+"/recipients/"+someHash+"/resend", `{"reason":"x"}`).problem(404, "")
	}
	if len(w.writes) > 0 {
		t.Fatal(w.writes)
	}
}
