package schedule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"almanac/internal/schedule"
)

// parsed reads a definition with these recipients.
func parsed(list ...any) (schedule.Definition, error) {
	m := sample()
	with("recipients", list)(m)
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts of this package
	}
	return schedule.ParseDefinition(raw)
}

func mailTo(n int) (list []any) {
	for i := range n {
		list = append(list, map[string]any{"email": fmt.Sprintf("somebody.%05d@example.com", i)})
	}
	return list
}

// Recipients by number and size: what stands on the row, what apart, what is refused, each with its field, value and what
// would be right.
func TestRecipientsByNumberAndSize(t *testing.T) {
	hook := func(n, size int) (list []any) {
		for i := range n {
			list = append(list, map[string]any{"webhook": fmt.Sprintf("https://example.com/%05d/%s", i, strings.Repeat("x", size)), "secret": "ops"})
		}
		return list
	}
	change := func(list []any, i int, to any) []any { list[i] = to; return list }
	for _, c := range []struct {
		name  string
		list  []any
		apart bool
		want  []string // of the problem; nil: none
	}{
		{"none", nil, false, []string{"recipients is missing", "at least one"}},
		{"one", mailTo(1), false, nil},
		{"what stands on a row", mailTo(500), false, nil},
		{"one more", mailTo(501), true, nil},
		{"few, and longer than a row", hook(50, 1_900), true, nil},
		{"as many as there can be", mailTo(10_000), true, nil},
		{"as many, all alike", func() (l []any) {
			for range 10_000 {
				l = append(l, map[string]any{"email": "a@example.com"})
			}
			return l
		}(), true, nil},
		{"one too many", mailTo(10_001), true, []string{"recipients is 10001", "at most 10000"}},
		{"many too many", mailTo(50_000), true, []string{"recipients is 50000", "at most 10000"}},
		{"longer than an answer", hook(2_040, 1_940), true, []string{"recipients is 4", "bytes as they are stored", "at most 4000000 bytes"}},
		{"one that is no address", change(mailTo(10_000), 7_777, map[string]any{"email": "nobody"}), true, []string{`recipients[7777].email is "nobody"`, "exactly one @"}},
		{"one of both kinds", change(mailTo(10_000), 9_999, map[string]any{"email": "a@x.com", "webhook": "https://x.com/", "secret": "ops"}), true, []string{"recipients[9999] is both", "two recipients"}},
		{"one hostile", change(mailTo(10_000), 0, map[string]any{"email": "a@x.com\r\nBcc: e@x.test"}), true, []string{"recipients[0].email is", "control character"}},
		{"one wrong type", change(mailTo(10_000), 3, 7), true, []string{"want a mapping"}},
		{"one with an unknown field", change(mailTo(10_000), 3, map[string]any{"emial": "a@x.com"}), true, []string{"emial", "did you mean email"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := parsed(c.list...)
			if c.want == nil {
				if err != nil || d.Apart() != c.apart || len(d.Recipients) != len(c.list) {
					t.Fatalf("apart %v, %d recipients, %v", d.Apart(), len(d.Recipients), err)
				}
				return
			}
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%.300q does not say %q", err, part)
				}
			}
			if len(err.Error()) > 20_000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
	// Everything but the recipients fits a row, however many of them there are.
	m := sample()
	with("recipients", mailTo(10_000))(m)
	with("parameters", map[string]any{"p": strings.Repeat("<", 16_000)})(m)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.ParseDefinition(raw); err == nil || !strings.Contains(err.Error(), "without its recipients") || !strings.Contains(err.Error(), "at most 90000 bytes") {
		t.Errorf("%.300q", fmt.Sprint(err))
	}
	// Spellings of one address are one recipient.
	d, err := parsed(change(change(mailTo(10_000), 5, map[string]any{"email": "Somebody.00000@example.COM"}), 9_999, map[string]any{"email": "somebody.00000@Example.com"})...)
	if n := len(schedule.Targets(d.Recipients)); err != nil || n < 9_998 || n > 9_999 {
		t.Errorf("%d targets, %v", n, err)
	}
}
