package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

func TestGroupFields(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"email": fmt.Sprintf("r%d@example.com", i)})
		}
		return out
	}
	const dash = "small letters, digits and dashes"
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		want   []string // parts of the message: field, value, what would be right
	}{
		{"id absent", with("id", nil), []string{"id is missing", dash}},
		{"id wrong type", with("id", 7), []string{"id is a number", "want text"}},
		{"id too long", with("id", long(65)), []string{"id is", dash}},
		{"id hostile", with("id", "a#b\n"), []string{`id is "a#b\n"`, dash}},
		{"name absent", with("name", nil), []string{"name is missing", "120 characters"}},
		{"name wrong type", with("name", []any{}), []string{"name is an array", "want text"}},
		{"name too long", with("name", long(121)), []string{"name is 121 characters", "at most 120"}},
		{"X4 name hostile", with("name", "a\r\nBcc: e@x.test"), []string{"name is", "without line breaks"}},
		{"workspaces absent", with("workspaces", nil), []string{"workspaces is missing", `"*"`}},
		{"workspaces wrong type", with("workspaces", "EWR"), []string{"workspaces is a string", "want a list"}},
		{"workspaces empty", with("workspaces", []any{}), []string{"workspaces is missing"}},
		{"workspaces hostile", with("workspaces", []any{"EWR", "a/b"}), []string{`workspaces[1] is "a/b"`, "a workspace's id"}},
		{"workspaces too many", with("workspaces", slices.Repeat([]any{"EWR"}, 501)), []string{"workspaces is 501", "at most 500"}},
		{"recipients absent", with("recipients", nil), []string{"recipients is missing", "at least one"}},
		{"recipients wrong type", with("recipients", "a@x.com"), []string{"recipients is a string", "want a list"}},
		{"recipients too many", with("recipients", many(10_001)), []string{"recipients is 10001", "at most 10000"}},
		{"recipient empty", with("recipients", recipient()), []string{"recipients[0] is missing", "an email or a webhook"}},
		{"recipient both", with("recipients", recipient("email", "a@x.com", "webhook", "https://x.com/", "secret", "ops")), []string{"recipients[0] is both", "two recipients"}},
		{"a group in a group", with("recipients", recipient("group", "managers")), []string{`recipients[0].group is "managers"`, "only a schedule's recipients name groups"}},
		{"email no address", with("recipients", recipient("email", "nobody")), []string{`recipients[0].email is "nobody"`, "exactly one @"}},
		{"X4 email hostile", with("recipients", recipient("email", "a@x.com\r\nBcc: e@x.test")), []string{"recipients[0].email is", "control character"}},
		{"webhook without a secret", with("recipients", recipient("webhook", "https://x.com/h")), []string{"recipients[0].secret is missing"}},
		{"webhook no URL", with("recipients", recipient("webhook", "ftp://x.com", "secret", "ops")), []string{`recipients[0].webhook is "ftp://x.com"`, "https"}},
		{"one webhook, two secrets", with("recipients", []any{map[string]any{"webhook": "https://x.com/h", "secret": "ops"}, map[string]any{"email": "a@x.com"},
			map[string]any{"webhook": "https://X.com:443/h", "secret": "other"}}), []string{`recipients[2].secret is "other"`, `"ops", as recipients[0] has`}},
		{"unknown field", with("recipient", "x"), []string{"recipient is not known", "did you mean recipients?"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := map[string]any{"id": "managers", "name": "Duty managers", "workspaces": []any{"EWR"}, "recipients": []any{map[string]any{"email": "a@example.com"}}}
			row.change(m)
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			_, err = schedule.ParseGroup(raw)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
	if _, err := schedule.ParseGroup([]byte(`{"id": "` + strings.Repeat("x", 5<<20) + `"}`)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a document of 5 MB: %.100v", err)
	}
	wide := schedule.Group{ID: "wide", Name: "w", Workspaces: []string{"*"}}
	for i := range 3000 {
		wide.Recipients = append(wide.Recipients, schedule.Recipient{Webhook: fmt.Sprintf("https://example.com/%d/%s", i, strings.Repeat("x", 1800)), Secret: "ops"})
	}
	if ps := wide.Check(); len(ps) != 1 || ps[0].Field != "recipients" || !strings.Contains(ps[0].String(), "at most 4000000 bytes") {
		t.Errorf("members of 5 MB: %.300v", ps)
	}
}

// group saves a group of workspace EWR; members are spelled as in definition.
func (w *world) group(id string, members ...string) schedule.Change {
	w.t.Helper()
	return w.saveGroup(schedule.Group{ID: id, Name: "Group " + id, Workspaces: []string{"EWR"}, Recipients: w.definition("x", members...).Recipients})
}

func (w *world) saveGroup(g schedule.Group) schedule.Change {
	w.t.Helper()
	heads, err := w.store.GroupHeads(ctx, []string{g.ID})
	w.must(err)
	c, err := w.editor.ApplyGroup(ctx, g, "ann", heads[g.ID].Version)
	w.must(err)
	return c
}

// withGroups is a definition that names groups after its direct recipients.
func (w *world) withGroups(d schedule.Definition, ids ...string) schedule.Definition {
	for _, id := range ids {
		d.Recipients = append(d.Recipients, schedule.Recipient{Group: id})
	}
	return d
}

func TestARunIsSentToTheMembersOfItsGroupsEachOnce(t *testing.T) {
	w := newWorld(t)
	w.group("managers", "ann@x.com", "bob@x.com", "hook")
	w.group("press", "BOB@X.COM", "cleo@x.com") // case V2: one address, two groups and spellings
	run := w.admitted(w.withGroups(w.definition("s", "Ann@x.com"), "managers", "press", "managers"))
	if got := w.run(run).Groups; !maps.Equal(got, map[string]int{"managers": 1, "press": 1}) {
		t.Errorf("the run was admitted with %v", got)
	}
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if r.Submitted != 4 || len(w.subs(run)) != 4 {
		t.Errorf("%d submitted of %d, want 4: ann, bob, hook, cleo", r.Submitted, len(w.subs(run)))
	}
	for _, name := range []string{"Ann@x.com", "bob@x.com", "hook", "cleo@x.com"} {
		w.wantSub(run, name, schedule.Submitted, "")
	}
	if err := w.check(run, "Ann@x.com", "bob@x.com", "hook", "cleo@x.com"); err != nil {
		t.Error(err)
	}
}

// Case V4 for groups: those who left meanwhile are skipped as removed, those who came are sent to from the next run on.
func TestV4MembersWhoCameAndWentWhileARunWaits(t *testing.T) {
	for _, when := range []string{"queued", "between two attempts"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			w.group("managers", "stays@x.com", "leaves@x.com", "direct@x.com")
			d := w.withGroups(w.definition("s", "direct@x.com"), "managers")
			if when != "queued" {
				w.hooks.answer = answers("first", status(503), ok())
				d.Recipients = append([]schedule.Recipient{{Webhook: w.hooks.address("first"), Secret: "ops"}}, d.Recipients...)
				w.hooks.during = func(string, int) {
					w.hooks.during = nil
					w.group("managers", "stays@x.com", "comes@x.com")
					w.advance(deliverTime - 5*time.Second)
				}
			}
			run := w.admitted(d)
			if when == "queued" {
				w.group("managers", "stays@x.com", "comes@x.com") // direct@x.com left the group, and is still on the schedule
			}
			w.quiet()
			w.wantState(run, schedule.Succeeded, "")
			w.wantSub(run, "stays@x.com", schedule.Submitted, "")
			w.wantSub(run, "direct@x.com", schedule.Submitted, "")
			w.wantSub(run, "leaves@x.com", schedule.NotDelivered, "removed")
			if n := len(w.mail.to("comes@x.com")); n != 0 {
				t.Errorf("comes@x.com got %d mails of a run that was admitted before", n)
			}
			w.to(firstDue.AddDate(0, 0, 1))
			w.tick()
			w.quiet()
			next := schema.RunID("s", schedule.OccurrenceKey(firstDue.AddDate(0, 0, 1)))
			w.wantState(next, schedule.Succeeded, "")
			w.wantSub(next, "comes@x.com", schedule.Submitted, "")
			if got := w.run(next).Groups; got["managers"] != 2 || len(w.mail.to("leaves@x.com")) != 0 {
				t.Errorf("the next run was admitted with %v; leaves@x.com got %d mails", got, len(w.mail.to("leaves@x.com")))
			}
		})
	}
}

