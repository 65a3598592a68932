package schedule_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/failure"
	"almanac/internal/schedule"
	"almanac/internal/schema"
)

// wantProblems fails unless an error names each field that is wrong, and what would be right.
func wantProblems(t *testing.T, doc []byte, err error) {
	t.Helper()
	var ps schedule.Problems
	if !errors.As(err, &ps) || len(ps) == 0 {
		t.Fatalf("%q is refused without a problem: %v", doc, err)
	}
	for _, p := range ps {
		if p.Field == "" || p.Want == "" || !utf8.ValidString(p.String()) {
			t.Fatalf("%q: a problem that helps nobody: %q", doc, p)
		}
	}
}

// read is an independent reading of a document: member by member, whatever the case of the names.
func read(t *testing.T, doc []byte, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%q was accepted, and is no JSON: %v", doc, err)
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = nil
		for k, inner := range m {
			if strings.EqualFold(k, name) {
				v = inner
			}
		}
	}
	if v == nil {
		return ""
	}
	return v
}

func sampleJSON(t testing.TB, changes ...func(map[string]any)) []byte {
	t.Helper()
	d := sample()
	for _, change := range changes {
		change(d)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzDefinition: a document is either refused with named fields, or means what it says, and means the same when it comes
// back from the store.
func FuzzDefinition(f *testing.F) {
	whole := sampleJSON(f)
	open := string(whole[:len(whole)-1])
	f.Add(whole)
	f.Add(sampleJSON(f, with("recurrence", map[string]any{"every": "90m", "start": "2040-01-01T00:00"})))
	f.Add(sampleJSON(f, with("recurrence.jitter", "5m"), with("catch_up", "all"), with("overlap", "skip"), with("empty", "suppress")))
	for _, members := range []string{
		`}`, `,"QUERY":"SELECT 2"}`, `,"unknown":1}`, `}{}`, `,"parameters":{"n":9007199254740993,"x":1e300,"z":null,"t":"\ud800"}}`, `,"pause_after_failures":0}`,
		`,"notify":[{"email":"a@example.com"},{"webhook":"https://h.example/x","secret":"ops"}]}`, `,"mail":{"subject":"a\r\nBcc: x@example.com","introduction":"\u202e"}}`,
		`,"limits":{"rows":-1,"bytes":9e99,"timeout":"x"}}`, `,"catch_up_window":"36h","catch_up":"all"}`, `,"recipients":[{"email":"a@b","webhook":"x","group":"g"}]}`,
	} {
		f.Add([]byte(open + members))
	}
	for _, doc := range []string{``, `null`, `[]`, `{}`, `{"recurrence":{"cron":5}}`, `{"file":{"kind":"csv","delimiter":"\u0000","null":"=1"}}`, "\xff"} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := schedule.ParseDefinition(doc)
		if err != nil {
			wantProblems(t, doc, err)
			return
		}
		for name, got := range map[string]string{"id": d.ID, "workspace": d.Workspace, "name": d.Name, "owner": d.Owner, "source": d.Source, "query": d.Query} {
			if want := read(t, doc, name); got != want {
				t.Fatalf("%q: %s was read as %q, and is %q", doc, name, got, want)
			}
		}
		if want := read(t, doc, "recurrence", "cron"); d.Recurrence.Cron != want {
			t.Fatalf("%q: cron was read as %q", doc, d.Recurrence.Cron)
		}
		if list, _ := read(t, doc, "recipients").([]any); len(list) != len(d.Recipients) {
			t.Fatalf("%q: %d recipients were read", doc, len(d.Recipients))
		}
		stored, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := schedule.ParseDefinition(stored)
		if err != nil || !reflect.DeepEqual(again, d) || again.Hash() != d.Hash() {
			t.Fatalf("%q comes back as %+v, was %+v: %v", doc, again, d, err)
		}
	})
}

// FuzzGroup: the same of groups.
func FuzzGroup(f *testing.F) {
	for _, doc := range []string{
		`{"id":"duty","name":"Duty","workspaces":["*"],"recipients":[{"email":"a@example.com"},{"webhook":"https://h.example","secret":"ops"}]}`,
		`{"id":"duty","name":"Duty","workspaces":["EWR","EWR"],"recipients":[{"email":"a@example.com"},{"email":"A@example.com"}]}`,
		`{"id":"DUTY","name":"\u0000","workspaces":[],"recipients":[{"group":"other"}]}`, `{"id":"a","id":"b"}`, `{"recipients":{}}`, `{"workspaces":[7]}`, ``,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		g, err := schedule.ParseGroup(doc)
		if err != nil {
			wantProblems(t, doc, err)
			return
		}
		if read(t, doc, "id") != g.ID || read(t, doc, "name") != g.Name {
			t.Fatalf("%q was read as %+v", doc, g)
		}
		if slices.ContainsFunc(g.Recipients, func(r schedule.Recipient) bool { return r.Group != "" }) {
			t.Fatalf("%q: a group in a group", doc)
		}
		stored, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := schedule.ParseGroup(stored); err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%q comes back as %+v, was %+v: %v", doc, again, g, err)
		}
	})
}

