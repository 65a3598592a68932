//go:build cloud

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/schedule"
)

// V4 for groups on the deployed functions: a run is admitted with the group as it is; before its first recipient is asked
// the group changes.
func TestV4AGroupsMembersAreThoseOfTheAdmission(t *testing.T) {
	scene(t)
	tag := fmt.Sprint(time.Now().UnixNano())
	id, path := "managers-"+tag, "managers-"+tag
	stays, leaves, comes := "stays-"+tag+"@example.com", "leaves-"+tag+"@example.com", "comes-"+tag+"@example.com"
	group := func(members ...schedule.Recipient) schedule.Group {
		return schedule.Group{ID: id, Name: "Duty managers", Workspaces: []string{"EWR"}, Recipients: members}
	}
	must(t, "PUT", "/groups/"+id, group(schedule.Recipient{Email: stays}, schedule.Recipient{Email: leaves}, hook(path)))
	d := save(t, func(d *schedule.Definition) {
		d.Recipients = []schedule.Recipient{{Email: strings.ToUpper(stays[:1]) + stays[1:]}, {Group: id}}
	})
	// Sending is off while the run is admitted and the group changes: so it waits in its queue.
	switches(t, map[string]string{"send": "off"})
	run := due(t, d)
	drained(t)
	must(t, "PUT", "/groups/"+id, group(schedule.Recipient{Email: stays}, hook(path), schedule.Recipient{Email: comes}))
	must(t, "PUT", "/control", map[string]string{"send": "on", "reason": "the group has changed"})
	r := settled(t, run)
	want(t, r, schedule.Succeeded, "")
	if r.Submitted != 2 || r.SkippedN != 1 || r.Groups[id] != 1 {
		t.Fatalf("submitted %d, skipped %d, groups %v; want 2, 1 and version 1", r.Submitted, r.SkippedN, r.Groups)
	}
	if s := outcomes(t, run)[leaves]; s.State != schedule.NotDelivered || s.Reason != "removed" {
		t.Fatalf("who left is %s %s, want skipped removed", s.State, s.Reason)
	}
	mailed(t, run, 1) // stays, who is a direct recipient too
	if n := len(hooks(t, path)); n != 1 {
		t.Fatalf("%d requests to the member that is a webhook, want 1", n)
	}
	var shown api.RunDetail
	if err := json.Unmarshal(must(t, "GET", "/runs/"+run, nil), &shown); err != nil || shown.Groups[id] != 1 {
		t.Fatalf("the API shows groups %v, %v", shown.Groups, err)
	}
	setClock(t, monday.Add(24*time.Hour+30*time.Minute))
	tick(t)
	next := d.ID + "@2013-05-07T10:30:00Z"
	r = settled(t, next)
	want(t, r, schedule.Succeeded, "")
	got := outcomes(t, next)
	if _, asked := got[leaves]; asked || got[comes].State != schedule.Submitted || r.Groups[id] != 2 {
		t.Fatalf("the next run's outcomes are %v with groups %v; want %s and not %s", got, r.Groups, comes, leaves)
	}
}
