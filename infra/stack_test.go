package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/jsii-runtime-go"

	"almanac/infra/bundle"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.RemoveAll(fakeCode())
	os.Exit(code)
}

// fakeCode is a built folder whose binaries do nothing: templates do not depend on what is in them.
var fakeCode = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "almanac-code-")
	if err != nil {
		panic(err)
	}
	for _, f := range functionFolders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f, "bootstrap"), []byte("#!/bin/sh\n# "+f+"\n"), 0o755); err != nil {
			panic(err)
		}
	}
	return dir
})

// variant is a stage on one of the clouds that it can be deployed to.
type variant struct{ stage, cloud string }

func (v variant) String() string {
	if v.cloud == "" {
		return v.stage
	}
	return v.stage + " on " + v.cloud
}

// variants are all that there are: the stages on AWS, and the local stage on each local cloud.
func variants() []variant {
	var all []variant
	for stage := range profiles {
		if stage != "local" {
			all = append(all, variant{stage, ""})
		}
	}
	for _, c := range localClouds {
		all = append(all, variant{"local", c.Name})
	}
	return all
}

// given are settings that are right for a variant.
func given(v variant) map[string]any {
	switch {
	case v.cloud == "localstack":
		return map[string]any{"issuer": "http://127.0.0.1:4569"}
	case v.stage == "local":
		return map[string]any{}
	case v.stage == "dev":
		return map[string]any{"mailFrom": "reports@example.com", "recipients": "example.com", "account": "111122223333", "region": "eu-central-1"}
	default:
		return map[string]any{"mailFrom": "reports@mail.example.com", "mailIdentity": "example.com", "privateNetworks": "10.20.0.0/16",
			"account": "111122223333", "region": "eu-central-1"}
	}
}

func environmentOf(stage string) func(string) string {
	return func(name string) string {
		if stage == "local" && name == "AWS_ENDPOINT_URL" {
			return "http://127.0.0.1:4566"
		}
		return ""
	}
}

func deployment(v variant, change map[string]any) (Deployment, error) {
	p, err := ProfileOf(v.stage, v.cloud)
	if err != nil {
		return Deployment{}, err
	}
	context := given(v)
	for k, v := range change {
		context[k] = v
	}
	s, err := SettingsOf(p, func(key string) any { return context[key] }, environmentOf(v.stage))
	return Deployment{Profile: p, Settings: s, Code: fakeCode()}, err
}

// template is a synthesized stack as CloudFormation reads it.
type template struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

type resource struct {
	Type           string
	DeletionPolicy string
	DependsOn      any
	Properties     map[string]any
}

func synthesize(d Deployment) (template, error) {
	var t template
	app := newApp()
	if _, err := NewStack(app, d); err != nil {
		return t, err
	}
	document := app.Synth(nil).GetStackByName(jsii.String("Almanac-" + d.Profile.Stage)).Template()
	b, err := json.Marshal(document)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(b, &t)
}

// templates are the variants' templates, each synthesized once.
var templates = func() map[variant]func() (template, error) {
	all := map[variant]func() (template, error){}
	for _, v := range variants() {
		all[v] = sync.OnceValues(func() (template, error) {
			d, err := deployment(v, nil)
			if err != nil {
				return template{}, err
			}
			return synthesize(d)
		})
	}
	return all
}()

// templateOf is the template of one variant.
func templateOf(t *testing.T, v variant) template {
	t.Helper()
	tpl, err := templates[v]()
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// eachVariant runs a test against every template.
func eachVariant(t *testing.T, check func(t *testing.T, p Profile, tpl template)) {
	t.Helper()
	eachWhere(t, func(Cloud) bool { return true }, check)
}

// eachWhere runs a test against the templates of the clouds that can do something; that none can is an error.
func eachWhere(t *testing.T, can func(Cloud) bool, check func(t *testing.T, p Profile, tpl template)) {
	t.Helper()
	ran := 0
	for _, v := range variants() {
		p, err := ProfileOf(v.stage, v.cloud)
		if err != nil {
			t.Fatal(err)
		}
		if !can(p.Cloud) {
			continue
		}
		ran++
		t.Run(v.String(), func(t *testing.T) { check(t, p, templateOf(t, v)) })
	}
	if ran == 0 {
		t.Fatal("no variant is tested")
	}
}

// of lists the resources of a type; a test that finds none asserts nothing, so none is an error.
func (tpl template) of(t *testing.T, kind string) map[string]resource {
	t.Helper()
	found := map[string]resource{}
	for id, r := range tpl.Resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	if len(found) == 0 {
		t.Fatalf("the template has no %s", kind)
	}
	return found
}

// one is the only resource of a type whose id begins so.
func (tpl template) one(t *testing.T, kind, prefix string) (string, resource) {
	t.Helper()
	var id string
	for i := range tpl.of(t, kind) {
		if strings.HasPrefix(i, prefix) {
			if id != "" {
				t.Fatalf("%s and %s both begin with %s", id, i, prefix)
			}
			id = i
		}
	}
	if id == "" {
		t.Fatalf("no %s begins with %s", kind, prefix)
	}
	return id, tpl.Resources[id]
}

// get follows a path of keys and list positions.
func get(v any, path ...any) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			key, _ := step.(string)
			v = at[key]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// mentions reports whether a reference to a logical id stands anywhere in a value.
func mentions(v any, id string) bool {
	b, _ := json.Marshal(v)
	return strings.Contains(string(b), `"`+id+`"`)
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if text(got) != text(want) {
		t.Errorf("%s is %s; want %s", what, text(got), text(want))
	}
}

func TestAStackWithoutABuiltFunctionIsRefused(t *testing.T) {
	d, err := deployment(variant{stage: "dev"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Code = t.TempDir()
	_, err = synthesize(d)
	if err == nil || !strings.Contains(err.Error(), "scripts/build") || !strings.Contains(err.Error(), functionFolders[0]) {
		t.Errorf("got %v; want the function's name and what to run", err)
	}
}

func TestEveryFunctionFolderIsWellNamed(t *testing.T) {
	_, err := bundle.Build(t.Context(), bundle.Request{Root: t.TempDir(), Architecture: bundle.ARM64, Names: functionFolders})
	if err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("got %v; want only the missing module refused", err)
	}
}