// FuzzMessage: a message is refused for good, as message_invalid and with what would be right, or it names one thing, and
// the encoder spells the same.
func FuzzMessage(f *testing.F) {
	const run = "s@2040-03-05T12:30:00Z"
	for _, body := range []string{
		schedule.EncodeMessage(run), schedule.EncodeNotice(run + "#failed#email#00ff"), schedule.EncodeResend(run + "#email#00ff#w1"),
		`{"run":"s@x","notice":"s@x#failed#email#0"}`, `{"run":"s"}`, `{"run":"@"}`, `{"notice":"###"}`, `{"resend":"s@x#a#b"}`, `{"run":"s@x"}{"run":"t@y"}`,
		`{"run":"s@x","run":"t@y"}`, `{"RUN":"s@x"}`, `{"run":"s@\ud800"}`, `{"run":7}`, `{"run":null}`, `{}`, `[]`, ``, "\x00", "\xff",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := schedule.DecodeMessage(body)
		if err != nil {
			var wrong *failure.Failure
			if !errors.As(err, &wrong) || wrong.Code != failure.MessageInvalid || wrong.Passing() || !strings.Contains(err.Error(), "want") || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		named, again := 0, ""
		for _, x := range []struct{ name, id, spelled string }{{"run", m.Run, schedule.EncodeMessage(m.Run)}, {"notice", m.Notice, schedule.EncodeNotice(m.Notice)}, {"resend", m.Resend, schedule.EncodeResend(m.Resend)}} {
			if x.id != "" {
				named, again = named+1, x.spelled
			}
			if want := read(t, []byte(body), x.name); want != x.id {
				t.Fatalf("%q: %s was read as %q", body, x.name, x.id)
			}
		}
		if same, err := schedule.DecodeMessage(again); named != 1 || err != nil || same != m {
			t.Fatalf("%q names %d things, and is spelled %q, which reads as %+v: %v", body, named, again, same, err)
		}
	})
}

// FuzzLink: whatever comes as a token, it opens nothing but what that very link was made for; everything else is unknown,
// says nothing about anything, and writes nothing.
func FuzzLink(f *testing.F) {
	w := newWorld(f)
	run := w.admitted(w.definition("s", "a@example.com", "b@example.com", "hook"))
	w.drain()
	files, stops := map[string]bool{}, map[string]bool{} // by what the token holds
	for _, s := range w.subs(run) {
		for address, of := range map[string]map[string]bool{w.deliverer.Links.File(s): files, w.deliverer.Links.Unsubscribe(s): stops} {
			if address == "" {
				continue
			}
			token := address[strings.LastIndex(address, "/")+1:]
			raw, err := base64.RawURLEncoding.DecodeString(token)
			w.must(err)
			of[string(raw)] = true
			f.Add(token, false)
			f.Add(string(raw), true)
			f.Add(token[:len(token)-1], false)
			f.Add(strings.Replace(string(raw), "email", "webhook", 1), true)
			f.Add(string(raw[:len(raw)-22]), true)
		}
	}
	if len(files) != 3 || len(stops) != 2 {
		f.Fatalf("%d links to files, %d to unsubscribe", len(files), len(stops))
	}
	for _, raw := range []string{"", "\n\n\n", "s\nemail\nx\ny", run + "\n\n\n", run + "\nemail\n" + strings.Repeat("x", 1100) + "\n", "\x00\n\xff\n\n", strings.Repeat("\n", 2000), "@\nemail\na\nb", "a@\nemail\na\nb",
		strings.Repeat("x", 990) + "@y\nemail\na\nb", "s@\xff\nemail\n#\nb"} {
		f.Add(raw, true)
	}
	f.Fuzz(func(t *testing.T, token string, encode bool) {
		if encode {
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		before := w.db.Units().Total().TableWrite
		_, err := w.links.Open(ctx, token)
		wantLink(t, token, err, files[string(raw)])
		u, err := w.links.Unsubscription(ctx, token)
		wantLink(t, token, err, stops[string(raw)])
		if err != nil && u != (schedule.Unsubscription{}) {
			t.Fatalf("%q is unknown, and tells %+v", token, u)
		}
		_, err = w.links.Unsubscribe(ctx, token)
		wantLink(t, token, err, stops[string(raw)])
		if written := w.db.Units().Total().TableWrite - before; written != 0 && !files[string(raw)] && !stops[string(raw)] {
			t.Fatalf("%q is unknown, and wrote %v units", token, written)
		}
	})
}

func wantLink(t *testing.T, token string, err error, known bool) {
	t.Helper()
	var gone *schedule.LinkGone
	switch {
	case known && err != nil:
		t.Fatalf("%q is a link, and does not open: %v", token, err)
	case !known && (!errors.As(err, &gone) || *gone != schedule.LinkGone{Why: "unknown"}):
		t.Fatalf("%q is no link: %v %+v", token, err, gone)
	}
}

// FuzzDelay: what people write as a duration is one that is exact, or refused; it comes back as it was.
func FuzzDelay(f *testing.F) {
	for _, s := range []string{`"30s"`, `"1h30m"`, `"-5m"`, `"0"`, `5`, `""`, `"1d"`, `"9999999h"`, `"1ns"`, `null`, `"٣s"`, "\"1s\x00\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d schedule.Duration
		if err := json.Unmarshal(text, &d); err != nil {
			return
		}
		var spelled string
		if json.Unmarshal(text, &spelled) == nil && spelled != "" {
			if want, err := time.ParseDuration(spelled); err != nil || want != d.Std() {
				t.Fatalf("%q was read as %s, and is %s %v", text, d.Std(), want, err)
			}
		}
		again, err := json.Marshal(d)
		var back schedule.Duration
		if err == nil {
			err = json.Unmarshal(again, &back)
		}
		if err != nil || back != d {
			t.Fatalf("%q is %s, is spelled %q and reads as %s: %v", text, d.Std(), again, back.Std(), err)
		}
	})
}

