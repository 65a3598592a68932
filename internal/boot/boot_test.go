package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"almanac/internal/boot"
	"almanac/internal/schedule"

	"github.com/aws/aws-lambda-go/events"
)

// environment is a valid one, outside the local profile.
func environment() map[string]string {
	timing, _ := json.Marshal(schedule.DefaultTiming())
	return map[string]string{boot.EnvStage: "prod", boot.EnvSchedulesTable: "Schedules", boot.EnvDataBucket: "data", boot.EnvFilesBucket: "files",
		boot.EnvQueryQueue: "https://sqs/q", boot.EnvMailFrom: "almanac@example.com", boot.EnvMailName: "Almanac", boot.EnvMailRate: "14", boot.EnvPublicURL: "https://almanac.example/",
		boot.EnvPrivateNets: "10.20.0.0/16, fd00::/8", boot.EnvAllowList: "A@Example.com, example.org", boot.EnvSecretPrefix: "almanac/prod/", boot.EnvTiming: string(timing),
		boot.EnvMetrics: "Almanac"}
}

var needed = []string{boot.EnvSchedulesTable, boot.EnvDataBucket, boot.EnvFilesBucket, boot.EnvQueryQueue, boot.EnvMailFrom, boot.EnvMailRate, boot.EnvPublicURL, boot.EnvSecretPrefix}

func read(env map[string]string) (boot.Config, error) {
	return boot.Environment(func(name string) string { return env[name] }, needed...)
}

func TestEnvironment(t *testing.T) {
	c, err := read(environment())
	if err != nil {
		t.Fatal(err)
	}
	if c.Stage != "prod" || c.SchedulesTable != "Schedules" || c.DataBucket != "data" || c.FilesBucket != "files" || c.QueryQueue != "https://sqs/q" ||
		c.MailFrom != "almanac@example.com" || c.MailName != "Almanac" || c.MailRate != 14 || c.PublicURL != "https://almanac.example" || len(c.PrivateNetworks) != 2 ||
		!slices.Equal(c.AllowList, []string{"a@example.com", "example.org"}) || c.SecretPrefix != "almanac/prod/" || c.Timing != schedule.DefaultTiming() || c.Metrics != "Almanac" {
		t.Errorf("%+v", c)
	}
	env := environment()
	delete(env, boot.EnvTiming)
	if c, err := read(env); err != nil || c.Timing != schedule.DefaultTiming() {
		t.Errorf("no TIMING means the figures of the specification: %v", err)
	}
}

