// Package deploy brings the CDK app onto a local cloud by the ordinary CDK command.
package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/step"
)

// Stage is the profile that the app takes for a local cloud.
const Stage = "local"

// Deployer deploys to one instance.
type Deployer struct {
	Instance instance.Instance
	Report   *step.Reporter
	// Bootstrapped tells whether the CDK's own stack is on the cloud. It asks the cloud, since the cloud may be new.
	Bootstrapped func(ctx context.Context) (bool, error)
}

// Run bootstraps the cloud if that was not done, deploys what changed, and writes the outputs.
func (d Deployer) Run(ctx context.Context) error {
	err := d.Report.RunNote("bootstrap the CDK", func() (string, error) {
		done, err := d.Bootstrapped(ctx)
		if err != nil || done {
			return "there already", err
		}
		// In a folder without cdk.json, since bootstrapping needs no app and would build it.
		return "", d.cdk(ctx, d.Instance.Folder(), nil, "bootstrap", fmt.Sprintf("aws://%s/%s", instance.Account, instance.Region))
	})
	if err != nil {
		return err
	}
	last := &lastLine{}
	return d.Report.RunWatched("build the functions and deploy the app", last.get, func() (string, error) {
		if err := d.cdk(ctx, d.Instance.Root, last, "deploy", "--all", "--require-approval", "never", "--progress", "events", "--outputs-file", d.Instance.Outputs()); err != nil {
			return "", err
		}
		_, err := ReadOutputs(d.Instance.Outputs())
		return last.summary(), err
	})
}

func (d Deployer) cdk(ctx context.Context, dir string, watch io.Writer, args ...string) error {
	i := d.Instance
	if err := os.MkdirAll(filepath.Dir(i.CDKLog()), 0o755); err != nil {
		return err
	}
	log, err := os.Create(i.CDKLog())
	if err != nil {
		return err
	}
	defer log.Close()
	var out io.Writer = log
	if watch != nil {
		out = io.MultiWriter(log, watch)
	}
	path := filepath.Join(i.Root, "infra", "node_modules", ".bin", "cdk")
	cmd := exec.CommandContext(ctx, path, append(append(args, Settings(i)...), "--output", i.CDKOut(), "--no-notices", "--ci")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, out, out, Env(i, os.Environ())
	// The command runs others, which would go on without it and hold its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return step.Fail(err, fmt.Sprintf("cdk %s: %v", args[0], err), "read the end of its output below, the whole is in "+i.CDKLog()).
			WithLog(process.Tail(i.CDKLog(), 25))
	}
	return nil
}

// SourceSecrets are the secrets of databases that the local stage may read: of one name.
const SourceSecrets = "arn:aws:secretsmanager:" + instance.Region + ":" + instance.Account + ":secret:almanac/local/source/postgres-??????"

// LakeDatabase is the database that sources of the local stage may ask Athena for.
const LakeDatabase = "default"

// Settings are what the app is told of the cloud, as the CDK's context.
func Settings(i instance.Instance) []string {
	settings := []string{"-c", "stage=" + Stage, "-c", "cloud=" + string(i.Cloud), "-c", "sourceSecrets=" + SourceSecrets}
	if i.Cloud == instance.LocalStack { // which has no user pools, and no Athena
		return append(settings, "-c", "issuer="+i.Issuer())
	}
	return append(settings, "-c", "athenaDatabases="+LakeDatabase)
}

// Env is the person's environment with every AWS setting replaced by the instance's.
func Env(i instance.Instance, environ []string) []string {
	var env []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "CDK_") && !strings.HasPrefix(v, "ALMANAC_ISSUER=") {
			env = append(env, v)
		}
	}
	env = append(env, i.AWSEnv()...)
	return append(env,
		"CDK_DEFAULT_ACCOUNT="+instance.Account, "CDK_DEFAULT_REGION="+instance.Region,
		"CDK_DISABLE_CLI_TELEMETRY=1",
		// The CDK's runtime warns on each run of Node versions that it will not know one day.
		"JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION=1", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=18,20", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION=1",
		"LOCAL_CLOUD="+string(i.Cloud),
		fmt.Sprintf("ALMANAC_LOCAL_PORT=%d", i.Port),
	)
}

// Outputs are the deployed stack's outputs by name.
type Outputs map[string]string

// ReadOutputs reads the file that the CDK command writes: stack → output → value. The app has one stack; with several,
// their outputs are taken together.
func ReadOutputs(path string) (Outputs, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, step.Fail(err, path+" is not there: the app is not deployed on this cloud", "run scripts/up")
	}
	if err != nil {
		return nil, err
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(text, &stacks); err != nil {
		return nil, step.Fail(err, fmt.Sprintf("%s is no outputs file of the CDK: %v", path, err), "delete it and run scripts/up")
	}
	all := Outputs{}
	for _, outputs := range stacks {
		for name, value := range outputs {
			all[name] = value
		}
	}
	return all, nil
}

// Get gives one output; a missing one is an error that names it.
func (o Outputs) Get(name string) (string, error) {
	if v := o[name]; v != "" {
		return v, nil
	}
	return "", step.Fail(nil, fmt.Sprintf("the stack has no output %q", name), "run scripts/up, which deploys the app as it is now")
}

// lastLine keeps the last line of a command's output, to be shown while it works.
type lastLine struct {
	mu   sync.Mutex
	part string
	line string
	same bool
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(l.part+string(p), "\n")
	l.part = lines[len(lines)-1] // a line that has not ended yet
	for _, line := range lines[:len(lines)-1] {
		if line = strings.TrimSpace(line); strings.ContainsAny(line, "abcdefghijklmnopqrstuvwxyz") {
			l.line = line
			l.same = l.same || strings.Contains(line, "(no changes)")
		}
	}
	return len(p), nil
}

func (l *lastLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 110 {
		return l.line[:110]
	}
	return l.line
}

func (l *lastLine) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.same {
		return "no changes"
	}
	return ""
}
