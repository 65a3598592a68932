package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// reasons reads the file of survivors: a mutant's id, a blank, and why it is right that it survives. Empty lines and lines
// that begin with # are for readers.
func reasons(r io.Reader) (map[string]string, error) {
	all := map[string]string{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		reason = strings.TrimSpace(reason)
		if len(reason) < 20 {
			return nil, fmt.Errorf("line %d: %s has the reason %q; want a sentence that says why nothing can notice it, or why nothing needs to", n, id, reason)
		}
		if _, twice := all[id]; twice {
			return nil, fmt.Errorf("line %d: %s has a reason already", n, id)
		}
		all[id] = reason
	}
	return all, s.Err()
}