func TestV4AGroupThatLeavesTheScheduleOrTheWorkspace(t *testing.T) {
	for name, change := range map[string]func(w *world, d schedule.Definition){
		"taken off the schedule": func(w *world, d schedule.Definition) {
			d.Recipients = d.Recipients[:1]
			w.apply(d)
		},
		"not for this workspace any more": func(w *world, _ schedule.Definition) {
			w.saveGroup(schedule.Group{ID: "managers", Name: "m", Workspaces: []string{"JFK"}, Recipients: w.definition("x", "a@x.com").Recipients})
		},
		"a member is written out instead": func(w *world, d schedule.Definition) {
			d.Recipients = append(d.Recipients[:1:1], schedule.Recipient{Email: "Other@x.com"})
			w.apply(d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.group("managers", "a@x.com", "other@x.com")
			d := w.withGroups(w.definition("s", "direct@x.com"), "managers")
			run := w.admitted(d)
			change(w, d)
			w.quiet()
			w.wantState(run, schedule.Succeeded, "")
			w.wantSub(run, "direct@x.com", schedule.Submitted, "")
			w.wantSub(run, "a@x.com", schedule.NotDelivered, "removed")
			if name == "a member is written out instead" {
				w.wantSub(run, "other@x.com", schedule.Submitted, "")
			} else {
				w.wantSub(run, "other@x.com", schedule.NotDelivered, "removed")
			}
		})
	}
}

