package memcloud

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "1": "1", "+1": "1", "01.10": "1.1", "-2.50": "-2.5", "1e2": "100", "1E-2": "0.01", ".5": "0.5", "5.": "5",
		"12345678901234567890123456789012345678": "12345678901234567890123456789012345678", "0.1e1": "1", "123e-1": "12.3",
		"1e-130": "0." + strings.Repeat("0", 129) + "1", "9.9e125": "99" + strings.Repeat("0", 124), "1000000000000000000000000000000000000000000": "1" + strings.Repeat("0", 42),
	} {
		d, err := parseDecimal(in)
		if err != nil || d.String() != want {
			t.Errorf("%s is %s (%v), want %s", in, d, err, want)
		}
	}
	for in, words := range map[string]string{
		"": "cannot be converted", "x": "cannot be converted", "NaN": "cannot be converted", "Infinity": "cannot be converted", "0x10": "cannot be converted", "1_000": "cannot be converted",
		"1e": "cannot be converted", "1.2.3": "cannot be converted", "--1": "cannot be converted", " 1": "cannot be converted", "1,5": "cannot be converted", ".": "cannot be converted",
		"123456789012345678901234567890123456789": "more than 38 significant digits", "0.123456789012345678901234567890123456789": "more than 38 significant digits",
		"1e126": "Number overflow", "1e-131": "Number underflow", "-1e126": "Number overflow",
	} {
		_, err := parseDecimal(in)
		wantCode(t, err, "ValidationException", words)
	}
}

func TestNumberSizes(t *testing.T) {
	for in, want := range map[string]int{"0": 1, "1": 2, "12": 2, "123": 3, "-1": 3, "100": 2, "1234567890": 6} {
		if got := mustDecimal(in).size(); got != want {
			t.Errorf("%s takes %d bytes, want %d", in, got, want)
		}
	}
}

// Order and sum agree with exact rationals.
func TestNumbersAgreeWithRationals(t *testing.T) {
	text := rapid.StringMatching(`-?[0-9]{1,14}(\.[0-9]{1,5})?(e-?[0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		d, e := mustDecimal(a), mustDecimal(b)
		if d.compare(e) != x.Cmp(y) {
			t.Fatalf("%s against %s: %d, want %d", a, b, d.compare(e), x.Cmp(y))
		}
		sum, err := d.add(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := new(big.Rat).SetString(sum.String()); got.Cmp(new(big.Rat).Add(x, y)) != 0 {
			t.Fatalf("%s + %s is %s", a, b, sum)
		}
		if back := mustDecimal(d.String()); back != d {
			t.Fatalf("%s reads back as %s", a, back)
		}
	})
}
