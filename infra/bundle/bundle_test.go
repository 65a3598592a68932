package bundle

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module with one tiny function per name.
func module(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.test/functions\n\ngo 1.24\n")
	for _, n := range names {
		write(t, filepath.Join(root, "lambdas", n, "main.go"), "package main\n\nfunc main() { println(\""+n+"\") }\n")
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBuildMakesOneStaticBinaryPerFunctionForTheAskedArchitecture(t *testing.T) {
	root := module(t, "api", "schedule-deliver")
	for arch, machine := range map[Architecture]elf.Machine{ARM64: elf.EM_AARCH64, AMD64: elf.EM_X86_64} {
		out, err := Build(context.Background(), Request{Root: root, Architecture: arch})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"api", "schedule-deliver"} {
			file, err := elf.Open(filepath.Join(out, n, "bootstrap"))
			if err != nil {
				t.Fatal(err)
			}
			if file.Machine != machine {
				t.Errorf("%s for %s is a binary for %s", n, arch, file.Machine)
			}
			for _, p := range file.Progs {
				if p.Type == elf.PT_INTERP {
					t.Errorf("%s for %s wants a dynamic linker; provided.al2023 gets a static binary", n, arch)
				}
			}
			file.Close()
		}
		if left, _ := filepath.Glob(filepath.Join(out, ".fresh-*")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestBuildGivesTheSameBytesInAnotherFolder(t *testing.T) {
	var seen []byte
	for range 2 {
		root := module(t, "api")
		out, err := Build(context.Background(), Request{Root: root, Architecture: AMD64, Names: []string{"api"}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(out, "api", "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(root)) {
			t.Errorf("the binary names the folder %s", root)
		}
		if seen != nil && !bytes.Equal(seen, b) {
			t.Error("two checkouts of the same sources gave different bytes; every deploy would replace every function")
		}
		seen = b
	}
}

func TestBuildRefusesWithTheNameAndWhatWouldBeRight(t *testing.T) {
	broken := module(t, "api")
	write(t, filepath.Join(broken, "lambdas", "api", "main.go"), "package main\n\nfunc main() { undefinedThing() }\n")
	cases := map[string]struct {
		request Request
		want    []string
	}{
		"no module":              {Request{Root: t.TempDir(), Architecture: AMD64}, []string{"go.mod", "folder of the repository"}},
		"no functions":           {Request{Root: module(t), Architecture: AMD64}, []string{"lambdas", "main.go"}},
		"missing folder":         {Request{Root: module(t, "api"), Architecture: AMD64, Names: []string{"api", "dispatch"}}, []string{`"dispatch"`, "lambdas/dispatch/main.go is missing"}},
		"absent architecture":    {Request{Root: module(t, "api")}, []string{`architecture ""`, "arm64 or amd64"}},
		"other architecture":     {Request{Root: module(t, "api"), Architecture: "riscv64"}, []string{`"riscv64"`, "arm64 or amd64"}},
		"name that leaves":       {Request{Root: module(t, "api"), Architecture: AMD64, Names: []string{"../../etc"}}, []string{`"../../etc"`, "folder under lambdas"}},
		"name that is an option": {Request{Root: module(t, "api"), Architecture: AMD64, Names: []string{"-toolexec"}}, []string{`"-toolexec"`, "folder under lambdas"}},
		"does not compile":       {Request{Root: broken, Architecture: AMD64}, []string{"amd64", "undefinedThing"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Build(context.Background(), c.request)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}
