package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"almanac/infra/bundle"
	"almanac/internal/input"
	"almanac/internal/schedule"
	"almanac/internal/snapshot"
)

// Profile is all that differs between stages and is the same in every account. What differs between accounts is in
// Settings.
type Profile struct {
	Stage        string
	Cloud        Cloud
	Architecture bundle.Architecture

	Retain  bool // tables, buckets, user pool and logs stay when the stack is deleted
	LogDays int  // one of the retention times that CloudWatch Logs offers
	Tracing bool // X-Ray

	// RecipientsRequired refuses the stage without an allow-list of recipients, so that only production can write to
	// everyone (design.md §1).
	RecipientsRequired bool
	PasswordLogin      bool // sign in by user name and password in one API call, for tests
	MFARequired        bool

	Dispatch Size
	Deliver  Size
	Exhaust  Size
	Events   Size
	API      Size

	SnapshotPlan      Size
	SnapshotDispatch  Size
	SnapshotStep      Size
	SnapshotReconcile Size

	DeliverConcurrency int // deliver-query functions at once (SQS event source: 2 to 1,000)
	ExhaustConcurrency int
	EventsConcurrency  int
	MaxReceiveCount    int // a net only: the run's own counter decides (lifecycles A)
	MailRate           int // mails a second, where the settings name no other
	APIRate            int // requests a second
	APIBurst           int

	Timing         schedule.Timing
	SnapshotTiming snapshot.Timing
}

// Size is what one function gets.
type Size struct {
	MemoryMB int
	Timeout  time.Duration
}

// Cloud says what a cloud can do. What an emulator lacks is a field here, and a row in localstack/DIVERGENCES.md.
type Cloud struct {
	Name string // LOCAL_CLOUD of the functions; empty: AWS

	// TLS has buckets and queues refuse plain HTTP. Emulators on loopback speak nothing else.
	TLS bool
	// ScopedMail limits ses:SendRawEmail to the sender's identity and address. The emulator authorizes the call on
	// the resource "*" and knows no ses:FromAddress.
	ScopedMail bool
	// SendCoversBatch says that sqs:SendMessage is the right for SendMessageBatch too. The emulator wants an action of
	// that name, which AWS does not have.
	SendCoversBatch bool
	// BootstrapRoles publishes and deploys under the roles of `cdk bootstrap`. Under enforced IAM the emulator's may
	// not, so there the caller's own credentials do it.
	BootstrapRoles bool
	// HTTPAPI stands in front of the API with an authorizer. Without it a function URL serves the same payload, and the
	// function verifies tokens itself: on this machine only, since such a URL asks nobody who they are.
	HTTPAPI bool
	// UserPools hold the people who sign in. Without them the setting issuer names a program on this machine.
	UserPools bool
	// ConfigurationSets can be made by CloudFormation. Without one nothing is told of mails, and the topic hears only what
	// tests publish to it.
	ConfigurationSets bool
	// Athena queries the Glue catalog.
	Athena bool
	// ScopedQueries authorizes what is asked about a query on the query's workgroup. The emulator authorizes it on "*".
	ScopedQueries bool
}

// Local reports whether it runs on this machine.
func (c Cloud) Local() bool { return c.Name != "" }

var (
	aws       = Cloud{TLS: true, ScopedMail: true, SendCoversBatch: true, BootstrapRoles: true, HTTPAPI: true, UserPools: true, ConfigurationSets: true, Athena: true, ScopedQueries: true}
	ministack = Cloud{Name: "ministack", HTTPAPI: true, UserPools: true, ConfigurationSets: true, Athena: true}
	// LocalStack enforces no policies, so it gets those of AWS.
	localstack = Cloud{Name: "localstack", ScopedMail: true, SendCoversBatch: true, BootstrapRoles: true}
)

// localClouds are what the local stage can be deployed to, the usual one first.
var localClouds = []Cloud{ministack, localstack}

// localCloud finds one by its name; an empty name is the usual one.
func localCloud(name string) (Cloud, error) {
	var known []string
	for _, c := range localClouds {
		if name == c.Name || name == "" {
			return c, nil
		}
		known = append(known, c.Name)
	}
	return Cloud{}, fmt.Errorf("cloud is %q; want one of %s (context cloud, or LOCAL_CLOUD)", name, strings.Join(known, ", "))
}

// profiles are the stages that there are.
var profiles = map[string]func() Profile{
	"local":      local,
	"dev":        dev,
	"production": production,
}

// ProfileOf finds and validates the profile of a stage. cloud chooses among the local clouds; any other stage goes to
// AWS, and a cloud named beside it would be a mistake about where.
func ProfileOf(stage, cloud string) (Profile, error) {
	known := strings.Join(slices.Sorted(maps.Keys(profiles)), ", ")
	if stage == "" {
		return Profile{}, fmt.Errorf("stage is absent; want one of %s: cdk deploy -c stage=dev", known)
	}
	build, ok := profiles[stage]
	if !ok {
		return Profile{}, fmt.Errorf("stage is %q; want one of %s", stage, known)
	}
	p := build()
	switch {
	case p.Cloud.Local():
		var err error
		if p.Cloud, err = localCloud(cloud); err != nil {
			return p, err
		}
	case cloud != "":
		return p, fmt.Errorf("cloud is %q (context cloud, or LOCAL_CLOUD); want none: stage %s goes to AWS", cloud, stage)
	}
	return p, p.Validate()
}

