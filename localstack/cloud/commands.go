package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"almanac/localstack/internal/demo"
	"almanac/localstack/internal/deploy"
	"almanac/localstack/internal/install"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/machine"
	"almanac/localstack/internal/process"
	"almanac/localstack/internal/rawaws"
	"almanac/localstack/internal/seed"
	"almanac/localstack/internal/step"
)

// needed is the space of everything that is installed and built, in bytes, with room for a build of the functions.
const needed = 3 << 30

type cloud struct {
	options
	client *http.Client
	report *step.Reporter
	out    io.Writer
}

var commands = map[string]func(cloud, context.Context) error{
	"up": cloud.up, "check": cloud.check, "install": cloud.install, "start": cloud.start, "deploy": cloud.deploy,
	"seed": cloud.seed, "demo": cloud.demo, "env": cloud.env, "status": cloud.status, "stop": cloud.stop, "dynamodb": cloud.dynamoDB,
}

func (c cloud) do(ctx context.Context) error { return commands[c.command](c, ctx) }

func (c cloud) up(ctx context.Context) error {
	for _, part := range []func(cloud, context.Context) error{cloud.check, cloud.install, cloud.start, cloud.deploy, cloud.seed, cloud.demo} {
		if err := part(c, ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c cloud) check(ctx context.Context) error {
	return c.report.Run("check this machine", func() error {
		tools := machine.Tools
		if c.instance.Cloud == instance.LocalStack {
			tools = append(slices.Clone(tools), machine.JavaTools...)
		}
		for _, tool := range tools {
			if err := tool.Check(ctx, machine.RunTool); err != nil {
				return err
			}
		}
		return machine.Disk(c.instance.Root, needed, machine.Free)
	})
}

func (c cloud) install(ctx context.Context) error {
	return install.Installer{Instance: c.instance, Report: c.report}.All(ctx)
}

func (c cloud) deploy(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.whileAlive(ctx, deploy.Deployer{Instance: c.instance, Report: c.report, Bootstrapped: c.bootstrapped}.Run)
}

// alive refuses to go on with a cloud that does not run.
func (c cloud) alive() error {
	if c.emulator().Running() {
		return nil
	}
	return &step.Failure{
		Step: c.command, Why: fmt.Sprintf("the local cloud %q does not run", c.instance.Name),
		Do: "run scripts/up", Log: process.Tail(c.instance.EmulatorLog(), 10),
	}
}

// whileAlive does something that needs the emulator, and ends it when the emulator dies under it: what is done would
// otherwise try again for minutes, and then tell of a connection that was refused.
func (c cloud) whileAlive(ctx context.Context, do func(context.Context) error) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var died = errors.New("the emulator ended")
	go func() {
		for pause(watched, 500*time.Millisecond) == nil {
			if !c.emulator().Running() {
				cancel(died)
			}
		}
	}()
	err := do(watched)
	if err == nil || !errors.Is(context.Cause(watched), died) {
		return err
	}
	return &step.Failure{
		Step: c.command, Why: fmt.Sprintf("the local cloud %q ended while it was used", c.instance.Name),
		Do: "read the end of its log below, then run scripts/up again", Log: process.Tail(c.instance.EmulatorLog(), 15),
	}
}

// bootstrapped asks for the stack that "cdk bootstrap" makes.
func (c cloud) bootstrapped(ctx context.Context) (bool, error) {
	client := rawaws.Client{
		Endpoint: c.instance.Endpoint(), Region: instance.Region, HTTP: c.client, Now: time.Now,
		Credentials: aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"},
	}
	text, err := client.Query(ctx, "cloudformation", "2010-05-15", "DescribeStacks", map[string]string{"StackName": "CDKToolkit"})
	var refused *rawaws.Error
	if errors.As(err, &refused) && refused.Code == "ValidationError" { // AWS's answer for a stack that does not exist
		return false, nil
	}
	return strings.Contains(text, "_COMPLETE</StackStatus>"), err
}

func (c cloud) seed(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	outputs, err := deploy.ReadOutputs(c.instance.Outputs())
	if err != nil {
		return err
	}
	return c.whileAlive(ctx, seed.Seeder{Instance: c.instance, Outputs: outputs, HTTP: c.client, Report: c.report}.All)
}

func (c cloud) demo(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.whileAlive(ctx, demo.Demo{Instance: c.instance, HTTP: c.client, Report: c.report, Pause: pause}.Run)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// env prints what a client of this cloud needs, as shell settings.
func (c cloud) env(context.Context) error {
	i := c.instance
	lines := append(i.AWSEnv(),
		"LOCAL_CLOUD="+string(i.Cloud),
		"ALMANAC_CLOUD="+string(i.Cloud),
		"ALMANAC_ENDPOINT="+i.Endpoint(),
		"ALMANAC_INSTANCE="+i.Name,
		"ALMANAC_OUTPUTS="+i.Outputs(),
		"ALMANAC_USERS="+i.Users(),
		"ALMANAC_RECEIVED="+i.ReceiversFolder(),
		fmt.Sprintf("ALMANAC_WEBHOOK_RECEIVER=http://127.0.0.1:%d", i.WebhookPort()),
		fmt.Sprintf("ALMANAC_SMTP_RECEIVER=127.0.0.1:%d", i.SMTPPort()),
		"ALMANAC_WEBHOOK_SECRET_FILE="+i.WebhookSecret(),
	)
	if i.Cloud == instance.LocalStack {
		lines = append(lines, "ALMANAC_ISSUER="+i.Issuer(), fmt.Sprintf("ALMANAC_DYNAMODB_LOCAL=http://127.0.0.1:%d", i.DynamoDBPort()))
	}
	if outputs, err := deploy.ReadOutputs(i.Outputs()); err == nil && outputs["ApiUrl"] != "" {
		lines = append(lines, "ALMANAC_API_URL="+outputs["ApiUrl"])
	}
	c.export(lines...)
	return nil
}

// export prints settings for a shell.
func (c cloud) export(lines ...string) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(c.out, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
}

func (c cloud) status(context.Context) error {
	records := []string{c.instance.EmulatorRecord(), c.instance.ReceiversRecord()}
	if c.instance.Cloud == instance.LocalStack {
		records = append(records, c.instance.DynamoDBRecord(), c.instance.IssuerRecord())
	}
	for _, path := range records {
		r, err := process.Load(path)
		switch {
		case errors.Is(err, process.ErrNotRunning):
			c.report.Line("%s: not started", strings.TrimSuffix(filepath.Base(path), ".json"))
		case err != nil:
			return err
		case r.Alive():
			c.report.Line("%s: runs as process %d, log %s", r.Name, r.PID, r.Log)
		default:
			c.report.Line("%s: ended by itself, log %s", r.Name, r.Log)
		}
	}
	return nil
}
