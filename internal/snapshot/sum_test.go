package snapshot_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"almanac/internal/snapshot"
	"almanac/internal/source"

	"pgregory.net/rapid"
)

func integer(n int64) source.Value    { return source.Value{Kind: source.KindInt, Int: n} }
func floating(x float64) source.Value { return source.Value{Kind: source.KindFloat, Float: x} }
func decimal(s string) source.Value   { return source.Value{Kind: source.KindDecimal, Text: []byte(s)} }

func sumOf(values ...source.Value) (s snapshot.Sum) {
	for i := range values {
		s.Add(&values[i])
	}
	return s
}

// V10: sums of integers and decimals keep every digit, beyond 64 bits as well.
func TestV10SumsAreExact(t *testing.T) {
	for want, values := range map[string][]source.Value{
		"0":                                 nil,
		"9007199254740993":                  {integer(9007199254740992), integer(1)},
		"18446744073709551614":              {integer(math.MaxInt64), integer(math.MaxInt64)},
		"-9223372036854775809":              {integer(math.MinInt64), integer(-1)},
		"0.1000000000000000055":             {decimal("0.1000000000000000055")},
		"0.3":                               {decimal("0.1"), decimal("0.2")},
		"-4.75":                             {decimal("-5.00"), decimal("+0.25")},
		"7.5":                               {integer(7), decimal("0.50"), {Kind: source.KindNull}},
		"123456789012345678901234567890.12": {decimal("123456789012345678901234567890"), decimal("0.12")},
		"1999999999999999998":               {decimal("999999999999999999"), decimal("999999999999999999")},
		"2":                                 {{Kind: source.KindBool, Int: 1}, integer(1)},
	} {
		s := sumOf(values...)
		if s.String() != want {
			t.Errorf("%s, want %s", s, want)
		}
		back, err := snapshot.DecodeSum(snapshot.EncodeSum(s))
		if err != nil || !back.Equal(s) || back.String() != want {
			t.Errorf("%s came back as %s %v", want, back, err)
		}
	}
	if one, other := sumOf(integer(1<<53)), sumOf(integer(1<<53+1)); one.Equal(other) {
		t.Error("exact sums are compared as floats")
	}
}

// Sums of floats lose nothing that the number of rows would make them lose, and are compared by their magnitudes.
func TestSumsOfFloats(t *testing.T) {
	var s snapshot.Sum
	for range 1_000_000 {
		v := floating(0.1)
		s.Add(&v)
	}
	if s.String() != "100000" {
		t.Errorf("a million tenths are %s", s)
	}
	if got := sumOf(floating(1e100), floating(1), floating(-1e100)); got.String() != "1" {
		t.Errorf("what was lost on the way is %s", got)
	}
	zero := sumOf(floating(0.1), floating(0.2), floating(-0.3))
	if !zero.Equal(sumOf(integer(0))) {
		t.Errorf("%s and 0 differ by a rounding only", zero)
	}
	if sumOf(floating(100)).Equal(sumOf(floating(100.000001))) || !sumOf(floating(100)).Equal(sumOf(floating(100.00000001))) {
		t.Error("the tolerance is not 1e-9")
	}
	if inf := sumOf(floating(math.Inf(1))); !inf.Equal(sumOf(floating(math.Inf(1)))) || inf.Equal(sumOf(floating(1))) || inf.Equal(sumOf(floating(math.Inf(-1)))) {
		t.Error("infinite sums")
	}
	if nan := sumOf(floating(math.Inf(1)), floating(math.Inf(-1))); !nan.Equal(sumOf(floating(math.NaN()))) || nan.Equal(sumOf(integer(0))) {
		t.Error("sums that are no number")
	}
}

func TestSumsThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "x", "1e5", "1.", "~", "1~", "~1", "1~x", "x~1", "--1", "+-1"} {
		if s, err := snapshot.DecodeSum(text); err == nil {
			t.Errorf("%q was read as %s", text, s)
		}
	}
}

// However rows are cut into chunks, the chunks' sums come to the whole's.
func TestSumsOfChunksAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Custom(func(t *rapid.T) source.Value {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return integer(rapid.Int64().Draw(t, "int"))
			case 1:
				return floating(rapid.Float64Range(-1e12, 1e12).Draw(t, "float"))
			case 2:
				return decimal(fmt.Sprintf("%d.%0*d", rapid.IntRange(-1e9, 1e9).Draw(t, "whole"), rapid.IntRange(1, 12).Draw(t, "digits"), rapid.IntRange(0, 9).Draw(t, "fraction")))
			}
			return source.Value{Kind: source.KindNull}
		})
		values := rapid.SliceOfN(value, 0, 40).Draw(t, "values")
		whole := sumOf(values...)
		var folded snapshot.Sum
		exact := new(big.Rat)
		floats := false
		for len(values) > 0 {
			n := rapid.IntRange(1, len(values)).Draw(t, "chunk")
			c, err := snapshot.DecodeSum(snapshot.EncodeSum(sumOf(values[:n]...)))
			if err != nil {
				t.Fatal(err)
			}
			folded.Merge(c)
			for _, v := range values[:n] {
				switch v.Kind {
				case source.KindInt:
					exact.Add(exact, new(big.Rat).SetInt64(v.Int))
				case source.KindFloat:
					floats = true
				case source.KindDecimal:
					r, _ := new(big.Rat).SetString(string(v.Text))
					exact.Add(exact, r)
				}
			}
			values = values[n:]
		}
		if !folded.Equal(whole) {
			t.Fatalf("folded %s, whole %s", folded, whole)
		}
		if got, _ := new(big.Rat).SetString(whole.String()); !floats && got.Cmp(exact) != 0 {
			t.Fatalf("%s, want %s", whole, exact.RatString())
		}
	})
}
