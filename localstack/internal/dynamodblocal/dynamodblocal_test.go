package dynamodblocal

import (
	"context"
	"fmt"
	"io"
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

	"almanac/localstack/internal/process"
)

const printed = "Initializing DynamoDB Local\nVersion:\t" + Version + "\n"

// server gives one on the port of a stand-in, whose recorded process printed a text and lives or not.
func server(t *testing.T, handler http.HandlerFunc, log string, alive bool) Server {
	t.Helper()
	stand := httptest.NewServer(handler)
	t.Cleanup(stand.Close)
	u, err := url.Parse(stand.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := Alone(t.TempDir(), port, stand.Client())
	for _, folder := range []string{s.Dir, filepath.Dir(s.Log)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.Log, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "sleep 60"
	if !alive {
		script = "exit 1"
	}
	if _, err := process.Start(process.Program{Name: "stand-in", Path: "/bin/sh", Args: []string{"-c", script}, Dir: s.Dir, Log: s.Log, Port: port}, s.Record); err != nil && alive {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) }) //nolint:errcheck // ended either way
	for deadline := time.Now().Add(10 * time.Second); !alive && s.Running(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the stand-in does not end")
		}
	}
	return s
}

func tables(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.ListTables" || !strings.Contains(r.Header.Get("Authorization"), "Credential=") {
		http.Error(w, `{"__type":"MissingAuthenticationToken"}`, http.StatusBadRequest)
		return
	}
	io.WriteString(w, `{"TableNames":[]}`) //nolint:errcheck // the test sees it
}

func TestStartOfOneThatRunsWaitsUntilItAnswers(t *testing.T) {
	asked := 0
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		tables(w, r)
	}, printed, true)
	if already, err := s.Start(t.Context()); err != nil || !already || asked != 3 {
		t.Errorf("already %t, %v, asked %d times", already, err, asked)
	}
}

func TestStartRefuses(t *testing.T) {
	answers := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) } //nolint:errcheck // the test sees it
	}
	t.Run("another version", func(t *testing.T) {
		want(t, server(t, tables, printed+"Version:\t1.25.0\n", true), "1.25.0", Version)
	})
	t.Run("one that died", func(t *testing.T) {
		s := server(t, answers("no"), "java: not found\n", false)
		if err := s.waitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "DynamoDB Local ended") || !strings.Contains(err.Error(), "java: not found") {
			t.Errorf("%v, want that it ended, and its log", err)
		}
	})
	t.Run("another port", func(t *testing.T) {
		s := server(t, tables, printed, true)
		other := s
		other.Port++
		want(t, other, fmt.Sprint(s.Port), fmt.Sprint(other.Port), "dynamodb stop")
	})
	t.Run("not installed", func(t *testing.T) {
		want(t, Alone(t.TempDir(), Port, http.DefaultClient), Version, "is not in", "dynamodb start")
	})
	t.Run("something else on its port", func(t *testing.T) {
		s := server(t, answers("<html>"), printed, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Start(ctx); err == nil || !strings.Contains(err.Error(), "did not answer") || !strings.Contains(err.Error(), "no list of tables") {
			t.Errorf("%v, want that it did not answer as DynamoDB does", err)
		}
	})
}

func want(t *testing.T, s Server, parts ...string) {
	t.Helper()
	_, err := s.Start(t.Context())
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

func TestProgramKeepsNothingAndTellsNobody(t *testing.T) {
	s := Alone("/repo", Port, nil)
	p := s.program("/bin")
	for _, argument := range []string{"-inMemory", "-sharedDb", "-disableTelemetry", fmt.Sprint(Port)} {
		if !slices.Contains(p.Args, argument) {
			t.Errorf("%v lacks %s", p.Args, argument)
		}
	}
	if len(p.Env) != 3 || p.Env[0] != "PATH=/bin" {
		t.Errorf("environment %v, want nothing of the person's own but PATH", p.Env)
	}
}

func TestPinnedVersionIsTheOneThatIsChecked(t *testing.T) {
	pom, err := os.ReadFile("../../dynamodb-local/pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	digests, err := os.ReadFile("../../dynamodb-local/digests.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(pom), "<version>"+Version+"</version>") || !strings.Contains(string(digests), "  DynamoDBLocal-"+Version+".jar\n") {
		t.Errorf("pom.xml or digests.txt is not of version %s", Version)
	}
}
