package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
)

// emulator gives one on the port of a server, with a living process on record.
func emulator(t *testing.T, handler http.HandlerFunc, alive bool) Emulator {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	i, err := instance.New(t.TempDir(), "test", instance.MiniStack, port)
	if err != nil {
		t.Fatal(err)
	}
	e := Emulator{Instance: i, Client: server.Client()}
	program := process.Program{Name: "stand-in", Path: "/bin/sh", Args: []string{"-c", "echo started; sleep 60"}, Log: i.EmulatorLog(), Dir: i.Root}
	if !alive {
		program.Args = []string{"-c", "echo out of memory"}
	}
	if _, err := process.Start(program, i.EmulatorRecord()); err != nil && alive {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Stop(context.Background(), i.EmulatorRecord(), time.Second) }) //nolint:errcheck // ended either way
	for deadline := time.Now().Add(10 * time.Second); !alive && e.Running(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the stand-in does not end")
		}
	}
	return e
}

func healthy(version string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"services":{},"version":%q}`, version)
	}
}

func TestWaitReady(t *testing.T) {
	asked := 0
	e := emulator(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		healthy(MiniStackVersion)(w, r)
	}, true)
	if err := e.WaitReady(t.Context()); err != nil || asked != 3 {
		t.Errorf("%v after %d looks, want ready at the third", err, asked)
	}
}

func TestWaitReadyRefusesAnotherVersion(t *testing.T) {
	e := emulator(t, healthy("1.4.0"), true)
	if err := e.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "1.4.0") || !strings.Contains(err.Error(), MiniStackVersion) {
		t.Errorf("%v, want both versions named", err)
	}
}

func TestWaitReadyShowsTheLogOfADeadEmulator(t *testing.T) {
	e := emulator(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) }, false)
	err := e.WaitReady(t.Context())
	for _, part := range []string{"the emulator ended", "out of memory", "scripts/up"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	e := emulator(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>another server</html>") }, true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := e.WaitReady(ctx); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("%v, want that it did not answer", err)
	}
}

func TestStateOfAnEmulatorThatDiedIsDiscarded(t *testing.T) {
	e := emulator(t, healthy(MiniStackVersion), false)
	i := e.Instance
	old := filepath.Join(i.State(), "dynamodb.json")
	for _, path := range []string{old, i.UncleanMark(), filepath.Join(i.ReceiversFolder(), "mail", "1.eml")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lost, err := e.discardUnsaved(t.Context())
	if err != nil || !lost {
		t.Errorf("lost %t, %v; want lost", lost, err)
	}
	for _, path := range []string{old, i.ReceiversFolder(), i.UncleanMark()} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if lost, err := e.discardUnsaved(t.Context()); err != nil || lost {
		t.Errorf("a second time: lost %t, %v", lost, err)
	}
}

func TestStateOfACleanStopIsKept(t *testing.T) {
	e := emulator(t, healthy(MiniStackVersion), true)
	if err := os.WriteFile(e.Instance.UncleanMark(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if outcome, err := e.Stop(t.Context()); err != nil || outcome != process.Stopped {
		t.Fatal(outcome, err)
	}
	if e.Died() {
		t.Error("a clean stop counts as a death")
	}
}

func TestMiniStackEnvHasNothingOfThePersonsOwn(t *testing.T) {
	i, err := instance.New("/repo", "test", instance.MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	asked := []string{}
	env := miniStackEnv(i, func(name string) string { asked = append(asked, name); return "/bin" })
	if !slices.Equal(asked, []string{"PATH"}) {
		t.Errorf("takes over %v, want PATH alone", asked)
	}
	for _, want := range []string{"AUTH=true", "BIND_HOST=127.0.0.1", "GATEWAY_PORT=4666", "SMTP_HOST=127.0.0.1:4667", "AWS_ENDPOINT_URL=http://127.0.0.1:4666", "PERSIST_STATE=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("lacks %s", want)
		}
	}
}

func TestPinnedVersionsAreThoseThatAreChecked(t *testing.T) {
	for path, want := range map[string]string{
		"../../requirements.txt":                      "\nministack==" + MiniStackVersion + " ",
		"../../requirements-localstack.txt":           "\nlocalstack-core==" + LocalStackVersion + " ",
		"../../executor/process_executor/versions.py": "\nLOCALSTACK = \"" + LocalStackVersion + "\"\n",
		"../../compose.yaml":                          "image: localstack/localstack:" + LocalStackVersion + "\n",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
}

func TestLocalStackEnvHasNothingOfThePersonsOwnAndAsksNobody(t *testing.T) {
	i, err := instance.New("/repo", "test-localstack", instance.LocalStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	asked := []string{}
	env := localStackEnv(i, func(name string) string { asked = append(asked, name); return "/bin" })
	if !slices.Equal(asked, []string{"PATH"}) {
		t.Errorf("takes over %v, want PATH alone", asked)
	}
	for _, want := range []string{
		"GATEWAY_LISTEN=127.0.0.1:4766", "LOCALSTACK_HOST=localhost:4766", "PROCESS_EXECUTOR_SMTP=127.0.0.1:4767", "DYNAMODB_LOCAL_PORT=4770",
		"PYTHONPATH=/repo/localstack/executor", "DISABLE_EVENTS=1", "LAMBDA_RUNTIME_EXECUTOR=process", "TMPDIR=/repo/.local/test-localstack/tmp",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("lacks %s", want)
		}
	}
}

// The container has the settings of the process, but for paths and for the DynamoDB Local beside it.
func TestContainerHasTheSameSettings(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i, err := instance.New("/repo", "demo-localstack", instance.LocalStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	here := []string{"PATH", "HOME", "LANG", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "TMPDIR", "XDG_CACHE_HOME", "FILESYSTEM_ROOT", "PYTHONPATH", "OVERRIDE_IN_DOCKER", "DYNAMODB_LOCAL_PORT"}
	for _, setting := range localStackEnv(i, func(string) string { return "" }) {
		name, value, _ := strings.Cut(setting, "=")
		if want := fmt.Sprintf("\n      %s: %q\n", name, value); !slices.Contains(here, name) && !strings.Contains(string(text), want) {
			t.Errorf("compose.yaml lacks %s", strings.TrimSpace(want))
		}
	}
}

func TestLocalStackStartsEmptyAfterACleanStopToo(t *testing.T) {
	e := emulator(t, healthy(LocalStackVersion), true)
	e.Instance.Cloud = instance.LocalStack
	if err := os.WriteFile(e.Instance.UncleanMark(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.Instance.Outputs(), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if outcome, err := e.Stop(t.Context()); err != nil || outcome != process.Stopped {
		t.Fatal(outcome, err)
	}
	if lost, err := e.discardUnsaved(t.Context()); err != nil || !lost {
		t.Errorf("lost %t, %v, want lost", lost, err)
	}
	if _, err := os.Stat(e.Instance.Outputs()); err == nil {
		t.Error("the outputs of a cloud that is gone are still there")
	}
}

func TestStartRefusesAnInstanceOfAnotherCloud(t *testing.T) {
	e := emulator(t, healthy(MiniStackVersion), true)
	if err := e.Instance.Claim(); err != nil {
		t.Fatal(err)
	}
	e.Instance.Cloud = instance.LocalStack
	if _, _, err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "ministack") || !strings.Contains(err.Error(), "localstack") {
		t.Errorf("%v, want an error that names both clouds", err)
	}
}

func TestStartOfALocalStackWithoutItsTables(t *testing.T) {
	e := emulator(t, healthy(LocalStackVersion), true)
	e.Instance.Cloud = instance.LocalStack
	if _, _, err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "DynamoDB Local") || !strings.Contains(err.Error(), "scripts/down") {
		t.Errorf("%v, want an error that names DynamoDB Local", err)
	}
}

func TestWebhookSecretIsMadeOnceAndHasItsForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "secret")
	var first []byte
	for range 2 {
		if err := ensureWebhookSecret(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && string(first) != string(text) {
			t.Error("a second call made another secret")
		}
		first = text
	}
	var value struct{ Current string }
	if err := json.Unmarshal(first, &value); err != nil || !strings.HasPrefix(value.Current, "whsec_") || len(value.Current) < 38 {
		t.Errorf("%s, %v", first, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}
