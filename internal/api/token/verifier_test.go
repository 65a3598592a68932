package token_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"almanac/internal/api"
	"almanac/internal/api/apitest"
	"almanac/internal/api/routes"
	"almanac/internal/api/token"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-jose/go-jose/v4"
)

const issuer = "http://127.0.0.1:4569"

var now = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

var pair = sync.OnceValues(func() (mine, other *rsa.PrivateKey) {
	var err error
	if mine, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		panic(err)
	}
	if other, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		panic(err)
	}
	return mine, other
})

// keys are an issuer's keys in memory.
type keys struct {
	byID map[string]*rsa.PublicKey
	err  error
}

func (k keys) Key(_ context.Context, id string) (*rsa.PublicKey, error) {
	if k.err != nil {
		return nil, k.err
	}
	if key := k.byID[id]; key != nil {
		return key, nil
	}
	return nil, token.ErrUnknownKey
}

func verifier() token.Verifier {
	mine, _ := pair()
	return token.Verifier{Issuer: issuer, Audience: []string{"almanac", "almanac-ci"}, Now: func() time.Time { return now }, Keys: keys{byID: map[string]*rsa.PublicKey{"k1": &mine.PublicKey}}}
}

// access are the claims of a good access token, as Cognito shapes them.
func access() map[string]any {
	return map[string]any{"sub": "s-1", "iss": issuer, "client_id": "almanac", "token_use": "access", "scope": "openid email", "username": "ada",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "auth_time": now.Unix(), "cognito:groups": []string{"viewer", "admin@EWR"}}
}