func TestWhatIsWrongWithAGroupFailsTheRunBeforeItsQuery(t *testing.T) {
	lots := func(prefix string, n int) []schedule.Recipient {
		list := make([]schedule.Recipient, n)
		for i := range list {
			list[i].Email = fmt.Sprintf("%s%d@x.com", prefix, i)
		}
		return list
	}
	for name, c := range map[string]struct {
		before, after func(w *world) // around the admission
		want          []string
	}{
		"more members than a run may have": {before: func(w *world) {
			w.saveGroup(schedule.Group{ID: "managers", Name: "m", Workspaces: []string{"EWR"}, Recipients: lots("m", 6000)})
			w.saveGroup(schedule.Group{ID: "press", Name: "p", Workspaces: []string{"*"}, Recipients: lots("p", 6000)})
		}, want: []string{"12001 recipients", "managers (version 2), press (version 2)", "at most 10000"}},
		"not for the workspace": {before: func(w *world) {
			w.saveGroup(schedule.Group{ID: "managers", Name: "m", Workspaces: []string{"JFK"}, Recipients: lots("m", 1)})
		}, want: []string{"group managers, version 2, may not be used by workspace EWR"}},
		"the head is gone": {before: func(w *world) { w.expire(schema.GroupKey("managers")) },
			want: []string{"there was no group managers when the run was admitted"}},
		"the version is gone": {after: func(w *world) { w.expire(schema.GroupVersionKey("press", 1)) },
			want: []string{"version 1 of group press is not there any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.group("managers", "a@x.com")
			w.group("press", "b@x.com")
			w.apply(w.withGroups(w.definition("s", "direct@x.com"), "managers", "press"))
			if c.before != nil {
				c.before(w)
			}
			w.to(firstDue)
			w.tick()
			if c.after != nil {
				c.after(w)
			}
			w.quiet()
			r := w.wantState(schema.RunID("s", schedule.OccurrenceKey(firstDue)), schedule.Failed, failure.DefinitionInvalid)
			for _, part := range c.want {
				if !strings.Contains(r.ErrorText, part) {
					t.Errorf("%q does not say %q", r.ErrorText, part)
				}
			}
			if r.File != nil || len(w.mail.kept) != 0 {
				t.Errorf("file %v, %d mails; want none", r.File, len(w.mail.kept))
			}
		})
	}
}

