package api

import (
	"encoding/json"
	"strings"
	"testing"

	"almanac/internal/api/routes"
)

// TestDocumentDescribesEachRoute parses /openapi.json and holds it against the route table.
func TestDocumentDescribesEachRoute(t *testing.T) {
	_, c := peopled(t)
	type operation struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		RequestBody *struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
		Parameters []struct{ Name, In string }
	}
	var doc struct {
		OpenAPI    string `json:"openapi"`
		Info       struct{ Title, Version string }
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]json.RawMessage }
	}
	a := c.as("viewer", "GET", "/openapi.json", "").want(200).into(&doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Title != "Almanac" || doc.Info.Version != "test" {
		t.Fatalf("%s %+v", doc.OpenAPI, doc.Info)
	}
	n, ids := 0, map[string]bool{}
	for _, route := range routes.Table {
		op, ok := doc.Paths[route.Path][strings.ToLower(route.Method)]
		if !ok || op.OperationID == "" || ids[op.OperationID] {
			t.Errorf("%s %s is missing, or its operationId %q is", route.Method, route.Path, op.OperationID)
			continue
		}
		ids[op.OperationID] = true
		n++
		if public := route.Right == routes.Public; public != (len(op.Security) == 0) {
			t.Errorf("%s %s: security %v", route.Method, route.Path, op.Security)
		}
		if (route.Method == "PUT" || route.Method == "POST") && (op.RequestBody == nil || len(op.RequestBody.Content) != 1) {
			t.Errorf("%s %s: its body is not described", route.Method, route.Path)
		}
		if route.Right != routes.Public && op.Responses["403"].Content["application/problem+json"].Schema == nil {
			t.Errorf("%s %s: no problem described for 403: %v", route.Method, route.Path, op.Responses)
		}
		for _, part := range strings.Split(route.Path, "/") {
			if name := strings.Trim(part, "{}"); name != part && !hasParameter(op.Parameters, name) {
				t.Errorf("%s %s: parameter %s is not described", route.Method, route.Path, name)
			}
		}
	}
	count := 0
	for _, ops := range doc.Paths {
		count += len(ops)
	}
	if count != n {
		t.Errorf("%d operations described, %d in the route table", count, n)
	}
	// Each reference leads somewhere.
	for _, part := range strings.Split(a.Body, `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("schema %s is referred to and not there", name)
		}
	}
	if s := string(doc.Components.Schemas["Problem"]); !strings.Contains(s, `"errors"`) || !strings.Contains(s, `"detail"`) {
		t.Errorf("Problem: %s", s)
	}
}

// What a file may be is described with the definition.
func TestDocumentDescribesTheFileOfASchedule(t *testing.T) {
	_, c := peopled(t)
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type        any // a name, or names
					Description string
				}
				Required []string
			}
		}
	}
	c.as("viewer", "GET", "/openapi.json", "").want(200).into(&doc)
	file := doc.Components.Schemas["File"]
	for _, name := range []string{"kind", "delimiter", "null", "compression"} {
		if file.Properties[name].Type != "string" {
			t.Errorf("file.%s is not described: %+v", name, file)
		}
	}
	if !strings.Contains(file.Properties["compression"].Description, "gzip or zstd") || len(file.Required) != 1 || file.Required[0] != "kind" {
		t.Errorf("%+v", file)
	}
}

func hasParameter(list []struct{ Name, In string }, name string) bool {
	for _, p := range list {
		if p.Name == name && p.In == "path" {
			return true
		}
	}
	return false
}
