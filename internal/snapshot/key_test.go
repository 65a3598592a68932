package snapshot_test

import (
	"math/big"
	"testing"

	"almanac/internal/snapshot"

	"pgregory.net/rapid"
)

func TestKeysComeBackAsTheyWereSpelled(t *testing.T) {
	for text, k := range map[string]snapshot.Key{
		"": {}, "i:-9223372036854775808": {Kind: snapshot.IntegerKey, Int: -9223372036854775808}, "t:": {Kind: snapshot.TextKey},
		"t:a:b": {Kind: snapshot.TextKey, Text: "a:b"}, "d:0.1000000000000000055": {Kind: snapshot.DecimalKey, Text: "0.1000000000000000055"},
	} {
		got, err := snapshot.DecodeKey(text)
		if err != nil || got != k || snapshot.EncodeKey(k) != text {
			t.Errorf("%q: %+v %v, spelled %q", text, got, err, snapshot.EncodeKey(k))
		}
	}
	for _, bad := range []string{"7", "i:", "i:x", "i:1.5", "i:9223372036854775808", "d:", "d:.5", "d:1e5", "x:1", ":1", "ii:1"} {
		if k, err := snapshot.DecodeKey(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, k)
		}
	}
}

// Decimal keys are ordered as the numbers that they are.
func TestDecimalKeysAreOrderedAsNumbers(t *testing.T) {
	number := rapid.StringMatching(`[+-]?[0-9]{1,25}(\.[0-9]{1,25})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got := (snapshot.Key{Kind: snapshot.DecimalKey, Text: a}).Compare(snapshot.Key{Kind: snapshot.DecimalKey, Text: b}); got != x.Cmp(y) {
			t.Fatalf("%s and %s: %d, want %d", a, b, got, x.Cmp(y))
		}
	})
}

func TestKeysAreBoundAsTheirType(t *testing.T) {
	if got := (snapshot.Key{Kind: snapshot.IntegerKey, Int: 7}).Param(); got != int64(7) {
		t.Errorf("%T %v", got, got)
	}
	if got := (snapshot.Key{Kind: snapshot.TextKey, Text: "7"}).Param(); got != "7" {
		t.Errorf("%T %v", got, got)
	}
}
