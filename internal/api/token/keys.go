package token

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	fresh    = time.Hour        // how long keys are used without asking again: an issuer rotates them in days
	pause    = 10 * time.Second // the least time between two requests, whatever key ids callers make up
	patience = 5 * time.Second  // for one request
	maxSet   = 64 << 10         // bytes of a key set
	minBits  = 2048             // of an RSA key (RFC 7518, section 3.3)
)

// Published are the keys that an issuer publishes as a JWK set. They are kept for an hour; a key id that is not among
// them has them fetched anew, at most once in ten seconds. Keys that could not be renewed are used on.
type Published struct {
	URL  string // of the set
	HTTP *http.Client
	Now  func() time.Time

	mu    sync.Mutex
	keys  map[string]*rsa.PublicKey
	got   time.Time // of the keys
	asked time.Time
	err   error // of the last request
}

// Of are the keys of an issuer, where an OpenID provider and a Cognito user pool publish them.
func Of(issuer string, client *http.Client, now func() time.Time) *Published {
	c := *client
	c.Timeout = patience
	// An issuer that sends us elsewhere is not the one that was configured.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Published{URL: strings.TrimRight(issuer, "/") + "/.well-known/jwks.json", HTTP: &c, Now: now}
}

// Key finds a key by its id.
func (p *Published) Key(ctx context.Context, id string) (*rsa.PublicKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	key, known := p.keys[id]
	if (!known || now.Sub(p.got) >= fresh) && (p.asked.IsZero() || now.Sub(p.asked) >= pause) {
		p.asked = now
		var keys map[string]*rsa.PublicKey
		if keys, p.err = p.fetch(ctx); p.err == nil {
			p.keys, p.got = keys, now
			key, known = keys[id]
		}
	}
	switch {
	case known:
		return key, nil
	case p.keys == nil || p.err != nil:
		return nil, p.err
	}
	return nil, ErrUnknownKey
}

func (p *Published) fetch(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	// The caller may give up; the keys are everybody's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, err
	}
	res, err := p.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSet+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", p.URL, res.Status)
	case len(body) > maxSet:
		return nil, fmt.Errorf("%s answers more than %d bytes", p.URL, maxSet)
	}
	keys, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.URL, err)
	}
	return keys, nil
}

// parse takes what RS256 can be verified with, and passes over the rest: a set may hold keys for other uses.
func parse(body []byte) (map[string]*rsa.PublicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("no JWK set: %w", err)
	}
	keys := map[string]*rsa.PublicKey{}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || k.KeyID == "" || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != string(jose.RS256) {
			continue
		}
		if key, ok := k.Key.(*rsa.PublicKey); ok && key.N.BitLen() >= minBits {
			if _, twice := keys[k.KeyID]; twice {
				return nil, fmt.Errorf("two keys have the id %q", k.KeyID)
			}
			keys[k.KeyID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no RSA key of 2048 bits or more with an id")
	}
	return keys, nil
}
