package command

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"almanac/internal/api"
	"almanac/internal/channel"
	"almanac/scripts/almanac/client"
)

func needReason(c *call) error {
	if strings.TrimSpace(c.reason) == "" {
		return usage("--reason is missing: say why in a sentence; it is audited")
	}
	return nil
}

func (p *Program) control(ctx context.Context, c *call) error {
	what := ""
	if len(c.args) == 1 {
		what = c.args[0]
	}
	turned := c.dispatch != "" || c.send != "" || c.reason != ""
	switch {
	case what == "set":
		return p.setControl(ctx, c)
	case turned:
		return usage("--dispatch, --send and --reason belong to almanac control set")
	case what != "" && what != "audits":
		return usage("usage: almanac control [set | audits]")
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	if what == "audits" {
		return printList(ctx, p, c, conn, "/control/audits", nil, auditHead, auditCells)
	}
	var v api.ControlView
	if _, err := conn.Call(ctx, "GET", "/control", nil, nil, &v); err != nil {
		return err
	}
	return p.printControl(c, v)
}

func (p *Program) setControl(ctx context.Context, c *call) error {
	body := map[string]string{"reason": c.reason}
	for name, value := range map[string]string{"dispatch": c.dispatch, "send": c.send} {
		switch value {
		case "":
		case "on", "off":
			body[name] = value
		default:
			return usage("--%s is %q; want on or off", name, value)
		}
	}
	if len(body) == 1 {
		return usage("usage: almanac control set --dispatch on|off --send on|off --reason WHY; one switch is enough, the other stays as it is")
	}
	if err := needReason(c); err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	var v api.ControlView
	if _, err := conn.Call(ctx, "PUT", "/control", nil, body, &v); err != nil {
		return err
	}
	return p.printControl(c, v)
}

func (p *Program) printControl(c *call, v api.ControlView) error {
	if c.json {
		return printJSON(p.Out, v)
	}
	t := newTable()
	t.row("Dispatch", v.Dispatch)
	t.row("Send", v.Send)
	t.row("Changed", changed(v))
	t.write(p.Out)
	return nil
}

func changed(v api.ControlView) string {
	if v.Changed == nil {
		return "-"
	}
	return fmt.Sprintf("%s, by %s: %s", when(&v.Changed.At), v.Changed.Who, v.Changed.Why)
}

// warn says beside a list, on the error stream, that nothing is admitted or sent: who waits for a run should not have to
// guess why. That this cannot be found out is no reason to fail the list.
func (p *Program) warn(ctx context.Context, conn *client.Client) {
	var v api.ControlView
	if _, err := conn.Call(ctx, "GET", "/control", nil, nil, &v); err != nil {
		fmt.Fprintf(p.Err, "warning: whether dispatch and send are on is not known: %v\n", err)
		return
	}
	for _, x := range []struct{ name, state, means string }{
		{"dispatch", v.Dispatch, "no due occurrence is admitted"}, {"send", v.Send, "no recipient is asked"},
	} {
		if x.state == "off" {
			fmt.Fprintf(p.Err, "warning: %s is off: %s (%s)\n", x.name, x.means, plain(changed(v)))
		}
	}
}

func (p *Program) stop(ctx context.Context, c *call) error {
	conn, err := p.onRun(c)
	if err != nil {
		return err
	}
	var r api.RunView
	if _, err := conn.Call(ctx, "POST", client.Path("runs", c.args[0], "stop"), nil, map[string]string{"reason": c.reason}, &r); err != nil {
		return err
	}
	if r.Stop == nil {
		return &client.Unreachable{Base: conn.Base, Cause: fmt.Errorf("its answer shows no stop")}
	}
	p.printf("%s: %s, asked to stop by %s: %s\n", r.ID, r.State, plain(r.Stop.By), plain(r.Stop.Reason))
	return nil
}

// onRun checks what an act on a run needs, and connects.
func (p *Program) onRun(c *call) (*client.Client, error) {
	if err := needReason(c); err != nil {
		return nil, err
	}
	if err := named("run", c.args[0]); err != nil {
		return nil, err
	}
	return p.connect()
}

func (p *Program) revoke(ctx context.Context, c *call) error {
	recipient := "all"
	if c.recipient != "" {
		var err error
		if recipient, err = hashOf(c.recipient); err != nil {
			return err
		}
	}
	conn, err := p.onRun(c)
	if err != nil {
		return err
	}
	var v api.RevocationView
	if _, err := conn.Call(ctx, "POST", client.Path("runs", c.args[0], "links", "revoke"), nil, map[string]string{"recipient": recipient, "reason": c.reason}, &v); err != nil {
		return err
	}
	if v.Recipient == "all" {
		p.printf("%s: all links are revoked since %s; recipients asked later get none that works\n", v.Run, when(&v.RevokedAt))
		return nil
	}
	p.printf("%s: the link of %s is revoked since %s\n", v.Run, plain(c.recipient), when(&v.RevokedAt))
	return nil
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// hashOf names a recipient as the API does: a hash is one already, an address is hashed here.
func hashOf(recipient string) (string, error) {
	if hashForm.MatchString(recipient) {
		return recipient, nil
	}
	kind := channel.Email
	if strings.Contains(recipient, "://") {
		kind = channel.Webhook
	}
	normal, err := channel.Normalise(kind, recipient)
	if err != nil {
		return "", usage("--recipient: %v", err)
	}
	return channel.RecipientHash(kind, normal), nil
}

func (p *Program) history(ctx context.Context, c *call) error {
	name := c.args[0]
	definition, isDefinition, err := ofDefinition(name)
	if err != nil {
		return err
	}
	group, isGroup, err := ofGroup(name)
	path := client.Path("schedules", name, "versions")
	switch {
	case isGroup:
		path = client.Path("groups", group, "versions")
	case isDefinition:
		path = definitionPath(definition) + "/versions"
	default:
		err = named("schedule", name)
	}
	if err != nil {
		return err
	}
	if c.diff != (len(c.args) == 3) {
		return usage("usage: almanac history SCHEDULE | group/ID | snapshot/WORKSPACE/TYPE [--diff N M]")
	}
	var numbers [2]int
	for i, text := range c.args[1:] {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return usage("--diff: %q is no version; want two numbers, such as --diff 1 2", text)
		}
		numbers[i] = n
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	if !c.diff {
		return printList(ctx, p, c, conn, path, nil, []string{"VERSION", "AT", "BY", "HASH"}, versionCells)
	}
	path = fmt.Sprintf("%s/%d?%s", path, numbers[1], url.Values{"against": {strconv.Itoa(numbers[0])}}.Encode())
	switch {
	case isGroup:
		return printDifference(ctx, p, c, conn, path, numbers, func(v api.GroupDetail) difference { return difference{v.By, v.At, v.Diff} })
	case isDefinition:
		return printDifference(ctx, p, c, conn, path, numbers, func(v api.DefinitionDetail) difference { return difference{v.By, v.At, v.Diff} })
	}
	return printDifference(ctx, p, c, conn, path, numbers, func(v api.VersionDetail) difference { return difference{v.By, v.At, v.Diff} })
}

func versionCells(v api.VersionView) []string {
	return []string{fmt.Sprint(v.Version), when(v.At), dash(v.By), fmt.Sprintf("%.12s", v.Hash)}
}

func (p *Program) audits(ctx context.Context, c *call) error {
	path, err := auditsPath(c.args[0])
	if err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	return printList(ctx, p, c, conn, path, nil, auditHead, auditCells)
}

var auditHead = []string{"AT", "WHO", "WHAT", "BEFORE", "AFTER", "WHY"}

func auditCells(a api.AuditView) []string {
	return []string{when(&a.At), a.Who, a.What, dash(a.Before), dash(a.After), dash(a.Why)}
}

func deadCells(d api.DeadLetterView) []string {
	return []string{when(d.At), d.Queue, d.Message, d.Reason, fmt.Sprintf("%.80s", d.Body)}
}

// printDefinition prints the definition that a run used, or a schedule has, as apply would take it.
func (p *Program) printDefinition(ctx context.Context, conn *client.Client, schedule string, version int) error {
	var v api.VersionDetail
	if _, err := conn.Call(ctx, "GET", fmt.Sprintf("%s/%d", client.Path("schedules", schedule, "versions"), version), nil, nil, &v); err != nil {
		return err
	}
	return printJSON(p.Out, v.Definition)
}

// printAccesses shows whose links were used. It is for operators: others are told so.
func (p *Program) printAccesses(ctx context.Context, conn *client.Client, r api.RunDetail) error {
	list, err := client.All[api.AccessView](ctx, conn, client.Path("runs", r.ID, "accesses"), nil)
	if client.Is(err, http.StatusForbidden) {
		p.printf("\nLinks used\n  (shown to operators)\n")
		return nil
	} else if err != nil {
		return err
	}
	names := map[string]string{}
	for _, x := range r.Recipients {
		names[x.Hash] = x.Recipient
	}
	p.printf("\nLinks used\n")
	t := newTable()
	for _, a := range list {
		t.row("  "+when(&a.At), a.What, first(names[a.Hash], a.Hash))
	}
	t.write(p.Out)
	if len(list) == 0 {
		p.printf("  (none)\n")
	}
	return nil
}

// auditsPath is where the API has the audits of what an argument names.
func auditsPath(name string) (string, error) {
	if definition, is, err := ofDefinition(name); is {
		return definitionPath(definition) + "/audits", err
	}
	kind := "schedules"
	if owner, is := strings.CutPrefix(name, ownerPrefix); is {
		kind, name = "owners", owner
	} else if group, is, err := ofGroup(name); err != nil {
		return "", err
	} else if is {
		kind, name = "groups", group
	} else if strings.Contains(name, "@") {
		kind = "runs"
	}
	return client.Path(kind, name, "audits"), named("run, schedule, group or owner", name)
}
