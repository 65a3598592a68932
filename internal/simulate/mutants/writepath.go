package main

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

// outside are the calls by which something outside changes, by what they are called on: DynamoDB's writes, and what a
// handler sends, starts, stores or removes. What handlers ask of their ledger is found in internal/store.
var outside = regexp.MustCompile(`^(DB\.(PutItem|UpdateItem|DeleteItem|TransactWriteItems)|[Qq]ueue\.Send\w*|Queue|ch\.Send|.*\.Announce|Files\.Write|Objects\.(Write|Remove)|[Jj]obs\.(Start|Stop)|Dispatch\.Ask)$`)

// foreign are the fields that hold what lies outside of the package: a method called on one of them is no function here.
var foreign = regexp.MustCompile(`^([Ll]edger|[Qq]ueue|Files|Objects|Sources|[Cc]locks|[Tt]iming|[Ll]og|[Jj]obs|Channels|Notices|Links|DB|ctx|err|view|rows|zip|mu|once|hash)$`)

// writePath says which functions of the packages may come to a write: those that call one, or a function of their package
// that does, and what makes a write for one. Whose method a call means is not looked up: all of its name are meant.
func writePath(all []*source) map[string]bool {
	on := map[string]bool{}
	ledger := map[string]bool{} // methods of the ledgers that write
	for name, yes := range pathOf(all, "store", nil) {
		on["store."+name] = yes
		if _, method, ok := strings.Cut(name, "."); ok && yes {
			ledger[method] = true
		}
	}
	for _, pkg := range []string{"schedule", "snapshot"} {
		for name, yes := range pathOf(all, pkg, ledger) {
			on[pkg+"."+name] = yes
		}
	}
	return on
}

func pathOf(all []*source, pkg string, ledger map[string]bool) map[string]bool {
	on := map[string]bool{}
	calls := map[string]map[string]bool{} // by function: the functions of the package that it calls, methods as ".name"
	for _, s := range all {
		if s.pkg != pkg {
			continue
		}
		imported := imports(s.file)
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := functionName(fn)
			on[name] = makesWrite(fn.Type)
			to := map[string]bool{}
			calls[name] = to
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr: // called, or handed on
					holder := lastName(n.X)
					if outside.MatchString(holder+"."+n.Sel.Name) || strings.EqualFold(holder, "ledger") && ledger[n.Sel.Name] {
						on[name] = true
					}
				case *ast.CallExpr:
					switch f := n.Fun.(type) {
					case *ast.Ident:
						to[f.Name] = true
					case *ast.SelectorExpr:
						if holder := lastName(f.X); !foreign.MatchString(holder) && !imported[holder] {
							to["."+f.Sel.Name] = true
						}
					}
				}
				return true
			})
		}
	}
	for grew := true; grew; {
		grew = false
		reached := map[string]bool{} // as calls spell it
		for name := range calls {
			if on[name] {
				_, method, isMethod := strings.Cut(name, ".")
				if isMethod {
					name = "." + method
				}
				reached[name] = true
			}
		}
		for name, to := range calls {
			for callee := range to {
				if reached[callee] && !on[name] {
					on[name], grew = true, true
				}
			}
		}
	}
	return on
}

// lastName is the last name of a chain of selectors.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func imports(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue // the parser has read it as a string
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = true
	}
	return names
}

// makesWrite reports a function that returns a write.
func makesWrite(t *ast.FuncType) bool {
	if t.Results == nil {
		return false
	}
	for _, r := range t.Results.List {
		e := r.Type
		if l, ok := e.(*ast.ArrayType); ok {
			e = l.Elt
		}
		if id, ok := e.(*ast.Ident); ok && id.Name == "write" {
			return true
		}
	}
	return false
}
