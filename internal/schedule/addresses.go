package schedule

import (
	"fmt"

	"almanac/internal/channel"
	"almanac/internal/input"
)

// maxWrong is how many problems of one list are told: an answer must not grow with the mistakes in it.
const maxWrong = 50

// addresses checks each entry of a list of recipients.
func (c *checker) addresses(list string, rs []Recipient, groups bool) {
	want := "an email or a webhook"
	if groups {
		want = "an email, a webhook or a group"
	}
	before := len(c.Problems)
	for i, r := range rs {
		if len(c.Problems)-before >= maxWrong {
			c.Bad(list, fmt.Sprintf("wrong in %d places or more; from entry %d on nothing was checked", maxWrong, i), "these corrected first")
			return
		}
		field := fmt.Sprintf("%s[%d]", list, i)
		switch {
		case r.Email != "" && r.Webhook != "":
			c.Bad(field, "both an email and a webhook", "one of the two; write two recipients")
		case r.Group != "" && r.Email+r.Webhook != "":
			c.Bad(field, "both a group and an address", "one of the two; write two recipients")
		case r.Group != "" && !groups:
			c.Bad(field+".group", input.Quote(r.Group), "nothing: only a schedule's recipients name groups; write an email or a webhook")
		case r.Email+r.Webhook+r.Group == "":
			c.Bad(field, "", want)
		case r.Webhook != "" && r.Secret == "":
			c.Bad(field+".secret", "", "the id of the secret that signs, such as ops")
		case r.Webhook == "" && r.Secret != "":
			c.Bad(field+".secret", input.Quote(r.Secret), "nothing: only webhooks are signed")
		case r.Secret != "" && !secretForm.MatchString(r.Secret):
			c.Bad(field+".secret", input.Quote(r.Secret), "letters, digits, - and _")
		case r.Group != "" && !idForm.MatchString(r.Group):
			c.Bad(field+".group", input.Quote(r.Group), "the id of a group: 1 to 64 small letters, digits and dashes, such as duty-managers")
		}
		if a := r.Address(); a != "" && r.Group == "" {
			if _, err := channel.Normalise(r.Channel(), a); err != nil {
				c.Bad(field+"."+r.Channel(), input.Quote(a), "an address that can be delivered to: "+err.Error())
			}
		}
	}
	if len(c.Problems) == before {
		c.secrets(list, rs)
	}
}

// secrets checks that a webhook that a list has several times has one secret: it gets one request, with one signature.
func (c *checker) secrets(list string, rs []Recipient) {
	signed := map[string]int{} // the first entry of each webhook
	for i, r := range rs {
		if r.Webhook == "" {
			continue
		}
		key := Targets(rs[i : i+1])[0].key()
		first, again := signed[key]
		if !again {
			signed[key] = i
		} else if other := rs[first].Secret; other != r.Secret {
			c.Bad(fmt.Sprintf("%s[%d].secret", list, i), input.Quote(r.Secret), fmt.Sprintf("%s, as %s[%d] has for the same webhook", input.Quote(other), list, first))
			return
		}
	}
}
