package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// instants are what the product may store: any millisecond of four-digit years.
func instants(t *rapid.T, label string) time.Time {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, label+" zone"))
	ms := rapid.Int64Range(first.UnixMilli(), last.UnixMilli()).Draw(t, label)
	return time.UnixMilli(ms).Add(time.Duration(rapid.IntRange(0, 999_999).Draw(t, label+" below a millisecond"))).In(zone)
}

// Stored times compare as text as they do as instants: conditions and indexes rest on it.
func TestTimeKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := instants(t, "a"), instants(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a.Add(time.Duration(rapid.Int64Range(-3e6, 3e6).Draw(t, "apart"))).In(b.Location())
			if y := b.UTC().Year(); y < 1 || y > 9999 {
				t.Skip("out of range")
			}
		}
		sa, sb := Time(a), Time(b)
		if len(sa) != len(timeLayout) {
			t.Fatalf("%s has another width than %s", sa, timeLayout)
		}
		ma, mb := a.UnixMilli(), b.UnixMilli()
		if (ma < mb) != (sa < sb) || (ma == mb) != (sa == sb) {
			t.Fatalf("%s and %s do not compare as %d and %d", sa, sb, ma, mb)
		}
		back, err := ParseTime(sa)
		if err != nil || back.UnixMilli() != ma || back.Location() != time.UTC {
			t.Fatalf("%s came back as %v, %v", sa, back, err)
		}
	})
}

func TestZeroTimeIsNoTime(t *testing.T) {
	if got := Time(time.Time{}); got != "" {
		t.Errorf("the zero time is %q, want nothing", got)
	}
	if got, err := ParseTime(""); err != nil || !got.IsZero() {
		t.Errorf("nothing is %v, %v; want the zero time", got, err)
	}
	for _, bad := range []string{"yesterday", "2013-06-03", "2013-06-03T12:00:00Z", "2013-06-03T12:00:00.000+01:00", "2013-13-03T12:00:00.000Z", "2013-02-30T12:00:00.000Z", " 2013-06-03T12:00:00.000Z"} {
		if got, err := ParseTime(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q is %v, %v; want an error that names it", bad, got, err)
		}
	}
}

// every is each kind of key for one set of parts.
func every(id, other string, n int, at time.Time) map[string]Key {
	run := RunID(id, other)
	return map[string]Key{
		"schedule": ScheduleKey(id), "definition": DefinitionKey(id, n), "run": RunKey(id, other), "skip, gap": SkipKey(id, at, "gap"), "skip, missed": SkipKey(id, at, "missed"),
		"submission": SubmissionKey(run, other, id), "access": AccessKey(run, other, id, at, other), "suppression": SuppressionKey(other, id),
		"unsubscription": UnsubscriptionKey(other, id, other), "workspace": WorkspaceKey(id), "source": SourceKey(id), "group": GroupKey(id), "version of a group": GroupVersionKey(id, n), "audit": AuditKey(id, at, other),
		"dead letter": DeadLetterKey(id), "control": ControlKey(id), "clock": ClockKey(id), "send rate": SendRateKey(other, id),
		"notice": NoticeKey(NoticeID(run, "failed", "email", id)), "notice of another kind": NoticeKey(NoticeID(run, "paused", "email", id)),
		"notice on another channel": NoticeKey(NoticeID(run, "failed", "webhook", id)),
	}
}

// Keys of different records, and of one record with different parts, never meet. Ids have the forms that the product
// lets in: no separator in them.
func TestKeysAreDistinct(t *testing.T) {
	id := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		c, d := id.Draw(t, "c"), id.Draw(t, "d")
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0)
		seen := map[Key]string{}
		for kind, k := range every(a, c, 1, at) {
			if was, ok := seen[k]; ok {
				t.Fatalf("%s and %s share the key %s", kind, was, k)
			}
			seen[k] = kind
			if k.PK == "" || k.SK == "" || len(k.SK) > 1024 {
				t.Fatalf("%s has the key %q", kind, k)
			}
		}
		if a == b && c == d {
			return
		}
		for kind, k := range every(b, d, 1, at) {
			if was, ok := seen[k]; ok && !(a == b && same(kind)) && !(c == d && kind == "none") {
				t.Fatalf("%s of %s/%s and %s of %s/%s share the key %s", kind, b, d, was, a, c, k)
			}
		}
	})
}

