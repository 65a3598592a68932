package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// reasons reads the file of survivors. A reason is a paragraph at the margin, of one line or several; the mutants that it
// holds for stand below it, an id a line, indented. Lines that begin with # are for readers.
func reasons(r io.Reader) (map[string]string, error) {
	all := map[string]string{}
	var reason []string
	used := true // the reason at hand has a mutant
	s := bufio.NewScanner(r)
	n := 0
	for s.Scan() {
		n++
		line := strings.TrimRight(s.Text(), " \t")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			id := strings.TrimSpace(line)
			text := strings.Join(reason, " ")
			if len(text) < 40 {
				return nil, fmt.Errorf("line %d: %s has the reason %q; want a sentence above it that says why nothing can notice it, or why nothing needs to", n, id, text)
			}
			if strings.ContainsAny(id, " \t") {
				return nil, fmt.Errorf("line %d: %q is no mutant's id; want one word a line", n, id)
			}
			if _, twice := all[id]; twice {
				return nil, fmt.Errorf("line %d: %s has a reason already", n, id)
			}
			all[id], used = text, true
		default:
			if used {
				reason = nil
			}
			reason, used = append(reason, line), false
		}
	}
	if !used {
		return nil, fmt.Errorf("line %d: a reason without a mutant: %q", n, strings.Join(reason, " "))
	}
	return all, s.Err()
}
