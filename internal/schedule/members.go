package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"almanac/internal/failure"
)

// GroupReader reads groups.
type GroupReader interface {
	// GroupHeads are the groups with these ids as they stand now, read consistently in one request; one that is not there
	// is left out.
	GroupHeads(ctx context.Context, ids []string) (map[string]GroupHead, error)
	// GroupVersion reads one version whole. Where its members cannot be read any more, the error is definition_invalid, and
	// the version comes without them.
	GroupVersion(ctx context.Context, id string, version int) (GroupVersion, error)
}

// HeadReader is the part of GroupReader that an admission needs.
type HeadReader interface {
	GroupHeads(ctx context.Context, ids []string) (map[string]GroupHead, error)
}

// admitted are the versions of a definition's groups at this moment: they go onto the run that is admitted now. A group
// that is not there is left out, which the run's consumer tells.
func admitted(ctx context.Context, from HeadReader, v Version) (map[string]int, error) {
	if len(v.Groups) == 0 {
		return nil, nil
	}
	heads, err := from.GroupHeads(ctx, v.Groups)
	if err != nil {
		return nil, err
	}
	versions := make(map[string]int, len(heads))
	for id, h := range heads {
		versions[id] = h.Version
	}
	return versions, nil
}

// expand hands over recipients, in the place of each group its members as they are in the given versions, one group after
// the other: the lists of all of them may take more memory than there is. Which group is not there or not for this
// workspace is definition_invalid.
func expand(ctx context.Context, from GroupReader, rs []Recipient, workspace string, versions map[string]int, each func([]Recipient)) error {
	read := map[string]bool{}
	for i, r := range rs {
		if r.Group == "" {
			each(rs[i : i+1])
			continue
		}
		if read[r.Group] {
			continue
		}
		read[r.Group] = true
		if versions[r.Group] == 0 {
			return failure.New(failure.DefinitionInvalid, "there was no group %s when the run was admitted", r.Group)
		}
		g, err := from.GroupVersion(ctx, r.Group, versions[r.Group])
		switch {
		case errors.Is(err, ErrNotFound):
			return failure.New(failure.DefinitionInvalid, "version %d of group %s is not there any more", versions[r.Group], r.Group)
		case err != nil:
			return err
		case !serves(g.Workspaces, workspace):
			return failure.New(failure.DefinitionInvalid, "group %s, version %d, may not be used by workspace %s", r.Group, versions[r.Group], workspace)
		}
		each(g.Recipients)
	}
	return nil
}

// wholeTargets are the distinct recipients of a definition with its groups written out. More than a run may have are
// definition_invalid, with how many and whose they are.
func wholeTargets(ctx context.Context, from GroupReader, rs []Recipient, workspace string, versions map[string]int) ([]Target, error) {
	var all []Target
	seen := map[string]bool{}
	err := expand(ctx, from, rs, workspace, versions, func(list []Recipient) {
		distinct(list, seen, func(t Target) {
			if len(all) < MaxRecipients { // more are counted only
				all = append(all, t)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	if len(seen) > MaxRecipients {
		var names []string
		for _, id := range groupsOf(rs) {
			names = append(names, fmt.Sprintf("%s (version %d)", id, versions[id]))
		}
		return nil, failure.New(failure.DefinitionInvalid, "%d recipients with the members of %s; a run has at most %d", len(seen), strings.Join(names, ", "), MaxRecipients)
	}
	return all, nil
}

// presence reads who is on the schedule now, where that may be others than whom the run was admitted for: another version
// of the schedule, or of a group that it names. A group that is gone, or not for this workspace any more, has nobody on it.
func (w *work) presence(ctx context.Context, s Schedule) error {
	if s.Version == w.run.Version && len(w.def.Groups) == 0 {
		return nil
	}
	current, err := w.def, error(nil)
	if s.Version != w.run.Version {
		if current, err = w.Ledger.Definition(ctx, s.ID, s.Version); err != nil {
			return err
		}
	}
	versions := map[string]int{}
	if len(current.Groups) > 0 {
		heads, err := w.Ledger.GroupHeads(ctx, current.Groups)
		if err != nil {
			return err
		}
		for id, h := range heads {
			if h.Serves(s.Workspace) {
				versions[id] = h.Version
			}
		}
	}
	if s.Version == w.run.Version && maps.Equal(versions, w.run.Groups) {
		return nil
	}
	there := slices.DeleteFunc(slices.Clone(current.Recipients), func(r Recipient) bool { return r.Group != "" && versions[r.Group] == 0 })
	live := map[string]bool{}
	err = expand(ctx, w.Ledger, there, s.Workspace, versions, func(list []Recipient) { distinct(list, live, func(Target) {}) })
	if err == nil {
		w.live = live
	}
	return err
}
