//go:build cloud

package probes

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// query starts an Athena query with a result below bucket/results/ and gives its id.
func query(t *testing.T, bucket, sql, token string, more map[string]any) (string, error) {
	t.Helper()
	in := map[string]any{"QueryString": sql, "ClientRequestToken": token, "ResultConfiguration": map[string]any{"OutputLocation": "s3://" + bucket + "/results/x.csv"}}
	for k, v := range more {
		in[k] = v
	}
	var out struct {
		ID string `json:"QueryExecutionId"`
	}
	err := raw().JSON(t.Context(), "athena", "AmazonAthena.StartQueryExecution", in, &out)
	return out.ID, err
}

func waitQuery(t *testing.T, id string) (state, reason, location string) {
	t.Helper()
	eventually(t, 30*time.Second, func() (bool, string) {
		var out struct {
			QueryExecution struct {
				Status              struct{ State, StateChangeReason string }
				ResultConfiguration struct{ OutputLocation string }
			}
		}
		if err := raw().JSON(t.Context(), "athena", "AmazonAthena.GetQueryExecution", map[string]any{"QueryExecutionId": id}, &out); err != nil {
			t.Fatal(err)
		}
		e := out.QueryExecution
		state, reason, location = e.Status.State, e.Status.StateChangeReason, e.ResultConfiguration.OutputLocation
		return state != "QUEUED" && state != "RUNNING", state
	})
	return state, reason, location
}

func TestAthenaTokenStartsASecondQuery(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	token := strings.Repeat(run, 5)
	first := must(query(t, bucket, "SELECT 1", token, nil))(t)
	second := must(query(t, bucket, "SELECT 1", token, nil))(t)
	// https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html: the same token, the same query.
	if first == second {
		like(t, "the same token gives the same query %s", first)
	}
}

func TestAthenaResultFileLiesElsewhere(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	id := must(query(t, bucket, "SELECT NULL AS a, '' AS b, 9007199254740993 AS c", strings.Repeat(run, 5), nil))(t)
	state, reason, location := waitQuery(t, id)
	if state != "SUCCEEDED" {
		t.Fatal(state, reason)
	}
	listed, err := objects().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	told := strings.TrimPrefix(location, "s3://"+bucket+"/")
	for _, o := range listed.Contents {
		t.Logf("told %q, there is %q", told, *o.Key)
		if *o.Key == told {
			like(t, "the result lies at %s, as told", told)
		}
	}
}

func TestAthenaResultFileHasNullAndEmptyAlike(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	id := must(query(t, bucket, "SELECT NULL AS a, '' AS b, 9007199254740993 AS c", strings.Repeat(run, 5), nil))(t)
	if state, reason, _ := waitQuery(t, id); state != "SUCCEEDED" {
		t.Fatal(state, reason)
	}
	listed, err := objects().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range listed.Contents {
		if !strings.HasSuffix(*o.Key, ".csv") {
			continue
		}
		got, err := objects().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		content, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", content)
		if !strings.Contains(string(content), "9007199254740993") {
			t.Errorf("a bigint is not exact in %s", content)
		}
		// On AWS NULL is an empty field and empty text a quoted one.
		lines := strings.Fields(string(content))
		fields := strings.Split(lines[len(lines)-1], ",")
		if fields[0] != fields[1] {
			like(t, "NULL is %s, empty text is %s", fields[0], fields[1])
		}
		return
	}
	t.Error("there is no result file")
}

func TestAthenaSpeaksDuckDB(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	// list_aggregate is DuckDB's, not Athena's.
	id := must(query(t, bucket, "SELECT list_aggregate([1, 2, 4], 'sum') AS n", strings.Repeat(run, 5), nil))(t)
	if state, reason, _ := waitQuery(t, id); state != "SUCCEEDED" {
		like(t, "DuckDB's own SQL: %s %s", state, reason)
	}
}

func TestAthenaIgnoresExecutionParameters(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	id, err := query(t, bucket, "SELECT ? AS n", strings.Repeat(run, 5), map[string]any{"ExecutionParameters": []string{"1"}})
	if err != nil {
		return // refused: as told in the row
	}
	if state, reason, _ := waitQuery(t, id); state == "SUCCEEDED" {
		like(t, "a query with a parameter: %s %s", state, reason)
	}
}

func TestAthenaTellsNoScale(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket := name(t, "")
	makeBucket(t, bucket)
	id := must(query(t, bucket, "SELECT CAST(1.25 AS DECIMAL(12, 2)) AS fare", strings.Repeat(run, 5), nil))(t)
	if state, reason, _ := waitQuery(t, id); state != "SUCCEEDED" {
		t.Fatal(state, reason)
	}
	var out struct {
		ResultSet struct {
			ResultSetMetadata struct {
				ColumnInfo []struct {
					Type             string
					Precision, Scale int
				}
			}
		}
	}
	if err := raw().JSON(t.Context(), "athena", "AmazonAthena.GetQueryResults", map[string]any{"QueryExecutionId": id}, &out); err != nil {
		t.Fatal(err)
	}
	// https://docs.aws.amazon.com/athena/latest/APIReference/API_ColumnInfo.html
	if c := out.ResultSet.ResultSetMetadata.ColumnInfo; len(c) != 1 || c[0].Precision == 12 && c[0].Scale == 2 {
		like(t, "a decimal column is told as %+v", c)
	} else {
		t.Logf("%+v", c)
	}
}

func TestIAMAthenaQueriesHaveNoWorkgroup(t *testing.T) {
	t.Parallel()
	if !divergence(t) {
		return
	}
	bucket, group := name(t, ""), name(t, "-group")
	makeBucket(t, bucket)
	if err := raw().JSON(t.Context(), "athena", "AmazonAthena.CreateWorkGroup", map[string]any{"Name": group}, nil); err != nil {
		t.Fatal(err)
	}
	id := must(query(t, bucket, "SELECT 1", strings.Repeat(run, 5), map[string]any{"WorkGroup": group}))(t)
	client := raw()
	client.Credentials = as(t, allow([]string{"athena:GetQueryExecution"}, "arn:aws:athena:"+region+":"+account+":workgroup/"+group))
	err := client.JSON(t.Context(), "athena", "AmazonAthena.GetQueryExecution", map[string]any{"QueryExecutionId": id}, nil)
	// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonathena.html: the workgroup is the
	// resource of GetQueryExecution.
	if !strings.HasPrefix(codeOf(err), "AccessDenied") {
		like(t, "a query with a grant for its workgroup: %v", err)
	}
}
