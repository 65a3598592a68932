package command

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

const managers = `kind: group
id: duty-managers
name: Duty managers
workspaces: [EWR]
recipients:
  - email: eve@example.com
  - webhook: https://ops.example.com/almanac
    secret: ops
`

var grouped = strings.Replace(delays, "- email: bob@example.com", "- group: duty-managers", 1)

// TestApplyTakesGroupsBeforeTheSchedulesThatNameThem: a group is planned, saved and compared as a schedule is.
func TestApplyTakesGroupsBeforeTheSchedulesThatNameThem(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/a.yaml", configuration+"---\n"+grouped)
	s.write("demo/z.yaml", managers)
	out, _ := s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "+ group      duty-managers  create     version 1", "its workspace, source and groups are there", "group duty-managers: created, version 1\nschedule ewr-delays: created, version 1")

	out, _ = s.run(Done, "apply", "-f", s.path("demo"))
	has(t, out, "= group      duty-managers  unchanged  version 1", "0 to create, 0 to edit, 4 unchanged")

	s.write("demo/z.yaml", strings.Replace(managers, "eve@example.com", "mallory@example.com", 1))
	s.write("demo/a.yaml", configuration+"---\n"+strings.Replace(grouped, "Delayed departures", "Late departures", 1))
	out, _ = s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "~ group      duty-managers  edit       version 2\n      recipients: removed eve@example.com\n      recipients: added mallory@example.com",
		"      group duty-managers has 2 members now (version 1)\n", "group duty-managers: edited, version 2")

	out, _ = s.run(Done, "get", "groups")
	has(t, out, "GROUP          WORKSPACES  VERSION  MEMBERS  NAME\nduty-managers  EWR         2        2        Duty managers")
	out, _ = s.run(Done, "show", "group/duty-managers")
	has(t, out, "Version     2, by ", "Members     2", "  email    mallory@example.com\n  webhook  https://ops.example.com/almanac")
	out, _ = s.run(Done, "show", "group/duty-managers", "--definition")
	has(t, out, `"recipients"`, `"email": "mallory@example.com"`, `"workspaces"`)
	out, _ = s.run(Done, "show", "group/duty-managers", "-o", "json")
	has(t, out, `"members": 2`, `"hash"`)
	out, _ = s.run(Done, "show", "ewr-delays")
	has(t, out, "  group  duty-managers")
	out, _ = s.run(Done, "history", "group/duty-managers")
	has(t, out, "VERSION  AT", "\n2  ", "\n1  ")
	out, _ = s.run(Done, "history", "group/duty-managers", "--diff", "1", "2")
	has(t, out, "group/duty-managers: version 1 → version 2", "  recipients: removed eve@example.com\n  recipients: added mallory@example.com")
	out, _ = s.run(Done, "history", "group/duty-managers", "--diff", "2", "2", "-o", "json")
	has(t, out, `"against": 2`)
	out, _ = s.run(Done, "history", "group/duty-managers", "--diff", "2", "2")
	has(t, out, "(no difference)")
	out, _ = s.run(Done, "audits", "group/duty-managers")
	has(t, out, "version 1, 2 recipients", "version 2, 2 recipients")
}

func TestARunShowsTheVersionsOfItsGroups(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+managers+"---\n"+grouped)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.run(Done, "run-now", "ewr-delays", "--key", "k")
	runs, _, err := s.product.Store.Runs(context.Background(), "ewr-delays", "", 1)
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	out, _ := s.run(Done, "show", runs[0].ID())
	has(t, out, "Group     duty-managers, as of version 1")
}

func TestWhatIsWrongWithAGroupIsShownWithFileAndLine(t *testing.T) {
	many := managers
	for range 25 {
		many += "  - email: eve@example.com\n"
	}
	for _, x := range []struct{ name, text, want string }{
		{"id absent", strings.Replace(managers, "id: duty-managers\n", "", 1), "id of the group is null"},
		{"member no address", strings.Replace(managers, "eve@example.com", "eve", 1), "all.yaml:6: recipients[0].email is"},
		{"group in a group", strings.Replace(managers, "email: eve@example.com", "group: others", 1), "all.yaml:6: recipients[0].group is \"others\""},
		{"unknown field", strings.Replace(managers, "name:", "nmae:", 1), "nmae is not known"},
		{"workspaces wrong type", strings.Replace(managers, "[EWR]", "EWR", 1), "all.yaml:4: workspaces is a string"},
		{"schedule names none that is there", configuration + "---\n" + strings.Replace(grouped, "duty-managers", "duty-manager", 1) + "---\n" + managers,
			`all.yaml:28: recipients[1].group is "duty-manager"; want a group that exists or is described here, such as "duty-managers"`},
		{"schedule names nobody", configuration + "---\n" + grouped, `all.yaml:28: recipients[1].group is "duty-managers"; want a group that exists or is described here`},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := ready(t, "admin")
			s.write("demo/all.yaml", x.text)
			out, err := s.run(Usage, "apply", "-f", s.path("demo"), "--yes")
			has(t, err, x.want)
			if strings.Contains(out, "created") {
				t.Errorf("something was applied:\n%s", out)
			}
		})
	}
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+many)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	out, _ := s.run(Done, "show", "group/duty-managers")
	has(t, out, "Members     2", "  and 7 more; almanac show group/duty-managers --definition prints all")
	// A group that is there and not for this workspace is told by the API, beside its line.
	s.write("demo/all.yaml", strings.Replace(managers, "[EWR]", "[JFK]", 1))
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.write("demo/all.yaml", configuration+"---\n"+grouped)
	_, err := s.run(Usage, "apply", "-f", s.path("demo"), "--yes")
	has(t, err, `all.yaml:28: recipients[1].group is "duty-managers"; want a group that workspace EWR may use`)
	for _, args := range [][]string{{"show", "group/a/b"}, {"history", "group/"}, {"audits", "group/a b"}} {
		_, err := s.run(Usage, args...)
		has(t, err, "is no group")
	}
	for _, args := range [][]string{{"show", "group/none"}, {"history", "group/none"}, {"history", "group/none", "--diff", "1", "2"}, {"audits", "group/none"}} {
		_, err := s.run(Refused, args...)
		has(t, err, `there is no group "none"`)
	}
}

// TestAGroupsEditIsRefusedWhenAnotherCameBetween: the plan that was seen is the plan that is applied.
func TestAGroupsEditIsRefusedWhenAnotherCameBetween(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+managers)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.write("demo/all.yaml", configuration+"---\n"+strings.Replace(managers, "eve@", "mallory@", 1))
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "PUT" {
			return false
		}
		s.before = nil
		theirs := schedule.Group{ID: "duty-managers", Name: "Theirs", Workspaces: []string{"EWR"}, Recipients: []schedule.Recipient{{Email: "bob@example.com"}}}
		if _, err := s.product.API.Editor.ApplyGroup(context.Background(), theirs, "eve", 1); err != nil {
			t.Error(err)
		}
		return false
	}
	_, err := s.run(Refused, "apply", "-f", s.path("demo"), "--yes")
	has(t, err, "412", "apply again", "version 2")
	out, _ := s.run(Done, "get", "groups")
	has(t, out, "Theirs")
}
