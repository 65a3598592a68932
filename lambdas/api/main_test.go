package main

import (
	"testing"

	"almanac/internal/api"
	"almanac/internal/api/token"
	"almanac/internal/boot"
)

func TestTokensAreVerifiedHereOnlyWhereTheStackSaysSo(t *testing.T) {
	if _, ok := claims(boot.Config{}).(api.AuthorizerClaims); !ok {
		t.Error("without an issuer the authorizer's claims are not read")
	}
	v, ok := claims(boot.Config{Local: "localstack", Issuer: "http://127.0.0.1:4569", Audience: []string{"almanac"}}).(token.Verifier)
	if !ok || v.Issuer != "http://127.0.0.1:4569" || len(v.Audience) != 1 || v.Keys == nil || v.Now == nil {
		t.Errorf("%+v", v)
	}
}
