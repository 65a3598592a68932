package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"almanac/internal/failure"
)

func TestAFileIsTestedStepByStep(t *testing.T) {
	good := database(t, filepath.Join(t.TempDir(), "a.sqlite"), `CREATE TABLE "a ""b" (n, r, t, b)`, `INSERT INTO "a ""b" VALUES (7, 0.5, NULL, x'ff')`, "CREATE TABLE z (n)")
	empty := database(t, filepath.Join(t.TempDir(), "b.sqlite"), "CREATE TABLE t (n)", "DROP TABLE t")
	for _, row := range []struct {
		name, file, sql string
		steps           string
		last            string
		code            failure.Code
	}{
		{"some table", good, "", "file rights time", "1 rows were read", ""},
		{"a query", good, "SELECT 1 UNION ALL SELECT 2", "file rights time", "2 rows", ""},
		{"a wrong query", good, "SELECT nn FROM z", "file rights time", "no such column", failure.QueryInvalid},
		{"no tables", empty, "", "file rights", "has no tables", failure.SourceUnknown},
		{"no file", "", "", "file", "has no data file", failure.SourceUnknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, b := newFetcher(t)
			if row.file != "" {
				body, err := os.ReadFile(row.file)
				if err != nil {
					t.Fatal(err)
				}
				b.put("data.sqlite", "1", body)
			}
			r := f.Source("data.sqlite").Test(t.Context(), row.sql)
			var steps []string
			for _, f := range r.Findings {
				steps = append(steps, f.Step)
			}
			last := r.Findings[len(r.Findings)-1]
			if strings.Join(steps, " ") != row.steps || last.Code != row.code || r.OK() != (row.code == "") || !strings.Contains(last.Says, row.last) {
				t.Fatalf("%+v", r.Findings)
			}
			if row.name == "some table" {
				if got := r.Rows[0]; *got[0] != "7" || *got[1] != "0.5" || got[2] != nil || *got[3] != `\xff` || !strings.Contains(r.Findings[1].Says, `a "b, z`) {
					t.Errorf("%+v %+v", r.Findings, got)
				}
			}
		})
	}
}