func sign(t testing.TB, key any, alg jose.SignatureAlgorithm, header, claims map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for k, v := range header {
		o = o.WithHeader(jose.HeaderKey(k), v)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func good(t testing.TB, change func(map[string]any)) string {
	t.Helper()
	mine, _ := pair()
	c := access()
	if change != nil {
		change(c)
	}
	return sign(t, mine, jose.RS256, map[string]any{"kid": "k1"}, c)
}

func ask(v token.Verifier, authorization ...string) (map[string]string, error) {
	r := httptest.NewRequest("GET", "/schedules", nil)
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	return v.Claims(r)
}

func TestTokensAreAcceptedAsAnAuthorizerWould(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"an access token":                   nil,
		"an access token of another client": func(c map[string]any) { c["client_id"] = "almanac-ci" },
		"an id token":                       func(c map[string]any) { delete(c, "client_id"); c["token_use"], c["aud"] = "id", "almanac" },
		"a token of another issuer's making": func(c map[string]any) {
			delete(c, "client_id")
			delete(c, "token_use")
			c["aud"] = []string{"x", "almanac"}
		},
		"one that ended less than a minute ago": func(c map[string]any) { c["exp"] = now.Add(-59 * time.Second).Unix() },
		"one that begins in less than a minute": func(c map[string]any) { c["nbf"] = now.Add(59 * time.Second).Unix() },
	} {
		t.Run(name, func(t *testing.T) {
			for _, scheme := range []string{"Bearer ", "bearer "} {
				claims, err := ask(verifier(), scheme+good(t, change))
				if err != nil || claims["sub"] != "s-1" || claims["username"] != "ada" || claims["cognito:groups"] != "[viewer admin@EWR]" {
					t.Fatalf("%v, %v", claims, err)
				}
			}
		})
	}
}

// unsigned joins a header and claims by hand, for what no signer makes.
func unsigned(header, claims map[string]any, signature []byte) string {
	h, _ := json.Marshal(header)
	c, _ := json.Marshal(claims)
	e := base64.RawURLEncoding
	return e.EncodeToString(h) + "." + e.EncodeToString(c) + "." + e.EncodeToString(signature)
}

func TestTokensAreRefusedWithTheReason(t *testing.T) {
	mine, other := pair()
	claims := func(change func(map[string]any)) func(*testing.T) string {
		return func(t *testing.T) string { return good(t, change) }
	}
	for name, c := range map[string]struct {
		raw  func(t *testing.T) string
		want string
	}{
		"alg none": {func(*testing.T) string { return unsigned(map[string]any{"alg": "none", "kid": "k1"}, access(), nil) }, "RS256"},
		"HS256 keyed with the public key": {func(t *testing.T) string {
			h := unsigned(map[string]any{"alg": "HS256", "kid": "k1"}, access(), nil)
			mac := hmac.New(sha256.New, mine.PublicKey.N.Bytes())
			mac.Write([]byte(strings.TrimSuffix(h, ".")))
			return h + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		}, "RS256"},
		"RS512":            {func(t *testing.T) string { return sign(t, mine, jose.RS512, map[string]any{"kid": "k1"}, access()) }, "RS256"},
		"no key id":        {func(t *testing.T) string { return sign(t, mine, jose.RS256, nil, access()) }, "kid"},
		"unknown key id":   {func(t *testing.T) string { return sign(t, mine, jose.RS256, map[string]any{"kid": "k9"}, access()) }, "none of the issuer's"},
		"signed by others": {func(t *testing.T) string { return sign(t, other, jose.RS256, map[string]any{"kid": "k1"}, access()) }, "signature"},
		"a key of its own in the header": {func(t *testing.T) string {
			return sign(t, other, jose.RS256, map[string]any{"kid": "k1", "jwk": jose.JSONWebKey{Key: &other.PublicKey}}, access())
		}, "signature"},
		"changed claims": {func(t *testing.T) string {
			parts := strings.Split(good(t, nil), ".")
			c := access()
			c["cognito:groups"] = []string{"admin"}
			b, _ := json.Marshal(c)
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(b) + "." + parts[2]
		}, "signature"},
		"no token":                               {func(*testing.T) string { return "what.is.this" }, "RS256"},
		"two parts":                              {func(t *testing.T) string { return strings.Join(strings.Split(good(t, nil), ".")[:2], ".") }, "RS256"},
		"two tokens":                             {func(t *testing.T) string { return good(t, nil) + "," + good(t, nil) }, "RS256"},
		"oversized":                              {claims(func(c map[string]any) { c["pad"] = strings.Repeat("x", 9000) }), "too long"},
		"foreign issuer":                         {claims(func(c map[string]any) { c["iss"] = "https://evil.example.com" }), "issuer"},
		"issuer with a slash":                    {claims(func(c map[string]any) { c["iss"] = issuer + "/" }), "issuer"},
		"no issuer":                              {claims(func(c map[string]any) { delete(c, "iss") }), "issuer"},
		"issuer of wrong type":                   {claims(func(c map[string]any) { c["iss"] = []string{issuer} }), "claims"},
		"expired":                                {claims(func(c map[string]any) { c["exp"] = now.Add(-61 * time.Second).Unix() }), "expired"},
		"no end":                                 {claims(func(c map[string]any) { delete(c, "exp") }), "no end"},
		"end of wrong type":                      {claims(func(c map[string]any) { c["exp"] = "tomorrow" }), "claims"},
		"not yet":                                {claims(func(c map[string]any) { c["nbf"] = now.Add(61 * time.Second).Unix() }), "not valid yet"},
		"of the future":                          {claims(func(c map[string]any) { c["iat"] = now.Add(time.Hour).Unix() }), "not valid yet"},
		"foreign audience":                       {claims(func(c map[string]any) { c["aud"] = "payroll" }), "audience"},
		"foreign audience beside a known client": {claims(func(c map[string]any) { c["aud"] = []string{"payroll"} }), "audience"},
		"empty audience":                         {claims(func(c map[string]any) { c["aud"] = "" }), "audience"},
		"foreign client":                         {claims(func(c map[string]any) { c["client_id"] = "payroll" }), "client"},
		"no client":                              {claims(func(c map[string]any) { delete(c, "client_id") }), "client"},
		"client of wrong type":                   {claims(func(c map[string]any) { c["client_id"] = []string{"almanac"} }), "client"},
		"a refresh token":                        {claims(func(c map[string]any) { c["token_use"] = "refresh" }), "access token"},
		"an id token without an audience":        {claims(func(c map[string]any) { c["token_use"] = "id" }), "access token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(verifier(), "Bearer "+c.raw(t))
			if !errors.Is(err, api.ErrNoClaims) || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Fatalf("%v, %v; want a refusal that says %q", got, err, c.want)
			}
		})
	}
}

