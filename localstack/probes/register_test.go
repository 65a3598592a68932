package probes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"almanac/internal/awsrules"
)

var (
	probeForm = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*(?:/each/[a-z0-9/-]+)?)`")
	testForm  = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\) \{\n\tt\.Parallel\(\)\n\tif !(asOnAWS|divergence)\(t\)`)
	anyTest   = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// rulesTest is how a row names one of the rules of internal/awsrules: by its test.
const rulesTest = "TestRules/each/"

// columns of the register: behind what AWS does comes what each cloud does, in this order.
var columns = []string{"ministack", "localstack", "dynamodb-local"}

// What a cell says.
const (
	theSame       = "the same"
	absent        = "absent"         // the cloud has no such service: "absent: `service`"
	notApplicable = "does not apply" // "does not apply: why"
	differs       = "differs"        // anything else
)

func kindOf(cell string) string {
	for _, kind := range []string{theSame, absent, notApplicable} {
		if strings.HasPrefix(cell, kind) {
			return kind
		}
	}
	return differs
}

// row is one of the register.
type row struct {
	line  int
	aws   string
	cells map[string]string // by cloud
	why   string            // what we do about it, or who relies on it
	probe string
}

// rows reads the register.
func rows(t *testing.T) []row {
	t.Helper()
	register, err := os.ReadFile("../DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	for number, line := range strings.Split(string(register), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| AWS") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != len(columns)+3 {
			t.Fatalf("DIVERGENCES.md, line %d has %d cells, want %d", number+1, len(cells), len(columns)+3)
		}
		r := row{line: number + 1, aws: cells[0], cells: map[string]string{}, why: cells[len(cells)-2]}
		for i, cloud := range columns {
			r.cells[cloud] = strings.TrimSpace(cells[1+i])
		}
		named := probeForm.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(named) != 1 {
			t.Fatalf("DIVERGENCES.md, line %d: the last cell %q names %d probes, want one", number+1, cells[len(cells)-1], len(named))
		}
		r.probe = named[0][1]
		all = append(all, r)
	}
	return all
}

// probes gives the tests of this folder that ask the cloud, and begin by saying what they look for.
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
		begun := testForm.FindAllStringSubmatch(string(source), -1)
		for _, m := range begun {
			there = append(there, m[1])
		}
		for _, m := range anyTest.FindAllStringSubmatch(string(source), -1) {
			if m[1] != "TestMain" && m[1] != "TestRules" && !slices.Contains(there, m[1]) {
				t.Errorf("%s: %s does not begin by t.Parallel and asOnAWS or divergence, so its row is not compared with what it sees", file, m[1])
			}
		}
	}
	return there
}

func TestEachRowOfTheRegisterHasItsProbeAndEachProbeItsRow(t *testing.T) {
	all, there := rows(t), probes(t)
	if len(all) < 20 || len(there) < 20 {
		t.Fatalf("found %d rows and %d probes: the form of one of them has changed", len(all), len(there))
	}
	named := map[string]int{}
	var rules []string
	for _, r := range awsrules.All() {
		rules = append(rules, rulesTest+r.ID)
	}
	for _, r := range all {
		if !slices.Contains(there, r.probe) && !slices.Contains(rules, r.probe) {
			t.Errorf("line %d names the probe %s, which does not exist", r.line, r.probe)
		}
		if named[r.probe]++; named[r.probe] > 1 {
			t.Errorf("line %d names the probe %s, as another row does", r.line, r.probe)
		}
	}
	for _, probe := range there {
		if named[probe] == 0 {
			t.Errorf("the probe %s has no row in DIVERGENCES.md", probe)
		}
	}
}

// A rule that is kept everywhere needs no row: the suite says it, with its source.
func TestARowOfARuleSaysWhereItIsBroken(t *testing.T) {
	for _, r := range rows(t) {
		id, isRule := strings.CutPrefix(r.probe, rulesTest)
		if !isRule {
			continue
		}
		broken := false
		for cloud, cell := range r.cells {
			kind := kindOf(cell)
			broken = broken || kind == differs
			if kind == absent {
				t.Errorf("line %d, %s: the services of the rules are on each cloud that has more than tables, but the cell is %q", r.line, cloud, cell)
			}
		}
		if !broken {
			t.Errorf("line %d: no cloud breaks the rule %s", r.line, id)
		}
	}
}

func TestEachRowSaysWhatEachCloudDoes(t *testing.T) {
	for _, r := range rows(t) {
		if !strings.Contains(r.aws, "](https://") {
			t.Errorf("line %d names no source for what AWS does: %q", r.line, r.aws)
		}
		if strings.TrimSpace(r.why) == "" {
			t.Errorf("line %d does not say what is done about it, or who relies on it", r.line)
		}
		for cloud, cell := range r.cells {
			switch kindOf(cell) {
			case absent:
				if !strings.HasPrefix(cell, "absent: `") {
					t.Errorf("line %d, %s: %q; want absent: `service`", r.line, cloud, cell)
				}
			case notApplicable:
				if !strings.HasPrefix(cell, "does not apply: ") {
					t.Errorf("line %d, %s: %q; want does not apply: why", r.line, cloud, cell)
				}
			case differs:
				if len(cell) < 5 {
					t.Errorf("line %d, %s: %q says nothing", r.line, cloud, cell)
				}
			}
			if onlyTables := strings.HasPrefix(r.probe, "TestDynamoDB") || strings.HasPrefix(r.probe, rulesTest+awsrules.ServiceDynamoDB+"/"); cloud == "dynamodb-local" && onlyTables == (kindOf(cell) == notApplicable) {
				t.Errorf("line %d: the cell of dynamodb-local is %q for the probe %s", r.line, cell, r.probe)
			}
		}
	}
}
