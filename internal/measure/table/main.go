// Command table prints the table of the rows that benchmarks added to a file.
//
//	ALMANAC_BENCH=rows go test ./internal/artifact -run '^$' -bench Ratio -benchtime 1x && go run ./internal/measure/table rows
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"almanac/internal/measure"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments; want the one file that %s named", len(args), measure.File)
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := measure.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if len(rows) == 0 {
		return errors.New(args[0] + " holds no row: no benchmark reported one")
	}
	return measure.Print(out, rows)
}
