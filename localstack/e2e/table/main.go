// Command table prints scenario × cloud out of the files that the end-to-end suite wrote on each local cloud, and fails
// when a scenario failed or did not run.
//
//	go run ./localstack/e2e/table .local/test/scenarios.jsonl .local/test-localstack/scenarios.jsonl
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"almanac/localstack/e2e/scenario"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
}

// run prints a column for each cloud that a file is of. A file without a row is of no cloud, and that is an error: its
// suite did not run at all.
func run(files []string, out io.Writer) error {
	if len(files) == 0 {
		return errors.New("no file given; want those that ALMANAC_SCENARIOS named, one for each cloud")
	}
	var rows []scenario.Row
	for _, name := range files {
		more, err := read(name)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	var clouds []string
	for _, c := range scenario.Clouds {
		if slices.ContainsFunc(rows, func(r scenario.Row) bool { return r.Cloud == c }) {
			clouds = append(clouds, c)
		}
	}
	if problems := scenario.Print(out, clouds, rows); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func read(name string) ([]scenario.Row, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := scenario.Read(f)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(rows) == 0:
		return nil, fmt.Errorf("%s holds no row: the suite did not run", name)
	}
	return rows, nil
}
