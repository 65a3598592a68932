// Package signin gets tokens from the stack's issuer, a user pool or a local cloud's own: by the code flow with PKCE in a
// browser, by password where that is allowed, and by the refresh token of an earlier sign-in.
package signin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"almanac/scripts/almanac/settings"
)

// Callback is where the browser brings the code; the user pool's client lists the same address.
const Callback = "http://localhost:8765/callback"

// SignIn asks one issuer.
type SignIn struct {
	Stack  settings.Stack
	HTTP   *http.Client
	Now    func() time.Time
	Random io.Reader
}

// Browser signs in by the authorization code flow with PKCE (RFC 7636, S256). It listens on the callback's address,
// hands the page's address to show, and waits for the browser to come back or ctx to end.
func (s SignIn) Browser(ctx context.Context, show func(address string)) (settings.Tokens, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:8765")
	if err != nil {
		return settings.Tokens{}, fmt.Errorf("cannot wait for the browser on %s: %w; end the program that uses the port", Callback, err)
	}
	verifier, state, err := s.secrets()
	if err != nil {
		listener.Close()
		return settings.Tokens{}, err
	}
	answers := make(chan url.Values, 1)
	server := &http.Server{Handler: callback(state, answers), ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(listener)
	defer server.Shutdown(context.WithoutCancel(ctx))

	challenge := sha256.Sum256([]byte(verifier))
	show(s.Stack.SignIn + "/oauth2/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {s.Stack.ClientID}, "redirect_uri": {Callback}, "scope": {"openid email"},
		"state": {state}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode())
	select {
	case <-ctx.Done():
		return settings.Tokens{}, fmt.Errorf("sign-in was not finished: %w", ctx.Err())
	case q := <-answers:
		if reason := q.Get("error"); reason != "" {
			return settings.Tokens{}, fmt.Errorf("the sign-in page refused: %s %s", reason, q.Get("error_description"))
		}
		return s.token(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "redirect_uri": {Callback}, "code_verifier": {verifier}}, "")
	}
}

func (s SignIn) secrets() (verifier, state string, err error) {
	b := make([]byte, 64)
	if _, err := io.ReadFull(s.Random, b); err != nil {
		return "", "", fmt.Errorf("no random numbers: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:48]), base64.RawURLEncoding.EncodeToString(b[48:]), nil
}

// callback takes the first answer that bears our state; any other may be anybody's.
func callback(state string, answers chan<- url.Values) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 || q.Get("code") == "" && q.Get("error") == "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintln(w, "This is not the answer to the sign-in that the command line waits for.")
			return
		}
		select {
		case answers <- q:
		default: // it has its answer
		}
		fmt.Fprintln(w, "You can close this page and go back to the terminal.")
	})
	return mux
}

// Refresh gets new tokens for an earlier sign-in.
func (s SignIn) Refresh(ctx context.Context, t settings.Tokens) (settings.Tokens, error) {
	if t.Refresh == "" {
		return t, settings.ErrNotSignedIn
	}
	return s.token(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}}, t.Refresh)
}

// token asks /oauth2/token. https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html
func (s SignIn) token(ctx context.Context, form url.Values, refresh string) (settings.Tokens, error) {
	form.Set("client_id", s.Stack.ClientID)
	var out struct {
		Access      string `json:"access_token"`
		Refresh     string `json:"refresh_token"`
		ExpiresIn   int    `json:"expires_in"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	r, err := http.NewRequestWithContext(ctx, "POST", s.Stack.SignIn+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return settings.Tokens{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, err := s.call(r, &out)
	switch {
	case err != nil:
		return settings.Tokens{}, err
	case out.Error == "invalid_grant" && refresh != "":
		return settings.Tokens{}, fmt.Errorf("%w (the earlier sign-in has ended)", settings.ErrNotSignedIn)
	case status != http.StatusOK || out.Access == "":
		return settings.Tokens{}, fmt.Errorf("sign-in: status %d %s %s", status, out.Error, out.Description)
	}
	if out.Refresh == "" {
		out.Refresh = refresh
	}
	return settings.Tokens{Access: out.Access, Refresh: out.Refresh, Expires: s.Now().Add(time.Duration(out.ExpiresIn) * time.Second)}, nil
}

// Password signs in by name and password, which only the local profile allows: a user pool takes them by an action of
// its own, any other issuer at the token endpoint (RFC 6749, section 4.3).
func (s SignIn) Password(ctx context.Context, user, password string) (settings.Tokens, error) {
	if s.Stack.Cognito != "" {
		return s.initiateAuth(ctx, user, password)
	}
	t, err := s.token(ctx, url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}, "")
	if err != nil {
		return t, fmt.Errorf("sign-in of %s: %w", user, err)
	}
	return t, nil
}

// initiateAuth is USER_PASSWORD_AUTH.
// https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_InitiateAuth.html
func (s SignIn) initiateAuth(ctx context.Context, user, password string) (settings.Tokens, error) {
	body, err := json.Marshal(map[string]any{
		"AuthFlow": "USER_PASSWORD_AUTH", "ClientId": s.Stack.ClientID, "AuthParameters": map[string]string{"USERNAME": user, "PASSWORD": password},
	})
	if err != nil {
		return settings.Tokens{}, err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", s.Stack.Cognito+"/", bytes.NewReader(body))
	if err != nil {
		return settings.Tokens{}, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AWSCognitoIdentityProviderService.InitiateAuth")
	var out struct {
		Result struct {
			AccessToken, RefreshToken string
			ExpiresIn                 int
		} `json:"AuthenticationResult"`
		ChallengeName string
		Message       string `json:"message"`
	}
	status, err := s.call(r, &out)
	switch {
	case err != nil:
		return settings.Tokens{}, err
	case out.ChallengeName != "":
		return settings.Tokens{}, fmt.Errorf("the user pool asks for %s, which only the browser can answer; run: almanac login", out.ChallengeName)
	case status != http.StatusOK || out.Result.AccessToken == "":
		return settings.Tokens{}, fmt.Errorf("sign-in of %s: %s (status %d)", user, out.Message, status)
	}
	t := out.Result
	return settings.Tokens{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: s.Now().Add(time.Duration(t.ExpiresIn) * time.Second)}, nil
}

func (s SignIn) call(r *http.Request, into any) (int, error) {
	resp, err := s.HTTP.Do(r)
	if err != nil {
		return 0, fmt.Errorf("sign-in: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("sign-in: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return 0, errors.Join(fmt.Errorf("sign-in: %s answered with status %d and no JSON", r.URL.Host, resp.StatusCode), err)
	}
	return resp.StatusCode, nil
}
