package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// Settings is what differs between accounts: given as CDK context (-c mailFrom=…, or in cdk.context.json) or in the
// environment (ALMANAC_MAIL_FROM=…).
type Settings struct {
	Account string // empty: that of the credentials, unknown at synthesis
	Region  string

	MailFrom     string // the sender's address
	MailName     string // and display name
	MailIdentity string // verified SES identity that allows it: the address itself or a domain of it
	MailRate     int    // mails a second that this stage may send; all stages of an account and region share its SES quota

	PrivateNetworks []netip.Prefix // networks that webhooks may reach besides public addresses
	Recipients      []string       // allow-list: addresses, domains, hosts; empty: everyone

	// Issuer and Audience replace the stack's own user pool by another issuer of tokens.
	Issuer   string
	Audience []string

	Sources Sources // databases that functions may sign in to
	Network Network // where the functions that read sources are

	EndpointPort   int // local stage: port of the emulator
	Timing         schedule.Timing
	SnapshotTiming snapshot.Timing

	Lake Lake // what Athena may be asked

	AlarmMail string // address that alarms are mailed to; empty: nobody subscribes to their topic
}

// inputs reads one setting after another and keeps every problem, so that a person sees them all at once.
type inputs struct {
	context  func(key string) any
	env      func(name string) string
	problems []string
}

func (in *inputs) bad(field string, value any, want string) {
	in.problems = append(in.problems, fmt.Sprintf("%s is %s; want %s", field, quote(value), want))
}

func quote(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%v (%T)", v, v)
}

