package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// swap is a mutant that is written by hand: what is to come after something else comes before it. It stands before a
// statement of a function, which is found by its words; a swap whose place is gone fails the command.
type swap struct {
	id       string
	pkg      string
	function string
	before   string // how the statement begins
	code     string // put before it, run where the mutant is on
	what     string
}

// swap plants the swaps.
func (f *found) swap(all []*source, list []swap) error {
	for _, w := range list {
		s, at, err := w.find(all)
		if err != nil {
			return err
		}
		n := len(f.mutants) + 1
		f.mutants = append(f.mutants, Mutant{ID: string(Swap) + ":" + w.id, Kind: Swap, Number: n, Place: s.place(at.Pos()), What: w.what})
		s.before(at, fmt.Sprintf("if mutant.On(%d) {\n%s\n}\n", n, strings.TrimSpace(w.code)))
	}
	return nil
}

func (w swap) find(all []*source) (in *source, at ast.Stmt, err error) {
	for _, s := range all {
		if s.pkg != w.pkg {
			continue
		}
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || functionName(fn) != w.function || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if st, ok := n.(ast.Stmt); ok && strings.HasPrefix(s.code(st), w.before) {
					if _, block := n.(*ast.BlockStmt); !block {
						if at != nil && at.Pos() != st.Pos() {
							err = fmt.Errorf("swap %s: %s.%s has two statements that begin with %q", w.id, w.pkg, w.function, w.before)
						}
						if at == nil {
							in, at = s, st
						}
					}
				}
				return true
			})
		}
	}
	if at == nil && err == nil {
		err = fmt.Errorf("swap %s: no statement of %s.%s begins with %q: give the swap its place in internal/simulate/mutants/swaps.go", w.id, w.pkg, w.function, w.before)
	}
	return in, at, err
}

var swaps []swap
