package command

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/scripts/almanac/client"
)

func (p *Program) get(ctx context.Context, c *call) error {
	what, of := c.args[0], ""
	below, one := what == "runs" || what == "skips" || what == "recipients", len(c.args) == 2
	if c.state != "" && what != "recipients" {
		return usage("--state belongs to almanac get recipients RUN")
	}
	if below != one && !(what == "suppressions" && one) {
		return usage("usage: almanac get schedules | runs SCHEDULE | skips SCHEDULE | recipients RUN [--state S] | workspaces | sources | groups | suppressions [ADDRESS] | dead-letters | snapshots | owners")
	}
	path := ""
	if what == "suppressions" && one {
		var err error
		if path, err = suppressionPath(c.args[1]); err != nil {
			return err
		}
	}
	if below {
		of = c.args[1]
		kind := "schedule"
		if what == "recipients" {
			kind = "run"
		}
		if err := named(kind, of); err != nil {
			return err
		}
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	if path != "" {
		return p.showSuppression(ctx, c, api, path)
	}
	err = p.list(ctx, c, api, what, of)
	if err == nil {
		p.warn(ctx, api)
	}
	return err
}

func (p *Program) list(ctx context.Context, c *call, api *client.Client, what, of string) error {
	switch what {
	case "schedules":
		q := url.Values{}
		if c.workspace != "" {
			q.Set("workspace", c.workspace)
		}
		return printList(ctx, p, c, api, "/schedules", q, []string{"SCHEDULE", "WORKSPACE", "STATE", "VERSION", "NEXT DUE", "LAST RUN", "STREAK", "NAME"}, scheduleCells)
	case "runs":
		return printList(ctx, p, c, api, client.Path("schedules", of, "runs"), nil, []string{"RUN", "STATE", "ROWS", "BYTES", "SUBMITTED", "SKIPPED", "ATTEMPTS", "ERROR"}, runCells)
	case "skips":
		return printList(ctx, p, c, api, client.Path("schedules", of, "skips"), nil, []string{"FIRST", "LAST", "COUNT", "REASON"}, skipCells)
	case "recipients":
		q := url.Values{}
		if c.state != "" {
			q.Set("state", c.state)
		}
		return printList(ctx, p, c, api, client.Path("runs", of, "recipients"), q, []string{"CHANNEL", "RECIPIENT", "OUTCOME", "TRIES", "REASON"}, recipientCells)
	case "suppressions":
		return printList(ctx, p, c, api, "/suppressions", nil, suppressionHead, suppressionCells)
	case "dead-letters":
		return printList(ctx, p, c, api, "/dead-letters", nil, []string{"AT", "QUEUE", "MESSAGE", "REASON", "BODY"}, deadCells)
	case "workspaces":
		return printList(ctx, p, c, api, "/workspaces", nil, []string{"WORKSPACE", "ZONE", "NAME"}, func(w schedule.Workspace) []string { return []string{w.ID, w.Zone, w.Name} })
	case "groups":
		return printList(ctx, p, c, api, "/groups", nil, []string{"GROUP", "WORKSPACES", "VERSION", "MEMBERS", "NAME"}, groupCells)
	case "snapshots":
		return printList(ctx, p, c, api, "/snapshots/definitions", nil, []string{"SNAPSHOT", "VERSION", "FROM", "MODE", "SOURCE", "STATE", "NAME"}, definitionCells)
	case "owners":
		return printList(ctx, p, c, api, "/owners", nil, []string{"OWNER", "SLOTS TAKEN", "BY BACKFILLS", "WORKSPACES", "NAME"}, ownerCells)
	case "sources":
		return printList(ctx, p, c, api, "/sources", nil, []string{"SOURCE", "ENGINE", "WHERE", "WORKSPACES"}, func(s schedule.SourceConfig) []string {
			return []string{s.Name, s.Engine, s.Place(), strings.Join(s.Workspaces, ", ")}
		})
	}
	return usage("get: there is no %q; want schedules, runs, skips, recipients, workspaces, sources, groups, suppressions, dead-letters, snapshots or owners", what)
}

// printList reads all pages; workspaces, sources, groups, owners and definitions of snapshots come in one, and take no page parameters.
func printList[T any](ctx context.Context, p *Program, c *call, api *client.Client, path string, q url.Values, head []string, cells func(T) []string) error {
	items, err := listOf[T](ctx, api, path, q)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, items)
	}
	t := newTable(head...)
	for _, i := range items {
		t.row(cells(i)...)
	}
	t.write(p.Out)
	if len(items) == 0 {
		p.printf("(none)\n")
	}
	return nil
}

