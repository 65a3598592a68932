package command

import (
	"context"
	"fmt"
	"strings"

	"almanac/internal/api"
	"almanac/internal/channel"
	"almanac/scripts/almanac/client"
)

// suppressionPath is where the API has a recipient's suppression: an address is hashed here, since paths are logged on
// their way; a hash is taken for a mailbox's.
func suppressionPath(recipient string) (string, error) {
	if hashForm.MatchString(recipient) {
		return client.Path("suppressions", channel.Email, recipient), nil
	}
	kind := channel.Email
	if strings.Contains(recipient, "://") {
		kind = channel.Webhook
	}
	normal, err := channel.Normalise(kind, recipient)
	if err != nil {
		return "", usage("ADDRESS: %v, or its hash", err)
	}
	return client.Path("suppressions", kind, channel.RecipientHash(kind, normal)), nil
}

func (p *Program) unsuppress(ctx context.Context, c *call) error {
	if err := needReason(c); err != nil {
		return err
	}
	path, err := suppressionPath(c.args[0])
	if err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var v api.SuppressionView
	if _, err := conn.Call(ctx, "POST", path+"/lift", nil, map[string]string{"reason": c.reason}, &v); err != nil {
		return err
	}
	if v.Lifted == nil {
		return &client.Unreachable{Base: conn.Base, Cause: fmt.Errorf("its answer shows that it is still suppressed")}
	}
	p.printf("%s may be sent to since %s, lifted by %s: %s\n", plain(c.args[0]), when(v.Lifted.At), plain(v.Lifted.By), plain(v.Lifted.Reason))
	return nil
}

var suppressionHead = []string{"CHANNEL", "HASH", "REASON", "AT", "WHY", "RUN", "LIFTED"}

func suppressionCells(s api.SuppressionView) []string {
	lifted := "-"
	if l := s.Lifted; l != nil {
		lifted = fmt.Sprintf("%s, by %s: %s", when(l.At), l.By, l.Reason)
	}
	return []string{s.Channel, s.Hash, s.Reason, when(s.At), dash(s.Why), s.Run, lifted}
}

// showSuppression shows one, also one that was lifted.
func (p *Program) showSuppression(ctx context.Context, c *call, conn *client.Client, path string) error {
	var v api.SuppressionView
	if _, err := conn.Call(ctx, "GET", path, nil, nil, &v); err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, v)
	}
	t := newTable(suppressionHead...)
	t.row(suppressionCells(v)...)
	t.write(p.Out)
	return nil
}

// feedback says in a few words what the mail service said later.
func feedback(list []api.FeedbackView) string {
	verbs := map[string]string{string(channel.Bounced): "bounced", string(channel.Complained): "complained", string(channel.Rejected): "rejected"}
	var words []string
	for _, f := range list {
		text := first(verbs[f.Kind], f.Kind)
		if why := strings.Join(strings.FieldsFunc(f.Type+"\n"+f.Why, func(r rune) bool { return r == '\n' }), ", "); why != "" {
			text += " (" + why + ")"
		}
		words = append(words, text+optional(f.Other, " (another mail than the one recorded)"))
	}
	return strings.Join(words, ", ")
}