func TestARetryAndAResendFindTheMembersOfTheOldRun(t *testing.T) {
	w := newWorld(t)
	w.group("managers", "lost@x.com", "no", "b")
	w.hooks.answer = func(name string, _ int) reply {
		if name == "no" {
			return status(400)
		}
		return ok()
	}
	old := w.admitted(w.withGroups(w.definition("s", "direct"), "managers"))
	w.faults.plan = dies("deliver", "SES.SendRawEmail", dieAfter)
	w.quiet()
	w.faults.plan, w.hooks.answer = nil, nil
	w.wantState(old, schedule.Failed, failure.DeliveryUnknown)
	w.group("managers", "no", "lost@x.com", "late@x.com") // b leaves, late comes
	p, err := w.editor.PlanRetry(ctx, old, schedule.RetryRequest{})
	w.must(err)
	if got := told(p.Send); !slices.Equal(got, []string{"no"}) || !slices.Equal(told(p.Leave), []string{"direct", "lost@x.com", "b"}) {
		t.Fatalf("sends to %v, leaves %v", got, told(p.Leave))
	}
	r := w.retry(old, "k", schedule.RetryRequest{To: schedule.RetryEveryone})
	w.quiet()
	if got := w.wantState(r.ID(), schedule.Succeeded, ""); got.Groups["managers"] != 1 || got.Submitted != 3 || got.SkippedN != 1 {
		t.Errorf("%+v", got)
	}
	w.wantSub(r.ID(), "b", schedule.NotDelivered, "removed")
	if n := len(w.mail.to("late@x.com")); n != 0 {
		t.Errorf("late@x.com got %d mails", n)
	}
	_, err = w.editor.Resend(ctx, old, w.sub(old, "lost@x.com").RecipientHash, "they called", "ann")
	w.must(err)
	w.quiet()
	w.wantSub(old, "lost@x.com", schedule.Submitted, "")
	now, _, err := w.editor.RunNow(ctx, "s", "ann", "now", "hash")
	w.must(err)
	w.quiet()
	if got := w.wantState(now.ID(), schedule.Succeeded, ""); got.Groups["managers"] != 2 {
		t.Errorf("a run by hand has %v", got.Groups)
	}
	w.wantSub(now.ID(), "late@x.com", schedule.Submitted, "")
}

// Two thousand members stand apart and take several invocations; each gets one mail.
func TestAGroupOfTwoThousandIsDeliveredOverSeveralInvocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mailRate(0))
	var g schedule.Group
	g.ID, g.Name, g.Workspaces = "all", "Everybody", []string{"*"}
	for i := range 2000 {
		g.Recipients = append(g.Recipients, schedule.Recipient{Email: fmt.Sprintf("member.%04d@x.com", i)})
	}
	w.saveGroup(g)
	w.step = 30 * time.Second
	sent := 0
	w.mail.answer = func(string, int) error {
		if sent++; sent%600 == 0 {
			w.advance(deliverTime - 10*time.Second)
		}
		return nil
	}
	run := w.admitted(w.withGroups(w.definition("s", "Member.0007@x.com"), "all"))
	w.quiet()
	r := w.wantState(run, schedule.Succeeded, "")
	if r.Submitted != 2000 || r.Yields < 3 || r.Attempts-r.Yields != 1 {
		t.Errorf("%d submitted, %d yields, %d attempts", r.Submitted, r.Yields, r.Attempts)
	}
	for i := range 2000 {
		name := fmt.Sprintf("member.%04d@x.com", i)
		if i == 7 {
			name = "Member.0007@x.com"
		}
		if n := len(w.mail.to(name)); n != 1 {
			t.Fatalf("%s got %d mails", name, n)
		}
	}
}

