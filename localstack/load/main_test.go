package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

func TestParse(t *testing.T) {
	if o, err := parse([]string{"-schedules", "5", "-only", "list"}); err != nil || o.schedules != 5 || o.only != "list" || o.recipients != 10000 {
		t.Errorf("%+v, %v", o, err)
	}
	for name, x := range map[string]struct{ args, want string }{
		"none":         {"-schedules 0", "-schedules is 0; want 1 to 100000"},
		"too many":     {"-recipients 10001", "-recipients is 10001; want 1 to 10000"},
		"negative":     {"-slow -1", "-slow is -1; want 1 to 1000"},
		"a sheet more": {"-rows 1048576", "-rows is 1048576; want 1 to 1048575"},
		"no number":    {"-slow x", `"x"`},
		"another part": {"-only all", `-only is "all"; want one of burst, list, slow, outage, rows`},
		"a stray word": {"burst", `argument "burst"`},
		"unknown flag": {"-fast", "-fast"},
	} {
		if _, err := parse(strings.Fields(x.args)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	for _, name := range []string{"ALMANAC_ENDPOINT", "ALMANAC_OUTPUTS", "ALMANAC_WEBHOOK_RECEIVER"} {
		t.Setenv(name, "")
	}
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "ALMANAC_ENDPOINT is empty; run this by scripts/load") {
		t.Errorf("%v", err)
	}
	t.Setenv("ALMANAC_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("ALMANAC_WEBHOOK_RECEIVER", "http://127.0.0.1:1")
	file := filepath.Join(t.TempDir(), "outputs.json")
	t.Setenv("ALMANAC_OUTPUTS", file)
	if _, err := open(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the file is not there", err)
	}
	for body, want := range map[string]string{"[": file, `{"Almanac-local":{"SchedulesTable":"t"}}`: ""} {
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := open(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && s.store.Table != "t" {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What receivers tell is taken for what it is: another part's mails are none of ours, a fault or a bad signature ends the
// load, and so does a receiver that answers something else.
func TestWhatReceiversTell(t *testing.T) {
	s := &site{http: http.DefaultClient, name: "load-x-"}
	var mails, posts any
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		body := posts
		if r.URL.Path == "/_mails" {
			body = mails
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	defer server.Close()
	s.receiver = server.URL
	mails = []mail{{To: []string{"a"}, Run: "load-x-1@o"}, {To: []string{"a"}, Run: "load-y-1@o"}}
	if list, err := s.mails(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	posts = []post{{ID: "load-x-1@o/webhook#f", Answer: 200}}
	if _, err := s.outside(t.Context(), 1, "p"); err == nil || !strings.Contains(err.Error(), "not signed well") {
		t.Errorf("%v", err)
	}
	mails = []mail{{To: []string{"a"}, Run: "load-x-1@o", Fault: "no boundary"}}
	if _, err := s.outside(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "no boundary") {
		t.Errorf("%v", err)
	}
	status = http.StatusTeapot
	if _, err := s.mails(t.Context()); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("%v", err)
	}
}

func TestInParallelDoesEachOnceAndTellsOfFailures(t *testing.T) {
	done := make([]int, 100)
	if err := inParallel(len(done), func(i int) error { done[i]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, n := range done {
		if n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	broken := errors.New("broken")
	if err := inParallel(10, func(i int) error {
		if i == 7 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A definition of a load is one that the product takes.
func TestDefinitionsAreValid(t *testing.T) {
	s := &site{name: "load-x-1-", receiver: "http://127.0.0.1:4568", due: time.Date(2013, 5, 6, 11, 0, 0, 0, time.UTC)}
	d := s.definition("0001", schedule.Recipient{Email: "a@example.com"}, s.hook("all"))
	if ps := d.Check(); len(ps) > 0 {
		t.Error(ps)
	}
}
