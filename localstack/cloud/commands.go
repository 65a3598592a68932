package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"almanac/localstack/internal/demo"
	"almanac/localstack/internal/deploy"
	"almanac/localstack/internal/emulator"
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
	"seed": cloud.seed, "demo": cloud.demo, "env": cloud.env, "status": cloud.status, "stop": cloud.stop,
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
		for _, tool := range machine.Tools {
			if err := tool.Check(ctx, machine.RunTool); err != nil {
				return err
			}
		}
		return machine.Disk(c.instance.Root, needed, machine.Free)
	})
}

func (c cloud) install(ctx context.Context) error {
	return install.Installer{Instance: c.instance, Client: c.client, Report: c.report}.All(ctx)
}

func (c cloud) emulator() emulator.Emulator {
	return emulator.Emulator{Instance: c.instance, Client: c.client}
}

func (c cloud) start(ctx context.Context) error {
	em, rec := c.emulator(), emulator.Receivers{Instance: c.instance}
	if !c.emulatorOnly {
		if err := c.report.Run("build the receivers", func() error { return rec.Build(ctx) }); err != nil {
			return err
		}
	}
	if err := c.report.Run("check the ports", func() error { return c.portsFree(em, rec) }); err != nil {
		return err
	}
	err := c.report.RunNote(fmt.Sprintf("start %s on port %d", c.instance.Cloud, c.instance.Port), func() (string, error) {
		if em.Died() {
			// What the receivers kept belongs to the state that is discarded now.
			if _, err := rec.Stop(ctx); err != nil {
				return "", err
			}
		}
		already, lost, err := em.Start(ctx)
		switch {
		case lost:
			return "an earlier run of it ended without saving, so its state was discarded and it starts empty", err
		case already:
			return "runs already", err
		}
		return "log: " + c.instance.EmulatorLog(), err
	})
	if err != nil || c.emulatorOnly {
		return err
	}
	name := fmt.Sprintf("start the receivers of mail (port %d) and webhooks (port %d)", c.instance.SMTPPort(), c.instance.WebhookPort())
	return c.report.RunNote(name, func() (string, error) {
		already, err := rec.Start(ctx)
		if already {
			return "run already", err
		}
		return "they keep what they get in " + c.instance.ReceiversFolder(), err
	})
}

func (c cloud) portsFree(em emulator.Emulator, rec emulator.Receivers) error {
	if !em.Running() {
		if err := machine.PortFree(c.instance.Port, "AWS API"); err != nil {
			return err
		}
	}
	if c.emulatorOnly || rec.Running() {
		return nil
	}
	if err := machine.PortFree(c.instance.SMTPPort(), "mail receiver"); err != nil {
		return err
	}
	return machine.PortFree(c.instance.WebhookPort(), "webhook receiver")
}

func (c cloud) deploy(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	return deploy.Deployer{Instance: c.instance, Report: c.report, Bootstrapped: c.bootstrapped}.Run(ctx)
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
	return seed.Seeder{Instance: c.instance, Outputs: outputs, HTTP: c.client, Report: c.report}.All(ctx)
}

func (c cloud) demo(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	return demo.Demo{Instance: c.instance, HTTP: c.client, Report: c.report, Pause: pause}.Run(ctx)
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
		"ALMANAC_ENDPOINT="+i.Endpoint(),
		"ALMANAC_INSTANCE="+i.Name,
		"ALMANAC_OUTPUTS="+i.Outputs(),
		"ALMANAC_USERS="+i.Users(),
		"ALMANAC_RECEIVED="+i.ReceiversFolder(),
		fmt.Sprintf("ALMANAC_WEBHOOK_RECEIVER=http://127.0.0.1:%d", i.WebhookPort()),
		fmt.Sprintf("ALMANAC_SMTP_RECEIVER=127.0.0.1:%d", i.SMTPPort()),
		"ALMANAC_WEBHOOK_SECRET_FILE="+i.WebhookSecret(),
	)
	if outputs, err := deploy.ReadOutputs(i.Outputs()); err == nil && outputs["ApiUrl"] != "" {
		lines = append(lines, "ALMANAC_API_URL="+outputs["ApiUrl"])
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(c.out, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return nil
}

func (c cloud) status(context.Context) error {
	for _, path := range []string{c.instance.EmulatorRecord(), c.instance.ReceiversRecord()} {
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

func (c cloud) stop(ctx context.Context) error {
	err := c.report.RunNote("stop "+string(c.instance.Cloud), func() (string, error) {
		outcome, err := c.emulator().Stop(ctx)
		return outcomeNote(outcome, "its state is saved for the next start"), err
	})
	if err != nil {
		return err
	}
	err = c.report.RunNote("stop the receivers", func() (string, error) {
		outcome, err := emulator.Receivers{Instance: c.instance}.Stop(ctx)
		return outcomeNote(outcome, ""), err
	})
	if err != nil || !c.wipe {
		return err
	}
	return c.report.Run("remove the data in "+c.instance.Folder(), func() error { return os.RemoveAll(c.instance.Folder()) })
}

func outcomeNote(o process.Outcome, stopped string) string {
	switch o {
	case process.WasNotRunning:
		return "it did not run"
	case process.Killed:
		return "it did not end by itself in time and was killed; what it had not saved is lost"
	}
	return stopped
}
