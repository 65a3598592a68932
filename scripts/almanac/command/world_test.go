package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/scripts/almanac/client"
)

// pool is a user pool as far as the command line sees one: the sign-in page, the token endpoint and InitiateAuth, with
// the checks that a real one makes.
type pool struct {
	mu        sync.Mutex
	challenge map[string]string // by code
	access    map[string]string // groups by access token
	refresh   map[string]string // groups by refresh token
	count     int
	life      int // seconds
	refused   string
}

func newPool() *pool {
	return &pool{challenge: map[string]string{}, access: map[string]string{}, refresh: map[string]string{}, life: 3600}
}

func (o *pool) issue(groups string) map[string]any {
	o.count++
	a, r := fmt.Sprintf("access-%d", o.count), fmt.Sprintf("refresh-%d", o.count)
	o.access[a], o.refresh[r] = groups, groups
	return map[string]any{"access_token": a, "refresh_token": r, "expires_in": o.life, "token_type": "Bearer"}
}

func (o *pool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.URL.Path == "/oauth2/authorize":
		o.authorize(w, r)
	case r.URL.Path == "/oauth2/token":
		form, _ := url.ParseQuery(string(body))
		o.token(w, form)
	case r.Header.Get("X-Amz-Target") == "AWSCognitoIdentityProviderService.InitiateAuth":
		o.password(w, body)
	default:
		http.NotFound(w, r)
	}
}

// authorize is the sign-in page whose button has been pressed.
func (o *pool) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != "client-1" || q.Get("redirect_uri") != "http://localhost:8765/callback" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if o.refused != "" {
		back.Set("error", o.refused)
	} else {
		o.count++
		code := fmt.Sprintf("code-%d", o.count)
		o.challenge[code] = q.Get("code_challenge")
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (o *pool) token(w http.ResponseWriter, form url.Values) {
	w.Header().Set("Content-Type", "application/json")
	var out any
	switch form.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if c, ok := o.challenge[form.Get("code")]; ok && c == base64.RawURLEncoding.EncodeToString(sum[:]) && form.Get("client_id") == "client-1" && len(form.Get("code_verifier")) >= 43 {
			delete(o.challenge, form.Get("code")) // a code works once
			out = o.issue("admin")
		}
	case "password": // an issuer that is no user pool
		if form.Get("client_id") == "client-1" && form.Get("password") == "correct horse" {
			out = o.issue(form.Get("username"))
		}
	case "refresh_token":
		if groups, ok := o.refresh[form.Get("refresh_token")]; ok {
			t := o.issue(groups)
			delete(t, "refresh_token") // Cognito gives none on refresh
			out = t
		}
	}
	if out == nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"error": "invalid_grant", "error_description": "not granted"}
	}
	json.NewEncoder(w).Encode(out)
}

func (o *pool) password(w http.ResponseWriter, body []byte) {
	var in struct {
		AuthFlow, ClientId string
		AuthParameters     struct{ USERNAME, PASSWORD string }
	}
	json.Unmarshal(body, &in)
	if in.AuthFlow != "USER_PASSWORD_AUTH" || in.ClientId != "client-1" || in.AuthParameters.PASSWORD != "correct horse" {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"__type": "NotAuthorizedException", "message": "Incorrect username or password."})
		return
	}
	if in.AuthParameters.USERNAME == "new" {
		json.NewEncoder(w).Encode(map[string]string{"ChallengeName": "NEW_PASSWORD_REQUIRED"})
		return
	}
	t := o.issue(in.AuthParameters.USERNAME) // the tests' users are named after their groups
	json.NewEncoder(w).Encode(map[string]any{"AuthenticationResult": map[string]any{"AccessToken": t["access_token"], "RefreshToken": t["refresh_token"], "ExpiresIn": t["expires_in"]}})
}

