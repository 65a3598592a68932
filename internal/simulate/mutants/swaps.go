package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// swap is a mutant that is written by hand: what comes after something else comes before it. Its code stands before
// statements that are found by their words; a swap whose place is gone fails the command.
type swap struct {
	id     string
	what   string
	places []place
}

// place is where a part of a swap goes.
type place struct {
	function string // "package.Receiver.Name"
	before   string // how the statement begins; it is the only one that does, of the function
	code     string // run before it where the mutant is on
}

// swap plants the swaps, and what they need besides, which stands at the end of a source of their package.
func (f *found) swap(all []*source, list []swap, helpers map[string]string) error {
	for _, w := range list {
		n := len(f.mutants) + 1
		f.mutants = append(f.mutants, Mutant{ID: string(Swap) + ":" + w.id, Kind: Swap, Number: n, What: w.what})
		for i, p := range w.places {
			s, at, err := p.find(all)
			if err != nil {
				return fmt.Errorf("swap %s: %w", w.id, err)
			}
			if i == 0 {
				f.mutants[n-1].Place = s.place(at.Pos())
			}
			s.before(at, fmt.Sprintf("if mutant.On(%d) {\n%s\n}\n", n, strings.TrimSpace(p.code)))
		}
	}
	for _, s := range all {
		if text, ok := helpers[s.path]; ok {
			s.edits = append(s.edits, edit{at: len(s.text), text: "\n" + text})
		}
	}
	return nil
}

func (p place) find(all []*source) (in *source, at ast.Stmt, err error) {
	pkg, function, _ := strings.Cut(p.function, ".")
	for _, s := range all {
		if s.pkg != pkg {
			continue
		}
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || functionName(fn) != function || fn.Body == nil {
				continue
			}
			for _, st := range statements(fn.Body) {
				switch {
				case !strings.HasPrefix(s.code(st), p.before):
				case at != nil:
					return nil, nil, fmt.Errorf("two statements of %s begin with %q: say more of the one that is meant", p.function, p.before)
				default:
					in, at = s, st
				}
			}
		}
	}
	if at == nil {
		return nil, nil, fmt.Errorf("no statement of %s begins with %q: give the swap its place in internal/simulate/mutants/swaplist.go", p.function, p.before)
	}
	return in, at, nil
}

// statements are those that another one may stand before.
func statements(body ast.Node) (list []ast.Stmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = append(list, n.List...)
		case *ast.CaseClause:
			list = append(list, n.Body...)
		case *ast.CommClause:
			list = append(list, n.Body...)
		}
		return true
	})
	return list
}
