package command

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata, the server's address taken out.
func (s *stage) golden(name, got string) {
	s.t.Helper()
	stack, err := s.program.folder.Stack()
	if err != nil {
		s.t.Fatal(err)
	}
	got = strings.ReplaceAll(got, stack.API, "http://API")
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("%s differs; run go test ./scripts/almanac/command -update and look at the difference. Got:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestApplyShowsThePlanAsksAndApplies(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/00-base.yaml", configuration)
	s.write("demo/delays.yaml", delays)

	s.program.In = strings.NewReader("n\n")
	out, _ := s.run(Refused, "apply", "-f", s.path("demo"))
	has(t, out, "Apply? [y/N]", "Nothing was applied.")
	if list, _ := s.run(Done, "get", "workspaces"); strings.Contains(list, "EWR") {
		t.Fatalf("declined, and yet applied:\n%s", list)
	}

	s.program.In = strings.NewReader("yes\n")
	out, _ = s.run(Done, "apply", "-f", s.path("demo"))
	s.golden("create.txt", out)

	out, _ = s.run(Done, "apply", "-f", s.path("demo"))
	s.golden("unchanged.txt", out)

	s.write("demo/00-base.yaml", strings.Replace(configuration, "name: Newark", "name: Newark Liberty", 1))
	s.write("demo/delays.yaml", strings.Replace(strings.Replace(delays, "0 9 * * MON-FRI", "0 9 31 * *", 1), `delimiter: ";"`, `delimiter: ","`, 1))
	s.write("demo/other.yml", strings.Replace(strings.Replace(delays, "id: ewr-delays", "id: ewr-late", 1), "0 9 * * MON-FRI", "0 * * * *", 1))
	out, _ = s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.golden("edit.txt", out)
	out, _ = s.run(Done, "get", "workspaces")
	has(t, out, "Newark Liberty")
}

func TestApplyNeedsSomebodyToAsk(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration)
	_, err := s.run(Usage, "apply", "-f", s.path("demo"))
	has(t, err, "--yes")
}

// TestEachWrongFieldIsShownWithFileAndLine: what the reader, the command line and the API find wrong looks alike, and
// nothing is applied.
func TestEachWrongFieldIsShownWithFileAndLine(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(delays, old) {
			t.Fatalf("%q", old)
		}
		return strings.Replace(delays, old, new, 1)
	}
	for _, x := range []struct{ name, text, want string }{
		{"no YAML", "a: [1", "all.yaml:1:"},
		{"a tab", "kind: workspace\n\tid: x\n", "all.yaml:2:"},
		{"no mapping", "- 1\n", "all.yaml:1: a document is a mapping"},
		{"kind absent", "id: x\n", "kind is null; want owner, workspace, source, group, schedule or snapshot"},
		{"kind unknown", "id: x\nkind: report\n", "all.yaml:2: kind is \"report\""},
		{"name absent", "kind: source\nengine: sqlite\n", "name of the source is null"},
		{"name wrong type", "kind: workspace\nid: 7\n", "all.yaml:2: id of the workspace is 7"},
		{"field twice", "kind: workspace\nid: A\nzone: UTC\nzone: UTC\n", "all.yaml:4: field zone is written twice"},
		{"merge", "kind: workspace\nid: A\n<<: {zone: UTC}\n", "all.yaml:3:"},
		{"described twice", configuration + "---\nkind: workspace\nid: EWR\nzone: UTC\n", "all.yaml:13: workspace EWR is described twice; the other one is at"},
		{"unknown field of a workspace", "kind: workspace\nid: A\nzoen: UTC\n", "all.yaml:3: zoen is not a field"},
		{"zone typed by hand", "kind: workspace\nid: A\nname: A\nzone: EST5\n", "all.yaml:4: zone is"},
		{"workspaces of the wrong type", "kind: source\nname: a\nengine: sqlite\nobject: x\nworkspaces: EWR\n", "all.yaml:5: workspaces is a string"},
		{"engine unknown", "kind: source\nname: a\nengine: oracle\nobject: x\nworkspaces: [\"*\"]\n", "all.yaml:3: engine is"},
		{"recipient no address", configuration + "---\n" + replace("email: bob@example.com", "email: bob"), "all.yaml:28: recipients[1]"},
		{"six cron fields", configuration + "---\n" + replace("0 9 * * MON-FRI", "0 0 9 * * MON"), "all.yaml:23: recurrence.cron"},
		{"zone unknown", configuration + "---\n" + replace("zone: America/New_York", "zone: America/Newark"), "all.yaml:24: recurrence.zone"},
		{"delimiter of JSON Lines", configuration + "---\n" + replace("kind: csv", "kind: jsonl"), "all.yaml:25: file.delimiter is \";\"; want absent"},
		{"compression unknown", configuration + "---\n" + replace(`delimiter: ";"`, "compression: zip"), "all.yaml:25: file.compression is \"zip\"; want \"gzip\" or \"zstd\""},
		{"compression of the wrong type", configuration + "---\n" + replace(`delimiter: ";"`, "compression: true"), "all.yaml:25: file.compression is a bool"},
		{"unknown field", configuration + "---\n" + replace("owner:", "onwer:"), "onwer"},
		{"query absent", configuration + "---\n" + replace("query: |\n  select * from flights\n  where time_hour < :scheduled_time\n", ""), "query is"},
		{"both channels", configuration + "---\n" + replace("- email: bob@example.com", "- {email: bob@example.com, webhook: \"https://x.example\"}"), "all.yaml:28: recipients[1]"},
		{"source unknown", configuration + "---\n" + replace("source: flights", "source: fligths"), "all.yaml:18: source is"},
		{"bomb", "kind: workspace\nid: A\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n", "too large"},
		{"binary", "kind: workspace\nid: A\nzone: !!binary aGk=\n", "all.yaml:3:"},
		{"empty", "# nothing\n", "holds no document"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := ready(t, "admin")
			s.write("demo/all.yaml", x.text)
			code := Usage
			if x.name == "empty" {
				code = Broken
			}
			out, err := s.run(code, "apply", "-f", s.path("demo"), "--yes")
			has(t, err, x.want)
			if strings.Contains(out, "created") {
				t.Errorf("something was applied:\n%s", out)
			}
		})
	}
}

