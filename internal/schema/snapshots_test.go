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

// everySnapshot is each kind of key of the table Snapshots for one set of parts.
func everySnapshot(workspace, typ, month string, n int) map[string]Key {
	run := SnapshotID(workspace, typ, month, n)
	return map[string]Key{
		"series": SeriesKey(workspace, typ), "head": HeadKey(workspace, typ, month), "run": SnapshotKey(workspace, typ, month, n),
		"current": CurrentKey(workspace, typ, month), "move": MoveKey(workspace, typ, month, Time(time.Unix(int64(n), 0)), "act"),
		"chunk": ChunkKey(run, n, n), "definition of a workspace": SnapshotDefinitionKey(ScopeOfWorkspace(workspace), typ),
		"version of a workspace's": SnapshotVersionKey(ScopeOfWorkspace(workspace), typ, n), "definition of an owner": SnapshotDefinitionKey(ScopeOfOwner(workspace), typ),
		"version of an owner's": SnapshotVersionKey(ScopeOfOwner(workspace), typ, n), "caps": CapsKey(workspace),
	}
}

var (
	workspaces = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,8}`)
	types      = rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`)
	months     = rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%04d-%02d", rapid.IntRange(1, 9999).Draw(t, "year"), rapid.IntRange(1, 12).Draw(t, "month"))
	})
)

// Keys of different records, and of one record with different parts, never meet, and each comes apart into its parts.
func TestSnapshotKeysAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ty, m, n := workspaces.Draw(t, "workspace"), types.Draw(t, "type"), months.Draw(t, "month"), rapid.IntRange(1, 9999).Draw(t, "version")
		seen := map[Key]string{}
		for kind, k := range everySnapshot(w, ty, m, n) {
			if was, ok := seen[k]; ok || k.PK == "" || k.SK == "" {
				t.Fatalf("%s and %s share the key %s", kind, was, k)
			}
			seen[k] = kind
			id, isRun := SnapshotOf(k)
			if isRun != (kind == "run") || isRun && id != SnapshotID(w, ty, m, n) {
				t.Fatalf("%s: the key %s is of run %q, %v", kind, k, id, isRun)
			}
			if ws, typ, ok := SeriesOf(k.PK); ok && (ws != w || typ != ty) {
				t.Fatalf("%s comes apart as %q and %q", k.PK, ws, typ)
			}
		}
		w2, ty2, m2, n2 := workspaces.Draw(t, "workspace 2"), types.Draw(t, "type 2"), months.Draw(t, "month 2"), rapid.IntRange(1, 9999).Draw(t, "version 2")
		if (w == w2 && ty == ty2 && m == m2 && n == n2) != (SnapshotID(w, ty, m, n) == SnapshotID(w2, ty2, m2, n2)) {
			t.Fatalf("two runs share the id %s", SnapshotID(w, ty, m, n))
		}
		if k, k2 := SnapshotKey(w, ty, m, n), SnapshotKey(w, ty, m2, n2); (k.SK < k2.SK) != (m < m2 || m == m2 && n < n2) {
			t.Fatalf("%s and %s do not sort as month and version", k, k2)
		}
	})
}

func TestSnapshotIDComesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ty, m, n := workspaces.Draw(t, "workspace"), types.Draw(t, "type"), months.Draw(t, "month"), rapid.IntRange(1, 9999).Draw(t, "version")
		if gw, gt, gm, gn, ok := SplitSnapshotID(SnapshotID(w, ty, m, n)); !ok || gw != w || gt != ty || gm != m || gn != n {
			t.Fatalf("%s came apart as %q %q %q %d %v", SnapshotID(w, ty, m, n), gw, gt, gm, gn, ok)
		}
	})
	for _, bad := range []string{"", "_", "EWR_departures_2013-05", "EWR_departures_2013-05_v0", "EWR_departures_2013-05_v01", "EWR_departures_2013-05_v10000", "EWR_departures_2013-5_v1", "departures_2013-05_v1", "EWR_departures_2013-05_v1 "} {
		if _, _, _, _, ok := SplitSnapshotID(bad); ok {
			t.Errorf("%q was taken for a snapshot run's id", bad)
		}
	}
	for _, k := range []Key{{"WS#EWR#TYPE#departures", "P#2013-05#V#x"}, {"WS#EWR", "P#2013-05#V#0001"}, {"OWNER#a#TYPE#b", "P#2013-05#V#0001"}} {
		if id, ok := SnapshotOf(k); ok {
			t.Errorf("%s was taken for the key of run %s", k, id)
		}
	}
}

// I5: no index key takes all writes. Series and runs are spread evenly over all shards, and readers know each of them.
func TestI5SnapshotShardsSpread(t *testing.T) {
	const n = 16_000
	known := map[string]bool{}
	for i := range Shards {
		known[PlanShardAt(i)], known[LateShardAt(i)], known[SettledShardAt(i)] = true, true, true
		known[FailedShardAt(i)] = true
	}
	counts := map[string]int{}
	for i := range n {
		workspace := fmt.Sprintf("workspace-%d", i)
		run := SnapshotID("EWR", "departures", fmt.Sprintf("%04d-01", i%9000+1), i/9000+1)
		for _, shard := range []string{PlanShardOf(workspace, "departures"), LateShardOf(workspace, "departures"), SettledShardOf(run), FailedShardOf(run)} {
			counts[shard]++
			if !known[shard] {
				t.Fatalf("no reader asks for shard %s", shard)
			}
		}
	}
	if len(counts) != 4*Shards || len(known) != 4*Shards {
		t.Errorf("%d shards are used and %d are read, want %d", len(counts), len(known), 4*Shards)
	}
	for shard, got := range counts {
		if even := n / Shards; math.Abs(float64(got-even)) > float64(even)/4 {
			t.Errorf("%s holds %d of %d, want about %d", shard, got, n, even)
		}
	}
}

// Work of one owner stands apart by what is to be done and of which kind it is.
func TestWorkStandsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, owner := range []string{"default", "airports"} {
		for _, p := range []string{WorkPlanned(owner, false), WorkPlanned(owner, true), WorkRetry(owner, false), WorkRetry(owner, true), WorkOpen(owner)} {
			if seen[p] {
				t.Errorf("two kinds of work share the partition %s", p)
			}
			seen[p] = true
		}
	}
}

// Each attribute of the table Snapshots is spelled once, there or beside those of the table Schedules, as a plain word. Within a
// chunk and a file the same words mean the same.
func TestSnapshotAttributeNames(t *testing.T) {
	shared := map[string]bool{"rows": true, "bytes": true, "sha256": true} // of a run's file, within its map
	names := map[string][]string{}
	for _, name := range []string{"schema.go", "snapshots.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, id := range spec.Names {
				lit, ok := spec.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || strings.HasPrefix(id.Name, "Index") || strings.HasPrefix(id.Name, "Dir") || strings.HasPrefix(id.Name, "File") || strings.HasPrefix(id.Name, "Feedback") ||
					strings.HasSuffix(id.Name, "Prefix") || strings.HasSuffix(id.Name, "Scope") && id.Name != "Scope" || strings.HasSuffix(id.Name, "Mark") || id.Name == "timeLayout" {
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
	}
	for v, ids := range names {
		if strings.Trim(v, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			t.Errorf("%v is %q, want small letters, digits and _", ids, v)
		}
		if len(ids) > 1 && !shared[v] {
			t.Errorf("%q has several names: %v", v, ids)
		}
	}
	for _, x := range SnapshotsIndexes {
		if x[1] == x[2] || x[0] == "" {
			t.Errorf("the index %v has no two keys", x)
		}
	}
}
