package scenario

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheTableIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Table {
		if seen[s.Test] || seen[s.Text] || s.Text == "" || !strings.HasPrefix(s.Test, "Test") {
			t.Errorf("%+v: want a test's name and a text that no other has", s)
		}
		seen[s.Test], seen[s.Text] = true, true
		for cloud, reason := range s.Not {
			if !strings.Contains(strings.Join(Clouds, " "), cloud) || len(strings.Fields(reason)) < 3 {
				t.Errorf("%s: not on %q: %q; want a cloud and a reason", s.Test, cloud, reason)
			}
		}
		if len(s.Not) == len(Clouds) {
			t.Errorf("%s runs nowhere", s.Test)
		}
	}
}

// complete are the rows of a good run on each cloud.
func complete() []Row {
	var rows []Row
	for _, c := range Clouds {
		for _, s := range Table {
			r := Row{Cloud: c, Test: s.Test, Outcome: OK}
			if s.Not[c] != "" {
				r.Outcome, r.Reason = Absent, s.Not[c]
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	var b bytes.Buffer
	for _, r := range complete() {
		if err := Write(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := Read(strings.NewReader(b.String() + "\n"))
	if err != nil || len(rows) != len(complete()) || rows[0] != complete()[0] {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
}

func TestRowsThatNobodyCanHaveWrittenAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {"ok", "line 1"},
		"unknown field":      {`{"cloud":"ministack","test":"TestTwoTicksAtOnceAdmitOnce","outcome":"ok","by":"me"}`, "by"},
		"no cloud":           {`{"test":"TestTwoTicksAtOnceAdmitOnce","outcome":"ok"}`, `cloud is ""; want one of ministack, localstack`},
		"unknown cloud":      {`{"cloud":"azure","test":"TestTwoTicksAtOnceAdmitOnce","outcome":"ok"}`, `"azure"`},
		"unknown test":       {`{"cloud":"ministack","test":"TestNothing","outcome":"ok"}`, `"TestNothing"`},
		"unknown outcome":    {`{"cloud":"ministack","test":"TestTwoTicksAtOnceAdmitOnce","outcome":"fine"}`, `"fine"`},
		"wrong type":         {`{"cloud":7}`, "line 1"},
		"skipped in secret":  {`{"cloud":"ministack","test":"TestTwoTicksAtOnceAdmitOnce","outcome":"not on this cloud","reason":"no time"}`, "no time"},
		"ok where it is not": {`{"cloud":"localstack","test":"TestEachFunctionIsDeniedWhatItMustNotDo","outcome":"ok"}`, "no IAM policies"},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestThePrintedTableHidesNothing(t *testing.T) {
	var b bytes.Buffer
	if problems := Print(&b, Clouds, complete()); len(problems) != 0 {
		t.Errorf("a complete run has problems: %v", problems)
	}
	if text := b.String(); strings.Count(text, "\n") != len(Table)+1 || !strings.Contains(text, "not on this cloud: it enforces no IAM policies") || !strings.Contains(text, "two ticks at once admit once") {
		t.Errorf("%s", text)
	}
	rows := complete()
	rows[1].Outcome = Failed
	rows = append(rows, Row{Cloud: rows[1].Cloud, Test: rows[1].Test, Outcome: OK}) // a second run does not hide it
	rows = append(rows[:3], rows[4:]...)
	b.Reset()
	problems := Print(&b, Clouds, rows)
	if len(problems) != 2 || !strings.Contains(strings.Join(problems, "\n"), Table[1].Test+" failed on ministack") || !strings.Contains(strings.Join(problems, "\n"), Table[3].Test+" did not run on ministack") {
		t.Errorf("problems %v", problems)
	}
	if !strings.Contains(b.String(), "FAILED") || !strings.Contains(b.String(), "DID NOT RUN") {
		t.Errorf("%s", &b)
	}
}
