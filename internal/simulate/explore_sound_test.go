package simulate

import (
	"maps"
	"slices"
	"testing"
)

// How a search leaves orders out is held against searches that leave less out: the same ends, the same that ever
// stands outside and, where no call goes alone, the same states.
func TestSearchesAgree(t *testing.T) {
	small := []string{"settle, lease over × settle", "start × start of another job", "settle of a month × settle", "resolve × resolve"}
	larger := []string{"deliver × deliver", "deliver × stop", "mail sent, lease over × deliver", "deliver × edit", "exhaust, no attempt left × deliver", "tick × pause",
		"resending × resending", "claim × claim, cap 1", "claim × cancel", "generate × generate", "validate × validate", "publish × cancel", "reconcile × publish", "rerun × rerun of one key"}
	explore := func(t *testing.T, p Pair, how Search) Found {
		t.Helper()
		f, err := p.Explore(t, 0, how)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v: %d orders, %d states, %d outside, %d ends", how, f.Orders, len(f.States), len(f.Stands), len(f.Ends))
		return f
	}
	for _, name := range slices.Concat(small, larger) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := PairNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			merged := explore(t, p, Search{Merge: true})
			apart := explore(t, p, Search{Merge: true, Commute: true})
			alone := explore(t, p, Search{Merge: true, Commute: true, Alone: true})
			if slices.Contains(small, name) {
				all := explore(t, p, Search{})
				commuting := explore(t, p, Search{Commute: true})
				same(t, "merging: states", all.States, merged.States)
				same(t, "merging: ends", all.Ends, merged.Ends)
				same(t, "leaving neighbours out, unmerged: ends", all.Ends, commuting.Ends)
				same(t, "leaving neighbours out, unmerged: states", all.States, commuting.States)
			}
			same(t, "leaving neighbours out: states", merged.States, apart.States)
			same(t, "leaving neighbours out: ends", merged.Ends, apart.Ends)
			same(t, "reading alone: what stands outside", merged.Stands, alone.Stands)
			same(t, "reading alone: ends", merged.Ends, alone.Ends)
		})
	}
}

func same[V comparable](t *testing.T, what string, a, b map[uint64]V) {
	t.Helper()
	if len(a) == 0 || !maps.Equal(a, b) {
		t.Errorf("%s: %d and %d", what, len(a), len(b))
	}
}
