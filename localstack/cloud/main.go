// Command cloud runs a local cloud for Almanac: it installs what that needs, starts and stops it, and deploys the app to
// it. scripts/up and scripts/down call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"almanac/internal/loopback"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/step"
)

const usage = `usage: cloud COMMAND [-instance NAME] [-port N]
       cloud dynamodb start|stop|env [-port N]

  up       everything below, in order
  check    look whether this machine has what is needed
  install  emulator, CDK command, demo data, at their pinned versions
  start    emulator and receivers          (-emulator-only: the emulator alone)
  deploy   build the functions, deploy the app
  seed     users, demo data, webhook secret, sender
  demo     the demo's definitions, its first files, the summary
  env      print the settings for a client of this cloud, for: eval "$(cloud env)"
  status   what runs
  stop     stop what start started         (-wipe: remove the cloud's data too)
  dynamodb AWS's own DynamoDB Local, installed and started alone, on port 4870

LOCAL_CLOUD names the cloud: ministack (usual) or localstack. An instance is of one cloud. "demo" (usual) listens on port
4566 and those that follow, "test" on 4666; with LocalStack "demo-localstack" (usual) on 4566, "test-localstack" on 4766.
-port or ALMANAC_PORT chooses others.
`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "\n"+err.Error())
		cancel()
		os.Exit(1)
	}
}

// options are the command line and the settings of one call.
type options struct {
	command      string
	action       string // of the command dynamodb
	instance     instance.Instance
	root         string
	port         int // as given; zero if it was not
	emulatorOnly bool
	wipe         bool
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	o, err := parse(args, getenv, root)
	if err != nil {
		return err
	}
	c := cloud{
		options: o,
		client:  loopback.Client(5 * time.Minute),
		report:  &step.Reporter{Out: out, Now: time.Now, Every: 10 * time.Second},
		out:     out,
	}
	return c.do(ctx)
}

// parse reads the command line; port and cloud may also come from the environment.
func parse(args []string, getenv func(string) string, root string) (options, error) {
	var o options
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return o, fmt.Errorf("no command given\n%s", usage)
	}
	o.command = args[0]
	if _, known := commands[o.command]; !known {
		return o, fmt.Errorf("unknown command %q\n%s", o.command, usage)
	}
	o.root = root
	rest := args[1:]
	if o.command == "dynamodb" {
		if len(rest) == 0 || !slices.Contains(dynamoDBActions, rest[0]) {
			return o, fmt.Errorf("cloud dynamodb: right are %s\n%s", strings.Join(dynamoDBActions, ", "), usage)
		}
		o.action, rest = rest[0], rest[1:]
	}
	flags := flag.NewFlagSet(o.command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("instance", "", "")
	port := flags.String("port", "", "")
	flags.BoolVar(&o.emulatorOnly, "emulator-only", false, "")
	flags.BoolVar(&o.wipe, "wipe", false, "")
	if err := flags.Parse(rest); err != nil {
		return o, fmt.Errorf("%v\n%s", err, usage)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q\n%s", flags.Arg(0), usage)
	}
	if *port == "" && o.command != "dynamodb" { // the setting is the instances'
		*port = getenv("ALMANAC_PORT")
	}
	if *port != "" {
		n, err := strconv.Atoi(*port)
		if err != nil || n < 1024 || n > 65535 {
			return o, fmt.Errorf("port %q (option -port or ALMANAC_PORT) is no number from 1024 to 65535", *port)
		}
		o.port = n
	}
	if o.command == "dynamodb" {
		return o, nil
	}
	which, err := chooseCloud(root, *name, getenv("LOCAL_CLOUD"))
	if err != nil {
		return o, err
	}
	if *name == "" {
		*name = which.DemoName()
	}
	o.instance, err = instance.New(root, *name, which, o.port)
	return o, err
}

// chooseCloud reads LOCAL_CLOUD. Where it says nothing, a named instance tells of which cloud it is.
func chooseCloud(root, name, setting string) (instance.Cloud, error) {
	which, err := instance.ParseCloud(setting)
	if err != nil || setting != "" || name == "" {
		return which, err
	}
	if made, ok, err := instance.Of(root, name); err != nil || ok {
		return made, err
	}
	return which, nil
}

// findRoot finds the repository's folder from the working folder upward.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if text, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && strings.HasPrefix(string(text), "module almanac\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s lies in no checkout of Almanac: no folder above it has its go.mod", dir)
		}
	}
}
