package main

import (
	"strings"
	"testing"
	"time"

	"almanac/infra/bundle"
)

func TestStageIsRefusedUnlessKnown(t *testing.T) {
	for name, c := range map[string]struct {
		context any
		env     string
		want    []string
	}{
		"absent":        {nil, "", []string{"stage is absent", "dev, local, production"}},
		"unknown":       {"prod", "", []string{`"prod"`, "dev, local, production"}},
		"wrong type":    {7.0, "", []string{"stage is 7 (float64)", "want text"}},
		"hostile":       {"dev\n; rm -rf /", "", []string{`"dev\n; rm -rf /"`, "dev, local, production"}},
		"wrong case":    {"Production", "", []string{`"Production"`}},
		"contradictory": {"dev", "production", []string{`stage is "dev"`, "ALMANAC_STAGE", `"production"`}},
	} {
		t.Run(name, func(t *testing.T) {
			stage, err := StageOf(func(string) any { return c.context }, func(string) string { return c.env })
			if err == nil {
				_, err = ProfileOf(stage, "")
			}
			says(t, err, c.want...)
		})
	}
}

func TestTheLocalCloudIsChosenForTheLocalStageAlone(t *testing.T) {
	choose := func(stage string, context any, env string) (Profile, error) {
		cloud, err := CloudOf(func(key string) any {
			if key == "cloud" {
				return context
			}
			return nil
		}, func(name string) string {
			if name == "LOCAL_CLOUD" {
				return env
			}
			return ""
		})
		if err != nil {
			return Profile{}, err
		}
		return ProfileOf(stage, cloud)
	}
	for name, c := range map[string]struct {
		context any
		env     string
		want    Cloud
	}{
		"nothing said":    {nil, "", ministack},
		"by context":      {"localstack", "", localstack},
		"by environment":  {nil, "localstack", localstack},
		"by both":         {"localstack", "localstack", localstack},
		"the usual one":   {"ministack", "", ministack},
		"an empty choice": {"", "", ministack},
	} {
		if p, err := choose("local", c.context, c.env); err != nil || p.Cloud != c.want {
			t.Errorf("%s: %+v, %v", name, p.Cloud, err)
		}
	}
	for name, c := range map[string]struct {
		stage   string
		context any
		env     string
		want    []string
	}{
		"unknown":               {"local", "azure", "", []string{`cloud is "azure"`, "ministack, localstack"}},
		"AWS by its name":       {"local", "aws", "", []string{`cloud is "aws"`, "ministack, localstack"}},
		"wrong case":            {"local", "LocalStack", "", []string{`"LocalStack"`}},
		"hostile":               {"local", "localstack\n; rm -rf /", "", []string{`"localstack\n; rm -rf /"`}},
		"wrong type":            {"local", 7.0, "", []string{"cloud is 7 (float64)", "want text"}},
		"contradictory":         {"local", "ministack", "localstack", []string{`cloud is "ministack"`, "LOCAL_CLOUD", `"localstack"`}},
		"beside another stage":  {"dev", "localstack", "", []string{`cloud is "localstack"`, "dev goes to AWS"}},
		"left in the shell":     {"production", nil, "localstack", []string{`cloud is "localstack"`, "LOCAL_CLOUD", "production goes to AWS"}},
		"the usual one on AWS":  {"dev", "ministack", "", []string{`cloud is "ministack"`}},
		"unknown beside others": {"dev", "azure", "", []string{`cloud is "azure"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := choose(c.stage, c.context, c.env)
			says(t, err, c.want...)
		})
	}
}

func says(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestSettingsAreRefusedWithFieldValueAndWhatWouldBeRight(t *testing.T) {
	const list = "an allow-list of addresses, domains or hosts"
	for name, c := range map[string]struct {
		stage  string
		change map[string]any
		env    map[string]string
		want   []string
	}{
		"mailFrom absent":            {"dev", map[string]any{"mailFrom": nil}, nil, []string{`mailFrom is ""`, "reports@example.com"}},
		"mailFrom of wrong type":     {"dev", map[string]any{"mailFrom": true}, nil, []string{"mailFrom is true (bool)", "want text"}},
		"mailFrom with a name":       {"dev", map[string]any{"mailFrom": "Reports <reports@example.com>"}, nil, []string{"mailFrom", "alone"}},
		"mailFrom with a header":     {"dev", map[string]any{"mailFrom": "a@example.com\r\nBcc: b@example.com"}, nil, []string{`"a@example.com\r\nBcc: b@example.com"`}},
		"mailFrom contradictory":     {"dev", nil, map[string]string{"ALMANAC_MAIL_FROM": "other@example.com"}, []string{"mailFrom", "ALMANAC_MAIL_FROM", "other@example.com"}},
		"mailName too long":          {"dev", map[string]any{"mailName": strings.Repeat("x", 65)}, nil, []string{"mailName", "64"}},
		"mailName with a header":     {"dev", map[string]any{"mailName": "A\nBcc: x"}, nil, []string{`mailName is "A\nBcc: x"`, "one line"}},
		"mailName of wrong type":     {"dev", map[string]any{"mailName": []any{"A"}}, nil, []string{"mailName", "want text"}},
		"mailIdentity of others":     {"dev", map[string]any{"mailIdentity": "example.org"}, nil, []string{`"example.org"`, "reports@example.com", "its domain"}},
		"mailIdentity by suffix":     {"dev", map[string]any{"mailIdentity": "ample.com"}, nil, []string{`"ample.com"`}},
		"mailIdentity a pattern":     {"dev", map[string]any{"mailIdentity": "*"}, nil, []string{`"*"`, "verified identity"}},
		"mailRate of wrong type":     {"dev", map[string]any{"mailRate": 14.0}, nil, []string{"mailRate is 14 (float64)", "want text"}},
		"mailRate nothing":           {"dev", map[string]any{"mailRate": "0"}, nil, []string{`mailRate is "0"`, "1 to 10000"}},
		"mailRate below nothing":     {"dev", map[string]any{"mailRate": "-14"}, nil, []string{`mailRate is "-14"`, "1 to 10000"}},
		"mailRate no number":         {"production", map[string]any{"mailRate": "14/s"}, nil, []string{`mailRate is "14/s"`, "whole number"}},
		"mailRate too high":          {"production", map[string]any{"mailRate": "10001"}, nil, []string{`mailRate is "10001"`, "1 to 10000"}},
		"mailRate hostile":           {"production", map[string]any{"mailRate": "14; rm -rf /"}, nil, []string{`"14; rm -rf /"`, "whole number"}},
		"mailRate contradictory":     {"dev", map[string]any{"mailRate": "14"}, map[string]string{"ALMANAC_MAIL_RATE": "50"}, []string{`mailRate is "14"`, "ALMANAC_MAIL_RATE", `"50"`}},
		"recipients absent":          {"dev", map[string]any{"recipients": nil}, nil, []string{`recipients is ""`, list, "dev"}},
		"recipients empty":           {"dev", map[string]any{"recipients": " , "}, nil, []string{"recipients", list}},
		"recipients of wrong type":   {"dev", map[string]any{"recipients": []any{"example.com"}}, nil, []string{"recipients", "want text"}},
		"recipients everyone":        {"dev", map[string]any{"recipients": "*"}, nil, []string{`"*"`, "no patterns"}},
		"recipients hostile":         {"dev", map[string]any{"recipients": "<script>@example.com"}, nil, []string{"<script>", "no patterns"}},
		"networks not networks":      {"production", map[string]any{"privateNetworks": "intranet"}, nil, []string{`"intranet"`, "10.20.0.0/16"}},
		"networks of wrong type":     {"production", map[string]any{"privateNetworks": 10.0}, nil, []string{"privateNetworks is 10 (float64)", "want text"}},
		"networks everything":        {"production", map[string]any{"privateNetworks": "0.0.0.0/0"}, nil, []string{`"0.0.0.0/0"`, "private use"}},
		"networks wider than theirs": {"production", map[string]any{"privateNetworks": "10.0.0.0/7"}, nil, []string{`"10.0.0.0/7"`}},
		"networks of credentials":    {"production", map[string]any{"privateNetworks": "169.254.169.254/32"}, nil, []string{"169.254.169.254/32", "private use"}},
		"networks of this machine":   {"production", map[string]any{"privateNetworks": "127.0.0.0/8"}, nil, []string{"127.0.0.0/8", "private use"}},
		"networks with host bits":    {"production", map[string]any{"privateNetworks": "10.20.1.1/16"}, nil, []string{`"10.20.1.1/16"`, "CIDR"}},
		"issuer alone":               {"dev", map[string]any{"issuer": "https://login.example.com"}, nil, []string{`audience is ""`, "client ids"}},
		"audience alone":             {"dev", map[string]any{"audience": "almanac"}, nil, []string{`audience is "almanac"`, "issuer"}},
		"issuer without TLS":         {"dev", map[string]any{"issuer": "http://login.example.com", "audience": "a"}, nil, []string{`"http://login.example.com"`, "https"}},
		"issuer on loopback":         {"dev", map[string]any{"issuer": "http://127.0.0.1:80", "audience": "a"}, nil, []string{"issuer", "https"}},
		"issuer with credentials":    {"dev", map[string]any{"issuer": "https://a:b@login.example.com", "audience": "a"}, nil, []string{"issuer", "without user"}},
		"issuer of wrong type":       {"dev", map[string]any{"issuer": 1.0, "audience": "a"}, nil, []string{"issuer is 1 (float64)", "want text"}},
		"no user pools, no issuer":   {"local on localstack", map[string]any{"issuer": nil}, nil, []string{`issuer is ""`, "http://127.0.0.1:4569", "localstack has no user pools"}},
		"no user pools, an audience": {"local on localstack", map[string]any{"issuer": nil, "audience": "almanac"}, nil, []string{`issuer is ""`, "localstack has no user pools"}},
		"own keys from elsewhere":    {"local on localstack", map[string]any{"issuer": "https://login.example.com"}, nil, []string{`"https://login.example.com"`, "on loopback with its port"}},
		"own keys without a port":    {"local on localstack", map[string]any{"issuer": "http://127.0.0.1"}, nil, []string{`"http://127.0.0.1"`, "with its port"}},
		"own keys behind a user":     {"local on localstack", map[string]any{"issuer": "http://127.0.0.1:4569@example.com"}, nil, []string{"issuer", "on loopback"}},
		"own keys with a query":      {"local on localstack", map[string]any{"issuer": "http://127.0.0.1:4569?x=y"}, nil, []string{"issuer", "query"}},
		"own keys of wrong type":     {"local on localstack", map[string]any{"issuer": 4569.0}, nil, []string{"issuer is 4569 (float64)", "want text"}},
		"own keys contradictory":     {"local on localstack", nil, map[string]string{"ALMANAC_ISSUER": "http://127.0.0.1:4570"}, []string{"issuer", "ALMANAC_ISSUER", "4570"}},
		"audience of wrong type":     {"local on localstack", map[string]any{"audience": []any{"almanac"}}, nil, []string{"audience", "want text"}},
		"account out of form":        {"dev", map[string]any{"account": "1234"}, nil, []string{`account is "1234"`, "twelve digits"}},
		"account of others":          {"dev", nil, map[string]string{"CDK_DEFAULT_ACCOUNT": "999988887777"}, []string{"111122223333", "999988887777"}},
		"region out of form":         {"dev", map[string]any{"region": "Frankfurt"}, nil, []string{`region is "Frankfurt"`, "eu-central-1"}},
		"region of others":           {"dev", nil, map[string]string{"CDK_DEFAULT_REGION": "us-east-1"}, []string{"eu-central-1", "us-east-1"}},
		"AWS on this machine":        {"dev", nil, map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, []string{"AWS_ENDPOINT_URL", "127.0.0.1", "dev"}},
		"local without an endpoint":  {"local", nil, map[string]string{"AWS_ENDPOINT_URL": ""}, []string{`AWS_ENDPOINT_URL is ""`, "loopback"}},
		"local elsewhere":            {"local", nil, map[string]string{"AWS_ENDPOINT_URL": "http://10.1.2.3:4566"}, []string{"10.1.2.3", "loopback"}},
		"local by a name elsewhere":  {"local", nil, map[string]string{"AWS_ENDPOINT_URL": "http://localhost.example.com:4566"}, []string{"localhost.example.com", "loopback"}},
		"local behind a user":        {"local", nil, map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566@example.com"}, []string{"AWS_ENDPOINT_URL", "loopback"}},
		"local without a port":       {"local", nil, map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1"}, []string{"AWS_ENDPOINT_URL", "port"}},
		"port contradictory":         {"local", map[string]any{"endpointPort": "4567"}, nil, []string{`endpointPort is "4567"`, "4566"}},
		"timing for AWS":             {"dev", map[string]any{"timing": `{"reserve":"1s"}`}, nil, []string{"timing", "infra/profile.go"}},
		"timing of wrong type":       {"local", map[string]any{"timing": `{"reserve":3}`}, nil, []string{"timing", "reserve is 3", `such as "30s"`}},
		"timing a wrong number":      {"local", map[string]any{"timing": `{"max_attempts":"many"}`}, nil, []string{"max_attempts is string", "whole number"}},
		"timing unknown":             {"local", map[string]any{"timing": `{"patience":"3s"}`}, nil, []string{"timing", "patience"}},
		"timing no JSON":             {"local", map[string]any{"timing": `3s`}, nil, []string{`"3s"`, "JSON object"}},
		"timing two objects":         {"local", map[string]any{"timing": `{}{}`}, nil, []string{"one JSON object"}},
		"timing out of range":        {"local", map[string]any{"timing": `{"backoff_base":"-1s"}`}, nil, []string{"backoff_base", "more than 0"}},
		"alarmMail with a name":      {"dev", map[string]any{"alarmMail": "On call <oncall@example.com>"}, nil, []string{"alarmMail is", "one address alone"}},
		"alarmMail two":              {"dev", map[string]any{"alarmMail": "a@example.com,b@example.com"}, nil, []string{`alarmMail is "a@example.com,b@example.com"`, "one address"}},
		"alarmMail no address":       {"production", map[string]any{"alarmMail": "oncall"}, nil, []string{`alarmMail is "oncall"`, "oncall@example.com"}},
		"alarmMail hostile":          {"production", map[string]any{"alarmMail": "a@example.com\r\nBcc: b@example.com"}, nil, []string{`"a@example.com\r\nBcc: b@example.com"`}},
		"alarmMail of wrong type":    {"dev", map[string]any{"alarmMail": true}, nil, []string{"alarmMail is true (bool)", "want text"}},
		"alarmMail contradictory":    {"dev", map[string]any{"alarmMail": "a@example.com"}, map[string]string{"ALMANAC_ALARM_MAIL": "b@example.com"}, []string{"alarmMail", "ALMANAC_ALARM_MAIL", "b@example.com"}},
		"months' timing for AWS":     {"dev", map[string]any{"snapshotTiming": `{"job_grace":"1s"}`}, nil, []string{"snapshotTiming", "infra/profile.go"}},
		"months' timing wrong type":  {"local", map[string]any{"snapshotTiming": `{"job_grace":3}`}, nil, []string{"snapshotTiming", "job_grace is 3", `such as "30s"`}},
		"months' timing a number":    {"local", map[string]any{"snapshotTiming": `{"page_size":"many"}`}, nil, []string{"page_size is string", "whole number"}},
		"months' timing unknown":     {"local", map[string]any{"snapshotTiming": `{"patience":"3s"}`}, nil, []string{"snapshotTiming", "snapshot.Timing", "patience"}},
		"months' timing no JSON":     {"local", map[string]any{"snapshotTiming": `3s`}, nil, []string{`snapshotTiming is "3s"`, "JSON object"}},
		"months' timing two objects": {"local", map[string]any{"snapshotTiming": `{}{}`}, nil, []string{"snapshotTiming", "one JSON object"}},
		"months' timing of range":    {"local", map[string]any{"snapshotTiming": `{"job_grace":"-1s"}`}, nil, []string{"job_grace", "more than 0"}},
		"months' retries narrowing":  {"local", map[string]any{"snapshotTiming": `{"retry_delays":["3s","2s","1s"]}`}, nil, []string{"retry_delays[1]", "widen"}},
		"months' reserve too long":   {"local", map[string]any{"snapshotTiming": `{"tick_reserve":"20s"}`}, nil, []string{"TickReserve is 20s", "SnapshotStep.Timeout 20s"}},
		"timing contradictory":       {"local", map[string]any{"timing": `{"reserve":"1m","send_timeout":"1s"}`}, nil, []string{"Reserve is 1m0s", "Deliver.Timeout 20s"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := variant{stage: c.stage}
			if _, cloud, on := strings.Cut(c.stage, " on "); on {
				v = variant{"local", cloud}
			}
			p, err := ProfileOf(v.stage, v.cloud)
			if err != nil {
				t.Fatal(err)
			}
			context := given(v)
			for k, v := range c.change {
				context[k] = v
			}
			_, err = SettingsOf(p, func(key string) any { return context[key] }, func(name string) string {
				if v, ok := c.env[name]; ok {
					return v
				}
				return environmentOf(v.stage)(name)
			})
			says(t, err, c.want...)
		})
	}
}

func TestSettingsSayEveryProblemAtOnce(t *testing.T) {
	p, err := ProfileOf("dev", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = SettingsOf(p, func(string) any { return nil }, func(string) string { return "" })
	says(t, err, "mailFrom", "recipients")
}

func TestSettingsComeFromTheEnvironmentToo(t *testing.T) {
	p, err := ProfileOf("dev", "")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ALMANAC_MAIL_FROM": "reports@example.com", "ALMANAC_RECIPIENTS": "Example.com, person@example.org",
		"ALMANAC_PRIVATE_NETWORKS": "10.20.0.0/16,fd00::/8", "CDK_DEFAULT_ACCOUNT": "111122223333", "CDK_DEFAULT_REGION": "eu-central-1",
	}
	s, err := SettingsOf(p, func(string) any { return nil }, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	want(t, "sender", s.MailFrom, "reports@example.com")
	want(t, "identity", s.MailIdentity, "example.com")
	want(t, "recipients", s.Recipients, []string{"example.com", "person@example.org"})
	want(t, "networks", Deployment{Settings: s}.privateNetworks(), "10.20.0.0/16,fd00::/8")
	want(t, "account", s.Account, "111122223333")
	want(t, "region", s.Region, "eu-central-1")
}

func TestTheMailRateIsTheProfilesUnlessTheSettingsNameOne(t *testing.T) {
	for _, c := range []struct {
		stage string
		given any
		want  int
	}{{"production", nil, 14}, {"dev", nil, 1}, {"local", nil, 200}, {"production", "50", 50}, {"local", "1", 1}, {"dev", "10000", 10000}} {
		d, err := deployment(variant{stage: c.stage}, map[string]any{"mailRate": c.given})
		if err != nil {
			t.Fatal(err)
		}
		want(t, c.stage+" mail rate", d.Settings.MailRate, c.want)
	}
}

func TestALocalStageNeedsNoSettingsAndMayShortenSingleWaits(t *testing.T) {
	d, err := deployment(variant{stage: "local"}, map[string]any{"timing": `{"backoff_base":"200ms"}`, "snapshotTiming": `{"retry_delays":["1s","2s","3s"]}`})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "changed wait", d.Settings.Timing.BackoffBase, "200ms")
	want(t, "other waits", d.Settings.Timing.LeaseMargin, "2s")
	want(t, "changed waits of months", d.Settings.SnapshotTiming.RetryDelays, []string{"1s", "2s", "3s"})
	want(t, "other waits of months", d.Settings.SnapshotTiming.JobGrace, "5s")
	want(t, "networks", d.privateNetworks(), "127.0.0.0/8")
	want(t, "port", d.Settings.EndpointPort, 4566)
	if len(d.Settings.Recipients) == 0 {
		t.Error("the local stage may send to everyone")
	}
}

func TestEveryProfileIsValid(t *testing.T) {
	for _, v := range variants() {
		if _, err := ProfileOf(v.stage, v.cloud); err != nil {
			t.Error(err)
		}
	}
}

func TestAProfileIsRefusedWithFieldValueAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Profile)
		want   []string
	}{
		"architecture absent":         {func(p *Profile) { p.Architecture = "" }, []string{`architecture ""`, "arm64"}},
		"architecture unknown":        {func(p *Profile) { p.Architecture = bundle.Architecture("mips") }, []string{`"mips"`, "arm64"}},
		"log days absent":             {func(p *Profile) { p.LogDays = 0 }, []string{"LogDays is 0", "365"}},
		"log days not offered":        {func(p *Profile) { p.LogDays = 31 }, []string{"LogDays is 31", "30"}},
		"memory too small":            {func(p *Profile) { p.API.MemoryMB = 64 }, []string{"API.MemoryMB is 64", "128 to 10240"}},
		"time-out absent":             {func(p *Profile) { p.Exhaust.Timeout = 0 }, []string{"Exhaust.Timeout is 0s", "1s to 15m"}},
		"time-out too long":           {func(p *Profile) { p.Deliver.Timeout = 16 * time.Minute }, []string{"Deliver.Timeout is 16m", "15m"}},
		"time-out of half seconds":    {func(p *Profile) { p.Deliver.Timeout = 1500 * time.Millisecond }, []string{"1.5s", "whole seconds"}},
		"dispatch beyond the tick":    {func(p *Profile) { p.Dispatch.Timeout = time.Minute }, []string{"Dispatch.Timeout is 1m", "minute between ticks"}},
		"api beyond the gateway":      {func(p *Profile) { p.API.Timeout = 30 * time.Second }, []string{"API.Timeout is 30s", "less than 30s"}},
		"I1 concurrency of one":       {func(p *Profile) { p.DeliverConcurrency = 1 }, []string{"DeliverConcurrency is 1", "2 to 1000"}},
		"I1 concurrency too high":     {func(p *Profile) { p.ExhaustConcurrency = 1001 }, []string{"ExhaustConcurrency is 1001"}},
		"mail rate absent":            {func(p *Profile) { p.MailRate = 0 }, []string{"MailRate is 0", "1 to 10000"}},
		"mail rate too high":          {func(p *Profile) { p.MailRate = 10001 }, []string{"MailRate is 10001", "1 to 10000"}},
		"D10 turns beyond the time":   {func(p *Profile) { p.DeliverConcurrency = 141 }, []string{"DeliverConcurrency is 141", "4m42s", "at most 140", "Deliver.Timeout 5m0s"}},
		"I1 events one at a time":     {func(p *Profile) { p.EventsConcurrency = 1 }, []string{"EventsConcurrency is 1", "2 to 1000"}},
		"receive count absent":        {func(p *Profile) { p.MaxReceiveCount = 0 }, []string{"MaxReceiveCount is 0", "1 to 1000"}},
		"burst below rate":            {func(p *Profile) { p.APIBurst = 1 }, []string{"20 and 1", "burst"}},
		"a local cloud's API on AWS":  {func(p *Profile) { p.Cloud = localstack }, []string{`Cloud is "localstack"`, "AWS for any other", "no authorizer"}},
		"AWS without an HTTP API":     {func(p *Profile) { p.Cloud.HTTPAPI = false }, []string{"HTTPAPI:false", "all that AWS can do"}},
		"the local stage on AWS":      {func(p *Profile) { p.Stage = "local" }, []string{`Cloud is ""`, "a local cloud for the local stage"}},
		"AWS without TLS":             {func(p *Profile) { p.Cloud.TLS = false }, []string{"Cloud", "TLS:false", "all that AWS can do"}},
		"AWS with passwords":          {func(p *Profile) { p.PasswordLogin = true }, []string{"PasswordLogin true", "only the local stage"}},
		"anyone but production":       {func(p *Profile) { p.RecipientsRequired = false }, []string{"RecipientsRequired", "only production"}},
		"no time to send":             {func(p *Profile) { p.Timing.Reserve = seconds(1) }, []string{"reserve", "send_timeout"}},
		"reserve beyond the time-out": {func(p *Profile) { p.Deliver.Timeout = 20 * time.Second }, []string{"Reserve is 20s", "Deliver.Timeout 20s"}},
		"tick reserve beyond tick":    {func(p *Profile) { p.Timing.TickReserve = seconds(55) }, []string{"TickReserve is 55s", "Dispatch.Timeout 55s"}},
		"timing absent":               {func(p *Profile) { p.Timing.MaxAttempts = 0 }, []string{"max_attempts"}},
		"months' timing absent":       {func(p *Profile) { p.SnapshotTiming.RetryDelays = nil }, []string{"retry_delays has 0 delays"}},
		"step's memory absent":        {func(p *Profile) { p.SnapshotStep.MemoryMB = 0 }, []string{"SnapshotStep.MemoryMB is 0", "128 to 10240"}},
		"step beyond Lambda":          {func(p *Profile) { p.SnapshotStep.Timeout = time.Hour }, []string{"SnapshotStep.Timeout is 1h", "15m"}},
		"months' dispatch too long":   {func(p *Profile) { p.SnapshotDispatch.Timeout = time.Minute }, []string{"SnapshotDispatch.Timeout is 1m0s", "1m0s between ticks"}},
		"reconcile beyond its tick":   {func(p *Profile) { p.SnapshotReconcile.Timeout = 5 * time.Minute }, []string{"SnapshotReconcile.Timeout is 5m0s", "5m0s between ticks"}},
		"plan beyond its tick":        {func(p *Profile) { p.SnapshotPlan.Timeout = 15 * time.Minute }, []string{"SnapshotPlan.Timeout is 15m0s", "15m0s between ticks"}},
		"months' reserve beyond tick": {func(p *Profile) { p.SnapshotTiming.TickReserve = seconds(55) }, []string{"TickReserve is 55s", "SnapshotDispatch.Timeout 55s"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := dev()
			c.change(&p)
			says(t, p.Validate(), c.want...)
		})
	}
}