func TestASavedScheduleNamesGroupsThatAreThereForIt(t *testing.T) {
	w := newWorld(t)
	w.group("duty-managers", "a@x.com", "A@x.com", "b@x.com")
	w.saveGroup(schedule.Group{ID: "jfk-managers", Name: "m", Workspaces: []string{"JFK"}, Recipients: w.definition("x", "j@x.com").Recipients})
	plan := func(ids ...string) (schedule.Change, error) {
		return w.editor.Plan(ctx, w.withGroups(w.definition("s", "direct@x.com"), ids...))
	}
	c, err := plan("duty-managers")
	w.must(err)
	if len(c.Groups) != 1 || c.Groups[0].ID != "duty-managers" || c.Groups[0].Members != 2 || c.Groups[0].Version != 1 {
		t.Errorf("groups of the plan: %+v", c.Groups)
	}
	for id, want := range map[string]string{
		"duty-manager": `recipients[2].group is "duty-manager"; want a group that workspace EWR may use, such as "duty-managers"`,
		"jfk-managers": "recipients[2].group is \"jfk-managers\"; want a group that workspace EWR may use; `almanac get groups` lists them",
		"nobody":       "recipients[2].group is \"nobody\"; want a group that workspace EWR may use; `almanac get groups` lists them",
	} {
		if _, err := plan("duty-managers", id); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", id, err, want)
		}
	}
	// Twice 6,000 members of whom 2,500 are the same are 9,500; without them they are too many.
	list := func(from, to int) (rs []schedule.Recipient) {
		for i := from; i < to; i++ {
			rs = append(rs, schedule.Recipient{Email: fmt.Sprintf("m%d@x.com", i)})
		}
		return rs
	}
	w.saveGroup(schedule.Group{ID: "one", Name: "1", Workspaces: []string{"*"}, Recipients: list(0, 6000)})
	w.saveGroup(schedule.Group{ID: "two", Name: "2", Workspaces: []string{"*"}, Recipients: list(3500, 9500)})
	if _, err := plan("one", "two"); err != nil {
		t.Error(err)
	}
	w.saveGroup(schedule.Group{ID: "two", Name: "2", Workspaces: []string{"*"}, Recipients: list(6000, 12000)})
	if _, err := plan("one", "two"); err == nil || !strings.Contains(err.Error(), "12001 recipients with the members of one (version 1), two (version 2)") {
		t.Errorf("%v", err)
	}
}

func TestAGroupIsSavedOnceAndItsVersionsStay(t *testing.T) {
	w := newWorld(t)
	first := w.group("managers", "a@x.com", "b@x.com")
	if first.Action != "create" || first.Version != 1 {
		t.Errorf("%+v", first)
	}
	if c := w.group("managers", "a@x.com", "b@x.com"); c.Action != "unchanged" || c.Version != 1 || len(c.Diff) != 0 {
		t.Errorf("an equal group: %+v", c)
	}
	c := w.group("managers", "b@x.com", "hook")
	if want := []string{"recipients: removed a@x.com", "recipients: added " + w.hooks.address("hook") + ", signed with ops"}; c.Action != "edit" || c.Version != 2 || !slices.Equal(c.Diff, want) {
		t.Errorf("%+v, want %q", c, want)
	}
	if c := w.group("managers", "hook", "b@x.com"); c.Version != 3 || !slices.Equal(c.Diff, []string{"recipients: in another order"}) {
		t.Errorf("%+v", c)
	}
	for _, seen := range []int{0, 2, 4} {
		g := schedule.Group{ID: "managers", Name: "other", Workspaces: []string{"EWR"}, Recipients: w.definition("x", "z@x.com").Recipients}
		if _, err := w.editor.ApplyGroup(ctx, g, "ann", seen); !schedule.IsConflict(err) || !strings.Contains(err.Error(), "at version 3") {
			t.Errorf("seen version %d: %v", seen, err)
		}
	}
	v, err := w.store.GroupVersion(ctx, "managers", 1)
	if err != nil || len(v.Recipients) != 2 || v.Recipients[0].Email != "a@x.com" || v.CreatedBy != "ann" {
		t.Errorf("version 1: %+v, %v", v, err)
	}
	audits, _, err := w.store.Audits(ctx, schedule.GroupSubject("managers"), "", 10)
	if err != nil || len(audits) != 3 || audits[0].Before != "version 2, 2 recipients" || audits[0].After != "version 3, 2 recipients" || audits[2].Before != "" {
		t.Errorf("%+v, %v", audits, err)
	}
	_, err = w.editor.PlanGroup(ctx, schedule.Group{ID: "x"})
	var ps schedule.Problems
	if !errors.As(err, &ps) || len(ps) != 3 {
		t.Errorf("a group of nothing: %v", err)
	}
	if _, err := w.editor.ApplyGroup(ctx, schedule.Group{ID: "x"}, "ann", 0); !errors.As(err, &ps) {
		t.Errorf("a group of nothing: %v", err)
	}
}