func listOf[T any](ctx context.Context, c *client.Client, path string, q url.Values) ([]T, error) {
	if !slices.Contains([]string{"/workspaces", "/sources", "/groups", "/owners", "/snapshots/definitions"}, path) {
		return client.All[T](ctx, c, path, q)
	}
	var one struct {
		Items []T `json:"items"`
	}
	_, err := c.Call(ctx, "GET", path, nil, nil, &one)
	return one.Items, err
}

func scheduleCells(s api.ScheduleView) []string {
	last := "-"
	if r := s.LastRun; r != nil {
		last = r.State + optional(r.Code != "", " (%s)", r.Code)
	}
	return []string{s.ID, s.Workspace, s.State, fmt.Sprint(s.Version), when(s.NextDue), last, fmt.Sprint(s.Streak), s.Name}
}

func runCells(r api.RunView) []string {
	rows, bytes, code := "-", "-", "-"
	if r.File != nil {
		rows, bytes = fmt.Sprint(r.File.Rows), fmt.Sprint(r.File.Bytes)
	}
	if r.Error != nil {
		code = r.Error.Code
	}
	return []string{r.ID, r.State, rows, bytes, fmt.Sprint(r.Submitted), fmt.Sprint(r.Skipped), fmt.Sprint(r.Attempts), code}
}

func skipCells(s api.SkipView) []string {
	return []string{when(&s.First), when(&s.Last), fmt.Sprint(s.Count), s.Reason}
}

func (p *Program) show(ctx context.Context, c *call) error {
	name := c.args[0]
	definition, isDefinition, err := ofDefinition(name)
	if err != nil {
		return err
	}
	group, isGroup, err := ofGroup(name)
	if err != nil {
		return err
	}
	if !isGroup && !isDefinition {
		err = named("run or schedule", name)
	}
	if err != nil {
		return err
	}
	conn, err := p.connect()
	if err != nil {
		return err
	}
	if isGroup {
		return p.showGroup(ctx, c, conn, group)
	}
	if isDefinition {
		return p.showDefinition(ctx, c, conn, definition)
	}
	if strings.Contains(name, "@") {
		var r api.RunDetail
		if _, err := conn.Call(ctx, "GET", client.Path("runs", name), nil, nil, &r); err != nil {
			return err
		}
		switch {
		case c.definition:
			return p.printDefinition(ctx, conn, r.Schedule, r.Version)
		case c.json:
			return printJSON(p.Out, r)
		}
		p.printRun(r)
		return p.printAccesses(ctx, conn, r)
	}
	var s api.ScheduleDetail
	if _, err := conn.Call(ctx, "GET", client.Path("schedules", name), nil, nil, &s); err != nil {
		return err
	}
	switch {
	case c.definition:
		return printJSON(p.Out, s.Definition)
	case c.json:
		return printJSON(p.Out, s)
	}
	p.printSchedule(s)
	return nil
}

// fewRecipients is how many recipients of a schedule are printed beside the rest of it.
const fewRecipients = 20

func (p *Program) printSchedule(s api.ScheduleDetail) {
	d := s.Definition
	t := newTable()
	t.row("Schedule", s.ID)
	t.row("Name", s.Name)
	t.row("Workspace", s.Workspace)
	t.row("State", s.State)
	if s.Pause != nil {
		t.row("Paused", fmt.Sprintf("%s%s%s", s.Pause.Reason, optional(s.Pause.By != "", ", by %s", s.Pause.By), optional(s.Pause.At != nil, ", at %s", when(s.Pause.At))))
	}
	t.row("Version", fmt.Sprintf("%d%s%s", s.Version, optional(s.DefinedBy != "", ", by %s", s.DefinedBy), optional(s.DefinedAt != nil, ", at %s", when(s.DefinedAt))))
	t.row("Owner", d.Owner)
	t.row("Source", d.Source)
	t.row("Recurrence", d.Recurrence.String())
	if r := s.LastRun; r != nil {
		t.row("Last run", fmt.Sprintf("%s  %s%s", r.Run, r.State, optional(r.Code != "", " (%s)", r.Code)))
	}
	if s.OpenRun != "" {
		t.row("Open run", s.OpenRun)
	}
	t.row("Streak", fmt.Sprintf("%d failures in a row", s.Streak))
	t.write(p.Out)
	p.printf("\nRecipients\n")
	t = newTable()
	for _, r := range d.Recipients[:min(len(d.Recipients), fewRecipients)] {
		t.row("  "+r.Channel(), r.Address())
	}
	t.write(p.Out)
	if more := len(d.Recipients) - fewRecipients; more > 0 {
		p.printf("  and %d more; almanac show %s --definition prints all\n", more, s.ID)
	}
	p.printf("\nNext due\n")
	p.printDues("  ", s.NextDueTimes)
	p.printf("\nQuery\n")
	for _, line := range strings.Split(strings.TrimSpace(d.Query), "\n") {
		p.printf("  %s\n", plain(line))
	}
}

