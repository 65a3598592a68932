// Package command is the command line: each command parses its flags, calls the API and prints what people read.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/scripts/almanac/client"
	"almanac/scripts/almanac/manifest"
	"almanac/scripts/almanac/settings"
	"almanac/scripts/almanac/signin"
)

// Program is the command line with all that it reaches outside itself.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	HTTP     *http.Client
	Now      func() time.Time
	Wait     func(ctx context.Context, d time.Duration) error
	Random   io.Reader
	Browse   func(address string) error
	Terminal bool // In is a person

	folder settings.Folder
}

// Exit codes.
const (
	Done        = 0
	Refused     = 1 // the API said no, the run failed, or the person at the prompt did
	Usage       = 2 // the command or a file is wrong; nothing was sent
	NotSignedIn = 3
	Broken      = 4 // the API is not there or answers with an error of its own
)

type subcommand struct {
	name, args, summary, help string
	run                       func(p *Program, ctx context.Context, c *call) error
	flags                     func(f *flag.FlagSet, c *call)
	min, max                  int // arguments
}

// call is one command as it was typed.
type call struct {
	args []string
	json bool

	outputs, stage               string
	user                         string
	passwordStdin                bool
	folder                       string
	yes                          bool
	workspace, reason, key, form string
	version                      int
	wait, frozen                 bool
	dispatch, send, recipient    string
	as, to, state                string
	unknown                      repeatedFlag
	definition, diff             bool

	typ, from, until string
	query            string
	dryRun, here     bool
	checks           repeatedFlag
}

