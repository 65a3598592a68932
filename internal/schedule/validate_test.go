package schedule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

// sample is a valid definition as a person writes it.
func sample() map[string]any {
	return map[string]any{
		"id": "delays", "workspace": "EWR", "name": "Delays", "owner": "ops@example.com", "source": "flights", "query": "SELECT 1",
		"recurrence": map[string]any{"cron": "0 9 * * 1-5", "zone": "America/New_York"},
		"file":       map[string]any{"kind": "csv"},
		"recipients": []any{map[string]any{"email": "a@example.com"}, map[string]any{"webhook": "https://example.com/hook", "secret": "ops"}},
	}
}

// with sets a dotted field; nil removes it.
func with(field string, v any) func(map[string]any) {
	return func(m map[string]any) {
		parts := strings.Split(field, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		if last := parts[len(parts)-1]; v == nil {
			delete(m, last)
		} else {
			m[last] = v
		}
	}
}

func recipient(pairs ...string) []any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return []any{m}
}

func TestDefinitionFields(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"email": fmt.Sprintf("r%d@example.com", i)})
		}
		return out
	}
	groups := func(n int) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"group": fmt.Sprintf("g%d", i)})
		}
		return out
	}
	parameters := map[string]any{}
	for i := range 51 {
		parameters[fmt.Sprintf("p%d", i)] = i
	}
	const dash = "small letters, digits and dashes"
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		want   []string // parts of the message: field, value, what would be right
	}{
		{"id absent", with("id", nil), []string{"id is missing", dash}},
		{"id wrong type", with("id", 7), []string{"id is a number", "want text"}},
		{"id too long", with("id", long(65)), []string{"id is", dash}},
		{"id hostile", with("id", "a@b#c\n"), []string{`id is "a@b#c\n"`, dash}},
		{"id in capitals", with("id", "Delays"), []string{`id is "Delays"`, dash}},
		{"id edged by a dash", with("id", "-x"), []string{`id is "-x"`, dash}},
		{"workspace absent", with("workspace", nil), []string{"workspace is missing", "EWR"}},
		{"workspace wrong type", with("workspace", []any{"EWR"}), []string{"workspace is an array", "want text"}},
		{"workspace hostile", with("workspace", "EWR#1"), []string{`workspace is "EWR#1"`, "EWR"}},
		{"workspace too long", with("workspace", long(41)), []string{"workspace is", "EWR"}},
		{"name absent", with("name", nil), []string{"name is missing", "120 characters"}},
		{"name wrong type", with("name", true), []string{"name is a bool", "want text"}},
		{"name too long", with("name", long(121)), []string{"name is 121 characters", "at most 120"}},
		{"X4 name hostile", with("name", "a\r\nBcc: e@x.test"), []string{`name is "a\r\nBcc: e@x.test"`, "without line breaks"}},
		{"name blank", with("name", "   "), []string{`name is "   "`, "can be seen"}},
		{"X4 name turns the direction", with("name", "report\u202efdp.exe"), []string{`name is "report\u202efdp.exe"`, "direction of writing"}},
		{"X4 name isolates a direction", with("name", "a\u2066b\u2069"), []string{"name is", "direction of writing"}},
		{"X4 name with a mark of direction", with("name", "a\u200fb"), []string{"name is", "direction of writing"}},
		{"X4 name of two lines", with("name", "a\u2028b"), []string{"name is", "line breaks"}},
		{"name of no width", with("name", "\u200b\u200d\ufeff"), []string{"name is", "can be seen"}},
		{"name of fillers", with("name", "\u3164\u115f\uffa0\u2800\u00a0"), []string{"name is", "can be seen"}},
		{"name of an accent alone", with("name", "\u0301"), []string{"name is", "can be seen"}},
		{"owner unseen", with("owner", "\u00ad"), []string{"owner is", "can be seen"}},
		{"subject blank", with("mail.subject", " "), []string{`mail.subject is " "`, "can be seen"}},
		{"X4 subject turns the direction", with("mail.subject", "\u202a\u202d"), []string{"mail.subject is", "direction of writing"}},
		{"owner absent", with("owner", nil), []string{"owner is missing"}},
		{"owner wrong type", with("owner", 1), []string{"owner is a number", "want text"}},
		{"owner too long", with("owner", long(121)), []string{"owner is 121 characters"}},
		{"owner hostile", with("owner", "a\x00b"), []string{`owner is "a\x00b"`, "control characters"}},
		{"source absent", with("source", nil), []string{"source is missing", "flights"}},
		{"source wrong type", with("source", map[string]any{}), []string{"source is an object", "want text"}},
		{"source hostile", with("source", "../flights"), []string{`source is "../flights"`, "name of a source"}},
		{"query absent", with("query", nil), []string{"query is missing", "only reads"}},
		{"query wrong type", with("query", []any{}), []string{"query is an array", "want text"}},
		{"query blank", with("query", " \n"), []string{`query is " \n"`, "only reads"}},
		{"query too long", with("query", long(20_001)), []string{"query is 20001 bytes", "at most 20000"}},
		{"query hostile", with("query", "SELECT '\x00'"), []string{"query is", "without NUL"}},
		{"parameters wrong type", with("parameters", []any{1}), []string{"parameters is an array", "want a mapping"}},
		{"parameters too many", with("parameters", parameters), []string{"parameters is 51", "at most 50"}},
		{"parameter reserved", with("parameters.scheduled_time", 1), []string{"parameters.scheduled_time is", "given by the product"}},
		{"parameter's name hostile", with("parameters", map[string]any{"a; DROP": 1}), []string{`parameters.a; DROP is "a; DROP"`, "small letters"}},
		{"parameter of a list", with("parameters", map[string]any{"x": []any{1}}), []string{"parameters.x is a []interface", "text, a number"}},
		{"recurrence absent", with("recurrence", nil), []string{"recurrence.cron is missing"}},
		{"recurrence wrong type", with("recurrence", "daily"), []string{"recurrence is a string", "want a mapping"}},
		{"cron of six fields", with("recurrence.cron", "0 0 9 * * *"), []string{`recurrence.cron is "0 0 9 * * *"`, "five fields"}},
		{"cron out of range", with("recurrence.cron", "61 * * * *"), []string{"recurrence.cron is", "61"}},
		{"cron never due", with("recurrence.cron", "0 0 30 2 *"), []string{`recurrence.cron is "0 0 30 2 *"`}},
		{"cron hostile", with("recurrence.cron", "* * * * *; rm"), []string{"recurrence.cron is"}},
		{"T6 zone by another name", with("recurrence.zone", "GMT Standard Time"), []string{`recurrence.zone is "GMT Standard Time"`}},
		{"T6 zone by a rule", with("recurrence.zone", "EST5"), []string{`recurrence.zone is "EST5"`}},
		{"zone hostile", with("recurrence.zone", "../../etc/passwd"), []string{"recurrence.zone is"}},
		{"gap unknown", with("recurrence.gap", "twice"), []string{`recurrence.gap is "twice`, "run-once or skip"}},
		{"gap contradicts the rule", func(m map[string]any) {
			m["recurrence"] = map[string]any{"cron": "30 2 * 3 SUN#2", "zone": "America/New_York", "gap": "skip"}
		}, []string{"recurrence.cron is", "never due"}},
		{"file wrong type", with("file", "csv"), []string{"file is a string", "want a mapping"}},
		{"file kind unknown", with("file.kind", "xls"), []string{`file.kind is "xls"`, `"csv"`, `"jsonl"`}},
		{"file compression unknown", with("file.compression", "zip"), []string{`file.compression is "zip"`, `"gzip" or "zstd"`}},
		{"file compression wrong type", with("file.compression", true), []string{"file.compression is a bool", "want text"}},
		{"file delimiter of JSON Lines", func(m map[string]any) { with("file.kind", "jsonl")(m); with("file.delimiter", ";")(m) }, []string{`file.delimiter is ";"`, `the kind is "jsonl"`, `"csv"`}},
		{"file bom of JSON Lines", func(m map[string]any) { with("file.kind", "jsonl")(m); with("file.bom", true)(m) }, []string{`file.bom is "true"`, `"csv"`}},
		{"file null of JSON Lines", func(m map[string]any) { with("file.kind", "jsonl")(m); with("file.null", "NULL")(m) }, []string{`file.null is "NULL"`, `"csv"`}},
		{"file kind takes no delimiter", func(m map[string]any) { with("file.kind", "xlsx")(m); with("file.delimiter", ";")(m) }, []string{`file.delimiter is ";"`, `the kind is "xlsx"`}},
		{"file kind takes no byte order mark", func(m map[string]any) { with("file.kind", "xlsx")(m); with("file.bom", true)(m) }, []string{`file.bom is "true"`, `the kind is "xlsx"`}},
		{"file kind takes no word for NULL", func(m map[string]any) { with("file.kind", "xlsx")(m); with("file.null", "NULL")(m) }, []string{`file.null is "NULL"`, `the kind is "xlsx"`}},
		{"file kind has no details", with("file.details", true), []string{`file.details is "true"`, `the kind is "csv"`}},
		{"file details wrong type", with("file.details", "yes"), []string{"details is a string", "true or false"}},
		{"file zone is nobody's to set", with("file.Origin", map[string]any{}), []string{"Origin"}},
		{"file delimiter", with("file.delimiter", "ab"), []string{`file.delimiter is "ab"`, "one of"}},
		{"file null a formula", with("file.null", "=1"), []string{`file.null is "=1"`, "formula"}},
		{"file null holds the delimiter", func(m map[string]any) { with("file.null", "n;a")(m); with("file.delimiter", ";")(m) }, []string{`file.null is "n;a"`, "delimiter"}},
		{"file bom wrong type", with("file.bom", "yes"), []string{"file.bom is a string", "true or false"}},
		{"file retention out of range", with("file.retention_days", 31), []string{"file.retention_days is 31", "[1 7 30 90 365]"}},
		{"file retention negative", with("file.retention_days", -1), []string{"file.retention_days is -1"}},
		{"file retention wrong type", with("file.retention_days", "30"), []string{"retention_days is a string", "want a number"}},
		{"link life no duration", with("file.link_life", "a week"), []string{`link_life is "a week"`, `"30s"`}},
		{"link life wrong type", with("file.link_life", 7), []string{"link_life is 7", `"30s"`}},
		{"link life negative", with("file.link_life", "-1h"), []string{"file.link_life is -1h", "at least 1s"}},
		{"link life below a second", with("file.link_life", "999ms"), []string{"file.link_life is 999ms", "at least 1s"}},
		{"link life beyond retention", func(m map[string]any) { with("file.link_life", "200h")(m); with("file.retention_days", 7)(m) }, []string{"file.link_life is 200h", "file's retention"}},
		{"empty unknown", with("empty", "skip"), []string{`empty is "skip"`, `"suppress" or "deliver"`}},
		{"empty wrong type", with("empty", true), []string{"empty is a bool", "want text"}},
		{"recipients absent", with("recipients", nil), []string{"recipients is missing", "at least one"}},
		{"recipients wrong type", with("recipients", "a@example.com"), []string{"recipients is a string", "want a list"}},
		{"recipients too many", with("recipients", many(10_001)), []string{"recipients is 10001", "at most 10000"}},
		{"recipient empty", with("recipients", recipient()), []string{"recipients[0] is missing", "an email, a webhook or a group"}},
		{"group beside an address", with("recipients", recipient("email", "a@x.com", "group", "managers")), []string{"recipients[0] is both a group and an address", "two recipients"}},
		{"group wrong type", with("recipients", []any{map[string]any{"group": []any{"managers"}}}), []string{"group is an array", "want text"}},
		{"group hostile", with("recipients", recipient("group", "a#b\n")), []string{`recipients[0].group is "a#b\n"`, "the id of a group"}},
		{"group too long", with("recipients", recipient("group", long(65))), []string{"recipients[0].group is", "the id of a group"}},
		{"group with a secret", with("recipients", recipient("group", "managers", "secret", "ops")), []string{`recipients[0].secret is "ops"`, "only webhooks"}},
		{"groups too many", with("recipients", groups(21)), []string{"recipients is 21 groups", "at most 20"}},
		{"recipient both", with("recipients", recipient("email", "a@x.com", "webhook", "https://x.com/", "secret", "ops")), []string{"recipients[0] is both", "two recipients"}},
		{"email no address", with("recipients", recipient("email", "nobody")), []string{`recipients[0].email is "nobody"`, "exactly one @"}},
		{"X4 email hostile", with("recipients", recipient("email", "a@x.com\r\nBcc: e@x.test")), []string{`recipients[0].email is`, "control character"}},
		{"email wrong type", with("recipients", []any{map[string]any{"email": 7}}), []string{"email is a number", "want text"}},
		{"email with a secret", with("recipients", recipient("email", "a@x.com", "secret", "ops")), []string{`recipients[0].secret is "ops"`, "only webhooks"}},
		{"webhook without a secret", with("recipients", recipient("webhook", "https://x.com/h")), []string{"recipients[0].secret is missing"}},
		{"webhook's secret hostile", with("recipients", recipient("webhook", "https://x.com/h", "secret", "../prod/key")), []string{`recipients[0].secret is "../prod/key"`}},
		{"webhook no URL", with("recipients", recipient("webhook", "ftp://x.com", "secret", "ops")), []string{`recipients[0].webhook is "ftp://x.com"`, "https"}},
		{"webhook with a password", with("recipients", recipient("webhook", "https://u:p@x.com/", "secret", "ops")), []string{"recipients[0].webhook is", "password"}},
		{"mail wrong type", with("mail", "hello"), []string{"mail is a string", "want a mapping"}},
		{"subject wrong type", with("mail.subject", 7), []string{"subject is a number", "want text"}},
		{"subject too long", with("mail.subject", long(121)), []string{"mail.subject is 121 characters"}},
		{"X4 subject hostile", with("mail.subject", "a\r\nBcc: e@x.test"), []string{"mail.subject is", "line breaks"}},
		{"introduction too long", with("mail.introduction", long(2001)), []string{"mail.introduction is 2001 characters"}},
		{"limits wrong type", with("limits", 5), []string{"limits is a number", "want a mapping"}},
		{"limit of rows negative", with("limits.rows", -1), []string{"limits.rows is -1", "more than 0"}},
		{"limit of rows out of range", with("limits.rows", 1_000_000_001), []string{"limits.rows is 1000000001", "at most 1000000000"}},
		{"limit of rows wrong type", with("limits.rows", "many"), []string{"rows is a string", "want a number"}},
		{"limit of bytes negative", with("limits.bytes", -5), []string{"limits.bytes is -5"}},
		{"limit of bytes out of range", with("limits.bytes", 5<<30+1), []string{"limits.bytes is 5368709121", "5 GiB"}},
		{"limit of time out of range", with("limits.timeout", "4h1s"), []string{`limits.timeout is "4h1s"`, "at most 4h"}},
		{"limit of time", with("limits.timeout", "soon"), []string{`limits.timeout is "soon"`, `"90s"`}},
		{"limit of time negative", with("limits.timeout", "-1s"), []string{`limits.timeout is "-1s"`}},
		{"pause after, wrong type", with("pause_after_failures", "10"), []string{"pause_after_failures is a string", "want a number"}},
		{"pause after, no whole number", with("pause_after_failures", 2.5), []string{"pause_after_failures is a number 2.5", "want a number"}},
		{"pause after 0", with("pause_after_failures", 0), []string{"pause_after_failures is 0", "1 to 1000", "-1 for never"}},
		{"pause after -2", with("pause_after_failures", -2), []string{"pause_after_failures is -2", "-1 for never"}},
		{"pause after, out of range", with("pause_after_failures", 1001), []string{"pause_after_failures is 1001", "leave it out for 10"}},
		{"notify wrong type", with("notify", "a@example.com"), []string{"notify is a string", "want a list"}},
		{"notify too many", with("notify", many(6)), []string{"notify is 6", "at most 5"}},
		{"notify empty entry", with("notify", recipient()), []string{"notify[0] is missing", "an email or a webhook"}},
		{"notify both", with("notify", recipient("email", "a@x.com", "webhook", "https://x.com/", "secret", "ops")), []string{"notify[0] is both", "two recipients"}},
		{"notify a group", with("notify", recipient("group", "managers")), []string{`notify[0].group is "managers"`, "only a schedule's recipients name groups"}},
		{"X4 notify hostile", with("notify", recipient("email", "a@x.com\r\nBcc: e@x.test")), []string{"notify[0].email is", "control character"}},
		{"notify's webhook without a secret", with("notify", recipient("webhook", "https://x.com/h")), []string{"notify[0].secret is missing"}},
		{"notify's webhook no URL", with("notify", recipient("webhook", "ftp://x.com", "secret", "ops")), []string{`notify[0].webhook is "ftp://x.com"`, "https"}},
		{"unknown field", with("recipient", "x"), []string{"recipient is not known", "did you mean recipients?"}},
		{"unknown field, nothing near", with("frobnicate_it_all", "x"), []string{"frobnicate_it_all is not known", "fields of a definition"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := sample()
			row.change(m)
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			_, err = schedule.ParseDefinition(raw)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if len(err.Error()) > 1500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestDefinitionDocument(t *testing.T) {
	for name, raw := range map[string]string{"empty": "", "null": "null", "a list": "[]", "half": `{"id":"x"`, "two": `{} {}`, "text": `"x"`, "long": `{"query":"` + strings.Repeat("x", 4_090_000) + `"}`} {
		if _, err := schedule.ParseDefinition([]byte(raw)); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v", name, err)
		}
	}
	raw, _ := json.Marshal(sample())
	d, err := schedule.ParseDefinition(raw)
	if err != nil {
		t.Fatal(err)
	}
	if d.Empty != schedule.DeliverEmpty || d.File.RetentionDays != 30 || d.Recurrence.Gap != "run-once" || d.File.LinkLife != 0 {
		t.Errorf("defaults: %+v", d)
	}
	again, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := schedule.ParseDefinition(again); err != nil || e.Hash() != d.Hash() {
		t.Errorf("a definition does not survive its own JSON: %v", err)
	}
	if d.FailureLimit() != 10 {
		t.Errorf("a definition that says nothing pauses after %d failures, want 10", d.FailureLimit())
	}
	for _, n := range []int{-1, 1, 1000} {
		m := sample()
		m["pause_after_failures"], m["notify"] = n, recipient("email", "boss@example.com")
		raw, _ := json.Marshal(m)
		got, err := schedule.ParseDefinition(raw)
		if err != nil || got.FailureLimit() != n || len(got.Notify) != 1 || got.Hash() == d.Hash() {
			t.Errorf("pause after %d: %v, %+v", n, err, got)
		}
	}
	m := sample()
	m["name"], m["owner"] = "", ""
	raw, _ = json.Marshal(m)
	if _, err := schedule.ParseDefinition(raw); err == nil || !strings.Contains(err.Error(), "name is missing") || !strings.Contains(err.Error(), "owner is missing") {
		t.Errorf("not every wrong field is named: %v", err)
	}
	full := sample()
	for i := 0; i < 48; i++ {
		with(fmt.Sprintf("parameters.p%d", i), i)(full)
	}
	with("file.link_life", "168h")(full)
	with("file.retention_days", 7)(full)
	with("parameters.flag", true)(full)
	with("parameters.none", "")(full)
	raw, _ = json.Marshal(full)
	if d, err = schedule.ParseDefinition(raw); err != nil || d.File.LinkLife.Std() != 168*time.Hour {
		t.Errorf("%v", err)
	}
}

func TestWorkspaceAndSourceFields(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		name string
		w    schedule.Workspace
		want []string
	}{
		{"id absent", schedule.Workspace{Name: "x", Zone: "UTC"}, []string{"id is missing", "such as EWR"}},
		{"id hostile", schedule.Workspace{ID: "a/b", Name: "x", Zone: "UTC"}, []string{`id is "a/b"`}},
		{"name absent", schedule.Workspace{ID: "a", Zone: "UTC"}, []string{"name is missing"}},
		{"name hostile", schedule.Workspace{ID: "a", Name: "x\n", Zone: "UTC"}, []string{`name is "x\n"`}},
		{"zone absent", schedule.Workspace{ID: "a", Name: "x"}, []string{"zone is missing", "America/New_York"}},
		{"T6 zone", schedule.Workspace{ID: "a", Name: "x", Zone: "EST5"}, []string{`zone is "EST5"`, "IANA"}},
		{"owner hostile", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Owner: "a#b"}, []string{`owner is "a#b"`, "such as default"}},
		{"owner too long", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Owner: strings.Repeat("o", 41)}, []string{"owner is", "at most 40"}},
		{"start no month", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Start: "2026-13"}, []string{`start is "2026-13"`, `such as "2026-02"`}},
		{"start a date", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Start: "2026-02-01"}, []string{`start is "2026-02-01"`}},
		{"removed no time", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Removed: "yesterday"}, []string{`removed is "yesterday"`, `"2026-02-28"`, "RFC 3339"}},
		{"removed no day", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Removed: "2026-02-30"}, []string{`removed is "2026-02-30"`}},
		{"removed without an offset", schedule.Workspace{ID: "a", Name: "x", Zone: "UTC", Removed: "2026-02-28T12:00:00"}, []string{"removed is"}},
	} {
		err := w.editor.PutWorkspace(ctx, row.w, "ann")
		mentions(t, "workspace "+row.name, err, row.want)
	}
	for removed, want := range map[string]string{"": "0001-01-01T00:00:00Z", "2026-03-08": "2026-03-08T05:00:00Z", "2026-03-08T12:00:00+01:00": "2026-03-08T11:00:00Z"} {
		ws := schedule.Workspace{ID: "a", Name: "x", Zone: "America/New_York", Owner: "airports", Start: "2013-01", Removed: removed}
		if at, err := ws.RemovedAt(); len(ws.Check()) > 0 || err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("removed %q is %s, %v, %v; want %s", removed, at, err, ws.Check(), want)
		}
	}
	w.must(w.editor.PutWorkspace(ctx, schedule.Workspace{ID: "LGA", Name: "LaGuardia", Zone: "America/New_York"}, "ann"))
}

