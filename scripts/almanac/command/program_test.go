package command

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/failure"
)

func applied(t *testing.T, groups string) *stage {
	s := ready(t, "admin")
	s.write("demo/all.yaml", configuration+"---\n"+delays)
	s.run(Done, "apply", "-f", s.path("demo"), "--yes")
	if groups != "admin" {
		s.program.In = strings.NewReader("correct horse")
		s.run(Done, "login", "--user", groups, "--password-stdin")
	}
	return s
}

func TestHelpForEach(t *testing.T) {
	s := deploy(t)
	out, _ := s.run(Done, "help")
	has(t, out, "Exit codes: 0 done; 1 refused", "ALMANAC_CONFIG")
	for _, c := range commands() {
		has(t, out, c.name, c.summary)
		one, _ := s.run(Done, c.name, "--help")
		has(t, one, "almanac "+c.name, c.help, "-config")
	}
	if again, _ := s.run(Done); again != out {
		t.Errorf("no command at all shows something else")
	}
}

func TestWrongCommandsSayWhatIsRight(t *testing.T) {
	s := ready(t, "admin")
	for _, x := range []struct{ args, want string }{
		{"fly", `no command "fly"`},
		{"get", "usage: almanac get"},
		{"get planes", `no "planes"`},
		{"get runs", "usage: almanac get"},
		{"get runs a/b", "is no schedule"},
		{"get schedules -o yaml", `-o is "yaml"; want table or json`},
		{"show", "usage: almanac show"},
		{"show a b", "usage: almanac show"},
		{"pause x", "--reason is missing"},
		{"delete x --reason ", "--reason"},
		{"apply", "apply -f FOLDER"},
		{"apply -f /no/such/folder", "no such file"},
		{"clock set", "clock get | set TIME"},
		{"clock set yesterday", "want a time such as"},
		{"clock get now", "clock get | set TIME"},
		{"login --user x", "belong together"},
		{"login --user x --password-stdin", "no password"},
		{"configure", "--outputs FILE"},
		{"run-now x --version one", "invalid value"},
		{"tail x --fast", "flag provided but not defined"},
	} {
		_, err := s.run(Usage, strings.Split(x.args, " ")...)
		has(t, err, x.want)
	}
}

func TestConfigureReadsTheOutputs(t *testing.T) {
	for _, x := range []struct{ name, outputs, stage, want string }{
		{"no JSON", "x", "", "no JSON"},
		{"no stack", `{"Other":{}}`, "", "no stack Almanac-"},
		{"two stacks", `{"Almanac-a":{},"Almanac-b":{}}`, "", "say which with --stage"},
		{"no such stage", `{"Almanac-a":{}}`, "c", "no stack Almanac-c"},
		{"no address", `{"Almanac-a":{"SignInUrl":"https://x.example","UserPoolClientId":"c"}}`, "", "ApiUrl"},
		{"in the clear", `{"Almanac-a":{"ApiUrl":"http://api.example","SignInUrl":"https://x.example","UserPoolClientId":"c"}}`, "", "https"},
		{"no client", `{"Almanac-a":{"ApiUrl":"https://api.example","SignInUrl":"https://x.example"}}`, "", "neither an output UserPoolClientId nor an output Audience"},
		{"client of commas", `{"Almanac-a":{"ApiUrl":"https://api.example","SignInUrl":"https://x.example","Audience":","}}`, "", "whom would tokens be for"},
		{"wrong type", `{"Almanac-a":{"ApiUrl":7}}`, "", "no JSON object of stacks"},
		{"sign-in elsewhere in the clear", `{"Almanac-a":{"ApiUrl":"https://api.example","SignInUrl":"http://x.example:4569","Audience":"c"}}`, "", "SignInUrl"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := deploy(t)
			s.write("o.json", x.outputs)
			_, err := s.run(Usage, "configure", "--outputs", s.path("o.json"), "--stage", x.stage)
			has(t, err, x.want)
		})
	}
	s := deploy(t)
	s.write("o.json", `{"Almanac-dev":{"ApiUrl":"https://api.example/","SignInUrl":"https://d.auth.eu-west-1.amazoncognito.com","UserPoolId":"eu-west-1_abc","UserPoolClientId":"c"},"Almanac-production":{}}`)
	s.run(Done, "configure", "--outputs", s.path("o.json"), "--stage", "dev", "--config", s.path("elsewhere"))
	stack, err := s.program.folder.Stack()
	if err != nil || stack.API != "https://api.example" || stack.Cognito != "https://cognito-idp.eu-west-1.amazonaws.com" {
		t.Fatalf("%+v %v", stack, err)
	}
}