func commands() []subcommand {
	output := func(f *flag.FlagSet, c *call) { f.StringVar(&c.form, "o", "table", "`format`: table or json") }
	why := func(f *flag.FlagSet, c *call) {
		f.StringVar(&c.reason, "reason", "", "why, in a `sentence`; it is audited (required)")
	}
	return []subcommand{
		{"configure", "--outputs FILE", "point the command line at a deployed stack",
			"Reads the file that `cdk deploy --outputs-file FILE` wrote and keeps the addresses of the API and of the sign-in.", (*Program).configure,
			func(f *flag.FlagSet, c *call) {
				f.StringVar(&c.outputs, "outputs", "", "outputs `file` of the CDK (required)")
				f.StringVar(&c.stage, "stage", "", "the `stage`, where the file holds several")
			}, 0, 0},
		{"login", "", "sign in",
			"Opens the sign-in page in a browser and waits on http://localhost:8765/callback for its answer. With --password-stdin it signs in by password,\nwhich only the local profile allows. Tokens are kept in the configuration folder, readable by you only, and renewed as long as the sign-in lasts.", (*Program).login,
			func(f *flag.FlagSet, c *call) {
				f.StringVar(&c.user, "user", "", "`name` to sign in by password")
				f.BoolVar(&c.passwordStdin, "password-stdin", false, "read the password from standard input")
			}, 0, 0},
		{"apply", "-f FOLDER", "create and edit what YAML files describe",
			"Reads every .yaml file below the folder: documents of kind owner, workspace, source, group, schedule or snapshot. Shows the plan, asks, then applies\nthem in this order. What is not described is left alone. An edit is refused when somebody else has changed the schedule,\ngroup or snapshot since the plan.", (*Program).apply,
			func(f *flag.FlagSet, c *call) {
				f.StringVar(&c.folder, "f", "", "`folder` or file (required)")
				f.BoolVar(&c.yes, "yes", false, "do not ask")
			}, 0, 0},
		{"get", "schedules | runs SCHEDULE | skips SCHEDULE | recipients RUN | workspaces | sources | groups | suppressions [ADDRESS] | dead-letters | snapshots | owners", "list things",
			"Lists as a table, or with -o json as the API gives it. A warning on the error stream says when dispatch or send is off.", (*Program).get,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.StringVar(&c.workspace, "workspace", "", "schedules of this `workspace` only")
				f.StringVar(&c.state, "state", "", "recipients of this `outcome` only: pending, submitted, skipped, unknown or not_sent")
			}, 1, 2},
		{"show", "RUN | SCHEDULE | group/ID | snapshot/WORKSPACE/TYPE", "show one run, schedule, group or definition of snapshots", "A run's id has an @. A run is shown with its recipients, timeline and the uses of its links, a schedule with its definition's main points\nand its next due times. With --definition the definition is printed that the run used, or that the schedule has now.", (*Program).show,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.BoolVar(&c.definition, "definition", false, "print the whole definition, as apply takes it")
			}, 1, 1},
		{"history", "SCHEDULE | group/ID | snapshot/WORKSPACE/TYPE [--diff N M]", "versions of a definition or of a group", "Lists who saved which version and when, the latest first. With --diff: the fields in which version M differs from version N.", (*Program).history,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.BoolVar(&c.diff, "diff", false, "compare two versions, named behind it")
			}, 1, 3},
		{"audits", "SCHEDULE | RUN | group/ID | snapshot/WORKSPACE/TYPE | owner/ID", "what people did to a schedule, run, group, definition or owner", "Who, what, why, before and after; the latest first. A run's id has an @.", (*Program).audits, output, 1, 1},
		{"source", "test NAME [--query SQL]", "say step by step whether a source can be used", "Asks the API to reach the source from where the functions are: network, TLS, sign-in, rights, time, and shows the first rows of a query, or of\nsome table. Ends with exit code 1 where a step failed; what helps is told beside it.", (*Program).source,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.StringVar(&c.query, "query", "", "the `query` whose first rows are wanted; it is given no parameters")
			}, 2, 2},
		{"run-now", "SCHEDULE", "run a schedule once, now", "Makes one run per key: the same key again finds the same run. Without --key a fresh one is made and printed.", (*Program).runNow,
			func(f *flag.FlagSet, c *call) {
				f.StringVar(&c.key, "key", "", "idempotency `key`")
				f.IntVar(&c.version, "version", 0, "run only if the schedule has this `version`")
				f.BoolVar(&c.wait, "wait", false, "follow the run as tail does")
			}, 1, 1},
		{"tail", "RUN", "follow a run until it settles", "Prints each step as it comes. Ends with exit code 0 when the run succeeded or was skipped, 1 when it failed.", (*Program).tail, nil, 1, 1},
		{"pause", "SCHEDULE --reason WHY", "admit nothing until resumed", "Runs that were admitted before are delivered.", (*Program).pause, why, 1, 1},
		{"resume", "SCHEDULE --reason WHY", "admit again", "Nothing missed while paused is sent.", (*Program).resume, why, 1, 1},
		{"delete", "SCHEDULE --reason WHY", "delete a schedule", "Its runs stay readable until they expire. Its id cannot be used again before.", (*Program).remove, why, 1, 1},
		{"stop", "RUN --reason WHY", "ask an open run to end", "It fails as stopped_by_operator before its next recipient, or when it is next taken into work; what has been sent stays sent.\nA run that is settled is refused.", (*Program).stop, why, 1, 1},
		{"revoke", "RUN [--recipient ADDRESS] --reason WHY", "take back download links", "Without --recipient all links of the run, also those of recipients who are asked later. Who opens one is told whom to ask.\nA file that was attached to a mail is out of reach.", (*Program).revoke,
			func(f *flag.FlagSet, c *call) {
				why(f, c)
				f.StringVar(&c.recipient, "recipient", "", "only the link of this `address`, URL or hash")
			}, 1, 1},
		{"resolve", "RUN --recipient ADDRESS --as submitted|skipped --reason WHY", "record what became of an unknown", "For a recipient whose request left and whose answer was lost, once you have found out: submitted where they have it, skipped where they\nhave not and are to be left at that. Nothing is sent. A run that has failed stays failed; show tells what came of the recipient.", (*Program).resolve,
			func(f *flag.FlagSet, c *call) {
				why(f, c)
				f.StringVar(&c.recipient, "recipient", "", "the `address`, URL or hash (required)")
				f.StringVar(&c.as, "as", "", "`submitted` or skipped (required)")
			}, 1, 1},
		{"resend", "RUN --recipient ADDRESS --reason WHY", "send to an unknown again", "For a recipient whose request left and whose answer was lost. It goes under a new key: who has the delivery after all gets it twice.\nCarried out soon; what is no verdict leaves the recipient unknown, and nothing is sent again unasked.", (*Program).resend,
			func(f *flag.FlagSet, c *call) {
				why(f, c)
				f.StringVar(&c.recipient, "recipient", "", "the `address`, URL or hash (required)")
			}, 1, 1},
		{"retry", "RUN [--to everyone] [--include-unknown ADDRESS]... --reason WHY", "send a settled run's file again, as a new run", "Shows whom it would send to and why not the others, asks, then makes a new run with the recorded file for those who got nothing. An unknown\nis sent to only if named. With --to everyone also who has the delivery gets it again. The same --key again finds the same run.", (*Program).retry,
			func(f *flag.FlagSet, c *call) {
				why(f, c)
				f.StringVar(&c.to, "to", "missing", "`missing` or everyone")
				f.Var(&c.unknown, "include-unknown", "an unknown `address`, URL or hash to send to nevertheless; may be given several times")
				f.StringVar(&c.key, "key", "", "idempotency `key`")
				f.BoolVar(&c.yes, "yes", false, "do not ask")
			}, 1, 1},
		{"redrive", "MESSAGE --reason WHY", "read a dead letter again", "For one that an earlier version could not read: an open run that it names is offered again. Where nothing is to be done it is told what\nwould help. almanac get dead-letters lists them.", (*Program).redrive, why, 1, 1},
		{"unsuppress", "ADDRESS --reason WHY", "let an address be sent to again", "For an address whose mail bounced for good, or whose owner complained: no schedule sends to it until somebody lifts that. ADDRESS may be\na hash. What happened before does not suppress it again, another bounce does. SES may have the address on a suppression list of its own:\nthen its mails bounce as that says, until it is taken off there too (aws sesv2 delete-suppressed-destination).", (*Program).unsuppress, why, 1, 1},
		{"control", "[set | audits]", "the red button: dispatch and send, on or off", "Without more it shows the switches. `set` turns those that are given; the other stays as it is. `audits` lists who turned them.\nDispatch off: no due occurrence is admitted. Send off: no recipient is asked, and runs wait until it is on.", (*Program).control,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.StringVar(&c.dispatch, "dispatch", "", "`on` or off")
				f.StringVar(&c.send, "send", "", "`on` or off")
				f.StringVar(&c.reason, "reason", "", "set: why, in a `sentence`; it is audited (required)")
			}, 0, 1},
		{"grid", "[--workspace W] [--type T] [--from MONTH --to MONTH]", "how months of snapshots stand, a letter each", "A line for each type of each workspace, a column for each month; the legend says what the letters mean. Without --from and --to it is the twelve\nmonths up to the last closed one.", (*Program).grid,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.StringVar(&c.workspace, "workspace", "", "only this `workspace`")
				f.StringVar(&c.typ, "type", "", "only this `type`")
				f.StringVar(&c.from, "from", "", "the first `month`, such as 2013-01")
				f.StringVar(&c.until, "to", "", "the last `month`")
			}, 0, 0},
		{"snapshot", "show WORKSPACE TYPE MONTH [VERSION] | list WORKSPACE TYPE | audits WORKSPACE TYPE MONTH VERSION", "one month, or the ledger of a type", "`show` says how a month stands and why, which versions it has, and the life of the latest or of another: attempts, checks with what was expected\nand found, timeline. `list` is every version of every month, the latest first.", (*Program).snapshot, output, 3, 5},
		{"backfill", "TYPE --workspace W[,W...] --from MONTH --to MONTH [--dry-run] --reason WHY", "plan earlier months", "Plans each month of the range of which nothing is published and nothing is under way, and says why not the others. With --dry-run it only says\nwhat it would do. The same --key again plans each month once.", (*Program).backfill,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				why(f, c)
				f.StringVar(&c.workspace, "workspace", "", "`workspaces`, with commas between them (required)")
				f.StringVar(&c.from, "from", "", "the first `month`, such as 2013-01 (required)")
				f.StringVar(&c.until, "to", "", "the last `month` (required)")
				f.BoolVar(&c.dryRun, "dry-run", false, "only say what would be done")
				f.StringVar(&c.key, "key", "", "idempotency `key`")
			}, 1, 1},
		{"rerun", "WORKSPACE TYPE MONTH --reason WHY", "ask for a new version of a month", "Refused while a version is under way, which is named. What is published stays current until the new version is.", (*Program).rerun,
			func(f *flag.FlagSet, c *call) { why(f, c); f.StringVar(&c.key, "key", "", "idempotency `key`") }, 3, 3},
		{"accept", "WORKSPACE TYPE MONTH --check NAME... --reason WHY", "accept failed checks of a month", "For a version that failed for good: a new one is made, which passes the named checks if it finds exactly the same values again.", (*Program).accept,
			func(f *flag.FlagSet, c *call) {
				why(f, c)
				f.Var(&c.checks, "check", "the `name` of a failed check; may be given several times")
				f.StringVar(&c.key, "key", "", "idempotency `key`")
			}, 3, 3},
		{"cancel", "WORKSPACE TYPE MONTH --reason WHY", "cancel the version that is under way", "Its job is stopped and its slot freed; nothing of it will be published.", (*Program).cancel, why, 3, 3},
		{"retry-now", "WORKSPACE TYPE MONTH --reason WHY", "let a failed version be tried at once", "For one that waits for its next attempt.", (*Program).retryNow, why, 3, 3},
		{"roll-back", "WORKSPACE TYPE MONTH VERSION --reason WHY", "make an earlier published version current again", "Refused while a version is under way. No version is removed.", (*Program).rollBack, why, 4, 4},
		{"plan-now", "", "let the planner look for closed months now", "It comes every 15 minutes by itself.", (*Program).planMonths, nil, 0, 0},
		{"manifest", "WORKSPACE TYPE MONTH [VERSION]", "print the manifest of a published version", "That of the current version, or of another. It lists the files with their digests and what was checked.", (*Program).manifest, nil, 3, 4},
		{"verify", "WORKSPACE TYPE MONTH [VERSION] [--here]", "compare a version's files with their digests", "Ends with exit code 1 where a file is not what was recorded. With --here the files are downloaded and compared on this machine.", (*Program).verify,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.BoolVar(&c.here, "here", false, "read the files on this machine")
			}, 3, 4},
		{"compare", "WORKSPACE TYPE MONTH FROM TO [--here]", "how two versions of a month differ", "By their keys: rows added, removed and changed, and the totals. Versions that are too large for one answer are downloaded and compared on this\nmachine, as with --here, a row of each at a time.", (*Program).compare,
			func(f *flag.FlagSet, c *call) {
				output(f, c)
				f.BoolVar(&c.here, "here", false, "read the files on this machine")
			}, 5, 5},
		{"clock", "get | set TIME", "read or set business time (local cloud only)", "TIME is such as 2013-07-01T12:00:00Z.", (*Program).clock,
			func(f *flag.FlagSet, c *call) { f.BoolVar(&c.frozen, "frozen", false, "let it stand still") }, 1, 2},
	}
}

