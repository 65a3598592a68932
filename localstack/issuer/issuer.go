package main

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// issuer serves one client's people.
type issuer struct {
	address  string // its own, and the tokens' iss
	client   string
	callback string
	users    string
	signer   jose.Signer
	public   jose.JSONWebKey
	now      func() time.Time
	random   io.Reader

	mu    sync.Mutex
	codes map[string]grant
}

// grant is what a code stands for until it is used.
type grant struct {
	person    person
	challenge string
	nonce     string
	signedIn  time.Time
}

// maxCodes bounds the memory: signed-in people make them, and they die in a minute.
const maxCodes = 1000

func newIssuer(address string, o options, key *rsa.PrivateKey, now func() time.Time, random io.Reader) (*issuer, error) {
	pub, err := public(key)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: pub.KeyID}}, nil)
	if err != nil {
		return nil, err
	}
	return &issuer{address: address, client: o.client, callback: o.callback, users: o.users, signer: signer, public: pub, now: now, random: random, codes: map[string]grant{}}, nil
}

const maxForm = 64 << 10 // bytes of a request

func (i *issuer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.configuration)
	mux.HandleFunc("GET /.well-known/jwks.json", i.keys)
	mux.HandleFunc("GET /oauth2/authorize", i.authorize)
	mux.HandleFunc("POST /oauth2/authorize", i.signIn)
	mux.HandleFunc("POST /oauth2/token", i.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page elsewhere whose name was made to point at loopback is not us.
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || !onLoopback(host) {
			http.Error(w, "this is a local issuer: call it by its address on loopback", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "same-origin")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		mux.ServeHTTP(w, r)
	})
}

// configuration is OpenID Connect Discovery 1.0, section 3.
func (i *issuer) configuration(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.address, "jwks_uri": i.address + "/.well-known/jwks.json",
		"authorization_endpoint": i.address + "/oauth2/authorize", "token_endpoint": i.address + "/oauth2/token",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token", "password"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": []string{"openid", "email"},
	})
}

func (i *issuer) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.public}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone: nobody is left to tell
}

// refuse is an error of RFC 6749, section 5.2.
func refuse(w http.ResponseWriter, code, why string) {
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
}

// secret is 128 random bits. crypto/rand does not fail on the systems that this runs on.
func (i *issuer) secret() string {
	b := make([]byte, 16)
	if _, err := io.ReadFull(i.random, b); err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// token is the token endpoint. Passwords are for scripts, as the local stage's user pool allows them.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return
	}
	form := r.PostForm
	for name, values := range form {
		if len(values) > 1 {
			refuse(w, "invalid_request", name+" is given more than once")
			return
		}
	}
	if form.Get("client_id") != i.client {
		refuse(w, "invalid_client", "client_id is none that is known here")
		return
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		i.byCode(w, form.Get("code"), form.Get("code_verifier"), form.Get("redirect_uri"))
	case "refresh_token":
		i.byRefresh(w, form.Get("refresh_token"))
	case "password":
		p, err := admit(i.users, form.Get("username"), form.Get("password"))
		i.give(w, p, i.now(), "", true, err)
	default:
		refuse(w, "unsupported_grant_type", "grant_type is none of authorization_code, refresh_token, password")
	}
}

// verifierForm is RFC 7636, section 4.1.
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// byCode takes a code once, whatever comes of it: a second use may be a thief's.
func (i *issuer) byCode(w http.ResponseWriter, code, verifier, redirect string) {
	i.mu.Lock()
	g, known := i.codes[code]
	delete(i.codes, code)
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(verifier))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	switch {
	case !known || i.now().Sub(g.signedIn) > codeLife:
		refuse(w, "invalid_grant", "the code is not known, was used, or is older than a minute")
	case redirect != i.callback:
		refuse(w, "invalid_grant", "redirect_uri is not the one that the code was brought to")
	case !verifierForm.MatchString(verifier):
		refuse(w, "invalid_grant", "code_verifier is no 43 to 128 unreserved characters")
	case subtle.ConstantTimeCompare([]byte(proof), []byte(g.challenge)) != 1:
		refuse(w, "invalid_grant", "code_verifier does not match the code_challenge")
	default:
		i.give(w, g.person, g.signedIn, g.nonce, true, nil)
	}
}

// byRefresh gives no new refresh token, as Cognito does not. Who was taken out of the file is not renewed.
func (i *issuer) byRefresh(w http.ResponseWriter, raw string) {
	name, signedIn, err := i.refreshed(raw)
	if err != nil {
		refuse(w, "invalid_grant", err.Error())
		return
	}
	p, err := find(i.users, name)
	i.give(w, p, signedIn, "", false, err)
}

func (i *issuer) give(w http.ResponseWriter, p person, signedIn time.Time, nonce string, refresh bool, err error) {
	switch {
	case errors.Is(err, errWhoever):
		refuse(w, "invalid_grant", err.Error())
		return
	case err != nil:
		// The file is the person's own on this machine: its error is theirs to read.
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error", "error_description": err.Error()})
		return
	}
	out, err := i.issue(p, signedIn, nonce)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error", "error_description": err.Error()})
		return
	}
	if !refresh {
		out.Refresh = ""
	}
	answer(w, http.StatusOK, out)
}

// newCode remembers a grant under a code.
func (i *issuer) newCode(g grant) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for code, old := range i.codes {
		if i.now().Sub(old.signedIn) > codeLife {
			delete(i.codes, code)
		}
	}
	if len(i.codes) >= maxCodes {
		return "", false
	}
	code := strings.TrimRight(i.secret(), "=")
	i.codes[code] = g
	return code, true
}