// Claims stands for the authorizer in front of the API.
func (o *pool) Claims(r *http.Request) (map[string]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	groups, ok := o.access[token]
	if !ok {
		return nil, api.ErrNoClaims
	}
	return map[string]string{"sub": "sub-1", "username": "ada", "cognito:groups": "[" + groups + "]"}, nil
}

// stage is a deployed product, a user pool, and a command line on a machine of its own.
type stage struct {
	t       *testing.T
	product *apitest.Product
	pool    *pool
	server  *httptest.Server
	program *Program
	dir     string
	out     bytes.Buffer
	err     bytes.Buffer
	now     time.Time
	onWait  func()
	waits   int
	bucket  func(object string) string // where signed addresses of months lead
	// before steers single requests; it reports whether it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func deploy(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, product: apitest.New(t), pool: newPool(), dir: t.TempDir(), now: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)}
	s.product.API.Claims = s.pool
	s.product.API.Months.Sign = func(_ context.Context, object, _ string, _ time.Duration) (string, error) {
		return s.bucket(object), nil
	}
	h := s.product.API.Handler()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.before == nil || !s.before(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.server.Close)
	users := httptest.NewServer(s.pool)
	t.Cleanup(users.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.server.URL, "http://"), ":")
	outputs, err := json.Marshal(map[string]map[string]string{"Almanac-local": {
		"ApiUrl": "http://abc123.execute-api.localhost:" + port, "SignInUrl": users.URL, "UserPoolId": "us-east-1_x", "UserPoolClientId": "client-1", "UserPoolDomain": "almanac-local"}})
	if err != nil {
		t.Fatal(err)
	}
	s.write("outputs.json", string(outputs))
	transport := client.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	s.program = &Program{
		In: strings.NewReader(""), Out: &s.out, Err: &s.err, Now: func() time.Time { return s.now }, Random: counter{}, Terminal: false,
		Env: func(name string) string {
			return map[string]string{"ALMANAC_CONFIG": filepath.Join(s.dir, "config")}[name]
		},
		HTTP: &http.Client{Transport: transport},
		Wait: func(ctx context.Context, _ time.Duration) error {
			if s.waits++; s.waits > 50 {
				t.Fatal("it waits for ever")
			}
			if s.onWait != nil {
				s.onWait()
			}
			return ctx.Err()
		},
		Browse: func(string) error { return fmt.Errorf("no browser in a test") },
	}
	return s
}

// counter is a source of bytes that a test can foresee.
type counter struct{}

func (counter) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)
	}
	return len(b), nil
}

// ready is deploy with somebody signed in.
func ready(t *testing.T, groups string) *stage {
	s := deploy(t)
	s.run(Done, "configure", "--outputs", s.path("outputs.json"))
	s.program.In = strings.NewReader("correct horse\n")
	s.run(Done, "login", "--user", groups, "--password-stdin")
	s.program.In = strings.NewReader("")
	return s
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// run runs one command, checks its exit code, and returns what it printed.
func (s *stage) run(code int, args ...string) (out, err string) {
	s.t.Helper()
	s.out.Reset()
	s.err.Reset()
	if got := s.program.Main(context.Background(), args); got != code {
		s.t.Fatalf("almanac %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, &s.out, &s.err)
	}
	return s.out.String(), s.err.String()
}

// has checks that a text has each of the parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

const configuration = `kind: workspace
id: EWR
name: Newark
zone: America/New_York
---
kind: source
name: flights
engine: sqlite
object: flights.sqlite
workspaces: ["*"]
`

const delays = `# Departures that left late.
kind: schedule
id: ewr-delays
workspace: EWR
name: Delayed departures
owner: ops@example.com
source: flights
query: |
  select * from flights
  where time_hour < :scheduled_time
recurrence:
  cron: 0 9 * * MON-FRI
  zone: America/New_York
file: {kind: csv, delimiter: ";"}
recipients:
  - email: ada@example.com
  - email: bob@example.com
`