// FuzzIDs: what names a run, a notice, a resend or a delivery is taken apart into what it was put together from.
func FuzzIDs(f *testing.F) {
	f.Add("ewr-delays", "2040-03-05T12:30:00Z", "email", "00ff", "w1", 2)
	f.Add("a", "manual-x", "webhook", "0", "", 1)
	f.Add("", "@", "#", "/", "\x00", -1)
	f.Add("a@b", "c#d", "e/f", "g#h", "i/2", 1<<31)
	f.Fuzz(func(t *testing.T, id, occurrence, name, hash, wish string, n int) {
		run := schema.RunID(id, occurrence)
		if a, b, ok := schema.SplitRunID(run); ok && a+"@"+b != run || !ok && id != "" && id[0] != '@' && occurrence != "" {
			t.Fatalf("%q is taken apart into %q and %q (%v)", run, a, b, ok)
		}
		if strings.ContainsAny(id+occurrence+name+hash+wish, "@#/") || id == "" || occurrence == "" || name == "" || hash == "" {
			for _, text := range []string{run, fmt.Sprintf("%s#%s#%s#%s", run, name, hash, wish), fmt.Sprintf("%s/%s#%s/%d", run, name, hash, n)} {
				schema.SplitNoticeID(text)
				schema.SplitResendID(text)
				if r, c, h, k, ok := schema.SplitDeliveryKey(text); ok && text != fmt.Sprintf("%s/%s#%s", r, c, h) && text != fmt.Sprintf("%s/%s#%s/%d", r, c, h, k) {
					t.Fatalf("%q is taken apart into %q %q %q %d", text, r, c, h, k)
				}
			}
			return
		}
		if a, b, ok := schema.SplitRunID(run); !ok || a != id || b != occurrence {
			t.Fatalf("%q is taken apart into %q and %q (%v)", run, a, b, ok)
		}
		if r, c, h, x, ok := schema.SplitResendID(fmt.Sprintf("%s#%s#%s#%s", run, name, hash, wish)); wish != "" && (!ok || r != run || c != name || h != hash || x != wish) {
			t.Fatalf("a resend is taken apart into %q %q %q %q (%v)", r, c, h, x, ok)
		}
		if r, c, h, k, ok := schema.SplitDeliveryKey(fmt.Sprintf("%s/%s#%s/%d", run, name, hash, n)); ok != (n >= 2) || ok && (r != run || c != name || h != hash || k != n) {
			t.Fatalf("delivery %d is taken apart into %q %q %q %d (%v)", n, r, c, h, k, ok)
		}
	})
}
