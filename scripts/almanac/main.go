// Command almanac is Almanac's command line: a client of the API and of nothing else. `almanac help` tells the rest.
package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	info, err := os.Stdin.Stat()
	p := &command.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: time.Now, Wait: wait, Random: rand.Reader,
		HTTP:     &http.Client{Transport: client.Transport(), Timeout: time.Minute},
		Browse:   browse,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
	os.Exit(p.Main(ctx, os.Args[1:]))
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// browse opens a page; that it may fail is expected, since the address is printed as well.
func browse(address string) error {
	name := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if name == "" {
		name = "xdg-open"
	}
	return exec.Command(name, address).Start()
}
