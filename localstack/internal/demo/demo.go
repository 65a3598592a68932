// Package demo does the product's main job on a deployed local cloud, as its user would: definitions applied by the
// command line, a tick of the rule, files in a mailbox and at a webhook. Run again, it delivers nothing twice.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"almanac/localstack/internal/instance"
	"almanac/localstack/internal/seed"
	"almanac/localstack/internal/step"
)

// The demo's business time: a Monday morning in the data, in New York. The schedules are applied while it stands still,
// a minute before they are due; then it flows.
const (
	before = "2013-05-06T10:29:00Z"
	flows  = "2013-05-06T10:29:55Z"
	first  = "2013-05-06T10:30:00Z"
)

// schedules of the demo's definitions, in the order of the summary.
var schedules = []string{"ewr-delayed-departures", "jfk-last-hour", "lga-carrier-summary", "ewr-day-late", "jfk-mistyped"}

// Demo runs on one instance.
type Demo struct {
	Instance instance.Instance
	HTTP     *http.Client
	Report   *step.Reporter
	Pause    func(context.Context, time.Duration) error
}

// part is one step of the demo.
type part struct {
	name string
	do   func(context.Context) (string, error)
}

// Run does it all and prints the summary.
func (d Demo) Run(ctx context.Context) error {
	if err := d.each(ctx, part{"build the command line", d.build}, part{"sign in", d.signIn}, part{"tell one webhook to refuse", d.refuse}); err != nil {
		return err
	}
	deliver := []part{
		{"apply the demo's definitions", d.apply},
		{"wait for the tick that finds them due, and for the files (up to two minutes)", d.wait},
	}
	g, err := d.grid(ctx)
	if err != nil {
		return err
	}
	if _, done := g.settled(); done {
		if err := d.each(ctx, deliver...); err != nil {
			return err
		}
		return d.summary(ctx)
	}
	if !g.planned() {
		if err := d.each(ctx, part{"plan the months of 2013", d.plan}); err != nil {
			return err
		}
	}
	// The months are generated while the schedules wait for their tick.
	err = d.each(ctx, deliver[0], part{"begin with the months, and call one off", d.begin},
		part{"mend the weather of which readings are missing, and try its month again", d.mend}, deliver[1], part{"wait for the other months", d.finish})
	if err != nil {
		return err
	}
	return d.summary(ctx)
}

func (d Demo) each(ctx context.Context, parts ...part) error {
	for _, p := range parts {
		if err := d.Report.RunNote(p.name, func() (string, error) { return p.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (d Demo) binary() string { return filepath.Join(d.Instance.Bin(), "almanac") }
func (d Demo) config() string { return filepath.Join(d.Instance.Folder(), "almanac") }

func (d Demo) build(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", d.binary(), "./scripts/almanac")
	cmd.Dir = d.Instance.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", step.Fail(err, "go build ./scripts/almanac: "+strings.TrimSpace(string(out)), "read the lines above; with no network Go cannot fetch the modules of go.mod")
	}
	return "", nil
}

// almanac runs the command line, as a person would.
func (d Demo) almanac(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.binary(), append(args, "--config", d.config())...)
	cmd.Dir = d.Instance.Root
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", step.Fail(err, fmt.Sprintf("almanac %s: %s", strings.Join(args, " "), strings.TrimSpace(errs.String()+out.String())),
			"read what it says; the emulator's log is "+d.Instance.EmulatorLog())
	}
	return out.String(), nil
}

func (d Demo) signIn(ctx context.Context) (string, error) {
	text, err := os.ReadFile(d.Instance.Users())
	if err != nil {
		return "", err
	}
	var users []seed.User
	if err := json.Unmarshal(text, &users); err != nil {
		return "", fmt.Errorf("%s: %w", d.Instance.Users(), err)
	}
	if _, err := d.almanac(ctx, "", "configure", "--outputs", d.Instance.Outputs()); err != nil {
		return "", err
	}
	for _, u := range users {
		if u.Group == "admin" {
			_, err := d.almanac(ctx, u.Password+"\n", "login", "--user", u.Name, "--password-stdin")
			return "as " + u.Name, err
		}
	}
	return "", fmt.Errorf("%s holds no user of group admin", d.Instance.Users())
}

// refuse tells the receiver to answer 410 Gone at one path: the recipient that refuses.
func (d Demo) refuse(ctx context.Context) (string, error) {
	address := d.receiver() + "/_control/gone"
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, strings.NewReader(`{"answers":[{"status":410}]}`))
	if err != nil {
		return "", err
	}
	res, err := d.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("PUT %s answers %s", address, res.Status)
	}
	return "", nil
}

