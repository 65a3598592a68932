// Command build compiles the functions without synthesizing the stack; scripts/build runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"almanac/infra/bundle"
)

func main() {
	arch := flag.String("arch", runtime.GOARCH, "architecture of the functions: arm64 or amd64")
	root := flag.String("root", ".", "folder of go.mod")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/build [-arch arm64|amd64] [FUNCTION...]   (no function: all)")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out, err := bundle.Build(ctx, bundle.Request{
		Root: *root, Architecture: bundle.Architecture(*arch), Names: flag.Args(), Progress: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(out)
}
