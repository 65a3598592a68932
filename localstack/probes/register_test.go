package probes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	probeForm = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	testForm  = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// registered gives the probes that the rows of the register name, one a row.
func registered(t *testing.T) []string {
	t.Helper()
	register, err := os.ReadFile("../DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for number, line := range strings.Split(string(register), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| AWS") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		probe := probeForm.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(probe) != 1 {
			t.Errorf("DIVERGENCES.md, line %d: the last cell %q names %d probes, want one", number+1, cells[len(cells)-1], len(probe))
			continue
		}
		if len(cells) != 4 {
			t.Errorf("DIVERGENCES.md, line %d has %d cells, want 4", number+1, len(cells))
		}
		if !strings.Contains(cells[0], "](https://") {
			t.Errorf("DIVERGENCES.md, line %d names no source for what AWS does: %q", number+1, cells[0])
		}
		named = append(named, probe[0][1])
	}
	return named
}

// probes gives the tests of this folder that ask the cloud.
func probes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(source), "//go:build cloud\n") {
			continue
		}
		for _, m := range testForm.FindAllStringSubmatch(string(source), -1) {
			if m[1] != "TestMain" {
				there = append(there, m[1])
			}
		}
	}
	return there
}

func TestEachRowOfTheRegisterHasItsProbeAndEachProbeItsRow(t *testing.T) {
	named, there := registered(t), probes(t)
	if len(named) < 20 || len(there) < 20 {
		t.Fatalf("found %d rows and %d probes: the form of one of them has changed", len(named), len(there))
	}
	for i, probe := range named {
		if !slices.Contains(there, probe) {
			t.Errorf("DIVERGENCES.md names the probe %s, which does not exist", probe)
		}
		if slices.Contains(named[:i], probe) {
			t.Errorf("DIVERGENCES.md names the probe %s in two rows", probe)
		}
	}
	for _, probe := range there {
		if !slices.Contains(named, probe) {
			t.Errorf("the probe %s has no row in DIVERGENCES.md", probe)
		}
	}
}
