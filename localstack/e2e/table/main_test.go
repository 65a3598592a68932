package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"almanac/localstack/e2e/scenario"
)

// file writes the rows of a run on a cloud in which all went well but for one.
func file(t *testing.T, cloud, failed string) string {
	t.Helper()
	var b bytes.Buffer
	for _, s := range scenario.Table {
		r := scenario.Row{Cloud: cloud, Test: s.Test, Outcome: scenario.OK}
		if s.Test == failed {
			r.Outcome = scenario.Failed
		}
		if s.Not[cloud] != "" {
			r.Outcome, r.Reason = scenario.Absent, s.Not[cloud]
		}
		if err := scenario.Write(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheTableOfBothCloudsAndOfOne(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{file(t, "localstack", ""), file(t, "ministack", "")}, &out); err != nil {
		t.Error(err)
	}
	if head, _, _ := strings.Cut(out.String(), "\n"); strings.Join(strings.Fields(head), " ") != "scenario ministack localstack" {
		t.Errorf("head %q", head)
	}
	out.Reset()
	if err := run([]string{file(t, "ministack", "")}, &out); err != nil || strings.Contains(out.String(), "localstack") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestAFailureOrAMissingRunIsAnError(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	for name, text := range map[string]string{empty: "", broken: "{"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"no file":   {nil, "no file given"},
		"absent":    {[]string{filepath.Join(t.TempDir(), "x")}, "no such file"},
		"empty":     {[]string{file(t, "ministack", ""), empty}, "did not run"},
		"broken":    {[]string{broken}, "line 1"},
		"a failure": {[]string{file(t, "ministack", "TestTwoTicksAtOnceAdmitOnce")}, "TestTwoTicksAtOnceAdmitOnce failed on ministack"},
	} {
		var out bytes.Buffer
		if err := run(c.files, &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}
