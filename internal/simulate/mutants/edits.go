package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit is a change of a source's text at an offset. Edits never cross each other: they open and close around nodes.
type edit struct {
	at, drop int
	text     string
	closes   bool
	span     int // length of the node: the outer one opens first and closes last
}

func (s *source) around(n ast.Node, before, behind string) {
	from, to := s.at(n.Pos()), s.at(n.End())
	s.edits = append(s.edits, edit{at: from, text: before, span: to - from}, edit{at: to, text: behind, closes: true, span: to - from})
}

func (s *source) replace(from, to token.Pos, text string) {
	s.edits = append(s.edits, edit{at: s.at(from), drop: s.at(to) - s.at(from), text: text, span: 1 << 30})
}

func (s *source) after(n ast.Node, text string) {
	s.edits = append(s.edits, edit{at: s.at(n.End()), text: text, closes: true, span: 1 << 30})
}

func (s *source) before(n ast.Node, text string) {
	s.edits = append(s.edits, edit{at: s.at(n.Pos()), text: text, span: 1 << 30})
}

// woven is the text with all edits, and the import that they need on the line of the package clause, so that lines stay
// what they are but for inserted statements.
func (s *source) woven() []byte {
	if len(s.edits) == 0 {
		return s.text
	}
	edits := append([]edit{{at: s.at(s.file.Name.End()), text: `; import mutant "almanac/internal/simulate/mutants/toggle"`}}, s.edits...)
	slices.SortStableFunc(edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.closes != b.closes: // what ends here ends before the next begins
			if a.closes {
				return -1
			}
			return 1
		case a.closes:
			return a.span - b.span
		}
		return b.span - a.span
	})
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(s.text[at:e.at])
		out.WriteString(e.text)
		at = e.at + e.drop
	}
	out.Write(s.text[at:])
	out.WriteString("\nvar _ = mutant.On\n")
	return out.Bytes()
}

// parse reads the product's sources of a package, tests left out.
func parse(root, pkg string) ([]*source, error) {
	folder := filepath.Join(root, "internal", pkg)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []*source
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		s, err := parseText(pkg, "internal/"+pkg+"/"+e.Name(), text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func parseText(pkg, path string, text []byte) (*source, error) {
	s := &source{pkg: pkg, path: path, text: text, set: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.set, path, text, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("%s cannot be read as Go: %w", path, err)
	}
	return s, nil
}
