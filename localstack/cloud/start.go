package main

import (
	"context"
	"fmt"
	"os"

	"almanac/localstack/internal/emulator"
	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/machine"
	"almanac/localstack/internal/process"
)

// companion is one of our own programs that runs beside an emulator.
type companion interface {
	Build(context.Context) error
	Start(context.Context) (already bool, err error)
	Stop(context.Context) (process.Outcome, error)
	Running() bool
}

// beside is a companion, with the words for the person who watches.
type beside struct {
	companion
	name  string
	ports map[int]string // what each is for
	note  string         // said when it has been started
}

// companions of the instance's cloud.
func (c cloud) companions() []beside {
	i := c.instance
	all := []beside{{
		emulator.Receivers{Instance: i}, "the receivers of mail and webhooks",
		map[int]string{i.SMTPPort(): "mail receiver", i.WebhookPort(): "webhook receiver"}, "they keep what they get in " + i.ReceiversFolder(),
	}}
	if i.Cloud == instance.LocalStack {
		all = append(all, beside{emulator.Issuer{Instance: i}, "the issuer of tokens", map[int]string{i.IssuerPort(): "issuer"}, "at " + i.Issuer()})
	}
	return all
}

func (c cloud) emulator() emulator.Emulator {
	return emulator.Emulator{Instance: c.instance, Client: c.client}
}

func (c cloud) start(ctx context.Context) error {
	all := c.companions()
	if c.emulatorOnly {
		all = nil
	}
	for _, b := range all {
		if err := c.report.Run("build "+b.name, func() error { return b.Build(ctx) }); err != nil {
			return err
		}
	}
	if err := c.report.Run("check the ports", func() error { return c.portsFree(all) }); err != nil {
		return err
	}
	if err := c.startEmulator(ctx); err != nil {
		return err
	}
	for _, b := range all {
		err := c.report.RunNote("start "+b.name, func() (string, error) {
			already, err := b.Start(ctx)
			if already {
				return "run already", err
			}
			return b.note, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c cloud) startEmulator(ctx context.Context) error {
	em := c.emulator()
	return c.report.RunNote(fmt.Sprintf("start %s on port %d", c.instance.Cloud, c.instance.Port), func() (string, error) {
		if em.Died() {
			// What they kept belongs to the state that is discarded now.
			for _, b := range c.companions() {
				if _, err := b.Stop(ctx); err != nil {
					return "", err
				}
			}
		}
		already, lost, err := em.Start(ctx)
		switch {
		case lost && !c.instance.Cloud.KeepsState():
			return "it keeps its state in memory, so it starts empty", err
		case lost:
			return "an earlier run of it ended without saving, so its state was discarded and it starts empty", err
		case already:
			return "runs already", err
		}
		return "log: " + c.instance.EmulatorLog(), err
	})
}

// portsFree looks at the ports of what does not run yet.
func (c cloud) portsFree(all []beside) error {
	i := c.instance
	if !c.emulator().Running() {
		if err := machine.PortFree(i.Port, "AWS API"); err != nil {
			return err
		}
		// A DynamoDB Local on record is this instance's own: it is used, or ended, by the start.
		if r, err := process.Load(i.DynamoDBRecord()); i.Cloud == instance.LocalStack && (err != nil || !r.Alive()) {
			if err := machine.PortFree(i.DynamoDBPort(), "DynamoDB Local"); err != nil {
				return err
			}
		}
	}
	for _, b := range all {
		if b.Running() {
			continue
		}
		for port, use := range b.ports {
			if err := machine.PortFree(port, use); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c cloud) stop(ctx context.Context) error {
	kept := "its state is saved for the next start"
	if !c.instance.Cloud.KeepsState() {
		kept = "its state was in memory: the next start begins empty"
	}
	err := c.report.RunNote("stop "+string(c.instance.Cloud), func() (string, error) {
		outcome, err := c.emulator().Stop(ctx)
		if outcome == process.Killed && !c.instance.Cloud.KeepsState() {
			outcome = process.Stopped // a kill loses nothing that a stop would keep
		}
		return outcomeNote(outcome, kept), err
	})
	if err != nil {
		return err
	}
	for _, b := range c.companions() {
		err := c.report.RunNote("stop "+b.name, func() (string, error) {
			outcome, err := b.Stop(ctx)
			return outcomeNote(outcome, ""), err
		})
		if err != nil {
			return err
		}
	}
	if !c.wipe {
		return nil
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
