package snapshot_test

import (
	"testing"

	"almanac/internal/failure/failuretest"
)

// TestMain fails when a code that this package owns is provoked by no test here.
func TestMain(m *testing.M) { failuretest.Main(m, "snapshot") }