func TestTheHeaderIsReadStrictly(t *testing.T) {
	if _, err := ask(verifier()); err != api.ErrNoClaims {
		t.Errorf("no header: %v", err)
	}
	raw := good(t, nil)
	for name, headers := range map[string][]string{
		"no scheme": {raw}, "another scheme": {"Basic " + raw}, "empty": {""}, "scheme alone": {"Bearer "}, "twice": {"Bearer " + raw, "Bearer " + raw},
	} {
		if claims, err := ask(verifier(), headers...); !errors.Is(err, api.ErrNoClaims) {
			t.Errorf("%s: %v, %v", name, claims, err)
		}
	}
}

func TestWithoutIssuerOrAudienceNobodyIsLetIn(t *testing.T) {
	for name, change := range map[string]func(*token.Verifier){
		"no issuer":      func(v *token.Verifier) { v.Issuer = "" },
		"no audience":    func(v *token.Verifier) { v.Audience = nil },
		"empty audience": func(v *token.Verifier) { v.Audience = []string{""} },
	} {
		v := verifier()
		change(&v)
		for _, c := range []func(map[string]any){
			nil, func(c map[string]any) { c["iss"] = "" }, func(c map[string]any) { c["client_id"] = "" }, func(c map[string]any) { c["aud"] = "" },
		} {
			if claims, err := ask(v, "Bearer "+good(t, c)); !errors.Is(err, api.ErrNoClaims) {
				t.Errorf("%s: %v, %v", name, claims, err)
			}
		}
	}
}

func TestAGroupWithSeparatorsIsNotReadAsSeveral(t *testing.T) {
	for _, hostile := range []any{[]any{"viewer admin"}, []any{"viewer,admin"}, []any{`x"admin`, "viewer]admin["}, "viewer admin", map[string]any{"admin": "admin"}, 7} {
		claims, err := ask(verifier(), "Bearer "+good(t, func(c map[string]any) { c["cognito:groups"] = hostile }))
		if err != nil || strings.Contains(claims["cognito:groups"], "admin") {
			t.Errorf("%v becomes %q, %v", hostile, claims["cognito:groups"], err)
		}
	}
}

