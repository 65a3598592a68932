package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/localstack/internal/instance"
)

func TestReadOutputs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outputs.json")
	if _, err := ReadOutputs(path); err == nil || !strings.Contains(err.Error(), "not deployed") || !strings.Contains(err.Error(), "scripts/up") {
		t.Errorf("no file: %v", err)
	}
	for content, want := range map[string]string{"nonsense": "no outputs file", `{"Almanac-local":"x"}`: "no outputs file"} {
		write(t, path, content)
		if _, err := ReadOutputs(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	write(t, path, `{"Almanac-local":{"ApiUrl":"http://x","Empty":""}}`)
	outputs, err := ReadOutputs(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := outputs.Get("ApiUrl"); err != nil || got != "http://x" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"Missing", "Empty"} {
		if _, err := outputs.Get(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error that names %s", err, name)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEnvReplacesEveryAWSSetting(t *testing.T) {
	i, err := instance.New("/repo", "demo", instance.MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	env := Env(i, []string{"PATH=/bin", "AWS_PROFILE=production", "AWS_ENDPOINT_URL=https://example.com", "CDK_DEFAULT_ACCOUNT=123456789012", "AWS_SESSION_TOKEN=x"})
	for _, v := range env {
		if strings.HasPrefix(v, "AWS_PROFILE=") || strings.HasPrefix(v, "AWS_SESSION_TOKEN=") || strings.Contains(v, "example.com") || strings.Contains(v, "123456789012") {
			t.Errorf("keeps the person's own %s", v)
		}
	}
	for _, want := range []string{"PATH=/bin", "AWS_ENDPOINT_URL=http://127.0.0.1:4566", "CDK_DEFAULT_ACCOUNT=000000000000", "LOCAL_CLOUD=ministack"} {
		if !slices.Contains(env, want) {
			t.Errorf("%v lacks %s", env, want)
		}
	}
}

func TestLastLine(t *testing.T) {
	var l lastLine
	for _, part := range []string{"Almanac | 1/9 | CREATE_", "COMPLETE\n\n!!!!!!\nAlmanac | 2", "/9\n"} {
		fmt.Fprint(&l, part)
	}
	if got := l.get(); got != "Almanac | 2/9" {
		t.Errorf("%q", got)
	}
	if l.summary() != "" {
		t.Errorf("summary %q", l.summary())
	}
	fmt.Fprint(&l, " Almanac-local (no changes)\n")
	if l.summary() != "no changes" {
		t.Errorf("summary %q, want no changes", l.summary())
	}
	fmt.Fprint(&l, strings.Repeat("x", 500)+"\n")
	if len(l.get()) != 110 {
		t.Errorf("a long line is shown in full: %d", len(l.get()))
	}
}

func TestSettingsNameTheIssuerOnlyWhereThereAreNoUserPools(t *testing.T) {
	for cloud, want := range map[instance.Cloud]string{
		instance.MiniStack:  "-c stage=local -c cloud=ministack -c sourceSecrets=" + SourceSecrets + " -c athenaDatabases=default",
		instance.LocalStack: "-c stage=local -c cloud=localstack -c sourceSecrets=" + SourceSecrets + " -c issuer=http://127.0.0.1:5569",
	} {
		i, err := instance.New("/repo", "other", cloud, 5566)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Settings(i), " "); got != want {
			t.Errorf("%s: %s, want %s", cloud, got, want)
		}
	}
}

func TestACancelledCommandEndsWithWhatItRuns(t *testing.T) {
	i, err := instance.New(t.TempDir(), "test", instance.MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(i.Root, "infra", "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// As the CDK's command it runs another, which would hold the output open for a minute.
	mark := filepath.Join(i.Root, "began")
	if err := os.WriteFile(filepath.Join(bin, "cdk"), []byte("#!/bin/sh\nsh -c 'touch "+mark+"; sleep 60'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for _, err := os.Stat(mark); err != nil; _, err = os.Stat(mark) {
			runtime.Gosched()
		}
		cancel()
	}()
	began := time.Now()
	if err := (Deployer{Instance: i}).cdk(ctx, i.Root, &lastLine{}, "deploy"); err == nil || !strings.Contains(err.Error(), "cdk deploy") {
		t.Errorf("%v, want that the command was ended", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it ended after %s", took)
	}
}