// variable spells the environment variable of a context key: mailFrom is ALMANAC_MAIL_FROM.
func variable(key string) string {
	var b strings.Builder
	b.WriteString("ALMANAC_")
	for _, r := range key {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// text is a setting as written, from context or environment; "" when in neither.
func (in *inputs) text(key string) string { return in.textOr(key, variable(key)) }

// textOr is text with an environment variable of a name of its own.
func (in *inputs) textOr(key, variable string) string {
	var fromContext string
	switch v := in.context(key).(type) {
	case nil:
	case string:
		fromContext = v
	default:
		in.bad(key, v, "text")
		return ""
	}
	fromEnv := in.env(variable)
	if fromContext != "" && fromEnv != "" && fromContext != fromEnv {
		in.bad(key, fromContext, fmt.Sprintf("the same as %s, which is %q, or only one of them", variable, fromEnv))
	}
	if fromContext == "" {
		return fromEnv
	}
	return fromContext
}

func (in *inputs) list(key string) []string {
	var out []string
	for _, part := range strings.Split(in.text(key), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// StageOf reads the stage's name from context or environment.
func StageOf(context func(string) any, env func(string) string) (string, error) {
	in := &inputs{context: context, env: env}
	stage := in.text("stage")
	return stage, in.err()
}

// CloudOf reads the local cloud's name from the context "cloud" or from LOCAL_CLOUD, the same variable that the scripts
// and the functions read.
func CloudOf(context func(string) any, env func(string) string) (string, error) {
	in := &inputs{context: context, env: env}
	cloud := in.textOr("cloud", "LOCAL_CLOUD")
	return cloud, in.err()
}

// SettingsOf reads and validates the settings for a profile. The error names each wrong field, its value and what
// would be right.
func SettingsOf(p Profile, context func(string) any, env func(string) string) (Settings, error) {
	in := &inputs{context: context, env: env}
	s := Settings{Timing: p.Timing, SnapshotTiming: p.SnapshotTiming}
	in.place(p, &s)
	in.mail(p, &s)
	in.mailRate(p, &s)
	in.networks(p, &s)
	in.recipients(p, &s)
	in.issuer(p, &s)
	in.alarmMail(&s)
	in.databases(&s)
	in.network(p, &s)
	in.lake(p, &s)
	in.timing(p, &s)
	return s, in.err()
}

func (in *inputs) err() error {
	if len(in.problems) == 0 {
		return nil
	}
	return fmt.Errorf("settings: %s", strings.Join(in.problems, "; "))
}

var (
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	regionForm  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	hostForm    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// place finds account, region and endpoint. The CDK CLI says in CDK_DEFAULT_… whose credentials it holds; a setting that
// names another account or region would deploy to a place that nobody meant.
func (in *inputs) place(p Profile, s *Settings) {
	s.Account = in.pinned("account", "CDK_DEFAULT_ACCOUNT", accountForm, "twelve digits")
	s.Region = in.pinned("region", "CDK_DEFAULT_REGION", regionForm, "a region such as eu-central-1")
	const variable = "AWS_ENDPOINT_URL"
	endpoint := in.env(variable)
	if !p.Cloud.Local() {
		if endpoint != "" && loopbackPort(endpoint) != 0 {
			in.bad(variable, endpoint, "none: stage "+p.Stage+" goes to AWS; only the local stage goes to this machine")
		}
		return
	}
	// Without it the CLI would deploy the local stage into a real account.
	port := loopbackPort(endpoint)
	if port == 0 {
		in.bad(variable, endpoint, "a loopback address with its port, such as http://127.0.0.1:4566: the local stage goes nowhere else")
		return
	}
	s.EndpointPort = port
	if given := in.text("endpointPort"); given != "" && given != strconv.Itoa(port) {
		in.bad("endpointPort", given, fmt.Sprintf("%d, the port of AWS_ENDPOINT_URL, or nothing", port))
	}
	if s.Account == "" {
		s.Account = "000000000000"
	}
	if s.Region == "" {
		s.Region = "us-east-1"
	}
}

func (in *inputs) pinned(key, fromCLI string, form *regexp.Regexp, want string) string {
	given, actual := in.text(key), in.env(fromCLI)
	if given != "" && !form.MatchString(given) {
		in.bad(key, given, want)
		return ""
	}
	if given != "" && actual != "" && given != actual {
		in.bad(key, given, fmt.Sprintf("%s, where the credentials in use belong, or other credentials", actual))
	}
	if given == "" {
		return actual
	}
	return given
}

// loopbackPort is the port of a loopback endpoint, 0 for anything else.
func loopbackPort(endpoint string) int {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return 0
	}
	if ip, err := netip.ParseAddr(u.Hostname()); (err != nil || !ip.IsLoopback()) && u.Hostname() != "localhost" {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}

func (in *inputs) mail(p Profile, s *Settings) {
	s.MailFrom, s.MailName, s.MailIdentity = in.text("mailFrom"), in.text("mailName"), in.text("mailIdentity")
	if s.MailFrom == "" && p.Cloud.Local() {
		s.MailFrom = "reports@example.com"
	}
	a, err := mail.ParseAddress(s.MailFrom)
	if err != nil || a.Address != s.MailFrom || a.Name != "" || !hostForm.MatchString(domainOf(s.MailFrom)) {
		in.bad("mailFrom", s.MailFrom, "the sender's address alone, such as reports@example.com, with a domain in lower case")
		return
	}
	if s.MailName == "" {
		s.MailName = "Almanac"
	}
	if len(s.MailName) > 64 || strings.ContainsFunc(s.MailName, unicode.IsControl) {
		in.bad("mailName", s.MailName, "a name of at most 64 bytes on one line")
	}
	domain := domainOf(s.MailFrom)
	if s.MailIdentity == "" {
		s.MailIdentity = domain
	}
	if s.MailIdentity != s.MailFrom && s.MailIdentity != domain && !strings.HasSuffix(domain, "."+s.MailIdentity) {
		in.bad("mailIdentity", s.MailIdentity, fmt.Sprintf("the verified identity that sends for %s: the address or its domain", s.MailFrom))
	}
}

// mailRate replaces the profile's rate by the account's own, which `aws ses get-send-quota` tells.
func (in *inputs) mailRate(p Profile, s *Settings) {
	s.MailRate = p.MailRate
	if given := in.text("mailRate"); given != "" {
		var ok bool
		if s.MailRate, ok = schedule.ParseRate(given); !ok {
			in.bad("mailRate", given, schedule.RateForm)
		}
	}
}

func domainOf(address string) string {
	return address[strings.LastIndexByte(address, '@')+1:]
}

// closed are the networks that may be opened for webhooks: private use and carrier-grade NAT, never link-local (where
// clouds serve credentials), never everything.
var closed = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fc00::/7"),
}

var loopbacks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func (in *inputs) networks(p Profile, s *Settings) {
	const key = "privateNetworks"
	may, want := closed, "networks for private use, such as 10.20.0.0/16"
	if p.Cloud.Local() {
		may, want = append(loopbacks, closed...), want+" or 127.0.0.0/8"
	}
	for _, part := range in.list(key) {
		n, err := netip.ParsePrefix(part)
		if err != nil || n != n.Masked() {
			in.bad(key, part, want+", in CIDR form with no bit set behind the prefix")
			continue
		}
		if !within(n, may) {
			in.bad(key, part, want)
			continue
		}
		s.PrivateNetworks = append(s.PrivateNetworks, n)
	}
	if p.Cloud.Local() && in.text(key) == "" {
		s.PrivateNetworks = loopbacks[:1]
	}
}

func within(n netip.Prefix, may []netip.Prefix) bool {
	for _, m := range may {
		if n.Bits() >= m.Bits() && m.Contains(n.Addr()) {
			return true
		}
	}
	return false
}

func (in *inputs) recipients(p Profile, s *Settings) {
	const key = "recipients"
	for _, r := range in.list(key) {
		r = strings.ToLower(r)
		local, host, isAddress := strings.Cut(r, "@")
		if !isAddress {
			host = r
		}
		if !hostForm.MatchString(host) || isAddress && (local == "" || strings.ContainsAny(local, " \t\r\n*<>\"")) {
			in.bad(key, r, "addresses, domains or hosts, separated by commas; no patterns")
			continue
		}
		s.Recipients = append(s.Recipients, r)
	}
	if len(s.Recipients) == 0 && p.Cloud.Local() {
		s.Recipients = []string{"example.com", "unverified.example.org", "localhost", "127.0.0.1"}
	}
	if len(s.Recipients) == 0 && p.RecipientsRequired {
		in.bad(key, in.text(key), "an allow-list of addresses, domains or hosts: stage "+p.Stage+" must not send to everyone")
	}
}

// usualAudience is the client id for which a local issuer gives tokens unless it is told another.
const usualAudience = "almanac"

func (in *inputs) issuer(p Profile, s *Settings) {
	s.Issuer, s.Audience = in.text("issuer"), in.list("audience")
	switch {
	case s.Issuer == "" && !p.Cloud.UserPools:
		in.bad("issuer", "", fmt.Sprintf("the address of an issuer on this machine, such as http://127.0.0.1:4569: cloud %s has no user pools", p.Cloud.Name))
		return
	case s.Issuer == "" && len(s.Audience) == 0:
		return
	case s.Issuer == "":
		in.bad("audience", strings.Join(s.Audience, ","), "an issuer beside it; without one the stack's own user pool is the issuer")
		return
	case len(s.Audience) == 0 && !p.Cloud.UserPools:
		s.Audience = []string{usualAudience}
	case len(s.Audience) == 0:
		in.bad("audience", "", fmt.Sprintf("the client ids that issuer %s gives tokens to", s.Issuer))
	}
	onLoopback := loopbackPort(s.Issuer) != 0
	if !p.Cloud.HTTPAPI && !onLoopback {
		in.bad("issuer", s.Issuer, "an issuer on loopback with its port: the function of a local cloud asks nobody else for keys")
		return
	}
	u, err := url.Parse(s.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && !(p.Cloud.Local() && onLoopback) {
		in.bad("issuer", s.Issuer, "the issuer's https address, without user, query or fragment")
	}
}

func (in *inputs) alarmMail(s *Settings) {
	const key = "alarmMail"
	s.AlarmMail = in.text(key)
	if s.AlarmMail == "" {
		return
	}
	if a, err := mail.ParseAddress(s.AlarmMail); err != nil || a.Address != s.AlarmMail || a.Name != "" || !hostForm.MatchString(domainOf(s.AlarmMail)) {
		in.bad(key, s.AlarmMail, "one address alone, such as oncall@example.com, with a domain in lower case, or nothing")
	}
}

// timing lets a local stage shorten single waits: -c timing='{"link_life":"20s"}', -c snapshotTiming='{"job_grace":"1s"}'.
func (in *inputs) timing(p Profile, s *Settings) {
	in.waits(p, "timing", "schedule.Timing", &p.Timing, func() error { return p.timing() })
	s.Timing = p.Timing
	in.waits(p, "snapshotTiming", "snapshot.Timing", &p.SnapshotTiming, func() error { return p.snapshotTiming() })
	s.SnapshotTiming = p.SnapshotTiming
}

func (in *inputs) waits(p Profile, key, kind string, into any, check func() error) {
	text := in.text(key)
	if text == "" {
		return
	}
	if !p.Cloud.Local() {
		in.bad(key, text, "nothing: the waits of stage "+p.Stage+" are in infra/profile.go")
		return
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		in.bad(key, text, "a JSON object with fields of "+kind+": "+timingProblem(err))
		return
	}
	if d.More() {
		in.bad(key, text, "one JSON object")
		return
	}
	if err := check(); err != nil {
		in.bad(key, text, "figures that go together: "+err.Error())
	}
}

// timingProblem says which wait has the wrong type, and what would be right.
func timingProblem(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return err.Error()
	}
	right := "a whole number"
	if wrong.Type == reflect.TypeFor[schedule.Duration]() {
		right = `a duration in quotes such as "30s"`
	}
	return fmt.Sprintf("%s is %s; want %s", wrong.Field, wrong.Value, right)
}
