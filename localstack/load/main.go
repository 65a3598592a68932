// Command load puts load on the deployed functions of a local cloud, checks that every promise was kept, and shows how it
// went. It ends with an error where a promise was broken. `scripts/load` starts the cloud and runs it.
//
// The functions, their queues and their table are the deployed ones; schedules are put into the table by the store's own
// code, since ten thousand requests to the API would measure the API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// options are what the command line says.
type options struct {
	schedules, recipients, slow, rows int
	only                              string
	keep                              bool
}

// part is one load.
type part struct {
	name string
	what string
	run  func(*site, context.Context, options) error
}

var parts = []part{
	{"burst", "many schedules that are due in one minute", (*site).burst},
	{"list", "one schedule with many recipients", (*site).list},
	{"slow", "receivers that answer slowly, beside others", (*site).slow},
	{"outage", "a receiver that is down for a while", (*site).outage},
	{"rows", "a large result of PostgreSQL as a file of each kind", (*site).rows},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	var broken error
	for _, p := range parts {
		if o.only != "" && o.only != p.name {
			continue
		}
		fmt.Printf("== %s: %s\n", p.name, p.what)
		if err := s.part(ctx, p, o); err != nil {
			broken = errors.Join(broken, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return broken
}

func parse(args []string) (o options, err error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.IntVar(&o.schedules, "schedules", 10000, "schedules that are due in one minute, 1 to 100000")
	f.IntVar(&o.recipients, "recipients", 10000, "recipients of one schedule, 1 to 10000")
	f.IntVar(&o.slow, "slow", 12, "slow requests beside 40 quick schedules, 1 to 1000")
	f.IntVar(&o.rows, "rows", 1_000_000, "rows of twenty columns in each kind of file, 1 to 1048575, which a spreadsheet holds")
	f.StringVar(&o.only, "only", "", "one part: "+strings.Join(names, ", "))
	f.BoolVar(&o.keep, "keep", false, "leave the schedules in the table")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for _, n := range []struct {
		name      string
		value, to int
	}{{"schedules", o.schedules, 100000}, {"recipients", o.recipients, 10000}, {"slow", o.slow, 1000}, {"rows", o.rows, 1_048_575}} {
		if n.value < 1 || n.value > n.to {
			return o, fmt.Errorf("-%s is %d; want 1 to %d", n.name, n.value, n.to)
		}
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q is not known; want flags alone", f.Arg(0))
	case o.only != "" && !slices.Contains(names, o.only):
		return o, fmt.Errorf("-only is %q; want one of %s", o.only, strings.Join(names, ", "))
	}
	return o, nil
}
