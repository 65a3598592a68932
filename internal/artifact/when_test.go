package artifact

import (
	"testing"
	"time"
)

// Every day of ten thousand years, against the standard library.
func TestDatesOfTenThousandYears(t *testing.T) {
	first := time.Unix(firstSecond, 0).UTC()
	last := time.Unix(lastSecond, 0).UTC()
	if first.Format(time.RFC3339) != "0000-01-01T00:00:00Z" || last.Format(time.RFC3339) != "9999-12-31T23:59:59Z" {
		t.Fatal(first, last)
	}
	var want []byte
	for d := int64(firstSecond / day); d <= lastSecond/day; d++ {
		want = time.Unix(d*day, 0).UTC().AppendFormat(want[:0], time.DateOnly)
		if got := date(d); string(got[:]) != string(want) {
			t.Fatalf("day %d: %s, want %s", d, got, want)
		}
	}
}
