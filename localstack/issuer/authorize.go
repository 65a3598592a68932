package main

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
)

// challengeForm is a SHA-256 in base64url without padding (RFC 7636, section 4.2).
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// request is what a client asks the sign-in page for.
type request struct {
	State, Challenge, Nonce string
}

// read holds a request against the rules. Where the client or its address is wrong nothing is sent there (RFC 6749,
// section 4.1.2.1); any other mistake is told to the client.
func (i *issuer) read(w http.ResponseWriter, r *http.Request) (request, bool) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return request{}, false
	}
	q := r.Form
	for _, name := range []string{"client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state", "nonce"} {
		if len(q[name]) > 1 {
			http.Error(w, name+" is given more than once", http.StatusBadRequest)
			return request{}, false
		}
	}
	switch {
	case q.Get("client_id") != i.client:
		http.Error(w, "client_id is none that is known here", http.StatusBadRequest)
	case q.Get("redirect_uri") != i.callback:
		http.Error(w, "redirect_uri is not the client's own", http.StatusBadRequest)
	case q.Get("state") == "" || len(q.Get("state")) > 512 || len(q.Get("nonce")) > 512:
		i.back(w, r, url.Values{"error": {"invalid_request"}, "error_description": {"state is absent, or state or nonce is longer than 512 bytes"}})
	case q.Get("response_type") != "code":
		i.back(w, r, url.Values{"error": {"unsupported_response_type"}, "error_description": {"response_type is not code"}, "state": {q.Get("state")}})
	case q.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(q.Get("code_challenge")):
		i.back(w, r, url.Values{"error": {"invalid_request"}, "error_description": {"code_challenge is no S256 challenge: sign-in is by PKCE"}, "state": {q.Get("state")}})
	default:
		return request{State: q.Get("state"), Challenge: q.Get("code_challenge"), Nonce: q.Get("nonce")}, true
	}
	return request{}, false
}

// back sends the browser to the client.
func (i *issuer) back(w http.ResponseWriter, r *http.Request, q url.Values) {
	http.Redirect(w, r, i.callback+"?"+q.Encode(), http.StatusFound)
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	if q, ok := i.read(w, r); ok {
		i.page(w, http.StatusOK, q, "")
	}
}

// signIn takes the form of the page.
func (i *issuer) signIn(w http.ResponseWriter, r *http.Request) {
	// A page of another site may not sign a browser in as somebody else.
	if from := r.Header.Get("Origin"); from != "" && from != "http://"+r.Host {
		http.Error(w, "the form is not ours", http.StatusForbidden)
		return
	}
	q, ok := i.read(w, r)
	if !ok {
		return
	}
	p, err := admit(i.users, r.PostForm.Get("username"), r.PostForm.Get("password"))
	switch {
	case errors.Is(err, errWhoever):
		i.page(w, http.StatusUnauthorized, q, "Incorrect username or password.")
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	code, ok := i.newCode(grant{person: p, challenge: q.Challenge, nonce: q.Nonce, signedIn: i.now()})
	if !ok {
		i.back(w, r, url.Values{"error": {"temporarily_unavailable"}, "state": {q.State}})
		return
	}
	i.back(w, r, url.Values{"code": {code}, "state": {q.State}})
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in to Almanac</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:22rem;margin:12vh auto;padding:0 1rem;color:#1b1f24;background:#fff}label{display:block;margin:.8rem 0}
input{display:block;width:100%;box-sizing:border-box;font:inherit;padding:.4rem}button{font:inherit;padding:.5rem 1.2rem}</style></head>
<body><h1>Sign in to Almanac</h1><p>Local cloud: people and passwords are those of its users file.</p>
{{if .Wrong}}<p role="alert"><strong>{{.Wrong}}</strong></p>{{end}}
<form method="post" action="/oauth2/authorize">
{{range $name, $value := .Hidden}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}
<label>Name <input name="username" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button></form></body></html>
`))

func (i *issuer) page(w http.ResponseWriter, status int, q request, wrong string) {
	callback, err := url.Parse(i.callback)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The form's answer is a redirect to the callback, which browsers hold against form-action too.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self' "+callback.Scheme+"://"+callback.Host+"; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = page.Execute(w, map[string]any{"Wrong": wrong, "Hidden": map[string]string{ // the client is gone: nobody is left to tell
		"client_id": i.client, "redirect_uri": i.callback, "response_type": "code", "code_challenge_method": "S256",
		"code_challenge": q.Challenge, "state": q.State, "nonce": q.Nonce,
	}})
}
