package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// write puts a whole file in place, or none.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".part"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return write(path, append(b, '\n'))
}

// load reads every description of a folder in the order of its numbers, and the last number used.
func load[T any](dir string) (all []T, last int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var numbers []int
	for _, e := range entries {
		digits, rest := e.Name(), ""
		if i := strings.IndexAny(digits, ".-"); i > 0 {
			digits, rest = digits[:i], digits[i:]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			continue
		}
		last = max(last, n) // also of one that was not finished, so that its files are not mixed with another's
		if rest == ".json" {
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	for _, n := range numbers {
		path := filepath.Join(dir, fmt.Sprintf("%06d.json", n))
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, 0, err
		}
		var v T
		if err := json.Unmarshal(b, &v); err != nil {
			return nil, 0, fmt.Errorf("%s: not a description of something received: %w; remove it or use another --dir", path, err)
		}
		all = append(all, v)
	}
	return all, last, nil
}

// safe makes a sender's file name fit for this folder; n tells unnamed ones apart. No description is ever called so.
func safe(name string, n int) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ".")
	for len(name) > 180 {
		name = strings.ToValidUTF8(name[len(name)-180:], "")
	}
	if name == "" {
		name = "attachment-" + strconv.Itoa(n+1)
	}
	return name
}
