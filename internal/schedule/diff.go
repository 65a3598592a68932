package schedule

import (
	"fmt"
	"slices"
	"strings"

	"almanac/internal/failure"
)

const (
	listedRecipients = 20 // a diff names each of so many; of longer lists it counts
	namedRecipients  = 3  // and names the first that were added or removed
)

// diffRecipients says in one line how two lists of recipients differ; "" where they do not.
func diffRecipients(before, after []Recipient) string {
	if slices.Equal(before, after) {
		return ""
	}
	gone, come := without(before, after), without(after, before)
	line := fmt.Sprintf("recipients: %d → %d (", len(before), len(after))
	if len(gone)+len(come) == 0 {
		return line + "in another order)"
	}
	return line + fmt.Sprintf("%d added%s, %d removed%s)", len(come), named(come), len(gone), named(gone))
}

// without are the entries of a list that stand in the other one less often.
func without(list, other []Recipient) (rest []Recipient) {
	count := make(map[Recipient]int, len(other))
	for _, r := range other {
		count[r]++
	}
	for _, r := range list {
		if count[r]--; count[r] < 0 {
			rest = append(rest, r)
		}
	}
	return rest
}

// named spells the first of some recipients.
func named(list []Recipient) string {
	var names []string
	for _, r := range list[:min(len(list), namedRecipients)] {
		names = append(names, failure.Cut(r.Address(), 80))
	}
	switch {
	case len(list) == 0:
		return ""
	case len(list) > namedRecipients:
		names = append(names, "…")
	}
	return ": " + strings.Join(names, ", ")
}