// serve is the API as a function URL's function runs it.
func serve(t *testing.T, claims api.Claims, log *bytes.Buffer) func(method, path string, header map[string]string, authorizer map[string]string) events.APIGatewayV2HTTPResponse {
	p := apitest.New(t)
	p.API.Claims, p.API.Log = claims, slog.New(slog.NewJSONHandler(log, nil))
	h := api.Lambda(p.API.Handler())
	return func(method, path string, header, authorizer map[string]string) events.APIGatewayV2HTTPResponse {
		e := events.APIGatewayV2HTTPRequest{RawPath: path, Headers: header}
		e.RequestContext.HTTP.Method = method
		if authorizer != nil {
			e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: authorizer}}
		}
		out, err := h(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func TestTheFunctionURLAnswersTokensAndRefusesTheirAbsence(t *testing.T) {
	var log bytes.Buffer
	call := serve(t, verifier(), &log)
	if out := call("GET", "/schedules", map[string]string{"authorization": "Bearer " + good(t, nil)}, nil); out.StatusCode != 200 {
		t.Fatalf("%d %s", out.StatusCode, out.Body)
	}
	out := call("GET", "/schedules", nil, nil)
	if out.StatusCode != 401 || out.Headers["Www-Authenticate"] != `Bearer realm="almanac"` || out.Headers["Content-Type"] != "application/problem+json" {
		t.Fatalf("%+v", out)
	}
	secret := good(t, func(c map[string]any) { c["exp"] = now.Add(-time.Hour).Unix() })
	out = call("GET", "/schedules", map[string]string{"authorization": "Bearer " + secret}, nil)
	if out.StatusCode != 401 || !strings.Contains(out.Headers["Www-Authenticate"], `error="invalid_token"`) || !strings.Contains(out.Body, "expired") {
		t.Fatalf("%+v", out)
	}
	if strings.Contains(out.Body+log.String(), secret) {
		t.Error("the token is repeated")
	}
}

// Both ways of verification at once, or the wrong one for what stands in front: neither lets anybody in unverified.
func TestNoCombinationOfAuthorizerAndVerifierIsOpen(t *testing.T) {
	var log bytes.Buffer
	forged := map[string]string{"sub": "s", "cognito:groups": "[admin]"}
	header := map[string]string{"authorization": "Bearer " + good(t, nil)}
	own, gateway := serve(t, verifier(), &log), serve(t, api.AuthorizerClaims{}, &log)
	for _, r := range routes.Table {
		path := strings.NewReplacer("{workspace}", "EWR", "{source}", "x", "{schedule}", "x", "{run}", "x", "{token}", "x").Replace(r.Path)
		want := 401
		if r.Right == routes.Public {
			want = 404 // the token in the path is the right, and this one is none
		}
		if got := own(r.Method, path, nil, forged).StatusCode; got != want {
			t.Errorf("%s %s with an authorizer's claims and no token: %d, want %d", r.Method, path, got, want)
		}
		if got := gateway(r.Method, path, header, nil).StatusCode; got != want {
			t.Errorf("%s %s with a token and no authorizer: %d, want %d", r.Method, path, got, want)
		}
		if got := own(r.Method, path, map[string]string{"authorization": "Bearer x"}, nil).StatusCode; got != want {
			t.Errorf("%s %s with a bad token: %d, want %d", r.Method, path, got, want)
		}
	}
	if out := own("GET", "/schedules", header, forged); out.StatusCode != 200 {
		t.Errorf("both at once: %d %s", out.StatusCode, out.Body)
	}
	if out := own("PUT", "/clock", header, forged); out.StatusCode != 403 {
		t.Errorf("the token's own rights are not the ones that count: %d %s", out.StatusCode, out.Body)
	}
}

func TestAnIssuerThatCannotBeAskedIsNotTheCallersFault(t *testing.T) {
	var log bytes.Buffer
	v := verifier()
	v.Keys = keys{err: errors.New("connection refused")}
	out := serve(t, v, &log)("GET", "/schedules", map[string]string{"authorization": "Bearer " + good(t, nil)}, nil)
	if out.StatusCode != http.StatusServiceUnavailable || out.Headers["Retry-After"] == "" || strings.Contains(out.Body, "refused") {
		t.Fatalf("%+v", out)
	}
	if strings.Count(log.String(), "connection refused") != 1 {
		t.Errorf("logged: %s", &log)
	}
}

// FuzzToken: whatever is sent, nothing is let in but what the issuer's key has signed, and nothing breaks.
func FuzzToken(f *testing.F) {
	mine, other := pair()
	valid := sign(f, mine, jose.RS256, map[string]any{"kid": "k1"}, access())
	f.Add("Bearer " + valid)
	f.Add("Bearer " + sign(f, other, jose.RS256, map[string]any{"kid": "k1"}, access()))
	f.Add("Bearer " + unsigned(map[string]any{"alg": "none", "kid": "k1"}, access(), nil))
	f.Add("Bearer " + unsigned(map[string]any{"alg": "RS256", "kid": "k1", "crit": []string{"b64"}, "b64": false}, access(), []byte("x")))
	f.Add("bearer {\"payload\":\"e30\",\"signatures\":[]}")
	f.Add("Basic eDp5")
	v := verifier()
	f.Fuzz(func(t *testing.T, authorization string) {
		claims, err := ask(v, authorization)
		// White space between is not part of a token, and the last character has bits to spare.
		if err == nil && !strings.Contains(strings.Join(strings.Fields(authorization), ""), valid[:len(valid)-1]) {
			t.Fatalf("%q is let in with %v", authorization, claims)
		}
		if err != nil && !errors.Is(err, api.ErrNoClaims) {
			t.Fatalf("%q: %v", authorization, err)
		}
	})
}