// A list of members that is lost is mended by saving the group again, also unchanged.
func TestALostListOfMembersIsMendedBySaving(t *testing.T) {
	w := newWorld(t)
	g := schedule.Group{ID: "all", Name: "Everybody", Workspaces: []string{"*"}}
	for i := range schedule.InlineRecipients + 1 {
		g.Recipients = append(g.Recipients, schedule.Recipient{Email: fmt.Sprintf("m%d@x.com", i)})
	}
	w.saveGroup(g)
	v, err := w.store.GroupVersion(ctx, "all", 1)
	w.must(err)
	w.overwrite(schema.ListKey(v.List.Hash), "[]")
	run := w.admitted(w.withGroups(w.definition("s"), "all"))
	w.quiet()
	w.wantState(run, schedule.Failed, failure.DefinitionInvalid)
	c := w.saveGroup(g)
	if c.Action != "edit" || c.Version != 2 || len(c.Diff) != 1 || !strings.Contains(c.Diff[0], "cannot be read") {
		t.Errorf("%+v", c)
	}
	w.to(firstDue.AddDate(0, 0, 1))
	w.tick()
	w.quiet()
	if r := w.wantState(schema.RunID("s", schedule.OccurrenceKey(firstDue.AddDate(0, 0, 1))), schedule.Succeeded, ""); r.Submitted != len(g.Recipients) {
		t.Errorf("%d submitted", r.Submitted)
	}
}

func TestDiffsOfGroupsAreBounded(t *testing.T) {
	var a, b schedule.Group
	a.Name, b.Name, a.Workspaces, b.Workspaces = "a", "b", []string{"EWR"}, []string{"EWR", "JFK"}
	for i := range 100 {
		a.Recipients = append(a.Recipients, schedule.Recipient{Email: fmt.Sprintf("a%d@x.com", i)})
		b.Recipients = append(b.Recipients, schedule.Recipient{Email: fmt.Sprintf("b%d@x.com", i)})
	}
	lines := schedule.DiffGroups(a, b)
	if len(lines) != 2+2*21 || lines[0] != `name: "a" → "b"` || lines[1] != "workspaces: EWR → EWR, JFK" || lines[22] != "recipients: removed 80 more" || lines[43] != "recipients: added 80 more" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if lines := schedule.DiffGroups(a, a); len(lines) != 0 {
		t.Errorf("equal groups differ in %q", lines)
	}
}

// A schedule with groups costs reads and nothing else: one of their heads at the admission, one of them and one of each
// group's version at each attempt.
func TestGroupsCostReadsAlone(t *testing.T) {
	measure := func(groups int) memcloud.OperationUnits {
		w := newWorld(t)
		d := w.definition("s")
		for i := range max(groups, 1) { // the same four recipients each time
			g := fmt.Sprintf("g%d", i)
			w.group(g, "a@x.com", "b", "c", "e")
			if i < groups {
				d = w.withGroups(d, g)
			}
		}
		if groups == 0 {
			d = w.definition("s", "a@x.com", "b", "c", "e")
		}
		w.apply(d)
		w.to(firstDue)
		before := w.db.Units()
		w.tick()
		w.deliver()
		if r := w.runs("s")[0]; r.Attempts != 1 || r.Submitted != 4 {
			t.Fatal(w.dump())
		}
		return w.db.Units().Since(before).Total()
	}
	bare := measure(0)
	for _, groups := range []int{1, 3, 20} {
		units := measure(groups)
		t.Logf("%2d groups: %d calls more, %.1f read units more, %.0f write units more", groups, units.Calls-bare.Calls, units.TableRead-bare.TableRead, units.TableWrite-bare.TableWrite)
		if got, want := units.Calls-bare.Calls, 2+groups; got != want {
			t.Errorf("%d groups: %d calls more, want %d", groups, got, want)
		}
		if units.TableWrite != bare.TableWrite || units.IndexWrite != bare.IndexWrite {
			t.Errorf("%d groups: %.0f and %.0f write units, want %.0f and %.0f as without", groups, units.TableWrite, units.IndexWrite, bare.TableWrite, bare.IndexWrite)
		}
	}
}