func (p *Program) printDues(indent string, dues []api.Due) {
	t := newTable()
	for _, d := range dues {
		local := d.Local
		if d.Skipped {
			local += " skipped"
		}
		t.row(indent+local, d.Note)
	}
	t.write(p.Out)
	if len(dues) == 0 {
		p.printf("%s(nothing is due)\n", indent)
	}
}

func (p *Program) printRun(r api.RunDetail) {
	t := newTable()
	t.row("Run", r.ID)
	t.row("State", r.State+optional(r.History != "", " (%s)", r.History))
	t.row("Schedule", fmt.Sprintf("%s, version %d, workspace %s", r.Schedule, r.Version, r.Workspace))
	t.row("Due", when(&r.Nominal)+optional(r.Manual, "  asked for by hand%s", optional(r.RequestedBy != "", " by %s", r.RequestedBy)))
	if r.RetryOf != "" {
		t.row("Retry of", r.RetryOf)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Groups)) {
		t.row("Group", fmt.Sprintf("%s, as of version %d", id, r.Groups[id]))
	}
	t.row("Attempts", fmt.Sprintf("%d, %d left%s", r.Attempts, r.AttemptsLeft, optional(r.Yields > 0, ", %d yields", r.Yields)))
	if q := r.Query; q != nil {
		t.row("Query", fmt.Sprintf("%s, number %d, %d bytes scanned, %.6f USD at the list price", q.ID, q.Number, q.Scanned, q.CostUSD))
	}
	if f := r.File; f != nil {
		t.row("File", fmt.Sprintf("%s, %d rows, %d bytes, until %s", f.Name, f.Rows, f.Bytes, when(f.Expires)))
		t.row("SHA-256", f.SHA256)
	}
	t.row("Links", linksEnd(r))
	if e := r.Error; e != nil {
		t.row("Error", e.Code+": "+e.Meaning)
		t.row("", e.Message)
		t.row("Remedy", e.Remedy)
	}
	if s := r.Stop; s != nil {
		t.row("Stop", fmt.Sprintf("asked for by %s: %s", s.By, s.Reason))
	}
	t.row("Admitted", when(r.CreatedAt))
	t.row("Settled", when(r.SettledAt))
	t.write(p.Out)
	p.printf("\nRecipients\n")
	p.printOutcomes(r)
	t = newTable("  CHANNEL", "RECIPIENT", "OUTCOME", "TRIES", "REASON")
	for _, x := range r.Recipients {
		if r.LinksRevoked != nil {
			x.RevokedAt = nil // said above, of all of them
		}
		cells := recipientCells(x)
		cells[0] = "  " + cells[0]
		t.row(cells...)
	}
	t.write(p.Out)
	if r.NotShown > 0 {
		p.printf("  and %d more; almanac get recipients %s [--state S] lists all\n", r.NotShown, r.ID)
	}
	p.printf("\nTimeline\n")
	for _, line := range r.Timeline {
		p.printf("  %s\n", plain(line))
	}
}

// printOutcomes counts a run's recipients, where they are too many to be seen at a glance.
func (p *Program) printOutcomes(r api.RunDetail) {
	if r.NotShown == 0 {
		return
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(r.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Outcomes[state], state))
	}
	p.printf("  %s; unknown, not_sent and refused first\n", strings.Join(parts, ", "))
}

func recipientCells(x api.RecipientView) []string {
	notes := x.Reason + "  " + x.Detail + optional(x.RevokedAt != nil, "  link revoked %s", when(x.RevokedAt))
	if x.Resend != nil {
		notes += "  to be sent again, asked for by " + x.Resend.By + ": " + x.Resend.Reason
	}
	notes += "  " + feedback(x.Feedback)
	notes += optional(x.Resends > 0, "  sent again %d times", x.Resends)
	return []string{x.Channel, x.Recipient, x.Outcome, fmt.Sprint(x.Tries), strings.TrimSpace(notes)}
}

// linksEnd says how long download links work.
func linksEnd(r api.RunDetail) string {
	switch {
	case r.LinksRevoked != nil:
		return "all revoked " + when(r.LinksRevoked)
	case r.File == nil:
		return "-"
	}
	return "until " + when(r.File.Links)
}
