package snapshot

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestCSVIsReadBack(t *testing.T) {
	for in, want := range map[string]string{
		"a,b\r\n":                       `[a b]`,
		",\"\"\r\n\"x\"\"y,\r\n\",\r\n": "[∅ ] [x\"y,\r\n ∅]",
		"\"\"\r\n":                      `[]`,
		"":                              ``,
		"a":                             `unexpected EOF`,
		"a,":                            `unexpected EOF`,
		"a,b\r":                         `unexpected EOF`,
		"\"a":                           `unexpected EOF`,
		"\"a\"":                         `unexpected EOF`,
		"\"a\"b\r\n":                    `a record has 'b' where a comma or CRLF should be`,
		"a\rb\r\n":                      `a record has 'b' where a comma or CRLF should be`,
		"a\nb,c\r\n":                    "[a\nb c]",
	} {
		r := newCSVReader(strings.NewReader(in))
		var got []string
		for {
			row, err := r.next()
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil {
				got = append(got, err.Error())
				break
			}
			var cells []string
			for _, c := range row {
				if c.Null {
					cells = append(cells, "∅")
				} else {
					cells = append(cells, string(c.Text))
				}
			}
			got = append(got, fmt.Sprint(cells))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %q, want %q", in, text, want)
		}
	}
}