func TestNothingWorksBeforeConfigureAndLogin(t *testing.T) {
	s := deploy(t)
	_, err := s.run(Usage, "get", "schedules")
	has(t, err, "almanac configure")
	s.run(Done, "configure", "--outputs", s.path("outputs.json"))
	_, err = s.run(NotSignedIn, "get", "schedules")
	has(t, err, "almanac login")
}

func TestLoginByPassword(t *testing.T) {
	s := ready(t, "admin")
	info, err := os.Stat(filepath.Join(s.dir, "config", "tokens.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v: tokens are for their owner only", info.Mode(), err)
	}
	s.program.In = strings.NewReader("wrong\n")
	_, text := s.run(NotSignedIn, "login", "--user", "admin", "--password-stdin")
	has(t, text, "Incorrect username or password.")
	s.program.In = strings.NewReader("correct horse\n")
	_, text = s.run(NotSignedIn, "login", "--user", "new", "--password-stdin")
	has(t, text, "NEW_PASSWORD_REQUIRED", "browser")
}

// TestLoginAtAnIssuerThatIsNoUserPool is the local cloud without user pools: its function URL, its issuer's token endpoint.
func TestLoginAtAnIssuerThatIsNoUserPool(t *testing.T) {
	s := deploy(t)
	b, err := os.ReadFile(s.path("outputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var outputs map[string]map[string]string
	if err := json.Unmarshal(b, &outputs); err != nil {
		t.Fatal(err)
	}
	out := outputs["Almanac-local"]
	out["ApiUrl"] = strings.Replace(out["ApiUrl"], "abc123.execute-api", "abc123.lambda-url.us-east-1", 1)
	out["Audience"], out["Issuer"] = "client-1,client-2", out["SignInUrl"]
	for _, name := range []string{"UserPoolId", "UserPoolClientId", "UserPoolDomain"} {
		delete(out, name)
	}
	if b, err = json.Marshal(outputs); err != nil {
		t.Fatal(err)
	}
	s.write("outputs.json", string(b))
	s.run(Done, "configure", "--outputs", s.path("outputs.json"))
	s.program.In = strings.NewReader("wrong\n")
	_, text := s.run(NotSignedIn, "login", "--user", "admin", "--password-stdin")
	has(t, text, "sign-in of admin", "not granted")
	s.program.In = strings.NewReader("correct horse\n")
	s.run(Done, "login", "--user", "admin", "--password-stdin")
	s.run(Done, "get", "schedules")
	s.now = s.now.Add(2 * time.Hour) // renewed at the same endpoint
	s.run(Done, "get", "schedules")
}

// TestLoginInTheBrowser walks the code flow with PKCE: the page that is shown, its redirect to the loopback, the code
// against the token endpoint that checks the verifier.
func TestLoginInTheBrowser(t *testing.T) {
	s := deploy(t)
	s.run(Done, "configure", "--outputs", s.path("outputs.json"))
	answers := make(chan string, 1)
	s.program.Browse = func(address string) error {
		go func() {
			// Somebody else's answer comes first, and changes nothing.
			stray, err := http.Get("http://localhost:8765/callback?code=theirs&state=theirs")
			if err == nil {
				stray.Body.Close()
			}
			r, err := http.Get(address)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer r.Body.Close()
			b, _ := io.ReadAll(r.Body)
			answers <- stray.Status + " " + r.Status + " " + string(b)
		}()
		return nil
	}
	_, shown := s.run(Done, "login")
	has(t, shown, "/oauth2/authorize?", "code_challenge=", "code_challenge_method=S256")
	has(t, <-answers, "400 Bad Request 200 OK", "back to the terminal")
	s.run(Done, "get", "schedules")

	s.pool.mu.Lock()
	s.pool.refused = "access_denied"
	s.pool.mu.Unlock()
	s.program.Browse = func(address string) error {
		go func() {
			if r, err := http.Get(address); err == nil {
				r.Body.Close()
			}
		}()
		return nil
	}
	_, text := s.run(NotSignedIn, "login")
	has(t, text, "access_denied")
}

func TestLoginEndsWithItsContext(t *testing.T) {
	s := deploy(t)
	s.run(Done, "configure", "--outputs", s.path("outputs.json"))
	ctx, cancel := context.WithCancel(context.Background())
	s.program.Browse = func(string) error { cancel(); return nil }
	if code := s.program.Main(ctx, []string{"login"}); code != NotSignedIn {
		t.Fatalf("exit %d\n%s", code, &s.err)
	}
}

func TestTokensAreRenewedAsLongAsTheSignInLasts(t *testing.T) {
	s := ready(t, "admin")
	before, err := s.program.folder.Tokens()
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(59*time.Minute + 30*time.Second)
	s.run(Done, "get", "schedules")
	after, err := s.program.folder.Tokens()
	if err != nil || after.Access == before.Access || after.Refresh != before.Refresh || !after.Expires.After(before.Expires) {
		t.Fatalf("%+v → %+v %v", before, after, err)
	}
	s.pool.mu.Lock()
	clear(s.pool.refresh)
	clear(s.pool.access)
	s.pool.mu.Unlock()
	_, text := s.run(NotSignedIn, "get", "schedules")
	has(t, text, "almanac login")
	s.now = s.now.Add(2 * time.Hour)
	_, text = s.run(NotSignedIn, "get", "schedules")
	has(t, text, "the earlier sign-in has ended")
}

func TestTokensOfOneStackAreNotSentToAnother(t *testing.T) {
	s := ready(t, "admin")
	s.write("o.json", `{"Almanac-other":{"ApiUrl":"https://api.example","SignInUrl":"https://x.example","UserPoolId":"eu-west-1_x","UserPoolClientId":"c"}}`)
	s.run(Done, "configure", "--outputs", s.path("o.json"))
	s.run(NotSignedIn, "get", "schedules")
}

func TestRunNowAndFollow(t *testing.T) {
	s := applied(t, "operator")
	s.onWait = func() {
		if s.waits == 2 {
			s.product.Deliver(t, s.product.Offered()[0])
		}
	}
	out, _ := s.run(Done, "run-now", "ewr-delays", "--wait", "--key", "monday")
	has(t, out, "queued  (key monday)", "queued\n", "succeeded\n")
	id := strings.Fields(out)[0]
	if n := strings.Count(out, ": succeeded"); n != 1 {
		t.Errorf("told %d times:\n%s", n, out)
	}
	out, _ = s.run(Done, "run-now", "ewr-delays", "--key", "monday")
	has(t, out, id, "made before by the same key")
	out, _ = s.run(Done, "tail", id)
	has(t, out, "succeeded")

	out, _ = s.run(Done, "show", id)
	has(t, out, "Run", "delays.csv, 3 rows, 120 bytes", "5ea1", "ada@example.com", "bob@example.com", "submitted", "Timeline")
	out, _ = s.run(Done, "get", "runs", "ewr-delays")
	has(t, out, "RUN", id, "succeeded")
	out, _ = s.run(Done, "get", "runs", "ewr-delays", "-o", "json")
	var runs []api.RunView
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 1 || runs[0].ID != id {
		t.Fatalf("%v %s", err, out)
	}
	out, _ = s.run(Done, "show", id, "-o", "json")
	var run api.RunDetail
	if err := json.Unmarshal([]byte(out), &run); err != nil || run.File.Rows != 3 {
		t.Fatalf("%v %s", err, out)
	}
}

func TestTailOfAFailedRunExitsOne(t *testing.T) {
	s := applied(t, "operator")
	out, _ := s.run(Done, "run-now", "ewr-delays")
	id := strings.Fields(out)[0]
	s.onWait = func() { s.product.Fail(t, id, failure.QueryInvalid, "no such table: flihgts") }
	out, _ = s.run(Refused, "tail", id)
	has(t, out, "failed", "query_invalid: no such table: flihgts", "Remedy: correct the query")
	out, _ = s.run(Done, "show", id)
	has(t, out, "the source does not understand the query")
}

func TestPauseResumeDelete(t *testing.T) {
	s := applied(t, "admin")
	out, _ := s.run(Done, "pause", "ewr-delays", "--reason", "public holiday")
	has(t, out, "ewr-delays: paused")
	out, _ = s.run(Done, "show", "ewr-delays")
	has(t, out, "public holiday, by ada", "(nothing is due)", "0 9 * * MON-FRI  America/New_York", "where time_hour < :scheduled_time")
	_, err := s.run(Refused, "pause", "ewr-delays", "--reason", "again")
	has(t, err, "409", "now: ewr-delays is paused, version 1")
	out, _ = s.run(Done, "resume", "--reason", "over", "ewr-delays")
	has(t, out, "resumed, next due 2013-07-01T13:00:00Z")
	out, _ = s.run(Done, "show", "ewr-delays")
	has(t, out, "2013-07-01T09:00:00-04:00")
	out, _ = s.run(Done, "get", "schedules", "--workspace", "EWR")
	has(t, out, "ewr-delays", "active")
	out, _ = s.run(Done, "get", "schedules", "--workspace", "JFK")
	has(t, out, "(none)")
	s.run(Done, "delete", "ewr-delays", "--reason", "not needed")
	out, _ = s.run(Done, "get", "schedules")
	has(t, out, "(none)")
	_, err = s.run(Refused, "show", "no-such")
	has(t, err, "404")
}

func TestClock(t *testing.T) {
	s := applied(t, "admin")
	out, _ := s.run(Done, "clock", "get")
	has(t, out, "2013-07-01T12:00:00Z (frozen)")
	out, _ = s.run(Done, "clock", "set", "2013-08-01T00:00:00+02:00")
	has(t, out, "2013-07-31T22:00:00Z\n")
	s.product.API.Clock = nil
	h := s.product.API.Handler()
	s.before = func(w http.ResponseWriter, r *http.Request) bool { h.ServeHTTP(w, r); return true }
	_, err := s.run(Refused, "clock", "get")
	has(t, err, "404")
}

func TestReadsWaitAndTryAgainWhenAsked(t *testing.T) {
	s := applied(t, "viewer")
	n := 0
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if n++; n > 2 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(503)
		io.WriteString(w, `{"title":"Service Unavailable","status":503,"detail":"busy","request_id":"r-1"}`)
		return true
	}
	s.run(Done, "get", "schedules")
	n = -100
	_, err := s.run(Broken, "get", "schedules")
	has(t, err, "busy", "503", "request r-1")
}

func TestAnswersThatAreNotTheAPIs(t *testing.T) {
	s := applied(t, "admin")
	for _, x := range []struct {
		status     int
		body, want string
		code       int
	}{
		{502, "<html>bad gateway</html>", "502", Broken},
		{200, "<html>", "not what this version understands", Broken},
		{401, `{"message":"Unauthorized"}`, "almanac login", NotSignedIn},
		{403, `{"message":"Forbidden"}`, "gateway refused", Refused},
		{404, "nothing", "404", Broken},
	} {
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(x.status)
			io.WriteString(w, x.body)
			return true
		}
		_, err := s.run(x.code, "get", "schedules")
		has(t, err, x.want)
	}
	s.before = nil
	s.server.Close()
	_, err := s.run(Broken, "get", "schedules")
	has(t, err, "does not answer")
	_, err = s.run(Broken, "run-now", "ewr-delays", "--key", "k9")
	has(t, err, "repeat with --key k9")
}

func TestTextOfOthersDoesNotSteerTheTerminal(t *testing.T) {
	s := ready(t, "admin")
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		json.NewEncoder(w).Encode(map[string]any{"items": []map[string]any{{"id": "a", "name": "x\x1b[2Jy\r\nz\u009b"}}})
		return true
	}
	out, _ := s.run(Done, "get", "schedules")
	if strings.ContainsAny(out, "\x1b\r\u009b") || strings.Count(out, "\n") != 2 {
		t.Fatalf("%q", out)
	}
}
