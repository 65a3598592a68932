package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/schedule"
	"almanac/internal/source"
	"almanac/internal/source/postgres/pgtest"
	"almanac/internal/source/postgres/signin"
	"almanac/internal/source/sourcetest"
	"almanac/internal/source/sqlite"
)

type configs map[string]schedule.SourceConfig

func (c configs) Source(_ context.Context, name string) (schedule.SourceConfig, error) {
	s, ok := c[name]
	if !ok {
		return s, fmt.Errorf("source %s: %w", name, schedule.ErrNotFound)
	}
	return s, nil
}

// secrets is Secrets Manager with one secret.
type secrets struct{ arn, value string }

func (s secrets) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	if *in.SecretId != s.arn {
		return nil, errors.New("not there")
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: &s.value}, nil
}

func TestSourcesReadADatabase(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if err := server.Exec(t.Context(), "postgres", "CREATE SCHEMA reports", "CREATE TABLE reports.orders AS SELECT 7 AS n, NULL::text AS note", "GRANT USAGE ON SCHEMA reports TO "+pgtest.Reader, "GRANT SELECT ON reports.orders TO "+pgtest.Reader); err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders-AbCdEf"
	value, err := json.Marshal(map[string]any{"engine": "postgres", "host": "elsewhere.example", "username": pgtest.Reader, "password": pgtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	at := schedule.PostgresSource{Host: "localhost", Port: server.Port, Database: "postgres", Secret: arn, CA: server.CA, SearchPath: []string{"reports"}}
	all := configs{"orders": {Name: "orders", Engine: "postgres", Postgres: &at, Workspaces: []string{"EWR"}}}
	add := func(name string, change func(*schedule.PostgresSource)) {
		p := at
		change(&p)
		all[name] = schedule.SourceConfig{Name: name, Engine: "postgres", Postgres: &p, Workspaces: []string{"*"}}
	}
	add("away", func(p *schedule.PostgresSource) { p.Host = "db.example.com" })
	add("unknown-ca", func(p *schedule.PostgresSource) { p.CA = "" })
	add("closed", func(p *schedule.PostgresSource) { p.Port = 1 })
	add("no-secret", func(p *schedule.PostgresSource) { p.Secret = arn + "x" })
	add("token", func(p *schedule.PostgresSource) { p.Secret, p.IAMUser = "", pgtest.Reader })
	add("bare", func(p *schedule.PostgresSource) { p.SearchPath = nil })
	add("in-the-clear", func(p *schedule.PostgresSource) { p.TLS, p.CA = "off", "" })
	all["half"] = schedule.SourceConfig{Name: "half", Engine: "postgres", Workspaces: []string{"*"}}
	all["odd"] = schedule.SourceConfig{Name: "odd", Engine: "oracle", Workspaces: []string{"*"}}
	s := &Sources{Configs: all, SQLite: &sqlite.Fetcher{}, Postgres: Postgres{Secrets: &signin.Secrets{API: secrets{arn, string(value)}}, Local: true,
		AWS: aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "x", "")}}}

	rows, err := s.Open(t.Context(), "orders", "EWR", source.Query{SQL: "SELECT n FROM orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if row, err := rows.Next(t.Context()); err != nil || row[0].Int != 7 {
		t.Errorf("%+v %v", row, err)
	}
	v, err := s.View(t.Context(), "orders", "EWR")
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if out, err := sourcetest.Read(t.Context(), v, source.Query{SQL: "SELECT n FROM orders"}); err != nil || len(out.Rows) != 1 {
		t.Errorf("%+v %v", out, err)
	}
	for _, row := range []struct {
		name, workspace string
		code            failure.Code
		says            string
	}{
		{"orders", "JFK", failure.SourceAccessDenied, "workspace JFK may not use"}, {"nothing", "EWR", failure.SourceUnknown, "not configured"}, {"away", "EWR", failure.SourceUnknown, "the local profile reaches this machine alone"},
		{"half", "EWR", failure.SourceUnknown, "has engine"}, {"odd", "EWR", failure.SourceUnknown, `has engine "oracle"`}, {"no-secret", "EWR", failure.SourceUnavailable, "could not be read"},
		{"token", "EWR", failure.SourceAccessDenied, "password authentication failed"},
	} {
		_, err := s.Open(t.Context(), row.name, row.workspace, source.Query{SQL: "SELECT 1"})
		if f := failuretest.Want(t, err, row.code); !strings.Contains(f.Message, row.says) {
			t.Errorf("%s: %q does not say %q", row.name, f.Message, row.says)
		}
		_, err = s.View(t.Context(), row.name, row.workspace)
		failuretest.Want(t, err, row.code)
	}

	// what a test of each says: steps, and a part of each one's words
	for name, steps := range map[string][]string{
		"orders":       {"login ok known: " + pgtest.Reader, "network ok localhost", "TLS ok verify-full, TLS 1.", "sign-in ok as " + pgtest.Reader + ", PostgreSQL", "rights ok may read orders", "time ok 1 rows were read"},
		"in-the-clear": {"login ok known: " + pgtest.Reader, "network ok", "TLS ok off", "sign-in ok", "rights ok", "time ok"},
		"unknown-ca":   {"login ok known: " + pgtest.Reader, "network ok", "TLS source_unavailable authority that is not trusted"},
		"closed":       {"login ok", "network source_unavailable does not answer"},
		"token":        {"login ok known: " + pgtest.Reader, "network ok", "TLS ok", "sign-in source_access_denied password authentication failed"},
		"bare":         {"login ok known: " + pgtest.Reader, "network ok", "TLS ok", "sign-in ok", "rights source_access_denied grant it USAGE"},
		"no-secret":    {"login source_unavailable could not be read"},
		"away":         {"configuration source_unknown this machine alone"},
		"half":         {"configuration source_unknown"},
	} {
		r, err := s.Test(t.Context(), name, "")
		if err != nil || len(r.Findings) != len(steps) {
			t.Errorf("%s: %v %+v", name, err, r.Findings)
			continue
		}
		for i, f := range r.Findings {
			code := "ok"
			if !f.OK {
				code = string(f.Code)
			}
			step, rest, _ := strings.Cut(steps[i], " ")
			verdict, says, _ := strings.Cut(rest, " ")
			if f.Step != step || code != verdict || !strings.Contains(f.Says, says) || strings.Contains(f.Says, pgtest.Password) {
				t.Errorf("%s: %+v, want %q", name, f, steps[i])
			}
		}
		if ok := strings.HasSuffix(strings.Join(steps, ","), "were read") || name == "in-the-clear"; r.OK() != ok {
			t.Errorf("%s: ok %t", name, r.OK())
		}
	}
	r, err := s.Test(t.Context(), "orders", "")
	if err != nil || len(r.Rows) != 1 || *r.Rows[0][0] != "7" || r.Rows[0][1] != nil || r.Columns[1].Name != "note" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = s.Test(t.Context(), "bare", "SELECT n * 6 AS answer FROM reports.orders"); err != nil || !r.OK() || *r.Rows[0][0] != "42" || !strings.Contains(r.Findings[4].Says, "no table of the search path") {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = s.Test(t.Context(), "orders", "SELECT nothing"); err != nil || r.OK() || r.Findings[5].Code != failure.QueryInvalid {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := s.Test(t.Context(), "nothing", ""); !errors.Is(err, schedule.ErrNotFound) {
		t.Error(err)
	}
	// a login with more than it needs is told of
	if err := server.Exec(t.Context(), "postgres", "GRANT INSERT ON reports.orders TO "+pgtest.Reader, "GRANT pg_signal_backend TO "+pgtest.Reader); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Test(t.Context(), "orders", ""); err != nil || !r.OK() || !strings.Contains(r.Findings[4].Says, "more than it needs: it may write to 1 tables of its search path, is a member of pg_signal_backend") {
		t.Errorf("%+v %v", r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err = s.Test(ctx, "orders", "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT n FROM c WHERE n < 0"); err != nil || r.OK() || r.Findings[len(r.Findings)-1].Code != failure.QueryTimeout {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLoopbackHosts(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.8.8.8": true, "::1": true, "localhost.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "": false} {
		if got := loopbackHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