// same names the kinds whose key has no part but the id.
func same(kind string) bool {
	switch kind {
	case "schedule", "definition", "skip, gap", "skip, missed", "workspace", "source", "group", "version of a group", "dead letter", "control", "clock":
		return true
	}
	return false
}

// Versions, skip records and runs are listed by range: their sort keys compare as they do.
func TestSortKeysKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 999_999).Draw(t, "a"), rapid.IntRange(1, 999_999).Draw(t, "b")
		if (a < b) != (DefinitionKey("x", a).SK < DefinitionKey("x", b).SK) {
			t.Fatalf("versions %d and %d", a, b)
		}
		ta, tb := time.Unix(int64(a)*3600, 0), time.Unix(int64(b)*3600, 0)
		if (a < b) != (SkipKey("x", ta, "missed").SK < SkipKey("x", tb, "gap").SK) || (a < b) != (AuditKey("x", ta, "i").SK < AuditKey("x", tb, "i").SK) {
			t.Fatalf("times %s and %s", ta, tb)
		}
	})
	for prefix, k := range map[string]Key{RunPrefix: RunKey("x", "2013"), SkipPrefix: SkipKey("x", time.Unix(0, 0), "gap"), SubPrefix: SubmissionKey("x@2013", "email", "ff"), DefPrefix: DefinitionKey("x", 1), OutPrefix: NoticeKey("x@2013#failed#email#ff")} {
		if !strings.HasPrefix(string(k.SK), prefix) {
			t.Errorf("%s does not begin with %s", k.SK, prefix)
		}
	}
}

// A message carries a notice's id alone: its key must come of that, and stand in a partition that readers know.
func TestDeliveryKeyComesApart(t *testing.T) {
	const target = "s@2013-06-03T12:00:00Z/email#00ff"
	for good, want := range map[string]int{target: 1, target + "/2": 2, target + "/31": 31} {
		if run, ch, hash, n, ok := SplitDeliveryKey(good); !ok || n != want || run != "s@2013-06-03T12:00:00Z" || ch != "email" || hash != "00ff" {
			t.Errorf("%s comes apart into %q %q %q %d %v", good, run, ch, hash, n, ok)
		}
	}
	for _, bad := range []string{"", "/", "s@o", "s@o/", "s@o/email", "s@o/email#", "s@o/#ff", "s/email#ff", "@o/email#ff", "s@/email#ff", "s@o/email#ff#x", "s@o/email#ff/",
		"s@o/email#ff/0", "s@o/email#ff/1", "s@o/email#ff/-2", "s@o/email#ff/02", "s@o/email#ff/2/3", "s@o/email#ff/x", "s@o/email#ff/99999999999999999999"} {
		if _, _, _, _, ok := SplitDeliveryKey(bad); ok {
			t.Errorf("%q was taken for a delivery's key", bad)
		}
	}
}

func TestNoticeIDComesApart(t *testing.T) {
	partitions := map[Partition]int{}
	for i := range OutboxShards {
		partitions[OutboxAt(i)] = 0
	}
	for i := range 400 {
		run := RunID(fmt.Sprintf("s%03d", i), "2013-06-03T12:00:00Z")
		id := NoticeID(run, "failed", "email", "00ff")
		if r, ch, hash, ok := SplitNoticeID(id); !ok || r != run || ch != "email" || hash != "00ff" {
			t.Errorf("%s comes apart into %q %q %q %v", id, r, ch, hash, ok)
		}
		if NoticeKey(id).PK != NoticeKey(NoticeID(run, "paused", "webhook", "aa")).PK {
			t.Errorf("the notices of %s stand in two partitions", run)
		}
		partitions[NoticeKey(id).PK]++
	}
	for pk, n := range partitions {
		if n < 50 || len(partitions) != OutboxShards {
			t.Errorf("%s holds %d of 400 in %d partitions", pk, n, len(partitions))
		}
	}
	for _, bad := range []string{"", "#", "###", "s@o", "s@o#failed#email", "s@o#failed#email#", "s@o##email#ff", "s@o#failed##ff", "s#failed#email#ff", "@o#failed#email#ff", "s@o#failed#email#ff#x"} {
		if _, _, _, ok := SplitNoticeID(bad); ok {
			t.Errorf("%q was taken for a notice's id", bad)
		}
	}
}

