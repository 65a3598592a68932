package calendar

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the tests read the toolchain's own zone data, of which time/tzdata is the copy that the functions run
// with: other data have their rules written out year by year, and go other ways through the time package. Set ZONEINFO
// (to nothing, for the machine's data) to test with others.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("ZONEINFO"); !set {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		zip := filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip")
		if err == nil {
			_, err = os.Stat(zip)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "the Go toolchain's zone data are not found: %v\n", err)
			os.Exit(1)
		}
		os.Setenv("ZONEINFO", zip)
	}
	os.Exit(m.Run())
}