func TestEnvironmentRefuses(t *testing.T) {
	local := func(endpoint string) map[string]string {
		return map[string]string{boot.EnvLocal: "ministack", "AWS_ENDPOINT_URL": endpoint}
	}
	also := func(env map[string]string, name, value string) map[string]string {
		env[name] = value
		return env
	}
	for _, row := range []struct {
		name   string
		change map[string]string
		want   []string
	}{
		{"stage absent", map[string]string{boot.EnvStage: ""}, []string{`STAGE is ""`, "the stage's name"}},
		{"public URL in the clear", map[string]string{boot.EnvPublicURL: "http://almanac.example"}, []string{`PUBLIC_URL is "http://almanac.example"`, "https"}},
		{"public URL of another scheme", map[string]string{boot.EnvPublicURL: "javascript:alert(1)"}, []string{"PUBLIC_URL is", "https"}},
		{"allow-list that names nobody", map[string]string{boot.EnvAllowList: " , "}, []string{`RECIPIENT_ALLOW is " , "`, "everyone"}},
		{"network without its length", map[string]string{boot.EnvPrivateNets: "10.0.0.1"}, []string{`PRIVATE_NETWORKS is "10.0.0.1"`, "10.20.0.0/16"}},
		{"network out of range", map[string]string{boot.EnvPrivateNets: "10.0.0.0/8,10.0.0.0/33"}, []string{`PRIVATE_NETWORKS is "10.0.0.0/33"`}},
		{"network hostile", map[string]string{boot.EnvPrivateNets: "0.0.0.0/0; rm"}, []string{`PRIVATE_NETWORKS is "0.0.0.0/0; rm"`}},
		{"mail rate no number", map[string]string{boot.EnvMailRate: "fast"}, []string{`MAIL_RATE is "fast"`, "1 to 10000"}},
		{"mail rate nothing", map[string]string{boot.EnvMailRate: "0"}, []string{`MAIL_RATE is "0"`, "1 to 10000"}},
		{"mail rate below nothing", map[string]string{boot.EnvMailRate: "-1"}, []string{`MAIL_RATE is "-1"`, "1 to 10000"}},
		{"mail rate too high", map[string]string{boot.EnvMailRate: "10001"}, []string{`MAIL_RATE is "10001"`, "1 to 10000"}},
		{"mail rate of parts", map[string]string{boot.EnvMailRate: "0.5"}, []string{`MAIL_RATE is "0.5"`, "whole number"}},
		{"mail rate hostile", map[string]string{boot.EnvMailRate: "14\n15"}, []string{`MAIL_RATE is "14\n15"`, "whole number"}},
		{"account no number", map[string]string{boot.EnvAccount: "production"}, []string{`ACCOUNT is "production"`, "twelve digits"}},
		{"account too short", map[string]string{boot.EnvAccount: "11112222333"}, []string{`ACCOUNT is "11112222333"`}},
		{"account hostile", map[string]string{boot.EnvAccount: "11112222333\n"}, []string{`ACCOUNT is "11112222333\n"`}},
		{"timing no JSON", map[string]string{boot.EnvTiming: "fast"}, []string{"TIMING"}},
		{"timing half", map[string]string{boot.EnvTiming: `{"max_attempts":5}`}, []string{"TIMING: max_yields is 0", "more than 0"}},
		{"timing unknown field", map[string]string{boot.EnvTiming: `{"speed":5}`}, []string{"TIMING", "speed"}},
		{"timing wrong type", map[string]string{boot.EnvTiming: `{"lease_margin":60}`}, []string{"lease_margin is 60", "30s"}},
		{"local without an endpoint", local(""), []string{`AWS_ENDPOINT_URL is ""`, "loopback"}},
		{"local with AWS's endpoint", local("https://dynamodb.eu-central-1.amazonaws.com"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
		{"local with a neighbour", local("http://192.168.1.5:4566"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
		{"local with a name like loopback", local("http://localhost.example.com:4566"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
		{"local with a user before the host", local("http://127.0.0.1@example.com:4566"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
		{"local with no URL", local("127.0.0.1:4566"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
		{"local with one service elsewhere", also(local("http://127.0.0.1:4566"), "AWS_ENDPOINT_URL_DYNAMODB", "https://dynamodb.eu-central-1.amazonaws.com"), []string{"AWS_ENDPOINT_URL_DYNAMODB is", "loopback"}},
		{"local with endpoints ignored", also(local("http://127.0.0.1:4566"), "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"), []string{`AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is "True"`, "nothing"}},
		{"local with every interface", local("http://0.0.0.0:4566"), []string{"AWS_ENDPOINT_URL is", "loopback"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			env := environment()
			for k, v := range row.change {
				env[k] = v
			}
			_, err := read(env)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
	for _, name := range needed {
		for _, v := range []string{"", "  "} {
			env := environment()
			env[name] = v
			if _, err := read(env); err == nil || !strings.Contains(err.Error(), name+" is") || !strings.Contains(err.Error(), "the stack sets it") {
				t.Errorf("%s as %q: %v", name, v, err)
			}
		}
	}
	if _, err := read(map[string]string{}); err == nil || !strings.Contains(err.Error(), boot.EnvStage) || !strings.Contains(err.Error(), boot.EnvFilesBucket) {
		t.Errorf("not every wrong variable is named: %v", err)
	}
}

func TestTokensAreVerifiedByTheFunctionInTheLocalProfileOnly(t *testing.T) {
	local := func(issuer, audience string) map[string]string {
		env := environment()
		env[boot.EnvLocal], env["AWS_ENDPOINT_URL"], env[boot.EnvIssuer], env[boot.EnvAudience] = "localstack", "http://127.0.0.1:4566", issuer, audience
		return env
	}
	c, err := read(local("http://127.0.0.1:4569", "almanac, almanac-ci"))
	if err != nil || c.Issuer != "http://127.0.0.1:4569" || !slices.Equal(c.Audience, []string{"almanac", "almanac-ci"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := read(local("", "")); err != nil || c.Issuer != "" || len(c.Audience) != 0 {
		t.Errorf("without an issuer the authorizer's claims are read: %+v, %v", c, err)
	}
	real := local("https://login.example.com", "almanac")
	delete(real, boot.EnvLocal)
	for name, row := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"outside the local profile": {real, []string{`TOKEN_ISSUER is "https://login.example.com"`, "authorizer"}},
		"issuer alone":              {local("http://127.0.0.1:4569", ""), []string{`TOKEN_AUDIENCE is ""`, "client ids"}},
		"audience of commas":        {local("http://127.0.0.1:4569", " , "), []string{`TOKEN_AUDIENCE is ""`, "client ids"}},
		"audience alone":            {local("", "almanac"), []string{`TOKEN_AUDIENCE is "almanac"`, "TOKEN_ISSUER"}},
		"issuer elsewhere":          {local("https://login.example.com", "almanac"), []string{"TOKEN_ISSUER", "loopback"}},
		"issuer no address":         {local("issuer", "almanac"), []string{`TOKEN_ISSUER is "issuer"`, "loopback"}},
		"issuer behind a user":      {local("http://127.0.0.1:4569@example.com", "almanac"), []string{"TOKEN_ISSUER", "loopback"}},
	} {
		_, err := read(row.env)
		for _, part := range row.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", name, err, part)
			}
		}
	}
}

func TestLocalProfileOnLoopback(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566", "http://s3.localhost:4566", "http://127.8.9.1"} {
		env := environment()
		env[boot.EnvLocal], env["AWS_ENDPOINT_URL"], env[boot.EnvPublicURL] = "ministack", endpoint, "http://127.0.0.1:4566/api"
		if c, err := read(env); err != nil || c.Endpoint != endpoint {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestAllowList(t *testing.T) {
	everyone := boot.AllowList(nil)
	some := boot.AllowList([]string{"ann@Example.com", "example.org", "hooks.example.net", "127.0.0.1"})
	for _, row := range []struct {
		channel, address string
		want             bool
	}{
		{"email", "ann@example.com", true}, {"email", "ANN@EXAMPLE.COM", true}, {"email", "bob@example.com", false}, {"email", "bob@example.org", true},
		{"email", "bob@sub.example.org", false}, {"email", "bob@notexample.org", false}, {"email", "no address", false}, {"email", "", false},
		{"email", "ann@example.com@evil.test", false}, {"webhook", "https://hooks.example.net/x", true}, {"webhook", "https://HOOKS.example.net:8443/x", true},
		{"webhook", "https://hooks.example.net.evil.test/", false}, {"webhook", "https://hooks.example.net@evil.test/", false}, {"webhook", "https://evil.test/?h=hooks.example.net", false},
		{"webhook", "http://127.0.0.1:9/x", true}, {"webhook", "https://example.org/", true}, {"webhook", "ftp://hooks.example.net/", false}, {"pigeon", "ann@example.com", false},
	} {
		if got := some(row.channel, row.address); got != row.want {
			t.Errorf("%s %s: %v, want %v", row.channel, row.address, got, row.want)
		}
		if !everyone(row.channel, row.address) {
			t.Errorf("an empty list allows everyone, not %s", row.address)
		}
	}
}

type clockRow struct {
	setting schedule.ClockSetting
	err     error
	reads   int
}

func (c *clockRow) Clock(context.Context) (schedule.ClockSetting, error) {
	c.reads++
	return c.setting, c.err
}

func TestClocks(t *testing.T) {
	at := time.Date(2040, 3, 5, 12, 0, 0, 0, time.FixedZone("x", 3600))
	wall := func() time.Time { return at }
	row := &clockRow{setting: schedule.ClockSetting{Base: time.Date(2013, 7, 1, 8, 0, 0, 0, time.UTC), Wall: at.Add(-time.Hour)}}
	real := boot.NewClocks(boot.Config{}, row, wall)
	if b, err := real.Business(t.Context()); err != nil || !b.Equal(at) || b.Location() != time.UTC || row.reads != 0 {
		t.Errorf("outside the local profile business time is wall time: %s %v, %d reads", b, err, row.reads)
	}
	local := boot.NewClocks(boot.Config{Local: "ministack"}, row, wall)
	if b, err := local.Business(t.Context()); err != nil || !b.Equal(row.setting.Base.Add(time.Hour)) {
		t.Errorf("it flows on: %s %v", b, err)
	}
	row.setting.Frozen = true
	if b, err := local.Business(t.Context()); err != nil || !b.Equal(row.setting.Base) {
		t.Errorf("it stands still: %s %v", b, err)
	}
	row.setting = schedule.ClockSetting{}
	if b, err := local.Business(t.Context()); err != nil || !b.Equal(at) {
		t.Errorf("no setting is wall time: %s %v", b, err)
	}
	row.err = errors.New("cut")
	if _, err := local.Business(t.Context()); err == nil {
		t.Error("a clock that cannot be read is an error, not wall time")
	}
	if w := local.Wall(); !w.Equal(at) || w.Location() != time.UTC {
		t.Errorf("wall %s", w)
	}
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		tok := boot.Token()
		if seen[tok] || len(tok) != 22 || strings.Trim(tok, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("token %q", tok)
		}
		seen[tok] = true
	}
}

func batch(bodies ...string) (e events.SQSEvent) {
	for _, b := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: "id-" + b, ReceiptHandle: "receipt-" + b, Body: b})
	}
	return e
}

func names(out events.SQSEventResponse) (ids []string) {
	for _, f := range out.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

func TestD5D6BatchNamesWhatIsNotDone(t *testing.T) {
	hidden := map[string]time.Duration{}
	var log bytes.Buffer
	c := boot.Consumer{Log: boot.NewLogger(&log),
		Handle: func(_ context.Context, body string) schedule.Disposition {
			return schedule.Disposition{Again: body != "good", Visible: time.Duration(len(body)) * time.Second}
		},
		Hide: func(ctx context.Context, receipt string, d time.Duration) error {
			if ctx.Err() != nil {
				t.Error("the visibility is set even when the invocation's time is over")
			}
			hidden[receipt] = d
			return nil
		}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct{ in, want []string }{
		{[]string{"a", "bb", "ccc"}, []string{"id-a", "id-bb", "id-ccc"}},
		{[]string{"good", "poison"}, []string{"id-poison"}},
		{[]string{"good"}, nil},
		{nil, nil},
	} {
		clear(hidden)
		out, err := c.Batch(over, batch(row.in...))
		if err != nil || !slices.Equal(names(out), row.want) || len(hidden) != len(row.want) {
			t.Errorf("%v: %v %v, hidden %v", row.in, names(out), err, hidden)
		}
		// Lambda takes null or a missing list for a failure of the whole batch.
		if raw, _ := json.Marshal(out); !strings.Contains(string(raw), `"batchItemFailures":[`) {
			t.Errorf("%s", raw)
		}
	}
	if out, _ := c.Batch(over, batch("abc")); hidden["receipt-abc"] != 3*time.Second || len(out.BatchItemFailures) != 1 {
		t.Errorf("%v", hidden)
	}
	c.Hide = func(context.Context, string, time.Duration) error { return errors.New("gone") }
	if out, err := c.Batch(t.Context(), batch("a")); err != nil || len(out.BatchItemFailures) != 1 || !strings.Contains(log.String(), "visibility could not be set") {
		t.Errorf("%v %v", out, err)
	}
}

func TestDeadLetterThatCouldNotBeHandledStays(t *testing.T) {
	c := boot.DeadLetters{Log: boot.NewLogger(&bytes.Buffer{}), Handle: func(_ context.Context, id, body string) error {
		if body == "bad" {
			return errors.New("cut")
		}
		return nil
	}}
	out, err := c.Batch(t.Context(), batch("good", "bad"))
	if err != nil || !slices.Equal(names(out), []string{"id-bad"}) {
		t.Errorf("%v %v", out, err)
	}
}

func TestMetrics(t *testing.T) {
	var out bytes.Buffer
	at := time.Date(2040, 3, 5, 12, 0, 0, 0, time.UTC)
	count := boot.NewMetrics(&out, "Almanac", "prod", func() time.Time { return at })
	count("runs_settled", 1, "failed", "query_invalid")
	count("admitted", 7, "", "")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{`["stage","outcome","kind"]`, `["stage"]`}
	for i, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["stage"] != "prod" || !strings.Contains(line, `"Dimensions":[`+want[i]+`]`) || !strings.Contains(line, fmt.Sprintf(`"Timestamp":%d`, at.UnixMilli())) {
			t.Errorf("%s", line)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[1], `"admitted":7`) || !strings.Contains(lines[0], `"outcome":"failed"`) {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	boot.NewMetrics(&out, "", "prod", time.Now)("x", 1, "", "")
	if out.Len() != 0 {
		t.Error("no namespace, no lines")
	}
}
