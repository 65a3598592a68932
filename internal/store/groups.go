package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// PutGroup saves a version of a group and makes it the present one, in one transaction with its audit. The members are
// kept first where they stand apart. Where the version before it is not the present one it is a *schedule.Conflict.
func (s *Store) PutGroup(ctx context.Context, v schedule.GroupVersion, a schedule.Audit) error {
	h := v.Head()
	version, err := s.groupVersionWrite(ctx, v)
	if err != nil {
		return err
	}
	w := write{event: "save group", key: schema.GroupKey(v.ID), put: keyItem(schema.GroupKey(v.ID)), refused: "another version was saved since it was read"}
	for name, val := range compact(map[string]any{schema.Name: h.Name, schema.Version: h.Version, schema.Members: h.Members, schema.Workspaces: h.Workspaces,
		schema.DirKind: schema.DirGroups, schema.DirName: v.ID, schema.CreatedBy: a.Who, schema.UpdatedAt: a.At}) {
		w.put[name] = val
	}
	if v.Number == 1 {
		w.condition = "attribute_not_exists(" + w.expr.name(schema.PK) + ")"
		w.refused = "there is a group of this id by now"
	} else {
		w.condition = w.expr.equals(schema.Version, v.Number-1)
	}
	return s.transact(ctx, w, version, auditWrite(a))
}

// groupVersionWrite puts a version. It carries no condition of its own: it only ever goes with the write that moves the
// group to this version.
func (s *Store) groupVersionWrite(ctx context.Context, v schedule.GroupVersion) (write, error) {
	var err error
	if v.List = (schedule.ListRef{}); v.Apart() {
		if v.List, err = s.freeze(ctx, v.Recipients, len(v.Recipients)); err != nil {
			return write{}, err
		}
		v.Recipients = nil
	}
	body, err := json.Marshal(v.Group)
	if err != nil {
		return write{}, fmt.Errorf("group %s: %w", v.ID, err)
	}
	key := schema.GroupVersionKey(v.ID, v.Number)
	w := write{event: "save version", key: key, put: keyItem(key)}
	for name, val := range compact(map[string]any{schema.Version: v.Number, schema.Hash: v.Hash, schema.Body: string(body), schema.CreatedBy: v.CreatedBy,
		schema.CreatedAt: v.CreatedAt, schema.RecipientsHash: v.List.Hash}) {
		w.put[name] = val
	}
	if v.List.Hash != "" {
		w.put[schema.RecipientsCount] = attr(v.List.Count)
	}
	return w, nil
}

// GroupHeads reads groups as they stand now, consistently, in one request for at most 100; one that is not there is left
// out.
func (s *Store) GroupHeads(ctx context.Context, ids []string) (map[string]schedule.GroupHead, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = schema.GroupKey(id)
	}
	rows, err := s.batch(ctx, keys)
	if err != nil {
		return nil, err
	}
	heads := make(map[string]schedule.GroupHead, len(rows))
	for _, it := range rows {
		h := decodeGroupHead(it)
		heads[h.ID] = h
	}
	return heads, nil
}

func decodeGroupHead(it item) schedule.GroupHead {
	return schedule.GroupHead{ID: strings.TrimPrefix(string(keyOf(it).PK), "GROUP#"), Name: str(it, schema.Name), Workspaces: list(it, schema.Workspaces),
		Version: num(it, schema.Version), Members: num(it, schema.Members)}
}

// Groups lists all groups by id.
func (s *Store) Groups(ctx context.Context) ([]schedule.GroupHead, error) {
	var all []schedule.GroupHead
	from := ""
	for {
		keys, next, err := s.directory(ctx, schema.DirGroups, "", from, 100)
		if err != nil {
			return nil, err
		}
		rows, err := s.batch(ctx, keys)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if len(rows[k]) > 0 { // else the index is behind
				all = append(all, decodeGroupHead(rows[k]))
			}
		}
		if from = next; from == "" {
			return all, nil
		}
	}
}

// GroupVersion reads one immutable version, whole. Where its members stand apart and are not there any more, or are
// others, the error is definition_invalid and the version comes without them.
func (s *Store) GroupVersion(ctx context.Context, id string, version int) (schedule.GroupVersion, error) {
	it, err := s.get(ctx, schema.GroupVersionKey(id, version))
	if err != nil {
		return schedule.GroupVersion{}, err
	}
	if len(it) == 0 {
		return schedule.GroupVersion{}, schedule.ErrNotFound
	}
	v, err := decodeGroup(it)
	if err != nil || v.List.Hash == "" {
		return v, err
	}
	v.Recipients, err = thaw[schedule.Recipient](ctx, s, v.List)
	return v, err
}

func decodeGroup(it item) (schedule.GroupVersion, error) {
	var t times
	v := schedule.GroupVersion{Number: num(it, schema.Version), Hash: str(it, schema.Hash), CreatedBy: str(it, schema.CreatedBy), CreatedAt: t.read(it, schema.CreatedAt),
		List: schedule.ListRef{Hash: str(it, schema.RecipientsHash), Count: num(it, schema.RecipientsCount)}}
	if err := json.Unmarshal([]byte(str(it, schema.Body)), &v.Group); err != nil {
		return v, fmt.Errorf("%s: %w", keyOf(it), err)
	}
	return v, t.err
}

// GroupVersions lists the versions of a group, the latest first, without members that stand apart.
func (s *Store) GroupVersions(ctx context.Context, id, from string, limit int) ([]schedule.GroupVersion, string, error) {
	return decoded(ctx, s, below(schema.GroupKey(id).PK, schema.DefPrefix, true), from, limit, decodeGroup)
}
