package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadTakesNoMoreThanAFileHas: what ends in .yaml may be a link to a device without an end, a pipe that nobody
// writes to, or simply large. None holds up the command or fills its memory.
func TestReadTakesNoMoreThanAFileHas(t *testing.T) {
	for name, x := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a link to an endless device": {func(p string) error { return os.Symlink("/dev/zero", p) }, "no ordinary file"},
		"a pipe":                      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "no ordinary file"},
		"a link to nothing":           {func(p string) error { return os.Symlink("nowhere", p) }, "no such file"},
		"a large file":                {func(p string) error { return os.WriteFile(p, make([]byte, maxFile+1), 0o600) }, "6291456"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := x.make(filepath.Join(folder, "a.yaml")); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "a.yaml") {
				t.Errorf("%v, want an error that names the file and has %q", err, x.want)
			}
		})
	}
	if _, err := Read("/dev/zero"); err == nil || !strings.Contains(err.Error(), "6291456") {
		t.Errorf("a device that was named itself: %v", err)
	}
	real := filepath.Join(t.TempDir(), "real")
	if err := os.WriteFile(real, []byte("kind: workspace\nid: EWR\nname: Newark\nzone: UTC\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(real, filepath.Join(folder, "linked.yaml")); err != nil {
		t.Fatal(err)
	}
	if docs, err := Read(folder); err != nil || len(docs) != 1 || docs[0].Name != "EWR" {
		t.Errorf("a link to a file is read: %v %v", docs, err)
	}
}
