package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Lives of tokens, as the stack's user pool has them (infra/signin.go).
const (
	tokenLife   = time.Hour
	refreshLife = 7 * 24 * time.Hour
	codeLife    = time.Minute
)

// tokens is an answer of the token endpoint.
// https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html
type tokens struct {
	Access  string `json:"access_token"`
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token,omitempty"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
}

// issue makes the tokens of a person who signed in at a time.
// https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html
func (i *issuer) issue(p person, signedIn time.Time, nonce string) (tokens, error) {
	out := tokens{Type: "Bearer", Expires: int(tokenLife.Seconds())}
	common := func(use string, life time.Duration) map[string]any {
		now := i.now()
		return map[string]any{"iss": i.address, "sub": p.subject(), "token_use": use, "auth_time": signedIn.Unix(), "iat": now.Unix(), "exp": now.Add(life).Unix(), "jti": i.secret()}
	}
	access := common("access", tokenLife)
	access["client_id"], access["username"], access["scope"], access["cognito:groups"] = i.client, p.Name, "openid email", []string{p.Group}
	id := common("id", tokenLife)
	id["aud"], id["cognito:username"], id["email"], id["email_verified"], id["cognito:groups"] = i.client, p.Name, p.Name, true, []string{p.Group}
	if nonce != "" {
		id["nonce"] = nonce
	}
	// Cognito's is opaque. Ours is signed, so that it outlives a restart; an API takes it for nothing, since it has no
	// audience and is no access token.
	refresh := common("refresh", refreshLife)
	refresh["username"], refresh["refresh_client"] = p.Name, i.client
	for _, t := range []struct {
		to     *string
		claims map[string]any
	}{{&out.Access, access}, {&out.ID, id}, {&out.Refresh, refresh}} {
		signed, err := i.sign(t.claims)
		if err != nil {
			return out, err
		}
		*t.to = signed
	}
	return out, nil
}

func (i *issuer) sign(claims map[string]any) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := i.signer.Sign(body)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signed.CompactSerialize()
}

var errRefresh = errors.New("the refresh token is not valid")

// refreshed reads a refresh token of ours: whose it is, and when they signed in.
func (i *issuer) refreshed(raw string) (name string, signedIn time.Time, err error) {
	parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return "", time.Time{}, errRefresh
	}
	var c jwt.Claims
	var own struct {
		Use      string `json:"token_use"`
		Name     string `json:"username"`
		Client   string `json:"refresh_client"`
		SignedIn int64  `json:"auth_time"`
	}
	if parsed.Claims(i.public.Key, &c, &own) != nil || own.Use != "refresh" || own.Client != i.client || c.Issuer != i.address || c.Expiry == nil || !i.now().Before(c.Expiry.Time()) {
		return "", time.Time{}, errRefresh
	}
	return own.Name, time.Unix(own.SignedIn, 0), nil
}
