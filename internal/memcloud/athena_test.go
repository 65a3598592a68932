package memcloud

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func newTestAthena(t *testing.T, c *clock) (*Athena, *S3) {
	store := NewS3(c.read)
	if _, err := store.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("out")}); err != nil {
		t.Fatal(err)
	}
	a := NewAthena(c.read, store)
	a.Engine = func(q AthenaQuery) AthenaAnswer {
		return AthenaAnswer{Takes: time.Minute, Type: types.StatementTypeDml, Scanned: 1000, Columns: []types.ColumnInfo{{Name: aws.String("a")}, {Name: aws.String("b")}},
			Rows: [][]*string{{aws.String(`x"y`), nil}, {aws.String(""), aws.String("1")}}}
	}
	return a, store
}

func startAthena(a *Athena, token, sql string, params ...string) (string, error) {
	in := &athena.StartQueryExecutionInput{QueryString: &sql, ExecutionParameters: params, ResultConfiguration: &types.ResultConfiguration{OutputLocation: aws.String("s3://out/q/")}}
	if token != "" {
		in.ClientRequestToken = &token
	}
	out, err := a.StartQueryExecution(ctx, in)
	if err != nil {
		return "", err
	}
	return *out.QueryExecutionId, nil
}

// https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
func TestAthenaTokens(t *testing.T) {
	a, _ := newTestAthena(t, newClock())
	token := strings.Repeat("t", 32)
	first, err := startAthena(a, token, "SELECT 1", "1")
	again, err2 := startAthena(a, token, "SELECT 1", "1")
	if err != nil || err2 != nil || first != again {
		t.Fatalf("%s %v, %s %v", first, err, again, err2)
	}
	var invalid *types.InvalidRequestException
	for name, ask := range map[string]func() (string, error){
		"another text":      func() (string, error) { return startAthena(a, token, "SELECT 2", "1") },
		"another parameter": func() (string, error) { return startAthena(a, token, "SELECT 1", "2") },
	} {
		if _, err := ask(); !errors.As(err, &invalid) || *invalid.Message != "Idempotent parameters do not match" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if id, err := startAthena(a, "", "SELECT 1", "1"); err != nil || id == first {
		t.Fatalf("%s %v", id, err)
	}
	if n := len(a.Started()); n != 2 {
		t.Fatalf("%d queries", n)
	}
}

func TestRefusedAthenaQueries(t *testing.T) {
	a, _ := newTestAthena(t, newClock())
	for name, ask := range map[string]func() (string, error){
		"no text":            func() (string, error) { return startAthena(a, "", "") },
		"a long text":        func() (string, error) { return startAthena(a, "", strings.Repeat("x", 262_145)) },
		"a short token":      func() (string, error) { return startAthena(a, strings.Repeat("t", 31), "SELECT 1") },
		"a long token":       func() (string, error) { return startAthena(a, strings.Repeat("t", 129), "SELECT 1") },
		"an empty parameter": func() (string, error) { return startAthena(a, "", "SELECT 1", "") },
		"a long parameter":   func() (string, error) { return startAthena(a, "", "SELECT 1", strings.Repeat("é", 1025)) },
		"no place for results": func() (string, error) {
			_, err := a.StartQueryExecution(ctx, &athena.StartQueryExecutionInput{QueryString: aws.String("SELECT 1")})
			return "", err
		},
		"no such workgroup": func() (string, error) {
			_, err := a.StartQueryExecution(ctx, &athena.StartQueryExecutionInput{QueryString: aws.String("SELECT 1"), WorkGroup: aws.String("none")})
			return "", err
		},
		"no such query": func() (string, error) {
			_, err := a.GetQueryExecution(ctx, &athena.GetQueryExecutionInput{QueryExecutionId: aws.String("none")})
			return "", err
		},
		"nothing to stop": func() (string, error) {
			_, err := a.StopQueryExecution(ctx, &athena.StopQueryExecutionInput{QueryExecutionId: aws.String("none")})
			return "", err
		},
		"no such results": func() (string, error) {
			_, err := a.GetQueryResults(ctx, &athena.GetQueryResultsInput{QueryExecutionId: aws.String("none"), MaxResults: aws.Int32(1)})
			return "", err
		},
		"a second page": func() (string, error) {
			_, err := a.GetQueryResults(ctx, &athena.GetQueryResultsInput{QueryExecutionId: aws.String("none"), MaxResults: aws.Int32(1), NextToken: aws.String("2")})
			return "", err
		},
	} {
		var invalid *types.InvalidRequestException
		if _, err := ask(); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(a.Started()); n != 0 {
		t.Fatalf("%d queries were started", n)
	}
}

func TestAthenaStates(t *testing.T) {
	c := newClock()
	a, store := newTestAthena(t, c)
	id, err := startAthena(a, "", "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	results := &athena.GetQueryResultsInput{QueryExecutionId: &id, MaxResults: aws.Int32(1)}
	for _, want := range []types.QueryExecutionState{types.QueryExecutionStateQueued, types.QueryExecutionStateRunning, types.QueryExecutionStateSucceeded} {
		if got := a.State(id); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if _, err := a.GetQueryResults(ctx, results); (err == nil) != (want == types.QueryExecutionStateSucceeded) {
			t.Fatalf("results of a query that is %s: %v", want, err)
		}
		c.forward(30 * time.Second)
	}
	out, err := a.GetQueryExecution(ctx, &athena.GetQueryExecutionInput{QueryExecutionId: &id})
	if err != nil || *out.QueryExecution.ResultConfiguration.OutputLocation != "s3://out/q/"+id+".csv" || *out.QueryExecution.Statistics.DataScannedInBytes != 1000 {
		t.Fatalf("%+v %v", out, err)
	}
	object, err := store.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("out"), Key: aws.String("q/" + id + ".csv")})
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(object.Body); string(body) != "\"a\",\"b\"\n\"x\"\"y\",\n\"\",\"1\"\n" {
		t.Fatalf("%q", body)
	}
	a.Cancel(id)
	if got := a.State(id); got != types.QueryExecutionStateSucceeded {
		t.Fatalf("one that has ended is %s", got)
	}
	a.Forget(id)
	if got := a.State(id); got != "" {
		t.Fatalf("one that is forgotten is %s", got)
	}
}

func TestAthenaWorkgroups(t *testing.T) {
	c := newClock()
	a, store := newTestAthena(t, c)
	a.Workgroups["primary"] = AthenaWorkgroup{Output: "s3://out/own/", Enforce: true, Cutoff: 700}
	id, err := startAthena(a, "", "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	c.forward(40 * time.Second)
	if got := a.State(id); got != types.QueryExecutionStateRunning {
		t.Fatal(got)
	}
	c.forward(15 * time.Second)
	if got := a.State(id); got != types.QueryExecutionStateCancelled {
		t.Fatal(got)
	}
	a.Workgroups["primary"] = AthenaWorkgroup{Output: "s3://gone/", Enforce: true}
	if id, err = startAthena(a, "", "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	c.forward(time.Hour)
	if got := a.State(id); got != types.QueryExecutionStateFailed {
		t.Fatal(got)
	}
	if n := len(store.Requests()); n != 1 {
		t.Fatalf("%v: Athena's own writes count", store.Requests())
	}
}
