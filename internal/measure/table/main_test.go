package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTableOfAFile(t *testing.T) {
	var out strings.Builder
	err := run([]string{file(t, `{"what":"CSV","peer":"encoding/csv","bound":"≥","aim":2.5,"theirs":{"wall":900,"cpu":900},"ours":{"wall":300,"cpu":450}}`+"\n")}, &out)
	if err != nil || !strings.Contains(out.String(), "| CSV  | encoding/csv | ≥ 2.5 | 3.00  | 2.00 ") {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestTableSaysWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"0 arguments":   nil,
		"2 arguments":   {"a", "b"},
		"no such file":  {filepath.Join(t.TempDir(), "absent")},
		"holds no row":  {file(t, "")},
		"line 1":        {file(t, "{")},
		"names not bot": {file(t, `{"what":"CSV"}`)},
	} {
		if err := run(args, new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", args, err, want)
		}
	}
}
