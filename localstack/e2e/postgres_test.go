//go:build cloud

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"almanac/internal/api"
	"almanac/internal/schedule"
	"almanac/internal/source/postgres/pgtest"
)

// databaseSecret is the one that the local stage's functions may read.
const databaseSecret = "almanac/local/source/postgres"

// keep puts the login into the secret, which is made if it is not there, and returns its ARN.
func keep(t *testing.T, user, password string) string {
	t.Helper()
	api := secretsmanager.NewFromConfig(cloud.aws)
	b, err := json.Marshal(map[string]any{"engine": "postgres", "username": user, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	out, err := api.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: aws.String(databaseSecret), SecretString: aws.String(string(b))})
	if err == nil {
		return *out.ARN
	}
	var none *types.ResourceNotFoundException
	if !errors.As(err, &none) {
		t.Fatal(err)
	}
	made, err := api.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String(databaseSecret), SecretString: aws.String(string(b))})
	if err != nil {
		t.Fatal(err)
	}
	return *made.ARN
}

// A real PostgreSQL on this machine, signed in to by a secret of the cloud's Secrets Manager: a file is delivered, the
// secret is rotated, and a right is taken away.
func TestADeliveryReadsPostgreSQLAndOutlivesTheRotationOfItsSecret(t *testing.T) {
	scene(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	run := func(sql ...string) {
		t.Helper()
		if err := server.Exec(context.Background(), "postgres", sql...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE SCHEMA reports", "CREATE TABLE reports.orders AS SELECT g AS id, CASE WHEN g % 2 = 0 THEN 'EWR' ELSE 'JFK' END AS site, g * 0.1000000000000000055 AS amount, '2013-05-06 10:00Z'::timestamptz + g * interval '1 second' AS at FROM generate_series(1, 1000) AS g",
		"GRANT USAGE ON SCHEMA reports TO "+pgtest.Reader, "GRANT SELECT ON reports.orders TO "+pgtest.Reader)
	arn := keep(t, pgtest.Reader, pgtest.Password)
	name := fmt.Sprintf("orders-%d", server.Port)
	must(t, "PUT", "/sources/"+name, schedule.SourceConfig{Name: name, Engine: "postgres", Workspaces: []string{"EWR"},
		Postgres: &schedule.PostgresSource{Host: "localhost", Port: server.Port, Database: "postgres", Secret: arn, CA: server.CA, SearchPath: []string{"reports"}}})
	d := save(t, func(d *schedule.Definition) {
		d.Source = name
		d.Query = "select id, amount, at from orders where site = :workspace and at < :scheduled_time order by id"
	})
	r := settled(t, due(t, d))
	want(t, r, schedule.Succeeded, "")
	if r.File == nil || r.File.Rows != 500 {
		t.Fatalf("file %+v; want 500 rows", r.File)
	}
	if m := mailed(t, r.ID(), 1)[0]; len(m.Attachments) != 1 || m.Attachments[0].SHA256 != r.File.SHA256 {
		t.Fatalf("mail %+v; want the recorded file attached", m)
	}
	// the API's function reaches it too
	var tested api.SourceTest
	if err := json.Unmarshal(must(t, "POST", "/sources/"+name+"/test", map[string]string{"query": "select id, amount from orders order by id"}), &tested); err != nil || !tested.OK || len(tested.Rows) != 5 || *tested.Rows[0][1] != "0.1000000000000000055" {
		t.Fatalf("%+v %v", tested, err)
	}
	// rotated: the database has another password, the functions hold the old one
	run("ALTER ROLE " + pgtest.Reader + " PASSWORD 'another'")
	keep(t, pgtest.Reader, "another")
	setClock(t, monday.AddDate(0, 0, 1).Add(30*60*1e9))
	tick(t)
	r = settled(t, d.ID+"@2013-05-07T10:30:00Z")
	want(t, r, schedule.Succeeded, "")
	// a right less
	run("REVOKE SELECT ON reports.orders FROM " + pgtest.Reader)
	setClock(t, monday.AddDate(0, 0, 2).Add(30*60*1e9))
	tick(t)
	r = settled(t, d.ID+"@2013-05-08T10:30:00Z")
	want(t, r, schedule.Failed, "source_access_denied")
	if !strings.Contains(r.ErrorText, "permission denied for table orders") {
		t.Errorf("%q", r.ErrorText)
	}
	if s, err := cloud.store.Schedule(t.Context(), d.ID); err != nil || s.State != schedule.Paused {
		t.Errorf("the schedule is %s, %v; want paused", s.State, err)
	}
}
