package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	only    *regexp.Regexp
	suites  *regexp.Regexp
	resume  bool
	list    bool
	verbose bool
	again   bool // the dear suites are asked of every mutant
	workers int
	folder  string
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "try the mutants alone whose whole id this `pattern` matches, such as 'swap:.*'")
	suites := flags.String("suites", ".*", "ask the suites alone whose whole name this `pattern` matches")
	flags.BoolVar(&o.resume, "resume", false, "keep the results of the run before, if the binaries are the same")
	flags.BoolVar(&o.list, "list", false, "list the mutants and try none")
	flags.BoolVar(&o.verbose, "v", false, "say what becomes of each mutant")
	flags.BoolVar(&o.again, "explained", false, "ask the fault simulation also of the mutants that have a reason for their survival: a minute of processor time for each")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many mutants are tried at once")
	flags.StringVar(&o.folder, "survivors", "internal/simulate/mutants/survivors.txt", "the `file` of survivors and their reasons")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not known; mutants are chosen by -only", flags.Arg(0))
	}
	if o.workers < 1 {
		return o, fmt.Errorf("-workers is %d; want 1 or more", o.workers)
	}
	if o.suites, err = regexp.Compile("^(?:" + *suites + ")$"); err != nil {
		return o, fmt.Errorf("-suites is %q; want a regular expression: %w", *suites, err)
	}
	if *only != "" {
		if o.only, err = regexp.Compile("^(?:" + *only + ")$"); err != nil {
			return o, fmt.Errorf("-only is %q; want a regular expression: %w", *only, err)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := module(ctx)
	if err != nil {
		return err
	}
	t := tree{root: root, work: filepath.Join(root, ".local", "mutants")}
	f, err := os.Open(filepath.Join(root, o.folder))
	if err != nil {
		return err
	}
	defer f.Close()
	why, err := reasons(f)
	if err != nil {
		return fmt.Errorf("%s: %w", o.folder, err)
	}
	digest, ks, mutants, s, err := t.prepare(ctx, o, out)
	if err != nil {
		return err
	}
	end := outcome{mutants: chosen(mutants, o.only), results: s.Results, reasons: why, whole: o.only == nil}
	if len(end.mutants) == 0 {
		return fmt.Errorf("-only matches none of %d mutants; -list lists them", len(mutants))
	}
	if o.list {
		for _, m := range end.mutants {
			fmt.Fprintf(out, "%s\n    %s: %s\n", m.ID, m.Place, m.What)
		}
		return nil
	}
	if err := t.trials(ctx, o, out, ks, end, digest, &s); err != nil {
		return err
	}
	return end.finish(t, out)
}

// prepare weaves, builds, and runs each suite once with every mutant off, unless that was done for these very binaries.
func (t tree) prepare(ctx context.Context, o options, out io.Writer) (digest string, ks []killer, mutants []Mutant, s saved, err error) {
	began := time.Now()
	all, mutants, err := plant(t.root)
	if err != nil {
		return "", nil, nil, s, err
	}
	if err = t.weave(all); err != nil {
		return "", nil, nil, s, err
	}
	if digest, ks, err = t.build(ctx, asked(o.suites)); err != nil {
		return "", nil, nil, s, err
	}
	s = t.load(digest)
	if len(s.Tests) == 0 {
		if s.Tests, err = t.baseline(ctx, ks, o.workers); err != nil {
			return "", nil, nil, s, err
		}
		if err = t.save(digest, s); err != nil {
			return "", nil, nil, s, err
		}
	}
	if !o.resume {
		s.Results = map[string]Result{}
	}
	mutants = append(conditions(s.Tests), mutants...)
	fmt.Fprintf(out, "%d mutants, %d tests in %d suites; woven, built and run once with every mutant off in %.0f s\n", len(mutants), len(s.Tests), len(ks), time.Since(began).Seconds())
	return digest, ks, mutants, s, nil
}

// asked are the suites whose name a pattern matches.
func asked(name *regexp.Regexp) (ks []killer) {
	for _, k := range killers {
		if name.MatchString(k.name) {
			ks = append(ks, k)
		}
	}
	return ks
}

// trials tries the mutants that have no result yet.
func (t tree) trials(ctx context.Context, o options, out io.Writer, ks []killer, of outcome, digest string, s *saved) error {
	var mu sync.Mutex
	var failure error
	done, began := 0, time.Now()
	parallel(o.workers, len(of.mutants), func(i int) {
		m := of.mutants[i]
		mu.Lock()
		_, known := s.Results[m.ID]
		mu.Unlock()
		if known || ctx.Err() != nil {
			return
		}
		r := t.try(ctx, ks, m, s.Tests, of.reasons[m.ID] != "" && !o.again)
		if ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		s.Results[m.ID] = r
		done++
		if o.verbose || !r.Killed {
			fmt.Fprintln(out, line(m, r))
		}
		if done%25 == 0 {
			fmt.Fprintf(out, "%d of %d tried, %.0f s\n", done, len(of.mutants), time.Since(began).Seconds())
			failure = errors.Join(failure, t.save(digest, *s))
		}
	})
	return errors.Join(failure, t.save(digest, *s), ctx.Err())
}

func line(m Mutant, r Result) string {
	if r.Killed {
		return fmt.Sprintf("killed   %s by %s: %s, %.1f s", m.ID, r.Suite, r.Test, r.Seconds)
	}
	return fmt.Sprintf("survives %s (%s), %d tests come to it, %.1f s", m.ID, m.Place, r.Reached, r.Seconds)
}

// finish writes the list of all mutants, prints the table, and fails over what nobody explains.
func (o outcome) finish(t tree, out io.Writer) error {
	name := filepath.Join(t.work, "mutants.md")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	o.table(io.MultiWriter(out, f))
	o.list(f)
	fmt.Fprintf(out, "\nEvery mutant and who killed it: %s\n", strings.TrimPrefix(name, t.root+"/"))
	if list := o.problems(); len(list) > 0 {
		return fmt.Errorf("%d mutants need a test or a reason:\n%s", len(list), strings.Join(list, "\n"))
	}
	return nil
}

// module is the folder of the module that the command is run in.
func module(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("the module cannot be found: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
