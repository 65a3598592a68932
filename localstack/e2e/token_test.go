//go:build cloud

package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"almanac/scripts/almanac/signin"

	"github.com/go-jose/go-jose/v4"
)

// parts takes a token apart.
func parts(t *testing.T, raw string) (header, claims map[string]any, signature string) {
	t.Helper()
	p := strings.Split(raw, ".")
	if len(p) != 3 {
		t.Fatalf("a token of %d parts", len(p))
	}
	for i, into := range []*map[string]any{&header, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(p[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims, p[2]
}

func join(t *testing.T, header, claims map[string]any, signature string) string {
	t.Helper()
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return encode(header) + "." + encode(claims) + "." + signature
}

// Tokens that the issuer did not give, or not so: whoever verifies them, an authorizer or the function, lets none in.
func TestATokenThatTheIssuerDidNotGiveIsRefused(t *testing.T) {
	scene(t)
	header, claims, signature := parts(t, cloud.tokens["viewer"])
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	foreign := func(change func(map[string]any)) string {
		mine := map[string]any{}
		for k, v := range claims {
			mine[k] = v
		}
		change(mine)
		body, err := json.Marshal(mine)
		if err != nil {
			t.Fatal(err)
		}
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: own, KeyID: fmt.Sprint(header["kid"])}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := s.Sign(body)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	admin := map[string]any{}
	for k, v := range claims {
		admin[k] = v
	}
	admin["cognito:groups"] = []string{"admin"}
	for name, raw := range map[string]string{
		"changed claims":         join(t, header, admin, signature),
		"no signature":           join(t, header, claims, ""),
		"alg none":               join(t, map[string]any{"alg": "none", "kid": header["kid"]}, admin, ""),
		"alg HS256":              join(t, map[string]any{"alg": "HS256", "kid": header["kid"]}, admin, signature),
		"another's signature":    foreign(func(map[string]any) {}),
		"another issuer":         foreign(func(c map[string]any) { c["iss"] = "https://evil.example.com" }),
		"no token at all":        "x",
		"the good one, cut":      cloud.tokens["viewer"][:len(cloud.tokens["viewer"])-20],
		"the good one, repeated": cloud.tokens["viewer"] + "," + cloud.tokens["viewer"],
	} {
		t.Run(name, func(t *testing.T) {
			status, body := call(t, "", "GET", "/schedules", nil, "Authorization", "Bearer "+raw)
			if status != http.StatusUnauthorized {
				t.Fatalf("%d %.200s; want 401", status, body)
			}
		})
	}
	if status, body := call(t, "viewer", "GET", "/schedules", nil); status != http.StatusOK {
		t.Fatalf("the good token: %d %.200s", status, body)
	}
}

var (
	formAction = regexp.MustCompile(`<form[^>]*\saction="([^"]+)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
)

// press fills in the sign-in page as a browser does, and returns where it is sent.
func press(t *testing.T, page string, u user) *url.URL {
	t.Helper()
	status, _, body := open(t, page)
	action := formAction.FindSubmatch(body)
	if status != http.StatusOK || action == nil {
		t.Fatalf("the sign-in page: %d %.300s", status, body)
	}
	form := url.Values{"username": {u.Name}, "password": {u.Password}}
	for _, hidden := range formHidden.FindAllSubmatch(body, -1) {
		form.Set(string(hidden[1]), html.UnescapeString(string(hidden[2])))
	}
	res, err := cloud.http.PostForm(cloud.stack.SignIn+html.UnescapeString(string(action[1])), form)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != http.StatusFound || !strings.HasPrefix(to.String(), signin.Callback+"?") {
		t.Fatalf("the form answers %s to %q, %v; want the command line's address", res.Status, to, err)
	}
	return to
}

func TestTheSignInPageGivesACodeThatItsVerifierProves(t *testing.T) {
	scene(t)
	u := cloud.users[0]
	// The command line's own sign-in, with the test as its browser.
	tokens, err := cloud.person().Browser(t.Context(), func(page string) {
		to := press(t, page, u)
		go func() {
			res, err := http.Get(to.String())
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := call(t, "", "GET", "/schedules", nil, "Authorization", "Bearer "+tokens.Access); status != http.StatusOK {
		t.Fatalf("%d %.200s", status, body)
	}
	// A code in another's hands: without the verifier it gives nothing.
	sum := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	code := press(t, cloud.stack.SignIn+"/oauth2/authorize?"+url.Values{"response_type": {"code"}, "client_id": {cloud.stack.ClientID}, "redirect_uri": {signin.Callback},
		"scope": {"openid email"}, "state": {"st"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}.Encode(), u).Query().Get("code")
	res, err := cloud.http.PostForm(cloud.stack.SignIn+"/oauth2/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {cloud.stack.ClientID},
		"code": {code}, "redirect_uri": {signin.Callback}, "code_verifier": {strings.Repeat("w", 43)}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if code == "" || res.StatusCode != http.StatusBadRequest {
		t.Fatalf("a wrong verifier for code %q answers %s; want 400", code, res.Status)
	}
}

// A sign-in is renewed without its password, and stays what it was. It is one by password: MiniStack's renewal of one by
// the page loses the groups.
func TestARenewedSignInKeepsItsRights(t *testing.T) {
	scene(t)
	for _, u := range cloud.users {
		first, err := cloud.person().Password(t.Context(), u.Name, u.Password)
		if err != nil {
			t.Fatal(err)
		}
		renewed, err := cloud.person().Refresh(t.Context(), first)
		if err != nil {
			t.Fatalf("%s: %v", u.Name, err)
		}
		want := map[string]int{"admin": http.StatusOK, "operator": http.StatusForbidden, "viewer": http.StatusForbidden}[u.Group]
		for name, raw := range map[string]string{"signed in": first.Access, "renewed": renewed.Access} {
			if status, body := call(t, "", "GET", "/clock", nil, "Authorization", "Bearer "+raw); status != want {
				t.Errorf("%s, %s: %d %.200s; want %d", u.Name, name, status, body, want)
			}
		}
	}
}
