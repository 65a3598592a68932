package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// errors finds the error returns of a function and of the functions written in it. An if on an error whose body leaves is
// passed by, as if there had been none; any other returned error becomes success.
func (f *found) errors(s *source, function string, of *ast.FuncType, body *ast.BlockStmt) {
	results, fails := resultsOf(of)
	skip := map[ast.Node]bool{} // returns that an if has covered
	var labels labels
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.errors(s, function, n.Type, n.Body)
			return false
		case *ast.AssignStmt:
			labels.note(s, n)
		case *ast.IfStmt:
			if n.Init != nil {
				if a, ok := n.Init.(*ast.AssignStmt); ok {
					labels.note(s, a)
				}
			}
			last := leaves(n.Body)
			if last == nil || !onError(n.Cond) {
				return true
			}
			skip[last] = true
			number := f.add(Error, s, function, labels.of("err"), n.Pos(), "goes on: "+s.code(n.Cond))
			s.around(n.Cond, "(", fmt.Sprintf(") && !mutant.On(%d)", number))
		case *ast.ReturnStmt:
			if fails && !skip[n] {
				f.returns(s, function, n, results, &labels)
			}
		}
		return true
	})
}

// returns lets a returned error become success.
func (f *found) returns(s *source, function string, r *ast.ReturnStmt, results int, l *labels) {
	if len(r.Results) == 0 {
		return // named results, which an if before it has covered
	}
	last := r.Results[len(r.Results)-1]
	if id, ok := last.(*ast.Ident); ok && id.Name == "nil" {
		return
	}
	label := l.of(s.code(last))
	if c, ok := last.(*ast.CallExpr); ok {
		label = s.code(c.Fun)
	}
	if lit, ok := last.(*ast.CompositeLit); ok {
		label = s.code(lit.Type)
	}
	number := f.add(Error, s, function, "return "+label, r.Pos(), "succeeds: "+firstLine(s.code(r)))
	if len(r.Results) == results {
		s.around(last, fmt.Sprintf("mutant.Err(%d, ", number), ")")
		return
	}
	// All results come from one call: they are taken apart first.
	var names string
	for i := range results {
		names += fmt.Sprintf("mutant%d, ", i)
	}
	failed := fmt.Sprintf("mutant%d", results-1)
	s.replace(r.Pos(), last.Pos(), fmt.Sprintf("{ %s := ", names[:len(names)-2]))
	s.after(last, fmt.Sprintf("; return %smutant.Err(%d, %s) }", names[:len(names)-len(failed)-2], number, failed))
}

// resultsOf says how many results a function has, and whether the last is an error.
func resultsOf(t *ast.FuncType) (n int, fails bool) {
	if t.Results == nil {
		return 0, false
	}
	for _, r := range t.Results.List {
		n += max(1, len(r.Names))
		id, ok := r.Type.(*ast.Ident)
		fails = ok && id.Name == "error"
	}
	return n, fails
}

// leaves is the statement by which a block leaves what it stands in; nil where it goes on.
func leaves(b *ast.BlockStmt) ast.Node {
	if len(b.List) == 0 {
		return nil
	}
	switch last := b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt:
		return last
	case *ast.BranchStmt:
		if last.Tok != token.FALLTHROUGH {
			return last
		}
	}
	return nil
}

// onError reports a condition that asks whether there was an error.
func onError(e ast.Expr) bool {
	yes := false
	ast.Inspect(e, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.NEQ && isNil(b.Y) && errName(b.X) {
			yes = true
		}
		return true
	})
	return yes
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// errName reports a variable or field that the product keeps errors in.
func errName(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err" || e.Name == "stopped" || e.Name == "lost" || e.Name == "ps"
	case *ast.SelectorExpr:
		return e.Sel.Name == "err"
	}
	return false
}

// labels says what an error came from: the call that was assigned to it last.
type labels struct{ last string }

func (l *labels) note(s *source, a *ast.AssignStmt) {
	for _, to := range a.Lhs {
		if errName(to) && len(a.Rhs) > 0 {
			if c, ok := a.Rhs[len(a.Rhs)-1].(*ast.CallExpr); ok {
				l.last = s.code(c.Fun)
				if len(l.last) > 60 {
					l.last = "func"
				}
			}
		}
	}
}

func (l *labels) of(text string) string {
	if text == "err" && l.last != "" {
		return l.last
	}
	return text
}

func firstLine(s string) string {
	for i := range s {
		if s[i] == '\n' {
			return s[:i] + " …"
		}
	}
	return s
}
