package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"almanac/localstack/internal/instance"
)

// summary prints what became of each run, where the files are, and what to try next.
func (d Demo) summary(ctx context.Context) error {
	line := d.Report.Line
	line("")
	line("The morning of Monday, 6 May 2013, 06:30 in New York:")
	for _, s := range schedules {
		r, err := d.show(ctx, s+"@"+first)
		if err != nil {
			return err
		}
		line("")
		line("  %s: %s", r.ID, describe(r))
		for _, to := range r.Recipients {
			line("    %-8s %-34s %s", to.Channel, to.Recipient, outcome(to.Outcome, to.State, to.Reason))
		}
		if r.Error != nil {
			line("    %s: %s", r.Error.Code, r.Error.Message)
		}
	}
	id := schedules[0] + "@" + first
	text, err := d.almanac(ctx, "", "show", id)
	if err != nil {
		return err
	}
	line("")
	line("How %s went:", id)
	_, timeline, _ := strings.Cut(text, "Timeline\n")
	line("%s", strings.TrimRight(timeline, "\n"))
	mails, err := d.mails(ctx, id)
	if err != nil {
		return err
	}
	line("")
	for _, m := range mails {
		line("Mail received: %s", d.relative(m.File))
		for _, a := range m.Attachments {
			line("   attachment: %s (%d bytes)", d.relative(a.File), a.Bytes)
		}
	}
	line("Webhook received: %s", d.relative(filepath.Join(d.Instance.ReceiversFolder(), "hook")))
	if err := d.monthsSummary(ctx); err != nil {
		return err
	}
	d.next()
	return nil
}

func describe(r run) string {
	if r.File == nil {
		return r.State
	}
	return fmt.Sprintf("%s, %d rows, %d bytes in %q; %d submitted, %d skipped", r.State, r.File.Rows, r.File.Bytes, r.File.Name, r.Submitted, r.Skipped)
}

func outcome(words ...string) string {
	var said []string
	for _, w := range words {
		if w != "" {
			said = append(said, w)
		}
	}
	return strings.Join(said, ", ")
}

func (d Demo) relative(path string) string {
	if rel, err := filepath.Rel(d.Instance.Root, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func (d Demo) next() {
	for _, l := range []string{
		"",
		"What to try next (business time flows on from 2013-05-06; the hourly schedule runs each hour):",
		"  export ALMANAC_CONFIG=" + d.relative(d.config()),
		"  " + d.relative(d.binary()) + " get schedules",
		"  " + d.relative(d.binary()) + " show " + schedules[2] + "@" + first,
		"  " + d.relative(d.binary()) + " run-now " + schedules[1] + " --wait",
		"  " + d.relative(d.binary()) + " pause " + schedules[0] + " --reason \"holiday\"",
		"  " + d.relative(d.binary()) + " " + strings.Join(mended.with("snapshot show"), " "),
		"  " + d.relative(d.binary()) + " " + strings.Join(mended.with("manifest"), " "),
		"  " + d.relative(d.binary()) + " rerun EWR carrier-performance 2013-02 --reason \"once more\"",
		"  " + d.relative(d.binary()) + " compare EWR carrier-performance 2013-02 1 2",
		"  " + down(d.Instance.Cloud),
	} {
		d.Report.Line("%s", l)
	}
}

// down is how to stop, and what a later start finds.
func down(cloud instance.Cloud) string {
	if cloud.KeepsState() {
		return "scripts/down           # stop; scripts/up goes on from there"
	}
	return fmt.Sprintf("LOCAL_CLOUD=%s scripts/down   # stop; it keeps its state in memory, so scripts/up begins anew", cloud)
}
