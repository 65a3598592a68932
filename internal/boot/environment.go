// Package boot turns a function's environment into validated configuration, AWS clients, a logger and the two clocks.
package boot

import (
	"fmt"
	"net/netip"
	"strings"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// Names of the environment variables. The infrastructure sets them, Environment reads them; both from here.
const (
	EnvStage          = "STAGE"
	EnvLocal          = "LOCAL_CLOUD"      // the local cloud's name in the local profile, else empty
	EnvSchedulesTable = "SCHEDULES_TABLE"  // table name
	EnvDataBucket     = "DATA_BUCKET"      // source data files
	EnvFilesBucket    = "FILES_BUCKET"     // produced files
	EnvAthenaOutput   = "ATHENA_OUTPUT"    // where Athena leaves results, such as s3://files/queries/; empty: no source may be Athena's
	EnvQueryQueue     = "QUERY_RUNS_QUEUE" // URL
	EnvMailFrom       = "MAIL_FROM"        // verified SES identity
	EnvMailName       = "MAIL_NAME"        // display name of the sender
	EnvMailSet        = "MAIL_SET"         // SES configuration set that mails are sent with; empty: none
	EnvAccount        = "ACCOUNT"          // id of the account whose mails are ours
	EnvMailRate       = "MAIL_RATE"        // mails a second that the account's functions of this stage may send, all together
	EnvPublicURL      = "PUBLIC_URL"       // base of links, without a trailing slash
	EnvPrivateNets    = "PRIVATE_NETWORKS" // comma-separated CIDRs that webhooks may reach
	EnvAllowList      = "RECIPIENT_ALLOW"  // comma-separated addresses, domains or hosts; empty: everyone
	EnvSecretPrefix   = "SECRET_PREFIX"    // webhook secrets are <prefix><id> in Secrets Manager
	EnvTiming         = "TIMING"           // schedule.Timing as JSON
	EnvMetrics        = "METRICS_NAMESPACE"

	EnvSnapshotsTable   = "SNAPSHOTS_TABLE"   // table name
	EnvSnapshotsBucket  = "SNAPSHOTS_BUCKET"  // files of snapshots
	EnvAttemptMachine   = "ATTEMPT_MACHINE"   // ARN of the state machine whose executions are the attempt jobs
	EnvSnapshotDispatch = "SNAPSHOT_DISPATCH" // function that is asked for a dispatch
	EnvSnapshotPlan     = "SNAPSHOT_PLAN"     // function that is asked to plan
	EnvSnapshotTiming   = "SNAPSHOT_TIMING"   // snapshot.Timing as JSON

	// Where no authorizer stands in front of the API (a local cloud without HTTP APIs), its function verifies tokens
	// itself: of this issuer, for one of these client ids (comma-separated). Empty: the authorizer's claims are read.
	EnvIssuer   = "TOKEN_ISSUER"
	EnvAudience = "TOKEN_AUDIENCE"
)

// Config is the validated environment. Fields that a function does not use stay empty.
type Config struct {
	Stage           string
	Local           string
	SchedulesTable  string
	DataBucket      string
	FilesBucket     string
	AthenaOutput    string
	QueryQueue      string
	MailFrom        string
	MailName        string
	MailSet         string
	Account         string
	MailRate        int
	PublicURL       string
	PrivateNetworks []netip.Prefix
	AllowList       []string
	SecretPrefix    string
	Timing          schedule.Timing
	Metrics         string
	Endpoint        string // AWS_ENDPOINT_URL
	Issuer          string // of the tokens that the function itself verifies; empty: an authorizer has done it
	Audience        []string

	SnapshotsTable   string
	SnapshotsBucket  string
	AttemptMachine   string
	SnapshotDispatch string
	SnapshotPlan     string
	SnapshotTiming   snapshot.Timing
}

// Environment reads and validates. need lists the variables that the function cannot work without; each problem is
// named with its variable, its value and what would be right.
func Environment(get func(string) string, need ...string) (Config, error) {
	var problems []string
	bad := func(name, value, want string) {
		problems = append(problems, fmt.Sprintf("%s is %q; want %s", name, value, want))
	}
	for _, name := range need {
		if strings.TrimSpace(get(name)) == "" {
			bad(name, get(name), "a value: the stack sets it")
		}
	}
	c := Config{
		Stage: get(EnvStage), Local: get(EnvLocal), SchedulesTable: get(EnvSchedulesTable), DataBucket: get(EnvDataBucket),
		FilesBucket: get(EnvFilesBucket), AthenaOutput: get(EnvAthenaOutput), QueryQueue: get(EnvQueryQueue), MailFrom: get(EnvMailFrom), MailName: get(EnvMailName),
		MailSet: get(EnvMailSet), Account: get(EnvAccount),
		PublicURL: strings.TrimRight(get(EnvPublicURL), "/"), SecretPrefix: get(EnvSecretPrefix), Metrics: get(EnvMetrics),
		Endpoint: get("AWS_ENDPOINT_URL"), Issuer: get(EnvIssuer), Audience: list(get(EnvAudience)),
		SnapshotsTable: get(EnvSnapshotsTable), SnapshotsBucket: get(EnvSnapshotsBucket), AttemptMachine: get(EnvAttemptMachine),
		SnapshotDispatch: get(EnvSnapshotDispatch), SnapshotPlan: get(EnvSnapshotPlan), SnapshotTiming: snapshot.DefaultTiming(),
	}
	if c.Stage == "" {
		bad(EnvStage, "", "the stage's name")
	}
	if c.PublicURL != "" && !strings.HasPrefix(c.PublicURL, "https://") && c.Local == "" {
		bad(EnvPublicURL, c.PublicURL, "an https address outside the local profile")
	}
	if c.AthenaOutput != "" && (!strings.HasPrefix(c.AthenaOutput, "s3://") || !strings.HasSuffix(c.AthenaOutput, "/")) {
		bad(EnvAthenaOutput, c.AthenaOutput, "a place in S3 that ends in a slash, such as s3://files/queries/")
	}
	if c.Account != "" && (len(c.Account) != 12 || strings.Trim(c.Account, "0123456789") != "") {
		bad(EnvAccount, c.Account, "an account's id, twelve digits")
	}
	c.issuer(bad)
	if given := get(EnvMailRate); given != "" {
		var ok bool
		if c.MailRate, ok = schedule.ParseRate(given); !ok {
			bad(EnvMailRate, given, schedule.RateForm)
		}
	}
	for _, part := range list(get(EnvPrivateNets)) {
		p, err := netip.ParsePrefix(part)
		if err != nil {
			bad(EnvPrivateNets, part, "networks such as 10.20.0.0/16, separated by commas")
			continue
		}
		c.PrivateNetworks = append(c.PrivateNetworks, p)
	}
	c.AllowList = list(strings.ToLower(get(EnvAllowList)))
	if given := get(EnvAllowList); given != "" && len(c.AllowList) == 0 {
		bad(EnvAllowList, given, "addresses, domains or hosts, separated by commas; nothing at all allows everyone")
	}
	if text := get(EnvTiming); text != "" {
		t, err := schedule.ParseTiming(text)
		if err != nil {
			problems = append(problems, err.Error())
		}
		c.Timing = t
	} else {
		c.Timing = schedule.DefaultTiming()
	}
	if text := get(EnvSnapshotTiming); text != "" {
		var err error
		if c.SnapshotTiming, err = snapshot.ParseTiming(text); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if c.Local != "" {
		problems = append(problems, strayEndpoints(get)...)
	}
	if len(problems) > 0 {
		return c, fmt.Errorf("environment: %s", strings.Join(problems, "; "))
	}
	return c, nil
}

func list(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// issuer holds what concerns the verification of tokens together. Half of it, or all of it where AWS's authorizer does
// the work, is a mistake that must not start.
func (c Config) issuer(bad func(name, value, want string)) {
	audience := strings.Join(c.Audience, ",")
	switch {
	case c.Issuer == "" && audience == "":
		return
	case c.Issuer == "":
		bad(EnvAudience, audience, "nothing without "+EnvIssuer)
	case audience == "":
		bad(EnvAudience, "", "the client ids whose tokens of "+c.Issuer+" are accepted")
	case c.Local == "":
		bad(EnvIssuer, c.Issuer, "nothing outside the local profile: the HTTP API's authorizer verifies tokens there")
	case onLoopback(c.Issuer) != nil:
		bad(EnvIssuer, c.Issuer, "an issuer on loopback such as http://127.0.0.1:4569")
	}
}
