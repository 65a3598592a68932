package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/token"
	"almanac/scripts/almanac/settings"
	"almanac/scripts/almanac/signin"
)

const usersFile = `[{"name":"ada@example.com","group":"admin","password":"correct horse"},{"name":"vic@example.com","group":"viewer@EWR","password":"battery"}]`

// stage is an issuer on a real socket, with a clock that the test holds.
type stage struct {
	*issuer
	now    time.Time
	client *http.Client
}

func start(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	o := options{listen: "127.0.0.1:0", users: filepath.Join(dir, "users.json"), key: filepath.Join(dir, "key.pem"), client: "almanac", callback: "http://localhost:8765/callback"}
	if err := os.WriteFile(o.users, []byte(usersFile), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := loadKey(o.key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{now: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)}
	var h http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	if s.issuer, err = newIssuer(server.URL, o, key, func() time.Time { return s.now }, rand.Reader); err != nil {
		t.Fatal(err)
	}
	h = s.handler()
	s.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *stage) verifier() token.Verifier {
	now := func() time.Time { return s.now }
	return token.Verifier{Issuer: s.address, Audience: []string{"almanac"}, Keys: token.Of(s.address, s.client, now), Now: now}
}

func (s *stage) claims(raw string) (map[string]string, error) {
	r := httptest.NewRequest("GET", "/schedules", nil)
	r.Header.Set("Authorization", "Bearer "+raw)
	return s.verifier().Claims(r)
}

// post sends a form and reads the answer.
func (s *stage) post(t *testing.T, form url.Values) (status int, out map[string]any) {
	t.Helper()
	res, err := s.client.PostForm(s.address+"/oauth2/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Cache-Control") != "no-store" {
		t.Error("tokens may be kept in a cache")
	}
	return res.StatusCode, out
}

func with(base url.Values, change map[string]string) url.Values {
	out := url.Values{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range change {
		if v == "-" {
			out.Del(k)
			continue
		}
		out.Set(k, v)
	}
	return out
}

var verifierText = strings.Repeat("v", 43)

func asking() url.Values {
	sum := sha256.Sum256([]byte(verifierText))
	return url.Values{"response_type": {"code"}, "client_id": {"almanac"}, "redirect_uri": {"http://localhost:8765/callback"}, "state": {"st"}, "nonce": {"no"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
}

// code signs ada in on the page and returns the code that the browser is sent back with.
func (s *stage) code(t *testing.T) string {
	t.Helper()
	res, err := s.client.PostForm(s.address+"/oauth2/authorize", with(asking(), map[string]string{"username": "ada@example.com", "password": "correct horse"}))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != http.StatusFound || to.Query().Get("state") != "st" || to.Query().Get("code") == "" || !strings.HasPrefix(to.String(), "http://localhost:8765/callback?") {
		t.Fatalf("%d %s, %v", res.StatusCode, to, err)
	}
	return to.Query().Get("code")
}

func exchange(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {"almanac"}, "code": {code}, "redirect_uri": {"http://localhost:8765/callback"}, "code_verifier": {verifierText}}
}

func TestTheCodeFlowGivesTokensAsAUserPoolDoes(t *testing.T) {
	s := start(t)
	status, out := s.post(t, exchange(s.code(t)))
	if status != 200 || out["token_type"] != "Bearer" || out["expires_in"] != 3600.0 {
		t.Fatalf("%d %v", status, out)
	}
	access, err := s.claims(out["access_token"].(string))
	if err != nil || access["client_id"] != "almanac" || access["token_use"] != "access" || access["username"] != "ada@example.com" || access["cognito:groups"] != "[admin]" || access["iss"] != s.address || access["aud"] != "" {
		t.Errorf("access token %v, %v", access, err)
	}
	id, err := s.claims(out["id_token"].(string))
	if err != nil || id["aud"] != "almanac" || id["token_use"] != "id" || id["cognito:username"] != "ada@example.com" || id["nonce"] != "no" || id["sub"] != access["sub"] || id["client_id"] != "" {
		t.Errorf("id token %v, %v", id, err)
	}
	if claims, err := s.claims(out["refresh_token"].(string)); !errors.Is(err, api.ErrNoClaims) {
		t.Errorf("the API takes a refresh token: %v, %v", claims, err)
	}
	s.now = s.now.Add(time.Hour + 2*time.Minute)
	if _, err := s.claims(out["access_token"].(string)); !errors.Is(err, api.ErrNoClaims) {
		t.Errorf("the access token has no end: %v", err)
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {"almanac"}, "refresh_token": {out["refresh_token"].(string)}}
	status, renewed := s.post(t, refresh)
	if status != 200 || renewed["refresh_token"] != nil {
		t.Fatalf("%d %v", status, renewed)
	}
	if claims, err := s.claims(renewed["access_token"].(string)); err != nil || claims["sub"] != access["sub"] {
		t.Errorf("%v, %v", claims, err)
	}
	s.now = s.now.Add(8 * 24 * time.Hour)
	if status, out := s.post(t, refresh); status != 400 || out["error"] != "invalid_grant" {
		t.Errorf("a sign-in lasts for ever: %d %v", status, out)
	}
}

func TestACodeIsProvenByItsVerifierOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		want   string
	}{
		"no verifier":           {map[string]string{"code_verifier": "-"}, "43 to 128"},
		"another verifier":      {map[string]string{"code_verifier": strings.Repeat("w", 43)}, "does not match"},
		"verifier too short":    {map[string]string{"code_verifier": verifierText[1:]}, "43 to 128"},
		"verifier too long":     {map[string]string{"code_verifier": strings.Repeat("v", 129)}, "43 to 128"},
		"verifier hostile":      {map[string]string{"code_verifier": verifierText + "\x00"}, "43 to 128"},
		"the challenge instead": {map[string]string{"code_verifier": asking().Get("code_challenge")}, "does not match"},
		"another callback":      {map[string]string{"redirect_uri": "http://localhost:8765/other"}, "redirect_uri"},
		"no callback":           {map[string]string{"redirect_uri": "-"}, "redirect_uri"},
		"a made-up code":        {map[string]string{"code": "made-up"}, "not known"},
		"no code":               {map[string]string{"code": "-"}, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			code := s.code(t)
			status, out := s.post(t, with(exchange(code), c.change))
			if description, _ := out["error_description"].(string); status != 400 || out["error"] != "invalid_grant" || !strings.Contains(description, c.want) {
				t.Fatalf("%d %v; want that it says %q", status, out, c.want)
			}
			// A code that was shown with a wrong proof is a thief's, or may be.
			if c.change["code"] == "" {
				if status, out := s.post(t, exchange(code)); status != 400 {
					t.Errorf("the code lives on: %v", out)
				}
			}
		})
	}
	s := start(t)
	code := s.code(t)
	if status, out := s.post(t, exchange(code)); status != 200 {
		t.Fatal(out)
	}
	if status, _ := s.post(t, exchange(code)); status != 400 {
		t.Error("a code works twice")
	}
	code = s.code(t)
	s.now = s.now.Add(61 * time.Second)
	if status, _ := s.post(t, exchange(code)); status != 400 {
		t.Error("a code works after a minute")
	}
}

