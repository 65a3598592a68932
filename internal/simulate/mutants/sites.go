package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// Kind is a kind of mutant.
type Kind string

// The kinds, in the order of the table.
const (
	Condition Kind = "condition" // a part of a condition that DynamoDB evaluates
	Check     Kind = "check"     // an owner, job or attempt check in Go
	Error     Kind = "error"     // an error that is swallowed
	Swap      Kind = "swap"      // record and send in another order
)

var kinds = []Kind{Condition, Check, Error, Swap}

// Mutant is one thing that can be switched off.
type Mutant struct {
	// ID names it by what it is, never by a line: a reason that was written for it stays its own while lines move.
	ID     string
	Kind   Kind
	Number int    // of its toggle; conditions have none
	Part   string // conditions: as the traces spell it
	Place  string // file:line today, or the operation that sends the condition
	What   string // in words
}

// source is one file of the product, parsed.
type source struct {
	pkg   string // "store"
	path  string // from the module's root
	text  []byte
	file  *ast.File
	set   *token.FileSet
	edits []edit
}

func (s *source) at(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) place(p token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(p).Line)
}

func (s *source) code(n ast.Node) string { return string(s.text[s.at(n.Pos()):s.at(n.End())]) }

// found collects the mutants of all sources and numbers them.
type found struct {
	mutants []Mutant
	ids     map[string]int
}

// add names a mutant; a second one of the same name in the same function is the second.
func (f *found) add(kind Kind, s *source, function, label string, at token.Pos, what string) int {
	id := strings.Join([]string{string(kind), s.pkg, function, squeezed(label)}, ":")
	if f.ids == nil {
		f.ids = map[string]int{}
	}
	f.ids[id]++
	if n := f.ids[id]; n > 1 {
		id = fmt.Sprintf("%s:%d", id, n)
	}
	m := Mutant{ID: id, Kind: kind, Number: len(f.mutants) + 1, Place: s.place(at), What: what}
	f.mutants = append(f.mutants, m)
	return m.Number
}

// squeezed is a label without blanks, so that an id is one word.
func squeezed(label string) string { return strings.Join(strings.Fields(label), "") }

// guarded are the names of fields, attributes and methods that say whose a row is, and how often it was tried: comparisons
// with them are the checks.
var guarded = regexp.MustCompile(`^(LeaseOwner|LeaseEnd|LeaseLive|lease|OwnerUntil|Owner|Token|token|AdmittedBy|SettledBy|Job|Attempts|AttemptsLeft|Yields|DeadLetters|Failures|Generation|Admitted|Settled|Execution|mine|Wish)$`)

// notGuards are comparisons with such a name that hold no lease: an owner that is a person's or a workspace's, and how the
// tests' walker counts a workflow's retries.
var notGuards = regexp.MustCompile(`OwnerOf|\b[abcdsw]\.Owner\b|\bs\.Retry`)

// look finds the checks and the error returns of a file, and the edits that let each be switched off.
func (f *found) look(s *source, onWritePath func(function string) bool) {
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := functionName(fn)
		f.checks(s, name, fn.Body)
		if onWritePath(name) {
			f.errors(s, name, fn.Type, fn.Body)
		}
	}
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
			continue
		case *ast.IndexExpr:
			t = x.X
			continue
		case *ast.IndexListExpr:
			t = x.X
			continue
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		}
		return fn.Name.Name
	}
}

// checks finds comparisons with what is guarded, and calls of guarded methods, wherever something is decided: conditions,
// cases and what functions return.
func (f *found) checks(s *source, function string, body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			f.decides(s, function, n.Cond)
		case *ast.ForStmt:
			f.decides(s, function, n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						f.decides(s, function, e)
					}
				}
			}
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				f.decides(s, function, e)
			}
		}
		return true
	})
}

// decides descends through and, or and not to the comparisons that a decision is made of.
func (f *found) decides(s *source, function string, e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		f.decides(s, function, e.X)
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			f.decides(s, function, e.X)
		}
		return
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			f.decides(s, function, e.X)
			f.decides(s, function, e.Y)
			return
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		default:
			return
		}
	case *ast.CallExpr:
		if !guarded.MatchString(called(e)) && !isAfter(e) {
			return
		}
	default:
		return
	}
	text := s.code(e)
	if !speaksOfGuarded(e) || notGuards.MatchString(text) {
		return
	}
	no := f.add(Check, s, function, text+":never", e.Pos(), text+" is never so")
	yes := f.add(Check, s, function, text+":always", e.Pos(), text+" is always so")
	s.around(e, fmt.Sprintf("mutant.Check(%d, %d, ", no, yes), ")")
}

// isAfter reports a comparison of times.
func isAfter(c *ast.CallExpr) bool {
	return slices.Contains([]string{"After", "Before", "Equal", "IsZero"}, called(c))
}

// called is the name of what a call calls.
func called(c *ast.CallExpr) string {
	switch x := c.Fun.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

func speaksOfGuarded(e ast.Expr) bool {
	yes := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			yes = yes || guarded.MatchString(n.Sel.Name)
		case *ast.FuncLit:
			return false
		}
		return true
	})
	return yes
}