func production() Profile {
	return Profile{
		Stage: "production", Cloud: aws, Architecture: bundle.ARM64,
		Retain: true, LogDays: 365, Tracing: true, MFARequired: true,
		Dispatch: Size{512, 55 * time.Second}, // ends before the next tick
		Deliver:  Size{1024, 5 * time.Minute},
		Exhaust:  Size{256, time.Minute},
		Events:   Size{256, 30 * time.Second},
		API:      Size{512, 29 * time.Second}, // HTTP APIs end at 30 s
		// Each ends before its next tick.
		SnapshotPlan: Size{1024, 5 * time.Minute}, SnapshotDispatch: Size{512, 55 * time.Second}, SnapshotReconcile: Size{512, 4 * time.Minute},
		SnapshotStep: Size{512, 10 * time.Minute}, // as many chunks as fit; a month in a single pass must fit
		// Query runs wait on their source for most of their time; 50 at once spare it.
		DeliverConcurrency: 50, ExhaustConcurrency: 2, EventsConcurrency: 2, MaxReceiveCount: 20,
		// What an account outside the SES sandbox may send is its own; AWS names no figure (https://docs.aws.amazon.com/ses/latest/dg/quotas.html).
		// 14 a second is where many begin. The setting mailRate says what `aws ses get-send-quota` tells.
		MailRate: 14,
		APIRate:  100, APIBurst: 200,
		Timing: schedule.DefaultTiming(), SnapshotTiming: snapshot.DefaultTiming(),
	}
}

func dev() Profile {
	p := production()
	p.Stage = "dev"
	p.Retain, p.LogDays = false, 30
	p.RecipientsRequired, p.MFARequired = true, false
	p.DeliverConcurrency = 10
	p.APIRate, p.APIBurst = 20, 40
	p.MailRate = 1 // an account in the SES sandbox sends no more (the same page), and dev sends to few
	return p
}

// local waits seconds where real stages wait minutes: the same machines, sooner.
func local() Profile {
	p := dev()
	p.Stage, p.Cloud, p.Architecture = "local", ministack, bundle.Architecture(runtime.GOARCH)
	p.LogDays, p.Tracing, p.PasswordLogin = 1, false, true
	p.Deliver.Timeout = 20 * time.Second // a killed function's run is taken up again after this and a little more
	p.Exhaust.Timeout = 20 * time.Second
	p.Events.Timeout = 2 * time.Second // an event that cannot be read is a dead letter within a minute
	p.SnapshotStep.Timeout = 20 * time.Second
	p.DeliverConcurrency = 4
	p.MailRate = 200
	t := &p.Timing
	t.LeaseMargin = seconds(2)
	t.BackoffBase, t.BackoffMax = seconds(1), seconds(5)
	t.SweepQueued, t.SweepMax, t.SweepReleased = seconds(5), seconds(30), seconds(3)
	t.Reserve, t.SendTimeout, t.TickReserve = seconds(5), seconds(2), seconds(2)
	s := &p.SnapshotTiming
	s.RetryDelays = []input.Duration{seconds(2), seconds(4), seconds(8)}
	s.JobGrace, s.TickReserve, s.OffEvery, s.CleanAfter = seconds(5), seconds(2), seconds(10), seconds(60)
	return p
}

func seconds(n int) schedule.Duration { return schedule.Duration(time.Duration(n) * time.Second) }

