package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"almanac/localstack/e2e/scenario"
)

// TestEveryEndToEndTestIsAScenario holds the suite's files against the table: each test begins with scene, which writes
// down what became of it, and the table lists no test that is not there.
func TestEveryEndToEndTestIsAScenario(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(firstLine(f), "//go:build cloud") {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			there[fn.Name.Name] = true
			if _, listed := scenario.Find(fn.Name.Name); !listed {
				t.Errorf("%s: the table of scenarios does not list %s", name, fn.Name.Name)
			}
			if !begins(fn, "scene") {
				t.Errorf("%s: %s does not begin with scene(t)", name, fn.Name.Name)
			}
		}
	}
	for _, s := range scenario.Table {
		if !there[s.Test] {
			t.Errorf("the table lists %s, which is no test of the suite", s.Test)
		}
	}
}

func firstLine(f *ast.File) string {
	if len(f.Comments) == 0 || f.Comments[0].Pos() > f.Package {
		return ""
	}
	return f.Comments[0].List[0].Text
}

// begins reports whether a function's first statement is a call of a name.
func begins(fn *ast.FuncDecl, name string) bool {
	if len(fn.Body.List) == 0 {
		return false
	}
	s, ok := fn.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	c, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == name
}