func TestRunIDComesApart(t *testing.T) {
	for _, occ := range []string{"2013-06-03T12:00:00Z", "manual-00ff", "a@b"} {
		s, o, ok := SplitRunID(RunID("ewr-delays", occ))
		if !ok || s != "ewr-delays" || o != occ {
			t.Errorf("%s came apart as %q, %q, %v", occ, s, o, ok)
		}
	}
	for _, bad := range []string{"", "@", "x", "x@", "@2013"} {
		if s, o, ok := SplitRunID(bad); ok {
			t.Errorf("%q came apart as %q, %q", bad, s, o)
		}
	}
}

// I5: no index key takes all writes. A schedule and a run stay on their shard, and thousands of them are spread evenly
// over all shards.
func TestI5ShardsSpread(t *testing.T) {
	const n = 16_000
	counts := map[string]map[string]int{"due": {}, "queued, one schedule": {}, "queued, many schedules": {}, "running, one schedule": {}, "running, many schedules": {}}
	for i := range n {
		at := time.Date(2013, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339)
		counts["due"][DueShardOf(fmt.Sprintf("schedule-%d", i))]++
		for state, begun := range map[string]bool{"queued": false, "running": true} {
			counts[state+", one schedule"][OpenShardOf(RunID("minutely", at), begun)]++
			counts[state+", many schedules"][OpenShardOf(RunID(fmt.Sprintf("schedule-%d", i), "2013-06-03T12:00:00Z"), begun)]++
		}
	}
	for name, shards := range counts {
		if len(shards) != Shards {
			t.Errorf("%s: %d shards are used, want %d", name, len(shards), Shards)
		}
		for shard, got := range shards {
			if even := n / Shards; math.Abs(float64(got-even)) > float64(even)/4 {
				t.Errorf("%s: %s holds %d of %d, want about %d", name, shard, got, n, even)
			}
		}
	}
	known := map[string]bool{}
	for i := range Shards {
		known[DueShardAt(i)], known[OpenShardAt(i, false)], known[OpenShardAt(i, true)] = true, true, true
	}
	if len(known) != 3*Shards {
		t.Errorf("readers ask for %d shards, want %d: queued and running runs stand apart", len(known), 3*Shards)
	}
	for _, shards := range counts {
		for shard := range shards {
			if !known[shard] {
				t.Errorf("no reader asks for shard %s", shard)
			}
		}
	}
}

// Rows of today must be found tomorrow: a shard's name never changes for an id.
func TestShardsAreStable(t *testing.T) {
	for got, want := range map[string]string{
		DueShardOf("ewr-delays"): "due#12", DueShardOf(""): "due#05",
		OpenShardOf("ewr-delays@2013-06-03T12:00:00Z", false): "queued#08", OpenShardOf("ewr-delays@2013-06-03T12:00:00Z", true): "running#08",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Each attribute name is spelled once, so that two records' fields can be told apart where they share an item, and each
// is a plain word: aliases in expressions are made of them.
func TestAttributeNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "schema.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != len(spec.Names) {
			return true
		}
		for i, id := range spec.Names {
			lit, ok := spec.Values[i].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || strings.HasPrefix(id.Name, "Index") || strings.HasPrefix(id.Name, "Dir") && id.Name != "DirKind" && id.Name != "DirName" ||
				strings.HasSuffix(id.Name, "Prefix") || id.Name == "timeLayout" {
				continue
			}
			v, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			names[v] = append(names[v], id.Name)
		}
		return true
	})
	if len(names) < 50 {
		t.Fatalf("only %d attribute names found", len(names))
	}
	for v, ids := range names {
		if strings.Trim(v, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			t.Errorf("%v is %q, want small letters, digits and _", ids, v)
		}
		inFile := strings.HasPrefix(ids[0], "File") || len(ids) > 1 && strings.HasPrefix(ids[1], "File") // within the map of a file
		if len(ids) > 1 && !inFile {
			t.Errorf("%q has several names: %v", v, ids)
		}
	}
}
