// Package token verifies the caller's token inside the function, where no authorizer stands in front of it. It accepts
// what an HTTP API's JWT authorizer accepts: RS256, the issuer, the audience as aud or, in access tokens, as client_id.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
package token

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"almanac/internal/api"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// maxToken is the longest token that is looked at, in bytes; an issuer's are a tenth of it.
	maxToken = 8 << 10
	// leeway is how far the issuer's clock may be from ours.
	leeway = time.Minute
)

// Keys finds an issuer's public key by its id.
type Keys interface {
	// Key returns ErrUnknownKey where the issuer has no such key; any other error says that the issuer could not be
	// asked, which says nothing about the token.
	Key(ctx context.Context, id string) (*rsa.PublicKey, error)
}

// ErrUnknownKey says that the issuer publishes no key of that id.
var ErrUnknownKey = errors.New("the issuer has no such key")

// Verifier is the api.Claims of a function that verifies tokens itself. What stands in the event is not looked at.
type Verifier struct {
	Issuer   string
	Audience []string // client ids whose tokens are accepted; none accepts nobody
	Keys     Keys
	Now      func() time.Time
}

// Claims verifies the request's bearer token. An error that is api.ErrNoClaims says why in words for the caller; another
// one says that the issuer's keys could not be had.
func (v Verifier) Claims(r *http.Request) (map[string]string, error) {
	raw, err := bearer(r)
	if err != nil {
		return nil, err
	}
	key, parsed, err := v.signer(r.Context(), raw)
	if err != nil {
		return nil, err
	}
	var standard jwt.Claims
	all := map[string]any{}
	if err := parsed.Claims(key, &standard, &all); err != nil {
		return nil, refused("its signature or its claims cannot be verified")
	}
	if err := v.check(standard, all); err != nil {
		return nil, err
	}
	return flat(all), nil
}

func refused(why string) error { return fmt.Errorf("%w: %s", api.ErrNoClaims, why) }

// bearer is the token of RFC 6750, section 2.1.
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", api.ErrNoClaims
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	raw = strings.TrimSpace(raw)
	switch {
	case len(values) > 1:
		return "", refused("there are several")
	case !strings.EqualFold(scheme, "Bearer") || raw == "":
		return "", refused("it is not sent as Authorization: Bearer …")
	case len(raw) > maxToken:
		return "", refused("it is too long")
	}
	return raw, nil
}

// signer takes the token apart and finds the key that its header names. The header is the caller's word: it chooses
// among the issuer's keys, and nothing else of it is used.
func (v Verifier) signer(ctx context.Context, raw string) (*rsa.PublicKey, *jwt.JSONWebToken, error) {
	parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil || len(parsed.Headers) != 1 {
		return nil, nil, refused("it is no token signed by RS256")
	}
	id := parsed.Headers[0].KeyID
	if id == "" {
		return nil, nil, refused("its header names no key (kid)")
	}
	key, err := v.Keys.Key(ctx, id)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return nil, nil, refused("its key (kid) is none of the issuer's")
	case err != nil:
		return nil, nil, fmt.Errorf("keys of issuer %s: %w", v.Issuer, err)
	}
	return key, parsed, nil
}

func (v Verifier) check(c jwt.Claims, all map[string]any) error {
	switch {
	case v.Issuer == "" || c.Issuer != v.Issuer:
		return refused("its issuer is another one")
	case c.Expiry == nil:
		return refused("it has no end (exp)")
	}
	switch err := c.ValidateWithLeeway(jwt.Expected{Time: v.Now()}, leeway); {
	case errors.Is(err, jwt.ErrExpired):
		return refused("it has expired")
	case err != nil:
		return refused("it is not valid yet")
	}
	if _, there := all["aud"]; there {
		if !slices.ContainsFunc(c.Audience, v.serves) {
			return refused("its audience (aud) is another one")
		}
		return nil
	}
	client, _ := all["client_id"].(string)
	if all["token_use"] != "access" || !v.serves(client) {
		return refused("it has no audience, and is no access token of a client (client_id) that is known here")
	}
	return nil
}

func (v Verifier) serves(audience string) bool {
	return audience != "" && slices.Contains(v.Audience, audience)
}

// flat spells claims as an HTTP API's authorizer does: text as it is, a list in brackets with blanks between. An item
// that has a separator in it is left out: it would be read as several.
func flat(all map[string]any) map[string]string {
	out := map[string]string{}
	for name, value := range all {
		switch value := value.(type) {
		case string:
			if name == groups && !whole(value) {
				continue
			}
			out[name] = value
		case []any:
			var items []string
			for _, item := range value {
				if s, ok := item.(string); ok && whole(s) {
					items = append(items, s)
				}
			}
			out[name] = "[" + strings.Join(items, " ") + "]"
		default:
			if b, err := json.Marshal(value); err == nil && name != groups {
				out[name] = string(b)
			}
		}
	}
	return out
}

const groups = "cognito:groups"

func whole(item string) bool { return item != "" && !strings.ContainsAny(item, " ,\"[]\t\r\n") }