// errUsage is a command that cannot be understood.
type errUsage struct{ text string }

func (e errUsage) Error() string { return e.text }

func usage(format string, args ...any) error { return errUsage{fmt.Sprintf(format, args...)} }

// errFailed is an end that was reached and is not the one that was hoped for; it has been told already.
var errFailed = errors.New("failed")

// Main runs one command and returns the exit code.
func (p *Program) Main(ctx context.Context, args []string) int {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		p.help(p.Out)
		return Done
	}
	for _, s := range commands() {
		if s.name == args[0] {
			return p.exit(p.command(ctx, s, args[1:]))
		}
	}
	fmt.Fprintf(p.Err, "almanac: there is no command %q; almanac help lists them\n", args[0])
	return Usage
}

func (p *Program) help(w io.Writer) {
	fmt.Fprint(w, "almanac COMMAND [arguments]\n\n")
	t := newTable()
	for _, s := range commands() {
		t.row("  "+s.name, s.args, s.summary)
	}
	t.write(w)
	fmt.Fprint(w, `
Every command takes --config DIR, the configuration folder (default: $ALMANAC_CONFIG, or .local/almanac), and --help.

Exit codes: 0 done; 1 refused by the API, declined at the prompt, or the followed run failed; 2 wrong command or file, nothing sent;
3 not signed in; 4 the API does not answer or met an error of its own.
`)
}

