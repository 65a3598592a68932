package token_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"almanac/internal/api/token"

	"github.com/go-jose/go-jose/v4"
)

// site is an issuer's key set on a real socket, with a clock that the test holds.
type site struct {
	answer func(w http.ResponseWriter)
	asked  int
	at     time.Time
	keys   *token.Published
}

func publish(t *testing.T, answer func(w http.ResponseWriter)) *site {
	t.Helper()
	s := &site{answer: answer, at: now}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pool/.well-known/jwks.json" {
			t.Errorf("asked for %s", r.URL)
		}
		s.asked++
		s.answer(w)
	}))
	t.Cleanup(server.Close)
	s.keys = token.Of(server.URL+"/pool/", server.Client(), func() time.Time { return s.at })
	return s
}

func set(t *testing.T, keys ...jose.JSONWebKey) func(http.ResponseWriter) {
	t.Helper()
	b, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter) { w.Write(b) }
}

func public(id string) jose.JSONWebKey {
	mine, _ := pair()
	return jose.JSONWebKey{Key: &mine.PublicKey, KeyID: id, Algorithm: "RS256", Use: "sig"}
}

func (s *site) want(t *testing.T, id string, wanted error, asked int) {
	t.Helper()
	key, err := s.keys.Key(t.Context(), id)
	if !errors.Is(err, wanted) || (err == nil) != (key != nil) {
		t.Errorf("key %s: %v, %v; want %v", id, key, err, wanted)
	}
	if s.asked != asked {
		t.Errorf("key %s: the issuer was asked %d times by now, want %d", id, s.asked, asked)
	}
}

func TestKeysAreFetchedOnceAndAgainForAnUnknownIDAtALimitedRate(t *testing.T) {
	s := publish(t, set(t, public("k1")))
	s.want(t, "k1", nil, 1)
	s.want(t, "k1", nil, 1)
	s.want(t, "k2", token.ErrUnknownKey, 1) // it has just been asked
	s.at = s.at.Add(10 * time.Second)
	s.want(t, "k2", token.ErrUnknownKey, 2)
	for i := range 100 {
		s.want(t, fmt.Sprintf("made-up-%d", i), token.ErrUnknownKey, 2)
	}
	s.answer = set(t, public("k2")) // rotated
	s.want(t, "k1", nil, 2)
	s.at = s.at.Add(10 * time.Second)
	s.want(t, "k2", nil, 3)
	s.want(t, "k1", token.ErrUnknownKey, 3) // withdrawn
}

func TestKeysAreRenewedEachHourAndUsedOnWhenTheIssuerIsDown(t *testing.T) {
	s := publish(t, set(t, public("k1")))
	s.want(t, "k1", nil, 1)
	s.at = s.at.Add(time.Hour)
	s.want(t, "k1", nil, 2)
	s.answer = func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }
	s.at = s.at.Add(time.Hour)
	s.want(t, "k1", nil, 3)
	s.want(t, "k1", nil, 3)
	if _, err := s.keys.Key(t.Context(), "k2"); err == nil || errors.Is(err, token.ErrUnknownKey) || !strings.Contains(err.Error(), "500") {
		t.Errorf("a key that cannot be looked up: %v", err)
	}
}

func TestAnIssuerWithoutUsableKeysIsAnError(t *testing.T) {
	text := func(s string) func(http.ResponseWriter) { return func(w http.ResponseWriter) { fmt.Fprint(w, s) } }
	small := strings.Repeat("q", 100)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"no JSON":        {text("<html>"), "no JWK set"},
		"wrong type":     {text(`{"keys":"k1"}`), "no JWK set"},
		"no keys":        {text(`{"keys":[]}`), "no RSA key"},
		"absent":         {text(`{}`), "no RSA key"},
		"weak":           {text(`{"keys":[{"kty":"RSA","kid":"k1","n":"` + small + `","e":"AQAB"}]}`), "2048 bits"},
		"a secret":       {text(`{"keys":[{"kty":"oct","kid":"k1","k":"c2VjcmV0"}]}`), "no RSA key"},
		"for encryption": {set(t, func() jose.JSONWebKey { k := public("k1"); k.Use = "enc"; return k }()), "no RSA key"},
		"without an id":  {set(t, public("")), "with an id"},
		"id twice":       {set(t, public("k1"), public("k1")), `"k1"`},
		"endless":        {text(`{"pad":"` + strings.Repeat("x", 70000)), "more than 65536 bytes"},
		"elsewhere":      {func(w http.ResponseWriter) { w.Header().Set("Location", "http://evil.example.com"); w.WriteHeader(302) }, "302"},
	} {
		t.Run(name, func(t *testing.T) {
			s := publish(t, c.answer)
			_, err := s.keys.Key(t.Context(), "k1")
			if err == nil || errors.Is(err, token.ErrUnknownKey) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want that it says %q", err, c.want)
			}
			s.want(t, "k1", err, 1) // not asked again at once
		})
	}
}