func (d Demo) receiver() string { return fmt.Sprintf("http://127.0.0.1:%d", d.Instance.WebhookPort()) }

// apply puts business time into the data's year, unless it is there already, and applies the definitions through the
// API. The definitions name the usual port of the webhook receiver; another instance's own is put in its place.
func (d Demo) apply(ctx context.Context) (string, error) {
	folder, err := d.definitions()
	if err != nil {
		return "", err
	}
	clock, err := d.almanac(ctx, "", "clock", "get")
	if err != nil {
		return "", err
	}
	fresh := !strings.HasPrefix(clock, "2013-") || strings.HasPrefix(clock, before)
	if fresh {
		if _, err := d.almanac(ctx, "", "clock", "set", before, "--frozen"); err != nil {
			return "", err
		}
	}
	out, err := d.almanac(ctx, "", "apply", "-f", folder, "--yes")
	if err != nil {
		return "", err
	}
	if fresh {
		if _, err := d.almanac(ctx, "", "clock", "set", flows); err != nil {
			return "", err
		}
	}
	if clock, err = d.almanac(ctx, "", "clock", "get"); err != nil {
		return "", err
	}
	return fmt.Sprintf("business time is now %s; the plan is in %s", strings.TrimSpace(clock), d.keep("plan.txt", out)), nil
}

// keep writes a text into the instance's folder and returns its path.
func (d Demo) keep(name, text string) string {
	path := filepath.Join(d.Instance.Folder(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "no file: " + err.Error()
	}
	return path
}

const usualReceiver = "http://127.0.0.1:4568"

func (d Demo) definitions() (string, error) {
	from := filepath.Join(d.Instance.Root, "localstack", "demo", "definitions")
	if d.receiver() == usualReceiver {
		return from, nil
	}
	to := filepath.Join(d.Instance.Folder(), "definitions")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	files, err := fs.Glob(os.DirFS(from), "*.yaml")
	if err != nil {
		return "", err
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", err
		}
		text = bytes.ReplaceAll(text, []byte(usualReceiver), []byte(d.receiver()))
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return to, nil
}

// run is what the command line shows of a run, as JSON.
type run struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Submitted int    `json:"submitted"`
	Skipped   int    `json:"skipped"`
	File      *struct {
		Name  string `json:"name"`
		Rows  int    `json:"rows"`
		Bytes int    `json:"bytes"`
	} `json:"file"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Recipients []struct {
		Channel   string `json:"channel"`
		Recipient string `json:"recipient"`
		State     string `json:"state"`
		Outcome   string `json:"outcome"`
		Reason    string `json:"reason"`
	} `json:"recipients"`
}

func (r run) settled() bool {
	return r.State == "succeeded" || r.State == "skipped" || r.State == "failed"
}

func (d Demo) show(ctx context.Context, id string) (run, error) {
	var r run
	out, err := d.almanac(ctx, "", "show", id, "-o", "json")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return r, fmt.Errorf("almanac show %s: %w", id, err)
	}
	return r, nil
}

// wait is patient for two minutes: the rule fires every minute.
func (d Demo) wait(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, s := range schedules {
		id := s + "@" + first
		for {
			r, err := d.show(ctx, id)
			if err == nil && r.settled() {
				break
			}
			if pauseErr := d.Pause(ctx, time.Second); pauseErr != nil {
				why := fmt.Sprintf("run %s is %q", id, r.State)
				if err != nil {
					why = err.Error()
				}
				return "", step.Fail(errors.Join(pauseErr, err), why, "look at the log of the functions: "+d.Instance.EmulatorLog())
			}
		}
	}
	return "", nil
}

// mail is one message that the receiver keeps.
type mail struct {
	To          []string `json:"to"`
	Subject     string   `json:"subject"`
	File        string   `json:"file"`
	Attachments []struct {
		File  string `json:"file"`
		Bytes int    `json:"bytes"`
	} `json:"attachments"`
}

func (d Demo) mails(ctx context.Context, id string) ([]mail, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.receiver()+"/_mails?run="+strings.ReplaceAll(id, ":", "%3A"), nil)
	if err != nil {
		return nil, err
	}
	res, err := d.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var list []mail
	return list, json.NewDecoder(res.Body).Decode(&list)
}
