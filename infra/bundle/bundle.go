// Package bundle builds the Lambda functions: one static Linux binary named bootstrap per folder, as the provided.al2023
// runtime wants it. The CDK app calls it at synthesis and scripts/build by hand; the bytes are the same either way, so a
// function whose sources did not change is not deployed again.
package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Architecture is a Go architecture name that Lambda offers.
type Architecture string

const (
	ARM64 Architecture = "arm64"
	AMD64 Architecture = "amd64"
)

// Validate refuses an architecture that Lambda does not run.
func (a Architecture) Validate() error {
	if a != ARM64 && a != AMD64 {
		return fmt.Errorf("architecture %q: want %s or %s, which Lambda runs", string(a), ARM64, AMD64)
	}
	return nil
}

// Request says what is built.
type Request struct {
	Root         string       // folder of go.mod; functions are lambdas/<name> below it
	Architecture Architecture // of the functions, not of this machine
	Names        []string     // folders under lambdas; empty: all that are there
	Progress     io.Writer    // the compiler's own messages; nil: kept for the error
}

// name is what a folder under lambdas may be called: it becomes part of paths.
var name = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Build compiles all named functions in one call of the Go tool and returns the folder that holds <name>/bootstrap for
// each. It reaches no network beyond what the module cache lacks.
func Build(ctx context.Context, r Request) (string, error) {
	if err := r.Architecture.Validate(); err != nil {
		return "", err
	}
	root, err := filepath.Abs(r.Root)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return "", fmt.Errorf("build functions: %s has no go.mod; want the folder of the repository", root)
	}
	if len(r.Names) == 0 {
		if r.Names, err = All(root); err != nil {
			return "", err
		}
	}
	for _, n := range r.Names {
		if err := check(root, n); err != nil {
			return "", err
		}
	}
	out := filepath.Join(root, "build", string(r.Architecture))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	// Compiled beside their place and renamed into it, so that a build cut short leaves whole binaries.
	fresh, err := os.MkdirTemp(out, ".fresh-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := compile(ctx, r, root, fresh); err != nil {
		return "", err
	}
	for _, n := range r.Names {
		if err := place(filepath.Join(fresh, n), filepath.Join(out, n)); err != nil {
			return "", err
		}
	}
	return out, nil
}

// All lists the functions that are there, sorted.
func All(root string) ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(root, "lambdas", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range mains {
		names = append(names, filepath.Base(filepath.Dir(m)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("build functions: %s holds no folder with a main.go", filepath.Join(root, "lambdas"))
	}
	slices.Sort(names)
	return names, nil
}

func check(root, n string) error {
	if !name.MatchString(n) {
		return fmt.Errorf("function %q: want a folder under lambdas, of lower-case letters, digits and hyphens", n)
	}
	main := filepath.Join(root, "lambdas", n, "main.go")
	if _, err := os.Stat(main); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("function %q: lambdas/%s/main.go is missing in %s", n, n, root)
	} else if err != nil {
		return fmt.Errorf("function %q: %w", n, err)
	}
	return nil
}

// compile makes one binary per function, named after its folder. The flags leave nothing of the machine, the checkout or
// the moment in the bytes: no paths, no version control stamp, no build id.
func compile(ctx context.Context, r Request, root, into string) error {
	args := []string{"build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=",
		"-o", into + string(filepath.Separator)}
	for _, n := range r.Names {
		args = append(args, "./lambdas/"+n)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+string(r.Architecture), "GOFLAGS=", "GOWORK=off")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if r.Progress != nil {
		cmd.Stdout, cmd.Stderr = io.MultiWriter(r.Progress, &said), io.MultiWriter(r.Progress, &said)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build functions for %s: %w\n%s", r.Architecture, err, strings.TrimSpace(said.String()))
	}
	return nil
}

func place(binary, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(binary, 0o755); err != nil {
		return err
	}
	return os.Rename(binary, filepath.Join(folder, "bootstrap"))
}
