package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func groupOf(id string, n int, members ...schedule.Recipient) schedule.GroupVersion {
	return schedule.GroupVersion{Number: n, Hash: fmt.Sprintf("d00d%d", n), CreatedBy: "ann@example.com", CreatedAt: wall,
		Group: schedule.Group{ID: id, Name: "Duty managers", Workspaces: []string{"EWR"}, Recipients: members}}
}

func onGroup(id, act string) schedule.Audit { return actOf(schedule.GroupSubject(id), act, "save") }

// groupRows are the head and the version as they are kept.
func groupRows(t *testing.T, v schedule.GroupVersion) world {
	t.Helper()
	body, err := json.Marshal(v.Group)
	if err != nil {
		t.Fatal(err)
	}
	h := v.Head()
	return world{}.add(schema.GroupKey(v.ID), row{schema.Name: h.Name, schema.Version: h.Version, schema.Members: h.Members, schema.Workspaces: h.Workspaces,
		schema.DirKind: "group", schema.DirName: v.ID, schema.CreatedBy: "ann@example.com", schema.UpdatedAt: actAt}).
		add(schema.GroupVersionKey(v.ID, v.Number), row{schema.Version: v.Number, schema.Hash: v.Hash, schema.Body: string(body), schema.CreatedBy: v.CreatedBy, schema.CreatedAt: v.CreatedAt})
}

// groups are documents whose versions are kept, in a table of their own.
func groups(t *testing.T, b *bench) {
	shared := b
	b = newBench(t, Harness{DB: b.tap.DynamoDB.(Client), Advance: b.advance})
	defer func() { shared.tap.eventual.Add(b.tap.eventual.Load()) }()
	t.Run("versions follow one another", func(t *testing.T) { groupVersions(t, b) })
	t.Run("two people save one group", func(t *testing.T) {
		for n := 1; n <= 2; n++ {
			race(t, 8, func(ctx context.Context, i int) error {
				return b.rival().PutGroup(ctx, groupOf("raced", n, schedule.Recipient{Email: fmt.Sprintf("m%d@example.com", i)}), onGroup("raced", fmt.Sprintf("act-%d-%d", n, i)))
			})
			b.audited(t, schedule.GroupSubject("raced"), n)
		}
	})
	t.Run("members that do not fit stand apart", func(t *testing.T) { membersApart(t, b) })
	t.Run("lists", func(t *testing.T) { groupLists(t, b) })
	t.Run("admission and definition name them", func(t *testing.T) { namedGroups(t, b) })
	t.Run("reads fail", func(t *testing.T) {
		b.tap.before = func(int, string) error { return timedOut() }
		defer b.tap.reset()
		for name, read := range map[string]func() error{
			"heads":    func() error { _, err := b.GroupHeads(t.Context(), []string{"a"}); return err },
			"groups":   func() error { _, err := b.Groups(t.Context()); return err },
			"version":  func() error { _, err := b.GroupVersion(t.Context(), "a", 1); return err },
			"versions": func() error { _, _, err := b.GroupVersions(t.Context(), "a", "", 1); return err },
		} {
			t.Run(name, func(t *testing.T) { failuretest.Want(t, read(), failure.StoreUnavailable) })
		}
	})
}