func (p *Program) command(ctx context.Context, s subcommand, args []string) error {
	c := &call{}
	f := flag.NewFlagSet(s.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	config := f.String("config", "", "configuration `folder`")
	if s.flags != nil {
		s.flags(f, c)
	}
	for len(args) > 0 { // flags may stand behind arguments
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(p.Out, "almanac %s %s\n\n%s\n\n", s.name, s.args, s.help)
			f.SetOutput(p.Out)
			f.PrintDefaults()
			return nil
		} else if err != nil {
			return usage("%s: %v; almanac %s --help tells more", s.name, err, s.name)
		}
		if args = f.Args(); len(args) > 0 {
			c.args = append(c.args, args[0])
			args = args[1:]
		}
	}
	if n := len(c.args); n < s.min || n > s.max {
		return usage("usage: almanac %s %s", s.name, s.args)
	}
	switch c.form {
	case "", "table":
	case "json":
		c.json = true
	default:
		return usage("-o is %q; want table or json", c.form)
	}
	p.folder = settings.Folder(first(*config, p.Env("ALMANAC_CONFIG"), ".local/almanac"))
	return s.run(p, ctx, c)
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// exit tells an error and picks the code.
func (p *Program) exit(err error) int {
	if err == nil {
		return Done
	}
	var problem *api.Problem
	var down *client.Unreachable
	var wrong errUsage
	var files manifest.Errors
	var fields schedule.Problems
	code := Broken
	switch {
	case errors.Is(err, errFailed):
		return Refused
	case errors.As(err, &wrong), errors.As(err, &files), errors.As(err, &fields), errors.Is(err, os.ErrNotExist), errors.Is(err, settings.ErrNotConfigured):
		code = Usage
	case errors.Is(err, settings.ErrNotSignedIn), errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		code = NotSignedIn
	case errors.As(err, &problem):
		if problem.Status < 500 {
			code = Refused
		}
	case errors.As(err, &down):
	}
	p.tell(err, problem)
	return code
}

// tell prints an error; a problem with its fields, one a line.
func (p *Program) tell(err error, problem *api.Problem) {
	if problem == nil {
		fmt.Fprintf(p.Err, "almanac: %v\n", err)
		return
	}
	text := err.Error()
	if problem.Status == http.StatusUnauthorized {
		text += "; run: almanac login"
	}
	fmt.Fprintf(p.Err, "almanac: %s (%d %s)\n", text, problem.Status, problem.Title)
	for _, e := range problem.Errors {
		fmt.Fprintf(p.Err, "  %s\n", fieldLine(e))
	}
	if c := problem.Current; c != nil {
		fmt.Fprintf(p.Err, "  now: %s is %s%s\n", first(c.Run, c.Schedule)+optional(c.Recipient != "", ", recipient %s,", c.Recipient), c.State, optional(c.Version > 0, ", version %d", c.Version))
	}
	if problem.RequestID != "" {
		fmt.Fprintf(p.Err, "  request %s\n", problem.RequestID)
	}
}

func fieldLine(e api.FieldProblem) string {
	if e.Value == "" {
		return fmt.Sprintf("%s is missing; want %s", e.Field, e.Want)
	}
	return fmt.Sprintf("%s is %s; want %s", e.Field, e.Value, e.Want)
}

func optional(when bool, format string, args ...any) string {
	if !when {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// connect makes a client of the configured stack that sends the stored sign-in, renewed when it is about to end.
func (p *Program) connect() (*client.Client, error) {
	stack, err := p.folder.Stack()
	if err != nil {
		return nil, err
	}
	if _, err := p.folder.Tokens(); err != nil {
		return nil, err
	}
	token := func(ctx context.Context) (string, error) {
		t, err := p.folder.Tokens()
		if err != nil || p.Now().Add(time.Minute).Before(t.Expires) {
			return t.Access, err
		}
		if t, err = p.signIn(stack).Refresh(ctx, t); err != nil {
			return "", err
		}
		return t.Access, p.folder.SaveTokens(t)
	}
	return &client.Client{Base: stack.API, HTTP: p.HTTP, Token: token, Wait: p.Wait}, nil
}

func (p *Program) signIn(s settings.Stack) signin.SignIn {
	return signin.SignIn{Stack: s, HTTP: p.HTTP, Now: p.Now, Random: p.Random}
}

func (p *Program) printf(format string, args ...any) { fmt.Fprintf(p.Out, format, args...) }

// named checks a schedule's or run's name before it becomes a path.
func named(what, name string) error {
	if name == "" || strings.ContainsAny(name, " /?#\r\n") {
		return usage("%q is no %s", name, what)
	}
	return nil
}
