package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"almanac/internal/failure"
	"almanac/internal/input"
)

// MaxGroups is how many groups one schedule names: their heads are one read at each admission.
const MaxGroups = 20

// ToGroup stands in the place of a channel where a recipient is a group.
const ToGroup = "group"

// Group is a list of recipients that schedules name instead of writing it out. Each saved change is a version of its own,
// which nothing changes; a run is delivered to the members of the versions that it was admitted with.
type Group struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Workspaces []string    `json:"workspaces"` // whose schedules may name it; "*" for all
	Recipients []Recipient `json:"recipients"`
}

// GroupHead is a group as it stands now, without its members.
type GroupHead struct {
	ID         string
	Name       string
	Workspaces []string
	Version    int // 0: there is no such group
	Members    int // distinct ones
}

// Serves reports whether a workspace's schedules may name the group.
func (g GroupHead) Serves(workspace string) bool { return serves(g.Workspaces, workspace) }

// GroupVersion is one version of a group with what the store knows about it.
type GroupVersion struct {
	Group
	Number    int
	Hash      string // SHA-256 of the canonical JSON: equal groups make no new version
	CreatedBy string
	CreatedAt time.Time
	List      ListRef // where the members stand, if not on the version's row
}

// Head is the group as it stands with this version, whose members are read.
func (v GroupVersion) Head() GroupHead {
	return GroupHead{ID: v.ID, Name: v.Name, Workspaces: v.Workspaces, Version: v.Number, Members: len(Targets(v.Recipients))}
}

// Apart reports members that do not fit the version's row.
func (g Group) Apart() bool {
	return len(g.Recipients) > InlineRecipients || len(stored(g)) > maxDefinition
}

// Hash names a group by its content.
func (g Group) Hash() string {
	sum := sha256.Sum256(stored(g))
	return hex.EncodeToString(sum[:])
}

// ParseGroup reads a group strictly; every wrong field is named in the Problems that it returns.
func ParseGroup(raw []byte) (Group, error) {
	var g Group
	if len(raw) > maxDocument {
		return g, Problems{input.Wrong("group", fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("at most %d bytes", maxDocument))}
	}
	if err := input.Strict(raw, &g); err != nil {
		return g, Problems{input.ProblemOf(err, "group", input.FieldNames(reflect.TypeFor[Group]()))}
	}
	if ps := g.Check(); len(ps) > 0 {
		return g, ps
	}
	return g, nil
}

// Check names every wrong field of a group.
func (g Group) Check() Problems {
	var c checker
	c.Form("id", g.ID, idForm, "1 to 64 small letters, digits and dashes, such as duty-managers")
	c.Line("name", g.Name, MaxName, true)
	c.workspaces(g.Workspaces)
	c.recipients(g.Recipients, false)
	c.listed(g.Recipients)
	return c.Problems
}

// groupsOf are the distinct groups among recipients, in their order.
func groupsOf(rs []Recipient) []string {
	var ids []string
	seen := map[string]bool{"": true} // most recipients are no group
	for _, r := range rs {
		if !seen[r.Group] {
			seen[r.Group] = true
			ids = append(ids, r.Group)
		}
	}
	return ids
}

// GroupsOf are the distinct groups that a definition names, in their order.
func (d Definition) GroupsOf() []string { return groupsOf(d.Recipients) }

// DiffGroups says how two versions of a group differ: a line per field, and one for each member that came or went, as far
// as they are not too many.
func DiffGroups(before, after Group) []string {
	var lines []string
	if before.Name != after.Name {
		lines = append(lines, fmt.Sprintf("name: %q → %q", before.Name, after.Name))
	}
	if a, b := strings.Join(before.Workspaces, ", "), strings.Join(after.Workspaces, ", "); a != b {
		lines = append(lines, fmt.Sprintf("workspaces: %s → %s", a, b))
	}
	gone, come := without(before.Recipients, after.Recipients), without(after.Recipients, before.Recipients)
	if len(gone)+len(come) == 0 && !slices.Equal(before.Recipients, after.Recipients) {
		lines = append(lines, "recipients: in another order")
	}
	lines = append(lines, members("removed", gone)...)
	return append(lines, members("added", come)...)
}

// members names as many of some members as a diff lists, and counts the others.
func members(what string, list []Recipient) []string {
	var lines []string
	for i, r := range list {
		if i == listedRecipients {
			return append(lines, fmt.Sprintf("recipients: %s %d more", what, len(list)-i))
		}
		line := "recipients: " + what + " " + failure.Cut(r.Address(), 80)
		if r.Secret != "" {
			line += ", signed with " + r.Secret
		}
		lines = append(lines, line)
	}
	return lines
}

// serves reports whether a list of workspaces holds one, or stands for all.
func serves(list []string, workspace string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, workspace)
}
