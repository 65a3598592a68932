package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"almanac/internal/failure"
)

// Names of checks; those of a column have it behind a colon.
const (
	CheckRows    = "rows"
	CheckSum     = "sum:"
	CheckKeys    = "keys"
	CheckObjects = "objects"
	CheckNotNull = "not_null:"
	CheckType    = "type:"
	CheckDrift   = "drift:" // and rows, or sum:column, and what it is against
)

// retryable reports whether reading everything again may mend a failed check. Drift, NULLs and types are in the data.
func retryable(check string) bool {
	return check == CheckRows || check == CheckKeys || check == CheckObjects || strings.HasPrefix(check, CheckSum)
}

// ok is whether a check stands in the way of publication.
func (c Check) ok() bool { return c.Passed || c.Accepted != "" }

// judge makes the checks of a folded generation against its control query.
func judge(d Definition, f *fold, c Control, objects string) []Check {
	checks := []Check{{Name: CheckRows, Expected: strconv.FormatInt(c.Rows, 10), Found: strconv.FormatInt(f.totals.Rows, 10), Passed: c.Rows == f.totals.Rows}}
	for _, name := range c.Columns {
		want, got := c.Sums[name], f.sums[name]
		checks = append(checks, Check{Name: CheckSum + name, Expected: want.String(), Found: got.String(), Passed: want.Equal(got)})
	}
	keys := f.keys
	if f.numbers != "" {
		keys = f.numbers
	}
	checks = append(checks, said(CheckKeys, "increasing from chunk to chunk", keys), said(CheckObjects, "every chunk with its size", objects))
	for _, name := range d.Checks.NotNull {
		n := f.nulls[name]
		checks = append(checks, Check{Name: CheckNotNull + name, Expected: "no NULL", Found: cells(n), Passed: n == 0})
	}
	for _, name := range typedColumns(d, f) {
		typ := d.Checks.Types[name]
		if typ == "" {
			typ = "a number, to be summed"
		}
		n := f.wrong[name]
		checks = append(checks, Check{Name: CheckType + name, Expected: typ, Found: otherCells(n), Passed: n == 0})
	}
	return checks
}

// typedColumns are those whose type is demanded, and those that could not be summed.
func typedColumns(d Definition, f *fold) []string {
	all := maps.Clone(f.wrong)
	for name := range d.Checks.Types {
		all[name] += 0
	}
	return slices.Sorted(maps.Keys(all))
}

func said(name, expected, wrong string) Check {
	if wrong == "" {
		return Check{Name: name, Expected: expected, Found: expected, Passed: true}
	}
	return Check{Name: name, Expected: expected, Found: failure.Cut(wrong, 200)}
}

func cells(n int64) string {
	if n == 0 {
		return "no NULL"
	}
	return fmt.Sprintf("%d NULL", n)
}

func otherCells(n int64) string {
	if n == 0 {
		return "no other cell"
	}
	return fmt.Sprintf("%d other cells", n)
}

// drift compares with the totals of another version; against says which. A bound of nil, and a version that is not
// there, make no check.
func drift(d Definition, f *fold, against string, other *Manifest, bound func(Drift) *float64) []Check {
	if other == nil {
		return nil
	}
	var checks []Check
	one := func(name string, limit *float64, before, now Sum) {
		if limit == nil {
			return
		}
		change, exact := percent(before, now)
		checks = append(checks, Check{Name: CheckDrift + name + ":" + against, Passed: math.Abs(exact) <= *limit,
			Expected: fmt.Sprintf("within %s%% of %s", strconv.FormatFloat(*limit, 'f', -1, 64), before), Found: fmt.Sprintf("%s (%s)", now, change)})
	}
	one(CheckRows, bound(d.Checks.DriftRows), wholeSum(other.Totals.Rows), wholeSum(f.totals.Rows))
	for _, name := range slices.Sorted(maps.Keys(d.Checks.DriftSums)) {
		before, err := totalOf(*other, name)
		if err != nil {
			continue // the other version kept no sum of it
		}
		one(CheckSum+name, bound(d.Checks.DriftSums[name]), before, f.sums[name])
	}
	return checks
}

func wholeSum(n int64) (s Sum) { s.addInt(n); return s }

// totalOf is a column's sum in a manifest: a plain decimal, or a float.
func totalOf(m Manifest, column string) (Sum, error) {
	text, ok := m.Totals.Sums[column]
	if !ok {
		return Sum{}, fmt.Errorf("the manifest has no sum of %q", column)
	}
	if isDecimal(text) {
		return DecodeSum(text)
	}
	return DecodeSum(text + "~" + strings.TrimPrefix(text, "-"))
}

// percent is a change in percent; from nothing to something it is infinite.
func percent(before, now Sum) (text string, exact float64) {
	a, b := before.value(), now.value()
	switch {
	case a == b:
		return "unchanged", 0
	case a == 0 || math.IsNaN(a) || math.IsNaN(b) || math.IsInf(a, 0):
		return "no share of 0", math.Inf(1)
	}
	exact = (b - a) / math.Abs(a) * 100
	return strconv.FormatFloat(exact, 'f', 2, 64) + "%", exact
}

// accept marks the failed checks that a person has accepted for exactly the value found, and returns the acceptances that
// were needed.
func accept(checks []Check, accepted []Acceptance) (used []Acceptance) {
	for i := range checks {
		for _, a := range accepted {
			if c := &checks[i]; !c.ok() && a.Check == c.Name && a.Found == c.Found {
				c.Accepted = fmt.Sprintf("%s: %s", a.By, a.Why)
				used = append(used, a)
			}
		}
	}
	return used
}

// refusal is the failure of checks that stand in the way, nil if none does. A mismatch goes first: as long as the rows
// are not those of the source, what else is wrong with them may be gone when they are read again.
func refusal(checks []Check) *failure.Failure {
	var mismatch, final []string
	for _, c := range checks {
		if c.ok() {
			continue
		}
		line := fmt.Sprintf("%s: expected %s, found %s", c.Name, c.Expected, c.Found)
		if retryable(c.Name) {
			mismatch = append(mismatch, line)
		} else {
			final = append(final, line)
		}
	}
	switch {
	case len(mismatch) > 0:
		return failure.New(failure.ValidationMismatch, "%s", strings.Join(mismatch, "; "))
	case len(final) > 0:
		return failure.New(failure.ValidationRefused, "%s", strings.Join(final, "; "))
	}
	return nil
}

// previous reads the manifests that drift is measured against: that of the current version of the same month, as the
// pointer was read, and that of the month before. nil: there is none.
func (w *work) previous(ctx context.Context, current Pointer) (version, month *Manifest, err error) {
	if current.Version > 0 {
		m, err := readManifest(ctx, w.Objects, w.run.Period, current.Version, current.Manifest)
		if err != nil {
			return nil, nil, err
		}
		version = &m
	}
	before := w.run.Period
	before.Month = before.Month.Add(-1)
	p, err := w.Ledger.Pointer(ctx, before)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, nil, err
	}
	if p.Version > 0 {
		m, err := readManifest(ctx, w.Objects, before, p.Version, p.Manifest)
		if err != nil {
			return nil, nil, err
		}
		month = &m
	}
	return version, month, nil
}
