package snapshot_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"almanac/internal/calendar"
	"almanac/internal/failure"
	"almanac/internal/input"
	"almanac/internal/snapshot"
)

// FuzzSnapshotDefinition: a document is refused with named fields, or means what it says, and means the same when it comes back.
func FuzzSnapshotDefinition(f *testing.F) {
	whole, err := json.Marshal(trips())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	open := string(whole[:len(whole)-1])
	for _, members := range []string{
		`,"checks":{"not_null":["fare"],"types":{"fare":"decimal"},"drift_rows":{"previous_version":10},"drift_sums":{"fare":{"previous_month":0.5}}},"due_after":"48h","load_delay":"1h"}`,
		`,"waived":[{"month":"2013-02","reason":"x"},{"month":"2013-02","reason":"y"}],"watermark":"select '2013-02-01T00:00:00Z'"}`, `,"owner":"default"}`, `,"chunk_rows":0}`, `,"chunk_rows":-1,"single_rows":9e18}`,
		`,"mode":"both"}`, `,"start":"2013-13"}`, `,"KEY":"x"}`, `,"parameters":{"workspace":1}}`, `,"limits":{"timeout":"-1s","rows":-1}}`, `,"off":"yes"}`, `,"checks":{"drift_rows":{"previous_version":-1e400}}}`, `}x`,
	} {
		f.Add([]byte(open + members))
	}
	for _, doc := range []string{``, `null`, `[]`, `7`, `{}`, `{"start":5}`, `{"waived":[{"month":null}]}`, "\xff", `{"workspace":"EWR","owner":"default"}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := snapshot.ParseDefinition(doc)
		if err != nil {
			var ps input.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("%q is refused without a problem: %v", doc, err)
			}
			for _, p := range ps {
				if p.Field == "" || p.Want == "" || !utf8.ValidString(p.String()) {
					t.Fatalf("%q: a problem that helps nobody: %q", doc, p)
				}
			}
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(doc, &plain); err != nil {
			t.Fatalf("%q was accepted, and is no JSON: %v", doc, err)
		}
		for name, got := range map[string]string{"workspace": d.Workspace, "owner": d.Owner, "type": d.Type, "query": d.Query, "control": d.Control, "key": d.Key, "start": d.Start.String()} {
			want := any("")
			for k, v := range plain {
				if strings.EqualFold(k, name) && v != nil {
					want = v
				}
			}
			if got != want {
				t.Fatalf("%q: %s was read as %q, and is %q", doc, name, got, want)
			}
		}
		stored, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := snapshot.ParseDefinition(stored); err != nil || !reflect.DeepEqual(again, d) || again.Hash() != d.Hash() {
			t.Fatalf("%q comes back as %+v, was %+v: %v", doc, again, d, err)
		}
	})
}

// FuzzStepInput: whatever the workflow hands to a step, the step answers with a result or with one of the three errors that
// the workflow knows, bare; and it touches nothing of a run whose job it does not name.
func FuzzStepInput(f *testing.F) {
	a := newAttempts(f, trips())
	a.load(tripsTable, rowsFrom(5, 100))
	a.publish(newark)
	queued := a.claim(a.plan(snapshot.Period{Series: newark.Series, Month: calendar.Month{Year: 2013, Month: time.February}}).ID())
	for _, in := range []string{
		`{"step":"start","run":"` + queued.Run + `","job":1,"execution":"arn:x"}`, `{"step":"settle","run":"` + queued.Run + `","job":2,"error":{"Error":"Passing","Cause":"{\"errorMessage\":\"file_unavailable: x\"}"}}`,
		`{"step":"generate","run":"EWR/trips/2013-01/v1","job":1}`, `{"step":"publish","run":"EWR/trips/2013-01/v1","job":1}`, `{"step":"validate","run":"nobody","job":1}`, `{"step":"validate","run":"","job":1}`,
		`{"step":"","run":"x","job":1}`, `{"step":"START","run":"x","job":-1}`, `{"step":"settle","run":"x","job":1,"error":{"Error":"","Cause":""}}`, `{"step":"start","job":1e3}`, `{"step":"start","job":"1"}`, `{}`, `null`, `[]`, ``,
		`{"step":"start","run":"` + strings.Repeat("x", 3000) + `","job":1}`, `{"step":"start","run":"\u0000#@/","job":1}`, `{"step":"start","run":"a\ud800","job":9223372036854775807}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var in snapshot.StepInput
		if json.Unmarshal(text, &in) != nil {
			return // Lambda's runtime refuses it by itself
		}
		if in.Job == queued {
			return // that one is asked for
		}
		before := a.db.Units().Total().TableWrite
		result, err := a.steps.Run(bg, in)
		if err == nil && !result.Done {
			t.Fatalf("%s is to be called again", text)
		}
		var told *failure.Failure
		switch e := err.(type) {
		case nil:
		case snapshot.Refused:
			told = e.Failure
		default:
			t.Fatalf("%s: %T %v", text, err, err)
		}
		if told != nil && (told.Code != failure.MessageInvalid || !utf8.ValidString(told.Message) || told.Message == "") {
			t.Fatalf("%s: %v", text, told)
		}
		if written := a.db.Units().Total().TableWrite - before; written != 0 {
			t.Fatalf("%s wrote %v units", text, written)
		}
	})
}

// FuzzCaught: what a Catch hands on, whatever it is, becomes a failure with a code that is known.
func FuzzCaught(f *testing.F) {
	f.Add("Passing", `{"errorMessage":"file_unavailable: no bucket","errorType":"Passing"}`)
	f.Add("Refused", `{"errorMessage":"drift: rows differ"}`)
	f.Add("States.Timeout", "")
	f.Add("Lambda.Unknown", `{"errorMessage":7}`)
	f.Add("Passing", `{"errorMessage":"nothing: x"}`)
	f.Add("\x00", "\xff")
	f.Fuzz(func(t *testing.T, name, cause string) {
		text, err := json.Marshal(snapshot.Caught{Error: name, Cause: cause})
		var caught snapshot.Caught // as it comes: in JSON
		if err == nil {
			err = json.Unmarshal(text, &caught)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := caught.Failure()
		entry, known := failure.Lookup(got.Code)
		if !known || entry.Meaning == "" || !utf8.ValidString(got.Error()) {
			t.Fatalf("%q %q is %v", name, cause, got)
		}
		ours := name == snapshot.NamePassing || name == snapshot.NameRefused || name == snapshot.NameDisturbed
		if got.Code != failure.StepDied && (!ours || !strings.Contains(cause, string(got.Code))) {
			t.Fatalf("%q %q is taken for %s", name, cause, got.Code)
		}
	})
}
