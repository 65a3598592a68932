package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// plant finds all mutants of the product's Go code and lets each be switched on: sources with their edits, and the mutants
// by number.
func plant(root string) ([]*source, []Mutant, error) {
	var all []*source
	for _, pkg := range woven {
		list, err := parse(root, pkg)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, list...)
	}
	on := writePath(all)
	var f found
	for _, s := range all {
		f.look(s, func(function string) bool { return on[s.pkg+"."+function] })
	}
	if err := f.swap(all, swaps, helpers); err != nil {
		return nil, nil, err
	}
	return all, f.mutants, nil
}

// tree is where a run keeps what it makes.
type tree struct {
	root string // the module
	work string
}

func (t tree) binary(pkg string) string { return filepath.Join(t.work, "bin", pkg+".test") }

// weave writes the sources with their switches beside the tree, and the overlay by which a build takes them.
func (t tree) weave(all []*source) error {
	replace := map[string]string{}
	for _, s := range all {
		to := filepath.Join(t.work, "woven", s.path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, s.woven(), 0o644); err != nil {
			return err
		}
		replace[filepath.Join(t.root, s.path)] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.work, "overlay.json"), overlay, 0o644)
}

// build builds the test binary of each killer's package, and returns a digest of them all: equal digests, equal results. A
// package that is not there is left out.
func (t tree) build(ctx context.Context, ks []killer) (digest string, built []killer, err error) {
	sum := sha256.New()
	done := map[string]bool{}
	for _, k := range ks {
		if _, err := os.Stat(filepath.Join(t.root, "internal", k.pkg)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !done[k.pkg] {
			cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "mutants", "-overlay", filepath.Join(t.work, "overlay.json"), "-o", t.binary(k.pkg), "./internal/"+k.pkg)
			cmd.Dir = t.root
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", nil, fmt.Errorf("the tests of internal/%s cannot be built with mutants: %w\n%s", k.pkg, err, out)
			}
			done[k.pkg] = true
			binary, err := os.ReadFile(t.binary(k.pkg))
			if errors.Is(err, fs.ErrNotExist) {
				done[k.pkg] = false // a package without tests has no binary
			} else if err != nil {
				return "", nil, err
			}
			sum.Write(binary)
		}
		if done[k.pkg] {
			built = append(built, k)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], slices.Clip(built), nil
}