func TestTheTokenEndpointRefuses(t *testing.T) {
	s := start(t)
	password := url.Values{"grant_type": {"password"}, "client_id": {"almanac"}, "username": {"ada@example.com"}, "password": {"correct horse"}}
	if status, out := s.post(t, password); status != 200 {
		t.Fatal(out)
	}
	_, tokens := s.post(t, password)
	for name, c := range map[string]struct {
		form url.Values
		want string
	}{
		"no client":               {with(password, map[string]string{"client_id": "-"}), "invalid_client"},
		"another client":          {with(password, map[string]string{"client_id": "payroll"}), "invalid_client"},
		"no grant":                {with(password, map[string]string{"grant_type": "-"}), "unsupported_grant_type"},
		"another grant":           {with(password, map[string]string{"grant_type": "client_credentials"}), "unsupported_grant_type"},
		"wrong password":          {with(password, map[string]string{"password": "correct horse "}), "invalid_grant"},
		"no password":             {with(password, map[string]string{"password": "-"}), "invalid_grant"},
		"nobody":                  {with(password, map[string]string{"username": "eve@example.com"}), "invalid_grant"},
		"two users":               {url.Values{"grant_type": {"password"}, "client_id": {"almanac"}, "username": {"a", "b"}, "password": {"x"}}, "invalid_request"},
		"access token as refresh": {url.Values{"grant_type": {"refresh_token"}, "client_id": {"almanac"}, "refresh_token": {tokens["access_token"].(string)}}, "invalid_grant"},
		"no refresh token":        {url.Values{"grant_type": {"refresh_token"}, "client_id": {"almanac"}}, "invalid_grant"},
		"too large":               {with(password, map[string]string{"pad": strings.Repeat("x", 70000)}), "invalid_request"},
	} {
		status, out := s.post(t, c.form)
		if status != 400 || out["error"] != c.want {
			t.Errorf("%s: %d %v; want %s", name, status, out, c.want)
		}
	}
	// Whoever was taken out of the file is not renewed.
	if err := os.WriteFile(s.users, []byte(`[]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out := s.post(t, url.Values{"grant_type": {"refresh_token"}, "client_id": {"almanac"}, "refresh_token": {tokens["refresh_token"].(string)}}); status != 400 {
		t.Errorf("a person who is gone is renewed: %v", out)
	}
}

func TestTheSignInPage(t *testing.T) {
	s := start(t)
	page := func(method string, q url.Values, header ...string) (*http.Response, string) {
		t.Helper()
		address, body := s.address+"/oauth2/authorize", io.Reader(nil)
		if method == "GET" {
			address += "?" + q.Encode()
		} else {
			body = strings.NewReader(q.Encode())
		}
		req, err := http.NewRequest(method, address, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	res, text := page("GET", with(asking(), map[string]string{"state": `"><script>alert(1)</script>`}))
	if res.StatusCode != 200 || !strings.Contains(text, `name="password"`) || strings.Contains(text, "<script>") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "form-action 'self' http://localhost:8765") {
		t.Errorf("policy %q", policy)
	}
	for name, c := range map[string]struct {
		change   map[string]string
		redirect string // error that the client is told; empty: nothing is sent to the address
	}{
		"no client":        {map[string]string{"client_id": "-"}, ""},
		"another client":   {map[string]string{"client_id": "payroll"}, ""},
		"no callback":      {map[string]string{"redirect_uri": "-"}, ""},
		"callback of evil": {map[string]string{"redirect_uri": "https://evil.example.com/callback"}, ""},
		"callback longer":  {map[string]string{"redirect_uri": "http://localhost:8765/callback.evil"}, ""},
		"no state":         {map[string]string{"state": "-"}, "invalid_request"},
		"state too long":   {map[string]string{"state": strings.Repeat("s", 513)}, "invalid_request"},
		"implicit":         {map[string]string{"response_type": "token"}, "unsupported_response_type"},
		"no challenge":     {map[string]string{"code_challenge": "-"}, "invalid_request"},
		"plain challenge":  {map[string]string{"code_challenge_method": "plain"}, "invalid_request"},
		"no method":        {map[string]string{"code_challenge_method": "-"}, "invalid_request"},
		"short challenge":  {map[string]string{"code_challenge": "abc"}, "invalid_request"},
	} {
		for _, method := range []string{"GET", "POST"} {
			res, _ := page(method, with(with(asking(), c.change), map[string]string{"username": "ada@example.com", "password": "correct horse"}))
			to, err := url.Parse(res.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			if c.redirect == "" && (res.StatusCode != 400 || to.String() != "") || c.redirect != "" && (to.Query().Get("error") != c.redirect || to.Query().Get("code") != "" || to.Host != "localhost:8765") {
				t.Errorf("%s by %s: %d to %s", name, method, res.StatusCode, to)
			}
		}
	}
	res, text = page("POST", with(asking(), map[string]string{"username": "ada@example.com", "password": "wrong"}))
	if res.StatusCode != 401 || !strings.Contains(text, "Incorrect username or password.") || res.Header.Get("Location") != "" {
		t.Errorf("wrong password: %d %s", res.StatusCode, text)
	}
	good := with(asking(), map[string]string{"username": "ada@example.com", "password": "correct horse"})
	for _, origin := range []string{"https://evil.example.com", "null"} {
		if res, _ := page("POST", good, "Origin", origin); res.StatusCode != 403 {
			t.Errorf("a form of %s: %d", origin, res.StatusCode)
		}
	}
	if res, _ := page("POST", good, "Origin", s.address); res.StatusCode != 302 {
		t.Errorf("our own form: %d", res.StatusCode)
	}
	req, err := http.NewRequest("GET", s.address+"/.well-known/jwks.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example.com:4569"
	if res, err := s.client.Do(req); err != nil || res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %v, %v", res, err)
	}
}

func TestDiscoveryAndKeysShowNothingPrivate(t *testing.T) {
	s := start(t)
	res, err := s.client.Get(s.address + "/.well-known/openid-configuration")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var c map[string]any
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil || c["issuer"] != s.address || c["jwks_uri"] != s.address+"/.well-known/jwks.json" || c["token_endpoint"] != s.address+"/oauth2/token" {
		t.Errorf("%v, %v", c, err)
	}
	res, err = s.client.Get(s.address + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var set struct{ Keys []map[string]any }
	if err := json.NewDecoder(res.Body).Decode(&set); err != nil || len(set.Keys) != 1 || set.Keys[0]["kid"] == "" || set.Keys[0]["d"] != nil || set.Keys[0]["p"] != nil {
		t.Errorf("%v, %v", set, err)
	}
}

// The command line's own sign-in by password, against the real thing. Its browser flow waits on a fixed port, which its
// own package's test uses.
func TestTheCommandLineSignsIn(t *testing.T) {
	s := start(t)
	out, err := json.Marshal(map[string]map[string]string{"Almanac-local": {"ApiUrl": "http://x.lambda-url.us-east-1.localhost:4566", "SignInUrl": s.address, "Issuer": s.address, "Audience": "almanac"}})
	if err != nil {
		t.Fatal(err)
	}
	stack, err := settings.FromOutputs(out, "local")
	if err != nil {
		t.Fatal(err)
	}
	cli := signin.SignIn{Stack: stack, HTTP: s.client, Now: func() time.Time { return s.now }, Random: rand.Reader}
	tokens, err := cli.Password(t.Context(), "vic@example.com", "battery")
	if err != nil {
		t.Fatal(err)
	}
	if claims, err := s.claims(tokens.Access); err != nil || claims["cognito:groups"] != "[viewer@EWR]" {
		t.Errorf("%v, %v", claims, err)
	}
	if _, err := cli.Password(t.Context(), "vic@example.com", "wrong"); err == nil || !strings.Contains(err.Error(), "incorrect username or password") {
		t.Errorf("wrong password: %v", err)
	}
	if tokens, err = cli.Refresh(t.Context(), tokens); err != nil || tokens.Refresh == "" {
		t.Errorf("%+v, %v", tokens, err)
	}
}

func TestTheUsersFileIsReadStrictly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.json")
	if _, err := admit(file, "a", "b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":       {"users", "no list of people"},
		"wrong type":    {`{"name":"a"}`, "no list of people"},
		"no name":       {`[{"group":"admin","password":"x"}]`, `name of person 1 is ""`},
		"no password":   {`[{"name":"a","group":"admin"}]`, "password of a is empty"},
		"no group":      {`[{"name":"a","password":"x"}]`, `group of a is ""`},
		"hostile group": {`[{"name":"a","password":"x","group":"viewer admin"}]`, `"viewer admin"`},
		"twice":         {`[{"name":"a","password":"x","group":"admin"},{"name":"a","password":"y","group":"viewer"}]`, `name of person 2 is "a"`},
		"endless":       {"[" + strings.Repeat(" ", 2<<20) + "]", "at most"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := admit(file, "a", ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestTheKeyOutlivesARestartAndIsForItsOwnerOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	first, err := loadKey(file, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if again, err := loadKey(file, rand.Reader); err != nil || !again.Equal(first) {
		t.Errorf("another key after a restart, %v", err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKey(file, rand.Reader); err == nil || !strings.Contains(err.Error(), "644") {
		t.Errorf("a key that others read: %v", err)
	}
	for _, text := range []string{"", "key", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		other := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKey(other, rand.Reader); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("key file %q: %v", text, err)
		}
	}
}

func TestTheCommandLineIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no address":         {[]string{"--users", file, "--key", file}, `--listen is ""`},
		"every interface":    {[]string{"--listen", "0.0.0.0:4569", "--users", file, "--key", file}, "loopback"},
		"no host":            {[]string{"--listen", ":4569", "--users", file, "--key", file}, "loopback"},
		"a neighbour":        {[]string{"--listen", "192.168.1.5:4569", "--users", file, "--key", file}, "loopback"},
		"IPv6 everywhere":    {[]string{"--listen", "[::]:4569", "--users", file, "--key", file}, "loopback"},
		"a name":             {[]string{"--listen", "localhost:4569", "--users", file, "--key", file}, "such as 127.0.0.1:4569"},
		"no port":            {[]string{"--listen", "127.0.0.1", "--users", file, "--key", file}, "with its port"},
		"port out of range":  {[]string{"--listen", "127.0.0.1:70000", "--users", file, "--key", file}, "--listen"},
		"no users":           {[]string{"--listen", "127.0.0.1:0", "--key", file}, "--users is absent"},
		"no key":             {[]string{"--listen", "127.0.0.1:0", "--users", file}, "--key is absent"},
		"client hostile":     {[]string{"--listen", "127.0.0.1:0", "--users", file, "--key", file, "--client", "a b"}, `--client is "a b"`},
		"callback elsewhere": {[]string{"--listen", "127.0.0.1:0", "--users", file, "--key", file, "--callback", "http://evil.example.com:80/"}, "--callback"},
		"callback script":    {[]string{"--listen", "127.0.0.1:0", "--users", file, "--key", file, "--callback", "javascript:alert(1)"}, "--callback"},
		"unknown option":     {[]string{"--open"}, "--listen 127.0.0.1:PORT"},
		"an argument":        {[]string{"--listen", "127.0.0.1:0", "--users", file, "--key", file, "now"}, `"now"`},
	} {
		if _, err := parse(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestItSaysWhenItIsReadyAndEndsWhenTold(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--users", filepath.Join(dir, "users.json"), "--key", filepath.Join(dir, "key.pem")}, in)
	}()
	var ready struct {
		Ready  bool
		Issuer string
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &ready) != nil || !ready.Ready {
		t.Fatalf("%s, %v", line, err)
	}
	res, err := http.Get(ready.Issuer + "/.well-known/openid-configuration")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	port := strings.TrimPrefix(ready.Issuer, "http://")
	if err := run(ctx, []string{"--listen", port, "--users", "u", "--key", filepath.Join(dir, "key.pem")}, io.Discard); err == nil || !strings.Contains(err.Error(), "cannot listen") {
		t.Errorf("the port is taken: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