func groupVersions(t *testing.T, b *bench) {
	ctx := t.Context()
	ann, twice := schedule.Recipient{Email: "ann@example.com"}, schedule.Recipient{Email: "ANN@example.com"}
	hook := schedule.Recipient{Webhook: "https://example.com/h", Secret: "ops"}
	first, second := groupOf("managers", 1, ann, twice), groupOf("managers", 2, hook)
	for i, v := range []schedule.GroupVersion{first, second} {
		if err := b.PutGroup(ctx, v, onGroup("managers", fmt.Sprintf("act-%d", i))); err != nil {
			t.Fatal(err)
		}
		want := groupRows(t, v)
		got := world{}
		for k := range want {
			got[k] = b.row(t, k)
		}
		if d := diff(got, want); d != "" {
			t.Error(d)
		}
	}
	for _, n := range []int{1, 2, 4} { // it is at version 2
		err := b.PutGroup(ctx, groupOf("managers", n, ann), onGroup("managers", fmt.Sprintf("refused-%d", n)))
		if !schedule.IsConflict(err) {
			t.Errorf("version %d: %v, want a conflict", n, err)
		}
	}
	if err := b.PutGroup(ctx, groupOf("nobody", 2, ann), onGroup("nobody", "act")); !schedule.IsConflict(err) {
		t.Errorf("version 2 of a group that is not there: %v", err)
	}
	b.audited(t, schedule.GroupSubject("nobody"), 0)
	b.audited(t, schedule.GroupSubject("managers"), 2)
	for _, want := range []schedule.GroupVersion{first, second} {
		got, err := b.GroupVersion(ctx, "managers", want.Number)
		if err != nil || !got.CreatedAt.Equal(want.CreatedAt) {
			t.Fatalf("%+v, %v", got, err)
		}
		got.CreatedAt = want.CreatedAt
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	if _, err := b.GroupVersion(ctx, "managers", 3); err != schedule.ErrNotFound {
		t.Errorf("a version that is not there: %v", err)
	}
	heads, err := b.GroupHeads(ctx, []string{"managers", "nobody"})
	if err != nil || len(heads) != 1 || !reflect.DeepEqual(heads["managers"], second.Head()) {
		t.Errorf("heads %+v, %v; want %+v", heads, err, second.Head())
	}
	b.tap.reset()
	if heads, err := b.GroupHeads(ctx, nil); err != nil || len(heads) != 0 || b.tap.calls.Load() != 0 {
		t.Errorf("no ids: %v, %v, %d calls", heads, err, b.tap.calls.Load())
	}
	b.write(t, world{}.add(schema.GroupVersionKey("broken", 1), row{schema.Body: "[", schema.Version: 1}).
		add(schema.GroupVersionKey("timeless", 1), row{schema.Body: "{}", schema.Version: 1, schema.CreatedAt: "yesterday"}))
	for _, id := range []string{"broken", "timeless"} {
		if _, err := b.GroupVersion(ctx, id, 1); err == nil {
			t.Errorf("%s: a version that cannot be read was read", id)
		}
		if _, _, err := b.GroupVersions(ctx, id, "", 1); err == nil {
			t.Errorf("%s: a list with a version that cannot be read was read", id)
		}
	}
}

func membersApart(t *testing.T, b *bench) {
	ctx := t.Context()
	for _, n := range []int{schedule.InlineRecipients, schedule.InlineRecipients + 1, schedule.MaxRecipients} {
		s, id := shelved(t, b), fmt.Sprintf("of-%d", n)
		v := groupOf(id, 1, longList(n)...)
		s.asks = func(what string) {
			if what == "put" && len(b.row(t, schema.GroupKey(id))) > 0 {
				t.Error("the row was there before the list that it names")
			}
		}
		if err := b.PutGroup(ctx, v, onGroup(id, "act")); err != nil {
			t.Fatal(err)
		}
		apart := n > schedule.InlineRecipients
		if row := b.row(t, schema.GroupVersionKey(id, 1)); (len(s.kept) == 1) != apart || (row[schema.RecipientsHash] != nil) != apart || (row[schema.RecipientsCount] != nil) != apart {
			t.Fatalf("%d members: %d lists are kept", n, len(s.kept))
		}
		got, err := b.GroupVersion(ctx, id, 1)
		if err != nil || !slices.Equal(got.Recipients, v.Recipients) {
			t.Errorf("%d of %d members come back, %v", len(got.Recipients), n, err)
		}
		if heads, err := b.GroupHeads(ctx, []string{id}); err != nil || heads[id].Members != n {
			t.Errorf("%+v, %v", heads, err)
		}
		if !apart {
			continue
		}
		if list, _, err := b.GroupVersions(ctx, id, "", 1); err != nil || len(list) != 1 || len(list[0].Recipients) != 0 || list[0].List.Count != n {
			t.Errorf("a list of versions reads members, or not their count: %v", err)
		}
		hash, kept := s.only(t)
		s.kept[hash] = append([]byte(" "), kept...)
		_, err = b.GroupVersion(ctx, id, 1)
		failuretest.Want(t, err, failure.DefinitionInvalid)
		delete(s.kept, hash)
		got, err = b.GroupVersion(ctx, id, 1)
		failuretest.Want(t, err, failure.DefinitionInvalid)
		if got.Name != v.Name || got.Number != 1 {
			t.Errorf("beside the error: %+v", got)
		}
		s.asks, s.down = nil, timedOut()
		if err := b.PutGroup(ctx, groupOf(id, 2, longList(n)...), onGroup(id, "act-2")); err == nil {
			t.Error("a version was saved whose list was not")
		}
		if heads, err := b.GroupHeads(ctx, []string{id}); err != nil || heads[id].Version != 1 {
			t.Errorf("%+v, %v", heads, err)
		}
	}
}

func groupLists(t *testing.T, b *bench) {
	ctx := t.Context()
	for i := range 105 {
		id := fmt.Sprintf("z-%03d", 104-i)
		if err := b.PutGroup(ctx, groupOf(id, 1, schedule.Recipient{Email: someone}), onGroup(id, "act")); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (ids []string) {
		t.Helper()
		all, err := b.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range all {
			if h.ID[:2] == "z-" {
				ids = append(ids, h.ID)
			}
			if h.Version == 0 || h.Members == 0 {
				t.Errorf("%+v", h)
			}
		}
		return ids
	}
	if ids := list(); len(ids) != 105 || !slices.IsSorted(ids) {
		t.Errorf("%d groups: %v", len(ids), ids)
	}
	b.tap.stale = func(_ *dynamodb.QueryInput, out *dynamodb.QueryOutput) { // the index still has one that is gone
		if len(out.Items) > 0 {
			gone := maps.Clone(out.Items[0])
			gone[schema.PK] = av(string(schema.GroupKey("gone").PK))
			out.Items = append(out.Items, gone)
		}
	}
	if ids := list(); len(ids) != 105 {
		t.Errorf("with an index behind: %d groups", len(ids))
	}
	b.tap.reset()
	for n := 2; n <= 5; n++ {
		if err := b.PutGroup(ctx, groupOf("z-007", n, schedule.Recipient{Email: someone}), onGroup("z-007", fmt.Sprintf("act-%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 100} {
		got := pages(t, limit, func(from string) ([]schedule.GroupVersion, string, error) {
			return b.GroupVersions(ctx, "z-007", from, limit)
		},
			func(v schedule.GroupVersion) string { return fmt.Sprint(v.Number) })
		if !slices.Equal(got, []string{"5", "4", "3", "2", "1"}) {
			t.Errorf("versions %v, want the latest first", got)
		}
	}
	_, foreign, err := b.GroupVersions(ctx, "z-007", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"x", foreign} {
		var ps schedule.Problems
		if _, _, err := b.GroupVersions(ctx, "z-008", from, 1); !asProblems(err, &ps) {
			t.Errorf("cursor %.40q: %v, want a wrong field", from, err)
		}
	}
}

func asProblems(err error, ps *schedule.Problems) bool {
	p, ok := err.(schedule.Problems)
	*ps = p
	return ok
}

func namedGroups(t *testing.T, b *bench) {
	ctx := t.Context()
	for name, direct := range map[string]int{"on the row": 1, "beside a long list": schedule.InlineRecipients} {
		t.Run(name, func(t *testing.T) {
			shelved(t, b)
			p := b.place()
			v := versionOf(p, 1)
			v.Recipients = append(longList(direct), schedule.Recipient{Group: "press"}, schedule.Recipient{Group: "managers"}, schedule.Recipient{Group: "press"})
			if err := create(b, p, v); err != nil {
				t.Fatal(err)
			}
			outline, err := b.Outline(ctx, p.schedule, 1)
			if err != nil || !slices.Equal(outline.Groups, []string{"press", "managers"}) {
				t.Errorf("the outline names %v, %v", outline.Groups, err)
			}
			whole, err := b.Definition(ctx, p.schedule, 1)
			if err != nil || !slices.Equal(whole.Groups, outline.Groups) || !slices.Equal(whole.Recipients, v.Recipients) {
				t.Errorf("the definition names %v, %v", whole.Groups, err)
			}
		})
	}
	p := b.place()
	a := admission0(p)
	a.Run.Groups = map[string]int{"press": 3, "managers": 12}
	if err := b.Admit(ctx, a); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Run(ctx, p.run()); err != nil || !maps.Equal(r.Groups, a.Run.Groups) {
		t.Errorf("the run has %v, %v", r.Groups, err)
	}
	q := b.place()
	if err := b.Admit(ctx, admission0(q)); err != nil {
		t.Fatal(err)
	}
	if _, has := b.row(t, q.runKey())[schema.Groups]; has {
		t.Error("a run without groups has an attribute for them")
	}
}