// Validate names the first figure that cannot be deployed, or that would break a promise.
func (p Profile) Validate() error {
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("profile %s: %s is %v; want %s", p.Stage, field, value, want)
	}
	if err := p.Architecture.Validate(); err != nil {
		return fmt.Errorf("profile %s: %w", p.Stage, err)
	}
	if _, ok := retentions[p.LogDays]; !ok {
		return bad("LogDays", p.LogDays, fmt.Sprintf("one of %v", slices.Sorted(maps.Keys(retentions))))
	}
	for name, s := range map[string]Size{
		"Dispatch": p.Dispatch, "Deliver": p.Deliver, "Exhaust": p.Exhaust, "Events": p.Events, "API": p.API, "SnapshotPlan": p.SnapshotPlan,
		"SnapshotDispatch": p.SnapshotDispatch, "SnapshotStep": p.SnapshotStep, "SnapshotReconcile": p.SnapshotReconcile,
	} {
		// AWS Lambda quotas: 128 MB to 10,240 MB, 1 s to 900 s.
		if s.MemoryMB < 128 || s.MemoryMB > 10240 {
			return bad(name+".MemoryMB", s.MemoryMB, "128 to 10240")
		}
		if s.Timeout < time.Second || s.Timeout > 15*time.Minute || s.Timeout%time.Second != 0 {
			return bad(name+".Timeout", s.Timeout, "whole seconds, 1s to 15m")
		}
	}
	if p.Dispatch.Timeout >= time.Minute {
		return bad("Dispatch.Timeout", p.Dispatch.Timeout, "less than the minute between ticks")
	}
	if p.API.Timeout >= 30*time.Second {
		return bad("API.Timeout", p.API.Timeout, "less than 30s, where HTTP APIs give up")
	}
	for name, n := range map[string]int{"DeliverConcurrency": p.DeliverConcurrency, "ExhaustConcurrency": p.ExhaustConcurrency, "EventsConcurrency": p.EventsConcurrency} {
		if n < 2 || n > 1000 { // AWS Lambda: ScalingConfig.MaximumConcurrency
			return bad(name, n, "2 to 1000")
		}
	}
	if p.MailRate < 1 || p.MailRate > schedule.MaxRate {
		return bad("MailRate", p.MailRate, schedule.RateForm)
	}
	if p.MaxReceiveCount < 1 || p.MaxReceiveCount > 1000 {
		return bad("MaxReceiveCount", p.MaxReceiveCount, "1 to 1000")
	}
	if p.APIRate < 1 || p.APIBurst < p.APIRate {
		return bad("APIRate and APIBurst", fmt.Sprintf("%d and %d", p.APIRate, p.APIBurst), "a rate of at least 1 and a burst not below it")
	}
	if p.Cloud.Local() != (p.Stage == "local") {
		return bad("Cloud", fmt.Sprintf("%q", p.Cloud.Name), "a local cloud for the local stage, AWS for any other: a local cloud's API has no authorizer of AWS's in front of it")
	}
	if !p.Cloud.Local() && (p.Cloud != aws || p.PasswordLogin) {
		return bad("Cloud", fmt.Sprintf("%+v, PasswordLogin %v", p.Cloud, p.PasswordLogin), "all that AWS can do, and no PasswordLogin: only the local stage may do without")
	}
	if p.Stage != "production" && !p.RecipientsRequired {
		return bad("RecipientsRequired", false, "true: only production may send to everyone")
	}
	if err := p.timing(); err != nil {
		return err
	}
	return p.snapshotTiming()
}

// timing holds the waits against the functions that wait.
func (p Profile) timing() error {
	if err := p.Timing.Validate(); err != nil {
		return fmt.Errorf("profile %s: %w", p.Stage, err)
	}
	if r := p.Timing.Reserve.Std(); r >= p.Deliver.Timeout {
		return fmt.Errorf("profile %s: Timing.Reserve is %s; want less than Deliver.Timeout %s, or no recipient is ever begun", p.Stage, r, p.Deliver.Timeout)
	}
	// Each worker takes so much of the send rate at once; all of them together must come to their turn in one invocation.
	wait, most := time.Duration(p.DeliverConcurrency)*schedule.TurnSpan, min(p.Deliver.Timeout-p.Timing.Reserve.Std(), schedule.MaxAhead)
	if wait > most {
		return fmt.Errorf("profile %s: DeliverConcurrency is %d, so that a worker may wait %s for its turn to send; want at most %d: Deliver.Timeout %s less Timing.Reserve %s leaves it %s",
			p.Stage, p.DeliverConcurrency, wait, most/schedule.TurnSpan, p.Deliver.Timeout, p.Timing.Reserve.Std(), most)
	}
	if r := p.Timing.TickReserve.Std(); r >= p.Dispatch.Timeout {
		return fmt.Errorf("profile %s: Timing.TickReserve is %s; want less than Dispatch.Timeout %s, or nothing is ever admitted", p.Stage, r, p.Dispatch.Timeout)
	}
	return nil
}

// snapshotTiming holds the waits of snapshots against the functions that wait.
func (p Profile) snapshotTiming() error {
	if err := p.SnapshotTiming.Validate(); err != nil {
		return fmt.Errorf("profile %s: %w", p.Stage, err)
	}
	for _, tick := range []struct {
		name string
		size Size
		rate time.Duration
	}{{"SnapshotPlan", p.SnapshotPlan, planRate}, {"SnapshotDispatch", p.SnapshotDispatch, dispatchRate}, {"SnapshotReconcile", p.SnapshotReconcile, reconcileRate}} {
		if tick.size.Timeout >= tick.rate {
			return fmt.Errorf("profile %s: %s.Timeout is %s; want less than the %s between ticks", p.Stage, tick.name, tick.size.Timeout, tick.rate)
		}
		if r := p.SnapshotTiming.TickReserve.Std(); r >= tick.size.Timeout {
			return fmt.Errorf("profile %s: SnapshotTiming.TickReserve is %s; want less than %s.Timeout %s, or a tick begins nothing", p.Stage, r, tick.name, tick.size.Timeout)
		}
	}
	if r := p.SnapshotTiming.TickReserve.Std(); r >= p.SnapshotStep.Timeout {
		return fmt.Errorf("profile %s: SnapshotTiming.TickReserve is %s; want less than SnapshotStep.Timeout %s, or no second chunk is ever begun", p.Stage, r, p.SnapshotStep.Timeout)
	}
	return nil
}