// TestEditIsRefusedWhenAnotherCameBetween: the plan that was seen is the plan that is applied.
func TestEditIsRefusedWhenAnotherCameBetween(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+delays)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.write("demo/all.yaml", configuration+"---\n"+strings.Replace(delays, "Delayed departures", "Mine", 1))
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "PUT" {
			return false
		}
		s.before = nil
		v, err := s.product.Store.Definition(context.Background(), "ewr-delays", 1)
		if err != nil {
			t.Error(err)
		}
		v.Name = "Theirs"
		if _, err := s.product.API.Editor.Apply(context.Background(), v.Definition, "eve", 0); err != nil {
			t.Error(err)
		}
		return false
	}
	_, err := s.run(Refused, "apply", "-f", s.path("demo"), "--yes")
	has(t, err, "412", "apply again", "version 2")
	out, _ := s.run(Done, "get", "schedules")
	has(t, out, "Theirs")
}

func TestAViewerMayPlanAndNotApply(t *testing.T) {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+delays)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	s.program.In = strings.NewReader("correct horse")
	s.run(Done, "login", "--user", "viewer", "--password-stdin")
	s.write("demo/all.yaml", configuration+"---\n"+strings.Replace(delays, "Delayed departures", "Mine", 1))
	out, err := s.run(Refused, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, `name: "Delayed departures" → "Mine"`)
	has(t, err, "403", "ask an administrator for the group admin")
}

func TestManySchedulesArePlannedInParts(t *testing.T) {
	s := ready(t, "admin")
	var b strings.Builder
	b.WriteString(configuration)
	for i := range 103 {
		id := "s-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		b.WriteString("---\n" + strings.Replace(delays, "id: ewr-delays", "id: "+id, 1))
	}
	s.write("demo/all.yaml", b.String())
	out, _ := s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "105 to create")
	out, _ = s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	has(t, out, "0 to create, 0 to edit, 105 unchanged")
	out, _ = s.run(Done, "get", "schedules")
	if n := strings.Count(out, "Delayed departures"); n != 103 {
		t.Fatalf("%d schedules listed", n)
	}
}
