package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/source/postgres/pgtest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// databaseSecret is the one that the local stage's functions may read.
const databaseSecret = "almanac/local/source/postgres"

// mostResident is what a function that writes a large file may have resident, in KiB.
const mostResident = 128 << 10

// wide makes a table of twenty columns of all that files have to write: NULLs, numbers beyond 2^53, text to be quoted.
const wide = `CREATE TABLE wide AS SELECT g AS id, 9007199254740993 + g AS account, (g * 0.01)::numeric(12,2) AS amount, (g / 7.0)::numeric(18,6) AS price,
	'2013-01-01 00:00Z'::timestamptz + g * interval '13 seconds' AS created, '2013-01-01 00:00'::timestamp + g * interval '17 seconds' AS updated, '2013-01-01'::date + g %% 365 AS day,
	'Customer ' || g %% 5000 AS name, (ARRAY['new','paid','sent','lost'])[1 + g %% 4] AS status, CASE WHEN g %% 3 = 0 THEN 'a "note", of ' || g END AS note, CASE WHEN g %% 5 > 0 THEN g %% 100 END AS qty,
	g %% 2 = 0 AS flag, g / 3.0::float8 AS ratio, md5(g::text) AS code, g %% 7 AS a, g %% 11 AS b, g %% 1000 AS c, -g AS d, 'EWR' AS site, '' AS blank FROM generate_series(1, %d) AS g`

// rows: a large result of a real PostgreSQL becomes a file of each kind and reaches a receiver; and how much memory the
// function took, by the operating system's count.
func (s *site) rows(ctx context.Context, o options) (err error) {
	name, stop, err := s.database(ctx, o.rows)
	if err != nil {
		return err
	}
	defer stop()
	kinds := []string{"csv", "jsonl", "xlsx", "parquet"}
	for i, kind := range kinds {
		d := s.definition(kind, s.hook(kind))
		d.Source, d.Query, d.File.Kind = name, "select * from wide order by id", kind
		if err := s.save(ctx, []schedule.Definition{d}); err != nil {
			return err
		}
		watched, stop := context.WithCancel(ctx)
		peak := make(chan int)
		go func() { peak <- s.watch(watched, s.outputs["DeliverFunction"]) }()
		err = errors.Join(err, s.through(ctx, kind, 0, kinds[:i+1]...))
		stop()
		most := <-peak
		r, lost := s.store.Run(ctx, d.ID+"@"+schedule.OccurrenceKey(s.due))
		if err = errors.Join(err, lost); err != nil {
			return err
		}
		if r.File == nil || r.File.Rows != int64(o.rows) {
			return fmt.Errorf("%s: the run is %s %s, its file %+v; want one of %d rows", kind, r.State, r.ErrorText, r.File, o.rows)
		}
		fmt.Printf("  %s: %d rows x 20 columns, %.1f MB, admitted to settled in %s, %d MiB resident\n", kind, r.File.Rows, float64(r.File.Bytes)/1e6,
			r.SettledAt.Sub(r.CreatedAt).Round(100*time.Millisecond), most>>10)
		if most == 0 || most > mostResident {
			err = errors.Join(err, fmt.Errorf("%s: the function had %d KiB resident; want at most %d", kind, most, mostResident))
		}
	}
	return err
}

// database starts a PostgreSQL with the table, and makes it a source.
func (s *site) database(ctx context.Context, rows int) (name string, stop func(), err error) {
	server, err := pgtest.Start()
	if err != nil {
		return "", nil, err
	}
	if err = server.Exec(ctx, "postgres", fmt.Sprintf(wide, rows), "GRANT SELECT ON wide TO "+pgtest.Reader); err == nil {
		name = fmt.Sprintf("load-%d", server.Port)
		err = s.configure(ctx, name, server)
	}
	if err != nil {
		server.Stop()
		return "", nil, err
	}
	return name, server.Stop, nil
}

func (s *site) configure(ctx context.Context, name string, server *pgtest.Server) error {
	login, err := json.Marshal(map[string]any{"engine": "postgres", "username": pgtest.Reader, "password": pgtest.Password})
	if err != nil {
		return err
	}
	secrets := secretsmanager.NewFromConfig(s.aws)
	var arn *string
	put, err := secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String(databaseSecret), SecretString: aws.String(string(login))})
	var none *types.ResourceNotFoundException
	switch {
	case errors.As(err, &none):
		made, err := secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String(databaseSecret), SecretString: aws.String(string(login))})
		if err != nil {
			return err
		}
		arn = made.ARN
	case err != nil:
		return err
	default:
		arn = put.ARN
	}
	return s.store.PutSource(ctx, schedule.SourceConfig{Name: name, Engine: "postgres", Workspaces: []string{"EWR"},
		Postgres: &schedule.PostgresSource{Host: "localhost", Port: server.Port, Database: "postgres", Secret: *arn, CA: server.CA}},
		schedule.Audit{ID: rand.Text(), Subject: "source " + name, At: time.Now(), Who: "load", What: "save"})
}
