package install

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/step"
)

func installer(t *testing.T) Installer {
	t.Helper()
	i, err := instance.New(t.TempDir(), "test", instance.MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	return Installer{Instance: i, Report: &step.Reporter{Out: &bytes.Buffer{}, Now: time.Now}}
}

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnceDoesAPartAgainOnlyWhenItsInputsChanged(t *testing.T) {
	in := installer(t)
	lock := put(t, in.path("lock"), "one")
	result := in.path("result")
	done := 0
	run := func() string {
		t.Helper()
		note, err := in.once("part", []string{lock}, []string{result}, func() error { done++; put(t, result, "made"); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	if run(); done != 1 {
		t.Fatalf("done %d times, want 1", done)
	}
	if note := run(); done != 1 || note != nothingToDo {
		t.Errorf("again with nothing changed: done %d times, note %q", done, note)
	}
	put(t, lock, "two")
	if run(); done != 2 {
		t.Errorf("with another lock: done %d times, want 2", done)
	}
	if err := os.Remove(result); err != nil {
		t.Fatal(err)
	}
	if run(); done != 3 {
		t.Errorf("with the result removed: done %d times, want 3", done)
	}
}

func TestOnceTakesAPartThatFailedAsNotDone(t *testing.T) {
	in := installer(t)
	lock, result := put(t, in.path("lock"), "one"), put(t, in.path("result"), "half made")
	for range 2 {
		if note, err := in.once("part", []string{lock}, []string{result}, func() error { return errors.New("cut off") }); err == nil {
			t.Errorf("a failed part: %q, no error", note)
		}
	}
	if err := os.Remove(result); err != nil {
		t.Fatal(err)
	}
	if _, err := in.once("part", []string{lock}, []string{result}, func() error { return nil }); err == nil || !strings.Contains(err.Error(), result) {
		t.Errorf("a part that made nothing: %v, want an error that names %s", err, result)
	}
	if _, err := in.once("part", []string{in.path("missing")}, nil, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing lock: %v", err)
	}
}

func TestFetchedTellsNoNetworkFromOtherCauses(t *testing.T) {
	in := installer(t)
	cause := errors.New("pip install: exit status 1")
	if err := in.fetched("pip", nil); err != nil {
		t.Error(err)
	}
	put(t, in.log(), "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n")
	if err := in.fetched("pip", cause); !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "DO NOT MATCH") || strings.Contains(err.Error(), "network") {
		t.Errorf("with the registry there: %v", err)
	}
	for client, words := range map[string]string{
		"pip": "WARNING: Retrying after connection broken by 'NewConnectionError(... [Errno -3] Temporary failure in name resolution')",
		"npm": "npm error code ENOTFOUND\nnpm error network request to the registry failed, reason: getaddrinfo ENOTFOUND",
		"mvn": "[ERROR] Could not transfer artifact: Unknown host: Temporary failure in name resolution",
	} {
		put(t, in.log(), words+"\n")
		err := in.fetched(client, cause)
		for _, part := range []string{client + " could not reach its registry", "check the network", "what was installed already stays"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", client, err, part)
			}
		}
	}
}

func TestRequirementsArePinnedByHash(t *testing.T) {
	for _, path := range []string{"../../requirements.txt", "../../requirements-localstack.txt", "../../requirements-localstack-build.txt", "../../demo/requirements.txt"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pinned := 0
		for _, entry := range strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
			if strings.Contains(entry, "://") {
				t.Errorf("%s names an address: %.80s", path, entry)
			}
			if entry = strings.TrimSpace(entry); entry == "" || strings.HasPrefix(entry, "#") {
				continue
			}
			pinned++
			if !strings.Contains(entry, "==") || !strings.Contains(entry, "--hash=sha256:") {
				t.Errorf("%s: %.60s is not pinned to a version and a hash", path, entry)
			}
		}
		if pinned == 0 {
			t.Errorf("%s pins nothing", path)
		}
	}
}

func TestRunKeepsTheOutputInTheLog(t *testing.T) {
	in := installer(t)
	err := in.run(t.Context(), in.Instance.Root, "sh", "-c", "echo something went wrong; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), in.log()) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(in.log()); err != nil || !strings.Contains(string(text), "something went wrong") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestExactPython(t *testing.T) {
	for name, c := range map[string]struct {
		have map[string]string
		want string
		says []string
	}{
		"its own name":   {map[string]string{"python3.11": "Python 3.11.7\n", "python3": "Python 3.13.1\n"}, "python3.11", nil},
		"the usual name": {map[string]string{"python3": "Python 3.11.2\n"}, "python3", nil},
		"another":        {map[string]string{"python3": "Python 3.13.1\n"}, "", []string{"3.13.1", "3.11", "ministack"}},
		"not 3.1":        {map[string]string{"python3": "Python 3.110.0\n"}, "", []string{"3.110.0"}},
		"none":           {nil, "", []string{"none on PATH", "3.11"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exactPython(t.Context(), func(_ context.Context, name string, _ ...string) (string, error) {
				if out := c.have[name]; out != "" {
					return out, nil
				}
				return "", exec.ErrNotFound
			})
			if got != c.want || (err == nil) != (c.says == nil) {
				t.Fatalf("%q, %v", got, err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

func TestCheckDigests(t *testing.T) {
	in := installer(t)
	sum := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // SHA-256 of "abc", FIPS 180-2
	list := put(t, in.path("digests"), sum+"  a.jar\n"+sum+"  b.jar\n")
	folder := filepath.Dir(put(t, in.path("jars", "a.jar"), "abc"))
	put(t, in.path("jars", "b.jar"), "abc")
	if err := checkDigests(folder, list); err != nil {
		t.Errorf("what was pinned: %v", err)
	}
	put(t, in.path("jars", "b.jar"), "abd")
	put(t, in.path("jars", "c.jar"), "more")
	if err := os.Remove(in.path("jars", "a.jar")); err != nil {
		t.Fatal(err)
	}
	err := checkDigests(folder, list)
	for _, part := range []string{"a.jar is missing", "b.jar has SHA-256", sum, "c.jar is not pinned"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	put(t, list, "nonsense\n")
	if err := checkDigests(folder, list); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a list of another form: %v", err)
	}
}