func mentions(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: it was taken", name)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not say %q", name, err, part)
		}
	}
}

func TestParseTiming(t *testing.T) {
	whole := func() map[string]any {
		raw, err := json.Marshal(schedule.DefaultTiming())
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	parse := func(m map[string]any) error {
		raw, _ := json.Marshal(m)
		_, err := schedule.ParseTiming(string(raw))
		return err
	}
	if raw, _ := json.Marshal(whole()); true {
		if got, err := schedule.ParseTiming(string(raw)); err != nil || got != schedule.DefaultTiming() {
			t.Fatalf("%+v %v", got, err)
		}
	}
	for field, v := range whole() {
		_, number := v.(float64)
		absent, negative, wrong, hostile := whole(), whole(), whole(), whole()
		delete(absent, field)
		negative[field], wrong[field], hostile[field] = "-1s", 7, "5m; DROP"
		if number {
			negative[field], wrong[field], hostile[field] = -1, "7", "1e9"
		}
		mentions(t, field+" absent", parse(absent), []string{"TIMING", field, "more than 0"})
		mentions(t, field+" negative", parse(negative), []string{"TIMING", field, "more than 0"})
		want, is := "want a duration", "7"
		if number {
			want, is = "want a number", "a string"
		}
		mentions(t, field+" wrong type", parse(wrong), []string{"TIMING", field + " is " + is, want})
		mentions(t, field+" hostile", parse(hostile), []string{"TIMING", field + " is ", want})
	}
	m := whole()
	m["backoff_max"] = "13h"
	mentions(t, "beyond SQS", parse(m), []string{"backoff_max is 13h", "12h"})
	m = whole()
	m["reserve"], m["send_timeout"] = "5s", "10s"
	mentions(t, "contradictory pair", parse(m), []string{"reserve is 5s", "send_timeout 10s"})
	m = whole()
	m["speed"] = 1
	mentions(t, "unknown field", parse(m), []string{"TIMING", "speed"})
	for name, text := range map[string]string{"empty": "", "no JSON": "fast", "a list": "[]", "something follows": "{} {}"} {
		if _, err := schedule.ParseTiming(text); err == nil || !strings.HasPrefix(err.Error(), "TIMING") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBoundsAreWithin: what stands at a bound is taken, and so is text of any script.
func TestBoundsAreWithin(t *testing.T) {
	m := sample()
	with("limits", map[string]any{"rows": schedule.MaxRows, "bytes": schedule.MaxBytes, "timeout": "4h"})(m)
	with("file.link_life", "1s")(m)
	for _, name := range []string{"Délais", "遅延便", "رحلات متأخرة", "👩‍✈️ late", "e\u0301", "—"} {
		with("name", name)(m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := schedule.ParseDefinition(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
