// Package api is the HTTP interface: JSON for programs, two public pages for recipients. Routes and their rights
// stand in package routes; each handler here is registered by that table, and a request that it does not list is not
// let in. Handlers read and change through the small interfaces of ports.go.
package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/snapshot"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// API is what the handler is made of.
type API struct {
	Editor  Editor
	Reader  Reader
	Links   Links
	Sources SourceTester
	Months  Months // monthly snapshots
	Clock   Clock  // nil outside the local profile: its routes are then not there
	Claims  Claims
	Log     *slog.Logger
	Now     func() time.Time // wall time, for the log's durations
	NewID   func() string    // ids of requests that bring none of their own
	Version string           // of the product, shown in the OpenAPI document
}

type server struct {
	API
	huma    huma.API
	rights  map[string]routes.Right // by "METHOD /pattern"
	unbound map[string]routes.Right // rows of the table that no handler has taken yet
}

// Handler builds the router. It panics where the route table and the handlers disagree: that is a mistake of the
// build, found by every test.
func (a API) Handler() http.Handler {
	s := &server{API: a, rights: map[string]routes.Right{}, unbound: map[string]routes.Right{}}
	for _, r := range routes.Table {
		if r.Right != routes.Local || a.Clock != nil {
			s.unbound[r.Method+" "+r.Path] = r.Right
		}
	}
	mux := http.NewServeMux()
	s.huma = humago.New(mux, configuration(a.Version))
	s.registerSchedules()
	s.registerRuns()
	s.registerByHand()
	s.registerUnknown()
	s.registerRetry()
	s.registerRedrive()
	s.registerVersions()
	s.registerControl()
	s.registerSuppressions()
	s.registerConfiguration()
	s.registerSourceTest()
	s.registerGroups()
	s.registerOwners()
	s.registerDefinitions()
	s.registerMonths()
	s.registerSnapshots()
	s.registerSnapshotActs()
	s.registerPublished()
	s.registerPages()
	if a.Clock != nil {
		s.registerClock()
	}
	s.registerDocument()
	for route := range s.unbound {
		panic("the route table lists " + route + ", which no handler takes")
	}
	return s.observe(s.guard(mux))
}

func configuration(version string) huma.Config {
	c := huma.DefaultConfig("Almanac", version)
	c.Info.Description = "Scheduled delivery of query results as files, and monthly snapshots. Errors are problems by RFC 9457."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A token of the issuer that the stack's output Issuer names; its groups are the caller's roles."},
	}
	return c
}

// schemaName names a type in the document. Both lifecycles have definitions, checks and more of one name.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.PkgPath() == reflect.TypeFor[snapshot.Definition]().PkgPath() && !strings.HasPrefix(name, "Snapshot") {
		return "Snapshot" + name
	}
	return name
}

// The largest bodies, in bytes. A definition may name ten thousand recipients; in base64, with quotes escaped, it still
// fits the 6 MB that a function is called with, and the 10 MB of an HTTP API.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
const (
	maxBody        = 1 << 20
	MaxDefinitions = 4_200_000 // one definition, or several that are planned together
)

// withDefinitions lets an operation take definitions.
func withDefinitions(op huma.Operation) huma.Operation {
	op.MaxBodyBytes = MaxDefinitions
	return op
}

// operation claims one row of the route table and describes it.
func (s *server) operation(method, path, id, summary string, statuses ...int) huma.Operation {
	route := method + " " + path
	right, listed := s.unbound[route]
	if !listed {
		panic("the route table does not list " + route)
	}
	delete(s.unbound, route)
	s.rights[route] = right
	op := huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, SkipValidateBody: true, MaxBodyBytes: maxBody,
		Errors: append(statuses, http.StatusInternalServerError),
	}
	if right == routes.Public {
		op.Description = "Public: the token in the path is the right."
		return op
	}
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden)
	op.Security = []map[string][]string{{"token": {}}}
	op.Description = "For " + rightNames[right] + " and above."
	return op
}

// Raw is a body that its handler reads strictly by itself.
type Raw struct {
	RawBody []byte
}

// register adds a handler; its errors pass through refuse.
func register[I, O any](s *server, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, s.refuse(ctx, err)
		}
		return out, nil
	})
}

// registerBody is register for a handler with a raw body, which the document describes as a B.
func registerBody[B, I, O any](s *server, op huma.Operation, required bool, handler func(context.Context, *I) (*O, error)) {
	op.RequestBody = &huma.RequestBody{}
	register(s, op, handler)
	schema := huma.SchemaFromType(s.huma.OpenAPI().Components.Schemas, reflect.TypeFor[B]())
	op.RequestBody.Required = required
	op.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

func (s *server) registerDocument() {
	type document struct {
		ContentType string `header:"Content-Type"`
		Body        []byte
	}
	register(s, s.operation("GET", "/openapi.json", "show-document", "This document"), func(context.Context, *struct{}) (*document, error) {
		b, err := json.MarshalIndent(s.huma.OpenAPI(), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("OpenAPI document: %w", err)
		}
		return &document{"application/vnd.oai.openapi+json;version=3.1", b}, nil
	})
}
